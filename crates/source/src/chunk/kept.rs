//! Records copied out of a window: all but those that are rejected.

use super::{Window, count_newlines};
use crate::column::BadField;
use crate::rows::Rows;
use crate::rules::{RecordRules, Trailing};
use crate::tokenise::TEXT_PADDING;

/// A record's newlines before it in the chunk's window, and its offset in the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) offset: u64,
}

/// Records copied out of a window.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) text: Vec<u8>,
    pub(super) ends: Vec<u32>,
    pub(super) places: Vec<Place>,
}

impl Kept {
    pub(super) fn new() -> Self {
        Kept { text: vec![b'\n'], ends: vec![0], places: Vec::new() }
    }

    /// Copies a record, whose separators are `record[1..]`, if it has the right number of fields.
    pub(super) fn push(
        &mut self,
        text: &[u8],
        record: &[u32],
        rules: &RecordRules,
        place: Place,
    ) -> bool {
        let start = record[0].wrapping_add(1) as usize;
        let newline = record[record.len() - 1] as usize;
        let found = record.len() - 1;
        let last_is_empty = {
            let last = record[record.len() - 2].wrapping_add(1) as usize;
            matches!(&text[last..newline], b"" | b"\r")
        };
        let trailing = rules.trailing == Trailing::Delimiter;
        let with_delimiter = trailing && found == rules.fields + 1 && last_is_empty;
        if !with_delimiter && found != rules.fields {
            return false;
        }
        let shift = self.text.len() as i64 - start as i64;
        self.text.extend_from_slice(&text[start..=newline]);
        self.ends.extend(record[1..].iter().map(|p| (i64::from(*p) + shift) as u32));
        if trailing && !with_delimiter {
            // Make it like the others: the last field ends where the record ends.
            let end = self.text.len() - 1;
            if self.text[end - 1] == b'\r' {
                self.text[end - 1] = b'\n';
                self.text.truncate(end);
            }
            self.text.push(b'\n');
            let end = self.text.len() as u32 - 2;
            let last = self.ends.len() - 1;
            self.ends[last] = end;
            self.ends.push(end + 1);
        }
        self.places.push(place);
        true
    }

    pub(super) fn finish(&mut self) {
        self.text.extend([0; TEXT_PADDING]);
    }
}

/// Where the records of a window stand.
pub(super) fn places(rows: &Rows<'_>, window: &Window<'_>) -> Vec<Place> {
    let (mut line, mut counted) = (0, window.start);
    let place = |row| {
        let start = rows.start(row);
        line += count_newlines(&window.text[counted..start]);
        counted = start;
        Place { line, offset: window.offset + (start - window.start) as u64 }
    };
    (0..rows.count).map(place).collect()
}

/// Copies all records but the bad ones.
pub(super) fn leave_out(rows: &Rows<'_>, bad: &[BadField], places: &[Place]) -> Kept {
    let mut kept = Kept::new();
    let mut bad = bad.iter().peekable();
    for (row, place) in places.iter().enumerate().take(rows.count) {
        if bad.next_if(|b| b.row == row).is_some() {
            continue;
        }
        let record = &rows.ends[row * rows.stride..=(row + 1) * rows.stride];
        let start = record[0].wrapping_add(1) as usize;
        let shift = kept.text.len() as i64 - start as i64;
        kept.text.extend_from_slice(&rows.text[start..=record[rows.stride] as usize]);
        kept.ends.extend(record[1..].iter().map(|p| (i64::from(*p) + shift) as u32));
        kept.places.push(*place);
    }
    kept.finish();
    kept
}

/// A record's bytes as they stand in the input. One that lacked its trailing delimiter was copied
/// with two newlines.
pub(super) fn raw_record<'a>(rows: &Rows<'a>, row: usize) -> &'a [u8] {
    let record = rows.record(row);
    record.strip_suffix(b"\n").unwrap_or(record)
}
