//! Batches of Arrow, as blocks of rows.

use std::ops::Range;
use std::sync::{Arc, atomic::AtomicUsize};

use coload_arrow::{Batch, BatchLayout, Body, Buffers, Encoding, Fault, read_column};
use coload_input::{InputFile, RawFile};
use coload_threads::Step;
use coload_types::Result;

use super::cache::Dictionaries;
use super::files::{ArrowFile, BatchAt, batch_at, index_file};
use super::input::{FieldsRead, fault, no_dictionary};
use super::stream::{Reader, StreamBatch};
use crate::file_parts::{FileParts, PartKind};
use crate::format::PieceSpan;
use crate::grain::Grain;
use crate::typed::{
    Asked, Block, BlockFile, BlockForm, ChunkRead, Cutting, Dictionary, FileBody, Rows, StreamRows,
    batch_bytes_max, lacking_rows,
};

/// The form of Arrow IPC.
#[derive(Debug)]
pub struct ArrowForm;

/// Rows to be read, wherever their batch is.
struct Piece<'a> {
    file: usize,
    /// Where the message starts.
    start: u64,
    fields: &'a FieldsRead,
    batch: &'a Batch,
    body: &'a dyn Body,
    rows: Range<u64>,
    span: Range<u64>,
}

impl BlockForm for ArrowForm {
    type Fields = FieldsRead;
    type File = ArrowFile;
    type Place = BatchAt;
    type Reader = Reader;
    type Kept = Dictionaries;
    type Scratch = ();

    fn is_indexed(_input: &InputFile) -> bool {
        true
    }

    fn index(
        file: Arc<RawFile>,
        number: usize,
        before: Option<&ArrowFile>,
        asked: Asked<'_>,
        _cutting: Cutting,
        places: &mut Vec<BatchAt>,
    ) -> Result<BlockFile<ArrowFile>> {
        let mut indexed = index_file(file, number, asked, places)?;
        // Inputs of a load mostly have the same fields.
        if let Some(before) = before.filter(|before| before.fields == indexed.is.fields) {
            indexed.is.fields = Arc::clone(&before.fields);
        }
        Ok(indexed)
    }

    fn reader(asked: Asked<'_>, held: &Arc<AtomicUsize>) -> Reader {
        Reader::new(asked, held)
    }

    fn file_of(place: &BatchAt) -> usize {
        place.file as usize
    }

    fn block_of(place: &BatchAt) -> Block {
        place.block()
    }

    fn file_parts(places: &[BatchAt]) -> FileParts {
        let starts = places.iter().map(|at| (at.file, at.place.start, at.number));
        FileParts::new(PartKind::RecordBatch, starts)
    }

    fn fields_of_file(file: &ArrowFile) -> &FieldsRead {
        &file.fields
    }

    fn fields_of_block(block: &StreamBatch) -> &FieldsRead {
        &block.fields
    }

    /// Columns with dictionaries or runs have codes, and those that have one value in each row.
    fn is_coded(fields: &FieldsRead, column: usize, _asked: Asked<'_>, _grain: &Grain) -> bool {
        fields.column(column).is_none_or(|column| column.encoding != Encoding::Plain)
    }

    fn read_place(
        file: &BlockFile<ArrowFile>,
        at: &BatchAt,
        rows: Rows,
        read: &mut ChunkRead<'_, Self>,
    ) -> Result<()> {
        let (asked, number, start) = (read.asked, at.file as usize, at.place.start);
        let batch = read.clock.time(Step::Read, || batch_at(&file.file, &at.place));
        let batch = batch.map_err(|error| fault(asked, number, start, error))?;
        let body = FileBody { file: &file.file, start: at.place.body() };
        let bytes = rows.span.end - rows.span.start;
        let piece = Piece {
            file: number,
            start,
            fields: &file.is.fields,
            batch: &batch,
            body: &body,
            rows: rows.rows,
            span: rows.span,
        };
        let kept = read.kept;
        let span = read_piece(piece, &|id| kept.get(file, at, id, asked), read)?;
        read.done(span, bytes)
    }

    fn read_streamed(
        StreamRows { block: batch, rows, span }: &StreamRows<StreamBatch>,
        read: &mut ChunkRead<'_, Self>,
    ) -> Result<PieceSpan> {
        let piece = Piece {
            file: batch.file,
            start: batch.start,
            fields: &batch.fields,
            batch: &batch.batch,
            body: &batch.body,
            rows: rows.clone(),
            span: span.clone(),
        };
        let asked = read.asked;
        let dictionary = |id| {
            let found = batch.dictionaries.get(&id).cloned();
            found.ok_or_else(|| fault(asked, batch.file, batch.start, no_dictionary(id)))
        };
        read_piece(piece, &dictionary, read)
    }
}

/// Reads rows of a batch.
fn read_piece(
    piece: Piece<'_>,
    dictionary: &dyn Fn(i64) -> Result<Arc<Dictionary>>,
    read: &mut ChunkRead<'_, ArrowForm>,
) -> Result<PieceSpan> {
    let asked = read.asked;
    let Piece { file, start, fields, batch, body, rows, span } = piece;
    let buffers = Buffers::new(batch, body, batch_bytes_max(asked));
    let told = |error: Fault| fault(asked, file, start, error);
    let bytes = match batch.codec {
        None => batch.body_bytes.min(span.end - span.start),
        // All of it is decompressed, whatever rows are read.
        Some(_) => buffers.total_bytes().map_err(told)?,
    };
    let share = (rows.end - rows.start, batch.rows.max(1));
    let texts = fields.written_bytes(&buffers, &|_| 0).map_err(told)?;
    read.room.take(bytes.saturating_add(part_of_bytes(texts, share)));
    let columns = read.clock.time(Step::Read, || {
        let layout = BatchLayout::new(&fields.schema.fields, batch).map_err(told)?;
        let dictionaries = |id| dictionary(id).map_err(Fault::Read);
        let count = (rows.end - rows.start) as usize;
        let column = |(of_table, number): (&coload_types::Column, usize)| {
            let Some(column) = fields.column(number) else {
                return Ok(lacking_rows(of_table, count));
            };
            let of = (&fields.schema, column);
            read_column(of, &layout, &buffers, rows.clone(), &dictionaries).map_err(told)
        };
        let columns = asked.request.read_schema().columns();
        columns.iter().zip(0..).map(column).collect::<Result<Vec<_>>>()
    })?;
    read.add_rows(columns, rows.end - rows.start, (file, start), span)
}

/// The share of bytes that some of the rows have.
fn part_of_bytes(bytes: u64, (rows, of): (u64, u64)) -> u64 {
    (u128::from(bytes) * u128::from(rows) / u128::from(of)) as u64
}
