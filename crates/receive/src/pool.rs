//! The threads that work on loads: fewer than cores if so configured, and behind queries in the
//! scheduler's order.

use std::collections::VecDeque;
use std::sync::{
    Arc, Condvar, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::time::{Duration, Instant};

use coload_threads::{lock, spawn, thread_cpu_ns, thread_run_and_wait_ns};
use coload_types::{Error, Result};

use crate::core_share::CoreShare;
use crate::duty::Duty;
use crate::options::ReceiveOptions;

/// How often a thread that works looks at what it has run and waited.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// What a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Takes a block that came; as many run as there are threads.
    Block,
    /// Compresses and writes a column of a whole partition; few of these run at once.
    Merge,
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads that take jobs.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    queues: Mutex<Queues>,
    changed: Condvar,
    merges_max: usize,
    /// CPU nanoseconds of all jobs.
    cpu_ns: AtomicU64,
    core: CoreShare,
    duty: Duty,
    ended: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("merges_max", &self.merges_max).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Queues {
    blocks: VecDeque<Job>,
    merges: VecDeque<Job>,
    merging: usize,
}

impl Pool {
    /// Starts the threads.
    ///
    /// # Errors
    /// `Unavailable` when they cannot be started.
    pub fn start(options: &ReceiveOptions) -> Result<Self> {
        let shared = Arc::new(Shared {
            queues: Mutex::default(),
            changed: Condvar::new(),
            merges_max: options.merge_columns.max(1),
            cpu_ns: AtomicU64::new(0),
            core: CoreShare::default(),
            duty: Duty::new(options),
            ended: AtomicBool::new(false),
        });
        for number in 0..options.load_threads() {
            let shared = Arc::clone(&shared);
            let name = format!("coload-receive-{number}");
            let builder = std::thread::Builder::new().name(name);
            spawn(builder, move || shared.work())
                .map_err(|e| Error::Unavailable(format!("cannot start a thread: {e}")))?;
        }
        Ok(Pool { shared })
    }

    /// Queues a job for the next thread that is free.
    pub fn submit(&self, class: Class, job: impl FnOnce() + Send + 'static) {
        let mut queues = lock(&self.shared.queues);
        match class {
            Class::Block => queues.blocks.push_back(Box::new(job)),
            Class::Merge => queues.merges.push_back(Box::new(job)),
        }
        drop(queues);
        self.shared.changed.notify_one();
    }

    /// Notes bytes that came over the network.
    pub fn received(&self, bytes: u64) {
        self.shared.core.received(bytes);
    }

    /// How much of a core each thread gets, over 0 to 1; 0 until it is known.
    pub fn core_share(&self) -> f32 {
        self.shared.core.share()
    }

    /// CPU time of all jobs so far.
    pub fn cpu_ns(&self) -> u64 {
        self.shared.cpu_ns.load(Ordering::Relaxed)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        self.duty.begin();
        let (mut ran_and_waited, mut looked) = ((0, 0), Instant::now());
        while let Some((class, job)) = self.next() {
            let started = thread_cpu_ns();
            // A job that panics has told its load; the thread goes on with the others.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            let spent = thread_cpu_ns() - started;
            self.cpu_ns.fetch_add(spent, Ordering::Relaxed);
            if class == Class::Merge {
                lock(&self.queues).merging -= 1;
                self.changed.notify_all();
            }
            if looked.elapsed() >= LOOK_INTERVAL
                && let Some(now) = thread_run_and_wait_ns()
            {
                let (ran, waited) = ran_and_waited;
                self.core.note(now.0.saturating_sub(ran), now.1.saturating_sub(waited));
                (ran_and_waited, looked) = (now, Instant::now());
            }
            self.duty.rest(spent);
        }
    }

    /// The next job. Merges go first: they empty memory.
    fn next(&self) -> Option<(Class, Job)> {
        let mut queues = lock(&self.queues);
        loop {
            if self.ended.load(Ordering::Acquire) {
                return None;
            }
            if queues.merging < self.merges_max
                && let Some(job) = queues.merges.pop_front()
            {
                queues.merging += 1;
                return Some((Class::Merge, job));
            }
            if let Some(job) = queues.blocks.pop_front() {
                return Some((Class::Block, job));
            }
            queues = self.changed.wait(queues).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn no_more_merges_run_at_once_than_allowed_and_a_panic_ends_no_thread() {
        let options = ReceiveOptions { load_cpu: 4.0, merge_columns: 2, ..Default::default() };
        let pool = Pool::start(&options).unwrap();
        let (running, most, done) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicUsize::new(0)),
        );
        for number in 0..40 {
            let (running, most, done) = (running.clone(), most.clone(), done.clone());
            pool.submit(Class::Merge, move || {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(1));
                running.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
                assert!(number != 7, "one job panics");
            });
        }
        while done.load(Ordering::SeqCst) < 40 {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }
}
