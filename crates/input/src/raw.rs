//! The bytes of an input as they are stored: a file or a part of one, or a stream.
//!
//! A file is open while it is read: a process may have few descriptors, and a load a million inputs. What is
//! opened again must be what was opened first.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::SystemTime;

use coload_threads::lock;
use coload_types::{Error, Result};

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

/// A file, or a part of one, of which any range can be read.
#[derive(Debug)]
pub struct RawFile {
    /// Name of the input, as it was given.
    name: Box<str>,
    path: Box<Path>,
    file: Mutex<Weak<File>>,
    /// First byte of the part.
    start: u64,
    /// Bytes of the part.
    bytes: u64,
    /// What it was when it was opened first.
    identity: FileIdentity,
}

impl Drop for RawFile {
    fn drop(&mut self) {
        if let Some(file) = lock(&self.file).upgrade() {
            lock(&OPEN).retain(|open| !Arc::ptr_eq(open, &file));
        }
    }
}

impl RawFile {
    /// Opens a whole file.
    ///
    /// # Errors
    /// `Invalid` when it cannot be opened or is no regular file.
    pub fn open(name: &str, path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io("open", path, &e))?;
        let meta = file.metadata().map_err(|e| Error::io("look at", path, &e))?;
        if !meta.is_file() {
            return Err(Error::Invalid(format!(
                "{} is not a regular file; give a pipe as standard input: coload load - < {}",
                path.display(),
                path.display()
            )));
        }
        let file = Arc::new(file);
        Ok(RawFile {
            name: name.into(),
            path: path.into(),
            file: Mutex::new(keep_open(file)),
            start: 0,
            bytes: meta.len(),
            identity: FileIdentity::of(&meta),
        })
    }

    /// Opens a file that was looked at before.
    ///
    /// # Errors
    /// As [`RawFile::open`]; `Unavailable` when it is another file now, or was written to.
    pub fn open_as(name: &str, path: &Path, before: &FileIdentity) -> Result<Self> {
        let file = RawFile::open(name, path)?;
        check_identity(name, before, &file.identity)?;
        Ok(file)
    }

    /// The open file; opened again if it was closed meanwhile.
    fn file(&self) -> Result<Arc<File>> {
        let mut held = lock(&self.file);
        if let Some(file) = held.upgrade() {
            return Ok(file);
        }
        let file = File::open(&self.path).map_err(|e| vanished(&self.name, &self.path, &e))?;
        let meta = file.metadata().map_err(|e| Error::io("look at", &self.path, &e))?;
        check_identity(&self.name, &self.identity, &FileIdentity::of(&meta))?;
        let file = Arc::new(file);
        *held = keep_open(Arc::clone(&file));
        Ok(file)
    }

    /// Narrows it to a part.
    ///
    /// # Errors
    /// `Input` when the part is not within the file.
    pub fn part(mut self, start: u64, bytes: u64) -> Result<Self> {
        if start.checked_add(bytes).is_none_or(|end| end > self.identity.bytes) {
            return Err(Error::Invalid(format!(
                "{}: the member is not within the archive; is the archive truncated?",
                self.name
            )));
        }
        (self.start, self.bytes) = (start, bytes);
        Ok(self)
    }

    /// Name of the input, as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it was when it was opened first.
    pub fn identity(&self) -> &FileIdentity {
        &self.identity
    }

    /// Bytes of the part.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The stored bytes from a place on, to be read in order.
    pub fn reader(self: &Arc<Self>, at: u64) -> Raw {
        Raw::File { file: Arc::clone(self), at }
    }

    /// First byte of the part in its file.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Fills `buffer` from `offset` on; less only at the end.
    ///
    /// # Errors
    /// `Unavailable` when the file cannot be read, got shorter since it was opened, or is another when it is
    /// opened again.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let wanted = buffer.len().min(self.bytes.saturating_sub(offset) as usize);
        if wanted == 0 {
            return Ok(0);
        }
        let file = self.file()?;
        let mut have = 0;
        while have < wanted {
            let at = self.start + offset + have as u64;
            match file.read_at(&mut buffer[have..wanted], at) {
                Ok(0) => {
                    return Err(Error::Unavailable(format!(
                        "{}: the file got shorter while it was read: it had {} bytes and ends at {at}; \
                         nothing was loaded, load it again when it is whole",
                        self.name, self.identity.bytes
                    )));
                }
                Ok(n) => have += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("read", &self.path, &e)),
            }
        }
        Ok(have)
    }

    /// Checks that nobody wrote to the file since it was opened, or put another in its place.
    ///
    /// # Errors
    /// `Unavailable` when somebody did.
    pub fn check_unchanged(&self) -> Result<()> {
        check_path(&self.name, &self.path, &self.identity)
    }

    /// Checks that it is the file that was opened before, and nobody wrote to it since.
    ///
    /// # Errors
    /// `Unavailable` when it is another, or somebody did.
    pub fn check_same(&self, before: &RawFile) -> Result<()> {
        check_identity(&self.name, &before.identity, &self.identity)
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
fn check_identity(name: &str, before: &FileIdentity, now: &FileIdentity) -> Result<()> {
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

/// Stored bytes, read in order.
pub enum Raw {
    /// From a place of a file on.
    File {
        /// File that is read, opened when it is.
        file: Arc<RawFile>,
        /// Place of the next byte, counted from the first of the file or of the part.
        at: u64,
    },
    /// Bytes of a reader, as they come.
    Stream(Box<dyn Read + Send>),
}

impl Raw {
    /// Stored bytes of which there are none.
    pub fn empty() -> Self {
        Raw::Stream(Box::new(io::empty()))
    }
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Raw::File { file, at } => {
                let read = file.read_at(buffer, *at).map_err(io::Error::other)?;
                *at += read as u64;
                Ok(read)
            }
            Raw::Stream(stream) => stream.read(buffer),
        }
    }
}

/// The error of this workspace that an I/O error carries, or one that names the input.
pub fn read_error(name: &str, error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::Unavailable(format!("cannot read {name}: {error}")),
    }
}
