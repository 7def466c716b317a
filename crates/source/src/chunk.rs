//! Reads the records of a chunk, window after window, into a fragment and rejects.
//!
//! ```text
//!   window of text  ->  positions of separators  ->  records  ->  columns, one after the other
//! ```
//!
//! A window is small enough to stay in the second-level cache from the first look at its bytes to
//! the last. A bad record is data, not an error: it is told with its place, and the window is read
//! again without it.
//!
//! Nothing here does I/O.

mod careful;
mod json;
mod kept;
mod left_out;
mod rejected;
mod stopwatch;
mod window;

use coload_transform::{Fragment, TemporaryDictionary};
use coload_types::Result;

pub use careful::{MENDED_TOLD_MAX, Mended, Mending};
use json::JsonParser;
use kept::{Kept, Place, leave_out, places, raw_record};
use left_out::LeavingOut;
pub use left_out::{LeftOut, Told};
pub use rejected::{BadRecord, RejectedRecord, RejectedValue, VALUE_BYTES_MAX, told_bytes};
use stopwatch::Stopwatch;
pub use window::{Consumed, LastWindow, Window};

use crate::column::{BadField, ColumnParser};
use crate::dialect::{InvalidBytes, Quotes};
use crate::lexicon::{BLOCK_ROWS, Changes, LookUp, TooManyValues};
use crate::rows::Rows;
use crate::rules::{Escaped, RecordRules, Trailing};
use crate::tokenise::{Seen, tokenise};

/// Which fields of the records of an input the columns are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFields {
    /// Fields of a record.
    pub count: usize,
    /// For each column its field, from 0; `None` where the input lacks it.
    pub of_column: Vec<Option<usize>>,
}

/// Time spent, in units of the caller's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ParseTime {
    /// Finding separators and checking the shape of records.
    pub tokenise: u64,
    /// Fields to codes and values.
    pub convert: u64,
}

/// Reads chunks of one partition, one after the other.
#[derive(Debug)]
pub struct ChunkParser {
    rules: RecordRules,
    columns: Vec<ColumnParser>,
    ends: Vec<u32>,
    changes: Changes,
    look_up: LookUp,
    rows: usize,
    lines: u64,
    bad: Vec<BadField>,
    rejects: Vec<RejectedRecord>,
    mended: Mended,
    leaving_out: LeavingOut,
    /// Reads windows, where they are JSON.
    json: Option<Box<JsonParser>>,
    /// Columns that left codes since the last fragment.
    plain_now: Vec<usize>,
    time: ParseTime,
    clock: Stopwatch,
}

impl ChunkParser {
    /// A parser with a column parser for each column; `clock` measures the steps.
    pub fn new(rules: RecordRules, columns: Vec<ColumnParser>, clock: fn() -> u64) -> Self {
        let json = rules.json.as_ref().map(|json| Box::new(JsonParser::new(json, &columns)));
        ChunkParser {
            json,
            rules,
            columns,
            ends: Vec::new(),
            changes: Changes::default(),
            look_up: LookUp::default(),
            rows: 0,
            lines: 0,
            bad: Vec::new(),
            rejects: Vec::new(),
            mended: Mended::default(),
            leaving_out: LeavingOut::default(),
            plain_now: Vec::new(),
            time: ParseTime::default(),
            clock: Stopwatch::new(clock),
        }
    }

    /// The column parsers, to change their plans or take their lexicons.
    pub fn columns_mut(&mut self) -> &mut Vec<ColumnParser> {
        &mut self.columns
    }

    /// Says which fields of the next records the columns are; called between pieces.
    ///
    /// # Panics
    /// When there are not as many as columns.
    pub fn read_fields(&mut self, fields: &InputFields) {
        assert_eq!(fields.of_column.len(), self.columns.len());
        self.rules.fields = fields.count;
        for (parser, field) in self.columns.iter_mut().zip(&fields.of_column) {
            parser.set_field(*field);
        }
        if let Some(json) = &mut self.json {
            json.read_for(&self.columns);
        }
    }

