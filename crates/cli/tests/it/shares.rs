//! A load that several workers do, each in a process of its own: its rows are there once, or not at all, whoever is killed.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use coload_object_server::ObjectServer;

use crate::random::{Random, seed};
use crate::serve::Server;
use crate::support::{Run, Sandbox};

const ID: &str = "6f1ed002ab5595859014ebf0951522d9";
const COLUMNS: &str = "id BIGINT NOT NULL, note VARCHAR, n INTEGER";
/// Flags of all workers: splits and chunks as small as they can be.
const FLAGS: [&str; 8] =
    ["--table", "t", "--split-min", "700", "--chunk-size", "900", "--fragments-per-partition", "2"];

/// Rows whose texts have newlines in quotes, some of which look like records.
fn tricky(rows: u64) -> String {
    let mut text = String::from("id,note,n\n");
    for id in 0..rows {
        let note = match id % 7 {
            0 => "\"a\nb\"".to_owned(),
            1 => format!("\"x\n{id},plain,5\n{id},plain,6\n\""),
            2 => format!("\"said \"\"{id}\"\"\n\n\""),
            3 => format!("\"{}\"", "line\n".repeat((id % 400) as usize)),
            _ => format!("note {id}"),
        };
        text.push_str(&format!("{id},{note},{}\n", id % 10));
    }
    text
}

fn args<'a>(input: &'a str, into: &'a str, worker: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["load", input, "--into", into, "--worker", worker, "--load-id", ID];
    args.extend(FLAGS);
    args.extend(flags);
    args
}

fn share(sandbox: &Sandbox, input: &str, into: &str, worker: &str, flags: &[&str]) -> Run {
    sandbox.run(&args(input, into, worker, flags))
}

/// Rows, different ids, and their sum.
fn seen(sandbox: &Sandbox) -> String {
    sandbox.query("SELECT count(*), count(DISTINCT id), sum(id) FROM t").remove(0)
}

fn expected(rows: u64) -> String {
    format!("{rows},{rows},{}", rows * (rows - 1) / 2)
}

/// A store, and where its loads go: the store itself, or a server of it.
fn with_each_target(test: impl Fn(&Sandbox, &str)) {
    let sandbox = Sandbox::new();
    test(&sandbox, "store");
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    test(&sandbox, &server.url());
}

#[test]
fn all_shares_of_a_file_are_seen_at_once_and_once() {
    with_each_target(|sandbox, into| {
        sandbox.write("t.csv", tricky(1500));
        let columns = ["--columns", COLUMNS];
        for (done, worker) in ["4/4", "2/4", "2/4", "1/4"].into_iter().enumerate() {
            let run = share(sandbox, "t.csv", into, worker, &columns).ok();
            assert!(run.out.contains("nothing is visible until all are complete"), "{run:?}");
            assert_eq!(done == 2, run.err.contains("nothing was loaded"), "{run:?}");
        }
        let run = share(sandbox, "t.csv", into, "3/4", &["--columns", COLUMNS, "--report", "json"]);
        let report = run.ok().out;
        for part in ["\"load_rows\": 1500", "\"missing\": []", "\"published\": true", "\"version\""]
        {
            assert!(report.contains(part), "{part}: {report}");
        }
        assert_eq!(seen(sandbox), expected(1500));
        let notes = "SELECT count(*) FROM t WHERE id % 7 = 3 AND length(note) = 5 * (id % 400)";
        assert_eq!(sandbox.query(notes), [((1500 + 3) / 7).to_string()]);
        // One version, and it stays so.
        for worker in ["3/4", "1/4"] {
            let again = share(sandbox, "t.csv", into, worker, &columns).ok();
            assert!(again.err.contains("published"), "{again:?}");
        }
        assert_eq!(seen(sandbox), expected(1500));
    });
}

