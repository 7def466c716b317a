//! Independent work on threads of the runtime, which are there already: what a thread that is started for it had freed
//! would be lost to the next, and be taken from the system anew.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use coload_threads::lock;
use coload_types::{Error, Result};
use datafusion::common::runtime::SpawnedTask;

/// Does `work` for each item, in their order, on at most so many threads, of which the caller's is one. Gives the items
/// and what came of each, or the error of the first item that has one.
///
/// Who calls does all of it if no other thread is free, and waits for none that has not begun.
///
/// # Errors
/// Those of `work`.
pub(super) fn on_threads<T: Send + 'static, R: Send + 'static>(
    threads: usize,
    mut items: Vec<T>,
    work: impl Fn(&mut T) -> Result<R> + Send + Sync + 'static,
) -> Result<Vec<(T, R)>> {
    let count = items.len();
    if threads.min(count) <= 1 {
        let results = items.iter_mut().map(work).collect::<Result<Vec<R>>>()?;
        return Ok(items.into_iter().zip(results).collect());
    }
    let shared = Arc::new(Shared { queue: Mutex::new(items.into_iter().enumerate()), work });
    let (sender, receiver) = channel();
    let helper = |_| {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        SpawnedTask::spawn_blocking(move || shared.take_all(&sender))
    };
    let helpers: Vec<SpawnedTask<()>> = (1..threads.min(count)).map(helper).collect();
    shared.take_all(&sender);
    drop(sender);
    let mut done: Vec<(usize, T, Result<R>)> = receiver.iter().take(count).collect();
    // Those that have not begun never do.
    drop(helpers);
    if done.len() < count {
        return Err(Error::Refused("internal error: a thread that writes rows panicked".into()));
    }
    done.sort_by_key(|(index, ..)| *index);
    done.into_iter().map(|(_, item, result)| Ok((item, result?))).collect()
}

/// What threads work on together.
struct Shared<T, W> {
    queue: Mutex<std::iter::Enumerate<std::vec::IntoIter<T>>>,
    work: W,
}

impl<T, W> Shared<T, W> {
    fn take_all<R>(&self, sender: &Sender<(usize, T, Result<R>)>)
    where
        W: Fn(&mut T) -> Result<R>,
    {
        loop {
            let Some((index, mut item)) = lock(&self.queue).next() else { return };
            let result = (self.work)(&mut item);
            if sender.send((index, item, result)).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn items_come_back_in_order_and_the_first_error_wins() {
        let twice = |item: &mut u32| {
            *item += 1;
            Ok(*item * 2)
        };
        let failing = |item: &mut u32| match *item % 7 {
            6 => Err(Error::Invalid(item.to_string())),
            _ => Ok(()),
        };
        for threads in [0, 1, 2, 50] {
            let expected: Vec<(u32, u32)> = (1..101).map(|n| (n, n * 2)).collect();
            assert_eq!(on_threads(threads, (0..100).collect(), twice).unwrap(), expected);
            let error = on_threads(threads, (0..100).collect(), failing).unwrap_err();
            assert!(matches!(&error, Error::Invalid(item) if item == "6"), "{error}");
        }
        assert!(on_threads(2, Vec::<u32>::new(), twice).unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_panic_of_another_thread_is_an_error() {
        let caller = std::thread::current().id();
        let work = move |_: &mut u32| {
            // The other thread gets one, sooner or later.
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert_eq!(std::thread::current().id(), caller, "only here");
            Ok(())
        };
        let error = on_threads(2, vec![0; 500], work).unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
    }
}
