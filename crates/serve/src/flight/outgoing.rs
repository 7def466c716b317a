//! Batches between a statement and its client: so many bytes, which count as memory of statements.
//!
//! A statement waits when its client does not read. One whose client does not for the stall time is ended, and
//! what waits is dropped: a client that never reads holds nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use coload_threads::lock;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use tokio::sync::Notify;
use tonic::Status;

/// What goes to a client.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Rows(RecordBatch),
    End,
    Failed(Status),
}

/// Why a batch did not get its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The client went away.
    Left,
    /// The client did not read for the stall time.
    Stalled,
}

/// The end of a statement.
#[derive(Debug)]
pub(crate) struct Sender {
    shared: Arc<Shared>,
}

/// The end of its client.
#[derive(Debug)]
pub(crate) struct Receiver {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    bytes_max: usize,
    stall_time: Duration,
    state: Mutex<State>,
    /// Something was taken, or the receiver has gone.
    taken: Notify,
    /// The receiver has gone.
    gone: Notify,
    /// Something was put, or the sender has gone.
    put: Notify,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<(Outgoing, usize)>,
    bytes: usize,
    reservation: MemoryReservation,
    has_receiver: bool,
    has_sender: bool,
}

/// A queue of so many bytes, or one batch that is larger.
pub(crate) fn queue(
    bytes_max: usize,
    stall_time: Duration,
    reservation: MemoryReservation,
) -> (Sender, Receiver) {
    let state = State {
        waiting: VecDeque::new(),
        bytes: 0,
        reservation,
        has_receiver: true,
        has_sender: true,
    };
    let shared = Arc::new(Shared {
        bytes_max,
        stall_time,
        state: Mutex::new(state),
        taken: Notify::new(),
        gone: Notify::new(),
        put: Notify::new(),
    });
    (Sender { shared: Arc::clone(&shared) }, Receiver { shared })
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Puts something there if it has room; gives it back if not.
    fn try_put(&self, item: Outgoing, bytes: usize) -> Result<Result<(), NotSent>, Outgoing> {
        let mut state = self.lock();
        if !state.has_receiver {
            return Ok(Err(NotSent::Left));
        }
        if !state.waiting.is_empty() {
            let is_over = state.bytes + bytes > self.bytes_max;
            if is_over || state.reservation.try_grow(bytes).is_err() {
                return Err(item);
            }
        } else {
            // One batch has its place even when statements have used up their memory.
            state.reservation.grow(bytes);
        }
        state.bytes += bytes;
        state.waiting.push_back((item, bytes));
        drop(state);
        self.put.notify_one();
        Ok(Ok(()))
    }

    /// Waits until something is taken.
    async fn until_taken(&self) -> Result<(), NotSent> {
        if !self.lock().has_receiver {
            return Err(NotSent::Left);
        }
        match tokio::time::timeout(self.stall_time, self.taken.notified()).await {
            Ok(()) => Ok(()),
            Err(_) => Err(NotSent::Stalled),
        }
    }
}

impl Sender {
    /// Waits for room, and puts rows there.
    ///
    /// # Errors
    /// When the client has gone, or does not read.
    pub async fn rows(&self, batch: RecordBatch) -> Result<(), NotSent> {
        let bytes = batch.get_array_memory_size();
        let mut item = Outgoing::Rows(batch);
        loop {
            match self.shared.try_put(item, bytes) {
                Ok(is_there) => return is_there,
                Err(back) => item = back,
            }
            self.shared.until_taken().await?;
        }
    }

    /// Waits until the client has gone.
    pub async fn left(&self) {
        while self.shared.lock().has_receiver {
            self.shared.gone.notified().await;
        }
    }

    /// Says how the statement ended, and waits until the client has read that. What it does not read in time
    /// is dropped.
    pub async fn end(self, end: Outgoing) {
        self.shared.lock().waiting.push_back((end, 0));
        self.shared.put.notify_one();
        while !self.shared.lock().waiting.is_empty() {
            match self.shared.until_taken().await {
                Ok(()) => {}
                Err(NotSent::Left) => return,
                Err(NotSent::Stalled) => return self.give_up(),
            }
        }
    }

