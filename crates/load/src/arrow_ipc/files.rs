//! Files of Arrow: where their batches stand, found when they are opened.
//!
//! ```text
//!   file     ARROW1 | schema | d0 | b0 | b1 | d0 | b2 | footer      d: dictionaries, b: batches
//!   account  head (all that is no batch)  | b0 | b1 | b2            in bytes: what a batch takes is counted with its rows
//! ```
//!
//! A file whose messages are a stream is gone through once, from one to the next; of a file with a footer that says where they
//! are. Only their metadata are read.
//!
//! Cost: 64 bytes a batch.

use std::ops::Range;
use std::sync::Arc;

use coload_arrow::{
    ArrowSchema, Batch, Buffers, DictionaryBatch, FILE_MAGIC, Fault, Footer, Message, PREFIX_BYTES,
    Place, Prefix, TAIL_BYTES, footer_bytes,
};
use coload_input::RawFile;
use coload_transform::CODES_PROVISIONAL_MAX;
use coload_types::{Error, Result};
use coload_wire::PartIs;

use super::input::{FieldsRead, fault};
use crate::typed::{Asked, Block, BlockFile, FileBody, batch_bytes_max, cutting, read_at};

/// What is known of a file.
#[derive(Debug)]
pub struct ArrowFile {
    /// Its fields.
    pub fields: Arc<FieldsRead>,
    /// Its dictionaries, in their order.
    pub dictionaries: Vec<DictionaryAt>,
}

/// Values of a dictionary.
#[derive(Debug, Clone, Copy)]
pub struct DictionaryAt {
    /// Number of the dictionary.
    pub id: i64,
    /// Whether they come after those before.
    pub is_delta: bool,
    /// Where they stand.
    pub place: Place,
    /// Batches of the file that come before; these do not see them.
    pub before: u32,
    /// Number of values.
    pub rows: u64,
}

/// A batch of a file.
#[derive(Debug, Clone, Copy)]
pub struct BatchAt {
    /// Number of the input.
    pub file: u32,
    /// Number in its file.
    pub number: u32,
    /// Number of its rows.
    pub rows: u32,
    /// Whether its buffers are compressed.
    is_compressed: bool,
    /// Whether it is read as a whole, as each part would decompress all of it.
    is_whole: bool,
    /// Where it stands.
    pub place: Place,
    /// Where it stands in the account: behind the head, and the batches before.
    pub position: u64,
    /// Bytes of its buffers, decompressed, with those of texts for which its keys stand if they may not be codes.
    pub bytes: u64,
}

impl BatchAt {
    /// Its rows, as they are cut.
    pub fn block(&self) -> Block {
        Block {
            rows: self.rows.into(),
            bytes: self.bytes,
            is_whole: self.is_whole,
            span: self.position..self.position + (self.place.end() - self.place.start),
        }
    }
}

/// The message at a place.
///
/// # Errors
/// `Damaged` when it is not what the place says; those of reading.
pub fn message_at(file: &RawFile, place: &Place) -> std::result::Result<Message, Fault> {
    let head = read_at(file, place.start, place.head_bytes as usize)?;
    let Prefix::Metadata { prefix, bytes } = Prefix::decode(&head)? else {
        return Err(Fault::Damaged("a message without metadata".to_owned()));
    };
    let metadata = head.get(prefix..prefix + bytes);
    let metadata = metadata
        .ok_or_else(|| Fault::Damaged("metadata that are longer than they may be".to_owned()))?;
    match Message::decode(metadata)? {
        (message, body_bytes) if body_bytes == place.body_bytes => Ok(message),
        (_, body_bytes) => Err(Fault::Damaged(format!(
            "a body of {body_bytes} bytes where {} are expected",
            place.body_bytes
        ))),
    }
}

