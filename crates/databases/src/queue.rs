//! Rows on their way from the workers to the connections.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use coload_load::{FragmentRows, RowBytes};
use coload_threads::lock;
use coload_types::{Error, Result};

/// Fragments of rows that wait for a connection. A worker that brings one too many waits, so that memory is bounded.
#[derive(Debug)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// As many as connections send.
    waiting_max: AtomicUsize,
    cancel: Arc<AtomicBool>,
}

/// How often a worker that waits looks whether the load was stopped.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<FragmentRows<RowBytes>>,
    ended: bool,
    failed: Option<Error>,
}

impl Queue {
    /// An empty queue, in which so many fragments may wait; who sets `cancel` stops the load.
    pub fn new(waiting_max: usize, cancel: Arc<AtomicBool>) -> Self {
        let waiting_max = AtomicUsize::new(waiting_max);
        Queue { state: Mutex::default(), changed: Condvar::new(), waiting_max, cancel }
    }

    /// From now on so many may wait.
    pub fn set_room(&self, waiting_max: usize) {
        self.waiting_max.store(waiting_max.max(1), Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Adds rows; waits for room.
    ///
    /// # Errors
    /// What a connection failed with.
    pub fn push(&self, rows: FragmentRows<RowBytes>) -> Result<()> {
        let mut state = lock(&self.state);
        loop {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if state.waiting.len() < self.waiting_max.load(Ordering::Relaxed) {
                state.waiting.push_back(rows);
                self.changed.notify_all();
                return Ok(());
            }
            if self.is_cancelled() {
                return Err(Error::Unavailable("the load was stopped".into()));
            }
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether the load was stopped.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// The next rows; waits for them. `None` when there are none any more, or somebody failed.
    pub fn next(&self) -> Option<FragmentRows<RowBytes>> {
        let mut state = lock(&self.state);
        loop {
            if state.failed.is_some() {
                return None;
            }
            if let Some(rows) = state.waiting.pop_front() {
                self.changed.notify_all();
                return Some(rows);
            }
            if state.ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether no rows come any more.
    pub fn has_ended(&self) -> bool {
        lock(&self.state).ended
    }

    /// No rows come any more.
    pub fn end(&self) {
        lock(&self.state).ended = true;
        self.changed.notify_all();
    }

    /// A connection failed: nobody waits any more. The first failure is told.
    pub fn fail(&self, error: Error) {
        lock(&self.state).failed.get_or_insert(error);
        self.changed.notify_all();
    }

    /// What a connection failed with.
    pub fn failure(&self) -> Option<Error> {
        lock(&self.state).failed.clone()
    }

    /// Whether the load has failed.
    pub fn has_failed(&self) -> bool {
        lock(&self.state).failed.is_some()
    }
}
