//! Cuts inputs into chunks: ranges of one big file, or several small files together.
//!
//! A chunk's range starts anywhere; the records that start in it are its own. Where the first of them
//! starts is speculated on (after the first newline) and verified against the end of the chunk before
//! it; see `schedule`.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::SystemTime;

use coload_format::{Error, Result};
use coload_source::{Dialect, Header, InputFile, InputSource, Separators, TEXT_PADDING, tokenise};

use crate::reader::RECORD_BYTES_MAX;

use crate::opened::{Opened, OpenedStream};
use crate::options::LoadOptions;

/// Bytes in which skipped lines and header must end.
const HEAD_BYTES_MAX: usize = 4 << 20;

/// A part of one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Number of the input.
    pub file: usize,
    /// First byte.
    pub start: u64,
    /// Records that start here or later are not in it.
    pub end: u64,
    /// Whether a record is known to start at `start`.
    pub start_is: Start,
}

/// What is known of the start of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A record starts here.
    Record,
    /// Maybe in the middle of one: the first newline decides, and the piece before verifies.
    Speculated,
}

/// An open input.
#[derive(Debug)]
pub struct OpenInput {
    /// Name as given.
    pub name: String,
    path: PathBuf,
    file: File,
    /// Bytes when it was opened.
    pub bytes: u64,
    /// When it was last written before it was opened.
    modified: Option<SystemTime>,
    /// Where the first record starts, after skipped lines and header.
    pub data_start: u64,
    /// Lines before that.
    pub data_line: u64,
}

impl OpenInput {
    /// Fills `buffer` from `offset` on; less only at the end of the input.
    ///
    /// # Errors
    /// `Unavailable` when the file cannot be read, or got shorter since it was opened.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let wanted = buffer.len().min(self.bytes.saturating_sub(offset) as usize);
        let mut have = 0;
        while have < wanted {
            match self.file.read_at(&mut buffer[have..wanted], offset + have as u64) {
                Ok(0) => {
                    return Err(Error::Unavailable(format!(
                        "{}: the file got shorter while it was read: it had {} bytes and ends at {}; \
                         nothing was loaded, load it again when it is whole",
                        self.name,
                        self.bytes,
                        offset + have as u64
                    )));
                }
                Ok(n) => have += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("read", &self.path, &e)),
            }
        }
        Ok(have)
    }

    /// Checks at the end of a load that nobody wrote to the file meanwhile.
    ///
    /// # Errors
    /// `Unavailable` when somebody did.
    pub fn check_unchanged(&self) -> Result<()> {
        let now = self.file.metadata().map_err(|e| Error::io("look at", &self.path, &e))?;
        if now.len() != self.bytes {
            return Err(Error::Unavailable(format!(
                "{}: the file changed while it was read: it had {} bytes and has {}; nothing was \
                 loaded, load it again when it is whole",
                self.name,
                self.bytes,
                now.len()
            )));
        }
        if now.modified().ok() != self.modified {
            return Err(Error::Unavailable(format!(
                "{}: the file was written to while it was read; nothing was loaded, load it again \
                 when it is whole",
                self.name
            )));
        }
        Ok(())
    }
}

/// Where chunks come from.
pub enum Source {
    /// Files of known length, cut beforehand.
    Files {
        /// The files.
        inputs: Vec<OpenInput>,
        /// Their pieces, some together.
        chunks: Vec<Vec<Piece>>,
    },
    /// One stream, cut as it comes.
    Stream(Mutex<Stream>),
}

impl Source {
    /// Opens the inputs and cuts files into chunks.
    ///
    /// # Errors
    /// `Invalid` when an input cannot be opened.
    pub fn open(options: &LoadOptions) -> Result<Self> {
        let LoadOptions { inputs, dialect, chunk_bytes, .. } = options;
        if let [only] = &inputs[..]
            && let Some(opened) = open_stream(only, options.stream.as_ref())?
        {
            let stream = Stream::new(opened, only.name.clone(), dialect.clone(), *chunk_bytes);
            return Ok(Source::Stream(Mutex::new(stream)));
        }
        let inputs = inputs.iter().map(|i| open_input(i, dialect)).collect::<Result<Vec<_>>>()?;
        let chunks = cut_files(&inputs, *chunk_bytes as u64);
        Ok(Source::Files { inputs, chunks })
    }
}

/// An input that can be read only once, unless it was opened before; `None` for a file.
fn open_stream(input: &InputFile, before: Option<&OpenedStream>) -> Result<Option<Opened>> {
    match (&input.source, before) {
        (InputSource::File { .. }, _) => Ok(None),
        (_, Some(stream)) => stream.take().map(Some),
        (_, None) => OpenedStream::open(input)?.map(|s| s.take()).transpose(),
    }
}

