//! The commit that `coload --version` names.
//!
//! Packages say it by a variable. Otherwise a build with optimisation asks git, where the sources are its work tree; quick builds do
//! not, so that a commit does not make a developer build again.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=COLOAD_COMMIT");
    let given = env::var("COLOAD_COMMIT").ok().filter(|commit| !commit.is_empty());
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = given.or_else(|| if is_release { of_git() } else { None });
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=COLOAD_VERSION={version}");
}

/// The short id of the commit and its day, if this package is a file of a work tree of git.
fn of_git() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        println!("cargo::rerun-if-changed={path}");
    }
    git(&["log", "-1", "--format=%h %cs", "--abbrev=12"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
