//! What a worker keeps from chunk to chunk: whether it is the one that reads much.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use coload_threads::lock;

/// Lets one worker at a time read rows that take a large share of the memory.
#[derive(Debug, Default)]
pub struct Gate {
    taken: Mutex<bool>,
    changed: Condvar,
}

/// What a worker keeps from chunk to chunk: whether it is within the gate.
#[derive(Debug)]
pub struct TypedWorker {
    gate: Arc<Gate>,
    inside: bool,
}

impl TypedWorker {
    /// A worker before a gate.
    pub fn new(gate: &Arc<Gate>) -> Self {
        TypedWorker { gate: Arc::clone(gate), inside: false }
    }

    /// Waits until no other worker is within.
    pub fn enter(&mut self) {
        if self.inside {
            return;
        }
        let mut taken = lock(&self.gate.taken);
        while *taken {
            taken = self.gate.changed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken = true;
        self.inside = true;
    }

    /// Lets the next one in.
    pub fn leave(&mut self) {
        if self.inside {
            *lock(&self.gate.taken) = false;
            self.inside = false;
            self.gate.changed.notify_one();
        }
    }
}

impl Drop for TypedWorker {
    fn drop(&mut self) {
        self.leave();
    }
}
