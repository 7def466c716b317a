//! Threads with tasks that do nothing.

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use super::*;
use crate::schedule::{Before, Job, Lane, Partitions, Schedule, Shape, Task};

/// A job of a partition that does nothing.
#[derive(Debug, Clone, Copy)]
struct Nothing(usize);

impl Job for Nothing {}

/// A load of chunks that do nothing, two a partition.
struct Chunks {
    schedule: Schedule<Nothing>,
    read: Vec<usize>,
    sealed: Vec<usize>,
}

impl Tasks for Chunks {
    type Task = Task<Nothing>;

    fn take_task(&mut self) -> Option<Task<Nothing>> {
        self.schedule.take_task()
    }

    fn is_finished(&self) -> bool {
        self.schedule.is_finished()
    }
}

impl Chunks {
    fn new(chunks: usize) -> Self {
        let schedule = Schedule::new(Shape {
            chunks: Some(chunks),
            ahead_max: usize::MAX,
            partitions: Partitions::of_chunks(2),
            readers: 4,
            large_bytes: usize::MAX,
            merges: 1,
            keeps_partitions: false,
        });
        Chunks { schedule, read: Vec::new(), sealed: Vec::new() }
    }

    fn done(&mut self, task: &Task<Nothing>) {
        let schedule = &mut self.schedule;
        match task {
            Task::Chunk(chunk) => {
                schedule.read();
                self.read.push(*chunk);
                while self.read.contains(&schedule.frontier()) {
                    schedule.verify();
                    if let Some(partition) = schedule.take_complete() {
                        schedule.begin(partition, 0, vec![Nothing(partition); 3]);
                    }
                }
            }
            Task::Job(Nothing(partition)) => schedule.done_of(*partition),
            Task::Seal(partition) => {
                self.sealed.push(*partition);
                schedule.told_sealed();
            }
            Task::End => schedule.done(Before::Finish, Lane::Any),
            Task::ChunkAgain(_) | Task::TakeChunk => unreachable!("chunks are right, and known"),
        }
    }
}

/// Runs a load on threads; `on` is asked of each task, by its number, before it is done.
fn run(
    threads: usize,
    chunks: usize,
    cancel: &AtomicBool,
    on: impl Fn(u64) -> Result<()> + Sync,
) -> Shared<Chunks> {
    let workers = Workers::new(Chunks::new(chunks));
    let count = AtomicU64::new(0);
    let go_on = || match cancel.load(Ordering::Relaxed) {
        true => Err(Error::Unavailable("stopped".to_owned())),
        false => Ok(()),
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let work = || {
                    workers.work(go_on, |task| {
                        on(count.fetch_add(1, Ordering::Relaxed))?;
                        workers.lock().tasks.done(&task);
                        Ok(())
                    });
                };
                // A panic of a test's task is told by the workers.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            });
        }
        workers.watch(|| {});
    });
    assert!(workers.ended().load(Ordering::Acquire));
    workers.into_shared()
}

#[test]
fn any_number_of_threads_does_all_and_seals_in_order() {
    for threads in [1, 2, 3, 8] {
        let shared = run(threads, 41, &AtomicBool::new(false), |_| Ok(()));
        assert!(shared.error.is_none());
        let mut read = shared.tasks.read;
        read.sort_unstable();
        assert_eq!(read, (0..41).collect::<Vec<_>>());
        let sealed: Vec<usize> = (0..21).collect();
        let mut found = shared.tasks.sealed;
        // Two seals may be told by two threads at once.
        found.sort_unstable();
        assert_eq!(found, sealed, "{threads} threads");
    }
}

#[test]
fn the_first_failure_ends_all_threads_and_nothing_comes_after_it() {
    for threads in [1, 2, 8] {
        let fail = |number| match number {
            30.. => Err(Error::Limit(format!("task {number}"))),
            _ => Ok(()),
        };
        let shared = run(threads, 1_000, &AtomicBool::new(false), fail);
        assert!(matches!(shared.error, Some(Error::Limit(_))), "{:?}", shared.error);
        assert!(!shared.tasks.is_finished());
        assert!(shared.tasks.read.len() <= 30, "{}", shared.tasks.read.len());
    }
}

#[test]
fn a_task_that_panics_ends_the_load() {
    let shared = run(3, 1_000, &AtomicBool::new(false), |number| {
        assert!(number != 20, "a task of a test");
        Ok(())
    });
    assert!(matches!(shared.error, Some(Error::Refused(_))), "{:?}", shared.error);
    assert!(!shared.tasks.is_finished());
}

#[test]
fn threads_that_wait_see_that_a_load_is_cancelled() {
    let cancel = AtomicBool::new(false);
    let began = Instant::now();
    // The others have nothing to do but to wait for the first chunk when the load is cancelled.
    let shared = run(4, 1_000, &cancel, |number| {
        if number == 0 {
            std::thread::sleep(Duration::from_millis(300));
            cancel.store(true, Ordering::Relaxed);
        }
        Ok(())
    });
    assert!(matches!(shared.error, Some(Error::Unavailable(_))), "{:?}", shared.error);
    assert!(shared.tasks.sealed.is_empty(), "{:?}", shared.tasks.sealed);
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_thread_that_sleeps_starves_nobody_who_can_go_on() {
    let others = AtomicU64::new(0);
    let shared = run(3, 200, &AtomicBool::new(false), |number| {
        if number == 0 {
            // Until the others have done all that they can: three chunks beside it.
            let until = Instant::now() + Duration::from_secs(60);
            while others.load(Ordering::Acquire) < 3 {
                assert!(Instant::now() < until, "the others wait for one that sleeps");
                std::thread::sleep(Duration::from_millis(1));
            }
        } else {
            others.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    });
    assert!(shared.error.is_none(), "{:?}", shared.error);
    assert_eq!(shared.tasks.read.len(), 200);
}
