//! Cuts inputs into chunks: ranges of one big file, or several small files together.
//!
//! A chunk's range starts anywhere; the records that start in it are its own. Where the first of them
//! starts is speculated on (after the first newline) and verified against the end of the chunk before
//! it; see `schedule`.

use std::sync::Arc;

use coload_format::{Error, Result};
use coload_input::{InputFile, InputSource, Raw, RawFile, TextInput, Waiting};
use coload_source::{END_MARKS_MAX, LineEnd, without_end_mark};

use crate::account::Account;
use crate::grain::Grain;
use crate::head::{HEAD_BYTES_MAX, Head};
use crate::input_fields::FieldsByInput;
use crate::options::LoadOptions;
use crate::pipeline::Position;
use crate::spool::Spool;
use crate::stream::StreamSource;

/// Bytes that a piece takes in a chunk, with what became of it, however little text it is.
pub const PIECE_BYTES: u64 = 512;

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

/// Inputs of which each is kept that was opened.
const INPUTS_KEPT_MAX: usize = 1024;
/// Bytes of a file that is read with one call.
const BYTES_READ_ONCE: u64 = 64 << 10;

/// An open file of text.
#[derive(Debug)]
pub struct OpenInput {
    file: InputAt,
    /// Bytes when it was opened, without a footer.
    pub bytes: u64,
    /// Where the first record starts, after skipped lines and header.
    pub data_start: u64,
    /// Lines before that.
    pub data_line: u64,
    /// What ends its lines.
    pub line_end: LineEnd,
}

/// Where the bytes of an input are. Of a million small ones each would have a name, a path and a lock of its own.
#[derive(Debug)]
enum InputAt {
    /// In a file that is known.
    File(Arc<RawFile>),
    /// In a file that is opened to be read, which is done once.
    Named(Arc<[InputFile]>, usize),
}

impl OpenInput {
    /// Name as given.
    pub fn name(&self) -> &str {
        match &self.file {
            InputAt::File(file) => file.name(),
            InputAt::Named(inputs, number) => &inputs[*number].name,
        }
    }

    /// Fills `buffer` from `offset` on; less only at the end of the input.
    ///
    /// # Errors
    /// `Unavailable` when the file cannot be read, or got shorter since it was opened.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        match &self.file {
            InputAt::File(file) => file.read_at(buffer, offset),
            InputAt::Named(inputs, number) => match TextInput::open_file(&inputs[*number])? {
                Some(file) => file.read_at(buffer, offset),
                None => Ok(0),
            },
        }
    }

    /// Forgets the file of a small one of many inputs until it is read.
    fn named(mut self, inputs: &Arc<[InputFile]>, number: usize) -> Self {
        let is_file = matches!(inputs[number].source, InputSource::File { .. });
        if inputs.len() > INPUTS_KEPT_MAX && self.bytes <= BYTES_READ_ONCE && is_file {
            self.file = InputAt::Named(Arc::clone(inputs), number);
        }
        self
    }

    /// As [`RawFile::check_unchanged`].
    fn check_unchanged(&self) -> Result<()> {
        match &self.file {
            InputAt::File(file) => file.check_unchanged(),
            InputAt::Named(inputs, number) => inputs[*number].check_unchanged(),
        }
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
    /// Opens the inputs and cuts files into chunks; what a stream gives goes into `spool`.
    ///
    /// # Errors
    /// `Invalid` when an input cannot be opened.
    pub fn open(options: &LoadOptions, spool: Option<&Arc<Spool>>) -> Result<Self> {
        let head = Head::new(options);
        let inputs = Arc::clone(&options.inputs);
        let numbers = 0..inputs.len();
        let stream = if let Some(open) = options.streams.clone() {
            let stream = move |number: usize| {
                let name = inputs[number].name.clone();
                Waiting::Stream { name, reader: open(number) }
            };
            StreamSource::new(numbers.map(stream), options)
        } else if let Some(opened) = open_once(options, spool)? {
            StreamSource::new([opened], options)
        } else if let Some(inputs) = open_files(options, &head)? {
            return Ok(Source::of_files(inputs, options));
        } else {
            let named = move |number: usize| Waiting::Named(inputs[number].clone());
            StreamSource::new(numbers.map(named), options)
        };
        Ok(Source::Stream(Box::new(stream)))
    }

    fn of_files(inputs: Vec<OpenInput>, options: &LoadOptions) -> Self {
        let mut chunks = cut_files(&inputs, Grain::of(options).chunk_bytes as u64);
        if let Some(sample_bytes) = options.sample_bytes {
            keep_first(&mut chunks, sample_bytes);
        }
        Source::Files { inputs, chunks }
    }
}

