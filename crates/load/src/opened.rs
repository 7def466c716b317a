//! An input that is read once, opened before the load: its first bytes are looked at, and not lost.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use coload_format::{Error, Result};
use coload_source::{InputFile, InputSource, SampleEnd};

use crate::segments::lock;

/// Standard input or a pipe, of which some bytes may have been read. Clones share it; one load can
/// take it.
#[derive(Clone)]
pub struct OpenedStream {
    name: String,
    inner: Arc<Mutex<Option<Opened>>>,
}

/// What a load takes over.
pub(crate) struct Opened {
    /// The bytes read so far.
    pub head: Vec<u8>,
    /// Gives the bytes after them.
    pub reader: Box<dyn Read + Send>,
}

impl std::fmt::Debug for OpenedStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenedStream").field("name", &self.name).finish_non_exhaustive()
    }
}

impl OpenedStream {
    /// Opens an input that can be read only once; `None` for a file.
    ///
    /// # Errors
    /// `Invalid` when it cannot be opened.
    pub fn open(input: &InputFile) -> Result<Option<Self>> {
        let reader: Box<dyn Read + Send> = match &input.source {
            InputSource::File { .. } => return Ok(None),
            InputSource::Stdin => Box::new(io::stdin()),
            InputSource::Stream { path } => {
                Box::new(File::open(path).map_err(|e| Error::io("open", path, &e))?)
            }
        };
        Ok(Some(OpenedStream::new(input.name.clone(), reader)))
    }

    /// A stream of any bytes; `name` is the input in messages.
    pub fn new(name: impl Into<String>, reader: Box<dyn Read + Send>) -> Self {
        let opened = Opened { head: Vec::new(), reader };
        OpenedStream { name: name.into(), inner: Arc::new(Mutex::new(Some(opened))) }
    }

    /// The first bytes, at most `bytes_max`; the load gets them too.
    ///
    /// # Errors
    /// `Unavailable` when the stream cannot be read, `Invalid` when a load has taken it.
    pub fn sample(&self, bytes_max: usize) -> Result<(Vec<u8>, SampleEnd)> {
        let mut inner = lock(&self.inner);
        let opened = inner.as_mut().ok_or_else(|| taken(&self.name))?;
        let missing = bytes_max.saturating_sub(opened.head.len()) as u64;
        let read = opened.reader.by_ref().take(missing).read_to_end(&mut opened.head);
        let read =
            read.map_err(|e| Error::Unavailable(format!("cannot read {}: {e}", self.name)))?;
        let end = if (read as u64) < missing { SampleEnd::Whole } else { SampleEnd::Cut };
        Ok((opened.head[..opened.head.len().min(bytes_max)].to_vec(), end))
    }

    /// Hands the stream to a load.
    pub(crate) fn take(&self) -> Result<Opened> {
        lock(&self.inner).take().ok_or_else(|| taken(&self.name))
    }
}

fn taken(name: &str) -> Error {
    Error::Invalid(format!("{name}: the stream was read by another load"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_sample_is_not_lost() {
        let stream = OpenedStream::new("-", Box::new(&b"abcdef"[..]));
        assert_eq!(stream.sample(4).unwrap(), (b"abcd".to_vec(), SampleEnd::Cut));
        assert_eq!(stream.sample(9).unwrap(), (b"abcdef".to_vec(), SampleEnd::Whole));
        let mut opened = stream.take().unwrap();
        opened.reader.read_to_end(&mut opened.head).unwrap();
        assert_eq!(opened.head, b"abcdef");
        assert!(stream.take().is_err());
    }
}
