//! Batches of Arrow, as blocks of rows.

use std::ops::Range;
use std::sync::{Arc, atomic::AtomicUsize};

use coload_arrow::{Batch, BatchLayout, Body, Buffers, Encoding, Fault, SliceValues, read_slice};
use coload_input::{InputFile, RawFile};
use coload_threads::Step;
use coload_types::Result;

use super::cache::Dictionaries;
use super::files::{ArrowFile, BatchAt, batch_at, index_file};
use super::input::{FieldsRead, fault};
use super::stream::{Reader, StreamBatch};
use crate::format::PieceSpan;
use crate::grain::Grain;
use crate::typed::{
    Asked, Block, BlockFile, BlockForm, ChunkRead, Column, Cutting, Dictionary, FileBody, Rows,
    StreamRows, batch_bytes_max, lacking_rows,
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

    fn fields_of_file(file: &ArrowFile) -> &FieldsRead {
        &file.fields
    }

    fn fields_of_block(block: &StreamBatch) -> &FieldsRead {
        &block.fields
    }

    /// Columns with dictionaries or runs have codes, and those that have one value in each row.
    fn is_coded(fields: &FieldsRead, column: usize, _asked: Asked<'_>, _grain: &Grain) -> bool {
        let of_field = |field: usize| fields.schema.fields[field].encoding;
        fields.of_column[column].is_none_or(|field| of_field(field) != Encoding::Plain)
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
            batch.dictionaries.get(&id).cloned().ok_or_else(|| {
                let text = format!(
                    "dictionary {id} does not come before the rows that need it (a file may have it later: \
                     decompress it, and load it as a file)"
                );
                fault(asked, batch.file, batch.start, Fault::Damaged(text))
            })
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
    let bytes = match batch.codec {
        None => Ok(batch.body_bytes.min(span.end - span.start)),
        // All of it is decompressed, whatever rows are read.
        Some(_) => buffers.total_bytes(),
    };
    read.room.take(bytes.map_err(|error| fault(asked, file, start, error))?);
    let columns = read.clock.time(Step::Read, || {
        let layout = BatchLayout::new(&fields.schema.fields, batch)
            .map_err(|error| fault(asked, file, start, error))?;
        let column = |(of_table, index): (&coload_types::Column, &Option<usize>)| {
            let Some(index) = *index else {
                return Ok(lacking_rows(of_table, (rows.end - rows.start) as usize));
            };
            let field = &fields.schema.fields[index];
            let slice = read_slice(field, &layout.fields[index], &buffers, rows.clone())
                .map_err(|error| fault(asked, file, start, error))?;
            let found = match &slice.values {
                SliceValues::Keys(_, id) => Some(dictionary(*id)?),
                _ => None,
            };
            let column = Column { values: field.values.clone(), slice, dictionary: found };
            match column.has_all_keys() {
                true => Ok(column),
                false => {
                    let text = format!("field {}: keys that its dictionary has not", field.name);
                    Err(fault(asked, file, start, Fault::Damaged(text)))
                }
            }
        };
        let columns = asked.request.read_schema().columns();
        columns.iter().zip(&fields.of_column).map(column).collect::<Result<Vec<_>>>()
    })?;
    read.add_rows(columns, rows.end - rows.start, (file, start), span)
}
