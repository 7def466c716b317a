//! Rows of a chunk that are left out when it is parsed again: what is wrong with them is known only when
//! they are rows.

use std::sync::Arc;

use super::{BadRecord, ChunkParser, Place, RejectedRecord, RejectedValue, leave_out, raw_record};
use crate::column::{BadField, Mark};
use crate::field::FieldError;
use crate::rows::Rows;
use crate::tokenise::Seen;

/// What is wrong with a row, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The column at fault, if it is one.
    pub column: Option<String>,
    /// Value at fault, as the text of a reject has it.
    pub value: Vec<u8>,
    /// What is wrong, to follow the value.
    pub reason: String,
    /// What the user can do about it, as messages say it.
    pub advice: String,
}

/// A row that is to be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its number in the chunk, counted as if none were left out.
    pub row: u64,
    /// What is wrong with the row.
    pub told: Arc<Told>,
}

/// Rows to leave out of a chunk.
#[derive(Debug, Default)]
pub(super) struct LeavingOut {
    /// Rows that are left out, the last one first.
    rows: Vec<LeftOut>,
    done: u64,
}

impl LeavingOut {
    /// Whether one of the next `count` rows after `kept` is left out.
    pub fn is_among(&self, kept: usize, count: usize) -> bool {
        self.rows.last().is_some_and(|next| next.row < kept as u64 + self.done + count as u64)
    }
}

impl ChunkParser {
    /// Leaves rows out of the chunk that is parsed next, which has been parsed before; they are in order.
    pub fn leave_out(&mut self, mut rows: Vec<LeftOut>) {
        rows.reverse();
        self.leaving_out = LeavingOut { rows, done: 0 };
    }

    /// Rejects the rows that are left out, and reads the records again without them.
    pub(super) fn read_without(
        &mut self,
        rows: &Rows<'_>,
        seen: &Seen,
        marks: Vec<Mark>,
        places: Vec<Place>,
    ) {
        for (parser, mark) in self.columns.iter_mut().zip(marks) {
            parser.truncate(mark);
            parser.mark_stale();
        }
        let first = self.rows as u64 + self.leaving_out.done;
        let mut bad = Vec::new();
        while self.leaving_out.is_among(self.rows, rows.count)
            && let Some(LeftOut { row, told }) = self.leaving_out.rows.pop()
        {
            let row = (row - first) as usize;
            let Place { line, offset } = places[row];
            self.rejects.push(RejectedRecord {
                value: RejectedValue::apart(&told.value),
                reason: BadRecord::Told(told),
                line: self.lines + line,
                offset,
                raw: raw_record(rows, row).to_vec(),
            });
            bad.push(BadField { row, column: 0, error: FieldError::Null });
        }
        self.leaving_out.done += bad.len() as u64;
        let kept = leave_out(rows, &bad, &places);
        let left = Rows { text: &kept.text, ends: &kept.ends, count: kept.places.len(), ..*rows };
        self.read_regular(&left, seen, &|| kept.places.clone());
    }
}
