//! Threads of users: the statements of a user run on threads of their own.
//!
//! ```text
//!   network --turn--> lane of eve:  threads, as many as a statement is spread over   \
//!                     lane of ada:  as many                                           > the system's scheduler
//!                     ...                                                            /
//! ```
//!
//! A task of the query engine gives up its thread after milliseconds at best, and after seconds where an operator sorts or
//! builds a table in one step. On threads that all users share, a statement of a millisecond waits behind the steps of
//! sixteen others. The system's scheduler interrupts any step, and gives every runnable thread its share of the cores;
//! so each user has as many threads as the others, and waits for his own statements only.
//!
//! Threads are started when a user has a statement, and end when he has had none for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use coload_threads::{drop_elsewhere, lock};
use coload_types::{Error, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::database::STACK_BYTES;

/// A lane without a statement for so long is closed.
const IDLE_TIME: Duration = Duration::from_secs(60);
/// Lanes at most, so that threads are: as many as there are statements at once by default. Further users share.
const LANES_MAX: usize = 64;

/// The lanes of a database.
#[derive(Debug)]
pub(crate) struct Lanes {
    threads: usize,
    lanes: Mutex<HashMap<Box<str>, Open>>,
}

#[derive(Debug)]
struct Open {
    lane: Arc<Lane>,
    used: Instant,
}

/// Threads of a user. Whatever runs on them holds it.
#[derive(Debug)]
struct Lane {
    /// Only taken away when the lane is dropped.
    runtime: Option<Runtime>,
}

impl Drop for Lane {
    /// The last to hold it may be one of its own threads, which cannot wait for itself.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            drop_elsewhere(runtime);
        }
    }
}

/// Threads for statements.
///
/// # Errors
/// `Unavailable` when they cannot be started.
pub(crate) fn start_threads(threads: usize, name: &str) -> Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name(name)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .map_err(|e| Error::Unavailable(format!("cannot start {threads} threads: {e}")))
}

impl Lanes {
    /// Lanes of so many threads.
    pub fn new(threads: usize) -> Self {
        Lanes { threads, lanes: Mutex::default() }
    }

    /// Starts a future on the threads of a user; `None` when there are none to be had.
    pub fn spawn<T: Send + 'static>(
        &self,
        user: &str,
        future: impl Future<Output = T> + Send + 'static,
    ) -> std::result::Result<JoinHandle<T>, Error> {
        let lane = self.lane(user)?;
        let Some(runtime) = &lane.runtime else {
            return Err(Error::Unavailable("the database is closing".into()));
        };
        let held = Arc::clone(&lane);
        Ok(runtime.spawn(async move {
            let _held = held;
            future.await
        }))
    }

    /// Closes lanes that nobody uses.
    pub fn sweep(&self) {
        let gone = self.take_idle(IDLE_TIME);
        // Not under the lock: that ends threads.
        drop(gone);
    }

    fn lane(&self, user: &str) -> Result<Arc<Lane>> {
        if let Some(open) = self.lock().get_mut(user) {
            open.used = Instant::now();
            return Ok(Arc::clone(&open.lane));
        }
        if self.lock().len() >= LANES_MAX {
            drop(self.take_idle(Duration::ZERO));
        }
        // Two who come at once may both start threads; one of them ends again.
        let lane = Arc::new(Lane { runtime: Some(start_threads(self.threads, "coload-sql")?) });
        let mut lanes = self.lock();
        if lanes.len() >= LANES_MAX {
            let least = lanes.values().min_by_key(|open| Arc::strong_count(&open.lane));
            return Ok(least.map_or(lane, |open| Arc::clone(&open.lane)));
        }
        let open = || Open { lane, used: Instant::now() };
        let open = lanes.entry(user.into()).or_insert_with(open);
        Ok(Arc::clone(&open.lane))
    }

    fn take_idle(&self, time: Duration) -> Vec<Open> {
        let mut lanes = self.lock();
        let is_idle =
            |open: &Open| Arc::strong_count(&open.lane) == 1 && open.used.elapsed() >= time;
        lanes.extract_if(|_, open| is_idle(open)).map(|(_, open)| open).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Open>> {
        lock(&self.lanes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// On the threads of all, at 01f3b1d, the second waited until the first had gone.
    #[tokio::test]
    async fn a_user_who_holds_his_threads_holds_up_nobody_else() {
        let lanes = Lanes::new(1);
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let long = lanes.spawn("eve", async move { wait.recv().is_err() }).unwrap();
        assert_eq!(lanes.spawn("ada", async { 7 }).unwrap().await.unwrap(), 7);
        drop(go);
        assert!(long.await.unwrap());
        assert_eq!(lanes.lock().len(), 2);
    }

    #[tokio::test]
    async fn lanes_are_closed_when_nobody_uses_them_and_further_users_share() {
        let lanes = Lanes::new(1);
        let (go, wait) = tokio::sync::watch::channel(());
        let until = || {
            let mut wait = wait.clone();
            async move { wait.changed().await.is_err() }
        };
        let held = (0..LANES_MAX).map(|n| lanes.spawn(&format!("user {n}"), until()).unwrap());
        let held: Vec<_> = held.collect();
        assert_eq!(lanes.lock().len(), LANES_MAX);
        assert_eq!(lanes.spawn("one more", async { 7 }).unwrap().await.unwrap(), 7);
        assert_eq!(lanes.lock().len(), LANES_MAX);
        lanes.sweep();
        assert!(lanes.take_idle(Duration::ZERO).is_empty());
        drop(go);
        for one in held {
            assert!(one.await.unwrap());
        }
        // A task is over before its lane is given back.
        while lanes.lock().values().any(|open| Arc::strong_count(&open.lane) > 1) {
            tokio::task::yield_now().await;
        }
        lanes.sweep();
        assert_eq!(lanes.lock().len(), LANES_MAX);
        assert_eq!(lanes.spawn("one more", async { 7 }).unwrap().await.unwrap(), 7);
        assert_eq!(lanes.lock().len(), 1);
    }
}
