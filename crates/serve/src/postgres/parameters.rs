//! Values of parameters, as clients send them.
//!
//! A value has the type that its client says, or else the one that the statement asks for. What is sent as text is read as CAST
//! reads it; what does not fit is an error, and nothing is rounded.

use std::sync::Arc;

use bytes::Bytes;
use coload_types::postgres_numeric::{Number, read_numeric};
use datafusion::arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int16Array, Int32Array, Int64Array, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, new_null_array,
};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema as ArrowSchema, TimeUnit};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};

use super::fault::{Fault, code};
use super::kinds::{Kind, Scalar};
use super::message::{Bind, Format};
use super::values::{EPOCH_DAYS, EPOCH_MICROS};
use crate::rules::convert;
use crate::statement::Parameters;
use crate::types::UTC;

/// The number of a type that a client does not know.
const UNKNOWN: u32 = 705;
/// Types of text beside `text`: name, json, char(n), varchar(n), xml.
const TEXTS: [u32; 5] = [19, 114, 1042, 1043, 142];
/// Types whose values are numbers of four bytes: oid.
const OID: u32 = 26;
const UUID: u32 = 2950;

/// The numbers of the types of a statement's parameters: those that the client said, or else those that the statement asks for.
///
/// # Errors
/// When the client says one that there is not, or more than there are parameters.
pub(super) fn types_of(said: &[u32], asked: &ArrowSchema) -> Result<Vec<u32>, Fault> {
    let fields = asked.fields();
    if said.len() > fields.len() && said[fields.len()..].iter().any(|oid| *oid != 0) {
        let text = format!(
            "types for {} parameters, of which the statement has {}",
            said.len(),
            fields.len()
        );
        return Err(Fault::error(code::INVALID, text));
    }
    let of_field = |(index, field): (usize, &Arc<Field>)| match said.get(index) {
        None | Some(0) | Some(&UNKNOWN) => Ok(Kind::of(field.data_type()).oid()),
        Some(oid) => {
            arrow_of(*oid, field.data_type())?;
            Ok(*oid)
        }
    };
    fields.iter().enumerate().map(of_field).collect()
}

/// The Arrow type of a parameter's values.
fn arrow_of(oid: u32, asked: &ArrowType) -> Result<ArrowType, Fault> {
    if Kind::of(asked).oid() == oid {
        return Ok(asked.clone());
    }
    if oid == UUID || TEXTS.contains(&oid) {
        return Ok(ArrowType::Utf8);
    }
    let micros = TimeUnit::Microsecond;
    Ok(match Scalar::of_oid(oid) {
        Some(Scalar::Boolean) => ArrowType::Boolean,
        Some(Scalar::SmallInt) => ArrowType::Int16,
        Some(Scalar::Integer) => ArrowType::Int32,
        Some(Scalar::BigInt) => ArrowType::Int64,
        Some(Scalar::Real) => ArrowType::Float32,
        Some(Scalar::Double) => ArrowType::Float64,
        // As many digits as the value has; which type it is, its digits tell.
        Some(Scalar::Numeric) => ArrowType::Decimal128(38, 0),
        Some(Scalar::Date) => ArrowType::Date32,
        Some(Scalar::Time) => ArrowType::Time64(micros),
        Some(Scalar::Timestamp) => ArrowType::Timestamp(micros, None),
        Some(Scalar::TimestampTz) => ArrowType::Timestamp(micros, Some(UTC.into())),
        Some(Scalar::Bytes) => ArrowType::Binary,
        Some(Scalar::Text) => ArrowType::Utf8,
        Some(Scalar::Interval) => asked.clone(),
        None if oid == OID => ArrowType::Int64,
        None => {
            let text = format!(
                "parameters of the type with the number {oid} are not supported: cast them to text"
            );
            return Err(Fault::error(code::UNSUPPORTED, text));
        }
    })
}

