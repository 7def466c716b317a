//! Blocks of Avro, as blocks of rows.

use std::ops::Range;
use std::sync::{Arc, atomic::AtomicUsize};

use coload_arrow::Fault;
use coload_avro::{BlockHead, Decompressor, MARKER_BYTES, read_rows};
use coload_input::{InputFile, InputSource, RawFile};
use coload_threads::Step;
use coload_types::{DataType, Result};

use super::files::{RunAt, index_file};
use super::input::{FieldsRead, HeadRead, cut_off, fault, wrong_marker};
use super::stream::{Reader, StreamBlock};
use crate::format::PieceSpan;
use crate::grain::Grain;
use crate::typed::{
    Asked, Block, BlockFile, BlockForm, ChunkRead, Column, Cutting, Rows, StreamRows,
    batch_bytes_max, lacking_rows, read_at,
};

/// Bytes of a row of a column that an input lacks.
const LACKING_ROW_BYTES: u64 = 8;

/// The form of Avro.
#[derive(Debug)]
pub struct AvroForm;

/// A block to be read, wherever it is.
struct Piece<'a> {
    file: usize,
    /// Its number in the input, if it is known, and where it starts.
    number: Option<u64>,
    start: u64,
    head_of: &'a HeadRead,
    rows: u64,
    stored: &'a [u8],
    span: Range<u64>,
}

impl BlockForm for AvroForm {
    type Fields = FieldsRead;
    type File = HeadRead;
    type Place = RunAt;
    type Reader = Reader;
    type Kept = ();
    type Scratch = Decompressor;

    fn is_indexed(input: &InputFile) -> bool {
        !matches!(input.source, InputSource::Object(_))
    }

    fn index(
        file: Arc<RawFile>,
        number: usize,
        before: Option<&HeadRead>,
        asked: Asked<'_>,
        cutting: Cutting,
        places: &mut Vec<RunAt>,
    ) -> Result<BlockFile<HeadRead>> {
        let before = before.map(|before| &before.fields);
        index_file(file, (number, before), asked, cutting, places)
    }

    fn reader(asked: Asked<'_>, held: &Arc<AtomicUsize>) -> Reader {
        Reader::new(asked, held)
    }

    fn file_of(place: &RunAt) -> usize {
        place.file as usize
    }

    fn block_of(place: &RunAt) -> Block {
        place.block()
    }

    fn fields_of_file(file: &HeadRead) -> &FieldsRead {
        &file.fields
    }

    fn fields_of_block(block: &StreamBlock) -> &FieldsRead {
        &block.head_of.fields
    }

    /// Truths and enums of few symbols have codes, and columns that have one value in each row.
    fn is_coded(fields: &FieldsRead, column: usize, asked: Asked<'_>, grain: &Grain) -> bool {
        let limit = grain.dictionary_limit();
        let is_few = fields.dictionaries[column]
            .as_deref()
            .is_some_and(|dictionary| limit.holds(dictionary.len(), dictionary.bytes()));
        let is_truth = asked.request.read_schema().columns()[column].data_type == DataType::Boolean;
        is_truth || is_few || fields.of_column[column].is_none()
    }

    fn read_place(
        file: &BlockFile<HeadRead>,
        run: &RunAt,
        rows: Rows,
        read: &mut ChunkRead<'_, Self>,
    ) -> Result<()> {
        read.room.take(run.bytes);
        let bytes =
            read.clock.time(Step::Read, || read_at(&file.file, run.start, run.bytes as usize))?;
        let (mut at, mut number) = (0, run.first_block);
        let (mut read_rows, wanted) = (0, rows.rows.end - rows.rows.start);
        // Blocks without rows are counted where all rows are wanted.
        while at < bytes.len() && (read_rows < wanted || wanted == run.rows) {
            let start = run.start + at as u64;
            let spot = (run.file as usize, start);
            let (head, stored) = block_at(&bytes[at..], &file.is)
                .map_err(|error| fault(read.asked, spot, number, error))?;
            at += head.total_bytes() as usize;
            read_rows += head.rows;
            let piece = Piece {
                file: run.file as usize,
                number,
                start,
                head_of: &file.is,
                rows: head.rows,
                stored,
                span: start..run.start + at as u64,
            };
            let span = read_piece(piece, read)?;
            read.done(span, head.total_bytes())?;
            number = number.map(|number| number + 1);
        }
        Ok(())
    }

    fn read_streamed(
        StreamRows { block, span, .. }: &StreamRows<StreamBlock>,
        read: &mut ChunkRead<'_, Self>,
    ) -> Result<PieceSpan> {
        let piece = Piece {
            file: block.file,
            number: Some(block.number),
            start: block.start,
            head_of: &block.head_of,
            rows: block.rows,
            stored: &block.stored,
            span: span.clone(),
        };
        read_piece(piece, read)
    }
}

/// Reads a block.
fn read_piece(piece: Piece<'_>, read: &mut ChunkRead<'_, AvroForm>) -> Result<PieceSpan> {
    let asked = read.asked;
    let bytes_max = batch_bytes_max(asked);
    let HeadRead { fields, codec, .. } = piece.head_of;
    // Rows of columns that are not there take memory, too.
    let lacking = fields.of_column.iter().filter(|field| field.is_none()).count() as u64;
    let lacking_bytes = piece.rows.saturating_mul(lacking * LACKING_ROW_BYTES);
    let left = bytes_max.saturating_sub(lacking_bytes);
    let columns = read.clock.time(Step::Read, || {
        let raw = read.scratch.decompress(*codec, piece.stored, bytes_max)?;
        read.room.take(raw.len() as u64);
        read_rows(&fields.layout, &fields.is_read, (raw, piece.rows), left)
    });
    let mut columns =
        columns.map_err(|error| fault(asked, (piece.file, piece.start), piece.number, error))?;
    let mut of_columns: Vec<Column<'_>> = Vec::with_capacity(fields.of_column.len());
    let of_table = asked.request.read_schema().columns();
    let of_fields = of_table.iter().zip(&fields.of_column).zip(&fields.dictionaries);
    for ((column, field), dictionary) in of_fields {
        let Some(number) = *field else {
            of_columns.push(lacking_rows(column, piece.rows as usize));
            continue;
        };
        let (values, slice) = match columns.get_mut(number).and_then(Option::take) {
            Some(read) => (read.values, read.slice),
            // A field may be several columns.
            None => {
                let same = fields.of_column.iter().position(|other| other == field);
                let Some(same) = same.and_then(|same| of_columns.get(same)) else { continue };
                (same.values.clone(), same.slice.clone())
            }
        };
        of_columns.push(Column { values, slice, dictionary: dictionary.clone() });
    }
    read.add_rows(of_columns, piece.rows, (piece.file, piece.start), piece.span)
}

/// The block at the start of some bytes: its head, and what is stored.
fn block_at<'b>(
    bytes: &'b [u8],
    head_of: &HeadRead,
) -> std::result::Result<(BlockHead, &'b [u8]), Fault> {
    let head = BlockHead::decode(bytes)?.ok_or_else(cut_off)?;
    let behind = usize::try_from(head.total_bytes()).ok().filter(|behind| *behind <= bytes.len());
    let behind = behind.ok_or_else(cut_off)?;
    let (stored, marker) = bytes[head.head_bytes..behind].split_at(head.bytes as usize);
    match marker == &head_of.marker[..MARKER_BYTES] {
        true => Ok((head, stored)),
        false => Err(wrong_marker()),
    }
}
