//! `disk:DIR`: direct, sequential writes of large blocks past the page cache, and direct reads.
//!
//! ```text
//!   append  ->  block that is filled   ->  full: to the thread that writes, which gives back the one before
//!   finish  ->  the last block, with zeros up to a whole sector
//! ```
//!
//! Two blocks of 4 MiB an extent: one is filled while the other is written. A read is one call for the sectors of what is
//! wanted; that are parts of columns, and the threads that ask for them overlap the calls. A file system without direct I/O (tmpfs) is written
//! through its cache.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::Builder;
use std::{fs::File, io};

use coload_threads::Thread;
use coload_types::{Error, Result};
use rustix::fs::OFlags;

use crate::dram::no_such_part;
use crate::files::{Folder, Unnamed, in_space, wants_folder};
use crate::quota::{Quota, Taken};
use crate::space::{Extent, ExtentWriter, Piece, Space};
use crate::spec::{Kind, Opening};

/// Direct I/O begins and ends at multiples of this, in files and in memory.
const SECTOR_BYTES: usize = 4096;
/// Bytes of a block that is written: large enough that a disk writes at its full speed.
const BLOCK_BYTES: usize = 4 << 20;

/// The kind of it.
#[derive(Debug)]
pub(crate) struct DiskKind;

impl Kind for DiskKind {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn form(&self) -> &'static str {
        "disk:DIR"
    }

    fn check(&self, argument: Option<&str>) -> Result<()> {
        wants_folder(argument)
    }

    fn open(&self, given: &Opening<'_>) -> Result<Arc<dyn Space>> {
        let folder = Folder::open(given.name, given.argument)?;
        let is_direct = folder.make(OFlags::DIRECT).is_ok();
        Ok(Arc::new(DiskSpace {
            name: given.name.to_owned(),
            note: (!is_direct).then(|| {
                format!("{} has no direct I/O there: it goes through the page cache", given.name)
            }),
            folder,
            quota: Quota::new(given.name, given.size),
        }))
    }
}

#[derive(Debug)]
struct DiskSpace {
    name: String,
    /// Set where there is no direct I/O.
    note: Option<String>,
    folder: Folder,
    quota: Arc<Quota>,
}

impl Space for DiskSpace {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self) -> Result<Box<dyn ExtentWriter>> {
        let flags = if self.note.is_none() { OFlags::DIRECT } else { OFlags::empty() };
        let file = self.folder.make(flags).map_err(|e| self.folder.not_made(&e))?;
        let writing = Writing::begin(file).map_err(|e| self.folder.not_made(&e))?;
        let (space, taken) = (self.name.clone(), self.quota.begin());
        let block = Sectors::new(BLOCK_BYTES);
        Ok(Box::new(DiskWriter {
            space,
            writing: Some(writing),
            block,
            filled: 0,
            bytes: 0,
            taken,
        }))
    }

    fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

/// Memory that begins at a whole sector.
#[derive(Debug)]
struct Sectors {
    buffer: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl Sectors {
    /// So many bytes, all zero.
    fn new(bytes: usize) -> Self {
        let buffer = vec![0; bytes + SECTOR_BYTES];
        let start = buffer.as_ptr().align_offset(SECTOR_BYTES).min(SECTOR_BYTES);
        Sectors { buffer, start, bytes }
    }

    fn get(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.bytes]
    }

    fn get_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.start + self.bytes]
    }
}

/// A thread that writes blocks one after the other.
#[derive(Debug)]
struct Writing {
    file: Arc<Unnamed>,
    /// Blocks that are full, with their bytes that are written.
    full: SyncSender<(Sectors, usize)>,
    empty: Receiver<Sectors>,
    thread: Thread<io::Result<()>>,
}

impl Writing {
    fn begin(file: Unnamed) -> io::Result<Self> {
        let file = Arc::new(file);
        let (full, blocks) = sync_channel(0);
        let (give_back, empty) = channel();
        // The second block.
        let _ = give_back.send(Sectors::new(BLOCK_BYTES));
        let to = Arc::clone(&file);
        let thread = coload_threads::spawn(Builder::new().name("run".into()), move || {
            let mut end = 0;
            while let Ok((block, bytes)) = blocks.recv() {
                let block: Sectors = block;
                to.file.write_all_at(&block.get()[..bytes], end)?;
                end += bytes as u64;
                let _ = give_back.send(block);
            }
            Ok(())
        })?;
        Ok(Writing { file, full, empty, thread })
    }

