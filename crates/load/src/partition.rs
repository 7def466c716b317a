//! A partition on its way: fragments arrive, then its columns are compressed one by one.

use std::sync::{Arc, Mutex};

use coload_assemble::{Assembly, ColumnBuilder, Parsed};
use coload_page::{SymbolEncoder, shrink_page};
use coload_source::ColumnPlan;
use coload_threads::{Step, StepClock, lock};
use coload_transform::{
    ColumnCost, DistinctSketch, FinalPage, FragmentColumn, PartitionColumn, TemporaryDictionary,
    encode_column,
};
use coload_types::{Error, Result};

use crate::derive::Deriver;

/// The symbols of each column that is read; `None` for columns without.
pub type KnownSymbols = [Option<Arc<SymbolEncoder>>];

/// How the columns of a partition are read; the same for all its fragments.
#[derive(Debug)]
pub struct PartitionPlan {
    /// A plan for each column that is read.
    pub read: Vec<ColumnPlan>,
    /// A plan for each column of the table.
    pub columns: Vec<ColumnPlan>,
    /// For a sink: what each column of the table costs.
    pub costs: Vec<ColumnCost>,
    /// Makes the columns that are not read.
    deriver: Option<Arc<Deriver>>,
}

impl PartitionPlan {
    /// Plans and costs of the columns that are read.
    pub fn new(read: Vec<ColumnPlan>, costs: Vec<ColumnCost>) -> Self {
        PartitionPlan { columns: read.clone(), read, costs, deriver: None }
    }

    /// The plan with the columns that are not read.
    pub fn with_derived(mut self, deriver: &Arc<Deriver>) -> Self {
        let read = (0..deriver.width()).map(|column| deriver.read(column));
        // Of what is not read there is a code for each piece, and nothing to measure.
        let plan =
            |column: Option<usize>| column.map_or(ColumnPlan::Codes, |c| self.read[c].clone());
        self.columns = read.clone().map(plan).collect();
        if !self.costs.is_empty() {
            let cost = |column: Option<usize>| column.map(|c| self.costs[c]).unwrap_or_default();
            self.costs = read.map(cost).collect();
        }
        self.deriver = Some(Arc::clone(deriver));
        self
    }

    /// The column read that a column of the table is.
    pub fn read_of(&self, column: usize) -> Option<usize> {
        self.deriver.as_ref().map_or(Some(column), |deriver| deriver.read(column))
    }

    /// The dictionary of a column of the table that is not read.
    pub fn derived_dictionary(&self, column: usize) -> Option<&TemporaryDictionary> {
        self.deriver.as_ref()?.dictionary(column)
    }

    /// Whether a column of the table was never meant to have codes: its pages are final.
    pub fn is_early(&self, column: usize) -> bool {
        let paged =
            matches!(self.columns[column], ColumnPlan::Text { .. } | ColumnPlan::Numbers { .. });
        paged && self.read_of(column).is_some()
    }

    /// Whether a column read is also a column of the table after `column`.
    fn is_read_after(&self, read: usize, column: usize) -> bool {
        let later = column + 1..self.columns.len();
        self.deriver.is_some() && later.into_iter().any(|c| self.read_of(c) == Some(read))
    }

    /// Whether a column of the table comes as values that nobody has looked at.
    fn is_unsorted(&self, column: usize) -> bool {
        self.read_of(column).is_none() && self.derived_dictionary(column).is_none()
    }

    /// The symbols of all columns that are read.
    pub fn symbols(&self) -> Arc<KnownSymbols> {
        self.read.iter().map(|plan| encoder_of(plan).cloned()).collect()
    }

    /// The symbols of a column read whose texts are plain.
    pub fn read_encoder(&self, column: usize) -> Option<&SymbolEncoder> {
        encoder_of(&self.read[column]).map(Arc::as_ref)
    }

    /// The page of a fragment's column of the table that was never meant to have codes.
    ///
    /// # Errors
    /// `Limit` when it is too large.
    pub fn final_page(&self, column: usize, values: FragmentColumn) -> Result<FinalPage> {
        let symbols = self.encoder(column);
        let page = match values {
            FragmentColumn::Page(page) => page,
            FragmentColumn::Plain(plain) => encode_column(&plain, symbols.map(Arc::as_ref))?,
            FragmentColumn::Codes { .. } => {
                return Err(Error::Corrupt("codes of a column without dictionary".into()));
            }
        };
        Ok(FinalPage { column, page: shrink_page(page)?, symbols: symbols.cloned() })
    }

