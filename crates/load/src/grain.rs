//! How much of a load is in memory at once, derived from `--memory` before the load begins.
//!
//! ```text
//!   memory     = partition that is filled + what waits of the one that is compressed
//!              + segment that waits + segment that is merged
//!              + parsers: dictionaries and the fragment of each + text ahead
//! ```
//!
//! What is stored must depend on the input, the request and the memory given only, so nothing here looks at what the process holds at a
//! moment: chunks, partitions, dictionaries and segments have their sizes from the columns, the width of the sample's
//! records and the memory. Only how many workers parse at once depends on the threads, and changes nothing that is
//! stored.
//!
//! A column takes more bytes in memory than as text: an empty field is a separator in the file, and a number of 8 or 16
//! bytes here: [`RecordSize`].
//!
//! See decision 0029.

use coload_ddl::Schema;
use coload_space::SpaceSpec;
use coload_transform::{DictionaryLimit, MEMORY_MIN, dictionary_limit, encoders};
use coload_types::{Error, Physical};
use coload_wire::{CHUNK_BYTES_MIN, RejectLimit};

use crate::account::COUNTED_BYTES;
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::text::OPEN_FILE_BYTES;

/// Share of the memory that one partition may hold, which is filled while the one before is compressed.
const PARTITION_SHARE: usize = 4;
/// Share of the memory from which on a partition is large: while it is compressed none is filled. Most are not: what waits are codes, and
/// what is expected are values.
const LARGE_PARTITION_SHARE: usize = 12;
/// Share of the memory that waits for the merge of a segment, while the segment before may still be merged.
const SEGMENT_SHARE: usize = 6;
/// Share of the memory that the fragment of one worker may take.
const CHUNK_SHARE: usize = 32;
/// Share that it may take where records are long.
const CHUNK_SHARE_MOST: usize = 20;
/// Records of a fragment below which its pages cost more than they hold.
const ROWS_WANTED: usize = 1024;
/// Share of the memory that all workers that parse may take.
const PARSERS_SHARE: usize = 3;
/// Bytes of a dictionary that is full, with what finds its values.
const DICTIONARY_BYTES_FULL: usize = 4 << 20;
/// Share of the memory that one record may take: its text, its values and their page are there at once.
const RECORD_SHARE: usize = 3;
/// Share of the memory from which on records are read one by one.
const LARGE_SHARE: usize = 32;
/// Share of the memory that text which came in order may take until it is verified.
const TEXT_SHARE: usize = 10;
/// Tenths of the memory that the windows of decoders may take: `xz -9` needs 65 MiB, and is to load in 256 MiB.
const WINDOWS_TENTHS: usize = 3;
/// Share of the memory for what was read ahead of inputs on other machines, and most bytes of it: at 10 Gbit/s and
/// 100 ms, 128 MiB are under way.
const AHEAD_SHARE: usize = 8;
const AHEAD_BYTES_MAX: usize = 128 << 20;
/// Longest record: positions in a window are 32 bits.
pub const RECORD_BYTES_MAX: usize = 1 << 30;
/// Bytes of a column in a worker, whatever it holds.
const COLUMN_BYTES: usize = 4 << 10;
/// Bytes of a field and its separator where no sample tells.
const FIELD_BYTES: usize = 6;
/// Bytes of a rejected record besides its text: as the chunk has it that it stands in, and as the seal of its partition
/// has it, in which what many of them say alike is there once.
const REJECT_BYTES: usize = 200;
/// Share of the memory that the rejects of a load may take without making its partitions smaller.
const REJECTS_SHARE: usize = 24;
/// Bytes of an input beside what the list of inputs has of it: where its records begin and end, how far it was read, what
/// became of them.
const INPUT_BYTES: usize = OPEN_FILE_BYTES + COUNTED_BYTES;
/// Share of the memory from which on that of inputs counts: a load of few has the sizes that its memory gives.
const INPUTS_SHARE: usize = 64;
/// Bytes of a row that is put in order, besides a column of it as it was and as it will be, which has at most the bytes of its text: its
/// key three times while it is sorted, its number, where its text stands.
const SORTED_ROW_BYTES: usize = 64;
/// Share of the memory that the plain pages of a segment may have that is put in order.
const SORTED_SHARE: usize = 4;
/// Bytes of a segment's file from which on it is closed, of a load that is to go on if it is interrupted: what is lost then took no
/// longer than a few seconds to read, at 1 Gbit/s.
const KEPT_BYTES: usize = 128 << 20;
/// Share of these that is worth a segment of its own before partitions that come slowly: 8 MiB are merged in a hundredth of a second.
const SLOW_SHARE: usize = 16;
/// Smallest chunk that a small memory leads to.
const CHUNK_BYTES_LEAST: usize = 64 << 10;

