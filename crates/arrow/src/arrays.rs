//! Arrays in memory as slices, which borrow their bytes.
//!
//! The arrays may come from another library of the process: lengths and places are checked here as those of messages are.
//! What their pointers lead to is the affair of who made the arrays.
//!
//! Cost: nothing a value of fixed width, 8 bytes a row of text, 4 of a dictionary; 16 are looked at where there are views.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::Schema;

use crate::column::{ArrowColumn, no_such_field};
use crate::dictionary::{Column, DictionariesOf};
use crate::fault::{Fault, Result};
use crate::message::Message;
use crate::nested::{FieldRows, both, check_rows, column_at, items_of};
use crate::schema::{ArrowSchema, Encoding, Field, IntType};
use crate::sizes::text_bytes_of_value;
use crate::slice::{Bits, Slice, SliceValues, int_at, no_column_holds};
use crate::strings::{Strings, VIEW_BYTES, View};
use crate::types::{ArrowType, Composite};

/// The fields of a schema.
///
/// # Errors
/// `Damaged` when it contradicts itself.
pub fn schema_of(schema: &Schema) -> Result<ArrowSchema> {
    // By way of the message, so that there is one list of types.
    let mut tracker = DictionaryTracker::new(false);
    let encoded = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(
        schema,
        &mut tracker,
        &IpcWriteOptions::default(),
    );
    match Message::decode(&encoded.ipc_message)? {
        (Message::Schema(schema), _) => Ok(schema),
        _ => Err(Fault::damaged("a schema that is none")),
    }
}

/// Reads rows of a column, those of the array of its field; they may take `bytes_max` beside what they borrow.
///
/// # Errors
/// `Damaged` when the array contradicts itself, `Unknown` for a type that no column holds, `TooLarge` when texts of lists take more than
/// they may; those of `dictionaries`.
pub fn read_array_column<'a>(
    (schema, column): (&ArrowSchema, &ArrowColumn),
    data: &'a ArrayData,
    rows: Range<usize>,
    bytes_max: u64,
    dictionaries: DictionariesOf<'_>,
) -> Result<Column<'a>> {
    let (first, path) = column.path.split_first().ok_or_else(|| no_such_field(0))?;
    let field = schema.fields.get(*first).ok_or_else(|| no_such_field(*first))?;
    let left = Cell::new(bytes_max);
    column_at(Read::new(field, data, rows, &left)?, path, dictionaries)
}

/// Reads all values of an array, which is one of the field, and may take `bytes_max` beside what they borrow.
///
/// # Errors
/// As [`read_array_column`].
pub fn read_array<'a>(
    field: &Field,
    data: &'a ArrayData,
    bytes_max: u64,
    dictionaries: DictionariesOf<'_>,
) -> Result<Column<'a>> {
    let left = Cell::new(bytes_max);
    column_at(Read::new(field, data, 0..data.len(), &left)?, &[], dictionaries)
}

/// A dictionary of arrays: its number, the field that its values are of, and their array.
#[derive(Debug)]
pub struct ArrayDictionary<'a> {
    /// Its number.
    pub id: i64,
    /// The field of the values.
    pub field: Field,
    /// The values.
    pub data: &'a ArrayData,
}

/// The dictionaries of the column of a field's array; those within another one come before it.
pub fn dictionaries_of<'a>(
    (schema, column): (&ArrowSchema, &ArrowColumn),
    data: &'a ArrayData,
) -> Vec<ArrayDictionary<'a>> {
    fn add<'a>(field: &Field, data: &'a ArrayData, out: &mut Vec<ArrayDictionary<'a>>) {
        if let (Encoding::Dictionary { id, .. }, [values]) = (field.encoding, data.child_data()) {
            let field = Field { encoding: Encoding::Plain, ..field.clone() };
            add(&field, values, out);
            out.push(ArrayDictionary { id, field, data: values });
            return;
        }
        let children = field.children.iter().zip(data.child_data());
        children.for_each(|(field, data)| add(field, data, out));
    }
    let mut out = Vec::new();
    let at = column.path[1..].iter().try_fold(data, |data, child| data.child_data().get(*child));
    if let (Some(field), Some(data)) = (column.inner(schema), at) {
        add(field, data, &mut out);
    }
    out
}

