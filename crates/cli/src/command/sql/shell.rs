//! The interactive shell: statements over several lines, a history, and commands with a backslash.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use coload::Error;
use coload_serve::output::OutputFormat;
use coload_serve::split_statements;
use console::Term;

use super::editor::{Typed, read_line};
use super::{Target, run_one};
use crate::output::{Done, Failure, print, say};

/// Lines of history that are kept.
const HISTORY_LINES_MAX: usize = 1_000;
const PROMPT: &str = "coload> ";
const PROMPT_MORE: &str = "   ...> ";
const HELP: &str = r"A statement ends with a semicolon and may take several lines.
  \d         tables
  \d TABLE   columns of a table
  \?         this help
  \q         leave (or Ctrl-D)
Arrow keys bring back lines; Ctrl-C drops the statement being typed.
";

/// Talks until the person leaves. A statement that fails does not end the shell.
///
/// # Errors
/// When the terminal goes away.
pub fn run(target: &mut Target, format: OutputFormat) -> Done {
    let term = Term::stdout();
    let mut history = History::open();
    print(&format!("{}; \\? for help\n", target.name()))?;
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { PROMPT } else { PROMPT_MORE };
        let typed = read_line(&term, prompt, &history.lines)
            .map_err(|e| Error::Unavailable(format!("cannot read from the terminal: {e}")))?;
        let line = match typed {
            Typed::End => return Ok(()),
            Typed::Dropped => {
                text.clear();
                continue;
            }
            Typed::Line(line) => line,
        };
        history.add(&line);
        if text.is_empty() && line.trim_start().starts_with('\\') {
            match backslash(target, line.trim()) {
                Ok(Next::Leave) => return Ok(()),
                Ok(Next::Stay) => {}
                Err(failure) => tell(failure)?,
            }
            continue;
        }
        text.push_str(&line);
        text.push('\n');
        text = run_complete(target, &text, format)?;
    }
}

/// Runs the statements that are complete; gives the rest back.
fn run_complete(target: &mut Target, text: &str, format: OutputFormat) -> Done<String> {
    let found = split_statements(text);
    for statement in &found.complete {
        let started = Instant::now();
        match run_one(target, statement, format) {
            Ok(()) => print(&format!("{:.3} s\n", started.elapsed().as_secs_f64()))?,
            Err(failure) => tell(failure)?,
        }
    }
    let rest = if found.rest.is_empty() { String::new() } else { found.rest + "\n" };
    Ok(rest)
}

/// Tells a failure of a statement; one of the terminal ends the shell.
fn tell(failure: Failure) -> Done {
    match failure {
        Failure::OutputClosed => Err(failure),
        Failure::Usage(error) | Failure::Failed(error) => {
            say(&format!("error: {error}"));
            Ok(())
        }
    }
}

/// What follows a command with a backslash.
enum Next {
    /// The shell reads the next line.
    Stay,
    /// The shell ends.
    Leave,
}

fn backslash(target: &mut Target, line: &str) -> Done<Next> {
    let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim().trim_end_matches(';').trim_matches('"');
    match (command.trim_end_matches(';'), argument) {
        ("\\q", _) => return Ok(Next::Leave),
        ("\\?", _) => print(HELP)?,
        ("\\d", "") => print(&target.tables()?)?,
        ("\\d", table) => {
            let columns = target.columns(table)?;
            print(&columns)?;
        }
        (other, _) => {
            return Err(Failure::Failed(Error::Invalid(format!(
                "{other} is no command; \\? shows them"
            ))));
        }
    }
    Ok(Next::Stay)
}

/// Lines typed, here and before. A history that cannot be kept is no reason to stop.
struct History {
    lines: Vec<String>,
    path: Option<PathBuf>,
}

impl History {
    /// `$XDG_STATE_HOME/coload/history`, or the like below the home directory.
    fn open() -> Self {
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
        let home = || std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".local/state"));
        let path =
            state.filter(|s| s.is_absolute()).or_else(home).map(|s| s.join("coload/history"));
        let text = path.as_ref().and_then(|p| fs::read_to_string(p).ok()).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let from = lines.len().saturating_sub(HISTORY_LINES_MAX);
        let history = History { lines: lines[from..].to_vec(), path };
        if from > 0 {
            history.rewrite();
        }
        history
    }

    fn add(&mut self, line: &str) {
        if line.trim().is_empty() || self.lines.last().is_some_and(|l| l == line) {
            return;
        }
        self.lines.push(line.to_owned());
        let Some(path) = &self.path else { return };
        if let Some(folder) = path.parent() {
            let _ = fs::create_dir_all(folder);
        }
        if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
            let _ = writeln!(file, "{line}");
        }
    }

    fn rewrite(&self) {
        if let Some(path) = &self.path {
            let _ = fs::write(path, self.lines.join("\n") + "\n");
        }
    }
}
