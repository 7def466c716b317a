//! The parts of files that have rows of their own, by the bytes at which they start: the places of rejects have these.
//!
//! So neither journals nor messages say of a reject in which part its record is.
//!
//! Cost: 16 bytes a part.

use coload_source::FilePart;

/// What the parts of files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// Row groups of Parquet.
    RowGroup,
    /// Record batches of Arrow.
    RecordBatch,
}

/// Parts of the files of a load.
#[derive(Debug, Default)]
pub struct FileParts {
    kind: Option<PartKind>,
    /// File, first byte, and number in the file, in this order.
    starts: Vec<(u32, u64, u32)>,
}

impl FileParts {
    /// Parts of a kind: the file of each, its first byte, and its number in the file.
    pub fn new(kind: PartKind, starts: impl IntoIterator<Item = (u32, u64, u32)>) -> Self {
        let mut starts: Vec<_> = starts.into_iter().collect();
        starts.sort_unstable();
        FileParts { kind: Some(kind), starts }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The part of a file that starts at a byte.
    pub fn at(&self, file: usize, byte: u64) -> Option<FilePart> {
        let wanted = (file as u32, byte);
        let found = self.starts.binary_search_by_key(&wanted, |(file, start, _)| (*file, *start));
        let number = self.starts[found.ok()?].2 + 1;
        Some(match self.kind? {
            PartKind::RowGroup => FilePart::RowGroup(number),
            PartKind::RecordBatch => FilePart::RecordBatch(number),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_known_by_its_first_byte() {
        let parts = FileParts::new(PartKind::RowGroup, [(1, 4, 0), (0, 90, 1), (0, 4, 0)]);
        assert_eq!(parts.at(0, 90), Some(FilePart::RowGroup(2)));
        assert_eq!(parts.at(1, 4), Some(FilePart::RowGroup(1)));
        assert_eq!((parts.at(1, 90), parts.at(2, 4)), (None, None));
        assert_eq!(FileParts::default().at(0, 4), None);
    }
}
