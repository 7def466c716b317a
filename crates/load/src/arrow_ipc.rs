//! Arrow IPC: files whose batches are cut into chunks beforehand, and streams of which batches are taken as they come.

mod cache;
mod files;
mod input;
mod look;
mod reading;
mod stream;

use crate::typed::BlockInputs;

pub use files::{batches_told, rows_before};
pub use look::{field_of_column, look_at_arrow};
pub use reading::ArrowForm;

/// Inputs of Arrow.
pub type Arrow = BlockInputs<ArrowForm>;
