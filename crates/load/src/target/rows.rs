//! Targets that take rows: databases, which store them in their own way, and statements that read files in place.
//!
//! ```text
//!   fragment parsed -> make_rows   codes and plain values to what the target wants, by the worker that has them in its cache
//!            verified -> take_ahead  as AheadColumn::Rows
//! ```
//!
//! Nothing is sorted, merged or compressed for such a target. Columns with few values come with the codes that the parser
//! gave them, so that what stands for a value is made once a fragment; others come as they are.

use std::any::Any;
use std::fmt::Debug;

use coload_ddl::CheckedColumn;
use coload_source::LeftOut;
use coload_types::{Error, Result};

/// Rows of a fragment in the form of their target, which is the only one that knows it.
pub trait MadeRows: Any + Debug + Send {
    /// Number of rows that it was made of; a target may want fewer of them.
    fn count(&self) -> usize;
}

impl MadeRows for RowBytes {
    fn count(&self) -> usize {
        self.len()
    }
}

/// Rows one after the other, as they are sent.
///
/// Shape: row `i` is `bytes[ends[i - 1]..ends[i]]`, with `ends[-1] = 0`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowBytes {
    /// Bytes of all rows.
    pub bytes: Vec<u8>,
    /// Where each row ends.
    pub ends: Vec<usize>,
}

impl RowBytes {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of the rows from one to before another.
    ///
    /// # Panics
    /// When there are not so many rows.
    pub fn slice(&self, rows: std::ops::Range<usize>) -> &[u8] {
        let end = |rows: usize| if rows == 0 { 0 } else { self.ends[rows - 1] };
        &self.bytes[end(rows.start)..end(rows.end)]
    }
}

/// The rows of a fragment as their target made them, and what they were.
#[derive(Debug)]
pub struct FragmentRows<R = Box<dyn MadeRows>> {
    /// Number of the chunk: the same in all passes over the same inputs.
    pub chunk: usize,
    /// The rows.
    pub rows: R,
    /// What they were in the chunk.
    pub numbers: RowNumbers,
}

impl FragmentRows {
    /// The same with the rows in the form that the target made them in.
    ///
    /// # Errors
    /// `Corrupt` when another target made them.
    pub fn into_form<R: MadeRows>(self) -> Result<FragmentRows<R>> {
        let FragmentRows { chunk, rows, numbers } = self;
        let rows: Box<dyn Any> = rows;
        match rows.downcast::<R>() {
            Ok(rows) => Ok(FragmentRows { chunk, rows: *rows, numbers }),
            Err(_) => {
                Err(Error::Corrupt("rows of a fragment in the form of another target".into()))
            }
        }
    }
}

/// Which rows of a chunk the rows of its fragment are.
#[derive(Debug, Default)]
pub struct RowNumbers {
    /// Those that a filter kept; all if `None`.
    pub kept: Option<Vec<u32>>,
    /// Rows that were left out before, counted as if none were.
    pub left_out: Vec<LeftOut>,
}

impl RowNumbers {
    /// Rows to leave out of the chunk: those that were, and these of the fragment, in order.
    pub fn with_refused(&self, refused: Vec<LeftOut>) -> Vec<LeftOut> {
        let mut all = self.left_out.clone();
        let kept = |row: u64| self.kept.as_ref().map_or(row, |kept| u64::from(kept[row as usize]));
        let of_chunk =
            refused.into_iter().map(|LeftOut { row, told }| LeftOut { row: kept(row), told });
        add_left_out(&mut all, of_chunk.collect());
        all
    }
}

