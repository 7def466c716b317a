//! Files of text that a load reads: where their records begin and end.
//!
//! Cost: 16 bytes an input beside its name. Where inputs are many and small, they are opened again to be read, which is done once, but
//! for those whose text was kept when they were found; other files stay known, with their descriptors.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use coload_input::{Inputs, RawFile, TextInput};
use coload_source::{END_MARKS_MAX, LineEnd, without_end_mark};
use coload_threads::map_in_order;
use coload_types::{Error, Result};

use super::chunks::{ChunkPieces, Piece, Start};
use super::head::{HEAD_BYTES_MAX, Head};

/// Inputs of which each is kept that was opened.
const INPUTS_KEPT_MAX: usize = 1024;
/// Bytes of a file that is read with one call.
const BYTES_READ_ONCE: u64 = 64 << 10;

/// Bytes in which the head of an input mostly ends.
const HEAD_BYTES_FIRST: usize = 32 << 10;

/// Bytes of an input.
pub const OPEN_FILE_BYTES: usize = size_of::<OpenFile>();

/// The inputs of a load, looked at.
#[derive(Debug)]
pub struct OpenInputs {
    inputs: Inputs,
    files: Vec<OpenFile>,
    /// Files that stay known, by the numbers of their inputs.
    kept: BTreeMap<usize, Arc<RawFile>>,
    /// Inputs of which a part is read: where its first record starts, and before which byte records start.
    parts: BTreeMap<usize, Range<u64>>,
    line_end: LineEnd,
}

/// An input that was looked at.
#[derive(Debug)]
pub struct Looked {
    file: Arc<RawFile>,
    opened: OpenFile,
}

impl Looked {
    /// Looks where the records of a file begin and end; its first bytes may be known.
    ///
    /// # Errors
    /// `Invalid` when it has no such head or footer, `Unavailable` when it cannot be read.
    pub fn at(file: Arc<RawFile>, first: &[u8], head: &Head) -> Result<Self> {
        let opened = look_at(&Bytes { file: &file, first }, head)?;
        Ok(Looked { file, opened })
    }

    /// The file.
    pub fn file(&self) -> &Arc<RawFile> {
        &self.file
    }
}

/// Bytes of a file, of which the first are known.
struct Bytes<'a> {
    file: &'a RawFile,
    first: &'a [u8],
}

impl Bytes<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let known = usize::try_from(offset)
            .ok()
            .and_then(|start| self.first.get(start..start + buffer.len().min(self.first.len())));
        match known.filter(|known| known.len() == buffer.len()) {
            Some(known) => {
                buffer.copy_from_slice(known);
                Ok(known.len())
            }
            None => self.file.read_at(buffer, offset),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct OpenFile {
    bytes: u64,
    data_start: u32,
    data_line: u32,
}

/// A file of text.
#[derive(Debug)]
pub struct OpenInput<'a> {
    file: InputAt<'a>,
    /// Bytes when it was opened, without a footer.
    pub bytes: u64,
    /// Where the first record starts, after skipped lines and header.
    pub data_start: u64,
    /// Lines of the input before the first record; 0 of a part, of which it is not known.
    pub data_line: u64,
    /// Records that start here or later are not read.
    pub to: u64,
    /// Whether only a part of it is read.
    pub extent: Extent,
    /// What ends its lines.
    pub line_end: LineEnd,
}

/// How much of an input is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// A part of it.
    Part,
}