/// Splits that lie within one field were read as records, whose lines all are records: only where the shares come together
/// is it seen that they are none.
#[test]
fn a_field_that_is_longer_than_splits_is_one_value() {
    with_each_target(|sandbox, into| {
        let lines = "7,plain,5\n".repeat(3000);
        let rows: String = (2..200).map(|id| format!("{id},b,2\n")).collect();
        sandbox.write("t.csv", format!("id,note,n\n0,a,1\n1,\"{lines}\",2\n{rows}"));
        for worker in ["3/3", "1/3"] {
            share(sandbox, "t.csv", into, worker, &["--columns", COLUMNS]).ok();
        }
        let last = share(sandbox, "t.csv", into, "2/3", &["--columns", COLUMNS]).ok();
        assert!(last.out.contains("all 3 shares") && last.out.contains("200 rows"), "{last:?}");
        assert_eq!(seen(sandbox), expected(200));
        assert_eq!(sandbox.query("SELECT max(length(note)) FROM t"), ["30000"]);
    });
}

#[test]
fn shares_that_do_not_fit_are_refused_with_what_differs() {
    with_each_target(|sandbox, into| {
        sandbox.write("t.csv", tricky(300));
        sandbox.write("u.csv", "id,note,n\n1,a,2\n");
        let columns = ["--columns", COLUMNS];
        let other = "id BIGINT NOT NULL, note VARCHAR, n BIGINT";
        share(sandbox, "t.csv", into, "1/3", &columns).ok();
        share(sandbox, "t.csv", into, "2/4", &columns).fails(1, &["4 shares, and 3 there", ID]);
        share(sandbox, "u.csv", into, "2/3", &columns).fails(1, &["bytes of inputs"]);
        share(sandbox, "t.csv", into, "2/3", &["--columns", other]).fails(1, &["the columns"]);
        let limit = ["--columns", COLUMNS, "--max-rejects", "3"];
        share(sandbox, "t.csv", into, "2/3", &limit).fails(1, &["--max-rejects"]);
        share(sandbox, "t.csv", into, "0/3", &columns).fails(2, &["from 1 to 3"]);
        share(sandbox, "t.csv", into, "4/3", &columns).fails(2, &["from 1 to 3"]);
        // The same bytes, written anew.
        sandbox.write("t.csv", tricky(300));
        share(sandbox, "t.csv", into, "2/3", &columns).fails(1, &["another version"]);
        share(sandbox, "t.csv", into, "1/3", &columns).fails(1, &["another version"]);
        let place = if into == "store" { "--store" } else { "--server" };
        let shown = sandbox.run(&["loads", place, into]).ok().out;
        assert!(shown.contains(&format!("load {ID}: 1 of 3 shares are complete")), "{shown}");
        assert!(shown.contains("missing: 2-3") && shown.contains("1/3"), "{shown}");
        // A worker reads several parts of it.
        assert_eq!(shown.matches("t.csv").count(), 1, "{shown}");
        let dropped = sandbox.run(&["loads", place, into, "--abort", ID]).ok().out;
        assert!(!dropped.contains(ID), "{dropped}");
        for worker in ["3/3", "2/3", "1/3"] {
            share(sandbox, "t.csv", into, worker, &columns).ok();
        }
        assert_eq!(seen(sandbox), expected(300));
    });
}

