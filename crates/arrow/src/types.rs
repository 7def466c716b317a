//! Types of Arrow, and the SQL types whose values theirs are.

use std::fmt;

use coload_types::{DECIMAL_PRECISION_MAX, DataType};

/// What a number of a time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Second,
    /// Thousandths of a second.
    Milli,
    /// Millionths of a second.
    Micro,
    /// Billionths of a second.
    Nano,
}

impl Unit {
    /// Nanoseconds of one.
    pub fn nanos(self) -> i64 {
        match self {
            Unit::Second => 1_000_000_000,
            Unit::Milli => 1_000_000,
            Unit::Micro => 1_000,
            Unit::Nano => 1,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Unit::Second => "s",
            Unit::Milli => "ms",
            Unit::Micro => "us",
            Unit::Nano => "ns",
        }
    }
}

/// The type of the values of a field, whatever they are encoded by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArrowType {
    /// NULL in each row.
    Null,
    /// A bit.
    Bool,
    /// An integer of so many bytes.
    Int {
        /// Bytes: 1, 2, 4 or 8.
        width: usize,
        /// Whether it has a sign.
        signed: bool,
    },
    /// A float of so many bytes: 2, 4 or 8.
    Float(usize),
    /// An exact number of so many bytes.
    Decimal {
        /// Bytes: 4, 8, 16 or 32.
        width: usize,
        /// Digits in all.
        precision: u8,
        /// Digits after the point; below 0, zeros before it.
        scale: i8,
    },
    /// A day, counted from 1970-01-01, or the milliseconds to it if it has 8 bytes.
    Date {
        /// Bytes: 4 or 8.
        width: usize,
    },
    /// Time of day.
    Time {
        /// Bytes: 4 or 8.
        width: usize,
        /// What it counts.
        unit: Unit,
    },
    /// Date and time, counted from 1970-01-01.
    Timestamp {
        /// What it counts.
        unit: Unit,
        /// The zone in which the instant is shown, if it is one.
        zone: Option<String>,
    },
    /// Date and time without zone as old files of Parquet have them: nanoseconds of a day in 8 bytes, and the number of the
    /// day, counted from one in 4713 BC, in 4.
    Int96,
    /// Text whose places are of so many bytes: 4 or 8.
    Text(usize),
    /// Text by views.
    TextView,
    /// Bytes whose places are of so many bytes: 4 or 8.
    Binary(usize),
    /// Bytes by views.
    BinaryView,
    /// So many bytes.
    FixedBinary(usize),
    /// The extension `arrow.uuid`: 16 bytes.
    Uuid,
    /// What has other values within it.
    Composite(Composite),
    /// What no column holds; its name, and how its arrays stand in a batch.
    Other(&'static str, Nesting),
}

/// What has other values within it: how those of a row are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Composite {
    /// A value of each field.
    Struct,
    /// Items that follow those of the row before, by ends of so many bytes: 4 or 8.
    List(usize),
    /// Items that stand anywhere, by places and numbers of so many bytes: 4 or 8.
    ListView(usize),
    /// So many items in each row.
    FixedList(usize),
    /// Keys and values, which follow those of the row before.
    Map,
}

impl Composite {
    /// Buffers of its array, besides those of its children.
    pub(crate) fn buffers(self) -> usize {
        match self {
            Composite::Struct | Composite::FixedList(_) => 1,
            Composite::List(_) | Composite::Map => 2,
            Composite::ListView(_) => 3,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Composite::Struct => "struct",
            Composite::List(4) => "list",
            Composite::List(_) => "large_list",
            Composite::ListView(4) => "list_view",
            Composite::ListView(_) => "large_list_view",
            Composite::FixedList(_) => "fixed_size_list",
            Composite::Map => "map",
        }
    }
}

/// How many buffers the array of a type has that is not read, besides those of its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nesting {
    /// So many.
    Buffers(usize),
    /// So many, and one more before the fifth version of the metadata.
    Union(usize),
}

