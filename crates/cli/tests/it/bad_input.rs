//! Bad input: a message with file, line, byte, column, value, rule and the flag that helps; the store
//! stays as it was.

use crate::support::{COLUMNS, Sandbox, rows};

/// Loads good rows, then a bad file, which must fail with all parts in its message and change nothing.
#[track_caller]
fn check(text: impl AsRef<[u8]>, flags: &[&str], parts: &[&str]) {
    let sandbox = Sandbox::new();
    sandbox.write("good.csv", rows(1, 100));
    sandbox.load("good.csv", &["--no-header"]).ok();
    let before = sandbox.image();
    sandbox.write("bad.csv", text);
    sandbox.load("bad.csv", flags).fails(1, parts);
    assert_eq!(sandbox.image(), before);
    assert_eq!(sandbox.query("SELECT count(*), sum(id) FROM t"), ["100,5050"]);
}

#[test]
fn a_wrong_type_is_told_with_its_place() {
    let text = "1,1.50,2024-01-01,a\n2,\"12,50\",2024-01-02,b\n";
    check(
        text,
        &["--no-header"],
        &["bad.csv:2:2 (byte 20): \"12,50\" is not DECIMAL(8,2)", "column price", "try --"],
    );
}

#[test]
fn a_record_of_too_few_or_too_many_fields_is_told() {
    let two = "1,1.50,2024-01-01,a\n2,3.00\n";
    let parts =
        ["bad.csv:2 (byte 20)", "the record has 2 fields and the table 4 columns", "--max-rejects"];
    check(two, &["--no-header"], &parts);
    let six = "1,1.50,2024-01-01,a\n2,3.00,2024-01-01,b,c,d\n";
    check(six, &["--no-header"], &["bad.csv:2 (byte 20)", "the record has 6 fields"]);
}

#[test]
fn null_in_a_not_null_column_is_told() {
    check(",1.50,2024-01-01,a\n", &["--no-header"], &["bad.csv:1:1 (byte 0)", "NULL", "column id"]);
    let parts = ["bad.csv:1:1 (byte 0)", "NULL", "column id"];
    check("none,1.50,2024-01-01,a\n", &["--no-header", "--null", "none"], &parts);
}

#[test]
fn bad_utf8_is_told() {
    let parts = ["bad.csv:2:4 (byte 20)", "\\xff", "UTF-8", "column name"];
    check(b"1,1.50,2024-01-01,a\n2,1.50,2024-01-01,a\xffb\n", &["--no-header"], &parts);
}

#[test]
fn an_unterminated_quote_is_told() {
    let parts = ["bad.csv:2 (byte 20)", "a quote is opened", "--quote none"];
    check(
        "1,1.50,2024-01-01,a\n2,1.50,2024-01-01,\"ab\n",
        &["--no-header", "--quote", "\""],
        &parts,
    );
}

#[test]
fn a_number_out_of_range_is_told() {
    let big = "99999999999999999999,1.50,2024-01-01,a\n";
    check(
        big,
        &["--no-header"],
        &["bad.csv:1:1 (byte 0)", "99999999999999999999", "is not BIGINT"],
    );
    let decimal = "1,1234567.00,2024-01-01,a\n";
    check(decimal, &["--no-header"], &["bad.csv:1:2", "1234567.00", "is not DECIMAL(8,2)"]);
    let long = "1,1.00,2024-01-01,more than ten\n";
    check(long, &["--no-header"], &["bad.csv:1:4", "more than ten", "VARCHAR(10)"]);
}

#[test]
fn a_date_that_does_not_exist_is_told() {
    let parts = ["bad.csv:1:3 (byte 0)", "2023-02-29", "is not DATE", "column day"];
    check("1,1.50,2023-02-29,a\n", &["--no-header"], &parts);
}

#[test]
fn an_empty_file_without_columns_is_nothing_to_load() {
    let sandbox = Sandbox::new();
    sandbox.write("empty.csv", "");
    let run = sandbox.run(&["load", "empty.csv", "--into", "store"]).ok();
    for part in ["nothing to load", "nothing made", "empty.csv", "--columns", "--schema"] {
        assert!(run.err.contains(part), "{part}: {}", run.err);
    }
}