/// The batch at a place.
///
/// # Errors
/// As [`message_at`].
pub fn batch_at(file: &RawFile, place: &Place) -> std::result::Result<Batch, Fault> {
    match message_at(file, place)? {
        Message::Batch(batch) => Ok(batch),
        _ => Err(Fault::Damaged(
            "a message that is no record batch, where one is expected".to_owned(),
        )),
    }
}

/// Looks at a file, by its number; its batches are added to `batches`.
///
/// # Errors
/// `Input` when it is damaged, `Invalid` when its fields are not those that are read, `Unavailable` when it cannot be read.
pub fn index_file(
    file: Arc<RawFile>,
    number: usize,
    asked: Asked<'_>,
    batches: &mut Vec<BatchAt>,
) -> Result<BlockFile<ArrowFile>> {
    let first = batches.len();
    let part = match asked.request.part(number) {
        PartIs::RowGroups(part) => Some(part.start as usize..part.end as usize),
        _ => None,
    };
    let dictionaries = Vec::new();
    let mut index =
        Index { file: &file, number, part: part.clone(), at: 0, batches, first, dictionaries };
    let indexed = match has_footer(&file)? {
        true => index.footer(),
        false => index.stream(),
    };
    let (at, dictionaries) = (index.at, std::mem::take(&mut index.dictionaries));
    let schema = indexed.map_err(|error| fault(asked, number, at, error))?;
    // What is in batches is not in the head.
    let taken = batches[first..].iter().map(|batch| batch.place.end() - batch.place.start);
    let taken = taken.fold(0, u64::saturating_add);
    let Some(head) = file.bytes().checked_sub(taken) else {
        let text = "batches that overlap".to_owned();
        return Err(fault(asked, number, 0, Fault::Damaged(text)));
    };
    let mut position = head;
    for batch in &mut batches[first..] {
        batch.position = position;
        position += batch.place.end() - batch.place.start;
    }
    let mut span = head..position;
    if let Some(part) = &part {
        let count = batches.len() - first;
        let (from, to) = (part.start.min(count), part.end.min(count).max(part.start.min(count)));
        let starts = |number: usize| batches.get(first + number).map_or(position, |b| b.position);
        span = starts(from)..starts(to);
        // Other workers read the others.
        batches.truncate(first + to);
        batches.drain(first..first + from);
    }
    let fields = Arc::new(FieldsRead::new(schema, number, asked)?);
    for batch in &mut batches[first..] {
        if batch.is_compressed {
            let bytes = decompressed_bytes(&file, &batch.place, batch_bytes_max(asked));
            batch.bytes = bytes.map_err(|error| fault(asked, number, batch.place.start, error))?;
        }
    }
    let key_bytes = key_bytes(&fields, &dictionaries);
    let cutting = cutting(asked);
    for batch in &mut batches[first..] {
        let rows = u64::from(batch.rows);
        batch.bytes = batch.bytes.saturating_add(rows.saturating_mul(key_bytes));
        batch.is_whole = batch.is_compressed && cutting.may_be_whole(rows, batch.bytes);
    }
    let bytes = |place: &Place| place.start..place.end();
    let reads = part.as_ref().map(|_| {
        let of_batches = batches[first..].iter().map(|batch| bytes(&batch.place));
        of_batches.chain(dictionaries.iter().map(|at| bytes(&at.place))).collect()
    });
    let (is_part, reads) = (reads.is_some(), reads.unwrap_or_default());
    Ok(BlockFile { file, is: ArrowFile { fields, dictionaries }, span, is_part, reads })
}

/// Bytes of a row's texts in dictionaries of more values than codes have.
fn key_bytes(fields: &FieldsRead, dictionaries: &[DictionaryAt]) -> u64 {
    let of = |field: &usize| {
        let id = fields.schema.fields[*field].dictionary()?;
        let of_field = || dictionaries.iter().filter(move |at| at.id == id);
        let rows = of_field().fold(0, |sum: u64, at| sum.saturating_add(at.rows));
        let bytes = of_field().fold(0, |sum: u64, at| sum.saturating_add(at.place.body_bytes));
        (rows > CODES_PROVISIONAL_MAX as u64).then(|| bytes / rows)
    };
    fields.of_column.iter().flatten().filter_map(of).fold(0, u64::saturating_add)
}

