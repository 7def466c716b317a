//! Libraries and drivers of others, at pinned versions.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the drivers at pinned versions; installs them the first time.
pub fn drivers() -> PathBuf {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drivers");
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers/setup.sh");
    let status = Command::new(&setup).arg(&folder).status().unwrap();
    assert!(status.success(), "{} failed (it needs python3 with venv, and PyPI)", setup.display());
    folder
}

/// A program in Python of `tests/drivers`.
pub fn python(name: &str) -> Command {
    let mut command = Command::new(drivers().join("bin/python"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers").join(name));
    command
}

/// Runs a program that ends with a count of checks.
#[track_caller]
pub fn passes(program: &mut Command) {
    let output = program.output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && out.ends_with(" checks\n"), "{out}\n{err}");
}
