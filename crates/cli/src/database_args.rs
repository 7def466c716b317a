//! Flags of loads into a database.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use coload::{DatabaseLoadOptions, Error, Guarantee, Method, Result, Tuning, tuning_name};

use crate::args::at_least_one;
use crate::remote_args::RemoteArgs;

/// Flags of a load into a database.
#[derive(Debug, Args)]
pub struct DatabaseArgs {
    /// Statement whose answer is loaded, from the database that the input is the URL of
    #[arg(long, value_name = "SQL", help_heading = "Database")]
    pub query: Option<String>,
    /// How rows are sent [default: what is estimated to be the fastest]
    #[arg(long, value_name = "METHOD", value_parser = methods(), help_heading = "Database")]
    pub method: Option<Method>,
    /// Rows of a statement, of methods that have such [default: as many as help]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Database")]
    pub batch_rows: Option<usize>,
    /// File of `coload tune` that tells what loads cost on the server [default: that of the server, if there is one]
    #[arg(long, value_name = "FILE", help_heading = "Database")]
    pub tuning: Option<PathBuf>,
    /// All rows or none (the default)
    #[arg(long, conflicts_with = "resumable", help_heading = "Database")]
    pub atomic: bool,
    /// What was loaded stays if the load is interrupted, and the same command goes on behind it: chunks of a database, each with a
    /// line in the table coload_loads, or segments of a store; loads of objects into a store and loads into servers do so anyway
    #[arg(long)]
    pub resumable: bool,
    /// Build indexes and constraints of a table without rows after its rows: faster for many, but a row that breaks one fails
    /// the load
    #[arg(long, conflicts_with = "resumable", help_heading = "Database")]
    pub rebuild_indexes: bool,
}

/// Names of methods.
pub fn methods() -> impl TypedValueParser<Value = Method> {
    let values = Method::ALL.map(|method| {
        let (name, about) = method.about();
        PossibleValue::new(name).help(about)
    });
    PossibleValuesParser::new(values).map(|name| Method::of_name(&name).unwrap_or(Method::Values))
}

impl DatabaseArgs {
    /// The options of a load into the database of a URL, with those that loads into servers have too.
    ///
    /// # Errors
    /// `Invalid` when the file of `--tuning` is none.
    pub fn options(&self, remote: &RemoteArgs, url: &str) -> Result<DatabaseLoadOptions> {
        Ok(DatabaseLoadOptions {
            method: self.method,
            connections: remote.connections,
            batch_rows: self.batch_rows,
            tuning: self.tuning(url)?,
            guarantee: if self.resumable { Guarantee::Resumable } else { Guarantee::Atomic },
            again: remote.again,
            patience: std::time::Duration::from_secs(remote.patience),
            rebuild_indexes: self.rebuild_indexes,
        })
    }

    fn tuning(&self, url: &str) -> Result<Option<Tuning>> {
        let read = |path: &Path| {
            let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, &e))?;
            Tuning::of_json(&text, &path.display().to_string()).map(Some)
        };
        match &self.tuning {
            Some(path) => read(path),
            None => match tuning_file(url)?.filter(|path| path.exists()) {
                Some(path) => read(&path),
                None => Ok(None),
            },
        }
    }
}

/// The file for what was measured of the server of a URL; `None` where there is no home directory.
///
/// # Errors
/// `Invalid` when the URL is none.
pub fn tuning_file(url: &str) -> Result<Option<PathBuf>> {
    let folder = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let name = tuning_name(url)?;
    Ok(folder.or_else(home).map(|folder| folder.join("coload/tuning").join(name)))
}