/// Where the bytes of an input are.
#[derive(Debug)]
enum InputAt<'a> {
    /// In a file that is known.
    File(&'a RawFile),
    /// They were kept.
    Kept(&'a [u8], &'a Inputs, usize),
    /// In a file that is opened to be read.
    Named(&'a Inputs, usize),
}

impl OpenInput<'_> {
    /// Name of the input, as it was given.
    pub fn name(&self) -> String {
        match self.file {
            InputAt::File(file) => file.name().to_owned(),
            InputAt::Kept(_, inputs, number) | InputAt::Named(inputs, number) => {
                inputs.name(number)
            }
        }
    }

    /// Fills `buffer` from `offset` on; less only at the end of the input.
    ///
    /// # Errors
    /// `Unavailable` when the file cannot be read, or got shorter since it was opened.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        match self.file {
            InputAt::File(file) => file.read_at(buffer, offset),
            InputAt::Kept(text, ..) => {
                let rest = usize::try_from(offset).ok().and_then(|offset| text.get(offset..));
                let rest = rest.unwrap_or_default();
                let length = rest.len().min(buffer.len());
                buffer[..length].copy_from_slice(&rest[..length]);
                Ok(length)
            }
            InputAt::Named(inputs, number) => match TextInput::open_file(&inputs.at(number))? {
                Some(file) => file.read_at(buffer, offset),
                None => Ok(0),
            },
        }
    }

    /// The line that begins at a byte, from 1; `None` where to count the lines before it takes long, or they are not there.
    /// `room` is written.
    ///
    /// # Errors
    /// As [`OpenInput::read_at`].
    pub fn line_at(&self, byte: u64, room: &mut [u8]) -> Result<Option<u64>> {
        let is_near = match self.file {
            InputAt::File(file) => !file.is_far(),
            InputAt::Kept(..) => true,
            InputAt::Named(inputs, _) => !inputs.are_far(),
        };
        if !is_near || self.extent == Extent::Part {
            return Ok(None);
        }
        let (mut at, mut line) = (0, 1);
        while at < byte {
            let wanted = usize::try_from(byte - at).map_or(room.len(), |left| left.min(room.len()));
            let read = self.read_at(&mut room[..wanted], at)?;
            if read == 0 {
                return Ok(None);
            }
            line += memchr::memchr_iter(b'\n', &room[..read]).count() as u64;
            at += read as u64;
        }
        Ok(Some(line))
    }

    /// Whether its bytes are in memory.
    pub fn is_kept(&self) -> bool {
        matches!(self.file, InputAt::Kept(..))
    }

    /// Compares the file with what it was when the load was planned, as [`RawFile::check_unchanged`] does.
    pub fn check_unchanged(&self) -> Result<()> {
        match self.file {
            InputAt::File(file) => file.check_unchanged(),
            InputAt::Kept(_, inputs, number) | InputAt::Named(inputs, number) => {
                inputs.at(number).check_unchanged()
            }
        }
    }
}

impl OpenInputs {
    /// None of these inputs is open yet.
    pub fn new(inputs: &Inputs, line_end: LineEnd) -> Self {
        let files = Vec::with_capacity(inputs.len());
        let (kept, parts) = (BTreeMap::new(), BTreeMap::new());
        OpenInputs { inputs: inputs.clone(), files, kept, parts, line_end }
    }

    /// Reads only the records of the input that was looked at last which start before `to`; the first starts at `start`.
    pub fn take_part(&mut self, start: u64, to: u64) {
        if let Some(number) = self.files.len().checked_sub(1) {
            let bytes = self.files[number].bytes;
            let start = start.min(bytes);
            self.parts.insert(number, start..to.min(bytes).max(start));
        }
    }

    /// Takes the next input.
    pub fn push(&mut self, looked: Looked) {
        let Looked { file, opened } = looked;
        let number = self.files.len();
        let is_many = self.inputs.len() > INPUTS_KEPT_MAX && self.inputs.is_file(number);
        if !(is_many && opened.bytes <= BYTES_READ_ONCE) {
            self.kept.insert(number, file);
        }
        self.files.push(opened);
    }

