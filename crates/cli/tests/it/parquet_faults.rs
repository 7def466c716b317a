//! Loads into Parquet files that are killed, meet a full disk, or each other: readers find whole files only, and the next
//! load clears what is left.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::memory::{MEMORY, PEAK_KIB_MAX, long_values, mix};
use crate::parquet::{files, load, names};
use crate::support::{COLUMNS, Sandbox, rows};

/// Kills in one run of the test.
const KILLS: u64 = 60;

fn spawn(sandbox: &Sandbox, flags: &[&str]) -> Child {
    sandbox
        .command(&[
            "load",
            "more.csv",
            "--into",
            "parquet:out",
            "--columns",
            COLUMNS,
            "--no-header",
        ])
        .args(["--chunk-size", "65536", "--fragments-per-partition", "2"])
        .args(flags)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Numbers that look random, from a seed (xorshift).
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn a_load_that_is_killed_leaves_no_part_of_a_file() {
    let given = std::env::var("COLOAD_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut seed = given.unwrap_or(now.as_nanos() as u64) | 1;
    println!("COLOAD_SEED={seed}");
    let sandbox = Sandbox::new();
    sandbox.write("more.csv", rows(0, 60_000));
    let started = Instant::now();
    assert!(spawn(&sandbox, &[]).wait().unwrap().success());
    let longest = started.elapsed().as_micros() as u64 * 5 / 4;
    // The bytes depend on the input only: each file that is there is this one.
    let whole = files(&sandbox, "out").into_values().next().unwrap();
    let mut loads = 1;
    let mut left = 0;
    // The last that replaces was cut, perhaps between its names and its removals, which the next load finishes.
    let mut is_cut = false;
    for kill in 0..KILLS {
        // Those that replace remove what is there as their last step.
        let replaces = kill % 3 == 2;
        let mut child = spawn(&sandbox, if replaces { &["--replace"] } else { &[] });
        std::thread::sleep(Duration::from_micros(random(&mut seed) % longest));
        child.kill().unwrap();
        let ended_before = child.wait().unwrap().success();
        let found = files(&sandbox, "out");
        assert!(found.values().all(|bytes| *bytes == whole), "kill {kill}: a part of a file");
        let expected = match replaces || is_cut {
            // Any time between its names and the removal of the last of those before.
            true => 1..=loads + 1,
            false => loads..=loads + 1,
        };
        assert!(
            expected.contains(&found.len()),
            "kill {kill}: {loads} files, then {}",
            found.len()
        );
        let whole_load = match (replaces, is_cut) {
            (true, _) => 1..=1,
            (false, true) => 2..=loads + 1,
            (false, false) => loads + 1..=loads + 1,
        };
        assert!(!ended_before || whole_load.contains(&found.len()));
        is_cut = !ended_before && (replaces || is_cut);
        left += usize::from(names(&sandbox, "out").len() > found.len());
        loads = found.len();
    }
    println!("{left} of {KILLS} loads left something behind");
    assert!(left > 0, "no load was killed on its way");
    assert!(spawn(&sandbox, &["--replace"]).wait().unwrap().success());
    let names = names(&sandbox, "out");
    assert!(names.len() == 1 && names[0].ends_with(".parquet"), "{names:?} is left");
}

/// Waits until the load writes.
fn wait_for_work(sandbox: &Sandbox) {
    let started = Instant::now();
    while !names(sandbox, "out").iter().any(|name| name.starts_with("_coload-")) {
        assert!(started.elapsed() < Duration::from_secs(60), "the load does not begin");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A load from standard input, which stays open.
fn waiting_load(sandbox: &Sandbox) -> Child {
    let mut child = sandbox
        .command(&["load", "-", "--into", "parquet:out", "--columns", COLUMNS, "--no-header"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let stdin = child.stdin.as_mut().unwrap();
    std::io::Write::write_all(stdin, rows(1000, 60_000).as_bytes()).unwrap();
    wait_for_work(sandbox);
    child
}

#[test]
fn ctrl_c_leaves_the_folder_as_it_was() {
    let sandbox = Sandbox::new();
    sandbox.write("more.csv", rows(0, 100));
    for is_there in [false, true] {
        let before = names(&sandbox, "out");
        let child = waiting_load(&sandbox);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains("the load was stopped; what was there is as it was"), "{err}");
        assert_eq!(sandbox.path("out").exists(), is_there);
        assert_eq!(names(&sandbox, "out"), before);
        assert!(spawn(&sandbox, &[]).wait().unwrap().success());
    }
}

#[test]
fn a_load_that_lives_is_not_cleared_by_others() {
    let sandbox = Sandbox::new();
    sandbox.write("more.csv", rows(0, 100));
    let mut child = waiting_load(&sandbox);
    for flags in [&[][..], &["--replace"]] {
        assert!(spawn(&sandbox, flags).wait().unwrap().success());
    }
    assert_eq!(names(&sandbox, "out").len(), 2, "the work of the other load, and a file");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let found: BTreeSet<usize> = files(&sandbox, "out").values().map(Vec::len).collect();
    assert_eq!((found.len(), names(&sandbox, "out").len()), (2, 2));
}

#[test]
fn loads_at_once_all_add_their_files() {
    let sandbox = Sandbox::new();
    sandbox.write("more.csv", rows(0, 5000));
    let children: Vec<Child> = (0..6).map(|_| spawn(&sandbox, &[])).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!((files(&sandbox, "out").len(), names(&sandbox, "out").len()), (6, 6));
    // Of those that want none to be there, one is the first.
    let children: Vec<Child> = (0..6)
        .map(|_| {
            let args =
                ["load", "more.csv", "--into", "parquet:one", "--create", "--columns", COLUMNS];
            let mut command = sandbox.command(&args);
            command.arg("--no-header").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let ended: Vec<bool> = children.into_iter().map(|mut c| c.wait().unwrap().success()).collect();
    assert_eq!(ended.iter().filter(|ok| **ok).count(), 1, "{ended:?}");
    assert_eq!(names(&sandbox, "one").len(), 1);
}

#[test]
fn a_full_disk_fails_the_load_and_nothing_else() {
    let sandbox = Sandbox::new();
    sandbox.write("good.csv", rows(1, 100));
    load(&sandbox, "good.csv", "out", &["--no-header"]).ok();
    let before = names(&sandbox, "out");
    let mut text = String::new();
    for row in 0..200_000 {
        text.push_str(&format!("{},1.50,2024-02-01,{:x}\n", mix(row, 1), mix(row, 2) & 0xfff_ffff));
    }
    sandbox.write("big.csv", text);
    // A limit on the size of files stands for the full disk.
    let binary = env!("CARGO_BIN_EXE_coload");
    for folder in ["out", "new"] {
        let script = format!(
            "trap '' XFSZ; ulimit -f 200; exec '{binary}' load big.csv --into parquet:{folder} --columns '{COLUMNS}' \
             --no-header"
        );
        let mut bash = std::process::Command::new("bash");
        let output = bash.args(["-c", &script]).current_dir(sandbox.path(".")).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains("cannot write") && err.contains("too large"), "{err}");
        assert!(err.contains("000000.unfinished"), "{err}");
    }
    assert_eq!(names(&sandbox, "out"), before);
    assert!(!sandbox.path("new").exists());
}

#[test]
fn memory_is_bounded() {
    let sandbox = Sandbox::new();
    let mut text = String::new();
    for row in 0..400_000 {
        text.push_str(&format!(
            "{row},{},x{:x},{}\n",
            row % 7,
            mix(row, 1),
            mix(row / 3, 2) % 1000
        ));
    }
    sandbox.write("many.csv", text);
    sandbox.write("long.csv", long_values(60, 1 << 20, "\n"));
    for file in ["many.csv", "long.csv"] {
        let mut made = Vec::new();
        for threads in ["1", "4"] {
            let args = ["load", file, "--into", "parquet:out", "--replace", "--report", "json"];
            let more = ["--no-header", "--memory", MEMORY, "--threads", threads];
            let run = sandbox.run(&[&args[..], &more].concat()).ok();
            let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
            let peak = report["peak_memory_bytes"].as_u64().unwrap() >> 10;
            assert!(peak < PEAK_KIB_MAX, "{file}, {threads} threads: {peak} KiB");
            made.push(files(&sandbox, "out").into_values().collect::<Vec<_>>());
        }
        assert!(made[0] == made[1], "{file}: the bytes depend on the threads");
    }
    // Of a process that ended there is nothing to clear.
    assert!(fs::read_dir(sandbox.path("out")).unwrap().count() == 1);
}
