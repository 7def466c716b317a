//! DELETE and UPDATE against a list of rows: random statements, several writers at once, readers beside them, rights, files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use coload_serve::arrow::array::{Array, AsArray, RecordBatch};
use coload_serve::arrow::datatypes::{Int32Type, Int64Type, UInt64Type};
use coload_serve::{Grant, Parameters, Rights};
use coload_store::{Snapshot, VerifyOptions, merge_small, verify};
use coload_types::Error;

use crate::support::{Random, Scratch};

type Row = (i32, Option<i32>, Option<String>);

fn counted(batches: &[RecordBatch]) -> u64 {
    batches[0].column(0).as_primitive::<UInt64Type>().value(0)
}

fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in batches {
        let (a, b) = (batch.column(0).as_primitive::<Int32Type>(), batch.column(1));
        let (b, c) = (b.as_primitive::<Int32Type>(), batch.column(2).as_string_view());
        rows.extend((0..batch.num_rows()).map(|i| {
            let b = (!b.is_null(i)).then(|| b.value(i));
            (a.value(i), b, (!c.is_null(i)).then(|| c.value(i).to_owned()))
        }));
    }
    rows
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

/// Which rows a condition is true of.
type Holds = Box<dyn Fn(&Row) -> bool>;

/// A condition, and what it says of a row; `None` is NULL.
fn condition(random: &mut Random) -> (String, Holds) {
    let n = random.below(8) as i32;
    match random.below(9) {
        0 => (format!("a = {n}"), Box::new(move |r| r.0 == n)),
        1 => (format!("b < {n}"), Box::new(move |r| r.1.is_some_and(|b| b < n))),
        2 => ("b IS NULL".into(), Box::new(|r| r.1.is_none())),
        3 => (format!("c = 't{n}'"), Box::new(move |r| r.2.as_deref() == Some(&format!("t{n}")))),
        4 => (format!("a % 3 = {}", n % 3), Box::new(move |r| r.0 % 3 == n % 3)),
        5 => (
            format!("a BETWEEN {n} AND {} AND c IS NOT NULL", n + 2),
            Box::new(move |r| (n..=n + 2).contains(&r.0) && r.2.is_some()),
        ),
        6 => (format!("a + b > {n}"), Box::new(move |r| r.1.is_some_and(|b| r.0 + b > n))),
        // By a subquery: the same condition, asked for each row.
        7 => (format!("a IN (SELECT o.a FROM t o WHERE o.a = {n})"), Box::new(move |r| r.0 == n)),
        _ => ("false".into(), Box::new(|_| false)),
    }
}

fn check(scratch: &Scratch, model: &[Row]) {
    let database = &scratch.database;
    let all = rows(&database.query("SELECT a, b, c FROM t").unwrap());
    assert_eq!(sorted(all), sorted(model.to_vec()));
    let counts = database
        .query("SELECT count(*), count(b), min(a), max(a), sum(b), count(DISTINCT c) FROM t")
        .unwrap();
    let number = |column: usize| counts[0].column(column).as_primitive::<Int64Type>().value(0);
    assert_eq!(number(0), model.len() as i64);
    assert_eq!(number(1), model.iter().filter(|r| r.1.is_some()).count() as i64);
    let bound = |column: usize| {
        let array = counts[0].column(column).as_primitive::<Int32Type>();
        (!array.is_null(0)).then(|| array.value(0))
    };
    assert_eq!(bound(2), model.iter().map(|r| r.0).min());
    assert_eq!(bound(3), model.iter().map(|r| r.0).max());
    let texts: BTreeSet<_> = model.iter().filter_map(|r| r.2.as_ref()).collect();
    assert_eq!(number(5), texts.len() as i64);
    // Groups on codes.
    let groups = database.query("SELECT b, count(*) FROM t GROUP BY b").unwrap();
    let grouped: usize = groups.iter().map(RecordBatch::num_rows).sum();
    let values: BTreeSet<_> = model.iter().map(|r| r.1).collect();
    assert_eq!(grouped, values.len());
    for (sql, holds) in [
        ("b IS NULL", Box::new(|r: &Row| r.1.is_none()) as Box<dyn Fn(&Row) -> bool>),
        ("a >= 4", Box::new(|r| r.0 >= 4)),
        ("c LIKE 't%' AND b <> 3", Box::new(|r| r.2.is_some() && r.1.is_some_and(|b| b != 3))),
    ] {
        let found = database.query(&format!("SELECT a, b, c FROM t WHERE {sql}")).unwrap();
        let expected = model.iter().filter(|r| holds(r)).cloned().collect();
        assert_eq!(sorted(rows(&found)), sorted(expected), "{sql}");
    }
    let limit = rows(&database.query("SELECT a, b, c FROM t LIMIT 5").unwrap()).len();
    assert_eq!(limit, model.len().min(5));
}

