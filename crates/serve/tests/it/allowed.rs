//! What the engine can do is a list of what is allowed.

use std::path::Path;

use coload_serve::{Grant, Parameters, Rights};
use coload_types::Error;

use crate::sql_words::statement;
use crate::support::Scratch;

/// All files below a folder with their sizes.
fn files(folder: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                found.push((path.display().to_string(), entry.metadata().map_or(0, |m| m.len())))
            }
        }
    }
    found.sort();
    found
}

/// At a1bdeed `EXPLAIN ANALYZE COPY (..) TO ..` wrote any file of the server for a user with read:pub only.
#[test]
fn who_may_read_writes_nothing_by_any_wrapper() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE pub AS SELECT 1 AS a").unwrap();
    let out = scratch.dir.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let before = files(scratch.dir.path());
    let rights = Rights::of("rob", vec!["read:pub".parse::<Grant>().unwrap()]);
    let all = Rights::all();
    let to = out.display();
    let manifest = scratch.dir.path().join("store");
    let inner = [
        format!("COPY (SELECT 'x') TO '{to}/a.csv'"),
        format!(
            "COPY (SELECT 'x') TO '{to}/a.csv' STORED AS CSV OPTIONS ('format.has_header' 'false')"
        ),
        format!("COPY (SELECT 'x') TO 'file://{to}/b.csv' STORED AS CSV"),
        format!("COPY pub TO '{}/x' STORED AS CSV", manifest.display()),
        format!("CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{to}/a.csv'"),
        "CREATE TABLE made AS SELECT 1 AS a".to_owned(),
        "CREATE VIEW v AS SELECT 1".to_owned(),
        "INSERT INTO pub SELECT 2".to_owned(),
        "SELECT 1 AS a INTO made".to_owned(),
        "DROP TABLE pub".to_owned(),
        "TRUNCATE TABLE pub".to_owned(),
        "UPDATE pub SET a = 2".to_owned(),
        "DELETE FROM pub".to_owned(),
        "SET datafusion.execution.batch_size = 1".to_owned(),
        "RESET datafusion.execution.batch_size".to_owned(),
    ];
    let mut statements = Vec::new();
    for statement in &inner {
        for wrapper in [
            "EXPLAIN",
            "EXPLAIN ANALYZE",
            "EXPLAIN VERBOSE",
            "DESCRIBE",
            "EXPLAIN EXPLAIN",
            "PREPARE p AS",
            "WITH x AS",
            "EXPLAIN FORMAT TREE",
            "EXPLAIN (ANALYZE)",
        ] {
            statements.push(match wrapper {
                "WITH x AS" => format!("WITH x AS ({statement}) SELECT * FROM x"),
                _ => format!("{wrapper} {statement}"),
            });
        }
        statements.push(format!("SELECT * FROM ({statement}) t"));
        statements.push(format!("{statement}; SELECT 1"));
        if !statement.starts_with("COPY") && !statement.starts_with("EXPLAIN") {
            statements.push(statement.clone());
        }
    }
    for more in [
        format!("SELECT * FROM '{to}/a.csv'"),
        format!("SELECT * FROM \"{to}/a.csv\""),
        format!("SELECT * FROM parquet_metadata('{to}/a.parquet')"),
        format!("SELECT * FROM read_csv('{to}/a.csv')"),
        "EXECUTE p".to_owned(),
        "SELECT arrow_typeof(1)".to_owned(),
        "LOAD 'x'".to_owned(),
        "ATTACH DATABASE 'x' AS y".to_owned(),
        "CALL f()".to_owned(),
        "KILL 1".to_owned(),
        "GRANT ALL ON pub TO rob".to_owned(),
    ] {
        statements.push(more);
    }
    for statement in &statements {
        let run = |rights: &Rights| {
            database.block_on(async {
                let planned = database.plan(rights, statement, Parameters::default()).await?;
                planned.run(database).await?.collect().await
            })
        };
        assert!(run(&rights).is_err(), "{statement}");
        // The owner may change tables, but not by wrapping.
        if statement.starts_with("EXPLAIN")
            || statement.starts_with("PREPARE")
            || statement.starts_with("WITH")
        {
            assert!(run(&all).is_err(), "{statement}");
        }
    }
    assert_eq!(files(scratch.dir.path()), before);
    assert!(matches!(
        database.block_on(database.plan(&rights, &inner[0], Parameters::default())),
        Err(Error::Refused(_))
    ));
    for sql in ["EXPLAIN SELECT a FROM pub", "EXPLAIN ANALYZE SELECT a FROM pub", "DESCRIBE pub"] {
        database.query(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
}

/// At a1bdeed `SELECT 1 salary` answered a column `Salary`, the spelling of a table that the caller may not see.
#[test]
fn names_that_one_may_not_see_are_in_no_answer() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE \"Hidden_Wages\" (\"SaLaRy\" INT, \"From\" TEXT)").unwrap();
    database.query("CREATE TABLE pub AS SELECT 1 AS a").unwrap();
    let grants = ["read:pub", "admin:mine_*", "load:stage_*"].map(|g| g.parse::<Grant>().unwrap());
    let rights = Rights::of("rob", grants.to_vec());
    for statement in [
        "SELECT 1 salary",
        "SELECT 1 AS salary, 2 AS hidden_wages",
        "SELECT salary FROM pub",
        "SELECT salary FROM hidden_wages",
        "SELECT hidden_wages.salary FROM pub",
        "SELECT from FROM pub, hidden_wages",
        "SELECT * FROM pub JOIN hidden_wages USING (salary)",
        "SELECT * FROM nothing",
        "SELECT * FROM mine_nothing",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM information_schema.columns",
        "SHOW TABLES",
        "SHOW COLUMNS FROM hidden_wages",
        "DESCRIBE hidden_wages",
        "INSERT INTO hidden_wages VALUES (1, 'x')",
        "INSERT INTO stage_nothing VALUES (1)",
        "DROP TABLE mine_nothing",
        "DROP TABLE hidden_wages",
        "TRUNCATE TABLE mine_nothing",
        "TRUNCATE TABLE hidden_wages",
        "CREATE TABLE hidden_wages (a INT)",
        "EXPLAIN SELECT salary FROM pub",
    ] {
        let answer = database.block_on(async {
            let planned = database.plan(&rights, statement, Parameters::default()).await?;
            let schema = format!("{:?}", planned.schema());
            let rows = planned.run(database).await?.collect().await?;
            Ok::<_, Error>(format!("{schema} {rows:?}"))
        });
        let text = answer.unwrap_or_else(|e| e.to_string());
        for hidden in ["SaLaRy", "Hidden_Wages", "\"From\" in quotes"] {
            assert!(!text.contains(hidden), "{statement}: {text}");
        }
    }
}

