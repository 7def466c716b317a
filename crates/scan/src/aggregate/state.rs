//! What has been counted and added so far, and how it is joined.

use std::collections::HashMap;

use coload_store::SegmentFile;
use coload_types::{Error, Result, Value};

use super::program::{Program, Step};
use super::segment_scan::{ScanScratch, SegmentScan};

/// The result of one aggregate in one group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AggregateValue {
    /// Of [`super::Aggregate::CountRows`] and [`super::Aggregate::Count`].
    Count(u64),
    /// Of exact sums, minima and maxima; `None` when no row counted.
    Exact(Option<i128>),
    /// Of float sums; `None` when no row counted.
    Float(Option<f64>),
}

/// A group of the result, with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupRow {
    /// Values of the grouping columns.
    pub key: Vec<Option<Value>>,
    /// Rows in the group.
    pub rows: u64,
    /// A value for each aggregate.
    pub values: Vec<AggregateValue>,
    /// For each aggregate, the rows of the group that it skipped because of NULLs.
    pub nulls: Vec<u64>,
}

/// One thread's part of an aggregation.
#[derive(Debug, Default)]
pub struct State {
    /// By the caller's index of the segment.
    dense: Vec<Option<Dense>>,
    pub(super) scratch: ScanScratch,
}

/// The groups of one segment.
#[derive(Debug, Clone)]
pub struct Dense {
    /// Rows of each group.
    pub rows: Vec<u64>,
    pub accumulators: Vec<Accumulator>,
}

/// One aggregate of all groups of one segment.
#[derive(Debug, Clone)]
pub struct Accumulator {
    kind: Kind,
    /// NULL rows of each group; empty as long as there are none.
    pub nulls: Vec<u64>,
    /// Parts of exact sums that cannot have overflown yet.
    pub small: Vec<i64>,
    /// What the magnitude of a number in `small` may have reached.
    reach: i64,
    /// Exact sums, minima or maxima.
    pub large: Vec<i128>,
    pub floats: Vec<f64>,
}

/// Which sums of an [`Accumulator`] rows are added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SumSize {
    /// 64 bits, where bounds prove that there is room.
    Small,
    /// 128 bits, each sum checked.
    Large,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Count,
    Sum,
    Min,
    Max,
    Float,
}

pub(super) fn sum_overflow() -> Error {
    Error::Invalid("a sum is over 128 bits".into())
}

impl Accumulator {
    fn new(step: &Step, groups: usize) -> Self {
        let kind = match step {
            Step::Count => Kind::Count,
            Step::Sum(_) => Kind::Sum,
            Step::Min(_) => Kind::Min,
            Step::Max(_) => Kind::Max,
            Step::SumFloat(_) => Kind::Float,
        };
        let large = match kind {
            Kind::Sum => vec![0; groups],
            Kind::Min => vec![i128::MAX; groups],
            Kind::Max => vec![i128::MIN; groups],
            Kind::Count | Kind::Float => Vec::new(),
        };
        let floats = if kind == Kind::Float { vec![0.0; groups] } else { Vec::new() };
        Accumulator { kind, nulls: Vec::new(), small: Vec::new(), reach: 0, large, floats }
    }

    /// Where the next page may add, its additions to any group being at most `amount` in magnitude.
    pub fn reserve(&mut self, amount: Option<i64>, groups: usize) -> Result<SumSize> {
        let Some(amount) = amount else {
            return Ok(SumSize::Large);
        };
        self.small.resize(groups, 0);
        self.reach = match self.reach.checked_add(amount) {
            Some(reach) => reach,
            None => {
                self.flush()?;
                amount
            }
        };
        Ok(SumSize::Small)
    }

    fn flush(&mut self) -> Result<()> {
        for (large, small) in self.large.iter_mut().zip(&mut self.small) {
            *large = large.checked_add(i128::from(*small)).ok_or_else(sum_overflow)?;
            *small = 0;
        }
        self.reach = 0;
        Ok(())
    }

