//! Flags of `serve` that bound what clients may have; `docs/threats.md` says what each is for.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use coload_serve::{SpillOptions, StatementLimits};

use super::values::at_least_one;
use crate::size::parse_size;

/// Limits of a server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Most connections of clients that have logged in; a quarter as many beside them may be about to
    #[arg(long, value_name = "N", default_value = "256", value_parser = at_least_one)]
    pub max_connections: usize,
    /// Of these, most of one address [default: half]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_connections_per_peer: Option<usize>,
    /// Seconds until a connection has logged in; then it is closed
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub login_time: u64,
    /// Seconds without a call after which a connection is closed
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub idle_time: u64,
    /// Largest message that a client may send; never more than a quarter of --memory
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size)]
    pub max_message: usize,
    /// Most statements at once; more wait
    #[arg(long, value_name = "N", default_value = "64", value_parser = at_least_one)]
    pub max_statements: usize,
    /// Of these, most of one user [default: a quarter, or all where there is one user]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_statements_per_user: Option<usize>,
    /// Seconds that a statement waits for its turn
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub queue_time: u64,
    /// Seconds after which a statement is ended whose client neither reads nor sends
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub stall_time: u64,
    /// Seconds that a statement may run; 0 for as long as it takes
    #[arg(long, value_name = "SECONDS", default_value = "3600")]
    pub statement_time: u64,
    /// Most bytes of the text of a statement
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = parse_size)]
    pub max_statement_text: usize,
    /// Most words, numbers, texts and signs of a statement
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = at_least_one)]
    pub max_statement_terms: usize,
    /// Most levels of nesting of a statement: parentheses, subqueries, calls, terms of a sum
    #[arg(long, value_name = "N", default_value = "500", value_parser = at_least_one)]
    pub max_statement_depth: usize,
    /// Seconds that a statement may be planned
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub planning_time: u64,
    /// Most statements that are planned at once; one user has at most half of them
    #[arg(long, value_name = "N", default_value = "16", value_parser = at_least_one)]
    pub max_plannings: usize,
    /// Most rows of an answer; 0 for any number
    #[arg(long, value_name = "N", default_value = "0")]
    pub max_answer_rows: u64,
    /// Most bytes of an answer [default: any number]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_answer: Option<usize>,
    /// Most prepared statements of one user
    #[arg(long, value_name = "N", default_value = "1024", value_parser = at_least_one)]
    pub max_prepared: usize,
    /// Most tokens of one user; the oldest makes room for a new one
    #[arg(long, value_name = "N", default_value = "256", value_parser = at_least_one)]
    pub max_tokens: usize,
}

impl LimitArgs {
    /// What one statement may be.
    pub fn statements(&self) -> StatementLimits {
        StatementLimits {
            text_bytes: self.max_statement_text,
            terms: self.max_statement_terms,
            depth: self.max_statement_depth,
            planning: Duration::from_secs(self.planning_time),
            plannings: self.max_plannings,
        }
    }
}

/// A time of at least a second: none would end everything at once.
fn seconds(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 second".into()),
        Ok(seconds) => Ok(seconds),
        Err(_) => Err(format!("{text:?} is no number of seconds")),
    }
}

/// Where statements go that memory does not hold.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct SpillArgs {
    /// Folder for what sorts, groups and joins do not hold in memory [default: the system's for temporary files, or the
    /// store's where that one is in memory]
    #[arg(long, value_name = "DIR")]
    pub spill: Option<PathBuf>,
    /// Most bytes in it
    #[arg(long, value_name = "SIZE", default_value = "100GiB", value_parser = parse_size)]
    pub spill_size: usize,
}

impl SpillArgs {
    /// As the database takes them.
    pub fn options(&self) -> SpillOptions {
        SpillOptions { folder: self.spill.clone(), bytes_max: self.spill_size as u64 }
    }
}
