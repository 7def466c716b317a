//! Opens an input and finds out from its first bytes how it is compressed.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use coload_types::{Error, Result};

use crate::archive::{Check, open_member, refuse_archive};
use crate::compression::Compression;
use crate::encoding::MARK_BYTES_MAX;
use crate::inputs::{InputFile, InputSource};
use crate::raw::{Raw, RawFile, read_error};

/// Bytes looked at for magic.
pub const HEAD_BYTES: usize = 4096;

/// An input to be read as text.
pub struct TextInput {
    /// Name of the input, as it was given.
    pub name: String,
    /// How it is compressed.
    pub format: Option<Compression>,
    /// Bytes of the input as they are stored.
    pub raw: Raw,
    /// The first of them, if they were looked at and it is a file.
    pub head: Vec<u8>,
    /// What its text must be, if the archive that it is in tells.
    pub check: Option<Check>,
    /// Bytes that are held for as long as it is read, beside what is decompressed.
    pub held_bytes: usize,
}

impl TextInput {
    /// The first bytes of a file, enough to tell a byte order mark; none of a stream.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be read.
    pub fn start(&self) -> Result<Vec<u8>> {
        let mut start = vec![0; MARK_BYTES_MAX];
        let read = match &self.raw {
            Raw::File { at: 0, .. } if self.head.len() >= start.len() => {
                start.copy_from_slice(&self.head[..MARK_BYTES_MAX]);
                start.len()
            }
            Raw::File { file, at } => file.read_at(&mut start, *at)?,
            Raw::Stream(_) => 0,
        };
        start.truncate(read);
        Ok(start)
    }

    /// Whether its bytes are text, any part of which can be read and needs no check.
    pub fn is_plain_file(&self) -> bool {
        self.format.is_none() && self.check.is_none() && matches!(self.raw, Raw::File { .. })
    }

    /// Opens a file or a stream.
    ///
    /// # Errors
    /// `Invalid` when it cannot be opened, `Unavailable` when it cannot be read.
    pub fn open(input: &InputFile) -> Result<Self> {
        match &input.source {
            InputSource::File { path, identity } => {
                TextInput::of_file(RawFile::open_as(&input.name, path, identity)?)
            }
            InputSource::Part { path, start, bytes } => {
                TextInput::of_file(RawFile::open(&input.name, path)?.part(*start, *bytes)?)
            }
            InputSource::Object(object) => {
                TextInput::of_object(RawFile::of_object(&input.name, object))
            }
            InputSource::Member { archive, member } => open_member(&input.name, archive, member),
            _ => TextInput::of_stream(&input.name, open_stream(input)?),
        }
    }

    /// Opens the file of an input that is one, as it is stored; `None` if it is none.
    ///
    /// # Errors
    /// As [`TextInput::open`].
    pub fn open_file(input: &InputFile) -> Result<Option<RawFile>> {
        match &input.source {
            InputSource::File { path, identity } => {
                RawFile::open_as(&input.name, path, identity).map(Some)
            }
            InputSource::Object(object) => Ok(Some(RawFile::of_object(&input.name, object))),
            _ => Ok(None),
        }
    }

    /// An object that is not named as an archive.
    fn of_object(file: RawFile) -> Result<Self> {
        refuse_archive(file.name(), &file.head(HEAD_BYTES)?)?;
        TextInput::of_file(file)
    }

    /// A file that is open.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be read.
    pub fn of_file(file: RawFile) -> Result<Self> {
        let head = file.head(HEAD_BYTES)?;
        let mut format = Compression::detect(&head);
        if format.is_none() && file.bytes() == head.len() as u64 {
            format = Compression::of_cut_head(file.name(), &head);
        }
        let name = file.name().to_owned();
        let raw = Arc::new(file).reader(0);
        Ok(TextInput { name, format, raw, head, check: None, held_bytes: 0 })
    }

    /// A stream of any bytes; its first bytes are read and kept.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be read.
    pub fn of_stream(name: &str, mut stream: Box<dyn Read + Send>) -> Result<Self> {
        let mut head = Vec::new();
        let read = stream.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head);
        read.map_err(|e| read_error(name, e))?;
        let format = Compression::detect(&head);
        let raw = Raw::Stream(Box::new(io::Cursor::new(head).chain(stream)));
        let (name, head) = (name.to_owned(), Vec::new());
        Ok(TextInput { name, format, raw, head, check: None, held_bytes: 0 })
    }

    /// Text that is made of something else, which holds so many bytes for it.
    pub fn of_lines(name: &str, lines: Box<dyn Read + Send>, held_bytes: usize) -> Self {
        let (raw, head) = (Raw::Stream(lines), Vec::new());
        TextInput { name: name.to_owned(), format: None, raw, head, check: None, held_bytes }
    }
}

/// An input whose turn has not come.
pub enum Waiting {
    /// An input that is open already.
    Open(TextInput),
    /// It is opened when it is read.
    Named(InputFile),
    /// Bytes that come from elsewhere; they are looked at when their turn comes.
    Stream {
        /// Name of the input, as it was given.
        name: String,
        /// Reader of the stored bytes.
        reader: Box<dyn Read + Send>,
    },
}

impl Waiting {
    /// The open input.
    ///
    /// # Errors
    /// As [`TextInput::open`].
    pub fn open(self) -> Result<TextInput> {
        match self {
            Waiting::Open(input) => Ok(input),
            Waiting::Named(input) => TextInput::open(&input),
            Waiting::Stream { name, reader } => TextInput::of_stream(&name, reader),
        }
    }
}

impl From<TextInput> for Waiting {
    fn from(input: TextInput) -> Self {
        Waiting::Open(input)
    }
}

/// Opens an input to be read in order.
///
/// # Errors
/// `Invalid` when it cannot be opened.
pub fn open_stream(input: &InputFile) -> Result<Box<dyn Read + Send>> {
    match &input.source {
        InputSource::Stdin => Ok(Box::new(io::stdin())),
        InputSource::Object(object) => {
            Ok(Box::new(Arc::new(RawFile::of_object(&input.name, object)).reader(0)))
        }
        InputSource::Member { archive, .. } => {
            Ok(Box::new(Arc::new(archive.open(&input.name)?).reader(0)))
        }
        InputSource::File { path, .. }
        | InputSource::Part { path, .. }
        | InputSource::Stream { path } => {
            Ok(Box::new(File::open(path).map_err(|e| Error::io("open", path, &e))?))
        }
        InputSource::Rows { .. } => {
            Err(Error::Invalid(format!("{} has rows, and no text", input.name)))
        }
    }
}
