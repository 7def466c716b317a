//! White space between tokens.

/// Whether a line break is white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineBreaks {
    /// As JSON has it.
    AreSpace,
    /// No: each record stands on a line of its own.
    EndRecords,
}

/// The first byte from `at` on that is no white space; the padding of a text is none.
#[inline(always)]
pub fn skip_space(text: &[u8], mut at: usize, breaks: LineBreaks) -> usize {
    // Most programs write none, or one blank.
    loop {
        match text.get(at) {
            Some(b' ' | b'\t' | b'\r') => at += 1,
            Some(b'\n') if breaks == LineBreaks::AreSpace => at += 1,
            _ => return at,
        }
    }
}

/// The byte at a position; behind the text NUL, which no token has.
#[inline(always)]
pub fn byte_at(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}