/// Bytes that the rows of a column take, of the array of its field, were they an array of their own; of lists, those of their texts, about.
pub fn array_bytes((schema, column): (&ArrowSchema, &ArrowColumn), data: &ArrayData) -> usize {
    let left = Cell::new(u64::MAX);
    let read = |field| Read::new(field, data, 0..data.len(), &left);
    let found = schema.fields.get(column.field()).and_then(|field| read(field).ok());
    let inner = found.and_then(|read| {
        column.path[1..].iter().try_fold(read, |read, child| read.child(*child, read.rows()).ok())
    });
    inner.map_or(0, |read| read.bytes())
}

/// Rows of an array that are read.
struct Read<'f, 'a> {
    /// Bytes that may still be taken.
    left: &'f Cell<u64>,
    field: &'f Field,
    data: &'a ArrayData,
    /// The first row in the buffers.
    first: usize,
    /// The first row in the array.
    from: usize,
    rows: usize,
}

impl<'a> FieldRows<'a> for Read<'_, 'a> {
    fn field(&self) -> &Field {
        self.field
    }

    fn rows(&self) -> Range<u64> {
        self.first as u64..(self.first + self.rows) as u64
    }

    fn valid(&self) -> Result<Option<Bits<'a>>> {
        let Some(nulls) = self.data.nulls().filter(|nulls| nulls.null_count() > 0) else {
            return Ok(None);
        };
        self.bits(nulls.validity(), nulls.offset() + self.from).map(Some)
    }

    fn ints(&self, buffer: usize, width: usize, more: usize) -> Result<Cow<'a, [u8]>> {
        self.fixed_of(buffer, width, self.rows + more).map(Cow::Borrowed)
    }

    fn child(&self, number: usize, rows: Range<u64>) -> Result<Self> {
        let found = self.field.children.get(number).zip(self.data.child_data().get(number));
        let (field, data) = found.ok_or_else(|| no_such_field(number))?;
        check_rows(field, &rows, data.len() as u64)?;
        Read::new(field, data, rows.start as usize..rows.end as usize, self.left)
    }

    fn slice(&self, above: Option<Bits<'a>>) -> Result<Slice<'a>> {
        if let Encoding::Runs(ends) = self.field.encoding {
            return Ok(self.runs(ends)?.masked(above));
        }
        let valid = both(self.valid()?, above, self.rows);
        let values = match (self.field.encoding, &self.field.values) {
            (Encoding::Dictionary { id, index }, _) => {
                SliceValues::Keys(self.keys(index, valid.as_ref())?, id)
            }
            (_, ArrowType::Null) => SliceValues::Nothing,
            (_, ArrowType::Bool) => SliceValues::Bits(self.bits(self.buffer(0)?, self.first)?),
            (_, ArrowType::Text(width) | ArrowType::Binary(width)) => {
                SliceValues::Strings(self.strings(*width)?)
            }
            (_, ArrowType::TextView | ArrowType::BinaryView) => {
                SliceValues::Strings(self.views(valid.as_ref())?)
            }
            (_, ArrowType::Composite(_) | ArrowType::Other(..)) => {
                return Err(no_column_holds(self.field));
            }
            (_, other) => {
                let width = other.width().unwrap_or(0);
                SliceValues::Fixed(width, Cow::Borrowed(self.fixed(width, self.rows)?))
            }
        };
        Ok(Slice::new(self.rows, valid, values))
    }

    fn take(&self, bytes: u64) -> Result<()> {
        let left = self.left.get().checked_sub(bytes).ok_or(Fault::TooLarge(bytes))?;
        self.left.set(left);
        Ok(())
    }

    fn bytes_left(&self) -> u64 {
        self.left.get()
    }
}

impl<'f, 'a> Read<'f, 'a> {
    fn new(
        field: &'f Field,
        data: &'a ArrayData,
        rows: Range<usize>,
        left: &'f Cell<u64>,
    ) -> Result<Self> {
        if rows.start > rows.end || rows.end > data.len() {
            return Err(Fault::damaged(format!("rows {rows:?} of an array of {}", data.len())));
        }
        let first = data.offset() + rows.start;
        Ok(Read { left, field, data, first, from: rows.start, rows: rows.len() })
    }

