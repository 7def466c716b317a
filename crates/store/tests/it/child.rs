//! What a test runs in a process of its own, to kill it, stop it, or set failpoints in it.
//!
//! The test binary starts itself with the name of the one test below and says in `COLOAD_CHILD` what
//! to do. A child says `published <load id>` after each load that it was told is published.

use std::io::{BufRead, BufReader, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use coload_store::{LoadMode, OnExisting, OnMissing, Store, VerifyOptions, repair};
use coload_types::{Error, Result};

use crate::support::{check_content, load, schema};
use crate::{conflicts, deleted, indexes};

/// User and group that own nothing.
pub const NOBODY: u32 = 65534;

/// Starts a child: `task` is a word below and its arguments.
pub fn start(store: &Path, task: &str) -> Child {
    command_of(&std::env::current_exe().unwrap(), store, task).spawn().unwrap()
}

fn command_of(program: &Path, store: &Path, task: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", "child::run", "--nocapture", "--quiet"]);
    command.env("COLOAD_CHILD", task).env("COLOAD_CHILD_STORE", store);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A child that is run by a user who may not write what others own. `program` is a copy of the test that
/// such a user can reach.
pub fn command_as_nobody(program: &Path, store: &Path, task: &str) -> Command {
    let mut command = command_of(program, store, task);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// A child that another thread has begun to start: it shares every open file, and does not run its program yet.
/// Every child is that for a moment; this one until it is dropped.
pub struct HalfStarted {
    go_on: PipeWriter,
    starter: Option<JoinHandle<()>>,
}

impl HalfStarted {
    pub fn begin() -> Self {
        let (mut ready, mut say_ready) = std::io::pipe().unwrap();
        let (mut wait, go_on) = std::io::pipe().unwrap();
        let mut program = Command::new("true");
        let stand = move || {
            say_ready.write_all(b"r")?;
            wait.read_exact(&mut [0])
        };
        // SAFETY: reads and writes of pipes, as is allowed between fork and exec.
        unsafe { program.pre_exec(stand) };
        let starter = std::thread::spawn(move || assert!(program.status().unwrap().success()));
        ready.read_exact(&mut [0]).unwrap();
        HalfStarted { go_on, starter: Some(starter) }
    }
}

impl Drop for HalfStarted {
    fn drop(&mut self) {
        self.go_on.write_all(b"g").unwrap();
        self.starter.take().unwrap().join().unwrap();
    }
}

/// The lines that a child says, as they come.
pub fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let out: BufReader<ChildStdout> = BufReader::new(child.stdout.take().unwrap());
    // The test harness writes a line of its own before and after.
    out.lines()
        .map_while(std::result::Result::ok)
        .filter(|l| !l.is_empty() && l != "running 1 test")
}

/// The ids of the loads that a child said are published.
pub fn published(lines: impl Iterator<Item = String>) -> Vec<String> {
    lines.filter_map(|l| l.strip_prefix("published ").map(str::to_owned)).collect()
}

pub fn say(text: &str) {
    // One write, so that a killed child leaves whole lines; a parent that is gone ends the child.
    std::io::stdout().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// Not a test: what children do.
#[test]
fn run() {
    let Ok(task) = std::env::var("COLOAD_CHILD") else { return };
    let path = std::env::var("COLOAD_CHILD_STORE").unwrap();
    let path = Path::new(&path);
    let words: Vec<&str> = task.split(' ').collect();
    let outcome = match words[..] {
        ["loads", table, count] => loads(path, table, count.parse().unwrap()),
        ["churn"] => churn(path),
        ["change", rounds] => deleted::change(path, rounds.parse().unwrap()),
        ["upsert", rounds] => conflicts::upsert(path, rounds.parse().unwrap()),
        ["upsert", rounds, point, nth] => {
            at_hit(point, nth.parse().unwrap(), || std::process::abort());
            conflicts::upsert(path, rounds.parse().unwrap())
        }
        ["index", point, nth] => {
            at_hit(point, nth.parse().unwrap(), || std::process::abort());
            indexes::scenario(path)
        }
        ["change", rounds, point, nth] => {
            at_hit(point, nth.parse().unwrap(), || std::process::abort());
            deleted::change(path, rounds.parse().unwrap())
        }
        ["abort", point, nth] => {
            at_hit(point, nth.parse().unwrap(), || std::process::abort());
            scenario(path)
        }
        ["repair", point, nth] => {
            at_hit(point, nth.parse().unwrap(), || std::process::abort());
            let options = VerifyOptions { threads: 1, progress: None };
            repair(path, &options, None).map(drop)
        }
        ["stop", point] => {
            at_hit(point, 1, stand_still);
            loads(path, "t", 1)
        }
        ["fail", point, errno] => {
            fail::cfg(point, &format!("return({errno})")).unwrap();
            scenario(path)
        }
        ["stop-reading"] => stop_reading(path),
        ["read"] => Store::open(path).and_then(|s| s.snapshot()).map(|s| {
            say(&format!("version {} tables {}", s.version(), s.tables().len()));
        }),
        _ => panic!("no such task: {task}"),
    };
    match outcome {
        Ok(()) => say("done"),
        Err(e) => say(&format!("failed {} {e}", kind(&e))),
    }
}

fn kind(error: &Error) -> &'static str {
    match error {
        Error::Invalid(_) => "Invalid",
        Error::Unavailable(_) => "Unavailable",
        Error::Corrupt(_) => "Corrupt",
        _ => "other",
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

/// Until the parent closes the input.
fn stand_still() {
    say("stopped");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Stands still between the listing and the lock, then checks that what it got can be read.
fn stop_reading(path: &Path) -> Result<()> {
    let store = Store::open(path)?;
    at_hit("store::snapshot::lock", 1, stand_still);
    let snapshot = store.snapshot()?;
    check_content(&store);
    let segments = snapshot.tables().iter().flat_map(|t| &t.segments);
    assert!(segments.map(|s| snapshot.segment_path(s)).all(|p| p.exists()));
    say(&format!("version {}", snapshot.version()));
    Ok(())
}

fn loads(path: &Path, table: &str, count: u32) -> Result<()> {
    let store = Store::create_or_open(path)?;
    for _ in 0..count {
        say(&format!("published {}", load(&store, table, LoadMode::Append)?));
    }
    Ok(())
}

/// Loads without end, and everything else that changes a store.
fn churn(path: &Path) -> Result<()> {
    say("begun");
    for round in 1u64.. {
        // Opened each time: that is when leftovers are removed.
        let store = Store::create_or_open(path)?;
        say(&format!("published {}", load(&store, "t", LoadMode::Append)?));
        load(&store, "replaced", LoadMode::Replace)?;
        match round % 8 {
            1 => drop(store.create_table("made", &schema(), OnExisting::Keep)?),
            3 => drop(store.truncate_table("t")?),
            5 => drop(store.drop_table("made", OnMissing::Ignore)?),
            _ => {}
        }
    }
    Ok(())
}

/// Passes every failpoint: creation, three loads (the last replaces, so that there is something to
/// clean), and the leftovers of a load that died.
fn scenario(path: &Path) -> Result<()> {
    loads(path, "t", 1)?;
    let dead = path.join("tmp").join("0".repeat(32));
    std::fs::create_dir_all(&dead).unwrap();
    std::fs::write(dead.join("half.seg"), b"half").unwrap();
    loads(path, "t", 1)?;
    let store = Store::open(path)?;
    say(&format!("published {}", load(&store, "t", LoadMode::Replace)?));
    store.clean().map(drop)
}
