//! The changes that turn one version of the catalog into the next.
//!
//! Pure functions on a [`Manifest`]. Publishing may apply one several times, each time to a newer
//! base, when other processes publish meanwhile; it fails when the base no longer fits the change.

use std::path::Path;

use coload_ddl::{Index, Key, Schema};
use coload_types::{Column, Error, Result, same_name};

use crate::directory::Layout;
use crate::index::with_names;
use crate::load_record::LoadRecord;
use crate::manifest::{
    Manifest, SegmentEntry, TableEntry, ViewEntry, check_table_name, check_view,
};
use crate::on_conflict::TableKeys;
use crate::row_change::carry_over;

/// What a load does to its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadMode {
    /// Adds rows; makes the table when there is none.
    Append,
    /// Puts rows and schema in place of what the table held; makes it when there is none.
    Replace,
    /// Makes the table; fails when there is one.
    Create,
}

/// What creating a table does when there is one of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExisting {
    /// Fails with an error that names the table.
    Fail,
    /// Keeps the existing one as it is.
    Keep,
    /// Puts the new, empty one in its place.
    Replace,
}

/// What dropping a table does when there is none of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// Fails with an error that names the table.
    Fail,
    /// Does nothing, and publishes no version.
    Ignore,
}

/// Where a load goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadTarget {
    /// Name of the table, as the user wrote it.
    pub name: String,
    /// Columns of the load's segments.
    pub schema: Schema,
    /// What the load does to the table.
    pub mode: LoadMode,
}

/// Whether a change has anything to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The change differs from the base, and is to be published.
    Changed,
    /// The base is as wanted already.
    Unchanged,
}

/// Adds a load's segments and record. `begun_on` is the table's id when the load began, if there was
/// a table, and `ordered_by` the key that its segments are in the order of.
pub(crate) fn apply_load(
    manifest: &mut Manifest,
    target: &LoadTarget,
    (begun_on, ordered_by): (Option<u64>, Option<&Key>),
    segments: &[SegmentEntry],
    record: &LoadRecord,
) -> Result<()> {
    check_target(manifest, target, begun_on)?;
    if key_of(manifest, target) != ordered_by {
        return Err(Error::Invalid(format!(
            "table {} was made with another key while the load into it ran (load again)",
            target.name
        )));
    }
    // Indexes have their names and trees later.
    let bare = target.schema.clone().with_indexes(Vec::new())?;
    let mut added = new_table(0, &target.name, bare);
    added.segments = segments.to_vec();
    push_record(&mut added, record);
    check_readable(added)?;
    let index = match position(manifest, &target.name) {
        Some(index) => index,
        None => push_table(manifest, &target.name, target.schema.clone())?,
    };
    let version = manifest.version;
    let schema = match target.mode {
        LoadMode::Replace => Some(with_names(manifest, &target.name, target.schema.clone())?),
        LoadMode::Append | LoadMode::Create => None,
    };
    let table = &mut manifest.tables[index];
    if let Some(schema) = schema {
        table.segments.clear();
        table.schema = schema;
        table.forget_loads();
    }
    table.segments.extend_from_slice(segments);
    push_record(table, &LoadRecord { version, held: true, ..record.clone() });
    Ok(())
}

/// The key of the table that a load goes to, as it will be with the load.
pub(crate) fn key_of<'a>(manifest: &'a Manifest, target: &'a LoadTarget) -> Option<&'a Key> {
    schema_of(manifest, target).key()
}

/// What tells rows of that table apart.
pub(crate) fn keys_of(manifest: &Manifest, target: &LoadTarget) -> TableKeys {
    let schema = schema_of(manifest, target);
    let has_unique = schema.indexes().iter().any(Index::is_unique);
    TableKeys { key: schema.key().cloned(), has_unique }
}

/// The schema of that table, as far as the load does not change it.
fn schema_of<'a>(manifest: &'a Manifest, target: &'a LoadTarget) -> &'a Schema {
    let table = match target.mode {
        LoadMode::Append => manifest.table(&target.name),
        LoadMode::Replace | LoadMode::Create => None,
    };
    table.map_or(&target.schema, |table| &table.schema)
}

