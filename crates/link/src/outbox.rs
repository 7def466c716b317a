//! What waits to be sent: bounded in bytes, filled by workers, emptied by the threads of the
//! connections.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use coload_threads::lock;
use coload_types::{Error, Result};

use crate::frame::Message;

/// A queue of messages for all connections of a client.
#[derive(Debug)]
pub struct Outbox {
    bytes_max: usize,
    waiting: Mutex<Waiting>,
    /// A message came: one of those that empty the queue is enough to take it.
    filled: Condvar,
    /// Wakes those that push, when there is room again.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Message>,
    bytes: usize,
    frames: usize,
    closed: Option<Error>,
}

impl Outbox {
    /// An empty queue that takes about `bytes_max` bytes: a message is taken while there are less.
    pub fn new(bytes_max: usize) -> Self {
        Outbox {
            bytes_max,
            waiting: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Every change of the waiting is whole, so a panic elsewhere leaves it usable.
        lock(&self.waiting)
    }

    /// Adds a message; waits while the queue is full.
    ///
    /// # Errors
    /// What the queue was closed with.
    pub fn push(&self, message: Message) -> Result<()> {
        let mut waiting = self.lock();
        loop {
            if let Some(error) = &waiting.closed {
                return Err(error.clone());
            }
            if waiting.bytes < self.bytes_max {
                break;
            }
            waiting = self.emptied.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.bytes += message.bytes.len();
        waiting.frames += message.frames();
        waiting.messages.push_back(message);
        drop(waiting);
        self.filled.notify_one();
        Ok(())
    }

    /// The next message; waits for one. `None` when the queue is closed.
    pub fn pop(&self) -> Option<Message> {
        let mut waiting = self.lock();
        loop {
            if waiting.closed.is_some() {
                return None;
            }
            if let Some(message) = waiting.messages.pop_front() {
                waiting.bytes -= message.bytes.len();
                waiting.frames -= message.frames();
                let room = waiting.bytes < self.bytes_max;
                drop(waiting);
                if room {
                    self.emptied.notify_all();
                }
                return Some(message);
            }
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Frames of the messages that wait.
    pub fn waiting(&self) -> usize {
        self.lock().frames
    }

    /// Bytes of the messages that wait.
    pub fn waiting_bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Ends it: what waits is dropped, and everybody who comes gets `error`, the first one given.
    pub fn close(&self, error: Error) {
        let mut waiting = self.lock();
        waiting.closed.get_or_insert(error);
        waiting.messages.clear();
        (waiting.bytes, waiting.frames) = (0, 0);
        drop(waiting);
        self.filled.notify_all();
        self.emptied.notify_all();
    }

    /// The error that the queue was closed with; `None` while it is open.
    pub fn error(&self) -> Option<Error> {
        self.lock().closed.clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_full_queue_holds_the_pusher_back_until_it_is_emptied_or_closed() {
        let outbox = Outbox::new(10);
        outbox.push(Message::new(20, vec![0; 10])).unwrap();
        std::thread::scope(|scope| {
            let pusher = scope.spawn(|| outbox.push(Message::new(21, vec![0; 5])));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!pusher.is_finished());
            assert_eq!(outbox.waiting(), 1);
            assert_eq!(outbox.pop().unwrap().kind, 20);
            pusher.join().unwrap().unwrap();
        });
        assert_eq!(outbox.pop().unwrap().kind, 21);
        outbox.close(Error::Unavailable("cut".into()));
        assert!(outbox.pop().is_none());
        assert!(outbox.push(Message::new(20, vec![])).is_err());
    }
}
