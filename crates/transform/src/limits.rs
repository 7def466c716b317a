//! What the columns of a partition may take of the memory of a load, whoever transforms them.

use crate::DictionaryLimit;

/// Least memory that a load can do with.
pub const MEMORY_MIN: usize = 16 << 20;
/// Share of the memory that all dictionaries of one worker may take.
const DICTIONARY_SHARE: usize = 10;
/// A dictionary of fewer bytes is not worth having.
pub const DICTIONARY_BYTES_MIN: usize = 8 << 10;
/// Share of the memory that the symbols of the partitions in flight may take.
const ENCODERS_SHARE: usize = 24;
/// Bytes of the symbols of a column, with what finds them.
const ENCODER_BYTES: usize = 160 << 10;

/// What each dictionary may hold if those of all columns of one worker share the memory with what else there is.
pub fn dictionary_limit(memory: usize, columns: usize) -> DictionaryLimit {
    let bytes = memory.max(MEMORY_MIN) / DICTIONARY_SHARE / columns.max(1);
    DictionaryLimit::of_bytes(bytes.max(DICTIONARY_BYTES_MIN))
}

/// Columns that have symbols of their own while a partition is parsed.
pub fn encoders(memory: usize) -> usize {
    memory.max(MEMORY_MIN) / ENCODERS_SHARE / ENCODER_BYTES
}
