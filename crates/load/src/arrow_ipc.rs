//! Arrow IPC: files whose batches are cut into chunks beforehand, and streams of which batches are taken as they come.

mod cache;
mod files;
mod input;
mod look;
mod reading;
mod stream;

use std::sync::Arc;

use coload_input::{Raw, TextInput, Waiting};
use coload_types::Result;
use files::{BatchAt, IndexedFile, index_file};
use reading::ArrowReading;
use stream::Reader;

use crate::account::Account;
use crate::format::{Format, InputBounds, Leg, Position};
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::spool::Spool;
use crate::text::open_once;
use crate::typed::{Asked, Block, Chunks, Cutting, StreamSource, cutting};

pub use look::look_at_arrow;

/// Inputs of Arrow.
pub enum Arrow {
    /// Files of known length, cut beforehand.
    Files(Files),
    /// Batches that come in order; and how many inputs there are, and their stored bytes.
    Stream(Box<StreamSource<Reader>>, StreamInputs),
}

/// Files, looked at.
#[derive(Debug)]
pub struct Files {
    files: Vec<IndexedFile>,
    batches: Vec<BatchAt>,
    chunks: Chunks,
}

impl Files {
    /// A batch, as it is cut.
    fn block(&self, batch: usize) -> Block {
        self.batches[batch].block()
    }
}

/// What is known of inputs that come in order.
#[derive(Debug)]
pub struct StreamInputs {
    inputs: coload_input::Inputs,
    bytes: u64,
}

impl Format for Arrow {
    type Reading<'a> = ArrowReading<'a>;

    fn open(
        request: &LoadRequest,
        resources: &Resources,
        spool: Option<&Arc<Spool>>,
    ) -> Result<Self> {
        let asked = Asked { request, resources };
        let inputs = asked.request.inputs.clone();
        let numbers = 0..inputs.len();
        let cutting = cutting(asked);
        let reader = |held: &_| Reader::new(asked, held);
        let stream = if let Some(open) = asked.request.streams.clone() {
            let stream = move |number: usize| {
                let name = inputs.name(number);
                Waiting::Stream { name, reader: open(number) }
            };
            StreamSource::new(numbers.map(stream), asked, cutting, reader)
        } else if let Some(opened) = open_once(request, spool)? {
            StreamSource::new([opened], asked, cutting, reader)
        } else if let Some(files) = open_files(asked, cutting)? {
            return Ok(Arrow::Files(files));
        } else {
            let named = move |number: usize| Waiting::Named(inputs.at(number));
            StreamSource::new(numbers.map(named), asked, cutting, reader)
        };
        let inputs = StreamInputs {
            bytes: asked.request.inputs.iter().filter_map(|input| input.bytes()).sum(),
            inputs: asked.request.inputs.clone(),
        };
        Ok(Arrow::Stream(Box::new(stream), inputs))
    }

    fn read<'a>(&'a self, leg: Leg<'a>) -> ArrowReading<'a> {
        ArrowReading::new(self, leg)
    }

    fn chunks(&self) -> Option<usize> {
        match self {
            Arrow::Files(files) => Some(files.chunks.count()),
            Arrow::Stream(..) => None,
        }
    }

    fn bounds(&self) -> Vec<InputBounds> {
        match self {
            Arrow::Files(files) => {
                let of = |file: &IndexedFile| InputBounds {
                    start: file.head,
                    lines: 0,
                    end: Some(file.file.bytes()),
                    part: None,
                };
                files.files.iter().map(of).collect()
            }
            Arrow::Stream(_, stream) => {
                let of = InputBounds { start: 0, lines: 0, end: None, part: None };
                vec![of; stream.inputs.len()]
            }
        }
    }

    fn stored_bytes(&self) -> u64 {
        match self {
            Arrow::Files(files) => files.files.iter().map(|file| file.file.bytes()).sum(),
            Arrow::Stream(_, stream) => stream.bytes,
        }
    }

    fn head_bytes(&self) -> u64 {
        match self {
            Arrow::Files(files) => files.files.iter().map(|file| file.head).sum(),
            Arrow::Stream(..) => 0,
        }
    }

    fn bytes_before(&self, place: Position, records: u64) -> u64 {
        match self {
            Arrow::Files(files) => {
                let chunks = (0..place.chunks)
                    .flat_map(|c| files.chunks.rows(|batch| files.block(batch), c));
                chunks.map(|rows| rows.span.end - rows.span.start).sum()
            }
            Arrow::Stream(..) => records,
        }
    }

    fn check_unchanged(&self) -> Result<()> {
        match self {
            Arrow::Files(files) => {
                files.files.iter().try_for_each(|file| file.file.check_unchanged())
            }
            Arrow::Stream(_, stream) => {
                stream.inputs.iter().try_for_each(|input| input.check_unchanged())
            }
        }
    }

    fn check_same(&self, before: &Self) -> Result<()> {
        let (Arrow::Files(files), Arrow::Files(before)) = (self, before) else { return Ok(()) };
        let mut pairs = files.files.iter().zip(&before.files);
        pairs.try_for_each(|(now, before)| now.file.check_same(&before.file))
    }

    fn share(&self, account: &Account) -> f64 {
        let (read, all) = match self {
            Arrow::Files(_) => (account.text_bytes(), self.stored_bytes()),
            Arrow::Stream(_, stream) => (account.stored_bytes(), stream.bytes),
        };
        if all == 0 { 1.0 } else { (read as f64 / all as f64).min(1.0) }
    }
}

/// The inputs, if all are files that are stored as they are.
fn open_files(asked: Asked<'_>, cutting: Cutting) -> Result<Option<Files>> {
    let mut files = Files { files: Vec::new(), batches: Vec::new(), chunks: Chunks::default() };
    for (number, input) in asked.request.inputs.iter().enumerate() {
        let input = TextInput::open(&input)?;
        if !input.is_plain_file() {
            return Ok(None);
        }
        let Raw::File { file, .. } = input.raw else { return Ok(None) };
        let mut indexed = index_file(file, number, asked, &mut files.batches)?;
        // Inputs of a load mostly have the same fields.
        if let Some(last) = files.files.last().filter(|last| last.fields == indexed.fields) {
            indexed.fields = Arc::clone(&last.fields);
        }
        files.files.push(indexed);
    }
    files.chunks = Chunks::new(files.batches.iter().map(BatchAt::block), cutting);
    Ok(Some(files))
}