#[test]
fn rejects_of_shares_have_their_lines_and_one_limit() {
    with_each_target(|sandbox, into| {
        let text =
            tricky(400).replace(",note 46,", ",note 46,x").replace(",note 384,", ",note 384,y");
        let line = 1 + text[..text.find("note 384").unwrap()].matches('\n').count();
        sandbox.write("t.csv", text);
        let flags = |limit| ["--columns", COLUMNS, "--max-rejects", limit, "--rejects"];
        let each = |limit| -> Vec<Run> {
            let one = |worker: u32| {
                let (worker, file) = (format!("{worker}/3"), format!("rejects-{worker}.csv"));
                let flags = [&flags(limit)[..], &[&file]].concat();
                share(sandbox, "t.csv", into, &worker, &flags)
            };
            (1..=3).map(one).collect()
        };
        let runs = each("1");
        assert!(runs[..2].iter().all(|run| run.status == Some(0)), "{runs:?}");
        assert!(runs[2].err.contains("2 rejects together, over --max-rejects 1"), "{runs:?}");
        let place = if into == "store" { "--store" } else { "--server" };
        sandbox.run(&["loads", place, into, "--abort", ID]).ok();
        let runs = each("2");
        assert!(runs.iter().all(|run| run.status == Some(0)), "{runs:?}");
        assert_eq!(sandbox.query("SELECT count(*) FROM t"), ["398"]);
        let all: String = (1..=3)
            .map(|n| std::fs::read_to_string(sandbox.path(&format!("rejects-{n}.csv"))).unwrap())
            .collect();
        assert!(all.contains(&format!("t.csv,{line},")) && all.contains("384"), "{line}: {all}");
    });
}

#[test]
fn keys_give_way_between_shares_and_to_those_of_the_table() {
    with_each_target(|sandbox, into| {
        // Each key three times, the greatest n last; ids below 100 are in the table.
        let line = |i: u64| format!("{},note {i},{i}\n", i * 7 % 200);
        sandbox.write("t.csv", format!("id,note,n\n{}", (0..600).map(line).collect::<String>()));
        sandbox.run(&["load", "t.csv", "--into", into, "--table", "other"]).ok();
        let rules: [(&str, &[&str], [&str; 2]); 4] = [
            ("i", &["--on-conflict", "ignore"], ["200,200,100", "0"]),
            ("r", &["--on-conflict", "replace"], ["200,200,0", "0"]),
            ("w", &["--on-conflict", "newest:n"], ["200,200,0", "200"]),
            (
                "d",
                &["--on-conflict", "newest:n", "--delete-where", "note=note 599"],
                ["199,199,0", "199"],
            ),
        ];
        for (number, (table, rule, [wanted, newest])) in rules.into_iter().enumerate() {
            let make = format!(
                "CREATE TABLE {table} (id BIGINT NOT NULL, note VARCHAR, n INTEGER, PRIMARY KEY (id)); \
                 INSERT INTO {table} SELECT value, 'old', -1 FROM generate_series(0, 99) AS s(value)"
            );
            sandbox.run(&["sql", "--store", "store", "-c", &make]).ok();
            let id = format!("0000000000000000000000000000ab{number:02}");
            let run = |worker: &str| {
                let mut args = vec!["load", "t.csv", "--into", into, "--worker", worker];
                args.extend(["--load-id", &id, "--table", table, "--split-min", "700"]);
                args.extend(["--chunk-size", "900", "--fragments-per-partition", "2"]);
                args.extend(["--report", "json"]);
                sandbox.run(&[&args[..], rule].concat())
            };
            for worker in ["3/3", "1/3"] {
                run(worker).ok();
            }
            // All shares say the same of keys.
            let other = ["load", "t.csv", "--into", into, "--worker", "2/3", "--load-id", &id];
            let other =
                sandbox.run(&[&other[..], &["--table", table, "--split-min", "700"]].concat());
            other.fails(1, &["--on-conflict differs"]);
            let last: serde_json::Value = serde_json::from_str(&run("2/3").ok().out).unwrap();
            let keys = &last["share"]["keys"];
            let count = |name: &str| keys[name].as_u64().unwrap();
            assert_eq!(
                count("added") + count("replaced"),
                last["share"]["load_rows"].as_u64().unwrap()
            );
            assert_eq!(
                count("twice") + count("ignored"),
                if table == "i" { 500 } else { 400 },
                "{keys}"
            );
            let seen = format!(
                "SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE note = 'old') FROM {table}"
            );
            assert_eq!(sandbox.query(&seen), [wanted], "{table}");
            let greatest = format!("SELECT count(*) FROM {table} WHERE n >= 400");
            if newest != "0" {
                assert_eq!(sandbox.query(&greatest), [newest], "{table}");
            }
        }
    });
}

