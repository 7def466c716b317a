//! Turns of statements: so many run at once, and no user has all of them.
//!
//! A user has at most `per_user` turns, and the last eighth of all is for users who have none, so that
//! several users together do not shut out another. A turn that becomes free goes to the waiting user with
//! the fewest. Waiting has a time limit, and so many of a user's statements may wait.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use coload_threads::lock;
use coload_types::{Error, Result};
use tokio::sync::oneshot;

/// Share of the turns that is kept for users who have none.
const KEPT_SHARE: usize = 8;
/// Statements of one user that may wait: a pool of connections, several times.
const WAITING_MAX: usize = 256;

/// How turns are shared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnLimits {
    pub total: usize,
    pub per_user: usize,
    pub wait_max: Duration,
}

/// The turns of a server. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: TurnLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    next: u64,
    users: HashMap<Arc<str>, User>,
}

#[derive(Debug, Default)]
struct User {
    running: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    turn: oneshot::Sender<Turn>,
}

/// Leave to run a statement, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    user: Arc<str>,
    /// `None` when it was given back under the lock.
    shared: Option<Arc<Shared>>,
}

impl Turns {
    pub fn new(limits: TurnLimits) -> Self {
        Turns { shared: Arc::new(Shared { limits, state: Mutex::default() }) }
    }

    /// Waits for a turn of a user.
    ///
    /// # Errors
    /// `Limit` when none becomes free in time, or too many of the user's statements wait already.
    pub async fn take(&self, user: &str) -> Result<Turn> {
        let waiting = {
            let mut state = self.shared.lock();
            let user: Arc<str> = user.into();
            if self.shared.may_run(&state, &user) {
                state.running += 1;
                state.users.entry(Arc::clone(&user)).or_default().running += 1;
                return Ok(Turn { user, shared: Some(Arc::clone(&self.shared)) });
            }
            let number = state.next;
            state.next += 1;
            let (turn, waiting) = oneshot::channel();
            let of_user = state.users.entry(user).or_default();
            of_user.waiting.retain(|w| !w.turn.is_closed());
            if of_user.waiting.len() >= WAITING_MAX {
                return Err(Error::Limit(format!(
                    "{WAITING_MAX} statements of this user wait already; send fewer at once"
                )));
            }
            of_user.waiting.push_back(Waiting { number, turn });
            waiting
        };
        let TurnLimits { total, per_user, wait_max } = self.shared.limits;
        match tokio::time::timeout(wait_max, waiting).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(Error::Limit(format!(
                "the statement waited {} s for its turn: {total} may run at once (--max-statements), \
                 {per_user} of one user (--max-statements-per-user); try again, or raise --queue-time",
                wait_max.as_secs()
            ))),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn may_run(&self, state: &State, user: &str) -> bool {
        let TurnLimits { total, per_user, .. } = self.limits;
        let running = state.users.get(user).map_or(0, |u| u.running);
        let kept = if running == 0 { 0 } else { total / KEPT_SHARE };
        // A user who may have all turns is alone.
        let kept = if per_user >= total { 0 } else { kept };
        running < per_user && state.running + kept < total
    }

    /// Gives turns that are free to those who wait, the user with the fewest first.
    fn give(self: &Arc<Self>, state: &mut State) {
        loop {
            let waits = state.users.iter().filter(|(name, _)| self.may_run(state, name));
            let waits = waits.filter_map(|(name, user)| {
                Some((user.running, user.waiting.front()?.number, Arc::clone(name)))
            });
            let Some((_, _, name)) = waits.min() else { return };
            let Some(user) = state.users.get_mut(&name) else { return };
            let Some(waiting) = user.waiting.pop_front() else { return };
            let turn = Turn { user: Arc::clone(&name), shared: Some(Arc::clone(self)) };
            match waiting.turn.send(turn) {
                Ok(()) => {
                    user.running += 1;
                    state.running += 1;
                }
                // It waits no longer.
                Err(mut turn) => turn.shared = None,
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        let mut state = shared.lock();
        state.running -= 1;
        if let Some(user) = state.users.get_mut(&self.user) {
            user.running -= 1;
        }
        shared.give(&mut state);
        if state.users.get(&self.user).is_some_and(|u| u.running == 0 && u.waiting.is_empty()) {
            state.users.remove(&self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::FutureExt;

    use super::*;

    fn turns(total: usize, per_user: usize, wait_ms: u64) -> Turns {
        Turns::new(TurnLimits { total, per_user, wait_max: Duration::from_millis(wait_ms) })
    }

    #[tokio::test]
    async fn nobody_has_all_and_some_are_kept_for_those_who_have_none() {
        let turns = turns(16, 8, 20);
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(turns.take("eve").await.unwrap());
        }
        let error = turns.take("eve").await.unwrap_err().to_string();
        assert!(error.contains("--max-statements-per-user"), "{error}");
        for _ in 0..6 {
            held.push(turns.take("mal").await.unwrap());
        }
        assert!(turns.take("mal").await.is_err());
        let first = turns.take("ada").await.unwrap();
        assert!(turns.take("ada").await.is_err());
        let _other = turns.take("bob").await.unwrap();
        assert!(turns.take("cyd").await.is_err());
        drop(first);
        assert!(turns.take("cyd").await.is_ok());
    }

    #[tokio::test]
    async fn a_turn_goes_to_the_waiting_user_with_the_fewest() {
        let turns = turns(2, 1, 60_000);
        let (one, two) = (turns.take("eve").await.unwrap(), turns.take("mal").await.unwrap());
        let mut eve = Box::pin(turns.take("eve"));
        let mut ada = Box::pin(turns.take("ada"));
        assert!(eve.as_mut().now_or_never().is_none() && ada.as_mut().now_or_never().is_none());
        drop(two);
        assert!(eve.as_mut().now_or_never().is_none());
        let of_ada = ada.as_mut().now_or_never().unwrap().unwrap();
        drop(one);
        let of_eve = eve.as_mut().now_or_never().unwrap().unwrap();
        drop((of_ada, of_eve));
        assert!(turns.shared.lock().users.is_empty());
        assert_eq!(turns.shared.lock().running, 0);
    }

    #[tokio::test]
    async fn whoever_waits_no_longer_takes_no_turn() {
        let turns = turns(1, 1, 60_000);
        let held = turns.take("eve").await.unwrap();
        let mut gone = Box::pin(turns.take("ada"));
        let mut there = Box::pin(turns.take("bob"));
        assert!(gone.as_mut().now_or_never().is_none() && there.as_mut().now_or_never().is_none());
        drop(gone);
        drop(held);
        assert!(there.as_mut().now_or_never().unwrap().is_ok());
        assert_eq!(turns.shared.lock().running, 0);
    }

    #[tokio::test]
    async fn so_many_of_a_user_wait() {
        let turns = turns(1, 1, 60_000);
        let _held = turns.take("eve").await.unwrap();
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(turns.take("eve"))).collect();
        assert!(waiting.iter_mut().all(|w| w.as_mut().now_or_never().is_none()));
        let refused = turns.take("eve").now_or_never().unwrap();
        assert!(matches!(refused, Err(Error::Limit(_))));
    }
}
