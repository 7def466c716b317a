//! The rejects of a partition, as the bytes that travel and are kept.
//!
//! ```text
//!   varint count, then each reject:
//!     file, column, reason, advice   varint 0 and a new text (bytes), or n: the n-th of the texts that are remembered
//!     line, byte, field              varints
//!     value                          bytes; or 0, where it begins in raw and its bytes (varints)
//!     raw                            bytes
//! ```
//!
//! The order is file, line, byte, field, column, value, reason, advice, raw. A value of no bytes stands at the record's first.
//!
//! Rejects are mostly of few kinds, and what they say is twenty times what they are. A new text is remembered; when
//! [`TEXTS_MAX`] are, all are forgotten before the next. A long value is part of the record, and may be most of it.
//!
//! They are made as the records are counted, checked where they arrive, and read one by one where they are told, so that
//! nobody holds more of them than these bytes.

use std::ops::Range;

use coload_source::{Reject, RejectedValue};
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Place, Result};

/// Texts that are remembered: a few files, columns and reasons.
const TEXTS_MAX: usize = 64;
/// Longest text that is remembered.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// Least bytes of a value that is looked for in its record.
const VALUE_BYTES_SOUGHT: usize = 16;
/// Rejects of a few.
const SOME_MAX: u64 = 64;
/// Least bytes of a reject: four texts, three numbers, value and raw.
const REJECT_BYTES_MIN: usize = 9;

/// Rejects as bytes, in the order of the input.
#[derive(Debug, Clone, Default)]
pub struct Rejects {
    count: u64,
    bytes: Vec<u8>,
    /// Texts that [`Self::push`] remembers.
    remembered: Vec<Box<[u8]>>,
}

impl PartialEq for Rejects {
    fn eq(&self, other: &Self) -> bool {
        (self.count, &self.bytes) == (other.count, &other.bytes)
    }
}

impl Eq for Rejects {}

impl Rejects {
    /// Number of rejects.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are no rejects.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a reject behind those before.
    pub fn push(&mut self, reject: &Reject) {
        self.count += 1;
        let Reject { place, column, reason, advice, raw, .. } = reject;
        self.put_text(place.file.as_bytes());
        put_varint(&mut self.bytes, place.line);
        put_varint(&mut self.bytes, place.byte);
        put_varint(&mut self.bytes, u64::from(place.field));
        self.put_text(column.as_deref().unwrap_or_default().as_bytes());
        self.put_value(reject.value(), raw);
        self.put_text(reason.as_bytes());
        self.put_text(advice.as_bytes());
        put_bytes(&mut self.bytes, raw);
    }

    /// Appends a value, or where it stands in its record.
    fn put_value(&mut self, value: &[u8], raw: &[u8]) {
        let sought = value.len() >= VALUE_BYTES_SOUGHT || value.is_empty();
        if sought && let Some(at) = memchr::memmem::find(raw, value) {
            put_varint(&mut self.bytes, 0);
            put_varint(&mut self.bytes, at as u64);
            return put_varint(&mut self.bytes, value.len() as u64);
        }
        put_bytes(&mut self.bytes, value);
    }

    fn put_text(&mut self, text: &[u8]) {
        if let Some(at) = self.remembered.iter().position(|known| **known == *text) {
            return put_varint(&mut self.bytes, at as u64 + 1);
        }
        put_varint(&mut self.bytes, 0);
        if text.len() <= TEXT_BYTES_MAX {
            if self.remembered.len() == TEXTS_MAX {
                self.remembered.clear();
            }
            self.remembered.push(text.into());
        }
        put_bytes(&mut self.bytes, text);
    }

    /// The rejects, one by one.
    pub fn iter(&self) -> impl Iterator<Item = Result<Reject>> + '_ {
        let mut reading = Reading::new(ByteReader::new(&self.bytes));
        (0..self.count).map(move |_| reading.reject())
    }

    /// Appends the list, its count first.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.count);
        out.extend_from_slice(&self.bytes);
    }

    /// Reads what [`Self::put`] wrote, and checks all of it.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn read(reader: &mut ByteReader<'_>) -> Result<Self> {
        let count = reader.varint()?;
        if count > (reader.remaining() / REJECT_BYTES_MIN) as u64 {
            let bytes = reader.remaining();
            return Err(Error::Corrupt(format!("{count} rejects in {bytes} bytes")));
        }
        let mut reading = Reading::new(*reader);
        for _ in 0..count {
            reading.parts()?;
        }
        let length = reader.remaining() - reading.reader.remaining();
        let bytes = reader.take(length)?.to_vec();
        Ok(Rejects { count, bytes, remembered: Vec::new() })
    }
}

