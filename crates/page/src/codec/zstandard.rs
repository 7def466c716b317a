//! Long strings in which pieces of more than eight bytes return: the strings of each block in a frame of Zstandard.
//!
//! In the layout of [`super::strings`], the bytes of a block are a frame if they are fewer than its strings have, and the
//! strings themselves otherwise. A reader of one string decompresses those of its block, which is why it is chosen only where
//! it takes a good part less than symbols, and only for blocks of few bytes: a scan has room for one on each thread.

use std::cell::RefCell;
use std::sync::Arc;

use super::strings::{Heads, Strings};
use super::{Codec, Content, Sample};
use crate::bitpack::BLOCK;
use crate::page::PageMeta;
use crate::view::{PageView, TextBlock, TextBlocks, TextScratch, ValuesPage};
use coload_types::{Error, Result};
use zstd_safe::{CCtx, DCtx};

/// Higher levels take much longer, and gain a tenth on text.
const LEVEL: i32 = 1;
/// Blocks of more bytes are not compressed, which bounds what a reader makes room for: strings of 4 KiB on average.
const BLOCK_BYTES_MAX: usize = 4 << 20;
/// Strings of fewer bytes on average are not compressed: one of them would cost the reader as much as a thousand.
const STRING_BYTES_MIN: usize = 48;
/// It must take a quarter less than other codecs do, as it costs loads and readers more: it is weighed with this much more
/// than it is expected to take.
const WEIGHT: (usize, usize) = (4, 3);

thread_local! {
    /// Its tables take longer to make than a block to decompress.
    static DECODER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    static ENCODER: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
}

fn failed(what: &str) -> Error {
    Error::Corrupt(format!("page: {what}"))
}

/// Compresses `text` behind what `out` has, if that makes it shorter.
fn compress(text: &[u8], out: &mut Vec<u8>) {
    let before = out.len();
    if text.len() <= BLOCK_BYTES_MAX {
        let mut frame = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
        let done = ENCODER.with_borrow_mut(|encoder| {
            encoder.get_or_insert_with(CCtx::create).compress(&mut frame, text, LEVEL)
        });
        if done.is_ok() && frame.len() < text.len() {
            out.extend_from_slice(&frame);
        }
    }
    if out.len() == before {
        out.extend_from_slice(text);
    }
}

/// Sets `out` to the `length` bytes that a frame stands for.
fn decompress(frame: &[u8], length: u64, out: &mut Vec<u8>) -> Result<()> {
    if length > BLOCK_BYTES_MAX as u64 {
        return Err(failed("a frame of too many bytes"));
    }
    let length = length as usize;
    out.clear();
    out.reserve(length);
    let done = DECODER
        .with_borrow_mut(|decoder| decoder.get_or_insert_with(DCtx::create).decompress(out, frame));
    match done {
        Ok(_) if out.len() == length => Ok(()),
        _ => Err(failed("a frame that does not hold its strings")),
    }
}

/// Strings, those of each block in a frame of Zstandard.
#[derive(Debug)]
pub(super) struct Zstandard;

impl Codec for Zstandard {
    fn name(&self) -> &'static str {
        "zstandard"
    }

    fn content(&self) -> Content {
        Content::Text
    }

    fn open<'a>(&self, bytes: &'a [u8], meta: &PageMeta) -> Result<PageView<'a>> {
        let (nulls, strings) = Strings::open(bytes, meta)?;
        Ok(PageView::Text(ValuesPage::new(meta, nulls, Arc::new(Frames(strings)))))
    }

    fn estimate(&self, sample: &Sample) -> Option<usize> {
        let Sample::Text { strings, rows, bytes } = sample else { return None };
        let block_bytes = bytes / rows.div_ceil(BLOCK).max(1);
        if strings.bytes.len() < STRING_BYTES_MIN * strings.len() || block_bytes > BLOCK_BYTES_MAX {
            return None;
        }
        let mut frame = Vec::new();
        compress(&strings.bytes, &mut frame);
        let text = bytes * frame.len() / strings.bytes.len().max(1);
        Some(text * WEIGHT.0 / WEIGHT.1 + rows)
    }

    fn encode(&self, page: &PageView<'_>) -> Result<Option<Vec<u8>>> {
        let PageView::Text(page) = page else { return Ok(None) };
        let mut bytes = page.null_bits().unwrap_or(&[]).to_vec();
        let heads = Heads::begin(page.rows(), &mut bytes);
        let (mut frames, mut scratch, mut lengths) =
            (Vec::new(), TextScratch::default(), [0; BLOCK]);
        for b in 0..page.rows().div_ceil(BLOCK) {
            let strings = page.text_block(b, &mut scratch)?;
            let mut start = 0;
            for (length, end) in lengths.iter_mut().zip(strings.ends()) {
                *length = u64::from(end - start);
                start = *end;
            }
            compress(strings.bytes, &mut frames);
            heads.put(b, frames.len() as u32, &lengths[..strings.count], &mut bytes);
        }
        bytes.extend(frames);
        Ok(Some(bytes))
    }
}

#[derive(Debug)]
struct Frames<'a>(Strings<'a>);

impl<'a> TextBlocks<'a> for Frames<'a> {
    fn strings<'s>(&'s self, block: usize, scratch: &'s mut TextScratch) -> Result<TextBlock<'s>> {
        let stored = self.0.stored(block)?;
        let TextScratch { ends, bytes } = scratch;
        let (count, length) = self.0.ends(block, ends);
        if stored.len() as u64 == length {
            return Ok(TextBlock { bytes: stored, ends, count });
        }
        decompress(stored, length, bytes)?;
        Ok(TextBlock { bytes, ends, count })
    }
}
