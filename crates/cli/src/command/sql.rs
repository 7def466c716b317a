//! `coload sql`: statements from flags, a script or a person.
//!
//! ```text
//!   -c, -f, standard input --script--> statements, commands --Session--> Target: store, server
//!   person --editor--> shell ----------^                       |
//!                                                              +-- rows as they come --> Place: output, file, pager
//! ```

use std::io::{IsTerminal, Read};
use std::path::Path;

use coload::Error;

use crate::args::SqlArgs;
use crate::config::Config;
use crate::output::Done;

mod commands;
mod describe;
mod editor;
mod place;
mod script;
mod session;
mod shell;
mod signals;
mod target;
mod words;

use commands::Next;
use session::{Session, Settings};
use signals::{Use, Watch};
use target::Target;

/// Runs the statements of `-c` and `-f`, else those of standard input, which may be a person.
///
/// # Errors
/// `Failed` at the first statement that fails, but in the shell; `Interrupted` when Ctrl-C has ended one.
pub fn run(args: &SqlArgs) -> Done {
    let config = Config::read()?;
    let settings = Settings::new(&args.answers, &config)?;
    let target = Target::open(args, &config)?;
    let is_given = !args.commands.is_empty() || !args.files.is_empty();
    let talks = !is_given && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let watch = Watch::start(if talks { Use::Shell } else { Use::Command })?;
    let mut session = Session::new(target, settings, watch);
    if let Some(file) = &args.answers.output_file {
        session.write_to(file)?;
    }
    if talks {
        return shell::run(&mut session);
    }
    for text in &args.commands {
        if script::run(&mut session, text, None)? == Next::Leave {
            return session.finish();
        }
    }
    for file in &args.files {
        if script::run_file(&mut session, file)? == Next::Leave {
            return session.finish();
        }
    }
    if !is_given {
        script::run_file(&mut session, Path::new("-"))?;
    }
    session.finish()
}

/// The text of a file, or of standard input.
///
/// # Errors
/// When it cannot be read, or is not UTF-8.
fn read(file: &Path) -> Done<String> {
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|e| Error::Invalid(format!("cannot read SQL from standard input: {e}")))?;
        return Ok(text);
    }
    Ok(std::fs::read_to_string(file).map_err(|e| Error::io("read", file, &e))?)
}