/// Reads rejects, and remembers their texts.
struct Reading<'a> {
    reader: ByteReader<'a>,
    remembered: Vec<&'a str>,
}

/// Where a value stands.
enum ValueAt<'a> {
    Here(&'a [u8]),
    InRecord(Range<usize>),
}

/// A reject as it stands in the bytes.
struct Parts<'a> {
    file: &'a str,
    line: u64,
    byte: u64,
    field: u32,
    column: &'a str,
    value: ValueAt<'a>,
    reason: &'a str,
    advice: &'a str,
    raw: &'a [u8],
}

impl<'a> Reading<'a> {
    fn new(reader: ByteReader<'a>) -> Self {
        Reading { reader, remembered: Vec::new() }
    }

    fn text(&mut self) -> Result<&'a str> {
        let number = self.reader.varint()?;
        if let Some(at) = number.checked_sub(1) {
            let known = usize::try_from(at).ok().and_then(|at| self.remembered.get(at));
            return known.copied().ok_or_else(|| Error::Corrupt(format!("text {at} of rejects")));
        }
        let text = std::str::from_utf8(self.reader.bytes()?)
            .map_err(|_| Error::Corrupt("a text that is not UTF-8".into()))?;
        if text.len() <= TEXT_BYTES_MAX {
            if self.remembered.len() == TEXTS_MAX {
                self.remembered.clear();
            }
            self.remembered.push(text);
        }
        Ok(text)
    }

    /// The next reject; the fields are read in this order.
    fn parts(&mut self) -> Result<Parts<'a>> {
        let parts = self.unchecked_parts()?;
        match &parts.value {
            ValueAt::InRecord(bytes) if parts.raw.get(bytes.clone()).is_none() => {
                Err(Error::Corrupt("a value that is not in its record".into()))
            }
            _ => Ok(parts),
        }
    }

    fn unchecked_parts(&mut self) -> Result<Parts<'a>> {
        Ok(Parts {
            file: self.text()?,
            line: self.reader.varint()?,
            byte: self.reader.varint()?,
            field: self.reader.varint_u32()?,
            column: self.text()?,
            value: self.value()?,
            reason: self.text()?,
            advice: self.text()?,
            raw: self.reader.bytes()?,
        })
    }

    fn value(&mut self) -> Result<ValueAt<'a>> {
        let bytes = self.reader.bytes()?;
        if bytes.is_empty() {
            let (at, bytes) = (self.reader.varint()?, self.reader.varint()?);
            let place = |byte: u64| usize::try_from(byte).unwrap_or(usize::MAX);
            return Ok(ValueAt::InRecord(place(at)..place(at.saturating_add(bytes))));
        }
        Ok(ValueAt::Here(bytes))
    }

    fn reject(&mut self) -> Result<Reject> {
        let parts = self.parts()?;
        let value = match parts.value {
            ValueAt::Here(value) => RejectedValue::Apart(value.to_vec()),
            ValueAt::InRecord(bytes) => RejectedValue::Within(bytes),
        };
        let Parts { file, line, byte, field, column, reason, advice, raw, .. } = parts;
        Ok(Reject {
            place: Place { file: file.to_owned(), line, byte, field },
            // Who has the inputs knows it by the byte.
            part: None,
            column: (!column.is_empty()).then(|| column.to_owned()),
            value,
            reason: reason.to_owned(),
            advice: advice.to_owned(),
            raw: raw.to_vec(),
        })
    }
}

/// Appends a few rejects.
pub(crate) fn put_some(out: &mut Vec<u8>, rejects: &[Reject]) {
    let mut few = Rejects::default();
    rejects.iter().for_each(|reject| few.push(reject));
    few.put(out);
}

