//! Streams of Arrow: messages that come in order, from pipes and from what must be decompressed.
//!
//! A file whose footer cannot be asked is read so, too: its messages are a stream, behind its magic.

mod reader;

use std::collections::HashMap;
use std::sync::Arc;

use coload_arrow::Batch;

use super::input::FieldsRead;
use crate::typed::{Dictionary, Held, HeldBlock};

pub use reader::Reader;

/// Dictionaries by their numbers.
pub type Known = HashMap<i64, Arc<Dictionary>>;

/// A batch that came.
#[derive(Debug)]
pub struct StreamBatch {
    /// Number of the input.
    pub file: usize,
    /// Where its message starts.
    pub start: u64,
    /// Its fields.
    pub fields: Arc<FieldsRead>,
    /// The dictionaries that it sees.
    pub dictionaries: Arc<Known>,
    /// What its metadata say.
    pub batch: Batch,
    /// Its buffers.
    pub body: Vec<u8>,
    _held: Held,
}

impl HeldBlock for StreamBatch {
    fn bytes(&self) -> usize {
        self.body.capacity()
    }
}
