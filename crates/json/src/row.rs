//! Reads a record in one pass: the values of known keys become fields, one behind the other.
//!
//! ```text
//!   {"id": 7, "who": {"name": "Ann"}, "say": "\"hi\"", "no": "", "nil": null}
//!   7 \n Ann \n """hi""" \n "" \n \n                  text: a field of text as CSV has it, each with a byte behind it
//!   ends: where these bytes stand
//! ```
//!
//! Keys come in the order in which they came before: the next one is guessed, and compared at once. A record whose keys come
//! in another order is written again in that of the fields.
//!
//! Cost: each byte of keys and values is read once, 32 at a time; a byte of a value is written once.

mod fast;

use std::sync::Arc;

use crate::fault::{Fault, Rule};
use crate::keys::{Keys, Target};
use crate::masks::{STEP, special_in_string, step_at};
use crate::number::number_end;
use crate::row::fast::{Begun, Usual, read_fields};
use crate::space::{LineBreaks, byte_at, skip_space};
use crate::string::{Found, find_end, unescape, unescape_onto};
use crate::value::{Scratch, word_end};

/// How the values of a field are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Read {
    /// Not at all: they are checked only.
    Nothing,
    /// Strings as what they stand for.
    #[default]
    Text,
    /// Strings so that they are no value of a type but text: with their own quotes.
    Typed,
    /// As JSON.
    Json,
}

/// What becomes of keys that are no field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownKeys {
    /// The record is rejected.
    #[default]
    Reject,
    /// Their values are checked, and left out.
    Ignore,
}

/// Rows that were written.
#[derive(Debug)]
pub struct Rows {
    /// Fields, a byte behind each, and a byte before the first.
    pub text: Vec<u8>,
    /// Where the bytes between fields stand; the first is the one before.
    pub ends: Vec<u32>,
    /// Whether some field is in quotes.
    pub has_quotes: bool,
    /// Whether some field has a NUL.
    pub has_nul: bool,
}

impl Default for Rows {
    fn default() -> Self {
        Rows { text: vec![b'\n'], ends: vec![0], has_quotes: false, has_nul: false }
    }
}

impl Rows {
    /// Takes all rows away. Room that a long record took is given back.
    pub fn clear(&mut self, room_max: usize) {
        if self.text.capacity() > room_max {
            *self = Rows::default();
        }
        self.text.truncate(1);
        self.ends.truncate(1);
        (self.has_quotes, self.has_nul) = (false, false);
    }

    /// A field of the only row.
    pub(crate) fn field(&self, number: usize) -> &[u8] {
        match (self.ends.get(number), self.ends.get(number + 1)) {
            (Some(before), Some(end)) => &self.text[*before as usize + 1..*end as usize],
            _ => &[],
        }
    }

    /// Ends a field.
    #[inline(always)]
    pub(crate) fn end_field(&mut self) {
        self.ends.push(self.text.len() as u32);
        self.text.push(b'\n');
    }
}

/// Reads records with the same keys, most of them in the same order.
#[derive(Debug)]
pub struct RowReader {
    keys: Arc<Keys>,
    /// How each field is read.
    reads: Vec<Read>,
    /// What each key was like in the records before.
    usual: Vec<Usual>,
    record: u32,
    unknown: UnknownKeys,
    /// Objects that are open: the entry of each, and the object around it.
    open: Vec<(u32, u32)>,
    /// Keys that are no field, of the record: where they stand, and their object.
    others: Vec<(usize, usize, bool, u32)>,
    /// Fields that came behind others that they stand before.
    late: Late,
    scratch: Scratch,
}

#[derive(Debug, Default)]
struct Late {
    text: Vec<u8>,
    /// Field, start and end.
    fields: Vec<(u32, usize, usize)>,
    /// Room for a row.
    row: Vec<u8>,
}

impl RowReader {
    /// All fields are read as text.
    pub fn new(keys: Arc<Keys>, unknown: UnknownKeys) -> Self {
        let holds = keys.paths().iter().map(|path| match path.holds {
            crate::Holds::Value => Read::Text,
            crate::Holds::Json => Read::Json,
        });
        let mut reader = RowReader {
            reads: holds.collect(),
            usual: keys.entries.iter().map(Usual::new).collect(),
            record: 0,
            unknown,
            open: Vec::new(),
            others: Vec::new(),
            late: Late::default(),
            scratch: Scratch::default(),
            keys,
        };
        reader.note_reads();
        reader
    }

    /// Tells the keys how their values are written.
    fn note_reads(&mut self) {
        for usual in &mut self.usual {
            usual.read = self.reads.get(usual.field as usize).copied().unwrap_or(Read::Nothing);
        }
    }