/// Symptom: `--replace` with an empty file kept the rows that were there, and the load was no error.
#[test]
fn an_empty_file_replaces_the_rows_by_none() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", "a,b\n1,x\n2,y\n");
    sandbox.write("empty.csv", "");
    sandbox.write("empty.json", "[]\n");
    for empty in ["empty.csv", "empty.json"] {
        let load = ["--into", "store", "--table", "t", "--replace"];
        sandbox.run(&[&["load", "t.csv"], &load[..]].concat()).ok();
        assert_eq!(sandbox.query("SELECT count(*) FROM t"), ["2"]);
        let run = sandbox.run(&[&["load", empty], &load[..]].concat()).ok();
        assert!(run.out.contains("0 rows") && !run.err.contains("nothing to load"), "{run:?}");
        assert!(run.err.contains("keeps its own"), "{run:?}");
        assert_eq!(sandbox.query("SELECT count(a + 1) FROM t"), ["0"]);
    }
    let other = ["load", "empty.csv", "--into", "store", "--table", "u", "--replace"];
    let run = sandbox.run(&other).ok();
    assert!(run.err.contains("nothing to load"), "{run:?}");
}

/// Symptom: a file that was cut to nothing was nothing to load, and the load was no error.
#[test]
fn an_empty_file_of_a_kind_that_has_a_head_is_damaged() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "a\n1\n");
    for name in ["x.parquet", "x.avro", "x.arrow", "x.feather", "x.xlsx"] {
        sandbox.write(name, "");
        let load = ["load", name, "--into", "store", "--table", "t"];
        sandbox.run(&load).fails(1, &[name, "is empty", "cut short"]);
        sandbox.run(&[&load[..], &["--columns", "a BIGINT"]].concat()).fails(1, &[name]);
        sandbox.run(&["load", "a.csv", name, "--into", "store"]).fails(1, &[name]);
        sandbox.run(&["sniff", name]).fails(1, &[name, "is empty"]);
        let query = format!("SELECT * FROM '{name}'");
        sandbox.run(&["sql", "-c", &query]).fails(1, &[name, "is empty"]);
    }
}

#[test]
fn an_empty_file_with_columns_is_no_rows() {
    let sandbox = Sandbox::new();
    sandbox.write("empty.csv", "");
    sandbox.load("empty.csv", &[]).ok();
    assert_eq!(sandbox.query("SELECT count(*) FROM t"), ["0"]);
}

#[test]
fn a_header_alone_is_no_rows() {
    let sandbox = Sandbox::new();
    sandbox.write("head.csv", "id,price,day,name\n");
    sandbox.load("head.csv", &["--header"]).ok();
    assert_eq!(sandbox.query("SELECT count(*) FROM t"), ["0"]);
    sandbox.run(&["load", "head.csv", "--into", "store", "--table", "u"]).ok();
    assert_eq!(sandbox.query("SELECT count(name) FROM u"), ["0"]);
}

#[test]
fn a_file_without_a_last_newline_keeps_its_last_row() {
    let sandbox = Sandbox::new();
    sandbox.write("open.csv", "1,1.50,2024-01-01,a\n2,2.50,2024-01-02,b");
    sandbox.load("open.csv", &["--no-header"]).ok();
    assert_eq!(sandbox.query("SELECT name FROM t ORDER BY id"), ["a", "b"]);
}

#[test]
fn carriage_returns_before_newlines_are_no_part_of_values() {
    let sandbox = Sandbox::new();
    sandbox.write("crlf.csv", "id,price,day,name\r\n1,1.50,2024-01-01,a\r\n2,,,\r\n");
    sandbox.load("crlf.csv", &[]).ok();
    assert_eq!(sandbox.query("SELECT id, name, length(name) FROM t ORDER BY id"), ["1,a,1", "2,,"]);
}

#[test]
fn nul_bytes_are_kept_in_text_and_refused_in_numbers() {
    let sandbox = Sandbox::new();
    sandbox.write("nul.csv", b"1,1.50,2024-01-01,a\0b\n");
    let run = sandbox.load("nul.csv", &["--no-header"]);
    if run.status == Some(0) {
        assert_eq!(sandbox.query("SELECT octet_length(name) FROM t"), ["3"]);
    } else {
        run.fails(1, &["nul.csv:1:4", "column name"]);
    }
    check(b"1\0,1.50,2024-01-01,ab\n", &["--no-header"], &["bad.csv:1:1", "is not BIGINT"]);
}

