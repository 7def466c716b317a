//! Fixed-width text.

use std::fmt::Write;

use crate::support::{Run, Sandbox};

fn load(sandbox: &Sandbox, flags: &[&str]) -> Run {
    sandbox.run(&[&["load", "a.txt", "--into", "store", "--table", "t"][..], flags].concat())
}

fn rows(sandbox: &Sandbox) -> String {
    sandbox.run(&["export", "store", "t", "--quote", "needed"]).ok().out
}

#[test]
fn fields_stand_where_the_flag_says() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "name  price\r\nMüller 1.50\r\nab,\"c  12.00\r\n       0.10");
    for flag in ["6,6", "1-6,7-12", "1-6,7-"] {
        load(&sandbox, &["--fixed-width", flag, "--replace"]).ok();
        assert_eq!(
            rows(&sandbox),
            "name,price\nMüller,1.50\n\"ab,\"\"c\",12.00\n,0.10\n",
            "{flag}"
        );
    }
    load(&sandbox, &["--fixed-width", "3-4", "--no-header", "--replace"]).ok();
    assert_eq!(rows(&sandbox), "c1\nme\nll\n\",\"\"\"\n\n");
    load(&sandbox, &["--fixed-width", "6,6", "--delimiter", ","])
        .fails(2, &["cannot be used with"]);
    load(&sandbox, &["--fixed-width", "6,0"]).fails(2, &["\"0\" is none", "1-10,11-15"]);
}

#[test]
fn short_and_long_lines_are_ragged() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "1  ab\n2\n3  cdX\n4  e\n");
    let columns = ["--fixed-width", "3,2", "--columns", "a INT, b VARCHAR", "--no-header"];
    load(&sandbox, &columns).fails(1, &["a.txt:2", "1 field and the table 2"]);
    let with = |flags: &[&str]| {
        load(&sandbox, &[&columns[..], &["--replace"], flags].concat()).ok();
        rows(&sandbox)
    };
    assert_eq!(with(&["--max-rejects", "2"]), "a,b\n1,ab\n4,e\n");
    assert_eq!(with(&["--ragged", "pad", "--max-rejects", "1"]), "a,b\n1,ab\n2,\n4,e\n");
    assert_eq!(with(&["--ragged", "truncate"]), "a,b\n1,ab\n2,\n3,cd\n4,e\n");
}

#[test]
fn rows_do_not_depend_on_chunks_and_threads() {
    let sandbox = Sandbox::new();
    let mut text = String::from("title\n# note\nid      name         price \n");
    for i in 0..2000 {
        let name = ["Rom", "Köln", "São Paulo", "x"][i % 4];
        let _ = writeln!(text, "{i:<8}{name:<12}{:>6}.{:02}", i % 777, i % 100);
    }
    text.push_str("total   2000\n");
    sandbox.write("a.txt", text);
    let flags = [
        "--fixed-width",
        "8,12,9",
        "--skip",
        "1",
        "--comment",
        "#",
        "--header-rows",
        "1",
        "--footer",
        "1",
    ];
    let mut seen = Vec::new();
    for (threads, chunk) in [("1", "1MiB"), ("1", "64"), ("4", "97"), ("3", "3000")] {
        let more = ["--replace", "--threads", threads, "--chunk-size", chunk];
        let run = load(&sandbox, &[&flags[..], &more].concat()).ok();
        assert!(run.out.starts_with("loaded 2,000 rows"), "{run:?}");
        seen.push(rows(&sandbox));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(
        seen[0].starts_with("id,name,price\n0,Rom,0.00\n1,Köln,1.01\n2,São Paulo,2.02\n"),
        "{}",
        &seen[0][..80]
    );
    let sniffed = sandbox.run(&[&["sniff", "a.txt"][..], &flags].concat()).ok().out;
    assert!(
        sniffed.contains("--fixed-width=8,12,9") && !sniffed.contains("--delimiter"),
        "{sniffed}"
    );
}
