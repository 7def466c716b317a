//! Provisional codes of the rows of a fragment under construction.
//!
//! Where few fields differ from the one above, the codes of runs are kept with their first rows;
//! else the code of each row. The first block of a fragment decides.

use coload_transform::ProvisionalCodes;

use crate::lexicon::FieldChanges;

/// Codes that are written at once.
const FILL: usize = 4;
/// Runs are kept when the rows are at least so many times as many.
const ROWS_PER_RUN: usize = 3;

/// Codes of rows or of runs.
#[derive(Debug, Default)]
pub(crate) struct RowCodes {
    rows: usize,
    codes: Vec<u16>,
    /// First row of each run; empty when codes are of rows.
    starts: Vec<u32>,
    is_runs: bool,
}

impl RowCodes {
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Gets ready for the codes of a block.
    pub(crate) fn begin_block(&mut self, changes: &FieldChanges<'_>, rows: usize) -> Block<'_> {
        if self.rows == 0 {
            self.is_runs = changes.rows.len() * ROWS_PER_RUN < rows;
        }
        let first = self.codes.len();
        let row = self.rows as u32;
        if self.is_runs {
            self.codes.resize(first + changes.rows.len() + 1, 0);
            self.starts.resize(first + changes.rows.len() + 1, 0);
        } else {
            self.codes.resize(first + rows + FILL, 0);
        }
        self.rows += rows;
        Block { to: self, first, row, runs: first }
    }

    /// Appends rows of one code.
    pub(crate) fn push_run(&mut self, code: u16, rows: usize) {
        if self.rows == 0 {
            self.is_runs = rows > ROWS_PER_RUN;
        }
        match self.is_runs {
            true if self.codes.last() == Some(&code) => {}
            true => {
                self.codes.push(code);
                self.starts.push(self.rows as u32);
            }
            false => self.codes.resize(self.rows + rows, code),
        }
        self.rows += rows;
    }

    /// Goes back to `rows` rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        let kept = match self.is_runs {
            true => self.starts.partition_point(|s| (*s as usize) < rows),
            false => rows,
        };
        self.codes.truncate(kept);
        self.starts.truncate(kept);
        self.rows = self.rows.min(rows);
    }

    /// The code of each row.
    pub(crate) fn each(&self) -> Vec<u16> {
        if !self.is_runs {
            return self.codes.clone();
        }
        let ends = self.starts.iter().skip(1).map(|s| *s as usize).chain([self.rows]);
        let mut each = Vec::with_capacity(self.rows);
        self.codes.iter().zip(ends).for_each(|(code, end)| each.resize(end, *code));
        each
    }

    /// The codes in the form in which they wait; `distinct` values are in their dictionary.
    pub(crate) fn finish(&self, distinct: usize) -> ProvisionalCodes {
        match self.is_runs {
            true => {
                ProvisionalCodes::of_runs(&self.codes, &self.starts, self.rows as u32, distinct)
            }
            false => ProvisionalCodes::new(&self.codes, distinct),
        }
    }
}

/// Where the codes of a block's changed fields go.
pub(crate) struct Block<'a> {
    to: &'a mut RowCodes,
    /// Codes when the block began.
    first: usize,
    /// Row of the block's first record.
    row: u32,
    /// Runs that the block has made so far.
    runs: usize,
}

impl Block<'_> {
    /// Takes the codes of the next changed fields, in these records of the block; the next after them
    /// is in record `next`.
    #[inline(always)]
    pub(crate) fn extend(&mut self, codes: &[u16], records: &[u16], next: usize) {
        if self.to.is_runs {
            self.extend_runs(codes, records);
        } else {
            self.extend_rows(codes, records, next);
        }
    }

    #[inline(always)]
    fn extend_runs(&mut self, codes: &[u16], records: &[u16]) {
        let mut runs = self.runs;
        // No code is as large.
        let mut last = runs.checked_sub(1).map_or(u32::MAX, |at| u32::from(self.to.codes[at]));
        let places = self.to.codes.len().min(self.to.starts.len());
        assert!(runs + codes.len() < places);
        for (code, record) in codes.iter().zip(records) {
            // SAFETY: there are places for all codes given, as checked above.
            unsafe {
                *self.to.codes.get_unchecked_mut(runs) = *code;
                *self.to.starts.get_unchecked_mut(runs) = self.row + u32::from(*record);
            }
            // Two texts may be one value, and the first field of a block may be as the last before.
            runs += usize::from(u32::from(*code) != last);
            last = u32::from(*code);
        }
        self.runs = runs;
    }

    #[inline(always)]
    fn extend_rows(&mut self, codes: &[u16], records: &[u16], next: usize) {
        let out = &mut self.to.codes[self.first..];
        let first = usize::from(records[0]);
        if next - first == codes.len() {
            out[first..next].copy_from_slice(codes);
            return;
        }
        let ends = records[1..].iter().map(|r| usize::from(*r)).chain([next]);
        for ((record, code), end) in records.iter().zip(codes).zip(ends) {
            let row = usize::from(*record);
            out[row..row + FILL].copy_from_slice(&[*code; FILL]);
            if end - row > FILL {
                out[row + FILL..end].fill(*code);
            }
        }
    }

    /// Ends the block: what it had room for and did not write is cut off.
    pub(crate) fn finish(self) {
        match self.to.is_runs {
            true => {
                self.to.codes.truncate(self.runs);
                self.to.starts.truncate(self.runs);
            }
            false => self.to.codes.truncate(self.to.rows),
        }
    }
}
