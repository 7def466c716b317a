//! Physical values as SQL text.

use crate::{DataType, Value};

/// The value as SQL would print it, without quotes.
pub fn display_value(value: &Value, data_type: DataType) -> String {
    let _ = data_type;
    format!("{value:?}")
}
