//! Things kept for a caller under a handle, for some time and up to some number.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use coload_format::{Error, Result};

/// A handle that cannot be guessed.
pub(crate) type Handle = [u8; 16];

/// Makes a handle.
///
/// # Errors
/// `Unavailable` when the system has no random numbers.
pub(crate) fn new_handle() -> Result<Handle> {
    let mut handle = Handle::default();
    getrandom::fill(&mut handle)
        .map_err(|e| Error::Unavailable(format!("the system gives no random numbers: {e}")))?;
    Ok(handle)
}

/// Things by handle. What has not been used for `idle_max` is dropped by [`Kept::sweep`].
#[derive(Debug)]
pub(crate) struct Kept<T> {
    things: Mutex<HashMap<Handle, (Instant, T)>>,
    count_max: usize,
    idle_max: Duration,
}

impl<T> Kept<T> {
    pub fn new(count_max: usize, idle_max: Duration) -> Self {
        Kept { things: Mutex::default(), count_max, idle_max }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Handle, (Instant, T)>> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a thing. Gives it back when there are too many.
    pub fn put(&self, thing: T) -> Result<std::result::Result<Handle, T>> {
        let handle = new_handle()?;
        let mut things = self.lock();
        if things.len() >= self.count_max {
            return Ok(Err(thing));
        }
        things.insert(handle, (Instant::now(), thing));
        Ok(Ok(handle))
    }

    /// Looks at a thing or changes it; `None` when it is gone.
    pub fn with<R>(&self, handle: &[u8], work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let handle = Handle::try_from(handle).ok()?;
        let mut things = self.lock();
        let (used, thing) = things.get_mut(&handle)?;
        *used = Instant::now();
        Some(work(thing))
    }

    /// Takes a thing away if `is_wanted`.
    pub fn take(&self, handle: &[u8], is_wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        let handle = Handle::try_from(handle).ok()?;
        let mut things = self.lock();
        if !is_wanted(&things.get(&handle)?.1) {
            return None;
        }
        things.remove(&handle).map(|(_, thing)| thing)
    }

    /// Drops what nobody has used for long.
    pub fn sweep(&self) {
        self.lock().retain(|_, (used, _)| used.elapsed() < self.idle_max);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lock().len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn things_are_found_until_they_are_taken_or_too_old() {
        let kept = Kept::new(2, Duration::ZERO);
        let one = kept.put(1).unwrap().unwrap();
        let two = kept.put(2).unwrap().unwrap();
        assert_eq!(kept.put(3).unwrap(), Err(3));
        assert_eq!(kept.with(&one, |n| *n), Some(1));
        assert_eq!(kept.take(&one, |n| *n == 7), None);
        assert_eq!(kept.take(&one, |n| *n == 1), Some(1));
        assert_eq!(kept.take(&one, |_| true), None);
        assert_eq!(kept.with(b"short", |n| *n), None);
        kept.sweep();
        assert_eq!((kept.with(&two, |n| *n), kept.len()), (None, 0));
    }
}
