//! Chunks that came one by one, for as long as they may have to be read again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use coload_threads::lock;
use coload_types::{Error, Result};

use crate::widen::Way;

/// Chunks that came one by one and may have to be read, or read again.
#[derive(Debug)]
pub struct Taken<T> {
    chunks: Mutex<BTreeMap<usize, Arc<T>>>,
    way: Way,
}

impl<T> Taken<T> {
    /// None yet, of a leg whose types become wider in this way.
    pub fn new(way: Way) -> Self {
        Taken { chunks: Mutex::default(), way }
    }

    /// Keeps a chunk.
    pub fn keep(&self, number: usize, chunk: Arc<T>) {
        lock(&self.chunks).insert(number, chunk);
    }

    /// A chunk.
    ///
    /// # Errors
    /// `Corrupt` when it is no longer kept.
    pub fn get(&self, number: usize) -> Result<Arc<T>> {
        let found = lock(&self.chunks).get(&number).cloned();
        found.ok_or_else(|| Error::Corrupt(format!("chunk {number} of a stream is gone")))
    }

    /// A chunk is parsed, for this time.
    pub fn parsed(&self, number: usize) {
        if self.way != Way::GoOn {
            lock(&self.chunks).remove(&number);
        }
    }

    /// Chunks before one are not read again.
    pub fn verified(&self, before: usize) {
        let mut chunks = lock(&self.chunks);
        while chunks.first_entry().is_some_and(|first| *first.key() < before) {
            chunks.pop_first();
        }
    }

    /// The chunks from one on, in order, which the next leg reads.
    pub fn split_off(&self, from: usize) -> impl DoubleEndedIterator<Item = Arc<T>> {
        lock(&self.chunks).split_off(&from).into_values()
    }
}
