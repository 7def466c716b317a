//! What a space is, whatever its kind.

use std::fmt::Debug;
use std::ops::{Deref, Range};

use coload_types::Result;

/// Where buffers live.
pub trait Space: Debug + Send + Sync {
    /// Its kind and place, as the option names it.
    fn name(&self) -> &str;

    /// Makes an empty extent.
    ///
    /// # Errors
    /// `Invalid` or `Unavailable` when the space is not there.
    fn create(&self) -> Result<Box<dyn ExtentWriter>>;

    /// Whether values that are in memory are in this space already, so that nothing is gained by an extent of them.
    fn is_dram(&self) -> bool {
        false
    }

    /// Tells that lines of a cache, in no order, are read from what is in the space; one that is emulated charges them.
    fn touch(&self, _lines: u64) {}

    /// What a user should know of the space, if it is not what its name says.
    fn note(&self) -> Option<&str> {
        None
    }
}

/// An extent that is written.
pub trait ExtentWriter: Debug + Send {
    /// Appends a part; parts are read as they were appended.
    ///
    /// # Errors
    /// `Limit` when the space has not that much room, `Unavailable` when its disk is full or fails.
    fn append(&mut self, part: Vec<u8>) -> Result<()>;

    /// Ends the extent.
    ///
    /// # Errors
    /// As [`Self::append`].
    fn finish(self: Box<Self>) -> Result<Box<dyn Extent>>;
}

/// An extent that is whole; what it takes is free again when it is dropped.
pub trait Extent: Debug + Send + Sync {
    /// Its space and file, for messages.
    fn name(&self) -> String;

    /// Reads a part, by the byte that it begins at and its length as they were appended.
    ///
    /// # Errors
    /// `Corrupt` when there is no such part, `Unavailable` when the disk fails.
    fn read(&self, start: u64, bytes: u64) -> Result<Piece<'_>>;

    /// Reads parts that stand one after the other by one call, if the space is one where calls are dear; `None` if it is not.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn read_many(&self, _start: u64, _bytes: u64) -> Result<Option<Piece<'_>>> {
        Ok(None)
    }

    /// Says that a part was read and may be left: that of a mapped file need not be in the memory of the process any more. It can be
    /// read again.
    fn leave(&self, _start: u64, _bytes: u64) {}

    /// Checks that what was read was what is in the space; called after what was read was used.
    ///
    /// # Errors
    /// `Corrupt` when a mapped file could not be read.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// Bytes of an extent, in their place or read into a buffer.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Where they are.
    InPlace(&'a [u8]),
    /// Some bytes of a buffer.
    Read(Vec<u8>, Range<usize>),
}

impl Deref for Piece<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Piece::InPlace(bytes) => bytes,
            Piece::Read(buffer, range) => &buffer[range.clone()],
        }
    }
}
