//! Values of answers, as columns and as texts.

use coload_arrow::write_scalar;
use coload_types::calendar::{DATE_DAYS, DAY_MICROS};
use coload_types::{DECIMAL_PRECISION_MAX, DataType, Error, Result};

use super::cells::{DATETIME_EPOCH, DATETIME_FIRST, EPOCH_DAYS, micros_of_ticks, write_day};
use super::pages::{UTF8, encoding_of};
use super::tds::{TypeInfo, kind};
use crate::read::{ColumnBuilder, ReadAs};

/// Minutes that a zone is at most from UTC.
const ZONE_MINUTES_MAX: i16 = 14 * 60;
/// Digits of money behind the point.
const MONEY_SCALE: u8 = 4;

/// What values of a type are read as, and the type that holds them.
///
/// # Errors
/// `Invalid` when nobody reads them.
pub fn read_as(name: &str, type_info: &TypeInfo) -> Result<(ReadAs, DataType)> {
    let decimal = |precision, scale| {
        (ReadAs::Decimal(precision, scale), DataType::Decimal { precision, scale })
    };
    let text = (ReadAs::Text, DataType::Varchar(None));
    Ok(match (type_info.kind, type_info.size) {
        (kind::BIT | kind::BITN, _) => (ReadAs::Bool, DataType::Boolean),
        (kind::INT1 | kind::INT2 | kind::INT4 | kind::INT8 | kind::INTN, 1 | 2) => {
            (ReadAs::Int(2), DataType::SmallInt)
        }
        (kind::INT4 | kind::INTN, 4) => (ReadAs::Int(4), DataType::Integer),
        (kind::INT8 | kind::INTN, 8) => (ReadAs::Int(8), DataType::BigInt),
        (kind::FLOAT4 | kind::FLOATN, 4) => (ReadAs::Float(4), DataType::Real),
        (kind::FLOAT8 | kind::FLOATN, 8) => (ReadAs::Float(8), DataType::Double),
        (kind::DECIMALN | kind::NUMERICN, _)
            if (1..=DECIMAL_PRECISION_MAX).contains(&type_info.precision)
                && type_info.scale <= type_info.precision =>
        {
            decimal(type_info.precision, type_info.scale)
        }
        (kind::MONEY4 | kind::MONEYN, 4) => decimal(10, MONEY_SCALE),
        (kind::MONEY8 | kind::MONEYN, 8) => decimal(19, MONEY_SCALE),
        (kind::DATE, _) => (ReadAs::Date, DataType::Date),
        (kind::TIME, _) => (ReadAs::Time, DataType::Time),
        (kind::DATETIME2, _) => (ReadAs::Timestamp, DataType::Timestamp),
        (kind::DATETIME | kind::SMALLDATETIME | kind::DATETIMEN, 4 | 8) => {
            (ReadAs::Timestamp, DataType::Timestamp)
        }
        (kind::OFFSET, _) => (ReadAs::Instant, DataType::TimestampTz),
        (kind::NVARCHAR | kind::NCHAR | kind::NTEXT | kind::XML, _) => text,
        (kind::VARCHAR | kind::CHAR | kind::TEXT | kind::NULL, _) => text,
        (kind::VARBINARY | kind::BINARY | kind::IMAGE | kind::UDT, _) => {
            (ReadAs::Bytes, DataType::Binary(None))
        }
        (kind::GUID, _) => (ReadAs::Uuid, DataType::Uuid),
        _ => {
            return Err(Error::Invalid(format!(
                "column {name} is of a type that is not read (CAST it to nvarchar(max) in a --query)"
            )));
        }
    })
}

