//! Strings of a window on their way into a fragment.

use coload_format::{EncodedStrings, Strings, SymbolEncoder};
use coload_transform::DistinctSketch;

/// Where the strings of a window stand, and a copy of those that had to be changed.
#[derive(Debug, Default)]
pub(super) struct TextScratch {
    pub(super) starts: Vec<u32>,
    pub(super) lengths: Vec<u32>,
    pub(super) copy: Vec<u8>,
}

/// Counts the strings of a window that are gone once they are encoded.
pub(super) fn count_text(
    distinct: Option<&DistinctSketch>,
    source: &[u8],
    scratch: &TextScratch,
    encoder: Option<&SymbolEncoder>,
) {
    if let (Some(distinct), Some(_)) = (distinct, encoder) {
        distinct.add_texts(source, &scratch.starts, &scratch.lengths);
    }
}

/// Appends the strings of a window, encoded if there are symbols.
pub(super) fn keep_text(
    source: &[u8],
    scratch: &TextScratch,
    encoder: Option<&SymbolEncoder>,
    text: &mut EncodedStrings,
    strings: &mut Strings,
) {
    match encoder {
        Some(encoder) => encoder.encode(source, &scratch.starts, &scratch.lengths, text),
        None => {
            for (start, length) in scratch.starts.iter().zip(&scratch.lengths) {
                strings.push(&source[*start as usize..][..*length as usize]);
            }
        }
    }
}