fn open_input(input: &InputFile, dialect: &Dialect) -> Result<OpenInput> {
    let InputSource::File { path, .. } = &input.source else {
        return Err(Error::Invalid(format!(
            "{}: standard input or a pipe is loaded alone, not together with other inputs",
            input.name
        )));
    };
    let file = File::open(path).map_err(|e| Error::io("open", path, &e))?;
    let meta = file.metadata().map_err(|e| Error::io("look at", path, &e))?;
    if !meta.is_file() {
        return Err(Error::Invalid(format!(
            "{} is not a regular file; give a pipe as standard input: coload load - < {}",
            path.display(),
            path.display()
        )));
    }
    let mut open = OpenInput {
        name: input.name.clone(),
        path: path.clone(),
        file,
        bytes: meta.len(),
        modified: meta.modified().ok(),
        data_start: 0,
        data_line: 0,
    };
    if dialect.skip > 0 || dialect.header == Header::Present || open.bytes >= 3 {
        let mut head = vec![0; HEAD_BYTES_MAX.min(open.bytes as usize)];
        let first = open.read_at(&mut head[..3.min(open.bytes as usize)], 0)?;
        let mark = usize::from(head[..first] == [0xef, 0xbb, 0xbf]) * 3;
        if mark > 0 || dialect.skip > 0 || dialect.header == Header::Present {
            let length = open.read_at(&mut head, 0)?;
            let whole = length as u64 == open.bytes;
            let (bytes, lines) = data_start(&head[mark..length], whole, dialect)
                .map_err(|text| Error::Invalid(format!("{}: {text}", open.name)))?;
            (open.data_start, open.data_line) = ((mark + bytes) as u64, lines);
        }
    }
    Ok(open)
}

/// Bytes and lines before the first record: skipped lines, comments before the header, the header.
fn data_start(
    head: &[u8],
    whole: bool,
    dialect: &Dialect,
) -> std::result::Result<(usize, u64), String> {
    let too_long = || format!("no first record within {HEAD_BYTES_MAX} bytes");
    let mut at = 0;
    let mut lines = 0;
    let next_line = |at: usize| memchr::memchr(b'\n', &head[at..]).map(|n| at + n + 1);
    for _ in 0..dialect.skip {
        match next_line(at) {
            Some(next) => at = next,
            None if whole => return Ok((head.len(), lines)),
            None => return Err(too_long()),
        }
        lines += 1;
    }
    if dialect.header == Header::Absent {
        return Ok((at, lines));
    }
    while at < head.len()
        && (dialect.comment == Some(head[at]) || matches!(head[at], b'\n' | b'\r'))
    {
        match next_line(at) {
            Some(next) => at = next,
            None if whole => return Ok((head.len(), lines)),
            None => return Err(too_long()),
        }
        lines += 1;
    }
    let mut text = head[at..].to_vec();
    let end = text.len();
    text.extend([0; TEXT_PADDING]);
    let mut ends = Vec::new();
    tokenise(&text, 0, end, separators(dialect), &mut ends);
    let length = match ends.iter().find(|p| text[**p as usize] == b'\n') {
        Some(newline) => *newline as usize + 1,
        None if whole => end,
        None => return Err(too_long()),
    };
    lines += memchr::memchr_iter(b'\n', &text[..length]).count() as u64;
    Ok((at + length, lines))
}

/// The bytes of a dialect that the tokeniser knows.
pub fn separators(dialect: &Dialect) -> Separators {
    Separators {
        delimiter: dialect.delimiter,
        quote: dialect.quote,
        escape: dialect.escape.filter(|e| Some(*e) != dialect.quote),
    }
}

/// Pieces of big files, and small files together until a chunk is full.
fn cut_files(inputs: &[OpenInput], chunk_bytes: u64) -> Vec<Vec<Piece>> {
    let mut chunks: Vec<Vec<Piece>> = Vec::new();
    let mut room = 0;
    for (file, input) in inputs.iter().enumerate() {
        let bytes = input.bytes - input.data_start;
        let whole =
            Piece { file, start: input.data_start, end: input.bytes, start_is: Start::Record };
        if bytes <= room
            && let Some(last) = chunks.last_mut()
        {
            last.push(whole);
            room -= bytes;
            continue;
        }
        if bytes <= chunk_bytes {
            chunks.push(vec![whole]);
            room = chunk_bytes - bytes;
            continue;
        }
        let mut start = input.data_start;
        while start < input.bytes {
            let end = (start + chunk_bytes).min(input.bytes);
            let start_is =
                if start == input.data_start { Start::Record } else { Start::Speculated };
            chunks.push(vec![Piece { file, start, end, start_is }]);
            start = end;
        }
        room = 0;
    }
    chunks
}

