//! Inputs of Parquet, Arrow and Avro with different fields, joined by name.

use crate::serve::Server;
use crate::support::Sandbox;

/// Rows of each of the larger inputs.
const ROWS: u64 = 5000;
const ID: &str = "6f1ed002ab5595859014ebf0951522d9";

/// Three files whose columns differ in order, in number and in type.
fn three(sandbox: &Sandbox, ending: &str) {
    let rows: String = (0..ROWS).map(|n| format!("{n},{}.25,k{}\n", n % 50, n % 9)).collect();
    sandbox.write("rows.csv", format!("n,price,kind\n{rows}"));
    let files = [
        ("a", "CAST(n AS INTEGER) AS id, CAST(price AS DECIMAL(9,2)) AS price, kind"),
        ("b", "concat('note ', n) AS note, CAST(n + 5000000000 AS BIGINT) AS \"ID\""),
        ("c", "CAST(price AS DECIMAL(12,4)) AS price, CAST(n AS SMALLINT) AS id"),
    ];
    for (name, columns) in files {
        let output = format!("{name}.{ending}");
        let select = format!("SELECT {columns} FROM 'rows.csv' ORDER BY n");
        sandbox.run(&["sql", "-o", &output, "-c", &select]).ok();
    }
}

/// What the rows of the three files come to.
const SEEN: &str = "SELECT count(*), count(price), count(kind), count(note), sum(id), sum(price), \
                    count(DISTINCT kind), count(DISTINCT note), max(length(note)) FROM ";

fn expected() -> String {
    let ids = 3 * (ROWS * (ROWS - 1) / 2) + 5_000_000_000 * ROWS;
    let prices = 2 * (0..ROWS).map(|n| 100 * (n % 50) + 25).sum::<u64>();
    let prices = format!("{}.{:02}00", prices / 100, prices % 100);
    format!("{},{},{ROWS},{ROWS},{ids},{prices},9,{ROWS},9", 3 * ROWS, 2 * ROWS)
}