/// Records of which keys come twice, near and far apart, and are in the table, whose ids are below 40; texts have newlines in quotes, and some
/// records are none.
fn colliding(rows: u64) -> String {
    let mut text = String::from("id,note,n\n");
    for row in 0..rows {
        let id = match row % 5 {
            0 => row / 10,
            1 => row * 7 % rows,
            _ => row,
        };
        let note = match row % 7 {
            0 => format!("\"a\n{id},plain,5\n\""),
            3 => format!("\"{}\"", "line\n".repeat((row % 90) as usize)),
            _ => format!("note {row}"),
        };
        match row % 211 {
            17 => text.push_str(&format!("none,{note},{row}\n")),
            _ => text.push_str(&format!("{id},{note},{}\n", row % 1000)),
        }
    }
    text
}

const MAKE_KEYED: &str = "(id BIGINT NOT NULL, note VARCHAR, n INTEGER, PRIMARY KEY (id))";
const REJECT: [&str; 4] = ["--on-conflict", "reject", "--max-rejects", "100%"];

/// A table with keys below 40.
fn make_keyed(sandbox: &Sandbox, table: &str) {
    let make = format!(
        "CREATE TABLE {table} {MAKE_KEYED}; INSERT INTO {table} SELECT value, 'old', -1 FROM generate_series(0, 39) AS s(value)"
    );
    sandbox.run(&["sql", "--store", "store", "-c", &make]).ok();
}

/// What a load of one process makes of these records: its rows, its file of rejects, and what the report says of keys.
fn as_one_process(sandbox: &Sandbox, into: &str) -> (Vec<String>, String, serde_json::Value) {
    make_keyed(sandbox, "one");
    let args = ["load", "t.csv", "--into", into, "--table", "one", "--rejects", "one.csv"];
    let run = sandbox.run(&[&args[..], &REJECT, &["--report", "json"]].concat()).ok();
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert!(report["keys"]["rejected"].as_u64().unwrap() > 100, "{report}");
    let told = std::fs::read_to_string(sandbox.path("one.csv")).unwrap();
    (sandbox.query("SELECT * FROM one ORDER BY id"), told, report)
}

#[test]
fn records_of_shares_are_rejects_for_their_keys_as_those_of_one_process() {
    with_each_target(|sandbox, into| {
        sandbox.write("t.csv", colliding(1500));
        sandbox.run(&["load", "t.csv", "--into", into, "--table", "other"]).ok();
        let (rows, rejects, one) = as_one_process(sandbox, into);
        let orders: [&[u32]; 4] = [&[1], &[2, 1], &[2, 3, 1], &[5, 1, 4, 2, 3]];
        for (number, order) in orders.into_iter().enumerate() {
            let (table, id) = (format!("t{number}"), format!("{number:032x}"));
            make_keyed(sandbox, &table);
            let mut last = None;
            for worker in order {
                let file = format!("{table}-{worker}.csv");
                let worker = format!("{worker}/{}", order.len());
                let mut args = vec!["load", "t.csv", "--into", into, "--worker", &worker];
                args.extend(["--load-id", &id, "--table", &table, "--rejects", &file]);
                args.extend(["--split-min", "700", "--chunk-size", "900"]);
                args.extend(["--fragments-per-partition", "2", "--report", "json"]);
                let run = sandbox.run(&[&args[..], &REJECT].concat()).ok();
                last = Some((file, serde_json::from_str::<serde_json::Value>(&run.out).unwrap()));
            }
            let (file, report) = last.unwrap();
            let share = &report["share"];
            assert_eq!(share["keys"], one["keys"], "{order:?}");
            assert_eq!(share["load_rows"], one["rows"], "{order:?}");
            assert_eq!(share["load_rejects"], one["rejects"], "{order:?}");
            assert_eq!(report["first_rejects"], one["first_rejects"], "{order:?}");
            assert_eq!(sandbox.query(&format!("SELECT * FROM {table} ORDER BY id")), rows);
            // All rejects of the load, as one process writes them.
            let told = std::fs::read_to_string(sandbox.path(&format!("{file}.load"))).unwrap();
            assert!(told == rejects, "{order:?}: {told}");
        }
        let place = if into == "store" { "--store" } else { "--server" };
        let left = sandbox.run(&["loads", place, into]).ok().out;
        assert!(!left.contains("shares are complete"), "{left}");
    });
}

