//! Values of answers, as text and in binary.
//!
//! ```text
//!   Arrow                      PostgreSQL     binary
//!   Boolean                    boolean        1 byte
//!   Int16, Int8, UInt8         smallint       2 bytes, the first the highest
//!   Int32, UInt16              integer        4
//!   Int64, UInt32              bigint         8
//!   UInt64, Decimal            numeric        groups of four digits
//!   Float32, Float64           real, double   4, 8
//!   Date32                     date           days from 2000-01-01
//!   Time64                     time           microseconds
//!   Timestamp                  timestamp(tz)  microseconds from 2000-01-01
//!   Interval                   interval       microseconds, days, months
//!   Binary                     bytea          its bytes
//!   List                       an array       of these
//!   Utf8, and all others       text           its bytes
//! ```

use std::fmt::Write;

use bytes::{BufMut, BytesMut};
use coload_types::postgres_numeric::put_numeric;
use coload_types::{Error, Result};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMicrosecondType,
};

use super::kinds::{Kind, Scalar};
use super::message::Format;
use crate::export::ColumnTexts;

/// Days from 1970-01-01 to 2000-01-01, from which PostgreSQL counts.
pub(super) const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
pub(super) const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// The values of a column of a batch, ready to be written.
pub(super) struct Values {
    array: ArrayRef,
    kind: Kind,
    format: Format,
    /// Of an array: its elements.
    elements: Option<Box<Values>>,
}

impl Values {
    /// Of an array.
    ///
    /// # Errors
    /// `Invalid` when a value is none of PostgreSQL's type.
    pub fn new(array: &ArrayRef, kind: Kind, format: Format) -> Result<Self> {
        let wanted = kind.arrow(array.data_type());
        let array = match *array.data_type() == wanted {
            true => ArrayRef::clone(array),
            false => cast(array, &wanted).map_err(|e| Error::Invalid(e.to_string()))?,
        };
        let elements = match (kind.is_array, array.data_type()) {
            (true, ArrowType::List(item)) => {
                let values = array.as_list::<i32>().values();
                Some(Values::new(values, Kind::of(item.data_type()), format)?)
            }
            (true, ArrowType::LargeList(item)) => {
                let values = array.as_list::<i64>().values();
                Some(Values::new(values, Kind::of(item.data_type()), format)?)
            }
            _ => None,
        };
        Ok(Values { array, kind, format, elements: elements.map(Box::new) })
    }

    /// A writer of its values.
    ///
    /// # Errors
    /// `Invalid` when the type has no text form.
    pub fn writer(&self) -> Result<Writer<'_>> {
        let texts = match self.format {
            Format::Text => Some(ColumnTexts::new(self.array.as_ref())?),
            // What is no type of PostgreSQL is text in both forms.
            Format::Binary
                if self.kind.scalar == Scalar::Text
                    && *self.array.data_type() != ArrowType::Utf8 =>
            {
                Some(ColumnTexts::new(self.array.as_ref())?)
            }
            Format::Binary => None,
        };
        let elements = self.elements.as_deref().map(Values::writer).transpose()?;
        Ok(Writer { values: self, texts, elements: elements.map(Box::new), scratch: Vec::new() })
    }
}

/// Writes values of a column.
pub(super) struct Writer<'a> {
    values: &'a Values,
    texts: Option<ColumnTexts<'a>>,
    elements: Option<Box<Writer<'a>>>,
    scratch: Vec<u8>,
}

