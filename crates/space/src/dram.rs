//! `dram`: parts stay in the memory that they were made in, and are not copied.
//!
//! Cost: nothing but the memory. Without a size it may hold what a load may use.

use std::sync::Arc;

use coload_types::{Error, Result};

use crate::quota::{Quota, Taken};
use crate::space::{Extent, ExtentWriter, Piece, Space};
use crate::spec::{Kind, Opening, no_argument};

/// The kind of it.
#[derive(Debug)]
pub(crate) struct DramKind;

impl Kind for DramKind {
    fn name(&self) -> &'static str {
        "dram"
    }

    fn form(&self) -> &'static str {
        "dram"
    }

    fn check(&self, argument: Option<&str>) -> Result<()> {
        no_argument(argument)
    }

    fn open(&self, given: &Opening<'_>) -> Result<Arc<dyn Space>> {
        Ok(Arc::new(Dram::new(given.name, given.size.unwrap_or(given.memory))))
    }
}

/// Memory of this process.
#[derive(Debug)]
pub struct Dram {
    name: String,
    quota: Arc<Quota>,
}

impl Dram {
    /// A space that holds at most so many bytes.
    pub fn new(name: &str, bytes_max: u64) -> Self {
        Dram { name: name.to_owned(), quota: Quota::new(name, Some(bytes_max)) }
    }

    /// An extent, with its parts.
    pub(crate) fn begin(&self) -> Parts {
        Parts { name: self.name.clone(), parts: Vec::new(), bytes: 0, taken: self.quota.begin() }
    }
}

impl Space for Dram {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self) -> Result<Box<dyn ExtentWriter>> {
        Ok(Box::new(self.begin()))
    }

    fn is_dram(&self) -> bool {
        true
    }
}

/// Parts in memory, each with its first byte.
#[derive(Debug)]
pub(crate) struct Parts {
    name: String,
    parts: Vec<(u64, Vec<u8>)>,
    bytes: u64,
    taken: Taken,
}

impl Parts {
    /// Bytes of all parts.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a part; gives it back when there is no room for it.
    pub fn push(&mut self, mut part: Vec<u8>) -> std::result::Result<(), (Error, Vec<u8>)> {
        part.shrink_to_fit();
        match self.taken.grow(part.len() as u64) {
            Ok(()) => {
                let start = self.bytes;
                self.bytes += part.len() as u64;
                self.parts.push((start, part));
                Ok(())
            }
            Err(full) => Err((full, part)),
        }
    }

    /// The part that begins at a byte.
    pub fn get(&self, start: u64, bytes: u64) -> Result<&[u8]> {
        // Parts without bytes begin where the next one does.
        let first = self.parts.partition_point(|(at, _)| *at < start);
        let here = self.parts[first..].iter().take_while(|(at, _)| *at == start);
        let found = here.map(|(_, part)| part).find(|part| part.len() as u64 == bytes);
        found.map(Vec::as_slice).ok_or_else(|| no_such_part(&self.name, start, bytes))
    }
}

/// The error for bytes that were not appended.
pub(crate) fn no_such_part(name: &str, start: u64, bytes: u64) -> Error {
    Error::Corrupt(format!("{name}: there is no part of {bytes} bytes at byte {start}"))
}

impl ExtentWriter for Parts {
    fn append(&mut self, part: Vec<u8>) -> Result<()> {
        self.push(part).map_err(|(full, _)| full)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Extent>> {
        Ok(self)
    }
}

impl Extent for Parts {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn read(&self, start: u64, bytes: u64) -> Result<Piece<'_>> {
        self.get(start, bytes).map(Piece::InPlace)
    }
}
