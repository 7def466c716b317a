//! The catalog of one version of a store: tables, their segments and their loads.
//!
//! A manifest is a value. It is decoded once per version, never changed in place, and the next
//! version is made from a copy (`change`). Its bytes are in `codec` and in docs/storage-format.md.
//!
//! Memory: some 80 bytes a column of each segment, and the text of min and max up to
//! [`BOUND_BYTES_MAX`] each.

mod codec;
mod column_codec;
mod index_codec;
#[cfg(test)]
mod tests;
mod view_codec;

use std::sync::Arc;

use coload_ddl::Schema;
use coload_types::{Error, Result, Value, same_name};

pub(crate) use column_codec::{put_value, read_value};

use crate::deleted::DeletedEntry;
use crate::index::IndexTree;
use crate::load_record::{LoadId, LoadRecord};
use crate::older_loads::OlderLoads;

pub(crate) use view_codec::check_view;

/// Longest name of a table, in bytes.
pub const TABLE_NAME_BYTES_MAX: usize = 255;
/// Longest minimum or maximum that a manifest keeps; longer ones are cut, soundly.
pub const BOUND_BYTES_MAX: usize = 64;
/// Longest text of a view, in bytes.
pub const VIEW_BYTES_MAX: usize = 1 << 20;
/// Days for which loads are remembered in a store that was not told otherwise.
pub const REMEMBER_DAYS: u32 = 90;
/// Largest manifest that is written or read.
pub const MANIFEST_BYTES_MAX: usize = 1 << 30;

/// One version of the store: all tables, and the segments that they are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Number of this version; the first is 1.
    pub version: u64,
    /// The id that the next new table gets; ids are never used again.
    pub next_table_id: u64,
    /// Days after which a load is forgotten that its table still holds: it would load again.
    pub remember_days: u32,
    /// Tables, in the order of their creation.
    pub tables: Vec<TableEntry>,
    /// Views, in the order of their creation; none has the name of a table.
    pub views: Vec<ViewEntry>,
}

/// A query that has a name. The store does not know what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewEntry {
    /// Name as created; matched without regard to case.
    pub name: String,
    /// Names of its columns; those of the query if there are none.
    pub columns: Vec<String>,
    /// The query.
    pub sql: String,
}

/// A table of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEntry {
    /// Tells this table from others that had its name before.
    pub id: u64,
    /// Name as created; matched without regard to case.
    pub name: String,
    /// Columns of the table, and its rules (CHECK).
    pub schema: Schema,
    /// Segments, in the order of their rows.
    pub segments: Vec<SegmentEntry>,
    /// Last loads of the table, oldest first.
    pub loads: Vec<LoadRecord>,
    /// Files with loads before these whose rows it still holds, oldest first.
    pub older: Vec<OlderLoads>,
    /// Number of loads that the table ever had.
    pub loads_count: u64,
}

/// A segment of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentEntry {
    /// File name below `segments/`: always `<load>-<n>.seg`.
    pub file: String,
    /// Rows of the segment, deleted ones among them.
    pub rows: u64,
    /// Those that are deleted; `None` when none is.
    pub deleted: Option<DeletedEntry>,
    /// Bytes of the file.
    pub bytes: u64,
    /// The load or merge that wrote it.
    pub load: LoadId,
    /// Checksum of its footer, which has those of all else; `None` if an older program wrote it.
    pub seal: Option<u64>,
    /// Where the file has each column of the table; `None` where these are its columns, in their order.
    pub stored: Option<Arc<[StoredColumn]>>,
    /// Trees of the indexes of its table.
    pub trees: Vec<IndexTree>,
    /// Statistics, one a column of the schema, of all rows: bounds of them are bounds of those that are left.
    pub columns: Vec<ColumnStats>,
}

/// Where a segment has a column of its table, whose columns have changed since it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredColumn {
    /// It is this column of the file.
    At(u32),
    /// It was added later: all rows have this value, or NULL.
    Constant(Option<Value>),
}

/// What is known of one column of one segment without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnStats {
    /// A lower bound of the values that are not NULL; `None` when there is no such value.
    pub min: Option<Value>,
    /// An upper bound; `None` when there is no value, or no short upper bound of the text.
    pub max: Option<Value>,
    /// Rows that are NULL.
    pub nulls: u64,
}

impl TableEntry {
    /// The files in `segments/` that the table needs.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        let older = self.older.iter().map(|older| older.file.as_str());
        self.segments.iter().flat_map(SegmentEntry::file_names).chain(older)
    }
}

impl SegmentEntry {
    /// The files in `segments/` that the segment needs: its own, the set of its deleted rows, and trees of indexes.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        let deleted = self.deleted.as_ref().and_then(DeletedEntry::file);
        let trees = self.trees.iter().map(|tree| tree.part.file.as_str());
        std::iter::once(self.file.as_str()).chain(deleted).chain(trees)
    }
}

