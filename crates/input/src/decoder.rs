//! Decompresses an input member by member, from any place where a member starts.
//!
//! Costs a buffer of 256 KiB and what the format needs (32 KiB for gzip; window or dictionary for
//! Zstandard and xz).

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coload_types::{Error, Place, Result};

use crate::codec::{Codec, Next, codec};
use crate::compression::Compression;
use crate::raw::{Raw, read_error};
use crate::windows::{HeldWindow, Windows};

/// Stored bytes read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Room for what a decoder leaves of them.
const REST_BYTES: usize = 16 << 10;

/// Most stored bytes that a decoder may want to see at once.
const INPUT_BYTES_MAX: usize = 5 << 20;

/// No magic is longer.
const MAGIC_BYTES: usize = 16;

/// Whether an input goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// There may be more.
    More,
    /// It has ended, or the next member is somebody else's.
    Done,
}

/// What stands where a decoder goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A member, which is to be found.
    Sought,
    /// What follows a member: the next, zeros, or something else.
    AfterMember,
}

/// The text of one input, decompressed as it is read.
pub struct Decoder {
    name: String,
    inner: Inner,
    window: Option<HeldWindow>,
}

enum Inner {
    /// Bytes that are the text themselves.
    Plain { raw: Raw, at: u64 },
    /// Formats whose members are decoded here.
    Members(Members),
    /// Formats whose library reads by itself.
    Reader { format: Compression, reader: Box<dyn Read + Send>, at: Arc<AtomicU64> },
}

impl Decoder {
    /// A decoder of `raw`, whose next byte stands at `at` of the input, where a member starts.
    /// Members that start at `stop` or later are left.
    ///
    /// # Errors
    /// `Unavailable` when the library has no memory.
    pub fn new(
        name: &str,
        raw: Raw,
        format: Option<Compression>,
        at: u64,
        stop: u64,
    ) -> Result<Self> {
        let inner = match format {
            None => Inner::Plain { raw, at },
            Some(format) => match codec(format)
                .map_err(|text| Error::Unavailable(format!("{name} ({format}): {text}")))?
            {
                Some(codec) => Inner::Members(Members::new(raw, format, codec, at, stop)),
                None => snappy(raw, at),
            },
        };
        Ok(Decoder { name: name.to_owned(), inner, window: None })
    }

    /// The decoder with a window that is counted among others.
    ///
    /// # Errors
    /// `Unavailable` when the library has no memory.
    pub fn counted_in(mut self, windows: &Arc<Windows>) -> Result<Self> {
        if let Inner::Members(members) = &mut self.inner {
            let limited = members.codec.limit_window(windows.bytes_max());
            limited.map_err(|text| Error::Unavailable(format!("{}: {text}", self.name)))?;
            let looks_back = matches!(members.format, Compression::Xz | Compression::Zstd);
            self.window = looks_back.then(|| HeldWindow::expected(windows));
        }
        Ok(self)
    }

    /// Appends up to `bytes` of text; less only when it says `Done`.
    ///
    /// # Errors
    /// `Input` when the input is damaged or truncated, with the place in the stored bytes;
    /// `Unavailable` when it cannot be read.
    pub fn fill(&mut self, out: &mut Vec<u8>, bytes: usize) -> Result<Filled> {
        let before = out.len();
        out.resize(before + bytes, 0);
        let filled = self.fill_slice(&mut out[before..]);
        out.truncate(before + filled.as_ref().map_or(0, |(filled, _)| *filled));
        filled.map(|(_, state)| state)
    }

    /// Puts text into `out` and says how much; less than all only when it says `Done`.
    ///
    /// # Errors
    /// As [`Decoder::fill`].
    pub fn fill_slice(&mut self, out: &mut [u8]) -> Result<(usize, Filled)> {
        let result = match &mut self.inner {
            Inner::Plain { raw, at } => fill_from(raw, out).inspect(|(n, _)| *at += *n as u64),
            Inner::Reader { reader, .. } => fill_from(reader, out),
            Inner::Members(members) => members.fill(out),
        };
        if let (Some(window), Inner::Members(members)) = (&mut self.window, &self.inner) {
            window.count(members.codec.window_bytes());
        }
        result.map_err(|error| self.error(error))
    }

