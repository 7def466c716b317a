//! Rows of a row group that nobody wants, as the file itself says.
//!
//! ```text
//!   bounds of the row group   -> none of it
//!   Bloom filters             -> none of it, where rows have to have one of some values
//!   bounds of its pages       -> ranges of rows; pages of any column that have none of them are not decompressed
//! ```
//!
//! Where something is not told, or not in a way that is known, all is read.

use std::ops::Range;

use coload_arrow::{Body, Fault};
use coload_parquet::{ColumnHints, PageHint, RowGroup, Stored, ValueBounds};
use coload_types::{DataType, Value};

use super::input::{FieldRead, FieldsRead};
use crate::typed::Asked;
use crate::wanted::{WantedRows, bound_of_value, value_of_bound, value_of_text_bound};

/// Most values that are looked for in a Bloom filter: of more, one is found by chance.
const VALUES_MAX: usize = 32;

type Result<T> = std::result::Result<T, Fault>;

/// A column that rows are tested by.
struct Tested<'a> {
    stored: &'a Stored,
    /// Number of its column chunk among those that are read.
    chunk: usize,
    /// Its number among those that are read, and its type.
    column: usize,
    data_type: DataType,
}

/// What is asked of the rows of a file.
pub struct Pruning<'a> {
    test: WantedRows,
    columns: Vec<Tested<'a>>,
    /// Where the footer starts.
    end: u64,
}

impl<'a> Pruning<'a> {
    /// The tests of a load by the columns that it reads; `None` where there are none of columns that files say something of.
    pub fn new(
        test: WantedRows,
        asked: Asked<'_>,
        fields: &'a FieldsRead,
        end: u64,
    ) -> Option<Self> {
        let all = asked.request.read_schema().columns().iter();
        let all = fields.of_column.iter().zip(all).enumerate();
        let columns = all.filter_map(|(column, (field, of_read))| {
            let FieldRead { stored, chunk, nested } = field.as_ref()?;
            // Bounds of a leaf are none of its list.
            let is_tested = nested.is_none() && test.asks(column);
            let tested = Tested { stored, chunk: *chunk, column, data_type: of_read.data_type };
            is_tested.then_some(tested)
        });
        let columns: Vec<Tested<'a>> = columns.collect();
        (!columns.is_empty()).then_some(Pruning { test, columns, end })
    }

