//! Segments of a load that are whole, and not published: they are opened, written again with other types, and removed.

use coload_store::{LoadDir, Reread, RereadPage, SegmentFile, TypeChange};
use coload_types::{Error, Result};

use super::segments::DoneSegment;

/// The segments of a load.
#[derive(Debug, Clone, Copy)]
pub struct MadeSegments<'a> {
    dir: &'a LoadDir,
}

impl<'a> MadeSegments<'a> {
    /// Those of a folder.
    pub fn new(dir: &'a LoadDir) -> Self {
        MadeSegments { dir }
    }

    /// Opens one.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged, `Unavailable` when it cannot be read.
    pub fn open(&self, number: u32) -> Result<SegmentFile> {
        SegmentFile::open(&self.dir.segment_path(number))
    }

    /// Writes one again with wider types, under another number, and removes it.
    ///
    /// # Errors
    /// Those of [`TypeChange::write`].
    pub fn change(
        &self,
        old: &DoneSegment,
        change: &TypeChange,
        text: (&Reread, &[RereadPage]),
        number: u32,
    ) -> Result<DoneSegment> {
        let file = self.open(old.number)?;
        let (summary, columns) = change.write(&file, text, &self.dir.segment_path(number))?;
        self.remove(old.number)?;
        Ok(DoneSegment { number, summary, columns })
    }

    /// Removes one.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    pub fn remove(&self, number: u32) -> Result<()> {
        let path = self.dir.segment_path(number);
        std::fs::remove_file(&path).map_err(|e| Error::io("remove", &path, &e))
    }
}
