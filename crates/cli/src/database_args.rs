//! Flags of loads into a database.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use coload::{DatabaseLoadOptions, Guarantee, Method};

use crate::args::at_least_one;
use crate::remote_args::RemoteArgs;

/// Flags of a load into a database.
#[derive(Debug, Args)]
pub struct DatabaseArgs {
    /// Statement whose answer is loaded, from the database that the input is the URL of
    #[arg(long, value_name = "SQL", help_heading = "Database")]
    pub query: Option<String>,
    /// How rows are sent [default: the engine's fastest]
    #[arg(long, value_name = "METHOD", value_parser = methods(), help_heading = "Database")]
    pub method: Option<Method>,
    /// Rows of a statement, of methods that have such
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Database")]
    pub batch_rows: Option<usize>,
    /// All rows or none (the default)
    #[arg(long, conflicts_with = "resumable", help_heading = "Database")]
    pub atomic: bool,
    /// Chunks stay, each with a line in the table coload_loads: the same load goes on behind them
    #[arg(long, help_heading = "Database")]
    pub resumable: bool,
}

fn methods() -> impl TypedValueParser<Value = Method> {
    let values = Method::ALL.map(|method| {
        let (name, about) = method.about();
        PossibleValue::new(name).help(about)
    });
    PossibleValuesParser::new(values).map(|name| Method::of_name(&name).unwrap_or(Method::Values))
}

impl DatabaseArgs {
    /// The options of a load, with those that loads into servers have too.
    pub fn options(&self, remote: &RemoteArgs) -> DatabaseLoadOptions {
        DatabaseLoadOptions {
            method: self.method,
            connections: remote.connections,
            batch_rows: self.batch_rows,
            guarantee: if self.resumable { Guarantee::Resumable } else { Guarantee::Atomic },
            again: remote.again,
            patience: std::time::Duration::from_secs(remote.patience),
        }
    }
}