#[test]
fn random_statements_leave_what_a_list_of_rows_has() {
    for seed in 0..3 {
        let mut random = Random(seed);
        let scratch = Scratch::new();
        let database = &scratch.database;
        database.query("CREATE TABLE t (a INTEGER NOT NULL, b INTEGER, c VARCHAR)").unwrap();
        let mut model: Vec<Row> = Vec::new();
        let mut held: Option<(Snapshot, u64)> = None;
        for _ in 0..25 {
            match random.below(8) {
                0..3 => {
                    let new: Vec<Row> = (0..1 + random.below(300))
                        .map(|_| {
                            let b = (random.below(5) > 0).then(|| random.below(8) as i32);
                            let c = (random.below(5) > 0).then(|| format!("t{}", random.below(8)));
                            (random.below(8) as i32, b, c)
                        })
                        .collect();
                    let text =
                        |v: &Option<String>| v.as_ref().map_or("NULL".into(), |v| format!("'{v}'"));
                    let number = |v: &Option<i32>| v.map_or("NULL".into(), |v| v.to_string());
                    let values: Vec<String> = new
                        .iter()
                        .map(|(a, b, c)| format!("({a}, {}, {})", number(b), text(c)))
                        .collect();
                    database.query(&format!("INSERT INTO t VALUES {}", values.join(", "))).unwrap();
                    model.extend(new);
                }
                3 | 4 => {
                    let (sql, holds) = condition(&mut random);
                    let count =
                        counted(&database.query(&format!("DELETE FROM t WHERE {sql}")).unwrap());
                    let before = model.len();
                    model.retain(|row| !holds(row));
                    assert_eq!(count, (before - model.len()) as u64, "{sql}");
                }
                5 | 6 => {
                    let (sql, holds) = condition(&mut random);
                    let (set, change): (&str, fn(&mut Row)) = match random.below(3) {
                        0 => ("a = 7 - a, b = a", |r| (r.0, r.1) = (7 - r.0, Some(r.0))),
                        1 => ("c = 't' || b", |r| r.2 = r.1.map(|b| format!("t{b}"))),
                        _ => ("b = DEFAULT", |r| r.1 = None),
                    };
                    let text = format!("UPDATE t SET {set} WHERE {sql}");
                    let count = counted(&database.query(&text).unwrap());
                    let mut changed = 0;
                    model.iter_mut().filter(|row| holds(row)).for_each(|row| {
                        change(row);
                        changed += 1;
                    });
                    assert_eq!(count, changed, "{text}");
                }
                _ => {
                    merge_small(database.store(), "t").unwrap();
                    let snapshot = database.store().snapshot().unwrap();
                    held = Some((snapshot, model.len() as u64));
                }
            }
            check(&scratch, &model);
            if let Some((snapshot, rows)) = &held {
                assert_eq!(snapshot.table("t").unwrap().rows(), *rows);
            }
        }
        drop(held);
        let report =
            verify(database.store().path(), &VerifyOptions { threads: 1, progress: None }).unwrap();
        assert_eq!(report.damages, Vec::new());
    }
}

