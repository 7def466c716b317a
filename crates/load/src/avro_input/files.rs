//! Files of Avro: where their blocks are, found by going from head to head when the files are opened.
//!
//! ```text
//!   account  header | blocks | blocks | ...      in bytes of the file
//! ```
//!
//! Cost: one read of 36 bytes a block; 56 bytes of memory for blocks that are read together, which are some MiB.

use std::sync::Arc;

use coload_arrow::Fault;
use coload_avro::{BLOCK_HEAD_BYTES_MAX, BlockHead, Head, Header, MARKER_BYTES, decode_header};
use coload_input::RawFile;
use coload_types::Result;

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
    /// Number of the first of them in its file.
    pub first_block: u64,
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
    let header = read_header(&file, batch_bytes_max(asked));
    let header = header.map_err(|error| fault(asked, (number, 0), None, error))?;
    let head = header.bytes as u64;
    let head_of = HeadRead::new(header, number, asked, before)?;
    let mut walk =
        Walk { file: &file, number, head_of: &head_of, at: head, blocks: 0, asked, cutting };
    walk.blocks(runs).map_err(|error| fault(asked, (number, walk.at), Some(walk.blocks), error))?;
    Ok(BlockFile { file, is: head_of, head })
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

/// Goes from block to block.
struct Walk<'a> {
    file: &'a RawFile,
    number: usize,
    head_of: &'a HeadRead,
    /// The block that is looked at, and how many there were before.
    at: u64,
    blocks: u64,
    asked: Asked<'a>,
    cutting: Cutting,
}

impl Walk<'_> {
    fn blocks(&mut self, runs: &mut Vec<RunAt>) -> std::result::Result<(), Fault> {
        let end = self.file.bytes();
        let (mut expansion, mut open) = (None, None::<RunAt>);
        let full = self.cutting.chunk_bytes / RUN_SHARE;
        let weight = |run: &RunAt| self.cutting.weight(run.rows, run.raw);
        let head_bytes = |left: u64| left.min(BLOCK_HEAD_BYTES_MAX as u64) as usize;
        let mut head = read_at(self.file, self.at, head_bytes(end - self.at))?;
        while self.at < end {
            let block = BlockHead::decode(&head)?.ok_or_else(cut_off)?;
            check_head(&block, self.asked)?;
            let bytes = block.total_bytes();
            let behind = self.at.checked_add(bytes).filter(|behind| *behind <= end);
            let behind = behind.ok_or_else(cut_off)?;
            let marker_at = behind - MARKER_BYTES as u64;
            let next = read_at(self.file, marker_at, MARKER_BYTES + head_bytes(end - behind))?;
            let (marker, next) = next.split_at(MARKER_BYTES);
            if marker != self.head_of.marker {
                return Err(wrong_marker());
            }
            let expansion = match expansion {
                Some(known) => known,
                None if block.bytes == 0 => 1.0,
                None => {
                    let start = self.at + block.head_bytes as u64;
                    let stored = read_at(self.file, start, block.bytes as usize)?;
                    *expansion.insert(self.head_of.expansion(&stored, self.asked))
                }
            };
            let one = RunAt {
                file: self.number as u32,
                first_block: self.blocks,
                rows: block.rows,
                start: self.at,
                bytes,
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
            head = next.to_vec();
            self.at = behind;
            self.blocks += 1;
        }
        runs.extend(open);
        Ok(())
    }
}
