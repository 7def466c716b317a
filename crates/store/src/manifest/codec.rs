//! A manifest to bytes and back.
//!
//! ```text
//!   "CLDMANIF"  u16 format  u16 zero  body  u64 XXH3 of everything before it
//! ```
//!
//! The body is in docs/storage-format.md. Decoding checks the checksum, every count against the
//! bytes left, every name and id, and that no byte is left over.

use std::collections::HashSet;
use std::path::Path;

use coload_ddl::Schema;
use coload_types::bytes::{ByteReader, checksum, put_bytes, put_signed, put_varint};
use coload_types::{DataType, Error, Physical, Result};

use super::column_codec::{
    corrupt, put_checks, put_column, put_key, put_stored, put_value, read_checks, read_key,
    read_schema, read_stored, read_text, read_value,
};
use super::index_codec::{put_indexes, put_trees, read_indexes, read_trees};
use super::view_codec::{put_views, read_views};
use super::{
    BOUND_BYTES_MAX, ColumnStats, MANIFEST_BYTES_MAX, Manifest, REMEMBER_DAYS, SegmentEntry,
    TableEntry, check_table_name,
};
use crate::deleted::{DeletedEntry, FilePart, HERE_BYTES_MAX, Place, decode as decode_set, holds};
use crate::directory::{
    deleted_name, older_name, parse_deleted_name, parse_older_name, parse_segment_name,
    segment_name,
};
use crate::load_record::{
    INPUT_NAME_BYTES_MAX, INPUTS_KEPT_MAX, LOADS_KEPT_MAX, LoadId, LoadKind, LoadRecord,
};
use crate::older_loads::OlderLoads;

const MAGIC: &[u8; 8] = b"CLDMANIF";
/// Tables have no rules.
const FORMAT_1: u16 = 1;
/// Rules follow the columns of a table.
const FORMAT_2: u16 = 2;
/// Segments have seals, loads have keys and versions and may be in files of their own.
const FORMAT_3: u16 = 3;
/// Segments have deleted rows, and statements that replace rows are loads.
const FORMAT_4: u16 = 4;
/// Tables have keys.
const FORMAT_5: u16 = 5;
/// There are views.
const FORMAT_6: u16 = 6;
/// Segments say where they have the columns of their table.
const FORMAT_7: u16 = 7;
/// Tables have indexes.
const FORMAT_8: u16 = 8;
/// Columns may be lists.
const FORMAT_9: u16 = 9;
/// The newest format.
pub(super) const NEWEST: u16 = FORMAT_9;
const CHECKSUM_BYTES: usize = 8;
/// Flag of a load in format 3: the table holds its rows.
const IS_HELD: u8 = 1;

const HAS_MIN: u8 = 1;
const HAS_MAX: u8 = 2;

impl Manifest {
    /// The bytes of the manifest's file.
    ///
    /// # Errors
    /// `Limit` over [`MANIFEST_BYTES_MAX`]; `Invalid` for an entry that could not be read back.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        let format = self.format();
        out.extend_from_slice(&format.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        put_varint(&mut out, self.version);
        put_varint(&mut out, self.next_table_id);
        if format >= FORMAT_3 {
            put_varint(&mut out, u64::from(self.remember_days));
        }
        put_varint(&mut out, self.tables.len() as u64);
        for table in &self.tables {
            put_table(&mut out, table, format)?;
        }
        if format >= FORMAT_6 {
            put_views(&mut out, &self.views);
        }
        out.extend_from_slice(&checksum(&out).to_le_bytes());
        if out.len() > MANIFEST_BYTES_MAX {
            return Err(Error::Limit(format!(
                "the manifest would have {} bytes, more than {MANIFEST_BYTES_MAX}: the store has \
                 too many segments (load less often, or more at once)",
                out.len()
            )));
        }
        Ok(out)
    }

