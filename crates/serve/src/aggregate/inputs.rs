//! Aggregates over inputs where they are: a load whose partitions are added to the groups, and forgotten.
//!
//! Memory: what the load has, and the groups, of which there are [`GROUPS_KEPT_MAX`] at most.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use coload_load::{Hooks, InMemory, Load, TakesSegments, rows_told};
use coload_scan::aggregate::{
    Aggregate, AggregateValue, GROUPS_MAX, GroupRow, Grouped, Groups, Program, Query, SegmentScan,
    State, supports,
};
use coload_store::SegmentFile;
use coload_threads::{lock, spawn};
use coload_transform::DictionaryPolicy;
use coload_types::{Error, Result};
use datafusion::error::Result as DataFusionResult;

use super::exec::Counts;
use crate::error::to_datafusion;
use crate::external::{EndOnDrop, Reading, counts_parts, read_all};

/// Most groups of all partitions together.
const GROUPS_KEPT_MAX: usize = 4 * GROUPS_MAX;

/// Adds segments to groups.
#[derive(Debug)]
struct Adds {
    query: Arc<Query>,
    program: Arc<Program>,
    groups: Mutex<Groups>,
    /// Whether a segment turned out to have no codes where the query wants them, or there are too many groups.
    is_unfit: AtomicBool,
    counts: Counts,
}

impl Adds {
    /// Ends the load.
    fn give_up(&self) -> Error {
        self.is_unfit.store(true, Ordering::Relaxed);
        Error::Unavailable("columns without codes".into())
    }

    /// Whether nothing is asked but how many rows there are.
    fn only_counts(&self) -> bool {
        let Query { predicates, groups, aggregates } = &*self.query;
        let counts = |aggregate: &Aggregate| matches!(aggregate, Aggregate::CountRows);
        predicates.is_empty() && groups.is_empty() && aggregates.iter().all(counts)
    }

    /// The answer to that.
    fn count_of(&self, rows: u64) -> GroupRow {
        let count = self.query.aggregates.len();
        let values = vec![AggregateValue::Count(rows); count];
        GroupRow { key: Vec::new(), rows, values, nulls: vec![0; count] }
    }
}

impl TakesSegments for Adds {
    fn take(&self, segment: SegmentFile) -> Result<()> {
        if !supports(&segment, &self.query)? {
            return Err(self.give_up());
        }
        let scan = SegmentScan::new(&segment, None, &self.query, Arc::clone(&self.program))?;
        let mut state = State::default();
        for (page, rows) in segment.page_rows().iter().enumerate() {
            let work = scan.aggregate_page(&segment, page, 0, &mut state)?;
            self.counts.add(work, *rows);
        }
        let mut groups = lock(&self.groups);
        groups.add(state, &self.program, &[(&segment, &scan)])?;
        match groups.len() > GROUPS_KEPT_MAX {
            true => Err(self.give_up()),
            false => Ok(()),
        }
    }
}

/// The groups of all rows of inputs; `None` where it cannot be done on codes.
///
/// # Errors
/// Those of a load; `Invalid` when a sum is over 128 bits.
pub(super) async fn aggregate_inputs(
    reading: Reading,
    query: Arc<Query>,
    program: Arc<Program>,
    counts: Counts,
) -> DataFusionResult<Option<Vec<GroupRow>>> {
    let grouped = if query.groups.is_empty() { Grouped::No } else { Grouped::Yes };
    let (groups, is_unfit) = (Mutex::default(), AtomicBool::new(false));
    let opened = Some(counts_parts(counts.metrics.clone()));
    let adds = Arc::new(Adds { query, program: Arc::clone(&program), groups, is_unfit, counts });
    let hooks = Hooks { opened, ..Hooks::default() };
    let ended = EndOnDrop::new(&hooks);
    let (tell, told) = tokio::sync::oneshot::channel();
    let work = {
        let adds = Arc::clone(&adds);
        move || {
            let Reading { table, request, mut resources, held } = reading;
            resources.dictionaries = DictionaryPolicy::ForScan;
            let load = Load { request: &request, resources: &resources, hooks: &hooks };
            let told = match adds.only_counts() {
                true => rows_told(&request),
                false => Ok(None),
            };
            let read = told.and_then(|told| match told {
                Some(rows) => Ok(Some(rows)),
                None => {
                    read_all(&table, load, &InMemory::new(&request.schema, adds)).map(|()| None)
                }
            });
            drop(held);
            // Whoever waited may have gone.
            let _ = tell.send(read);
        }
    };
    let thread = std::thread::Builder::new().name("coload-external".to_owned());
    let started = spawn(thread, work);
    started
        .map_err(|e| to_datafusion(Error::Unavailable(format!("cannot start a thread: {e}"))))?;
    let read = told.await.unwrap_or_else(|_| {
        let text = "the thread that reads the inputs has ended without a word";
        Err(Error::Unavailable(text.into()))
    });
    drop(ended);
    match read {
        Ok(Some(rows)) => Ok(Some(vec![adds.count_of(rows)])),
        Ok(None) => {
            let groups = std::mem::take(&mut *lock(&adds.groups));
            Ok(Some(groups.finish(&program, grouped)))
        }
        Err(_) if adds.is_unfit.load(Ordering::Relaxed) => Ok(None),
        Err(error) => Err(to_datafusion(error)),
    }
}
