//! A change of rows of a table of a cluster: its plan tells the places of rows on all leaves.
//!
//! Of a table that is everywhere the plan has each row as often as there are leaves: all go, and what takes their place is made of the
//! first one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coload_types::{Error, Result};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::{filter_record_batch, not};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use futures::{Stream, StreamExt, TryStreamExt};

use super::merged::Merged;
use super::{
    Change, Kind, Work, count, found_twice, matched_twice, plan_again, stream, unsupported,
};
use crate::Answer;
use crate::cluster::{Changing, Cluster, Found};
use crate::database::Database;
use crate::error::{from_datafusion, to_datafusion};
use crate::rights::Rights;

type Batches = std::result::Result<RecordBatch, datafusion::error::DataFusionError>;

impl Change {
    /// Changes the rows on all leaves, in one version of the map, and answers how many they were.
    ///
    /// # Errors
    /// Those of [`Change::run`], but that rows are never changed by others while the statement runs: it waits for them.
    pub(super) async fn run_in_cluster(
        self,
        database: &Database,
        rights: &Rights,
        cluster: &Cluster,
    ) -> Result<Answer> {
        let Change { statement, parameters, planned } = self;
        let name = planned.table().name.clone();
        drop(planned);
        let changing = Changing::begin(database, cluster, &name).await?;
        let planned = plan_again(database, rights, &statement, &parameters).await?;
        if changing.is_everywhere() {
            refuse_random(&planned.rows)?;
        }
        let mut rows = stream(database, rights.user(), &planned.session, &planned.rows).await?;
        let found = Arc::clone(changing.found());
        match planned.work {
            Work::Rows(Kind::Delete | Kind::DeleteAll) => {
                while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
                    found.add(last_of(&batch)?, found_twice)?;
                }
                drop(rows);
                let deleted = found.count()?;
                if deleted > 0 {
                    changing.commit(database, futures::stream::empty()).await?;
                }
                count(deleted)
            }
            Work::Rows(Kind::Update) => {
                let of = Arc::clone(&found);
                let new = rows.map(move |batch| new_rows(&batch?, &of).map_err(to_datafusion));
                changing.commit(database, whole(new, &found)).await?;
                count(found.count()?)
            }
            Work::Merge { spelling, actions, .. } => {
                let (of, counted) = (Arc::clone(&found), Arc::new(AtomicU64::new(0)));
                let sum = Arc::clone(&counted);
                let twice = move || matched_twice(spelling, &name);
                let new = rows.map(move |batch| {
                    let batch = batch?;
                    let split = || -> Result<RecordBatch> {
                        let first = match of.first_copies(last_of(&batch)?)? {
                            None => batch.clone(),
                            Some(first) => {
                                let others = not(&first).map_err(|e| from_datafusion(e.into()))?;
                                let others = filter_record_batch(&batch, &others)
                                    .map_err(|e| from_datafusion(e.into()))?;
                                of.add(last_of(&actions.split(&others)?.gone)?, &twice)?;
                                filter_record_batch(&batch, &first)
                                    .map_err(|e| from_datafusion(e.into()))?
                            }
                        };
                        sum.fetch_add(first.num_rows() as u64, Ordering::Relaxed);
                        let Merged { new, gone } = actions.split(&first)?;
                        of.add(last_of(&gone)?, &twice)?;
                        Ok(new)
                    };
                    split().map_err(to_datafusion)
                });
                // Clauses that only delete make rows without columns.
                let new = new.try_filter(|batch| {
                    std::future::ready(batch.num_rows() > 0 && batch.num_columns() > 0)
                });
                changing.commit(database, whole(new, &found)).await?;
                count(counted.load(Ordering::Relaxed))
            }
        }
    }
}

fn last_of(batch: &RecordBatch) -> Result<&ArrayRef> {
    let last = batch.columns().last();
    last.ok_or_else(|| Error::Refused("internal error: rows without places".into()))
}

/// The rows that an UPDATE makes, whose places are noted.
fn new_rows(batch: &RecordBatch, found: &Found) -> Result<RecordBatch> {
    let places = last_of(batch)?;
    found.add(places, found_twice)?;
    let columns: Vec<usize> = (0..batch.num_columns() - 1).collect();
    let new = batch.project(&columns).map_err(|e| from_datafusion(e.into()))?;
    match found.first_copies(places)? {
        None => Ok(new),
        Some(first) => filter_record_batch(&new, &first).map_err(|e| from_datafusion(e.into())),
    }
}

/// The new rows, which end with an error if those that go are not the same on all leaves.
fn whole(
    rows: impl Stream<Item = Batches> + Send + 'static,
    found: &Arc<Found>,
) -> impl Stream<Item = Batches> + Unpin {
    let found = Arc::clone(found);
    let end = futures::stream::once(async move { found.count() });
    let end = end.filter_map(|count| async move { count.err().map(|e| Err(to_datafusion(e))) });
    Box::pin(rows.chain(end))
}

/// Refuses what would be another for each copy of a row.
fn refuse_random(rows: &LogicalPlan) -> Result<()> {
    let mut is_random = false;
    let look = |plan: &LogicalPlan| {
        plan.apply_expressions(|expr| {
            is_random |= expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })
    };
    rows.apply_with_subqueries(look).map_err(from_datafusion)?;
    match is_random {
        false => Ok(()),
        true => Err(unsupported(
            "a change of rows of a REFERENCE table by random values",
            "each leaf has a copy of the row: compute them in a table of their own first",
        )),
    }
}
