//! The bytes of an input as they are stored: a file or a part of one, or a stream.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use coload_format::{Error, Result};

/// A file, or a part of one, of which any range can be read.
#[derive(Debug)]
pub struct RawFile {
    /// Name as given.
    name: String,
    path: PathBuf,
    file: File,
    /// First byte of the part.
    start: u64,
    /// Bytes of the part.
    bytes: u64,
    /// Bytes of the file when it was opened.
    file_bytes: u64,
    modified: Option<SystemTime>,
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
        Ok(RawFile {
            name: name.to_owned(),
            path: path.to_owned(),
            file,
            start: 0,
            bytes: meta.len(),
            file_bytes: meta.len(),
            modified: meta.modified().ok(),
        })
    }

    /// Narrows it to a part.
    ///
    /// # Errors
    /// `Input` when the part is not within the file.
    pub fn part(mut self, start: u64, bytes: u64) -> Result<Self> {
        if start.checked_add(bytes).is_none_or(|end| end > self.file_bytes) {
            return Err(Error::Invalid(format!(
                "{}: the member is not within the archive; is the archive truncated?",
                self.name
            )));
        }
        (self.start, self.bytes) = (start, bytes);
        Ok(self)
    }

    /// Name as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the part.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its bytes from a place on.
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
    /// `Unavailable` when the file cannot be read, or got shorter since it was opened.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let wanted = buffer.len().min(self.bytes.saturating_sub(offset) as usize);
        let mut have = 0;
        while have < wanted {
            let at = self.start + offset + have as u64;
            match self.file.read_at(&mut buffer[have..wanted], at) {
                Ok(0) => {
                    return Err(Error::Unavailable(format!(
                        "{}: the file got shorter while it was read: it had {} bytes and ends at {at}; \
                         nothing was loaded, load it again when it is whole",
                        self.name, self.file_bytes
                    )));
                }
                Ok(n) => have += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("read", &self.path, &e)),
            }
        }
        Ok(have)
    }

    /// Checks that nobody wrote to the file since it was opened.
    ///
    /// # Errors
    /// `Unavailable` when somebody did.
    pub fn check_unchanged(&self) -> Result<()> {
        let now = self.file.metadata().map_err(|e| Error::io("look at", &self.path, &e))?;
        if now.len() != self.file_bytes {
            return Err(Error::Unavailable(format!(
                "{}: the file changed while it was read: it had {} bytes and has {}; nothing was \
                 loaded, load it again when it is whole",
                self.name,
                self.file_bytes,
                now.len()
            )));
        }
        if now.modified().ok() != self.modified {
            return Err(self.written_to());
        }
        Ok(())
    }

    /// Checks that it is the file that was opened before, and nobody wrote to it since.
    ///
    /// # Errors
    /// `Unavailable` when it is another, or somebody did.
    pub fn check_same(&self, before: &RawFile) -> Result<()> {
        let identity = |file: &RawFile| -> Result<_> {
            let meta = file.file.metadata().map_err(|e| Error::io("look at", &file.path, &e))?;
            Ok((meta.dev(), meta.ino()))
        };
        let same = (self.file_bytes, self.modified) == (before.file_bytes, before.modified);
        match same && identity(self)? == identity(before)? {
            true => Ok(()),
            false => Err(self.written_to()),
        }
    }

    fn written_to(&self) -> Error {
        Error::Unavailable(format!(
            "{}: the file was written to while it was read; nothing was loaded, load it again when it is whole",
            self.name
        ))
    }
}

/// Stored bytes, read in order.
pub enum Raw {
    /// From a place of a file on.
    File {
        /// The file.
        file: Arc<RawFile>,
        /// The place.
        at: u64,
    },
    /// As they come.
    Stream(Box<dyn Read + Send>),
}

impl Raw {
    /// No bytes.
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
