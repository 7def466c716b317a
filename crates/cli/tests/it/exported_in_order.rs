//! Large tables are written in their order, by any number of threads and in little memory: lines are made apart, in strips.

use std::fmt::Write;

use crate::exported_tables::load_into;
use crate::support::Sandbox;

/// Columns of types whose values export and COPY write alike: COPY has a UUID in quotes, as it is text there.
const COLUMNS: [(&str, &str); 9] = [
    ("id", "BIGINT"),
    ("small", "SMALLINT"),
    ("price", "DECIMAL(18,2)"),
    ("wide", "DECIMAL(38,20)"),
    ("done", "BOOLEAN"),
    ("day", "DATE"),
    ("at", "TIMESTAMP"),
    ("bits", "BINARY"),
    ("note", "VARCHAR"),
];
/// Rows of more than a page, so that parts end within one and at its end.
const ROWS: usize = 70_000;

/// The fields of a row as they are exported, but that of the number.
const OTHERS: [[&str; 8]; 6] = [
    [
        "1",
        "1.50",
        "0.12345678901234567890",
        "true",
        "2024-02-29",
        "2024-02-29 00:00:00",
        "\\x61ff",
        "\"plain\"",
    ],
    ["-7", "-0.05", "", "false", "0001-01-01", "1969-12-31 23:59:59", "\\x", "\"say \"\"x\"\"\""],
    ["", "", "-1.00000000000000000000", "", "9999-12-31", "", "", ""],
    ["32767", "1234567890123456.78", "", "true", "", "9999-12-31 23:59:59", "\\x00", "\"\""],
    [
        "0",
        "0.00",
        "0.00000000000000000001",
        "",
        "1970-01-01",
        "2000-01-01 12:30:00",
        "",
        "\"a,b\"\"\nc\"",
    ],
    ["", "-99.99", "", "false", "2000-02-29", "", "\\xdeadbeef", "\"größe\r\""],
];

/// The line of a row: its note, where it has one, is of few values in even rows and its own in odd ones.
fn line(row: usize) -> String {
    let others = &OTHERS[row * row % 11 % OTHERS.len()];
    let (note, rest) = others.split_last().unwrap();
    let mut line = format!("{}", row * 7);
    rest.iter().for_each(|field| _ = write!(line, ",{field}"));
    let own = note.strip_suffix('"').filter(|_| row % 2 == 1 && note.len() > 2);
    match own {
        Some(start) => _ = write!(line, ",{start} {row}\""),
        None => _ = write!(line, ",{note}"),
    }
    line + "\n"
}

fn lines(rows: impl Iterator<Item = usize>) -> String {
    rows.map(line).collect()
}

fn read(sandbox: &Sandbox, file: &str) -> String {
    std::fs::read_to_string(sandbox.path(file)).unwrap()
}

fn head() -> &'static str {
    "id,small,price,wide,done,day,at,bits,\"note\"\n"
}

fn loaded(rows: usize) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("in.csv", lines(0..rows));
    let columns = COLUMNS.map(|(name, data_type)| format!("\"{name}\" {data_type}")).join(", ");
    let args = ["load", "in.csv", "--into", "store", "--table", "t", "--columns", &columns];
    let form = ["--no-header", "--delimiter", ",", "--quote", "\"", "--comment", "none"];
    sandbox.run(&[&args[..], &form].concat()).ok();
    sandbox
}

/// At dc04992 COPY wrote a table of several pages in another order each time.
#[test]
fn large_tables_come_out_in_their_order() {
    let sandbox = loaded(ROWS);
    let all = head().to_owned() + &lines(0..ROWS);
    for (threads, memory) in [("1", "1GiB"), ("3", "1GiB"), ("2", "64KiB"), ("8", "48MiB")] {
        let file = "export.csv";
        let limits = ["--threads", threads, "--memory", memory];
        sandbox.run(&[&["export", "store", "t", "--output", file], &limits[..]].concat()).ok();
        assert!(read(&sandbox, file) == all, "export with {threads} threads and {memory}");
        if memory == "64KiB" {
            continue;
        }
        let copies = [
            ("t", all.clone()),
            ("(SELECT * FROM t WHERE id % 3 = 0)", {
                head().to_owned() + &lines((0..ROWS).filter(|row| row * 7 % 3 == 0))
            }),
            ("(SELECT * FROM t WHERE id >= 462000)", head().to_owned() + &lines(66_000..ROWS)),
            ("(SELECT * FROM t LIMIT 20000)", head().to_owned() + &lines(0..20_000)),
            ("(SELECT * FROM t ORDER BY id DESC)", { head().to_owned() + &lines((0..ROWS).rev()) }),
        ];
        for (rows, expected) in copies {
            let copy = format!("COPY {rows} TO 'copy.csv'");
            sandbox.run(&[&["sql", "--store", "store", "-c", &copy], &limits[..]].concat()).ok();
            assert!(read(&sandbox, "copy.csv") == expected, "{rows}: {threads} threads, {memory}");
        }
    }
    // To a reader that goes away, and one that stays.
    let out = sandbox.run(&["export", "store", "t", "--no-header", "--threads", "2"]).ok().out;
    assert!(out == all[head().len()..]);
}

