//! Files of Parquet: where their row groups are, found when they are opened.
//!
//! ```text
//!   account  head (all that is no row group)  | row group 1 | row group 2     in bytes, as the footer has them
//! ```
//!
//! Only footers are read, and heads of dictionaries of texts.
//!
//! Cost: 64 bytes a row group, and 64 for each column of it that is read.

use std::ops::Range;
use std::sync::Arc;

use coload_arrow::Fault;
use coload_input::RawFile;
use coload_parquet::{
    ColumnAt, Footer, Leaves, MAGIC, ParquetField, RowGroup, TAIL_BYTES, dictionary_bytes,
    footer_bytes,
};
use coload_transform::CODES_PROVISIONAL_MAX;
use coload_types::Result;
use coload_wire::PartIs;

use super::input::{FieldRead, FieldsRead, Spot, fault};
use super::prune::Pruning;
use crate::typed::{Asked, Block, FileBody, batch_bytes_max, read_at};
use crate::wanted::WantedRows;

/// Most bytes that one of a file is taken for in memory, whatever its footer says.
const EXPANSION_MAX: u64 = 1 << 12;

/// Least bytes of a dictionary of texts that has more values than codes: each has its length before it.
const MANY_VALUES_BYTES: u64 = 4 * CODES_PROVISIONAL_MAX as u64;

/// Bytes in which the head of a dictionary mostly ends.
const DICTIONARY_HEAD_BYTES: u64 = 256;

/// A file, looked at.
#[derive(Debug)]
pub struct IndexedFile {
    /// Its bytes.
    pub file: Arc<RawFile>,
    /// Its fields.
    pub fields: Arc<FieldsRead>,
    /// Bytes that are no row group; of a part of a file what is before it.
    pub head: u64,
    /// Where the last row group that is read ends in the account.
    pub end: u64,
    /// Bytes before a part of a file; 0 of a whole one.
    pub skipped: u64,
}

/// A row group of a file.
#[derive(Debug)]
pub struct GroupAt {
    /// Number of the input.
    pub file: u32,
    /// Number in its file.
    pub number: u32,
    /// Number of its rows.
    pub rows: u64,
    /// Those of them that are read, if not all are; there may be none.
    pub wanted: Option<Box<[Range<u64>]>>,
    /// Where it starts.
    pub start: u64,
    /// The column chunks that are read.
    pub columns: Box<[ColumnAt]>,
    /// Where it stands in the account, and its bytes.
    position: u64,
    stored: u64,
}

impl GroupAt {
    /// Its bytes in the file.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// Whether some of its rows are read.
    pub fn is_read(&self) -> bool {
        self.rows > 0 && self.wanted.as_ref().is_none_or(|wanted| !wanted.is_empty())
    }

    /// Its rows, which take so many bytes in memory, as they are cut; none if it is not read.
    pub fn block(&self, bytes: u64) -> Block {
        let span = self.position..self.position + self.stored;
        let rows = if self.is_read() { self.rows } else { 0 };
        Block { rows, bytes, is_whole: false, span }
    }
}

/// Reads the footer of a file: which column chunks are read `fields` tells.
///
/// # Errors
/// `Damaged` when there is none, `TooLarge` when it takes more than may be; those of reading.
pub fn read_footer(
    file: &RawFile,
    bytes_max: u64,
    leaves: impl FnOnce(&[ParquetField]) -> std::result::Result<Leaves, Fault>,
) -> std::result::Result<(Footer, u64), Fault> {
    let bytes = file.bytes();
    let tail_bytes = TAIL_BYTES.min(bytes as usize);
    let tail = read_at(file, bytes - tail_bytes as u64, tail_bytes)?;
    let length = footer_bytes(&tail, bytes)?;
    // As bytes, and as what is kept of them.
    if length.saturating_mul(2) > bytes_max {
        return Err(Fault::TooLarge(length.saturating_mul(2)));
    }
    let start = bytes - TAIL_BYTES as u64 - length;
    let footer = read_at(file, start, length as usize)?;
    Ok((Footer::decode(&footer, start, bytes_max, leaves)?, start))
}

