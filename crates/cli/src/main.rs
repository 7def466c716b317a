//! The command `coload`.

mod allocator;
mod args;
mod command;
#[cfg(feature = "sql")]
mod config;
mod database_args;
mod examples;
mod given;
#[cfg(feature = "sql")]
mod in_place;
mod interrupt;
mod output;
mod place_args;
mod progress;
mod remote_args;
mod report;
mod size;

#[cfg(feature = "sql")]
use std::panic::resume_unwind;
use std::process::ExitCode;

use clap::Parser;
use coload_load::default_memory;
#[cfg(feature = "sql")]
use coload_types::Error;

use crate::args::{Cli, Command};
use crate::output::{Failure, say};

fn main() -> ExitCode {
    allocator::keep_freed_pages(usize::MAX);
    #[cfg(feature = "sql")]
    coload_serve::measure_memory(coload_serve::MemoryGauge {
        process: allocator::process_bytes,
        thread: allocator::thread_bytes,
        resident: allocator::resident_bytes,
        trim: allocator::give_back_freed_pages,
    });
    let cli = Cli::parse_from(args::words_of(std::env::args_os()));
    let done = match cli.command {
        Command::Load(args) => {
            allocator::use_small_pages();
            allocator::keep_freed_pages(args.pipeline.memory.unwrap_or_else(default_memory));
            command::load::run(&args)
        }
        #[cfg(feature = "sql")]
        Command::Sql(args) => {
            allocator::keep_freed_pages_until_told(args.memory.unwrap_or(usize::MAX));
            on_large_stack(|| command::sql::run(&args))
        }
        Command::Sniff(args) => command::sniff::run(&args),
        Command::Plan(args) => command::plan::run(&args),
        Command::Export(args) => command::export::run(&args),
        Command::Loads(args) => command::loads::run(&args),
        #[cfg(feature = "sql")]
        Command::Serve(args) => {
            let given = [args.memory, args.load_memory].into_iter().flatten();
            allocator::keep_freed_pages_until_told(given.min().unwrap_or_else(default_memory));
            command::serve::run(&args)
        }
        #[cfg(feature = "sql")]
        Command::HashPassword => command::serve::hash_password(),
        Command::Inspect(args) => command::inspect::run(&args),
        Command::Verify(args) => command::verify::run(&args),
        #[cfg(feature = "sql")]
        Command::Demo(args) => command::demo::run(&args),
        Command::Completions(args) => command::manual::completions(args.shell),
        Command::Man(args) => command::manual::pages(&args.folder),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Somebody like `head` has read enough.
        Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        #[cfg(feature = "sql")]
        Err(Failure::Interrupted) => {
            say("error: the statement was cancelled");
            ExitCode::from(interrupt::INTERRUPTED)
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
fn on_large_stack(run: impl FnOnce() -> Result<(), Failure> + Send) -> Result<(), Failure> {
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