/// The values of a Bind.
///
/// # Errors
/// When there are more or fewer than parameters, or one is not of its type.
pub(super) fn values_of(
    bind: &Bind,
    types: &[u32],
    asked: &ArrowSchema,
) -> Result<Parameters, Fault> {
    if bind.values.len() != types.len() {
        let (sent, wanted) = (bind.values.len(), types.len());
        let text = format!(
            "{sent} values were sent for {wanted} parameters of statement {:?}",
            bind.statement
        );
        return Err(Fault::error(code::PROTOCOL, text));
    }
    bind.formats.check(types.len())?;
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(types.len());
    for (index, value) in bind.values.iter().enumerate() {
        let wanted = arrow_of(types[index], asked.field(index).data_type())?;
        let read = match (value, bind.formats.of(index)) {
            (None, _) => Ok(new_null_array(&wanted, 1)),
            (Some(text), Format::Text) => of_text(text, types[index], &wanted),
            (Some(bytes), Format::Binary) => of_binary(bytes, types[index], &wanted),
        };
        columns.push(read.map_err(|fault| Fault {
            text: format!("value {} of statement {:?}: {}", index + 1, bind.statement, fault.text),
            ..fault
        })?);
    }
    let fields = columns.iter().enumerate();
    let fields: Vec<Field> = fields
        .map(|(i, c)| Field::new(format!("${}", i + 1), c.data_type().clone(), true))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let batch =
        RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), columns, &options);
    let batch = batch.map_err(|e| Fault::error(code::INTERNAL, format!("internal error: {e}")))?;
    Parameters::of_row(&batch, 0).map_err(Fault::from)
}

fn of_text(bytes: &Bytes, oid: u32, wanted: &ArrowType) -> Result<ArrayRef, Fault> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| Fault::error(code::ENCODING, format!("not UTF-8: {e}")))?;
    let wrong = |why: &dyn std::fmt::Display| Fault::error(code::VALUE, why.to_string());
    match Scalar::of_oid(oid) {
        Some(Scalar::Bytes) => {
            let bytes = bytes_of(text)
                .ok_or_else(|| wrong(&format!("{text:?} is no bytea: write \\x and hex")))?;
            Ok(Arc::new(BinaryArray::from_vec(vec![&bytes])))
        }
        Some(Scalar::Numeric) => number_of(text)
            .ok_or_else(|| wrong(&format!("{text:?} is no number of at most 38 digits"))),
        Some(Scalar::Boolean) => match truth_of(text) {
            Some(truth) => Ok(Arc::new(BooleanArray::from(vec![truth]))),
            None => Err(wrong(&format!("{text:?} is no boolean"))),
        },
        _ => {
            let array: ArrayRef = Arc::new(StringArray::from(vec![text]));
            if *wanted == ArrowType::Utf8 {
                return Ok(array);
            }
            // PostgreSQL takes blanks around numbers and times.
            let array: ArrayRef =
                Arc::new(StringArray::from(vec![without_zone(text.trim(), wanted)]));
            convert(&array, wanted).map_err(|e| wrong(&e))
        }
    }
}

/// A day or a time without its zone, which drivers send as they do not know the type, and which PostgreSQL leaves out where the
/// type has none.
fn without_zone<'a>(text: &'a str, wanted: &ArrowType) -> &'a str {
    let has_none =
        matches!(wanted, ArrowType::Date32 | ArrowType::Time64(_) | ArrowType::Timestamp(_, None));
    let Some(at) = text.rfind(['+', '-']).filter(|at| has_none && *at > 0) else { return text };
    let (before, zone) = (text[..at].trim_end(), &text[at + 1..]);
    // The last part of a day is one of two digits too, behind two others.
    let is_behind = before.contains(':') || before.matches('-').count() == 2;
    let mut parts = zone.split(':');
    let is_zone =
        parts.all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()));
    if is_zone && is_behind { before } else { text }
}

