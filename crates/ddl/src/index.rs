//! Indexes of a table: columns that rows are found by, beside its key, and whether no two rows may have the same values there.
//!
//! The order of what an index has is that of keys: values column by column, text and binary byte by byte, NULL last.

use coload_types::{Column, Error, Result};

use crate::key::positions;
use crate::{KEY_COLUMNS_MAX, quote_name};

/// Most indexes of a table.
pub const INDEXES_MAX: usize = 64;
/// Bytes of the longest name of an index.
pub const INDEX_NAME_BYTES_MAX: usize = 255;

/// What an index promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// No two rows have the same values in all of its columns. Rows with NULL in one of them differ from all others.
    Unique,
    /// Nothing: rows are found faster.
    Plain,
}

/// An index of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Its name among all indexes of a store; empty until the table gets it that UNIQUE was said in.
    pub name: String,
    /// What it promises.
    pub kind: IndexKind,
    columns: Vec<usize>,
}

impl Index {
    /// An index of these columns, by their positions, the first being the most significant.
    ///
    /// # Errors
    /// `Invalid` when there are none, too many, or one comes twice.
    pub fn new(name: impl Into<String>, kind: IndexKind, columns: Vec<usize>) -> Result<Self> {
        let name = name.into();
        if columns.is_empty() || columns.len() > KEY_COLUMNS_MAX {
            return Err(Error::Invalid(format!(
                "{} has 1 to {KEY_COLUMNS_MAX} columns, not {}",
                kind.sql_name(),
                columns.len()
            )));
        }
        if (1..columns.len()).any(|at| columns[..at].contains(&columns[at])) {
            return Err(Error::Invalid(format!("{} names a column twice", kind.sql_name())));
        }
        if name.len() > INDEX_NAME_BYTES_MAX || name.contains(char::is_control) {
            return Err(Error::Invalid(format!(
                "{name:?} cannot name an index: a name has 1 to {INDEX_NAME_BYTES_MAX} bytes and no control characters"
            )));
        }
        Ok(Index { name, kind, columns })
    }

    /// An index of columns that are given by their names.
    ///
    /// # Errors
    /// As [`Self::new`], and when there is no column of a name.
    pub fn of_names<S: AsRef<str>>(
        name: impl Into<String>,
        kind: IndexKind,
        (names, columns): (&[S], &[Column]),
    ) -> Result<Self> {
        Index::new(name, kind, positions(kind.sql_name(), names, columns)?)
    }

    /// Positions of its columns in the table, the most significant first.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Whether no two rows may have the same values.
    pub fn is_unique(&self) -> bool {
        self.kind == IndexKind::Unique
    }

    /// The same of other positions of its columns.
    #[must_use]
    pub fn with_columns(&self, position: impl Fn(usize) -> usize) -> Self {
        let columns = self.columns.iter().map(|column| position(*column)).collect();
        Index { columns, ..self.clone() }
    }

    /// Its columns as they stand in a statement: `(a, "B c")`.
    pub fn columns_sql(&self, columns: &[Column]) -> String {
        let names: Vec<String> =
            self.columns.iter().map(|column| quote_name(&columns[*column].name)).collect();
        format!("({})", names.join(", "))
    }

    /// What a message calls it: `UNIQUE (a, b)`.
    pub fn sql(&self, columns: &[Column]) -> String {
        format!("{} {}", self.kind.sql_name(), self.columns_sql(columns))
    }

    /// The statement that makes it for a table that is there.
    pub fn create_sql(&self, table: &str, columns: &[Column]) -> String {
        let unique = if self.is_unique() { "UNIQUE " } else { "" };
        format!(
            "CREATE {unique}INDEX {} ON {} {}",
            quote_name(&self.name),
            quote_name(table),
            self.columns_sql(columns)
        )
    }

    /// The name that a UNIQUE without one gets, of a table: `t_a_b_key`.
    pub fn usual_name(&self, table: &str, columns: &[Column]) -> String {
        let names = self.columns.iter().map(|column| columns[*column].name.as_str());
        let all: Vec<&str> = std::iter::once(table).chain(names).collect();
        let mut name = all.join("_");
        // Room for the word, and a number where the name is taken.
        while name.len() > INDEX_NAME_BYTES_MAX - 16 {
            name.pop();
        }
        name + "_key"
    }
}

impl IndexKind {
    /// The words that declare it.
    pub fn sql_name(self) -> &'static str {
        match self {
            IndexKind::Unique => "UNIQUE",
            IndexKind::Plain => "INDEX",
        }
    }
}