impl Writer<'_> {
    /// Appends the length of a value and its bytes; NULL has the length -1.
    ///
    /// # Errors
    /// `Invalid` when the value has no text, `Limit` when it is over 1 GiB.
    pub fn push(&mut self, row: usize, out: &mut BytesMut) -> Result<()> {
        /// What clients take.
        const VALUE_BYTES_MAX: usize = 1 << 30;
        if self.is_null(row) {
            out.put_i32(-1);
            return Ok(());
        }
        let start = out.len();
        out.put_i32(0);
        self.put(row, out)?;
        let bytes = out.len() - start - 4;
        if bytes > VALUE_BYTES_MAX {
            return Err(Error::Limit(format!(
                "a value of {bytes} bytes, which clients of this protocol do not take"
            )));
        }
        out[start..start + 4].copy_from_slice(&(bytes as i32).to_be_bytes());
        Ok(())
    }

    fn is_null(&self, row: usize) -> bool {
        self.values.array.is_null(row) || *self.values.array.data_type() == ArrowType::Null
    }

    /// Appends the text of a value, unless it is NULL; whether it is not.
    ///
    /// # Errors
    /// `Invalid` when the value has no text.
    pub fn put_if_any(&mut self, row: usize, out: &mut BytesMut) -> Result<bool> {
        if self.is_null(row) {
            return Ok(false);
        }
        self.put(row, out).map(|()| true)
    }

    /// Appends a value that is not NULL.
    fn put(&mut self, row: usize, out: &mut BytesMut) -> Result<()> {
        let Values { array, kind, .. } = self.values;
        if self.elements.is_some() {
            return self.put_array(row, out);
        }
        let Some(texts) = &self.texts else { return put_binary(array, *kind, row, out) };
        match kind.scalar {
            Scalar::Boolean => out.put_u8(if array.as_boolean().value(row) { b't' } else { b'f' }),
            Scalar::Real => put_float(array.as_primitive::<Float32Type>().value(row), out),
            Scalar::Double => put_float(array.as_primitive::<Float64Type>().value(row), out),
            Scalar::Interval => put_interval(array, row, out),
            Scalar::Text if *array.data_type() == ArrowType::Utf8 => {
                out.put_slice(array.as_string::<i32>().value(row).as_bytes());
            }
            _ => {
                self.scratch.clear();
                texts.push(row, &mut self.scratch)?;
                let text = &self.scratch[..];
                // PostgreSQL leaves minutes of a zone out where there are none.
                let is_instant = kind.scalar == Scalar::TimestampTz;
                out.put_slice(text.strip_suffix(b":00").filter(|_| is_instant).unwrap_or(text));
            }
        }
        Ok(())
    }

    fn put_array(&mut self, row: usize, out: &mut BytesMut) -> Result<()> {
        let array = &self.values.array;
        let range = match array.data_type() {
            ArrowType::List(_) => {
                let offsets = array.as_list::<i32>().value_offsets();
                offsets[row] as usize..offsets[row + 1] as usize
            }
            _ => {
                let offsets = array.as_list::<i64>().value_offsets();
                offsets[row] as usize..offsets[row + 1] as usize
            }
        };
        let (kind, format) = (self.values.kind, self.values.format);
        let Some(elements) = &mut self.elements else { return Ok(()) };
        match format {
            Format::Text => elements.put_braced(range, out),
            Format::Binary => {
                let has_null = range.clone().any(|at| elements.values.array.is_null(at));
                out.put_i32(i32::from(!range.is_empty()));
                out.put_i32(i32::from(has_null));
                out.put_u32(kind.scalar.facts().oid);
                if !range.is_empty() {
                    out.put_i32(range.len() as i32);
                    // The number of the first element.
                    out.put_i32(1);
                }
                range.into_iter().try_for_each(|at| elements.push(at, out))
            }
        }
    }

    /// Elements in braces, each in quotes that needs them.
    fn put_braced(&mut self, range: std::ops::Range<usize>, out: &mut BytesMut) -> Result<()> {
        let mut text = BytesMut::new();
        out.put_u8(b'{');
        for (index, at) in range.enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            if self.values.array.is_null(at) {
                out.put_slice(b"NULL");
                continue;
            }
            text.clear();
            self.put(at, &mut text)?;
            put_element(&text, out);
        }
        out.put_u8(b'}');
        Ok(())
    }
}

/// An element of an array, in quotes if it could be read as something else.
fn put_element(text: &[u8], out: &mut BytesMut) {
    let special = |byte: &u8| b"{},\"\\".contains(byte) || byte.is_ascii_whitespace();
    if !text.is_empty() && !text.eq_ignore_ascii_case(b"null") && !text.iter().any(special) {
        out.put_slice(text);
        return;
    }
    out.put_u8(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(*byte);
    }
    out.put_u8(b'"');
}

/// A float as PostgreSQL writes it: the shortest digits that are read back as the same number.
fn put_float<F: Into<f64> + Copy + std::fmt::Display + std::fmt::LowerExp>(
    value: F,
    out: &mut BytesMut,
) {
    /// Magnitudes that are written without an exponent.
    const PLAIN: std::ops::Range<f64> = 1e-4..1e15;
    let wide: f64 = value.into();
    // Writing to a buffer does not fail.
    let _ = match wide {
        _ if wide.is_nan() => out.write_str("NaN"),
        f64::INFINITY => out.write_str("Infinity"),
        f64::NEG_INFINITY => out.write_str("-Infinity"),
        _ if wide == 0.0 || PLAIN.contains(&wide.abs()) => write!(out, "{value}"),
        _ => {
            let text = format!("{value:e}");
            match text.split_once('e') {
                Some((digits, power)) if !power.starts_with('-') => {
                    write!(out, "{digits}e+{power:0>2}")
                }
                Some((digits, power)) => write!(out, "{digits}e-{:0>2}", &power[1..]),
                None => out.write_str(&text),
            }
        }
    };
}

/// Months, days and microseconds of an interval.
fn interval(array: &ArrayRef, row: usize) -> (i32, i32, i64) {
    let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
    (value.months, value.days, value.nanoseconds / 1_000)
}

