//! Independent work on several threads.

use std::sync::Mutex;

use crate::lock;

/// Does `work` for each item, on at most so many threads, of which the caller's is one. Gives the results in the order
/// of the items, or the error of the first item that has one.
///
/// Cost: a thread is started for each but the first; what takes less than some 100 us is not worth that.
///
/// # Errors
/// Those of `work`.
///
/// # Panics
/// When `work` does.
pub fn for_each_parallel<T: Send, R: Send, E: Send>(
    threads: usize,
    items: &mut [T],
    work: impl Fn(usize, &mut T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let threads = threads.min(items.len());
    if threads <= 1 {
        return items.iter_mut().enumerate().map(|(index, item)| work(index, item)).collect();
    }
    let queue = Mutex::new(items.iter_mut().enumerate());
    let results = Mutex::new(Vec::new());
    let take = || {
        loop {
            let Some((index, item)) = lock(&queue).next() else { return };
            let result = work(index, item);
            lock(&results).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| {
            scope.spawn(take);
        });
        take();
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_the_first_error_wins() {
        let mut items: Vec<u32> = (0..100).collect();
        let twice = for_each_parallel(3, &mut items, |_, item| Ok::<_, ()>(*item * 2));
        assert_eq!(twice, Ok((0..100).map(|n| n * 2).collect()));
        let fails = |index, _: &mut u32| if index % 7 == 6 { Err(index) } else { Ok(()) };
        for threads in [0, 1, 2, 200] {
            assert_eq!(for_each_parallel(threads, &mut items, fails), Err(6));
        }
        assert_eq!(for_each_parallel(4, &mut [(); 0], |_, _| Ok::<_, ()>(())), Ok(Vec::new()));
    }
}
