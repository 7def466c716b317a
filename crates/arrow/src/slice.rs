//! Rows of a column of a batch, checked: what is asked of them afterwards cannot fail.
//!
//! Cost: the bytes of the rows, and 8 bytes a row of text or 4 of a dictionary. Of a batch that is not compressed only the
//! bytes of these rows are read; of one that is, its buffers as a whole.

use std::borrow::Cow;
use std::ops::Range;

use crate::batch::{BatchLayout, FieldLayout};
use crate::buffers::Buffers;
use crate::column::{ArrowColumn, no_such_field};
use crate::dictionary::{Column, DictionariesOf};
use crate::fault::{Fault, Result};
use crate::nested::{FieldRows, both, check_rows, column_at};
use crate::schema::{ArrowSchema, Encoding, Field, IntType};
use crate::sizes::text_bytes;
use crate::strings::{Strings, VIEW_BYTES, View};
use crate::types::ArrowType;

/// Bytes of a place in values.
const KEY_BYTES: u64 = size_of::<u32>() as u64;

/// Rows of a column.
#[derive(Debug, Clone)]
pub struct Slice<'a> {
    /// Number of rows.
    pub rows: usize,
    /// Rows that are no NULL; all if `None`.
    valid: Option<Bits<'a>>,
    /// What the rows hold.
    pub values: SliceValues<'a>,
}

/// What the rows of a column hold.
#[derive(Debug, Clone)]
pub enum SliceValues<'a> {
    /// NULL in each row.
    Nothing,
    /// A bit each.
    Bits(Bits<'a>),
    /// So many bytes each.
    Fixed(usize, Cow<'a, [u8]>),
    /// Strings.
    Strings(Strings<'a>),
    /// For each row a place in a dictionary, of which nothing is known here; 0 for NULL.
    Keys(Vec<u32>, i64),
    /// For each row a place in these values; 0 for NULL.
    Indexed(Vec<u32>, Box<Slice<'a>>),
}

/// Bits, from one of a byte on.
#[derive(Debug, Clone)]
pub struct Bits<'a> {
    bytes: Cow<'a, [u8]>,
    first: usize,
}

impl<'a> Bits<'a> {
    /// The bits of bytes, from the lowest of the first on.
    pub fn new(bytes: Vec<u8>) -> Self {
        Bits { bytes: Cow::Owned(bytes), first: 0 }
    }

    /// The bits of bytes that somebody has, from one of the first on.
    pub(crate) fn of(bytes: &'a [u8], first: usize) -> Self {
        Bits { bytes: Cow::Borrowed(bytes), first }
    }

    /// Whether the bit of a row is set.
    pub fn get(&self, row: usize) -> bool {
        let at = self.first + row;
        self.bytes.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    }
}

impl<'a> Slice<'a> {
    /// So many rows, those of which are no NULL whose bit is set.
    pub fn new(rows: usize, valid: Option<Bits<'a>>, values: SliceValues<'a>) -> Self {
        Slice { rows, valid, values }
    }

    /// Whether a row is NULL, as far as the column itself says: what a key leads to may be NULL too.
    pub fn is_null(&self, row: usize) -> bool {
        matches!(self.values, SliceValues::Nothing)
            || self.valid.as_ref().is_some_and(|valid| !valid.get(row))
    }

    /// Whether no row is NULL by itself.
    pub fn has_no_nulls(&self) -> bool {
        self.valid.is_none() && !matches!(self.values, SliceValues::Nothing)
    }

    /// The same rows, whoever had their bytes.
    pub fn into_owned(self) -> Slice<'static> {
        fn own(bytes: Cow<'_, [u8]>) -> Cow<'static, [u8]> {
            Cow::Owned(bytes.into_owned())
        }
        let bits = |bits: Bits<'_>| Bits { bytes: own(bits.bytes), first: bits.first };
        let values = match self.values {
            SliceValues::Nothing => SliceValues::Nothing,
            SliceValues::Bits(values) => SliceValues::Bits(bits(values)),
            SliceValues::Fixed(width, bytes) => SliceValues::Fixed(width, own(bytes)),
            SliceValues::Strings(Strings::Ends { places, bytes }) => {
                SliceValues::Strings(Strings::Ends { places, bytes: own(bytes) })
            }
            SliceValues::Strings(Strings::Views { views, buffers }) => {
                let buffers = buffers.into_iter().map(|(start, bytes)| (start, own(bytes)));
                SliceValues::Strings(Strings::Views {
                    views: own(views),
                    buffers: buffers.collect(),
                })
            }
            SliceValues::Keys(keys, id) => SliceValues::Keys(keys, id),
            SliceValues::Indexed(keys, values) => {
                SliceValues::Indexed(keys, Box::new(values.into_owned()))
            }
        };
        Slice { rows: self.rows, valid: self.valid.map(bits), values }
    }

    /// Bytes of memory that the rows take.
    pub fn bytes(&self) -> usize {
        let own = match &self.values {
            SliceValues::Nothing => 0,
            SliceValues::Bits(bits) => bits.bytes.len(),
            SliceValues::Fixed(_, bytes) => bytes.len(),
            SliceValues::Strings(Strings::Ends { places, bytes }) => places.len() * 8 + bytes.len(),
            SliceValues::Strings(Strings::Views { views, buffers }) => {
                views.len() + buffers.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
            }
            SliceValues::Keys(keys, _) => keys.len() * 4,
            SliceValues::Indexed(keys, values) => keys.len() * 4 + values.bytes(),
        };
        own + self.valid.as_ref().map_or(0, |valid| valid.bytes.len())
    }
}

/// Reads rows of a field of a batch that has no others within it: keys of a dictionary as they are.
///
/// # Errors
/// `Damaged` when its buffers contradict themselves, `Unknown` for a type that no column holds, `TooLarge` when more
/// bytes are read than may be; those of reading.
pub fn read_slice<'a>(
    field: &Field,
    layout: &FieldLayout,
    buffers: &Buffers<'a>,
    rows: Range<u64>,
) -> Result<Slice<'a>> {
    Read::new(field, layout, buffers, rows)?.slice(None)
}

