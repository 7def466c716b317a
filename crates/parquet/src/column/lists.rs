//! Pages of lists.
//!
//! ```text
//!   rows              NULL  []  [7, NULL]
//!   levels of lists   0     0   0  1        0 where a row begins
//!   levels            0     1   3  2        3 a value, 2 a NULL element, 1 an empty list, 0 NULL; one less where NOT NULL
//!   values            7
//! ```

use coload_types::{ElementType, Plain, Result, Values, elements_onto};
use parquet::basic::Encoding;

use super::ColumnPages;
use crate::pages::{Bounds, DataPage, push_levels};

/// The highest level of what repeats once.
const REPEATED: u32 = 1;

impl ColumnPages<'_, '_> {
    /// Puts a page of rows of lists. Bounds are none: readers have no order of lists.
    pub(super) fn put_lists(
        &mut self,
        element: ElementType,
        plain: &Plain,
        (first, end): (usize, usize),
    ) -> Result<()> {
        let Values::Bytes(lists) = &plain.values else { return Ok(()) };
        let base = u32::from(self.nullable);
        let mut of_lists = Vec::with_capacity(end - first);
        let mut levels = Vec::with_capacity(end - first);
        let mut items = Plain::empty(element.data_type().physical());
        let mut null_rows = 0;
        for row in first..end {
            of_lists.push(0);
            if plain.is_null(row) {
                null_rows += 1;
                levels.push(0);
                continue;
            }
            let at = items.len();
            let count = elements_onto(lists.get(row), element, &mut items)?;
            if count == 0 {
                levels.push(base);
                continue;
            }
            of_lists.extend(std::iter::repeat_n(REPEATED, count - 1));
            levels.extend((at..at + count).map(|item| base + 2 - u32::from(items.is_null(item))));
        }
        self.count(end - first, null_rows)?;
        let mut body = Vec::new();
        push_levels(&of_lists, REPEATED, &mut body);
        push_levels(&levels, base + 2, &mut body);
        let values = (0..items.len()).filter(|item| !items.is_null(*item));
        self.form.push_values(&items.values, values, &mut body);
        self.sums.plain_pages += 1;
        let present = items.len() - items.null_count();
        self.pages.put_data(DataPage {
            rows: end - first,
            entries: levels.len(),
            nulls: levels.len() - present,
            encoding: Encoding::PLAIN,
            body,
            bounds: Bounds::Unknown,
        })
    }
}