#[test]
fn several_writers_of_the_same_rows_count_each_change_once() {
    const ROWS: i64 = 400;
    const ROUNDS: i64 = 12;
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE t (k BIGINT NOT NULL, n BIGINT NOT NULL)").unwrap();
    database
        .query(&format!("INSERT INTO t SELECT value, 0 FROM generate_series(1, {ROWS})"))
        .unwrap();
    let ended = AtomicBool::new(false);
    let update = |of: i64| {
        let mut changed = 0;
        for round in 0..ROUNDS {
            // Rows that both have, and rows that only one has.
            let sql = format!("UPDATE t SET n = n + 1 WHERE k % {of} = {}", round % of);
            loop {
                match database.query(&sql) {
                    Ok(answer) => break changed += counted(&answer) as i64,
                    Err(Error::Unavailable(_)) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        }
        changed
    };
    let sum = || {
        let sums = database.query("SELECT count(*), count(DISTINCT k), sum(n) FROM t").unwrap();
        let count = |c: usize| sums[0].column(c).as_primitive::<Int64Type>().value(0);
        let sum =
            sums[0].column(2).as_primitive::<coload_serve::arrow::datatypes::Decimal128Type>();
        (count(0), count(1), sum.value(0) as i64)
    };
    let changed: i64 = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let (rows, keys, _) = sum();
                assert_eq!((rows, keys), (ROWS, ROWS), "a reader saw part of a change");
            }
        });
        let writers = [2, 3, 4].map(|of| scope.spawn(move || update(of)));
        let changed = writers.map(|writer| writer.join().unwrap()).iter().sum();
        ended.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        changed
    });
    assert_eq!(sum(), (ROWS, ROWS, changed));
}

#[test]
fn changes_need_the_right_to_empty_the_table() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE mine AS SELECT 1 AS a").unwrap();
    database.query("CREATE TABLE theirs AS SELECT 1 AS a").unwrap();
    let rights = |grants: &[&str]| {
        Rights::of("rob", grants.iter().map(|g| g.parse::<Grant>().unwrap()).collect())
    };
    let plan = |rights: &Rights, sql: &str| {
        database.block_on(database.plan(rights, sql, Parameters::default())).map(drop)
    };
    for sql in ["DELETE FROM mine", "UPDATE mine SET a = 2", "DELETE FROM MINE WHERE a = 1"] {
        for grants in [&["read:mine"][..], &["load:mine"], &["read:*", "admin:theirs"]] {
            let error = plan(&rights(grants), sql).unwrap_err();
            assert!(matches!(&error, Error::Refused(t) if t.contains("admin")), "{sql}: {error}");
        }
        plan(&rights(&["admin:mine"]), sql).unwrap();
        // A table that one may not read does not exist, here as elsewhere.
        let error = plan(&rights(&["admin:theirs"]), sql).unwrap_err();
        assert!(error.to_string().contains("not found"), "{error}");
    }
    let hidden = "DELETE FROM mine WHERE a IN (SELECT a FROM theirs)";
    assert!(plan(&rights(&["admin:mine"]), hidden).is_err());
    plan(&rights(&["admin:mine", "read:theirs"]), hidden).unwrap();
}

#[test]
fn parameters_of_changes_have_the_types_of_their_columns() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE t (a INTEGER, b DATE)").unwrap();
    let sql = "UPDATE t SET a = ?, b = ? WHERE a = ?";
    let planned =
        database.block_on(database.plan(&Rights::all(), sql, Parameters::default())).unwrap();
    let types: Vec<String> =
        planned.parameters().fields().iter().map(|f| f.data_type().to_string()).collect();
    assert_eq!(types, ["Int32", "Date32", "Int32"]);
    assert!(planned.writes() && planned.counts_rows());
    let error = database.block_on(planned.run(database)).unwrap_err();
    assert!(error.to_string().contains("3 parameters"), "{error}");
}

#[test]
fn large_updates_stay_within_memory_and_keep_every_row() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database
        .query("CREATE TABLE t AS SELECT value AS k, 'text of ' || value AS v FROM generate_series(1, 150000)")
        .unwrap();
    let changed = counted(&database.query("UPDATE t SET k = -k WHERE k % 2 = 0").unwrap());
    assert_eq!(changed, 75_000);
    let changed = counted(&database.query("UPDATE t SET v = v || '!'").unwrap());
    assert_eq!(changed, 150_000);
    let sums = database
        .query("SELECT count(*), count(DISTINCT v), sum(CASE WHEN k < 0 THEN 1 ELSE 0 END) FROM t")
        .unwrap();
    let count = |c: usize| sums[0].column(c).as_primitive::<Int64Type>().value(0);
    assert_eq!((count(0), count(1)), (150_000, 150_000));
    // All old segments are gone, as none of their rows is left.
    let snapshot = database.store().snapshot().unwrap();
    assert_eq!(snapshot.table("t").unwrap().deleted_rows(), 0);
}

