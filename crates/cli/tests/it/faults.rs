//! The world at fault: permissions, full disks, files that change, interruptions.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::support::{COLUMNS, Run, Sandbox, rows};

/// A sandbox with 100 rows in table `t`, and what its store shows.
fn loaded() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.write("good.csv", rows(1, 100));
    sandbox.load("good.csv", &["--no-header"]).ok();
    let image = sandbox.image();
    (sandbox, image)
}

/// Waits until the load has its work directory, so that it is under way.
fn wait_for_work(sandbox: &Sandbox) {
    let started = Instant::now();
    let tmp = sandbox.path("store/tmp");
    while std::fs::read_dir(&tmp).map_or(0, Iterator::count) == 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "the load does not begin");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn interrupt(sandbox: &Sandbox, signal: Signal) -> Run {
    // Standard input stays open, so the load cannot end by itself.
    let mut child = sandbox
        .command(&["load", "-", "--into", "store", "--table", "t", "--columns", COLUMNS])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let text = rows(1000, 10_000);
        while std::io::Write::write_all(&mut stdin, text.as_bytes()).is_ok() {}
    });
    wait_for_work(sandbox);
    std::thread::sleep(Duration::from_millis(50));
    kill_process(Pid::from_child(&child), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run {
        status: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn ctrl_c_leaves_the_store_as_it_was() {
    let (sandbox, before) = loaded();
    for signal in [Signal::INT, Signal::TERM] {
        interrupt(&sandbox, signal)
            .fails(1, &["the load was stopped", "what was there is as it was"]);
        assert_eq!(sandbox.image(), before);
    }
}

#[test]
fn ctrl_c_ends_a_load_that_waits_for_standard_input() {
    let (sandbox, before) = loaded();
    let mut child = sandbox
        .command(&["load", "-", "--into", "store", "--table", "t", "--columns", COLUMNS])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than the sample, so that the load begins; then silence.
    std::io::Write::write_all(&mut stdin, rows(1000, 60_000).as_bytes()).unwrap();
    wait_for_work(&sandbox);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(stdin);
    assert_eq!(sandbox.image(), before);
}

#[test]
fn files_and_stores_without_permission_are_told() {
    let (sandbox, before) = loaded();
    if geteuid().is_root() {
        // Root may read and write everything; what is tested here does not happen to it.
        return;
    }
    let file = sandbox.write("secret.csv", rows(1, 1));
    let mode = |path: &std::path::Path, bits| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    mode(&file, 0o000);
    sandbox.load("secret.csv", &[]).fails(1, &["cannot open", "secret.csv", "ermission denied"]);
    mode(&file, 0o600);
    mode(&sandbox.path("store/tmp"), 0o500);
    sandbox.load("secret.csv", &[]).fails(1, &["store/tmp", "ermission denied"]);
    mode(&sandbox.path("store/tmp"), 0o700);
    assert_eq!(sandbox.image(), before);
}

#[test]
fn a_store_that_is_none_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 3));
    sandbox.write("full/other.txt", "");
    sandbox.run(&["load", "a.csv", "--into", "full"]).fails(1, &["holds other files"]);
    sandbox.run(&["load", "a.csv", "--into", "a.csv"]).fails(1, &["not a directory"]);
    sandbox.run(&["load", "a.csv", "--into", "no/such/dir"]).fails(1, &["no/such"]);
    sandbox.run(&["sql", "--store", "none", "-c", "SELECT 1"]).fails(1, &["there is no store"]);
    sandbox.run(&["inspect", "none"]).fails(1, &["there is no store"]);
}

#[test]
fn a_full_disk_fails_the_load_and_nothing_else() {
    let (sandbox, before) = loaded();
    sandbox.write("big.csv", rows(1000, 200_000));
    // A limit on the size of files stands for the full disk: the write of the segment fails.
    let binary = env!("CARGO_BIN_EXE_coload");
    let script = format!(
        "trap '' XFSZ; ulimit -f 200; exec '{binary}' load big.csv --into store --table t --columns '{COLUMNS}' \
         --no-header"
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(sandbox.path("."))
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("cannot write") && err.contains("too large"), "{err}");
    assert_eq!(sandbox.image(), before);
}

#[test]
fn a_rejects_file_that_cannot_be_made_fails_the_load() {
    let (sandbox, before) = loaded();
    sandbox.write("a.csv", rows(1, 3));
    let run = sandbox.load("a.csv", &["--rejects", "no/such/rejects.csv"]);
    run.fails(1, &["cannot create", "no/such/rejects.csv"]);
    assert_eq!(sandbox.image(), before);
}

#[test]
fn a_file_that_shrinks_while_it_is_read_fails_the_load() {
    let (sandbox, before) = loaded();
    let text = rows(1000, 2_000_000);
    let path = sandbox.write("shrinks.csv", &text);
    let child = sandbox
        .command(&["load", "shrinks.csv", "--into", "store", "--table", "t", "--columns", COLUMNS])
        // Small chunks, so that little is read ahead of the parser.
        .args(["--no-header", "--threads", "1", "--chunk-size", "1MiB"])
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_work(&sandbox);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(text.len() as u64 / 3).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("shrinks.csv") && err.contains("while it was read"), "{err}");
    assert_eq!(sandbox.image(), before);
}
