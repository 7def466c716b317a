//! A page: the values of one column of one fragment, encoded.
//!
//! ```text
//!   Codes   blocks of codes less the page's base, bit-packed, one width for the page
//!   Int     [null bits] bases: i64 per block; widths: u8 per block; blocks of value - base
//!   Wide    [null bits] bases: i128 per block; widths: u8 per block; blocks of the low 64 bits of
//!           value - base, each followed by its block of the high bits when the width is over 64
//!   Text    [null bits] ends: u32 per block; widths: u8 per block; blocks of lengths; bytes
//! ```
//!
//! A block is 1,024 rows, the last one shorter ([`crate::bitpack`]). Null bits, `ceil(rows / 8)`
//! bytes, stand only in a page with NULLs; a NULL row has offset 0 or length 0. In a `Codes` page
//! NULL is the code after the dictionary's last. `Text` bytes are codes of the column's symbol table
//! number `symbols - 1`, or the strings themselves when `symbols` is 0.
//!
//! Rows reach the reader in blocks: a scan unpacks 1,024 values into a buffer that stays in the
//! first-level cache.

mod encode;
mod verify;
mod view;

pub use encode::{
    encode_codes_u16, encode_codes_u32, encode_int, encode_plain, encode_symbols, encode_text,
    encode_wide,
};
pub use verify::{PageRules, verify_dictionary, verify_page, verify_values_of};
pub use view::{BlocksPage, CodesPage, PageView, decode_text};

use crate::bitpack::BLOCK;
use crate::runs::Runs;
use coload_types::bytes::{ByteReader, put_signed, put_varint};
use coload_types::{Error, Result};

/// Most rows of a page. Some encodings spend no bytes on a row, so that nothing else bounds what a
/// damaged file makes a reader decode.
pub const PAGE_ROWS_MAX: u32 = 1 << 24;
/// Stands before the encoding of a page that is stored as runs.
const RUNS_MARK: u8 = 0x80;

/// What a page says of its encoding, and the range of its values that are not NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageDetail {
    /// Bit-packed codes of the segment's dictionary.
    Codes {
        /// Subtracted from each code; the smallest code of the page.
        base: u32,
        /// The largest code that is not NULL (`base` when all are NULL).
        max: u32,
        /// Bits of a code less the base.
        width: u8,
    },
    /// Numbers by frame of reference.
    Int {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// Wide numbers by frame of reference.
    Wide {
        /// Smallest value.
        min: i128,
        /// Largest value.
        max: i128,
    },
    /// Byte strings.
    Text {
        /// 1-based number of the column's symbol table; 0 for bytes as they are.
        symbols: u32,
    },
}

impl PageDetail {
    /// Counts the symbol table of a `Text` page from `before` tables on.
    pub fn shift_symbols(&mut self, before: u32) {
        if let PageDetail::Text { symbols } = self
            && *symbols > 0
        {
            *symbols += before;
        }
    }
}

/// A page's entry in its column's index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageMeta {
    /// Encoding and range.
    pub detail: PageDetail,
    /// Rows.
    pub rows: u32,
    /// NULL rows.
    pub nulls: u32,
    /// Where the bytes stand in the segment file.
    pub offset: u64,
    /// How many there are.
    pub bytes: u64,
    /// [`coload_types::bytes::checksum`] of them.
    pub checksum: u64,
    /// Set when the bytes are runs ([`crate::runs`]).
    pub runs: Option<Runs>,
}

/// A page before it has a place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Encoding and range.
    pub detail: PageDetail,
    /// Rows.
    pub rows: u32,
    /// NULL rows.
    pub nulls: u32,
    /// The encoded values.
    pub bytes: Vec<u8>,
    /// Set when the bytes are runs ([`crate::runs`]).
    pub runs: Option<Runs>,
}

impl Page {
    /// The page, read in place.
    ///
    /// # Errors
    /// `Corrupt` when its bytes do not agree with its counts.
    pub fn view(&self) -> Result<PageView<'_>> {
        assert!(self.runs.is_none(), "runs are expanded before a page is read");
        let meta = self.meta_with(0, 0);
        PageView::open(&self.bytes, &meta)
    }

    fn meta_with(&self, offset: u64, checksum: u64) -> PageMeta {
        PageMeta {
            detail: self.detail.clone(),
            rows: self.rows,
            nulls: self.nulls,
            offset,
            bytes: self.bytes.len() as u64,
            checksum,
            runs: self.runs,
        }
    }

    /// The index entry of this page once it stands at `offset`.
    pub fn meta(&self, offset: u64) -> PageMeta {
        self.meta_with(offset, coload_types::bytes::checksum(&self.bytes))
    }
}

impl PageMeta {
    /// Appends the entry: encoding u8, then varints, checksum u64; for runs their mark before it.
    pub fn put(&self, out: &mut Vec<u8>) {
        if let Some(runs) = self.runs {
            out.extend([RUNS_MARK, runs.width]);
            put_varint(out, u64::from(runs.count));
            put_varint(out, u64::from(runs.nulls));
        }
        match &self.detail {
            PageDetail::Codes { base, max, width } => {
                out.extend([0, *width]);
                put_varint(out, u64::from(*base));
                put_varint(out, u64::from(*max));
            }
            PageDetail::Int { min, max } => {
                out.push(1);
                put_signed(out, *min);
                put_signed(out, *max);
            }
            PageDetail::Wide { min, max } => {
                out.push(2);
                out.extend(min.to_le_bytes());
                out.extend(max.to_le_bytes());
            }
            PageDetail::Text { symbols } => {
                out.push(3);
                put_varint(out, u64::from(*symbols));
            }
        }
        put_varint(out, u64::from(self.rows));
        put_varint(out, u64::from(self.nulls));
        put_varint(out, self.offset);
        put_varint(out, self.bytes);
        out.extend(self.checksum.to_le_bytes());
    }

    /// Reads what [`Self::put`] wrote.
    pub fn read(reader: &mut ByteReader<'_>) -> Result<Self> {
        let mut encoding = reader.u8()?;
        let mut runs = None;
        if encoding == RUNS_MARK {
            let width = reader.u8()?;
            let (count, nulls) = (reader.varint_u32()?, reader.varint_u32()?);
            runs = Some(Runs { count, nulls, width });
            encoding = reader.u8()?;
        }
        let detail = match encoding {
            0 => PageDetail::Codes {
                width: reader.u8()?,
                base: reader.varint_u32()?,
                max: reader.varint_u32()?,
            },
            1 => PageDetail::Int { min: reader.signed()?, max: reader.signed()? },
            2 => PageDetail::Wide { min: reader.i128()?, max: reader.i128()? },
            3 => PageDetail::Text { symbols: reader.varint_u32()? },
            other => return Err(Error::Corrupt(format!("page encoding {other}"))),
        };
        let meta = PageMeta {
            detail,
            rows: reader.varint_u32()?,
            nulls: reader.varint_u32()?,
            offset: reader.varint()?,
            bytes: reader.varint()?,
            checksum: reader.u64()?,
            runs,
        };
        if meta.nulls > meta.rows || matches!(meta.detail, PageDetail::Codes { width: 33.., .. }) {
            return Err(Error::Corrupt("page counts do not agree".into()));
        }
        Ok(meta)
    }
}

/// Rows in block `block` of a page of `rows`.
pub fn block_rows(rows: usize, block: usize) -> usize {
    rows.saturating_sub(block * BLOCK).min(BLOCK)
}
