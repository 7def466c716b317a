//! Files of Avro: where their blocks are, found by going from head to head when the files are opened.
//!
//! ```text
//!   account  header | blocks | blocks | ...      in bytes of the file
//!   part                 [from    to)            the blocks that begin in it
//! ```
//!
//! Cost: one read of 36 bytes a block; 56 bytes of memory for blocks that are read together, which are some MiB.

use std::sync::Arc;

use coload_arrow::Fault;
use coload_avro::{BLOCK_HEAD_BYTES_MAX, BlockHead, Head, Header, MARKER_BYTES, decode_header};
use coload_input::RawFile;
use coload_types::Result;
use coload_wire::PartIs;

use super::input::{FieldsRead, HeadRead, check_head, cut_off, fault, wrong_marker};
use crate::typed::{Asked, Block, BlockFile, Cutting, batch_bytes_max, read_at};

/// Bytes in which the header is looked for first.
const HEADER_BYTES: u64 = 64 << 10;
/// Share of a chunk that blocks have which are read together.
const RUN_SHARE: u64 = 4;

/// Blocks of a file that are read together.
#[derive(Debug, Clone, Copy)]
pub struct RunAt {
    /// Number of the input.
    pub file: u32,
    /// Number of the first of them in its file, if it is known: before a part nobody counts.
    pub first_block: Option<u64>,
    /// Records in all.
    pub rows: u64,
    /// Where they start, and how many bytes they have, heads and markers among them.
    pub start: u64,
    /// The same.
    pub bytes: u64,
    /// Bytes that they are taken for when they are decompressed.
    raw: u64,
}

impl RunAt {
    /// Their rows, as they are cut.
    pub fn block(&self) -> Block {
        Block {
            rows: self.rows,
            bytes: self.raw,
            is_whole: true,
            span: self.start..self.start + self.bytes,
        }
    }
}

/// Looks at a file, by its number; its blocks are added to `runs`. `before` are the fields of the file before.
///
/// # Errors
/// `Input` when it is damaged, `Invalid` when its fields are not those that are read, `Unavailable` when it cannot be read.
pub fn index_file(
    file: Arc<RawFile>,
    (number, before): (usize, Option<&Arc<FieldsRead>>),
    asked: Asked<'_>,
    cutting: Cutting,
    runs: &mut Vec<RunAt>,
) -> Result<BlockFile<HeadRead>> {
    let bytes_max = batch_bytes_max(asked);
    let header = read_header(&file, bytes_max);
    let header = header.map_err(|error| fault(asked, (number, 0), None, error))?;
    let head = header.bytes as u64;
    let head_of = HeadRead::new(header, number, asked, before)?;
    let part = match asked.request.part(number) {
        PartIs::Bytes { range, start } => Some((*start.max(&head), range.end)),
        _ => None,
    };
    let (from, to) = part.unwrap_or((head, u64::MAX));
    let mut walk = Walk::new(&file, head_of.marker, from, bytes_max);
    let index = Index { head_of: &head_of, number, counted: from == head, asked, cutting };
    index.runs(&mut walk, to, runs).map_err(|error| {
        fault(asked, (number, walk.at), index.counted.then_some(walk.blocks), error)
    })?;
    let span = from..walk.at;
    let reads = part.map(|_| span.clone()).into_iter().collect();
    Ok(BlockFile { file, is: head_of, span, is_part: part.is_some(), reads })
}

/// Reads the header of a file, which takes `bytes_max` at most.
///
/// # Errors
/// `Damaged` when it is none, `TooLarge` when it takes more, `Unknown` for what is not read; those of reading.
pub fn read_header(file: &RawFile, bytes_max: u64) -> std::result::Result<Header, Fault> {
    let mut wanted = HEADER_BYTES;
    loop {
        let bytes = read_at(file, 0, wanted.min(file.bytes()) as usize)?;
        match decode_header(&bytes)? {
            Head::Whole(header) => return Ok(*header),
            Head::Needs(needed) if needed > file.bytes() => {
                return Err(Fault::Damaged("they end in the middle of the header".to_owned()));
            }
            Head::Needs(needed) if needed > bytes_max => return Err(Fault::TooLarge(needed)),
            Head::Needs(needed) => wanted = needed.max(wanted.saturating_mul(2)),
        }
    }
}

