//! A table's columns.

use coload_types::{Column, Error, Result, same_name};

use crate::check::check_rules;
use crate::index::INDEXES_MAX;
use crate::{Check, Index, Key, KeyKind};

/// Most columns a table can have.
pub const COLUMNS_MAX: usize = 4096;

/// The columns of a table, in order, the rules that its rows keep, the key that they are ordered by, and its indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    columns: Vec<Column>,
    checks: Vec<Check>,
    key: Option<Key>,
    indexes: Vec<Index>,
}

impl Schema {
    /// Checks that there are columns, not too many, and that names differ.
    pub fn new(columns: Vec<Column>) -> Result<Self> {
        if columns.is_empty() || columns.len() > COLUMNS_MAX {
            return Err(Error::Invalid(format!(
                "a table has 1 to {COLUMNS_MAX} columns, not {}",
                columns.len()
            )));
        }
        let mut names: Vec<String> = columns.iter().map(|c| c.name.to_lowercase()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|w| w[0] == w[1]) {
            return Err(Error::Invalid(format!("column {} is named twice", pair[0])));
        }
        for column in &columns {
            if let Some(default) = &column.default
                && default.physical() != column.data_type.physical()
            {
                return Err(Error::Invalid(format!(
                    "the default of column {} is not {}",
                    column.name, column.data_type
                )));
            }
        }
        Ok(Schema { columns, checks: Vec::new(), key: None, indexes: Vec::new() })
    }

    /// The same columns with these rules, which are of these columns.
    ///
    /// # Errors
    /// `Invalid` when there are too many, or two have one name.
    pub fn with_checks(mut self, checks: Vec<Check>) -> Result<Self> {
        check_rules(&checks)?;
        self.checks = checks;
        Ok(self)
    }

    /// The same columns, with these rules of theirs too, each once.
    ///
    /// # Errors
    /// As [`Self::with_checks`].
    pub fn with_more_checks(self, more: &[Check]) -> Result<Self> {
        let mut checks = self.checks.clone();
        more.iter().for_each(|check| match checks.contains(check) {
            true => {}
            false => checks.push(check.clone()),
        });
        self.with_checks(checks)
    }

    /// The same table with this key, in place of one that it has. Columns of a PRIMARY KEY are NOT NULL.
    ///
    /// # Errors
    /// `Invalid` when it is a key of other columns.
    pub fn with_key(mut self, key: Option<Key>) -> Result<Self> {
        let Some(key) = key else {
            self.key = None;
            return Ok(self);
        };
        for column in key.columns() {
            let Some(column) = self.columns.get_mut(*column) else {
                return Err(Error::Invalid(format!(
                    "a key of column {}, which is not there",
                    column + 1
                )));
            };
            column.nullable &= key.kind() != KeyKind::Primary;
        }
        self.key = Some(key);
        Ok(self)
    }

    /// The same table with these indexes, in place of those that it has.
    ///
    /// # Errors
    /// `Invalid` when there are too many, one is of other columns, or two have one name.
    pub fn with_indexes(mut self, indexes: Vec<Index>) -> Result<Self> {
        if indexes.len() > INDEXES_MAX {
            return Err(Error::Invalid(format!(
                "a table has at most {INDEXES_MAX} indexes, not {}",
                indexes.len()
            )));
        }
        for (number, index) in indexes.iter().enumerate() {
            if let Some(column) = index.columns().iter().find(|column| **column >= self.len()) {
                return Err(Error::Invalid(format!(
                    "an index of column {}, which is not there",
                    column + 1
                )));
            }
            let is_same = |other: &&Index| same_name(&other.name, &index.name);
            if !index.name.is_empty() && indexes[..number].iter().any(|other| is_same(&other)) {
                return Err(Error::Invalid(format!("two indexes are named {}", index.name)));
            }
        }
        self.indexes = indexes;
        Ok(self)
    }

    /// Its indexes, in the order in which they were made.
    pub fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// The same columns with the rules, the key and the indexes of another schema of the same columns, whose types may differ.
    ///
    /// # Errors
    /// `Invalid` when they do not fit.
    pub fn with_rules_of(self, other: &Schema) -> Result<Self> {
        let Schema { checks, key, indexes, .. } = other.clone();
        self.with_checks(checks)?.with_key(key)?.with_indexes(indexes)
    }

    /// The key that rows are ordered by, if the table has one.
    pub fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// The rules that rows keep.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// All columns in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Number of columns of the table.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Never: a schema has columns.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Position of a column by name, without regard to case, of all scripts: as columns are told apart.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| same_name(&column.name, name))
    }
}
