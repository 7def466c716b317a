//! Spreads the pages of some segments over threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use coload_types::{Error, Result};

/// One page of one of several segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRef {
    /// Index of the segment in the caller's list.
    pub segment: usize,
    /// Index of the page in it.
    pub page: usize,
}

/// Pages that several threads take one after the other.
#[derive(Debug, Default)]
pub struct PageQueue {
    pages: Vec<PageRef>,
    next: AtomicUsize,
}

impl PageQueue {
    /// The pages of segments that have `page_counts` pages each.
    pub fn new(page_counts: impl IntoIterator<Item = usize>) -> Self {
        let pages = page_counts
            .into_iter()
            .enumerate()
            .flat_map(|(segment, count)| (0..count).map(move |page| PageRef { segment, page }))
            .collect();
        PageQueue { pages, next: AtomicUsize::new(0) }
    }

    /// A queue of some of the pages, by their places in this one, none of them taken.
    pub fn part(&self, places: Range<usize>) -> Self {
        let pages = self.pages.get(places).unwrap_or_default().to_vec();
        PageQueue { pages, next: AtomicUsize::new(0) }
    }

    /// The next page nobody has taken.
    pub fn take(&self) -> Option<PageRef> {
        self.pages.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }

    /// How many pages there are in all.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }
}

/// Runs `work` on `threads` threads, the caller's among them, and returns what each made.
///
/// # Errors
/// The first error of any; `Unavailable` when a thread panicked.
pub fn run<T: Send>(threads: usize, work: impl Fn() -> Result<T> + Sync) -> Result<Vec<T>> {
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads.max(1)).map(|_| scope.spawn(&work)).collect();
        let mut results = vec![work()];
        for other in others {
            results.push(
                other
                    .join()
                    .unwrap_or_else(|_| Err(Error::Unavailable("a scan thread panicked".into()))),
            );
        }
        results.into_iter().collect()
    })
}
