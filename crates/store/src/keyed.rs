//! Segments of tables with keys: their rows stand in the order of the key, and no key of a PRIMARY KEY comes twice.
//!
//! ```text
//!   segment as it was written   keys in order: it stays
//!                               else: keys -> permutation -> each column by it -> segment in order
//!   segments of a load          each a run, and all runs merged by ranges of the key: one order ([`sorted_load`])
//!   before it is published      its keys against those of the table, in the version that it becomes part of:
//!                               which rows give way follows from `OnConflict`, and they are deleted rows in that version
//! ```
//!
//! All that adds rows to a table goes through here: loads, statements, what a server received, and merges. Segments of several
//! loads may overlap in their ranges of keys, as the runs of a log-structured merge tree do.
//!
//! Memory: the keys of a segment that are numbers and the permutation, of other keys a share of what there is; of the other columns those of
//! a word of 64 bits, or one of wide numbers, whole, and of texts a share. Of two
//! segments that are compared a page each.
//!
//! Source: seed 002 (read, sort, merge into leaves).

mod bounds;
mod byte_order;
mod conflicts;
mod entry;
mod fields;
mod gather;
mod given;
mod key_bytes;
mod keys;
mod look_up;
mod merge_keys;
mod merge_runs;
mod new_pages;
mod newest;
mod order;
mod origin;
mod pages;
mod partition;
mod ranges;
mod row_order;
mod run;
mod run_writer;
mod sort_buffer;
mod sorted_load;
mod sorting;
mod texts;
mod tree;

pub(crate) use byte_order::{key_bytes_held, sort_by_bytes};
pub(crate) use conflicts::{KeyConflicts, Keyed, NewSegment, Resolved};
pub use entry::OrderedSegment;
pub(crate) use keys::{key_of_row, read_keys, value_of_row};
pub use look_up::{may_have_keys, row_of_key, rows_before_key};
pub(crate) use order::write_in_order;
pub(crate) use origin::{OpenOrigin, Origin, put_row_numbers};
pub use partition::{ColumnOf, SortedRows, is_in_order, sort_partition, write_reordered};
pub(crate) use row_order::SegmentKeys;
pub(crate) use sorted_load::{LoadFiles, OrderedLoad, order_load};
pub use sorting::{SortSpaces, SortTimes, SortWith, Sorting};
pub(crate) use tree::{BuiltTree, build_tree};
pub use tree::{KeySide, TreeKey, key_values};
