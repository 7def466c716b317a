//! Planning on threads of its own, where its caller can leave it.
//!
//! Parser and planner compute without a pause and call themselves, so each statement is planned on a thread with a large
//! stack, of which only what is used takes memory; threads that are done wait a while for the next. A caller waits for a limited time and then has an error; one that
//! goes away is not waited for. A thread that was left goes on until its plan is made, which the limits of a statement
//! bound, and keeps its place until then, so that no more plannings run than are allowed. One user has at most half of
//! the places: others are planned whatever he sends. What takes longer than most goes on at a lower priority.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coload_threads::lock;
use coload_types::{Error, Result};
use futures::channel::oneshot;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use self::pause::{Hold, Places};
use self::threads::{Tell, Threads};
use crate::statement::StatementLimits;

pub(crate) mod pause;
mod threads;

/// Stack of a planning thread. Trees are as deep as `StatementLimits::depth`, chains of operators that are refused as
/// long as `statement::text` lets them be.
pub(crate) const PLANNING_STACK_BYTES: usize = 256 << 20;

/// What is not planned by then goes on behind what runs: nearly all statements take less.
const USUAL_TIME: Duration = Duration::from_millis(50);

/// Runs some planning on a stack that is large enough for every tree, and waits for it.
///
/// # Errors
/// What the work returns; `Unavailable` when there is no thread.
pub(crate) fn on_large_stack<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(PLANNING_STACK_BYTES);
        let thread = thread
            .spawn_scoped(scope, work)
            .map_err(|e| Error::Unavailable(format!("cannot start a thread to plan: {e}")))?;
        thread.join().unwrap_or_else(|_| {
            Err(Error::Refused("internal error: planning ended without a plan".into()))
        })
    })
}

/// Places of those who plan a statement: some for all users, a share of them for each.
pub(crate) struct Planner {
    places: Arc<Semaphore>,
    by_user: Mutex<HashMap<String, Arc<Semaphore>>>,
    of_one_user: usize,
    time: Duration,
    threads: Arc<Threads>,
}

impl Planner {
    pub fn new(limits: &StatementLimits) -> Self {
        let count = limits.plannings.max(1);
        Planner {
            places: Arc::new(Semaphore::new(count)),
            by_user: Mutex::default(),
            of_one_user: count.div_ceil(2),
            time: limits.planning,
            threads: Threads::new("coload-plan", PLANNING_STACK_BYTES),
        }
    }

    /// Runs some planning of a user and waits for it.
    ///
    /// # Errors
    /// What the work returns; `Limit` when it takes too long, `Unavailable` when others have all places for as long.
    pub async fn run<T, F>(
        &self,
        user: &str,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>>,
    {
        let seconds = self.time.as_secs_f64();
        let places = Places { user: self.semaphore_of(user), all: Arc::clone(&self.places) };
        let held = tokio::time::timeout(self.time, Hold::take(places)).await.map_err(|_| {
            Error::Unavailable(format!(
                "other statements were being planned for {seconds} s; try again (--planning-time)"
            ))
        })??;
        let (done, mut planned) = oneshot::channel();
        let runtime = Handle::current();
        let holding = Arc::clone(&held);
        let work = move || {
            // The place is free before the caller goes on.
            let made = holding.run(|| runtime.block_on(work()));
            Box::new(move || drop(done.send(made))) as Tell
        };
        let progress = self
            .threads
            .run(work)
            .map_err(|e| Error::Unavailable(format!("cannot start a thread to plan: {e}")))?;
        let usual = USUAL_TIME.min(self.time);
        let mut answer = tokio::time::timeout(usual, &mut planned).await;
        if answer.is_err() {
            progress.slow();
        }
        while answer.is_err() {
            let left = held.left(self.time);
            if left.is_zero() {
                break;
            }
            answer = tokio::time::timeout(left, &mut planned).await;
        }
        match answer {
            Ok(Ok(made)) => made,
            Ok(Err(_)) => {
                Err(Error::Refused("internal error: planning ended without a plan".into()))
            }
            Err(_) => Err(Error::Limit(format!(
                "planning the statement took longer than {seconds} s (--planning-time): simplify it"
            ))),
        }
    }

    fn semaphore_of(&self, user: &str) -> Arc<Semaphore> {
        /// Users remembered before those without a planning are forgotten.
        const REMEMBERED: usize = 256;
        let mut by_user = lock(&self.by_user);
        if by_user.len() > REMEMBERED {
            by_user.retain(|_, places| Arc::strong_count(places) > 1);
        }
        let new = || Arc::new(Semaphore::new(self.of_one_user));
        Arc::clone(by_user.entry(user.to_owned()).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Instant;

    use super::*;

    /// At a1bdeed two statements whose planning took long held up all others.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn planning_that_takes_long_is_left_and_holds_up_nobody_else() {
        let limits = StatementLimits {
            planning: Duration::from_millis(300),
            plannings: 4,
            ..StatementLimits::default()
        };
        let planner = Arc::new(Planner::new(&limits));
        let slow = || async {
            std::thread::sleep(Duration::from_secs(3));
            Ok(())
        };
        let mut waiting = Vec::new();
        for _ in 0..8 {
            let planner = Arc::clone(&planner);
            waiting.push(tokio::spawn(async move { planner.run("eve", slow).await }));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let began = Instant::now();
        assert_eq!(planner.run("ada", || async { Ok(7) }).await.unwrap(), 7);
        assert!(began.elapsed() < Duration::from_millis(250), "{:?}", began.elapsed());
        for one in waiting {
            let left = one.await.unwrap();
            assert!(matches!(left, Err(Error::Limit(_) | Error::Unavailable(_))), "{left:?}");
        }
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_planning_that_waits_for_files_has_its_time_and_no_place() {
        let limits = StatementLimits {
            planning: Duration::from_millis(300),
            plannings: 2,
            ..StatementLimits::default()
        };
        let planner = Arc::new(Planner::new(&limits));
        let waits = || async {
            pause::paused(|| std::thread::sleep(Duration::from_secs(1)))?;
            pause::paused(|| std::thread::sleep(Duration::from_millis(100)))
        };
        let mut waiting = Vec::new();
        for _ in 0..4 {
            let planner = Arc::clone(&planner);
            waiting.push(tokio::spawn(async move { planner.run("eve", waits).await }));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(planner.run("eve", || async { Ok(7) }).await.unwrap(), 7);
        for one in waiting {
            one.await.unwrap().unwrap();
        }
        let slow = || async {
            pause::paused(|| std::thread::sleep(Duration::from_millis(400)))?;
            std::thread::sleep(Duration::from_secs(2));
            Ok(())
        };
        let began = Instant::now();
        assert!(matches!(planner.run("eve", slow).await, Err(Error::Limit(_))));
        assert!(began.elapsed() < Duration::from_millis(1_500), "{:?}", began.elapsed());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_panic_while_planning_is_an_error() {
        let planner = Planner::new(&StatementLimits::default());
        let work = || async { if true { panic!("on purpose") } else { Ok(()) } };
        assert!(matches!(planner.run("", work).await, Err(Error::Refused(_))));
    }
}
