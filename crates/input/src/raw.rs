//! The bytes of an input as they are stored: a file or an object, or a part of one, or a stream.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use coload_places::{ObjectRef, Wanted};
use coload_types::{Error, Result};

use crate::disk::{DiskFile, FileIdentity, check_identity};
use crate::inputs::Inputs;

/// Where stored bytes are of which any part can be read: a disk, an object store. Whoever changes them, all that are read
/// are those that were there when they were looked at first.
pub trait Store: fmt::Debug + Send + Sync {
    /// Number of bytes.
    fn bytes(&self) -> u64;

    /// Fills `buffer` from `at` on; `name` is the input in messages.
    ///
    /// # Errors
    /// `Unavailable` when they cannot be read, or are others now.
    fn read_at(&self, name: &str, buffer: &mut [u8], at: u64) -> Result<()>;

    /// The same of bytes that are looked at and will be read then.
    ///
    /// # Errors
    /// As [`Store::read_at`].
    fn peek_at(&self, name: &str, buffer: &mut [u8], at: u64) -> Result<()> {
        self.read_at(name, buffer, at)
    }

    /// Checks that nobody changed them.
    ///
    /// # Errors
    /// `Unavailable` when somebody did.
    fn check_unchanged(&self, name: &str) -> Result<()>;

    /// Which file it is, if it is one of a disk.
    fn identity(&self) -> Option<&FileIdentity> {
        None
    }

    /// Whether they are on another machine.
    fn is_far(&self) -> bool {
        false
    }

    /// Says which small parts will be looked at soon. Where bytes are far away all are on their way then.
    fn look_at(&self, _parts: Vec<Range<u64>>) {}

    /// Says which parts will be read. Where bytes are far away others are not read ahead.
    fn will_read(&self, _parts: Vec<Wanted>) {}
}

/// A file or an object, or a part of one, of which any range can be read.
#[derive(Debug)]
pub struct RawFile {
    /// Name of the input, as it was given.
    name: Box<str>,
    store: Box<dyn Store>,
    /// First byte of the part.
    start: u64,
    /// Bytes of the part.
    bytes: u64,
}

impl RawFile {
    fn of(name: &str, store: impl Store + 'static) -> Self {
        let bytes = store.bytes();
        RawFile { name: name.into(), store: Box::new(store), start: 0, bytes }
    }

    /// Opens a whole file.
    ///
    /// # Errors
    /// `Invalid` when it cannot be opened or is no regular file.
    pub fn open(name: &str, path: &Path) -> Result<Self> {
        Ok(RawFile::of(name, DiskFile::open(path)?))
    }

    /// Opens a file that was looked at before.
    ///
    /// # Errors
    /// As [`RawFile::open`]; `Unavailable` when it is another file now, or was written to.
    pub fn open_as(name: &str, path: &Path, before: &FileIdentity) -> Result<Self> {
        let file = DiskFile::open(path)?;
        check_identity(name, before, file.identity())?;
        Ok(RawFile::of(name, file))
    }

    /// An input whose text was kept ([`Inputs::text`]).
    pub fn of_text(inputs: Inputs, number: usize) -> Self {
        let name = inputs.name(number);
        RawFile::of(&name, KeptText { inputs, number })
    }

    /// An object that was found.
    pub fn of_object(name: &str, object: &ObjectRef) -> Self {
        RawFile::of(name, object.clone())
    }