    /// An input.
    ///
    /// # Panics
    /// When there is no such input.
    pub fn at(&self, number: usize) -> OpenInput<'_> {
        let OpenFile { bytes, data_start, data_line } = self.files[number];
        let file = match (self.kept.get(&number), self.inputs.text(number)) {
            (Some(file), _) => InputAt::File(file),
            (None, Some(text)) => InputAt::Kept(text, &self.inputs, number),
            (None, None) => InputAt::Named(&self.inputs, number),
        };
        let (mut data_start, mut data_line) = (u64::from(data_start), u64::from(data_line));
        let (mut to, mut extent) = (bytes, Extent::Whole);
        if let Some(part) = self.parts.get(&number) {
            (to, extent) = (part.end, Extent::Part);
            if part.start != data_start {
                (data_start, data_line) = (part.start, 0);
            }
        }
        OpenInput { file, bytes, data_start, data_line, to, extent, line_end: self.line_end }
    }

    /// The inputs in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = OpenInput<'_>> {
        (0..self.files.len()).map(|number| self.at(number))
    }

    /// Bytes of all inputs, as they are stored; of parts those of the parts.
    pub fn bytes(&self) -> u64 {
        let all: u64 = self.files.iter().map(|file| file.bytes).sum();
        let part = |(number, part): (&usize, &Range<u64>)| {
            self.files[*number].bytes - (part.end - part.start)
        };
        all - self.parts.iter().map(part).sum::<u64>()
    }

    /// The pieces of a chunk.
    pub fn pieces(&self, chunk: &ChunkPieces) -> Vec<Piece> {
        let whole = |file: usize| {
            let OpenInput { data_start: start, to: end, .. } = self.at(file);
            Piece { file, start, end, start_is: Start::Record }
        };
        match chunk {
            ChunkPieces::One(piece) => vec![*piece],
            ChunkPieces::Whole(files) => files.clone().map(whole).collect(),
        }
    }

    /// Bytes of the records of a chunk.
    pub fn chunk_bytes(&self, chunk: &ChunkPieces) -> u64 {
        let pieces = self.pieces(chunk);
        pieces.iter().map(|piece| piece.end - piece.start).sum()
    }

    /// Checks that all are still what they were when the load was planned.
    ///
    /// # Errors
    /// As [`OpenInput::check_unchanged`].
    pub fn check_unchanged(&self) -> Result<()> {
        let numbers: Vec<u32> = (0..self.files.len() as u32).collect();
        map_in_order(&numbers, |number| self.at(*number as usize).check_unchanged()).map(drop)
    }

    /// Checks that they are those that were opened before. One that is opened to be read is then what it was when the
    /// load was planned.
    ///
    /// # Errors
    /// `Unavailable` when one is another.
    pub fn check_same(&self, before: &OpenInputs) -> Result<()> {
        let pairs = self.kept.iter().filter_map(|(n, now)| Some((now, before.kept.get(n)?)));
        pairs.into_iter().try_for_each(|(now, then)| now.check_same(then))
    }
}

/// Where the records of a file begin and end.
fn look_at(file: &Bytes<'_>, head: &Head) -> Result<OpenFile> {
    let mut bytes = text_end(file)?;
    if head.has_footer() {
        bytes = footer_start(file, bytes, head)?;
    }
    let mut opened = OpenFile { bytes, data_start: 0, data_line: 0 };
    if head.has_lines() || bytes >= 3 {
        let mut first = [0; 3];
        let length = file.read_at(&mut first, 0)?;
        let mark = coload_source::bom_len(&first[..length.min(bytes as usize)]);
        if mark > 0 || head.has_lines() {
            let (start, lines) = data_start(file, bytes, mark, head)?;
            // A head is no longer than [`HEAD_BYTES_MAX`].
            (opened.data_start, opened.data_line) = ((mark + start) as u32, lines as u32);
        }
    }
    Ok(opened)
}

/// Where the first record starts behind a mark, and the lines before it. Little is read of most files: the head of one that is far
/// away takes its time.
fn data_start(file: &Bytes<'_>, bytes: u64, mark: usize, head: &Head) -> Result<(usize, u64)> {
    let mut window = HEAD_BYTES_FIRST.min(bytes as usize);
    let most = HEAD_BYTES_MAX.min(bytes as usize);
    loop {
        let mut text = vec![0; window];
        let length = file.read_at(&mut text, 0)?;
        let whole = length as u64 == bytes;
        match head.data_start(&text[mark..length], whole) {
            Ok(found) => return Ok(found),
            Err(_) if window < most => window = most,
            Err(text) => return Err(Error::Invalid(format!("{}: {text}", file.file.name()))),
        }
    }
}

/// Where the text ends: before the marks of the end that DOS writes.
fn text_end(file: &Bytes<'_>) -> Result<u64> {
    let bytes = file.file.bytes();
    let length = bytes.min(END_MARKS_MAX as u64);
    let mut tail = vec![0; length as usize];
    let read = file.read_at(&mut tail, bytes - length)?;
    Ok(bytes - length + without_end_mark(&tail[..read]).len() as u64)
}

fn footer_start(file: &Bytes<'_>, bytes: u64, head: &Head) -> Result<u64> {
    let length = bytes.min(HEAD_BYTES_MAX as u64);
    let mut tail = vec![0; length as usize];
    let read = file.read_at(&mut tail, bytes - length)?;
    match head.footer_start(&tail[..read]) {
        Some(start) => Ok(bytes - length + start as u64),
        None if length == bytes => Ok(0),
        None => Err(head.footer_too_long(file.file.name())),
    }
}
