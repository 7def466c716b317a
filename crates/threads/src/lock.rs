//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The value behind a mutex, whether or not a thread died with it: who joins that thread gets its panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