    /// The symbols of a column whose texts are plain.
    pub fn encoder(&self, column: usize) -> Option<&Arc<SymbolEncoder>> {
        encoder_of(&self.columns[column])
    }
}

/// The symbols of a column whose texts are plain.
fn encoder_of(plan: &ColumnPlan) -> Option<&Arc<SymbolEncoder>> {
    match plan {
        ColumnPlan::Text { encoder, .. } => Some(encoder),
        _ => None,
    }
}

/// What of a fragment waits for its partition.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Rows of the fragment.
    pub rows: u32,
    /// Its columns, with their numbers in the table; the others went ahead.
    pub columns: Vec<(usize, FragmentColumn)>,
}

/// A partition whose fragments are all there, waiting for its columns to be compressed.
#[derive(Debug)]
pub struct SealedPartition {
    /// Number in the load.
    pub number: usize,
    /// Rows of each fragment.
    pub page_rows: Vec<u32>,
    plan: Arc<PartitionPlan>,
    /// For each column what waits of it: the other fragments were sent.
    columns: Vec<Mutex<Parsed>>,
    /// For each column: the numbers of these fragments.
    waiting: Vec<Vec<u32>>,
}

impl SealedPartition {
    /// Turns fragments by row into inputs by column. `dictionaries` are those of the columns that are read, of each worker,
    /// in the order of the numbers that the fragments' codes name.
    pub fn new(
        number: usize,
        plan: Arc<PartitionPlan>,
        fragments: Vec<Waiting>,
        dictionaries: Vec<Vec<TemporaryDictionary>>,
    ) -> Self {
        let width = plan.columns.len();
        let page_rows: Vec<u32> = fragments.iter().map(|f| f.rows).collect();
        let mut columns: Vec<Parsed> = (0..width)
            .map(|column| Parsed { encoder: plan.encoder(column).cloned(), ..Parsed::default() })
            .collect();
        for (number, fragment) in fragments.into_iter().enumerate() {
            for (index, column) in fragment.columns {
                columns[index].fragments.push((number as u32, column));
            }
        }
        let mut read: Vec<Vec<TemporaryDictionary>> = vec![Vec::new(); plan.read.len()];
        for worker in dictionaries {
            worker.into_iter().zip(&mut read).for_each(|(dictionary, of)| of.push(dictionary));
        }
        for (c, column) in columns.iter_mut().enumerate() {
            column.temporaries = match plan.read_of(c) {
                Some(index) if plan.is_read_after(index, c) => read[index].clone(),
                Some(index) => std::mem::take(&mut read[index]),
                None => plan.derived_dictionary(c).cloned().into_iter().collect(),
            };
        }
        let waiting = columns
            .iter()
            .map(|column| column.fragments.iter().map(|(number, _)| *number).collect())
            .collect();
        let columns = columns.into_iter().map(Mutex::new).collect();
        SealedPartition { number, page_rows, plan, columns, waiting }
    }

    /// Number of columns of the partition.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Whether fragments of a column wait; a partition without rows has none.
    pub fn waits(&self, column: usize) -> bool {
        !self.waiting[column].is_empty()
    }

    /// The numbers of a column's fragments that wait.
    pub fn waiting(&self, column: usize) -> &[u32] {
        &self.waiting[column]
    }

    /// Compresses one column, once; `distinct` counts the values of its codes.
    ///
    /// # Errors
    /// `Limit` when a dictionary or a page is too large.
    pub fn compress(
        &self,
        column: usize,
        assembly: Assembly,
        clock: &StepClock,
        distinct: Option<&DistinctSketch>,
    ) -> Result<PartitionColumn> {
        let parsed = std::mem::take(&mut *lock(&self.columns[column]));
        let mut builder = ColumnBuilder::new(assembly);
        if !self.plan.is_unsorted(column) {
            builder.take_parsed(parsed);
            return Ok(builder.finish(clock, distinct)?.1);
        }
        let mut pages = Vec::new();
        for (number, fragment) in parsed.fragments {
            let FragmentColumn::Plain(values) = fragment else {
                return Err(Error::Corrupt("codes of a column without dictionary".into()));
            };
            let taken = clock.time(Step::Compress, || builder.take_values(number, values))?;
            pages.extend(taken.pages);
        }
        builder.finish_with(pages, clock)
    }
}
