//! Bytes that sessions hold while no statement runs: prepared statements, their parameters, plans that wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use coload_threads::lock;
use coload_types::{Error, Result};

/// Share of the budget of sessions that one user may hold.
const USER_SHARE: usize = 4;

/// Counts bytes that are held, of each user and of all. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    by_user: HashMap<Arc<str>, usize>,
}

/// Bytes of a user, given back when dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    user: Arc<str>,
    bytes: usize,
    shared: Arc<Shared>,
}

impl Held {
    /// At most so many bytes, of which a user may have a quarter.
    pub fn new(bytes_max: usize) -> Self {
        Held { shared: Arc::new(Shared { bytes_max, state: Mutex::default() }) }
    }

    /// Nothing yet, of a user.
    pub fn of(&self, user: &str) -> HeldBytes {
        HeldBytes { user: user.into(), bytes: 0, shared: Arc::clone(&self.shared) }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl HeldBytes {
    /// Nothing yet, of the same user.
    pub fn another(&self) -> Self {
        HeldBytes { user: Arc::clone(&self.user), bytes: 0, shared: Arc::clone(&self.shared) }
    }

    /// Holds more.
    ///
    /// # Errors
    /// `Limit` when that is more than a user, or all together, may hold; nothing changes then.
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        let Shared { bytes_max, .. } = *self.shared;
        let user_max = bytes_max / USER_SHARE;
        let mut state = self.shared.lock();
        let of_user = state.by_user.get(&self.user).copied().unwrap_or(0);
        if of_user.saturating_add(bytes) > user_max || state.bytes.saturating_add(bytes) > bytes_max
        {
            return Err(Error::Limit(format!(
                "prepared statements and their parameters would hold {} bytes; a user may hold {user_max}, \
                 all users {bytes_max} (close statements, send rows of an INSERT as an update or with \
                 adbc_ingest, or raise --memory of the server)",
                of_user.saturating_add(bytes)
            )));
        }
        state.bytes += bytes;
        *state.by_user.entry(Arc::clone(&self.user)).or_default() += bytes;
        drop(state);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.bytes -= self.bytes;
        if let Some(bytes) = state.by_user.get_mut(&self.user) {
            *bytes -= self.bytes;
            if *bytes == 0 {
                state.by_user.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_user_holds_a_quarter_and_all_together_no_more_than_there_is() {
        let held = Held::new(100);
        let mut eve = held.of("eve");
        eve.add(20).unwrap();
        assert!(eve.add(6).is_err() && held.of("eve").add(6).is_err());
        eve.add(5).unwrap();
        let mut others: Vec<_> = ["a", "b", "c", "d"].iter().map(|user| held.of(user)).collect();
        let fits: Vec<bool> = others.iter_mut().map(|h| h.add(25).is_ok()).collect();
        assert_eq!(fits, [true, true, true, false]);
        drop(eve);
        assert!(others[3].add(25).is_ok() && others[3].add(usize::MAX).is_err());
        drop(others);
        assert_eq!(held.shared.lock().bytes, 0);
        assert!(held.shared.lock().by_user.is_empty());
    }
}