/// Reads what [`put_some`] wrote.
///
/// # Errors
/// `Corrupt` when they are none, or more than few: one that is told by numbers may take much more memory than bytes.
pub(crate) fn read_some(reader: &mut ByteReader<'_>) -> Result<Vec<Reject>> {
    let rejects = Rejects::read(reader)?;
    if rejects.len() > SOME_MAX {
        return Err(Error::Corrupt(format!("{} rejects, where there are few", rejects.len())));
    }
    rejects.iter().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn reject(number: u64) -> Reject {
        let columns = ["price", "", "amount"];
        Reject {
            place: Place { file: "a.csv".into(), line: number, byte: 7 * number, field: 2 },
            part: None,
            column: Some(columns[number as usize % 3]).filter(|c| !c.is_empty()).map(str::to_owned),
            value: RejectedValue::Apart(
                [&b"12,5"[..], b"", b"a value of many bytes"][number as usize % 3].to_vec(),
            ),
            reason: format!("is not DECIMAL {}", number % 100),
            advice: if number.is_multiple_of(50) { "long ".repeat(2_000) } else { "--null".into() },
            raw: [&b"1;12,5"[..], b"", b"1;a value of many bytes", b"1;another"]
                [number as usize % 4]
                .to_vec(),
        }
    }

    fn of(count: u64) -> (Vec<Reject>, Rejects) {
        let all: Vec<Reject> = (0..count).map(reject).collect();
        let mut rejects = Rejects::default();
        all.iter().for_each(|reject| rejects.push(reject));
        (all, rejects)
    }

    #[test]
    fn rejects_come_back_and_cut_ones_are_refused() {
        for count in [0, 1, 3, 260] {
            let (all, rejects) = of(count);
            let mut bytes = Vec::new();
            rejects.put(&mut bytes);
            let mut reader = ByteReader::new(&bytes);
            let read = Rejects::read(&mut reader).unwrap();
            reader.finish().unwrap();
            assert_eq!(read.iter().collect::<Result<Vec<_>>>().unwrap(), all);
            let few = read_some(&mut ByteReader::new(&bytes));
            assert_eq!(few.ok(), (count <= SOME_MAX).then_some(all));
            if count <= 3 {
                let whole = |cut: usize| {
                    let mut reader = ByteReader::new(&bytes[..cut]);
                    Rejects::read(&mut reader).is_ok()
                };
                assert!(!(0..bytes.len()).any(whole));
            }
        }
    }

    /// What is said of ten thousand records that lack a field took 450 bytes each, on the wire, in the journal, and
    /// several times in the memory of both sides.
    #[test]
    fn what_many_rejects_say_alike_is_there_once() {
        let mut rejects = Rejects::default();
        for line in 0..10_000 {
            let reject = reject(1);
            let place = Place { line, byte: 2 * line, ..reject.place };
            let advice = "--delimiter, --quote or --columns; ".repeat(8);
            rejects.push(&Reject { place, advice, raw: b"x".to_vec(), ..reject });
        }
        assert!(rejects.bytes() < 10_000 * 24, "{}", rejects.bytes());
    }

    /// The record and its one long field were there twice: what takes a third of the memory took two thirds.
    #[test]
    fn a_long_value_is_there_once_and_one_that_is_not_in_its_record_is_refused() {
        let value = vec![b'v'; 100_000];
        let raw = [b"7;", &value[..]].concat();
        let mut rejects = Rejects::default();
        let apart = RejectedValue::Apart(value.clone());
        rejects.push(&Reject { value: apart, raw: raw.clone(), ..reject(1) });
        assert!(rejects.bytes() < raw.len() + 100);
        let back = rejects.iter().next().unwrap().unwrap();
        assert_eq!((back.value(), &back.raw), (&value[..], &raw));
        let mut bytes = Vec::new();
        put_varint(&mut bytes, 1);
        // Empty texts are new ones of no bytes; the value has two bytes of a record of one.
        bytes.extend([0, 0, 1, 1, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, b'x']);
        assert!(Rejects::read(&mut ByteReader::new(&bytes)).is_err());
    }

    #[test]
    fn a_text_that_was_never_told_is_refused() {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, 1);
        bytes.extend([3, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(Rejects::read(&mut ByteReader::new(&bytes)).is_err());
        let mut many = Vec::new();
        put_varint(&mut many, 1 << 40);
        many.extend([0; 40]);
        assert!(Rejects::read(&mut ByteReader::new(&many)).is_err());
    }
}
