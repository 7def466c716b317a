//! One partition of a scan: takes pages, selects rows, decodes batches.

use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use coload_scan::{BlockMask, PageRef, Selection};
use coload_store::{ExpandedPages, SegmentFile};
use coload_types::{Error, Result as StoreResult};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::Result;
use datafusion::execution::RecordBatchStream;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder,
};
use futures::Stream;

use crate::decode::{Rows, decode_column};
use crate::error::to_datafusion;
use crate::places::places_of;
use crate::scan::{ScanColumn, ScanSegment, Work};

/// The batches of one partition.
pub(crate) struct ScanStream {
    work: Arc<OnceLock<Work>>,
    partition: usize,
    schema: SchemaRef,
    columns: Vec<ScanColumn>,
    /// Rows that may still be asked for.
    left: usize,
    batch_rows: usize,
    page: Option<OpenPage>,
    metrics: Metrics,
}

/// The page that is being read.
struct OpenPage {
    segment: Arc<SegmentFile>,
    /// Where the segment stands in its table, and the page in the segment.
    place: (usize, u64),
    page: usize,
    expanded: ExpandedPages,
    selection: Selection,
    next_block: usize,
}

struct Metrics {
    baseline: BaselineMetrics,
    pages_scanned: Count,
    pages_pruned: Count,
    rows_tested: Count,
}

impl ScanStream {
    pub fn new(
        work: Arc<OnceLock<Work>>,
        schema: SchemaRef,
        columns: Vec<ScanColumn>,
        limit: Option<usize>,
        batch_rows: usize,
        (metrics, partition): (&ExecutionPlanMetricsSet, usize),
    ) -> Self {
        let counter = |name| MetricBuilder::new(metrics).counter(name, partition);
        ScanStream {
            work,
            partition,
            schema,
            columns,
            left: limit.unwrap_or(usize::MAX),
            batch_rows,
            page: None,
            metrics: Metrics {
                baseline: BaselineMetrics::new(metrics, partition),
                pages_scanned: counter("pages_scanned"),
                pages_pruned: counter("pages_pruned"),
                rows_tested: counter("rows_tested"),
            },
        }
    }

    /// The next batch that is not empty; `None` at the end.
    fn next_batch(&mut self) -> StoreResult<Option<RecordBatch>> {
        while self.left > 0 {
            if self.page.as_ref().is_none_or(|p| p.next_block >= p.selection.block_count()) {
                // The selection's memory is used again.
                let selection = self.page.take().map(|p| p.selection).unwrap_or_default();
                match self.take_page(selection)? {
                    Some(page) => self.page = Some(page),
                    None => return Ok(None),
                }
            }
            let Some(page) = &mut self.page else { return Ok(None) };
            let (blocks, rows) = page.take_blocks(self.batch_rows.min(self.left), &self.columns);
            if rows > 0 {
                let batch = decode(page, blocks, rows, &self.schema, &self.columns)?;
                self.left = self.left.saturating_sub(rows);
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// The next page that has rows.
    fn take_page(&self, mut selection: Selection) -> StoreResult<Option<OpenPage>> {
        let Some(work) = self.work.get() else { return Ok(None) };
        let Some((queue, blocks)) = work.queue(self.partition) else { return Ok(None) };
        while let Some(PageRef { segment, page }) = queue.take() {
            let ScanSegment { file, filter, index, starts } = &work.segments[segment];
            let place = (*index, starts.get(page).copied().unwrap_or_default());
            let rows = file.page_rows()[page] as usize;
            let expanded = ExpandedPages::default();
            let mut test = filter.open(file, page, &expanded)?;
            if test.is_none() {
                self.metrics.pages_pruned.add(1);
                continue;
            }
            self.metrics.pages_scanned.add(1);
            if !test.is_all() {
                self.metrics.rows_tested.add(rows);
            }
            selection.reset(rows);
            for block in 0..rows.div_ceil(coload_page::bitpack::BLOCK) {
                let is_read = blocks.contains(&block);
                selection.push(if is_read { test.block(block)? } else { BlockMask::NONE });
            }
            file.check()?;
            if selection.count() > 0 {
                drop(test);
                let segment = Arc::clone(file);
                return Ok(Some(OpenPage {
                    segment,
                    place,
                    page,
                    expanded,
                    selection,
                    next_block: 0,
                }));
            }
        }
        Ok(None)
    }
}

impl OpenPage {
    /// The next blocks that together have at least `rows` selected rows, and how many those are.
    /// Without columns to decode, all that are left.
    fn take_blocks(&mut self, rows: usize, columns: &[ScanColumn]) -> (Range<usize>, usize) {
        let start = self.next_block;
        let wanted = if columns.is_empty() { usize::MAX } else { rows };
        let mut taken = 0;
        while self.next_block < self.selection.block_count() && taken < wanted {
            taken += self.selection.block(self.next_block).1;
            self.next_block += 1;
        }
        (start..self.next_block, taken)
    }
}

fn decode(
    page: &OpenPage,
    blocks: Range<usize>,
    rows: usize,
    schema: &SchemaRef,
    columns: &[ScanColumn],
) -> StoreResult<RecordBatch> {
    let of = Rows {
        segment: &page.segment,
        page: page.page,
        expanded: &page.expanded,
        selection: &page.selection,
        blocks,
    };
    let arrays = columns
        .iter()
        .map(|column| match column {
            ScanColumn::Stored(column, data_type) => decode_column(&of, *column, *data_type),
            ScanColumn::Place => places_of(page.place, of.selection, of.blocks.clone()),
        })
        .collect::<StoreResult<Vec<_>>>()?;
    page.segment.check()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
        .map_err(|e| Error::corrupt(page.segment.path(), e))
}

impl Stream for ScanStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let time = self.metrics.baseline.elapsed_compute().clone();
        let timer = time.timer();
        let batch = self.next_batch();
        timer.done();
        let poll = Poll::Ready(batch.map_err(to_datafusion).transpose());
        self.metrics.baseline.record_poll(poll)
    }
}

impl RecordBatchStream for ScanStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
