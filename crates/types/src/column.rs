//! A column as it is declared.

use crate::{DataType, Value};

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name, as written; matched without regard to case.
    pub name: String,
    /// Declared or inferred SQL type of the column's values.
    pub data_type: DataType,
    /// Whether NULL may stand in it.
    pub nullable: bool,
    /// What stands where the input has no such field; NULL if absent.
    pub default: Option<Value>,
}

impl Column {
    /// A nullable column without default.
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        Column { name: name.into(), data_type, nullable: true, default: None }
    }
}
