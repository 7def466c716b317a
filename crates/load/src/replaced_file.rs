//! A file that appears under its name when it is whole.
//!
//! It is written under a name that nobody else has, in the same folder, made durable, and renamed. Of several that are
//! written to one name at once, the last to end is there, whole.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use coload_types::{Error, Result};

/// A file that is being written. Dropped before [`Self::finish`], it leaves nothing.
#[derive(Debug)]
pub struct ReplacedFile {
    path: PathBuf,
    beside: PathBuf,
}

/// Attempts at a name that nobody has.
const NAMES_TRIED_MAX: usize = 100;

impl ReplacedFile {
    /// Begins a file, and gives what is written to.
    ///
    /// # Errors
    /// `Unavailable` when the folder does not take it.
    pub fn create(path: &Path) -> Result<(Self, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = path.file_name().unwrap_or_default();
        for _ in 0..NAMES_TRIED_MAX {
            let mut beside = name.to_owned();
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            beside.push(format!(".{}-{number}.tmp", std::process::id()));
            let beside = path.with_file_name(beside);
            // Another process of the same number, in another container, may have it.
            match OpenOptions::new().write(true).create_new(true).open(&beside) {
                Ok(file) => return Ok((ReplacedFile { path: path.to_owned(), beside }, file)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("write", path, &error)),
            }
        }
        Err(Error::Unavailable(format!(
            "cannot write {}: {NAMES_TRIED_MAX} names beside it are taken (remove its .tmp files)",
            path.display()
        )))
    }

    /// Makes the file durable and gives it its name.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails; the name has what it had before.
    pub fn finish(self, file: &File) -> Result<()> {
        let failed = |error: std::io::Error| Error::io("write", &self.path, &error);
        file.sync_all().map_err(failed)?;
        std::fs::rename(&self.beside, &self.path).map_err(failed)?;
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

impl Drop for ReplacedFile {
    fn drop(&mut self) {
        // After `finish` the name is free, and there is nothing to remove.
        let _ = std::fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use super::*;

    #[test]
    fn of_two_at_once_the_last_to_end_is_there_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        let (one, mut first) = ReplacedFile::create(&path).unwrap();
        let (two, mut second) = ReplacedFile::create(&path).unwrap();
        let (three, _) = ReplacedFile::create(&path).unwrap();
        for _ in 0..1_000 {
            first.write_all(b"one\n").unwrap();
            second.write_all(b"second\n").unwrap();
        }
        two.finish(&second).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second\n".repeat(1_000));
        one.finish(&first).unwrap();
        drop(three);
        assert_eq!(std::fs::read(&path).unwrap(), b"one\n".repeat(1_000));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
