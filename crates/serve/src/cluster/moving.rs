//! `ALTER CLUSTER REBALANCE` and `ALTER CLUSTER REMOVE 'node'`: one step that moves shards of a table to other leaves.
//!
//! ```text
//!   version f of the map: shards are on their way       rows of them, as of f, from their leaves -> routed as a load is -> new leaves
//!   all new leaves have prepared them: one version switches leaves and shards; new leaves publish, old ones delete
//! ```
//!
//! A statement is a step, and answers what it moved; it answers no row when there is nothing left to move. So whoever wants
//! all moved says it again, and may stop between any two. Loads into the table wait during a step, statements do not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use coload_cluster::{Giver, Map, NodeId, ShardBy, Table, Tried};
use coload_load::Leaves;
use coload_store::{LoadId, LoadMode, LoadTarget, OnConflict};
use coload_types::{Error, Result};
use datafusion::arrow::array::{ArrayRef, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema as ArrowSchema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::Stream;

use super::links::LeafRows;
use super::question::Question;
use super::{Cluster, add_rows_to};
use crate::Answer;
use crate::database::Database;
use crate::error::to_datafusion;
use crate::memory::sliced_bytes;
use crate::rights::{Rights, Role};
use crate::write::RowTarget;

/// Megabytes of rows a second that a step moves at most, if nobody says how many.
const MEGABYTES_DEFAULT: u64 = 64;

/// A step of moving shards.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Id or address of the node that leaves, if one does.
    leaving: Option<String>,
    /// Megabytes of rows a second; 0 for as many as go.
    megabytes: u64,
}

impl Step {
    /// Reads a statement that begins with ALTER CLUSTER; `None` for any other text.
    ///
    /// # Errors
    /// `Invalid` when it is another one of that beginning.
    pub fn parse(text: &str) -> Result<Option<Step>> {
        let text = text.trim().trim_end_matches(';');
        let words: Vec<&str> = text.split_whitespace().collect();
        let is =
            |at: usize, word: &str| words.get(at).is_some_and(|w| w.eq_ignore_ascii_case(word));
        if !is(0, "ALTER") || !is(1, "CLUSTER") {
            return Ok(None);
        }
        let wrong = || {
            Error::Invalid(
                "write ALTER CLUSTER REBALANCE or ALTER CLUSTER REMOVE 'node', and behind it AT n for n megabytes a second".into(),
            )
        };
        let (leaving, rest) = match (is(2, "REBALANCE"), is(2, "REMOVE"), words.get(3)) {
            (true, ..) => (None, 3),
            (_, true, Some(node)) => {
                let node = node.strip_prefix('\'').and_then(|n| n.strip_suffix('\''));
                (Some(node.ok_or_else(wrong)?.to_owned()), 4)
            }
            _ => return Err(wrong()),
        };
        let megabytes = match &words[rest..] {
            [] => MEGABYTES_DEFAULT,
            [at, number] if at.eq_ignore_ascii_case("AT") => number.parse().map_err(|_| wrong())?,
            _ => return Err(wrong()),
        };
        Ok(Some(Step { leaving, megabytes }))
    }

    /// Columns of the answer.
    pub fn schema() -> SchemaRef {
        Arc::new(ArrowSchema::new(vec![
            Field::new("table", DataType::Utf8, false),
            Field::new("shards", DataType::UInt64, false),
            Field::new("rows", DataType::UInt64, false),
        ]))
    }

