//! The vocabulary of Coload: types, schema, values, and the bytes of a segment.
//!
//! Invariant: nothing here does I/O, and decoding untrusted bytes never panics.

pub mod bitpack;
pub mod bytes;
pub mod calendar;
mod check;
pub mod ddl;
pub mod delimited;
mod dictionary;
pub mod display;
mod error;
pub mod like;
pub mod page;
pub mod parse_value;
pub mod runs;
mod schema;
mod segment;
mod simd;
mod symbols;
mod types;
mod value;

pub use check::{CHECKS_MAX, Check, CheckedColumn};
pub use ddl::{create_table_sql, parse_columns, parse_create_table};
pub use dictionary::{CODES_MAX, Code, Dictionary};
pub use error::{Error, Place, Result};
pub use parse_value::{
    Rule, check_bytes, parse_int, parse_int_in, parse_value, parse_wide, parse_wide_in,
};
pub use schema::{COLUMNS_MAX, Column, Schema};
pub use segment::{ColumnEntry, ColumnIndex, SEGMENT_MAGIC, SegmentFooter, SegmentId};
pub use simd::{SimdLevel, simd_level};
pub use symbols::{EncodedStrings, SOURCE_PADDING, SymbolDecoder, SymbolEncoder};
pub use types::{
    DECIMAL_INT_PRECISION_MAX, DECIMAL_PRECISION_MAX, DataType, Physical, f32_from_ordinal,
    f64_from_ordinal, ordinal_from_f32, ordinal_from_f64, uuid_from_wide, wide_from_uuid,
};
pub use value::{Bitmap, Plain, Strings, Value, Values};
