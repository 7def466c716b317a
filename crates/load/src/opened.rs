//! An input that is read once, opened before the load: its first bytes are looked at, and not lost.

use std::io::{Cursor, Read};
use std::sync::{Arc, Mutex};

use coload_input::{Filled, InputFile, InputSource, TextInput, sample_head};
use coload_source::SampleEnd;
use coload_types::{Error, Result};

use coload_threads::lock;

/// Standard input or a pipe, of which some bytes may have been read. Clones share it; one load can
/// take it.
#[derive(Clone)]
pub struct OpenedStream {
    name: String,
    inner: Arc<Mutex<Option<Opened>>>,
}

/// What a load takes over.
struct Opened {
    /// The stored bytes read so far.
    head: Vec<u8>,
    /// Gives the bytes after them.
    reader: Box<dyn Read + Send>,
    /// Whether the last sample was all of the text.
    is_sampled_whole: bool,
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
        if !input.source.is_read_once() || matches!(input.source, InputSource::Rows { .. }) {
            return Ok(None);
        }
        let reader = coload_input::open_stream(input)?;
        Ok(Some(OpenedStream::new(input.name.clone(), reader)))
    }

    /// A stream of any bytes; `name` is the input in messages.
    pub fn new(name: impl Into<String>, reader: Box<dyn Read + Send>) -> Self {
        let opened = Opened { head: Vec::new(), reader, is_sampled_whole: false };
        OpenedStream { name: name.into(), inner: Arc::new(Mutex::new(Some(opened))) }
    }

    /// The first bytes of the text, at most `bytes_max`; the load gets them too.
    ///
    /// # Errors
    /// `Unavailable` when the stream cannot be read, `Input` when it is damaged, `Invalid` when a load
    /// has taken it.
    pub fn sample(&self, bytes_max: usize) -> Result<(Vec<u8>, SampleEnd)> {
        let mut inner = lock(&self.inner);
        let opened = inner.as_mut().ok_or_else(|| taken(&self.name))?;
        let missing = bytes_max.saturating_sub(opened.head.len()) as u64;
        let read = opened.reader.by_ref().take(missing).read_to_end(&mut opened.head);
        let read = read.map_err(|e| coload_input::read_error(&self.name, e))?;
        let stored = if (read as u64) < missing { Filled::Done } else { Filled::More };
        let (text, state) = sample_head(&self.name, &opened.head, stored, bytes_max)?;
        opened.is_sampled_whole = matches!(state, Filled::Done);
        Ok((text, sample_end(state)))
    }

    /// Whether the last sample was all of the text, and no load has taken the stream.
    pub(crate) fn is_sampled_whole(&self) -> bool {
        lock(&self.inner).as_ref().is_some_and(|opened| opened.is_sampled_whole)
    }

    /// The stored bytes of the stream, if the last sample was all of it, and no load has taken it.
    pub fn whole_bytes(&self) -> Option<u64> {
        let inner = lock(&self.inner);
        let opened = inner.as_ref().filter(|opened| opened.is_sampled_whole)?;
        Some(opened.head.len() as u64)
    }

    /// Hands the stored bytes of the stream to who gives them to a load.
    pub(crate) fn take_bytes(&self) -> Result<Box<dyn Read + Send>> {
        let opened = lock(&self.inner).take().ok_or_else(|| taken(&self.name))?;
        Ok(Box::new(Cursor::new(opened.head).chain(opened.reader)))
    }

    /// Hands the stream to a load.
    pub(crate) fn take(&self) -> Result<TextInput> {
        TextInput::of_stream(&self.name, self.take_bytes()?)
    }
}

/// The same in the words of `source`.
pub fn sample_end(state: Filled) -> SampleEnd {
    match state {
        Filled::Done => SampleEnd::Whole,
        Filled::More => SampleEnd::Cut,
    }
}

fn taken(name: &str) -> Error {
    Error::Invalid(format!("{name}: the stream was read by another load"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_input::Raw;

    use super::*;

    #[test]
    fn a_sample_is_not_lost() {
        let stream = OpenedStream::new("-", Box::new(&b"abcdef"[..]));
        assert_eq!(stream.sample(4).unwrap(), (b"abcd".to_vec(), SampleEnd::Cut));
        assert_eq!(stream.sample(9).unwrap(), (b"abcdef".to_vec(), SampleEnd::Whole));
        let Raw::Stream(mut whole) = stream.take().unwrap().raw else { panic!("not a stream") };
        let mut text = Vec::new();
        whole.read_to_end(&mut text).unwrap();
        assert_eq!(text, b"abcdef");
        assert!(stream.take().is_err());
    }
}
