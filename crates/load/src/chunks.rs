//! Cuts inputs into chunks: ranges of one big file, or several small files together.
//!
//! A chunk's range starts anywhere; the records that start in it are its own. Where the first of them
//! starts is speculated on (after the first newline) and verified against the end of the chunk before
//! it; see `schedule`.

use std::sync::Arc;

use coload_format::{Error, Result};
use coload_input::{InputFile, InputSource, Raw, RawFile, TextInput};
use coload_source::{Dialect, Header, Separators, TEXT_PADDING, tokenise};

use crate::options::LoadOptions;
use crate::stream::StreamSource;

/// Bytes in which skipped lines and header must end.
pub const HEAD_BYTES_MAX: usize = 4 << 20;

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

/// An open file of text.
#[derive(Debug)]
pub struct OpenInput {
    /// Name as given.
    pub name: String,
    file: Arc<RawFile>,
    /// Bytes when it was opened.
    pub bytes: u64,
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
        self.file.read_at(buffer, offset)
    }

    /// Checks at the end of a load that nobody wrote to the file meanwhile.
    ///
    /// # Errors
    /// `Unavailable` when somebody did.
    pub fn check_unchanged(&self) -> Result<()> {
        self.file.check_unchanged()
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
    /// Text that comes in order: streams, and what must be decompressed.
    Stream(Box<StreamSource>),
}

impl Source {
    /// Opens the inputs and cuts files into chunks.
    ///
    /// # Errors
    /// `Invalid` when an input cannot be opened.
    pub fn open(options: &LoadOptions) -> Result<Self> {
        let LoadOptions { inputs, dialect, chunk_bytes, .. } = options;
        let mut texts = open_texts(options)?;
        if texts.iter().any(|t| t.format.is_some() || matches!(t.raw, Raw::Stream(_))) {
            return Ok(Source::Stream(Box::new(StreamSource::new(texts, options))));
        }
        let inputs = texts.drain(..).zip(inputs).filter_map(|(text, input)| match text.raw {
            Raw::File { file, .. } => Some(open_input(input.name.clone(), file, dialect)),
            Raw::Stream(_) => None,
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let chunks = cut_files(&inputs, *chunk_bytes as u64);
        Ok(Source::Files { inputs, chunks })
    }
}

/// Opens the inputs. One that can be read only once may have been opened before.
fn open_texts(options: &LoadOptions) -> Result<Vec<TextInput>> {
    let inputs = &options.inputs;
    let once = |i: &InputFile| matches!(i.source, InputSource::Stdin | InputSource::Stream { .. });
    if let [only] = &inputs[..]
        && once(only)
    {
        let opened = match &options.stream {
            Some(stream) => stream.take()?,
            None => TextInput::open(only)?,
        };
        return Ok(vec![opened]);
    }
    if let Some(stream) = inputs.iter().find(|i| once(i)) {
        return Err(Error::Invalid(format!(
            "{}: standard input or a pipe is loaded alone, not together with other inputs",
            stream.name
        )));
    }
    inputs.iter().map(TextInput::open).collect()
}

fn open_input(name: String, file: Arc<RawFile>, dialect: &Dialect) -> Result<OpenInput> {
    let bytes = file.bytes();
    let mut open = OpenInput { name, file, bytes, data_start: 0, data_line: 0 };
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
pub fn data_start(
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
