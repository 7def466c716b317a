//! Reads the start of a partition to plan its columns.

use coload_source::{
    ColumnRules, LastWindow, RecordRules, Sample, TEXT_PADDING, Window, first_line,
};
use coload_types::Result;

use crate::chunks::{Piece, Start};
use crate::measure::Measured;
use crate::open_inputs::OpenInputs;
use crate::partition::PartitionPlan;
use crate::pipeline::plan_columns;

/// Bytes looked at.
const SAMPLE_BYTES: usize = 2 << 20;

/// Plans the columns of a partition from the start of its first chunk.
///
/// # Errors
/// `Unavailable` when the input cannot be read.
pub fn sample_partition(
    inputs: &OpenInputs,
    chunk: &[Piece],
    rules: RecordRules,
    columns: &[ColumnRules],
    encoders: usize,
    measure: Measure<'_>,
) -> Result<PartitionPlan> {
    let mut text = Vec::new();
    for piece in chunk {
        let length = SAMPLE_BYTES
            .saturating_sub(text.len())
            .min(piece.end.saturating_sub(piece.start) as usize);
        if length == 0 {
            break;
        }
        let start = text.len();
        text.resize(start + length, 0);
        let input = inputs.at(piece.file);
        let read = input.read_at(&mut text[start..], piece.start)?;
        text.truncate(start + read);
        if piece.start_is == Start::Speculated
            && let Some(first) = first_line(&text, false, &rules)
        {
            text.drain(..first);
        }
        if text.last() != Some(&b'\n') && piece.start + read as u64 == input.bytes {
            text.push(b'\n');
        }
    }
    Ok(sample_bytes(&text, rules, columns, encoders, measure))
}

/// Plans the columns from text that starts with a record.
pub fn sample_bytes(
    bytes: &[u8],
    rules: RecordRules,
    columns: &[ColumnRules],
    encoders: usize,
    measure: Measure<'_>,
) -> PartitionPlan {
    let bytes = &bytes[..bytes.len().min(SAMPLE_BYTES)];
    let mut text = Vec::with_capacity(bytes.len() + 1 + TEXT_PADDING);
    text.push(b'\n');
    text.extend_from_slice(bytes);
    text.extend([0; TEXT_PADDING]);
    let window = Window {
        text: &text,
        start: 1,
        end: 1 + bytes.len(),
        offset: 0,
        limit: usize::MAX,
        last: LastWindow::No,
    };
    let sample = Sample::new(&window, rules);
    let rows = sample.rows();
    let plans = plan_columns(&rows, columns, encoders);
    let costs = match measure {
        Measure::No => Vec::new(),
        Measure::Partition { bytes: partition_bytes, measured } => {
            let partition_rows = rows.count as f64 * partition_bytes / bytes.len().max(1) as f64;
            measured.costs(&rows, columns, &plans, partition_rows)
        }
    };
    PartitionPlan::new(plans, costs)
}

/// Whether the costs of columns are measured.
#[derive(Debug, Clone, Copy)]
pub enum Measure<'a> {
    /// Nobody asks for them.
    No,
    /// They are, for partitions of so many bytes of text.
    Partition {
        /// Bytes of text.
        bytes: f64,
        /// What was measured of partitions before.
        measured: &'a Measured,
    },
}
