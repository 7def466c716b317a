//! Codecs: how the values of a page become bytes.
//!
//! ```text
//!   number in the file  ->  codec  ->  view of the page  ->  blocks of 1,024 values
//! ```
//!
//! A codec is a file here and a line in [`CODECS`]. What reads pages asks the registry once a page ([`PageView::open`]) and
//! the view once a block, and knows which values a page holds, not how they are written. A column's pages may have
//! different codecs. Runs are no codec: they go around a page of any ([`crate::runs`]).

mod codes;
mod decimals;
mod deltas;
mod frames;
mod halves;
mod masked;
mod multiples;
mod sample;
mod shrink;
mod strings;
mod templates;
mod text;
mod wide_frames;
mod zstandard;

pub use codes::{CodesPage, encode_codes_u16, encode_codes_u32};
pub use frames::encode_int;
pub use sample::Sample;
pub use shrink::shrink_page;
pub(crate) use shrink::whole_estimate;
pub use text::{encode_symbols, encode_text};
pub use wide_frames::encode_wide;

use coload_types::{Bitmap, Error, Plain, Result, Values};
use std::fmt;

use crate::bitpack::{BLOCK, block_bytes};
use crate::page::{Page, PageMeta, block_rows};
use crate::view::PageView;
use coload_types::bytes::ByteReader;

/// A codec's number in files and on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodecId(pub u8);

impl CodecId {
    /// Codes of a dictionary.
    pub const CODES: CodecId = CodecId(0);
    /// Numbers by frame of reference.
    pub const FRAMES: CodecId = CodecId(1);
    /// Wide numbers by frame of reference.
    pub const WIDE_FRAMES: CodecId = CodecId(2);
    /// Strings, as they are or in symbols.
    pub const TEXT: CodecId = CodecId(3);
    /// Numbers that go up or down by similar steps.
    pub const DELTAS: CodecId = CodecId(4);
    /// Floats that were written as decimals.
    pub const DECIMALS: CodecId = CodecId(5);
    /// Numbers whose high bits take few values.
    pub const HALVES: CodecId = CodecId(6);
    /// Strings that differ in digits only.
    pub const TEMPLATES: CodecId = CodecId(7);
    /// Strings compressed a block at a time.
    pub const ZSTANDARD: CodecId = CodecId(8);
    /// Numbers whose distances have a common divisor.
    pub const MULTIPLES: CodecId = CodecId(9);
    /// Wide numbers of which only some bits differ.
    pub const MASKED: CodecId = CodecId(10);

    /// The codec of this number.
    ///
    /// # Errors
    /// `Corrupt` when this program has none.
    pub fn codec(self) -> Result<&'static dyn Codec> {
        match CODECS.get(usize::from(self.0)) {
            Some(codec) => Ok(*codec),
            None => Err(Error::Corrupt(format!(
                "page encoding {} is not known to this version: a newer one wrote it",
                self.0
            ))),
        }
    }
}

/// What the values of a page are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Codes of the segment's dictionary.
    Codes,
    /// Numbers of 64 bits.
    Int,
    /// Numbers of 128 bits.
    Wide,
    /// Byte strings, of text and of binary columns.
    Text,
}

/// How the values of a page become bytes, and are read again.
pub trait Codec: fmt::Debug + Sync {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// Which kind of values the codec writes; a page of another kind is never given to it.
    fn content(&self) -> Content;

