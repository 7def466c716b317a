//! SQL types and the three physical shapes their values take.
//!
//! ```text
//!   SQL type                                     physical   order-preserving value
//!   BOOLEAN                                      Int        0, 1
//!   SMALLINT INTEGER BIGINT                      Int        itself
//!   DECIMAL(p <= 18, s)                          Int        unscaled
//!   DECIMAL(p > 18, s)                           Wide       unscaled
//!   REAL DOUBLE                                  Int        bits in total order
//!   DATE                                         Int        days since 1970-01-01
//!   TIME                                         Int        microseconds since midnight
//!   TIMESTAMP, TIMESTAMP WITH TIME ZONE          Int        microseconds since the epoch (UTC)
//!   UUID                                         Wide       big-endian number, top bit flipped
//!   CHAR VARCHAR TEXT BINARY                     Bytes      itself
//! ```
//!
//! The order of physical values is the order of SQL values, so a sorted dictionary of physical
//! values is sorted for SQL too.

use std::fmt;

use crate::{Error, Result};

/// Most digits a DECIMAL can have.
pub const DECIMAL_PRECISION_MAX: u8 = 38;
/// Most digits that fit an `Int`.
pub const DECIMAL_INT_PRECISION_MAX: u8 = 18;

/// A column's SQL type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataType {
    /// TRUE or FALSE.
    Boolean,
    /// 16-bit integer.
    SmallInt,
    /// 32-bit integer.
    Integer,
    /// 64-bit integer.
    BigInt,
    /// Exact number of `precision` digits, `scale` of them after the point.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, at most `precision`.
        scale: u8,
    },
    /// 32-bit float.
    Real,
    /// 64-bit float.
    Double,
    /// Day, years 0001 to 9999.
    Date,
    /// Time of day, microseconds.
    Time,
    /// Date and time without zone, microseconds.
    Timestamp,
    /// Instant, microseconds, kept in UTC.
    TimestampTz,
    /// Text of at most this many characters; kept as given, not padded.
    Char(u32),
    /// Text, with the most characters if declared.
    Varchar(Option<u32>),
    /// Bytes, with the most bytes if declared.
    Binary(Option<u32>),
    /// 128-bit identifier.
    Uuid,
}

/// The shape of a value in memory and on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Physical {
    /// `i64`.
    Int,
    /// `i128`.
    Wide,
    /// A byte string.
    Bytes,
}

impl DataType {
    /// The physical shape of this type's values.
    pub fn physical(self) -> Physical {
        match self {
            DataType::Decimal { precision, .. } if precision > DECIMAL_INT_PRECISION_MAX => {
                Physical::Wide
            }
            DataType::Uuid => Physical::Wide,
            DataType::Char(_) | DataType::Varchar(_) | DataType::Binary(_) => Physical::Bytes,
            _ => Physical::Int,
        }
    }

    /// Whether its values are written as numbers.
    pub fn is_number(self) -> bool {
        use DataType::{BigInt, Decimal, Double, Integer, Real, SmallInt};
        matches!(self, SmallInt | Integer | BigInt | Decimal { .. } | Real | Double)
    }

    /// A DECIMAL, checked.
    pub fn decimal(precision: u8, scale: u8) -> Result<Self> {
        if precision == 0 || precision > DECIMAL_PRECISION_MAX || scale > precision {
            return Err(Error::Invalid(format!(
                "DECIMAL({precision},{scale}) is not a type: precision is 1 to 38, scale 0 to precision"
            )));
        }
        Ok(DataType::Decimal { precision, scale })
    }

    /// Whether the type is text.
    pub fn is_text(self) -> bool {
        matches!(self, DataType::Char(_) | DataType::Varchar(_))
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Boolean => f.write_str("BOOLEAN"),
            DataType::SmallInt => f.write_str("SMALLINT"),
            DataType::Integer => f.write_str("INTEGER"),
            DataType::BigInt => f.write_str("BIGINT"),
            DataType::Decimal { precision, scale } => write!(f, "DECIMAL({precision},{scale})"),
            DataType::Real => f.write_str("REAL"),
            DataType::Double => f.write_str("DOUBLE"),
            DataType::Date => f.write_str("DATE"),
            DataType::Time => f.write_str("TIME"),
            DataType::Timestamp => f.write_str("TIMESTAMP"),
            DataType::TimestampTz => f.write_str("TIMESTAMP WITH TIME ZONE"),
            DataType::Char(n) => write!(f, "CHAR({n})"),
            DataType::Varchar(None) => f.write_str("VARCHAR"),
            DataType::Varchar(Some(n)) => write!(f, "VARCHAR({n})"),
            DataType::Binary(None) => f.write_str("BINARY"),
            DataType::Binary(Some(n)) => write!(f, "BINARY({n})"),
            DataType::Uuid => f.write_str("UUID"),
        }
    }
}

/// `f64` to an `i64` whose order is the total order of floats; keeps every bit.
pub fn ordinal_from_f64(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Inverse of [`ordinal_from_f64`].
pub fn f64_from_ordinal(ordinal: i64) -> f64 {
    f64::from_bits((ordinal ^ (((ordinal >> 63) as u64) >> 1) as i64) as u64)
}

/// `f32` to an `i64` whose order is the total order of floats; keeps every bit.
pub fn ordinal_from_f32(value: f32) -> i64 {
    let bits = value.to_bits() as i32;
    i64::from(bits ^ (((bits >> 31) as u32) >> 1) as i32)
}

/// Inverse of [`ordinal_from_f32`]; only the low 32 bits count.
pub fn f32_from_ordinal(ordinal: i64) -> f32 {
    let bits = ordinal as i32;
    f32::from_bits((bits ^ (((bits >> 31) as u32) >> 1) as i32) as u32)
}

/// The 16 bytes of a UUID (as written, big-endian) to its ordered number.
pub fn wide_from_uuid(bytes: [u8; 16]) -> i128 {
    (u128::from_be_bytes(bytes) ^ (1 << 127)) as i128
}

/// Inverse of [`wide_from_uuid`].
pub fn uuid_from_wide(wide: i128) -> [u8; 16] {
    ((wide as u128) ^ (1 << 127)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_ordinals_keep_order_and_bits() {
        let values = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, 2.5, f64::INFINITY];
        for pair in values.windows(2) {
            assert!(ordinal_from_f64(pair[0]) < ordinal_from_f64(pair[1]));
        }
        for v in values {
            assert_eq!(f64_from_ordinal(ordinal_from_f64(v)).to_bits(), v.to_bits());
            let s = v as f32;
            assert_eq!(f32_from_ordinal(ordinal_from_f32(s)).to_bits(), s.to_bits());
        }
    }

    #[test]
    fn uuid_order_is_the_order_of_its_text() {
        let low = wide_from_uuid([0x10; 16]);
        let high = wide_from_uuid([0xf0; 16]);
        assert!(low < high);
        assert_eq!(uuid_from_wide(high), [0xf0; 16]);
    }
}
