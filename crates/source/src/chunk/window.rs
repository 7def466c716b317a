//! A window of text, and what became of it.

/// Where a window of text stands.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// The text, one byte before it, and 64 after it.
    pub text: &'a [u8],
    /// First byte of the first record, at least 1.
    pub start: usize,
    /// End of the text.
    pub end: usize,
    /// Offset of `start` in the input.
    pub offset: u64,
    /// Records that start here or later belong to the next chunk.
    pub limit: usize,
    /// Whether the input ends where the text ends; then the text ends with a newline.
    pub last: LastWindow,
}

/// Whether more text follows a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastWindow {
    /// More text follows the window.
    No,
    /// The input ends with the window.
    Yes,
}

/// What became of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consumed {
    /// Where the first record stands that was not read.
    pub end: usize,
    /// Whether that record belongs to the next chunk.
    pub done: bool,
    /// Whether no record was whole: a longer window is needed.
    pub short: bool,
}
