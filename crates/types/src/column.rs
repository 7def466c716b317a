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

/// Whether two names mean the same column: without regard to case, of all scripts.
pub fn same_name(a: &str, b: &str) -> bool {
    match a.is_ascii() && b.is_ascii() {
        true => a.eq_ignore_ascii_case(b),
        false => a.to_lowercase() == b.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_in_any_case_of_any_script() {
        assert!(
            same_name("Price", "PRICE") && same_name("größe", "GRÖßE") && same_name("Ёлка", "ёЛКА")
        );
        // The sign of Kelvin is a K.
        assert!(same_name("k", "\u{212a}"));
        assert!(!same_name("a", "á") && !same_name("a", "a ") && same_name("", ""));
    }
}
