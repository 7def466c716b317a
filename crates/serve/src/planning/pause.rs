//! Pauses of a planning: while it waits for what is elsewhere, its time stands still and others have its place.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use coload_threads::lock;
use coload_types::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Where a planning has its place: of one user, and of all.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub user: Arc<Semaphore>,
    pub all: Arc<Semaphore>,
}

/// A place of a planning, given back when dropped.
#[derive(Debug)]
struct Place {
    _user: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Places {
    async fn take(&self) -> Result<Place> {
        let closed = |_| Error::Unavailable("the database is closing".into());
        let _user = Arc::clone(&self.user).acquire_owned().await.map_err(closed)?;
        let _all = Arc::clone(&self.all).acquire_owned().await.map_err(closed)?;
        Ok(Place { _user, _all })
    }
}

/// The place and the time of a planning that runs.
#[derive(Debug)]
pub(super) struct Hold {
    places: Places,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    place: Option<Place>,
    began: Instant,
    /// Time of pauses that are over.
    paused: Duration,
    /// When the pause began that goes on.
    pausing: Option<Instant>,
}

thread_local! {
    /// What the planning on this thread holds.
    static HELD: RefCell<Option<Arc<Hold>>> = const { RefCell::new(None) };
}

impl Hold {
    /// Waits for a place.
    ///
    /// # Errors
    /// `Unavailable` when there will be none.
    pub async fn take(places: Places) -> Result<Arc<Self>> {
        let place = Some(places.take().await?);
        let (paused, pausing) = (Duration::ZERO, None);
        let state = State { place, began: Instant::now(), paused, pausing };
        Ok(Arc::new(Hold { places, state: Mutex::new(state) }))
    }

    /// Runs a planning on this thread, and gives the place back behind it.
    pub fn run<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        HELD.set(Some(Arc::clone(self)));
        let _end = End(self);
        work()
    }

    /// Time that is left of so much.
    pub fn left(&self, time: Duration) -> Duration {
        let state = lock(&self.state);
        let pausing = state.pausing.map_or(Duration::ZERO, |since| since.elapsed());
        let spent = state.began.elapsed().saturating_sub(state.paused + pausing);
        time.saturating_sub(spent)
    }

    /// Does something while others have the place.
    fn pause<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        {
            let mut state = lock(&self.state);
            state.place = None;
            state.pausing = Some(Instant::now());
        }
        let done = work();
        let place = futures::executor::block_on(self.places.take());
        let mut state = lock(&self.state);
        let pausing = state.pausing.take();
        state.paused += pausing.map_or(Duration::ZERO, |since| since.elapsed());
        state.place = Some(place?);
        Ok(done)
    }
}

/// The end of a planning, by a panic too.
struct End<'a>(&'a Hold);

impl Drop for End<'_> {
    fn drop(&mut self) {
        HELD.set(None);
        lock(&self.0.state).place = None;
    }
}

/// Does something that waits for disks or the network, within a planning if there is one on this thread.
///
/// # Errors
/// `Unavailable` when there is no place to go on planning.
pub(crate) fn paused<T>(work: impl FnOnce() -> T) -> Result<T> {
    match HELD.with_borrow(Clone::clone) {
        Some(held) => held.pause(work),
        None => Ok(work()),
    }
}