    /// Says how the values of a field are written; one that is JSON stays so.
    pub fn read_as(&mut self, field: usize, read: Read) {
        let holds = self.keys.paths().get(field).map(|path| path.holds);
        if let (Some(old), Some(holds)) = (self.reads.get_mut(field), holds) {
            *old = match (holds, read) {
                (crate::Holds::Json, Read::Text | Read::Typed) => Read::Json,
                _ => read,
            };
        }
        self.note_reads();
    }

    /// Reads the record that begins at `at` as a row; where it ends. Of one that is none nothing is left in `rows`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(
        &mut self,
        text: &[u8],
        at: usize,
        breaks: LineBreaks,
        rows: &mut Rows,
    ) -> Result<usize, Fault> {
        let (bytes, ends) = (rows.text.len(), rows.ends.len());
        let read = read_record(self, text, at, breaks, rows);
        if read.is_err() {
            rows.text.truncate(bytes);
            rows.ends.truncate(ends);
        }
        read
    }

    /// Reads a value by itself as the first field.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read_value(
        &mut self,
        text: &[u8],
        at: usize,
        breaks: LineBreaks,
        rows: &mut Rows,
    ) -> Result<usize, Fault> {
        let end = match byte_at(text, at) {
            // As JSON, whatever the column takes.
            b'{' | b'[' => self.write_other(text, at, Read::Json, breaks, rows)?,
            _ => self.write_value(text, at, 0, breaks, rows)?,
        };
        rows.end_field();
        Ok(end)
    }

    #[inline(always)]
    fn read_any_record(
        &mut self,
        text: &[u8],
        start: usize,
        breaks: LineBreaks,
        rows: &mut Rows,
    ) -> Result<usize, Fault> {
        self.begin_record();
        let (row_text, row_end) = (rows.text.len(), rows.ends.len() - 1);
        let keys = Arc::clone(&self.keys);
        if byte_at(text, start) != b'{' {
            return Err(Fault::new(Rule::NoObject, start));
        }
        let mut object = 0_u32;
        // Fields up to this one are written.
        let mut written = 0_u32;
        let mut guess = keys.objects[0].first;
        let mut before = u32::MAX;
        let mut at = skip_space(text, start + 1, breaks);
        let mut is_open = byte_at(text, at) != b'}';
        loop {
            if is_open {
                let begun = Begun { at, guess, before, written, is_open };
                let fast = read_fields(text, &mut self.usual, self.record, begun, rows);
                (at, guess, before) = (fast.at, fast.guess, fast.before);
                (written, is_open) = (fast.written, fast.is_open);
                if !is_open {
                    continue;
                }
                at = skip_space(text, at, breaks);
                check_key_begins(text, at)?;
                let found = find_key(&keys, object, text, at)?;
                at = behind_colon(text, found.end, breaks)?;
                let Some(entry) = found.entry else {
                    at = self.pass_over(text, found, object, at, breaks)?;
                    (at, is_open) = behind_value(text, at, breaks)?;
                    continue;
                };
                let met = &mut self.usual[entry as usize].met;
                if std::mem::replace(met, self.record) == self.record {
                    return Err(Fault::new(Rule::TwiceTheKey, found.start));
                }
                if entry != guess && before != u32::MAX {
                    self.usual[before as usize].next = entry;
                }
                before = entry;
                guess = self.usual[entry as usize].next;
                match keys.entries[entry as usize].target {
                    Target::Field(field) if field >= written => {
                        for _ in written..field {
                            rows.end_field();
                        }
                        at = self.write_value(text, at, field, breaks, rows)?;
                        rows.end_field();
                        written = field + 1;
                    }
                    Target::Field(field) => {
                        at = self.write_late(text, at, field, breaks, rows)?;
                    }
                    Target::Object(inner) => match byte_at(text, at) {
                        b'{' => {
                            self.open.push((entry, object));
                            object = inner;
                            (guess, before) = (keys.objects[inner as usize].first, u32::MAX);
                            at = skip_space(text, at + 1, breaks);
                            is_open = byte_at(text, at) != b'}';
                            continue;
                        }
                        b'n' => at = word_end(text, at)?,
                        _ => {
                            self.scratch.check(text, (at, self.open.len() + 1), breaks)?;
                            return Err(Fault::new(Rule::NoObjectHere, at));
                        }
                    },
                }
            } else {
                at += 1;
                let Some((entry, outer)) = self.open.pop() else { break };
                object = outer;
                (before, guess) = (entry, self.usual[entry as usize].next);
            }
            (at, is_open) = behind_value(text, at, breaks)?;
        }
        self.check_others(text)?;
        let fields = self.reads.len() as u32;
        for _ in written..fields {
            rows.end_field();
        }
        if !self.late.fields.is_empty() {
            self.put_in_order(rows, row_text, row_end);
        }
        if rows.text.len() >= 2 && rows.text[rows.text.len() - 2] == b'\r' {
            // Whoever reads the last field takes one away.
            self.double_return(rows);
        }
        if rows.text.len() + STEP >= u32::MAX as usize {
            return Err(Fault::new(Rule::TooLong, start));
        }
        Ok(at)
    }

    fn begin_record(&mut self) {
        self.record = self.record.wrapping_add(1);
        if self.record == 0 {
            self.usual.iter_mut().for_each(|usual| usual.met = 0);
            self.record = 1;
        }
        self.open.clear();
        self.others.clear();
        self.late.text.clear();
        self.late.fields.clear();
    }

    /// Writes a value into its field, without what ends it; its end.
    #[inline(always)]
    fn write_value(
        &mut self,
        text: &[u8],
        at: usize,
        field: u32,
        breaks: LineBreaks,
        rows: &mut Rows,
    ) -> Result<usize, Fault> {
        let first = byte_at(text, at);
        match self.reads[field as usize] {
            Read::Text if first == b'"' => {
                if let Some(bytes) = step_at(text, at + 1) {
                    let length = special_in_string(bytes).trailing_zeros() as usize;
                    if length > 0 && byte_at(text, at + 1 + length) == b'"' && length < STEP {
                        let start = rows.text.len();
                        rows.text.extend_from_slice(bytes);
                        rows.text.truncate(start + length);
                        return Ok(at + length + 2);
                    }
                }
                write_text(text, at, rows)
            }
            Read::Text | Read::Typed if matches!(first, b'-' | b'0'..=b'9') => {
                let end = number_end(text, at)?;
                let start = rows.text.len();
                match step_at(text, at) {
                    Some(bytes) if end - at <= STEP => {
                        rows.text.extend_from_slice(bytes);
                        rows.text.truncate(start + (end - at));
                    }
                    _ => rows.text.extend_from_slice(&text[at..end]),
                }
                Ok(end)
            }
            read => self.write_other(text, at, read, breaks, rows),
        }
    }

    /// [`Self::write_value`] of what is less often there.
    fn write_other(
        &mut self,
        text: &[u8],
        at: usize,
        read: Read,
        breaks: LineBreaks,
        rows: &mut Rows,
    ) -> Result<usize, Fault> {
        let end = match byte_at(text, at) {
            b'{' | b'[' => self.scratch.check(text, (at, self.open.len() + 1), breaks)?,
            _ => self.scratch.check_scalar(text, at)?,
        };
        let value = &text[at..end];
        if value == b"null" || read == Read::Nothing {
            return Ok(end);
        }
        match (read, value.first()) {
            (Read::Typed | Read::Json, Some(b'"')) => write_quoted(value, rows),
            _ => rows.text.extend_from_slice(value),
        }
        Ok(end)
    }

    /// Writes a value whose place has passed.
    #[cold]
    fn write_late(
        &mut self,
        text: &[u8],
        at: usize,
        field: u32,
        breaks: LineBreaks,
        rows: &mut Rows,
    ) -> Result<usize, Fault> {
        // It is written behind the others, and moved.
        let start = rows.text.len();
        let end = self.write_value(text, at, field, breaks, rows)?;
        let from = self.late.text.len();
        self.late.text.extend_from_slice(&rows.text[start..]);
        rows.text.truncate(start);
        self.late.fields.push((field, from, self.late.text.len()));
        Ok(end)
    }

    /// Puts late fields where they belong: the row is written once more, beside itself.
    fn put_in_order(&mut self, rows: &mut Rows, row_text: usize, row_end: usize) {
        let Late { text, fields, row } = &mut self.late;
        fields.sort_unstable();
        let mut late = fields.iter().peekable();
        row.clear();
        let mut before = rows.ends[row_end];
        for field in 0..self.reads.len() {
            let end = &mut rows.ends[row_end + 1 + field];
            let own = before as usize + 1..*end as usize;
            before = *end;
            match late.next_if(|(of, ..)| *of as usize == field) {
                Some((_, start, end)) => row.extend_from_slice(&text[*start..*end]),
                None => row.extend_from_slice(&rows.text[own]),
            }
            *end = (row_text + row.len()) as u32;
            row.push(b'\n');
        }
        rows.text.truncate(row_text);
        rows.text.extend_from_slice(row);
    }

    #[cold]
    fn double_return(&self, rows: &mut Rows) {
        if let Some(last) = rows.ends.last_mut() {
            *last += 1;
        }
        let end = rows.text.len() - 1;
        rows.text[end] = b'\r';
        rows.text.push(b'\n');
    }

    /// Passes over the value of a key that is no field.
    #[cold]
    fn pass_over(
        &mut self,
        text: &[u8],
        key: Key,
        object: u32,
        at: usize,
        breaks: LineBreaks,
    ) -> Result<usize, Fault> {
        let end = self.scratch.check(text, (at, self.open.len() + 1), breaks)?;
        if self.unknown == UnknownKeys::Reject {
            return Err(Fault::new(Rule::UnknownKey, key.start));
        }
        self.others.push((key.start + 1, key.end - 1, key.is_escaped, object));
        Ok(end)
    }

    /// Checks that no key which is no field comes twice in its object.
    fn check_others(&self, text: &[u8]) -> Result<(), Fault> {
        if self.others.len() < 2 {
            return Ok(());
        }
        let mut seen = std::collections::HashSet::with_capacity_and_hasher(
            self.others.len(),
            foldhash::fast::RandomState::default(),
        );
        for (start, end, is_escaped, object) in &self.others {
            if !seen.insert((object, unescape(&text[*start..*end], *start, *is_escaped)?)) {
                return Err(Fault::new(Rule::TwiceTheKey, start - 1));
            }
        }
        Ok(())
    }
}

