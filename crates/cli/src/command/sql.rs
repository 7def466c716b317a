//! `coload sql`: statements from flags, a script or a person.

use std::cell::Cell;
use std::io::{IsTerminal, Read};

use coload::Error;
use coload_serve::output::OutputFormat;
use coload_serve::split_statements;

use crate::args::{OutputForm, SqlArgs};
use crate::output::{Done, Failure, Printed};

mod editor;
mod shell;
mod target;

pub use target::Target;

/// Runs the statements of `-c`, else those of standard input, which may be a person.
///
/// # Errors
/// `Failed` at the first statement that fails, but in the shell.
pub fn run(args: &SqlArgs) -> Done {
    let target = &mut Target::open(args)?;
    let format = format(args.output);
    if !args.commands.is_empty() {
        return args.commands.iter().try_for_each(|text| run_all(target, text, format));
    }
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return shell::run(target, format);
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|e| Error::Invalid(format!("cannot read SQL from standard input: {e}")))?;
    run_all(target, &text, format)
}

fn format(form: OutputForm) -> OutputFormat {
    match form {
        OutputForm::Table => OutputFormat::Table,
        OutputForm::Csv => OutputFormat::Csv,
        OutputForm::Json => OutputFormat::Json,
    }
}

/// Runs the statements of a text; the last may lack its semicolon.
///
/// # Errors
/// `Failed` at the first statement that fails.
pub fn run_all(target: &mut Target, text: &str, format: OutputFormat) -> Done {
    let found = split_statements(text);
    let rest = (!found.rest.is_empty()).then_some(&found.rest);
    found.complete.iter().chain(rest).try_for_each(|statement| run_one(target, statement, format))
}

/// Runs one statement and prints its answer.
///
/// # Errors
/// `Failed` when it fails.
pub fn run_one(target: &mut Target, statement: &str, format: OutputFormat) -> Done {
    let closed = Cell::new(false);
    target.answer(statement, format, Printed::new(&closed)).map_err(|error| match closed.get() {
        true => Failure::OutputClosed,
        false => Failure::Failed(error),
    })
}
