//! Values that have no others in them: how they are written, and what they mean.

use std::sync::Arc;

use coload_arrow::{ArrowType, Result, Scalar, Unit};
use coload_types::DataType;

use crate::cursor::{Cursor, damaged};

/// Bytes of a duration: months, days and milliseconds.
pub(crate) const DURATION_BYTES: usize = 12;
/// Most bytes of a decimal, sign and all, without those that say nothing.
const LONG_DECIMAL_BYTES: usize = 32;

/// How a value is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    Null,
    Bool,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    /// A place in these.
    Enum(Arc<[String]>),
}

/// What a value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Itself,
    Decimal { precision: u8, scale: i8 },
    Date,
    Time(Unit),
    Timestamp { unit: Unit, utc: bool },
    Uuid,
    Duration,
}

/// A value that has no others in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub stored: Stored,
    pub meaning: Meaning,
}

impl Leaf {
    /// The type of its values in a column.
    pub fn values(&self) -> ArrowType {
        match (&self.stored, self.meaning) {
            (_, Meaning::Decimal { precision, scale }) => {
                ArrowType::Decimal { width: 16, precision, scale }
            }
            (_, Meaning::Date) => ArrowType::Date { width: 4 },
            (Stored::Int, Meaning::Time(unit)) => ArrowType::Time { width: 4, unit },
            (_, Meaning::Time(unit)) => ArrowType::Time { width: 8, unit },
            (_, Meaning::Timestamp { unit, utc }) => {
                ArrowType::Timestamp { unit, zone: utc.then(|| "UTC".to_owned()) }
            }
            (Stored::Fixed(_), Meaning::Uuid) => ArrowType::Uuid,
            (_, Meaning::Duration) => ArrowType::Text(8),
            (Stored::Null, _) => ArrowType::Null,
            (Stored::Bool, _) => ArrowType::Bool,
            (Stored::Int, _) => ArrowType::Int { width: 4, signed: true },
            (Stored::Long, _) => ArrowType::Int { width: 8, signed: true },
            (Stored::Float, _) => ArrowType::Float(4),
            (Stored::Double, _) => ArrowType::Float(8),
            (Stored::Bytes | Stored::Fixed(_), _) => ArrowType::Binary(8),
            (Stored::Text | Stored::Enum(_), _) => ArrowType::Text(8),
        }
    }

    /// The SQL type that holds each of them.
    pub fn sql_type(&self) -> std::result::Result<DataType, String> {
        match self.meaning {
            Meaning::Uuid => Ok(DataType::Uuid),
            _ => self.values().sql_type(),
        }
    }

    /// What it is, in the words of Avro.
    pub fn kind(&self) -> String {
        let stored = match &self.stored {
            Stored::Null => "null",
            Stored::Bool => "boolean",
            Stored::Int => "int",
            Stored::Long => "long",
            Stored::Float => "float",
            Stored::Double => "double",
            Stored::Bytes => "bytes",
            Stored::Text => "string",
            Stored::Fixed(bytes) => &format!("fixed({bytes})"),
            Stored::Enum(_) => "enum",
        };
        let unit_of = |unit| match unit {
            Unit::Second => "seconds",
            Unit::Milli => "millis",
            Unit::Micro => "micros",
            Unit::Nano => "nanos",
        };
        let meaning = match self.meaning {
            Meaning::Itself => return stored.to_owned(),
            Meaning::Decimal { precision, scale } => format!("decimal({precision}, {scale})"),
            Meaning::Date => "date".to_owned(),
            Meaning::Time(unit) => format!("time-{}", unit_of(unit)),
            Meaning::Timestamp { unit, utc: true } => format!("timestamp-{}", unit_of(unit)),
            Meaning::Timestamp { unit, .. } => format!("local-timestamp-{}", unit_of(unit)),
            Meaning::Uuid => "uuid".to_owned(),
            Meaning::Duration => "duration".to_owned(),
        };
        format!("{stored} ({meaning})")
    }

    /// Least bytes of a value.
    pub fn bytes_min(&self) -> u64 {
        match self.stored {
            Stored::Null => 0,
            Stored::Float => 4,
            Stored::Double => 8,
            Stored::Fixed(bytes) => bytes as u64,
            _ => 1,
        }
    }

    /// Passes over a value.
    pub fn skip(&self, cursor: &mut Cursor<'_>) -> Result<()> {
        match &self.stored {
            Stored::Null => {}
            Stored::Bool => drop(cursor.bool()?),
            Stored::Int => drop(cursor.int()?),
            Stored::Long => drop(cursor.long()?),
            Stored::Float => drop(cursor.array::<4>()?),
            Stored::Double => drop(cursor.array::<8>()?),
            Stored::Bytes | Stored::Text => drop(cursor.sized()?),
            Stored::Fixed(bytes) => drop(cursor.take(*bytes)?),
            Stored::Enum(symbols) => drop(cursor.choice(symbols.len(), "symbol")?),
        }
        Ok(())
    }

