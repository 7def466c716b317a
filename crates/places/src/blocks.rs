//! The blocks of an object: parts of it that are fetched with one request each.
//!
//! ```text
//!   ranges   |----|--|      |---------------------|         those that will be read
//!   blocks   |-------|      |----------|----------|         near ones together, long ones cut
//! ```
//!
//! Blocks are numbered in the order in which they are wanted: that of their turns, and of bytes in each.

use std::ops::Range;

/// Bytes that are fetched though nobody wants them, where that saves a request.
const GAP_BYTES: u64 = 256 << 10;

/// Bytes of an object that will be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The bytes.
    pub range: Range<u64>,
    /// Those of a lower turn are read before.
    pub turn: u64,
}

impl From<Range<u64>> for Wanted {
    fn from(range: Range<u64>) -> Self {
        Wanted { range, turn: 0 }
    }
}

/// The blocks of one object, in the order in which they are wanted.
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
        /// Their numbers in the order of bytes.
        by_place: Vec<u32>,
        /// What is wanted of them, in the order of bytes.
        wanted: Vec<Range<u64>>,
    },
}

impl Blocks {
    /// Blocks of at most `each` bytes for parts, which may overlap and have any order.
    pub fn of_parts(parts: impl IntoIterator<Item = Wanted>, each: u64) -> Self {
        let mut parts: Vec<Wanted> = parts.into_iter().filter(|p| !p.range.is_empty()).collect();
        parts.sort_unstable_by_key(|part| (part.range.start, part.range.end, part.turn));
        // Each byte has one turn.
        let mut end = 0;
        for part in &mut parts {
            part.range.start = part.range.start.max(end);
            end = end.max(part.range.end);
        }
        parts.retain(|part| !part.range.is_empty());
        let wanted = join(parts.iter().map(|part| &part.range), 0);
        // Those of one turn between which nothing of another is.
        let near = parts.chunk_by(|a, b| a.turn == b.turn);
        let joined = near.flat_map(|near| {
            let ranges = join(near.iter().map(|part| &part.range), GAP_BYTES);
            ranges.into_iter().map(|range| Wanted { range, turn: near[0].turn })
        });
        let mut joined: Vec<Wanted> = joined.collect();
        joined.sort_by_key(|part| part.turn);
        let joined = joined.into_iter().map(|part| part.range);
        let mut blocks = Vec::new();
        for Range { start, end } in joined {
            // Of one size, so that none is a small rest.
            let count = (end - start).div_ceil(each.max(1)).max(1);
            let size = (end - start).div_ceil(count);
            let starts = (0..count).map(|n| start + n * size).filter(|from| *from < end);
            blocks.extend(starts.map(|from| from..(from + size).min(end)));
        }
        let mut by_place: Vec<u32> = (0..blocks.len() as u32).collect();
        by_place.sort_unstable_by_key(|number| blocks[*number as usize].start);
        Blocks::Parts { blocks, by_place, wanted }
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
            Blocks::Parts { blocks, by_place, .. } => {
                let behind =
                    by_place.partition_point(|number| blocks[*number as usize].start <= at);
                let number = *by_place.get(behind.checked_sub(1)?)? as usize;
                blocks[number].contains(&at).then_some(number)
            }
        }
    }
}

/// What is wanted beside a part that is there.
pub fn without(wanted: Vec<Wanted>, there: &Range<u64>) -> Vec<Wanted> {
    let beside = |Wanted { range, turn }: Wanted| {
        let before = range.start..range.end.min(there.start);
        let behind = range.start.max(there.end)..range.end;
        [before, behind]
            .into_iter()
            .filter(|part| part.start < part.end)
            .map(move |range| Wanted { range, turn })
    };
    wanted.into_iter().flat_map(beside).collect()
}

/// Ranges in their order, those together that are so near.
fn join<'a>(ranges: impl Iterator<Item = &'a Range<u64>>, gap: u64) -> Vec<Range<u64>> {
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
    fn blocks_are_in_the_order_of_turns() {
        let part = |range, turn| Wanted { range, turn };
        let far = 10 * GAP_BYTES;
        let parts = [
            part(far..far + 8, 1),
            part(0..4, 2),
            part(4..8, 1),
            part(far + 8..far + 12, 2),
            part(far + 20..far + 24, 1),
        ];
        let blocks = Blocks::of_parts(parts, 100);
        let order = [4..8, far..far + 8, far + 20..far + 24, 0..4, far + 8..far + 12];
        assert_eq!(ranges(&blocks), order);
        let found = |at| blocks.find(at);
        assert_eq!([0, 3, 4, 7].map(found), [3, 3, 0, 0].map(Some));
        assert_eq!([far, far + 9, far + 20].map(found), [1, 4, 2].map(Some));
        assert_eq!([8, far + 15, far + 24].map(found), [None; 3]);
    }

    #[test]
    fn what_is_there_is_not_wanted() {
        let part = |range, turn| Wanted { range, turn };
        let wanted = vec![part(0..10, 1), part(20..30, 2), part(12..15, 3)];
        assert_eq!(without(wanted.clone(), &(10..12)), wanted);
        let left = [part(0..5, 1), part(25..30, 2)];
        assert_eq!(without(wanted.clone(), &(5..25)), left);
        let cut = without(wanted, &(22..24));
        assert_eq!(cut[1..3], [part(20..22, 2), part(24..30, 2)]);
        assert_eq!(without(vec![part(3..4, 0)], &(0..9)), []);
    }

    #[test]
    fn near_ranges_are_one_block_and_long_ones_several() {
        let far = 10 * GAP_BYTES;
        let of = |parts: &[Range<u64>], each| {
            Blocks::of_parts(parts.iter().cloned().map(Wanted::from), each)
        };
        let blocks = of(&[far..far + 9, 4..4, 0..5, 3..8, 20..30], 1 << 20);
        assert_eq!(ranges(&blocks), [0..30, far..far + 9]);
        assert!(blocks.unwanted(0).into_iter().eq(std::iter::once(8..20)));
        assert!(blocks.unwanted(1).is_empty());
        let cut = of(std::slice::from_ref(&(0..10)), 4);
        assert_eq!(ranges(&cut), [0..4, 4..8, 8..10]);
        assert_eq!(ranges(&of(std::slice::from_ref(&(0..9)), 4)), [0..3, 3..6, 6..9]);
        let cut = of(&[0..1, 6..7, 9..10], 5);
        assert_eq!(ranges(&cut), [0..5, 5..10]);
        assert!(cut.unwanted(0).into_iter().eq(std::iter::once(1..5)));
        assert_eq!(cut.unwanted(1), [0..1, 2..4]);
        assert_eq!(of(&[], 4).len(), 0);
    }

    #[test]
    fn a_byte_is_found_in_its_block() {
        let parts = Blocks::Parts {
            blocks: vec![2..5, 5..6, 9..12],
            by_place: vec![0, 1, 2],
            wanted: vec![2..6, 9..12],
        };
        let found: Vec<_> = (0..13).map(|at| parts.find(at)).collect();
        let (a, b, c) = (Some(0), Some(1), Some(2));
        assert_eq!(found, [None, None, a, a, a, b, None, None, None, c, c, c, None]);
        let whole = Blocks::Whole { bytes: 10, each: 4 };
        assert_eq!((whole.len(), whole.range(2), whole.find(9)), (3, 8..10, Some(2)));
        assert_eq!(whole.find(10), None);
        assert_eq!(Blocks::Whole { bytes: 0, each: 4 }.len(), 0);
    }
}