/// Reads rows of a field of a batch, whatever is within it, as a column: the values of a dictionary.
///
/// # Errors
/// As [`read_slice`], and those of `dictionaries`.
pub fn read_values<'a>(
    field: &Field,
    layout: &FieldLayout,
    buffers: &Buffers<'a>,
    rows: Range<u64>,
    dictionaries: DictionariesOf<'_>,
) -> Result<Column<'a>> {
    column_at(Read::new(field, layout, buffers, rows)?, &[], dictionaries)
}

/// Reads rows of a column of a batch.
///
/// # Errors
/// As [`read_values`].
pub fn read_column<'a>(
    (schema, column): (&ArrowSchema, &ArrowColumn),
    layout: &BatchLayout,
    buffers: &Buffers<'a>,
    rows: Range<u64>,
    dictionaries: DictionariesOf<'_>,
) -> Result<Column<'a>> {
    let (first, path) = column.path.split_first().ok_or_else(|| no_such_field(0))?;
    let found = schema.fields.get(*first).zip(layout.fields.get(*first));
    let (field, layout) = found.ok_or_else(|| no_such_field(*first))?;
    column_at(Read::new(field, layout, buffers, rows)?, path, dictionaries)
}

/// Bytes that the rows of a column of a batch take as texts, about, if it is one of lists or maps; `of_key` tells those of a value of a
/// dictionary.
///
/// # Errors
/// Those of reading the lengths of compressed buffers.
pub fn written_bytes(
    (schema, column): (&ArrowSchema, &ArrowColumn),
    layout: &BatchLayout,
    buffers: &Buffers<'_>,
    of_key: &dyn Fn(i64) -> u64,
) -> Result<u64> {
    let Some(field) = column.inner(schema).filter(|field| field.is_composite()) else {
        return Ok(0);
    };
    let top = layout.fields.get(column.field()).ok_or_else(|| no_such_field(column.field()))?;
    let mut path = column.path[1..].iter();
    let layout = path.try_fold(top, |layout, child| layout.children.get(*child));
    text_bytes(field, layout.unwrap_or(top), buffers, of_key)
}

