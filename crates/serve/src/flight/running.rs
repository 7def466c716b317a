//! Statements whose answers are being fetched, so that they can be cancelled.
//!
//! A statement is known by the handle in its ticket and by its user. One ticket may be fetched several
//! times at once, so that several statements have one handle.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use coload_threads::lock;
use futures::future::join_all;
use tokio::sync::watch;

/// How long a call that cancels waits for the statement to end.
const END_WAIT_MAX: Duration = Duration::from_secs(1);

/// The statements that run or wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct RunningStatements {
    listed: Mutex<Listed>,
}

#[derive(Debug, Default)]
struct Listed {
    next: u64,
    by_number: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    handle: Bytes,
    user: Arc<str>,
    cancel: Arc<watch::Sender<bool>>,
}

/// What became of statements that were to be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancelled {
    /// No such statement runs.
    Unknown,
    /// They were told, and have ended.
    Ended,
    /// They were told, and some have not ended yet.
    Told,
}

/// A place in the list, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    number: u64,
    list: Arc<RunningStatements>,
    cancelled: watch::Receiver<bool>,
}

impl RunningStatements {
    fn lock(&self) -> MutexGuard<'_, Listed> {
        lock(&self.listed)
    }

    /// Adds a statement of a user.
    pub fn add(self: &Arc<Self>, handle: Bytes, user: &str) -> Place {
        let (cancel, cancelled) = watch::channel(false);
        let mut listed = self.lock();
        let number = listed.next;
        listed.next += 1;
        let entry = Entry { handle, user: user.into(), cancel: Arc::new(cancel) };
        listed.by_number.insert(number, entry);
        Place { number, list: Arc::clone(self), cancelled }
    }

    /// Cancels what runs under a handle that nobody can guess.
    pub fn cancel_all(&self, handle: &[u8]) {
        let listed = self.lock();
        for entry in listed.by_number.values().filter(|e| e.handle == handle) {
            entry.cancel.send_replace(true);
        }
    }

    /// Cancels what a user runs under a handle, and waits some time for its end.
    pub async fn cancel(&self, handle: &[u8], user: &str) -> Cancelled {
        let told: Vec<_> = {
            let listed = self.lock();
            let of_handle = listed.by_number.values().filter(|e| e.handle == handle);
            let of_user = of_handle.filter(|e| *e.user == *user);
            of_user.map(|e| Arc::clone(&e.cancel)).collect()
        };
        if told.is_empty() {
            return Cancelled::Unknown;
        }
        for cancel in &told {
            cancel.send_replace(true);
        }
        let ended = join_all(told.iter().map(|cancel| cancel.closed()));
        match tokio::time::timeout(END_WAIT_MAX, ended).await {
            Ok(_) => Cancelled::Ended,
            Err(_) => Cancelled::Told,
        }
    }
}

impl Place {
    /// Waits until the statement is cancelled; for ever if it is not.
    pub async fn cancelled(&mut self) {
        if self.cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
            futures::future::pending().await
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.list.lock().by_number.remove(&self.number));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn only_what_a_user_runs_under_a_handle_is_cancelled() {
        let list = Arc::new(RunningStatements::default());
        let place = |handle: &'static [u8], user| list.add(Bytes::from_static(handle), user);
        let mut twice = [place(b"a", "ada"), place(b"a", "ada")];
        let mut others = [place(b"b", "ada"), place(b"a", "rob")];
        assert_eq!(list.cancel(b"c", "ada").await, Cancelled::Unknown);
        assert_eq!(list.cancel(b"a", "eve").await, Cancelled::Unknown);
        let cancelling = list.cancel(b"a", "ada");
        let ending = async move {
            for place in &mut twice {
                place.cancelled().await;
            }
        };
        assert_eq!(tokio::join!(cancelling, ending).0, Cancelled::Ended);
        assert_eq!(list.cancel(b"a", "ada").await, Cancelled::Unknown);
        for place in &mut others {
            assert!(!*place.cancelled.borrow_and_update());
        }
    }
}