/// Goes from block to block, by their heads and the markers behind them.
pub struct Walk<'a> {
    file: &'a RawFile,
    marker: [u8; MARKER_BYTES],
    /// Most bytes of a block.
    bytes_max: u64,
    /// Where the next block begins, and how many there were before.
    pub at: u64,
    /// The same.
    pub blocks: u64,
    /// The first bytes of the next block, if they were read with the marker before it.
    head: Option<Vec<u8>>,
}

impl<'a> Walk<'a> {
    /// Begins with the block at a byte.
    pub fn new(file: &'a RawFile, marker: [u8; MARKER_BYTES], at: u64, bytes_max: u64) -> Self {
        Walk { file, marker, bytes_max, at, blocks: 0, head: None }
    }

    /// The head of the next block, which is passed then; `None` at the end of the file.
    ///
    /// # Errors
    /// `Damaged` when there is no block, `TooLarge` when it is longer than one may be; those of reading.
    pub fn pass_block(&mut self) -> std::result::Result<Option<BlockHead>, Fault> {
        let end = self.file.bytes();
        if self.at >= end {
            return Ok(None);
        }
        let head_bytes = |left: u64| left.min(BLOCK_HEAD_BYTES_MAX as u64) as usize;
        let head = match self.head.take() {
            Some(head) => head,
            None => read_at(self.file, self.at, head_bytes(end - self.at))?,
        };
        let block = BlockHead::decode(&head)?.ok_or_else(cut_off)?;
        check_head(&block, self.bytes_max)?;
        let behind = self.at.checked_add(block.total_bytes()).filter(|behind| *behind <= end);
        let behind = behind.ok_or_else(cut_off)?;
        let marker_at = behind - MARKER_BYTES as u64;
        let next = read_at(self.file, marker_at, MARKER_BYTES + head_bytes(end - behind))?;
        let (marker, next) = next.split_at(MARKER_BYTES);
        if marker != self.marker {
            return Err(wrong_marker());
        }
        self.head = Some(next.to_vec());
        self.at = behind;
        self.blocks += 1;
        Ok(Some(block))
    }
}

/// A file that is being looked at.
struct Index<'a> {
    head_of: &'a HeadRead,
    number: usize,
    /// Whether its first block is that of the file, so that blocks have numbers.
    counted: bool,
    asked: Asked<'a>,
    cutting: Cutting,
}

impl Index<'_> {
    /// Puts the blocks that begin before `to` together.
    fn runs(
        &self,
        walk: &mut Walk<'_>,
        to: u64,
        runs: &mut Vec<RunAt>,
    ) -> std::result::Result<(), Fault> {
        let (mut expansion, mut open) = (None, None::<RunAt>);
        let full = self.cutting.chunk_bytes / RUN_SHARE;
        let weight = |run: &RunAt| self.cutting.weight(run.rows, run.raw);
        loop {
            let (start, number) = (walk.at, walk.blocks);
            if start >= to {
                break;
            }
            let Some(block) = walk.pass_block()? else { break };
            let expansion = match expansion {
                Some(known) => known,
                None if block.bytes == 0 => 1.0,
                None => {
                    let at = start + block.head_bytes as u64;
                    let stored = read_at(walk.file, at, block.bytes as usize)?;
                    *expansion.insert(self.head_of.expansion(&stored, self.asked))
                }
            };
            let one = RunAt {
                file: self.number as u32,
                first_block: self.counted.then_some(number),
                rows: block.rows,
                start,
                bytes: block.total_bytes(),
                raw: (block.bytes as f64 * expansion) as u64,
            };
            open = Some(match open {
                Some(run) if weight(&run).saturating_add(weight(&one)) <= full => RunAt {
                    rows: run.rows + one.rows,
                    bytes: run.bytes + one.bytes,
                    raw: run.raw.saturating_add(one.raw),
                    ..run
                },
                run => {
                    runs.extend(run);
                    one
                }
            });
        }
        runs.extend(open);
        Ok(())
    }
}
