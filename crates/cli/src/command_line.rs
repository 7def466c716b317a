//! The command line: runs the command that words say, and loads for packages of other languages, whose options are the flags of
//! `coload load`.
//!
//! So there is one list of options, one parser, and one text of what is wrong with them.

use std::ffi::OsString;
#[cfg(feature = "sql")]
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{CommandFactory, Parser};
use coload_load::default_memory;
use coload_types::{Error, Result};

use crate::args::{Cli, Command, LoadArgs, SniffArgs, words_of};
use crate::command::{self, load::Attendant, load::Call};
#[cfg(feature = "sql")]
use crate::interrupt::INTERRUPTED;
use crate::origin::Rows;
#[cfg(feature = "sql")]
use crate::output::Done;
use crate::output::{Failure, say};
use crate::remote_args::Identity;
use crate::size::parse_size;
use crate::{LoadReport, ProgressCallback, report};

/// How the program's memory behaves, which only a program can say.
#[derive(Debug)]
pub struct Allocator {
    /// For what allocates little at a time.
    pub use_small_pages: fn(),
    /// Keeps pages that are freed where so much memory may be used.
    pub keep_freed_pages: fn(usize),
    /// The same, until it is told that memory is short.
    #[cfg(feature = "sql")]
    pub keep_freed_pages_until_told: fn(usize),
}

/// Runs the command that the words say, the first of which is the name of the program.
pub fn run(words: impl Iterator<Item = OsString>, allocator: &Allocator) -> ExitCode {
    let cli = Cli::parse_from(words_of(words));
    let done = match cli.command {
        Command::Load(args) => {
            (allocator.use_small_pages)();
            (allocator.keep_freed_pages)(args.pipeline.memory.unwrap_or_else(default_memory));
            command::load::run(&args)
        }
        #[cfg(feature = "sql")]
        Command::Sql(args) => {
            (allocator.keep_freed_pages_until_told)(args.memory.unwrap_or(usize::MAX));
            on_large_stack(|| command::sql::run(&args))
        }
        Command::Sniff(args) => command::sniff::run(&args),
        Command::Plan(args) => command::plan::run(&args),
        Command::Export(args) => command::export::run(&args),
        Command::Loads(args) => command::loads::run(&args),
        Command::Cluster(what) => command::cluster::run(&what),
        Command::Tune(args) => command::tune::run(&args),
        #[cfg(feature = "sql")]
        Command::Serve(args) => {
            let given = [args.memory, args.load_memory].into_iter().flatten();
            (allocator.keep_freed_pages_until_told)(given.min().unwrap_or_else(default_memory));
            command::serve::run(&args)
        }
        #[cfg(feature = "sql")]
        Command::HashPassword(args) => command::serve::hash_password(&args),
        Command::Inspect(args) => command::inspect::run(&args),
        Command::Verify(args) => command::verify::run(&args),
        #[cfg(feature = "sql")]
        Command::Demo(args) => command::demo::run(&args),
        Command::Completions(args) => command::manual::completions(args.shell),
        Command::Man(args) => command::manual::pages(&args.folder, args.form),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Somebody like `head` has read enough.
        Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        #[cfg(feature = "sql")]
        Err(Failure::Interrupted) => {
            say("error: the statement was cancelled");
            ExitCode::from(INTERRUPTED)
        }
        Err(Failure::Failed(error)) => {
            say(&format!("error: {error}"));
            ExitCode::from(1)
        }
        Err(Failure::Usage(error)) => {
            say(&format!("error: {error}"));
            ExitCode::from(2)
        }
    }
}

/// Does what plans statements.
#[cfg(feature = "sql")]
fn on_large_stack(run: impl FnOnce() -> Done + Send) -> Done {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(coload_serve::STACK_BYTES);
        match thread.spawn_scoped(scope, run) {
            Ok(running) => running.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(error) => {
                Err(Failure::Failed(Error::Unavailable(format!("cannot start a thread: {error}"))))
            }
        }
    })
}

/// A load that a package of another language calls for.
pub struct LoadCall {
    /// Flags and inputs of `coload load`, as words. With rows the input is a name for them, which is only told.
    pub words: Vec<String>,
    /// Rows that the caller brings, in place of inputs that are opened.
    pub rows: Option<Rows>,
    /// Who asks a server.
    pub identity: Identity,
    /// Told what was found out, a line at a time.
    pub told: Box<dyn Fn(&str) + Send + Sync>,
    /// Told how far the load is.
    pub progress: Option<ProgressCallback>,
    /// Set it, and the load stops and leaves its target as it was.
    pub cancel: Arc<AtomicBool>,
}

impl std::fmt::Debug for LoadCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadCall").field("words", &self.words).finish_non_exhaustive()
    }
}

/// What a load that was called for gives.
#[derive(Debug)]
pub struct LoadAnswer {
    /// The report; `None` when the inputs hold nothing that could be loaded.
    pub report: Option<LoadReport>,
    /// The report as `--report json` prints it.
    pub json: String,
}