    /// Goes to another place of the input, for members that start before `stop`. It must have ended, or not begun.
    pub fn go_to(&mut self, raw: Raw, at: u64, stop: u64, start: Start) {
        if let Inner::Members(members) = &mut self.inner {
            members.go_to(raw, at, stop, start);
        }
    }

    /// Goes to the first place from here on, and before the stop, that looks like the start of a member; false
    /// when there is none.
    ///
    /// # Errors
    /// `Unavailable` when the input cannot be read.
    pub fn find_member(&mut self) -> Result<bool> {
        let found = match &mut self.inner {
            Inner::Members(members) => members.find_member(),
            Inner::Plain { .. } | Inner::Reader { .. } => Ok(false),
        };
        found.map_err(|error| self.error(error))
    }

    /// Reads the whole next member, if it says that its text has at most `text_bytes`: into so much room it is then
    /// decoded at once, without a copy from its window.
    ///
    /// # Errors
    /// As [`Decoder::fill`].
    pub fn read_member(&mut self, text_bytes: usize) -> Result<()> {
        match &mut self.inner {
            Inner::Members(members) if members.format == Compression::Zstd => {
                members.read_member(text_bytes).map_err(|error| self.error(error))
            }
            _ => Ok(()),
        }
    }

    /// The text as a stream.
    pub fn into_reader(self) -> impl Read + Send {
        TextReader { decoder: self, text: Vec::new(), at: 0, state: Filled::More }
    }

    /// Stored bytes read so far, from the start of the input on.
    pub fn at(&self) -> u64 {
        match &self.inner {
            Inner::Plain { at, .. } => *at,
            Inner::Members(members) => members.at,
            Inner::Reader { at, .. } => at.load(Ordering::Relaxed),
        }
    }

    fn error(&self, error: io::Error) -> Error {
        let format = match &self.inner {
            Inner::Plain { .. } => return read_error(&self.name, error),
            Inner::Members(members) => members.format,
            Inner::Reader { format, .. } => *format,
        };
        let text = match error.kind() {
            io::ErrorKind::UnexpectedEof => format!(
                "the {format} data end in the middle, after {} compressed bytes: the file is \
                 truncated; nothing was loaded",
                self.at()
            ),
            io::ErrorKind::InvalidData => {
                format!(
                    "not valid {format} data at this compressed byte: {error}; nothing was loaded"
                )
            }
            io::ErrorKind::OutOfMemory => {
                return Error::Limit(format!("{} ({format}): {error}", self.name));
            }
            _ => return read_error(&self.name, error),
        };
        let place = Place { file: self.name.clone(), line: 0, byte: self.at(), field: 0 };
        Error::Input { place: Box::new(place), text }
    }
}

/// Text of a decoder, read in order.
struct TextReader {
    decoder: Decoder,
    text: Vec<u8>,
    at: usize,
    state: Filled,
}

impl Read for TextReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() && self.state == Filled::More {
            self.text.clear();
            self.at = 0;
            let filled = self.decoder.fill(&mut self.text, BUFFER_BYTES);
            self.state = filled.map_err(io::Error::other)?;
        }
        let bytes = buffer.len().min(self.text.len() - self.at);
        buffer[..bytes].copy_from_slice(&self.text[self.at..self.at + bytes]);
        self.at += bytes;
        Ok(bytes)
    }
}

