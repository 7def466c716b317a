//! A partition on its way: fragments arrive, then its columns are compressed one by one.

use std::sync::Arc;

use coload_page::SymbolEncoder;
use coload_source::{ChunkParser, ColumnPlan, Lexicon};
use coload_transform::{
    ColumnCost, DictionaryLimit, DistinctSketch, EncodingPolicy, FragmentColumn, PartitionColumn,
    PlainSorter, TemporaryDictionary, compress_column, restore_codes, sort_temporaries,
};
use coload_types::{Physical, Result};

use crate::derive::Deriver;
use coload_threads::{Step, StepClock};

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

    /// The columns of the table that were never meant to have codes: their pages are final.
    pub fn early_columns(&self) -> impl Iterator<Item = usize> {
        (0..self.columns.len()).filter(|column| self.is_early(*column))
    }

    /// Whether a column is one of those.
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

    /// The symbols of a column read whose texts are plain.
    pub fn read_encoder(&self, column: usize) -> Option<&SymbolEncoder> {
        match &self.read[column] {
            ColumnPlan::Text { encoder, .. } => Some(encoder),
            _ => None,
        }
    }

    /// The symbols of a column whose texts are plain.
    pub fn encoder(&self, column: usize) -> Option<&Arc<SymbolEncoder>> {
        match &self.columns[column] {
            ColumnPlan::Text { encoder, .. } => Some(encoder),
            _ => None,
        }
    }
}

/// A partition whose fragments are all there, waiting for its columns to be compressed.
#[derive(Debug)]
pub struct SealedPartition {
    /// Number in the load.
    pub number: usize,
    /// Rows of each fragment.
    pub page_rows: Vec<u32>,
    plan: Arc<PartitionPlan>,
    /// For each column: its fragments, and the temporary dictionaries of the workers.
    columns: Vec<ColumnInput>,
    /// For each column: the numbers of the fragments that wait; the others were sent.
    waiting: Vec<Vec<u32>>,
}

/// What compressing one column needs.
pub type ColumnInput = std::sync::Mutex<Option<(Vec<FragmentColumn>, Vec<TemporaryDictionary>)>>;

impl SealedPartition {
    /// Turns fragments by row into inputs by column. `parsers` are the workers', in the order of the
    /// numbers that the fragments' codes name.
    pub fn new(
        number: usize,
        plan: Arc<PartitionPlan>,
        fragments: Vec<(coload_transform::Fragment, Vec<bool>)>,
        parsers: Vec<ChunkParser>,
    ) -> Self {
        let width = plan.columns.len();
        let page_rows: Vec<u32> = fragments.iter().map(|(f, _)| f.rows).collect();
        let mut waiting = vec![Vec::new(); width];
        let mut columns: Vec<(Vec<FragmentColumn>, Vec<TemporaryDictionary>)> =
            (0..width).map(|_| (Vec::with_capacity(fragments.len()), Vec::new())).collect();
        for (number, (fragment, flows)) in fragments.into_iter().enumerate() {
            for (c, column) in fragment.columns.into_iter().enumerate() {
                if !flows.get(c).is_some_and(|f| *f) {
                    columns[c].0.push(column);
                    waiting[c].push(number as u32);
                }
            }
        }
        let mut read: Vec<Vec<TemporaryDictionary>> = vec![Vec::new(); plan.read.len()];
        for mut parser in parsers {
            for (column, dictionaries) in parser.columns_mut().drain(..).zip(&mut read) {
                dictionaries.push(Lexicon::into_dictionary(column.into_lexicon()));
            }
        }
        for (c, (_, dictionaries)) in columns.iter_mut().enumerate() {
            match plan.read_of(c) {
                Some(index) if plan.is_read_after(index, c) => {
                    dictionaries.clone_from(&read[index])
                }
                Some(index) => *dictionaries = std::mem::take(&mut read[index]),
                None => dictionaries.extend(plan.derived_dictionary(c).cloned()),
            }
        }
        let columns = columns.into_iter().map(|c| std::sync::Mutex::new(Some(c))).collect();
        SealedPartition { number, page_rows, plan, columns, waiting }
    }

    /// Columns.
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
        physical: Physical,
        policy: EncodingPolicy,
        limit: DictionaryLimit,
        clock: &StepClock,
        distinct: Option<&DistinctSketch>,
    ) -> Result<PartitionColumn> {
        let input = self.columns[column].lock().ok().and_then(|mut c| c.take());
        let (mut fragments, mut temporaries) = input.unwrap_or_default();
        if self.plan.is_unsorted(column) {
            return clock.time(Step::Compress, || sort_plain(fragments, physical, policy, limit));
        }
        clock.time(Step::Sort, || {
            restore_codes(&mut fragments, &mut temporaries, physical, limit)
        })?;
        let sorted = clock
            .time(Step::Sort, || sort_temporaries(&fragments, &temporaries, physical, limit))?;
        clock.time(Step::Compress, || {
            let encoder = self.plan.encoder(column).map(Arc::as_ref);
            match (distinct, &sorted) {
                (Some(distinct), Some(all)) => distinct.add_values(all.dictionary().values()),
                (Some(distinct), None) => distinct.add_coded(&fragments, &temporaries),
                (None, _) => {}
            }
            compress_column(fragments, &temporaries, sorted, encoder, physical, policy)
        })
    }
}

/// Compresses values as they come.
fn sort_plain(
    fragments: Vec<FragmentColumn>,
    physical: Physical,
    policy: EncodingPolicy,
    limit: DictionaryLimit,
) -> Result<PartitionColumn> {
    let mut sorter = PlainSorter::new(physical, policy).with_limit(limit);
    let sort = |fragment| match fragment {
        FragmentColumn::Plain(plain) => sorter.push(plain),
        other => Ok(other),
    };
    let sorted = fragments.into_iter().map(sort).collect::<Result<_>>()?;
    sorter.finish(sorted)
}
