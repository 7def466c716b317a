//! Types of answers, parameters and the catalogue, as PostgreSQL has them.

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, IntervalUnit, TimeUnit};

use super::message::Format;

/// What PostgreSQL adds to a modifier that tells digits or a length.
pub(super) const MODIFIER_ADDED: i32 = 4;

/// The modifier of a number with so many digits, some behind the point.
pub(super) fn decimal_modifier(digits: u8, scale: u8) -> i32 {
    (i32::from(digits) << 16 | i32::from(scale)) + MODIFIER_ADDED
}

/// A type of PostgreSQL that is no array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Boolean,
    SmallInt,
    Integer,
    BigInt,
    Real,
    Double,
    Numeric,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Interval,
    Bytes,
    Text,
}

/// A type of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// Of its values, or of their elements.
    pub scalar: Scalar,
    pub is_array: bool,
}

/// What clients know of a type.
pub(super) struct Facts {
    /// The number by which they know it.
    pub oid: u32,
    /// That of arrays of it.
    pub array_oid: u32,
    /// Bytes of a value; -1 for any number.
    pub bytes: i16,
    pub name: &'static str,
    /// Letter of its category in the catalogue.
    pub category: &'static str,
}

impl Scalar {
    /// All, by their numbers.
    pub const ALL: [Scalar; 14] = [
        Scalar::Boolean,
        Scalar::Bytes,
        Scalar::BigInt,
        Scalar::SmallInt,
        Scalar::Integer,
        Scalar::Text,
        Scalar::Real,
        Scalar::Double,
        Scalar::Date,
        Scalar::Time,
        Scalar::Timestamp,
        Scalar::TimestampTz,
        Scalar::Interval,
        Scalar::Numeric,
    ];

    /// What clients know of it.
    pub const fn facts(self) -> Facts {
        let (oid, array_oid, bytes, name, category) = match self {
            Scalar::Boolean => (16, 1000, 1, "bool", "B"),
            Scalar::Bytes => (17, 1001, -1, "bytea", "U"),
            Scalar::BigInt => (20, 1016, 8, "int8", "N"),
            Scalar::SmallInt => (21, 1005, 2, "int2", "N"),
            Scalar::Integer => (23, 1007, 4, "int4", "N"),
            Scalar::Text => (25, 1009, -1, "text", "S"),
            Scalar::Real => (700, 1021, 4, "float4", "N"),
            Scalar::Double => (701, 1022, 8, "float8", "N"),
            Scalar::Date => (1082, 1182, 4, "date", "D"),
            Scalar::Time => (1083, 1183, 8, "time", "D"),
            Scalar::Timestamp => (1114, 1115, 8, "timestamp", "D"),
            Scalar::TimestampTz => (1184, 1185, 8, "timestamptz", "D"),
            Scalar::Interval => (1186, 1187, 16, "interval", "T"),
            Scalar::Numeric => (1700, 1231, -1, "numeric", "N"),
        };
        Facts { oid, array_oid, bytes, name, category }
    }

    /// Of an Arrow type that is no list.
    fn of(arrow: &ArrowType) -> Self {
        match arrow {
            ArrowType::Dictionary(_, values) => Scalar::of(values),
            ArrowType::Boolean => Scalar::Boolean,
            ArrowType::Int8 | ArrowType::Int16 | ArrowType::UInt8 => Scalar::SmallInt,
            ArrowType::Int32 | ArrowType::UInt16 => Scalar::Integer,
            ArrowType::Int64 | ArrowType::UInt32 => Scalar::BigInt,
            ArrowType::UInt64
            | ArrowType::Decimal32(..)
            | ArrowType::Decimal64(..)
            | ArrowType::Decimal128(..) => Scalar::Numeric,
            ArrowType::Float16 | ArrowType::Float32 => Scalar::Real,
            ArrowType::Float64 => Scalar::Double,
            ArrowType::Date32 | ArrowType::Date64 => Scalar::Date,
            ArrowType::Time32(_) | ArrowType::Time64(_) => Scalar::Time,
            ArrowType::Timestamp(_, None) => Scalar::Timestamp,
            ArrowType::Timestamp(_, Some(_)) => Scalar::TimestampTz,
            ArrowType::Interval(_) => Scalar::Interval,
            ArrowType::Binary
            | ArrowType::LargeBinary
            | ArrowType::BinaryView
            | ArrowType::FixedSizeBinary(_) => Scalar::Bytes,
            _ => Scalar::Text,
        }
    }

