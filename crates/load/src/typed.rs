//! Inputs whose records have types already: rows of columns become fragments, or rejects.
//!
//! ```text
//!   batch of Arrow          \  rows of its columns, checked -> values of the table's columns, or codes -> fragment
//!   row group of Parquet    |                               -> rejects
//!   block of Avro           /
//! ```
//!
//! What is here knows rows, columns and bytes; where they come from is a matter of their format.

mod blocks;
mod chunks;
mod column;
mod convert;
mod dictionary;
mod input;
mod lacking;
mod look;
mod parser;
mod plan;
mod stream;
mod worker;

pub use blocks::{BlockFile, BlockForm, BlockInputs, ChunkRead};
pub use chunks::{Block, Chunks, Cutting, Rows};
pub use column::ColumnRows;
pub use input::{Asked, BATCH_SHARE, FileBody, batch_bytes_max, fields_of_columns, read_at};
pub use lacking::lacking_rows;
pub use look::{TypedField, TypedInput, TypedKind};
pub use parser::{RowsDone, RowsRead, TypedParser};
pub use plan::{TypedPlans, first_rows, plan_of};
pub use stream::{
    BlockReader, Held, HeldBlock, Step, StreamChunks, StreamRows, StreamSource, StreamTurn,
};
pub use worker::{Gate, TypedWorker};

use std::ops::Range;
use std::sync::Arc;

pub use coload_arrow::{Column, Dictionary};
use coload_source::Mended;
use coload_transform::DistinctSketch;
use coload_types::{Physical, Result};

use crate::format::{Leg, PieceSpan, ReadTo};
use crate::grain::Grain;
use crate::partition::PartitionPlan;

/// What decides how blocks of rows are cut.
pub fn cutting(asked: Asked<'_>) -> Cutting {
    let grain = Grain::of(asked.request, asked.resources);
    let held = |physical: Physical| match physical {
        Physical::Int => 8,
        Physical::Wide => 16,
        Physical::Bytes => 4,
    };
    let columns = asked.request.read_schema().columns().iter();
    let row_bytes: u64 = columns.map(|column| held(column.data_type.physical())).sum();
    Cutting {
        chunk_bytes: grain.chunk_bytes as u64,
        row_bytes: row_bytes.max(1),
        fragments_per_partition: grain.fragments_per_partition,
        sample_bytes: asked.request.sample_bytes.unwrap_or(u64::MAX),
    }
}

/// A parser for a partition.
pub fn parser_of(leg: &Leg<'_>, grain: &Grain, plan: &PartitionPlan) -> TypedParser {
    let read = leg.request.read_schema().columns();
    let columns = read.iter().zip(&plan.read).enumerate().map(|(number, (column, plan))| {
        let distinct: Option<Arc<DistinctSketch>> = leg.distinct.get(number).cloned();
        ColumnRows::new(column.data_type, plan.clone(), grain.dictionary_limit(), distinct)
    });
    TypedParser::new(columns.collect(), read.iter().map(|column| column.nullable).collect())
}

/// Adds rows to the fragment of a parser: what became of these records, which stand at `span` of an input.
///
/// # Errors
/// `Limit` when their values take more than they may.
pub fn add_rows(
    parser: &mut TypedParser,
    read: &RowsRead<'_>,
    file: usize,
    span: Range<u64>,
) -> Result<PieceSpan> {
    let RowsDone { kept, rejects } = parser.add(read)?;
    Ok(PieceSpan {
        file,
        start: span.start,
        end: span.end,
        rows: kept as u64,
        filtered: 0,
        lines: read.rows as u64,
        rejects,
        mended: Mended::default(),
        read_to: ReadTo::End,
    })
}

/// Adds a span to those of a chunk: to the last one, if it goes on there.
pub fn add_span(spans: &mut Vec<PieceSpan>, mut span: PieceSpan) {
    match spans.last_mut() {
        Some(last) if last.file == span.file && last.end == span.start => {
            span.rejects.iter_mut().for_each(|reject| reject.line += last.lines);
            last.rejects.append(&mut span.rejects);
            (last.end, last.rows) = (span.end, last.rows + span.rows);
            last.lines += span.lines;
            last.filtered += span.filtered;
        }
        _ => spans.push(span),
    }
}
