//! The folder in which sorts, groups and joins put what memory does not hold.
//!
//! Each process has a folder of its own in it, which nobody else may read, and which is locked as long as the
//! process lives. What processes left that were killed is removed when the next one starts.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use coload_types::{Error, Result};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use rustix::fs::{FlockOperation, flock};

use super::merged_parts;

/// Default bound of what is in the folder.
const BYTES_MAX: u64 = 100 << 30;
/// How the folders of processes begin.
const PREFIX: &str = "coload-spill-";
/// The file in each that is locked.
const LOCK: &str = "lock";
/// `f_type` of a file system in memory, from `linux/magic.h`.
const TMPFS: i64 = 0x0102_1994;

/// Where statements put what memory does not hold, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillOptions {
    /// The folder; that of the system for temporary files if `None`, or the store's where that one is in memory.
    pub folder: Option<PathBuf>,
    /// Bytes of all statements.
    pub bytes_max: u64,
}

impl Default for SpillOptions {
    /// The system's folder, 100 GiB.
    fn default() -> Self {
        SpillOptions { folder: None, bytes_max: BYTES_MAX }
    }
}

/// The folder of this process; it goes with this.
#[derive(Debug)]
pub(crate) struct SpillFolder {
    path: PathBuf,
    /// Locked as long as the folder is in use.
    _lock: File,
}

impl SpillFolder {
    /// Makes the folder, and removes what dead processes left beside it.
    ///
    /// # Errors
    /// `Unavailable` when the disk does not take it.
    pub fn create(options: &SpillOptions, store: &Path) -> Result<Self> {
        let parent = match &options.folder {
            Some(folder) => folder.clone(),
            None => default_folder(store),
        };
        let failed = |path: &Path, e: &std::io::Error| match Error::io("write", path, e) {
            Error::Unavailable(text) => Error::Unavailable(format!("{text} (see --spill)")),
            other => other,
        };
        let private = |path: &Path, recursive| {
            DirBuilder::new().mode(0o700).recursive(recursive).create(path)
        };
        private(&parent, true).map_err(|e| failed(&parent, &e))?;
        remove_dead(&parent);
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|e| Error::Unavailable(format!("the system gives no random numbers: {e}")))?;
        let random = u64::from_le_bytes(random);
        let path = parent.join(format!("{PREFIX}{}-{random:016x}", std::process::id()));
        private(&path, false).map_err(|e| failed(&path, &e))?;
        let lock = File::create(path.join(LOCK)).map_err(|e| failed(&path, &e))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|e| failed(&path, &e.into()))?;
        Ok(SpillFolder { path, _lock: lock })
    }

    /// What the engine writes its files with, for statements with so much memory.
    pub fn disk_manager(&self, options: &SpillOptions, memory: usize) -> DiskManagerBuilder {
        DiskManagerBuilder::default()
            .with_mode(DiskManagerMode::Directories(vec![self.path.clone()]))
            .with_max_temp_directory_size(options.bytes_max)
            .with_max_spill_merge_fan_in(merged_parts(memory))
    }
}

impl Drop for SpillFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn default_folder(store: &Path) -> PathBuf {
    let system = std::env::temp_dir();
    let in_memory = rustix::fs::statfs(&system).is_ok_and(|fs| fs.f_type == TMPFS);
    if in_memory { store.to_owned() } else { system }
}

/// Removes the folders of processes that are gone: those whose lock is free.
fn remove_dead(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        // Another user's cannot be opened. One without a lock is just being made.
        let Ok(lock) = File::open(path.join(LOCK)) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_private_and_goes_and_those_of_the_dead_go_too() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("spill");
        let options = SpillOptions { folder: Some(folder.clone()), ..SpillOptions::default() };
        let dead = folder.join(format!("{PREFIX}1-0"));
        std::fs::create_dir_all(&dead).unwrap();
        std::fs::write(dead.join(LOCK), "").unwrap();
        std::fs::write(dead.join("run"), "rows").unwrap();
        std::fs::write(folder.join("of somebody else"), "").unwrap();
        let one = SpillFolder::create(&options, parent.path()).unwrap();
        let two = SpillFolder::create(&options, parent.path()).unwrap();
        assert!(!dead.exists() && one.path.exists() && two.path.exists());
        let mode = std::fs::metadata(&one.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let path = one.path.clone();
        drop((one, two));
        assert!(!path.exists());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }
}
