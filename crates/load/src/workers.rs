//! Workers on threads: each takes tasks until there are none, something fails, or the load is to stop.
//!
//! What a task is, and when there is one, is known elsewhere: this is tested with tasks that do nothing.

use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use std::time::Duration;

use coload_threads::lock;
use coload_types::{Error, Result};

/// How long who waits does so before it looks again whether the load is to stop.
const WAIT: Duration = Duration::from_millis(100);

/// Knows what is to be done next.
pub trait Tasks {
    /// Something a worker can do.
    type Task;

    /// The next task, if one can be done now.
    fn take_task(&mut self) -> Option<Self::Task>;

    /// Whether there is nothing more to do, ever.
    fn is_finished(&self) -> bool;
}

/// What workers share and change under one lock.
#[derive(Debug)]
pub struct Shared<T> {
    /// What is to be done.
    pub tasks: T,
    /// The first thing that went wrong.
    pub error: Option<Error>,
}

/// The workers of a load.
#[derive(Debug)]
pub struct Workers<T> {
    shared: Mutex<Shared<T>>,
    /// For workers that wait for a task.
    wake: Condvar,
    /// Workers that wait, or are about to.
    idle: AtomicUsize,
    /// For who watches the workers.
    end: Condvar,
    ended: AtomicBool,
}

impl<T: Tasks> Workers<T> {
    /// Workers for these tasks.
    pub fn new(tasks: T) -> Self {
        Workers {
            shared: Mutex::new(Shared { tasks, error: None }),
            wake: Condvar::new(),
            idle: AtomicUsize::new(0),
            end: Condvar::new(),
            ended: AtomicBool::new(false),
        }
    }

    /// What they share, for a moment.
    pub fn lock(&self) -> MutexGuard<'_, Shared<T>> {
        lock(&self.shared)
    }

    /// What they shared, when all have ended.
    pub fn into_shared(self) -> Shared<T> {
        self.shared.into_inner().unwrap_or_else(|e| e.into_inner())
    }

    /// Set when the load has ended.
    pub fn ended(&self) -> &AtomicBool {
        &self.ended
    }

    /// Ends the load with an error, unless there was one before.
    pub fn fail(&self, error: Error) {
        self.lock().error.get_or_insert(error);
        self.wake_all();
    }

    /// Tells everybody that something changed.
    pub fn wake_all(&self) {
        self.wake.notify_all();
        self.end.notify_all();
    }

    /// Tells workers that wait that there may be something to do. Who waits said so under the lock under
    /// which tasks are made.
    pub fn wake_idle(&self) {
        if self.idle.load(Ordering::Acquire) > 0 {
            self.wake.notify_all();
        }
    }

    /// Does tasks until there are none. `go_on` is asked before each, and ends the load with its error, as a task does.
    pub fn work(&self, go_on: impl Fn() -> Result<()>, mut run: impl FnMut(T::Task) -> Result<()>) {
        // A worker that dies takes the others with it instead of leaving them waiting.
        let bell = EndBell(self);
        while let Some(task) = self.next_task(&go_on) {
            if let Err(error) = run(task) {
                self.fail(error);
                break;
            }
            self.wake_idle();
        }
        drop(bell);
    }

    /// Does something beside the workers; when it dies, the load ends.
    pub fn beside(&self, run: impl FnOnce()) {
        let bell = EndBell(self);
        run();
        drop(bell);
    }

    /// The next task; waits for it. `None` when the load has ended.
    pub fn next_task(&self, go_on: impl Fn() -> Result<()>) -> Option<T::Task> {
        let mut shared = self.lock();
        loop {
            if let Err(error) = go_on() {
                shared.error.get_or_insert(error);
            }
            if shared.error.is_some() || shared.tasks.is_finished() {
                self.wake_all();
                return None;
            }
            if let Some(task) = shared.tasks.take_task() {
                return Some(task);
            }
            self.idle.fetch_add(1, Ordering::AcqRel);
            shared = self
                .wake
                .wait_timeout(shared, WAIT)
                .map_or_else(|e| e.into_inner().0, |(shared, _)| shared);
            self.idle.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Waits until the load has ended, and tells of it every tenth of a second.
    pub fn watch(&self, tell: impl Fn()) {
        let mut shared = self.lock();
        while !self.ended.load(Ordering::Acquire) {
            shared = self
                .end
                .wait_timeout(shared, WAIT)
                .map_or_else(|e| e.into_inner().0, |(shared, _)| shared);
            tell();
            if shared.tasks.is_finished() || shared.error.is_some() {
                break;
            }
        }
        self.ended.store(true, Ordering::Release);
    }
}

/// The error for a thread that panicked. Trying again would end in the same way.
pub fn thread_failed() -> Error {
    Error::Refused("internal error: a thread of the load panicked; see the message above".into())
}

/// Ends the load when a worker ends, also by a panic.
struct EndBell<'a, T: Tasks>(&'a Workers<T>);

impl<T: Tasks> Drop for EndBell<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(thread_failed());
        }
        let shared = &self.0.shared;
        if shared.lock().is_ok_and(|s| s.tasks.is_finished() || s.error.is_some()) {
            self.0.ended.store(true, Ordering::Release);
        }
        self.0.wake_all();
    }
}

#[cfg(test)]
mod tests;