/// The line of names waits for 64 KiB of rows, however few a page has.
#[test]
fn the_line_of_names_waits_for_rows_of_several_pages() {
    let sandbox = Sandbox::new();
    let row = |n: usize| vec![Some("1.50"), (!n.is_multiple_of(3)).then_some("a,b")];
    let columns = vec![("a,b".to_owned(), "DECIMAL(18,2)"), ("note".to_owned(), "VARCHAR")];
    load_into(&sandbox, "store", &(columns, (0..9_000).map(row).collect()));
    let of = |n: usize| if n.is_multiple_of(3) { "1.50,\n" } else { "1.50,\"a,b\"\n" };
    let expected = "\"a,b\",\"note\"\r\n".to_owned() + &(0..9_000).map(of).collect::<String>();
    let exported = sandbox.run(&["export", "store", "t"]).ok();
    assert!(exported.out == expected && exported.err.contains("CRLF"), "{}", exported.err);
    sandbox.run(&["sql", "--store", "store", "-c", "COPY t TO 'copy.csv'"]).ok();
    assert!(read(&sandbox, "copy.csv") == expected);
    // Rows of other segments than the first decide too.
    for _ in 0..3 {
        let insert = "INSERT INTO t VALUES (2, 'plain')";
        sandbox.run(&["sql", "--store", "store", "-c", insert]).ok();
    }
    let expected = expected + &"2.00,\"plain\"\n".repeat(3);
    assert!(sandbox.run(&["export", "store", "t"]).ok().out == expected);
    sandbox
        .run(&["sql", "--store", "store", "-c", "CREATE TABLE e AS SELECT * FROM t LIMIT 10"])
        .ok();
    sandbox.run(&["sql", "--store", "store", "-c", "INSERT INTO e VALUES (2, 'plain')"]).ok();
    let exported = sandbox.run(&["export", "store", "e"]).ok().out;
    assert!(
        exported.starts_with("\"a,b\",\"note\"\n") || exported.starts_with("\"a,b\",note\n"),
        "{exported}"
    );
    sandbox.run(&["sql", "--store", "store", "-c", "COPY e TO 'copy.csv'"]).ok();
    assert_eq!(read(&sandbox, "copy.csv"), exported);
}

#[test]
fn a_full_disk_leaves_the_file_that_was_there_and_no_other() {
    let sandbox = loaded(40_000);
    let binary = env!("CARGO_BIN_EXE_coload");
    for file in ["t.csv", "t.parquet"] {
        sandbox.write(file, "before");
        for command in [
            format!("export store t --output {file}"),
            format!("sql --store store -c \"COPY t TO '{file}'\""),
            format!("sql --store store -c \"COPY (SELECT * FROM t ORDER BY id) TO '{file}'\""),
        ] {
            // A limit on the size of files stands for the full disk.
            let script = format!("trap '' XFSZ; ulimit -f 100; exec '{binary}' {command}");
            let output = std::process::Command::new("bash")
                .args(["-c", &script])
                .current_dir(sandbox.path("."))
                .output()
                .unwrap();
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{command}: {err}");
            assert!(err.contains("cannot write") && err.contains(file), "{command}: {err}");
            assert_eq!(read(&sandbox, file), "before", "{command}");
            let left = std::fs::read_dir(sandbox.path(".")).unwrap();
            let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
            assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".tmp")), "{left:?}");
        }
    }
}
