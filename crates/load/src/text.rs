//! Text in all its dialects: files cut into chunks beforehand, and streams of which chunks are taken one by one.

mod chunks;
mod columns;
mod cut;
mod head;
mod measure;
mod open_inputs;
mod parts;
mod reader;
mod reading;
mod sample;
mod stream;

use std::ops::Range;
use std::sync::Arc;

use chunks::{ChunkPieces, Piece, Start, cut_files, keep_first};
use coload_input::{Raw, RawFile, TextInput, Waiting};
use coload_threads::in_order;
use coload_types::{Error, Result};
use coload_wire::PartIs;
use head::Head;
use open_inputs::{Extent, Looked, OpenInput, OpenInputs};
use reading::TextReading;
use stream::StreamSource;

use crate::account::Account;
use crate::format::{Format, InputBounds, Leg, Position, Reached};
use crate::grain::Grain;
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::spool::Spool;

pub use columns::column_rules;
pub use head::has_documents;
pub use open_inputs::OPEN_FILE_BYTES;
pub use parts::{first_record_at, first_record_behind};
pub use reader::{TextPiece, WindowReader};
pub use sample::{Measure, sample_bytes};

/// Bytes behind a part in which its last record mostly ends.
const BEHIND_PART_BYTES: u64 = 64 << 10;

/// Inputs of text.
pub enum Text {
    /// Files of known length, cut beforehand.
    Files {
        /// The files.
        inputs: OpenInputs,
        /// Their pieces, some together.
        chunks: Vec<ChunkPieces>,
    },
    /// Text that comes in order: streams, and what must be decompressed.
    Stream(Box<StreamSource>),
}

impl Format for Text {
    type Reading<'a> = TextReading<'a>;

    fn open(
        request: &LoadRequest,
        resources: &Resources,
        spool: Option<&Arc<Spool>>,
    ) -> Result<Self> {
        let head = Head::new(request);
        let inputs = request.inputs.clone();
        let numbers = 0..inputs.len();
        let stream = if let Some(open) = request.streams.clone() {
            let stream = move |number: usize| {
                let name = inputs.name(number);
                Waiting::Stream { name, reader: open(number) }
            };
            StreamSource::new(numbers.map(stream), request, resources)
        } else if let Some(opened) = open_once(request, spool)? {
            StreamSource::new([opened], request, resources)
        } else if let Some(inputs) = open_files(request, resources, &head)? {
            return Ok(Text::of_files(inputs, request, resources));
        } else {
            let named = move |number: usize| Waiting::Named(inputs.at(number));
            StreamSource::new(numbers.map(named), request, resources)
        };
        Ok(Text::Stream(Box::new(stream)))
    }

    fn read<'a>(&'a self, leg: Leg<'a>) -> TextReading<'a> {
        TextReading::new(self, leg)
    }

    fn chunks(&self) -> Option<usize> {
        match self {
            Text::Files { chunks, .. } => Some(chunks.len()),
            Text::Stream(_) => None,
        }
    }

    fn can_begin_behind(&self) -> bool {
        match self {
            Text::Files { .. } => false,
            Text::Stream(stream) => stream.can_begin_behind(),
        }
    }

    fn begin_behind(&self, reached: Reached) {
        if let Text::Stream(stream) = self {
            stream.begin_behind(reached);
        }
    }

    fn bounds(&self) -> Vec<InputBounds> {
        match self {
            Text::Files { inputs, .. } => {
                let of = |i: OpenInput<'_>| InputBounds {
                    start: i.data_start,
                    lines: i.data_line,
                    // Of another part the last record may go on behind it.
                    end: (i.extent == Extent::Whole || i.to == i.bytes).then_some(i.bytes),
                    part: (i.extent == Extent::Part).then_some(i.to),
                };
                inputs.iter().map(of).collect()
            }
            Text::Stream(stream) => {
                let of = InputBounds { start: 0, lines: 0, end: None, part: None };
                vec![of; stream.inputs.len()]
            }
        }
    }

    fn stored_bytes(&self) -> u64 {
        match self {
            Text::Files { inputs, .. } => inputs.bytes(),
            Text::Stream(stream) => stream.bytes,
        }
    }

    fn head_bytes(&self) -> u64 {
        match self {
            Text::Files { inputs, .. } => {
                let whole = inputs.iter().filter(|input| input.extent == Extent::Whole);
                whole.map(|input| input.data_start).sum()
            }
            Text::Stream(_) => 0,
        }
    }

    fn bytes_before(&self, place: Position, records: u64) -> u64 {
        match self {
            Text::Files { inputs, chunks } => {
                chunks[..place.chunks].iter().map(|chunk| inputs.chunk_bytes(chunk)).sum()
            }
            Text::Stream(_) => records,
        }
    }

    fn check_unchanged(&self) -> Result<()> {
        match self {
            Text::Files { inputs, .. } => inputs.check_unchanged(),
            Text::Stream(stream) => {
                stream.inputs.iter().try_for_each(|input| input.check_unchanged())
            }
        }
    }

    fn check_same(&self, before: &Self) -> Result<()> {
        match (self, before) {
            (Text::Files { inputs, .. }, Text::Files { inputs: before, .. }) => {
                inputs.check_same(before)
            }
            _ => Ok(()),
        }
    }

    fn share(&self, account: &Account) -> f64 {
        let (read, all) = match self {
            Text::Files { inputs, .. } => (account.text_bytes() as f64, inputs.bytes()),
            Text::Stream(stream) => (account.stored_bytes() as f64, stream.bytes),
        };
        if all == 0 { 1.0 } else { (read / all as f64).min(1.0) }
    }
}

