//! Things kept for a user under a handle, for some time and up to some number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use coload_threads::lock;
use coload_types::{Error, Result};

/// A handle that cannot be guessed.
pub(crate) type Handle = [u8; 16];

/// Makes a handle.
///
/// # Errors
/// `Unavailable` when the system has no random numbers.
pub(crate) fn new_handle() -> Result<Handle> {
    random_bytes()
}

/// Bytes that nobody can guess.
///
/// # Errors
/// `Unavailable` when the system has no random numbers.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::Unavailable(format!("the system gives no random numbers: {e}")))?;
    Ok(bytes)
}

/// How many things are kept, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptLimits {
    /// Things of all users together.
    pub total: usize,
    /// Things of one user.
    pub per_user: usize,
    /// What has not been used for so long is dropped by [`Kept::sweep`].
    pub idle_max: Duration,
    /// What becomes of one too many.
    pub full: WhenFull,
}

/// What becomes of a thing for which there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// It is given back.
    Refuse,
    /// The one of its user that was not used for longest makes room for it. Without one it is given back.
    DropOldest,
}

/// Things that clients name by a handle.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    state: Mutex<State<T>>,
    limits: KeptLimits,
}

#[derive(Debug)]
struct State<T> {
    things: HashMap<Handle, Entry<T>>,
    by_user: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct Entry<T> {
    user: Arc<str>,
    used: Instant,
    thing: T,
}

impl<T> State<T> {
    fn remove(&mut self, handle: &Handle) -> Option<T> {
        let Entry { user, thing, .. } = self.things.remove(handle)?;
        if let Some(count) = self.by_user.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                self.by_user.remove(&user);
            }
        }
        Some(thing)
    }

    fn oldest_of(&self, user: &str) -> Option<Handle> {
        let of_user = self.things.iter().filter(|(_, entry)| *entry.user == *user);
        of_user.min_by_key(|(_, entry)| entry.used).map(|(handle, _)| *handle)
    }
}

impl<T> Kept<T> {
    pub fn new(limits: KeptLimits) -> Self {
        let state = State { things: HashMap::new(), by_user: HashMap::new() };
        Kept { state: Mutex::new(state), limits }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }

    /// Keeps a thing of a user. Gives it back when there is no room.
    pub fn put(&self, user: &str, thing: T) -> Result<std::result::Result<Handle, T>> {
        let handle = new_handle()?;
        let mut state = self.lock();
        let of_user = state.by_user.get(user).copied().unwrap_or(0);
        if of_user >= self.limits.per_user || state.things.len() >= self.limits.total {
            let oldest = match self.limits.full {
                WhenFull::Refuse => None,
                WhenFull::DropOldest => state.oldest_of(user),
            };
            match oldest {
                Some(oldest) => drop(state.remove(&oldest)),
                None => return Ok(Err(thing)),
            }
        }
        let user: Arc<str> = user.into();
        *state.by_user.entry(Arc::clone(&user)).or_default() += 1;
        state.things.insert(handle, Entry { user, used: Instant::now(), thing });
        Ok(Ok(handle))
    }

    /// Looks at a thing or changes it, whoever's it is; `None` when it is gone.
    pub fn with<R>(&self, handle: &[u8], work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let handle = Handle::try_from(handle).ok()?;
        let mut state = self.lock();
        let entry = state.things.get_mut(&handle)?;
        entry.used = Instant::now();
        Some(work(&mut entry.thing))
    }

    /// Looks at a thing of a user or changes it; `None` when it is gone or somebody else's.
    pub fn with_of<R>(
        &self,
        user: &str,
        handle: &[u8],
        work: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        let handle = Handle::try_from(handle).ok()?;
        let mut state = self.lock();
        let entry = state.things.get_mut(&handle).filter(|entry| *entry.user == *user)?;
        entry.used = Instant::now();
        Some(work(&mut entry.thing))
    }

    /// Takes a thing of a user away if `is_wanted`.
    pub fn take(&self, user: &str, handle: &[u8], is_wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        let handle = Handle::try_from(handle).ok()?;
        let mut state = self.lock();
        let entry = state.things.get(&handle)?;
        if *entry.user != *user || !is_wanted(&entry.thing) {
            return None;
        }
        state.remove(&handle)
    }

    /// Drops what nobody has used for long.
    pub fn sweep(&self) {
        let mut state = self.lock();
        let idle_max = self.limits.idle_max;
        let idle = state.things.iter().filter(|(_, entry)| entry.used.elapsed() >= idle_max);
        let idle: Vec<Handle> = idle.map(|(handle, _)| *handle).collect();
        for handle in &idle {
            drop(state.remove(handle));
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lock().things.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn kept(total: usize, per_user: usize, full: WhenFull) -> Kept<i32> {
        Kept::new(KeptLimits { total, per_user, idle_max: Duration::ZERO, full })
    }

    #[test]
    fn things_are_found_until_they_are_taken_or_too_old() {
        let kept = kept(2, 2, WhenFull::Refuse);
        let one = kept.put("ada", 1).unwrap().unwrap();
        let two = kept.put("bob", 2).unwrap().unwrap();
        assert_eq!(kept.put("ada", 3).unwrap(), Err(3));
        assert_eq!(kept.with(&one, |n| *n), Some(1));
        assert_eq!(kept.with_of("bob", &one, |n| *n), None);
        assert_eq!(kept.take("ada", &one, |n| *n == 7), None);
        assert_eq!(kept.take("bob", &one, |n| *n == 1), None);
        assert_eq!(kept.take("ada", &one, |n| *n == 1), Some(1));
        assert_eq!(kept.take("ada", &one, |_| true), None);
        assert_eq!(kept.with(b"short", |n| *n), None);
        kept.sweep();
        assert_eq!((kept.with(&two, |n| *n), kept.len()), (None, 0));
        assert!(kept.lock().by_user.is_empty());
    }

    #[test]
    fn a_user_has_a_share_and_only_his_own_make_room() {
        let kept = kept(4, 2, WhenFull::DropOldest);
        let first = kept.put("eve", 1).unwrap().unwrap();
        let second = kept.put("eve", 2).unwrap().unwrap();
        kept.with(&first, |_| ());
        let third = kept.put("eve", 3).unwrap().unwrap();
        assert_eq!(kept.with(&second, |n| *n), None);
        assert_eq!((kept.with(&first, |n| *n), kept.with(&third, |n| *n)), (Some(1), Some(3)));
        let _ada = [4, 5].map(|n| kept.put("ada", n).unwrap().unwrap());
        assert_eq!(kept.put("bob", 6).unwrap(), Err(6));
        assert_eq!(kept.len(), 4);
    }
}