/// MERGE against a map, on a table with a key and on one without.
#[test]
fn random_merges_leave_what_a_map_has() {
    for (seed, key) in [(1, ""), (2, " PRIMARY KEY"), (3, ""), (4, " PRIMARY KEY")] {
        let mut random = Random(seed);
        let scratch = Scratch::new();
        let database = &scratch.database;
        database
            .query(&format!("CREATE TABLE t (a INTEGER NOT NULL{key}, b INTEGER, c VARCHAR)"))
            .unwrap();
        database.query("CREATE TABLE s (k INTEGER, n INTEGER)").unwrap();
        let mut model: BTreeMap<i32, (Option<i32>, Option<String>)> = BTreeMap::new();
        for _ in 0..30 {
            let source: Vec<(Option<i32>, Option<i32>)> = (0..random.below(40))
                .map(|_| {
                    let k = (random.below(10) > 0).then(|| random.below(60) as i32);
                    (k, (random.below(4) > 0).then(|| random.below(8) as i32))
                })
                .collect();
            let number = |v: Option<i32>| v.map_or("NULL".into(), |v| v.to_string());
            database.query("TRUNCATE TABLE s").unwrap();
            if !source.is_empty() {
                let values: Vec<String> = source
                    .iter()
                    .map(|(k, n)| format!("({}, {})", number(*k), number(*n)))
                    .collect();
                database.query(&format!("INSERT INTO s VALUES {}", values.join(", "))).unwrap();
            }
            let n = random.below(8) as i32;
            let (deletes, updates, inserts) =
                (random.below(2) == 0, random.below(3) > 0, random.below(3) > 0);
            let mut sql = "MERGE INTO t USING s ON t.a = s.k".to_owned();
            if deletes {
                sql.push_str(&format!(" WHEN MATCHED AND s.n = {n} THEN DELETE"));
            }
            if updates {
                sql.push_str(" WHEN MATCHED AND b IS NULL THEN UPDATE SET b = n");
                sql.push_str(&format!(
                    " WHEN MATCHED AND b <> {n} THEN UPDATE SET b = b + n, c = 't' || a"
                ));
            }
            if inserts {
                sql.push_str(" WHEN NOT MATCHED AND k IS NOT NULL AND n IS NOT NULL");
                sql.push_str(" THEN INSERT (a, c) VALUES (k, 'tn' || n)");
            }
            if !(deletes || updates || inserts) {
                continue;
            }

            let (mut after, mut count, mut touched) = (model.clone(), 0, BTreeSet::new());
            let (mut changed_twice, mut added_twice) = (false, false);
            for (k, new) in &source {
                let Some(k) = *k else { continue };
                let row = match model.get(&k) {
                    Some(_) if deletes && *new == Some(n) => {
                        after.remove(&k);
                        true
                    }
                    Some((None, c)) if updates => {
                        after.insert(k, (*new, c.clone()));
                        true
                    }
                    Some((Some(b), _)) if updates && *b != n => {
                        after.insert(k, (new.map(|new| b + new), Some(format!("t{k}"))));
                        true
                    }
                    None if inserts && new.is_some() => {
                        after.insert(k, (None, new.map(|new| format!("tn{new}"))));
                        true
                    }
                    _ => false,
                };
                count += u64::from(row);
                if row && !touched.insert(k) {
                    match model.contains_key(&k) {
                        true => changed_twice = true,
                        false => added_twice = true,
                    }
                }
            }
            match (database.query(&sql), changed_twice, added_twice) {
                (Ok(answer), false, false) => {
                    assert_eq!(counted(&answer), count, "{sql}");
                    model = after;
                }
                (Ok(answer), false, true) if key.is_empty() => {
                    // Two rows, which a map does not have.
                    assert_eq!(counted(&answer), count, "{sql}");
                    database.query("TRUNCATE TABLE t").unwrap();
                    model.clear();
                }
                (Err(error), true, _) => {
                    assert!(error.to_string().contains("several rows"), "{error}");
                }
                (Err(error), false, true) => {
                    assert!(error.to_string().contains("comes twice"), "{error}");
                }
                (done, ..) => panic!("{sql}: {done:?}"),
            }
            if random.below(6) == 0 {
                merge_small(database.store(), "t").unwrap();
            }
            let rows_of_model =
                model.iter().map(|(a, (b, c))| (*a, *b, c.clone())).collect::<Vec<Row>>();
            check(&scratch, &rows_of_model);
        }
    }
}

