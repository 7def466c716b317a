//! Fragments and partitions to the target.

use coload_assemble::Assembly;
use coload_threads::lock;
use coload_transform::{DictionaryPolicy, Fragment, FragmentColumn, Placement, Symbols};
use coload_types::Result;
use coload_wire::{RowsAre, Seal};

use super::Pipeline;
use crate::arrivals::Sealing;
use crate::format::Format;
use crate::partition::{PartitionPlan, SealedPartition, Waiting};
use crate::target::{Ahead, AheadColumn, Lane, Work, Works};
use crate::widen::Way;

impl<F: Format> Pipeline<'_, F> {
    /// Divides a fragment into what waits for the partition and what goes ahead: pages of columns that were never meant
    /// to have codes, and values of columns that the target transforms. Of the former, values that a filter picked become
    /// pages again.
    pub(super) fn divide(
        &self,
        placements: Option<&[Placement]>,
        plan: &PartitionPlan,
        fragment: Fragment,
    ) -> Result<(Waiting, Vec<AheadColumn>)> {
        let auto = self.resources.dictionaries != DictionaryPolicy::Always;
        let mut waiting = Waiting { rows: fragment.rows, columns: Vec::new() };
        let mut ahead = Vec::new();
        for (index, column) in fragment.columns.into_iter().enumerate() {
            let placed = placements.map_or(Placement::Client, |placements| placements[index]);
            match (placed, column) {
                // Another column of the table, placed here, is the same column read.
                (
                    Placement::Server,
                    column @ (FragmentColumn::Plain(_) | FragmentColumn::Page(_)),
                ) if plan.read_of(index).is_some() => {
                    ahead.push(ahead_column(plan, index, column)?);
                }
                (_, column) if auto && plan.is_early(index) => {
                    ahead.push(AheadColumn::Page(plan.final_page(index, column)?));
                }
                (_, column) => waiting.columns.push((index, column)),
            }
        }
        Ok((waiting, ahead))
    }

    pub(super) fn give_ahead(&self, ahead: Ahead) -> Result<()> {
        let works = self.target.take_ahead(ahead)?;
        self.workers.lock().tasks.delivered(works);
        Ok(())
    }

    pub(super) fn seal(&self, partition: usize) -> Result<()> {
        let Sealing { blocks, page_rows } = self.workers.lock().tasks.take_sealing(partition);
        let account = lock(&self.books.receipts).remove(&partition).unwrap_or_default();
        // A pass that looks for all fields that do not fit leaves their records out: no attempt may go on behind it. A leg
        // ends before the first of them.
        let is_vain = self.target.keeps_partitions()
            && self.way != Way::GoOn
            && lock(&self.books.account).needs_wider();
        let works = match is_vain {
            true => Works::new(),
            false => self.target.seal(Seal {
                partition: partition as u32,
                blocks,
                page_rows,
                account,
                rows_are: RowsAre::AsRead,
            })?,
        };
        self.workers.lock().tasks.sealed(works);
        Ok(())
    }

    pub(super) fn compress(&self, partition: &SealedPartition, column: usize) -> Result<()> {
        let assembly = Assembly {
            physical: self.table.physicals[column],
            policy: self.resources.dictionaries,
            limit: self.grain.dictionary_limit(),
            symbols: Symbols::Train,
        };
        let distinct = self.table.distinct(column);
        let compressed = partition.compress(column, assembly, &self.clock, distinct)?;
        let fragments = partition.waiting(column);
        self.target.take_column(partition.number, column, fragments, compressed)?;
        self.workers.lock().tasks.schedule.done_of(partition.number);
        Ok(())
    }

    /// Does work that the target left.
    pub(super) fn run_work(&self, work: Box<dyn Work>) -> Result<()> {
        let lane = work.lane();
        let works = work.run(&self.clock)?;
        self.workers.lock().tasks.worked(lane, works);
        Ok(())
    }

    pub(super) fn end_target(&self) -> Result<()> {
        let works = self.target.end()?;
        self.workers.lock().tasks.worked(Lane::Any, works);
        Ok(())
    }
}

/// A column of a fragment as it goes to a target that transforms it.
///
/// # Errors
/// `Limit` when its page is too large.
pub fn ahead_column(
    plan: &PartitionPlan,
    column: usize,
    values: FragmentColumn,
) -> Result<AheadColumn> {
    Ok(match values {
        FragmentColumn::Plain(values) => AheadColumn::Values { column, values },
        other => AheadColumn::Page(plan.final_page(column, other)?),
    })
}
