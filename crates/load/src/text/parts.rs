//! Where the first record of a part of a text starts: after the first newline, unless that is within a field; then the
//! records before it say so.
//!
//! Cost: the first is a read of one line. The other reads all that is before the part, as fast as records are found and
//! not parsed; it is asked for only where something of the part is in doubt, or where a line is to be told.

use coload_input::Inputs;
use coload_source::ChunkParser;
use coload_threads::StepClock;
use coload_types::Result;

use super::chunks::{Piece, Start};
use super::head::Head;
use super::open_inputs::{Looked, OpenInputs};
use super::reader::WindowReader;
use crate::request::LoadRequest;
use crate::starts::{RecordAt, file_of};

/// Bytes of records that are passed over at once.
const STEP_BYTES: u64 = 64 << 20;
/// Bytes that are looked through for newlines at once.
const NEWLINES_BYTES: usize = 1 << 20;

/// An input of a request, looked at.
fn open(request: &LoadRequest, number: usize) -> Result<OpenInputs> {
    let input = request.inputs.at(number);
    let fields = request.fields_of_inputs().of(number).count;
    let head = Head::new(request).with_fields(fields);
    let file = file_of(request, number)?;
    let mut inputs = OpenInputs::new(&Inputs::from(vec![input]), head.line_end());
    inputs.push(Looked::at(file, &[], &head)?);
    Ok(inputs)
}

/// The byte after the first newline before `from` or later.
///
/// # Errors
/// `Unavailable` when the input cannot be read.
pub fn first_record_behind(request: &LoadRequest, number: usize, from: u64) -> Result<u64> {
    let inputs = open(request, number)?;
    let piece = Piece { file: 0, start: from, end: from, start_is: Start::Speculated };
    WindowReader::of_frame().first_record(&inputs.at(0), &piece, &StepClock::default())
}

/// The first record that starts at `from` or later, as those before it say; `known` is one that starts before, if some is
/// known.
///
/// # Errors
/// `Unavailable` when the input cannot be read, `Limit` when a record is too long.
pub fn first_record_at(
    request: &LoadRequest,
    number: usize,
    from: u64,
    known: Option<RecordAt>,
) -> Result<RecordAt> {
    let inputs = open(request, number)?;
    let input = &inputs.at(0);
    let first = RecordAt { byte: input.data_start, lines: input.data_line };
    let mut at = known.unwrap_or(first);
    let fields = request.fields_of_inputs().of(number).count;
    let rules = request.dialect.record_rules(fields);
    if rules.json.is_some() {
        // No line ends within a record.
        let start = first_record_behind(request, number, from.max(1))?.max(at.byte);
        at.lines += newlines(&inputs, at.byte..start)?;
        return Ok(RecordAt { byte: start, ..at });
    }
    let mut reader = WindowReader::of_frame();
    while at.byte < from {
        let end = from.min(at.byte + STEP_BYTES);
        let piece = Piece { file: 0, start: at.byte, end, start_is: Start::Record };
        let mut parser = ChunkParser::new(rules.clone(), Vec::new(), || 0);
        let clock = StepClock::default();
        let span = reader.parse_piece(input, &piece, &mut parser, &clock, &|_, _| Ok(()))?;
        if span.end == at.byte {
            break;
        }
        at = RecordAt { byte: span.end, lines: at.lines + span.lines };
    }
    Ok(at)
}

fn newlines(inputs: &OpenInputs, bytes: std::ops::Range<u64>) -> Result<u64> {
    let input = inputs.at(0);
    let mut buffer = vec![0; NEWLINES_BYTES];
    let (mut at, mut count) = (bytes.start, 0);
    while at < bytes.end {
        let wanted = buffer.len().min((bytes.end - at) as usize);
        let read = input.read_at(&mut buffer[..wanted], at)?;
        if read == 0 {
            break;
        }
        count += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64;
        at += read as u64;
    }
    Ok(count)
}
