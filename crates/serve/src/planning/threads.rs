//! Threads with large stacks, which are kept for a while: a new one costs as much as the plan of a short statement, for its
//! memory is new too.

use std::sync::{
    Arc, Mutex, MutexGuard, Weak,
    mpsc::{Receiver, RecvTimeoutError, Sender, channel},
};
use std::time::Duration;
use std::{io, thread};

use coload_threads::{lock, spawn};
use rustix::thread::Pid;

/// Threads that are kept when they have nothing to do.
const KEPT_MAX: usize = 4;
/// Time that a thread without work waits for the next statement.
const KEPT_TIME: Duration = Duration::from_secs(10);
/// Added to the nice value of a thread that takes long: the scheduler gives one at 10 about a tenth of what it gives one at 0.
const NICE: i32 = 10;

/// Tells who waits for some work that it is done.
pub(super) type Tell = Box<dyn FnOnce() + Send>;

struct Job {
    work: Box<dyn FnOnce() -> Tell + Send>,
    progress: Arc<Progress>,
}

/// How far some work has come.
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<At>);

#[derive(Debug, Default, Clone, Copy)]
enum At {
    #[default]
    Waits,
    Runs(Pid),
    /// On a thread of a lower priority, which cannot have its own back.
    Slow,
    Done,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, At> {
        lock(&self.0)
    }

    /// Has the work go on at a lower priority. Best effort.
    pub fn slow(&self) {
        let mut at = self.lock();
        if let At::Runs(thread) = *at
            && rustix::process::setpriority_process(Some(thread), NICE).is_ok()
        {
            *at = At::Slow;
        }
    }
}

/// The threads that have nothing to do.
#[derive(Debug)]
pub(super) struct Threads {
    name: &'static str,
    stack_bytes: usize,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    thread: thread::ThreadId,
    jobs: Sender<Job>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("progress", &self.progress).finish_non_exhaustive()
    }
}

impl Threads {
    pub fn new(name: &'static str, stack_bytes: usize) -> Arc<Self> {
        Arc::new(Threads { name, stack_bytes, idle: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        lock(&self.idle)
    }

    /// Runs some work on a thread that has nothing to do, or a new one.
    ///
    /// # Errors
    /// When there is none.
    pub fn run(
        self: &Arc<Self>,
        work: impl FnOnce() -> Tell + Send + 'static,
    ) -> io::Result<Arc<Progress>> {
        let progress = Arc::<Progress>::default();
        let mut job = Job { work: Box::new(work), progress: Arc::clone(&progress) };
        let mut idle = self.lock();
        while let Some(one) = idle.pop() {
            match one.jobs.send(job) {
                Ok(()) => return Ok(progress),
                Err(back) => job = back.0,
            }
        }
        drop(idle);
        let threads = Arc::downgrade(self);
        let builder = thread::Builder::new().name(self.name.into()).stack_size(self.stack_bytes);
        spawn(builder, move || work_on(&threads, job))?;
        Ok(progress)
    }
}

fn work_on(threads: &Weak<Threads>, mut job: Job) {
    let own = thread::current().id();
    let (jobs, next) = channel();
    loop {
        *job.progress.lock() = At::Runs(rustix::thread::gettid());
        let tell = (job.work)();
        let was = std::mem::replace(&mut *job.progress.lock(), At::Done);
        // Who is told may come with more at once, and finds this thread.
        let is_kept = matches!(was, At::Runs(_))
            && threads.upgrade().is_some_and(|threads| {
                let mut idle = threads.lock();
                let has_room = idle.len() < KEPT_MAX;
                if has_room {
                    idle.push(Idle { thread: own, jobs: jobs.clone() });
                }
                has_room
            });
        tell();
        job = match is_kept.then(|| wait(threads, own, &next)).flatten() {
            Some(next) => next,
            None => return,
        };
    }
}

/// The next work; `None` when there was none for long.
fn wait(threads: &Weak<Threads>, own: thread::ThreadId, next: &Receiver<Job>) -> Option<Job> {
    match next.recv_timeout(KEPT_TIME) {
        Ok(job) => return Some(job),
        Err(RecvTimeoutError::Disconnected) => return None,
        Err(RecvTimeoutError::Timeout) => {}
    }
    let threads = threads.upgrade()?;
    let mut idle = threads.lock();
    idle.retain(|one| one.thread != own);
    // What was sent before this thread was taken out.
    next.try_recv().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn thread_of(threads: &Arc<Threads>) -> thread::ThreadId {
        let (tell, told) = channel();
        let work = move || {
            let id = thread::current().id();
            Box::new(move || tell.send(id).unwrap()) as Tell
        };
        threads.run(work).unwrap();
        told.recv().unwrap()
    }

    #[test]
    fn a_thread_works_again_unless_it_was_slow_or_panicked() {
        let threads = Threads::new("test", 1 << 20);
        let first = thread_of(&threads);
        for _ in 0..100 {
            assert_eq!(thread_of(&threads), first);
        }
        let (go_on, waits) = channel();
        let (tell, told) = channel();
        let (begin, begun) = channel();
        let progress = threads
            .run(move || {
                begin.send(()).unwrap();
                waits.recv().unwrap();
                Box::new(move || tell.send(()).unwrap()) as Tell
            })
            .unwrap();
        begun.recv().unwrap();
        progress.slow();
        go_on.send(()).unwrap();
        told.recv().unwrap();
        let second = thread_of(&threads);
        assert_ne!(second, first);
        // Too late: it works on something else by now.
        progress.slow();
        threads.run(|| panic!("on purpose")).unwrap();
        let third = thread_of(&threads);
        assert_eq!(thread_of(&threads), third);
    }
}