/// Rows of a field that are read.
struct Read<'r, 'a> {
    field: &'r Field,
    layout: &'r FieldLayout,
    buffers: &'r Buffers<'a>,
    rows: Range<u64>,
    /// Rows of the field in the batch.
    length: u64,
}

impl<'a> FieldRows<'a> for Read<'_, 'a> {
    fn field(&self) -> &Field {
        self.field
    }

    fn rows(&self) -> Range<u64> {
        self.rows.clone()
    }

    fn valid(&self) -> Result<Option<Bits<'a>>> {
        let (_, nulls) = self.buffers.batch().nodes[self.layout.node];
        let has_bits = match self.field.encoding {
            Encoding::Plain => self.field.values != ArrowType::Null,
            Encoding::Dictionary { .. } => true,
            Encoding::Runs(_) => false,
        };
        (has_bits && nulls > 0).then(|| self.bits(0)).transpose()
    }

    fn ints(&self, buffer: usize, width: usize, more: usize) -> Result<Cow<'a, [u8]>> {
        let rows = self.rows.start..self.rows.end + more as u64;
        Read { rows, ..*self }.fixed(1 + buffer, width)
    }

    fn child(&self, number: usize, rows: Range<u64>) -> Result<Self> {
        let found = self.field.children.get(number).zip(self.layout.children.get(number));
        let (field, layout) = found.ok_or_else(|| no_such_field(number))?;
        let (length, _) = self.buffers.batch().nodes[layout.node];
        check_rows(field, &rows, length)?;
        Ok(Read { field, layout, buffers: self.buffers, rows, length })
    }

    fn slice(&self, above: Option<Bits<'a>>) -> Result<Slice<'a>> {
        if let Encoding::Runs(ends) = self.field.encoding {
            return Ok(self.runs(ends)?.masked(above));
        }
        let field = self.field;
        let valid = both(self.valid()?, above, self.count());
        let values = match (field.encoding, &field.values) {
            (Encoding::Dictionary { id, index }, _) => {
                SliceValues::Keys(self.keys(index, &valid)?, id)
            }
            (_, ArrowType::Null) => SliceValues::Nothing,
            (_, ArrowType::Bool) => SliceValues::Bits(self.bits(1)?),
            (_, ArrowType::Text(width) | ArrowType::Binary(width)) => {
                SliceValues::Strings(self.strings(*width)?)
            }
            (_, ArrowType::TextView | ArrowType::BinaryView) => {
                SliceValues::Strings(self.views(&valid)?)
            }
            (_, ArrowType::Composite(_) | ArrowType::Other(..)) => {
                return Err(no_column_holds(field));
            }
            (_, other) => {
                let width = other.width().unwrap_or(0);
                SliceValues::Fixed(width, self.fixed(1, width)?)
            }
        };
        Ok(Slice { rows: self.count(), valid, values })
    }

    fn take(&self, bytes: u64) -> Result<()> {
        self.buffers.take(bytes)
    }

    fn bytes_left(&self) -> u64 {
        self.buffers.left()
    }
}

/// What is told of a field that no column holds.
pub(crate) fn no_column_holds(field: &Field) -> Fault {
    Fault::Unknown(format!("field {} is {field}, which no column holds", field.name))
}

impl<'r, 'a> Read<'r, 'a> {
    fn new(
        field: &'r Field,
        layout: &'r FieldLayout,
        buffers: &'r Buffers<'a>,
        rows: Range<u64>,
    ) -> Result<Self> {
        let (length, _) = buffers.batch().nodes[layout.node];
        match rows.start <= rows.end && rows.end <= length {
            true => Ok(Read { field, layout, buffers, rows, length }),
            false => Err(Fault::damaged(format!("rows {rows:?} of a column of {length}"))),
        }
    }

