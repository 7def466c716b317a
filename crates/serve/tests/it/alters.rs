//! ALTER TABLE against tables that are made anew with the columns that there should be.

use coload_serve::arrow::array::RecordBatch;
use coload_serve::arrow::util::pretty::pretty_format_batches;
use coload_serve::{Grant, Parameters, Rights};
use coload_store::{Snapshot, VerifyOptions, merge_small, verify};
use coload_types::Error;

use crate::support::{Random, Scratch};

fn text(batches: &[RecordBatch]) -> String {
    pretty_format_batches(batches).unwrap().to_string()
}

/// Types, a literal of each by a number, and the default of a column that is added.
const TYPES: &[(&str, &str, Option<&str>)] = &[
    ("BIGINT", "#", Some("3")),
    ("VARCHAR", "'text of #'", Some("'text of 2'")),
    ("VARCHAR(30)", "'t#'", None),
    ("DECIMAL(30,2)", "#.25", Some("2.25")),
    ("DOUBLE", "#.5e0", Some("1.5")),
    ("DATE", "DATE '2026-01-01' + #", None),
    ("BOOLEAN", "(# > 3)", Some("true")),
    ("UUID", "'00000000-0000-0000-0000-00000000000#'", None),
    ("BINARY", "x'0#'", None),
];

struct Model {
    /// Names and types of the columns after the first, which is `k`.
    columns: Vec<(String, usize)>,
    next: u64,
}

impl Model {
    /// A row of values, some of which are NULL.
    fn row(&self, random: &mut Random, k: u64) -> String {
        let mut values = vec![k.to_string()];
        for (_, kind) in &self.columns {
            let number = random.below(8).to_string();
            let value = TYPES[*kind].1.replace('#', &number);
            values.push(if random.below(4) == 0 { "NULL".into() } else { value });
        }
        format!("({})", values.join(", "))
    }

    fn names(&self) -> String {
        let names = self.columns.iter().map(|(name, _)| name.as_str());
        ["k"].into_iter().chain(names).collect::<Vec<_>>().join(", ")
    }
}

/// Makes the second table anew, of a query of itself.
fn remake(scratch: &Scratch, query: &str) {
    scratch.database.query(&format!("CREATE OR REPLACE TABLE plain AS {query}")).unwrap();
}

fn check(scratch: &Scratch, model: &Model) {
    let same = |sql: &str| {
        let found = scratch.database.query(&sql.replace("TABLE", "t")).unwrap();
        let expected = scratch.database.query(&sql.replace("TABLE", "plain")).unwrap();
        assert_eq!(text(&found), text(&expected), "{sql}");
    };
    same(&format!("SELECT {} FROM TABLE ORDER BY k", model.names()));
    same("SELECT * FROM TABLE ORDER BY k DESC LIMIT 5");
    same("SELECT count(*), min(k), max(k), sum(k) FROM TABLE WHERE k % 3 <> 1");
    for (name, kind) in &model.columns {
        same(&format!(
            "SELECT {name}, count(*), count({name}) FROM TABLE GROUP BY {name} ORDER BY {name}"
        ));
        same(&format!("SELECT k, {name} FROM TABLE WHERE {name} IS NULL ORDER BY k"));
        for number in [2, 3] {
            let value = TYPES[*kind].1.replace('#', &number.to_string());
            same(&format!("SELECT k, {name} FROM TABLE WHERE {name} = {value} ORDER BY k"));
            same(&format!("SELECT count(*) FROM TABLE WHERE {name} < {value} OR k > 50"));
        }
        if *kind != 6 {
            same(&format!("SELECT min({name}), max({name}) FROM TABLE"));
        }
    }
}