    /// Waits for all that was given to be written.
    fn end(self) -> io::Result<Arc<Unnamed>> {
        drop(self.full);
        match self.thread.join() {
            Ok(written) => written.map(|()| self.file),
            Err(_) => Err(io::Error::other("the thread that writes it failed")),
        }
    }
}

#[derive(Debug)]
struct DiskWriter {
    space: String,
    /// `None` when it has failed.
    writing: Option<Writing>,
    block: Sectors,
    filled: usize,
    bytes: u64,
    taken: Taken,
}

impl DiskWriter {
    /// Gives the block that is filled to the thread, and takes the other one.
    fn give(&mut self) -> Result<()> {
        let bytes = self.filled.next_multiple_of(SECTOR_BYTES);
        self.block.get_mut()[self.filled..bytes].fill(0);
        self.filled = 0;
        let given = self.writing.as_ref().is_some_and(|writing| {
            let Ok(empty) = writing.empty.recv() else { return false };
            let full = std::mem::replace(&mut self.block, empty);
            writing.full.send((full, bytes)).is_ok()
        });
        if given { Ok(()) } else { Err(self.end().err().unwrap_or_else(|| self.not_written())) }
    }

    /// Waits for all that was given to be written.
    fn end(&mut self) -> Result<Arc<Unnamed>> {
        let Some(writing) = self.writing.take() else { return Err(self.not_written()) };
        let file = Arc::clone(&writing.file);
        writing.end().map_err(|e| in_space(&self.space, Error::io("write", &file.path, &e)))
    }

    fn not_written(&self) -> Error {
        Error::Unavailable(format!("space {}: a run was not written", self.space))
    }
}

impl ExtentWriter for DiskWriter {
    fn append(&mut self, part: Vec<u8>) -> Result<()> {
        self.taken.grow(part.len() as u64)?;
        let mut rest = &part[..];
        while !rest.is_empty() {
            let room = &mut self.block.get_mut()[self.filled..];
            let count = room.len().min(rest.len());
            room[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            self.filled += count;
            if self.filled == BLOCK_BYTES {
                self.give()?;
            }
        }
        self.bytes += part.len() as u64;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Box<dyn Extent>> {
        if self.filled > 0 {
            self.give()?;
        }
        let file = self.end()?;
        let DiskWriter { space, bytes, taken, .. } = *self;
        Ok(Box::new(DiskExtent { space, file, bytes, _taken: taken }))
    }
}

#[derive(Debug)]
struct DiskExtent {
    space: String,
    file: Arc<Unnamed>,
    bytes: u64,
    _taken: Taken,
}

impl Extent for DiskExtent {
    fn name(&self) -> String {
        format!("space {}: {}", self.space, self.file.path.display())
    }

    fn read(&self, start: u64, bytes: u64) -> Result<Piece<'_>> {
        let end = start.checked_add(bytes).filter(|end| *end <= self.bytes);
        let end = end.ok_or_else(|| no_such_part(&self.name(), start, bytes))?;
        let sector = SECTOR_BYTES as u64;
        let first = start / sector * sector;
        let mut sectors = Sectors::new((end.next_multiple_of(sector) - first) as usize);
        let Unnamed { file, path } = &*self.file;
        read_exactly(file, sectors.get_mut(), first)
            .map_err(|e| in_space(&self.space, Error::io("read", path, &e)))?;
        let at = sectors.start + (start - first) as usize;
        Ok(Piece::Read(sectors.buffer, at..at + bytes as usize))
    }

    fn read_many(&self, start: u64, bytes: u64) -> Result<Option<Piece<'_>>> {
        self.read(start, bytes).map(Some)
    }
}

fn read_exactly(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    if buffer.is_empty() { Ok(()) } else { file.read_exact_at(buffer, at) }
}
