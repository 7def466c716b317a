//! Chunks of blocks of rows, which are batches or row groups: several small ones, or a part of a large one.
//!
//! A block that is read as a whole is not cut, for each part would decompress all of it. It counts as as many chunks as it is
//! long, of which all but the first are empty, so that partitions are no larger than others.

use std::ops::Range;

/// Rows that stand together in an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// How many.
    pub rows: u64,
    /// Bytes that they take in memory.
    pub bytes: u64,
    /// Whether a part of them cannot be read without the rest.
    pub is_whole: bool,
    /// Where they stand in the account.
    pub span: Range<u64>,
}

/// Blocks that are read together.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// The first of them.
    block: usize,
    blocks: usize,
    /// Chunks that they are: of more than one block, one.
    chunks: usize,
    first_chunk: usize,
}

/// Rows of a block that are read at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// Number of the block.
    pub block: usize,
    /// Its rows that are read.
    pub rows: Range<u64>,
    /// Where they stand in the account.
    pub span: Range<u64>,
}

/// How blocks are cut into chunks.
#[derive(Debug, Default)]
pub struct Chunks {
    groups: Vec<Group>,
    count: usize,
}

/// How much more rows of a block that is not cut may take in memory than what they are read from: as integers of a byte do.
const WHOLE_FACTOR: u64 = 8;

/// What decides how blocks are cut.
#[derive(Debug, Clone, Copy)]
pub struct Cutting {
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Bytes that a row takes in memory at least.
    pub row_bytes: u64,
    /// Most chunks that a block counts as which is not cut.
    pub fragments_per_partition: usize,
    /// Bytes that are read, chunks that begin in them whole.
    pub sample_bytes: u64,
}

impl Cutting {
    /// Bytes that rows count as.
    pub fn weight(&self, rows: u64, bytes: u64) -> u64 {
        bytes.max(rows.saturating_mul(self.row_bytes))
    }

    /// Whether all rows of a block of so many bytes may be in memory at once, as each part would decompress all of it. Those of
    /// runs and bits, and NULLs, take many times what they are read from.
    pub fn may_be_whole(&self, rows: u64, bytes: u64) -> bool {
        self.weight(rows, bytes) / WHOLE_FACTOR <= bytes.max(self.chunk_bytes)
    }

    /// Chunks of a block that is of such a weight.
    pub fn chunks_of(&self, weight: u64, rows: u64, is_whole: bool) -> usize {
        match is_whole {
            true => ((weight / self.chunk_bytes) as usize).clamp(1, self.fragments_per_partition),
            false => (weight.div_ceil(self.chunk_bytes)).clamp(1, rows.max(1)) as usize,
        }
    }
}

/// The rows of a part of a block, and their share of its bytes.
pub fn part_of(
    part: usize,
    parts: usize,
    rows: u64,
    is_whole: bool,
    span: Range<u64>,
) -> Option<(Range<u64>, Range<u64>)> {
    if is_whole {
        return (part == 0).then_some((0..rows, span));
    }
    let share = |of: u64, part: usize| (u128::from(of) * part as u128 / parts as u128) as u64;
    let bytes = span.end - span.start;
    let from = |part| span.start + share(bytes, part);
    Some((share(rows, part)..share(rows, part + 1), from(part)..from(part + 1)))
}

impl Chunks {
    /// Cuts blocks.
    pub fn new(blocks: impl IntoIterator<Item = Block>, cutting: Cutting) -> Self {
        let mut chunks = Chunks::default();
        let (mut open, mut open_weight, mut before) = (None::<Group>, 0_u64, 0_u64);
        for (number, block) in blocks.into_iter().enumerate() {
            let weight = cutting.weight(block.rows, block.bytes);
            let joins = open.is_some() && open_weight.saturating_add(weight) <= cutting.chunk_bytes;
            if !joins {
                chunks.count += open.take().map_or(0, |group| chunks.push(group));
                if before >= cutting.sample_bytes {
                    return chunks;
                }
                open_weight = 0;
            }
            let count = cutting.chunks_of(weight, block.rows, block.is_whole);
            let first_chunk = chunks.count;
            let group =
                open.get_or_insert(Group { block: number, blocks: 0, chunks: count, first_chunk });
            group.blocks += 1;
            open_weight = open_weight.saturating_add(weight);
            before = before.saturating_add(weight);
        }
        chunks.count += open.map_or(0, |group| chunks.push(group));
        chunks
    }

    fn push(&mut self, group: Group) -> usize {
        self.groups.push(group);
        group.chunks
    }

    /// Number of chunks.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What a chunk has, in order; `block` gives the blocks by their numbers.
    pub fn rows(&self, block: impl Fn(usize) -> Block, chunk: usize) -> Vec<Rows> {
        let found = self.groups.partition_point(|group| group.first_chunk <= chunk);
        let Some(group) = found.checked_sub(1).map(|found| self.groups[found]) else {
            return Vec::new();
        };
        let part = chunk - group.first_chunk;
        let of = |number: usize| {
            let Block { rows, is_whole, span, .. } = block(number);
            let (rows, span) = part_of(part, group.chunks, rows, is_whole, span)?;
            Some(Rows { block: number, rows, span })
        };
        (group.block..group.block + group.blocks).filter_map(of).collect()
    }
}