    /// Parts of the file that [`Self::rows`] looks at.
    pub fn parts(&self, group: &RowGroup) -> Vec<Range<u64>> {
        let of = |tested: &Tested<'_>| {
            let hints = &group.hints[tested.chunk];
            let mut parts = Vec::new();
            if hints.has_page_index(self.end) {
                parts.extend([hints.column_index, hints.offset_index]);
            }
            if self.hashes(tested, hints).is_some() {
                parts.push(hints.bloom);
            }
            parts.into_iter().map(|part| part.start..(part.start + part.bytes).min(self.end))
        };
        self.columns.iter().flat_map(of).filter(|part| !part.is_empty()).collect()
    }

    /// Whether the bounds of a row group say that none of its rows is wanted.
    pub fn is_unwanted(&self, group: &RowGroup) -> bool {
        let is_unwanted = |tested: &Tested<'_>| {
            let bounds = group.hints[tested.chunk].bounds.as_ref();
            bounds.is_some_and(|bounds| !self.may_pass(tested, bounds))
        };
        self.columns.iter().any(is_unwanted)
    }

    /// The ranges of rows that may be wanted, in order.
    ///
    /// # Errors
    /// Those of reading.
    pub fn rows(&self, group: &RowGroup, body: &dyn Body) -> Result<Vec<Range<u64>>> {
        for tested in &self.columns {
            let hints = &group.hints[tested.chunk];
            if let Some(hashes) = self.hashes(tested, hints)
                && !hints.may_have(&hashes, self.end, body)?
            {
                return Ok(Vec::new());
            }
        }
        let all = 0..group.rows;
        let mut rows = vec![all];
        for tested in &self.columns {
            let hints = &group.hints[tested.chunk];
            if hints.has_page_index(self.end)
                && let Some(pages) = hints.pages(group.rows, body)?
            {
                let wanted = |page: &PageHint| match &page.bounds {
                    // No test that is asked passes NULL.
                    _ if page.is_null => false,
                    Some(bounds) => self.may_pass(tested, bounds),
                    None => true,
                };
                rows = intersection(&rows, &wanted_rows(&pages, group.rows, wanted));
            }
        }
        Ok(rows)
    }

    fn may_pass(&self, tested: &Tested<'_>, bounds: &ValueBounds) -> bool {
        let Tested { stored, data_type, column, .. } = tested;
        let values = match bounds {
            ValueBounds::Ints(least, greatest) => {
                let value = |bound| value_of_bound(&stored.values, bound, *data_type);
                value(*least).zip(value(*greatest))
            }
            ValueBounds::Texts(least, greatest) => {
                let value = |bound| value_of_text_bound(&stored.values, bound, *data_type);
                value(least).zip(value(greatest))
            }
        };
        values.is_none_or(|(least, greatest)| self.test.may_pass(*column, &least, &greatest))
    }

    /// The hashes of the values of which a row has to have one, if the column chunk has a Bloom filter of such.
    fn hashes(&self, tested: &Tested<'_>, hints: &ColumnHints) -> Option<Vec<u64>> {
        if hints.bloom.start == 0 {
            return None;
        }
        let values = self.test.one_of(tested.column)?;
        let Tested { stored, data_type, .. } = tested;
        let mut hashes = Vec::with_capacity(values.len());
        for value in values {
            let is_told = match value {
                Value::Bytes(text) => {
                    value_of_text_bound(&stored.values, text, *data_type)?;
                    hints.push_hash_of_text(text, &mut hashes)
                }
                value => match bound_of_value(&stored.values, value, *data_type)? {
                    Some(value) => hints.push_hash_of_int(value, &mut hashes),
                    // No row of the file has it.
                    None => true,
                },
            };
            if !is_told {
                return None;
            }
        }
        (hashes.len() <= VALUES_MAX).then_some(hashes)
    }
}

/// The rows of pages that are wanted.
fn wanted_rows(
    pages: &[PageHint],
    rows: u64,
    is_wanted: impl Fn(&PageHint) -> bool,
) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    for (number, page) in pages.iter().enumerate() {
        let end = pages.get(number + 1).map_or(rows, |next| next.first_row);
        if !is_wanted(page) {
            continue;
        }
        match found.last_mut() {
            Some(last) if last.end == page.first_row => last.end = end,
            _ => found.push(page.first_row..end),
        }
    }
    found
}

/// The parts of ranges that are in ranges of the other side too; both rise.
pub fn intersection(one: &[Range<u64>], other: &[Range<u64>]) -> Vec<Range<u64>> {
    let (mut a, mut b) = (one.iter().peekable(), other.iter().peekable());
    let mut found = Vec::new();
    while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
        let both = left.start.max(right.start)..left.end.min(right.end);
        if !both.is_empty() {
            found.push(both);
        }
        if left.end <= right.end {
            a.next()
        } else {
            b.next()
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_that_both_have() {
        let both = intersection(&[0..10, 20..30, 40..50], &[5..25, 28..29, 30..41, 49..60]);
        assert_eq!(both, [5..10, 20..25, 28..29, 40..41, 49..50]);
        assert_eq!(intersection(&both, &[]), []);
    }

    #[test]
    fn pages_that_follow_each_other_are_one_range() {
        let page = |first_row| PageHint { first_row, is_null: false, bounds: None };
        let pages = [0, 3, 5, 9].map(page);
        let found = wanted_rows(&pages, 12, |page| page.first_row != 5);
        assert_eq!(found, [0..5, 9..12]);
    }
}