    /// Bytes that the rows take, were they an array of their own.
    fn bytes(&self) -> usize {
        let (rows, field) = (self.rows, self.field);
        let own = match (field.encoding, &field.values) {
            (Encoding::Dictionary { .. } | Encoding::Runs(_), _) => rows * 4,
            (_, ArrowType::Bool) => rows / 8,
            (_, ArrowType::Text(width) | ArrowType::Binary(width)) => {
                rows * 8 + self.span(*width).map_or(0, |span| span.len())
            }
            (_, ArrowType::TextView | ArrowType::BinaryView) => {
                rows * VIEW_BYTES + self.view_bytes()
            }
            (_, ArrowType::Composite(_)) => rows * 8 + self.text_bytes(),
            (_, other) => rows * other.width().unwrap_or(0),
        };
        own + self.data.nulls().map_or(0, |_| rows / 8)
    }

    /// Bytes that the rows take as texts within one, about.
    fn text_bytes(&self) -> usize {
        let field = self.field;
        let (Encoding::Plain, ArrowType::Composite(of)) = (field.encoding, &field.values) else {
            return self.rows * text_bytes_of_value(field) + self.bytes();
        };
        let Ok((_, items)) = self.valid().and_then(|valid| items_of(self, *of, valid.as_ref()))
        else {
            return 0;
        };
        let count = field.children.len();
        let children = (0..count).filter_map(|child| self.child(child, items.clone()).ok());
        let names = match of {
            Composite::Struct => field.children.iter().map(|child| child.name.len() + 4).sum(),
            _ => 0,
        };
        self.rows * (names + text_bytes_of_value(field))
            + children.map(|c| c.text_bytes()).sum::<usize>()
    }

    fn damaged(&self, what: &str) -> Fault {
        Fault::damaged(format!("field {}: {what}", self.field.name))
    }