#[test]
fn altered_tables_are_those_that_are_made_anew() {
    for seed in 0..6 {
        let mut random = Random(seed);
        let scratch = Scratch::new();
        let database = &scratch.database;
        let key = ["", " PRIMARY KEY", ""][seed as usize % 3];
        let cluster = if seed % 3 == 2 { " CLUSTER BY (k)" } else { "" };
        database
            .query(&format!("CREATE TABLE t (c0 BIGINT, k BIGINT NOT NULL{key}){cluster}"))
            .unwrap();
        database.query("ALTER TABLE t DROP COLUMN c0").unwrap();
        database.query("CREATE TABLE plain (k BIGINT NOT NULL)").unwrap();
        let mut model = Model { columns: Vec::new(), next: 1 };
        let mut held: Vec<(Snapshot, usize, u64)> = Vec::new();
        for _ in 0..40 {
            match random.below(9) {
                0 | 1 => {
                    let count = 1 + random.below(40);
                    let rows: Vec<String> =
                        (0..count).map(|i| model.row(&mut random, model.next + i)).collect();
                    model.next += count;
                    for table in ["t", "plain"] {
                        let (names, rows) = (model.names(), rows.join(", "));
                        database
                            .query(&format!("INSERT INTO {table} ({names}) VALUES {rows}"))
                            .unwrap();
                    }
                }
                2 | 3 if model.columns.len() < 6 => {
                    let kind = random.below(TYPES.len() as u64) as usize;
                    let (data_type, _, default) = TYPES[kind];
                    let name = format!("c{}", random.below(1_000));
                    if model.columns.iter().any(|(known, _)| *known == name) {
                        continue;
                    }
                    let default_sql = default.map_or(String::new(), |d| format!(" DEFAULT {d}"));
                    database
                        .query(&format!("ALTER TABLE t ADD COLUMN {name} {data_type}{default_sql}"))
                        .unwrap();
                    let value = default.unwrap_or("NULL");
                    let value = match data_type {
                        // Types that a CAST does not make.
                        "BINARY" => format!("CASE WHEN false THEN x'' ELSE {value} END"),
                        "UUID" | "VARCHAR(30)" => format!("CAST({value} AS VARCHAR)"),
                        other => format!("CAST({value} AS {other})"),
                    };
                    remake(&scratch, &format!("SELECT *, {value} AS {name} FROM plain"));
                    model.columns.push((name, kind));
                }
                4 if !model.columns.is_empty() => {
                    let at = random.below(model.columns.len() as u64) as usize;
                    let (name, _) = model.columns.remove(at);
                    database.query(&format!("ALTER TABLE t DROP COLUMN {name}")).unwrap();
                    remake(&scratch, &format!("SELECT {} FROM plain", model.names()));
                }
                5 if !model.columns.is_empty() => {
                    let at = random.below(model.columns.len() as u64) as usize;
                    let new = format!("r{}", random.below(100_000));
                    let old = std::mem::replace(&mut model.columns[at].0, new.clone());
                    database.query(&format!("ALTER TABLE t RENAME COLUMN {old} TO {new}")).unwrap();
                    remake(
                        &scratch,
                        &format!("SELECT * EXCEPT ({old}), {old} AS {new} FROM plain"),
                    );
                    remake(&scratch, &format!("SELECT {} FROM plain", model.names()));
                }
                6 => {
                    let n = random.below(5);
                    for table in ["t", "plain"] {
                        database
                            .query(&format!("DELETE FROM {table} WHERE k % 5 = {n} AND k % 7 = 0"))
                            .unwrap();
                    }
                }
                7 if !model.columns.is_empty() => {
                    let at = random.below(model.columns.len() as u64) as usize;
                    let (name, kind) = &model.columns[at];
                    let value = TYPES[*kind].1.replace('#', &random.below(8).to_string());
                    for table in ["t", "plain"] {
                        database
                            .query(&format!("UPDATE {table} SET {name} = {value} WHERE k % 4 = 1"))
                            .unwrap();
                    }
                }
                _ => {
                    merge_small(database.store(), "t").unwrap();
                    let snapshot = database.store().snapshot().unwrap();
                    let table = snapshot.table("t").unwrap();
                    let (width, rows) = (table.schema.len(), table.rows());
                    held.push((snapshot, width, rows));
                }
            }
            check(&scratch, &model);
        }
        // What files are written of.
        let files = ["t", "plain"].map(|table| {
            let file = scratch.dir.path().join(format!("{table}.csv"));
            let rows = format!("SELECT {} FROM {table} ORDER BY k", model.names());
            database.query(&format!("COPY ({rows}) TO '{}'", file.display())).unwrap();
            std::fs::read_to_string(file).unwrap()
        });
        assert_eq!(files[0], files[1]);
        let file = scratch.dir.path().join("t.parquet");
        database.query(&format!("COPY t TO '{}'", file.display())).unwrap();
        // Older versions have the columns that they had, and their segments are read as these.
        for (snapshot, width, rows) in &held {
            let table = snapshot.table("t").unwrap();
            assert_eq!((table.schema.len(), table.rows()), (*width, *rows));
            for segment in &table.segments {
                let file = snapshot.segment(table, segment).unwrap();
                assert_eq!(file.column_count(), *width);
            }
        }
        drop(held);
        let report =
            verify(database.store().path(), &VerifyOptions { threads: 1, progress: None }).unwrap();
        assert_eq!(report.damages, Vec::new());
    }
}

#[test]
fn altering_needs_the_right_to_both_names() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE mine AS SELECT 1 AS a, 2 AS b").unwrap();
    let rights = |grants: &[&str]| {
        Rights::of("rob", grants.iter().map(|g| g.parse::<Grant>().unwrap()).collect())
    };
    let run = |rights: &Rights, sql: &str| {
        database.block_on(async {
            database.plan(rights, sql, Parameters::default()).await?.run(database).await.map(drop)
        })
    };
    for grants in [&["read:*", "load:*"][..], &["admin:theirs", "read:*"]] {
        let error = run(&rights(grants), "ALTER TABLE mine DROP COLUMN b").unwrap_err();
        assert!(matches!(&error, Error::Refused(_)), "{error}");
    }
    let rename = "ALTER TABLE mine RENAME TO theirs";
    assert!(run(&rights(&["admin:mine", "read:*"]), rename).is_err());
    run(&rights(&["admin:mine", "admin:theirs"]), rename).unwrap();
    run(&rights(&["admin:theirs"]), "ALTER TABLE theirs DROP COLUMN b").unwrap();
}

/// A load or a statement that read the columns as they were is refused, and leaves nothing.
#[test]
fn loads_that_began_before_are_refused() {
    use coload_store::{LoadMode, LoadTarget};
    let scratch = Scratch::new();
    let database = &scratch.database;
    for sql in [
        "ALTER TABLE t DROP COLUMN b",
        "ALTER TABLE t ADD COLUMN c BIGINT",
        "ALTER TABLE t RENAME COLUMN a TO c",
        "ALTER TABLE t RENAME TO u",
    ] {
        database.query("DROP TABLE IF EXISTS u").unwrap();
        database.query("CREATE OR REPLACE TABLE t AS SELECT 1 AS a, 2 AS b").unwrap();
        let schema = database.store().snapshot().unwrap().table("t").unwrap().schema.clone();
        let target = LoadTarget { name: "t".into(), schema, mode: LoadMode::Append };
        let load = database.store().begin_load(target).unwrap();
        database.query(sql).unwrap();
        let record = coload_store::LoadRecord::new(load.id(), coload_store::LoadKind::Append);
        let error = load.publish(Vec::new(), record).unwrap_err();
        assert!(matches!(&error, Error::Invalid(_)), "{sql}: {error}");
    }
}
