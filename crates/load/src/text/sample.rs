//! Reads the start of a partition to plan its columns.

use coload_source::{
    ColumnRules, LastWindow, RecordRules, SAMPLE_BYTES, SAMPLE_BYTES_MOST, SAMPLE_ROWS, Sample,
    TEXT_PADDING, Window, first_line,
};
use coload_types::Result;

use super::chunks::{Piece, Start};
use super::columns::plan_columns;
use super::measure::Measured;
use super::open_inputs::OpenInputs;
use crate::grain::ColumnRoom;
use crate::partition::{KnownSymbols, PartitionPlan};

/// Text that tells how long lines are.
const FIRST_BYTES: usize = 256 << 10;

/// Plans the columns of a partition from the start of its first chunk.
///
/// # Errors
/// `Unavailable` when the input cannot be read.
pub fn sample_partition(
    inputs: &OpenInputs,
    chunk: &[Piece],
    rules: RecordRules,
    columns: &[ColumnRules],
    of: (ColumnRoom, &KnownSymbols),
    measure: Measure<'_>,
) -> Result<PartitionPlan> {
    let mut text = Vec::new();
    let (mut wanted, mut is_measured) = (FIRST_BYTES, false);
    for piece in chunk {
        let first = text.len();
        let mut at = piece.start;
        loop {
            if text.len() >= wanted && !is_measured {
                (wanted, is_measured) = (wanted_bytes(&text, &rules, measure), true);
            }
            let length =
                wanted.saturating_sub(text.len()).min(piece.end.saturating_sub(at) as usize);
            if length == 0 {
                break;
            }
            let before = text.len();
            text.resize(before + length, 0);
            let read = inputs.at(piece.file).read_at(&mut text[before..], at)?;
            text.truncate(before + read);
            at += read as u64;
            if read < length {
                break;
            }
        }
        if at == piece.start {
            break;
        }
        if piece.start_is == Start::Speculated
            && let Some(line) = first_line(&text[first..], false, &rules)
        {
            text.drain(first..first + line);
        }
        if text.last() != Some(&b'\n') && at == inputs.at(piece.file).bytes {
            text.push(b'\n');
        }
    }
    Ok(sample_bytes(&text, rules, columns, of, measure))
}

/// Bytes of a sample that has [`SAMPLE_ROWS`] lines as long as those of this text, and some more, as lines differ. Other workers
/// wait for the sample, so that it has no more where all that is asked of it are its first records, and each line is one.
fn wanted_bytes(text: &[u8], rules: &RecordRules, measure: Measure<'_>) -> usize {
    let lines = memchr::memchr_iter(b'\n', text).count().max(1);
    let rows = SAMPLE_ROWS + SAMPLE_ROWS / 8;
    let has_quotes = || rules.separators.quote.is_some_and(|q| memchr::memchr(q, text).is_some());
    let is_line_by_line = rules.json.is_none() && !rules.is_exotic() && !has_quotes();
    let least = match measure {
        Measure::No if is_line_by_line => FIRST_BYTES,
        _ => SAMPLE_BYTES,
    };
    (text.len() / lines).saturating_mul(rows).clamp(least, SAMPLE_BYTES_MOST)
}

/// Plans the columns from text that starts with a record.
pub fn sample_bytes(
    bytes: &[u8],
    rules: RecordRules,
    columns: &[ColumnRules],
    of: (ColumnRoom, &KnownSymbols),
    measure: Measure<'_>,
) -> PartitionPlan {
    let wanted = wanted_bytes(&bytes[..bytes.len().min(FIRST_BYTES)], &rules, measure);
    let bytes = &bytes[..bytes.len().min(wanted)];
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
    let plans = plan_columns(&rows, columns, of);
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
        /// Bytes of text that a partition has.
        bytes: f64,
        /// What was measured of partitions before.
        measured: &'a Measured,
    },
}
