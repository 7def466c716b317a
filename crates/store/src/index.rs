//! Indexes of tables: for each segment a B+ tree of the columns of an index, in a file beside the segment.
//!
//! ```text
//!   segment      rows 0 1 2 3       b = x z x y
//!   its tree     x -> 0 2    y -> 3    z -> 1        distinct keys, and the rows of each in order
//!   manifest     segment: (columns, file, place) for each of its trees
//! ```
//!
//! Whoever publishes a version has the trees built that its segments lack ([`complete`]): loads, statements, merges, servers, and CREATE
//! INDEX, which only adds an index to a table. So a version with an index has trees of all segments, and who scans may take a segment that has none
//! for one without an index. Keys of UNIQUE are compared in the same attempt to publish, as those of a PRIMARY KEY are ([`unique`]);
//! rows of a load that give way are found there before ([`give_way`]).
//!
//! Bytes of keys are the same in all segments, unlike those of a PRIMARY KEY's tree, so that two trees are compared byte by byte; what keys
//! begin with is cut in leaves. NULL has a byte of its own and is last.
//!
//! Memory: the key columns of one segment and their order. Cost: a sort of them, 4 bytes a row, and some bytes a key.

mod build;
mod change;
mod complete;
mod file;
mod give_way;
mod lazy;
mod unique;

pub(crate) use build::verify_index;
pub(crate) use change::{create_index, drop_index, with_names};
pub(crate) use complete::{Built, Checking, complete};
pub use file::{IndexKey, IndexTree, SegmentIndex, Within};
pub(crate) use give_way::{GivingWay, Lost};
pub(crate) use lazy::LazyIndex;