    fn damaged(&self, what: &str) -> Fault {
        Fault::damaged(format!("field {}: {what}", self.field.name))
    }

    /// The bits of a buffer of the field, counted from its first.
    fn bits(&self, buffer: usize) -> Result<Bits<'a>> {
        let range = self.rows.start / 8..self.rows.end.div_ceil(8);
        let bytes = match self.rows.is_empty() {
            true => Cow::Borrowed(&[][..]),
            false => self.buffers.read(self.layout.buffer + buffer, range.start, range.end)?,
        };
        Ok(Bits { bytes, first: (self.rows.start % 8) as usize })
    }

    /// The values of a buffer whose values have so many bytes.
    fn fixed(&self, buffer: usize, width: usize) -> Result<Cow<'a, [u8]>> {
        let at = |row: u64| {
            row.checked_mul(width as u64).ok_or_else(|| self.damaged("values that are too wide"))
        };
        self.buffers.read(self.layout.buffer + buffer, at(self.rows.start)?, at(self.rows.end)?)
    }

    fn keys(&self, index: IntType, valid: &Option<Bits<'_>>) -> Result<Vec<u32>> {
        let bytes = self.fixed(1, index.width)?;
        let key = |row: usize| {
            if valid.as_ref().is_some_and(|valid| !valid.get(row)) {
                return Ok(0);
            }
            let key = int_at(&bytes, row, index);
            u32::try_from(key).map_err(|_| self.damaged(&format!("place {key} of a dictionary")))
        };
        (0..self.count()).map(key).collect()
    }

    /// Places of this width, and the strings between them.
    fn strings(&self, width: usize) -> Result<Strings<'a>> {
        if self.rows.is_empty() {
            return Ok(Strings::Ends { places: Vec::new(), bytes: Cow::Borrowed(&[]) });
        }
        let from = self.rows.start * width as u64;
        let to = (self.rows.end + 1) * width as u64;
        let ends = self.buffers.read(self.layout.buffer + 1, from, to)?;
        let index = IntType { width, signed: true };
        let place = |row: usize| u64::try_from(int_at(&ends, row, index));
        let none = || self.damaged("strings that end before they start");
        let first = place(0).map_err(|_| none())?;
        let mut before = first;
        let mut places = Vec::with_capacity(self.count() + 1);
        for row in 0..=self.count() {
            let at = place(row).ok().filter(|at| *at >= before).ok_or_else(none)?;
            places.push((at - first) as usize);
            before = at;
        }
        let bytes = self.buffers.read(self.layout.buffer + 2, first, before)?;
        Ok(Strings::Ends { places, bytes })
    }

    fn views(&self, valid: &Option<Bits<'_>>) -> Result<Strings<'a>> {
        let views = self.fixed(1, VIEW_BYTES)?;
        let mut used: Vec<Option<Range<usize>>> = vec![None; self.layout.variadic];
        let mut told = 0_u64;
        for (row, view) in views.chunks_exact(VIEW_BYTES).enumerate() {
            if valid.as_ref().is_some_and(|valid| !valid.get(row)) {
                continue;
            }
            let View::Elsewhere { buffer, range } = View::decode(view) else { continue };
            let used = used.get_mut(buffer).ok_or_else(|| {
                self.damaged(&format!("a view of buffer {buffer} of {}", self.layout.variadic))
            })?;
            told = told.saturating_add(range.len() as u64);
            *used = Some(match used {
                None => range,
                Some(used) => used.start.min(range.start)..used.end.max(range.end),
            });
        }
        // Many views may tell the same bytes, which are a text for each of them when somebody takes them.
        let there = used.iter().flatten().fold(0, |sum: u64, used| sum + used.len() as u64);
        self.buffers.take(told.saturating_sub(there))?;
        let first = self.layout.buffer + 2;
        let read = |(number, used): (usize, Option<Range<usize>>)| {
            let Some(used) = used else { return Ok((0, Cow::Borrowed(&[][..]))) };
            let bytes = self.buffers.read(first + number, used.start as u64, used.end as u64)?;
            Ok((used.start, bytes))
        };
        let buffers = used.into_iter().enumerate().map(read).collect::<Result<_>>()?;
        Ok(Strings::Views { views, buffers })
    }

    /// Runs: for each row the run that it is in.
    fn runs(&self, ends: IntType) -> Result<Slice<'a>> {
        let ([ends_field, values_field], [ends_layout, values_layout]) =
            (&self.field.children[..], &self.layout.children[..])
        else {
            return Err(self.damaged("runs without ends and values"));
        };
        let (runs, _) = self.buffers.batch().nodes[ends_layout.node];
        let of_ends = Read {
            field: ends_field,
            layout: ends_layout,
            buffers: self.buffers,
            rows: 0..runs,
            length: runs,
        };
        let bytes = of_ends.fixed(1, ends.width)?;
        // One run may have all rows: what is read tells nothing of what they take.
        self.buffers.take(self.count() as u64 * KEY_BYTES)?;
        let mut keys = Vec::with_capacity(self.count());
        let (mut before, mut first, mut last) = (0, None, 0);
        for run in 0..runs {
            let end = int_at(&bytes, run as usize, ends);
            let end = u64::try_from(end).ok().filter(|end| *end > before);
            let end = end.ok_or_else(|| self.damaged("runs that end before they start"))?;
            let here = before.max(self.rows.start)..end.min(self.rows.end);
            if !here.is_empty() {
                let first = *first.get_or_insert(run);
                let key = (run - first) as u32;
                keys.extend(std::iter::repeat_n(key, (here.end - here.start) as usize));
                last = run + 1;
            }
            before = end;
        }
        if before < self.length {
            return Err(self.damaged("runs that end before the last row"));
        }
        let first = first.unwrap_or(0);
        let rows = first..last.max(first);
        let values = Read::new(values_field, values_layout, self.buffers, rows)?.slice(None)?;
        Ok(values.indexed(keys))
    }
}

