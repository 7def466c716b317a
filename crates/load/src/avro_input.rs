//! Avro: files whose blocks are put together into chunks beforehand, and streams of which blocks are taken as they come.
//!
//! ```text
//!   file      header | block 1 | block 2 | block 3 | ...      a block is decompressed and read as a whole
//!   chunks           |         0         |   1 ...            blocks by their bytes in memory
//! ```
//!
//! Objects of stores are streams, too: to find their blocks is to read all of them.

mod files;
mod input;
mod look;
mod reading;
mod stream;

use std::sync::Arc;

use coload_input::{InputSource, Raw, TextInput, Waiting};
use coload_types::Result;
use files::{IndexedFile, RunAt, index_file};
use reading::AvroReading;
use stream::Reader;

use crate::account::Account;
use crate::format::{Format, InputBounds, Leg, Position};
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::spool::Spool;
use crate::text::open_once;
use crate::typed::{Asked, Block, Chunks, Cutting, StreamSource, cutting};

pub use look::look_at_avro;

/// Inputs of Avro.
pub enum Avro {
    /// Files of known length, cut beforehand.
    Files(Files),
    /// Blocks that come in order; and how many inputs there are, and their stored bytes.
    Stream(Box<StreamSource<Reader>>, StreamInputs),
}

/// Files, looked at.
#[derive(Debug)]
pub struct Files {
    files: Vec<IndexedFile>,
    /// Blocks of all files, in order, some together.
    runs: Vec<RunAt>,
    chunks: Chunks,
}

impl Files {
    /// Blocks that are read together, as they are cut.
    fn block(&self, run: usize) -> Block {
        self.runs[run].block()
    }
}

/// What is known of inputs that come in order.
#[derive(Debug)]
pub struct StreamInputs {
    inputs: coload_input::Inputs,
    bytes: u64,
}

impl Format for Avro {
    type Reading<'a> = AvroReading<'a>;

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
            return Ok(Avro::Files(files));
        } else {
            let named = move |number: usize| Waiting::Named(inputs.at(number));
            StreamSource::new(numbers.map(named), asked, cutting, reader)
        };
        let inputs = StreamInputs {
            bytes: asked.request.inputs.iter().filter_map(|input| input.bytes()).sum(),
            inputs: asked.request.inputs.clone(),
        };
        Ok(Avro::Stream(Box::new(stream), inputs))
    }

    fn read<'a>(&'a self, leg: Leg<'a>) -> AvroReading<'a> {
        AvroReading::new(self, leg)
    }

    fn chunks(&self) -> Option<usize> {
        match self {
            Avro::Files(files) => Some(files.chunks.count()),
            Avro::Stream(..) => None,
        }
    }

    fn bounds(&self) -> Vec<InputBounds> {
        match self {
            Avro::Files(files) => {
                let of = |file: &IndexedFile| InputBounds {
                    start: file.head,
                    lines: 0,
                    end: Some(file.file.bytes()),
                    part: None,
                };
                files.files.iter().map(of).collect()
            }
            Avro::Stream(_, stream) => {
                let of = InputBounds { start: 0, lines: 0, end: None, part: None };
                vec![of; stream.inputs.len()]
            }
        }
    }

    fn stored_bytes(&self) -> u64 {
        match self {
            Avro::Files(files) => files.files.iter().map(|file| file.file.bytes()).sum(),
            Avro::Stream(_, stream) => stream.bytes,
        }
    }

    fn head_bytes(&self) -> u64 {
        match self {
            Avro::Files(files) => files.files.iter().map(|file| file.head).sum(),
            Avro::Stream(..) => 0,
        }
    }

    fn bytes_before(&self, place: Position, records: u64) -> u64 {
        match self {
            Avro::Files(files) => {
                let chunks = (0..place.chunks)
                    .flat_map(|chunk| files.chunks.rows(|run| files.block(run), chunk));
                chunks.map(|rows| rows.span.end - rows.span.start).sum()
            }
            Avro::Stream(..) => records,
        }
    }

    fn check_unchanged(&self) -> Result<()> {
        match self {
            Avro::Files(files) => {
                files.files.iter().try_for_each(|file| file.file.check_unchanged())
            }
            Avro::Stream(_, stream) => {
                stream.inputs.iter().try_for_each(|input| input.check_unchanged())
            }
        }
    }

    fn check_same(&self, before: &Self) -> Result<()> {
        let (Avro::Files(files), Avro::Files(before)) = (self, before) else { return Ok(()) };
        let mut pairs = files.files.iter().zip(&before.files);
        pairs.try_for_each(|(now, before)| now.file.check_same(&before.file))
    }

    fn share(&self, account: &Account) -> f64 {
        let (read, all) = match self {
            Avro::Files(_) => (account.text_bytes(), self.stored_bytes()),
            Avro::Stream(_, stream) => (account.stored_bytes(), stream.bytes),
        };
        if all == 0 { 1.0 } else { (read as f64 / all as f64).min(1.0) }
    }
}

/// The inputs, if all are files on disks that are stored as they are.
fn open_files(asked: Asked<'_>, cutting: Cutting) -> Result<Option<Files>> {
    let mut files = Files { files: Vec::new(), runs: Vec::new(), chunks: Chunks::default() };
    for (number, input) in asked.request.inputs.iter().enumerate() {
        if matches!(input.source, InputSource::Object(_)) {
            return Ok(None);
        }
        let input = TextInput::open(&input)?;
        if !input.is_plain_file() {
            return Ok(None);
        }
        let Raw::File { file, .. } = input.raw else { return Ok(None) };
        let before = files.files.last().map(|last| &last.head_of.fields);
        let indexed = index_file(file, (number, before), asked, cutting, &mut files.runs)?;
        files.files.push(indexed);
    }
    files.chunks = Chunks::new(files.runs.iter().map(RunAt::block), cutting);
    Ok(Some(files))
}
