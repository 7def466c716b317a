//! How many rows the pages of rows in another order have, and which of them are made at once.
//!
//! Pages are the same in all columns, and those of the widest one should have few MiB: where its values are long the bytes of each row
//! are known before, as rows that are long may stand beside each other in the new order.

use std::ops::Range;

use coload_page::bitpack::BLOCK;
use coload_types::Result;

use super::gather::GivenColumns;

/// Most rows of a page of a segment.
pub(super) const SEGMENT_PAGE_ROWS_MAX: u64 = 1 << 16;
/// Bytes that the pages of a column should have at most.
const PAGE_BYTES: u64 = 4 << 20;
/// Bytes of a value on average from which on the bytes of each are asked for. Pages of shorter ones have thousands of rows, which are as
/// long as those of others.
const LONG_BYTES: u64 = 256;
/// Share of the memory that the texts of a pass may take; there are the pages that are made of them, too, and those that are written.
const PASS_SHARE: u64 = 6;

/// The pages of rows in another order.
#[derive(Debug)]
pub(super) struct NewPages {
    /// Rows of each.
    pub rows: Vec<u32>,
    /// Those of which long columns are made at once, one range after the other.
    pub passes: Vec<Range<usize>>,
}

impl NewPages {
    /// Pages of so many rows, all made at once.
    pub fn of_rows(rows: &[u32]) -> Self {
        let all = std::iter::once(0..rows.len());
        let passes = all.filter(|pages| !pages.is_empty()).collect();
        NewPages { rows: rows.to_vec(), passes }
    }

    /// Pages for some rows of columns: whole blocks of rows, or fewer, and no page over [`PAGE_BYTES`] by more than a row.
    ///
    /// # Errors
    /// `Corrupt` when a column is not what was written.
    pub fn cut(
        given: &impl GivenColumns,
        rows: &[u32],
        (rows_max, memory): (u64, u64),
    ) -> Result<Self> {
        let (mut widest, mut long) = (0, None);
        for column in 0..given.width() {
            let (bytes, of_rows) = given.bytes(column)?;
            let of_row = bytes.div_ceil(of_rows.max(1));
            widest = widest.max(of_row);
            if of_row >= LONG_BYTES {
                let lengths = given.lengths(column)?;
                match &mut long {
                    None => long = Some(lengths),
                    Some(long) => {
                        long.iter_mut().zip(lengths).for_each(|(a, b)| *a = (*a).max(b));
                    }
                }
            }
        }
        let bytes_of = |row: u32| match &long {
            Some(lengths) => lengths.get(row as usize).copied().map_or(widest, u64::from),
            None => widest,
        };
        Ok(Self::of(rows.len(), rows_max, memory / PASS_SHARE, |place| bytes_of(rows[place])))
    }

    /// Pages for so many rows, of whose bytes a call tells.
    fn of(
        rows: usize,
        rows_max: u64,
        pass_bytes: u64,
        bytes_of: impl Fn(usize) -> u64,
    ) -> NewPages {
        let mut pages = NewPages { rows: Vec::new(), passes: Vec::new() };
        let (mut pass, mut of_pass, mut next) = (0, 0, 0);
        while next < rows {
            let (first, mut bytes) = (next, 0);
            while next < rows && ((next - first) as u64) < rows_max {
                let more = bytes_of(next);
                if next > first && bytes + more > PAGE_BYTES {
                    break;
                }
                bytes += more;
                next += 1;
            }
            let blocks = (next - first) / BLOCK * BLOCK;
            if next < rows && blocks > 0 {
                bytes = bytes * blocks as u64 / (next - first) as u64;
                next = first + blocks;
            }
            let page = pages.rows.len();
            if page > pass && of_pass + bytes > pass_bytes {
                pages.passes.push(pass..page);
                (pass, of_pass) = (page, 0);
            }
            of_pass += bytes;
            pages.rows.push((next - first) as u32);
        }
        if pass < pages.rows.len() {
            pages.passes.push(pass..pages.rows.len());
        }
        pages
    }

    /// The places of the rows of some pages.
    pub fn places(&self, pages: Range<usize>) -> Range<usize> {
        let rows = |pages: &[u32]| pages.iter().map(|rows| *rows as usize).sum::<usize>();
        let start = rows(&self.rows[..pages.start]);
        start..start + rows(&self.rows[pages])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_few_mib_wherever_the_long_rows_stand() {
        const MIB: u64 = 1 << 20;
        let short = NewPages::of(200_000, SEGMENT_PAGE_ROWS_MAX, MIB, |_| 1);
        assert_eq!(short.rows, [65_536, 65_536, 65_536, 3_392]);
        assert_eq!((short.passes.len(), short.passes.last()), (1, Some(&(0..4))));
        // 4 MiB are 4,194 rows of 1,000 bytes, of which whole blocks are taken.
        let even = NewPages::of(10_000, SEGMENT_PAGE_ROWS_MAX, 9 * MIB, |_| 1000);
        assert_eq!(even.rows, [4_096, 4_096, 1_808]);
        assert_eq!(even.passes, [0..2, 2..3]);
        assert_eq!(even.places(1..3), 4_096..10_000);
        let long = NewPages::of(5, SEGMENT_PAGE_ROWS_MAX, 7 * MIB, |_| 3 * MIB);
        assert_eq!((long.rows, long.passes), (vec![1; 5], vec![0..2, 2..4, 4..5]));
        let beside = |place: usize| if (2_000..2_009).contains(&place) { 2 * MIB } else { 100 };
        let beside = NewPages::of(4_000, SEGMENT_PAGE_ROWS_MAX, MIB, beside);
        assert_eq!(beside.rows, [1_024, 977, 2, 2, 2, 2, 1_991]);
        assert_eq!(beside.passes.len(), 7);
        let none = NewPages::of(0, SEGMENT_PAGE_ROWS_MAX, MIB, |_| 1);
        assert!(none.rows.is_empty() && none.passes.is_empty());
    }
}