    /// Adds to an exact sum.
    pub fn add(&mut self, group: usize, amount: i128) -> Result<()> {
        let sum = &mut self.large[group];
        *sum = sum.checked_add(amount).ok_or_else(sum_overflow)?;
        Ok(())
    }

    /// Counts NULL rows of a group.
    pub fn add_nulls(&mut self, group: usize, count: u64, groups: usize) {
        if count > 0 {
            self.nulls.resize(groups, 0);
            self.nulls[group] += count;
        }
    }

    fn merge(&mut self, mut other: Accumulator) -> Result<()> {
        self.flush()?;
        other.flush()?;
        if self.nulls.len() < other.nulls.len() {
            self.nulls.resize(other.nulls.len(), 0);
        }
        for (a, b) in self.nulls.iter_mut().zip(&other.nulls) {
            *a += b;
        }
        for (a, b) in self.large.iter_mut().zip(&other.large) {
            *a = self.kind.join(*a, *b)?;
        }
        for (a, b) in self.floats.iter_mut().zip(&other.floats) {
            *a += b;
        }
        Ok(())
    }

    fn value(&self, group: usize, rows: u64) -> (AggregateValue, u64) {
        let nulls = self.nulls.get(group).copied().unwrap_or(0);
        let counted = rows - nulls;
        let value = match self.kind {
            Kind::Count => AggregateValue::Count(counted),
            Kind::Float => AggregateValue::Float((counted > 0).then(|| self.floats[group])),
            _ => AggregateValue::Exact((counted > 0).then(|| self.large[group])),
        };
        (value, nulls)
    }
}

impl Kind {
    fn join(self, a: i128, b: i128) -> Result<i128> {
        match self {
            Kind::Min => Ok(a.min(b)),
            Kind::Max => Ok(a.max(b)),
            _ => a.checked_add(b).ok_or_else(sum_overflow),
        }
    }
}

impl Dense {
    fn new(program: &Program, groups: usize) -> Self {
        let accumulators =
            program.outputs.iter().map(|o| Accumulator::new(&o.step, groups)).collect();
        Dense { rows: vec![0; groups], accumulators }
    }
}

impl State {
    /// The groups of one segment.
    pub(super) fn dense(&mut self, segment: usize, program: &Program, groups: usize) -> &mut Dense {
        if self.dense.len() <= segment {
            self.dense.resize_with(segment + 1, || None);
        }
        self.dense[segment].get_or_insert_with(|| Dense::new(program, groups))
    }