#[test]
fn a_record_longer_than_a_chunk_is_read() {
    let sandbox = Sandbox::new();
    let long = "x".repeat(300_000);
    sandbox.write("long.csv", format!("1,a\n2,{long}\n3,\"b\n{long}\"\n4,c\n"));
    let columns = ["--columns", "id BIGINT, text VARCHAR", "--chunk-size", "4096", "--no-header"];
    let mut args = vec!["load", "long.csv", "--into", "store", "--table", "t"];
    args.extend(columns);
    sandbox.run(&args).ok();
    let lengths = sandbox.query("SELECT length(text) FROM t ORDER BY id");
    assert_eq!(lengths, ["1", "300000", "300002", "1"]);
}

#[test]
fn quoted_newlines_do_not_break_records_at_any_chunk_size() {
    let sandbox = Sandbox::new();
    let text: String =
        (0..2000).map(|i| format!("{i},1.50,2024-01-01,\"a\n{}\n\"\n", i % 7)).collect();
    sandbox.write("quoted.csv", text);
    for (size, threads) in [("64", "3"), ("1000", "2"), ("10MiB", "1")] {
        sandbox
            .load(
                "quoted.csv",
                &["--replace", "--no-header", "--chunk-size", size, "--threads", threads],
            )
            .ok();
        assert_eq!(sandbox.query("SELECT count(*), sum(id) FROM t"), ["2000,1999000"], "{size}");
    }
}

#[test]
fn rejects_are_set_aside_with_their_places_and_counted() {
    let sandbox = Sandbox::new();
    let mut text = rows(1, 1000);
    text.push_str("x,1.50,2024-01-01,a\n5,1,2024-13-01,\"b,\"\"c\"\n7,1\n");
    sandbox.write("mixed.csv", &text);
    let flags = ["--no-header", "--max-rejects", "2"];
    sandbox.load("mixed.csv", &flags).fails(1, &["mixed.csv:1003", "one over --max-rejects 2"]);
    let flags =
        ["--no-header", "--max-rejects", "3", "--rejects", "rejects.csv", "--report", "json"];
    let run = sandbox.load("mixed.csv", &flags).ok();
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let file = &report["files"][0];
    assert_eq!([&file["records"], &file["rows"], &file["rejects"]], [1003, 1000, 3]);
    let rejects = std::fs::read_to_string(sandbox.path("rejects.csv")).unwrap();
    let lines: Vec<&str> = rejects.lines().collect();
    assert_eq!(lines[0], "file,line,byte,column,value,reason,raw");
    let start = rows(1, 1000).len();
    assert!(lines[1].starts_with(&format!("mixed.csv,1001,{start},id,x,")), "{}", lines[1]);
    assert!(
        lines[2].contains(",day,2024-13-01,") && lines[2].contains("\"\"c\"\""),
        "{}",
        lines[2]
    );
    assert!(lines[3].starts_with("mixed.csv,1003,"), "{}", lines[3]);
    assert_eq!(lines.len(), 4);
    assert_eq!(sandbox.query("SELECT count(*) FROM t"), ["1000"]);
}

#[test]
fn a_share_of_rejects_is_a_limit_too() {
    let sandbox = Sandbox::new();
    sandbox.write("mixed.csv", rows(1, 98) + "x\ny\n");
    sandbox
        .load("mixed.csv", &["--no-header", "--max-rejects", "1.5%"])
        .fails(1, &["2 of 100 records were rejected", "--max-rejects 1.5%"]);
    sandbox.load("mixed.csv", &["--no-header", "--max-rejects", "2%"]).ok();
    assert_eq!(sandbox.query("SELECT count(*) FROM t"), ["98"]);
}

#[test]
fn a_header_in_another_order_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("order.csv", "id,day,price,name\n1,2024-01-01,1.50,a\n");
    sandbox.load("order.csv", &[]).fails(1, &["the header of order.csv has day as column 2"]);
    assert!(COLUMNS.contains("price DECIMAL"));
}
