//! Text of DOS and of dumps: marks of the end, doubled line ends, lone quotes, escapes; and flags of types.

use crate::support::Sandbox;

fn loaded(text: &[u8], flags: &[&str]) -> String {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", text);
    let load = ["load", "a.csv", "--into", "s", "--table", "t"];
    let run = sandbox.run(&[&load[..], flags].concat()).ok();
    let rows = sandbox.run(&["export", "s", "t", "--quote", "needed"]).ok().out;
    // The same text as a stream.
    let stream = ["load", "-", "--into", "s", "--table", "u"];
    sandbox.run_with_input(&[&stream[..], flags].concat(), text).ok();
    let streamed = sandbox.run(&["export", "s", "u", "--quote", "needed"]).ok().out;
    assert_eq!(streamed, rows, "{run:?}");
    rows
}

#[test]
fn ctrl_z_at_the_end_is_no_row_and_no_text() {
    for text in [
        "a,b\n1,x\n2,y\n\x1a",
        "a,b\r\n1,x\r\n2,y\x1a\x1a\x1a",
        "a,b\n1,x\n2,y\n\x1a\n",
        "a,b\r\n1,x\r\n2,y\r\n\x1a\r\n",
    ] {
        assert_eq!(loaded(text.as_bytes(), &[]), "a,b\n1,x\n2,y\n", "{text:?}");
    }
    // Elsewhere it is text.
    assert_eq!(loaded(b"a,b\n1,x\x1a\n2,y\n", &[]), "a,b\n1,x\x1a\n2,y\n");
}

#[test]
fn line_ends_that_were_doubled_are_line_ends() {
    let text = b"a,b\r\r\n1,x\r\r\n2,\"y\"\r\r\n3,z";
    assert_eq!(loaded(text, &[]), "a,b\n1,x\n2,y\n3,z\n");
    assert_eq!(loaded(text, &["--line-end", "returns"]), "a,b\n1,x\n2,y\n3,z\n");
}

/// Symptom: of `"4";"5";"6";"` the field before the quote was `6";`.
#[test]
fn a_lone_quote_that_ends_a_record_changes_no_field() {
    let rows = |range: std::ops::Range<u32>| -> String {
        range.map(|i| format!("\"{i}\";\"a{i}\";\"b{i}\"\n")).collect()
    };
    let text = format!("{}\"4\";\"5\";\"6\";\"\n{}", rows(0..30), rows(30..60));
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", &text);
    for (flags, count, record) in [
        (&["--quotes", "lenient", "--max-rejects", "1"][..], 60, None),
        (&["--quotes", "lenient", "--ragged", "pad", "--max-rejects", "1"], 60, None),
        (&["--quotes", "lenient", "--ragged", "truncate"], 61, Some("4,5,6")),
    ] {
        let load = ["load", "a.csv", "--into", "s", "--table", "t", "--replace"];
        let run = sandbox.run(&[&load[..], flags].concat()).ok();
        let out = sandbox.run(&["export", "s", "t", "--quote", "needed", "--no-header"]).ok().out;
        assert_eq!(out.lines().count(), count, "{flags:?} {run:?}");
        assert_eq!(out.lines().find(|line| line.starts_with("4,5")), record, "{flags:?}");
    }
}

#[test]
fn escapes_are_what_the_flag_says() {
    let text = b"a|b\none\\|two|1\nthree\\\nfour|2\n\\N|3\n";
    let flags = ["--delimiter", "|", "--escapes", "anywhere", "--header", "--null", "\\N"];
    assert_eq!(loaded(text, &flags), "a,b\none|two,1\n\"three\nfour\",2\n,3\n");
    let dump = b"a\tb\none\\ttwo\\\\\t1\nthree\\nfour\t2\n\\N\t3\n";
    let flags = ["--delimiter", "tab", "--escapes", "letters", "--header"];
    assert_eq!(loaded(dump, &flags), "a,b\none\ttwo\\,1\n\"three\nfour\",2\n,3\n");
}

#[test]
fn types_of_some_columns_are_given() {
    let text = "Zip,amount,at,note\n1,2,01/02/2024 3:45 PM,\"NA\"\n2,3.25,12/31/2024 12:00 AM,x\n";
    let flags = [
        "--types",
        "zip VARCHAR, amount DECIMAL(12,2)",
        "--timestamp-format",
        "%m/%d/%Y %I:%M %p",
        "--null",
        "NA",
        "--quoted-null",
    ];
    let expected =
        "Zip,amount,at,note\n1,2.00,2024-01-02 15:45:00,\n2,3.25,2024-12-31 00:00:00,x\n";
    assert_eq!(loaded(text.as_bytes(), &flags), expected);
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", text);
    let load = ["load", "a.csv", "--into", "s", "--table", "t", "--types"];
    sandbox
        .run(&[&load[..], &["zap VARCHAR"]].concat())
        .fails(1, &["--types", "zap", "Zip, amount"]);
    // A given type never becomes wider.
    sandbox.run(&[&load[..], &["note BIGINT"]].concat()).fails(1, &["not BIGINT", "note"]);
    let sql =
        sandbox.run(&["sniff", "a.csv", "--types", "zip VARCHAR", "--output", "sql"]).ok().out;
    assert!(sql.contains("--types='zip VARCHAR'") && sql.contains("\"Zip\" VARCHAR"), "{sql}");
    let ordered =
        sandbox.run(&["sniff", "a.csv", "--type-order", "DOUBLE", "--output", "sql"]).ok().out;
    assert!(
        ordered.contains("--type-order=DOUBLE,VARCHAR") && ordered.contains("amount DOUBLE"),
        "{ordered}"
    );
}

/// Symptom: `sniff --output sql` of names that come twice was refused as `--schema`.
#[test]
fn a_sniffed_schema_of_odd_names_is_a_schema() {
    for names in ["a,A,a", ",,", "a,,c1", "x_2,x,x", "\" \",\"\",b", "É,é,e"] {
        let sandbox = Sandbox::new();
        sandbox.write("a.csv", format!("{names}\n1,2,3\n4,5,6\n"));
        let sql = sandbox.run(&["sniff", "a.csv", "--header", "--output", "sql"]).ok().out;
        sandbox.write("t.sql", &sql);
        sandbox
            .run(&["load", "a.csv", "--into", "s", "--table", "t", "--schema", "t.sql", "--header"])
            .ok();
    }
}