/// Checks that a load fits the catalog, when it begins and again when it is published.
pub(crate) fn check_target(
    manifest: &Manifest,
    target: &LoadTarget,
    begun_on: Option<u64>,
) -> Result<()> {
    check_table_name(&target.name)?;
    let name = &target.name;
    check_no_view(manifest, name)?;
    match (target.mode, manifest.table(name)) {
        (LoadMode::Create, Some(_)) => Err(Error::Invalid(format!(
            "table {name} exists already (use --append to add to it, --replace to replace it, or \
             --table to name another)"
        ))),
        (LoadMode::Append, None) if begun_on.is_some() => Err(Error::Invalid(format!(
            "table {name} was dropped while the load into it ran (load again to make it anew)"
        ))),
        (LoadMode::Append, Some(table)) => {
            if begun_on.is_some_and(|id| id != table.id) {
                return Err(Error::Invalid(format!(
                    "table {name} was dropped and made again while the load into it ran (load \
                     again)"
                )));
            }
            check_schema(name, &table.schema, &target.schema)
        }
        _ => Ok(()),
    }
}

/// Names the first column in which a load differs from its table. A load may be stricter: NOT NULL
/// where the table allows NULL.
fn check_schema(name: &str, table: &Schema, load: &Schema) -> Result<()> {
    let pairs = table.columns().iter().zip(load.columns());
    for (index, (wanted, given)) in pairs.enumerate() {
        let fits = same_name(&wanted.name, &given.name)
            && wanted.data_type == given.data_type
            && (wanted.nullable || !given.nullable);
        if !fits {
            return Err(Error::Invalid(format!(
                "cannot append to table {name}: column {} is {} in the table and {} in the load \
                 (give the table's columns with --columns, or use --replace)",
                index + 1,
                describe(wanted),
                describe(given),
            )));
        }
    }
    if let Some(check) = table.checks().iter().find(|check| !load.checks().contains(check)) {
        return Err(Error::Invalid(format!(
            "cannot append to table {name}: the load does not keep {} of the table (leave --columns and \
             --schema out, or give the rule with them)",
            check.sql()
        )));
    }
    if table.len() == load.len() {
        return check_key(name, table, load);
    }
    let (longer, place) =
        if table.len() > load.len() { (table, "the table") } else { (load, "the load") };
    let extra = &longer.columns()[table.len().min(load.len())];
    Err(Error::Invalid(format!(
        "cannot append to table {name}: it has {} columns and the load {}: column {} is only in \
         {place} (give the table's columns with --columns, or use --replace)",
        table.len(),
        load.len(),
        describe(extra),
    )))
}

/// A load may say nothing of the key and of indexes, or what the table says.
fn check_key(name: &str, table: &Schema, load: &Schema) -> Result<()> {
    let is_there = |given: &Index| {
        let is_same =
            |index: &Index| index.kind == given.kind && index.columns() == given.columns();
        table.indexes().iter().any(is_same)
    };
    if let Some(given) = load.indexes().iter().find(|given| !is_there(given)) {
        return Err(Error::Invalid(format!(
            "cannot append to table {name} with {}: it has no such index (leave it out, use --replace, or CREATE INDEX first)",
            given.sql(load.columns())
        )));
    }
    let Some(given) = load.key().filter(|given| table.key() != Some(given)) else { return Ok(()) };
    let has = match table.key() {
        Some(key) => format!("has {}", key.sql(table.columns())),
        None => "has no key".to_owned(),
    };
    Err(Error::Invalid(format!(
        "cannot append to table {name} with {}: it {has} (leave --primary-key and --cluster-by out, or use --replace)",
        given.sql(load.columns())
    )))
}

fn describe(column: &Column) -> String {
    let not_null = if column.nullable { "" } else { " NOT NULL" };
    format!("{} {}{not_null}", column.name, column.data_type)
}