    /// Reads a value, which is no duration; `None` for NULL.
    pub fn read<'a, 's: 'a, 'c: 'a>(
        &'s self,
        cursor: &mut Cursor<'c>,
    ) -> Result<Option<Scalar<'a>>> {
        let nanos = |value: i64, unit: Unit| i128::from(value) * i128::from(unit.nanos());
        Ok(Some(match (&self.stored, self.meaning) {
            (Stored::Null, _) => return Ok(None),
            (Stored::Bool, _) => Scalar::Bool(cursor.bool()?),
            (Stored::Int, meaning) => {
                let value = i64::from(cursor.int()?);
                match meaning {
                    Meaning::Date => Scalar::Day(value, 0),
                    Meaning::Time(unit) => Scalar::Clock(nanos(value, unit)),
                    _ => Scalar::Number(value.into(), 0),
                }
            }
            (Stored::Long, meaning) => {
                let value = cursor.long()?;
                match meaning {
                    Meaning::Time(unit) => Scalar::Clock(nanos(value, unit)),
                    Meaning::Timestamp { unit, utc: true } => Scalar::Instant(nanos(value, unit)),
                    Meaning::Timestamp { unit, .. } => Scalar::Moment(nanos(value, unit)),
                    _ => Scalar::Number(value.into(), 0),
                }
            }
            (Stored::Float, _) => Scalar::Single(f32::from_le_bytes(cursor.array()?)),
            (Stored::Double, _) => Scalar::Double(f64::from_le_bytes(cursor.array()?)),
            (Stored::Text, _) => Scalar::Text(cursor.sized()?),
            (Stored::Enum(symbols), _) => {
                Scalar::Text(symbols[cursor.choice(symbols.len(), "symbol")?].as_bytes())
            }
            (Stored::Fixed(_), Meaning::Uuid) => Scalar::Uuid(cursor.array()?),
            (_, Meaning::Decimal { scale, .. }) => match read_decimal(self.raw(cursor)?)? {
                Decimal::Short(digits) => Scalar::Number(digits, scale),
                Decimal::Long(bytes) => Scalar::Long(bytes, scale),
            },
            (Stored::Bytes | Stored::Fixed(_), _) => Scalar::Bytes(self.raw(cursor)?),
        }))
    }

    /// The bytes of a value of bytes or of a fixed length.
    pub fn raw<'a>(&self, cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
        match self.stored {
            Stored::Fixed(bytes) => cursor.take(bytes),
            _ => cursor.sized(),
        }
    }
}

/// The digits of a decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decimal {
    /// Of 128 bits.
    Short(i128),
    /// Of more: their bytes, the last one first.
    Long([u8; LONG_DECIMAL_BYTES]),
}

/// Reads a decimal, whose first byte comes first. Zero may have no bytes.
pub(crate) fn read_decimal(bytes: &[u8]) -> Result<Decimal> {
    let filler = match bytes.first() {
        Some(first) if *first >= 0x80 => 0xff,
        _ => 0,
    };
    let mut digits = bytes;
    // Bytes that only repeat the sign.
    while let [first, rest @ ..] = digits
        && *first == filler
        && digits.len() > 1
        && (rest[0] >= 0x80) == (filler == 0xff)
    {
        digits = rest;
    }
    if digits.len() > LONG_DECIMAL_BYTES {
        return damaged(format!("a decimal of {} bytes", digits.len()));
    }
    let mut long = [filler; LONG_DECIMAL_BYTES];
    for (to, byte) in long.iter_mut().zip(digits.iter().rev()) {
        *to = *byte;
    }
    let mut low = [0; 16];
    low.copy_from_slice(&long[..16]);
    Ok(match digits.len() <= 16 {
        true => Decimal::Short(i128::from_le_bytes(low)),
        false => Decimal::Long(long),
    })
}

/// Writes a duration as ISO 8601 has it: `P14M3DT1.500S`. Its three numbers do not make one.
pub(crate) fn write_duration(bytes: &[u8; DURATION_BYTES], out: &mut Vec<u8>) {
    let word = |at: usize| {
        let word = bytes.get(at..at + 4).and_then(|word| <[u8; 4]>::try_from(word).ok());
        u32::from_le_bytes(word.unwrap_or_default())
    };
    let (months, days, millis) = (word(0), word(4), word(8));
    out.push(b'P');
    for (count, unit) in [(months, 'M'), (days, 'D')] {
        if count > 0 {
            out.extend_from_slice(format!("{count}{unit}").as_bytes());
        }
    }
    if millis > 0 || (months, days) == (0, 0) {
        let (seconds, rest) = (millis / 1000, millis % 1000);
        let text = match rest {
            0 => format!("T{seconds}S"),
            rest => format!("T{seconds}.{rest:03}S"),
        };
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn decimals_are_read_whatever_their_bytes() {
        for value in [0, 1, -1, 127, 128, -128, -129, 255, 256, i128::MAX, i128::MIN] {
            for more in 0..20 {
                let mut bytes = vec![if value < 0 { 0xff } else { 0 }; more];
                bytes.extend(value.to_be_bytes());
                assert_eq!(read_decimal(&bytes).unwrap(), Decimal::Short(value), "{value} {more}");
            }
        }
        assert_eq!(read_decimal(&[]).unwrap(), Decimal::Short(0));
        assert_eq!(read_decimal(&[0x80]).unwrap(), Decimal::Short(-128));
        let mut long = vec![1];
        long.extend([0; 16]);
        let mut expected = [0; 32];
        expected[16] = 1;
        assert_eq!(read_decimal(&long).unwrap(), Decimal::Long(expected));
        long.extend([0; 16]);
        assert!(read_decimal(&long).is_err());
    }

    #[test]
    fn durations_are_written_as_iso_8601_has_them() {
        let text = |months: u32, days: u32, millis: u32| {
            let mut bytes = [0; DURATION_BYTES];
            for (at, word) in [months, days, millis].into_iter().enumerate() {
                bytes[at * 4..at * 4 + 4].copy_from_slice(&word.to_le_bytes());
            }
            let mut out = Vec::new();
            write_duration(&bytes, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(14, 3, 1500), "P14M3DT1.500S");
        assert_eq!(text(0, 0, 0), "PT0S");
        assert_eq!(text(1, 0, 0), "P1M");
        assert_eq!(text(0, u32::MAX, 60_000), "P4294967295DT60S");
    }
}
