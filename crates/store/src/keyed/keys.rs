//! The keys of the rows of segments.

use std::borrow::Borrow;

use coload_ddl::{Key, KeyKind, Schema};
use coload_types::{
    DataType, Error, Plain, Result, Value, Values, f32_from_ordinal, f64_from_ordinal,
    ordinal_from_f32, ordinal_from_f64,
};

use crate::SegmentFile;

/// Longest value of a key that a message shows, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// A type whose values are not all different where their bits are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Float {
    Real,
    Double,
}

/// The kind of float that a column holds, if it holds floats.
pub(crate) fn float(schema: &Schema, column: usize) -> Option<Float> {
    match schema.columns()[column].data_type {
        DataType::Real => Some(Float::Real),
        DataType::Double => Some(Float::Double),
        _ => None,
    }
}

impl Float {
    /// The value that stands for all that SQL takes for equal: 0 for -0, and one NaN, which is the greatest.
    pub fn key_of(self, stored: i64) -> i64 {
        let (value, nan) = match self {
            Float::Real => {
                (f64::from(f32_from_ordinal(stored)), ordinal_from_f32(f32::NAN.copysign(1.0)))
            }
            Float::Double => (f64_from_ordinal(stored), ordinal_from_f64(f64::NAN.copysign(1.0))),
        };
        if value.is_nan() {
            nan
        } else if value == 0.0 {
            0
        } else {
            stored
        }
    }
}

/// The columns of the key, all rows of these segments one after the other.
///
/// # Errors
/// `Corrupt` when a segment is not what was written, or has NULL in a PRIMARY KEY; `Limit` when the texts of a column are
/// over 4 GiB.
pub(crate) fn read_keys<S: Borrow<SegmentFile>>(
    segments: &[S],
    schema: &Schema,
    key: &Key,
) -> Result<Vec<Plain>> {
    let mut columns = Vec::with_capacity(key.columns().len());
    for column in key.columns() {
        let mut plain = match segments.first() {
            Some(first) => Plain::empty(first.borrow().physical(*column)),
            None => return Ok(columns),
        };
        let rows: u64 = segments.iter().map(|segment| segment.borrow().rows()).sum();
        for segment in segments {
            let segment: &SegmentFile = segment.borrow();
            for page in 0..segment.page_rows().len() {
                segment.decode_page(*column, page, &mut plain)?;
                make_room(&mut plain, rows);
            }
            segment.check()?;
        }
        if plain.null_count() == 0 {
            plain.nulls = None;
        } else if key.kind() == KeyKind::Primary {
            return Err(null_in_key(*column, plain.null_count() as u64));
        }
        if let (Some(float), Values::Int(values)) = (float(schema, *column), &mut plain.values) {
            values.iter_mut().for_each(|value| *value = float.key_of(*value));
        }
        columns.push(plain);
    }
    Ok(columns)
}

/// The error for NULL in a column of a PRIMARY KEY.
pub(super) fn null_in_key(column: usize, rows: u64) -> Error {
    Error::Invalid(format!("{rows} rows have NULL in column {} of the PRIMARY KEY", column + 1))
}

/// Makes room for as many rows as there will be, if those so far are what the others are like. Long texts that grow by doubling take
/// the double of what they need, and that again while they are copied.
fn make_room(plain: &mut Plain, rows: u64) {
    let so_far = plain.len();
    let Values::Bytes(strings) = &mut plain.values else { return };
    let bytes = strings.bytes.len();
    if so_far > 0 && bytes as u64 / so_far as u64 >= LONG_BYTES {
        let all = (bytes as u64).saturating_mul(rows) / so_far as u64;
        let all = (all + all / ROOM_SHARE).min(u64::from(u32::MAX)) as usize;
        if strings.bytes.capacity() < all {
            strings.bytes.reserve_exact(all.saturating_sub(bytes));
        }
    }
}

/// Bytes of a long text, and the share of all bytes that is added to what is expected.
const LONG_BYTES: u64 = 256;
const ROOM_SHARE: u64 = 16;

/// A value of a row of a segment.
///
/// # Errors
/// `Corrupt` when the segment is not what was written.
pub(crate) fn value_of_row(
    segment: &SegmentFile,
    column: usize,
    row: u64,
) -> Result<Option<Value>> {
    let mut before = 0;
    for (page, rows) in segment.page_rows().iter().enumerate() {
        let end = before + u64::from(*rows);
        if row < end {
            let mut plain = Plain::empty(segment.physical(column));
            segment.decode_page(column, page, &mut plain)?;
            segment.check()?;
            return Ok(plain.get((row - before) as usize));
        }
        before = end;
    }
    Ok(None)
}

/// The key of a row of a segment, as messages show it.
///
/// # Errors
/// `Corrupt` when the segment is not what was written.
pub(crate) fn key_of_row(
    segment: &SegmentFile,
    (schema, key): (&Schema, &Key),
    row: u64,
) -> Result<String> {
    let column = |column: &usize| -> Result<Plain> {
        let value = value_of_row(segment, *column, row)?;
        let mut plain = Plain::empty(segment.physical(*column));
        plain.push(value.as_ref());
        Ok(plain)
    };
    let columns: Vec<Plain> = key.columns().iter().map(column).collect::<Result<_>>()?;
    Ok(key_text(&columns, 0, schema, key))
}

/// The key of a row as messages show it: `(17, 'x')`.
pub(super) fn key_text(columns: &[Plain], row: usize, schema: &Schema, key: &Key) -> String {
    let value = |(plain, column): (&Plain, &usize)| {
        let Some(value) = plain.get(row) else { return "NULL".to_owned() };
        let mut text = coload_ddl::literal_sql(&value, schema.columns()[*column].data_type);
        if let Some((end, _)) = text.char_indices().nth(SHOWN_CHARS_MAX) {
            text.truncate(end);
            text.push_str("...");
        }
        text
    };
    let values: Vec<String> = columns.iter().zip(key.columns()).map(value).collect();
    format!("({})", values.join(", "))
}
