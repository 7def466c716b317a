//! Windows of JSON: each record is written as a row of fields, and these are read like those of any text.
//!
//! ```text
//!   window  ->  where records end  ->  rows of fields, with the place of each record  ->  columns
//! ```

use std::sync::Arc;

use coload_json::{
    Between, Fault, Item, Items, LineBreaks, ListItem, ListReader, Read, RowReader,
    Rows as JsonRows, Rule, Splitter, path_at,
};
use coload_types::Physical;

use super::{
    BadRecord, ChunkParser, Consumed, Kept, LastWindow, Place, RejectedRecord, RejectedValue, Told,
    Window, count_newlines,
};
use crate::column::ColumnParser;
use crate::column_rules::TypeOrigin;
use crate::json::{JsonForm, JsonRules, tell_fault, told_value};
use crate::rows::Rows;
use crate::tokenise::{Seen, TEXT_PADDING};

/// Room for rows that is kept from window to window.
const ROOM_BYTES_MAX: usize = 4 << 20;
/// Bytes of records that are told of the rejects of a window. A record of many items may have as many rejects, each with all
/// that stands beside the list; of more the items are told alone.
const TOLD_RECORDS_BYTES_MAX: usize = 64 << 20;

/// Rows that are read beyond which a window ends early: a record may have many.
const ROWS_BYTES_MAX: usize = 8 << 20;

/// What reads a record.
#[derive(Debug)]
enum Reader {
    /// As a row.
    Records(Box<RowReader>),
    /// As a row for each item of a list.
    Lists(Box<ListReader>, Items),
}

impl Reader {
    fn new(rules: &JsonRules) -> Self {
        // Rules were checked when they were made.
        let lists = rules.unnest.as_ref();
        let lists = lists.and_then(|list| ListReader::new(&rules.keys, list, rules.unknown).ok());
        match lists {
            Some(lists) => Reader::Lists(Box::new(lists), Items::default()),
            None => {
                Reader::Records(Box::new(RowReader::new(Arc::clone(&rules.keys), rules.unknown)))
            }
        }
    }

    fn read_as(&mut self, field: usize, read: Read) {
        match self {
            Reader::Records(reader) => reader.read_as(field, read),
            Reader::Lists(reader, _) => reader.read_as(field, read),
        }
    }
}

/// Where the record of a row stands in the window.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// Offset in the input by which the row is known.
    offset: u64,
    record: (usize, usize),
    /// The list and the item of it that is the row.
    item: Option<((usize, usize), (usize, usize))>,
}

impl Span {
    /// The record, as if its list were the item; or the item alone, where more than `left` bytes would be told.
    fn raw(&self, text: &[u8], left: &mut usize) -> Vec<u8> {
        let record = self.record;
        let Some((list, item)) = self.item else { return text[record.0..record.1].to_vec() };
        let beside = list.0 - record.0 + (record.1 - list.1);
        match left.checked_sub(beside) {
            Some(rest) => {
                *left = rest;
                [&text[record.0..list.0], &text[item.0..item.1], &text[list.1..record.1]].concat()
            }
            None => text[item.0..item.1].to_vec(),
        }
    }
}

/// What reads windows of JSON.
#[derive(Debug)]
pub(super) struct JsonParser {
    rules: Arc<JsonRules>,
    reader: Reader,
    rows: JsonRows,
    /// What stands before the next window.
    between: Between,
    /// Whether the input ends with the piece.
    is_last: bool,
    /// Where each row stands.
    spans: Vec<Span>,
    places: Vec<Place>,
}

impl JsonParser {
    pub(super) fn new(rules: &Arc<JsonRules>, columns: &[ColumnParser]) -> Self {
        let reader = Reader::new(rules);
        let mut parser = JsonParser {
            rules: Arc::clone(rules),
            reader,
            rows: JsonRows::default(),
            between: Between::default(),
            is_last: true,
            spans: Vec::new(),
            places: Vec::new(),
        };
        if !columns.is_empty() {
            parser.read_for(columns);
        }
        parser
    }

