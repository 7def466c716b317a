//! DRAM as far as it goes, another space beyond it: where runs are unless somebody says otherwise.

use std::sync::Arc;

use coload_types::Result;

use crate::dram::{Dram, Parts};
use crate::space::{Extent, ExtentWriter, Piece, Space};

/// DRAM, and a space for what it does not hold.
#[derive(Debug)]
pub struct Tiered {
    dram: Dram,
    beyond: Arc<dyn Space>,
}

impl Tiered {
    /// At most so many bytes of DRAM, then another space.
    pub fn new(dram_bytes: u64, beyond: Arc<dyn Space>) -> Self {
        Tiered { dram: Dram::new("dram", dram_bytes), beyond }
    }
}

impl Space for Tiered {
    fn name(&self) -> &str {
        self.beyond.name()
    }

    fn create(&self) -> Result<Box<dyn ExtentWriter>> {
        let (dram, beyond) = (self.dram.begin(), Arc::clone(&self.beyond));
        Ok(Box::new(TieredWriter { dram, beyond, more: None }))
    }

    fn is_dram(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct TieredWriter {
    dram: Parts,
    beyond: Arc<dyn Space>,
    /// Parts from the first on for which DRAM had no room.
    more: Option<Box<dyn ExtentWriter>>,
}

impl ExtentWriter for TieredWriter {
    fn append(&mut self, part: Vec<u8>) -> Result<()> {
        let part = match &mut self.more {
            Some(more) => return more.append(part),
            None => match self.dram.push(part) {
                Ok(()) => return Ok(()),
                Err((_, part)) => part,
            },
        };
        self.more.insert(self.beyond.create()?).append(part)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Extent>> {
        let more = self.more.map(|more| more.finish()).transpose()?;
        Ok(Box::new(TieredExtent { dram: self.dram, more }))
    }
}

#[derive(Debug)]
struct TieredExtent {
    dram: Parts,
    more: Option<Box<dyn Extent>>,
}

impl Extent for TieredExtent {
    fn name(&self) -> String {
        self.more.as_ref().map_or_else(|| self.dram.name(), |more| more.name())
    }

    fn read(&self, start: u64, bytes: u64) -> Result<Piece<'_>> {
        match (&self.more, start.checked_sub(self.dram.bytes())) {
            (Some(more), Some(start)) => more.read(start, bytes),
            _ => self.dram.read(start, bytes),
        }
    }

    fn read_many(&self, start: u64, bytes: u64) -> Result<Option<Piece<'_>>> {
        match (&self.more, start.checked_sub(self.dram.bytes())) {
            (Some(more), Some(start)) => more.read_many(start, bytes),
            _ => Ok(None),
        }
    }

    fn leave(&self, start: u64, bytes: u64) {
        if let (Some(more), Some(start)) = (&self.more, start.checked_sub(self.dram.bytes())) {
            more.leave(start, bytes);
        }
    }

    fn check(&self) -> Result<()> {
        self.more.as_ref().map_or(Ok(()), |more| more.check())
    }
}