/// The answer to a query without a store, as lines of CSV without the header.
fn answer(sandbox: &Sandbox, sql: &str) -> Vec<String> {
    let run = sandbox.run(&["sql", "--output", "csv", "-c", sql]).ok();
    run.out.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn files_that_differ_in_order_number_and_types_are_one_table() {
    for ending in ["parquet", "arrow"] {
        let sandbox = Sandbox::new();
        three(&sandbox, ending);
        let glob = format!("[abc].{ending}");
        let load = ["load", &glob, "--into", "store", "--table", "t", "--replace"];
        sandbox.run(&load).fails(1, &["has other fields than", "--union-by-name"]);
        let small = ["--chunk-size", "8KiB", "--fragments-per-partition", "3"];
        for more in [&["--threads", "1"][..], &["--threads", "3"], &small] {
            let run = sandbox.run(&[&load[..], &["--union-by-name"], more].concat()).ok();
            assert_eq!(sandbox.query(&format!("{SEEN} t")), [expected()], "{ending} {run:?}");
            let differ = "columns whose types differ: id BIGINT (INTEGER in a";
            assert!(run.err.contains(differ), "{}", run.err);
            assert!(run.err.contains("columns that inputs lack: price (NULL) in b"), "{}", run.err);
        }
        let columns = sandbox.query("SELECT column_name, data_type, is_nullable FROM information_schema.columns ORDER BY ordinal_position");
        let names: Vec<_> =
            columns.iter().map(|column| column.split(',').next().unwrap()).collect();
        assert_eq!(names, ["id", "price", "kind", "note"], "{columns:?}");
        // The first rows of each file, in order.
        let exported = sandbox.run(&["export", "store", "t"]).ok().out;
        let lines: Vec<&str> = exported.lines().collect();
        assert_eq!(lines[1], "0,0.2500,\"k0\",");
        assert_eq!(lines[1 + ROWS as usize], "5000000000,,,\"note 0\"");
        assert_eq!(lines[1 + 2 * ROWS as usize], "0,0.2500,,");
    }
}

#[test]
fn what_an_input_lacks_is_the_default_of_a_table_or_refused() {
    let sandbox = Sandbox::new();
    three(&sandbox, "parquet");
    let load =
        ["load", "a.parquet", "b.parquet", "c.parquet", "--into", "store", "--union-by-name"];
    let columns = "kind VARCHAR NOT NULL DEFAULT 'none', price DECIMAL(9,2) DEFAULT 0.5, id BIGINT, more DATE";
    sandbox.run(&[&load[..], &["--table", "d", "--columns", columns]].concat()).ok();
    let seen = "SELECT count(*), count(price), sum(CASE WHEN kind = 'none' THEN 1 END), \
                sum(CASE WHEN price = 0.5 THEN 1 END), count(more) FROM d";
    let all = 3 * ROWS;
    assert_eq!(sandbox.query(seen), [format!("{all},{all},{},{ROWS},0", 2 * ROWS)]);
    let columns = ["--table", "n", "--columns", "id BIGINT, note VARCHAR NOT NULL"];
    sandbox
        .run(&[&load[..], &columns].concat())
        .fails(1, &["a.parquet has no field for column note, which is NOT NULL"]);
}

#[test]
fn types_that_have_nothing_in_common_are_told_with_both_files() {
    let sandbox = Sandbox::new();
    let write = |name: &str, select: &str| {
        sandbox.run(&["sql", "-o", name, "-c", &format!("SELECT {select}")]).ok();
    };
    write("a.parquet", "CAST(1 AS BIGINT) AS id, CAST(7 AS BIGINT) AS v");
    write("b.parquet", "'x' AS v, CAST(2 AS INTEGER) AS id");
    write("c.parquet", "CAST(0.5 AS DOUBLE) AS v");
    let load = |more: &[&str]| {
        let base = ["load", "--into", "store", "--table", "t", "--replace", "--union-by-name"];
        sandbox.run(&[&base[..], more].concat())
    };
    load(&["a.parquet", "b.parquet"]).fails(
        1,
        &["b.parquet: field v is VARCHAR, and BIGINT in a.parquet", "--types 'v VARCHAR'"],
    );
    load(&["a.parquet", "b.parquet", "--types", "v VARCHAR"]).ok();
    assert_eq!(sandbox.query("SELECT id, v FROM t ORDER BY id"), ["1,7", "2,x"]);
    // A BIGINT would be rounded.
    load(&["a.parquet", "c.parquet"])
        .fails(1, &["c.parquet: field v is DOUBLE, and BIGINT in a.parquet", "--types 'v DOUBLE'"]);
    load(&["a.parquet", "c.parquet", "--types", "v DOUBLE"]).ok();
    assert_eq!(sandbox.query("SELECT id, v FROM t ORDER BY v"), [",0.5", "1,7.0"]);
    load(&["a.parquet", "c.parquet", "--types", "w DOUBLE"])
        .fails(1, &["--types: no input has a field w; they have id, v"]);
    // A statement that does not read the column runs.
    let both = "read_parquet(['a.parquet', 'b.parquet'], union_by_name => true)";
    assert_eq!(answer(&sandbox, &format!("SELECT sum(id) FROM {both}")), ["3"]);
    sandbox
        .run(&["sql", "-c", &format!("SELECT v FROM {both}")])
        .fails(1, &["field v is VARCHAR, and BIGINT", "types => 'v VARCHAR'"]);
    let given =
        "read_parquet(['a.parquet', 'b.parquet'], union_by_name => true, types => 'v VARCHAR')";
    assert_eq!(answer(&sandbox, &format!("SELECT v FROM {given} ORDER BY v")), ["7", "x"]);
    // An input of another form.
    write("d.arrow", "1 AS id");
    load(&["a.parquet", "d.arrow"]).fails(1, &["a.parquet is Parquet, and d.arrow is not"]);
}

#[test]
fn statements_read_them_where_they_are() {
    for ending in ["parquet", "arrow"] {
        let sandbox = Sandbox::new();
        three(&sandbox, ending);
        let function = format!("read_{ending}('[abc].{ending}'");
        let all = format!("{function}, union_by_name => true)");
        assert_eq!(answer(&sandbox, &format!("{SEEN} {all}")), [expected()]);
        // Columns that some files lack, and one that only one has.
        assert_eq!(
            answer(&sandbox, &format!("SELECT count(*) FROM {all}")),
            [(3 * ROWS).to_string()]
        );
        let kind = format!("SELECT count(*), min(id) FROM {all} WHERE kind = 'k3'");
        let found = (0..ROWS).filter(|n| n % 9 == 3).count();
        assert_eq!(answer(&sandbox, &kind), [format!("{found},3")]);
        let lacking = format!("SELECT count(*) FROM {all} WHERE kind IS NULL");
        assert_eq!(answer(&sandbox, &lacking), [(2 * ROWS).to_string()]);
        let notes = format!("SELECT note FROM {all} WHERE id = 5000000007");
        assert_eq!(answer(&sandbox, &notes), ["note 7"]);
        let given =
            format!("{function}, union_by_name => true, columns => 'note VARCHAR, id BIGINT')");
        let given = format!("SELECT count(note), sum(id) FROM {given}");
        let ids = expected().split(',').nth(4).unwrap().to_owned();
        assert_eq!(answer(&sandbox, &given), [format!("{ROWS},{ids}")]);
        sandbox
            .run(&["sql", "-c", &format!("SELECT * FROM {function})")])
            .fails(1, &["has other fields than", "union_by_name => true"]);
    }
}

#[test]
fn workers_and_servers_join_them_as_one_load_does() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    three(&sandbox, "parquet");
    let inputs = ["load", "a.parquet", "b.parquet", "c.parquet", "--union-by-name"];
    let small = ["--chunk-size", "8KiB", "--fragments-per-partition", "3"];
    for (table, into) in [("s", "store"), ("t", &server.url())] {
        for worker in ["2/3", "1/3", "3/3"] {
            let share = ["--into", into, "--table", table, "--worker", worker, "--load-id", ID];
            sandbox.run(&[&inputs[..], &share, &["--split-min", "700"]].concat()).ok();
        }
        assert_eq!(sandbox.query(&format!("{SEEN} {table}")), [expected()], "{table}");
    }
    for (number, placement) in ["all", "none", "size", "adaptive"].into_iter().enumerate() {
        let table = format!("u{number}");
        let into = ["--into", &server.url(), "--table", &table, "--placement", placement];
        sandbox.run(&[&inputs[..], &into, &small].concat()).ok();
        assert_eq!(sandbox.query(&format!("{SEEN} {table}")), [expected()], "{placement}");
    }
}

