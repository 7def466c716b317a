//! `--where` and `--select`: rows and columns by SQL.

use crate::support::{Run, Sandbox};

fn load(sandbox: &Sandbox, flags: &[&str]) -> Run {
    let base = ["load", "a.csv", "--into", "store", "--table", "t"];
    sandbox.run(&[&base[..], flags].concat())
}

fn rows(sandbox: &Sandbox) -> String {
    sandbox.run(&["export", "store", "t", "--quote", "needed"]).ok().out
}

/// 3,000 records with few and many values of each shape.
fn write_input(sandbox: &Sandbox) {
    let record = |i: u64| {
        let name =
            if i.is_multiple_of(7) { "" } else { ["Rom", "Köln", "\"a,b\""][i as usize % 3] };
        format!("{i},{}.5{},2024-02-{:02},{name},note {i}\n", i % 50, i % 10, i % 28 + 1)
    };
    let text: String = (0..3000).map(record).collect();
    sandbox.write("a.csv", format!("Id,price,day,name,note\n{text}"));
}

/// Symptom: with `1 / 0 = 1` a load ran for ever, and with `false` it said that something is corrupt. Cause: of no rows one
/// was found that fails, again and again; and a batch without columns has no rows to take.
#[test]
fn conditions_that_look_at_no_column_end() {
    let sandbox = Sandbox::new();
    write_input(&sandbox);
    load(&sandbox, &["--where", "1 / 0 = 1"]).fails(1, &["a.csv:2 (byte 23): division by zero"]);
    let aside = ["--where", "1 / 0 = 1", "--max-rejects", "3000", "--chunk-size", "300"];
    load(&sandbox, &aside).ok();
    assert_eq!(rows(&sandbox), "Id,price,day,name,note\n");
    for (condition, count) in [("false", 0), ("1 = 1", 3000), ("now() < timestamp '2000-01-01'", 0)]
    {
        let run = load(&sandbox, &["--replace", "--where", condition]).ok();
        assert_eq!(rows(&sandbox).lines().count(), count + 1, "{condition} {run:?}");
    }
    load(&sandbox, &["--replace", "--where", "false", "--select", "7 AS x, id"]).ok();
    assert_eq!(rows(&sandbox), "x,Id\n");
}

