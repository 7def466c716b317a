//! Views: who may read them, and what they read.

use coload_serve::{Grant, Parameters, Rights};
use coload_types::{Error, Result};

use crate::support::Scratch;

fn rights(grants: &[&str]) -> Rights {
    Rights::of("ada", grants.iter().map(|grant| grant.parse::<Grant>().unwrap()).collect())
}

/// Runs a statement of a caller; the number of rows that it answers.
fn run(scratch: &Scratch, rights: &Rights, sql: &str) -> Result<usize> {
    let database = &scratch.database;
    database.block_on(async {
        let planned = database.plan(rights, sql, Parameters::default()).await?;
        let batches = planned.run(database).await?.collect().await?;
        Ok(batches.iter().map(|batch| batch.num_rows()).sum())
    })
}

fn refused(scratch: &Scratch, rights: &Rights, sql: &str) {
    let error = run(scratch, rights, sql).unwrap_err();
    assert!(matches!(error, Error::Refused(_) | Error::Invalid(_)), "{sql}: {error:?}");
}

#[test]
fn a_view_gives_no_right_to_what_it_reads() {
    let scratch = Scratch::new();
    let owner = Rights::all();
    for sql in [
        "CREATE TABLE secret (a INTEGER)",
        "INSERT INTO secret VALUES (1), (2)",
        "CREATE VIEW shown AS SELECT a FROM secret",
    ] {
        run(&scratch, &owner, sql).unwrap();
    }
    assert_eq!(run(&scratch, &rights(&["read:*"]), "SELECT * FROM shown").unwrap(), 2);
    let both = rights(&["read:shown", "read:secret"]);
    assert_eq!(run(&scratch, &both, "SELECT * FROM shown").unwrap(), 2);
    // The view without the table, and the table without the view.
    refused(&scratch, &rights(&["read:shown"]), "SELECT * FROM shown");
    refused(&scratch, &rights(&["read:secret"]), "SELECT * FROM shown");
    refused(&scratch, &rights(&["read:secret"]), "SHOW CREATE VIEW shown");
    let seen = "SELECT * FROM information_schema.tables WHERE table_name = 'shown'";
    assert_eq!(run(&scratch, &rights(&["read:secret"]), seen).unwrap(), 0);
    assert_eq!(run(&scratch, &both, seen).unwrap(), 1);
    let own = rights(&["load:ada_*", "read:secret"]);
    run(&scratch, &own, "CREATE VIEW ada_v AS SELECT a FROM secret").unwrap();
    refused(&scratch, &own, "CREATE VIEW other AS SELECT a FROM secret");
    refused(&scratch, &own, "CREATE OR REPLACE VIEW ada_v AS SELECT 1 AS a");
    refused(&scratch, &own, "DROP VIEW ada_v");
    refused(&scratch, &own, "DROP VIEW shown");
    run(&scratch, &rights(&["admin:ada_*"]), "DROP VIEW ada_v").unwrap();
}

#[test]
fn files_of_a_view_are_those_of_who_asks() {
    let scratch = Scratch::new();
    // This database reads no files: nothing is looked at.
    let made = "CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '/etc/passwd' OPTIONS ('format.delimiter' ':')";
    let error = run(&scratch, &Rights::all(), made).unwrap_err().to_string();
    assert!(error.contains("read_csv('/etc/passwd', delimiter => ':')"), "{error}");
}