/// Bytes written as `\x` and hex; as they are where there is no backslash.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let Some(hex) = text.strip_prefix("\\x") else {
        return (!text.contains('\\')).then(|| text.as_bytes().to_vec());
    };
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// The words of PostgreSQL for truth values, or the starts of them that no other has.
fn truth_of(text: &str) -> Option<bool> {
    let word = text.trim().to_ascii_lowercase();
    match &*word {
        "t" | "tr" | "tru" | "true" | "y" | "ye" | "yes" | "on" | "1" => Some(true),
        "f" | "fa" | "fal" | "fals" | "false" | "n" | "no" | "of" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// A number with as many digits behind the point as it is written with.
fn number_of(text: &str) -> Option<ArrayRef> {
    let text = text.trim();
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (digits, power) = match digits.split_once(['e', 'E']) {
        Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = [whole, fraction].concat();
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(power)?;
    let significant = all.trim_start_matches('0');
    let mut unscaled: i128 = if significant.is_empty() { 0 } else { significant.parse().ok()? };
    let mut scale = scale;
    while scale < 0 {
        unscaled = unscaled.checked_mul(10)?;
        scale += 1;
    }
    decimal(sign * unscaled, u8::try_from(scale).ok()?)
}

/// A decimal of one value, with room for its digits.
fn decimal(unscaled: i128, scale: u8) -> Option<ArrayRef> {
    const DIGITS_MAX: u8 = coload_types::DECIMAL_PRECISION_MAX;
    let fits = scale <= DIGITS_MAX && unscaled.unsigned_abs() < 10_u128.pow(DIGITS_MAX.into());
    let array =
        Decimal128Array::from(vec![unscaled]).with_precision_and_scale(DIGITS_MAX, scale as i8);
    array.ok().filter(|_| fits).map(|array| Arc::new(array) as ArrayRef)
}

fn of_binary(bytes: &Bytes, oid: u32, wanted: &ArrowType) -> Result<ArrayRef, Fault> {
    let wrong = || {
        let text = format!("{} bytes are no value of the type with the number {oid}", bytes.len());
        Fault::error(code::BINARY_VALUE, text)
    };
    let two = || <[u8; 2]>::try_from(&bytes[..]).map_err(|_| wrong());
    let four = || <[u8; 4]>::try_from(&bytes[..]).map_err(|_| wrong());
    let eight = || <[u8; 8]>::try_from(&bytes[..]).map_err(|_| wrong());
    let array: ArrayRef = match Scalar::of_oid(oid) {
        Some(Scalar::Boolean) => match bytes[..] {
            [byte @ (0 | 1)] => Arc::new(BooleanArray::from(vec![byte == 1])),
            _ => return Err(wrong()),
        },
        Some(Scalar::SmallInt) => Arc::new(Int16Array::from(vec![i16::from_be_bytes(two()?)])),
        Some(Scalar::Integer) => Arc::new(Int32Array::from(vec![i32::from_be_bytes(four()?)])),
        Some(Scalar::BigInt) => Arc::new(Int64Array::from(vec![i64::from_be_bytes(eight()?)])),
        Some(Scalar::Real) => Arc::new(Float32Array::from(vec![f32::from_be_bytes(four()?)])),
        Some(Scalar::Double) => Arc::new(Float64Array::from(vec![f64::from_be_bytes(eight()?)])),
        Some(Scalar::Numeric) => numeric(bytes).ok_or_else(wrong)?,
        Some(Scalar::Date) => {
            let days = i32::from_be_bytes(four()?).checked_add(EPOCH_DAYS);
            Arc::new(Date32Array::from(vec![days.ok_or_else(wrong)?]))
        }
        Some(Scalar::Time) => {
            Arc::new(Time64MicrosecondArray::from(vec![i64::from_be_bytes(eight()?)]))
        }
        Some(kind @ (Scalar::Timestamp | Scalar::TimestampTz)) => {
            let micros = i64::from_be_bytes(eight()?).checked_add(EPOCH_MICROS);
            let array = TimestampMicrosecondArray::from(vec![micros.ok_or_else(wrong)?]);
            match kind {
                Scalar::TimestampTz => Arc::new(array.with_timezone(UTC)),
                _ => Arc::new(array),
            }
        }
        Some(Scalar::Bytes) => Arc::new(BinaryArray::from_vec(vec![bytes])),
        Some(Scalar::Interval) => {
            return Err(Fault::error(code::UNSUPPORTED, "intervals in binary: send them as text"));
        }
        None if oid == OID => {
            Arc::new(Int64Array::from(vec![i64::from(u32::from_be_bytes(four()?))]))
        }
        None if oid == UUID => {
            let number = <[u8; 16]>::try_from(&bytes[..]).map_err(|_| wrong())?;
            Arc::new(StringArray::from(vec![uuid_text(number)]))
        }
        // Text in binary is its bytes.
        Some(Scalar::Text) | None => return of_text(bytes, oid, wanted),
    };
    match array.data_type() == wanted || matches!(array.data_type(), ArrowType::Decimal128(..)) {
        true => Ok(array),
        false => {
            convert(&array, wanted).map_err(|e| Fault::error(code::BINARY_VALUE, e.to_string()))
        }
    }
}

/// A number in groups of four digits.
fn numeric(bytes: &Bytes) -> Option<ArrayRef> {
    // Digits behind the point, which stand in the fourth field.
    let scale = u16::from_be_bytes(*bytes.get(6..8)?.first_chunk()?);
    let scale = u8::try_from(scale).ok()?;
    match read_numeric(bytes, scale)? {
        Number::Exact(unscaled) => decimal(unscaled, scale),
        Number::Told(_) => None,
    }
}

pub(super) fn uuid_text(bytes: [u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Decimal128Type;

    use super::*;

    fn number(text: &str) -> Option<(i128, i8)> {
        let array = number_of(text)?;
        let ArrowType::Decimal128(_, scale) = array.data_type() else { panic!() };
        Some((array.as_primitive::<Decimal128Type>().value(0), *scale))
    }

    #[test]
    fn numbers_keep_all_their_digits() {
        assert_eq!(number("1.50"), Some((150, 2)));
        assert_eq!(number("-12e3"), Some((-12_000, 0)));
        assert_eq!(number("1e-3"), Some((1, 3)));
        assert_eq!(number(" +0.0 "), Some((0, 1)));
        for wrong in [
            "",
            "-",
            ".",
            "1.2.3",
            "1e",
            "NaN",
            "1e99",
            "0x1",
            "123456789012345678901234567890123456789",
        ] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_zone_is_left_out_where_the_type_has_none() {
        let of = |text| without_zone(text, &ArrowType::Date32);
        assert_eq!((of("2024-02-29 +00"), of("2024-02-29+05:30")), ("2024-02-29", "2024-02-29"));
        assert_eq!((of("2024-02-29"), of("x-1"), of("-12")), ("2024-02-29", "x-1", "-12"));
        let plain = ArrowType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(without_zone("2024-02-29 12:00:00.5-01", &plain), "2024-02-29 12:00:00.5");
        let zoned = ArrowType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
        assert_eq!(without_zone("2024-02-29 12:00:00-01", &zoned), "2024-02-29 12:00:00-01");
    }

    #[test]
    fn bytes_are_hex_with_a_mark_or_as_they_are() {
        assert_eq!(bytes_of("\\x00fF"), Some(vec![0, 255]));
        assert_eq!(bytes_of("abc"), Some(b"abc".to_vec()));
        assert_eq!((bytes_of("\\x0"), bytes_of("\\xgg"), bytes_of("a\\000")), (None, None, None));
    }

    #[test]
    fn values_of_the_wrong_length_are_refused() {
        for (oid, bytes) in
            [(23, &b"\0\0\x01"[..]), (20, b"1234"), (16, b"\x02"), (1700, b"\0"), (2950, b"x")]
        {
            let bytes = Bytes::copy_from_slice(bytes);
            assert!(of_binary(&bytes, oid, &ArrowType::Int64).is_err(), "{oid}");
        }
    }
}
