//! Long strings in which pieces of more than eight bytes return: the strings of each block in a frame of Zstandard.
//!
//! ```text
//!   [null bits]  ends: u32 per block  widths: u8 per block  blocks of lengths  bytes of each block
//! ```
//!
//! `ends` says where the bytes of a block end in those of all. They are a frame if they are fewer than the strings have, and
//! the strings themselves otherwise. A reader of one string decompresses those of its block, which is why it is chosen only
//! where it takes a good part less than symbols.

use std::cell::RefCell;
use std::sync::Arc;

use super::{Codec, Content, PackedBlocks, Sample, take_nulls};
use crate::bitpack::{BLOCK, pack_block, unpack_block, width_of};
use crate::page::PageMeta;
use crate::view::{PageView, TextBlock, TextBlocks, TextScratch, ValuesPage};
use coload_types::bytes::ByteReader;
use coload_types::{Error, Result};
use zstd_safe::{CCtx, DCtx};

/// Higher levels take much longer, and gain a tenth on text.
const LEVEL: i32 = 1;
/// Blocks of more bytes are not compressed, which bounds what a reader makes room for.
const BLOCK_BYTES_MAX: usize = 64 << 20;
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
fn decompress(frame: &[u8], length: usize, out: &mut Vec<u8>) -> Result<()> {
    if length > BLOCK_BYTES_MAX {
        return Err(failed("a frame of too many bytes"));
    }
    out.clear();
    out.reserve(length);
    let done = DECODER
        .with_borrow_mut(|decoder| decoder.get_or_insert_with(DCtx::create).decompress(out, frame));
    match done {
        Ok(_) if out.len() == length => Ok(()),
        _ => Err(failed("a frame that does not hold its strings")),
    }
}

/// See the module.
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
        let mut reader = ByteReader::new(bytes);
        let nulls = take_nulls(&mut reader, meta)?;
        let lengths = PackedBlocks::read(&mut reader, meta.rows as usize, 4, 32)?;
        let frames = reader.take(reader.remaining())?;
        let blocks = Frames { lengths, frames };
        if blocks.end((meta.rows as usize).div_ceil(BLOCK)) != frames.len() {
            return Err(failed("text after the last row"));
        }
        Ok(PageView::Text(ValuesPage::new(meta, nulls, Arc::new(blocks))))
    }

    fn estimate(&self, sample: &Sample) -> Option<usize> {
        let Sample::Text { strings, rows, bytes } = sample else { return None };
        if strings.bytes.len() < STRING_BYTES_MIN * strings.len() {
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
        let (at, blocks) = (bytes.len(), page.rows().div_ceil(BLOCK));
        bytes.resize(at + blocks * 5, 0);
        let (mut frames, mut scratch, mut lengths) =
            (Vec::new(), TextScratch::default(), [0; BLOCK]);
        for b in 0..blocks {
            let strings = page.text_block(b, &mut scratch)?;
            let (mut start, mut longest) = (0, 0);
            for (length, end) in lengths.iter_mut().zip(strings.ends()) {
                *length = u64::from(end - start);
                longest = longest.max(*length);
                start = *end;
            }
            compress(strings.bytes, &mut frames);
            let width = width_of(longest);
            bytes[at + b * 4..][..4].copy_from_slice(&(frames.len() as u32).to_le_bytes());
            bytes[at + blocks * 4 + b] = width;
            pack_block(&lengths[..strings.count], width, &mut bytes);
        }
        bytes.extend(frames);
        Ok(Some(bytes))
    }
}

#[derive(Debug)]
struct Frames<'a> {
    lengths: PackedBlocks<'a>,
    frames: &'a [u8],
}

impl Frames<'_> {
    /// Where the bytes of the first so many blocks end.
    fn end(&self, blocks: usize) -> usize {
        match blocks {
            0 => 0,
            _ => u32::from_le_bytes(self.lengths.head(blocks - 1)) as usize,
        }
    }
}

impl<'a> TextBlocks<'a> for Frames<'a> {
    fn strings<'s>(&'s self, block: usize, scratch: &'s mut TextScratch) -> Result<TextBlock<'s>> {
        let stored = self
            .frames
            .get(self.end(block)..self.end(block + 1))
            .ok_or_else(|| failed("a block out of its page"))?;
        let (packed, width, count) = self.lengths.block(block);
        let mut lengths = [0; BLOCK];
        unpack_block(packed, count, width, &mut lengths);
        let TextScratch { ends, bytes } = scratch;
        let mut length = 0;
        for (end, of) in ends.iter_mut().zip(&lengths[..count]) {
            length += *of as usize;
            *end = length as u32;
        }
        if stored.len() == length {
            return Ok(TextBlock { bytes: stored, ends, count });
        }
        decompress(stored, length, bytes)?;
        Ok(TextBlock { bytes, ends, count })
    }
}
