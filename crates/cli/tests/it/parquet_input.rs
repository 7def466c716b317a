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
    let run = sandbox.run(&["sql", "store", "SELECT count(*), min(twice), max(twice) FROM t"]).ok();
    assert!(run.out.contains("7980") && run.out.contains("7998"), "{}", run.out);
    // Two files, as one.
    let both = ["load", "snappy.parquet", "gzip.parquet", "--into", "store", "--table", "both"];
    sandbox.run(&[&both[..], &["--columns", "id BIGINT, text VARCHAR", "--by-name"]].concat()).ok();
    let run = sandbox.run(&["sql", "store", "SELECT count(*), sum(id) FROM both"]).ok();
    assert!(run.out.contains("8000") && run.out.contains("15996000"), "{}", run.out);
}