/// Adds a value that is not NULL; how many bytes it takes.
///
/// # Errors
/// `Corrupt` when the bytes are none of the type, or of its code page.
pub fn push(column: &mut ColumnBuilder, type_info: &TypeInfo, bytes: &[u8]) -> Result<usize> {
    let wrong = || {
        Error::Corrupt(format!("SQL Server: {} bytes of type {:#x}", bytes.len(), type_info.kind))
    };
    match column.kind() {
        ReadAs::Bool => match bytes {
            [value] => column.push_bool(*value != 0),
            _ => return Err(wrong()),
        },
        ReadAs::Int(2) => match bytes {
            // One byte has no sign.
            [value] => column.push_fixed(i16::from(*value).to_le_bytes()),
            bytes => column.push_fixed::<2>(bytes.try_into().map_err(|_| wrong())?),
        },
        ReadAs::Int(4) | ReadAs::Float(4) => {
            column.push_fixed::<4>(bytes.try_into().map_err(|_| wrong())?);
        }
        ReadAs::Int(_) | ReadAs::Float(_) | ReadAs::Unsigned(_) => {
            column.push_fixed::<8>(bytes.try_into().map_err(|_| wrong())?);
        }
        ReadAs::Decimal(..) => {
            let value = match type_info.kind {
                kind::DECIMALN | kind::NUMERICN => exact(bytes),
                _ => money(bytes),
            };
            column.push_fixed(value.ok_or_else(wrong)?.to_le_bytes());
        }
        ReadAs::Date => {
            let days = day_of(bytes.get(..3).filter(|_| bytes.len() == 3)).ok_or_else(wrong)?;
            column.push_fixed((days as i32).to_le_bytes());
        }
        ReadAs::Time => match time_of(bytes, type_info.scale).ok_or_else(wrong)? {
            (micros, 0) => column.push_fixed(micros.to_le_bytes()),
            (micros, tenths) => column.push_told(&write_clock(micros, tenths)),
        },
        ReadAs::Timestamp | ReadAs::Instant => {
            let moment = Moment::of(type_info, bytes).ok_or_else(wrong)?;
            match moment.tenths {
                0 => {
                    let micros = moment.days * DAY_MICROS + moment.micros;
                    column.push_fixed(micros.to_le_bytes());
                }
                tenths => {
                    let clock = write_clock(moment.micros, tenths);
                    let zone = if type_info.kind == kind::OFFSET { "+00:00" } else { "" };
                    column.push_told(&format!("{} {clock}{zone}", write_day(moment.days)));
                }
            }
        }
        ReadAs::Uuid => {
            let &[d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p] = bytes else {
                return Err(wrong());
            };
            column.push_fixed([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]);
        }
        ReadAs::Bytes => column.push_bytes(bytes),
        ReadAs::Text => {
            let text = text_of(type_info, bytes)?;
            column.push_bytes(text.as_bytes());
            return Ok(text.len() + 8);
        }
    }
    Ok(bytes.len().max(8) + 8)
}

/// A text, of UTF-16 or of a code page.
fn text_of(type_info: &TypeInfo, bytes: &[u8]) -> Result<String> {
    match type_info.kind {
        kind::NVARCHAR | kind::NCHAR | kind::NTEXT | kind::XML => {
            let (pairs, []) = bytes.as_chunks::<2>() else {
                return Err(Error::Corrupt("SQL Server: half a character".into()));
            };
            // A mark of the order of bytes is none of the text of XML.
            let units = pairs.iter().map(|pair| u16::from_le_bytes(*pair));
            let text: std::result::Result<String, _> = char::decode_utf16(units).collect();
            let text = text.map_err(|_| {
                Error::Refused(
                    "SQL Server: a text has half of a surrogate pair, which is no character (CAST the column to \
                     varbinary(max) in a --query)"
                        .into(),
                )
            })?;
            Ok(match type_info.kind {
                kind::XML => text.trim_start_matches('\u{feff}').to_owned(),
                _ => text,
            })
        }
        _ if bytes.is_ascii() => Ok(String::from_utf8_lossy(bytes).into_owned()),
        _ => {
            let encoding = page_of(type_info.collation).and_then(encoding_of);
            let text = encoding.and_then(|encoding| {
                encoding.decode_without_bom_handling_and_without_replacement(bytes)
            });
            text.map(std::borrow::Cow::into_owned).ok_or_else(|| {
                Error::Refused(
                    "SQL Server: a text of a code page that is not known, or does not have it (CAST the column to \
                     nvarchar(max) in a --query)"
                        .into(),
                )
            })
        }
    }
}

/// The code page of a collation.
fn page_of(collation: [u8; 5]) -> Option<u32> {
    let [a, b, c, d, order] = collation;
    let flags = u32::from_le_bytes([a, b, c, d]);
    /// The text is UTF-8.
    const IS_UTF8: u32 = 1 << 26;
    if flags & IS_UTF8 != 0 {
        return Some(UTF8);
    }
    if order != 0 {
        return Some(match order {
            50..=54 | 183..=186 => 1252,
            80..=98 => 1250,
            104..=108 => 1251,
            112..=124 => 1253,
            128..=130 => 1254,
            136..=138 => 1255,
            144..=146 => 1256,
            152..=160 => 1257,
            192 | 193 | 200 => 932,
            194 | 195 | 201 => 949,
            196 | 197 | 202 => 950,
            198 | 199 | 203 => 936,
            204..=206 => 874,
            _ => return None,
        });
    }
    // Languages by their numbers; those of Western Europe share one page.
    Some(match flags & 0xffff {
        0x0405 | 0x040e | 0x0415 | 0x0418 | 0x041a | 0x041b | 0x041c | 0x0424 => 1250,
        0x0402 | 0x0419 | 0x0422 | 0x0423 | 0x042f | 0x0440 | 0x0444 | 0x0450 | 0x0c1a => 1251,
        0x0403 | 0x0406 | 0x0407 | 0x0409 | 0x040a | 0x040b | 0x040c | 0x040f | 0x0410 | 0x0413
        | 0x0414 | 0x0416 | 0x041d | 0x0421 | 0x0456 | 0x0807 | 0x0809 | 0x080c | 0x0813
        | 0x0814 | 0x0816 | 0x0c0a => 1252,
        0x0408 => 1253,
        0x041f | 0x042c | 0x0443 => 1254,
        0x040d => 1255,
        0x0401 | 0x0420 | 0x0429 => 1256,
        0x0425..=0x0427 => 1257,
        0x042a => 1258,
        0x041e => 874,
        0x0411 => 932,
        0x0804 | 0x1004 => 936,
        0x0412 => 949,
        0x0404 | 0x0c04 | 0x1404 => 950,
        _ => return None,
    })
}

