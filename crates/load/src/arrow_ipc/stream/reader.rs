//! Messages out of blocks of bytes, and chunks of their batches.

use std::sync::{Arc, atomic::AtomicUsize};

use coload_arrow::{
    BareSchema, Batch, Buffers, FILE_MAGIC, Fault, Message, PREFIX_BYTES, Prefix, bare_schema,
};
use coload_types::Result;

use super::{Known, StreamBatch};
use crate::arrow_ipc::cache::read_dictionary;
use crate::arrow_ipc::files::WRITTEN_SHARE;
use crate::arrow_ipc::input::{FieldsRead, fault, no_dictionary};
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::typed::{
    Asked, BlockReader, Dictionary, Held, Step, StreamChunks, batch_bytes_max, cutting,
};

/// Bytes of the magic of a file, padded.
const MAGIC_BYTES: usize = 8;

/// Reads messages out of blocks.
pub struct Reader {
    request: LoadRequest,
    resources: Resources,
    /// The input that is read, and where its next message starts.
    file: usize,
    at: u64,
    /// Bytes that are there, and how many of them were read.
    rest: Vec<u8>,
    from: usize,
    ended: bool,
    state: State,
    fields: Option<Arc<FieldsRead>>,
    dictionaries: Arc<Known>,
    /// Where the batches so far end in the account.
    covered: u64,
    held: Arc<AtomicUsize>,
}

/// What comes next.
enum State {
    /// The first bytes of an input.
    Start,
    /// Zeros behind the magic of a file: some writers put its first message at byte 64.
    Padding,
    /// A message.
    Message { is_file: bool },
    /// The body of a message, as it comes.
    Body { is_file: bool, message: Message, head_bytes: u64, body: Vec<u8>, bytes: usize },
    /// The footer, which is not read, and the magic behind it.
    Footer,
    /// Nothing.
    Behind,
}

impl BlockReader for Reader {
    type Block = StreamBatch;

    fn step(&mut self, chunks: &mut StreamChunks<StreamBatch>) -> Result<Step> {
        let at = self.at;
        self.go_on(chunks).map_err(|error| fault(self.asked(), self.file, at, error))
    }

    fn push(&mut self, text: &[u8], is_last: bool) {
        self.ended = is_last;
        // Once a block, and not for each message: they may be short.
        self.rest.drain(..self.from);
        self.from = 0;
        match &mut self.state {
            State::Body { body, bytes, .. } if self.rest.is_empty() => {
                let taken = text.len().min(*bytes - body.len());
                body.extend_from_slice(&text[..taken]);
                self.rest.extend_from_slice(&text[taken..]);
            }
            _ => self.rest.extend_from_slice(text),
        }
    }

    fn has_ended(&mut self) {
        self.ended = true;
    }

    fn next_input(&mut self) -> u64 {
        let covered = self.covered;
        self.file += 1;
        (self.at, self.from, self.covered, self.ended) = (0, 0, 0, false);
        (self.state, self.fields) = (State::Start, None);
        self.rest.clear();
        self.dictionaries = Arc::default();
        covered
    }
}