/// Looks at a file, by its number; its row groups are added to `groups`.
///
/// # Errors
/// `Input` when it is damaged, `Invalid` when its fields are not those that are read, `Unavailable` when it cannot be read.
pub fn index_file(
    file: Arc<RawFile>,
    number: usize,
    asked: Asked<'_>,
    groups: &mut Vec<GroupAt>,
) -> Result<IndexedFile> {
    let at = |byte: u64| Spot { file: number, byte, group: None, column: None };
    let bytes_max = batch_bytes_max(asked);
    let mut fields = None;
    let test = WantedRows::of_read(asked.request);
    let read = read_footer(&file, bytes_max, |all| {
        let read = fields.insert(FieldsRead::new(all, number, asked)?);
        Ok(Leaves { numbers: read.leaves.clone(), with_hints: test.is_some() })
    });
    let tail = file.bytes().saturating_sub(TAIL_BYTES as u64);
    let (mut footer, start) = read.map_err(|error| fault(asked, at(tail), error))?;
    let Some(fields) = fields else {
        let text = "a footer without fields".to_owned();
        return Err(fault(asked, at(start), Fault::Damaged(text)));
    };
    let taken = footer.groups.iter().fold(0_u64, |sum, group| sum.saturating_add(group.bytes));
    let Some(mut position) =
        file.bytes().checked_sub(taken).filter(|head| *head >= MAGIC.len() as u64)
    else {
        let text = "row groups that overlap".to_owned();
        return Err(fault(asked, at(start), Fault::Damaged(text)));
    };
    let mut head = position;
    let part = match asked.request.part(number) {
        PartIs::RowGroups(part) => Some(part.start as usize..part.end as usize),
        _ => None,
    };
    if let Some(part) = &part {
        for (_, group) in
            footer.groups.iter_mut().enumerate().filter(|(index, _)| !part.contains(index))
        {
            // Another worker reads it.
            group.rows = 0;
        }
    }
    let mut wanted = vec![None; footer.groups.len()];
    let pruning = test.and_then(|test| Pruning::new(test, asked, &fields, start));
    if let Some(pruning) = pruning {
        let with_rows = |group: &RowGroup| group.rows > 0 && !pruning.is_unwanted(group);
        let groups = footer.groups.iter().filter(|group| with_rows(group));
        file.look_at(groups.flat_map(|group| pruning.parts(group)));
        let body = FileBody { file: &file, start: 0 };
        for (group, wanted) in footer.groups.iter().zip(&mut wanted) {
            let rows = match with_rows(group) {
                true => {
                    let rows = pruning.rows(group, &body);
                    rows.map_err(|error| fault(asked, at(group.start), error))?
                }
                false => Vec::new(),
            };
            let is_all = matches!(rows[..], [Range { start: 0, end }] if end == group.rows);
            *wanted = (!is_all).then(|| rows.into_boxed_slice());
        }
    }
    let is_read = |wanted: &Option<Box<[Range<u64>]>>| {
        wanted.as_ref().is_none_or(|wanted| !wanted.is_empty())
    };
    let read = footer.groups.iter().zip(&wanted).filter(|(_, wanted)| is_read(wanted));
    look_at_dictionaries(&file, read.map(|(group, _)| group), &fields);
    let mut end = file.bytes();
    for (index, (group, wanted)) in footer.groups.into_iter().zip(wanted).enumerate() {
        if let Some(part) = &part {
            if index == part.start {
                head = position;
            }
            if !part.contains(&index) {
                position += group.bytes;
                continue;
            }
            end = position + group.bytes;
        }
        let RowGroup { rows, bytes: stored, start, columns, .. } = group;
        groups.push(GroupAt {
            file: number as u32,
            number: index as u32,
            rows,
            wanted,
            start,
            columns: columns.into(),
            position,
            stored,
        });
        position += stored;
    }
    let skipped = part.map_or(0, |_| head);
    Ok(IndexedFile { file, fields: Arc::new(fields), head, end, skipped })
}

/// Whether a column chunk of texts may have a dictionary with more values than codes.
fn may_have_many_values(column: &ColumnAt) -> bool {
    column.has_codes && column.raw_bytes > MANY_VALUES_BYTES
}

/// Has the heads of dictionaries of texts fetched at once, if they are far away: of many row groups they are many.
fn look_at_dictionaries<'g>(
    file: &RawFile,
    groups: impl Iterator<Item = &'g RowGroup>,
    fields: &FieldsRead,
) {
    let texts = || {
        let all = fields.of_column.iter().flatten();
        all.filter(|field| field.stored.is_text()).map(|field| field.chunk)
    };
    let heads = groups.filter(|group| group.rows > 0).flat_map(|group| {
        texts()
            .map(|leaf| &group.columns[leaf])
            .filter(|column| may_have_many_values(column) && column.bytes > 0)
    });
    file.look_at(
        heads.map(|column| column.start..column.start + column.bytes.min(DICTIONARY_HEAD_BYTES)),
    );
}

/// Bytes that the rows of a row group take: those of the pages, and of the texts of dictionaries that have more values than
/// codes, which are looked at.
///
/// # Errors
/// `Input` when it is damaged, `Unavailable` when it cannot be read.
pub fn memory_bytes(of: &IndexedFile, group: &GroupAt, asked: Asked<'_>) -> Result<u64> {
    let spot = Spot {
        file: group.file as usize,
        byte: group.start,
        group: Some(group.number),
        column: None,
    };
    bytes_of_rows(&of.file, group, &of.fields).map_err(|e| fault(asked, spot, e))
}

fn bytes_of_rows(
    file: &RawFile,
    group: &GroupAt,
    fields: &FieldsRead,
) -> std::result::Result<u64, Fault> {
    if !group.is_read() {
        return Ok(0);
    }
    let body = FileBody { file, start: 0 };
    let mut bytes = 0_u64;
    let fields = || fields.of_column.iter().flatten();
    for nested in fields().filter_map(|field| field.nested.as_ref()) {
        for (leaf, stored) in nested.chunks.iter().zip(&nested.nested.leaves) {
            let column = &group.columns[*leaf];
            let raw = column.raw_bytes.min(column.bytes.saturating_mul(EXPANSION_MAX));
            // As values and as text, of which a number has more bytes.
            bytes = bytes.saturating_add(raw.saturating_mul(if stored.is_text() { 2 } else { 4 }));
        }
    }
    for FieldRead { stored, chunk, .. } in fields().filter(|field| field.nested.is_none()) {
        let column = &group.columns[*chunk];
        bytes =
            bytes.saturating_add(column.raw_bytes.min(column.bytes.saturating_mul(EXPANSION_MAX)));
        if stored.is_text()
            && may_have_many_values(column)
            && let Some((values, raw)) = dictionary_bytes(column, &body)?
        {
            let each = raw / u64::from(values.max(1));
            if values as usize > CODES_PROVISIONAL_MAX {
                bytes = bytes.saturating_add(each.saturating_mul(group.rows));
            }
        }
    }
    Ok(bytes)
}
