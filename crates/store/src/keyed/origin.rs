//! Which row of the input a row of a segment was, for messages about keys that come twice.
//!
//! A segment whose rows were put in order leaves their numbers in a file beside it, four bytes a row, until the load is
//! published.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use coload_types::{Error, Result};

const NUMBER_BYTES: usize = size_of::<u32>();

/// Where the rows of a segment come from.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// Rows of the load before those of the segment.
    pub before: u64,
    /// The file with the number that each row had before rows were put in order; `None` when they stayed.
    pub order: Option<PathBuf>,
}

impl Origin {
    /// The number of a row among all of the load, in the order of the input and from 1 on. `None` when it cannot be told.
    pub fn number(&self, row: u64) -> Option<u64> {
        let row = match &self.order {
            None => row,
            Some(path) => {
                let mut bytes = [0; NUMBER_BYTES];
                let at = row.checked_mul(NUMBER_BYTES as u64)?;
                File::open(path).ok()?.read_exact_at(&mut bytes, at).ok()?;
                u64::from(u32::from_le_bytes(bytes))
            }
        };
        Some(self.before + row + 1)
    }
}

/// Writes where rows come from.
///
/// # Errors
/// `Unavailable` when the disk fails.
pub(crate) fn write_order(path: &Path, rows: &[u32]) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        rows.iter().try_for_each(|row| file.write_all(&row.to_le_bytes()))?;
        file.flush()
    };
    write().map_err(|e| Error::io("write", path, &e))
}
