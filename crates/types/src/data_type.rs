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
//!   lists, such as BIGINT[]                      Bytes      its elements (see `list`)
//! ```
//!
//! The order of physical values is the order of SQL values, so a sorted dictionary of physical
//! values is sorted for SQL too.

use std::fmt;

use crate::calendar::{DATE_DAYS, DAY_MICROS};
use crate::{ElementType, Error, Result};

/// Most digits a DECIMAL can have.
pub const DECIMAL_PRECISION_MAX: u8 = 38;
/// Most digits that fit an `Int`.
pub const DECIMAL_INT_PRECISION_MAX: u8 = 18;

/// A column's SQL type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataType {
    /// TRUE or FALSE; stored as 1 and 0.
    Boolean,
    /// Integer of 16 bits with a sign.
    SmallInt,
    /// Integer of 32 bits with a sign.
    Integer,
    /// Integer of 64 bits with a sign.
    BigInt,
    /// Exact number of `precision` digits, `scale` of them after the point.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, at most `precision`.
        scale: u8,
    },
    /// Float of 32 bits (IEEE 754).
    Real,
    /// Float of 64 bits (IEEE 754).
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
    /// Identifier of 128 bits (RFC 9562), ordered as its bytes.
    Uuid,
    /// List of elements of one type, NULLs among them.
    List(ElementType),
}

/// The shape of a value in memory and on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Physical {
    /// Numbers that fit an `i64`: integers, short decimals, floats by their ordinal, dates, times.
    Int,
    /// Numbers that need an `i128`: long decimals and UUIDs.
    Wide,
    /// Byte strings: text, binary and lists.
    Bytes,
}

/// How values are written as text, and so how they stand in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextForm {
    /// TRUE and FALSE, bare.
    Word,
    /// Digits, sign and point, bare.
    ExactNumber,
    /// Digits, point and exponent; a literal is in quotes, for a bare one would be an exact number.
    Float,
    /// A day, a time of day or both, in quotes.
    Moment,
    /// The characters themselves, in quotes.
    Characters,
    /// Hexadecimal digits, in quotes.
    Hex,
    /// A list of JSON, in quotes.
    List,
}

/// What the rest of Coload asks of a type. A type that is added has its facts here first, and no match on types has a
/// wildcard: what is missing does not compile.
///
/// The order of all types is that of their physical values; NULL is last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeFacts {
    /// Name in SQL, without digits and length.
    pub sql_name: &'static str,
    /// Shape of its values.
    pub physical: Physical,
    /// How its values are written.
    pub text: TextForm,
    /// Least and largest `Int` that is a value; those of `i64` for other shapes.
    pub limits: (i64, i64),
}

impl DataType {
    /// What there is to know of this type.
    #[inline]
    pub const fn facts(self) -> TypeFacts {
        use Physical::{Bytes, Int, Wide};
        use TextForm::{Characters, ExactNumber, Float, Hex, List, Moment, Word};
        const ALL: (i64, i64) = (i64::MIN, i64::MAX);
        let (sql_name, physical, text, limits) = match self {
            DataType::Boolean => ("BOOLEAN", Int, Word, (0, 1)),
            DataType::SmallInt => {
                ("SMALLINT", Int, ExactNumber, (i16::MIN as i64, i16::MAX as i64))
            }
            DataType::Integer => ("INTEGER", Int, ExactNumber, (i32::MIN as i64, i32::MAX as i64)),
            DataType::BigInt => ("BIGINT", Int, ExactNumber, ALL),
            DataType::Decimal { precision, .. } if precision > DECIMAL_INT_PRECISION_MAX => {
                ("DECIMAL", Wide, ExactNumber, ALL)
            }
            DataType::Decimal { precision, .. } => {
                let most = 10_i64.pow(precision as u32) - 1;
                ("DECIMAL", Int, ExactNumber, (-most, most))
            }
            DataType::Real => ("REAL", Int, Float, (i32::MIN as i64, i32::MAX as i64)),
            DataType::Double => ("DOUBLE", Int, Float, ALL),
            DataType::Date => ("DATE", Int, Moment, (*DATE_DAYS.start(), *DATE_DAYS.end())),
            DataType::Time => ("TIME", Int, Moment, (0, DAY_MICROS - 1)),
            DataType::Timestamp => ("TIMESTAMP", Int, Moment, MOMENTS),
            DataType::TimestampTz => ("TIMESTAMP WITH TIME ZONE", Int, Moment, MOMENTS),
            DataType::Char(_) => ("CHAR", Bytes, Characters, ALL),
            DataType::Varchar(_) => ("VARCHAR", Bytes, Characters, ALL),
            DataType::Binary(_) => ("BINARY", Bytes, Hex, ALL),
            DataType::Uuid => ("UUID", Wide, Hex, ALL),
            DataType::List(_) => ("LIST", Bytes, List, ALL),
        };
        TypeFacts { sql_name, physical, text, limits }
    }

    /// The physical shape of this type's values.
    #[inline]
    pub const fn physical(self) -> Physical {
        self.facts().physical
    }

    /// Whether its values are written as numbers.
    pub fn is_number(self) -> bool {
        matches!(self.facts().text, TextForm::ExactNumber | TextForm::Float)
    }

    /// Whether the type is text.
    pub fn is_text(self) -> bool {
        self.facts().text == TextForm::Characters
    }

    /// Digits after the point of an exact number; 0 for what has none.
    pub fn scale(self) -> u8 {
        if let DataType::Decimal { scale, .. } = self { scale } else { 0 }
    }

    /// Most characters of a text, or bytes of a BINARY, that were declared.
    pub fn length_max(self) -> Option<u32> {
        use DataType::{Binary, Char, Varchar};
        if let Char(n) | Varchar(Some(n)) | Binary(Some(n)) = self { Some(n) } else { None }
    }

    /// A DECIMAL of so many digits, `scale` of them after the point.
    pub fn decimal(precision: u8, scale: u8) -> Result<Self> {
        if precision == 0 || precision > DECIMAL_PRECISION_MAX || scale > precision {
            return Err(Error::Invalid(format!(
                "DECIMAL({precision},{scale}) is not a type: precision is 1 to 38, scale 0 to precision"
            )));
        }
        Ok(DataType::Decimal { precision, scale })
    }
}

/// Moments of the years 0001 to 9999. A zone may move the last moment of a year into the next.
const MOMENTS: (i64, i64) =
    ((*DATE_DAYS.start() - 1) * DAY_MICROS, (*DATE_DAYS.end() + 2) * DAY_MICROS);

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let DataType::List(element) = self {
            return write!(f, "{}[]", element.data_type());
        }
        f.write_str(self.facts().sql_name)?;
        match (self, self.length_max()) {
            (DataType::Decimal { precision, scale }, _) => write!(f, "({precision},{scale})"),
            (_, Some(length)) => write!(f, "({length})"),
            (_, None) => Ok(()),
        }
    }
}

/// `f64` to an `i64` whose order is the total order of floats; keeps every bit.
pub fn ordinal_from_f64(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The float whose place in the order of floats is `ordinal`; the inverse of [`ordinal_from_f64`].
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

/// The 16 bytes of a UUID from its stored number; the inverse of [`wide_from_uuid`].
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