    /// The values that the codes of a column stand for.
    pub fn dictionary(&self, column: usize) -> &TemporaryDictionary {
        self.columns[column].dictionary()
    }

    /// Rows of the fragment so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether its text is JSON.
    pub fn is_json(&self) -> bool {
        self.rules.json.is_some()
    }

    /// Columns that met too many values for codes since this was last asked.
    pub fn take_plain_now(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.plain_now)
    }

    /// Steps' time since this was last asked.
    pub fn take_time(&mut self) -> ParseTime {
        std::mem::take(&mut self.time)
    }

    /// Reads the whole records of a window.
    pub fn parse_window(&mut self, window: &Window<'_>) -> Consumed {
        self.clock.next(window.end - window.start);
        if let Some(json) = self.json.take() {
            return self.parse_json(json, window);
        }
        let escaped = self.rules.escaped_in(&window.text[window.start..window.end]);
        if self.rules.is_exotic() || escaped == Escaped::Separators {
            return self.parse_carefully(window);
        }
        let started = self.clock.start();
        let before = window.start - 1;
        self.ends.clear();
        self.ends.push(before as u32);
        let mut separators = self.rules.separators;
        if self.rules.outside_escape.is_some() {
            // No escape has a separator behind it.
            separators.escape = None;
        }
        let mut seen = tokenise(window.text, window.start, window.end, separators, &mut self.ends);
        // Fields are not what they stand for, as in quotes.
        seen.quote |= escaped == Escaped::Others;
        let cut = self.cut(window);
        self.time.tokenise += self.clock.since(started);
        let Cut { ends, consumed } = cut;
        // One look at all is much less than one at each field. Fields end where characters do, unless what ends them can be
        // a part of one.
        let is_utf8 =
            || simdutf8::basic::from_utf8(&window.text[window.start..consumed.end]).is_ok();
        let cuts = [Some(separators.delimiter), separators.quote, separators.escape];
        let cuts_between = cuts.iter().flatten().all(u8::is_ascii);
        seen.doubtful_utf8 = seen.doubtful_utf8 && !(cuts_between && is_utf8());
        if self.rules.is_forgiving() && !self.is_clean(window, &seen, ends, consumed) {
            return self.parse_carefully(window);
        }
        if ends > 1 {
            self.ends.truncate(ends);
            self.read_records(window, &seen, consumed.end);
        }
        if consumed.short && window.last == LastWindow::Yes && consumed.end < window.end {
            return self.reject_open_quote(window, consumed.end);
        }
        consumed
    }

    /// Whether all policies come to the same in a window of `ends` separators.
    fn is_clean(&self, window: &Window<'_>, seen: &Seen, ends: usize, consumed: Consumed) -> bool {
        if seen.strays || consumed.short || self.rules.comment.is_some() {
            return false;
        }
        let replace = self.rules.policies.invalid_bytes == InvalidBytes::Replace;
        if replace && seen.doubtful_utf8 {
            return false;
        }
        let text = &window.text[window.start..consumed.end];
        if self.rules.policies.quotes == Quotes::Lenient
            && seen.quote
            && self.has_return_after_quote(text)
        {
            return false;
        }
        let stride = self.rules.fields_written() as usize;
        let rows = Rows {
            text: window.text,
            ends: &self.ends[..ends],
            stride,
            count: (ends - 1) / stride,
            fields: self.rules.fields,
        };
        is_regular(&rows, None)
    }

    /// Whether a carriage return that ends no line follows a quote: the tokeniser does not tell that from
    /// a stray quote.
    fn has_return_after_quote(&self, text: &[u8]) -> bool {
        let Some(quote) = self.rules.separators.quote else { return false };
        memchr::memmem::find_iter(text, &[quote, b'\r']).any(|at| text.get(at + 2) != Some(&b'\n'))
    }

    /// Finds the last whole record of the chunk in the window.
    fn cut(&self, window: &Window<'_>) -> Cut {
        let is_newline = |p: u32| window.text[p as usize] == b'\n';
        // The first record that ends at the limit or later is the chunk's last.
        let from = self.ends.partition_point(|p| (*p as usize) + 1 < window.limit).max(1);
        if let Some(last) =
            self.ends[from.min(self.ends.len())..].iter().position(|p| is_newline(*p))
        {
            let count = from + last + 1;
            let end = self.ends[count - 1] as usize + 1;
            return Cut { ends: count, consumed: Consumed { end, done: true, short: false } };
        }
        match self.ends[1..].iter().rposition(|p| is_newline(*p)) {
            Some(last) => {
                let count = last + 2;
                let end = self.ends[count - 1] as usize + 1;
                let done = window.last == LastWindow::Yes && end == window.end;
                Cut {
                    ends: count,
                    consumed: Consumed { end, done, short: !done && end == window.start },
                }
            }
            None => Cut {
                ends: 1,
                consumed: Consumed {
                    end: window.start,
                    done: window.start == window.end,
                    short: window.start < window.end,
                },
            },
        }
    }

    fn reject_open_quote(&mut self, window: &Window<'_>, start: usize) -> Consumed {
        let raw = &window.text[start..window.end];
        self.rejects.push(RejectedRecord {
            reason: BadRecord::OpenQuote,
            line: self.lines,
            offset: window.offset + (start - window.start) as u64,
            value: RejectedValue::NONE,
            raw: raw.strip_suffix(b"\n").unwrap_or(raw).to_vec(),
        });
        self.lines += count_newlines(raw);
        Consumed { end: window.end, done: true, short: false }
    }

    /// Reads the records whose separators are in `ends`, up to byte `end`.
    fn read_records(&mut self, window: &Window<'_>, seen: &Seen, end: usize) {
        let started = self.clock.start();
        let ends = std::mem::take(&mut self.ends);
        let stride = self.rules.fields + usize::from(self.rules.trailing == Trailing::Delimiter);
        let records = (ends.len() - 1) / stride;
        let rows = Rows {
            text: window.text,
            ends: &ends,
            stride,
            count: records,
            fields: self.rules.fields,
        };
        let lines = if seen.quote {
            count_newlines(&window.text[window.start..end])
        } else {
            records as u64
        };
        // Separators past the last record of the chunk may hold newlines; then all are looked at.
        let newlines = (seen.newlines == records).then_some(records);
        if self.rules.comment.is_none() && is_regular(&rows, newlines) {
            self.time.tokenise += self.clock.since(started);
            self.read_regular(&rows, seen, &|| places(&rows, window));
            self.lines += lines;
        } else {
            let kept = self.sort_out(window, &ends);
            self.time.tokenise += self.clock.since(started);
            let rows = Rows {
                text: &kept.text,
                ends: &kept.ends,
                stride,
                count: kept.places.len(),
                fields: self.rules.fields,
            };
            self.read_regular(&rows, seen, &|| kept.places.clone());
            self.lines += count_newlines(&window.text[window.start..end]);
        }
        self.ends = ends;
    }

    /// The fields of columns that are read from what changes.
    fn changing(&self) -> Vec<usize> {
        let columns = self.columns.iter().filter(|parser| parser.reads_changes());
        columns.filter_map(ColumnParser::field).collect()
    }

    /// Reads records that have the right number of fields; those with bad fields are rejected, and
    /// the rest is read again without them. `places` says where the records stand, if need be.
    fn read_regular(&mut self, rows: &Rows<'_>, seen: &Seen, places: &dyn Fn() -> Vec<Place>) {
        if rows.count == 0 {
            return;
        }
        let started = self.clock.start();
        self.columns.iter_mut().for_each(|column| column.weigh_symbols(rows));
        let marks: Vec<_> = self.columns.iter().map(ColumnParser::mark).collect();
        let mut bad = std::mem::take(&mut self.bad);
        bad.clear();
        let mut changing = self.changing();
        for first in (0..rows.count).step_by(BLOCK_ROWS) {
            let block = rows.part(first, BLOCK_ROWS.min(rows.count - first));
            let bad_before = bad.len();
            self.changes.collect(&block, &changing);
            let mut too_many = false;
            let mut slot = 0;
            for (column, parser) in self.columns.iter_mut().enumerate() {
                let (field, bad_before) = (parser.field(), bad.len());
                let parsed = match field {
                    Some(field) if parser.reads_changes() => {
                        slot += 1;
                        let changes = self.changes.of(slot - 1);
                        let look_up = &mut self.look_up;
                        parser.parse_changes(&block, field, seen, changes, look_up, &mut bad)
                    }
                    Some(field) => parser.parse(&block, field, seen, &mut bad),
                    None => parser.push_absent(block.count),
                };
                if parsed == Err(TooManyValues) {
                    parser.leave_codes();
                    self.plain_now.push(column);
                    too_many = true;
                    let again = match field {
                        Some(field) => parser.parse(&block, field, seen, &mut bad),
                        None => parser.push_absent(block.count),
                    };
                    debug_assert_eq!(again, Ok(()));
                }
                bad[bad_before..].iter_mut().for_each(|b| b.column = column);
            }
            for b in &mut bad[bad_before..] {
                b.row += first;
            }
            if too_many {
                changing = self.changing();
            }
        }
        self.time.convert += self.clock.since(started);
        if bad.is_empty() && self.leaving_out.is_among(self.rows, rows.count) {
            self.read_without(rows, seen, marks, places());
        } else if bad.is_empty() {
            self.rows += rows.count;
        } else {
            bad.sort_by_key(|b| (b.row, b.column));
            bad.dedup_by_key(|b| b.row);
            for (parser, mark) in self.columns.iter_mut().zip(marks) {
                parser.truncate(mark);
                parser.mark_stale();
            }
            let places = places();
            for b in &bad {
                let Place { line, offset } = places[b.row];
                let parser = &self.columns[b.column];
                self.rejects.push(RejectedRecord {
                    reason: BadRecord::Field { column: b.column, error: b.error },
                    line: self.lines + line,
                    offset,
                    value: match parser.field() {
                        Some(field) => parser.shown(rows, b.row, field),
                        None => RejectedValue::NONE,
                    },
                    raw: raw_record(rows, b.row).to_vec(),
                });
            }
            let kept = leave_out(rows, &bad, &places);
            let left =
                Rows { text: &kept.text, ends: &kept.ends, count: kept.places.len(), ..*rows };
            self.read_regular(&left, seen, &|| kept.places.clone());
        }
        self.bad = bad;
    }

    /// Copies the records that have the right number of fields; rejects the others, and passes over
    /// empty lines (unless there is one column) and comments.
    fn sort_out(&mut self, window: &Window<'_>, ends: &[u32]) -> Kept {
        let mut kept = Kept::new();
        let mut first = 1;
        let mut line = 0;
        for at in 1..ends.len() {
            if window.text[ends[at] as usize] != b'\n' {
                continue;
            }
            let record = &ends[first - 1..=at];
            first = at + 1;
            let start = record[0].wrapping_add(1) as usize;
            let raw = &window.text[start..ends[at] as usize];
            let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
            let place = Place { line, offset: window.offset + (start - window.start) as u64 };
            line += 1 + if self.rules.separators.quote.is_some() { count_newlines(raw) } else { 0 };
            let is_comment = self.rules.comment.is_some_and(|c| raw.first() == Some(&c));
            let reason = if is_comment && raw.contains(&b'\n') {
                // A quote in the comment took the lines that follow with it: not silently.
                BadRecord::OpenQuote
            } else if is_comment
                || raw.is_empty() && self.rules.fields > 1
                || kept.push(window.text, record, &self.rules, place)
            {
                continue;
            } else {
                BadRecord::FieldCount { found: record.len() - 1 }
            };
            self.rejects.push(RejectedRecord {
                reason,
                line: self.lines + place.line,
                offset: place.offset,
                value: RejectedValue::NONE,
                raw: raw.to_vec(),
            });
        }
        kept.finish();
        kept
    }

    /// Ends a piece of the chunk: its rejects in order, and the newlines it spans. Lines are counted
    /// from here on for the next piece, which may be of another input.
    pub fn end_piece(&mut self) -> (Vec<RejectedRecord>, u64) {
        self.begin_between(coload_json::Between::default(), true);
        let mut rejects = std::mem::take(&mut self.rejects);
        rejects.sort_by_key(|r| r.offset);
        (rejects, std::mem::take(&mut self.lines))
    }

    /// The records that were mended since this was last asked; asked before a piece ends.
    pub fn take_mended(&mut self) -> Mended {
        std::mem::take(&mut self.mended)
    }

    /// Ends the fragment and gives its columns; its pieces have ended.
    ///
    /// # Errors
    /// `Limit` when one column's text is over 4 GiB.
    pub fn finish(&mut self, dictionary: u32) -> Result<Fragment> {
        assert!(self.rejects.is_empty(), "rejects of a piece that has not ended");
        self.leaving_out = LeavingOut::default();
        self.clock.next(usize::MAX);
        let started = self.clock.start();
        let columns =
            self.columns.iter_mut().map(|c| c.finish(dictionary)).collect::<Result<Vec<_>>>()?;
        self.time.convert += self.clock.since(started);
        Ok(Fragment { rows: std::mem::take(&mut self.rows) as u32, columns })
    }
}