    /// Finds the parts of a page and checks that they lie inside its bytes. What the view then makes of
    /// bytes that lie is of no use, but is no panic.
    ///
    /// # Errors
    /// `Corrupt` when they do not.
    fn open<'a>(&self, bytes: &'a [u8], meta: &PageMeta) -> Result<PageView<'a>>;

    /// Bytes that a page would take with it, from a sample; `None` if it is not for such values, or for pages that are
    /// made otherwise than from another page.
    fn estimate(&self, _sample: &Sample) -> Option<usize> {
        None
    }

    /// The bytes of the same values with this codec; `None` if it cannot hold them. Text of the page is not in symbols.
    ///
    /// # Errors
    /// `Corrupt` when the page does not add up.
    fn encode(&self, _page: &PageView<'_>) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// All codecs; each stands at its number.
static CODECS: [&dyn Codec; 11] = [
    &codes::Codes,
    &frames::Frames,
    &wide_frames::WideFrames,
    &text::Text,
    &deltas::Deltas,
    &decimals::Decimals,
    &halves::Halves,
    &templates::Templates,
    &zstandard::Zstandard,
    &multiples::Multiples,
    &masked::Masked,
];

/// Encodes a plain column; text without symbols.
///
/// # Errors
/// `Limit` when the page's bytes are over 4 GiB.
pub fn encode_plain(column: &Plain) -> Result<Page> {
    let nulls = column.nulls.as_ref();
    match &column.values {
        Values::Int(v) => Ok(encode_int(v, nulls)),
        Values::Wide(v) => Ok(encode_wide(v, nulls)),
        Values::Bytes(v) => {
            let mut previous = 0;
            let lengths = v
                .ends
                .iter()
                .map(|end| {
                    let length = end - previous;
                    previous = *end;
                    length
                })
                .collect::<Vec<_>>();
            encode_text(&v.bytes, &lengths, nulls, 0)
        }
    }
}

/// Appends the null bits, with which pages that have NULLs begin; how many are NULL.
fn put_nulls(nulls: Option<&Bitmap>, rows: usize, out: &mut Vec<u8>) -> u32 {
    let Some(nulls) = nulls.filter(|n| n.count_ones() > 0) else { return 0 };
    assert_eq!(nulls.len(), rows);
    nulls.put_bytes(out);
    nulls.count_ones() as u32
}

/// Reads what [`put_nulls`] wrote.
fn take_nulls<'a>(reader: &mut ByteReader<'a>, meta: &PageMeta) -> Result<Option<&'a [u8]>> {
    let bytes = (meta.rows as usize).div_ceil(8);
    if meta.nulls > 0 { reader.take(bytes).map(Some) } else { Ok(None) }
}

/// Bit-packed blocks, each of its own width, before which stand a head of fixed size for each and their widths.
#[derive(Debug)]
struct PackedBlocks<'a> {
    heads: &'a [u8],
    widths: &'a [u8],
    /// Start of each block in `packed`, and the end.
    starts: Vec<u32>,
    packed: &'a [u8],
    rows: usize,
}

impl<'a> PackedBlocks<'a> {
    fn read(
        reader: &mut ByteReader<'a>,
        rows: usize,
        head_bytes: usize,
        width_max: u8,
    ) -> Result<Self> {
        let blocks = rows.div_ceil(BLOCK);
        let heads = reader.take(blocks * head_bytes)?;
        let widths = reader.take(blocks)?;
        let mut starts = Vec::with_capacity(blocks + 1);
        let mut at = 0usize;
        for (b, width) in widths.iter().enumerate() {
            if *width > width_max {
                return Err(Error::Corrupt(format!("width {width} in a page")));
            }
            starts.push(at as u32);
            let count = block_rows(rows, b);
            at +=
                block_bytes(count, (*width).min(64)) + block_bytes(count, width.saturating_sub(64));
        }
        if at > u32::MAX as usize {
            return Err(Error::Corrupt("page over 4 GiB".into()));
        }
        starts.push(at as u32);
        let packed = reader.take(at)?;
        Ok(PackedBlocks { heads, widths, starts, packed, rows })
    }

    /// The packed numbers of a block, their width and count.
    #[inline]
    fn block(&self, block: usize) -> (&'a [u8], u8, usize) {
        let range = self.starts[block] as usize..self.starts[block + 1] as usize;
        (&self.packed[range], self.widths[block], block_rows(self.rows, block))
    }

    /// The head of a block.
    #[inline]
    fn head<const N: usize>(&self, block: usize) -> [u8; N] {
        let mut head = [0; N];
        head.copy_from_slice(&self.heads[block * N..(block + 1) * N]);
        head
    }
}

#[cfg(test)]
mod tests;
