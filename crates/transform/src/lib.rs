//! The transformation of loading: temporary dictionaries, one dictionary a partition, packed codes,
//! and the merge of partitions into a segment.
//!
//! Invariant: no I/O, no clock, no threads; the result depends on the input only.

mod cardinality;
mod code_index;
mod compress;
mod distinct;
mod fragment;
mod keys;
mod limits;
mod merge;
mod placement;
mod policy;
mod restore;
mod sort;
mod sort_plain;
mod text_share;

pub use cardinality::HyperLogLog;
pub use compress::{
    DictionaryPolicy, JoinedDictionary, PartitionColumn, compress_column, decode_page,
    dictionary_pays, encode_column, page_values, sort_temporaries,
};
pub use distinct::DistinctSketch;
pub use fragment::{
    CODES_PROVISIONAL_MAX, DictionaryLimit, FinalPage, Fragment, FragmentColumn, NULL_CODE,
    ProvisionalCodes, TemporaryDictionary,
};
pub use keys::{
    Divided, KeyBuckets, KeyOrder, KeyPart, KeySample, PackedKeys, SORTED_ROWS_MAX, SortedKeys,
    Splitters, compare_keys, put_compared_key, put_key, put_text, shared_bytes, sort_bucket,
    sort_keys,
};
pub use limits::{DICTIONARY_BYTES_MIN, MEMORY_MIN, dictionary_limit, encoders};
pub use merge::{merge_column, merge_dictionaries};
pub use placement::{
    Capacity, ColumnCost, Placement, Times, place_adaptively, place_by_size, place_unknown,
    times_of,
};
pub use policy::{Adaptive, BySize, Estimates, OnClient, OnServer, POLICIES, Policy};
pub use restore::restore_codes;
pub use sort::{SortedColumn, SortedDictionary, sort_column, sort_dictionary};
pub use sort_plain::{PlainSorter, Symbols, join_parts};
pub use text_share::{Mix, TextCost, choose_share, mix_adaptively, times_of_mix};
