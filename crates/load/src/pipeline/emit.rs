//! Sealed partitions to segments, or to a sink.

use std::sync::atomic::Ordering;

use coload_page::Page;
use coload_page::shrink_page;
use coload_source::ColumnPlan;
use coload_store::{SegmentWriter, encode_dictionary};
use coload_transform::{
    EncodingPolicy, Fragment, FragmentColumn, PartitionColumn, Placement, encode_column,
};
use coload_types::{Error, Plain, Result};

use std::sync::Arc;

use super::{Destination, Pipeline};
use crate::clock::Step;
use crate::partition::{PartitionPlan, SealedPartition};
use crate::schedule::{DoneSegment, Flow, Sealing};
use crate::segments::{ClosedSegment, EarlyPages, lock};
use crate::widen::Way;
use crate::wire::{BlockContent, Seal};

/// The page of a fragment's column that was never meant to have codes.
///
/// # Errors
/// `Limit` when it is too large.
pub fn early_page(plan: &PartitionPlan, column: usize, values: FragmentColumn) -> Result<Page> {
    match values {
        FragmentColumn::Page(page) => Ok(page),
        FragmentColumn::Plain(plain) => encode_column(&plain, plan.encoder(column)),
        FragmentColumn::Codes { .. } => {
            Err(Error::Corrupt("codes of a column without dictionary".into()))
        }
    }
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

    /// Takes the columns out of a fragment that are final: their pages go to the disk without waiting for the
    /// partition. Tells which.
    pub(super) fn take_early(
        &self,
        plan: &Arc<PartitionPlan>,
        fragment: &mut Fragment,
    ) -> Result<(Vec<bool>, Option<EarlyPages>)> {
        if self.options.encoding != EncodingPolicy::Auto {
            return Ok((Vec::new(), None));
        }
        let flows: Vec<bool> =
            (0..plan.columns.len()).map(|column| plan.is_early(column)).collect();
        let mut pages = Vec::new();
        for column in plan.early_columns() {
            let gone = FragmentColumn::Plain(Plain::empty(self.physicals[column]));
            let taken = std::mem::replace(&mut fragment.columns[column], gone);
            pages.push(shrink_page(early_page(plan, column, taken)?)?);
        }
        let early = EarlyPages { pages, plan: Arc::clone(plan) };
        Ok((flows, (!early.pages.is_empty()).then_some(early)))
    }

    /// Which columns of a fragment are final: the values of those that the server transforms, and
    /// pages of those that were never meant to have codes. Of these, values that a filter picked become pages
    /// again.
    pub(super) fn flows(
        &self,
        placements: &[Placement],
        plan: &PartitionPlan,
        of: &mut Fragment,
    ) -> Result<Vec<bool>> {
        let auto = self.options.encoding == EncodingPolicy::Auto;
        let mut flows = Vec::with_capacity(of.columns.len());
        for (index, column) in of.columns.iter_mut().enumerate() {
            flows.push(match (&placements[index], &plan.columns[index], &*column) {
                _ if plan.read_of(index).is_none() => false,
                // Another column of the table, placed here, is the same column read.
                (Placement::Server, _, FragmentColumn::Codes { .. }) => false,
                (Placement::Server, ..) => true,
                (_, ColumnPlan::Codes, _) => false,
                (.., FragmentColumn::Page(_)) => auto,
                (.., FragmentColumn::Plain(plain)) if auto && plan.is_early(index) => {
                    *column = FragmentColumn::Page(encode_column(plain, plan.encoder(index))?);
                    true
                }
                _ => false,
            });
        }
        Ok(flows)
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
                        pages: vec![(fragment, shrink_page(page)?)],
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
        let physical = self.physicals[column];
        let policy = self.options.encoding;
        let limit = self.grain.dictionary_limit();
        let distinct = self.distinct(column);
        let mut result =
            partition.compress(column, physical, policy, limit, &self.clock, distinct)?;
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
