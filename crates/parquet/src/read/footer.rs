//! Footers: the fields of a file, and where the column chunks of its row groups are.
//!
//! Invariant: what is kept takes no more memory than it may, whatever the footer says.

use coload_arrow::{Fault, Result};

use super::hints::{ColumnHints, PlaceAt, ValueBounds};
use super::schema::{Element, ParquetField, fields};
use super::thrift::{Compact, Kind, Result as ThriftResult, Wrong, expect};

/// What a file begins and ends with.
pub const MAGIC: &[u8; 4] = b"PAR1";
/// What a file ends with whose footer is encrypted.
const ENCRYPTED_MAGIC: &[u8; 4] = b"PARE";
/// Bytes behind the footer: its length, and the magic.
pub const TAIL_BYTES: usize = 8;
/// Most rows of a row group.
const GROUP_ROWS_MAX: u64 = u32::MAX as u64;

/// Bytes of the footer of a file of so many bytes that ends with `tail`.
///
/// # Errors
/// `Damaged` when it does not end as such a file does, `Unknown` when it is encrypted.
pub fn footer_bytes(tail: &[u8], file_bytes: u64) -> Result<u64> {
    let cut_off = || Fault::Damaged("they do not end with PAR1".to_owned());
    let tail = <[u8; TAIL_BYTES]>::try_from(tail).map_err(|_| cut_off())?;
    let [a, b, c, d, magic @ ..] = tail;
    if &magic == ENCRYPTED_MAGIC {
        return Err(Fault::Unknown("the footer is encrypted, which is not read".to_owned()));
    }
    if &magic != MAGIC {
        return Err(cut_off());
    }
    let bytes = u64::from(u32::from_le_bytes([a, b, c, d]));
    // The first magic, which may be the only thing before it.
    match bytes + (TAIL_BYTES + MAGIC.len()) as u64 <= file_bytes {
        true => Ok(bytes),
        false => {
            Err(Fault::Damaged(format!("a footer of {bytes} bytes in a file of {file_bytes}")))
        }
    }
}

/// What the footer of a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// Its fields in their order.
    pub fields: Vec<ParquetField>,
    /// Its row groups in their order, if they were asked for.
    pub groups: Vec<RowGroup>,
    /// Rows of the file.
    pub rows: u64,
    /// Bytes that the columns take when they are decoded, as the file says.
    pub raw_bytes: u64,
}

/// Rows that are stored together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowGroup {
    /// How many.
    pub rows: u64,
    /// Bytes of all column chunks in the file.
    pub bytes: u64,
    /// Where the first of them starts.
    pub start: u64,
    /// The column chunks that were asked for.
    pub columns: Vec<ColumnAt>,
    /// What is said of their values, if that was asked for.
    pub hints: Vec<ColumnHints>,
}

/// A column chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnAt {
    /// Where its first page starts.
    pub start: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// Bytes when it is decompressed, as the file says.
    pub raw_bytes: u64,
    /// How its pages are compressed.
    pub(super) codec: i32,
    /// Number of the type of its values.
    physical: i32,
    /// Whether pages of it may be codes of a dictionary, as the footer says.
    pub has_codes: bool,
}

/// What of row groups is kept.
#[derive(Debug, Clone, Default)]
pub struct Leaves {
    /// Column chunks by their numbers, which rise.
    pub numbers: Vec<usize>,
    /// Whether what is said of their values is wanted too.
    pub with_hints: bool,
}

/// Numbers of the encodings of codes, an old one and today's.
const CODES: [i32; 2] = [2, 8];

/// A column chunk as the footer has it.
#[derive(Debug, Default)]
struct Chunk<'a> {
    is_elsewhere: bool,
    is_encrypted: bool,
    physical: i32,
    /// Whether codes are among the encodings; `None` where these are not told.
    has_codes: Option<bool>,
    codec: i32,
    bytes: u64,
    raw_bytes: u64,
    data: Option<u64>,
    dictionary: Option<u64>,
    bounds: Bounds<'a>,
    column_index: PlaceAt,
    offset_index: PlaceAt,
    bloom: PlaceAt,
}

/// Bounds of values as the footer has them.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds<'a> {
    least: Option<&'a [u8]>,
    greatest: Option<&'a [u8]>,
}

