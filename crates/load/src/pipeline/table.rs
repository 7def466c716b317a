//! The columns of the table, made of those that are read.

use std::sync::Arc;

use coload_transform::DistinctSketch;
use coload_types::{Physical, Result};

use crate::checks::Checks;
use crate::derive::Deriver;
use crate::request::LoadRequest;

/// How rows of the table are made of the columns that are read.
pub struct Table {
    /// Makes the columns that are not read; `None` where all are.
    pub deriver: Option<Arc<Deriver>>,
    /// The rules of the table, if it has any.
    pub checks: Option<Checks>,
    /// Of its columns.
    pub physicals: Vec<Physical>,
    /// Of the columns that are read, where their values are those that are loaded.
    sketches: Vec<Arc<DistinctSketch>>,
}

impl Table {
    /// The table of a load, and what counts the distinct values of the columns that are read.
    ///
    /// # Errors
    /// `Invalid` when a column does not hold the time of the load.
    pub fn new(request: &LoadRequest, sketches: Vec<Arc<DistinctSketch>>) -> Result<Self> {
        let columns = request.schema.columns().iter();
        Ok(Table {
            deriver: Deriver::new(request)?.map(Arc::new),
            checks: Checks::new(&request.schema),
            physicals: columns.map(|column| column.data_type.physical()).collect(),
            sketches,
        })
    }

    /// What counts the distinct values of a column of the table.
    pub fn distinct(&self, column: usize) -> Option<&DistinctSketch> {
        let read = self.deriver.as_ref().map_or(Some(column), |deriver| deriver.read(column))?;
        self.sketches.get(read).map(Arc::as_ref)
    }

    /// For each column an estimate of its distinct values, where there is one.
    pub fn distinct_estimates(&self) -> Vec<Option<f64>> {
        let estimate = |column| self.distinct(column).map(DistinctSketch::estimate);
        (0..self.physicals.len()).map(estimate).collect()
    }
}