/// Standard input or a pipe, cut at record boundaries as it comes.
pub struct Stream {
    reader: Box<dyn Read + Send>,
    /// Name as given.
    pub name: String,
    dialect: Dialect,
    chunk_bytes: usize,
    /// Bytes read and not handed out.
    rest: Vec<u8>,
    /// Offset of `rest` in the stream.
    offset: u64,
    ended: bool,
    started: bool,
    /// Lines before the first record.
    pub data_line: u64,
}

impl Stream {
    fn new(opened: Opened, name: String, dialect: Dialect, chunk_bytes: usize) -> Self {
        Stream {
            reader: opened.reader,
            name,
            dialect,
            chunk_bytes,
            rest: opened.head,
            offset: 0,
            ended: false,
            started: false,
            data_line: 0,
        }
    }

    /// The next whole records, about a chunk of them, and their offset; `None` at the end. The last
    /// one may lack its newline.
    ///
    /// # Errors
    /// `Unavailable` when the stream cannot be read, `Limit` when a record is too long.
    pub fn next_chunk(&mut self) -> Result<Option<(Vec<u8>, u64)>> {
        if !self.started {
            self.start()?;
        }
        let mut target = self.chunk_bytes;
        loop {
            self.fill(target)?;
            if self.rest.is_empty() {
                return Ok(None);
            }
            let whole = self.ended && self.rest.len() <= target;
            let end = if whole {
                self.rest.len()
            } else {
                self.last_record_end(target.min(self.rest.len()))
            };
            if end > 0 {
                let tail = self.rest.split_off(end);
                let chunk = std::mem::replace(&mut self.rest, tail);
                let offset = self.offset;
                self.offset += end as u64;
                return Ok(Some((chunk, offset)));
            }
            target *= 2;
            if target > RECORD_BYTES_MAX {
                return Err(Error::Limit(format!(
                    "{} (byte {}): a record is over {} bytes; is a quote left open? (try --quote \
                     none)",
                    self.name,
                    self.offset,
                    target / 2
                )));
            }
        }
    }

    fn start(&mut self) -> Result<()> {
        self.started = true;
        self.fill(HEAD_BYTES_MAX)?;
        let mark = if self.rest.starts_with(&[0xef, 0xbb, 0xbf]) { 3 } else { 0 };
        let (bytes, lines) = data_start(&self.rest[mark..], self.ended, &self.dialect)
            .map_err(|text| Error::Invalid(format!("{}: {text}", self.name)))?;
        self.rest.drain(..mark + bytes);
        self.offset += (mark + bytes) as u64;
        self.data_line = lines;
        Ok(())
    }

    fn fill(&mut self, target: usize) -> Result<()> {
        let missing = target.saturating_sub(self.rest.len());
        if self.ended || missing == 0 {
            return Ok(());
        }
        self.rest.reserve(missing);
        let read = (&mut self.reader).take(missing as u64).read_to_end(&mut self.rest);
        let read =
            read.map_err(|e| Error::Unavailable(format!("cannot read {}: {e}", self.name)))?;
        self.ended = read < missing;
        Ok(())
    }

    /// End of the last whole record in the first `end` bytes of `rest`. The stream is cut in order, so
    /// it starts at a record.
    fn last_record_end(&mut self, end: usize) -> usize {
        let text = &self.rest[..end];
        if self.dialect.quote.is_none_or(|q| memchr::memchr(q, text).is_none()) {
            return memchr::memrchr(b'\n', text).map_or(0, |p| p + 1);
        }
        let have = self.rest.len();
        self.rest.extend([0; TEXT_PADDING]);
        let mut ends = Vec::new();
        tokenise(&self.rest, 0, end, separators(&self.dialect), &mut ends);
        self.rest.truncate(have);
        let last = ends.iter().rev().find(|p| self.rest[**p as usize] == b'\n');
        last.map_or(0, |p| *p as usize + 1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn skipped_lines_comments_and_header_come_before_the_data() {
        let dialect =
            Dialect { skip: 1, header: Header::Present, comment: Some(b'#'), ..Dialect::default() };
        let head = b"title\n# note\n\"a\nb\",c\n1,2\n";
        assert_eq!(data_start(head, true, &dialect).unwrap(), (21, 4));
        assert_eq!(data_start(b"title\na,b", true, &dialect).unwrap(), (9, 1));
        assert!(data_start(b"title\na,b", false, &dialect).is_err());
    }
}
