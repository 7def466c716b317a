//! Partitions as segments that stay in memory, for who looks at each once: an aggregate over files where they are.
//!
//! ```text
//!   partition sealed -> a segment of its columns -> TakesSegments::take, by any worker -> gone
//! ```
//!
//! Memory: that of the partitions under way; nothing of one is kept that was taken.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use coload_ddl::Schema;
use coload_store::SegmentFile;
use coload_threads::{Step, StepClock, lock};
use coload_transform::{FinalPage, PartitionColumn};
use coload_types::{Physical, Result};
use coload_wire::Seal;

use super::arriving::{Arriving, final_pages};
use super::{Ahead, Target, Work, Works};

/// Takes segments. Called by all workers, in any order.
pub trait TakesSegments: fmt::Debug + Send + Sync {
    /// Takes the rows of a partition.
    ///
    /// # Errors
    /// What ends the load.
    fn take(&self, segment: SegmentFile) -> Result<()>;
}

/// Makes a segment in memory of each partition.
#[derive(Debug)]
pub struct InMemory {
    shapes: Vec<Physical>,
    takes: Arc<dyn TakesSegments>,
    partitions: Mutex<BTreeMap<usize, Arriving>>,
    rows: AtomicU64,
}

impl InMemory {
    /// Segments of these columns.
    pub fn new(schema: &Schema, takes: Arc<dyn TakesSegments>) -> Self {
        let shapes = schema.columns().iter().map(|column| column.data_type.physical()).collect();
        InMemory { shapes, takes, partitions: Mutex::default(), rows: AtomicU64::new(0) }
    }

    /// What came of a partition has changed; the work of it, if it is whole.
    fn change(&self, number: usize, change: impl FnOnce(&mut Arriving)) -> Works {
        let mut partitions = lock(&self.partitions);
        let partition = partitions.entry(number).or_default();
        change(partition);
        let fragments = partition.ahead.len();
        if partition.page_rows.as_ref().is_none_or(|rows| rows.len() != fragments) {
            return Works::new();
        }
        let Some(partition) = partitions.remove(&number) else { return Works::new() };
        let rows = partition.page_rows.iter().flatten().map(|rows| u64::from(*rows)).sum();
        self.rows.fetch_add(rows, Ordering::Relaxed);
        if rows == 0 {
            return Works::new();
        }
        let (shapes, takes) = (self.shapes.clone(), Arc::clone(&self.takes));
        vec![Box::new(TakePartition { partition, shapes, takes })]
    }
}

impl Target for InMemory {
    fn take_ahead(&self, ahead: Ahead) -> Result<Works> {
        let Ahead { partition, fragment, columns } = ahead;
        let pages = final_pages(columns)?;
        Ok(self.change(partition, |partition| {
            partition.ahead.insert(fragment, pages);
        }))
    }

    fn take_column(
        &self,
        partition: usize,
        column: usize,
        _: &[u32],
        compressed: PartitionColumn,
    ) -> Result<()> {
        let mut partitions = lock(&self.partitions);
        let arriving = partitions.entry(partition).or_default();
        arriving.take_column(column, self.shapes.len(), compressed);
        Ok(())
    }

    fn seal(&self, seal: Seal) -> Result<Works> {
        Ok(self.change(seal.partition as usize, |partition| {
            partition.page_rows = Some(seal.page_rows);
        }))
    }

    fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

/// A partition that is whole.
#[derive(Debug)]
struct TakePartition {
    partition: Arriving,
    shapes: Vec<Physical>,
    takes: Arc<dyn TakesSegments>,
}

impl Work for TakePartition {
    fn run(self: Box<Self>, clock: &StepClock) -> Result<Works> {
        let TakePartition {
            partition: Arriving { ahead, mut columns, page_rows, .. },
            shapes,
            takes,
        } = *self;
        columns.resize_with(shapes.len(), || None);
        let mut columns: Vec<PartitionColumn> =
            columns.into_iter().map(Option::unwrap_or_default).collect();
        for FinalPage { column, page, symbols } in ahead.into_values().flatten() {
            let column = &mut columns[column];
            // All pages of a partition have the same symbols.
            if let (Some(symbols), true) = (symbols, column.symbols.is_empty()) {
                column.symbols.push(symbols.table());
            }
            column.pages.push(page);
        }
        let columns = shapes.into_iter().zip(columns).collect();
        let segment = SegmentFile::in_memory(page_rows.unwrap_or_default(), columns)?;
        clock.time(Step::Merge, || takes.take(segment))?;
        Ok(Works::new())
    }
}
