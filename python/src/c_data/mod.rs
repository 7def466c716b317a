//! The C interface of Arrow: batches of this library for others of the process, and theirs for this one, without copies.
//!
//! ```text
//!   Stream    theirs: PyCapsule -> schema, batches (RecordBatch whose buffers they free)
//!   Exported  ours:   Rows -> PyCapsule
//! ```
//!
//! It is written here because the `ffi` feature of the `arrow` crates would have the query engine compiled twice: once for the
//! workspace without it, and once for this package.
//!
//! Invariants: a structure is released once, by whom it was given to. Lengths and numbers are checked, so that a wrong one is an
//! error; what a pointer leads to cannot be.
//!
//! Source: "The Arrow C data interface" and "The Arrow C stream interface" of the format of Arrow; "The Arrow PyCapsule
//! Interface".

mod export;
mod format;
mod import;
mod structs;

pub use export::{Exported, Source};
pub use format::sql_name;
pub use import::Stream;

use std::ffi::CStr;

/// Name of a capsule with a stream.
const STREAM: &CStr = c"arrow_array_stream";