    /// The type with a number.
    pub fn of_oid(oid: u32) -> Option<Self> {
        Scalar::ALL.into_iter().find(|scalar| scalar.facts().oid == oid)
    }
}

impl Kind {
    /// Of an Arrow type. A list of lists is text.
    pub fn of(arrow: &ArrowType) -> Self {
        let (item, is_array) = match arrow {
            ArrowType::List(item) | ArrowType::LargeList(item) => (item.data_type(), true),
            other => (other, false),
        };
        match is_array && Kind::of(item).is_array {
            true => Kind { scalar: Scalar::Text, is_array: false },
            false => Kind { scalar: Scalar::of(item), is_array },
        }
    }

    /// The number by which clients know it.
    pub fn oid(self) -> u32 {
        let Facts { oid, array_oid, .. } = self.scalar.facts();
        if self.is_array { array_oid } else { oid }
    }

    /// Bytes of a value; -1 for any number.
    pub fn bytes(self) -> i16 {
        if self.is_array { -1 } else { self.scalar.facts().bytes }
    }

    /// The Arrow type whose values are written.
    pub fn arrow(self, given: &ArrowType) -> ArrowType {
        let micros = TimeUnit::Microsecond;
        if self.is_array {
            return given.clone();
        }
        match self.scalar {
            Scalar::Boolean => ArrowType::Boolean,
            Scalar::SmallInt => ArrowType::Int16,
            Scalar::Integer => ArrowType::Int32,
            Scalar::BigInt => ArrowType::Int64,
            Scalar::Real => ArrowType::Float32,
            Scalar::Double => ArrowType::Float64,
            Scalar::Numeric => match given {
                ArrowType::Decimal32(digits, scale) | ArrowType::Decimal64(digits, scale) => {
                    ArrowType::Decimal128(*digits, *scale)
                }
                ArrowType::Decimal128(..) => given.clone(),
                _ => ArrowType::Decimal128(20, 0),
            },
            Scalar::Date => ArrowType::Date32,
            Scalar::Time => ArrowType::Time64(micros),
            Scalar::Timestamp => ArrowType::Timestamp(micros, None),
            Scalar::TimestampTz => ArrowType::Timestamp(micros, Some(crate::types::UTC.into())),
            Scalar::Interval => ArrowType::Interval(IntervalUnit::MonthDayNano),
            Scalar::Bytes => ArrowType::Binary,
            Scalar::Text => match given {
                ArrowType::LargeUtf8 | ArrowType::Utf8View => ArrowType::Utf8,
                // Text, or written by its text form.
                other => other.clone(),
            },
        }
    }
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub name: String,
    pub kind: Kind,
    /// Digits of a number, as PostgreSQL puts them into one; -1 for none.
    pub modifier: i32,
    pub format: Format,
}

impl Column {
    /// Of a field of an answer, as text.
    pub fn of(field: &Field) -> Self {
        let modifier = match field.data_type() {
            ArrowType::Decimal128(digits, scale @ 0..) => decimal_modifier(*digits, *scale as u8),
            _ => -1,
        };
        let kind = Kind::of(field.data_type());
        Column { name: field.name().clone(), kind, modifier, format: Format::Text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_their_numbers() {
        for scalar in Scalar::ALL {
            assert_eq!(Scalar::of_oid(scalar.facts().oid), Some(scalar));
        }
    }
}