    /// Does it. Without anything to move the node that leaves is none of the cluster any more.
    pub async fn run(self, database: &Database, rights: &Rights) -> Result<Answer> {
        let cluster = database.options().cluster.as_ref().ok_or_else(|| {
            Error::Invalid(
                "ALTER CLUSTER: this store is in no cluster (coload serve --cluster)".into(),
            )
        })?;
        let member = cluster.member();
        let map = member.look()?.map;
        rights.require_everywhere(Role::Admin, "ALTER CLUSTER")?;
        let leaving = self.leaving.as_deref().map(|node| node_named(&map, node)).transpose()?;
        if leaving == Some(member.id()) {
            return Err(Error::Invalid("a node does not remove itself: ask another one".into()));
        }
        let load = LoadId::random()?;
        let leaving: Vec<NodeId> = leaving.into_iter().collect();
        let Some((map, table)) = member.maps().begin_move((load, member.id()), &leaving)? else {
            leaving.iter().try_for_each(|node| member.maps().remove_node(*node))?;
            let none = futures::stream::empty();
            return Ok(Answer::new(Box::pin(RecordBatchStreamAdapter::new(Step::schema(), none))));
        };
        let table = map.table_of(table).cloned().ok_or_else(|| {
            Error::Corrupt("shards of a table that is not in the map are to move".into())
        })?;
        let moved = self.move_rows(database, cluster, (&map, &table), load).await;
        if moved.is_err() {
            // What is switched stays so; else the shards stay where they are.
            let _ = member.abort(load, None);
        }
        let rows = moved?;
        // The next step finds all nodes at this one: a version that is passed over cannot be read.
        let all = member.leaves_at(&map, table.id);
        let told = tokio::task::spawn_blocking(move || all.look(|_| true)).await;
        // One that is away does so when it is back.
        let _ = told.map_err(|e| Error::Refused(format!("internal error: {e}")))?;
        let columns: [ArrayRef; 3] = [
            Arc::new(StringArray::from(vec![table.name.clone()])),
            Arc::new(UInt64Array::from(vec![table.moving_count() as u64])),
            Arc::new(UInt64Array::from(vec![rows])),
        ];
        let batch = RecordBatch::try_new(Step::schema(), columns.to_vec());
        let batch = batch.map_err(|e| Error::Refused(format!("internal error: {e}")))?;
        let rows = futures::stream::iter([Ok(batch)]);
        Ok(Answer::new(Box::pin(RecordBatchStreamAdapter::new(Step::schema(), rows))))
    }

    async fn move_rows(
        &self,
        database: &Database,
        cluster: &Cluster,
        (map, table): (&Arc<Map>, &Table),
        load: LoadId,
    ) -> Result<u64> {
        let member = cluster.member();
        let Some(receiving) = table.receiving() else {
            member.commit(load, table.id, Tried::Once)?;
            return Ok(0);
        };
        let questions = table.givers().into_iter().map(|giver| question(map, table, giver));
        let reading = Reading {
            cluster: cluster.clone(),
            questions: questions.collect::<Result<_>>()?,
            leaf: None,
            began: Instant::now(),
            bytes: 0,
            megabytes: self.megabytes,
        };
        let has_key = table.schema.key().is_some_and(|key| key.is_unique());
        let target = RowTarget {
            load: LoadTarget {
                name: table.name.clone(),
                schema: table.schema.clone(),
                mode: LoadMode::Append,
            },
            // None of their keys is at the leaves that get them.
            on_conflict: if has_key { OnConflict::Ignore } else { OnConflict::Error },
        };
        let mut seen = Map::clone(map);
        seen.tables.retain(|of| of.id != table.id);
        seen.tables.push(receiving);
        let into =
            Leaves { map: Arc::new(seen), id: Some(load), ..member.leaves_at(map, table.id) };
        add_rows_to(database, Some(into), target, Box::pin(reading.batches())).await
    }
}

/// The node of an id or an address.
fn node_named(map: &Map, node: &str) -> Result<NodeId> {
    let found = map.nodes.iter().find(|n| n.address == node || n.id.to_string() == node);
    found.map(|node| node.id).ok_or_else(|| {
        let known: Vec<&str> = map.nodes.iter().map(|node| &*node.address).collect();
        Error::Invalid(format!("no node {node} is in the cluster (there are {})", known.join(", ")))
    })
}

/// What a leaf is asked of the rows that go.
fn question(map: &Map, table: &Table, giver: Giver) -> Result<(String, Question)> {
    let node = map.node(giver.leaf).ok_or_else(|| {
        Error::Corrupt(format!("leaf {} of table {} is not in the map", giver.leaf, table.name))
    })?;
    let question = Question {
        version: map.version,
        table: table.id,
        name: table.name.clone(),
        limit: None,
        columns: (0..table.schema.len()).collect(),
        tests: Vec::new(),
        aggregates: None,
        shards: giver.shards,
    };
    Ok((node.address.clone(), question))
}

/// Rows of leaves, one leaf after the other, not faster than is wanted.
struct Reading {
    cluster: Cluster,
    questions: Vec<(String, Question)>,
    leaf: Option<LeafRows>,
    began: Instant,
    bytes: u64,
    megabytes: u64,
}