/// Bytes of the buffers of a batch that is compressed.
fn decompressed_bytes(
    file: &RawFile,
    place: &Place,
    bytes_max: u64,
) -> std::result::Result<u64, Fault> {
    let batch = batch_at(file, place)?;
    let body = FileBody { file, start: place.body() };
    match Buffers::new(&batch, &body, bytes_max).total_bytes()? {
        bytes if bytes > bytes_max => Err(Fault::TooLarge(bytes)),
        bytes => Ok(bytes),
    }
}

/// A file that is being looked at.
struct Index<'a> {
    file: &'a Arc<RawFile>,
    number: usize,
    /// The batches that are read, if not all are.
    part: Option<Range<usize>>,
    /// The message that is looked at.
    at: u64,
    batches: &'a mut Vec<BatchAt>,
    /// The first of its batches.
    first: usize,
    dictionaries: Vec<DictionaryAt>,
}

impl Index<'_> {
    /// A file that says at its end where its messages are.
    fn footer(&mut self) -> std::result::Result<ArrowSchema, Fault> {
        let footer = read_footer(self.file, &mut self.at)?;
        let is_read = |index: usize| self.part.as_ref().is_none_or(|part| part.contains(&index));
        let own = footer.batches.iter().enumerate().filter(|(index, _)| is_read(*index));
        let looked_at = footer.dictionaries.iter().chain(own.map(|(_, place)| place));
        self.file
            .look_at(looked_at.map(|place| place.start..place.start + u64::from(place.head_bytes)));
        for place in &footer.dictionaries {
            self.at = place.start;
            match message_at(self.file, place)? {
                Message::Dictionary(dictionary) => {
                    self.dictionary(&dictionary, *place, 0);
                }
                _ => return Err(Fault::Damaged("a message that is no dictionary".to_owned())),
            }
        }
        for (index, place) in footer.batches.iter().enumerate() {
            self.at = place.start;
            match self.part.as_ref().is_none_or(|part| part.contains(&index)) {
                true => self.batch(&batch_at(self.file, place)?, *place),
                // It has a place in the account, and another worker reads it.
                false => self.add(*place, 0, false, 0),
            }
        }
        Ok(footer.schema)
    }

    /// A file of messages, one after the other.
    fn stream(&mut self) -> std::result::Result<ArrowSchema, Fault> {
        let mut schema = None;
        while self.at < self.file.bytes() {
            let left = self.file.bytes() - self.at;
            let prefix =
                Prefix::decode(&read_at(self.file, self.at, PREFIX_BYTES.min(left as usize))?)?;
            let (prefix, metadata) = match prefix {
                Prefix::End(prefix) if prefix as u64 == left => break,
                Prefix::End(_) => {
                    let text = "bytes behind the end of the stream, which may be another one (load each by itself)";
                    return Err(Fault::Damaged(text.to_owned()));
                }
                Prefix::Metadata { prefix, bytes } => (prefix, bytes),
            };
            if (prefix + metadata) as u64 > left {
                return Err(Fault::Damaged("they end in the middle of a message".to_owned()));
            }
            let decoded = Message::decode(&read_at(self.file, self.at + prefix as u64, metadata)?)?;
            let place = Place {
                start: self.at,
                head_bytes: (prefix + metadata) as u32,
                body_bytes: decoded.1,
            };
            if decoded.1 > left - (prefix + metadata) as u64 {
                return Err(Fault::Damaged("they end in the middle of a message".to_owned()));
            }
            match (decoded.0, &schema) {
                (Message::Schema(found), None) => schema = Some(found),
                (Message::Dictionary(dictionary), Some(_)) => {
                    let before = (self.batches.len() - self.first) as u32;
                    self.dictionary(&dictionary, place, before);
                }
                (Message::Batch(batch), Some(_)) => self.batch(&batch, place),
                (Message::Schema(_), Some(_)) => {
                    return Err(Fault::Damaged("a second schema".to_owned()));
                }
                (_, None) => return Err(Fault::Damaged("a message before the schema".to_owned())),
            }
            self.at = place.end();
        }
        schema.ok_or_else(|| Fault::Damaged("there is no schema".to_owned()))
    }

    fn dictionary(&mut self, dictionary: &DictionaryBatch, place: Place, before: u32) {
        let DictionaryBatch { id, is_delta, batch } = dictionary;
        let (id, is_delta, rows) = (*id, *is_delta, batch.rows);
        self.dictionaries.push(DictionaryAt { id, is_delta, place, before, rows });
    }

    fn batch(&mut self, batch: &Batch, place: Place) {
        // It has no more than 31 bits of rows.
        self.add(place, batch.rows as u32, batch.codec.is_some(), batch.body_bytes);
    }

    fn add(&mut self, place: Place, rows: u32, is_compressed: bool, bytes: u64) {
        self.batches.push(BatchAt {
            file: self.number as u32,
            number: (self.batches.len() - self.first) as u32,
            rows,
            is_compressed,
            is_whole: false,
            place,
            position: 0,
            bytes,
        });
    }
}

