//! Rows of an INSERT that come one by one between two Syncs: they are written together.
//!
//! Drivers send a batch so, and what fails in it takes all of it back, as it does here. Row by row each would be a version of the
//! table.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::sql::sqlparser::ast::{Insert, SetExpr, Statement};

use super::command::first_word;
use super::fault::{Fault, code};
use super::session::Prepared;
use crate::flight::HeldBytes;
use crate::statement::text::parse_statement;
use crate::statement::{Parameters, StatementLimits};

/// Rows that are kept.
const ROWS_MAX: usize = 100_000;
/// Bytes of their values.
const BYTES_MAX: usize = 16 << 20;
/// Texts of statements that are looked at.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Rows of one statement.
pub(super) struct Gathered {
    prepared: Arc<Prepared>,
    rows: Vec<Parameters>,
    bytes: usize,
    held: HeldBytes,
    /// Where in the replies it begins what was said of them.
    pub said_from: usize,
}

/// Whether a statement inserts one row each time, whatever its values are.
pub(super) fn inserts_one_row(text: &str) -> bool {
    if text.len() > TEXT_BYTES_MAX || first_word(text) != "INSERT" {
        return false;
    }
    let Ok(Statement::Insert(Insert { source: Some(source), on, or, returning, .. })) =
        parse_statement(text, &StatementLimits::default())
    else {
        return false;
    };
    let is_one = matches!(source.body.as_ref(), SetExpr::Values(values) if values.rows.len() == 1);
    is_one && on.is_none() && or.is_none() && returning.is_none()
}

impl Gathered {
    /// Nothing yet, of a statement.
    pub fn new(prepared: Arc<Prepared>, said_from: usize, held: HeldBytes) -> Self {
        Gathered { prepared, rows: Vec::new(), bytes: 0, held, said_from }
    }

    pub fn is_of(&self, prepared: &Arc<Prepared>) -> bool {
        Arc::ptr_eq(&self.prepared, prepared)
    }

    pub fn text(&self) -> &str {
        &self.prepared.text
    }

    /// Adds a row; whether that is enough, for these or for all sessions together.
    pub fn add(&mut self, values: Parameters) -> bool {
        let bytes = values.bytes();
        self.bytes += bytes;
        self.rows.push(values);
        let has_room = self.held.add(bytes).is_ok();
        !has_room || self.rows.len() >= ROWS_MAX || self.bytes >= BYTES_MAX
    }

    /// The rows as a batch, a column for each parameter.
    ///
    /// # Errors
    /// When numbers of a parameter have no common scale.
    pub fn rows(&self) -> Result<RecordBatch, Fault> {
        let batch = Parameters::batch(&self.rows);
        batch.map_err(|error| Fault { code: code::VALUE, ..Fault::from(error) })
    }
}
