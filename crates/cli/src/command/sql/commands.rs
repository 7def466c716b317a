//! Commands of the shell and of scripts: a table of names, each with what it does.

use std::path::Path;
use std::process::Command;

use coload::Error;
use coload_serve::output::OutputFormat;

use super::session::Session;
use super::{describe, script};
use crate::output::{Done, print};

/// What follows a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The next line, or statement.
    Stay,
    /// The end of the shell, or of the scripts.
    Leave,
}

/// A command with a backslash.
pub struct ShellCommand {
    /// Its name, and what may stand behind it.
    pub name: &'static str,
    argument: &'static str,
    about: &'static str,
    run: fn(&mut Session, &str) -> Done<Next>,
}

/// All commands, as help lists them.
pub static COMMANDS: &[ShellCommand] = &[
    ShellCommand { name: "\\dt", argument: "", about: "tables", run: tables },
    ShellCommand {
        name: "\\d",
        argument: "[TABLE]",
        about: "tables, or a table: its columns, key, rows and size",
        run: describe,
    },
    ShellCommand {
        name: "\\x",
        argument: "[on|off]",
        about: "rows as lines of a name and a value",
        run: expanded,
    },
    ShellCommand {
        name: "\\timing",
        argument: "[on|off]",
        about: "the time of each statement",
        run: timing,
    },
    ShellCommand {
        name: "\\pager",
        argument: "[on|off]",
        about: "all rows, by COLOAD_PAGER, PAGER or less",
        run: pager,
    },
    ShellCommand {
        name: "\\maxrows",
        argument: "[N]",
        about: "rows of a table that are shown; 0 for all",
        run: max_rows,
    },
    ShellCommand {
        name: "\\output",
        argument: "[FORM]",
        about: "form of answers, such as csv, json, markdown",
        run: output,
    },
    ShellCommand {
        name: "\\o",
        argument: "[FILE]",
        about: "answers into a file, until \\o without one",
        run: write_to,
    },
    ShellCommand {
        name: "\\i",
        argument: "FILE",
        about: "run the statements of a file",
        run: include,
    },
    ShellCommand {
        name: "\\e",
        argument: "[FILE]",
        about: "edit the last statement, or a file, by EDITOR, and run it",
        run: edit,
    },
    ShellCommand { name: "\\?", argument: "", about: "this help", run: help },
    ShellCommand {
        name: "\\q",
        argument: "",
        about: "leave (also Ctrl-D, exit, quit)",
        run: |_, _| Ok(Next::Leave),
    },
];

/// Runs a line that is a command with its argument.
///
/// # Errors
/// `Failed` when there is no such command, or it fails.
pub fn run(session: &mut Session, line: &str) -> Done<Next> {
    let line = line.trim().trim_end_matches(';');
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(session, argument.trim()),
        None => Err(Error::Invalid(format!("{name} is no command; \\? shows them")).into()),
    }
}

/// A word of a person that is a command without a backslash.
pub fn of_word(line: &str) -> Option<&'static str> {
    match line.trim().trim_end_matches(';').trim_end().to_ascii_lowercase().as_str() {
        "help" => Some("\\?"),
        "exit" | "quit" => Some("\\q"),
        _ => None,
    }
}

fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote)) {
            return inner;
        }
    }
    text
}

fn help(_: &mut Session, _: &str) -> Done<Next> {
    let mut text = String::from("A statement ends with a semicolon and may take several lines.\n");
    for ShellCommand { name, argument, about, .. } in COMMANDS {
        text.push_str(&format!("  {:<18} {about}\n", format!("{name} {argument}")));
    }
    text.push_str(
        "Tab completes names, words of SQL and files; Ctrl-R searches in lines of before; arrows bring them back.\n\
         Ctrl-C drops the statement being typed, and cancels one that runs.\n",
    );
    print(&text)?;
    Ok(Next::Stay)
}