impl<'a> Slice<'a> {
    /// The same rows, those of which are NULL as well that are so above.
    pub(crate) fn masked(self, above: Option<Bits<'a>>) -> Slice<'a> {
        let Slice { rows, valid, values } = self;
        Slice { rows, valid: both(valid, above, rows), values }
    }

    /// For each key the row that it is the number of.
    pub(crate) fn indexed(self, keys: Vec<u32>) -> Slice<'a> {
        let rows = keys.len();
        let through = |inner: &[u32]| keys.iter().map(|key| inner[*key as usize]).collect();
        match self.values {
            SliceValues::Keys(ref inner, id) => {
                let valid = self.valid.as_ref().map(|_| {
                    let mut bytes = vec![0_u8; rows.div_ceil(8)];
                    for (row, key) in keys.iter().enumerate() {
                        bytes[row / 8] |= u8::from(!self.is_null(*key as usize)) << (row % 8);
                    }
                    Bits { bytes: Cow::Owned(bytes), first: 0 }
                });
                Slice { rows, valid, values: SliceValues::Keys(through(inner), id) }
            }
            SliceValues::Indexed(inner, values) => {
                Slice { rows, valid: None, values: SliceValues::Indexed(through(&inner), values) }
            }
            _ => Slice { rows, valid: None, values: SliceValues::Indexed(keys, Box::new(self)) },
        }
    }
}

/// The integer of a row.
pub(crate) fn int_at(bytes: &[u8], row: usize, int: IntType) -> i128 {
    let Some(raw) = bytes.get(row * int.width..(row + 1) * int.width) else { return -1 };
    let mut word = [0; 8];
    word[..int.width].copy_from_slice(raw);
    let word = u64::from_le_bytes(word);
    let unused = 64 - 8 * int.width as u32;
    match int.signed {
        true => i128::from((word << unused) as i64 >> unused),
        false => i128::from(word),
    }
}

#[cfg(test)]
mod tests;
