//! Rules of a table, asked of the rows of a fragment.
//!
//! ```text
//!   chunk -> rows -> rules -> no row is left out:   a fragment
//!                          -> rows are left out:    the chunk is parsed again without them; they are rejects
//! ```
//!
//! Cost: nothing where a table has no rules; see [`Check`]; a second pass over chunks that have rejects.

use std::sync::Arc;

use coload_ddl::{Check, CheckedColumn, Schema};
use coload_page::SymbolEncoder;
use coload_source::{LeftOut, Told, told_bytes};
use coload_transform::{Fragment, TemporaryDictionary};
use coload_types::{DataType, Result, Value};

use crate::fragment_values::FragmentValues;

/// The rules of a table.
#[derive(Debug)]
pub struct Checks {
    checks: Vec<Check>,
    /// Columns that some rule looks at.
    used: Vec<usize>,
    columns: Vec<(String, DataType)>,
}

impl Checks {
    /// The rules of a schema, if it has any.
    pub fn new(schema: &Schema) -> Option<Self> {
        let checks = schema.checks().to_vec();
        let used = |column: &usize| checks.iter().any(|check| check.columns().contains(column));
        let used = (0..schema.len()).filter(used).collect();
        let columns = schema.columns().iter().map(|c| (c.name.clone(), c.data_type)).collect();
        (!checks.is_empty()).then_some(Checks { checks, used, columns })
    }

    /// The rows that break a rule, in order, and the first rule that each breaks. `dictionary` gives the
    /// dictionary of a column's codes, `encoder` the symbols of its pages.
    ///
    /// # Errors
    /// `Corrupt` when a page of the fragment does not add up.
    pub fn broken<'a>(
        &self,
        fragment: &'a Fragment,
        dictionary: impl Fn(usize) -> Option<&'a TemporaryDictionary>,
        encoder: impl Fn(usize) -> Option<&'a SymbolEncoder>,
    ) -> Result<Vec<LeftOut>> {
        let values = FragmentValues::new(fragment, &self.used, dictionary, encoder)?;
        let views = values.views();
        let rows = fragment.rows as usize;
        let mut broken: Vec<(u32, usize)> = Vec::new();
        for (number, check) in self.checks.iter().enumerate() {
            broken.extend(check.broken(&views, rows).into_iter().map(|row| (row, number)));
        }
        broken.sort_unstable();
        broken.dedup_by_key(|(row, _)| *row);
        Ok(broken.into_iter().map(|(row, number)| self.tell(row, number, &views)).collect())
    }

    fn tell(&self, row: u32, number: usize, views: &[Option<CheckedColumn<'_>>]) -> LeftOut {
        let check = &self.checks[number];
        let column = check.columns().first().copied();
        let value = column.and_then(|c| views[c]).and_then(|view| view.get(row as usize));
        let shown = |(value, column): (Value, usize)| {
            let value = match value {
                Value::Bytes(bytes) => Value::Bytes(told_bytes(&bytes).into()),
                number => number,
            };
            value.display(self.columns[column].1)
        };
        let value = value.zip(column).map(shown);
        let told = Told {
            column: column.map(|c| self.columns[c].0.clone()),
            reason: format!("breaks {}", check.sql()),
            advice: "--max-rejects N to set such records aside".to_owned(),
            value: value.unwrap_or_default().into_bytes(),
        };
        LeftOut { row: u64::from(row), told: Arc::new(told) }
    }
}