impl<'a> Bounds<'a> {
    /// Reads statistics. Those that older writers made are not read: for some types their order was not said.
    fn decode(from: &mut Compact<'a>) -> ThriftResult<Self> {
        let mut bounds = Bounds::default();
        from.structure(|from, field, kind| {
            match field {
                5 => bounds.greatest = Some(from.binary(kind)?),
                6 => bounds.least = Some(from.binary(kind)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(bounds)
    }
}

impl<'a> Chunk<'a> {
    fn decode(from: &mut Compact<'a>) -> ThriftResult<Self> {
        let mut chunk = Chunk::default();
        from.structure(|from, field, kind| {
            match field {
                1 => chunk.is_elsewhere = !from.binary(kind)?.is_empty(),
                3 => {
                    expect(kind, Kind::Struct)?;
                    chunk.metadata(from)?;
                }
                4 => chunk.offset_index.start = from.u64(kind)?,
                5 => chunk.offset_index.bytes = from.u64(kind)?,
                6 => chunk.column_index.start = from.u64(kind)?,
                7 => chunk.column_index.bytes = from.u64(kind)?,
                8 | 9 => {
                    chunk.is_encrypted = true;
                    return Ok(false);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(chunk)
    }

    fn metadata(&mut self, from: &mut Compact<'a>) -> ThriftResult<()> {
        from.structure(|from, field, kind| {
            match field {
                1 => self.physical = from.i32(kind)?,
                2 => {
                    let mut has_codes = false;
                    from.list(kind, Kind::Int, |from| {
                        has_codes |= CODES.contains(&from.i32(Kind::Int)?);
                        Ok(())
                    })?;
                    self.has_codes = Some(has_codes);
                }
                4 => self.codec = from.i32(kind)?,
                6 => self.raw_bytes = from.u64(kind)?,
                7 => self.bytes = from.u64(kind)?,
                9 => self.data = Some(from.u64(kind)?),
                11 => self.dictionary = Some(from.u64(kind)?),
                12 => {
                    expect(kind, Kind::Struct)?;
                    self.bounds = Bounds::decode(from)?;
                }
                14 => self.bloom.start = from.u64(kind)?,
                15 => self.bloom.bytes = from.u64(kind)?,
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    /// Where it is; some writers say 0 where there is no dictionary.
    fn place(&self) -> Option<ColumnAt> {
        let data = self.data?;
        let is_first = |at: &u64| *at > 0 && (*at < data || data == 0);
        let start = self.dictionary.filter(is_first).unwrap_or(data);
        let Chunk { codec, bytes, raw_bytes, physical, .. } = *self;
        let has_codes = self.has_codes.unwrap_or(true);
        Some(ColumnAt { start, bytes, raw_bytes, codec, physical, has_codes })
    }

    fn hints(&self) -> ColumnHints {
        let Bounds { least, greatest } = self.bounds;
        let bounds = least.zip(greatest);
        ColumnHints {
            bounds: bounds
                .and_then(|(least, greatest)| ValueBounds::new(self.physical, least, greatest)),
            column_index: self.column_index,
            offset_index: self.offset_index,
            bloom: self.bloom,
            physical: self.physical,
        }
    }
}

impl Footer {
    /// Reads a footer: the fields, and for each row group the column chunks of the `leaves`, which rise. `data_bytes` are
    /// those of the file before the footer; what is kept takes `bytes_max` at most.
    ///
    /// # Errors
    /// `Damaged` when it contradicts itself, `Unknown` for what is not read: encrypted columns, and columns in other files;
    /// `TooLarge` when more would be kept.
    pub fn decode(
        bytes: &[u8],
        data_bytes: u64,
        bytes_max: u64,
        leaves: impl FnOnce(&[ParquetField]) -> Result<Leaves>,
    ) -> Result<Self> {
        let mut footer = Footer { fields: Vec::new(), groups: Vec::new(), rows: 0, raw_bytes: 0 };
        // The schema comes first in all files that there are; a thrift structure may have any order.
        let elements = elements(bytes, bytes_max)?;
        footer.fields = fields(&elements)?;
        let stored = footer.fields.iter().flat_map(ParquetField::leaves);
        let physicals: Vec<(usize, i32)> =
            stored.map(|stored| (stored.leaf, stored.physical.number())).collect();
        let physical = |leaf: usize| {
            let found = physicals.binary_search_by_key(&leaf, |(leaf, _)| *leaf).ok();
            found.map(|found| physicals[found].1)
        };
        let Leaves { numbers, with_hints } = leaves(&footer.fields)?;
        let leaves: Vec<(usize, Option<i32>)> =
            numbers.into_iter().map(|leaf| (leaf, physical(leaf))).collect();
        let mut failed = None;
        let mut groups = Vec::new();
        let mut kept = 0;
        let mut raw_bytes = 0_u64;
        Compact::new(bytes).structure(|from, field, kind| {
            match field {
                3 => footer.rows = from.u64(kind)?,
                4 => from.list(kind, Kind::Struct, |from| {
                    let mut group = Group::new(&leaves, with_hints);
                    group.decode(from)?;
                    raw_bytes = raw_bytes.saturating_add(group.raw_bytes);
                    let number = groups.len();
                    kept += group.bytes_kept();
                    within(kept, bytes_max)?;
                    match group.finish(number, data_bytes) {
                        Ok(group) => groups.push(group),
                        Err(fault) => {
                            failed.get_or_insert(fault);
                        }
                    }
                    Ok(())
                })?,
                8 => {
                    failed.get_or_insert(encrypted());
                    return Ok(false);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if let Some(fault) = failed {
            return Err(fault);
        }
        let rows =
            groups.iter().fold(0_u64, |sum, group: &RowGroup| sum.saturating_add(group.rows));
        if rows != footer.rows {
            return Err(Fault::Damaged(format!(
                "a file of {} rows whose row groups have {rows}",
                footer.rows
            )));
        }
        (footer.groups, footer.raw_bytes) = (groups, raw_bytes);
        Ok(footer)
    }
}

fn encrypted() -> Fault {
    Fault::Unknown("columns are encrypted, which is not read".to_owned())
}

/// Checks what is kept.
fn within(bytes: usize, bytes_max: u64) -> ThriftResult<()> {
    match bytes as u64 {
        bytes if bytes > bytes_max => Err(Wrong::TooLarge(bytes)),
        _ => Ok(()),
    }
}

fn elements(bytes: &[u8], bytes_max: u64) -> Result<Vec<Element>> {
    let mut elements = Vec::new();
    Compact::new(bytes).structure(|from, field, kind| {
        if field != 2 {
            return Ok(false);
        }
        from.list(kind, Kind::Struct, |from| {
            elements.push(Element::decode(from)?);
            // Fields are made of them, which are as large.
            within(elements.len() * 2 * size_of::<Element>(), bytes_max)
        })?;
        Ok(true)
    })?;
    Ok(elements)
}

/// A row group that is being read.
struct Group<'a> {
    /// Column chunks that are wanted, and the numbers of their types.
    leaves: &'a [(usize, Option<i32>)],
    rows: u64,
    count: usize,
    bytes: u64,
    raw_bytes: u64,
    start: u64,
    columns: Vec<ColumnAt>,
    hints: Vec<ColumnHints>,
    with_hints: bool,
    fault: Option<Fault>,
}

impl<'a> Group<'a> {
    fn new(leaves: &'a [(usize, Option<i32>)], with_hints: bool) -> Self {
        Group {
            leaves,
            rows: 0,
            count: 0,
            bytes: 0,
            raw_bytes: 0,
            start: u64::MAX,
            columns: Vec::with_capacity(leaves.len()),
            hints: Vec::new(),
            with_hints,
            fault: None,
        }
    }

    /// Bytes of memory of what is kept.
    fn bytes_kept(&self) -> usize {
        let hints = self.hints.iter().map(|hints| size_of::<ColumnHints>() + hints.bytes());
        size_of::<RowGroup>() + self.leaves.len() * size_of::<ColumnAt>() + hints.sum::<usize>()
    }

    fn decode(&mut self, from: &mut Compact<'_>) -> ThriftResult<()> {
        from.structure(|from, field, kind| {
            match field {
                1 => from.list(kind, Kind::Struct, |from| {
                    let chunk = Chunk::decode(from)?;
                    self.take(&chunk)
                })?,
                3 => self.rows = from.u64(kind)?,
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    fn take(&mut self, chunk: &Chunk<'_>) -> ThriftResult<()> {
        if chunk.is_encrypted {
            self.fault.get_or_insert_with(encrypted);
        } else if chunk.is_elsewhere {
            let text = "columns are in other files, which is not read".to_owned();
            self.fault.get_or_insert(Fault::Unknown(text));
        }
        if let Some(place) = chunk.place() {
            self.start = self.start.min(place.start);
            self.raw_bytes = self.raw_bytes.saturating_add(place.raw_bytes);
            if self.leaves.get(self.columns.len()).is_some_and(|(leaf, _)| *leaf == self.count) {
                self.columns.push(place);
                if self.with_hints {
                    self.hints.push(chunk.hints());
                }
            }
        }
        self.bytes = self.bytes.checked_add(chunk.bytes).ok_or(Wrong::Bad("too many bytes"))?;
        self.count += 1;
        Ok(())
    }

    fn finish(self, number: usize, data_bytes: u64) -> Result<RowGroup> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let damaged = |what: String| Fault::Damaged(format!("row group {}: {what}", number + 1));
        if self.rows > GROUP_ROWS_MAX {
            return Err(Fault::Unknown(format!(
                "row group {} has {} rows, and {GROUP_ROWS_MAX} are the most that is read",
                number + 1,
                self.rows
            )));
        }
        if let Some((leaf, _)) = self.leaves.get(self.columns.len()) {
            return Err(damaged(format!("column chunk {} is not there", leaf + 1)));
        }
        for (column, (leaf, physical)) in self.columns.iter().zip(self.leaves) {
            let end = column.start.checked_add(column.bytes);
            let is_outside =
                column.start < MAGIC.len() as u64 || end.is_none_or(|end| end > data_bytes);
            // Where there are no rows no page is read.
            if is_outside && self.rows > 0 {
                return Err(damaged(format!(
                    "a column chunk of {} bytes at byte {}, outside the data",
                    column.bytes, column.start
                )));
            }
            if physical.is_some_and(|physical| physical != column.physical) {
                let text = format!("column chunk {} is of another type than its field", leaf + 1);
                return Err(damaged(text));
            }
        }
        let start = if self.start == u64::MAX { 0 } else { self.start };
        let Group { rows, bytes, columns, hints, .. } = self;
        Ok(RowGroup { rows, bytes, start, columns, hints })
    }
}

#[cfg(test)]
mod tests;