/// The error of a record that is longer than one may be; `place` has the input.
pub fn record_too_long(place: &str, bytes: usize, is_json: bool) -> Error {
    let (most, memory) = match bytes >= RECORD_BYTES_MAX {
        true => ("1 GiB", ""),
        false => ("a third of --memory", "a larger --memory"),
    };
    let (open, flags) = match (is_json, memory) {
        (true, "") => ("a string or a bracket", String::new()),
        (true, memory) => ("a string or a bracket", format!(" (try {memory})")),
        (false, "") => ("a quote", " (try --quote none)".to_owned()),
        (false, memory) => ("a quote", format!(" (try --quote none, or {memory})")),
    };
    Error::Limit(format!(
        "{place}: a record is over {bytes} bytes, and one has at most {most}; is {open} left open?{flags}"
    ))
}

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
    /// Bytes of a segment's file, with those that wait, of a load that keeps segments as soon as they are whole.
    pub kept_bytes: usize,
    /// Least bytes that wait for the merge of a segment which ends where the last partitions come slowly: what waits is merged while
    /// they do.
    pub slow_bytes: usize,
    /// Rows of a segment of a table with a key: they are put in order at once.
    pub sorted_rows: u64,
    /// Bytes of its plain pages, for records that are longer than the sample's.
    pub sorted_bytes: u64,
    /// Workers that parse at once.
    pub parsers: usize,
    /// Columns of a partition that have symbols of their own while it is parsed. Others keep their text until
    /// the partition is compressed, column by column.
    pub encoders: usize,
    /// Bytes of the longest record.
    pub record_bytes_max: usize,
    /// A record of more bytes is read while no other of that kind is.
    pub large_bytes: usize,
    /// While a partition of more bytes is compressed, nothing else is parsed.
    pub large_partition_bytes: usize,
    /// Bytes of text that came in order and is not verified.
    pub text_bytes: usize,
    /// Bytes that the windows of decoders may take.
    pub windows_bytes: usize,
    /// Bytes that may have come from other machines before somebody asks for them.
    pub ahead_bytes: usize,
}

/// What memory has room for while a partition is parsed.
#[derive(Debug, Clone, Copy)]
pub struct ColumnRoom {
    /// Columns that have symbols of their own.
    pub encoders: usize,
    /// What the dictionary of each column may hold.
    pub dictionary: DictionaryLimit,
}

impl Grain {
    /// What a dictionary may hold.
    pub fn dictionary_limit(&self) -> DictionaryLimit {
        DictionaryLimit::of_bytes(self.dictionary_bytes)
    }

    /// What there is room for of a column.
    pub fn column_room(&self) -> ColumnRoom {
        ColumnRoom { encoders: self.encoders, dictionary: self.dictionary_limit() }
    }