/// The limit is that of all rejects together, and names the record that one process would name.
#[test]
fn rejects_for_keys_of_all_shares_are_under_one_limit() {
    with_each_target(|sandbox, into| {
        sandbox.write("t.csv", colliding(400).replace("none,", "9999,"));
        sandbox.run(&["load", "t.csv", "--into", into, "--table", "other"]).ok();
        make_keyed(sandbox, "t");
        let limit = ["--on-conflict", "reject", "--max-rejects", "5"];
        let one = ["load", "t.csv", "--into", into, "--table", "t"];
        let wanted = sandbox.run(&[&one[..], &limit].concat()).err;
        let wanted = wanted.split_once("t.csv").unwrap().1.split_once('(').unwrap().0.to_owned();
        share(sandbox, "t.csv", into, "2/2", &limit).ok();
        share(sandbox, "t.csv", into, "1/2", &limit)
            .fails(1, &[&wanted, "this reject is one over --max-rejects 5"]);
        assert_eq!(sandbox.query("SELECT count(*) FROM t"), ["40"]);
    });
}

#[test]
fn keys_of_shares_of_a_table_that_is_made_are_told_and_given() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", "id,note,n\n0,a,1\n1,b,2\n");
    sandbox.run(&["load", "t.csv", "--into", "store", "--table", "other"]).ok();
    let make = "CREATE TABLE t (id BIGINT NOT NULL, note VARCHAR, n INTEGER, PRIMARY KEY (id))";
    sandbox.run(&["sql", "--store", "store", "-c", make]).ok();
    for worker in ["1/2", "2/2"] {
        share(&sandbox, "t.csv", "store", worker, &[]).ok();
    }
    assert_eq!(seen(&sandbox), expected(2));
    // Who reads what is not known where names say it.
    let many = ["--on-conflict", "reject", "--explicit-max", "0"];
    share(&sandbox, "t.csv", "store", "1/2", &many).fails(1, &["--explicit-max"]);
    // A key that is there already, and a key of a table that is made.
    let id = "00000000000000000000000000000abc";
    let other = |worker, more: &[&str]| {
        let args = ["load", "t.csv", "--into", "store", "--worker", worker, "--load-id", id];
        sandbox.run(&[&args[..], more].concat())
    };
    other("1/2", &["--table", "t"]).ok();
    other("2/2", &["--table", "t"]).fails(1, &["id"]);
    assert_eq!(seen(&sandbox), expected(2));
    sandbox.run(&["loads", "--store", "store", "--abort", id]).ok();
    sandbox.write("u.sql", make.replace("TABLE t", "TABLE u"));
    for worker in ["2/2", "1/2"] {
        other(worker, &["--table", "u", "--schema", "u.sql"]).ok();
    }
    let twice = "INSERT INTO u VALUES (1, 'c', 3)";
    assert_ne!(sandbox.run(&["sql", "--store", "store", "-c", twice]).status, Some(0));
    assert_eq!(sandbox.query("SELECT count(*) FROM u"), ["2"]);
}

