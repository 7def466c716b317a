//! The trees of a segment that is open: each is opened when it is asked first.

use std::path::PathBuf;
use std::sync::OnceLock;

use coload_ddl::Schema;
use coload_types::{DataType, Result};

use super::file::{IndexTree, SegmentIndex};
use crate::SegmentFile;

/// The tree of an index of a segment.
#[derive(Debug)]
pub(crate) struct LazyIndex {
    tree: IndexTree,
    path: PathBuf,
    /// Its first columns by whose values rows are found.
    asked: usize,
    open: OnceLock<SegmentIndex>,
}

impl SegmentFile {
    /// The same with the trees of indexes, which lie beside it.
    pub(crate) fn with_indexes(mut self, trees: &[IndexTree], schema: &Schema) -> Self {
        let is_float = |column: &usize| {
            let data_type = schema.columns().get(*column).map(|column| column.data_type);
            // Several floats are equal that are stored as others.
            matches!(data_type, None | Some(DataType::Real | DataType::Double))
        };
        let lazy = |tree: &IndexTree| LazyIndex {
            tree: tree.clone(),
            path: self.path().with_file_name(&tree.part.file),
            asked: tree.columns.iter().take_while(|column| !is_float(column)).count(),
            open: OnceLock::new(),
        };
        self.indexes = trees.iter().map(lazy).collect();
        self
    }

    /// Whether these are the trees of indexes that it has.
    pub(crate) fn has_indexes(&self, trees: &[IndexTree]) -> bool {
        self.indexes.iter().map(|index| &index.tree).eq(trees)
    }

    /// The columns of the table, of each index of which the segment has a tree, by whose values rows can be found.
    pub fn indexed_columns(&self) -> impl Iterator<Item = &[usize]> {
        self.indexes.iter().map(|index| &index.tree.columns[..index.asked])
    }

    /// The tree of an index, counted as [`Self::indexed_columns`] does; opens it the first time.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written.
    pub fn index(&self, number: usize) -> Result<&SegmentIndex> {
        let lazy = &self.indexes[number];
        if let Some(open) = lazy.open.get() {
            return Ok(open);
        }
        let open = SegmentIndex::open(&lazy.path, &lazy.tree.part, self.rows())?;
        Ok(lazy.open.get_or_init(|| open))
    }
}
