//! Sealed partitions to segments, or to a sink.

use std::sync::{Arc, atomic::Ordering};

use coload_assemble::Assembly;
use coload_page::runs::shrink_to_runs;
use coload_source::ColumnPlan;
use coload_store::{ClosedSegment, SegmentWriter, encode_dictionary};
use coload_threads::{Step, lock};
use coload_transform::{
    EncodingPolicy, FinalPage, Fragment, FragmentColumn, PartitionColumn, Placement, Symbols,
    encode_column,
};
use coload_types::{Error, Result};
use coload_wire::{BlockContent, Seal};

use super::{Destination, Pipeline};
use crate::partition::{PartitionPlan, SealedPartition, Waiting};
use crate::schedule::{Ahead, DoneSegment, Flow, Sealing};
use crate::widen::Way;

/// The page of a fragment's column that was never meant to have codes.
///
/// # Errors
/// `Limit` when it is too large.
pub fn final_page(
    plan: &PartitionPlan,
    column: usize,
    values: FragmentColumn,
) -> Result<FinalPage> {
    let symbols = plan.encoder(column);
    let page = match values {
        FragmentColumn::Page(page) => page,
        FragmentColumn::Plain(plain) => encode_column(&plain, symbols.map(Arc::as_ref))?,
        FragmentColumn::Codes { .. } => {
            return Err(Error::Corrupt("codes of a column without dictionary".into()));
        }
    };
    Ok(FinalPage { column, page: shrink_to_runs(page)?, symbols: symbols.cloned() })
}

impl Pipeline<'_> {
    pub(super) fn create_segment(&self, number: u32) -> Result<SegmentWriter> {
        match self.output {
            Destination::Store(dir) => SegmentWriter::create(&dir.segment_path(number)),
            Destination::Nowhere => Ok(SegmentWriter::to_nowhere()),
            Destination::Sink(..) => {
                Err(Error::Invalid("a load to a server writes no segments".into()))
            }
        }
    }

    /// Divides a fragment into what waits for the partition and the pages that are final, which go to the disk ahead.
    pub(super) fn divide_for_segments(
        &self,
        plan: &PartitionPlan,
        fragment: Fragment,
    ) -> Result<(Waiting, Ahead)> {
        let auto = self.options.encoding == EncodingPolicy::Auto;
        let mut waiting = Waiting { rows: fragment.rows, columns: Vec::new() };
        let mut pages = Vec::new();
        for (index, column) in fragment.columns.into_iter().enumerate() {
            match auto && plan.is_early(index) {
                true => pages.push(final_page(plan, index, column)?),
                false => waiting.columns.push((index, column)),
            }
        }
        Ok((waiting, Ahead::Pages(pages)))
    }

    /// Divides a fragment into what waits for the partition and what goes to the server ahead: the values of columns that
    /// the server transforms, and pages of those that were never meant to have codes. Of these, values that a filter
    /// picked become pages again.
    pub(super) fn divide_for_sink(
        &self,
        placements: &[Placement],
        plan: &PartitionPlan,
        fragment: Fragment,
    ) -> Result<(Waiting, Ahead)> {
        let auto = self.options.encoding == EncodingPolicy::Auto;
        let mut waiting = Waiting { rows: fragment.rows, columns: Vec::new() };
        let mut ahead = Vec::new();
        for (index, column) in fragment.columns.into_iter().enumerate() {
            let (column, is_final) = match (placements[index], &plan.columns[index], column) {
                (_, _, column) if plan.read_of(index).is_none() => (column, false),
                // Another column of the table, placed here, is the same column read.
                (Placement::Server, _, codes @ FragmentColumn::Codes { .. }) => (codes, false),
                (Placement::Server, _, values) => (values, true),
                (_, ColumnPlan::Codes, column) => (column, false),
                (.., page @ FragmentColumn::Page(_)) => (page, auto),
                (.., FragmentColumn::Plain(plain)) if auto && plan.is_early(index) => {
                    let page = encode_column(&plain, plan.encoder(index).map(Arc::as_ref))?;
                    (FragmentColumn::Page(page), true)
                }
                (.., column) => (column, false),
            };
            if is_final { &mut ahead } else { &mut waiting.columns }.push((index, column));
        }
        Ok((waiting, Ahead::Columns(ahead)))
    }

    pub(super) fn flow(&self, flow: Flow) -> Result<()> {
        let Flow { partition, fragment, columns, plan } = flow;
        if let Destination::Sink(sink, _) = self.output {
            for (column, values) in columns {
                let content = self.clock.time(Step::Compress, || match values {
                    FragmentColumn::Plain(values) => Ok(BlockContent::Plain { fragment, values }),
                    FragmentColumn::Page(page) => Ok(BlockContent::Pages {
                        dictionary: None,
                        symbols: plan.encoder(column).map(|e| e.table()).into_iter().collect(),
                        pages: vec![(fragment, shrink_to_runs(page)?)],
                    }),
                    FragmentColumn::Codes { .. } => {
                        Err(Error::Corrupt("codes left before their dictionary".into()))
                    }
                })?;
                sink.send(partition, column, content)?;
            }
        }
        lock(&self.state).sent();
        Ok(())
    }

    pub(super) fn seal(&self, sealing: Sealing) -> Result<()> {
        let Sealing { partition, blocks, page_rows } = sealing;
        if let Destination::Sink(sink, _) = self.output {
            let account = lock(&self.receipts).remove(&partition).unwrap_or_default();
            let rows = account.rows();
            // A pass that looks for all such fields leaves their records out: no attempt may go on behind it. A leg ends
            // before the first of them.
            if self.way != Way::GoOn && lock(&self.account).needs_wider() {
                lock(&self.state).sent();
                return Ok(());
            }
            sink.seal(Seal { partition: partition as u32, blocks, page_rows, account })?;
            self.rows_sealed.fetch_add(rows, Ordering::AcqRel);
        }
        lock(&self.state).sent();
        Ok(())
    }

    pub(super) fn compress(&self, partition: &SealedPartition, column: usize) -> Result<()> {
        let assembly = Assembly {
            physical: self.physicals[column],
            policy: self.options.encoding,
            limit: self.grain.dictionary_limit(),
            symbols: Symbols::Train,
        };
        let distinct = self.distinct(column);
        let mut result = partition.compress(column, assembly, &self.clock, distinct)?;
        if let Destination::Sink(sink, _) = self.output {
            let PartitionColumn { dictionary, symbols, pages } = result;
            let dictionary = dictionary.map(|d| encode_dictionary(&d)).transpose()?;
            let pages = partition.waiting(column).iter().copied().zip(pages).collect();
            sink.send(
                partition.number,
                column,
                BlockContent::Pages { dictionary, symbols, pages },
            )?;
            result = PartitionColumn { dictionary: None, symbols: Vec::new(), pages: Vec::new() };
        }
        let mut state = lock(&self.state);
        state.compressed(partition.number, column, result);
        state.push_partitions(&|n| self.create_segment(n))
    }

    pub(super) fn merge(&self, segment: &ClosedSegment, column: usize) -> Result<()> {
        let last = segment.merge(column, self.physicals[column], &self.clock);
        lock(&self.state).merged();
        if last? {
            let (summary, columns) = segment.finish(&self.clock)?;
            let done = DoneSegment { number: segment.number, summary, columns };
            lock(&self.state).segment_done(done);
        }
        Ok(())
    }
}
