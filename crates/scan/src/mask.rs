//! Which rows of a block or a page are selected, a bit each.

use coload_page::bitpack::BLOCK;
use coload_page::block_rows;
use coload_types::simd_dispatch;

/// Words of a block's mask.
pub const MASK_WORDS: usize = BLOCK / 64;

#[inline(always)]
fn count_ones_inner(words: &[u64; MASK_WORDS]) -> usize {
    words.iter().map(|w| w.count_ones() as usize).sum()
}

/// Without a branch for most words: it would be mispredicted in every sparse one.
#[inline(always)]
fn positions_inner(words: &[u64; MASK_WORDS], out: &mut [u16]) -> usize {
    let mut count = 0;
    for (w, word) in words.iter().enumerate() {
        let (mut rest, ones) = (*word, word.count_ones() as usize);
        // What is written past the last selected row is overwritten or not counted.
        for slot in 0..POSITIONS_SPARE {
            out[count + slot] = (w * 64) as u16 + rest.trailing_zeros() as u16;
            rest &= rest.wrapping_sub(1);
        }
        for slot in POSITIONS_SPARE..ones {
            out[count + slot] = (w * 64) as u16 + rest.trailing_zeros() as u16;
            rest &= rest.wrapping_sub(1);
        }
        count += ones;
    }
    count
}

simd_dispatch! { fn positions(words: &[u64; MASK_WORDS], out: &mut [u16]) -> usize = positions_inner; }
simd_dispatch! { fn count_ones(words: &[u64; MASK_WORDS]) -> usize = count_ones_inner; }

/// Slots that [`BlockMask::positions`] writes for each word, selected or not.
pub const POSITIONS_SPARE: usize = 4;

/// A bit for each row of a block; bits past the block's rows are clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockMask {
    /// Row `i` is bit `i % 64` of word `i / 64`.
    pub words: [u64; MASK_WORDS],
}

impl BlockMask {
    /// All rows of a full block.
    pub const ALL: BlockMask = BlockMask { words: [u64::MAX; MASK_WORDS] };

    /// No row of the block.
    pub const NONE: BlockMask = BlockMask { words: [0; MASK_WORDS] };

    /// The first `rows` rows.
    pub fn first(rows: usize) -> Self {
        if rows >= BLOCK {
            return Self::ALL;
        }
        let mut words = [0; MASK_WORDS];
        for (w, word) in words.iter_mut().enumerate() {
            *word = match rows.saturating_sub(w * 64) {
                0 => 0,
                n @ 1..64 => (1 << n) - 1,
                _ => u64::MAX,
            };
        }
        BlockMask { words }
    }

    /// Number of rows that are selected.
    pub fn count(&self) -> usize {
        count_ones(&self.words)
    }

    /// Whether no row is selected.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }

    /// Whether row `row` is selected.
    pub fn get(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// Selects row `row`, counted from the block's first.
    pub fn set(&mut self, row: usize) {
        self.words[row / 64] |= 1 << (row % 64);
    }

    /// Keeps the rows that `other` has too.
    pub fn keep(&mut self, other: &[u64; MASK_WORDS]) {
        for (a, b) in self.words.iter_mut().zip(other) {
            *a &= b;
        }
    }

    /// Drops the rows that `other` has.
    pub fn drop_rows(&mut self, other: &[u64; MASK_WORDS]) {
        for (a, b) in self.words.iter_mut().zip(other) {
            *a &= !b;
        }
    }

    /// Calls `visit` with each selected row, in order.
    #[inline(always)]
    pub fn for_each(&self, mut visit: impl FnMut(usize)) {
        for (w, word) in self.words.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                visit(w * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }

    /// The selected rows as numbers; says how many. What follows them is unspecified.
    ///
    /// # Panics
    /// When `out` has not room for [`POSITIONS_SPARE`] more than there are.
    pub fn positions(&self, out: &mut [u16]) -> usize {
        positions(&self.words, out)
    }
}

/// The selected rows of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    rows: usize,
    count: usize,
    blocks: Vec<(BlockMask, u16)>,
}

impl Selection {
    /// Selects all rows of a page of so many.
    pub fn all(rows: usize) -> Self {
        let mut all = Selection::default();
        all.reset(rows);
        for block in 0..rows.div_ceil(BLOCK) {
            all.push(BlockMask::first(block_rows(rows, block)));
        }
        all
    }

    /// Empties it, for a page of `rows` rows; [`Self::push`] follows for each block.
    pub fn reset(&mut self, rows: usize) {
        self.rows = rows;
        self.count = 0;
        self.blocks.clear();
    }

    /// Adds the mask of the next block.
    pub fn push(&mut self, mask: BlockMask) {
        let count = mask.count();
        self.count += count;
        self.blocks.push((mask, count as u16));
    }

    /// Rows of the page.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of rows that are selected, of all blocks.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Blocks of the page.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// A block's mask and its count of selected rows.
    pub fn block(&self, block: usize) -> (&BlockMask, usize) {
        let (mask, count) = &self.blocks[block];
        (mask, usize::from(*count))
    }

    /// Rows of a block, selected or not.
    pub fn block_rows(&self, block: usize) -> usize {
        block_rows(self.rows, block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_rows_are_counted_and_visited() {
        for rows in [0, 1, 63, 64, 65, 500, 1023, 1024] {
            let mask = BlockMask::first(rows);
            assert_eq!(mask.count(), rows);
            let mut positions = [0; BLOCK + POSITIONS_SPARE];
            assert_eq!(mask.positions(&mut positions), rows);
            assert!((0..rows).all(|i| usize::from(positions[i]) == i && mask.get(i)));
        }
        let all = Selection::all(2500);
        assert_eq!((all.count(), all.block_count(), all.block(2).1), (2500, 3, 452));
    }
}
