//! What was read of a stream, kept in a file, as it can be read once only.
//!
//! A column that becomes text late needs the text of the rows before ([`crate::legs`]). The file has no name and
//! vanishes with the process. It takes at most half of what is free on the disk: then the text is given up, not
//! the load.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use coload_types::{Error, Result};

use coload_threads::lock;

/// Bytes of a stream so far.
#[derive(Debug)]
pub struct Spool {
    file: File,
    bytes_max: u64,
    /// Bytes kept; `None` when they were given up.
    kept: Mutex<Option<u64>>,
}

impl Spool {
    /// An empty spool; its file is made at `path` and has no name any more.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be made.
    pub fn create(path: &Path) -> Result<Arc<Self>> {
        let create = || -> io::Result<(File, u64)> {
            let file = File::options().read(true).write(true).create_new(true).open(path)?;
            std::fs::remove_file(path)?;
            let disk = rustix::fs::fstatvfs(&file)?;
            Ok((file, disk.f_bavail.saturating_mul(disk.f_frsize) / 2))
        };
        let (file, bytes_max) = create().map_err(|e| Error::io("create", path, &e))?;
        Ok(Arc::new(Spool { file, bytes_max, kept: Mutex::new(Some(0)) }))
    }

    /// A reader whose bytes are kept.
    pub fn keep(self: &Arc<Self>, reader: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        Box::new(Kept { reader, spool: Arc::clone(self) })
    }

    /// Reads what was kept from the start; `None` when it was given up.
    pub fn reader(self: &Arc<Self>) -> Option<Box<dyn Read + Send>> {
        let end = (*lock(&self.kept))?;
        Some(Box::new(Again { spool: Arc::clone(self), at: 0, end }))
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = lock(&self.kept);
        let Some(before) = *kept else { return };
        let after = before + bytes.len() as u64;
        *kept = (after <= self.bytes_max && (&self.file).write_all(bytes).is_ok()).then_some(after);
        if kept.is_none() {
            // The disk has other uses; if it stays full, the load tells.
            let _ = self.file.set_len(0);
        }
    }
}

struct Kept {
    reader: Box<dyn Read + Send>,
    spool: Arc<Spool>,
}

impl Read for Kept {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.spool.push(&buffer[..read]);
        Ok(read)
    }
}

struct Again {
    spool: Arc<Spool>,
    at: u64,
    end: u64,
}

impl Read for Again {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room =
            usize::try_from(self.end - self.at).map_or(buffer.len(), |r| r.min(buffer.len()));
        let read = self.spool.file.read_at(&mut buffer[..room], self.at)?;
        if read == 0 && room > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_read_is_read_again_until_it_is_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::create(&folder.path().join("spool")).unwrap();
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        let text: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        let mut first = Vec::new();
        spool.keep(Box::new(io::Cursor::new(text.clone()))).read_to_end(&mut first).unwrap();
        let mut again = Vec::new();
        spool.reader().unwrap().read_to_end(&mut again).unwrap();
        assert!(first == text && again == text);

        let small = Spool {
            file: spool.file.try_clone().unwrap(),
            bytes_max: 10,
            kept: Mutex::new(Some(0)),
        };
        let small = Arc::new(small);
        small.push(b"0123456789");
        assert!(small.reader().is_some());
        small.push(b"0");
        assert!(small.reader().is_none());
    }
}