impl Reading {
    fn batches(
        self,
    ) -> impl Stream<Item = std::result::Result<RecordBatch, datafusion::error::DataFusionError>>
    {
        futures::stream::unfold(self, |mut reading| async move {
            let next = reading.next().await.map_err(to_datafusion).transpose()?;
            Some((next, reading))
        })
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(leaf) = &mut self.leaf {
                if let Some(batch) = leaf.next().await.transpose()? {
                    self.rest(sliced_bytes(&batch)).await;
                    return Ok(Some(batch));
                }
                self.leaf = None;
            }
            let Some((address, question)) = self.questions.pop() else { return Ok(None) };
            let inner = &self.cluster.inner;
            self.leaf = Some(inner.links.ask(&self.cluster.handle(), &address, question));
        }
    }

    /// Waits until so many bytes more are not too many.
    async fn rest(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if self.megabytes == 0 {
            return;
        }
        let due = Duration::from_secs_f64(self.bytes as f64 / (self.megabytes as f64 * 1e6));
        tokio::time::sleep(due.saturating_sub(self.began.elapsed())).await;
    }
}

/// The rows of some shards of a table.
#[derive(Debug, Clone)]
pub(crate) struct ShardFilter {
    /// Shard columns, by their places in the batches.
    columns: Vec<(usize, coload_types::Column)>,
    /// For each shard whether its rows are wanted.
    is_wanted: Vec<bool>,
}

impl ShardFilter {
    /// The filter of a question, whose columns are in this order in batches.
    ///
    /// # Errors
    /// `Corrupt` when the table has no such shards, or their columns are not among those that are asked for.
    pub fn new(table: &Table, columns: &[usize], shards: &[u32]) -> Result<Self> {
        let wrong = || super::question::wrong("shards that the table has not");
        let ShardBy::Columns(by) = &table.shard_by else { return Err(wrong()) };
        let mut is_wanted = vec![false; table.shards.len()];
        for shard in shards {
            *is_wanted.get_mut(*shard as usize).ok_or_else(wrong)? = true;
        }
        let of = |column: &usize| {
            let place = columns.iter().position(|asked| asked == column).ok_or_else(wrong)?;
            Ok((place, table.schema.columns()[*column].clone()))
        };
        Ok(ShardFilter { columns: by.iter().map(of).collect::<Result<_>>()?, is_wanted })
    }

    /// The rows of a batch that are in the shards.
    ///
    /// # Errors
    /// None for rows of a table.
    pub fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        use coload_cluster::RowHashes;
        use coload_ddl::CheckedColumn;

        let mut hashes = RowHashes::new(batch.num_rows());
        for (place, column) in &self.columns {
            let mut rows = crate::rows::ColumnRows::new(column);
            rows.append(batch.column(*place))?;
            hashes.add(&CheckedColumn::Plain(&rows.into_plain()), column.data_type);
        }
        let shards = hashes.shards(self.is_wanted.len() as u32);
        let kept: datafusion::arrow::array::BooleanArray =
            shards.map(|shard| Some(self.is_wanted[shard as usize])).collect();
        datafusion::arrow::compute::filter_record_batch(batch, &kept)
            .map_err(|e| Error::Refused(format!("internal error: {e}")))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_step_is_read_and_what_is_none_is_refused() {
        let read = |text: &str| Step::parse(text).unwrap();
        let step = |leaving: Option<&str>, megabytes| {
            Some(Step { leaving: leaving.map(str::to_owned), megabytes })
        };
        assert_eq!(read("alter cluster\n rebalance;"), step(None, MEGABYTES_DEFAULT));
        assert_eq!(read("ALTER CLUSTER REBALANCE AT 0"), step(None, 0));
        assert_eq!(
            read("ALTER CLUSTER REMOVE 'coload://a:8470' at 5"),
            step(Some("coload://a:8470"), 5)
        );
        assert_eq!(read("ALTER TABLE cluster ADD COLUMN a INT"), None);
        for text in [
            "ALTER CLUSTER",
            "ALTER CLUSTER REMOVE",
            "ALTER CLUSTER REMOVE a",
            "ALTER CLUSTER REBALANCE 5",
            "ALTER CLUSTER REBALANCE AT x",
        ] {
            assert!(Step::parse(text).is_err(), "{text}");
        }
    }
}
