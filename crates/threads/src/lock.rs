//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The value behind a mutex, whether or not a thread died with it.
///
/// Each change made under a lock of Coload is whole before anything that may panic, so that the value stays usable;
/// who joins the thread that died gets its panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