/// Reads the footer of a file; `at` is where what is read begins, for who tells of an error.
fn read_footer(file: &RawFile, at: &mut u64) -> std::result::Result<Footer, Fault> {
    let bytes = file.bytes();
    let tail_bytes = TAIL_BYTES.min(bytes as usize);
    *at = bytes - tail_bytes as u64;
    let tail = read_at(file, *at, tail_bytes)?;
    let footer_bytes = footer_bytes(&tail, bytes)?;
    *at -= footer_bytes as u64;
    Footer::decode(&read_at(file, *at, footer_bytes)?, *at)
}

fn has_footer(file: &RawFile) -> Result<bool> {
    let mut magic = [0; FILE_MAGIC.len()];
    let read = file.read_at(&mut magic, 0)?;
    Ok(&magic[..read] == FILE_MAGIC)
}

/// The footer of a file, if it has one.
fn footer_of(file: &RawFile) -> Result<Option<Footer>> {
    if !has_footer(file)? {
        return Ok(None);
    }
    let mut at = 0;
    read_footer(file, &mut at).map(Some).map_err(|error| damaged(file, at, error))
}

fn damaged(file: &RawFile, byte: u64, error: Fault) -> Error {
    let file = file.name().to_owned();
    match error {
        Fault::Read(error) => error,
        error => Error::Input {
            place: Box::new(coload_types::Place { file, line: 0, byte, field: 0 }),
            text: format!("{error}; nothing was loaded"),
        },
    }
}

/// Bytes of the batches of a file, in their order, as its footer tells; none of a file of messages without a footer.
///
/// # Errors
/// `Input` when it is damaged, `Unavailable` when it cannot be read.
pub fn batches_told(file: &RawFile) -> Result<Vec<u64>> {
    let batches = footer_of(file)?.map_or_else(Vec::new, |footer| footer.batches);
    Ok(batches.iter().map(|place| place.end() - place.start).collect())
}

/// Rows of a file before a batch of it.
///
/// # Errors
/// `Input` when it is damaged, `Unavailable` when it cannot be read.
pub fn rows_before(file: &RawFile, batch: usize) -> Result<u64> {
    let batches = footer_of(file)?.map_or_else(Vec::new, |footer| footer.batches);
    let rows = |place: &Place| match batch_at(file, place) {
        Ok(batch) => Ok(batch.rows),
        Err(error) => Err(damaged(file, place.start, error)),
    };
    batches.iter().take(batch).map(rows).sum()
}