/// Makes an empty table.
pub(crate) fn create_table(
    manifest: &mut Manifest,
    name: &str,
    schema: &Schema,
    on_existing: OnExisting,
) -> Result<Outcome> {
    check_table_name(name)?;
    check_no_view(manifest, name)?;
    if let Some(index) = position(manifest, name) {
        match on_existing {
            OnExisting::Fail => {
                return Err(Error::Invalid(format!("table {name} exists already")));
            }
            OnExisting::Keep => return Ok(Outcome::Unchanged),
            OnExisting::Replace => {
                manifest.tables.remove(index);
            }
        }
    }
    let index = push_table(manifest, name, schema.clone())?;
    check_readable(TableEntry { id: 0, ..manifest.tables[index].clone() })?;
    Ok(Outcome::Changed)
}

/// Makes a view.
pub(crate) fn create_view(
    manifest: &mut Manifest,
    view: &ViewEntry,
    on_existing: OnExisting,
) -> Result<Outcome> {
    let name = &view.name;
    check_view(view)?;
    if manifest.table(name).is_some() {
        return Err(Error::Invalid(format!("{name} is a table: a view needs a name of its own")));
    }
    match (manifest.view_mut(name), on_existing) {
        (None, _) => manifest.views.push(view.clone()),
        (Some(_), OnExisting::Fail) => {
            return Err(Error::Invalid(format!("view {name} exists already")));
        }
        (Some(_), OnExisting::Keep) => return Ok(Outcome::Unchanged),
        (Some(old), OnExisting::Replace) => *old = view.clone(),
    }
    Ok(Outcome::Changed)
}

/// Removes a view.
pub(crate) fn drop_view(
    manifest: &mut Manifest,
    name: &str,
    on_missing: OnMissing,
) -> Result<Outcome> {
    let index = manifest.view_position(name);
    match (index, on_missing) {
        (Some(index), _) => {
            manifest.views.remove(index);
            Ok(Outcome::Changed)
        }
        (None, OnMissing::Ignore) => Ok(Outcome::Unchanged),
        (None, OnMissing::Fail) => Err(Error::Invalid(match manifest.table(name) {
            Some(_) => format!("{name} is a table: write DROP TABLE"),
            None => format!("view {name} does not exist"),
        })),
    }
}

/// Refuses the name of a view for a table.
pub(crate) fn check_no_view(manifest: &Manifest, name: &str) -> Result<()> {
    match manifest.view(name) {
        None => Ok(()),
        Some(_) => Err(Error::Invalid(format!(
            "{name} is a view, and holds no rows: name another table, or DROP VIEW {name}"
        ))),
    }
}

/// Removes a table and all that is known of it.
pub(crate) fn drop_table(
    manifest: &mut Manifest,
    name: &str,
    on_missing: OnMissing,
) -> Result<Outcome> {
    match (position(manifest, name), on_missing) {
        (Some(index), _) => {
            manifest.tables.remove(index);
            Ok(Outcome::Changed)
        }
        (None, OnMissing::Ignore) => Ok(Outcome::Unchanged),
        (None, OnMissing::Fail) => Err(missing_table(manifest, name)),
    }
}

/// Removes a table's rows, and forgets what was loaded; its schema stays, and its load records, to be shown.
pub(crate) fn truncate_table(manifest: &mut Manifest, name: &str) -> Result<Outcome> {
    let Some(index) = position(manifest, name) else { return Err(missing_table(manifest, name)) };
    let table = &mut manifest.tables[index];
    if table.segments.is_empty() && !table.remembers_loads() {
        return Ok(Outcome::Unchanged);
    }
    table.segments.clear();
    table.forget_loads();
    Ok(Outcome::Changed)
}

/// Sets for how many days loads are remembered.
pub(crate) fn set_remember_days(manifest: &mut Manifest, days: u32) -> Result<Outcome> {
    let changed = manifest.remember_days != days;
    manifest.remember_days = days;
    Ok(if changed { Outcome::Changed } else { Outcome::Unchanged })
}