    fn buffer(&self, number: usize) -> Result<&'a [u8]> {
        let buffer = self.data.buffers().get(number);
        buffer
            .map(|buffer| buffer.as_slice())
            .ok_or_else(|| self.damaged("an array without values"))
    }

    /// The bits of the rows, the first of which is this one of a buffer.
    fn bits(&self, buffer: &'a [u8], first: usize) -> Result<Bits<'a>> {
        let bytes = buffer.get(first / 8..(first + self.rows).div_ceil(8));
        let bytes = bytes.ok_or_else(|| self.damaged("fewer bits than rows"))?;
        Ok(Bits::of(bytes, first % 8))
    }

    /// So many values of the rows, which have so many bytes each.
    fn fixed(&self, width: usize, count: usize) -> Result<&'a [u8]> {
        self.fixed_of(0, width, count)
    }

    /// The same of one of the buffers.
    fn fixed_of(&self, buffer: usize, width: usize, count: usize) -> Result<&'a [u8]> {
        let at = |row: usize| row.checked_mul(width);
        let range = at(self.first).zip(at(self.first + count));
        let bytes = range.and_then(|(from, to)| self.data.buffers().get(buffer)?.get(from..to));
        bytes.ok_or_else(|| self.damaged("fewer values than rows"))
    }

    fn keys(&self, index: IntType, valid: Option<&Bits<'_>>) -> Result<Vec<u32>> {
        let bytes = self.fixed(index.width, self.rows)?;
        let key = |row: usize| {
            if valid.is_some_and(|valid| !valid.get(row)) {
                return Ok(0);
            }
            let key = int_at(bytes, row, index);
            u32::try_from(key).map_err(|_| self.damaged(&format!("place {key} of a dictionary")))
        };
        (0..self.rows).map(key).collect()
    }

    /// Where the strings of the rows stand, whose places have this width.
    fn span(&self, width: usize) -> Result<Range<usize>> {
        if self.rows == 0 {
            return Ok(0..0);
        }
        let ends = self.fixed(width, self.rows + 1)?;
        let place = |row| usize::try_from(int_at(ends, row, IntType { width, signed: true }));
        match (place(0), place(self.rows)) {
            (Ok(first), Ok(last)) if first <= last => Ok(first..last),
            _ => Err(self.damaged("strings that end before they start")),
        }
    }

    fn strings(&self, width: usize) -> Result<Strings<'a>> {
        let span = self.span(width)?;
        let bytes = self.buffer(1)?.get(span.clone());
        let bytes = bytes.ok_or_else(|| self.damaged("strings that are not there"))?;
        let mut places = Vec::new();
        if self.rows > 0 {
            let ends = self.fixed(width, self.rows + 1)?;
            let mut before = span.start;
            places.reserve(self.rows + 1);
            for row in 0..=self.rows {
                let at = usize::try_from(int_at(ends, row, IntType { width, signed: true }));
                let at = at.ok().filter(|at| (before..=span.end).contains(at));
                let at = at.ok_or_else(|| self.damaged("strings that end before they start"))?;
                places.push(at - span.start);
                before = at;
            }
        }
        Ok(Strings::Ends { places, bytes: Cow::Borrowed(bytes) })
    }

    fn views(&self, valid: Option<&Bits<'_>>) -> Result<Strings<'a>> {
        let views = self.fixed(VIEW_BYTES, self.rows)?;
        let data = self.data.buffers().get(1..).unwrap_or_default();
        let mut used: Vec<Option<Range<usize>>> = vec![None; data.len()];
        for (row, view) in views.chunks_exact(VIEW_BYTES).enumerate() {
            if valid.is_some_and(|valid| !valid.get(row)) {
                continue;
            }
            let View::Elsewhere { buffer, range } = View::decode(view) else { continue };
            let there = data.get(buffer).is_some_and(|data| range.end <= data.len());
            let Some(used) = used.get_mut(buffer).filter(|_| there) else {
                return Err(self.damaged(&format!("a view of buffer {buffer} of {}", data.len())));
            };
            *used = Some(match used {
                None => range,
                Some(used) => used.start.min(range.start)..used.end.max(range.end),
            });
        }
        let part = |(used, data): (Option<Range<usize>>, &'a Buffer)| {
            let used = used.unwrap_or_default();
            (used.start, Cow::Borrowed(&data.as_slice()[used]))
        };
        let buffers = used.into_iter().zip(data).map(part).collect();
        Ok(Strings::Views { views: Cow::Borrowed(views), buffers })
    }

    /// Bytes of strings that do not stand in their views.
    fn view_bytes(&self) -> usize {
        let views = self.fixed(VIEW_BYTES, self.rows).unwrap_or_default();
        let bytes = views.chunks_exact(VIEW_BYTES).map(|view| match View::decode(view) {
            View::Inline(_) => 0,
            View::Elsewhere { range, .. } => range.len(),
        });
        bytes.sum()
    }

    /// Runs: for each row the run that it is in.
    fn runs(&self, ends: IntType) -> Result<Slice<'a>> {
        let ([ends_data, values_data], [_, values_field]) =
            (self.data.child_data(), &self.field.children[..])
        else {
            return Err(self.damaged("runs without ends and values"));
        };
        let of_ends = Read { data: ends_data, first: ends_data.offset(), ..*self };
        let count = ends_data.len();
        let bytes = of_ends.fixed(ends.width, count)?;
        let rows = self.first..self.first + self.rows;
        let mut keys = Vec::with_capacity(self.rows);
        let (mut before, mut first, mut last) = (0, None, 0);
        for run in 0..count {
            let end = usize::try_from(int_at(bytes, run, ends)).ok().filter(|end| *end > before);
            let end = end.ok_or_else(|| self.damaged("runs that end before they start"))?;
            let here = before.max(rows.start)..end.min(rows.end);
            if !here.is_empty() {
                let first = *first.get_or_insert(run);
                keys.extend(std::iter::repeat_n((run - first) as u32, here.len()));
                last = run + 1;
            }
            before = end;
        }
        if keys.len() < self.rows {
            return Err(self.damaged("runs that end before the last row"));
        }
        let first = first.unwrap_or(0);
        let of_values = Read::new(values_field, values_data, first..last.max(first), self.left)?;
        Ok(of_values.slice(None)?.indexed(keys))
    }
}

#[cfg(test)]
mod tests;
