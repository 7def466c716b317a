//! CHECK: rules that all rows of a table keep.
//!
//! ```text
//!   quantity > 0 AND (day BETWEEN first AND last OR day IS NULL)
//!   columns, literals, length(column); = <> < <= > >=, BETWEEN, IN, LIKE, IS NULL; AND, OR, NOT
//! ```
//!
//! A rule has three answers, as in SQL, and is broken where it is false: NULL breaks none. A literal has the
//! type of the column that it is compared with. What is not understood is refused when the table is made.
//!
//! Cost of a row: for each comparison of one column with literals a look-up of its code, or the comparison;
//! two values for each comparison of two columns.

mod evaluate;
mod show;

use std::sync::Arc;

pub use evaluate::CheckedColumn;
pub(crate) use evaluate::Truth;

use crate::like::Like;
use coload_types::{Column, DataType, Error, Result, Value};

/// Most rules of a table.
pub const CHECKS_MAX: usize = 256;
/// Most conditions within each other.
pub(crate) const DEPTH_MAX: usize = 32;
/// Most comparisons and literals of a rule.
pub(crate) const TERMS_MAX: usize = 4096;

/// A rule of a table, bound to its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Name of the rule, if it has one.
    pub name: Option<String>,
    text: String,
    condition: Arc<Condition>,
    columns: Vec<usize>,
}

impl Check {
    pub(crate) fn new(name: Option<String>, condition: Condition, columns: &[Column]) -> Self {
        let text = show::condition_sql(&condition, columns);
        let mut used = Vec::new();
        condition.add_columns(&mut used);
        Check { name, text, condition: Arc::new(condition), columns: used }
    }

    /// Reads what [`Self::text`] wrote, for a table of these columns.
    ///
    /// # Errors
    /// `Invalid` with the place and what was expected there.
    pub fn parse(name: Option<String>, text: &str, columns: &[Column]) -> Result<Self> {
        crate::sql::parse_check(name, text, columns)
    }

    /// The condition in SQL.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The rule as it stands in CREATE TABLE.
    pub fn sql(&self) -> String {
        let name = self
            .name
            .as_deref()
            .map(|name| format!("CONSTRAINT {} ", crate::sql::quote_name(name)));
        format!("{}CHECK ({})", name.unwrap_or_default(), self.text)
    }

    /// The columns that it looks at, each once, as they come.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The rows that break it, in order; `columns` has the values of those of [`Self::columns`].
    ///
    /// # Panics
    /// When one of these is missing, or has fewer rows.
    pub fn broken(&self, columns: &[Option<CheckedColumn<'_>>], rows: usize) -> Vec<u32> {
        let truths = self.condition.evaluate(columns, rows);
        let rows = truths.iter().enumerate().filter(|(_, truth)| **truth == Truth::False);
        rows.map(|(row, _)| row as u32).collect()
    }
}

/// Checks what is common to the rules of a table.
pub(crate) fn check_rules(checks: &[Check]) -> Result<()> {
    if checks.len() > CHECKS_MAX {
        let count = checks.len();
        return Err(Error::Invalid(format!(
            "a table has at most {CHECKS_MAX} checks, not {count}"
        )));
    }
    let mut names: Vec<String> =
        checks.iter().filter_map(|check| Some(check.name.as_ref()?.to_lowercase())).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::Invalid(format!("constraint {} is named twice", pair[0]))),
        None => Ok(()),
    }
}

/// What a rule asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    Compare {
        left: Operand,
        comparison: Comparison,
        right: Operand,
    },
    Between {
        operand: Operand,
        low: Operand,
        high: Operand,
    },
    /// Literals that are all of the operand's type.
    In {
        operand: Operand,
        list: Vec<Operand>,
    },
    Like {
        column: usize,
        pattern: String,
        like: Like,
    },
    IsNull(usize),
    /// Number of a BOOLEAN column that stands by itself as a condition.
    IsTrue(usize),
}

impl Condition {
    fn add_columns(&self, out: &mut Vec<usize>) {
        let mut add = |column: usize| {
            if !out.contains(&column) {
                out.push(column);
            }
        };
        match self {
            Condition::And(parts) | Condition::Or(parts) => {
                parts.iter().for_each(|part| part.add_columns(out));
            }
            Condition::Not(part) => part.add_columns(out),
            Condition::Compare { left, right, .. } => {
                left.column().into_iter().chain(right.column()).for_each(add);
            }
            Condition::Between { operand, low, high } => {
                [operand, low, high].into_iter().filter_map(Operand::column).for_each(add);
            }
            Condition::In { operand, .. } => operand.column().into_iter().for_each(add),
            Condition::Like { column, .. }
            | Condition::IsNull(column)
            | Condition::IsTrue(column) => add(*column),
        }
    }
}

/// Sign between the two sides of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Something that is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A column; its numbers are multiplied to have the digits after the point of the other side.
    Column { column: usize, form: Form },
    /// The characters of a text.
    Length { column: usize, factor: i128 },
    /// A literal of a type; its number is multiplied too.
    Literal { value: Value, data_type: DataType, form: Form },
}

impl Operand {
    pub(crate) fn column(&self) -> Option<usize> {
        match self {
            Operand::Column { column, .. } | Operand::Length { column, .. } => Some(*column),
            Operand::Literal { .. } => None,
        }
    }
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As a number, multiplied.
    Exact(i128),
    /// As a float; both zeros are the same, NaN is above all.
    Real,
    /// As a float of 64 bits.
    Double,
    /// By its bytes, as text and binary are ordered.
    Bytes,
}

#[cfg(test)]
mod tests;
