//! Objects in object stores and on servers of HTTP: found by their addresses, pinned to what they were then, and read
//! ahead of those who parse.
//!
//! ```text
//!   s3://bucket/2026/*.csv  ->  place  ->  objects, numbered   ->  blocks, fetched in parallel  ->  who reads
//! ```
//!
//! Invariant: all bytes of an object come from the version that was found; one that has changed fails who reads it.

mod address;
mod again;
mod ahead;
mod blocks;
mod fetch;
mod find;
mod folder;
mod object;
mod place;
mod runtime;
mod words;

pub use address::is_address;
pub use blocks::Wanted;
pub use find::{KeepObject, find_objects, find_objects_where};
pub use folder::ObjectFolder;
pub use object::{ObjectRef, Objects};
pub use place::PlaceOptions;
