//! The first and the last value of columns, from which the order of segments is told. A segment does not change, so they are kept
//! for the next statement, but for long texts.

use coload_types::{Result, Value};

use super::SegmentFile;
use crate::keyed::value_of_row;

/// The value of a column in the first row and in the last.
pub(super) type Ends = [Option<Value>; 2];

impl SegmentFile {
    /// The values of the first and of the last row in these columns; `None` when there are no rows.
    ///
    /// # Errors
    /// `Corrupt` when the segment is not what was written.
    pub fn end_values(&self, columns: &[usize]) -> Result<Option<[Vec<Option<Value>>; 2]>> {
        let Some(last) = self.rows().checked_sub(1) else { return Ok(None) };
        let mut ends = [Vec::with_capacity(columns.len()), Vec::with_capacity(columns.len())];
        for column in columns {
            let of_column = self.ends_of(*column, last)?;
            ends.iter_mut().zip(of_column).for_each(|(row, value)| row.push(value));
        }
        Ok(Some(ends))
    }

    fn ends_of(&self, column: usize, last: u64) -> Result<Ends> {
        /// Bytes of values that are kept.
        const KEPT_BYTES_MAX: usize = 1 << 10;
        let kept = &self.column(column)?.ends;
        if let Some(known) = kept.get() {
            return Ok(known.clone());
        }
        let ends = [value_of_row(self, column, 0)?, value_of_row(self, column, last)?];
        let bytes_of = |value: &Option<Value>| match value {
            Some(Value::Bytes(bytes)) => bytes.len(),
            _ => 0,
        };
        if ends.iter().map(bytes_of).sum::<usize>() <= KEPT_BYTES_MAX {
            let _ = kept.set(ends.clone());
        }
        Ok(ends)
    }
}