impl Source {
    /// Chunks in all; `None` for a stream.
    pub fn chunks(&self) -> Option<usize> {
        match self {
            Source::Files { chunks, .. } => Some(chunks.len()),
            Source::Stream(_) => None,
        }
    }

    /// The pieces of a chunk after `from`, by its number from there on.
    pub fn pieces(chunks: &[Vec<Piece>], from: Position, chunk: usize) -> Vec<Piece> {
        let mut pieces = chunks[from.chunks + chunk].clone();
        // Where the first leg ended is known.
        if chunk == 0
            && from.chunks > 0
            && let Some(first) = pieces.first_mut()
            && first.start_is == Start::Speculated
        {
            *first = Piece { start: from.end, start_is: Start::Record, ..*first };
        }
        pieces
    }

    /// What `sample_bytes` must be to read what comes before a place; `records` are the bytes of its records.
    pub fn bytes_before(&self, place: Position, records: u64) -> u64 {
        match self {
            Source::Files { chunks, .. } => {
                chunks[..place.chunks].iter().flatten().map(|piece| piece.end - piece.start).sum()
            }
            Source::Stream(_) => records,
        }
    }

    /// Stored bytes of all inputs; 0 where they are not known.
    pub fn stored_bytes(&self) -> u64 {
        match self {
            Source::Files { inputs, .. } => inputs.iter().map(|i| i.bytes).sum(),
            Source::Stream(stream) => stream.bytes,
        }
    }

    /// Bytes before the first records of files.
    pub fn head_bytes(&self) -> u64 {
        match self {
            Source::Files { inputs, .. } => inputs.iter().map(|i| i.data_start).sum(),
            Source::Stream(_) => 0,
        }
    }

    /// Checks that nobody wrote to the inputs meanwhile.
    ///
    /// # Errors
    /// `Unavailable` when somebody did.
    pub fn check_unchanged(&self) -> Result<()> {
        match self {
            Source::Files { inputs, .. } => inputs.iter().try_for_each(OpenInput::check_unchanged),
            Source::Stream(stream) => {
                stream.inputs.iter().try_for_each(|input| input.check_unchanged())
            }
        }
    }

    /// Checks that the inputs are those that were opened before; those of a stream are checked when they are
    /// opened.
    ///
    /// # Errors
    /// `Unavailable` when one is another.
    pub fn check_same(&self, before: &Source) -> Result<()> {
        match (self, before) {
            (Source::Files { inputs, .. }, Source::Files { inputs: before, .. }) => {
                let mut pairs = inputs.iter().zip(before);
                pairs.try_for_each(|(now, then)| match (&now.file, &then.file) {
                    (InputAt::File(now), InputAt::File(then)) => now.check_same(then),
                    // Each is what it was when the load was planned whenever it is opened.
                    _ => Ok(()),
                })
            }
            _ => Ok(()),
        }
    }

    /// Share of the inputs that was read; 1 where the whole is not known.
    pub fn share(&self, account: &Account) -> f64 {
        let (read, all) = match self {
            Source::Files { inputs, .. } => {
                (account.text_bytes() as f64, inputs.iter().map(|i| i.bytes).sum::<u64>())
            }
            Source::Stream(stream) => (account.stored_bytes() as f64, stream.bytes),
        };
        if all == 0 { 1.0 } else { (read / all as f64).min(1.0) }
    }
}

/// An input that is read once; `None` when all are files. It may have been opened before.
fn open_once(options: &LoadOptions, spool: Option<&Arc<Spool>>) -> Result<Option<TextInput>> {
    let inputs = &options.inputs;
    let once = |i: &InputFile| i.source.is_read_once();
    if let [only] = &inputs[..]
        && once(only)
    {
        let mut opened = match &options.stream {
            Some(stream) => stream.take()?,
            None => TextInput::open(only)?,
        };
        if let Some(spool) = spool
            && let Raw::Stream(stream) = opened.raw
        {
            opened.raw = Raw::Stream(spool.keep(stream));
        }
        return Ok(Some(opened));
    }
    match inputs.iter().find(|i| once(i)) {
        Some(stream) => Err(Error::Invalid(format!(
            "{}: standard input or a pipe is loaded alone, not together with other inputs",
            stream.name
        ))),
        None => Ok(None),
    }
}

