//! The Parquet files that a load wrote.

/// Files of a load, and those that they replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenFiles {
    /// The files, in the order of the input.
    pub files: Vec<WrittenFile>,
    /// Names of the files that these replaced.
    pub removed: Vec<String>,
}

/// A file of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// Its name in the folder.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
    /// Row groups.
    pub row_groups: usize,
}

impl WrittenFiles {
    /// Row groups of the files.
    pub fn row_groups(&self) -> usize {
        self.files.iter().map(|file| file.row_groups).sum()
    }
}
