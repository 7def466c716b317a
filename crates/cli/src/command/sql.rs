//! `coload sql`: statements from flags, a script or a person.

use std::io::{IsTerminal, Read};

use coload::{Coload, Error};
use coload_serve::output::{OutputFormat, write_answer};
use coload_serve::{Database, DatabaseOptions, split_statements};

use crate::args::{OutputForm, SqlArgs};
use crate::output::{Done, print_bytes};

mod editor;
mod shell;

/// Runs the statements of `-c`, else those of standard input, which may be a person.
///
/// # Errors
/// `Failed` at the first statement that fails, but in the shell.
pub fn run(args: &SqlArgs) -> Done {
    let store = Coload::open(&args.store)?;
    let mut options =
        DatabaseOptions { memory: coload_load::default_memory(), ..Default::default() };
    options.threads = args.threads.unwrap_or(options.threads);
    options.memory = args.memory.unwrap_or(options.memory);
    let database = store.database(options)?;
    let format = format(args.output);
    if !args.commands.is_empty() {
        return args.commands.iter().try_for_each(|text| run_all(database, text, format));
    }
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return shell::run(database, format);
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|e| Error::Invalid(format!("cannot read SQL from standard input: {e}")))?;
    run_all(database, &text, format)
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
pub fn run_all(database: &Database, text: &str, format: OutputFormat) -> Done {
    let found = split_statements(text);
    let rest = (!found.rest.is_empty()).then_some(&found.rest);
    found.complete.iter().chain(rest).try_for_each(|statement| run_one(database, statement, format))
}

/// Runs one statement and prints its answer.
///
/// # Errors
/// `Failed` when it fails.
pub fn run_one(database: &Database, statement: &str, format: OutputFormat) -> Done {
    let (schema, batches) = database.block_on(async {
        let answer = database.sql(statement).await?;
        let schema = answer.schema();
        Ok::<_, Error>((schema, answer.collect().await?))
    })?;
    let mut bytes = Vec::new();
    write_answer(&schema, &batches, format, &mut bytes)?;
    print_bytes(&bytes)
}
