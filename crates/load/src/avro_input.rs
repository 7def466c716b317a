//! Avro: files whose blocks are put together into chunks beforehand, and streams of which blocks are taken as they come.
//!
//! ```text
//!   file      header | block 1 | block 2 | block 3 | ...      a block is decompressed and read as a whole
//!   chunks           |         0         |   1 ...            blocks by their bytes in memory
//! ```
//!
//! Objects of stores are streams, too: to find their blocks is to read all of them. A part of a file has the blocks that
//! begin in it.

mod files;
mod input;
mod look;
mod parts;
mod reading;
mod stream;

use crate::typed::BlockInputs;

pub use look::look_at_avro;
pub use parts::{first_block_at, first_block_behind};
pub use reading::AvroForm;

/// Inputs of Avro.
pub type Avro = BlockInputs<AvroForm>;
