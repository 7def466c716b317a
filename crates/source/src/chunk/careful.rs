//! Windows that the tokeniser cannot read: records one at a time, made regular, then read like the
//! others.
//!
//! ```text
//!   window  ->  careful records  ->  policies  ->  a copy with as many fields in each  ->  columns
//! ```

use std::borrow::Cow;

use super::{
    BadRecord, ChunkParser, Consumed, Kept, LastWindow, Place, RejectedRecord, RejectedValue,
    Window,
};
use crate::careful::{
    CarefulField, CarefulRecord, Fault, FieldForm, Reading, field_text, read_record,
};
use crate::dialect::{InvalidBytes, Ragged};
use crate::rows::Rows;
use crate::rules::{RecordRules, Trailing};
use crate::tokenise::Seen;

/// Mended records of a kind that are told with their place.
pub const MENDED_TOLD_MAX: usize = 10;

/// What was done to a record so that it could become a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mending {
    /// Missing fields were added.
    Padded,
    /// Empty fields too many were left out.
    Trimmed,
    /// Fields too many were left out; they held something.
    Truncated,
    /// Stray quotes were taken for text.
    Requoted,
    /// Bytes that are not UTF-8 were replaced.
    Replaced,
}

impl Mending {
    /// All kinds of mending that there are.
    pub const ALL: [Mending; 5] = [
        Mending::Padded,
        Mending::Trimmed,
        Mending::Truncated,
        Mending::Requoted,
        Mending::Replaced,
    ];
}

/// Records that were mended: how many of each kind, and where the first of them are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mended {
    counts: [u64; Mending::ALL.len()],
    /// Kind, newlines of the piece before the record, and its offset in the input; at most ten of a
    /// kind.
    pub first: Vec<(Mending, u64, u64)>,
}

impl Mended {
    /// So many records of each kind, and the places of the first of them.
    pub fn new(counts: [u64; Mending::ALL.len()], first: Vec<(Mending, u64, u64)>) -> Self {
        Mended { counts, first }
    }

    /// Records of a kind.
    pub fn count(&self, mending: Mending) -> u64 {
        self.counts[mending as usize]
    }

    /// Adds another part, whose records follow, its lines counted from `line` on.
    pub fn append(&mut self, other: &Mended, line: u64) {
        for mending in Mending::ALL {
            let told = self.count(mending).min(MENDED_TOLD_MAX as u64) as usize;
            let more = other.first.iter().filter(|(kind, ..)| *kind == mending);
            let more = more.take(MENDED_TOLD_MAX - told);
            self.first.extend(more.map(|(kind, at, offset)| (*kind, at + line, *offset)));
            self.counts[mending as usize] += other.count(mending);
        }
    }

    fn add(&mut self, mending: Mending, line: u64, offset: u64) {
        self.counts[mending as usize] += 1;
        if self.count(mending) <= MENDED_TOLD_MAX as u64 {
            self.first.push((mending, line, offset));
        }
    }
}

/// Nothing is known of what the fields hold.
const SEEN_ALL: Seen = Seen {
    doubtful_utf8: true,
    nul: true,
    quote: true,
    newlines: 0,
    open_quote: false,
    strays: true,
};

/// How far a window was read.
#[derive(Debug, Default)]
struct Sorted {
    /// Offset in the input, start and end in the window of each record that was kept.
    spans: Vec<(u64, usize, usize)>,
    /// Kind, line and offset of what was mended.
    mended: Vec<(Mending, u64, u64)>,
    lines: u64,
    end: usize,
}

/// Whether all fields were kept, or what was done to those too many or too few.
enum Fit {
    Whole,
    Mended(Mending),
    Bad,
}

impl ChunkParser {
    /// Reads the whole records of a window one by one.
    pub(super) fn parse_carefully(&mut self, window: &Window<'_>) -> Consumed {
        let started = self.clock.start();
        let mut sorted = Sorted::default();
        let kept = self.copy_regular(window, &mut sorted);
        self.time.tokenise += self.clock.since(started);
        let rows = Rows {
            text: &kept.text,
            ends: &kept.ends,
            stride: self.rules.fields,
            count: kept.places.len(),
            fields: self.rules.fields,
        };
        let rejects = self.rejects.len();
        self.read_regular(&rows, &SEEN_ALL, &|| kept.places.clone());
        let rejected = &mut self.rejects[rejects..];
        for reject in rejected.iter_mut() {
            let found = sorted.spans.binary_search_by_key(&reject.offset, |(offset, ..)| *offset);
            if let Ok(found) = found {
                let (_, start, end) = sorted.spans[found];
                reject.set_raw(&window.text[start..end]);
            }
        }
        let mut offsets: Vec<u64> = rejected.iter().map(|reject| reject.offset).collect();
        offsets.sort_unstable();
        for (mending, line, offset) in sorted.mended {
            // What was mended in vain is told by its reject.
            if offsets.binary_search(&offset).is_err() {
                self.mended.add(mending, line, offset);
            }
        }
        self.lines += sorted.lines;
        let at = sorted.end;
        let done = at >= window.limit || window.last == LastWindow::Yes && at == window.end;
        Consumed { end: at, done, short: !done && at == window.start }
    }

    /// The records of a sample.
    pub(super) fn sort_out_carefully(&mut self, window: &Window<'_>) -> Kept {
        self.copy_regular(window, &mut Sorted::default())
    }