/// A file of Avro of one block: records with a string `name`, or with `"null"` and a long.
fn avro(fields: &str, records: &[&[u8]]) -> Vec<u8> {
    let long = |value: usize| {
        let (mut rest, mut out) = (value << 1, Vec::new());
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
        out
    };
    let schema = format!("{{\"type\":\"record\",\"name\":\"r\",\"fields\":[{fields}]}}");
    let marker = [7_u8; 16];
    let mut out = b"Obj\x01".to_vec();
    out.extend(long(1));
    for text in ["avro.schema", &schema] {
        out.extend(long(text.len()));
        out.extend(text.bytes());
    }
    out.extend(long(0));
    out.extend(marker);
    out.extend(long(records.len()));
    out.extend(long(records.iter().map(|record| record.len()).sum()));
    records.iter().for_each(|record| out.extend(*record));
    out.extend(marker);
    out
}

#[test]
fn files_of_avro_are_joined_too() {
    let sandbox = Sandbox::new();
    let int = "{\"name\":\"id\",\"type\":\"int\"}";
    let long = "{\"name\":\"ID\",\"type\":\"long\"}";
    let name = "{\"name\":\"name\",\"type\":\"string\"}";
    let null = "{\"name\":\"name\",\"type\":\"null\"}";
    sandbox.write("a.avro", avro(&format!("{int},{name}"), &[b"\x02\x02x", b"\x04\x04yz"]));
    sandbox.write("b.avro", avro(long, &[b"\x06", b"\x08"]));
    // What is NULL everywhere has the type of the others.
    sandbox.write("c.avro", avro(&format!("{null},{long}"), &[b"\x0a"]));
    let rows = ["1,x", "2,yz", "3,", "4,", "5,"];
    let load = ["load", "[abc].avro", "--into", "store", "--table", "t"];
    sandbox.run(&load).fails(1, &["has other fields than", "--union-by-name"]);
    sandbox.run(&[&load[..], &["--union-by-name"]].concat()).ok();
    assert_eq!(sandbox.query("SELECT id, name FROM t ORDER BY id"), rows);
    let all = "read_avro('[abc].avro', union_by_name => true)";
    assert_eq!(answer(&sandbox, &format!("SELECT id, name FROM {all} ORDER BY id")), rows);
    assert_eq!(answer(&sandbox, &format!("SELECT count(name) FROM {all}")), ["2"]);
    let columns = ["--columns", "id BIGINT, name VARCHAR DEFAULT 'none'", "--union-by-name"];
    let other = ["load", "b.avro", "a.avro", "--into", "store", "--table", "d"];
    sandbox.run(&[&other[..], &columns].concat()).ok();
    assert_eq!(
        sandbox.query("SELECT id, name FROM d ORDER BY id"),
        ["1,x", "2,yz", "3,none", "4,none"]
    );
    // As streams.
    for name in ["a", "b", "c"] {
        let file = format!("{name}.avro");
        let status = std::process::Command::new("gzip").arg(sandbox.path(&file)).status();
        assert!(status.unwrap().success());
    }
    let packed = ["load", "[abc].avro.gz", "--into", "store", "--table", "z", "--union-by-name"];
    sandbox.run(&packed).ok();
    assert_eq!(sandbox.query("SELECT id, name FROM z ORDER BY id"), rows);
}