/// An exact number: its sign, and its digits as a whole number.
fn exact(bytes: &[u8]) -> Option<i128> {
    let (sign, digits) = bytes.split_first()?;
    let mut all = [0; 16];
    all.get_mut(..digits.len())?.copy_from_slice(digits);
    let value = i128::try_from(u128::from_le_bytes(all)).ok()?;
    Some(if *sign == 0 { -value } else { value })
}

/// Ten-thousandths; of eight bytes the high half comes first.
fn money(bytes: &[u8]) -> Option<i128> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(i128::from(i32::from_le_bytes(bytes)));
    }
    let [a, b, c, d, e, f, g, h] = <[u8; 8]>::try_from(bytes).ok()?;
    Some(i128::from(i64::from_le_bytes([e, f, g, h, a, b, c, d])))
}

/// A day since 1970, of one since the year 1. There is none behind the year 9999.
fn day_of(bytes: Option<&[u8]>) -> Option<i64> {
    let [a, b, c] = *bytes? else { return None };
    let day = i64::from(u32::from_le_bytes([a, b, c, 0])) - EPOCH_DAYS;
    DATE_DAYS.contains(&day).then_some(day)
}

/// Microseconds of a day, and tenths of one that are left.
fn time_of(bytes: &[u8], scale: u8) -> Option<(i64, i64)> {
    let mut all = [0; 8];
    all.get_mut(..bytes.len()).filter(|_| (3..=5).contains(&bytes.len()))?.copy_from_slice(bytes);
    let units = i64::from_le_bytes(all);
    let tenths = units.checked_mul(10_i64.pow(7 - u32::from(scale.min(7))))?;
    (tenths < DAY_MICROS * 10).then_some((tenths / 10, tenths % 10))
}

/// A day, and the time of it.
struct Moment {
    days: i64,
    micros: i64,
    tenths: i64,
}

impl Moment {
    fn of(type_info: &TypeInfo, bytes: &[u8]) -> Option<Self> {
        match type_info.kind {
            kind::DATETIME2 | kind::OFFSET => {
                let zone = if type_info.kind == kind::OFFSET { 2 } else { 0 };
                let at = bytes.len().checked_sub(3 + zone)?;
                let (micros, tenths) = time_of(bytes.get(..at)?, type_info.scale)?;
                if let &[low, high] = bytes.get(at + 3..)?
                    && !(-ZONE_MINUTES_MAX..=ZONE_MINUTES_MAX)
                        .contains(&i16::from_le_bytes([low, high]))
                {
                    return None;
                }
                Some(Moment { days: day_of(bytes.get(at..at + 3))?, micros, tenths })
            }
            _ => {
                let (days, micros) = match *bytes {
                    [a, b, c, d, e, f, g, h] => (
                        i64::from(i32::from_le_bytes([a, b, c, d])),
                        micros_of_ticks(i64::from(u32::from_le_bytes([e, f, g, h]))),
                    ),
                    [a, b, c, d] => (
                        i64::from(u16::from_le_bytes([a, b])),
                        i64::from(u16::from_le_bytes([c, d])) * 60_000_000,
                    ),
                    _ => return None,
                };
                let days = days - DATETIME_EPOCH;
                let is_in_range = (DATETIME_FIRST..=*DATE_DAYS.end()).contains(&days);
                (is_in_range && micros < DAY_MICROS).then_some(Moment { days, micros, tenths: 0 })
            }
        }
    }
}

/// A time with seven digits.
fn write_clock(micros: i64, tenths: i64) -> String {
    let seconds = micros / 1_000_000;
    format!(
        "{:02}:{:02}:{:02}.{:06}{tenths}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        micros % 1_000_000
    )
}

