//! Sheets of books, as openpyxl and XlsxWriter write them.

use std::path::Path;

use crate::support::Sandbox;

/// A book beside this file, as it is put into the sandbox.
fn book(sandbox: &Sandbox, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/text/books").join(name);
    sandbox.write(name, std::fs::read(path).unwrap());
}

fn exported(sandbox: &Sandbox, table: &str) -> String {
    sandbox.run(&["export", "store", table]).ok().out.replace('\r', "")
}

#[test]
fn a_sheet_is_a_table_with_the_values_of_its_cells() {
    let sandbox = Sandbox::new();
    book(&sandbox, "openpyxl.xlsx");
    book(&sandbox, "xlsxwriter.xlsx");
    let run = sandbox.run(&["load", "openpyxl.xlsx", "--into", "store"]).ok();
    assert!(run.err.contains("cells A1:H10 of openpyxl.xlsx!Orders"), "{}", run.err);
    let rows = exported(&sandbox, "openpyxl");
    let head = "id,\"who\",day,at,\"took\",paid,amount,\"zip\"\n";
    let first = "1,\"Ann \"\"1\"\"\nB\",2026-01-01,2026-01-01 08:30:15,\"21:00:00\",false,0.125,\"00001\"\n";
    assert!(rows.starts_with(&format!("{head}{first}")), "{rows}");
    // Hours over a day are text; an error is NULL among numbers.
    assert!(
        rows.contains("4,\"Ann \"\"4\"\"\nB\",2026-01-04,2026-01-04 08:30:15,\"24:00:00\",true,"),
        "{rows}"
    );
    assert!(
        rows.ends_with("7,,2026-01-07,2026-01-07 00:00:00,\"00:01:00\",true,,\"00007\"\n"),
        "{rows}"
    );
    sandbox.run(&["load", "xlsxwriter.xlsx", "--into", "store", "--table", "x"]).ok();
    let rows = exported(&sandbox, "x");
    assert!(rows.contains("\n400000000000000000000,2026-02-05,\"4\"\n"), "{rows}");
}

#[test]
fn sheet_and_range_are_chosen_and_sniffed() {
    let sandbox = Sandbox::new();
    book(&sandbox, "openpyxl.xlsx");
    let run = sandbox.run(&["sniff", "openpyxl.xlsx", "--sheet", "2"]).ok();
    assert!(run.out.contains("cells C5:D9 of openpyxl.xlsx!More"), "{}", run.out);
    assert!(
        run.out.ends_with("coload load openpyxl.xlsx --into STORE --sheet=2 --header-rows=1\n"),
        "{}",
        run.out
    );
    let args = ["openpyxl.xlsx!More", "--range", "C5:D7", "--where", "id > 1", "--table", "t"];
    sandbox.run(&[&["load", "--into", "store"], &args[..]].concat()).ok();
    // Where no column is text, a name in quotes tells the names.
    assert_eq!(exported(&sandbox, "t").replace('"', ""), "id,n\n2,10\n");
    let load = ["load", "openpyxl.xlsx", "--into", "store", "--sheet", "2", "--table", "all"];
    sandbox.run(&load).ok();
    assert_eq!(exported(&sandbox, "all").lines().count(), 5);
}

#[test]
fn places_of_rejects_are_cells() {
    let sandbox = Sandbox::new();
    book(&sandbox, "openpyxl.xlsx");
    let load = [
        "load",
        "openpyxl.xlsx",
        "--sheet",
        "More",
        "--columns",
        "n BIGINT, id INTEGER",
        "--by-name",
        "--into",
        "store",
    ];
    sandbox.run(&load).fails(1, &["openpyxl.xlsx!More!D8:8:1", "\"none\" is not BIGINT"]);
    sandbox
        .run(&[&load[..], &["--max-rejects", "1", "--rejects", "r.csv", "--table", "t"]].concat())
        .ok();
    let rejects = std::fs::read_to_string(sandbox.path("r.csv")).unwrap();
    assert!(rejects.contains("\nopenpyxl.xlsx!More!D8,8,"), "{rejects}");
    assert_eq!(exported(&sandbox, "t").lines().count(), 4);
    // Rows of a range are counted from the top of the sheet.
    let ranged = [&load[..], &["--range", "C5:D9"]].concat();
    sandbox.run(&ranged).fails(1, &["openpyxl.xlsx!More!D8:8:1"]);
}

#[test]
fn what_says_how_text_is_written_is_refused() {
    let sandbox = Sandbox::new();
    book(&sandbox, "openpyxl.xlsx");
    sandbox.write("a.csv", "a,b\n1,2\n");
    let load =
        |args: &[&str]| sandbox.run(&[&["load", "--into", "store", "--table", "t"], args].concat());
    load(&["openpyxl.xlsx", "--delimiter", ";"])
        .fails(1, &["openpyxl.xlsx!Orders is a sheet of a book", "--delimiter"]);
    load(&["openpyxl.xlsx", "a.csv"]).fails(1, &["and a.csv is not: load each by itself"]);
    load(&["a.csv", "--sheet", "1"]).fails(1, &["--sheet: a.csv is no workbook (.xlsx)"]);
    load(&["openpyxl.xlsx", "--range", "F1:A1"]).fails(2, &["give cells such as A1:F200"]);
    load(&["openpyxl.xlsx", "--sheet", "None"])
        .fails(1, &["has no sheet None; it has Orders, More"]);
}
