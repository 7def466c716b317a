//! The vocabulary of Coload: types, values, columns of values, and errors; text to values and back.
//!
//! Invariant: nothing here does I/O, and reading untrusted text or bytes never panics.

mod error;

mod column;
mod common_type;
mod data_type;
mod value;

mod dictionary;

pub mod calendar;
mod digits;
pub mod display;
mod json_string;
mod list;
pub mod parse_value;
pub mod postgres_numeric;
mod visible;

pub mod bytes;
pub mod delimited;
mod simd;

pub use column::{Column, same_name};
pub use data_type::{
    DECIMAL_INT_PRECISION_MAX, DECIMAL_PRECISION_MAX, DataType, Physical, TextForm, TypeFacts,
    f32_from_ordinal, f64_from_ordinal, ordinal_from_f32, ordinal_from_f64, uuid_from_wide,
    wide_from_uuid,
};
pub use dictionary::{CODES_MAX, Code, Dictionary};
pub use error::{Error, Place, Result};
pub use json_string::{BadEscape, unescape_json_onto, write_json_string};
pub use list::{
    Element, ElementType, Elements, elements, elements_onto, is_list, parse_checked_list,
    parse_list, put_element, write_list, write_postgres_element, write_postgres_list,
};
pub use parse_value::{
    Rule, check_bytes, parse_int, parse_int_in, parse_value, parse_wide, parse_wide_in,
};
pub use simd::{SimdLevel, simd_level};
pub use value::{Bitmap, Plain, Strings, Value, Values};
pub use visible::{commands_a_terminal, visible};
