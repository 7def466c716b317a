//! Files of Avro through the engine of SQL: filters and expressions of loads, and files in place.

use crate::drivers::{passes, python};
use crate::support::Sandbox;

#[test]
fn rows_are_filtered_and_columns_made_and_files_are_tables() {
    let sandbox = Sandbox::new();
    passes(python("avro_files.py").arg("write").arg(sandbox.path(".")));
    let load = ["load", "snappy.avro", "--into", "store", "--table", "t"];
    let made = ["--select", "id * 2 AS twice, again", "--where", "id >= 3990"];
    sandbox.run(&[&load[..], &made].concat()).ok();
    let exported = sandbox.run(&["export", "store", "t"]).ok().out;
    let expected = (3990..4000).map(|id| format!("{},\"CLUBS\"", id * 2));
    assert!(exported.lines().skip(1).eq(expected), "{exported}");
    let answer = |sql: &str| {
        let run = sandbox.run(&["sql", "--output", "csv", "-c", sql]).ok();
        run.out.lines().skip(1).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(answer("SELECT count(*), max(id) FROM '*e*l*te.avro'"), "4000,3999");
    let points =
        "SELECT id, \"point.x\" FROM 'xz.avro' WHERE \"point.x\" > 3997 ORDER BY id LIMIT 1";
    let found = answer(points);
    assert!(["3998,3998", "3999,3999"].contains(&found.as_str()), "{found}");
    assert_eq!(answer("SELECT count(*) FROM read_avro('null.avro') WHERE again = 'CLUBS'"), "4000");
    let explained = answer("EXPLAIN SELECT id FROM 'null.avro'");
    assert!(explained.contains("format=avro") && explained.contains("columns=[id]"), "{explained}");
    sandbox.write("a.csv", "a\n1\n");
    sandbox.run(&["sql", "-c", "SELECT * FROM read_avro('a.csv')"]).fails(1, &["this is no Avro"]);
    let external =
        "CREATE EXTERNAL TABLE e STORED AS AVRO LOCATION 'swapped.avro'; SELECT * FROM e";
    let run = sandbox.run(&["sql", "--store", "store", "--output", "csv", "-c", external]).ok();
    assert!(run.out.ends_with("c,4\n"), "{}", run.out);
}
