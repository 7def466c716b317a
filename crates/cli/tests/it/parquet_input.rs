//! `coload load` of files of Parquet through the engine of SQL.

use crate::drivers::{passes, python};
use crate::support::Sandbox;

#[test]
fn rows_are_filtered_and_columns_made() {
    let sandbox = Sandbox::new();
    passes(python("arrow_files.py").arg("parquet").arg(sandbox.path(".")));
    let load = ["load", "snappy.parquet", "--into", "store", "--table", "t"];
    let made = ["--select", "id * 2 AS twice, coded", "--where", "id >= 3990"];
    sandbox.run(&[&load[..], &made].concat()).ok();
    let exported = sandbox.run(&["export", "store", "t"]).ok().out;
    let twice: Vec<&str> = exported.lines().filter_map(|line| line.split(',').next()).collect();
    let expected = (3990..4000).map(|id| (id * 2).to_string());
    assert!(twice[1..].iter().copied().eq(expected), "{exported}");
    // Two files, as one.
    let both = ["load", "snappy.parquet", "gzip.parquet", "--into", "store", "--table", "both"];
    sandbox
        .run(&[&both[..], &["--columns", "id BIGINT, number BIGINT", "--by-name"]].concat())
        .ok();
    let exported = sandbox.run(&["export", "store", "both"]).ok().out;
    let found = exported.lines().skip(1).filter_map(|line| line.split(',').next());
    assert!(found.eq((0..4000).chain(0..4000).map(|id: u32| id.to_string())), "{exported}");
}

#[test]
fn a_file_whose_start_is_damaged_is_no_text() {
    let sandbox = Sandbox::new();
    sandbox.run(&["sql", "-o", "a.parquet", "-c", "SELECT 1 AS id, 'x' AS name"]).ok();
    let whole = std::fs::read(sandbox.path("a.parquet")).unwrap();
    let mut damaged = whole.clone();
    damaged[..4].copy_from_slice(b"XXXX");
    let told = ["the file ends as Parquet does", "its start is damaged"];
    for name in ["b.parquet", "b.PARQUET", "b.bin"] {
        sandbox.write(name, &damaged);
        let load = ["load", name, "--into", "store", "--table", "t"];
        sandbox.run(&load).fails(1, &[&[name][..], &told].concat());
        sandbox.run(&["sniff", name]).fails(1, &told);
    }
    sandbox.run(&["sql", "-c", "SELECT * FROM 'b.parquet'"]).fails(1, &told);
    sandbox.run(&["load", "a.parquet", "b.parquet", "--into", "store"]).fails(1, &["b.parquet"]);
    // A text is a text, whatever its name.
    sandbox.write("text.parquet", "id,name\n1,x\n");
    sandbox.run(&["load", "text.parquet", "--into", "store", "--table", "text"]).ok();
    assert_eq!(sandbox.query("SELECT id, name FROM text"), ["1,x"]);
}