impl Text {
    fn of_files(inputs: OpenInputs, request: &LoadRequest, resources: &Resources) -> Self {
        let mut chunks = cut_files(&inputs, Grain::of(request, resources).chunk_bytes as u64);
        if let Some(sample_bytes) = request.sample_bytes {
            keep_first(&inputs, &mut chunks, sample_bytes);
        }
        Text::Files { inputs, chunks }
    }
}

/// The pieces of a chunk after `from`, by its number from there on.
fn pieces_of(
    inputs: &OpenInputs,
    chunks: &[ChunkPieces],
    from: Position,
    chunk: usize,
) -> Vec<Piece> {
    let mut pieces = inputs.pieces(&chunks[from.chunks + chunk]);
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

/// An input that is read once; `None` when all are files. It may have been opened before.
pub fn open_once(request: &LoadRequest, spool: Option<&Arc<Spool>>) -> Result<Option<TextInput>> {
    let inputs = &request.inputs;
    let Some(once) = inputs.read_once() else { return Ok(None) };
    if inputs.len() == 1 {
        let mut opened = match &request.stream {
            Some(stream) => stream.take()?,
            None => TextInput::open(&once)?,
        };
        if let Some(spool) = spool
            && let Raw::Stream(stream) = opened.raw
        {
            opened.raw = Raw::Stream(spool.keep(stream));
        }
        return Ok(Some(opened));
    }
    Err(Error::Invalid(format!(
        "{}: standard input or a pipe is loaded alone, not together with other inputs",
        once.name
    )))
}

/// Inputs that one thread looks at in turn.
const STEP_INPUTS: usize = 64;

/// Why inputs are not read as files.
enum NoFiles {
    /// One can only be read in order.
    InOrder,
    Failed(Error),
}

impl From<Error> for NoFiles {
    fn from(error: Error) -> Self {
        NoFiles::Failed(error)
    }
}

/// The inputs, if all are text as it is.
fn open_files(
    request: &LoadRequest,
    resources: &Resources,
    head: &Head,
) -> Result<Option<OpenInputs>> {
    // Documents that are longer than a chunk are cut where one comes after the other.
    let bytes_max = match head.has_documents() {
        true => Grain::of(request, resources).chunk_bytes as u64,
        false => u64::MAX,
    };
    let mut files = OpenInputs::new(&request.inputs, head.line_end());
    let fields = request.fields_of_inputs();
    let look = |number: usize| {
        let TextInput { raw, head: first, .. } = {
            let text = request.inputs.open(number)?;
            if !(text.is_plain_file() && request.dialect.encoding.is_utf8(&text.start()?)) {
                return Err(NoFiles::InOrder);
            }
            text
        };
        let Raw::File { file, .. } = raw else { return Err(NoFiles::InOrder) };
        if file.bytes() > bytes_max && *request.part(number) == PartIs::Whole {
            return Err(NoFiles::InOrder);
        }
        Ok(Looked::at(file, &first, &head.clone().with_fields(fields.of(number).count))?)
    };
    let count = request.inputs.len();
    let step = |step: usize| {
        let numbers = step * STEP_INPUTS..count.min((step + 1) * STEP_INPUTS);
        numbers.map(look).collect::<std::result::Result<Vec<Looked>, NoFiles>>()
    };
    let mut parts: Vec<(Arc<RawFile>, Range<u64>)> = Vec::new();
    let mut number = 0;
    let looked = in_order(count.div_ceil(STEP_INPUTS), resources.threads, step, |_, looked| {
        for one in looked {
            let part_file = Arc::clone(one.file());
            files.push(one);
            if let PartIs::Bytes { range, start } = request.part(number) {
                // The first part has what stands before the first record.
                let first = files.at(number).data_start;
                let start = if range.start == 0 { first.max(*start) } else { *start };
                files.take_part(start, range.end);
                parts.push((part_file, start..range.end.saturating_add(BEHIND_PART_BYTES)));
            }
            number += 1;
        }
        Ok(())
    });
    match looked {
        Ok(()) => {}
        Err(NoFiles::InOrder) => return Ok(None),
        Err(NoFiles::Failed(error)) => return Err(error),
    }
    // Parts of one file follow each other.
    for of_file in parts.chunk_by(|(a, _), (b, _)| a.name() == b.name()) {
        let ranges = || of_file.iter().map(|(_, range)| range.clone());
        of_file.iter().for_each(|(file, _)| file.will_read(ranges()));
    }
    Ok(Some(files))
}