#[test]
fn merges_beside_each_other_have_the_effect_of_one_after_the_other() {
    const WRITERS: i64 = 3;
    const ROUNDS: i64 = 8;
    for key in ["", " PRIMARY KEY"] {
        let scratch = Scratch::new();
        let database = &scratch.database;
        database
            .query(&format!("CREATE TABLE t (a BIGINT NOT NULL{key}, n BIGINT NOT NULL)"))
            .unwrap();
        let write = || {
            for round in 0..ROUNDS {
                // Each round has keys that none had before, and keys that all have.
                let sql = format!(
                    "MERGE INTO t USING generate_series(0, {}) AS g ON t.a = g.value \
                     WHEN MATCHED THEN UPDATE SET n = n + 1 WHEN NOT MATCHED THEN INSERT VALUES (value, 1)",
                    round * 10
                );
                loop {
                    match database.query(&sql) {
                        Ok(_) => break,
                        Err(Error::Unavailable(_)) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        };
        std::thread::scope(|scope| (0..WRITERS).for_each(|_| drop(scope.spawn(write))));
        let sums = database.query("SELECT count(*), count(DISTINCT a), max(n), min(n) FROM t");
        let sums = sums.unwrap();
        let count = |c: usize| sums[0].column(c).as_primitive::<Int64Type>().value(0);
        let rows = (ROUNDS - 1) * 10 + 1;
        assert_eq!(
            (count(0), count(1), count(2), count(3)),
            (rows, rows, WRITERS * ROUNDS, WRITERS)
        );
    }
}

#[test]
fn merges_need_the_rights_of_what_they_do() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE mine (a INTEGER PRIMARY KEY, b INTEGER)").unwrap();
    database.query("CREATE TABLE theirs AS SELECT 1 AS k").unwrap();
    let rights = |grants: &[&str]| {
        Rights::of("rob", grants.iter().map(|g| g.parse::<Grant>().unwrap()).collect())
    };
    let plan = |rights: &Rights, sql: &str| {
        database.block_on(database.plan(rights, sql, Parameters::default())).map(drop)
    };
    let adds = "MERGE INTO mine USING theirs ON a = k WHEN NOT MATCHED THEN INSERT (a) VALUES (k)";
    let changes = "MERGE INTO mine USING theirs ON a = k WHEN MATCHED THEN UPDATE SET b = 1";
    let upserts = "INSERT INTO mine VALUES (1, 2) ON CONFLICT (a) DO UPDATE SET b = mine.b + 1";
    plan(&rights(&["read:*", "load:mine"]), adds).unwrap();
    for sql in [changes, upserts] {
        let error = plan(&rights(&["read:*", "load:mine"]), sql).unwrap_err();
        assert!(matches!(&error, Error::Refused(t) if t.contains("admin")), "{sql}: {error}");
        plan(&rights(&["admin:mine", "read:theirs"]), sql).unwrap();
    }
    for sql in [adds, changes] {
        assert!(plan(&rights(&["admin:mine"]), sql).is_err());
        assert!(plan(&rights(&["read:*"]), sql).is_err());
    }
}

#[test]
fn parameters_of_merges_have_the_types_of_their_columns() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE t (a INTEGER PRIMARY KEY, b DATE)").unwrap();
    for (sql, expected) in [
        (
            "MERGE INTO t USING (SELECT a + ? AS k FROM t) AS s ON a = k \
             WHEN MATCHED THEN UPDATE SET b = ? WHEN NOT MATCHED THEN INSERT VALUES (?, NULL)",
            &["Int32", "Date32", "Int32"],
        ),
        (
            "INSERT INTO t VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = ?",
            &["Int32", "Date32", "Date32"],
        ),
    ] {
        let planned =
            database.block_on(database.plan(&Rights::all(), sql, Parameters::default())).unwrap();
        let types: Vec<String> =
            planned.parameters().fields().iter().map(|f| f.data_type().to_string()).collect();
        assert_eq!(types, expected, "{sql}");
        assert!(planned.writes() && planned.counts_rows());
    }
}
