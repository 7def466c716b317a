//! A page: the values of one column of one fragment, encoded.
//!
//! A block is 1,024 rows, the last one shorter ([`crate::bitpack`]). Null bits, `ceil(rows / 8)`
//! bytes, stand only in a page with NULLs, which is how pages of all codecs but codes begin; what a
//! NULL row holds besides is of no meaning. In a page of codes NULL is the code after the dictionary's last.
//!
//! Rows reach the reader in blocks: a scan unpacks 1,024 values into a buffer that stays in the
//! first-level cache.

mod verify;

pub use verify::{PageRules, verify_dictionary, verify_page, verify_values_of};

use crate::bitpack::BLOCK;
use crate::codec::{CodecId, Content};
use crate::runs::Runs;
use crate::view::PageView;
use coload_types::bytes::{ByteReader, put_signed, put_varint};
use coload_types::{Error, Physical, Result};

/// Most rows of a page. Some encodings spend no bytes on a row, so that nothing else bounds what a
/// damaged file makes a reader decode.
pub const PAGE_ROWS_MAX: u32 = 1 << 24;
/// Stands before the encoding of a page that is stored as runs.
const RUNS_MARK: u8 = 0x80;

/// What a page holds, and the range of its values that are not NULL. How it holds them is its codec's matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageDetail {
    /// Codes of the segment's dictionary.
    Codes {
        /// Subtracted from each code; the smallest code of the page.
        base: u32,
        /// The largest code that is not NULL (`base` when all are NULL).
        max: u32,
        /// Bits of a code less the base.
        width: u8,
    },
    /// Numbers of 64 bits, with their range.
    Int {
        /// Smallest value that is not NULL.
        min: i64,
        /// Largest value that is not NULL.
        max: i64,
    },
    /// Numbers of 128 bits, with their range.
    Wide {
        /// Smallest value that is not NULL.
        min: i128,
        /// Largest value that is not NULL.
        max: i128,
    },
    /// Byte strings; their range is not kept.
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

    /// 1-based number of the symbol table of a `Text` page; 0 for none.
    pub fn symbols(&self) -> u32 {
        if let PageDetail::Text { symbols } = self { *symbols } else { 0 }
    }

    /// The shape of the values, unless they are codes.
    pub fn physical(&self) -> Option<Physical> {
        match self {
            PageDetail::Codes { .. } => None,
            PageDetail::Int { .. } => Some(Physical::Int),
            PageDetail::Wide { .. } => Some(Physical::Wide),
            PageDetail::Text { .. } => Some(Physical::Bytes),
        }
    }

    /// Whether the page holds codes.
    pub fn is_codes(&self) -> bool {
        matches!(self, PageDetail::Codes { .. })
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            PageDetail::Codes { base, max, width } => {
                out.push(*width);
                put_varint(out, u64::from(*base));
                put_varint(out, u64::from(*max));
            }
            PageDetail::Int { min, max } => {
                put_signed(out, *min);
                put_signed(out, *max);
            }
            PageDetail::Wide { min, max } => {
                out.extend(min.to_le_bytes());
                out.extend(max.to_le_bytes());
            }
            PageDetail::Text { symbols } => put_varint(out, u64::from(*symbols)),
        }
    }

    fn read(content: Content, reader: &mut ByteReader<'_>) -> Result<Self> {
        Ok(match content {
            Content::Codes => PageDetail::Codes {
                width: reader.u8()?,
                base: reader.varint_u32()?,
                max: reader.varint_u32()?,
            },
            Content::Int => PageDetail::Int { min: reader.signed()?, max: reader.signed()? },
            Content::Wide => PageDetail::Wide { min: reader.i128()?, max: reader.i128()? },
            Content::Text => PageDetail::Text { symbols: reader.varint_u32()? },
        })
    }
}

/// A page's entry in its column's index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageMeta {
    /// How the values are written.
    pub codec: CodecId,
    /// What they are, and their range.
    pub detail: PageDetail,
    /// Rows, NULLs among them; at most [`PAGE_ROWS_MAX`].
    pub rows: u32,
    /// Rows that are NULL.
    pub nulls: u32,
    /// Where the bytes stand in the segment file.
    pub offset: u64,
    /// Length of the page in the file, bytes.
    pub bytes: u64,
    /// Checksum of the bytes as they stand in the file ([`coload_types::bytes::checksum`]).
    pub checksum: u64,
    /// Set when the bytes are runs ([`crate::runs`]).
    pub runs: Option<Runs>,
}

/// A page before it has a place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// How the values are written.
    pub codec: CodecId,
    /// What they are, and their range.
    pub detail: PageDetail,
    /// Rows, NULLs among them; at most [`PAGE_ROWS_MAX`].
    pub rows: u32,
    /// Rows that are NULL.
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
        PageView::open(&self.bytes, &self.unplaced())
    }

    /// The page that an index entry tells of.
    pub fn of(meta: PageMeta, bytes: Vec<u8>) -> Self {
        let PageMeta { codec, detail, rows, nulls, runs, .. } = meta;
        Page { codec, detail, rows, nulls, bytes, runs }
    }

    /// The page's entry as long as it has no place: without a checksum.
    pub fn unplaced(&self) -> PageMeta {
        PageMeta {
            codec: self.codec,
            detail: self.detail.clone(),
            rows: self.rows,
            nulls: self.nulls,
            offset: 0,
            bytes: self.bytes.len() as u64,
            checksum: 0,
            runs: self.runs,
        }
    }

    /// The index entry of this page once it stands at `offset`.
    pub fn meta(&self, offset: u64) -> PageMeta {
        let checksum = coload_types::bytes::checksum(&self.bytes);
        PageMeta { offset, checksum, ..self.unplaced() }
    }
}

impl PageMeta {
    /// The name of its codec, and of symbols instead if it has them.
    pub fn codec_name(&self) -> &'static str {
        match self.codec.codec() {
            Ok(_) if self.detail.symbols() > 0 => "symbols",
            Ok(codec) => codec.name(),
            Err(_) => "unknown",
        }
    }

    /// Appends the entry: codec u8, its detail, then varints, checksum u64; for runs their mark before it.
    pub fn put(&self, out: &mut Vec<u8>) {
        if let Some(runs) = self.runs {
            out.extend([RUNS_MARK, runs.width]);
            put_varint(out, u64::from(runs.count));
            put_varint(out, u64::from(runs.nulls));
        }
        out.push(self.codec.0);
        self.detail.put(out);
        put_varint(out, u64::from(self.rows));
        put_varint(out, u64::from(self.nulls));
        put_varint(out, self.offset);
        put_varint(out, self.bytes);
        out.extend(self.checksum.to_le_bytes());
    }

    /// Reads what [`Self::put`] wrote.
    pub fn read(reader: &mut ByteReader<'_>) -> Result<Self> {
        let mut number = reader.u8()?;
        let mut runs = None;
        if number == RUNS_MARK {
            let width = reader.u8()?;
            let (count, nulls) = (reader.varint_u32()?, reader.varint_u32()?);
            runs = Some(Runs { count, nulls, width });
            number = reader.u8()?;
        }
        let codec = CodecId(number);
        let detail = PageDetail::read(codec.codec()?.content(), reader)?;
        let meta = PageMeta {
            codec,
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
