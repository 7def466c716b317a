//! LZ4 frames. The blocks are decompressed by `lz4_flex`; its reader of frames is not used, because it
//! takes a frame that ends after any block for whole.
//!
//! ```text
//!   magic 4 | flags 1 | block size 1 | [content size 8] | [dictionary 4] | header checksum 1 |
//!   { size 4, data, [checksum 4] }... | 0 0 0 0 | [content checksum 4]
//! ```

use std::hash::Hasher;

use lz4_flex::block::decompress_into_with_dict;
use twox_hash::XxHash32;

use crate::codec::{Codec, Next, Step};

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const LEGACY_MAGIC: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];
/// Text before a block that the block may refer to.
const HISTORY_BYTES: usize = 64 << 10;
/// The bit of a block's size that says it is not compressed.
const STORED: u32 = 1 << 31;

/// Where the decoder is.
#[derive(Debug, Clone, Copy)]
enum Part {
    Header,
    /// Bytes left of a frame that is read over.
    Skip(usize),
    Blocks,
    Checksum,
}

/// What a header says.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    linked: bool,
    block_checksums: bool,
    content_checksum: bool,
    block_bytes_max: usize,
    content_bytes: Option<u64>,
}

/// A decoder of LZ4 frames, one after the other.
pub struct Lz4 {
    part: Part,
    frame: Frame,
    /// History, and the last block behind it.
    text: Vec<u8>,
    /// Where in `text` the part starts that is not handed out.
    from: usize,
    hash: XxHash32,
    content_bytes: u64,
}

impl Lz4 {
    /// A decoder that expects the header of a frame.
    pub fn new() -> Self {
        Lz4 {
            part: Part::Header,
            frame: Frame::default(),
            text: Vec::new(),
            from: 0,
            hash: XxHash32::with_seed(0),
            content_bytes: 0,
        }
    }

    fn header(&mut self, input: &[u8]) -> Result<Step, String> {
        let Some(magic) = input.first_chunk::<4>() else { return Ok(MORE) };
        if magic[0] & 0xf0 == 0x50 && magic[1..] == [0x2a, 0x4d, 0x18] {
            let Some(bytes) = number(input, 4) else { return Ok(MORE) };
            self.part = Part::Skip(bytes as usize);
            return Ok(taken(8));
        }
        if *magic == LEGACY_MAGIC {
            return Err(
                "a legacy frame (decompress it into a pipe: lz4 -dc FILE | coload load -)".into()
            );
        }
        if *magic != MAGIC {
            return Err("no frame starts here".into());
        }
        let (Some(flags), Some(size)) = (input.get(4), input.get(5)) else { return Ok(MORE) };
        let set = |bit: u8| flags >> bit & 1 == 1;
        let optional = if set(3) { 8 } else { 0 } + if set(0) { 4 } else { 0 };
        let Some(check) = input.get(6 + optional) else { return Ok(MORE) };
        if flags >> 6 != 1 || set(1) || size & 0x8f != 0 || !(4..=7).contains(&(size >> 4)) {
            return Err("the header of a frame is damaged".into());
        }
        if XxHash32::oneshot(0, &input[4..6 + optional]) >> 8 & 0xff != u32::from(*check) {
            return Err("the checksum of a frame's header is wrong".into());
        }
        if set(0) {
            return Err("a frame needs a dictionary".into());
        }
        let content_bytes =
            input[6..6 + optional].first_chunk::<8>().map(|b| u64::from_le_bytes(*b));
        self.frame = Frame {
            linked: !set(5),
            block_checksums: set(4),
            content_checksum: set(2),
            block_bytes_max: 1 << (8 + 2 * (size >> 4)),
            content_bytes,
        };
        self.part = Part::Blocks;
        Ok(taken(7 + optional))
    }

    fn block(&mut self, input: &[u8]) -> Result<Step, String> {
        let Some(size) = number(input, 0) else { return Ok(MORE) };
        if size == 0 {
            if self.frame.content_bytes.is_some_and(|bytes| bytes != self.content_bytes) {
                return Err("the length of a frame is wrong".into());
            }
            let next = if self.frame.content_checksum { Next::More } else { Next::MemberEnd };
            self.part = Part::Checksum;
            return Ok(Step { consumed: 4, produced: 0, next });
        }
        let bytes = (size & !STORED) as usize;
        if bytes > self.frame.block_bytes_max {
            return Err("a block is larger than its frame allows".into());
        }
        let length = 4 + bytes + if self.frame.block_checksums { 4 } else { 0 };
        let Some(block) = input.get(..length) else { return Ok(MORE) };
        let data = &block[4..4 + bytes];
        if self.frame.block_checksums
            && number(block, 4 + bytes) != Some(XxHash32::oneshot(0, data))
        {
            return Err("the checksum of a block is wrong".into());
        }
        self.decode(data, size & STORED != 0)?;
        Ok(taken(length))
    }

    /// Puts the text of a block behind the history.
    fn decode(&mut self, data: &[u8], stored: bool) -> Result<(), String> {
        let keep = if self.frame.linked { HISTORY_BYTES.min(self.text.len()) } else { 0 };
        let end = self.text.len();
        self.text.copy_within(end - keep.., 0);
        self.text.resize(keep + self.frame.block_bytes_max, 0);
        let (history, out) = self.text.split_at_mut(keep);
        let produced = if stored {
            out[..data.len()].copy_from_slice(data);
            data.len()
        } else {
            decompress_into_with_dict(data, out, history)
                .map_err(|e| format!("a block is damaged ({e})"))?
        };
        self.text.truncate(keep + produced);
        self.from = keep;
        self.content_bytes += produced as u64;
        if self.frame.content_checksum {
            self.hash.write(&self.text[keep..]);
        }
        Ok(())
    }

    fn checksum(&mut self, input: &[u8]) -> Result<Step, String> {
        match number(input, 0) {
            None => Ok(MORE),
            Some(sum) if u64::from(sum) == self.hash.finish() => {
                Ok(Step { consumed: 4, produced: 0, next: Next::MemberEnd })
            }
            Some(_) => Err("the checksum of a frame is wrong".into()),
        }
    }
}

impl Codec for Lz4 {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, String> {
        let waiting = &self.text[self.from..];
        if !waiting.is_empty() {
            let produced = waiting.len().min(out.len());
            out[..produced].copy_from_slice(&waiting[..produced]);
            self.from += produced;
            return Ok(Step { consumed: 0, produced, next: Next::More });
        }
        match self.part {
            Part::Header => self.header(input),
            Part::Skip(left) => {
                let consumed = left.min(input.len());
                self.part = Part::Skip(left - consumed);
                let next = if left == consumed { Next::MemberEnd } else { Next::More };
                Ok(Step { consumed, produced: 0, next })
            }
            Part::Blocks => self.block(input),
            Part::Checksum => self.checksum(input),
        }
    }

    fn restart(&mut self) -> Result<(), String> {
        *self = Lz4 { text: std::mem::take(&mut self.text), ..Lz4::new() };
        self.text.clear();
        Ok(())
    }
}

const MORE: Step = Step { consumed: 0, produced: 0, next: Next::More };

fn taken(consumed: usize) -> Step {
    Step { consumed, produced: 0, next: Next::More }
}

fn number(input: &[u8], at: usize) -> Option<u32> {
    input.get(at..)?.first_chunk::<4>().map(|b| u32::from_le_bytes(*b))
}
