//! Streams of Avro: blocks that come in order, from pipes and object stores, and from what must be decompressed as a whole.

use std::sync::{Arc, atomic::AtomicUsize};

use coload_arrow::Fault;
use coload_avro::{BlockHead, Head, MARKER_BYTES, decode_header};
use coload_types::Result;

use super::input::{HeadRead, check_head, cut_off, fault, wrong_marker};
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::typed::{Asked, BlockReader, Held, HeldBlock, Step, StreamChunks, batch_bytes_max};

/// A block that came.
#[derive(Debug)]
pub struct StreamBlock {
    /// Number of the input.
    pub file: usize,
    /// Its number in the input.
    pub number: u64,
    /// Where it starts.
    pub start: u64,
    /// What the header of the input says.
    pub head_of: Arc<HeadRead>,
    /// How many records it has.
    pub rows: u64,
    /// Its bytes, as they are stored.
    pub stored: Vec<u8>,
    _held: Held,
}

impl HeldBlock for StreamBlock {
    fn bytes(&self) -> usize {
        self.stored.capacity()
    }
}

/// What comes next.
enum State {
    /// The header.
    Header,
    /// The head of a block.
    Head,
    /// A block and its marker, as they come.
    Body { head: BlockHead, body: Vec<u8>, bytes: usize },
}

/// Reads blocks out of bytes.
pub struct Reader {
    request: LoadRequest,
    resources: Resources,
    /// The input that is read, and where what comes next starts.
    file: usize,
    at: u64,
    /// Bytes that are there, those from `from` on not taken yet.
    rest: Vec<u8>,
    from: usize,
    ended: bool,
    state: State,
    head_of: Option<Arc<HeadRead>>,
    /// How much larger blocks of the input are when they are decompressed.
    expansion: Option<f64>,
    /// Blocks of the input so far, and where they end in the account.
    blocks: u64,
    covered: u64,
    held: Arc<AtomicUsize>,
}

impl Reader {
    /// Nothing is read yet; what blocks hold is counted in `held`.
    pub fn new(asked: Asked<'_>, held: &Arc<AtomicUsize>) -> Self {
        Reader {
            request: asked.request.clone(),
            resources: asked.resources.clone(),
            file: 0,
            at: 0,
            rest: Vec::new(),
            from: 0,
            ended: false,
            state: State::Header,
            head_of: None,
            expansion: None,
            blocks: 0,
            covered: 0,
            held: Arc::clone(held),
        }
    }

    fn asked(&self) -> Asked<'_> {
        Asked { request: &self.request, resources: &self.resources }
    }

    fn take(&mut self, bytes: usize) {
        self.from += bytes;
        self.at += bytes as u64;
    }

    /// Does what can be done with what is there.
    fn go_on(
        &mut self,
        chunks: &mut StreamChunks<StreamBlock>,
    ) -> std::result::Result<Step, Fault> {
        let there = &self.rest[self.from..];
        match &mut self.state {
            State::Header => match decode_header(there)? {
                Head::Whole(header) => {
                    let bytes = header.bytes;
                    let before = self.head_of.as_ref().map(|before| Arc::clone(&before.fields));
                    let head_of = HeadRead::new(*header, self.file, self.asked(), before.as_ref())?;
                    self.head_of = Some(Arc::new(head_of));
                    self.take(bytes);
                    self.state = State::Head;
                }
                Head::Needs(_) if self.ended => {
                    return Err(Fault::Damaged("they end in the middle of the header".to_owned()));
                }
                Head::Needs(bytes) if bytes > batch_bytes_max(self.asked()) => {
                    return Err(Fault::TooLarge(bytes));
                }
                Head::Needs(_) => return Ok(Step::More),
            },
            State::Head => {
                let Some(head) = BlockHead::decode(there)? else {
                    return match (self.ended, there.is_empty()) {
                        (true, true) => Ok(Step::Ended),
                        (true, false) => Err(cut_off()),
                        (false, _) => Ok(Step::More),
                    };
                };
                check_head(&head, batch_bytes_max(self.asked()))?;
                let bytes = head.bytes as usize + MARKER_BYTES;
                self.from += head.head_bytes;
                self.state = State::Body { head, body: Vec::with_capacity(bytes), bytes };
            }
            State::Body { body, bytes, .. } => {
                let taken = there.len().min(*bytes - body.len());
                body.extend_from_slice(&there[..taken]);
                self.from += taken;
                match body.len() == *bytes {
                    true => self.add_block(chunks)?,
                    false if self.ended => return Err(cut_off()),
                    false => return Ok(Step::More),
                }
            }
        }
        Ok(Step::Done)
    }

    /// Adds a block whose bytes are there.
    fn add_block(
        &mut self,
        chunks: &mut StreamChunks<StreamBlock>,
    ) -> std::result::Result<(), Fault> {
        let (State::Body { head, mut body, .. }, Some(head_of)) =
            (std::mem::replace(&mut self.state, State::Head), self.head_of.clone())
        else {
            return Ok(());
        };
        let stored = body.len() - MARKER_BYTES;
        if body[stored..] != head_of.marker {
            return Err(wrong_marker());
        }
        body.truncate(stored);
        let expansion = match self.expansion {
            Some(known) => known,
            None if stored == 0 => 1.0,
            None => {
                let found = head_of.expansion(&body, self.asked());
                *self.expansion.insert(found)
            }
        };
        let start = self.at;
        self.at += head.total_bytes();
        let span = self.covered..self.at;
        self.covered = self.at;
        let block = StreamBlock {
            file: self.file,
            number: self.blocks,
            start,
            head_of,
            rows: head.rows,
            _held: Held::new(body.capacity(), &self.held),
            stored: body,
        };
        self.blocks += 1;
        chunks.add(block, (head.rows, (stored as f64 * expansion) as u64), true, span);
        Ok(())
    }
}

impl BlockReader for Reader {
    type Block = StreamBlock;

    fn step(&mut self, chunks: &mut StreamChunks<StreamBlock>) -> Result<Step> {
        let (at, block) = (self.at, self.blocks);
        let is_header = matches!(self.state, State::Header);
        self.go_on(chunks).map_err(|error| {
            fault(self.asked(), (self.file, at), (!is_header).then_some(block), error)
        })
    }

    fn push(&mut self, text: &[u8], is_last: bool) {
        self.ended = is_last;
        self.rest.drain(..self.from);
        self.from = 0;
        self.rest.extend_from_slice(text);
    }

    fn has_ended(&mut self) {
        self.ended = true;
    }

    fn next_input(&mut self) -> u64 {
        let covered = self.covered;
        self.file += 1;
        (self.at, self.covered, self.blocks) = (0, 0, 0);
        (self.ended, self.expansion) = (false, None);
        self.state = State::Header;
        self.rest.clear();
        self.from = 0;
        covered
    }
}
