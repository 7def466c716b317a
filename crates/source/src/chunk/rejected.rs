//! Records that could not become rows, and what is told of them.

use std::ops::Range;
use std::sync::Arc;

use super::left_out::Told;
use crate::field::FieldError;

/// Why a record was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadRecord {
    /// A field is no value of its column.
    Field {
        /// Number of the column, counted from 0.
        column: usize,
        /// What is wrong with the field.
        error: FieldError,
    },
    /// A value of an input whose values have types is none of its column.
    Value {
        /// Number of the column, counted from 0.
        column: usize,
        /// What is wrong with the value.
        error: FieldError,
    },
    /// Fewer or more fields than columns.
    FieldCount {
        /// Fields of the record.
        found: usize,
    },
    /// A quote was opened and never closed.
    OpenQuote,
    /// It was a row, and is left out.
    Told(Arc<Told>),
}

/// A record that could not become a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedRecord {
    /// What is wrong with the record.
    pub reason: BadRecord,
    /// Newlines in the chunk before the record.
    pub line: u64,
    /// Byte offset of the record in its input.
    pub offset: u64,
    /// The field at fault, or nothing.
    pub value: RejectedValue,
    /// The record without its newline.
    pub raw: Vec<u8>,
}

impl RejectedRecord {
    /// The field at fault, or nothing.
    pub fn value(&self) -> &[u8] {
        self.value.of(&self.raw)
    }

    /// Puts the record as its input has it in place of the form in which it was read.
    pub(crate) fn set_raw(&mut self, raw: &[u8]) {
        if let RejectedValue::Within(_) = self.value {
            self.value = RejectedValue::apart(self.value());
        }
        self.raw = raw.to_vec();
    }
}

/// The field at fault of a rejected record: long ones are not held twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectedValue {
    /// These bytes of the record.
    Within(Range<usize>),
    /// Others, as where quotes within quotes were taken off; the first [`VALUE_BYTES_MAX`] of them.
    Apart(Vec<u8>),
}

/// Bytes of a value that are told beside its record, which has all of them: both of a record that takes a third of the
/// memory would be too much.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// What is told of a value: all of it, or the characters in its first [`VALUE_BYTES_MAX`].
pub fn told_bytes(value: &[u8]) -> &[u8] {
    if value.len() <= VALUE_BYTES_MAX {
        return value;
    }
    let is_inside = |back: &usize| value[VALUE_BYTES_MAX - back] & 0b1100_0000 == 0b1000_0000;
    // A character has at most four bytes; what has more is none.
    let back = (0..4).find(|back| !is_inside(back)).unwrap_or(0);
    &value[..VALUE_BYTES_MAX - back]
}

impl RejectedValue {
    /// The value where no field is at fault: no bytes.
    pub(crate) const NONE: RejectedValue = RejectedValue::Apart(Vec::new());

    /// A value that is not a part of its record.
    pub(crate) fn apart(value: &[u8]) -> Self {
        RejectedValue::Apart(told_bytes(value).to_vec())
    }

    /// The field of its record.
    pub(crate) fn of<'a>(&'a self, raw: &'a [u8]) -> &'a [u8] {
        match self {
            RejectedValue::Within(bytes) => raw.get(bytes.clone()).unwrap_or_default(),
            RejectedValue::Apart(value) => value,
        }
    }
}
