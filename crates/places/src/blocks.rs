//! The blocks of an object: parts of it that are fetched with one request each.
//!
//! ```text
//!   ranges   |----|--|      |---------------------|         those that will be read
//!   blocks   |-------|      |----------|----------|         near ones together, long ones cut
//! ```

use std::ops::Range;

/// Bytes that are fetched though nobody wants them, where that saves a request.
const GAP_BYTES: u64 = 256 << 10;

/// The blocks of one object, in the order of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocks {
    /// All of it, in blocks of a size.
    Whole {
        /// Bytes of the object.
        bytes: u64,
        /// Bytes of a block.
        each: u64,
    },
    /// Parts of it.
    Parts {
        /// The blocks.
        blocks: Vec<Range<u64>>,
        /// What is wanted of them, in its order.
        wanted: Vec<Range<u64>>,
    },
}

impl Blocks {
    /// Blocks of at most `each` bytes for ranges, which may overlap and have any order.
    pub fn of_ranges(ranges: impl IntoIterator<Item = Range<u64>>, each: u64) -> Self {
        let mut ranges: Vec<Range<u64>> = ranges.into_iter().filter(|r| !r.is_empty()).collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let wanted = join(&ranges, 0);
        let joined = join(&wanted, GAP_BYTES);
        let mut blocks = Vec::new();
        for Range { start, end } in joined {
            // Of one size, so that none is a small rest.
            let count = (end - start).div_ceil(each.max(1)).max(1);
            let size = (end - start).div_ceil(count);
            let starts = (0..count).map(|n| start + n * size).filter(|from| *from < end);
            blocks.extend(starts.map(|from| from..(from + size).min(end)));
        }
        Blocks::Parts { blocks, wanted }
    }

    /// The bytes of a block that nobody wants, counted from its first.
    pub fn unwanted(&self, number: usize) -> Vec<Range<usize>> {
        let Blocks::Parts { wanted, .. } = self else { return Vec::new() };
        let block = self.range(number);
        let first = wanted.partition_point(|part| part.end <= block.start);
        let here = wanted[first..].iter().take_while(|part| part.start < block.end);
        let mut unwanted = Vec::new();
        let mut next = block.start;
        for part in here.cloned().chain(std::iter::once(block.end..block.end)) {
            if next < part.start {
                unwanted.push((next - block.start) as usize..(part.start - block.start) as usize);
            }
            next = part.end;
        }
        unwanted
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        match self {
            Blocks::Whole { bytes, each } => bytes.div_ceil(*each) as usize,
            Blocks::Parts { blocks, .. } => blocks.len(),
        }
    }

    /// Where a block stands.
    pub fn range(&self, number: usize) -> Range<u64> {
        match self {
            Blocks::Whole { bytes, each } => {
                let start = number as u64 * each;
                start..(start + each).min(*bytes)
            }
            Blocks::Parts { blocks, .. } => blocks[number].clone(),
        }
    }

    /// The block that has a byte.
    pub fn find(&self, at: u64) -> Option<usize> {
        match self {
            Blocks::Whole { bytes, each } => (at < *bytes).then_some((at / each) as usize),
            Blocks::Parts { blocks, .. } => {
                let next = blocks.partition_point(|block| block.end <= at);
                blocks.get(next).is_some_and(|block| block.contains(&at)).then_some(next)
            }
        }
    }
}

/// Ranges in their order, those together that are so near.
fn join(ranges: &[Range<u64>], gap: u64) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap) => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range.clone()),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of some ranges.
    fn ranges(blocks: &Blocks) -> Vec<Range<u64>> {
        (0..blocks.len()).map(|block| blocks.range(block)).collect()
    }

    #[test]
    fn near_ranges_are_one_block_and_long_ones_several() {
        let far = 10 * GAP_BYTES;
        let blocks = Blocks::of_ranges([far..far + 9, 4..4, 0..5, 3..8, 20..30], 1 << 20);
        assert_eq!(ranges(&blocks), [0..30, far..far + 9]);
        assert!(blocks.unwanted(0).into_iter().eq(std::iter::once(8..20)));
        assert!(blocks.unwanted(1).is_empty());
        let cut = Blocks::of_ranges(std::iter::once(0..10), 4);
        assert_eq!(ranges(&cut), [0..4, 4..8, 8..10]);
        assert_eq!(ranges(&Blocks::of_ranges(std::iter::once(0..9), 4)), [0..3, 3..6, 6..9]);
        let cut = Blocks::of_ranges([0..1, 6..7, 9..10], 5);
        assert_eq!(ranges(&cut), [0..5, 5..10]);
        assert!(cut.unwanted(0).into_iter().eq(std::iter::once(1..5)));
        assert_eq!(cut.unwanted(1), [0..1, 2..4]);
        assert_eq!(Blocks::of_ranges([], 4).len(), 0);
    }

    #[test]
    fn a_byte_is_found_in_its_block() {
        let parts = Blocks::Parts { blocks: vec![2..5, 5..6, 9..12], wanted: vec![2..6, 9..12] };
        let found: Vec<_> = (0..13).map(|at| parts.find(at)).collect();
        let (a, b, c) = (Some(0), Some(1), Some(2));
        assert_eq!(found, [None, None, a, a, a, b, None, None, None, c, c, c, None]);
        let whole = Blocks::Whole { bytes: 10, each: 4 };
        assert_eq!((whole.len(), whole.range(2), whole.find(9)), (3, 8..10, Some(2)));
        assert_eq!(whole.find(10), None);
        assert_eq!(Blocks::Whole { bytes: 0, each: 4 }.len(), 0);
    }
}