    /// Copies the records that can be rows in regular form; rejects the others.
    fn copy_regular(&mut self, window: &Window<'_>, sorted: &mut Sorted) -> Kept {
        let last = window.last == LastWindow::Yes;
        let text = &window.text[..window.end];
        let mut kept = Kept::new();
        let mut record = CarefulRecord::default();
        let mut at = window.start;
        while at < window.end.min(window.limit) {
            let read = read_record(text, at, last, &self.rules, &mut record);
            if read == Reading::NeedsMore {
                break;
            }
            let offset = window.offset + (at - window.start) as u64;
            let place = Place { line: sorted.lines, offset };
            let raw = &text[at..record.end];
            match self.take(text, &mut record, raw, place, &mut kept, &mut sorted.mended) {
                None => sorted.spans.push((offset, at, at + raw.len())),
                Some(Ok(())) => {}
                Some(Err(reason)) => self.rejects.push(RejectedRecord {
                    reason,
                    line: self.lines + place.line,
                    offset,
                    value: RejectedValue::NONE,
                    raw: raw.to_vec(),
                }),
            }
            sorted.lines += record.lines;
            at = record.next;
        }
        sorted.end = at;
        kept.finish();
        kept
    }

    /// Keeps a record (`None`), passes over it, or says what is wrong.
    fn take(
        &self,
        text: &[u8],
        record: &mut CarefulRecord,
        raw: &[u8],
        place: Place,
        kept: &mut Kept,
        mended: &mut Vec<(Mending, u64, u64)>,
    ) -> Option<Result<(), BadRecord>> {
        if record.comment || raw.is_empty() && self.rules.fields > 1 {
            return Some(Ok(()));
        }
        if record.fault == Fault::Open {
            return Some(Err(BadRecord::OpenQuote));
        }
        let found = record.fields.len();
        let line = self.lines + place.line;
        match fit(&mut record.fields, &self.rules) {
            Fit::Whole => {}
            // Where its fields end is in doubt, so none is left out and none added.
            Fit::Mended(_) if record.fault == Fault::Stray => {
                return Some(Err(BadRecord::FieldCount { found }));
            }
            Fit::Mended(mending) => mended.push((mending, line, place.offset)),
            Fit::Bad => return Some(Err(BadRecord::FieldCount { found })),
        }
        if record.fields.iter().any(|f| f.form != FieldForm::Regular) {
            mended.push((Mending::Requoted, line, place.offset));
        }
        if kept.push_careful(text, &record.fields, &self.rules, place) {
            mended.push((Mending::Replaced, line, place.offset));
        }
        None
    }
}

/// Makes the number of fields that of the columns, if the rules say so. Missing fields are added
/// when the record is copied.
fn fit(fields: &mut Vec<CarefulField>, rules: &RecordRules) -> Fit {
    let is_empty = |f: &CarefulField| f.start == f.end;
    if rules.trailing == Trailing::Delimiter
        && fields.len() == rules.fields + 1
        && fields.last().is_some_and(is_empty)
    {
        fields.pop();
    }
    if fields.len() == rules.fields {
        return Fit::Whole;
    }
    if rules.policies.ragged == Ragged::Reject {
        return Fit::Bad;
    }
    if fields.len() < rules.fields {
        return Fit::Mended(Mending::Padded);
    }
    let nothing = fields[rules.fields..].iter().all(is_empty);
    if !nothing && rules.policies.ragged == Ragged::Pad {
        return Fit::Bad;
    }
    fields.truncate(rules.fields);
    Fit::Mended(if nothing { Mending::Trimmed } else { Mending::Truncated })
}

impl Kept {
    /// Copies a record in regular form; says whether bytes were replaced.
    fn push_careful(
        &mut self,
        text: &[u8],
        fields: &[CarefulField],
        rules: &RecordRules,
        place: Place,
    ) -> bool {
        let mut replaced = false;
        for index in 0..rules.fields {
            match fields.get(index) {
                None => self.text.extend_from_slice(rules.padding.bytes()),
                Some(field) => replaced |= self.push_field(text, *field, rules),
            }
            if index + 1 == rules.fields && self.text.ends_with(b"\r") {
                // Whoever reads the last field takes one away.
                self.text.push(b'\r');
            }
            self.ends.push(self.text.len() as u32);
            self.text.push(b'\n');
        }
        self.places.push(place);
        replaced
    }

    fn push_field(&mut self, text: &[u8], field: CarefulField, rules: &RecordRules) -> bool {
        let raw = &text[field.start..field.end];
        let replace = rules.policies.invalid_bytes == InvalidBytes::Replace;
        if field.form == FieldForm::Regular {
            let clean = if replace { String::from_utf8_lossy(raw) } else { Cow::Borrowed("") };
            let replaced = matches!(clean, Cow::Owned(_));
            self.text.extend_from_slice(if replaced { clean.as_bytes() } else { raw });
            return replaced;
        }
        let meant = field_text(text, field, rules);
        let clean = if replace { String::from_utf8_lossy(&meant) } else { Cow::Borrowed("") };
        let replaced = matches!(clean, Cow::Owned(_));
        self.push_quoted(if replaced { clean.as_bytes() } else { &meant }, rules);
        replaced
    }

    fn push_quoted(&mut self, text: &[u8], rules: &RecordRules) {
        // Only a dialect with quotes has fields whose quotes went astray.
        let Some(quote) = rules.separators.quote else { return self.text.extend_from_slice(text) };
        self.text.push(quote);
        for byte in text {
            if *byte == quote || rules.separators.escape == Some(*byte) {
                self.text.push(rules.separators.escape.unwrap_or(quote));
            }
            self.text.push(*byte);
        }
        self.text.push(quote);
    }
}