    /// Fields are read as their columns take them; those of no column are not.
    pub(super) fn read_for(&mut self, columns: &[ColumnParser]) {
        for field in 0..self.rules.keys.paths().len() {
            self.reader.read_as(field, Read::Nothing);
        }
        for column in columns {
            let rules = column.rules();
            let read = match (rules.data_type.physical(), rules.origin) {
                (Physical::Bytes, _) | (_, TypeOrigin::Declared) => Read::Text,
                _ if tells_strings(rules.data_type) => Read::Text,
                _ => Read::Typed,
            };
            if let Some(field) = rules.field {
                self.reader.read_as(field, read);
            }
        }
    }
}

/// Whether values of a type are written as strings.
fn tells_strings(data_type: coload_types::DataType) -> bool {
    use coload_types::DataType::{Date, Time, Timestamp, TimestampTz, Uuid};
    matches!(data_type, Date | Time | Timestamp | TimestampTz | Uuid)
}

/// What was met in a window.
struct Met<'a> {
    parser: &'a mut JsonParser,
    rejects: Vec<RejectedRecord>,
    /// Bytes of records that may still be told of items.
    told_left: usize,
    window: &'a Window<'a>,
    is_utf8: bool,
    /// Up to where newlines are counted, and how many there are; and those of windows before.
    counted: usize,
    line: u64,
    lines_before: u64,
}

impl ChunkParser {
    /// Says what stands before the next piece, of documents of JSON, and whether its input ends with it.
    pub fn begin_between(&mut self, between: Between, is_last: bool) {
        if let Some(json) = &mut self.json {
            (json.between, json.is_last) = (between, is_last);
        }
    }

    /// Reads the whole records of a window of JSON.
    pub(super) fn parse_json(
        &mut self,
        mut json: Box<JsonParser>,
        window: &Window<'_>,
    ) -> Consumed {
        let started = self.clock.start();
        let (end, lines, rejects) = read_window(&mut json, window, self.lines);
        self.rejects.extend(rejects);
        self.time.tokenise += self.clock.since(started);
        let places = std::mem::take(&mut json.places);
        json.rows.text.extend([0; TEXT_PADDING]);
        let seen = Seen {
            quote: json.rows.has_quotes,
            nul: json.rows.has_nul,
            newlines: places.len(),
            ..Seen::default()
        };
        let rows = Rows {
            text: &json.rows.text,
            ends: &json.rows.ends,
            stride: self.rules.fields,
            count: places.len(),
            fields: self.rules.fields,
        };
        let (rejects, mut left) = (self.rejects.len(), TOLD_RECORDS_BYTES_MAX);
        self.read_regular(&rows, &seen, &|| places.clone());
        for reject in &mut self.rejects[rejects..] {
            let found = json.spans.binary_search_by_key(&reject.offset, |span| span.offset);
            if let Ok(found) = found {
                reject.set_raw(&json.spans[found].raw(window.text, &mut left));
            }
        }
        self.lines += lines;
        json.places = places;
        self.json = Some(json);
        let done = end >= window.limit || window.last == LastWindow::Yes && end == window.end;
        Consumed { end, done, short: !done && end == window.start }
    }

    /// The records of a sample; where they begin is not known for sure.
    pub(super) fn sort_out_json(&mut self, window: &Window<'_>) -> Kept {
        let mut kept = Kept::new();
        if let Some(mut json) = self.json.take() {
            read_window(&mut json, window, 0);
            kept.text = std::mem::take(&mut json.rows.text);
            kept.ends = std::mem::take(&mut json.rows.ends);
            kept.places = std::mem::take(&mut json.places);
        }
        kept.finish();
        kept
    }
}

/// Writes the rows of a window; up to where it was read, newlines before that, and what is no row.
fn read_window(
    parser: &mut JsonParser,
    window: &Window<'_>,
    lines_before: u64,
) -> (usize, u64, Vec<RejectedRecord>) {
    parser.rows.clear(ROOM_BYTES_MAX);
    parser.spans.clear();
    parser.places.clear();
    let text = &window.text[window.start..window.end];
    let form = parser.rules.form;
    let mut met = Met {
        parser,
        rejects: Vec::new(),
        told_left: TOLD_RECORDS_BYTES_MAX,
        window,
        is_utf8: simdutf8::basic::from_utf8(text).is_ok(),
        counted: window.start,
        line: 0,
        lines_before,
    };
    let end = match form {
        JsonForm::Lines => met.read_lines(),
        JsonForm::Documents => met.read_documents(),
    };
    if form == JsonForm::Documents {
        met.count_to(end);
    }
    (end, met.line, met.rejects)
}