impl Manifest {
    /// A new store: no tables.
    pub fn first() -> Self {
        let (version, next_table_id) = (1, 1);
        let (tables, views) = (Vec::new(), Vec::new());
        Manifest { version, next_table_id, remember_days: REMEMBER_DAYS, tables, views }
    }

    /// The view of this name, without regard to case.
    pub fn view(&self, name: &str) -> Option<&ViewEntry> {
        self.view_position(name).map(|at| &self.views[at])
    }

    pub(crate) fn view_mut(&mut self, name: &str) -> Option<&mut ViewEntry> {
        self.view_position(name).map(|at| &mut self.views[at])
    }

    pub(crate) fn view_position(&self, name: &str) -> Option<usize> {
        find_named(self.views.iter().map(|view| &*view.name), name)
    }

    /// The table of this name, without regard to case.
    pub fn table(&self, name: &str) -> Option<&TableEntry> {
        self.position(name).map(|at| &self.tables[at])
    }

    pub(crate) fn table_mut(&mut self, name: &str) -> Option<&mut TableEntry> {
        self.position(name).map(|at| &mut self.tables[at])
    }

    /// The place of the table of this name, without regard to case.
    pub fn position(&self, name: &str) -> Option<usize> {
        find_named(self.tables.iter().map(|table| &*table.name), name)
    }
}

/// Which of some names is meant. Two of a store may differ in the case of other letters than ASCII has: then the one that does not
/// differ in these.
fn find_named<'a>(mut names: impl Iterator<Item = &'a str> + Clone, name: &str) -> Option<usize> {
    let exact = names.clone().position(|known| known.eq_ignore_ascii_case(name));
    exact.or_else(|| names.position(|known| same_name(known, name)))
}

/// Refuses names that no table can have.
pub(crate) fn check_table_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > TABLE_NAME_BYTES_MAX || name.contains(char::is_control) {
        return Err(Error::Invalid(format!(
            "{name:?} cannot name a table: a name has 1 to {TABLE_NAME_BYTES_MAX} bytes and no \
             control characters (give one with --table)"
        )));
    }
    Ok(())
}

impl TableEntry {
    /// Forgets what was loaded: the table no longer holds it. The records stay, to be shown.
    pub(crate) fn forget_loads(&mut self) {
        self.loads.iter_mut().for_each(|load| load.held = false);
        self.older.clear();
    }

    /// Whether some load would be a no-op, but for its age.
    pub(crate) fn remembers_loads(&self) -> bool {
        !self.older.is_empty() || self.loads.iter().any(|load| load.held)
    }

    /// Rows of all segments that are not deleted.
    pub fn rows(&self) -> u64 {
        self.segments.iter().map(SegmentEntry::live_rows).fold(0, u64::saturating_add)
    }

    /// Deleted rows that its segments still have.
    pub fn deleted_rows(&self) -> u64 {
        self.segments.iter().map(SegmentEntry::deleted_rows).fold(0, u64::saturating_add)
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|s| s.bytes).fold(0, u64::saturating_add)
    }
}

impl SegmentEntry {
    /// Rows that are not deleted.
    pub fn live_rows(&self) -> u64 {
        self.rows.saturating_sub(self.deleted_rows())
    }

    /// Rows that are deleted.
    pub fn deleted_rows(&self) -> u64 {
        self.deleted.as_ref().map_or(0, DeletedEntry::rows)
    }
}

impl ColumnStats {
    /// Statistics with exact `min` and `max`; text over [`BOUND_BYTES_MAX`] is cut to a bound that
    /// still holds.
    ///
    /// Numbers stay exact. A bound of text or binary may be a cut one, so it is good for skipping
    /// segments and not as an answer, and it may end within a UTF-8 character.
    pub fn new(min: Option<Value>, max: Option<Value>, nulls: u64) -> Self {
        ColumnStats { min: min.map(lower_bound), max: max.and_then(upper_bound), nulls }
    }
}

/// A start of a string is not greater than the string.
fn lower_bound(min: Value) -> Value {
    match min {
        Value::Bytes(b) if b.len() > BOUND_BYTES_MAX => Value::Bytes(b[..BOUND_BYTES_MAX].into()),
        short => short,
    }
}

/// The start of a string, its last byte incremented, is greater than the string; a byte of 0xff
/// cannot be incremented, so it is dropped and the one before is. All 0xff: no bound.
fn upper_bound(max: Value) -> Option<Value> {
    match max {
        Value::Bytes(b) if b.len() > BOUND_BYTES_MAX => {
            let last = b[..BOUND_BYTES_MAX].iter().rposition(|byte| *byte != 0xff)?;
            let mut bound = b[..=last].to_vec();
            bound[last] += 1;
            Some(Value::Bytes(bound.into()))
        }
        short => Some(short),
    }
}
