//! `kill -9` of the real command at random points of a load: all of it is there or nothing, and what
//! was published before stays.

use std::process::Stdio;
use std::time::{Duration, Instant};

use coload::Coload;

use crate::random::{Random, seed};
use crate::support::{COLUMNS, Sandbox, rows};

/// Kills in one run of the test.
const KILLS: u32 = 100;
/// Rows of each load.
const ROWS: u64 = 20_000;

fn spawn(sandbox: &Sandbox) -> std::process::Child {
    sandbox
        .command(&["load", "more.csv", "--into", "store", "--table", "t", "--columns", COLUMNS])
        .args(["--no-header", "--chunk-size", "100000", "--fragments-per-partition", "4"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_load_that_is_killed_shows_all_or_nothing() {
    let seed = seed();
    println!("COLOAD_SEED={seed}");
    let mut random = Random(seed);
    let sandbox = Sandbox::new();
    sandbox.write("more.csv", rows(0, ROWS));
    let started = Instant::now();
    assert!(spawn(&sandbox).wait().unwrap().success());
    // Somewhat longer than a whole load, so that some are killed at their very end, or after it.
    let longest = started.elapsed().as_micros() as u64 * 5 / 4;
    let mut loads = 1;
    let mut lost = 0;
    for kill in 0..KILLS {
        let mut child = spawn(&sandbox);
        std::thread::sleep(Duration::from_micros(random.below(longest)));
        child.kill().unwrap();
        let ended_before = child.wait().unwrap().success();
        let shown = loads_shown(&sandbox, kill);
        assert!(shown == loads || shown == loads + 1, "kill {kill}: {loads} loads, then {shown}");
        assert!(!ended_before || shown == loads + 1, "kill {kill}: a load that succeeded is gone");
        lost += u32::from(shown == loads);
        loads = shown;
    }
    println!("{lost} of {KILLS} loads were killed before they were published");
    // After the last opening nothing is left of the dead.
    let leftovers = crate::support::files_below(&sandbox.path("store/tmp"));
    assert_eq!(leftovers, Vec::<std::path::PathBuf>::new());
}

/// How many loads the table has; each must be whole.
fn loads_shown(sandbox: &Sandbox, kill: u32) -> u64 {
    let store = Coload::open(sandbox.path("store")).unwrap();
    let snapshot = store.snapshot().unwrap();
    let table = snapshot.require_table("t").unwrap();
    assert_eq!(table.rows() % ROWS, 0, "kill {kill}: part of a load is visible");
    let loads = table.rows() / ROWS;
    assert_eq!(loads, table.loads_count, "kill {kill}");
    for segment in &table.segments {
        let open = snapshot.segment(table, segment).unwrap();
        for column in 0..open.column_count() {
            for page in 0..open.page_rows().len() {
                open.page_bytes(column, page).unwrap();
            }
        }
    }
    loads
}

/// Rows of the table that is changed.
const CHANGED: u64 = 3_000;

#[test]
fn updates_that_are_killed_change_all_their_rows_or_none() {
    let seed = seed();
    println!("COLOAD_SEED={seed}");
    let mut random = Random(seed);
    let sandbox = Sandbox::new();
    let sql = |text: &str| {
        let out =
            sandbox.command(&["sql", "--store", "store", "--output", "csv", "-c", text]).output();
        let out = out.unwrap();
        assert!(out.status.success(), "{text}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    sandbox.write("k.csv", (0..CHANGED).map(|k| format!("{k},0\n")).collect::<String>());
    let load = ["load", "k.csv", "--into", "store", "--table", "t", "--no-header", "--columns"];
    assert!(sandbox.command(&load).arg("k BIGINT, n BIGINT").status().unwrap().success());
    // Each adds 1 to each row, the rows of a third at a time.
    let script: String =
        (0..300).map(|i| format!("UPDATE t SET n = n + 1 WHERE k % 3 = {};\n", i % 3)).collect();
    sandbox.write("script.sql", script);
    let mut before = 0;
    for kill in 0..25 {
        let mut child = sandbox
            .command(&["sql", "--store", "store", "-f", "script.sql"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(200_000 + random.below(1_500_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let text = sql(
            "SELECT count(*), count(DISTINCT k), count(DISTINCT k % 3 * 100000 + n), sum(n) FROM t",
        );
        let values: Vec<u64> =
            text.lines().last().unwrap().split(',').map(|v| v.parse().unwrap()).collect();
        // Rows of a third were all changed as often.
        assert_eq!(values[..3], [CHANGED, CHANGED, 3], "kill {kill}: {text}");
        assert!(values[3] >= before, "kill {kill}: a change is lost");
        before = values[3];
    }
    assert!(before > 0, "killed too early");
    assert!(sandbox.command(&["verify", "store"]).status().unwrap().success());
    let leftovers = crate::support::files_below(&sandbox.path("store/tmp"));
    assert_eq!(leftovers, Vec::<std::path::PathBuf>::new());
}
