//! The fields of a window of whole records, all with the same number of fields.
//!
//! ```text
//!   ends     [before, e, e, e,  e, e, e,  ...]     stride ends a record, one more at the front
//!   field f of record r = text[ends[r * stride + f] + 1 .. ends[r * stride + f + 1]]
//! ```

/// Records of a window, found but not read.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The text, and at least 64 bytes more.
    pub text: &'a [u8],
    /// Positions of separators; the first is the byte before the first record.
    pub ends: &'a [u32],
    /// Separators of a record.
    pub stride: usize,
    /// Number of records.
    pub count: usize,
    /// Fields of a record: `stride`, or one less where a delimiter ends each record.
    pub fields: usize,
}

impl<'a> Rows<'a> {
    /// `count` records from `first` on.
    pub fn part(&self, first: usize, count: usize) -> Rows<'a> {
        let ends = &self.ends[first * self.stride..=(first + count) * self.stride];
        Rows { ends, count, ..*self }
    }

    /// Where a field stands, its carriage return cut off if it is the last.
    #[inline(always)]
    pub fn span(&self, row: usize, field: usize) -> (usize, usize) {
        let at = row * self.stride + field;
        let start = self.ends[at].wrapping_add(1) as usize;
        let mut end = self.ends[at + 1] as usize;
        if field + 1 == self.stride && end > start && self.text[end - 1] == b'\r' {
            end -= 1;
        }
        (start, end)
    }

    /// A field's bytes, quotes included.
    pub fn field(&self, row: usize, field: usize) -> &'a [u8] {
        let (start, end) = self.span(row, field);
        &self.text[start..end]
    }

    /// A record's bytes without its newline.
    pub fn record(&self, row: usize) -> &'a [u8] {
        let start = self.ends[row * self.stride].wrapping_add(1) as usize;
        let end = self.ends[(row + 1) * self.stride] as usize;
        let record = &self.text[start..end];
        record.strip_suffix(b"\r").unwrap_or(record)
    }

    /// Bytes of the records, about.
    pub fn bytes(&self) -> usize {
        match (self.ends.first(), self.ends.last()) {
            (Some(first), Some(last)) => last.wrapping_sub(*first) as usize,
            _ => 0,
        }
    }

    /// Where a record starts in the text.
    pub fn start(&self, row: usize) -> usize {
        self.ends[row * self.stride].wrapping_add(1) as usize
    }

    /// Calls `each` with the start and end of a column's fields, in order.
    #[inline(always)]
    pub fn for_each_span(&self, field: usize, mut each: impl FnMut(usize, usize, usize)) {
        assert!(self.count * self.stride < self.ends.len() && field < self.stride);
        let last = field + 1 == self.stride;
        let mut at = field;
        for row in 0..self.count {
            // SAFETY: `at + 1 <= count * stride`, which was checked to be in `ends`.
            let (before, end) = unsafe {
                (*self.ends.get_unchecked(at), *self.ends.get_unchecked(at + 1) as usize)
            };
            let start = before.wrapping_add(1) as usize;
            let mut end = end;
            if last && end > start && self.text[end - 1] == b'\r' {
                end -= 1;
            }
            each(row, start, end);
            at += self.stride;
        }
    }
}
