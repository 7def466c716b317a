//! Rows out of databases: what is read, and the columns that they become.
//!
//! ```text
//!   URL of a table, or a query -> engine: fields and parts -> blocks of rows, in the engine's form -> columns
//! ```
//!
//! All parts are of one snapshot of the server. An engine has a [`coload_load::TypedSource`] of its own.

mod columns;
mod pool;
mod rows;
mod url;

use std::sync::Arc;

use coload_input::{InputFile, InputSource};
use coload_load::TypedSource;
use coload_types::Result;

use crate::destination::engine_of_url;
use crate::names::TableName;

pub use columns::{ColumnBuilder, ReadAs};
pub use pool::{Lent, Pool};
pub use rows::{ReadRows, too_large};

/// Bytes of a block of rows, unless one row has more.
pub const BLOCK_BYTES: usize = 512 << 10;

/// What is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowsOf {
    /// All rows of a table, or a view.
    Table(TableName),
    /// The answer to a query.
    Query(String),
}

/// Rows of a database as an input of a load.
#[derive(Debug, Clone)]
pub struct DatabaseRows {
    /// What it is in messages, and whether it can be read again.
    pub input: InputFile,
    /// Its rows.
    pub source: Arc<dyn TypedSource>,
}

/// How rows are read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// A query whose answer is read, in place of a table.
    pub query: Option<String>,
    /// Connections over which rows are read at most.
    pub connections: Option<usize>,
}

impl DatabaseRows {
    /// What is to be said of the rows before they are read.
    pub fn notes(&self) -> Vec<String> {
        self.source.notes()
    }

    /// Connects, and finds the fields of what a URL names: `.../database/table`, or `.../database` with a query.
    ///
    /// # Errors
    /// `Invalid` when the URL is none, or names no table, `Unavailable` when the server cannot be reached, `Refused` with what
    /// it says.
    pub fn open(url: &str, options: &ReadOptions) -> Result<Self> {
        let url::SourceUrl { server, shown, table } = url::split(url)?;
        let (rows_of, name) = match (&options.query, table) {
            (None, Some(table)) => {
                let name = table.name.clone();
                (RowsOf::Table(table), name)
            }
            (Some(query), None) => (RowsOf::Query(query_text(query)?), "query".to_owned()),
            (given, table) => {
                return Err(url::one_of_both(&shown, given.is_some(), table.as_ref()));
            }
        };
        let engine = engine_of_url(&server)?;
        let (source, again) = engine.rows(&rows_of, options.connections)?;
        let source_of_input = InputSource::Rows { table: name, again };
        Ok(DatabaseRows { input: InputFile { name: shown, source: source_of_input }, source })
    }
}

/// A query without what ends it.
fn query_text(query: &str) -> Result<String> {
    let text = query.trim().trim_end_matches(';').trim_end();
    match text.is_empty() || text.contains('\0') {
        false => Ok(text.to_owned()),
        true => Err(coload_types::Error::Invalid(
            "--query is empty, or has a NUL: give a SELECT".to_owned(),
        )),
    }
}