/// Takes rows. Called by all workers.
pub trait TakesRows: Sync {
    /// Makes the rows of a fragment, of its columns in the order of the table.
    ///
    /// # Errors
    /// What ends the load.
    fn make_rows(&self, columns: &[CheckedColumn<'_>], rows: usize) -> Result<Box<dyn MadeRows>>;

    /// The same, for a target whose rows depend on where they stand: `chunk` has the same number in all passes.
    ///
    /// # Errors
    /// What ends the load.
    fn make_rows_of(
        &self,
        _chunk: usize,
        columns: &[CheckedColumn<'_>],
        rows: usize,
    ) -> Result<Box<dyn MadeRows>> {
        self.make_rows(columns, rows)
    }

    /// Rows of a chunk to leave out, which the target refused in an earlier pass.
    fn left_out(&self, chunk: usize) -> Vec<LeftOut>;

    /// The columns by whose values it tells rows of a chunk that it refuses; `None` when it refuses none.
    fn refuses_by(&self, _chunk: usize) -> Option<&[usize]> {
        None
    }

    /// The rows that it refuses of a chunk that has so many, in order.
    ///
    /// # Errors
    /// What ends the load.
    fn refuse(
        &self,
        _chunk: usize,
        _rows: u32,
        _columns: &[Option<CheckedColumn<'_>>],
    ) -> Result<Vec<LeftOut>> {
        Ok(Vec::new())
    }
}

/// Adds rows of a chunk that was parsed without those that are known already.
pub fn add_left_out(known: &mut Vec<LeftOut>, rows: Vec<LeftOut>) {
    let (mut at, mut all) = (0, Vec::with_capacity(known.len() + rows.len()));
    for mut row in rows {
        // As many stood before it as were left out before it.
        row.row += at as u64;
        while let Some(before) = known.get(at)
            && before.row <= row.row
        {
            all.push(before.clone());
            (at, row.row) = (at + 1, row.row + 1);
        }
        all.push(row);
    }
    all.extend_from_slice(&known[at..]);
    *known = all;
}

#[cfg(test)]
mod tests {
    use coload_source::Told;

    use super::*;

    fn left_out(row: u64) -> LeftOut {
        let told =
            Told { column: None, value: Vec::new(), reason: String::new(), advice: String::new() };
        LeftOut { row, told: told.into() }
    }

    /// The rows of a chunk that are left, by their numbers, as a parser and a filter leave them.
    fn rows_left(chunk: u64, numbers: &RowNumbers) -> Vec<u64> {
        let out = |row: &u64| numbers.left_out.iter().any(|left_out| left_out.row == *row);
        let read: Vec<u64> = (0..chunk).filter(|row| !out(row)).collect();
        match &numbers.kept {
            None => read,
            Some(kept) => kept.iter().map(|row| read[*row as usize]).collect(),
        }
    }

    #[test]
    fn refused_rows_are_those_of_the_chunk_whatever_was_left_out_before() {
        for before in [vec![], vec![0], vec![1, 2], vec![0, 3, 9]] {
            for kept in [None, Some(vec![0, 1, 2, 3, 5]), Some(vec![1, 4, 6])] {
                let left_out_before: Vec<LeftOut> = before.iter().copied().map(left_out).collect();
                let numbers = RowNumbers { kept, left_out: left_out_before };
                let rows = rows_left(10, &numbers);
                for refused in [vec![0], vec![1, 2], vec![0, 2], vec![2]] {
                    let mut expected: Vec<u64> = before
                        .iter()
                        .copied()
                        .chain(refused.iter().map(|row| rows[*row]))
                        .collect();
                    expected.sort_unstable();
                    let all = numbers
                        .with_refused(refused.iter().map(|row| left_out(*row as u64)).collect());
                    let found: Vec<u64> = all.iter().map(|left_out| left_out.row).collect();
                    assert_eq!(found, expected, "{numbers:?} {refused:?}");
                }
            }
        }
    }

    #[test]
    fn rows_are_sliced_by_their_ends() {
        let rows = RowBytes { bytes: b"abcdef".to_vec(), ends: vec![1, 1, 4, 6] };
        assert_eq!(
            [rows.slice(0..1), rows.slice(1..2), rows.slice(2..4)],
            [&b"a"[..], b"", b"bcdef"]
        );
    }
}
