//! The guides of the documentation, run as a reader would: all commands of a page in one shell, and what the page says they print.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::support::Sandbox;

/// A block of commands, and the block of text right behind it, if there is one.
struct Step {
    commands: String,
    printed: Option<String>,
}

#[test]
fn guides_do_what_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let pages: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(pages.len() >= 4, "{pages:?}");
    for page in pages {
        follow(&page);
    }
}

fn follow(page: &Path) {
    let text = fs::read_to_string(page).unwrap().replace("8470", &free_port().to_string());
    let steps = steps_of(&text);
    assert!(!steps.is_empty(), "{page:?}");
    let sandbox = Sandbox::new();
    let mut script = "set -eu\n".to_owned();
    for (at, step) in steps.iter().enumerate() {
        script += &format!("{{\n{}\n}} > out.{at} 2> err.{at}\n", step.commands);
    }
    let program = Path::new(env!("CARGO_BIN_EXE_coload"));
    let path = format!("{}:{}", program.parent().unwrap().display(), env::var("PATH").unwrap());
    let status = Command::new("bash")
        .args(["-c", &script])
        .current_dir(sandbox.path("."))
        .env("PATH", path)
        .env("HOME", sandbox.path("."))
        .env_remove("COLOAD_STORE")
        .stdin(Stdio::null())
        // A server that a page starts must not outlive a step that fails.
        .process_group(0)
        .spawn()
        .and_then(|mut shell| {
            let group = Pid::from_child(&shell);
            let status = shell.wait();
            // None is left if all went well.
            let _ = kill_process_group(group, Signal::KILL);
            status
        })
        .unwrap();
    let read = |name: String| fs::read_to_string(sandbox.path(&name)).unwrap_or_default();
    for (at, step) in steps.iter().enumerate() {
        let out = read(format!("out.{at}"));
        let told =
            format!("{page:?}\n{}\nprinted\n{out}{}", step.commands, read(format!("err.{at}")));
        let is_last = !sandbox.path(&format!("out.{}", at + 1)).exists();
        assert!(!is_last || status.success(), "{told}");
        if let Some(expected) = &step.printed {
            assert!(is_as_said(&out, expected), "{told}\ninstead of\n{expected}");
        }
    }
    assert!(status.success());
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn steps_of(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut rest = text;
    // What stands between a block and the one before it.
    while let Some((between, after)) = rest.split_once("```") {
        let (kind, block) = after.split_once('\n').unwrap();
        let (block, after) = block.split_once("```").unwrap();
        match kind {
            "sh" => steps.push(Step { commands: block.to_owned(), printed: None }),
            "text" if between.trim().is_empty() => {
                steps.last_mut().unwrap().printed = Some(block.to_owned());
            }
            _ => {}
        }
        rest = after;
    }
    steps
}

/// Whether a text is the expected one, in which a line `...` stands for any lines.
fn is_as_said(text: &str, expected: &str) -> bool {
    match expected.strip_prefix("...\n") {
        Some(end) => text.ends_with(end),
        None => text == expected,
    }
}
