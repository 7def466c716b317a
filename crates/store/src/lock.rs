//! A lock on a file, free again when it is dropped.
//!
//! `flock` locks belong to the open file, which a process that starts another shares with its child
//! until the child runs its program. Closing the file would leave it locked for that long, whatever
//! thread started the child: cleaning would then keep versions, and a load find its journal busy. So
//! a lock is freed in words. A child that goes on without a program of its own has the open
//! file as well, and may not free what its parent still needs.

use std::fs::{File, TryLockError};
use std::process;

/// What became of trying a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// We hold it until the [`LockedFile`] is dropped.
    Held,
    /// Somebody else holds one that excludes ours.
    Busy,
    /// The file system has no locks, or refuses them.
    Unsupported,
}

/// An open file on which a lock was tried.
#[derive(Debug)]
pub struct LockedFile {
    file: File,
    lock: Lock,
    /// Process that locked it.
    process: u32,
}

impl LockedFile {
    /// Tries an exclusive lock; never waits.
    pub fn try_exclusive(file: File) -> Self {
        let tried = file.try_lock();
        Self::new(file, tried)
    }

    /// Tries a shared lock; never waits.
    pub fn try_shared(file: File) -> Self {
        let tried = file.try_lock_shared();
        Self::new(file, tried)
    }

    fn new(file: File, tried: Result<(), TryLockError>) -> Self {
        let lock = match tried {
            Ok(()) => Lock::Held,
            Err(TryLockError::WouldBlock) => Lock::Busy,
            Err(TryLockError::Error(_)) => Lock::Unsupported,
        };
        LockedFile { file, lock, process: process::id() }
    }

    /// Whether the lock was had.
    pub fn lock(&self) -> Lock {
        self.lock
    }

    /// The file on which the lock was tried, still open.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        if self.lock == Lock::Held && self.process == process::id() {
            // What fails here is freed by closing the file.
            let _ = self.file.unlock();
        }
    }
}
