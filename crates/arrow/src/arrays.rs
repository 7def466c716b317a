//! Arrays in memory as slices, which borrow their bytes.
//!
//! The arrays may come from another library of the process: lengths and places are checked here as those of messages are.
//! What their pointers lead to is the affair of who made the arrays.
//!
//! Cost: nothing a value of fixed width, 8 bytes a row of text, 4 of a dictionary; 16 are looked at where there are views.

use std::borrow::Cow;
use std::ops::Range;

use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::Schema;

use crate::fault::{Fault, Result};
use crate::message::Message;
use crate::schema::{ArrowSchema, Encoding, Field, IntType};
use crate::slice::{Bits, Slice, SliceValues, int_at};
use crate::strings::{Strings, VIEW_BYTES, View};
use crate::types::ArrowType;

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

/// Reads rows of an array that is one of the field.
///
/// # Errors
/// `Damaged` when the array contradicts itself, `Unknown` for a type that no column holds.
pub fn read_array<'a>(field: &Field, data: &'a ArrayData, rows: Range<usize>) -> Result<Slice<'a>> {
    if rows.start > rows.end || rows.end > data.len() {
        return Err(Fault::damaged(format!("rows {rows:?} of an array of {}", data.len())));
    }
    Read { field, data, first: data.offset() + rows.start, from: rows.start, rows: rows.len() }
        .slice()
}

/// The array of the values of a field's dictionary: that of its runs, if it has these.
pub fn dictionary_of<'a>(field: &Field, data: &'a ArrayData) -> Option<&'a ArrayData> {
    match field.encoding {
        Encoding::Plain => None,
        Encoding::Dictionary { .. } => data.child_data().first(),
        Encoding::Runs(_) => dictionary_of(field.children.get(1)?, data.child_data().get(1)?),
    }
}

/// Bytes that the rows of an array take, were they an array of their own.
pub fn array_bytes(field: &Field, data: &ArrayData) -> usize {
    let rows = data.len();
    let read = Read { field, data, first: data.offset(), from: 0, rows };
    let own = match (field.encoding, &field.values) {
        (Encoding::Dictionary { .. } | Encoding::Runs(_), _) => rows * 4,
        (_, ArrowType::Bool) => rows / 8,
        (_, ArrowType::Text(width) | ArrowType::Binary(width)) => {
            rows * 8 + read.span(*width).map_or(0, |span| span.len())
        }
        (_, ArrowType::TextView | ArrowType::BinaryView) => rows * VIEW_BYTES + read.view_bytes(),
        (_, other) => rows * other.width().unwrap_or(0),
    };
    own + data.nulls().map_or(0, |_| rows / 8)
}

/// Rows of an array that are read.
struct Read<'f, 'a> {
    field: &'f Field,
    data: &'a ArrayData,
    /// The first row in the buffers.
    first: usize,
    /// The first row in the array.
    from: usize,
    rows: usize,
}

impl<'a> Read<'_, 'a> {
    fn slice(&self) -> Result<Slice<'a>> {
        if let Encoding::Runs(ends) = self.field.encoding {
            return self.runs(ends);
        }
        let valid = self.valid()?;
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
            (_, ArrowType::Other(name, _)) => {
                return Err(Fault::Unknown(format!(
                    "field {} is {name}, which no column holds",
                    self.field.name
                )));
            }
            (_, other) => {
                let width = other.width().unwrap_or(0);
                SliceValues::Fixed(width, Cow::Borrowed(self.fixed(width, self.rows)?))
            }
        };
        Ok(Slice::new(self.rows, valid, values))
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

    fn valid(&self) -> Result<Option<Bits<'a>>> {
        let Some(nulls) = self.data.nulls().filter(|nulls| nulls.null_count() > 0) else {
            return Ok(None);
        };
        self.bits(nulls.validity(), nulls.offset() + self.from).map(Some)
    }

    /// The bits of the rows, the first of which is this one of a buffer.
    fn bits(&self, buffer: &'a [u8], first: usize) -> Result<Bits<'a>> {
        let bytes = buffer.get(first / 8..(first + self.rows).div_ceil(8));
        let bytes = bytes.ok_or_else(|| self.damaged("fewer bits than rows"))?;
        Ok(Bits::of(bytes, first % 8))
    }

    /// So many values of the rows, which have so many bytes each.
    fn fixed(&self, width: usize, count: usize) -> Result<&'a [u8]> {
        let at = |row: usize| row.checked_mul(width);
        let range = at(self.first).zip(at(self.first + count));
        let bytes = range.and_then(|(from, to)| self.data.buffers().first()?.get(from..to));
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
        Ok(read_array(values_field, values_data, first..last.max(first))?.indexed(keys))
    }
}

#[cfg(test)]
mod tests;