    /// The least format that holds all of it, so that older programs read what they know.
    pub fn format(&self) -> u16 {
        let has_checks = self.tables.iter().any(|table| !table.schema.checks().is_empty());
        let is_altered = |table: &TableEntry| table.segments.iter().any(|s| s.stored.is_some());
        let has_lists = |table: &TableEntry| {
            table.schema.columns().iter().any(|c| matches!(c.data_type, DataType::List(_)))
        };
        if self.tables.iter().any(has_lists) {
            FORMAT_9
        } else if self.tables.iter().any(|table| !table.schema.indexes().is_empty()) {
            FORMAT_8
        } else if self.tables.iter().any(is_altered) {
            FORMAT_7
        } else if !self.views.is_empty() {
            FORMAT_6
        } else if self.tables.iter().any(|table| table.schema.key().is_some()) {
            FORMAT_5
        } else if !self.tables.iter().all(fits_format_3) {
            FORMAT_4
        } else if self.remember_days != REMEMBER_DAYS || !self.tables.iter().all(fits_format_2) {
            FORMAT_3
        } else if has_checks {
            FORMAT_2
        } else {
            FORMAT_1
        }
    }

    /// Reads the bytes of the manifest file at `path` (for messages only: nothing is opened).
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not what [`Manifest::encode`] makes; `Invalid` when they are of
    /// a newer format.
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Self> {
        decode(bytes).map_err(|e| match e {
            Error::Corrupt(what) => Error::corrupt(path, format!("manifest: {what}")),
            Error::Invalid(what) => Error::Invalid(format!("{}: {what}", path.display())),
            other => other,
        })
    }
}