    /// Narrows it to a part.
    ///
    /// # Errors
    /// `Input` when the part is not within the file.
    pub fn part(mut self, start: u64, bytes: u64) -> Result<Self> {
        if start.checked_add(bytes).is_none_or(|end| end > self.store.bytes()) {
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

    /// What it was when it was opened first, if it is a file of a disk.
    pub fn identity(&self) -> Option<&FileIdentity> {
        self.store.identity()
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

    /// Whether it is on another machine.
    pub fn is_far(&self) -> bool {
        self.store.is_far()
    }

    /// Says which small parts will be looked at soon, one after the other.
    pub fn look_at(&self, parts: impl IntoIterator<Item = Range<u64>>) {
        let parts = parts.into_iter().map(|part| self.within(part)).filter(|part| !part.is_empty());
        self.store.look_at(parts.collect());
    }

    /// Where a part stands in the file.
    fn within(&self, part: Range<u64>) -> Range<u64> {
        let at = |place: u64| self.start + place.min(self.bytes);
        at(part.start)..at(part.end)
    }

    /// Says which parts will be read, so that they are there when they are. Without it all are.
    pub fn will_read(&self, parts: impl IntoIterator<Item: Into<Wanted>>) {
        let within = |part: Wanted| Wanted { range: self.within(part.range), ..part };
        self.store.will_read(parts.into_iter().map(Into::into).map(within).collect());
    }

    /// Fills `buffer` from `offset` on; less only at the end.
    ///
    /// # Errors
    /// `Unavailable` when the file cannot be read, got shorter since it was opened, or is another when it is
    /// opened again.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let wanted = self.here(buffer, offset);
        if !wanted.is_empty() {
            self.store.read_at(&self.name, wanted, self.start + offset)?;
        }
        Ok(wanted.len())
    }

    /// The same of bytes that are looked at and will be read then: where they are far away they stay.
    ///
    /// # Errors
    /// As [`RawFile::read_at`].
    pub fn peek_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let wanted = self.here(buffer, offset);
        if !wanted.is_empty() {
            self.store.peek_at(&self.name, wanted, self.start + offset)?;
        }
        Ok(wanted.len())
    }

    /// As much of a buffer as there are bytes from an offset on.
    fn here<'b>(&self, buffer: &'b mut [u8], offset: u64) -> &'b mut [u8] {
        let wanted = (buffer.len() as u64).min(self.bytes.saturating_sub(offset)) as usize;
        &mut buffer[..wanted]
    }

    /// Its first bytes, at most so many.
    ///
    /// # Errors
    /// As [`RawFile::read_at`].
    pub fn head(&self, bytes_max: usize) -> Result<Vec<u8>> {
        let mut head = vec![0; self.bytes.min(bytes_max as u64) as usize];
        let read = self.read_at(&mut head, 0)?;
        head.truncate(read);
        Ok(head)
    }

    /// Checks that nobody wrote to the file since it was opened, or put another in its place.
    ///
    /// # Errors
    /// `Unavailable` when somebody did.
    pub fn check_unchanged(&self) -> Result<()> {
        self.store.check_unchanged(&self.name)
    }

    /// Checks that it is the file that was opened before, and nobody wrote to it since. All reads of an object are of
    /// the version that was found.
    ///
    /// # Errors
    /// `Unavailable` when it is another, or somebody did.
    pub fn check_same(&self, before: &RawFile) -> Result<()> {
        match (before.identity(), self.identity()) {
            (Some(before), Some(now)) => check_identity(&self.name, before, now),
            _ => Ok(()),
        }
    }
}

/// The text of an input that was kept.
#[derive(Debug)]
struct KeptText {
    inputs: Inputs,
    number: usize,
}

impl KeptText {
    fn text(&self) -> &[u8] {
        self.inputs.text(self.number).unwrap_or_default()
    }
}

impl Store for KeptText {
    fn bytes(&self) -> u64 {
        self.text().len() as u64
    }

    fn read_at(&self, _name: &str, buffer: &mut [u8], at: u64) -> Result<()> {
        buffer.copy_from_slice(&self.text()[at as usize..][..buffer.len()]);
        Ok(())
    }

    fn check_unchanged(&self, _name: &str) -> Result<()> {
        self.inputs.at(self.number).check_unchanged()
    }
}

impl Store for ObjectRef {
    fn bytes(&self) -> u64 {
        ObjectRef::bytes(self)
    }

    fn read_at(&self, _name: &str, buffer: &mut [u8], at: u64) -> Result<()> {
        ObjectRef::read_at(self, buffer, at)
    }

    fn peek_at(&self, _name: &str, buffer: &mut [u8], at: u64) -> Result<()> {
        ObjectRef::peek_at(self, buffer, at)
    }

    /// All that was read was of the version that was found, whatever it is now.
    fn check_unchanged(&self, _name: &str) -> Result<()> {
        Ok(())
    }

    fn is_far(&self) -> bool {
        true
    }

    fn look_at(&self, parts: Vec<Range<u64>>) {
        ObjectRef::look_at(self, parts);
    }

    fn will_read(&self, parts: Vec<Wanted>) {
        ObjectRef::will_read(self, parts);
    }
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