fn tables(session: &mut Session, _: &str) -> Done<Next> {
    print(&session.target.tables()?)?;
    Ok(Next::Stay)
}

fn describe(session: &mut Session, table: &str) -> Done<Next> {
    if table.is_empty() {
        return tables(session, table);
    }
    print(&describe::table(&mut session.target, table)?)?;
    Ok(Next::Stay)
}

/// What a switch becomes: the other state when nothing is said.
fn switched(was: bool, argument: &str) -> Done<bool> {
    match argument {
        "" => Ok(!was),
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(Error::Invalid(format!("{other} is neither on nor off")).into()),
    }
}

fn tell_switch(what: &str, is_on: bool) -> Done<Next> {
    print(&format!("{what} {}\n", if is_on { "on" } else { "off" }))?;
    Ok(Next::Stay)
}

fn expanded(session: &mut Session, argument: &str) -> Done<Next> {
    session.settings.expanded = switched(session.settings.expanded, argument)?;
    tell_switch("rows as lines of a name and a value:", session.settings.expanded)
}

fn timing(session: &mut Session, argument: &str) -> Done<Next> {
    let is_on = switched(session.settings.timing.unwrap_or(false), argument)?;
    session.settings.timing = Some(is_on);
    tell_switch("timing", is_on)
}

fn pager(session: &mut Session, argument: &str) -> Done<Next> {
    session.settings.pager = switched(session.settings.pager, argument)?;
    tell_switch("pager", session.settings.pager)
}

fn max_rows(session: &mut Session, argument: &str) -> Done<Next> {
    let number =
        || argument.parse().map_err(|_| Error::Invalid(format!("{argument} is no number of rows")));
    session.settings.max_rows = if argument.is_empty() { None } else { Some(number()?) };
    Ok(Next::Stay)
}

fn output(session: &mut Session, argument: &str) -> Done<Next> {
    session.settings.format = match argument {
        "" => None,
        name => Some(OutputFormat::of_name(unquoted(name))?),
    };
    Ok(Next::Stay)
}

fn write_to(session: &mut Session, file: &str) -> Done<Next> {
    match file {
        "" => session.finish()?,
        file => session.write_to(Path::new(unquoted(file)))?,
    }
    Ok(Next::Stay)
}

fn include(session: &mut Session, file: &str) -> Done<Next> {
    match file {
        "" => Err(Error::Invalid("\\i needs a file".into()).into()),
        file => script::run_file(session, Path::new(unquoted(file))),
    }
}

/// Hands a text to the editor of the person, and runs what it has become.
fn edit(session: &mut Session, file: &str) -> Done<Next> {
    let editor = ["COLOAD_EDITOR", "VISUAL", "EDITOR"].into_iter();
    let editor = editor.filter_map(|name| std::env::var(name).ok()).find(|e| !e.trim().is_empty());
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let open = |path: &Path| {
        // A shell splits what is more than a name, such as `code --wait`.
        let script = format!("{editor} \"$1\"");
        let status = Command::new("sh").args(["-c", &script, "sh"]).arg(path).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                Err(Error::Invalid(format!("{editor} ended with {status}: nothing is run")))
            }
            Err(e) => Err(Error::Invalid(format!("cannot start {editor}: {e}"))),
        }
    };
    let file = unquoted(file);
    if !file.is_empty() {
        open(Path::new(file))?;
        return script::run_file(session, Path::new(file));
    }
    let failed = |e: std::io::Error| Error::Unavailable(format!("cannot make a file to edit: {e}"));
    let scratch = tempfile::Builder::new().suffix(".sql").tempfile().map_err(failed)?;
    let before = format!("{}\n", session.last);
    std::fs::write(scratch.path(), &before).map_err(failed)?;
    open(scratch.path())?;
    let after = super::read(scratch.path())?;
    if after.trim().is_empty() {
        return Ok(Next::Stay);
    }
    print(&after)?;
    script::run(session, &after, None)
}
