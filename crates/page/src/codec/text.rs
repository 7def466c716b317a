//! Strings, one after the other: as they are, or each in codes of the column's symbol table.
//! In the layout of [`super::strings`], the bytes of a block are its strings.

use std::sync::Arc;

use coload_types::{Bitmap, Error, Result};

use super::strings::{Heads, Strings};
use super::{Codec, CodecId, Content, put_nulls, shrink_page};
use crate::bitpack::BLOCK;
use crate::page::{Page, PageDetail, PageMeta};
use crate::view::{PageView, TextBlock, TextBlocks, TextScratch, ValuesPage};
use crate::{EncodedStrings, SymbolEncoder};

/// Strings, as they are or each in symbols.
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
        let (nulls, strings) = Strings::open(bytes, meta)?;
        Ok(PageView::Text(ValuesPage::new(meta, nulls, Arc::new(Plain(strings)))))
    }
}

#[derive(Debug)]
struct Plain<'a>(Strings<'a>);

impl<'a> TextBlocks<'a> for Plain<'a> {
    fn strings<'s>(&'s self, block: usize, scratch: &'s mut TextScratch) -> Result<TextBlock<'s>> {
        let bytes = self.0.stored(block)?;
        let (count, length) = self.0.ends(block, &mut scratch.ends);
        if length != bytes.len() as u64 {
            return Err(Error::Corrupt("text lengths do not add up".into()));
        }
        Ok(TextBlock { bytes, ends: &scratch.ends, count })
    }

    fn stored(&self) -> Option<&'a [u8]> {
        Some(self.0.bytes())
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
    let heads = Heads::begin(lengths.len(), &mut bytes);
    let mut end = 0u64;
    let mut wide = [0u64; BLOCK];
    for (b, block) in lengths.chunks(BLOCK).enumerate() {
        for (w, l) in wide.iter_mut().zip(block) {
            *w = u64::from(*l);
            end += *w;
        }
        let Ok(end) = u32::try_from(end) else {
            return Err(Error::Limit(
                "one column of a fragment is over 4 GiB; lower --chunk-size".into(),
            ));
        };
        heads.put(b, end, &wide[..block.len()], &mut bytes);
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
