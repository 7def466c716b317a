//! The most likely reading of a record whose quotes went astray.
//!
//! ```text
//!   7,"a 5" disk, new",x      a quote inside a quoted field          7 | a 5" disk, new | x
//!   7,"a,b,"c, d",x           a quote before a field that has none   7 | "a | b | c, d | x
//! ```
//!
//! Readings go through the text side by side, each with what it cost so far; of two that stand
//! inside the same field in the same way, the cheaper stays. The cheapest that ends a line with the
//! table's number of fields wins. One that takes a newline into a field pays for it, so that a stray
//! quote does not swallow the lines that follow.

use super::{CarefulField, CarefulRecord, Fault, FieldForm, Mark, Reading, Scan};
use crate::dialect::LongDelimiter;

/// What the strict reading of a record came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strict {
    /// Its quotes enclose its fields, which are too few or too many.
    WrongCount,
    /// A quote does not enclose a field.
    Broken,
}

/// Why the text that is looked at ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadEnd {
    /// There is no more of it yet.
    OfText,
    /// What follows is not looked at.
    Cut,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The record was read, mended or not.
    Read,
    /// What the record is depends on text that is not there yet.
    NeedsMore,
    /// No reading gives the table's number of fields.
    NothingFits,
}

/// An opening quote is text.
const LITERAL_COST: u32 = 6;
/// A quote inside quotes is text, and what follows it is no separator.
const STRAY_COST: u32 = 3;
/// A quote inside quotes is text, though a separator follows.
const STRAY_BEFORE_SEPARATOR_COST: u32 = 5;
/// A line end inside quotes.
const LINE_COST: u32 = 1;
/// The fields of the strict reading do not agree with the table.
const WRONG_COUNT_COST: u32 = 8;
/// Lines that are looked at.
const LINES_MAX: usize = 64;
/// Readings that are followed at once.
const READINGS_MAX: usize = 32;
/// Steps of all readings of a record together: hostile quotes take no longer than this, and leave no
/// more fields behind.
const STEPS_MAX: usize = 1 << 20;
const NO_FIELD: u32 = u32::MAX;

/// A field that ended, and the one before it.
#[derive(Debug, Clone, Copy)]
struct Ended {
    field: CarefulField,
    before: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// A field without quotes, or whose first quote is text.
    Bare,
    /// A field in quotes that are not closed yet.
    Quotes,
    /// A field whose quote was closed: a separator follows.
    Closed,
}

#[derive(Debug, Clone, Copy)]
struct Hypothesis {
    cost: u32,
    inside: Inside,
    /// Fields of the record that have ended.
    fields: u32,
    last_ended: u32,
    /// Where the field starts.
    start: usize,
    /// Bytes before this one have been taken.
    from: usize,
    form: FieldForm,
}

struct Best {
    cost: u32,
    last_ended: u32,
    end: usize,
    next: usize,
}

struct Readings {
    live: Vec<Hypothesis>,
    ended: Vec<Ended>,
    fields: u32,
    best: Option<Best>,
}

/// Whether a line may hold another quote that closes a field, so that none is sought twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    MayFollow,
    NoneFollows,
}

impl Readings {
    fn new(fields: u32) -> Self {
        Readings { live: Vec::new(), ended: Vec::new(), fields, best: None }
    }

    /// Starts at the record's first field.
    fn start(&mut self, text: &[u8], quote: u8, start: usize) {
        let first = Hypothesis {
            cost: 0,
            inside: Inside::Bare,
            fields: 0,
            last_ended: NO_FIELD,
            start,
            from: start,
            form: FieldForm::Regular,
        };
        self.live.extend(self.start_field(text, quote, first, start).into_iter().flatten());
    }

    /// Whether no reading can become cheaper than the best.
    fn are_decided(&self) -> bool {
        let least = self.live.iter().map(|h| h.cost).min();
        let cheaper = |least: u32| self.best.as_ref().is_none_or(|best| least < best.cost);
        !least.is_some_and(cheaper)
    }

