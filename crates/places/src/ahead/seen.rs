//! Which bytes of a block were read.

use std::ops::Range;

/// Bytes that were read, as ranges that neither touch nor overlap, in their order.
#[derive(Debug, Default)]
pub struct Seen {
    ranges: Vec<Range<usize>>,
    bytes: usize,
}

impl Seen {
    /// How many they are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds those of a range. Cost: the ranges behind it, of which there are as many as readers.
    pub fn add(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let first = self.ranges.partition_point(|known| known.end < range.start);
        let behind = self.ranges.partition_point(|known| known.start <= range.end);
        let touched = &self.ranges[first..behind];
        let known: usize = touched.iter().map(ExactSizeIterator::len).sum();
        let start = touched.first().map_or(range.start, |known| known.start.min(range.start));
        let end = touched.last().map_or(range.end, |known| known.end.max(range.end));
        self.bytes += (end - start) - known;
        self.ranges.splice(first..behind, std::iter::once(start..end));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_are_counted_once(ranges in prop::collection::vec((0usize..60, 0usize..12), 0..40)) {
            let (mut seen, mut bytes) = (Seen::default(), [false; 80]);
            for (start, length) in ranges {
                seen.add(start..start + length);
                bytes[start..start + length].fill(true);
                prop_assert_eq!(seen.bytes(), bytes.iter().filter(|byte| **byte).count());
                prop_assert!(seen.ranges.windows(2).all(|two| two[0].end < two[1].start));
            }
        }
    }
}