#[test]
fn rows_are_filtered_and_accounted_for() {
    let sandbox = Sandbox::new();
    write_input(&sandbox);
    let filter = "id >= 100 AND price > 1.5 AND (name <> 'Rom' OR name IS NULL)";
    let mut seen = Vec::new();
    for (threads, chunk) in [("1", "1MiB"), ("1", "64"), ("4", "300"), ("3", "9000")] {
        let flags = ["--where", filter, "--threads", threads, "--chunk-size", chunk, "--replace"];
        let json = load(&sandbox, &[&flags[..], &["--report", "json"]].concat()).ok().out;
        let count = |name: &str| {
            let at = json.find(&format!("\n  \"{name}\": ")).unwrap() + name.len() + 7;
            json[at..].split([',', '\n']).next().unwrap().parse::<usize>().unwrap()
        };
        assert_eq!(count("records"), 3000, "{json}");
        assert_eq!(count("rows") + count("filtered") + count("rejects"), 3000, "{json}");
        let rows = rows(&sandbox);
        assert_eq!(rows.lines().count(), count("rows") + 1);
        seen.push(rows);
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
    // The same as loading all, and asking then.
    load(&sandbox, &["--replace"]).ok();
    let all = rows(&sandbox);
    let expected: Vec<&str> = all
        .lines()
        .enumerate()
        .filter(|(line, text)| {
            let price: f64 = text.split(',').nth(1).unwrap().parse().unwrap_or(0.0);
            *line == 0 || *line > 100 && price > 1.5 && !text.contains("Rom")
        })
        .map(|(_, text)| text)
        .collect();
    assert_eq!(seen[0].lines().collect::<Vec<_>>(), expected);
}

/// Symptom: a panic. Cause: texts of which many follow one another are read once for each run, and such a page cannot be
/// looked at before its runs are expanded. Here are columns of every way in which a column is read.
#[test]
fn conditions_see_columns_however_they_are_read() {
    let sandbox = Sandbox::new();
    let record = |i: u64| {
        let (each, run) = (i * 7919 % 100_003, i / 5 * 7919 % 100_003);
        format!(
            "{},{each},{run},{run}.0000000000000000{},{each}0000000000000000000001,\
             {run}0000000000000000000001,text {each},document number {run} of many\n",
            i % 7,
            i % 10
        )
    };
    let text: String = (0..30_000).map(record).collect();
    sandbox.write("a.csv", format!("few,each,run,long,wide,widerun,texts,textruns\n{text}"));
    load(&sandbox, &[]).ok();
    let all = rows(&sandbox);
    let names = "few,each,run,long,wide,widerun,texts,textruns";
    for name in names.split(',') {
        let condition = format!("{name} IS NOT NULL AND few <> 3");
        load(&sandbox, &["--replace", "--where", &condition]).ok();
        let kept: Vec<&str> = all.lines().filter(|line| !line.starts_with("3,")).collect();
        assert_eq!(rows(&sandbox).lines().collect::<Vec<_>>(), kept, "{name}");
        let select = format!("{name} AS {name}, coalesce({name}, {name}) AS x");
        load(&sandbox, &["--replace", "--select", &select]).ok();
        assert_eq!(rows(&sandbox).lines().count(), all.lines().count(), "{name}");
        let same = rows(&sandbox).lines().skip(1).all(|line| {
            let (left, right) = line.split_once(',').unwrap();
            left == right
        });
        assert!(same, "{name}");
    }
    let rules: Vec<String> = names.split(',').map(|n| format!("CHECK ({n} IS NOT NULL)")).collect();
    let types = "few BIGINT, each BIGINT, run BIGINT, long DECIMAL(38,17), wide DECIMAL(38,0), \
                 widerun DECIMAL(38,0), texts VARCHAR, textruns VARCHAR";
    sandbox.write("t.sql", format!("CREATE TABLE c ({types}, {})", rules.join(", ")));
    let base = ["load", "a.csv", "--into", "store", "--table", "c", "--schema", "t.sql"];
    sandbox.run(&base).ok();
    let loaded = sandbox.run(&["export", "store", "c", "--quote", "needed"]).ok().out;
    assert_eq!(loaded.lines().count(), all.lines().count());
}

#[test]
fn columns_are_made_by_expressions() {
    let sandbox = Sandbox::new();
    write_input(&sandbox);
    let select = "note, ID, id AS again, upper(name) AS \"Name\", price * 2 AS twice, \
                  coalesce(name, '?') || '!' AS s, extract(month FROM day) AS m";
    let mut seen = Vec::new();
    for (threads, chunk) in [("1", "1MiB"), ("1", "64"), ("4", "900")] {
        let flags = ["--threads", threads, "--chunk-size", chunk, "--replace", "--set", "f=@file"];
        load(&sandbox, &[&["--select", select, "--where", "id < 2000"][..], &flags].concat()).ok();
        seen.push(rows(&sandbox));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
    let lines: Vec<&str> = seen[0].lines().collect();
    assert_eq!(lines[0], "note,Id,again,Name,twice,s,m,f");
    assert_eq!(lines[1], "note 0,0,0,,1.00,?!,2,a.csv");
    assert_eq!(lines[2], "note 1,1,1,KÖLN,3.02,Köln!,2,a.csv");
    assert_eq!(lines.len(), 2001);
    // Text of few values has a dictionary, as if it had been read.
    let inspected = sandbox.run(&["inspect", "store", "t"]).ok().out;
    let of_name = inspected.lines().find(|l| l.starts_with("Name ") && l.contains("dictionary"));
    assert!(of_name.is_some(), "{inspected}");
}

#[test]
fn expressions_fill_a_table_that_is_there_by_name() {
    let sandbox = Sandbox::new();
    write_input(&sandbox);
    let columns =
        "n VARCHAR(8) NOT NULL DEFAULT 'none', p DECIMAL(9,1), id INTEGER NOT NULL CHECK (id > 0)";
    let flags = ["--columns", columns, "--select", "Id, price AS p", "--where", "id < 4"];
    load(&sandbox, &flags).fails(1, &["a.csv:2", "\"0\" breaks CHECK (id > 0)"]);
    let run = load(&sandbox, &[&flags[..], &["--max-rejects", "1"]].concat()).ok();
    assert!(run.err.contains("n (DEFAULT 'none')"), "{run:?}");
    // As INSERT does, a value is rounded to the scale of its column.
    assert_eq!(rows(&sandbox), "n,p,id\nnone,1.5,1\nnone,2.5,2\nnone,3.5,3\n");
    load(&sandbox, &["--select", "price AS p", "--where", "id = 1"])
        .fails(1, &["column id", "NOT NULL"]);
    load(&sandbox, &["--select", "id, price"]).fails(1, &["no column price"]);
}

#[test]
fn a_row_for_which_an_expression_fails_is_a_reject() {
    let sandbox = Sandbox::new();
    let text: String =
        (0..500).map(|i| format!("{i},{}\n", if i % 100 == 7 { "x" } else { "12" })).collect();
    sandbox.write("a.csv", format!("id,n\n{text}"));
    let flags = ["--select", "id, CAST(n AS BIGINT) AS n", "--chunk-size", "500"];
    load(&sandbox, &flags).fails(1, &["a.csv:9", "Cannot cast string 'x'"]);
    let more = ["--max-rejects", "9", "--rejects", "r.csv", "--where", "id <> 107"];
    load(&sandbox, &[&flags[..], &more].concat()).ok();
    let rejects = std::fs::read_to_string(sandbox.path("r.csv")).unwrap();
    let places: Vec<&str> = rejects.lines().skip(1).map(|l| l.split(',').nth(1).unwrap()).collect();
    assert_eq!(places, ["9", "209", "309", "409"]);
    assert!(rejects.contains("\"7,x\""), "{rejects}");
    assert_eq!(rows(&sandbox).lines().count(), 1 + 500 - 4 - 1);
    // Of the condition too, and both together with bad fields and rules.
    sandbox.write("a.csv", "a,b\n1,0\nz,1\n3,1\n4,-5\n5,5\n");
    let flags = ["--columns", "a INT, b INT, CHECK (b > 0)", "--replace", "--max-rejects", "9"];
    let run = load(&sandbox, &[&flags[..], &["--where", "10 / b > 0 OR b < 0"]].concat()).ok();
    assert!(run.out.starts_with("loaded 2 rows"), "{run:?}");
    assert!(
        run.out.contains("division by zero") && run.out.contains("breaks CHECK (b > 0)"),
        "{run:?}"
    );
}

#[test]
fn inferred_types_become_wider_below_expressions() {
    let sandbox = Sandbox::new();
    let text: String =
        (0..2000).map(|i| format!("{i},k\n")).chain(["1.5,k\n".to_owned()]).collect();
    sandbox.write("a.csv", text);
    let flags = ["--no-header", "--sample", "1KiB", "--select", "c1 + 1 AS a", "--where", "c1 < 2"];
    load(&sandbox, &flags).ok();
    let rows = rows(&sandbox);
    assert_eq!(
        rows.lines().map(|l| l.trim_end_matches('0').trim_end_matches('.')).collect::<Vec<_>>(),
        ["a", "1", "2", "2.5"]
    );
}

/// Records whose last column has other values than the sample showed, from some record on.
fn widening_text() -> String {
    let record = |i: u64| {
        let late = match i {
            0..1500 => format!("{}", i % 7),
            1500..2500 => format!("{}.5", i % 9),
            _ => format!("{}x", i % 5),
        };
        format!("{i},{late},k{}\n", i % 3)
    };
    "id,late,k\n".to_owned() + &(0..3000).map(record).collect::<String>()
}

#[test]
fn a_load_with_a_filter_goes_on_with_wider_types_of_columns_it_does_not_look_at() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", widening_text());
    // It fails for one row of a hundred.
    let made = "late, id, k || '!' AS k, 10 / (id % 100 - 7) AS q";
    let sql = ["--where", "id % 4 <> 1", "--select", made, "--max-rejects", "30"];
    let known = ["--columns", "id BIGINT, late VARCHAR, k VARCHAR"];
    sandbox.write("known.csv", widening_text());
    let whole = ["load", "known.csv", "--into", "store", "--table", "known"];
    sandbox.run(&[&whole[..], &known].concat()).ok();
    let query = format!("SELECT {made} FROM known WHERE id % 4 <> 1 AND id % 100 <> 7 ORDER BY id");
    let expected =
        sandbox.run(&["sql", "--store", "store", "--output", "csv", "-c", &query]).ok().out;
    for (threads, chunk) in [("1", "900"), ("3", "900"), ("2", "7000")] {
        let flags = ["--sample", "1KiB", "--threads", threads, "--chunk-size", chunk, "--replace"];
        let flags = [&sql[..], &flags, &["--report", "json"]].concat();
        let report = load(&sandbox, &flags).ok().out;
        assert!(report.contains("\n  \"rejects\": 30,"), "{report}");
        assert!(report.contains("\"column\": \"late\""), "{report}");
        assert_eq!(rows(&sandbox), expected);
        // Standard input comes once: it can only go on.
        let base = ["load", "-", "--into", "store", "--table", "t"];
        sandbox.run_with_input(&[&base[..], &flags].concat(), widening_text().as_bytes()).ok();
        assert_eq!(rows(&sandbox), expected);
    }
}

#[test]
fn a_stream_whose_filter_looked_at_what_became_wider_fails_and_says_why() {
    let sandbox = Sandbox::new();
    let base = ["load", "-", "--into", "store", "--table", "t", "--sample", "1KiB"];
    let flags = [&base[..], &["--chunk-size", "900", "--where", "late < 4"]].concat();
    sandbox.run_with_input(&flags, widening_text().as_bytes()).fails(
        1,
        &["late was inferred as BIGINT", "\"6.5\" is not", "--where", "a file", "--columns"],
    );
}

#[test]
fn what_is_wrong_is_told_with_the_flag() {
    let sandbox = Sandbox::new();
    write_input(&sandbox);
    let cases: [(&[&str], &str); 13] = [
        (&["--where", "id >"], "--where"),
        (&["--where", "id"], "--where"),
        (&["--where", "nothing > 1"], "--where: no field named nothing; there is "),
        (&["--where", "prize > 1"], "did you mean price?"),
        (
            &["--select", "\"Unit price\" AS x"],
            "--select: no field named \"Unit price\"; there is ",
        ),
        (&["--where", "id > 1; DROP TABLE t"], "expected one condition"),
        (&["--where", "random() < 0.5"], "differs each time"),
        (&["--where", "count(*) > 1"], "--where: count(*) > 1 looks beyond its row"),
        (&["--where", "id = ?"], "looks beyond its row"),
        (&["--select", "id + 1"], "AS name"),
        (&["--select", "id, id"], "named twice"),
        (&["--select", "id FROM t"], "expected a comma"),
        (&["--select", "(SELECT 1) AS a"], "--select: (SELECT 1) looks beyond its row"),
    ];
    for (flags, part) in cases {
        load(&sandbox, flags).fails(1, &[part]);
    }
    load(&sandbox, &["--select", "id", "--by-name"]).fails(2, &["cannot be used with"]);
}

/// Row groups without rows of a filter are not read, which damage in one shows, and their rows are counted.
#[test]
fn a_filter_leaves_row_groups_of_parquet_unread() {
    let sandbox = Sandbox::new();
    for (name, first) in [("a.parquet", 1), ("b.parquet", 1001)] {
        let last = first + 999;
        let select = format!(
            "SELECT value AS id, value % 7 AS week, 'note ' || value AS note FROM generate_series({first}, {last})"
        );
        sandbox.run(&["sql", "-o", name, "-c", &select]).ok();
    }
    let path = sandbox.path("a.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4..200].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let load = |filter: &str| {
        let base =
            ["load", "a.parquet", "b.parquet", "--into", "store", "--table", "t", "--replace"];
        sandbox.run(&[&base[..], &["--report", "json", "--where", filter]].concat())
    };
    for filter in ["id > 1500 AND week = 3", "week = 3 AND 1500 < id AND upper(note) <> 'X'"] {
        let report = load(filter).ok().out;
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let count = |of: &serde_json::Value, name: &str| of[name].as_u64().unwrap();
        let counts = ["records", "rows", "filtered", "rejects"].map(|name| count(&report, name));
        assert_eq!(counts, [2000, 72, 1928, 0], "{report}");
        let first = &report["files"][0];
        assert_eq!((count(first, "records"), count(first, "filtered")), (1000, 1000), "{report}");
        assert_eq!(sandbox.query("SELECT count(*), min(id), max(week) FROM t"), ["72,1501,3"]);
    }
    // What may have rows is read.
    for filter in ["id > 900", "id > 1500 OR week = 3", "id + 0 > 1500"] {
        load(filter).fails(1, &["a.parquet"]);
    }
}
