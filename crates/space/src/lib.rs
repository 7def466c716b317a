//! Where the buffers of a sorted load live.
//!
//! ```text
//!   space    dram | map:DIR | pmem:DIR | disk:DIR | emulated:READ_NS,READ_GBS,WRITE_GBS     [,size=SIZE]
//!   extent   bytes of one run in a space: appended part by part, then read part by part, gone when it is dropped
//! ```
//!
//! A kind of space is a file of its own ([`spec`] has the list of them), and knows nothing of what is in its extents:
//! checksums are those of whoever writes there.
//!
//! Invariants: extents have no names in their directories, so that the system takes them away whoever dies; a space never
//! holds more than its size; an error names the space and the file.
//!
//! Deliberately not here: rows, columns, files of a store. Maps of those files are [`Mapped`], too.
//!
//! Source: seed 002 (sort buffer and intermediate space in DRAM or persistent memory).

mod disk;
mod dram;
mod emulated;
mod files;
mod map;
mod mapped;
mod pmem;
mod quota;
mod space;
mod spec;
mod tiered;

pub use dram::Dram;
pub use mapped::Mapped;
pub use space::{Extent, ExtentWriter, Piece, Space};
pub use spec::SpaceSpec;
pub use tiered::Tiered;

#[cfg(test)]
mod tests;
