//! `pmem:DIR`: persistent memory, as a file of a DAX file system that is mapped with `MAP_SYNC`.
//!
//! ```text
//!   append  ->  stores past the caches (MOVNTI's wide form), then a fence; lines that are not whole are stored and flushed
//!   read    ->  where it is
//! ```
//!
//! Stores past the caches do not read the line first and do not throw others out of the cache: a run is read much later. Whether a
//! file system is DAX is tried when the space is opened. One that is not is used as `map:DIR` is, and the load says so.

use std::fs::File;
use std::sync::Arc;
use std::{io, ptr};

use coload_types::{Error, Result};
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::files::{Folder, Unnamed, in_space, wants_folder};
use crate::map::{MapExtent, MapWriter};
use crate::quota::{Quota, Taken};
use crate::space::{Extent, ExtentWriter, Space};
use crate::spec::{Kind, Opening};

/// Bytes that a file grows by, and that are mapped at once to be written.
const STEP_BYTES: usize = 64 << 20;
/// Bytes of a line of a cache.
const LINE_BYTES: usize = 64;

/// The kind of it.
#[derive(Debug)]
pub(crate) struct PmemKind;

impl Kind for PmemKind {
    fn name(&self) -> &'static str {
        "pmem"
    }

    fn form(&self) -> &'static str {
        "pmem:DIR"
    }

    fn check(&self, argument: Option<&str>) -> Result<()> {
        wants_folder(argument)
    }

    fn open(&self, given: &Opening<'_>) -> Result<Arc<dyn Space>> {
        let folder = Folder::open(given.name, given.argument)?;
        let file = folder.make(OFlags::empty()).map_err(|e| folder.not_made(&e))?;
        let note = Step::map(&file.file, 0, LINE_BYTES, MapFlags::SYNC).err().map(|e| {
            format!(
                "{} is not on a DAX file system ({e}): it is used as map:{} is",
                given.name, given.argument
            )
        });
        let (name, quota) = (given.name.to_owned(), Quota::new(given.name, given.size));
        Ok(Arc::new(PmemSpace { name, note, folder, quota }))
    }
}

#[derive(Debug)]
struct PmemSpace {
    name: String,
    /// Set where the file system is not DAX.
    note: Option<String>,
    folder: Folder,
    quota: Arc<Quota>,
}

impl Space for PmemSpace {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self) -> Result<Box<dyn ExtentWriter>> {
        let file = self.folder.make(OFlags::empty()).map_err(|e| self.folder.not_made(&e))?;
        let (space, taken) = (self.name.clone(), self.quota.begin());
        Ok(match self.note {
            Some(_) => Box::new(MapWriter::new(&space, file, taken)),
            None => Box::new(PmemWriter::new(space, file, MapFlags::SYNC, taken)),
        })
    }

    fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

/// A part of a file that is mapped to be written.
#[derive(Debug)]
struct Step {
    start: ptr::NonNull<u8>,
    bytes: usize,
}

// SAFETY: the map is owned by whoever has the step, and belongs to no thread.
unsafe impl Send for Step {}

