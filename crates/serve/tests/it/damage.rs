//! Segments that break while statements read them.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use crate::support::Scratch;

/// The segments of the only table.
fn segments(scratch: &Scratch) -> Vec<PathBuf> {
    let dir = scratch.dir.path().join("store/segments");
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn cut(paths: &[PathBuf], bytes: u64) {
    for path in paths {
        OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
    }
}

/// Symptom: the server ended with SIGBUS, with all its statements. Cause: a read of a map behind the end of its file.
#[test]
fn a_statement_whose_segments_are_cut_fails_and_others_do_not() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    let make = "CREATE TABLE t AS SELECT (value * 7919) % 1000003 AS a, (value * 31) % 977 AS k, 'x' || \
                ((value * 7919) % 1000003)::VARCHAR AS s FROM range(400000)";
    database.query(make).unwrap();
    let files = segments(&scratch);
    let good: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    let statements = [
        "SELECT sum(a) FROM t WHERE a > 10",
        "SELECT k, count(*), sum(a) FROM t GROUP BY k ORDER BY k",
        "SELECT count(*) FROM t WHERE s LIKE '%77'",
        "SELECT count(DISTINCT s) FROM t",
        "SELECT a + 1, s FROM t ORDER BY 1, 2 LIMIT 20",
    ];
    for statement in statements {
        for kept in [0, 10_000] {
            let expected = format!("{:?}", database.query(statement).unwrap());
            cut(&files, kept);
            let error = database.query(statement).unwrap_err().to_string();
            assert!(error.contains(".seg"), "{statement}: {error}");
            assert_eq!(database.query("SELECT 1").unwrap().len(), 1);
            for (file, good) in files.iter().zip(&good) {
                fs::write(file, good).unwrap();
            }
            let again = format!("{:?}", database.query(statement).unwrap());
            assert_eq!(again, expected, "a good copy in its place is used at once");
        }
    }
}

#[test]
fn an_answer_that_is_under_way_ends_with_an_error_and_no_wrong_row() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database
        .query("CREATE TABLE t AS SELECT value AS v, value * 2 AS w FROM range(2000000)")
        .unwrap();
    let files = segments(&scratch);
    database.block_on(async {
        let mut answer =
            database.sql("SELECT w - v - v AS zero, v FROM t WHERE v >= 0").await.unwrap();
        let mut rows = answer.next().await.unwrap().unwrap().num_rows();
        cut(&files, 0);
        let ended = loop {
            match answer.next().await {
                Ok(Some(batch)) => rows += batch.num_rows(),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.to_string()),
            }
        };
        let error = ended.unwrap_err();
        assert!(error.contains("cannot be read"), "{error}");
        assert!(rows < 2_000_000);
    });
}
