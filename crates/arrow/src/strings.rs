//! Strings of rows, checked: one after the other, or where views say.

use std::borrow::Cow;
use std::ops::Range;

/// Bytes of a view.
pub(crate) const VIEW_BYTES: usize = 16;
/// Longest text that stands in its view.
const INLINE_BYTES_MAX: usize = 12;

/// Strings of rows.
#[derive(Debug, Clone)]
pub enum Strings<'a> {
    /// One after the other.
    Ends {
        /// Where each starts, and the last one ends.
        places: Vec<usize>,
        /// Bytes of all.
        bytes: Cow<'a, [u8]>,
    },
    /// Where views say.
    Views {
        /// A view for each.
        views: Cow<'a, [u8]>,
        /// Bytes of the buffers that the views tell, and where in the buffers they start.
        buffers: Vec<(usize, Cow<'a, [u8]>)>,
    },
}

impl Strings<'_> {
    /// The string of a row that is no NULL.
    pub fn get(&self, row: usize) -> &[u8] {
        let found = match self {
            Strings::Ends { places, bytes } => {
                places.get(row..row + 2).and_then(|ends| bytes.get(ends[0]..ends[1]))
            }
            Strings::Views { views, buffers } => views
                .get(row * VIEW_BYTES..(row + 1) * VIEW_BYTES)
                .and_then(|view| match View::decode(view) {
                    View::Inline(bytes) => view.get(4..4 + bytes),
                    View::Elsewhere { buffer, range } => {
                        let (start, bytes) = buffers.get(buffer)?;
                        bytes.get(range.start.checked_sub(*start)?..range.end.checked_sub(*start)?)
                    }
                }),
        };
        // All that is no NULL was looked at when the rows were read.
        found.unwrap_or_default()
    }
}

/// What a view says.
pub(crate) enum View {
    /// So many bytes stand in it.
    Inline(usize),
    /// These bytes of a buffer.
    Elsewhere { buffer: usize, range: Range<usize> },
}

impl View {
    pub(crate) fn decode(view: &[u8]) -> Self {
        let word = |at: usize| {
            let word = view.get(at..at + 4).and_then(|word| <[u8; 4]>::try_from(word).ok());
            u32::from_le_bytes(word.unwrap_or_default()) as usize
        };
        match word(0) {
            bytes @ 0..=INLINE_BYTES_MAX => View::Inline(bytes),
            bytes => View::Elsewhere { buffer: word(8), range: word(12)..word(12) + bytes },
        }
    }
}