impl Attendant for LoadCall {
    fn tell(&self, line: &str) {
        (self.told)(line);
    }

    fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    fn begin(&self) -> Result<Option<ProgressCallback>> {
        Ok(self.progress.clone())
    }

    fn end(&self) {}
}

/// Loads as `coload load` does; nothing is printed.
///
/// # Errors
/// `Invalid` when the words are no flags of a load; those of [`Coload::load`](crate::Coload::load).
pub fn load(call: &LoadCall) -> Result<LoadAnswer> {
    let args = load_args(&call.words)?;
    let asked = Call { args: &args, identity: call.identity.clone(), attendant: call };
    // Its parts are of the call; the report is kept.
    match command::load::load(&asked, call.rows.clone()).map_err(error_of)? {
        None => Ok(LoadAnswer { report: None, json: report::JSON_OF_NOTHING.to_owned() }),
        Some((report, dialect)) => {
            let json = report::json(&report, dialect.as_ref()).to_string();
            Ok(LoadAnswer { report: Some(report), json })
        }
    }
}

/// What `coload sniff --output json` prints; the words are its flags and its input.
///
/// # Errors
/// `Invalid` when the words are no flags of it, or the input tells nothing.
pub fn sniff(words: &[String]) -> Result<String> {
    let args = match parse("sniff", words)? {
        Command::Sniff(args) => args,
        _ => return Err(other_command()),
    };
    let args: &SniffArgs = &args;
    command::sniff::found_json(args).map_err(error_of)
}

/// Bytes of a size such as 1GiB, as flags take it.
///
/// # Errors
/// `Invalid` when it is none.
pub fn size(text: &str) -> Result<usize> {
    parse_size(text).map_err(|wrong| Error::Invalid(format!("{text:?}: {wrong}")))
}

/// A flag of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Its name, without the dashes.
    pub name: String,
    /// Whether a value follows it.
    pub takes_value: bool,
    /// Whether it may be given several times.
    pub repeats: bool,
    /// What it is for, as the help of the command has it.
    pub help: String,
}

/// The flags of a command: `load` or `sniff`.
pub fn flags(command: &str) -> Vec<Flag> {
    let cli = Cli::command();
    let Some(found) = cli.find_subcommand(command) else { return Vec::new() };
    let flag = |arg: &clap::Arg| {
        Some(Flag {
            name: arg.get_long().filter(|_| !arg.is_hide_set())?.to_owned(),
            takes_value: arg.get_action().takes_values(),
            repeats: matches!(arg.get_action(), clap::ArgAction::Append),
            help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        })
    };
    found.get_arguments().filter_map(flag).collect()
}

fn load_args(words: &[String]) -> Result<Box<LoadArgs>> {
    match parse("load", words)? {
        Command::Load(args) => Ok(args),
        _ => Err(other_command()),
    }
}

fn parse(command: &str, words: &[String]) -> Result<Command> {
    let words = ["coload", command].into_iter().chain(words.iter().map(String::as_str));
    match Cli::try_parse_from(words) {
        Ok(cli) => Ok(cli.command),
        Err(error) => {
            let text = error.to_string();
            // What follows is how to write a command line.
            let text = text.split("\n\nUsage:").next().unwrap_or_default();
            let text = text.split("\n\nFor more information").next().unwrap_or_default();
            Err(Error::Invalid(text.trim_start_matches("error: ").trim().to_owned()))
        }
    }
}

/// What a caller is told whose words are another command.
fn other_command() -> Error {
    Error::Invalid("the words are those of another command".to_owned())
}

/// Why a command failed, for who is no shell.
fn error_of(failure: Failure) -> Error {
    match failure {
        Failure::Usage(error) | Failure::Failed(error) => error,
        Failure::OutputClosed => Error::Unavailable("the output was closed".to_owned()),
        #[cfg(feature = "sql")]
        Failure::Interrupted => Error::Unavailable("the statement was cancelled".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn flags_are_those_of_the_command() {
        let load = flags("load");
        let find = |name: &str| load.iter().find(|flag| flag.name == name).unwrap();
        assert!(find("null").repeats && find("null").takes_value);
        assert!(!find("dry-run").takes_value);
        assert!(find("max-rejects").takes_value && !find("max-rejects").repeats);
        assert!(flags("no such command").is_empty());
    }

    #[test]
    fn wrong_words_are_told_without_how_to_write_a_command_line() {
        let words = ["--into", "s", "--max-rejeccts", "1", "a.csv"].map(str::to_owned);
        let Err(Error::Invalid(text)) = load_args(&words) else { panic!("it was taken") };
        assert!(text.contains("--max-rejeccts") && !text.contains("Usage"), "{text}");
        assert!(text.contains("--max-rejects"), "{text}");
    }
}