#[test]
fn types_are_not_widened_by_a_share() {
    let sandbox = Sandbox::new();
    let rows: String = (0..200_000).map(|n| format!("{n},{n}\n")).collect();
    sandbox.write("t.csv", format!("id,n\n{rows}1,late text\n"));
    let run = share(&sandbox, "t.csv", "store", "1/2", &["--sample", "1KiB"]);
    let other = share(&sandbox, "t.csv", "store", "2/2", &["--sample", "1KiB"]);
    let failed = [run, other].into_iter().find(|run| run.status == Some(1)).unwrap();
    failed.fails(1, &["late text", "does not widen them", "--columns"]);
}

/// The same rows as lines of JSON, and as Parquet of many row groups.
#[test]
fn lines_of_json_and_row_groups_are_shared_too() {
    with_each_target(|sandbox, into| {
        let line = |id: u64| {
            let note = "x".repeat((id % 50) as usize);
            format!("{{\"id\": {id}, \"note\": \"{note}\", \"n\": {}}}\n", id % 10)
        };
        sandbox.write("t.jsonl", (0..3000).map(line).collect::<String>());
        for worker in ["3/3", "1/3", "2/3"] {
            share(sandbox, "t.jsonl", into, worker, &["--columns", COLUMNS]).ok();
        }
        assert_eq!(seen(sandbox), expected(3000));
        let small = ["--chunk-size", "4000", "--fragments-per-partition", "1"];
        let load = ["load", "t.jsonl", "--into", "parquet:pq", "--columns", COLUMNS];
        sandbox.run(&[&load[..], &small].concat()).ok();
        let plan = sandbox.run(&["plan", "pq/*.parquet", "--workers", "3", "--split-min", "700"]);
        let plan = plan.ok().out;
        assert!(plan.contains("row groups") || plan.matches("parquet").count() > 3, "{plan}");
        let id = "00000000000000000000000000000abc";
        for worker in ["2/3", "3/3", "1/3"] {
            let mut args = vec!["load", "pq/*.parquet", "--into", into, "--worker", worker];
            args.extend(["--load-id", id, "--table", "p", "--split-min", "700"]);
            sandbox.run(&args).ok();
        }
        let same = "SELECT count(*), count(DISTINCT id), sum(id) FROM p";
        assert_eq!(sandbox.query(same), [expected(3000)]);
    });
}

/// A file of Avro with these rows in blocks of ten, not compressed.
fn avro(rows: u64) -> Vec<u8> {
    let long = |value: u64, out: &mut Vec<u8>| {
        let mut word = value << 1;
        while word >= 0x80 {
            out.push(word as u8 | 0x80);
            word >>= 7;
        }
        out.push(word as u8);
    };
    let sized = |bytes: &[u8], out: &mut Vec<u8>| {
        long(bytes.len() as u64, out);
        out.extend(bytes);
    };
    let marker = b"sixteen of bytes";
    let mut file = b"Obj\x01".to_vec();
    long(1, &mut file);
    let schema = r#"{"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"},
        {"name": "note", "type": "string"}, {"name": "n", "type": "int"}]}"#;
    sized(b"avro.schema", &mut file);
    sized(schema.as_bytes(), &mut file);
    long(0, &mut file);
    file.extend(marker);
    for first in (0..rows).step_by(10) {
        let ids = first..rows.min(first + 10);
        let mut block = Vec::new();
        for id in ids.clone() {
            long(id, &mut block);
            // A marker within a block, and what looks like one of one record behind it.
            let note: &[u8] = match id % 7 {
                0 => b"sixteen of bytes\x02\x02xsixteen of bytes",
                _ => b"note",
            };
            sized(note, &mut block);
            long(id % 10, &mut block);
        }
        long(ids.end - ids.start, &mut file);
        sized(&block, &mut file);
        file.extend(marker);
    }
    file
}