impl Reader {
    fn asked(&self) -> Asked<'_> {
        Asked { request: &self.request, resources: &self.resources }
    }

    /// Nothing is read yet; what batches hold is counted in `held`.
    pub fn new(asked: Asked<'_>, held: &Arc<AtomicUsize>) -> Self {
        Reader {
            request: asked.request.clone(),
            resources: asked.resources.clone(),
            file: 0,
            at: 0,
            rest: Vec::new(),
            from: 0,
            ended: false,
            state: State::Start,
            fields: None,
            dictionaries: Arc::default(),
            covered: 0,
            held: Arc::clone(held),
        }
    }

    /// Bytes from the next message on that are there.
    fn there(&self) -> &[u8] {
        &self.rest[self.from..]
    }

    /// Whether so many bytes are there; fewer are an error where the input has ended.
    fn has(&self, bytes: usize) -> std::result::Result<bool, Fault> {
        match self.there().len() >= bytes {
            true => Ok(true),
            false if self.ended => {
                Err(Fault::Damaged("they end in the middle of a message".to_owned()))
            }
            false => Ok(false),
        }
    }

    /// Does what can be done with what is there.
    fn go_on(
        &mut self,
        chunks: &mut StreamChunks<StreamBatch>,
    ) -> std::result::Result<Step, Fault> {
        match std::mem::replace(&mut self.state, State::Behind) {
            State::Start => {
                if self.there().len() < MAGIC_BYTES && !self.ended {
                    self.state = State::Start;
                    return Ok(Step::More);
                }
                self.state = match self.there().starts_with(FILE_MAGIC) {
                    true => State::Padding,
                    false => State::Message { is_file: false },
                };
                Ok(Step::Done)
            }
            State::Padding => {
                let word = self.there().first_chunk::<MAGIC_BYTES>().copied();
                self.state = match word {
                    Some(word) if self.at == 0 || word == [0; MAGIC_BYTES] => State::Padding,
                    None if !self.ended => State::Padding,
                    _ => State::Message { is_file: true },
                };
                match self.state {
                    State::Padding if word.is_none() => return Ok(Step::More),
                    State::Padding => self.skip(MAGIC_BYTES),
                    _ => {}
                }
                Ok(Step::Done)
            }
            State::Message { is_file } => self.message(is_file, chunks),
            State::Body { is_file, message, head_bytes, mut body, bytes } => {
                let there = self.there();
                let taken = there.len().min(bytes - body.len());
                body.extend_from_slice(&there[..taken]);
                self.from += taken;
                if body.len() < bytes && self.ended {
                    return Err(Fault::Damaged("they end in the middle of a message".to_owned()));
                }
                if body.len() < bytes {
                    self.state = State::Body { is_file, message, head_bytes, body, bytes };
                    return Ok(Step::More);
                }
                self.state = State::Message { is_file };
                let start = self.at;
                self.at += head_bytes + bytes as u64;
                self.take(message, (body, start), chunks)?;
                Ok(Step::Done)
            }
            State::Footer => {
                self.state = State::Footer;
                if !self.ended {
                    let behind = self.there().len().saturating_sub(FILE_MAGIC.len());
                    self.skip(behind);
                    return Ok(Step::More);
                }
                match self.there().ends_with(FILE_MAGIC) {
                    true => Ok(Step::Ended),
                    false => Err(Fault::Damaged("the file does not end with its footer".to_owned())),
                }
            }
            State::Behind if !self.there().is_empty() => Err(Fault::Damaged(
                "bytes behind the end of the stream, which may be another one (load each by itself)"
                    .to_owned(),
            )),
            State::Behind if self.ended => Ok(Step::Ended),
            State::Behind => Ok(Step::More),
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.from += bytes;
        self.at += bytes as u64;
    }

    /// The prefix and the metadata of a message.
    fn message(
        &mut self,
        is_file: bool,
        chunks: &mut StreamChunks<StreamBatch>,
    ) -> std::result::Result<Step, Fault> {
        self.state = State::Message { is_file };
        if self.there().len() < PREFIX_BYTES && !self.ended {
            return Ok(Step::More);
        }
        if self.there().is_empty() && !is_file && self.fields.is_some() {
            // A stream may end so, as the format has it.
            self.state = State::Behind;
            return Ok(Step::Done);
        }
        if is_file && self.fields.is_none() {
            match bare_schema(self.there())? {
                BareSchema::No => {}
                BareSchema::Bytes(bytes) => return self.bare(bytes, chunks),
                BareSchema::Longer if self.ended => {
                    return Err(Fault::Damaged("they end in the middle of a message".to_owned()));
                }
                BareSchema::Longer => return Ok(Step::More),
            }
        }
        match Prefix::decode(&self.there()[..self.there().len().min(PREFIX_BYTES)])? {
            Prefix::End(_) if self.fields.is_none() => {
                Err(Fault::Damaged("there is no schema".to_owned()))
            }
            Prefix::End(prefix) => {
                self.skip(prefix);
                self.state = if is_file { State::Footer } else { State::Behind };
                Ok(Step::Done)
            }
            Prefix::Metadata { prefix, bytes } => {
                let head_bytes = prefix + bytes;
                if !self.has(head_bytes)? {
                    return Ok(Step::More);
                }
                let (message, body_bytes) = Message::decode(&self.there()[prefix..head_bytes])?;
                let bytes = usize::try_from(body_bytes)
                    .ok()
                    .filter(|bytes| *bytes as u64 <= batch_bytes_max(self.asked()))
                    .ok_or(Fault::TooLarge(body_bytes))?;
                self.from += head_bytes;
                let body = Vec::with_capacity(bytes);
                let head_bytes = head_bytes as u64;
                self.state = State::Body { is_file, message, head_bytes, body, bytes };
                Ok(Step::Done)
            }
        }
    }

    /// A schema without a prefix, of so many bytes.
    fn bare(
        &mut self,
        bytes: usize,
        chunks: &mut StreamChunks<StreamBatch>,
    ) -> std::result::Result<Step, Fault> {
        let (message, _) = Message::decode(&self.there()[..bytes])?;
        let start = self.at;
        self.skip(bytes);
        self.take(message, (Vec::new(), start), chunks)?;
        Ok(Step::Done)
    }

    /// Takes a message whose body is there.
    fn take(
        &mut self,
        message: Message,
        (body, start): (Vec<u8>, u64),
        chunks: &mut StreamChunks<StreamBatch>,
    ) -> std::result::Result<(), Fault> {
        match (message, &self.fields) {
            (Message::Schema(schema), None) => {
                let fields = FieldsRead::new(schema, self.file, self.asked())?;
                self.fields = Some(Arc::new(fields));
            }
            (Message::Schema(_), Some(_)) => {
                return Err(Fault::Damaged("a second schema".to_owned()));
            }
            (_, None) => return Err(Fault::Damaged("a message before the schema".to_owned())),
            (Message::Dictionary(dictionary), Some(fields)) => {
                let id = dictionary.id;
                let Some(field) = fields.schema.field_of_dictionary(id) else {
                    return Err(Fault::Damaged(format!("dictionary {id} of no field")));
                };
                if !fields.read().any(|column| column.dictionaries.contains(&id)) {
                    return Ok(());
                }
                let known = self.dictionaries.get(&id).filter(|_| dictionary.is_delta).cloned();
                let others = self.dictionaries.values().map(|known| known.bytes() as u64);
                let bytes_max = batch_bytes_max(self.asked()).saturating_sub(others.sum::<u64>());
                let inner =
                    |id| self.dictionaries.get(&id).cloned().ok_or_else(|| no_dictionary(id));
                let part = read_dictionary(&field, &dictionary, &body, bytes_max, &inner)?;
                let made = match known {
                    Some(known) => known.with(part),
                    None => Dictionary::new(field.values_read(), part),
                };
                Arc::make_mut(&mut self.dictionaries).insert(id, Arc::new(made));
            }
            (Message::Batch(batch), Some(fields)) => {
                let fields = Arc::clone(fields);
                self.take_batch(fields, batch, (body, start), chunks)?;
            }
        }
        Ok(())
    }

    /// Values of a dictionary, and bytes of each.
    fn bytes_of_key(&self, id: i64) -> Option<(u64, u64)> {
        let known = self.dictionaries.get(&id)?;
        let (values, bytes) = (known.len() as u64, known.bytes() as u64);
        Some((values, bytes.checked_div(values)?))
    }

    fn take_batch(
        &mut self,
        fields: Arc<FieldsRead>,
        batch: Batch,
        (body, start): (Vec<u8>, u64),
        chunks: &mut StreamChunks<StreamBatch>,
    ) -> std::result::Result<(), Fault> {
        let bytes_max = batch_bytes_max(self.asked());
        let is_compressed = batch.codec.is_some();
        let buffers = Buffers::new(&batch, &body, bytes_max);
        let bytes = buffers.total_bytes()?;
        if bytes > bytes_max {
            return Err(Fault::TooLarge(bytes));
        }
        let of_key = |id| self.bytes_of_key(id).map_or(0, |(_, each)| each);
        let texts = fields.written_bytes(&buffers, &of_key)?;
        let rows = batch.rows;
        let key_bytes = fields.key_bytes(|id| self.bytes_of_key(id));
        let bytes = bytes.saturating_add(rows.saturating_mul(key_bytes));
        let is_whole = is_compressed
            && cutting(self.asked()).may_be_whole(rows, bytes)
            && texts <= bytes_max / WRITTEN_SHARE;
        let bytes = bytes.saturating_add(texts);
        let span = self.covered..self.at;
        self.covered = self.at;
        let block = StreamBatch {
            file: self.file,
            start,
            fields,
            dictionaries: Arc::clone(&self.dictionaries),
            batch,
            _held: Held::new(body.capacity(), &self.held),
            body,
        };
        chunks.add(block, (rows, bytes), is_whole, span);
        Ok(())
    }
}