    /// Adds what another thread has counted.
    ///
    /// # Errors
    /// `Invalid` when a sum is over 128 bits.
    pub fn merge(&mut self, other: State) -> Result<()> {
        if self.dense.len() < other.dense.len() {
            self.dense.resize_with(other.dense.len(), || None);
        }
        for (mine, theirs) in self.dense.iter_mut().zip(other.dense) {
            match (&mut *mine, theirs) {
                (_, None) => {}
                (None, theirs) => *mine = theirs,
                (Some(mine), Some(theirs)) => {
                    for (a, b) in mine.rows.iter_mut().zip(&theirs.rows) {
                        *a += b;
                    }
                    for (a, b) in mine.accumulators.iter_mut().zip(theirs.accumulators) {
                        a.merge(b)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The groups that have rows, joined over segments by their values; in no particular order.
    /// Without grouping columns there is always one, even of no rows. `segments` is the caller's
    /// list, to whose positions [`SegmentScan::aggregate_page`] was told to add.
    ///
    /// # Errors
    /// `Invalid` when a sum is over 128 bits.
    pub fn finish(
        self,
        program: &Program,
        grouped: Grouped,
        segments: &[(&SegmentFile, &SegmentScan)],
    ) -> Result<Vec<GroupRow>> {
        let mut groups = Groups::default();
        groups.add(self, program, segments)?;
        Ok(groups.finish(program, grouped))
    }
}

/// Groups of any number of segments, joined by their values.
#[derive(Debug, Default)]
pub struct Groups {
    rows: Vec<GroupRow>,
    /// Where a group stands in `rows`; nothing of the groups of the first segment, as long as that is the only one.
    known: HashMap<Vec<Option<Value>>, usize>,
}

impl Groups {
    /// Number of groups.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds what was counted of segments, which may go then.
    ///
    /// # Errors
    /// As [`State::finish`].
    pub fn add(
        &mut self,
        mut state: State,
        program: &Program,
        segments: &[(&SegmentFile, &SegmentScan)],
    ) -> Result<()> {
        for (dense, (segment, scan)) in state.dense.iter_mut().zip(segments) {
            let Some(dense) = dense else { continue };
            for accumulator in &mut dense.accumulators {
                accumulator.flush()?;
            }
            let is_first = self.rows.is_empty();
            if self.known.is_empty() {
                let known = self.rows.iter().enumerate();
                self.known = known.map(|(at, row)| (row.key.clone(), at)).collect();
            }
            for group in (0..dense.rows.len()).filter(|g| dense.rows[*g] > 0) {
                let row = dense.row(group, scan.key(segment, group)?);
                match self.known.get(&row.key) {
                    Some(at) => self.rows[*at].join(row, program)?,
                    None => {
                        if !is_first {
                            self.known.insert(row.key.clone(), self.rows.len());
                        }
                        self.rows.push(row);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds groups that were counted elsewhere, of the same program.
    ///
    /// # Errors
    /// As [`State::finish`].
    pub fn add_rows(&mut self, rows: Vec<GroupRow>, program: &Program) -> Result<()> {
        if self.known.is_empty() {
            let known = self.rows.iter().enumerate();
            self.known = known.map(|(at, row)| (row.key.clone(), at)).collect();
        }
        for row in rows {
            match self.known.get(&row.key) {
                Some(at) => self.rows[*at].join(row, program)?,
                None => {
                    self.known.insert(row.key.clone(), self.rows.len());
                    self.rows.push(row);
                }
            }
        }
        Ok(())
    }

    /// The groups, in no particular order; without grouping columns there is always one.
    pub fn finish(mut self, program: &Program, grouped: Grouped) -> Vec<GroupRow> {
        if self.rows.is_empty() && grouped == Grouped::No {
            self.rows.push(Dense::new(program, 1).row(0, Vec::new()));
        }
        self.rows
    }
}

/// Whether a query has grouping columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouped {
    /// Rows are grouped by the values of the query's grouping columns.
    Yes,
    /// It has none: all rows are one group.
    No,
}

impl Dense {
    fn row(&self, group: usize, key: Vec<Option<Value>>) -> GroupRow {
        let rows = self.rows[group];
        let (values, nulls) = self.accumulators.iter().map(|a| a.value(group, rows)).unzip();
        GroupRow { key, rows, values, nulls }
    }
}

impl GroupRow {
    fn join(&mut self, other: GroupRow, program: &Program) -> Result<()> {
        use AggregateValue::{Count, Exact, Float};
        // Those of other machines are what they say.
        self.rows = self.rows.saturating_add(other.rows);
        for (a, b) in self.nulls.iter_mut().zip(other.nulls) {
            *a = a.saturating_add(b);
        }
        let outputs = self.values.iter_mut().zip(other.values).zip(&program.outputs);
        for ((mine, theirs), output) in outputs {
            *mine = match (*mine, theirs) {
                (Count(a), Count(b)) => Count(a.saturating_add(b)),
                (Exact(Some(a)), Exact(Some(b))) => {
                    Exact(Some(Accumulator::new(&output.step, 0).kind.join(a, b)?))
                }
                (Float(Some(a)), Float(Some(b))) => Float(Some(a + b)),
                (Exact(None) | Float(None), b) => b,
                (a, _) => a,
            };
        }
        Ok(())
    }
}
