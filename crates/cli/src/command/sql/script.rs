//! Statements of a text one after the other, and commands with a backslash between them.

use std::path::Path;

use coload::Error;
use coload_serve::split_statements;

use super::commands::{self, Next};
use super::session::Session;
use crate::output::{Done, Failure};

/// Scripts that may run one another.
const DEPTH_MAX: usize = 16;

/// Runs the statements of a file, `-` for standard input.
///
/// # Errors
/// As [`run`]; `Failed` when the file cannot be read.
pub fn run_file(session: &mut Session, file: &Path) -> Done<Next> {
    let text = super::read(file)?;
    let name = match file == Path::new("-") {
        true => "standard input".to_owned(),
        false => file.display().to_string(),
    };
    if session.depth >= DEPTH_MAX {
        let deep = format!("{name}: more than {DEPTH_MAX} scripts run one another with \\i");
        return Err(Error::Limit(deep).into());
    }
    session.depth += 1;
    let done = run(session, &text, Some(&name));
    session.depth -= 1;
    done
}

/// Runs the statements of a text; the last may lack its semicolon.
///
/// # Errors
/// `Failed` at the first statement that fails, with its place if the text has a name.
pub fn run(session: &mut Session, text: &str, name: Option<&str>) -> Done<Next> {
    let found = split_statements(text);
    let rest = (!found.rest.is_empty()).then_some(&found.rest);
    let mut number = 0;
    for (statement, line) in found.complete.iter().chain(rest).zip(&found.lines) {
        let (mut statement, mut line) = (statement.as_str(), *line);
        loop {
            let placed = |failure| place(failure, name, line, number + 1);
            if !statement.starts_with('\\') {
                break;
            }
            let (command, behind) = statement.split_once('\n').unwrap_or((statement, ""));
            if commands::run(session, command.trim()).map_err(placed)? == Next::Leave {
                return Ok(Next::Leave);
            }
            let rest = behind.trim_start();
            line += 1 + behind[..behind.len() - rest.len()].matches('\n').count();
            statement = rest;
        }
        if statement.is_empty() {
            continue;
        }
        number += 1;
        session.answer(statement).map_err(|failure| place(failure, name, line, number))?;
    }
    Ok(Next::Stay)
}

/// Says which statement of a script failed, and where it stands.
fn place(failure: Failure, name: Option<&str>, line: usize, number: usize) -> Failure {
    match (failure, name) {
        (Failure::Failed(error), Some(name)) => {
            let text = format!("{name}:{line}: statement {number}: {error}");
            Failure::Failed(Error::Invalid(text))
        }
        (other, _) => other,
    }
}