/// Records of the start of a partition, from which its columns are planned.
#[derive(Debug)]
pub struct Sample {
    kept: Kept,
    rules: RecordRules,
}

impl Sample {
    /// Takes the whole records of a window that have the right number of fields.
    pub fn new(window: &Window<'_>, rules: RecordRules) -> Self {
        let mut parser = ChunkParser::new(rules.clone(), Vec::new(), || 0);
        if rules.json.is_some() {
            return Sample { kept: parser.sort_out_json(window), rules };
        }
        if rules.is_exotic() {
            return Sample { kept: parser.sort_out_carefully(window), rules };
        }
        let mut ends = vec![window.start as u32 - 1];
        tokenise(window.text, window.start, window.end, rules.separators, &mut ends);
        Sample { kept: parser.sort_out(window, &ends), rules }
    }

    /// The records that were kept, with where their fields stand.
    pub fn rows(&self) -> Rows<'_> {
        let exotic = self.rules.is_exotic() || self.rules.json.is_some();
        let written = self.rules.fields_written() as usize;
        Rows {
            text: &self.kept.text,
            ends: &self.kept.ends,
            stride: if exotic { self.rules.fields } else { written },
            count: self.kept.places.len(),
            fields: self.rules.fields,
        }
    }
}

struct Cut {
    /// How many of `ends` belong to the records to read.
    ends: usize,
    consumed: Consumed,
}

/// Whether each record has as many separators as the next, its last one a newline; `newlines` says
/// how many there are, if known.
fn is_regular(rows: &Rows<'_>, newlines: Option<usize>) -> bool {
    let stride = rows.stride;
    if rows.ends.len() - 1 != rows.count * stride {
        return false;
    }
    let is_newline = |p: &u32| rows.text[*p as usize] == b'\n';
    let mut records = rows.ends[1..].chunks_exact(stride);
    if !records.clone().all(|r| is_newline(&r[stride - 1])) {
        return false;
    }
    if rows.fields < stride && !records.clone().all(|r| trailing_is_empty(rows.text, r)) {
        return false;
    }
    newlines == Some(rows.count) || !records.any(|r| r[..stride - 1].iter().any(is_newline))
}

fn trailing_is_empty(text: &[u8], record: &[u32]) -> bool {
    let (delimiter, newline) =
        (record[record.len() - 2] as usize, record[record.len() - 1] as usize);
    newline == delimiter + 1 || newline == delimiter + 2 && text[delimiter + 1] == b'\r'
}

fn count_newlines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}