fn put_interval(array: &ArrayRef, row: usize, out: &mut BytesMut) {
    let (months, days, micros) = interval(array, row);
    let mut parts = Vec::new();
    let mut unit = |count: i32, one: &str| {
        if count != 0 {
            parts.push(format!("{count} {one}{}", if count == 1 { "" } else { "s" }));
        }
    };
    unit(months / 12, "year");
    unit(months % 12, "mon");
    unit(days, "day");
    if micros != 0 || parts.is_empty() {
        let (seconds, fraction) =
            (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
        let sign = if micros < 0 { "-" } else { "" };
        let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        let fraction = match fraction {
            0 => String::new(),
            _ => format!(".{fraction:06}").trim_end_matches('0').to_owned(),
        };
        parts.push(format!("{sign}{clock}{fraction}"));
    }
    out.put_slice(parts.join(" ").as_bytes());
}

fn put_binary(array: &ArrayRef, kind: Kind, row: usize, out: &mut BytesMut) -> Result<()> {
    match kind.scalar {
        Scalar::Boolean => out.put_u8(array.as_boolean().value(row).into()),
        Scalar::SmallInt => out.put_i16(array.as_primitive::<Int16Type>().value(row)),
        Scalar::Integer => out.put_i32(array.as_primitive::<Int32Type>().value(row)),
        Scalar::BigInt => out.put_i64(array.as_primitive::<Int64Type>().value(row)),
        Scalar::Real => out.put_f32(array.as_primitive::<Float32Type>().value(row)),
        Scalar::Double => out.put_f64(array.as_primitive::<Float64Type>().value(row)),
        Scalar::Numeric => {
            let ArrowType::Decimal128(_, scale) = array.data_type() else {
                return Err(Error::Refused("internal error: a number without digits".into()));
            };
            let scale = u8::try_from(*scale).map_err(|_| {
                Error::Invalid("a DECIMAL of a scale below 0 has no binary form".into())
            })?;
            let mut cell = Vec::new();
            put_numeric(array.as_primitive::<Decimal128Type>().value(row), scale, &mut cell);
            // Its length stands before it already.
            out.put_slice(&cell[4..]);
        }
        Scalar::Date => {
            out.put_i32(array.as_primitive::<Date32Type>().value(row).saturating_sub(EPOCH_DAYS))
        }
        Scalar::Time => out.put_i64(array.as_primitive::<Time64MicrosecondType>().value(row)),
        Scalar::Timestamp | Scalar::TimestampTz => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            out.put_i64(micros.saturating_sub(EPOCH_MICROS));
        }
        Scalar::Interval => {
            let (months, days, micros) = interval(array, row);
            out.put_i64(micros);
            out.put_i32(days);
            out.put_i32(months);
        }
        Scalar::Bytes => out.put_slice(array.as_binary::<i32>().value(row)),
        Scalar::Text => out.put_slice(array.as_string::<i32>().value(row).as_bytes()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use datafusion::arrow::array::{Float64Array, ListArray, StringArray};
    use datafusion::arrow::datatypes::{Field, Int32Type};

    use super::*;

    fn written(array: ArrayRef, format: Format) -> Vec<Option<Vec<u8>>> {
        let kind = Kind::of(array.data_type());
        let values = Values::new(&array, kind, format).unwrap();
        let mut writer = values.writer().unwrap();
        let write = |row| {
            let mut out = BytesMut::new();
            writer.push(row, &mut out).unwrap();
            let length = i32::from_be_bytes(out[..4].try_into().unwrap());
            (length >= 0).then(|| {
                assert_eq!(out.len() - 4, length as usize);
                out[4..].to_vec()
            })
        };
        (0..array.len()).map(write).collect()
    }

    fn texts(array: ArrayRef) -> Vec<String> {
        let written = written(array, Format::Text).into_iter();
        written.map(|text| text.map_or("-".into(), |t| String::from_utf8(t).unwrap())).collect()
    }

    #[test]
    fn floats_are_written_as_postgresql_writes_them() {
        let values = [0.1, -0.0, 1e15, 1.5e-5, 123_456.75, f64::NAN, f64::NEG_INFINITY, 1e300];
        let expected = ["0.1", "-0", "1e+15", "1.5e-05", "123456.75", "NaN", "-Infinity", "1e+300"];
        assert_eq!(texts(Arc::new(Float64Array::from(values.to_vec()))), expected);
    }

    #[test]
    fn elements_of_arrays_are_quoted_where_they_must_be() {
        let names: ArrayRef = Arc::new(StringArray::from(vec![
            Some("a"),
            None,
            Some("null"),
            Some(""),
            Some("a,\"b\\"),
        ]));
        let offsets = datafusion::arrow::buffer::OffsetBuffer::from_lengths([5, 0]);
        let field = Arc::new(Field::new("item", ArrowType::Utf8, true));
        let list: ArrayRef = Arc::new(ListArray::new(field, offsets, names, None));
        assert_eq!(texts(list), [r#"{a,NULL,"null","","a,\"b\\"}"#, "{}"]);
    }

    #[test]
    fn an_array_in_binary_has_the_type_of_its_elements() {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(7), None])]);
        let bytes = written(Arc::new(list), Format::Binary)[0].clone().unwrap();
        let words: Vec<i32> =
            bytes.chunks(4).map(|word| i32::from_be_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [1, 1, 23, 2, 1, 4, 7, -1]);
    }
}
