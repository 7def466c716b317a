//! The interactive shell: statements over several lines, a history, and commands with a backslash.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use coload::Error;
use coload_serve::split_statements;

use super::commands::{self, Next};
use super::editor::{Editor, Typed};
use super::session::Session;
use super::words::{Sql, TableNames};
use crate::output::{Done, Failure, print, say};

/// Lines of history that are kept.
const HISTORY_LINES_MAX: usize = 10_000;
/// How long names of tables are taken for those there are.
const NAMES_AGE_MAX: Duration = Duration::from_secs(5);
const PROMPT: &str = "coload> ";
const PROMPT_MORE: &str = "   ...> ";

/// Talks until the person leaves. A statement that fails does not end the shell.
///
/// # Errors
/// When the terminal goes away, or the file that answers went into cannot be finished.
pub fn run(session: &mut Session) -> Done {
    let mut history = History::open();
    let mut editor = Editor::new();
    let mut names = KnownNames::default();
    session.settings.timing.get_or_insert(true);
    print(&format!("{}; help helps\n", session.target.name()))?;
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { PROMPT } else { PROMPT_MORE };
        let typed = {
            let mut known = || names.get(session);
            let mut language =
                Sql { before: &text, names: &mut known, has_colours: console::colors_enabled() };
            editor.read_line(prompt, &history.lines, &mut language)
        };
        let line = match typed
            .map_err(|e| Error::Unavailable(format!("cannot read from the terminal: {e}")))?
        {
            Typed::End => return session.finish(),
            Typed::Dropped => {
                text.clear();
                continue;
            }
            Typed::Line(line) => line,
        };
        history.add(&line);
        let command = match text.is_empty() {
            true if line.trim_start().starts_with('\\') => Some(line.trim()),
            true => commands::of_word(&line),
            false => None,
        };
        if let Some(command) = command {
            match commands::run(session, command) {
                Ok(Next::Leave) => return session.finish(),
                Ok(Next::Stay) => {}
                Err(failure) => tell(failure)?,
            }
            continue;
        }
        text.push_str(&line);
        text.push('\n');
        text = run_complete(session, &text)?;
    }
}

/// Runs the statements that are complete; gives the rest back.
fn run_complete(session: &mut Session, text: &str) -> Done<String> {
    let found = split_statements(text);
    for statement in &found.complete {
        if let Err(failure) = session.answer(statement) {
            tell(failure)?;
        }
    }
    let rest = if found.rest.is_empty() { String::new() } else { found.rest + "\n" };
    Ok(rest)
}

/// Tells a failure of a statement; one of the terminal ends the shell.
fn tell(failure: Failure) -> Done {
    match failure {
        Failure::OutputClosed => Err(failure),
        Failure::Interrupted => {
            say("cancelled");
            Ok(())
        }
        Failure::Usage(error) | Failure::Failed(error) => {
            say(&format!("error: {error}"));
            Ok(())
        }
    }
}

/// Names of tables, looked up again when they are old. Those of a store that cannot be asked are none.
#[derive(Default)]
struct KnownNames {
    names: TableNames,
    looked_up: Option<Instant>,
}

impl KnownNames {
    fn get(&mut self, session: &mut Session) -> TableNames {
        if self.looked_up.is_none_or(|at| at.elapsed() > NAMES_AGE_MAX) {
            self.names = session.target.names().unwrap_or_default();
            self.looked_up = Some(Instant::now());
        }
        self.names.clone()
    }
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