#[test]
fn blocks_of_one_file_of_avro_are_shared_by_three_workers() {
    with_each_target(|sandbox, into| {
        sandbox.write("t.avro", avro(1499));
        let plan = sandbox.run(&["plan", "t.avro", "--workers", "3", "--split-min", "700"]).ok();
        assert!(
            plan.out.contains("bytes 0 to ") && plan.out.matches("t.avro").count() > 9,
            "{plan:?}"
        );
        for worker in ["3/3", "1/3"] {
            share(sandbox, "t.avro", into, worker, &["--columns", COLUMNS]).ok();
        }
        let last = share(sandbox, "t.avro", into, "2/3", &["--columns", COLUMNS]).ok();
        assert!(last.out.contains("all 3 shares") && last.out.contains("1,499 rows"), "{last:?}");
        assert_eq!(seen(sandbox), expected(1499));
        assert_eq!(sandbox.query("SELECT count(*) FROM t WHERE n <> id % 10"), ["0"]);
    });
}

/// Batches of one file of Arrow that is far away.
#[test]
fn batches_of_one_object_of_arrow_are_shared_by_three_workers() {
    let (sandbox, server) = (Sandbox::new(), ObjectServer::start().unwrap());
    let text: String = (0..400_000)
        .map(|id| format!("{id},a note of some length {},{}\n", id % 1000, id % 10))
        .collect();
    sandbox.write("t.csv", format!("id,note,n\n{text}"));
    let load = ["load", "t.csv", "--into", "other", "--table", "t", "--columns", COLUMNS];
    sandbox.run(&load).ok();
    let sql = ["sql", "--store", "other", "--output", "arrow", "-c", "SELECT * FROM t"];
    let out = std::fs::File::create(sandbox.path("t.arrow")).unwrap();
    assert!(sandbox.command(&sql).stdout(out).status().unwrap().success());
    let file = std::fs::read(sandbox.path("t.arrow")).unwrap();
    server.put("bucket/t.arrow", &file[..]);
    let (url, input) = (server.url(), "s3://bucket/t.arrow");
    let places = ["--s3-endpoint", &url, "--no-sign-request"];
    let plan = ["plan", input, "--workers", "3", "--split-min", "700"];
    let plan = sandbox.run(&[&plan[..], &places].concat()).ok().out;
    assert!(plan.contains("record batches 1 to "), "{plan}");
    for worker in ["3/3", "1/3", "2/3"] {
        let load = ["load", input, "--into", "store", "--table", "t", "--columns", COLUMNS];
        let which = ["--worker", worker, "--load-id", ID];
        sandbox.run(&[&load[..], &which, &places].concat()).ok();
    }
    assert_eq!(seen(&sandbox), expected(400_000));
}

#[test]
fn many_names_are_shared_by_their_hashes() {
    let sandbox = Sandbox::new();
    for file in 0..60 {
        sandbox.write(&format!("d/{file:03}.csv"), format!("id,note,n\n{file},a,1\n"));
    }
    let flags = ["--columns", COLUMNS, "--explicit-max", "20"];
    for worker in ["1/3", "3/3", "2/3"] {
        share(&sandbox, "d/*.csv", "store", worker, &flags).ok();
    }
    assert_eq!(seen(&sandbox), expected(60));
}

#[test]
fn more_workers_than_splits_have_nothing_to_do() {
    with_each_target(|sandbox, into| {
        sandbox.write("t.csv", "id,note,n\n0,a,1\n1,b,2\n");
        for worker in ["3/3", "1/3", "2/3"] {
            share(sandbox, "t.csv", into, worker, &["--columns", COLUMNS]).ok();
        }
        assert_eq!(seen(sandbox), expected(2));
    });
}

/// How long workers are killed at random.
const KILLING: Duration = Duration::from_secs(20);
const WORKERS: usize = 4;

