//! Strings, one after the other: as they are, or each in codes of the column's symbol table.
//!
//! ```text
//!   [null bits]  ends: u32 per block  widths: u8 per block  blocks of lengths  bytes
//! ```

use super::{Codec, CodecId, Content, PackedBlocks, put_nulls, shrink_page, take_nulls};
use crate::bitpack::{BLOCK, pack_block, unpack_block, width_of};
use crate::page::{Page, PageDetail, PageMeta};
use crate::view::{PageView, TextBlock, TextBlocks, TextScratch, ValuesPage};
use crate::{EncodedStrings, SymbolEncoder};
use coload_types::bytes::ByteReader;
use coload_types::{Bitmap, Error, Result};

/// See the module.
#[derive(Debug)]
pub(super) struct Text;

impl Codec for Text {
    fn name(&self) -> &'static str {
        "plain text"
    }

    fn content(&self) -> Content {
        Content::Text
    }

    fn open<'a>(&self, bytes: &'a [u8], meta: &PageMeta) -> Result<PageView<'a>> {
        let mut reader = ByteReader::new(bytes);
        let nulls = take_nulls(&mut reader, meta)?;
        let lengths = PackedBlocks::read(&mut reader, meta.rows as usize, 4, 32)?;
        let strings = reader.take(reader.remaining())?;
        let blocks = Strings { lengths, strings };
        if blocks.end((meta.rows as usize).div_ceil(BLOCK)) != strings.len() {
            return Err(Error::Corrupt("page: text after the last row".into()));
        }
        Ok(PageView::Text(ValuesPage::new(meta, nulls, std::sync::Arc::new(blocks))))
    }
}

#[derive(Debug)]
struct Strings<'a> {
    lengths: PackedBlocks<'a>,
    strings: &'a [u8],
}

impl Strings<'_> {
    /// Where the strings of the first so many blocks end.
    fn end(&self, blocks: usize) -> usize {
        match blocks {
            0 => 0,
            _ => u32::from_le_bytes(self.lengths.head(blocks - 1)) as usize,
        }
    }
}

impl<'a> TextBlocks<'a> for Strings<'a> {
    fn strings<'s>(&'s self, block: usize, scratch: &'s mut TextScratch) -> Result<TextBlock<'s>> {
        let bytes = self
            .strings
            .get(self.end(block)..self.end(block + 1))
            .ok_or_else(|| Error::Corrupt("text block out of its page".into()))?;
        let (packed, width, count) = self.lengths.block(block);
        let mut lengths = [0; BLOCK];
        unpack_block(packed, count, width, &mut lengths);
        let mut at = 0u64;
        for (e, l) in scratch.ends.iter_mut().zip(&lengths[..count]) {
            at += *l;
            *e = at as u32;
        }
        if at != bytes.len() as u64 {
            return Err(Error::Corrupt("text lengths do not add up".into()));
        }
        Ok(TextBlock { bytes, ends: &scratch.ends, count })
    }

    fn stored(&self) -> Option<&'a [u8]> {
        Some(self.strings)
    }
}

/// Encodes strings that symbols already shortened (table `symbols`, 1-based), or not (0).
///
/// # Errors
/// `Limit` when the page's bytes are over 4 GiB.
pub fn encode_text(
    text: &[u8],
    lengths: &[u32],
    nulls: Option<&Bitmap>,
    symbols: u32,
) -> Result<Page> {
    // The text comes last, when it is known how long what stands before it is: a long one is not moved.
    let mut bytes = Vec::new();
    let null_count = put_nulls(nulls, lengths.len(), &mut bytes);
    let blocks = lengths.len().div_ceil(BLOCK);
    let ends_at = bytes.len();
    bytes.resize(ends_at + blocks * 5, 0);
    let mut end = 0u64;
    let mut offsets = [0u64; BLOCK];
    for (b, block) in lengths.chunks(BLOCK).enumerate() {
        let mut max = 0;
        for (o, l) in offsets.iter_mut().zip(block) {
            *o = u64::from(*l);
            end += *o;
            max = max.max(*o);
        }
        let Ok(end) = u32::try_from(end) else {
            return Err(Error::Limit(
                "one column of a fragment is over 4 GiB; lower --chunk-size".into(),
            ));
        };
        let width = width_of(max);
        bytes[ends_at + b * 4..][..4].copy_from_slice(&end.to_le_bytes());
        bytes[ends_at + blocks * 4 + b] = width;
        pack_block(&offsets[..block.len()], width, &mut bytes);
    }
    assert_eq!(end, text.len() as u64);
    bytes.reserve_exact(text.len());
    bytes.extend_from_slice(text);
    Ok(Page {
        codec: CodecId::TEXT,
        detail: PageDetail::Text { symbols },
        rows: lengths.len() as u32,
        nulls: null_count,
        bytes,
        runs: None,
    })
}

/// A page of strings that were encoded; as they are if that is shorter. See [`encode_text`].
///
/// # Errors
/// As [`encode_text`] and [`EncodedStrings::settle`].
pub fn encode_symbols(
    strings: &EncodedStrings,
    nulls: Option<&Bitmap>,
    encoder: &SymbolEncoder,
) -> Result<Page> {
    let (strings, symbols) = strings.settle(encoder)?;
    let page = encode_text(&strings.bytes, &strings.lengths, nulls, symbols)?;
    // Strings that were kept as they are take the least room at once, as pages wait in memory.
    if symbols == 0 { shrink_page(page) } else { Ok(page) }
}
