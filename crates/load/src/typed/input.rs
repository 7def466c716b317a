//! An input whose records have types: which of its fields the columns are, and its bytes.

use std::borrow::Cow;

use coload_arrow::Body;
use coload_input::RawFile;
use coload_types::{Error, Result};

use crate::format::Leg;
use crate::request::LoadRequest;
use crate::resources::Resources;

/// Share of the memory that what is read as a whole may take: a batch, or a page.
pub const BATCH_SHARE: usize = 6;

/// What is loaded, and what may be used for it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What is loaded.
    pub request: &'a LoadRequest,
    /// What may be used.
    pub resources: &'a Resources,
}

impl<'a> Asked<'a> {
    /// Of a leg.
    pub fn of(leg: &Leg<'a>) -> Self {
        Asked { request: leg.request, resources: leg.resources }
    }
}

/// Most bytes that are in memory of what is read as a whole.
pub fn batch_bytes_max(asked: Asked<'_>) -> u64 {
    (asked.resources.memory / BATCH_SHARE) as u64
}

/// Finds for each column that is read its field in an input, by its number, that has so many fields; `None` where the input
/// lacks it. `check` says what is wrong with a field: its name, what it is, and that no column holds it.
///
/// # Errors
/// `Invalid` when it has not the fields that the load reads, or one is of a type that no column holds.
pub fn fields_of_columns(
    number: usize,
    count: usize,
    asked: Asked<'_>,
    check: impl Fn(usize) -> std::result::Result<(), String>,
) -> Result<Vec<Option<usize>>> {
    let name = asked.request.inputs.name(number);
    let fields = asked.request.fields_of_inputs();
    let way = fields.of(number);
    if count != way.count {
        return Err(Error::Invalid(format!(
            "{name} has {count} fields, and {} are read (try --by-name, or load it by itself)",
            way.count
        )));
    }
    for field in way.of_column.iter().flatten() {
        check(*field).map_err(|what| {
            Error::Invalid(format!("{name}: {what} (leave it out: --by-name with --columns)"))
        })?;
    }
    Ok(way.of_column.clone())
}

/// A part of a file.
pub struct FileBody<'a> {
    /// The file.
    pub file: &'a RawFile,
    /// Where the part starts.
    pub start: u64,
}

impl Body for FileBody<'_> {
    fn read(&self, from: u64, bytes: usize) -> Result<Cow<'_, [u8]>> {
        read_at(self.file, self.start + from, bytes).map(Cow::Owned)
    }

    fn peek(&self, from: u64, bytes: usize) -> Result<Cow<'_, [u8]>> {
        let at = self.start + from;
        let read = |buffer: &mut [u8]| self.file.peek_at(buffer, at);
        whole(self.file, at, bytes, read).map(Cow::Owned)
    }
}

/// Bytes of a file, all of them.
///
/// # Errors
/// `Corrupt` when they are not there; those of reading.
pub fn read_at(file: &RawFile, at: u64, bytes: usize) -> Result<Vec<u8>> {
    whole(file, at, bytes, |buffer| file.read_at(buffer, at))
}

/// Bytes of a file that `read` reads, all of them.
fn whole(
    file: &RawFile,
    at: u64,
    bytes: usize,
    read: impl FnOnce(&mut [u8]) -> Result<usize>,
) -> Result<Vec<u8>> {
    let mut buffer = vec![0; bytes];
    match read(&mut buffer)? {
        read if read == bytes => Ok(buffer),
        _ => Err(Error::Corrupt(format!(
            "{}: {bytes} bytes at byte {at} are not there",
            file.name()
        ))),
    }
}
