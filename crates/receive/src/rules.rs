//! The rules of a table (CHECK), asked of each partition before it is acknowledged: the client asks them too, and tells
//! which record breaks one, but a server cannot know that it did.
//!
//! Cost: nothing where a table has no rules; else the columns that these look at are decoded once more.

use std::path::Path;

use coload_cluster::{RowHashes, ShardBy, Table};
use coload_ddl::{Check, CheckedColumn};
use coload_store::{LoadTarget, SegmentFile};
use coload_types::{DataType, Error, Plain, Result};

/// The rules of the table that a load goes to.
#[derive(Debug)]
pub struct Rules {
    checks: Vec<Check>,
    /// Columns that some rule looks at.
    used: Vec<usize>,
    table: String,
    /// At a leaf of a cluster: which rows are in its shards.
    shards: Option<OwnShards>,
}

/// The shards of a leaf. A row elsewhere would be found by some statements and not by others.
#[derive(Debug)]
struct OwnShards {
    /// Shard columns, with their types.
    columns: Vec<(usize, DataType)>,
    /// For each shard whether it is here.
    is_here: Vec<bool>,
}

impl Rules {
    /// The rules that a load says it keeps; without those of the table it is not begun.
    pub fn new(target: &LoadTarget) -> Self {
        let checks = target.schema.checks().to_vec();
        let used = |column: &usize| checks.iter().any(|check| check.columns().contains(column));
        let used = (0..target.schema.len()).filter(used).collect();
        Rules { checks, used, table: target.name.clone(), shards: None }
    }

    /// The same at the leaf of a table of a cluster that has this place among its leaves.
    pub fn of_leaf(mut self, table: &Table, place: usize) -> Self {
        // Of rows that are dealt in turn nothing tells where they belong.
        let ShardBy::Columns(by) = &table.shard_by else { return self };
        let columns = table.schema.columns();
        self.shards = Some(OwnShards {
            columns: by.iter().map(|column| (*column, columns[*column].data_type)).collect(),
            is_here: table.shards.iter().map(|leaf| usize::from(*leaf) == place).collect(),
        });
        self.used.extend(by);
        self.used.sort_unstable();
        self.used.dedup();
        self
    }

    /// Checks the rows of a segment.
    ///
    /// # Errors
    /// `Invalid` that names a rule which a row breaks, `Corrupt` when the segment is damaged.
    pub fn verify(&self, path: &Path) -> Result<()> {
        if self.checks.is_empty() && self.shards.is_none() {
            return Ok(());
        }
        let segment = SegmentFile::open(path)?;
        for (page, rows) in segment.page_rows().iter().enumerate() {
            let mut columns: Vec<Option<Plain>> = vec![None; segment.column_count()];
            for column in &self.used {
                let mut plain = Plain::empty(segment.physical(*column));
                segment.decode_page(*column, page, &mut plain)?;
                columns[*column] = Some(plain);
            }
            let views: Vec<Option<CheckedColumn<'_>>> =
                columns.iter().map(|plain| plain.as_ref().map(CheckedColumn::Plain)).collect();
            let breaks = |check: &&Check| !check.broken(&views, *rows as usize).is_empty();
            if let Some(check) = self.checks.iter().find(breaks) {
                return Err(Error::Invalid(format!(
                    "a row that was sent breaks {} of table {}, which its client should have set aside (update \
                     the client)",
                    check.sql(),
                    self.table
                )));
            }
            if let Some(shards) = &self.shards
                && !shards.have_all(&views, *rows as usize)
            {
                return Err(Error::Invalid(format!(
                    "a row that was sent is in no shard of table {} that this leaf has (update the client)",
                    self.table
                )));
            }
        }
        Ok(())
    }
}

impl OwnShards {
    /// Whether all rows are in shards that are here.
    fn have_all(&self, views: &[Option<CheckedColumn<'_>>], rows: usize) -> bool {
        let mut hashes = RowHashes::new(rows);
        for (column, data_type) in &self.columns {
            let Some(Some(view)) = views.get(*column) else { return false };
            hashes.add(view, *data_type);
        }
        let count = self.is_here.len() as u32;
        hashes.shards(count).all(|shard| self.is_here[shard as usize])
    }
}
