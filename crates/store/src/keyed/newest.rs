//! Which of two rows with the same key is newer, by the value of a column.

use std::ops::Range;

use coload_ddl::Schema;
use coload_types::{Plain, Result, Value};

use super::keys::{Float, float};
use crate::SegmentFile;

/// A column of a segment, read forwards.
pub(crate) struct NewestColumn<'a> {
    segment: &'a SegmentFile,
    column: usize,
    float: Option<Float>,
    /// The page that was read last, and its rows.
    page: Plain,
    rows: Range<u64>,
    next: usize,
}

impl<'a> NewestColumn<'a> {
    pub fn new(segment: &'a SegmentFile, schema: &Schema, column: usize) -> Self {
        let page = Plain::empty(segment.physical(column));
        NewestColumn { segment, column, float: float(schema, column), page, rows: 0..0, next: 0 }
    }

    /// What a row is compared by; rows are asked for in ascending order. NULL is the least.
    pub fn get(&mut self, row: u64) -> Result<Option<Value>> {
        while row >= self.rows.end {
            let Some(rows) = self.segment.page_rows().get(self.next) else { return Ok(None) };
            self.rows = self.rows.end..self.rows.end + u64::from(*rows);
            if self.rows.contains(&row) {
                self.page = Plain::empty(self.segment.physical(self.column));
                self.segment.decode_page(self.column, self.next, &mut self.page)?;
                self.segment.check()?;
            }
            self.next += 1;
        }
        let index = row.checked_sub(self.rows.start).map(|index| index as usize);
        let value = index.and_then(|index| self.page.get(index));
        Ok(value.map(|value| newness(value, self.float)))
    }
}

/// A value as it is compared.
pub(crate) fn newness(value: Value, float: Option<Float>) -> Value {
    match (value, float) {
        (Value::Int(stored), Some(float)) => Value::Int(float.key_of(stored)),
        (value, _) => value,
    }
}