/// `INSERT INTO secret .. ON CONFLICT (zz) DO UPDATE` told who had no right which columns `secret` has, as its clause was looked at
/// before the right was asked. So of any statement: what it says of a table that may not be seen is what it says of one that is not
/// there.
#[test]
fn a_table_that_one_may_not_see_is_as_one_that_is_not_there() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    for sql in [
        "CREATE TABLE pub AS SELECT 1 AS a",
        "CREATE TABLE hidden1 (a INT, b INT, d DATE, PRIMARY KEY (a))",
        "CREATE TABLE hidden2 (a INT, b INT)",
        "INSERT INTO hidden1 VALUES (1, 2, '2024-01-01')",
        "CREATE VIEW hidden3 AS SELECT a, b FROM hidden1",
    ] {
        database.query(sql).unwrap();
    }
    let rights = Rights::of("rob", vec!["admin:pub".parse::<Grant>().unwrap()]);
    let told = |template: &str, table: &str| {
        let sql = template.replace("TABLE", table);
        let answer = database.block_on(async {
            let planned = database.plan(&rights, &sql, Parameters::default()).await?;
            let schemas = format!("{:?} {:?}", planned.schema(), planned.parameters());
            if !planned.parameters().fields().is_empty() {
                return Ok(schemas);
            }
            let rows = planned.run(database).await?.collect().await?;
            Ok::<_, Error>(format!("{schemas} {rows:?}"))
        });
        answer.unwrap_or_else(|error| format!("{error:?}")).replace(table, "TABLE")
    };
    for template in [
        "SELECT * FROM TABLE",
        "SELECT b FROM public.TABLE",
        "SELECT zz FROM TABLE",
        "SELECT TABLE.zz FROM pub",
        "SELECT a FROM pub JOIN TABLE USING (a)",
        "SELECT a FROM pub WHERE a IN (SELECT zz FROM TABLE)",
        "SELECT zz FROM TABLE WHERE a = ?",
        "WITH c AS (SELECT zz FROM TABLE) SELECT 1 FROM pub",
        "SELECT * FROM pub UNION ALL SELECT * FROM TABLE",
        "EXPLAIN SELECT zz FROM TABLE",
        "EXPLAIN ANALYZE SELECT a FROM TABLE",
        "DESCRIBE TABLE",
        "DESCRIBE SELECT * FROM TABLE",
        "SUMMARIZE TABLE",
        "PIVOT TABLE ON a",
        "PIVOT TABLE ON zz IN (1) USING sum(b) GROUP BY d",
        "UNPIVOT main.TABLE ON zz",
        "SHOW COLUMNS FROM TABLE",
        "SHOW CREATE TABLE TABLE",
        "SHOW CREATE VIEW TABLE",
        "SHOW TABLES LIKE 'TABLE'",
        "SELECT count(*) FROM information_schema.columns WHERE table_name = 'TABLE'",
        "SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'TABLE'",
        "SELECT 'TABLE'::regclass::oid",
        "COPY TABLE TO '/tmp/coload-never.csv'",
        "COPY (SELECT zz FROM TABLE) TO '/tmp/coload-never.csv'",
        "INSERT INTO TABLE VALUES (1)",
        "INSERT INTO TABLE VALUES (1, 2, '2024-01-01')",
        "INSERT INTO TABLE (zz) VALUES (?)",
        "INSERT INTO TABLE (a, zz) SELECT 1, 2",
        "INSERT INTO TABLE VALUES (1) ON CONFLICT (zz) DO NOTHING",
        "INSERT INTO TABLE VALUES (1) ON CONFLICT (zz) DO UPDATE SET b = 1",
        "INSERT INTO TABLE VALUES (1) ON CONFLICT (a) DO UPDATE SET zz = excluded.zz",
        "INSERT INTO TABLE (a, b) VALUES (1, 2) ON CONFLICT (a) DO UPDATE SET b = excluded.b + 1",
        "INSERT INTO TABLE VALUES (1) ON CONFLICT DO UPDATE SET b = 1",
        "INSERT INTO TABLE VALUES (1) ON DUPLICATE KEY UPDATE b = 1",
        "INSERT OR REPLACE INTO TABLE VALUES (1)",
        "INSERT INTO pub SELECT zz FROM TABLE",
        "UPDATE TABLE SET zz = 1",
        "UPDATE TABLE SET b = ? WHERE zz = 1",
        "UPDATE pub SET a = (SELECT zz FROM TABLE)",
        "DELETE FROM TABLE",
        "DELETE FROM TABLE WHERE zz = 1",
        "DELETE FROM pub WHERE a IN (SELECT zz FROM TABLE)",
        "MERGE INTO TABLE USING pub ON TABLE.zz = pub.a WHEN MATCHED THEN DELETE",
        "MERGE INTO TABLE USING pub ON TABLE.a = pub.a WHEN NOT MATCHED THEN INSERT (zz) VALUES (1)",
        "MERGE INTO pub USING TABLE ON TABLE.zz = pub.a WHEN MATCHED THEN DELETE",
        "CREATE TABLE TABLE (a INT)",
        "CREATE TABLE IF NOT EXISTS TABLE (a INT)",
        "CREATE OR REPLACE TABLE TABLE AS SELECT 1 AS a",
        "CREATE VIEW TABLE AS SELECT 1 AS a",
        "CREATE OR REPLACE VIEW TABLE AS SELECT 1 AS a",
        "CREATE VIEW pub AS SELECT zz FROM TABLE",
        "DROP TABLE TABLE",
        "DROP TABLE IF EXISTS TABLE",
        "DROP VIEW TABLE",
        "DROP VIEW IF EXISTS TABLE",
        "TRUNCATE TABLE TABLE",
        "ALTER TABLE TABLE ADD COLUMN zz INT",
        "ALTER TABLE TABLE DROP COLUMN zz",
        "ALTER TABLE IF EXISTS TABLE RENAME COLUMN zz TO y",
        "ALTER TABLE TABLE RENAME TO pub",
        "ALTER TABLE pub RENAME TO TABLE",
    ] {
        let expected = told(template, "nought0");
        for hidden in ["hidden1", "hidden2", "hidden3"] {
            assert_eq!(told(template, hidden), expected, "{template} of {hidden}");
        }
    }
    // Who may read it is told what is wrong, after the right that he lacks.
    let reader = Rights::of("eve", vec!["read:hidden*".parse::<Grant>().unwrap()]);
    let sql = "INSERT INTO hidden1 (a) VALUES (1) ON CONFLICT (zz) DO UPDATE SET b = 1";
    let plan =
        |rights: &Rights| database.block_on(database.plan(rights, sql, Parameters::default()));
    let refused = plan(&reader).unwrap_err();
    assert!(matches!(&refused, Error::Refused(t) if t.contains("admin")), "{refused}");
    let wrong = plan(&Rights::all()).unwrap_err().to_string();
    assert!(wrong.contains("ON CONFLICT: no field named zz; there is a, b, d"), "{wrong}");
}

/// Any text of a user who may only read ends in an answer or an error, and changes nothing.
#[test]
fn any_text_ends_in_an_answer_or_an_error() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE pub (a INT, \"From\" TEXT, d DATE)").unwrap();
    database.query("INSERT INTO pub VALUES (1, 'x', '2024-01-01'), (2, NULL, NULL)").unwrap();
    let before = files(scratch.dir.path());
    let rights = Rights::of("rob", vec!["read:pub".parse::<Grant>().unwrap()]);
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % n as u64) as usize
    };
    for _ in 0..1_500 {
        let text = statement(&mut draw);
        let _ = database.block_on(async {
            let planned = database.plan(&rights, &text, Parameters::default()).await?;
            let mut answer = planned.run(database).await?;
            for _ in 0..3 {
                if answer.next().await?.is_none() {
                    break;
                }
            }
            Ok::<_, Error>(())
        });
    }
    assert_eq!(files(scratch.dir.path()), before);
    assert!(!Path::new("/tmp/coload-fuzz-never").exists());
}
