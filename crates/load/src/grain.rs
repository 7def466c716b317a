//! How much of a load is in memory at once, derived from `--memory` before the load begins.
//!
//! ```text
//!   memory     = partitions held (2) + segment that waits + segment that is merged
//!              + parsers: dictionaries and the fragment of each + text ahead
//! ```
//!
//! What is stored must depend on the input and the options only, so nothing here looks at what the process holds at a
//! moment: chunks, partitions, dictionaries and segments have their sizes from the columns, the width of the sample's
//! records and the memory. Only how many workers parse at once depends on the threads, and changes nothing that is
//! stored.
//!
//! A column takes more bytes in memory than as text: an empty field is a separator in the file, and a number of 8 or 16
//! bytes here. [`Grain::expansion`] is that factor.
//!
//! See decision 0029.

use coload_format::{Error, Physical, Result};

use crate::options::{CHUNK_BYTES_MIN, LoadOptions};

/// Least memory that a load can do with.
pub const MEMORY_MIN: usize = 16 << 20;
/// Share of the memory that one partition may hold; two are in flight.
const PARTITION_SHARE: usize = 6;
/// Share of the memory that waits for the merge of a segment, while the segment before may still be merged.
const SEGMENT_SHARE: usize = 6;
/// Share of the memory that the fragment of one worker may take.
const CHUNK_SHARE: usize = 64;
/// Share of the memory that all dictionaries of one worker may take.
const DICTIONARY_SHARE: usize = 10;
/// Share of the memory that all workers that parse may take.
const PARSERS_SHARE: usize = 3;
/// Bytes of a dictionary that is full, with what finds its values.
const DICTIONARY_BYTES_FULL: usize = 4 << 20;
/// A dictionary of fewer bytes is not worth having.
const DICTIONARY_BYTES_MIN: usize = 8 << 10;
/// Bytes of a column in a worker, whatever it holds.
const COLUMN_BYTES: usize = 4 << 10;
/// Bytes of a field and its separator where no sample tells.
const FIELD_BYTES: usize = 6;
/// Smallest chunk that a small memory leads to.
const CHUNK_BYTES_LEAST: usize = 64 << 10;

/// Sizes of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grain {
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
    /// Fragments of a partition.
    pub fragments_per_partition: usize,
    /// Bytes of a temporary dictionary: a column with more is plain.
    pub dictionary_bytes: usize,
    /// Bytes that wait for the merge of a segment.
    pub segment_bytes: usize,
    /// Workers that parse at once.
    pub parsers: usize,
}

impl Grain {
    /// The grain of a load.
    pub fn of(options: &LoadOptions) -> Self {
        let memory = options.memory.max(MEMORY_MIN);
        let columns = options.read_schema().columns();
        let width = columns.len().max(options.schema.len()).max(1);
        let percent = expansion_percent(options);
        let of_text = |bytes: usize| bytes / percent * 100;
        let least = CHUNK_BYTES_LEAST.min(options.chunk_bytes).max(CHUNK_BYTES_MIN);
        let chunk_bytes = options.chunk_bytes.min(of_text(memory / CHUNK_SHARE).max(least));
        let fragments = of_text(memory / PARTITION_SHARE) / chunk_bytes;
        let dictionary_bytes = (memory / DICTIONARY_SHARE / width).max(DICTIONARY_BYTES_MIN);
        let parser_bytes = width * (dictionary_bytes.min(DICTIONARY_BYTES_FULL) + COLUMN_BYTES)
            + chunk_bytes / 100 * (100 + percent);
        Grain {
            chunk_bytes,
            fragments_per_partition: options.fragments_per_partition.min(fragments).max(1),
            dictionary_bytes,
            segment_bytes: memory / SEGMENT_SHARE,
            parsers: (memory / PARSERS_SHARE / parser_bytes).clamp(1, options.threads.max(1)),
        }
    }
}

/// Bytes in memory of 100 bytes of text.
fn expansion_percent(options: &LoadOptions) -> usize {
    let columns = options.read_schema().columns();
    let held = |physical| match physical {
        Physical::Int => 8,
        Physical::Wide => 16,
        // Its end, besides its bytes.
        Physical::Bytes => 4,
    };
    let fixed: usize = columns.iter().map(|column| held(column.data_type.physical())).sum();
    let fields = options.field_count().max(1);
    // Each field has its separator at least.
    let row = options.row_bytes.unwrap_or(fields * FIELD_BYTES).max(fields);
    100 + fixed.saturating_mul(100) / row
}
