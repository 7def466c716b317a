//! The key of a table: the columns that its rows are ordered by, and whether no two rows may have the same values there.
//!
//! The order of keys is the order of their values, column by column; text and binary are compared byte by byte, and
//! NULL is last.

use coload_types::{Column, Error, Result, same_name};

use crate::quote_name;

/// Most columns of a key.
pub const KEY_COLUMNS_MAX: usize = 16;

/// What a key promises beside the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// PRIMARY KEY: no column of it is NULL, and no two rows have the same values in all of them.
    Primary,
    /// CLUSTER BY: the order only.
    Cluster,
}

/// The key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    kind: KeyKind,
    columns: Vec<usize>,
}

impl Key {
    /// A key of these columns, by their positions, the first being the most significant.
    ///
    /// # Errors
    /// `Invalid` when there are none, too many, or one comes twice.
    pub fn new(kind: KeyKind, columns: Vec<usize>) -> Result<Self> {
        let name = kind.sql_name();
        if columns.is_empty() || columns.len() > KEY_COLUMNS_MAX {
            return Err(Error::Invalid(format!(
                "{name} has 1 to {KEY_COLUMNS_MAX} columns, not {}",
                columns.len()
            )));
        }
        if (1..columns.len()).any(|at| columns[..at].contains(&columns[at])) {
            return Err(Error::Invalid(format!("{name} names a column twice")));
        }
        Ok(Key { kind, columns })
    }

    /// A key of columns that are given by their names.
    ///
    /// # Errors
    /// As [`Self::new`], and when there is no column of a name.
    pub fn of_names<S: AsRef<str>>(kind: KeyKind, names: &[S], columns: &[Column]) -> Result<Self> {
        Key::new(kind, positions(kind.sql_name(), names, columns)?)
    }

    /// What it promises beside the order.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Whether no two rows may have the same key.
    pub fn is_unique(&self) -> bool {
        self.kind == KeyKind::Primary
    }

    /// Positions of its columns in the table, the most significant first.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The key as it stands in CREATE TABLE: `PRIMARY KEY (a, b)`.
    pub fn sql(&self, columns: &[Column]) -> String {
        let names: Vec<String> =
            self.columns.iter().map(|column| quote_name(&columns[*column].name)).collect();
        format!("{} ({})", self.kind.sql_name(), names.join(", "))
    }
}

/// Positions of the columns that a clause names.
///
/// # Errors
/// `Invalid` when there is no column of a name.
pub(crate) fn positions<S: AsRef<str>>(
    clause: &str,
    names: &[S],
    columns: &[Column],
) -> Result<Vec<usize>> {
    let position = |name: &S| {
        let name = name.as_ref();
        columns.iter().position(|column| same_name(&column.name, name)).ok_or_else(|| {
            let known: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
            Error::Invalid(format!(
                "{clause} names {name}, and there is no such column (there is {})",
                known.join(", ")
            ))
        })
    };
    names.iter().map(position).collect()
}

impl KeyKind {
    /// The words that declare it.
    pub fn sql_name(self) -> &'static str {
        match self {
            KeyKind::Primary => "PRIMARY KEY",
            KeyKind::Cluster => "CLUSTER BY",
        }
    }
}