    fn keep_cheapest(&mut self) {
        if self.live.len() > READINGS_MAX {
            self.live.sort_by_key(|h| h.cost);
            self.live.truncate(READINGS_MAX);
        }
    }

    /// Adds a reading, or drops it if one that stands the same is as cheap.
    fn add(&mut self, at: usize, new: Hypothesis) {
        // Bytes that all have behind them make no difference.
        let stands = |h: &Hypothesis| (h.fields, h.inside, h.from.max(at));
        let live = &mut self.live;
        let same = |h: &&mut Hypothesis| stands(h) == stands(&new);
        match live.iter_mut().find(same) {
            Some(old) if new.cost < old.cost => *old = new,
            Some(_) => {}
            None => live.push(new),
        }
    }

    /// Ends the field that a reading is in.
    fn end_field(&mut self, reading: Hypothesis, at: usize) -> Hypothesis {
        let field = CarefulField { start: reading.start, end: at, form: reading.form };
        self.ended.push(Ended { field, before: reading.last_ended });
        let last_ended = self.ended.len() as u32 - 1;
        Hypothesis { fields: reading.fields + 1, last_ended, ..reading }
    }

    fn end_record(&mut self, reading: Hypothesis, end: usize, next: usize) {
        let ended = self.end_field(reading, end);
        let right = ended.fields == self.fields;
        if right && self.best.as_ref().is_none_or(|best| ended.cost < best.cost) {
            self.best = Some(Best { cost: ended.cost, last_ended: ended.last_ended, end, next });
        }
    }

    /// Puts the readings of a new field, which starts at `at`.
    fn start_field(
        &self,
        text: &[u8],
        quote: u8,
        before: Hypothesis,
        at: usize,
    ) -> [Option<Hypothesis>; 2] {
        let start = Hypothesis { start: at, from: at, form: FieldForm::Regular, ..before };
        if text.get(at) != Some(&quote) {
            return [Some(Hypothesis { inside: Inside::Bare, ..start }), None];
        }
        let after = Hypothesis { from: at + 1, ..start };
        let (literal, cost) = (FieldForm::Literal, before.cost + LITERAL_COST);
        [
            Some(Hypothesis { inside: Inside::Quotes, ..after }),
            Some(Hypothesis { inside: Inside::Bare, cost, form: literal, ..after }),
        ]
    }
}