impl Step {
    /// Gives a file room for some bytes and maps them.
    fn map(file: &File, at: u64, bytes: usize, flags: MapFlags) -> io::Result<Self> {
        // Room is there before it is written: a store to a map of a full disk ends the process.
        fallocate(file, FallocateFlags::empty(), at, bytes as u64)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses the place, where nothing was; the file has no name and is this process's alone.
        let start = unsafe {
            mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED_VALIDATE | flags, file, at)
        }?;
        let start = ptr::NonNull::new(start.cast());
        start.map(|start| Step { start, bytes }).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Puts bytes at a place, past the caches where lines are whole, and makes them durable.
    fn store(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.bytes);
        // SAFETY: the range is within the map, which is this step's alone and writable, as the assertion says.
        unsafe { store_past_caches(self.start.as_ptr().add(at), bytes) }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody has an address in it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Copies bytes past the caches.
///
/// # Safety
/// There is room for all of them at `to`.
#[cfg(target_arch = "x86_64")]
unsafe fn store_past_caches(to: *mut u8, bytes: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_clflush, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const WORD: usize = size_of::<__m128i>();
    let (mut at, count) = (0, bytes.len());
    let first = to.align_offset(LINE_BYTES).min(count);
    let last = first + (count - first) / LINE_BYTES * LINE_BYTES;
    let flush = |from: usize, end: usize| {
        // SAFETY: both are within the room, which the caller has.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().add(from), to.add(from), end - from) };
        if from < end {
            // SAFETY: the addresses are within the room; bytes that share a line are flushed with them, which changes nothing.
            unsafe {
                _mm_clflush(to.add(from));
                _mm_clflush(to.add(end - 1));
            }
        }
    };
    flush(0, first);
    at += first;
    while at < last {
        // SAFETY: the words are within both; `to` is aligned from `first` on.
        unsafe {
            let word = _mm_loadu_si128(bytes.as_ptr().add(at).cast());
            _mm_stream_si128(to.add(at).cast::<__m128i>(), word);
        }
        at += WORD;
    }
    flush(last, count);
    // SAFETY: every processor of this kind has it.
    unsafe { _mm_sfence() };
}

/// Copies bytes; where there are no stores past the caches the system's flush of the map makes them durable.
///
/// # Safety
/// There is room for all of them at `to`.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn store_past_caches(to: *mut u8, bytes: &[u8]) {
    // SAFETY: the caller has the room.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
}

/// An extent that is written through maps.
#[derive(Debug)]
pub(crate) struct PmemWriter {
    space: String,
    file: Unnamed,
    flags: MapFlags,
    /// The step that is written, and where it begins.
    step: Option<(u64, Step)>,
    bytes: u64,
    taken: Taken,
}

impl PmemWriter {
    /// Maps have these flags besides.
    pub fn new(space: String, file: Unnamed, flags: MapFlags, taken: Taken) -> Self {
        PmemWriter { space, file, flags, step: None, bytes: 0, taken }
    }

    /// The step that the next byte is in.
    fn step(&mut self) -> io::Result<(&mut Step, usize)> {
        let first = self.bytes / STEP_BYTES as u64 * STEP_BYTES as u64;
        let known = self.step.take().filter(|(start, _)| *start == first);
        let step = match known {
            Some(step) => step,
            None => (first, Step::map(&self.file.file, first, STEP_BYTES, self.flags)?),
        };
        let at = (self.bytes - first) as usize;
        Ok((&mut self.step.insert(step).1, at))
    }
}

impl ExtentWriter for PmemWriter {
    fn append(&mut self, part: Vec<u8>) -> Result<()> {
        self.taken.grow(part.len() as u64)?;
        let mut rest = &part[..];
        while !rest.is_empty() {
            let count = match self.step() {
                Ok((step, at)) => {
                    let count = rest.len().min(STEP_BYTES - at);
                    step.store(at, &rest[..count]);
                    count
                }
                Err(e) => {
                    return Err(in_space(&self.space, Error::io("write", &self.file.path, &e)));
                }
            };
            self.bytes += count as u64;
            rest = &rest[count..];
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Extent>> {
        let PmemWriter { space, file, step, bytes, taken, .. } = *self;
        drop(step);
        Ok(Box::new(MapExtent::of(space, file, bytes, taken)?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bytes_past_the_caches_are_where_they_belong() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open("pmem:x", dir.path().to_str().unwrap()).unwrap();
        let file = folder.make(OFlags::empty()).unwrap();
        // No DAX here: the same maps, but for the flag.
        let quota = Quota::new("pmem:x", None);
        let flags = MapFlags::empty();
        let mut writer = Box::new(PmemWriter::new("pmem:x".into(), file, flags, quota.begin()));
        let part = |n: usize| (0..n * 37 % 1000).map(|i| (i + n) as u8).collect::<Vec<u8>>();
        let long: Vec<u8> = (0..STEP_BYTES + 77).map(|i| (i % 251) as u8).collect();
        let parts: Vec<Vec<u8>> = (0..200).map(part).chain([long, part(3)]).collect();
        parts.iter().for_each(|part| writer.append(part.clone()).unwrap());
        let extent = writer.finish().unwrap();
        let mut start = 0;
        for part in &parts {
            assert_eq!(&*extent.read(start, part.len() as u64).unwrap(), &part[..]);
            start += part.len() as u64;
        }
    }
}