fn decode(bytes: &[u8]) -> Result<Manifest> {
    let Some((content, sum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(corrupt(format!("{} bytes are too few", bytes.len())));
    };
    if bytes.len() > MANIFEST_BYTES_MAX {
        return Err(corrupt(format!("{} bytes, over {MANIFEST_BYTES_MAX}", bytes.len())));
    }
    if checksum(content) != u64::from_le_bytes(*sum) {
        return Err(corrupt("another checksum".into()));
    }
    let mut reader = ByteReader::new(content);
    if &reader.array::<8>()? != MAGIC {
        return Err(corrupt("another magic number".into()));
    }
    let format = reader.u16()?;
    if format > NEWEST {
        return Err(Error::Invalid(format!(
            "manifest format {format} is newer than the {NEWEST} this program reads (update it)"
        )));
    }
    if format == 0 || reader.u16()? != 0 {
        return Err(corrupt("bad header".into()));
    }
    let manifest = read_body(&mut reader, format)?;
    reader.finish()?;
    check_references(&manifest)?;
    Ok(manifest)
}

fn read_body(reader: &mut ByteReader<'_>, format: u16) -> Result<Manifest> {
    let version = reader.varint()?;
    let next_table_id = reader.varint()?;
    let remember_days = if format >= FORMAT_3 { reader.varint_u32()? } else { REMEMBER_DAYS };
    let count = reader.count(TABLE_BYTES_MIN)?;
    let mut tables = Vec::with_capacity(count);
    for _ in 0..count {
        tables.push(read_table(reader, format)?);
    }
    let views = if format >= FORMAT_6 { read_views(reader)? } else { Vec::new() };
    Ok(Manifest { version, next_table_id, remember_days, tables, views })
}

/// Ids and names that must differ do.
fn check_references(manifest: &Manifest) -> Result<()> {
    let (mut ids, mut names) = (HashSet::new(), HashSet::new());
    for table in &manifest.tables {
        if table.id >= manifest.next_table_id {
            return Err(corrupt(format!("table id {} is not given yet", table.id)));
        }
        if !ids.insert(table.id) || !names.insert(table.name.to_ascii_lowercase()) {
            return Err(corrupt(format!("table {} is there twice", table.name)));
        }
    }
    let mut indexes = HashSet::new();
    for index in manifest.tables.iter().flat_map(|table| table.schema.indexes()) {
        if index.name.is_empty() || !indexes.insert(index.name.to_ascii_lowercase()) {
            return Err(corrupt(format!("index {:?} is there twice", index.name)));
        }
    }
    for view in &manifest.views {
        if !names.insert(view.name.to_ascii_lowercase()) {
            return Err(corrupt(format!("view {} is there twice", view.name)));
        }
    }
    Ok(())
}

/// Whether a table has nothing that only format 4 can say.
fn fits_format_3(table: &TableEntry) -> bool {
    table.segments.iter().all(|segment| segment.deleted.is_none())
        && table.loads.iter().all(|load| load.kind != LoadKind::Update)
}

/// Whether a table has nothing that the older formats cannot say.
fn fits_format_2(table: &TableEntry) -> bool {
    let held = held_in_format_2(table);
    table.older.is_empty()
        && table.segments.iter().all(|segment| segment.seal.is_none())
        && table
            .loads
            .iter()
            .zip(held)
            .all(|(load, held)| load.key == load.id && load.version == 0 && load.held == held)
}

/// Which loads a table holds as far as the older formats tell: those since it was last replaced, unless it is empty.
/// A TRUNCATE before other loads is not seen.
fn held_in_format_2(table: &TableEntry) -> Vec<bool> {
    let replaced = table.loads.iter().rposition(|load| load.kind == LoadKind::Replace);
    let first = if table.segments.is_empty() { usize::MAX } else { replaced.unwrap_or(0) };
    (0..table.loads.len()).map(|index| index >= first).collect()
}

/// id, name, columns, segments, loads, count of loads.
const TABLE_BYTES_MIN: usize = 6;

fn put_table(out: &mut Vec<u8>, table: &TableEntry, format: u16) -> Result<()> {
    put_varint(out, table.id);
    put_bytes(out, table.name.as_bytes());
    put_varint(out, table.schema.len() as u64);
    for column in table.schema.columns() {
        put_column(out, column);
    }
    if format >= FORMAT_2 {
        put_checks(out, table.schema.checks());
    }
    if format >= FORMAT_5 {
        put_key(out, table.schema.key());
    }
    if format >= FORMAT_8 {
        put_indexes(out, table.schema.indexes());
    }
    put_varint(out, table.segments.len() as u64);
    for segment in &table.segments {
        put_segment(out, segment, &table.schema, format)?;
    }
    put_varint(out, table.loads_count);
    put_varint(out, table.loads.len() as u64);
    for load in &table.loads {
        put_load(out, load, format);
    }
    if format >= FORMAT_3 {
        put_varint(out, table.older.len() as u64);
        for older in &table.older {
            put_older(out, older)?;
        }
    }
    Ok(())
}

fn read_table(reader: &mut ByteReader<'_>, format: u16) -> Result<TableEntry> {
    let id = reader.varint()?;
    let name = read_text(reader)?;
    check_table_name(&name).map_err(|e| corrupt(e.to_string()))?;
    let mut schema = read_schema(reader)?;
    if format >= FORMAT_2 {
        let checks = read_checks(reader, &schema)?;
        schema = schema.with_checks(checks).map_err(|e| corrupt(e.to_string()))?;
    }
    if format >= FORMAT_5 {
        let key = read_key(reader)?;
        schema = schema.with_key(key).map_err(|e| corrupt(e.to_string()))?;
    }
    if format >= FORMAT_8 {
        let indexes = read_indexes(reader)?;
        schema = schema.with_indexes(indexes).map_err(|e| corrupt(e.to_string()))?;
    }
    let count = reader.count(SEGMENT_BYTES_MIN)?;
    let mut segments = Vec::with_capacity(count);
    for _ in 0..count {
        segments.push(read_segment(reader, &schema, format)?);
    }
    let loads_count = reader.varint()?;
    let count = reader.count(LOAD_BYTES_MIN)?;
    if count > LOADS_KEPT_MAX || count as u64 > loads_count {
        return Err(corrupt(format!("{count} load records of {loads_count} loads")));
    }
    let mut loads = Vec::with_capacity(count);
    for _ in 0..count {
        loads.push(read_load(reader, format)?);
    }
    let mut older = Vec::new();
    if format >= FORMAT_3 {
        for _ in 0..reader.count(OLDER_BYTES_MIN)? {
            older.push(read_older(reader)?);
        }
    }
    let mut table = TableEntry { id, name, schema, segments, loads, older, loads_count };
    if format < FORMAT_3 {
        let held = held_in_format_2(&table);
        table.loads.iter_mut().zip(held).for_each(|(load, held)| load.held = held);
    }
    Ok(table)
}

/// load, number, rows, bytes; statistics come on top.
const SEGMENT_BYTES_MIN: usize = 19;
/// A byte each: flags, count of NULLs.
const STATS_BYTES_MIN: usize = 2;

fn put_segment(
    out: &mut Vec<u8>,
    segment: &SegmentEntry,
    schema: &Schema,
    format: u16,
) -> Result<()> {
    let number = match parse_segment_name(&segment.file) {
        Some((load, number)) if load == segment.load => number,
        _ => {
            return Err(Error::Invalid(format!(
                "segment file {:?} is not named <load id>-<n>.seg after its load {}",
                segment.file, segment.load
            )));
        }
    };
    if segment.columns.len() != schema.len() {
        return Err(Error::Invalid(format!(
            "segment {} has statistics of {} columns, its table has {}",
            segment.file,
            segment.columns.len(),
            schema.len()
        )));
    }
    out.extend_from_slice(&segment.load.as_u128().to_le_bytes());
    put_varint(out, u64::from(number));
    put_varint(out, segment.rows);
    put_varint(out, segment.bytes);
    if format >= FORMAT_3 {
        out.push(u8::from(segment.seal.is_some()));
        out.extend(segment.seal.iter().flat_map(|seal| seal.to_le_bytes()));
    }
    if format >= FORMAT_4 {
        put_deleted(out, segment)?;
    }
    if format >= FORMAT_7 {
        put_stored(out, segment, schema.len())?;
    }
    if format >= FORMAT_8 {
        put_trees(out, segment)?;
    }
    for stats in &segment.columns {
        put_stats(out, stats);
    }
    Ok(())
}

fn read_segment(reader: &mut ByteReader<'_>, schema: &Schema, format: u16) -> Result<SegmentEntry> {
    let load = LoadId::from_u128(u128::from_le_bytes(reader.array()?));
    let number = reader.varint_u32()?;
    let rows = reader.varint()?;
    let bytes = reader.varint()?;
    let seal = match if format >= FORMAT_3 { reader.u8()? } else { 0 } {
        0 => None,
        1 => Some(reader.u64()?),
        other => return Err(corrupt(format!("mark {other} of a seal"))),
    };
    let deleted = if format >= FORMAT_4 { read_deleted(reader, rows)? } else { None };
    let stored = if format >= FORMAT_7 { read_stored(reader, schema)? } else { None };
    let trees = if format >= FORMAT_8 { read_trees(reader, schema.len())? } else { Vec::new() };
    if reader.remaining() / STATS_BYTES_MIN < schema.len() {
        return Err(corrupt("statistics end early".into()));
    }
    let mut columns = Vec::with_capacity(schema.len());
    for column in schema.columns() {
        columns.push(read_stats(reader, column.data_type.physical(), rows)?);
    }
    let file = segment_name(load, number);
    Ok(SegmentEntry { file, rows, deleted, bytes, load, seal, stored, trees, columns })
}

/// No row of the segment is deleted.
const NOT_DELETED: u8 = 0;
/// The set of deleted rows follows.
const DELETED_HERE: u8 = 1;
/// The set is in a file.
const DELETED_IN_FILE: u8 = 2;

fn put_deleted(out: &mut Vec<u8>, segment: &SegmentEntry) -> Result<()> {
    let Some(DeletedEntry { rows, place }) = &segment.deleted else {
        out.push(NOT_DELETED);
        return Ok(());
    };
    let refused = |what: &str| {
        Err(Error::Invalid(format!("deleted rows of segment {} {what}", segment.file)))
    };
    match place {
        Place::Unwritten(_) => return refused("have no place yet"),
        Place::Here(bytes) => {
            out.push(DELETED_HERE);
            put_varint(out, *rows);
            put_bytes(out, bytes);
        }
        Place::File(part) => {
            let Some((writer, table)) = parse_deleted_name(&part.file) else {
                return refused("are in a file of another name");
            };
            out.push(DELETED_IN_FILE);
            put_varint(out, *rows);
            out.extend_from_slice(&writer.as_u128().to_le_bytes());
            for number in [table, part.offset, part.bytes] {
                put_varint(out, number);
            }
            out.extend_from_slice(&part.seal.to_le_bytes());
        }
    }
    Ok(())
}

fn read_deleted(reader: &mut ByteReader<'_>, segment_rows: u64) -> Result<Option<DeletedEntry>> {
    let tag = reader.u8()?;
    if tag == NOT_DELETED {
        return Ok(None);
    }
    let rows = reader.varint()?;
    if rows == 0 || rows >= segment_rows {
        return Err(corrupt(format!("{rows} deleted rows of {segment_rows}")));
    }
    let place = match tag {
        DELETED_HERE => {
            let bytes = reader.bytes()?;
            if bytes.len() > HERE_BYTES_MAX {
                return Err(corrupt(format!("{} bytes of deleted rows", bytes.len())));
            }
            let set = decode_set(bytes);
            if set.is_none_or(|set| !holds(&set, rows, segment_rows)) {
                return Err(corrupt(format!("no set of {rows} deleted rows of {segment_rows}")));
            }
            Place::Here(bytes.into())
        }
        DELETED_IN_FILE => {
            let writer = LoadId::from_u128(u128::from_le_bytes(reader.array()?));
            let file = deleted_name(writer, reader.varint()?);
            let (offset, bytes) = (reader.varint()?, reader.varint()?);
            Place::File(FilePart { file, offset, bytes, seal: reader.u64()? })
        }
        other => return Err(corrupt(format!("mark {other} of deleted rows"))),
    };
    Ok(Some(DeletedEntry { rows, place }))
}

fn put_stats(out: &mut Vec<u8>, stats: &ColumnStats) {
    let min = if stats.min.is_some() { HAS_MIN } else { 0 };
    let max = if stats.max.is_some() { HAS_MAX } else { 0 };
    out.push(min | max);
    put_varint(out, stats.nulls);
    for bound in [&stats.min, &stats.max].into_iter().flatten() {
        put_value(out, bound);
    }
}

fn read_stats(reader: &mut ByteReader<'_>, physical: Physical, rows: u64) -> Result<ColumnStats> {
    let flags = reader.u8()?;
    let nulls = reader.varint()?;
    if flags & !(HAS_MIN | HAS_MAX) != 0 || nulls > rows {
        return Err(corrupt(format!("statistics with flags {flags}, {nulls} NULLs, {rows} rows")));
    }
    let mut bound = |flag| match flags & flag {
        0 => Ok(None),
        _ => read_value(reader, physical, BOUND_BYTES_MAX).map(Some),
    };
    let (min, max) = (bound(HAS_MIN)?, bound(HAS_MAX)?);
    if let (Some(min), Some(max)) = (&min, &max)
        && min > max
    {
        return Err(corrupt("a minimum over its maximum".into()));
    }
    Ok(ColumnStats { min, max, nulls })
}

/// writer, table, count, newest, checksum.
const OLDER_BYTES_MIN: usize = 27;

fn put_older(out: &mut Vec<u8>, older: &OlderLoads) -> Result<()> {
    let Some((writer, table)) = parse_older_name(&older.file) else {
        return Err(Error::Invalid(format!("{:?} is not a file of loads", older.file)));
    };
    out.extend_from_slice(&writer.as_u128().to_le_bytes());
    put_varint(out, table);
    put_varint(out, u64::from(older.count));
    put_signed(out, older.newest_us);
    out.extend_from_slice(&older.seal.to_le_bytes());
    Ok(())
}

fn read_older(reader: &mut ByteReader<'_>) -> Result<OlderLoads> {
    let writer = LoadId::from_u128(u128::from_le_bytes(reader.array()?));
    let file = older_name(writer, reader.varint()?);
    let (count, newest_us) = (reader.varint_u32()?, reader.signed()?);
    Ok(OlderLoads { file, count, newest_us, seal: reader.u64()? })
}

/// id, kind, two times, inputs, more inputs, rows, rejects, bytes.
const LOAD_BYTES_MIN: usize = 24;

fn put_load(out: &mut Vec<u8>, load: &LoadRecord, format: u16) {
    out.extend_from_slice(&load.id.as_u128().to_le_bytes());
    if format >= FORMAT_3 {
        out.extend_from_slice(&load.key.as_u128().to_le_bytes());
        put_varint(out, load.version);
        out.push(if load.held { IS_HELD } else { 0 });
    }
    out.push(match load.kind {
        LoadKind::Append => 0,
        LoadKind::Replace => 1,
        LoadKind::Create => 2,
        LoadKind::Insert => 3,
        LoadKind::Update => 4,
    });
    put_signed(out, load.started_us);
    put_signed(out, load.finished_us);
    put_varint(out, load.inputs.len() as u64);
    for name in &load.inputs {
        put_bytes(out, name.as_bytes());
    }
    for number in [load.inputs_more, load.rows, load.rejects, load.bytes] {
        put_varint(out, number);
    }
}

fn read_load(reader: &mut ByteReader<'_>, format: u16) -> Result<LoadRecord> {
    let id = LoadId::from_u128(u128::from_le_bytes(reader.array()?));
    let (mut key, mut version, mut flags) = (id, 0, IS_HELD);
    if format >= FORMAT_3 {
        key = LoadId::from_u128(u128::from_le_bytes(reader.array()?));
        (version, flags) = (reader.varint()?, reader.u8()?);
    }
    if flags & !IS_HELD != 0 {
        return Err(corrupt(format!("flags {flags} of load {id}")));
    }
    let kind = match reader.u8()? {
        0 => LoadKind::Append,
        1 => LoadKind::Replace,
        2 => LoadKind::Create,
        3 => LoadKind::Insert,
        4 if format >= FORMAT_4 => LoadKind::Update,
        tag => return Err(corrupt(format!("kind of load {tag} is unknown"))),
    };
    let mut record = LoadRecord::new(id, kind);
    (record.key, record.version, record.held) = (key, version, flags == IS_HELD);
    record.started_us = reader.signed()?;
    record.finished_us = reader.signed()?;
    let count = reader.count(1)?;
    if count > INPUTS_KEPT_MAX {
        return Err(corrupt(format!("{count} input names, over {INPUTS_KEPT_MAX}")));
    }
    for _ in 0..count {
        let name = read_text(reader)?;
        if name.len() > INPUT_NAME_BYTES_MAX {
            return Err(corrupt(format!("input name of {} bytes", name.len())));
        }
        record.inputs.push(name);
    }
    record.inputs_more = reader.varint()?;
    record.rows = reader.varint()?;
    record.rejects = reader.varint()?;
    record.bytes = reader.varint()?;
    Ok(record)
}