coload_types::simd_dispatch! {
    fn read_record(
        reader: &mut RowReader,
        text: &[u8],
        start: usize,
        breaks: LineBreaks,
        rows: &mut Rows,
    ) -> Result<usize, Fault> = RowReader::read_any_record;
}

/// A key that was found.
#[derive(Debug, Clone, Copy)]
struct Key {
    start: usize,
    /// Behind its closing quote.
    end: usize,
    is_escaped: bool,
    entry: Option<u32>,
}

/// The key that begins at `at`.
fn find_key(keys: &Keys, object: u32, text: &[u8], at: usize) -> Result<Key, Fault> {
    if byte_at(text, at) != b'"' {
        return Err(Fault::new(Rule::NoKey, at));
    }
    let Found { end, is_escaped } = find_end(text, at + 1)?;
    let name = unescape(&text[at + 1..end], at + 1, is_escaped)?;
    let entry = keys.objects[object as usize].by_name.get(&name[..]).copied();
    Ok(Key { start: at, end: end + 1, is_escaped, entry })
}

/// Checks that no object ends behind a comma.
#[inline(always)]
fn check_key_begins(text: &[u8], at: usize) -> Result<(), Fault> {
    match byte_at(text, at) {
        b'}' => {
            let comma = memchr::memrchr(b',', &text[..at]);
            Err(Fault::new(Rule::TrailingComma, comma.unwrap_or(at)))
        }
        _ => Ok(()),
    }
}