    /// The grain of a load.
    pub fn of(request: &LoadRequest, resources: &Resources) -> Self {
        let ahead_bytes = ahead_bytes(request, resources);
        let given = resources.memory - inputs_bytes(request, resources) - ahead_bytes;
        let memory = given.max(MEMORY_MIN);
        let record = request.record.unwrap_or_else(|| RecordSize::new(request, None));
        let (width, percent) = (record.columns, record.expansion_percent());
        let of_text = |bytes: usize| bytes / percent * 100;
        let least = CHUNK_BYTES_LEAST.min(resources.chunk_bytes).max(CHUNK_BYTES_MIN);
        // A page of few rows is mostly its head.
        let wanted =
            record.text_bytes.saturating_mul(ROWS_WANTED).min(of_text(memory / CHUNK_SHARE_MOST));
        let chunk_bytes =
            resources.chunk_bytes.min(of_text(memory / CHUNK_SHARE).max(wanted).max(least));
        let chunk_bytes = match resources.sort_space.as_ref().and_then(SpaceSpec::size) {
            Some(bytes) => chunk_bytes.min(of_text(bytes as usize)).max(CHUNK_BYTES_MIN),
            None => chunk_bytes,
        };
        let fragments = of_text(memory / PARTITION_SHARE) / chunk_bytes;
        let dictionary_bytes = dictionary_limit(memory, width).bytes;
        let parser_bytes = width * (dictionary_bytes.min(DICTIONARY_BYTES_FULL) + COLUMN_BYTES)
            + chunk_bytes / 100 * (100 + percent);
        // Of a sort buffer that has a size each partition is one: its rows are what is sorted at once.
        let sorted = resources.sort_space.as_ref().and_then(SpaceSpec::size);
        let sorted_fragments = sorted.map_or(usize::MAX, |bytes| {
            usize::try_from(bytes).unwrap_or(usize::MAX) / (chunk_bytes / 100 * percent).max(1)
        });
        let fragments = fragments.min(sorted_fragments);
        let segment_bytes = if sorted.is_some() { 0 } else { given / SEGMENT_SHARE };
        Grain {
            chunk_bytes,
            fragments_per_partition: resources.fragments_per_partition.min(fragments).max(1),
            dictionary_bytes,
            sorted_rows: (memory / (SORTED_ROW_BYTES + 2 * record.text_bytes)).max(1) as u64,
            sorted_bytes: (memory / SORTED_SHARE) as u64,
            segment_bytes,
            kept_bytes: segment_bytes.min(KEPT_BYTES),
            slow_bytes: segment_bytes.min(KEPT_BYTES) / SLOW_SHARE,
            encoders: encoders(memory),
            record_bytes_max: (memory / RECORD_SHARE).min(RECORD_BYTES_MAX),
            large_bytes: memory / LARGE_SHARE,
            large_partition_bytes: memory / LARGE_PARTITION_SHARE,
            text_bytes: memory / TEXT_SHARE,
            windows_bytes: memory / 10 * WINDOWS_TENTHS,
            ahead_bytes,
            parsers: (memory / PARSERS_SHARE / parser_bytes).clamp(1, resources.threads.max(1)),
        }
    }
}

/// Bytes that may have come of inputs on other machines before somebody asks for them.
fn ahead_bytes(request: &LoadRequest, resources: &Resources) -> usize {
    match request.inputs.are_far() {
        true => (resources.memory / AHEAD_SHARE).min(AHEAD_BYTES_MAX),
        false => 0,
    }
}

/// Bytes that the inputs of a load take where these are so many that it matters: what is left is for the rows. At least
/// half of the memory is.
fn inputs_bytes(request: &LoadRequest, resources: &Resources) -> usize {
    let inputs = &request.inputs;
    let bytes = inputs.held_bytes() + inputs.len() * INPUT_BYTES;
    match bytes < resources.memory / INPUTS_SHARE {
        true => 0,
        false => bytes.min(resources.memory / 2),
    }
}

/// How large a record is. It is found when a load is planned and stays what it was when types become wider, for chunks
/// and partitions are then those that they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSize {
    /// Columns that are read, or those of the table if these are more.
    columns: usize,
    /// Bytes of its text, with separators.
    text_bytes: usize,
    /// Bytes of its values besides those of texts.
    value_bytes: usize,
    /// Bytes of it as a reject, if many may be.
    reject_bytes: usize,
}

impl RecordSize {
    /// The size of a record of which there is a sample, with so many bytes of text on average; without one it is taken
    /// to have short fields.
    pub fn new(request: &LoadRequest, text_bytes: Option<usize>) -> Self {
        let held = |schema: &Schema| -> usize {
            schema.columns().iter().map(|column| held_bytes(column.data_type.physical())).sum()
        };
        let (read, table) = (request.read_schema(), &request.schema);
        let fields = request.field_count().max(1);
        RecordSize {
            columns: read.len().max(table.len()).max(1),
            // Each field has its separator at least.
            text_bytes: text_bytes.unwrap_or(fields * FIELD_BYTES).max(fields),
            value_bytes: held(read).max(held(table)),
            reject_bytes: 0,
        }
    }

    /// Bytes of its text, with separators.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// The size if any record may be rejected, and its account is kept until its partition is sent.
    pub fn with_rejects(self, request: &LoadRequest, resources: &Resources) -> Self {
        let kept = match request.max_rejects {
            RejectLimit::Count(count) => count.saturating_mul(REJECT_BYTES as u64),
            RejectLimit::Percent(share) if share > 0.0 => u64::MAX,
            RejectLimit::Percent(_) => 0,
        };
        if kept <= (resources.memory.max(MEMORY_MIN) / REJECTS_SHARE) as u64 {
            return self;
        }
        RecordSize { reject_bytes: REJECT_BYTES, ..self }
    }

