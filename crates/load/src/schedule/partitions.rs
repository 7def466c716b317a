//! Which chunks make a partition.
//!
//! ```text
//!   chunks   |  as many each  |  as many each  | half of the rest | half of that | .. |
//!                                               ^ where they come from afar
//! ```
//!
//! When the last chunk has come, its partition is still to be compressed and written. Who waits for a line has time for all but
//! that, so that the last partitions of what comes from afar are ever smaller, and what is before the last two is finished while
//! these come.

/// Chunks of the smallest partition at the end.
const LAST_CHUNKS: usize = 4;
/// Partitions at the end during which what is before them is finished.
const LAST_PARTITIONS: usize = 2;

/// How chunks are put into partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitions {
    chunks: usize,
    /// The chunk from which on partitions are smaller, and the first behind the last.
    end: Option<(usize, usize)>,
}

impl Partitions {
    /// So many chunks each.
    pub fn of_chunks(chunks: usize) -> Self {
        Partitions { chunks, end: None }
    }

    /// The same, of so many chunks in all of which the last partitions are ever smaller.
    pub fn with_small_ones_at_the_end(chunks: usize, all: usize) -> Self {
        // The last but one is smaller, too: it is compressed while the last chunks come.
        let whole = (all.saturating_sub(1) / chunks).saturating_sub(1);
        Partitions { chunks, end: Some((whole * chunks, all)) }
    }

    /// The first of the last partitions, where these are small.
    pub fn first_of_last(&self) -> Option<usize> {
        let (start, all) = self.end?;
        let last = self.of(all.checked_sub(1)?);
        (last + 1).checked_sub(LAST_PARTITIONS).filter(|first| *first > start / self.chunks)
    }

    /// The partition of a chunk, and its first chunk.
    fn find(&self, chunk: usize) -> (usize, usize) {
        let (start, all) = match self.end {
            Some((start, all)) if chunk >= start => (start, all),
            _ => return (chunk / self.chunks, chunk - chunk % self.chunks),
        };
        let (mut partition, mut first) = (start / self.chunks, start);
        loop {
            let next = first + self.size(all.saturating_sub(first));
            if chunk < next || next >= all {
                return (partition, first);
            }
            (partition, first) = (partition + 1, next);
        }
    }

    /// Chunks of the next partition where so many are left.
    fn size(&self, left: usize) -> usize {
        let half = if left < 2 * LAST_CHUNKS { left } else { left.div_ceil(2) };
        half.clamp(1, self.chunks)
    }

    /// The partition of a chunk.
    pub fn of(&self, chunk: usize) -> usize {
        self.find(chunk).0
    }

    /// The first chunk of the partition of a chunk.
    pub fn first_beside(&self, chunk: usize) -> usize {
        self.find(chunk).1
    }

    /// Chunks before a partition.
    pub fn chunks_before(&self, partition: usize) -> usize {
        let (start, all) = match self.end {
            Some((start, all)) if partition * self.chunks > start => (start, all),
            _ => return partition * self.chunks,
        };
        let smaller = start / self.chunks..partition;
        smaller.fold(start, |first, _| first + self.size(all.saturating_sub(first)))
    }

    /// Whether a partition ends before a chunk.
    pub fn ends_before(&self, chunk: usize) -> bool {
        let is_last = self.end.is_some_and(|(_, all)| chunk == all);
        is_last || self.first_beside(chunk) == chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chunks of each partition.
    fn sizes(partitions: Partitions, chunks: usize) -> Vec<usize> {
        let mut sizes = Vec::new();
        for chunk in 0..chunks {
            let partition = partitions.of(chunk);
            assert!(partition == sizes.len() || partition + 1 == sizes.len(), "{chunk}");
            sizes.resize(partition + 1, 0);
            sizes[partition] += 1;
            let first = partitions.first_beside(chunk);
            assert_eq!(
                (partitions.of(first), partitions.chunks_before(partition)),
                (partition, first)
            );
            assert_eq!(partitions.ends_before(chunk), first == chunk);
        }
        assert!(partitions.ends_before(chunks));
        if let Some(first) = partitions.first_of_last() {
            assert_eq!(first + LAST_PARTITIONS, sizes.len());
        }
        sizes
    }

    #[test]
    fn what_is_before_the_last_partitions_is_known_where_these_are_small() {
        let small = Partitions::with_small_ones_at_the_end;
        assert_eq!(Partitions::of_chunks(3).first_of_last(), None);
        assert_eq!(small(16, 40).first_of_last(), Some(2));
        assert_eq!(small(48, 96).first_of_last(), Some(3));
        assert_eq!(small(48, 12).first_of_last(), None);
        assert_eq!(small(48, 0).first_of_last(), None);
    }

    #[test]
    fn the_last_partitions_are_ever_smaller() {
        let small = Partitions::with_small_ones_at_the_end;
        assert_eq!(sizes(Partitions::of_chunks(3), 9), [3, 3, 3]);
        assert_eq!(sizes(small(16, 40), 40), [16, 12, 6, 6]);
        assert_eq!(sizes(small(48, 96), 96), [48, 24, 12, 6, 6]);
        assert_eq!(sizes(small(48, 97), 97), [48, 25, 12, 6, 6]);
        assert_eq!(sizes(small(16, 7), 7), [7]);
        assert_eq!(sizes(small(1, 5), 5), [1; 5]);
        assert_eq!(sizes(small(2, 7), 7), [2, 2, 2, 1]);
        for all in 0..300 {
            for chunks in [1, 2, 7, 16, 48] {
                let sizes = sizes(small(chunks, all), all);
                assert_eq!(sizes.iter().sum::<usize>(), all);
                assert!(sizes.iter().all(|size| *size <= chunks), "{chunks} {all}");
            }
        }
    }
}