/// Puts `new` segments in the place of `old` ones, which stand one after the other, and whose rows that were not deleted
/// then they have. What was deleted since is deleted in the new ones too.
///
/// `Unchanged` when the table or one of the old segments is gone.
pub(crate) fn replace_segments(
    layout: &Layout,
    manifest: &mut Manifest,
    table_id: u64,
    old: &[SegmentEntry],
    new: &[SegmentEntry],
) -> Result<Outcome> {
    let Some(table) = manifest.tables.iter_mut().find(|t| t.id == table_id) else {
        return Ok(Outcome::Unchanged);
    };
    let first = old.first().and_then(|f| table.segments.iter().position(|s| s.file == f.file));
    let Some(start) = first else {
        return Ok(Outcome::Unchanged);
    };
    let end = (start + old.len()).min(table.segments.len());
    let there = &table.segments[start..end];
    if !there.iter().map(|s| &s.file).eq(old.iter().map(|s| &s.file)) {
        return Ok(Outcome::Unchanged);
    }
    let is_moved = |(old, there): (&SegmentEntry, &SegmentEntry)| old.deleted != there.deleted;
    if old.iter().zip(there).any(|(old, there)| old.stored != there.stored) {
        // They were read as the columns that the table had.
        return Ok(Outcome::Unchanged);
    }
    if table.schema.key().is_some() && old.iter().zip(there).any(is_moved) {
        // Rows are in another order than they were, so that nobody knows where the deleted ones are: the next merge does it.
        return Ok(Outcome::Unchanged);
    }
    let rows = old.iter().map(SegmentEntry::live_rows).sum::<u64>();
    let new_rows = new.iter().map(|s| s.rows).sum::<u64>();
    if rows != new_rows {
        return Err(Error::Invalid(format!(
            "cannot merge {} segments of table {}: they have {rows} rows, the merged ones {new_rows}",
            old.len(),
            table.name,
        )));
    }
    let mut added = new_table(0, &table.name, table.schema.clone());
    added.segments = new.to_vec();
    check_readable(added)?;
    let mut new = new.to_vec();
    carry_over(layout, old, there, &mut new)?;
    table.segments.splice(start..end, new);
    Ok(Outcome::Changed)
}

/// The error for a table that is not there; names those that are.
pub(crate) fn missing_table(manifest: &Manifest, name: &str) -> Error {
    if manifest.view(name).is_some() {
        return Error::Invalid(format!("{name} is a view, and no table"));
    }
    const NAMED_MAX: usize = 10;
    let mut names: Vec<&str> = manifest.tables.iter().map(|t| t.name.as_str()).collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let known = match (names.is_empty(), more) {
        (true, _) => "the store has no tables".to_owned(),
        (false, 0) => format!("there is {}", names.join(", ")),
        (false, _) => format!("there is {} and {more} more", names.join(", ")),
    };
    Error::Invalid(format!("table {name} does not exist ({known})"))
}

/// The error for a table that was there when a change of it began.
pub(crate) fn missing_table_id(table: &TableEntry) -> Error {
    Error::Invalid(format!(
        "table {} was dropped while a statement changed its rows (make it again, or name another)",
        table.name
    ))
}

pub(crate) fn position(manifest: &Manifest, name: &str) -> Option<usize> {
    manifest.position(name)
}

fn push_table(manifest: &mut Manifest, name: &str, schema: Schema) -> Result<usize> {
    let schema = with_names(manifest, name, schema)?;
    let id = manifest.next_table_id;
    manifest.next_table_id += 1;
    manifest.tables.push(new_table(id, name, schema));
    Ok(manifest.tables.len() - 1)
}

fn new_table(id: u64, name: &str, schema: Schema) -> TableEntry {
    let (segments, loads, older) = Default::default();
    TableEntry { id, name: name.to_owned(), schema, segments, loads, older, loads_count: 0 }
}

/// Refuses additions that would be written and not read back as they are: one version that cannot be
/// read would close the store. `added` is a table of the additions alone; what is there already was
/// read.
fn check_readable(added: TableEntry) -> Result<()> {
    let next_table_id = added.id + 1;
    let manifest = Manifest { next_table_id, tables: vec![added], ..Manifest::first() };
    match Manifest::decode(&manifest.encode()?, Path::new("new manifest")) {
        Ok(same) if same == manifest => Ok(()),
        Ok(_) => Err(Error::Invalid("the manifest would not keep all of it".into())),
        Err(e) => Err(Error::Invalid(format!("the manifest could not be read back: {e}"))),
    }
}

fn push_record(table: &mut TableEntry, record: &LoadRecord) {
    table.loads.push(record.clone());
    table.loads_count += 1;
}