fn fill_from(reader: &mut impl Read, out: &mut [u8]) -> io::Result<(usize, Filled)> {
    let mut have = 0;
    while have < out.len() {
        match reader.read(&mut out[have..]) {
            Ok(0) => return Ok((have, Filled::Done)),
            Ok(n) => have += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok((have, Filled::More))
}

fn snappy(raw: Raw, start: u64) -> Inner {
    let at = Arc::new(AtomicU64::new(start));
    let raw = io::BufReader::with_capacity(BUFFER_BYTES, raw);
    let counted = Counted { raw, at: Arc::clone(&at) };
    let frames = snap::read::FrameDecoder::new(counted);
    let reader = Box::new(Snappy { frames, at: Arc::clone(&at) });
    Inner::Reader { format: Compression::Snappy, reader, at }
}

/// Counts what a library reads.
struct Counted {
    raw: io::BufReader<Raw>,
    at: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.raw.read(buffer)?;
        self.at.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Snappy in its framing format.
struct Snappy {
    frames: snap::read::FrameDecoder<Counted>,
    at: Arc<AtomicU64>,
}

impl Read for Snappy {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.frames.read(buffer).map_err(data_error)?;
        // Without its first chunk it is no stream.
        if read == 0 && self.at.load(Ordering::Relaxed) == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(read)
    }
}

/// What libraries say of bad data, as one kind.
fn data_error(error: io::Error) -> io::Error {
    use io::ErrorKind::{Interrupted, UnexpectedEof};
    let ours = error.get_ref().is_some_and(|inner| inner.is::<Error>());
    let of_system = error.raw_os_error().is_some();
    if ours || of_system || matches!(error.kind(), UnexpectedEof | Interrupted) {
        return error;
    }
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// Members one after the other.
struct Members {
    raw: Raw,
    format: Compression,
    codec: Box<dyn Codec>,
    buffer: Vec<u8>,
    /// Unread bytes of `buffer`.
    start: usize,
    end: usize,
    /// Place of `buffer[start]` in the input.
    at: u64,
    stop: u64,
    /// Whether `raw` has ended.
    ended: bool,
    in_member: bool,
    /// Whether a member has ended before.
    first: bool,
}

impl Members {
    fn new(raw: Raw, format: Compression, codec: Box<dyn Codec>, at: u64, stop: u64) -> Self {
        Members {
            raw,
            format,
            codec,
            buffer: vec![0; BUFFER_BYTES + REST_BYTES],
            start: 0,
            end: 0,
            at,
            stop,
            ended: false,
            in_member: false,
            first: true,
        }
    }

    fn fill(&mut self, out: &mut [u8]) -> io::Result<(usize, Filled)> {
        let mut filled = 0;
        while filled < out.len() {
            if !self.in_member && !self.start_member()? {
                return Ok((filled, Filled::Done));
            }
            let input = &self.buffer[self.start..self.end];
            let step = match self.codec.step(input, &mut out[filled..]) {
                Err(text) if self.codec.lacks_window() => {
                    return Err(io::Error::new(io::ErrorKind::OutOfMemory, text));
                }
                step => step.map_err(invalid)?,
            };
            self.take(step.consumed);
            filled += step.produced;
            match step.next {
                Next::MemberEnd => {
                    self.codec.restart().map_err(invalid)?;
                    self.in_member = false;
                    self.first = false;
                }
                Next::More if step.consumed == 0 && step.produced == 0 => {
                    if !self.read_more()? {
                        self.take(self.end - self.start);
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Next::More => {}
            }
        }
        Ok((filled, Filled::More))
    }

    fn go_to(&mut self, raw: Raw, at: u64, stop: u64, start: Start) {
        (self.raw, self.at, self.stop) = (raw, at, stop);
        (self.start, self.end, self.ended) = (0, 0, false);
        (self.in_member, self.first) = (false, start == Start::Sought);
    }

    fn find_member(&mut self) -> io::Result<bool> {
        while self.at < self.stop {
            while self.end - self.start < MAGIC_BYTES && self.read_more()? {}
            let text = &self.buffer[self.start..self.end];
            // A magic that starts later may go on behind what was read.
            let whole = if self.ended { text.len() } else { text.len() - (MAGIC_BYTES - 1) };
            let before_stop = usize::try_from(self.stop - self.at).unwrap_or(usize::MAX);
            let end = whole.min(before_stop);
            if let Some(found) = self.format.find_start(text, 0, end) {
                self.take(found);
                return Ok(true);
            }
            if end == 0 {
                break;
            }
            self.take(end);
        }
        Ok(false)
    }

    /// Reads a member as [`Decoder::read_member`] says.
    fn read_member(&mut self, text_bytes: usize) -> io::Result<()> {
        if self.in_member || !self.start_member()? {
            return Ok(());
        }
        let is_cut_short = |members: &Self| {
            members.codec.is_cut_short(&members.buffer[members.start..members.end], text_bytes)
        };
        while self.end - self.start < INPUT_BYTES_MAX && is_cut_short(self) && self.read_more()? {}
        Ok(())
    }

    fn take(&mut self, bytes: usize) {
        self.start += bytes;
        self.at += bytes as u64;
    }

    /// Goes to the start of the next member; false when there is none, or it is not ours.
    fn start_member(&mut self) -> io::Result<bool> {
        if self.format == Compression::Deflate {
            // It has one, and ends where it ends.
            self.in_member = self.first;
            return Ok(self.in_member);
        }
        if self.at >= self.stop {
            return Ok(false);
        }
        while self.end - self.start < MAGIC_BYTES && self.read_more()? {}
        if self.start == self.end && !self.first {
            return Ok(false);
        }
        let text = &self.buffer[self.start..self.end];
        if self.first || self.format.starts(text) {
            self.in_member = true;
            return Ok(true);
        }
        // Tapes and xz pad with zeros, which mean nothing.
        if matches!(self.format, Compression::Gzip | Compression::Xz) && text[0] == 0 {
            return self.skip_zeros();
        }
        Err(self.trailing())
    }

    fn skip_zeros(&mut self) -> io::Result<bool> {
        loop {
            let text = &self.buffer[self.start..self.end];
            let zeros = text.iter().take_while(|byte| **byte == 0).count();
            self.take(zeros);
            if self.start < self.end {
                let again = self.format == Compression::Xz
                    && self.format.starts(&self.buffer[self.start..self.end]);
                return if again { self.start_member() } else { Err(self.trailing()) };
            }
            if !self.read_more()? {
                return Ok(false);
            }
        }
    }

    fn trailing(&self) -> io::Error {
        let whole = self.ended && self.end - self.start < 10;
        let text = &self.buffer[self.start..self.end];
        // What is left may be the start of a member's magic bytes.
        if whole && Compression::of_cut_head(extension_of(self.format), text).is_some() {
            return io::ErrorKind::UnexpectedEof.into();
        }
        invalid(format!(
            "after the last {} comes something else (cut it off, or decompress the file with a tool \
             that reads over it, into a pipe: ... | coload load -)",
            if self.format == Compression::Zstd { "frame" } else { "member" }
        ))
    }

    /// Reads more stored bytes behind those unread; false at the end. Up to a multiple of `BUFFER_BYTES`, so that
    /// what is said of damaged data does not depend on where the decoder began.
    fn read_more(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            // A block of LZ4 has up to 4 MiB, the header of a gzip member up to 1 MiB.
            if self.buffer.len() > INPUT_BYTES_MAX {
                return Err(invalid("the decoder takes no more input".to_owned()));
            }
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let next = self.at + (self.end - self.start) as u64;
        let wanted = BUFFER_BYTES - (next % BUFFER_BYTES as u64) as usize;
        let room = self.buffer.len().min(self.end + wanted);
        loop {
            match self.raw.read(&mut self.buffer[self.end..room]) {
                Ok(read) => {
                    self.end += read;
                    self.ended = read == 0;
                    return Ok(read > 0);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// A name with the format's extension.
fn extension_of(format: Compression) -> &'static str {
    match format {
        Compression::Gzip => ".gz",
        Compression::Zstd => ".zst",
        Compression::Bzip2 => ".bz2",
        Compression::Lz4 => ".lz4",
        _ => ".xz",
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
