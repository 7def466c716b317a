//! The command `coload`.

mod allocator;
mod args;
mod command;
mod examples;
mod given;
mod interrupt;
mod output;
mod progress;
mod remote_args;
mod remote_report;
mod report;
mod size;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::output::{Failure, say};

fn main() -> ExitCode {
    allocator::keep_freed_pages();
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Load(args) => {
            allocator::use_small_pages();
            command::load::run(&args)
        }
        #[cfg(feature = "sql")]
        Command::Sql(args) => command::sql::run(&args),
        Command::Sniff(args) => command::sniff::run(&args),
        Command::Export(args) => command::export::run(&args),
        Command::Loads(args) => command::loads::run(&args),
        #[cfg(feature = "sql")]
        Command::Serve(args) => command::serve::run(&args),
        #[cfg(feature = "sql")]
        Command::HashPassword => command::serve::hash_password(),
        Command::Inspect(args) => command::inspect::run(&args),
        #[cfg(feature = "sql")]
        Command::Demo(args) => command::demo::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Somebody like `head` has read enough.
        Err(Failure::OutputClosed) => ExitCode::SUCCESS,
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
