//! Files of disks.
//!
//! A file is open while it is read: a process may have few descriptors, and a load a million inputs. What is
//! opened again must be what was opened first.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::SystemTime;

use coload_threads::lock;
use coload_types::{Error, Result};

use crate::raw::Store;

/// Most files that are open though nobody reads them at this moment: more than threads read at once.
const OPEN_MAX: usize = 128;

/// Files that stay open, those opened last at the back.
static OPEN: Mutex<VecDeque<Arc<File>>> = Mutex::new(VecDeque::new());

/// Which file it is, as it was when somebody looked at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// Number of the device on which the file lies.
    pub device: u64,
    /// Number on the device.
    pub inode: u64,
    /// Length of the file, bytes.
    pub bytes: u64,
    /// When it was last written.
    pub modified: Option<SystemTime>,
}

impl FileIdentity {
    /// The identity that metadata tell.
    pub fn of(meta: &Metadata) -> Self {
        FileIdentity {
            device: meta.dev(),
            inode: meta.ino(),
            bytes: meta.len(),
            modified: meta.modified().ok(),
        }
    }

    /// Whether it is the same file, whatever was written to it.
    pub fn is_same_file(&self, other: &FileIdentity) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// A file of a disk.
#[derive(Debug)]
pub struct DiskFile {
    path: Box<Path>,
    file: Mutex<Weak<File>>,
    /// What it was when it was opened first.
    identity: FileIdentity,
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        if let Some(file) = lock(&self.file).upgrade() {
            lock(&OPEN).retain(|open| !Arc::ptr_eq(open, &file));
        }
    }
}

impl DiskFile {
    /// Opens it.
    ///
    /// # Errors
    /// `Invalid` when it cannot be opened or is no regular file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io("open", path, &e))?;
        let meta = file.metadata().map_err(|e| Error::io("look at", path, &e))?;
        if !meta.is_file() {
            return Err(Error::Invalid(format!(
                "{} is not a regular file; give a pipe as standard input: coload load - < {}",
                path.display(),
                path.display()
            )));
        }
        let (file, identity) = (Arc::new(file), FileIdentity::of(&meta));
        Ok(DiskFile { path: path.into(), file: Mutex::new(keep_open(file)), identity })
    }

    /// What it was when it was opened first.
    pub fn identity(&self) -> &FileIdentity {
        &self.identity
    }

    /// The open file; opened again if it was closed meanwhile.
    fn file(&self, name: &str) -> Result<Arc<File>> {
        let mut held = lock(&self.file);
        if let Some(file) = held.upgrade() {
            return Ok(file);
        }
        let file = File::open(&self.path).map_err(|e| vanished(name, &self.path, &e))?;
        let meta = file.metadata().map_err(|e| Error::io("look at", &self.path, &e))?;
        check_identity(name, &self.identity, &FileIdentity::of(&meta))?;
        let file = Arc::new(file);
        *held = keep_open(Arc::clone(&file));
        Ok(file)
    }
}

impl Store for DiskFile {
    fn bytes(&self) -> u64 {
        self.identity.bytes
    }

    fn read_at(&self, name: &str, buffer: &mut [u8], at: u64) -> Result<()> {
        let file = self.file(name)?;
        let mut have = 0;
        while have < buffer.len() {
            let at = at + have as u64;
            match file.read_at(&mut buffer[have..], at) {
                Ok(0) => {
                    return Err(Error::Unavailable(format!(
                        "{name}: the file got shorter while it was read: it had {} bytes and ends at {at}; \
                         nothing was loaded, load it again when it is whole",
                        self.identity.bytes
                    )));
                }
                Ok(n) => have += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("read", &self.path, &e)),
            }
        }
        Ok(())
    }

    fn check_unchanged(&self, name: &str) -> Result<()> {
        check_path(name, &self.path, &self.identity)
    }

    fn identity(&self) -> Option<&FileIdentity> {
        Some(&self.identity)
    }
}

/// Checks that a path still leads to a file that is as it was.
///
/// # Errors
/// `Unavailable` when it does not.
pub fn check_path(name: &str, path: &Path, before: &FileIdentity) -> Result<()> {
    let meta = std::fs::metadata(path).map_err(|e| vanished(name, path, &e))?;
    check_identity(name, before, &FileIdentity::of(&meta))
}

fn vanished(name: &str, path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::Unavailable(format!(
            "{name}: the file was there when the load was planned and is gone; nothing was loaded"
        )),
        _ => Error::io("open", path, error),
    }
}

/// Checks that a file did not change.
///
/// # Errors
/// `Unavailable` when it did.
pub fn check_identity(name: &str, before: &FileIdentity, now: &FileIdentity) -> Result<()> {
    let what = if !before.is_same_file(now) {
        "another file has taken its place since the load was planned".to_owned()
    } else if before.bytes != now.bytes {
        format!(
            "the file changed while it was read: it had {} bytes and has {}",
            before.bytes, now.bytes
        )
    } else if before.modified != now.modified {
        "the file was written to while it was read".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::Unavailable(format!(
        "{name}: {what}; nothing was loaded, load it again when it is whole"
    )))
}

/// Keeps a file open until others are used.
fn keep_open(file: Arc<File>) -> Weak<File> {
    let weak = Arc::downgrade(&file);
    let mut open = lock(&OPEN);
    let oldest = if open.len() >= OPEN_MAX { open.pop_front() } else { None };
    open.push_back(file);
    drop(open);
    // Closed without the lock.
    drop(oldest);
    weak
}