fn spawn(sandbox: &Sandbox, into: &str, worker: usize, flags: &[&str]) -> Child {
    let file = format!("rejects-{worker}.csv");
    let worker = format!("{}/{WORKERS}", worker + 1);
    let flags = [flags, &["--rejects", &file]].concat();
    let mut command = sandbox.command(&args("t.csv", into, &worker, &flags));
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Starts and kills workers at random, some twice at once, until all have ended well once. `restart` may put another server
/// in the place of the one before.
fn kill_workers(
    sandbox: &Sandbox,
    random: &mut Random,
    flags: &[&str],
    mut restart: impl FnMut(u64) -> String,
) {
    let started = Instant::now();
    let (mut done, mut kills) = ([false; WORKERS], 0);
    let longest = 400;
    while !done.iter().all(|done| *done) {
        let into = restart(random.below(10));
        let mut running: Vec<(usize, Child)> = Vec::new();
        for worker in 0..WORKERS {
            for _ in 0..random.below(3) {
                running.push((worker, spawn(sandbox, &into, worker, flags)));
            }
        }
        std::thread::sleep(Duration::from_millis(random.below(longest)));
        let kills_now = started.elapsed() < KILLING;
        for (worker, mut child) in running {
            if kills_now && random.below(3) > 0 {
                child.kill().unwrap();
                kills += 1;
            }
            if child.wait().unwrap().success() {
                done[worker] = true;
            }
        }
        assert!(started.elapsed() < KILLING * 6, "it does not end: {done:?}");
    }
    println!("{kills} kills");
}

#[test]
fn workers_that_are_killed_bring_each_row_once_into_a_store() {
    let seed = seed();
    println!("COLOAD_SEED={seed}");
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", tricky(3000));
    kill_workers(&sandbox, &mut Random(seed), &["--columns", COLUMNS], |_| "store".to_owned());
    assert_eq!(seen(&sandbox), expected(3000));
    assert_eq!(sandbox.run(&["loads", "--store", "store"]).ok().out.lines().count(), 1);
}

#[test]
fn workers_and_servers_that_are_killed_bring_each_row_once() {
    let seed = seed();
    println!("COLOAD_SEED={seed}");
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", tricky(3000));
    let mut server = Some(Server::start(&sandbox, &[]));
    kill_workers(&sandbox, &mut Random(seed), &["--columns", COLUMNS], |dice| {
        if dice == 0 {
            // Killed, and started again.
            drop(server.take());
        }
        server.get_or_insert_with(|| Server::start(&sandbox, &[])).url()
    });
    assert_eq!(seen(&sandbox), expected(3000));
}

/// The files of all rejects that were written: one of each worker that told them, in the end or until it was killed.
fn told(sandbox: &Sandbox) -> Vec<String> {
    let files = (0..WORKERS).map(|worker| sandbox.path(&format!("rejects-{worker}.csv.load")));
    files.filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}

#[test]
fn workers_that_are_killed_tell_the_records_whose_keys_are_there() {
    let seed = seed();
    println!("COLOAD_SEED={seed}");
    for served in [false, true] {
        let sandbox = Sandbox::new();
        sandbox.write("t.csv", colliding(2500));
        let mut server = None;
        let mut into = |dice| {
            if dice == 0 {
                drop(server.take());
            }
            match served {
                true => server.get_or_insert_with(|| Server::start(&sandbox, &[])).url(),
                false => "store".to_owned(),
            }
        };
        sandbox.run(&["load", "t.csv", "--into", "store", "--table", "other"]).ok();
        let (rows, rejects, _) = as_one_process(&sandbox, &into(1));
        make_keyed(&sandbox, "t");
        kill_workers(&sandbox, &mut Random(seed), &REJECT, &mut into);
        assert_eq!(sandbox.query("SELECT * FROM t ORDER BY id"), rows);
        let told = told(&sandbox);
        assert!(!told.is_empty() && told.iter().all(|told| *told == rejects), "{}", told.len());
        let loads = "SELECT count(*) FROM t WHERE n = -1";
        assert_eq!(sandbox.query(loads), ["40"]);
    }
}