    /// Bytes in memory of 100 bytes of text.
    fn expansion_percent(&self) -> usize {
        100 + (self.value_bytes + self.reject_bytes).saturating_mul(100) / self.text_bytes
    }
}

/// Bytes that a value takes besides those of its text.
fn held_bytes(physical: Physical) -> usize {
    match physical {
        Physical::Int => 8,
        Physical::Wide => 16,
        // Its end.
        Physical::Bytes => 4,
    }
}

#[cfg(test)]
mod tests {
    use coload_input::{FileIdentity, InputFile, InputSource, Inputs};
    use coload_source::Dialect;
    use coload_transform::DICTIONARY_BYTES_MIN;
    use coload_types::{Column, DataType};

    use super::*;
    use crate::schedule::CHUNKS_AHEAD;

    fn request(columns: usize, data_type: DataType) -> LoadRequest {
        let column = |n| Column::new(format!("c{n}"), data_type);
        let schema = Schema::new((0..columns).map(column).collect()).expect("distinct names");
        LoadRequest::new(Vec::new(), "t", schema, Dialect::default())
    }

    fn with_memory(memory: usize) -> Resources {
        Resources { memory, threads: 8, ..Resources::default() }
    }

    /// What is held at most by what the grain says, less what each column takes whatever the memory is.
    fn held(grain: &Grain, request: &LoadRequest) -> usize {
        let record = RecordSize::new(request, None);
        let values = |text: usize| text / 100 * record.expansion_percent();
        let partition = values(grain.chunk_bytes * grain.fragments_per_partition);
        let dictionaries = (grain.dictionary_bytes.min(DICTIONARY_BYTES_FULL)) * record.columns;
        let parser = dictionaries + values(grain.chunk_bytes) + grain.chunk_bytes;
        // What waits of the partition before, or what came of the next before this one was complete.
        let ahead = CHUNKS_AHEAD * values(grain.chunk_bytes);
        let other = partition.min(grain.large_partition_bytes.max(ahead));
        partition + other + 2 * grain.segment_bytes + grain.parsers * parser
    }

    /// Many small files in one folder.
    fn inputs(count: u64) -> Inputs {
        let file = |n: u64| {
            let name = format!("warehouse-export-2026-11-23/lineitem/part-{n:07}.csv");
            let modified = Some(std::time::SystemTime::UNIX_EPOCH);
            let identity = FileIdentity { device: 1, inode: n, bytes: 40, modified };
            let source = InputSource::File { path: name.clone().into(), identity };
            InputFile { name, source }
        };
        (0..count).map(file).collect()
    }

    /// Symptom: a million files of one line held 613 MiB of 256, some 550 bytes for each.
    #[test]
    fn an_input_takes_few_bytes_and_they_count() {
        let (mut many, resources) = (request(3, DataType::BigInt), with_memory(32 << 20));
        let few = Grain::of(&many, &resources);
        many.inputs = inputs(100_000);
        let bytes = inputs_bytes(&many, &resources);
        assert!((104 * 100_000..130 * 100_000).contains(&bytes), "{bytes}");
        let grain = Grain::of(&many, &resources);
        assert!(held(&grain, &many) + bytes <= resources.memory, "{grain:?} and {bytes}");
        assert!(grain.segment_bytes < few.segment_bytes, "{grain:?}");
        many.inputs = inputs(1000);
        assert_eq!(Grain::of(&many, &resources), few);
    }

    #[test]
    fn shares_are_the_memory_at_most() {
        for memory in [64 << 20, 256 << 20, 1 << 30, 16 << 30] {
            for columns in [1, 16, 155, 1024, 4096] {
                for data_type in [DataType::BigInt, DataType::Varchar(None)] {
                    let request = request(columns, data_type);
                    let grain = Grain::of(&request, &with_memory(memory));
                    let held = held(&grain, &request);
                    // A dictionary is not smaller than it is worth having.
                    let most = memory + columns * DICTIONARY_BYTES_MIN;
                    assert!(held <= most, "{columns} {data_type} {memory}: {held}, {grain:?}");
                }
            }
        }
    }

    #[test]
    fn a_large_memory_leaves_what_the_resources_say() {
        let resources = with_memory(16 << 30);
        let grain = Grain::of(&request(155, DataType::Varchar(None)), &resources);
        let cut = (grain.chunk_bytes, grain.fragments_per_partition, grain.parsers);
        let Resources { chunk_bytes, fragments_per_partition, threads, .. } = resources;
        assert_eq!(cut, (chunk_bytes, fragments_per_partition, threads));
    }
}