/// The inputs, if all are text as it is.
fn open_files(options: &LoadOptions, head: &Head) -> Result<Option<Vec<OpenInput>>> {
    let mut files = Vec::with_capacity(options.inputs.len());
    let fields = FieldsByInput::of_load(options);
    for (number, input) in options.inputs.iter().enumerate() {
        let text = TextInput::open(input)?;
        if !(text.is_plain_file() && options.dialect.encoding.is_utf8(&text.start()?)) {
            return Ok(None);
        }
        let Raw::File { file, .. } = text.raw else { return Ok(None) };
        let open = open_input(file, &head.with_fields(fields.of(number).count))?;
        files.push(open.named(&options.inputs, number));
    }
    Ok(Some(files))
}

fn open_input(file: Arc<RawFile>, head: &Head) -> Result<OpenInput> {
    let (bytes, line_end) = (file.bytes(), head.line_end());
    let file = InputAt::File(file);
    let mut open = OpenInput { file, bytes, data_start: 0, data_line: 0, line_end };
    open.bytes = open.text_end()?;
    if head.has_footer() {
        open.bytes = open.footer_start(head)?;
    }
    if head.has_lines() || open.bytes >= 3 {
        let mut text = vec![0; HEAD_BYTES_MAX.min(open.bytes as usize)];
        let first = open.read_at(&mut text[..3.min(open.bytes as usize)], 0)?;
        let mark = coload_source::bom_len(&text[..first]);
        if mark > 0 || head.has_lines() {
            let length = open.read_at(&mut text, 0)?;
            let whole = length as u64 == open.bytes;
            let (bytes, lines) = head
                .data_start(&text[mark..length], whole)
                .map_err(|text| Error::Invalid(format!("{}: {text}", open.name())))?;
            (open.data_start, open.data_line) = ((mark + bytes) as u64, lines);
        }
    }
    Ok(open)
}

impl OpenInput {
    /// Where the text ends: before the marks of the end that DOS writes.
    fn text_end(&self) -> Result<u64> {
        let length = self.bytes.min(END_MARKS_MAX as u64);
        let mut tail = vec![0; length as usize];
        let read = self.read_at(&mut tail, self.bytes - length)?;
        Ok(self.bytes - length + without_end_mark(&tail[..read]).len() as u64)
    }

    fn footer_start(&self, head: &Head) -> Result<u64> {
        let length = self.bytes.min(HEAD_BYTES_MAX as u64);
        let mut tail = vec![0; length as usize];
        let read = self.read_at(&mut tail, self.bytes - length)?;
        match head.footer_start(&tail[..read]) {
            Some(start) => Ok(self.bytes - length + start as u64),
            None if length == self.bytes => Ok(0),
            None => Err(head.footer_too_long(self.name())),
        }
    }
}

/// Leaves out chunks after the first so many bytes.
fn keep_first(chunks: &mut Vec<Vec<Piece>>, sample_bytes: u64) {
    let mut bytes = 0;
    let count = chunks.iter().take_while(|pieces| {
        let before = bytes;
        bytes += pieces.iter().map(|piece| piece.end - piece.start).sum::<u64>();
        before < sample_bytes
    });
    let count = count.count();
    chunks.truncate(count);
}

/// Pieces of big files, and small files together until a chunk is full.
fn cut_files(inputs: &[OpenInput], chunk_bytes: u64) -> Vec<Vec<Piece>> {
    let mut chunks: Vec<Vec<Piece>> = Vec::new();
    let mut room = 0;
    for (file, input) in inputs.iter().enumerate() {
        let bytes = input.bytes - input.data_start;
        let whole =
            Piece { file, start: input.data_start, end: input.bytes, start_is: Start::Record };
        let held = bytes.max(PIECE_BYTES);
        if held <= room
            && let Some(last) = chunks.last_mut()
        {
            last.push(whole);
            room -= held;
            continue;
        }
        if bytes <= chunk_bytes {
            chunks.push(vec![whole]);
            room = chunk_bytes.saturating_sub(held);
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