/// A value as text, for answers to what a load asks by itself.
pub fn text_of_value(type_info: &TypeInfo, bytes: &[u8]) -> String {
    let lossy = || String::from_utf8_lossy(bytes).into_owned();
    let Ok((kind, _)) = read_as("", type_info) else { return lossy() };
    let mut column = ColumnBuilder::new(kind);
    if push(&mut column, type_info, bytes).is_err() {
        return lossy();
    }
    let mut text = Vec::new();
    if let Some(value) = column.finish().get(0) {
        write_scalar(value, &mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: u8, size: u32, scale: u8, bytes: &[u8]) -> String {
        let type_info = TypeInfo { kind, size, precision: 38, scale, collation: [9, 4, 0, 0, 0] };
        text_of_value(&type_info, bytes)
    }

    /// Bytes as MS-TDS has them.
    #[test]
    fn values_are_read_as_the_protocol_has_them() {
        assert_eq!(told(kind::INTN, 1, 0, &[200]), "200");
        assert_eq!(told(kind::INTN, 8, 0, &(-5_i64).to_le_bytes()), "-5");
        assert_eq!(told(kind::DECIMALN, 17, 2, &[0, 0x39, 0x30, 0, 0]), "-123.45");
        assert_eq!(told(kind::MONEYN, 8, 0, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), "-429496.7296");
        assert_eq!(told(kind::DATE, 3, 0, &[0, 0, 0]), "0001-01-01");
        assert_eq!(
            told(kind::DATETIMEN, 8, 0, &[0, 0, 0, 0, 1, 0, 0, 0]),
            "1900-01-01 00:00:00.003"
        );
        assert_eq!(
            told(kind::DATETIME2, 0, 7, &[1, 0, 0, 0, 0, 0, 0, 0]),
            "0001-01-01 00:00:00.0000001"
        );
        assert_eq!(told(kind::NVARCHAR, 8, 0, &[0x3d, 0xd8, 0, 0xde]), "😀");
        assert_eq!(told(kind::VARCHAR, 8, 0, &[0xe9, 0x80]), "é€");
        assert_eq!(page_of([9, 4, 0, 4, 0]), Some(UTF8));
        assert_eq!(page_of([9, 4, 0xd0, 0, 0x34]), Some(1252));
        let guid = [0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x66, 8, 9, 10, 11, 12, 13, 14, 15];
        assert_eq!(told(kind::GUID, 16, 0, &guid), "00112233-4455-6677-0809-0a0b0c0d0e0f");
    }

    /// Days and times that the server does not have are no value, whatever an overflow would make of them.
    #[test]
    fn days_and_times_out_of_range_are_an_error() {
        let is_read = |kind, size, scale, bytes: &[u8]| {
            let type_info = TypeInfo { kind, size, precision: 0, scale, collation: [0; 5] };
            let (read_as, _) = read_as("c", &type_info).expect("a type");
            push(&mut ColumnBuilder::new(read_as), &type_info, bytes).is_ok()
        };
        let datetime = |days: i32, ticks: u32| {
            let bytes = [days.to_le_bytes(), ticks.to_le_bytes()].concat();
            is_read(kind::DATETIMEN, 8, 0, &bytes)
        };
        assert!(datetime(-53_690, 0) && datetime(2_958_463, 25_919_999));
        for (days, ticks) in [
            (-53_691, 0),
            (2_958_464, 0),
            (i32::MIN, 0),
            (i32::MAX, 0),
            (0, 25_920_000),
            (0, u32::MAX),
        ] {
            assert!(!datetime(days, ticks), "{days} {ticks}");
        }
        assert!(!is_read(kind::DATETIMEN, 4, 0, &[0, 0, 0xa0, 5]), "1440 minutes");
        let last = 3_652_058_u32.to_le_bytes();
        let after = 3_652_059_u32.to_le_bytes();
        assert!(is_read(kind::DATE, 3, 0, &last[..3]) && !is_read(kind::DATE, 3, 0, &after[..3]));
        for (day, fits) in [(last, true), (after, false)] {
            let moment = [&[0, 0, 0], &day[..3]].concat();
            assert_eq!(is_read(kind::DATETIME2, 0, 0, &moment), fits);
            for (zone, zone_fits) in
                [(840_i16, true), (-840, true), (841, false), (i16::MIN, false)]
            {
                let bytes = [&moment[..], &zone.to_le_bytes()].concat();
                assert_eq!(is_read(kind::OFFSET, 0, 0, &bytes), fits && zone_fits);
            }
        }
        assert!(!is_read(kind::TIME, 0, 0, &86_400_u32.to_le_bytes()[..3]));
    }

    #[test]
    fn bytes_of_no_value_are_an_error_and_no_panic() {
        for number in 0..=255_u8 {
            for length in 0..20 {
                let bytes = vec![0xff; length];
                for size in [0, 1, 2, 3, 4, 8, 16] {
                    for scale in [0, 7, 200] {
                        told(number, size, scale, &bytes);
                    }
                }
            }
        }
    }
}