    /// Drops what waits, and tells the client if it ever reads again.
    pub fn give_up(&self) {
        let mut state = self.shared.lock();
        state.waiting.clear();
        state.bytes = 0;
        state.reservation.free();
        let seconds = self.shared.stall_time.as_secs();
        let status = Status::deadline_exceeded(format!(
            "the rows were not read for {seconds} s, and what was left of them was dropped (--stall-time)"
        ));
        state.waiting.push_back((Outgoing::Failed(status), 0));
        drop(state);
        self.shared.put.notify_one();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.shared.lock().has_sender = false;
        self.shared.put.notify_one();
    }
}

impl Receiver {
    /// What comes next; `None` when the statement broke off.
    pub async fn next(&mut self) -> Option<Outgoing> {
        loop {
            {
                let mut state = self.shared.lock();
                if let Some((item, bytes)) = state.waiting.pop_front() {
                    state.bytes -= bytes;
                    state.reservation.shrink(bytes);
                    drop(state);
                    self.shared.taken.notify_one();
                    return Some(item);
                }
                if !state.has_sender {
                    return None;
                }
            }
            self.shared.put.notified().await;
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.has_receiver = false;
        state.waiting.clear();
        state.bytes = 0;
        state.reservation.free();
        drop(state);
        self.shared.taken.notify_one();
        self.shared.gone.notify_one();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};
    use futures::FutureExt;

    use super::*;

    fn batch() -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        RecordBatch::try_from_iter([("id", ids)]).unwrap()
    }

    fn of_pool(bytes: usize) -> (Arc<dyn MemoryPool>, Sender, Receiver) {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
        let reservation = MemoryConsumer::new("answers").register(&pool);
        let (sender, receiver) = queue(2_000, Duration::from_millis(50), reservation);
        (pool, sender, receiver)
    }

    #[tokio::test]
    async fn rows_come_out_in_order_and_their_bytes_are_counted() {
        let (pool, sender, mut receiver) = of_pool(1 << 20);
        sender.rows(batch()).await.unwrap();
        sender.rows(batch()).await.unwrap();
        let held = pool.reserved();
        assert!((1_600..=2_000).contains(&held), "{held}");
        assert!(sender.rows(batch()).now_or_never().is_none());
        assert!(matches!(receiver.next().await, Some(Outgoing::Rows(_))));
        assert!(pool.reserved() < held);
        let end = tokio::spawn(sender.end(Outgoing::End));
        assert!(matches!(receiver.next().await, Some(Outgoing::Rows(_))));
        assert!(matches!(receiver.next().await, Some(Outgoing::End)));
        end.await.unwrap();
        assert!(receiver.next().await.is_none());
        assert_eq!(pool.reserved(), 0);
    }

    #[tokio::test]
    async fn where_memory_is_short_one_batch_has_its_place() {
        let (_pool, sender, _receiver) = of_pool(10);
        sender.rows(batch()).await.unwrap();
        assert!(sender.rows(batch()).now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_holds_nothing() {
        let (pool, sender, mut receiver) = of_pool(1 << 20);
        sender.rows(batch()).await.unwrap();
        sender.rows(batch()).await.unwrap();
        assert_eq!(sender.rows(batch()).await, Err(NotSent::Stalled));
        sender.end(Outgoing::End).await;
        assert_eq!(pool.reserved(), 0);
        let Some(Outgoing::Failed(status)) = receiver.next().await else { panic!("no status") };
        assert!(status.message().contains("--stall-time"));
    }

    #[tokio::test]
    async fn a_client_that_goes_away_is_noticed() {
        let (pool, sender, receiver) = of_pool(1 << 20);
        assert!(sender.left().now_or_never().is_none());
        sender.rows(batch()).await.unwrap();
        drop(receiver);
        sender.left().await;
        assert_eq!(sender.rows(batch()).await, Err(NotSent::Left));
        assert_eq!(pool.reserved(), 0);
    }
}
