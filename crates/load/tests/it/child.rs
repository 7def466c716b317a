//! Loads in a process of its own, to be killed: the test binary starts itself with the name of the one
//! test below and says in `COLOAD_CHILD` what to do.
//!
//! A load holds [`ROWS`] rows that say whose they are: process, number of the load, number of the row.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use coload_source::{Dialect, expand_inputs};
use coload_store::Store;
use coload_types::{Result, Value};

use crate::model::Row;
use crate::support::{Options, load, merged, rows, schema};

/// Rows of each load.
pub const ROWS: i64 = 200;

/// Starts a child: `task` is a word below and its arguments.
pub fn start(dir: &Path, task: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child::run", "--nocapture", "--quiet"]);
    command.env("COLOAD_CHILD", task).env("COLOAD_CHILD_DIR", dir);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The lines that a child says, as they come.
pub fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(std::result::Result::ok).filter(|l| !l.is_empty() && l != "running 1 test")
}

/// What each published load is known by: its process and number.
pub type LoadKey = (i64, i64);

/// The loads that a child said are published.
pub fn published(lines: impl Iterator<Item = String>) -> Vec<LoadKey> {
    let key = |line: String| {
        let (process, number) = line.strip_prefix("published ")?.split_once(' ')?;
        Some((process.parse().ok()?, number.parse().ok()?))
    };
    lines.filter_map(key).collect()
}

fn say(text: &str) {
    // One write, so that a killed child leaves whole lines; a parent that is gone ends the child.
    std::io::stdout().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// Not a test: what children do.
#[test]
fn run() {
    let Ok(task) = std::env::var("COLOAD_CHILD") else { return };
    let dir = std::env::var("COLOAD_CHILD_DIR").unwrap();
    let dir = Path::new(&dir);
    let words: Vec<&str> = task.split(' ').collect();
    let outcome = match words[..] {
        ["loads", count] => loads(dir, count.parse().unwrap()),
        ["abort", point, nth, count] => {
            at_hit(point, nth.parse().unwrap(), || std::process::abort());
            loads(dir, count.parse().unwrap())
        }
        ["fail", point, errno, count] => {
            fail::cfg(point, &format!("return({errno})")).unwrap();
            loads(dir, count.parse().unwrap())
        }
        ["sorted", what, space] => crate::spaces::child(dir, what, space),
        _ => panic!("no such task: {task}"),
    };
    match outcome {
        Ok(()) => say("done"),
        Err(e) => say(&format!("failed {e}")),
    }
}

/// Calls `act` when `point` is passed for the `nth` time.
fn at_hit(point: &str, nth: usize, act: impl Fn() + Send + Sync + 'static) {
    let hits = AtomicUsize::new(0);
    fail::cfg_callback(point, move || {
        if hits.fetch_add(1, Ordering::SeqCst) + 1 == nth {
            act();
        }
    })
    .unwrap();
}

/// Loads `count` files one after the other into the store of the directory. Small chunks and little
/// memory make several partitions and segments of each.
fn loads(dir: &Path, count: i64) -> Result<()> {
    let process = i64::from(std::process::id());
    let inputs = std::env::var_os("COLOAD_CHILD_INPUTS").map_or(dir.to_owned(), PathBuf::from);
    let path = inputs.join(format!("in-{process}.csv"));
    say("begun");
    for number in 0..count {
        let line = |row| format!("{process},{number},{row},\"text {}\n\"\n", row % 7);
        std::fs::write(&path, (0..ROWS).map(line).collect::<String>()).unwrap();
        let inputs = expand_inputs(&[path.display().to_string()])?;
        let columns = schema("p BIGINT NOT NULL, n BIGINT NOT NULL, r INTEGER, t VARCHAR");
        let mut options = Options::new(inputs, "t", columns, Dialect::default());
        options.resources.threads = 2;
        options.resources.chunk_bytes = 1_000;
        options.resources.fragments_per_partition = 2;
        options.resources.memory = 4_000;
        // Opened each time: that is when leftovers are removed.
        merged(load(&Store::create_or_open(dir.join("s"))?, &options)?)?;
        say(&format!("published {process} {number}"));
    }
    Ok(())
}

/// Checks that the store opens and holds whole loads only, among them those that are known to be
/// published, and gives all that it holds.
pub fn check(dir: &Path, published: &[LoadKey]) -> Vec<LoadKey> {
    let store = Store::create_or_open(dir.join("s")).unwrap();
    let mut found = Vec::new();
    let rows = rows(&store, "t");
    for load in rows.chunks(ROWS as usize) {
        let key = (int(&load[0], 0), int(&load[0], 1));
        assert_eq!(load.len(), ROWS as usize, "a part of load {key:?}");
        for (number, row) in load.iter().enumerate() {
            let text = format!("text {}\n", number % 7);
            assert_eq!((int(row, 0), int(row, 1), int(row, 2)), (key.0, key.1, number as i64));
            assert_eq!(row[3], Some(Value::Bytes(text.into_bytes().into())));
        }
        found.push(key);
    }
    for key in published {
        assert!(found.contains(key), "load {key:?} was published and is lost");
    }
    let mut distinct = found.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), found.len(), "a load is there twice");
    let snapshot = store.snapshot().unwrap();
    let loads = snapshot.table("t").map_or(0, |t| t.loads_count);
    assert_eq!(loads, found.len() as u64);
    check_no_leftovers(&store);
    found
}

fn int(row: &Row, column: usize) -> i64 {
    match row[column] {
        Some(Value::Int(v)) => v,
        _ => panic!("no number: {row:?}"),
    }
}

/// Checks that the directory holds what the newest version names, and nothing else.
pub fn check_no_leftovers(store: &Store) {
    store.clean().unwrap();
    let count = |name: &str| std::fs::read_dir(store.path().join(name)).unwrap().count();
    let snapshot = store.snapshot().unwrap();
    let segments: usize = snapshot.tables().iter().map(|t| t.segments.len()).sum();
    assert_eq!((count("segments"), count("tmp"), count("manifest")), (segments, 0, 1));
}