impl Met<'_> {
    /// Reads each line; where the first one begins that is not read.
    fn read_lines(&mut self) -> usize {
        let window = self.window;
        let text = window.text;
        let Some(last) = memchr::memrchr(b'\n', &text[window.start..window.end]) else {
            return window.start;
        };
        let stop = (window.start + last + 1).min(window.limit);
        let mut at = window.start;
        while at < stop && !self.is_full() {
            let first = skip_blanks(text, at);
            if text[first] == b'\n' {
                at = first + 1;
                self.line += 1;
                continue;
            }
            let before = self.before();
            let read = self.read_record(first, LineBreaks::EndRecords);
            let behind = match read {
                Ok(end) => skip_blanks(text, end),
                Err(_) => usize::MAX,
            };
            at = match text.get(behind) {
                Some(b'\n') => behind + 1,
                _ => {
                    let newline = memchr::memchr(b'\n', &text[first..window.end]);
                    let end = newline.map_or(window.end, |newline| first + newline);
                    if let Ok(of) = read {
                        self.take_back(before);
                        self.reject(first, end, Fault::new(Rule::Behind, skip_blanks(text, of)));
                    } else if let Err(fault) = read {
                        let open = text.get(skip_blanks(text, fault.at)) == Some(&b'\n');
                        let rule = if open { Rule::OpenLine } else { fault.rule };
                        self.reject(first, end, Fault::new(rule, fault.at));
                    }
                    end + 1
                }
            };
            self.line += 1;
        }
        at
    }

    /// Reads each document; where the first one begins that is not read.
    fn read_documents(&mut self) -> usize {
        let window = self.window;
        let mut splitter = Splitter {
            text: window.text,
            end: window.end,
            is_last: window.last == LastWindow::Yes && self.parser.is_last,
            at: window.start,
            between: self.parser.between,
        };
        // Pieces of documents end where records do, so that none belongs to the next chunk.
        while !self.is_full() {
            match splitter.next_item() {
                Item::Record { start, end } => {
                    self.count_to(start);
                    let before = self.before();
                    match self.read_record(start, LineBreaks::AreSpace) {
                        Ok(found) if found == end => {}
                        Ok(found) => {
                            self.take_back(before);
                            self.reject(start, end, Fault::new(Rule::NoComma, found));
                        }
                        Err(fault) => self.reject(start, end, fault),
                    }
                }
                Item::Bad { start, end, fault } => {
                    self.count_to(start);
                    self.reject(start, end, fault);
                }
                Item::End | Item::More => break,
            }
        }
        self.parser.between = splitter.between;
        splitter.at
    }

    fn count_to(&mut self, at: usize) {
        self.line += count_newlines(&self.window.text[self.counted..at]);
        self.counted = at;
    }

    /// Whether so many rows were read that the window ends here.
    fn is_full(&self) -> bool {
        self.parser.rows.text.len() > ROWS_BYTES_MAX
    }

    #[inline]
    fn read_record(&mut self, start: usize, breaks: LineBreaks) -> Result<usize, Fault> {
        let JsonParser { reader, rows, .. } = &mut *self.parser;
        let (bytes, ends) = (rows.text.len(), rows.ends.len());
        let end = match reader {
            Reader::Records(reader) => reader.read(self.window.text, start, breaks, rows)?,
            Reader::Lists(reader, items) => {
                reader.read(self.window.text, start, breaks, rows, items)?
            }
        };
        if !self.is_utf8
            && let Err(error) = simdutf8::compat::from_utf8(&self.window.text[start..end])
        {
            rows.text.truncate(bytes);
            rows.ends.truncate(ends);
            return Err(Fault::new(Rule::NotUtf8, start + error.valid_up_to()));
        }
        if let Reader::Lists(_, items) = reader {
            let items = std::mem::take(items);
            self.add_items((start, end), &items, breaks);
            if let Reader::Lists(_, room) = &mut self.parser.reader {
                *room = items;
            }
            return Ok(end);
        }
        let offset = self.offset_of(start);
        self.parser.spans.push(Span { offset, record: (start, end), item: None });
        self.parser.places.push(Place { line: self.line, offset });
        Ok(end)
    }

    /// Takes note of the items of a record: those that are rows, and those that are none.
    fn add_items(&mut self, record: (usize, usize), items: &Items, breaks: LineBreaks) {
        // Of a list that has many of them, the path is found once.
        let mut path_of_list = None;
        for (number, ListItem { start, end, fault }) in items.items.iter().enumerate() {
            if breaks == LineBreaks::AreSpace {
                self.count_to(*start);
            }
            let offset = self.offset_of(*start);
            let item = Some((items.list, (*start, *end)));
            let span = Span { offset, record, item };
            match fault {
                Some(fault) => {
                    let before = record.0..items.list.0;
                    let list = path_of_list.get_or_insert_with(|| {
                        path_at(&self.window.text[before.clone()], before.len().saturating_sub(1))
                    });
                    self.reject_item(span, (list.as_str(), number), *fault);
                }
                None => {
                    self.parser.spans.push(span);
                    self.parser.places.push(Place { line: self.line, offset });
                }
            }
        }
    }

    /// Offset in the input of a place of the window.
    fn offset_of(&self, at: usize) -> u64 {
        self.window.offset + (at - self.window.start) as u64
    }

    /// Rows and rejects so far.
    fn before(&self) -> (usize, usize) {
        (self.parser.spans.len(), self.rejects.len())
    }

    /// Takes the rows and rejects of the last record back.
    fn take_back(&mut self, (count, rejects): (usize, usize)) {
        let JsonParser { rows, spans, places, rules, .. } = &mut *self.parser;
        let fields = rules.keys.paths().len();
        rows.ends.truncate(1 + count * fields);
        rows.text.truncate(rows.ends.last().map_or(0, |end| *end as usize) + 1);
        spans.truncate(count);
        places.truncate(count);
        self.rejects.truncate(rejects);
    }

    /// Rejects an item, by its number in the list at a path.
    #[cold]
    fn reject_item(&mut self, span: Span, (list, number): (&str, usize), fault: Fault) {
        let text = self.window.text;
        let raw = span.raw(text, &mut self.told_left);
        let (start, end) = span.item.map_or(span.record, |(_, item)| item);
        let at = fault.at.clamp(start, end);
        let within = path_at(&text[start..end], at - start);
        let dot = if within.is_empty() || within.starts_with('[') { "" } else { "." };
        let value = told_value(&text[at..span.record.1]);
        self.push_reject(
            &fault,
            (format!("{list}[{number}]{dot}{within}"), value),
            span.offset,
            raw,
        );
    }

    #[cold]
    fn reject(&mut self, start: usize, end: usize, fault: Fault) {
        let text = &self.window.text[..self.window.end];
        let raw = &text[start..end.max(start)];
        let raw = raw.strip_suffix(b"\n").unwrap_or(raw);
        let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
        let told = tell_fault(raw, fault.at.saturating_sub(start), fault.rule);
        let offset = self.window.offset + (start - self.window.start) as u64;
        self.push_reject(&fault, told, offset, raw.to_vec());
    }

    /// Keeps what is wrong with a value of a column, and the text that it stands in.
    fn push_reject(
        &mut self,
        fault: &Fault,
        (column, value): (String, Vec<u8>),
        offset: u64,
        raw: Vec<u8>,
    ) {
        let told = Told {
            column: Some(column),
            value,
            reason: fault.rule.text().to_owned(),
            advice: fault.rule.advice().to_owned(),
        };
        self.rejects.push(RejectedRecord {
            value: RejectedValue::apart(&told.value),
            reason: BadRecord::Told(Arc::new(told)),
            line: self.lines_before + self.line,
            offset,
            raw,
        });
    }
}

/// The first byte from `at` on that is no blank.
#[inline(always)]
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r') = text.get(at) {
        at += 1;
    }
    at
}