impl ArrowType {
    /// The SQL type that holds each value of it.
    ///
    /// # Errors
    /// Why there is none, to follow the name of the type.
    pub fn sql_type(&self) -> Result<DataType, String> {
        Ok(match self {
            ArrowType::Bool => DataType::Boolean,
            ArrowType::Int { width: 1, .. } | ArrowType::Int { width: 2, signed: true } => {
                DataType::SmallInt
            }
            ArrowType::Int { width: 2, .. } | ArrowType::Int { width: 4, signed: true } => {
                DataType::Integer
            }
            ArrowType::Int { width: 4, .. } | ArrowType::Int { signed: true, .. } => {
                DataType::BigInt
            }
            ArrowType::Int { .. } => DataType::Decimal { precision: 20, scale: 0 },
            ArrowType::Float(8) => DataType::Double,
            ArrowType::Float(_) => DataType::Real,
            ArrowType::Decimal { precision, scale, .. } => decimal(*precision, *scale)?,
            ArrowType::Date { .. } => DataType::Date,
            ArrowType::Time { .. } => DataType::Time,
            ArrowType::Timestamp { zone: None, .. } | ArrowType::Int96 => DataType::Timestamp,
            ArrowType::Timestamp { .. } => DataType::TimestampTz,
            ArrowType::Null | ArrowType::Text(_) | ArrowType::TextView => DataType::Varchar(None),
            ArrowType::Binary(_) | ArrowType::BinaryView | ArrowType::FixedBinary(_) => {
                DataType::Binary(None)
            }
            ArrowType::Uuid => DataType::Uuid,
            ArrowType::Composite(_) | ArrowType::Other(..) => {
                return Err("which no column holds".to_owned());
            }
        })
    }

    /// Bytes of a value of fixed width.
    pub fn width(&self) -> Option<usize> {
        match self {
            ArrowType::Int { width, .. }
            | ArrowType::Float(width)
            | ArrowType::Decimal { width, .. }
            | ArrowType::Date { width }
            | ArrowType::Time { width, .. }
            | ArrowType::FixedBinary(width) => Some(*width),
            ArrowType::Timestamp { .. } => Some(8),
            ArrowType::Int96 => Some(12),
            ArrowType::Uuid => Some(16),
            ArrowType::Null
            | ArrowType::Bool
            | ArrowType::Text(_)
            | ArrowType::TextView
            | ArrowType::Binary(_)
            | ArrowType::BinaryView
            | ArrowType::Composite(_)
            | ArrowType::Other(..) => None,
        }
    }
}

/// The DECIMAL that holds what has these digits.
fn decimal(precision: u8, scale: i8) -> Result<DataType, String> {
    // Zeros before the point are digits, and so are those between the point and the first digit.
    let (digits, scale) = match u8::try_from(scale) {
        Ok(scale) => (precision.max(scale), scale),
        Err(_) => (precision.saturating_add(scale.unsigned_abs()), 0),
    };
    DataType::decimal(digits, scale).map_err(|_| {
        format!("which has {digits} digits, and a DECIMAL {DECIMAL_PRECISION_MAX} at most")
    })
}

impl fmt::Display for ArrowType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArrowType::Null => f.write_str("null"),
            ArrowType::Bool => f.write_str("bool"),
            ArrowType::Int { width, signed: true } => write!(f, "int{}", width * 8),
            ArrowType::Int { width, .. } => write!(f, "uint{}", width * 8),
            ArrowType::Float(2) => f.write_str("halffloat"),
            ArrowType::Float(4) => f.write_str("float"),
            ArrowType::Float(_) => f.write_str("double"),
            ArrowType::Decimal { width, precision, scale } => {
                write!(f, "decimal{}({precision}, {scale})", width * 8)
            }
            ArrowType::Date { width } => write!(f, "date{}", width * 8),
            ArrowType::Time { width, unit } => write!(f, "time{}[{}]", width * 8, unit.name()),
            ArrowType::Timestamp { unit, zone: None } => write!(f, "timestamp[{}]", unit.name()),
            ArrowType::Timestamp { unit, zone: Some(zone) } => {
                write!(f, "timestamp[{}, tz={zone}]", unit.name())
            }
            ArrowType::Int96 => f.write_str("int96"),
            ArrowType::Text(4) => f.write_str("string"),
            ArrowType::Text(_) => f.write_str("large_string"),
            ArrowType::TextView => f.write_str("string_view"),
            ArrowType::Binary(4) => f.write_str("binary"),
            ArrowType::Binary(_) => f.write_str("large_binary"),
            ArrowType::BinaryView => f.write_str("binary_view"),
            ArrowType::FixedBinary(width) => write!(f, "fixed_size_binary[{width}]"),
            ArrowType::Uuid => f.write_str("extension<arrow.uuid>"),
            ArrowType::Composite(of) => f.write_str(of.name()),
            ArrowType::Other(name, _) => f.write_str(name),
        }
    }
}
