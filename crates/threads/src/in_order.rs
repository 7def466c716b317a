//! Things that are made by several threads and taken in their order.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::Result as Outcome;

use crate::{join_all, lock};

/// Things for each thread that may be made before the next one in order is taken: what is made takes memory.
const AHEAD: usize = 2;

/// Makes so many things by some threads, the calling one among them, which takes them in their order: what follows from
/// the order does not depend on who made them.
///
/// After an error nothing more is begun.
///
/// # Errors
/// The first of the calls, in the order of the things.
///
/// # Panics
/// With the panic of a call.
pub fn in_order<T: Send, E: Send>(
    count: usize,
    threads: usize,
    make: impl Fn(usize) -> Result<T, E> + Sync,
    mut take: impl FnMut(usize, T) -> Result<(), E>,
) -> Result<(), E> {
    if threads.min(count) < 2 {
        return (0..count).try_for_each(|number| take(number, make(number)?));
    }
    let made = Made { state: Mutex::new(State::default()), changed: Condvar::new() };
    let ahead = threads * AHEAD;
    std::thread::scope(|scope| {
        let helper = || {
            while let Some(number) = made.claim(count, ahead) {
                let outcome = catch_unwind(AssertUnwindSafe(|| make(number)));
                made.put(number, outcome);
            }
        };
        let helpers: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(helper)).collect();
        // Whatever becomes of the calls, the others are to end.
        let done = catch_unwind(AssertUnwindSafe(|| {
            (0..count).try_for_each(|number| {
                let outcome = made.wait(number, count, ahead, &make);
                take(number, outcome.unwrap_or_else(|panic| resume_unwind(panic))?)
            })
        }));
        made.stop();
        join_all(helpers);
        done.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Things that a thread takes at once, and most threads, of [`map_in_order`].
const STEP_THINGS: usize = 64;
const THREADS_MAX: usize = 8;

/// What becomes of each of some things, in their order, by threads: each call is short, and mostly waits for the system.
///
/// # Errors
/// The first of the calls, in the order of the things.
///
/// # Panics
/// With the panic of a call.
pub fn map_in_order<T: Sync, U: Send, E: Send>(
    things: &[T],
    each: impl Fn(&T) -> Result<U, E> + Sync,
) -> Result<Vec<U>, E> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let steps: Vec<&[T]> = things.chunks(STEP_THINGS).collect();
    let mut all = Vec::with_capacity(things.len());
    let make = |step: usize| steps[step].iter().map(&each).collect::<Result<Vec<U>, E>>();
    in_order(steps.len(), threads.min(THREADS_MAX), make, |_, mut made| {
        all.append(&mut made);
        Ok(())
    })?;
    Ok(all)
}

/// What was made and not taken yet.
struct Made<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// The first thing that nobody has begun.
    next: usize,
    /// Things that were taken.
    taken: usize,
    ready: BTreeMap<usize, Outcome<T>>,
    is_over: bool,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        State { next: 0, taken: 0, ready: BTreeMap::new(), is_over: false }
    }
}

impl<T> State<T> {
    /// Begins the next thing, if it may be begun.
    fn begin(&mut self, count: usize, ahead: usize) -> Option<usize> {
        let may = !self.is_over && self.next < count.min(self.taken + ahead);
        let number = self.next;
        self.next += usize::from(may);
        may.then_some(number)
    }
}

impl<T> Made<T> {
    /// The next thing for a helper to make; waits while there are enough. `None` when all are begun.
    fn claim(&self, count: usize, ahead: usize) -> Option<usize> {
        let mut state = lock(&self.state);
        loop {
            if let Some(number) = state.begin(count, ahead) {
                return Some(number);
            }
            if state.is_over || state.next == count {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn put(&self, number: usize, outcome: Outcome<T>) {
        lock(&self.state).ready.insert(number, outcome);
        self.changed.notify_all();
    }

    /// Gives a thing when it is made, and makes others meanwhile.
    fn wait(
        &self,
        number: usize,
        count: usize,
        ahead: usize,
        make: &(impl Fn(usize) -> T + Sync),
    ) -> Outcome<T> {
        let mut state = lock(&self.state);
        loop {
            if let Some(outcome) = state.ready.remove(&number) {
                state.taken = number + 1;
                self.changed.notify_all();
                return outcome;
            }
            match state.begin(count, ahead) {
                Some(other) => {
                    drop(state);
                    let outcome = catch_unwind(AssertUnwindSafe(|| make(other)));
                    state = lock(&self.state);
                    state.ready.insert(other, outcome);
                }
                None => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn stop(&self) {
        lock(&self.state).is_over = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn things_are_taken_in_their_order_whoever_makes_them() {
        for threads in [0, 1, 2, 3, 8] {
            for count in [0, 1, 2, 40] {
                let mut taken = Vec::new();
                let make = |number: usize| {
                    std::thread::sleep(Duration::from_micros((number * 7 % 5) as u64 * 100));
                    Ok::<_, ()>(number * 2)
                };
                let take = |number, made| {
                    taken.push((number, made));
                    Ok(())
                };
                in_order(count, threads, make, take).unwrap();
                assert_eq!(taken, (0..count).map(|n| (n, n * 2)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn no_more_are_made_than_may_wait() {
        let made = AtomicUsize::new(0);
        let make = |_| Ok::<_, ()>(made.fetch_add(1, Ordering::Relaxed));
        let take = |number, _| {
            std::thread::sleep(Duration::from_millis(2));
            assert!(made.load(Ordering::Relaxed) <= number + 1 + 2 * AHEAD);
            Ok(())
        };
        in_order(30, 2, make, take).unwrap();
    }

    #[test]
    fn the_first_error_ends_it() {
        for threads in [1, 3] {
            let make = |number| if number % 10 == 7 { Err(number) } else { Ok(number) };
            assert_eq!(in_order(1_000_000, threads, make, |_, _| Ok(())), Err(7));
            assert_eq!(in_order(9, threads, Ok::<_, usize>, |number, _| Err(number)), Err(0));
        }
    }

    #[test]
    fn a_panic_comes_through() {
        let panics = catch_unwind(|| {
            let make = |number| if number == 5 { panic!("five") } else { Ok::<_, ()>(()) };
            in_order(9, 3, make, |_, ()| Ok(()))
        });
        assert_eq!(*panics.unwrap_err().downcast_ref::<&str>().unwrap(), "five");
        let panics = catch_unwind(|| in_order(9, 3, |_| Ok::<_, ()>(()), |_, ()| panic!("take")));
        assert!(panics.is_err());
    }
}