/// The first byte of the value behind a key.
#[inline(always)]
fn behind_colon(text: &[u8], at: usize, breaks: LineBreaks) -> Result<usize, Fault> {
    let colon = match byte_at(text, at) {
        b':' => at,
        _ => skip_space(text, at, breaks),
    };
    if byte_at(text, colon) != b':' {
        return Err(Fault::new(Rule::NoColon, colon));
    }
    Ok(skip_space(text, colon + 1, breaks))
}

/// What follows a value: the next key, or the closing bracket of its object.
#[inline(always)]
fn behind_value(text: &[u8], at: usize, breaks: LineBreaks) -> Result<(usize, bool), Fault> {
    let at = skip_space(text, at, breaks);
    match byte_at(text, at) {
        b',' => {
            let next = skip_space(text, at + 1, breaks);
            match byte_at(text, next) {
                b'}' => Err(Fault::new(Rule::TrailingComma, at)),
                _ => Ok((next, true)),
            }
        }
        b'}' => Ok((at, false)),
        b'\n' => Err(Fault::new(Rule::OpenLine, at)),
        _ => Err(Fault::new(Rule::NoComma, at)),
    }
}

/// Writes what a string stands for: in quotes where it is empty or begins with one.
fn write_text(text: &[u8], at: usize, rows: &mut Rows) -> Result<usize, Fault> {
    let Found { end, is_escaped } = find_end(text, at + 1)?;
    let inner = &text[at + 1..end];
    if !is_escaped && !inner.is_empty() {
        rows.text.extend_from_slice(inner);
        return Ok(end + 1);
    }
    let start = rows.text.len();
    unescape_onto(inner, at + 1, &mut rows.text)?;
    rows.has_nul |= memchr::memchr(0, &rows.text[start..]).is_some();
    if matches!(rows.text.get(start), None | Some(b'"')) {
        let plain = rows.text.split_off(start);
        write_quoted(&plain, rows);
    }
    Ok(end + 1)
}

/// Writes bytes in quotes, theirs doubled.
fn write_quoted(bytes: &[u8], rows: &mut Rows) {
    rows.has_quotes = true;
    rows.text.push(b'"');
    let mut from = 0;
    for quote in memchr::memchr_iter(b'"', bytes) {
        rows.text.extend_from_slice(&bytes[from..=quote]);
        from = quote;
    }
    rows.text.extend_from_slice(&bytes[from..]);
    rows.text.push(b'"');
}