impl Scan<'_> {
    /// Reads a record again whose strict reading is in `out`.
    pub(super) fn mend(
        &self,
        start: usize,
        strict: Strict,
        end: HeadEnd,
        out: &mut CarefulRecord,
    ) -> Outcome {
        let Some(quote) = self.rules.separators.quote else { return Outcome::Read };
        if strict == Strict::Broken && self.ends_in_lone_quote(start, quote, out) {
            return Outcome::Read;
        }
        let Some(readings) = self.follow(start, quote, end) else { return Outcome::NeedsMore };
        match &readings.best {
            Some(best) if strict == Strict::Broken && self.swallows_record(start, best) => {
                Outcome::NothingFits
            }
            Some(best) if strict == Strict::Broken || best.cost < WRONG_COUNT_COST => {
                out.fields.clear();
                let mut ended = best.last_ended;
                while ended != NO_FIELD {
                    let Ended { field, before } = readings.ended[ended as usize];
                    out.fields.push(field);
                    ended = before;
                }
                out.fields.reverse();
                (out.end, out.next, out.fault) = (best.end, best.next, Fault::None);
                Outcome::Read
            }
            _ if strict == Strict::WrongCount => Outcome::Read,
            _ => Outcome::NothingFits,
        }
    }

    /// Whether the line is a record, and a delimiter and a quote too many: `"4";"5";"6";"`. They are a field too many, of which
    /// `--ragged` says what becomes, and no text of the field before.
    fn ends_in_lone_quote(&self, start: usize, quote: u8, out: &mut CarefulRecord) -> bool {
        let Some((end, next)) = self.line(start) else { return false };
        let line = &self.text[start..end];
        let returns = super::returns_of_end(line, self.rules.line_end);
        let Some(before) = line[..line.len() - returns].strip_suffix(&[quote]) else {
            return false;
        };
        let at = start + before.len();
        let delimiters = (start..at).rev().take(LongDelimiter::BYTES_MAX);
        let Some(delimiter) =
            delimiters.into_iter().find(|d| self.mark(*d) == Mark::Delimiter(at - *d))
        else {
            return false;
        };
        let table = Scan { text: &self.text[..delimiter], last: true, rules: self.rules };
        let mut record = CarefulRecord::default();
        table.read_strictly(start, &mut record);
        if record.fault != Fault::None || record.fields.len() != self.rules.fields {
            return false;
        }
        let lone = CarefulField { start: at, end: at + 1, form: FieldForm::Literal };
        out.fields = record.fields;
        out.fields.push(lone);
        (out.end, out.next, out.fault) = (end, next, Fault::None);
        true
    }

    /// Whether a reading takes a line into a field that is a record by itself.
    fn swallows_record(&self, start: usize, best: &Best) -> bool {
        let known = Scan { text: &self.text[..best.next], last: true, rules: self.rules };
        let mut record = CarefulRecord::default();
        let mut at = start;
        while let Some((_, next)) = known.line(at).filter(|(_, next)| *next < best.next) {
            at = next;
            let Some((_, end)) = known.line(at) else { return false };
            let line = Scan { text: &self.text[..end], ..known };
            record.fields.clear();
            record.fault = Fault::None;
            line.read_strictly(at, &mut record);
            if record.fault == Fault::None && self.rules.takes(record.fields.len()) {
                return true;
            }
        }
        false
    }

    /// Follows all readings until none can become cheaper than the best; `None` where more text is
    /// needed.
    fn follow(&self, start: usize, quote: u8, end: HeadEnd) -> Option<Readings> {
        // What follows a cut decides nothing.
        let scan = Scan { last: self.last || end == HeadEnd::Cut, ..*self };
        let escape = self.rules.separators.escape;
        let mut readings = Readings::new(self.rules.fields_written());
        readings.start(self.text, quote, start);
        let (mut at, mut lines, mut steps) = (start, 0, 0);
        while at < self.text.len() {
            let byte = self.text[at];
            let special = byte == quote || Some(byte) == escape;
            let mark = if special { Mark::Field } else { scan.mark(at) };
            let length = match mark {
                Mark::Field if !special => {
                    at += 1;
                    continue;
                }
                Mark::Field => 1,
                Mark::Delimiter(length) | Mark::LineEnd(length) => length,
                Mark::NeedsMore => return None,
            };
            steps += readings.live.len();
            scan.take_mark(mark, at, quote, &mut readings)?;
            lines += usize::from(matches!(mark, Mark::LineEnd(_)));
            let decided = matches!(mark, Mark::LineEnd(_)) && readings.are_decided();
            if decided || lines >= LINES_MAX || steps >= STEPS_MAX {
                return Some(readings);
            }
            readings.keep_cheapest();
            at += length;
        }
        if end == HeadEnd::OfText {
            if !self.last {
                return None;
            }
            for reading in std::mem::take(&mut readings.live) {
                if reading.inside != Inside::Quotes {
                    readings.end_record(reading, at, at);
                }
            }
        }
        Some(readings)
    }

    /// Takes all readings over a byte with a meaning.
    fn take_mark(&self, mark: Mark, at: usize, quote: u8, readings: &mut Readings) -> Option<()> {
        for reading in std::mem::take(&mut readings.live) {
            if reading.from > at {
                readings.add(at, reading);
                continue;
            }
            match mark {
                Mark::Field => self.take_quote(reading, at, quote, readings)?,
                Mark::LineEnd(_) if reading.inside == Inside::Quotes => {
                    let cost = reading.cost + LINE_COST;
                    readings.add(at, Hypothesis { cost, ..reading });
                }
                Mark::LineEnd(length) => readings.end_record(reading, at, at + length),
                Mark::Delimiter(_) if reading.inside == Inside::Quotes => readings.add(at, reading),
                // The field that follows must be one of the table's.
                Mark::Delimiter(length) if reading.fields + 1 < readings.fields => {
                    let ended = readings.end_field(reading, at);
                    let next = readings.start_field(self.text, quote, ended, at + length);
                    next.into_iter().flatten().for_each(|n| readings.add(at, n));
                }
                Mark::Delimiter(_) | Mark::NeedsMore => {}
            }
        }
        Some(())
    }

    /// A quote or an escape, for one reading; `None` where more text decides.
    fn take_quote(
        &self,
        reading: Hypothesis,
        at: usize,
        quote: u8,
        readings: &mut Readings,
    ) -> Option<()> {
        let mut add = |new: Hypothesis| readings.add(at, new);
        match reading.inside {
            // Text may not follow a closing quote.
            Inside::Closed => {}
            Inside::Bare if self.rules.outside_escape == Some(self.text[at]) => {
                add(Hypothesis { from: at + 2, ..reading });
            }
            Inside::Bare => add(reading),
            Inside::Quotes if self.text[at] != quote => add(Hypothesis { from: at + 2, ..reading }),
            Inside::Quotes => {
                let stray = |cost: u32| Hypothesis {
                    cost: reading.cost + cost,
                    form: FieldForm::Loose,
                    from: at + 1,
                    ..reading
                };
                if self.text.get(at + 1) == Some(&quote) {
                    add(Hypothesis { from: at + 2, ..reading });
                    add(stray(STRAY_COST));
                } else if self.ends_field(at + 1)? {
                    add(Hypothesis { inside: Inside::Closed, from: at + 1, ..reading });
                    add(stray(STRAY_BEFORE_SEPARATOR_COST));
                } else {
                    add(stray(STRAY_COST));
                }
            }
        }
        Some(())
    }

    /// No reading has the right number of fields: one line, whose quotes close before a separator or
    /// are text.
    pub(super) fn read_line(&self, start: usize, out: &mut CarefulRecord) -> Reading {
        let Some((end, next)) = self.line(start) else { return Reading::NeedsMore };
        let line = Scan { text: &self.text[..end], last: true, rules: self.rules };
        out.fields.clear();
        let (mut at, mut closing) = (start, Closing::MayFollow);
        loop {
            let field = line.read_field(at, &mut closing);
            out.fields.push(field);
            match line.text.get(field.end).map(|_| line.mark(field.end)) {
                Some(Mark::Delimiter(length)) => at = field.end + length,
                _ => break,
            }
        }
        (out.end, out.next, out.fault) = (end, next, Fault::None);
        Reading::Whole
    }

    /// The field at `start`, whose line is the text.
    fn read_field(&self, start: usize, closing: &mut Closing) -> CarefulField {
        let quote = self.rules.separators.quote;
        let quoted = quote.is_some() && self.text.get(start) == quote.as_ref();
        if quoted && *closing == Closing::MayFollow {
            let closes =
                |at: &usize| Some(self.text[*at]) == quote && self.ends_field(at + 1) == Some(true);
            if let Some(close) = (start + 1..self.text.len()).find(closes) {
                return CarefulField { start, end: close + 1, form: FieldForm::Loose };
            }
            *closing = Closing::NoneFollows;
        }
        let form = if quoted { FieldForm::Literal } else { FieldForm::Regular };
        let mut end = start;
        while end < self.text.len() && self.mark(end) == Mark::Field {
            end += if self.rules.outside_escape == Some(self.text[end]) { 2 } else { 1 };
        }
        CarefulField { start, end: end.min(self.text.len()), form }
    }
}
