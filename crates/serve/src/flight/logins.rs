//! Passwords are checked here, and guessing them is made slow.
//!
//! ```text
//!   peer --too many failures of late--> wait, at most a minute
//!        --two of its checks wait-----> refused
//!        --else--> queue (bounded) --> threads of their own --> right, wrong
//! ```
//!
//! A check takes some 20 ms and 19 MiB. It has threads of its own, so that guessing takes nothing from queries, and a
//! peer has few places in their queue, so that it takes little from logins of others.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use argon2::Argon2;
use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use tokio::sync::oneshot;
use tonic::Status;

use super::door::Peer;

/// Threads that check passwords.
const THREADS: usize = 2;
/// Checks that wait, of all peers.
const QUEUE_MAX: usize = 64;
/// Checks of one peer that wait or run.
const OF_PEER_MAX: usize = 2;
/// Wrong passwords of a peer before it has to wait.
const FREE_FAILURES: u32 = 5;
/// The first wait; each further failure doubles it.
const WAIT_FIRST: Duration = Duration::from_millis(500);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Failures are forgotten when there was none for so long.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// Peers of which something is known; beyond it those who failed longest ago are forgotten.
const PEERS_MAX: usize = 16_384;

/// Checks passwords.
#[derive(Debug)]
pub(crate) struct Logins {
    queue: SyncSender<Check>,
    peers: Arc<Mutex<HashMap<Peer, Failures>>>,
}

/// What is known of a peer.
#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
    /// Checks that wait or run.
    checks: usize,
}

struct Check {
    hash: String,
    password: String,
    fits: oneshot::Sender<bool>,
}

/// A place of a peer in the queue, until it is dropped.
struct Place {
    peer: Peer,
    peers: Arc<Mutex<HashMap<Peer, Failures>>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(known) = lock(&self.peers).get_mut(&self.peer) {
            known.checks = known.checks.saturating_sub(1);
        }
    }
}

fn lock(peers: &Mutex<HashMap<Peer, Failures>>) -> MutexGuard<'_, HashMap<Peer, Failures>> {
    peers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a peer waits after so many failures.
fn wait_after(failures: u32) -> Duration {
    match failures.checked_sub(FREE_FAILURES) {
        None => Duration::ZERO,
        Some(over) => WAIT_FIRST.saturating_mul(1 << over.min(16)).min(WAIT_MAX),
    }
}

impl Logins {
    /// Starts the threads; they end with what this gives.
    ///
    /// A thread that cannot be started leaves its work to the others; without any, no password fits.
    pub fn new() -> Self {
        let (queue, checks) = sync_channel(QUEUE_MAX);
        let checks = Arc::new(Mutex::new(checks));
        for _ in 0..THREADS {
            let checks = Arc::clone(&checks);
            let thread = std::thread::Builder::new().name("coload-login".into());
            if let Err(error) = thread.spawn(move || check_all(&checks)) {
                tracing::error!(%error, "a thread for passwords could not be started");
            }
        }
        Logins { queue, peers: Arc::default() }
    }

    /// Compares a password of a peer with a hash. `false` counts as a failure of the peer.
    ///
    /// # Errors
    /// `ResourceExhausted` when the peer failed too often of late, or too many checks wait.
    pub async fn check(&self, peer: Peer, hash: String, password: String) -> Result<bool, Status> {
        let _place = self.place(peer)?;
        let (fits, answer) = oneshot::channel();
        self.queue.try_send(Check { hash, password, fits }).map_err(|_| {
            Status::resource_exhausted("too many logins at once; try again in a second")
        })?;
        let fits = answer.await.unwrap_or(false);
        if !fits && let Some(known) = lock(&self.peers).get_mut(&peer) {
            known.count = known.count.saturating_add(1);
            known.last = Instant::now();
        }
        Ok(fits)
    }

    fn place(&self, peer: Peer) -> Result<Place, Status> {
        let now = Instant::now();
        let mut peers = lock(&self.peers);
        if peers.len() >= PEERS_MAX && !peers.contains_key(&peer) {
            forget(&mut peers, now);
        }
        let known = peers.entry(peer).or_insert(Failures { count: 0, last: now, checks: 0 });
        if now.duration_since(known.last) >= FORGET_AFTER {
            known.count = 0;
        }
        let waits = (known.last + wait_after(known.count)).saturating_duration_since(now);
        if known.count >= FREE_FAILURES && !waits.is_zero() {
            return Err(Status::resource_exhausted(format!(
                "too many wrong passwords from your address; try again in {} s",
                waits.as_secs() + 1
            )));
        }
        if known.checks >= OF_PEER_MAX {
            return Err(Status::resource_exhausted(
                "too many logins at once from your address; try again in a second",
            ));
        }
        known.checks += 1;
        Ok(Place { peer, peers: Arc::clone(&self.peers) })
    }

    /// Forgets peers that have not failed for long.
    pub fn sweep(&self) {
        let now = Instant::now();
        lock(&self.peers).retain(|_, known| {
            let is_old = known.count == 0 || now.duration_since(known.last) >= FORGET_AFTER;
            known.checks > 0 || !is_old
        });
    }
}

/// Makes room among the peers.
fn forget(peers: &mut HashMap<Peer, Failures>, now: Instant) {
    peers.retain(|_, known| known.checks > 0 || known.count > 0);
    if peers.len() >= PEERS_MAX {
        let idle = peers.iter().filter(|(_, known)| known.checks == 0);
        let oldest = idle.max_by_key(|(_, known)| now.duration_since(known.last));
        if let Some(peer) = oldest.map(|(peer, _)| *peer) {
            peers.remove(&peer);
        }
    }
}

fn check_all(checks: &Mutex<Receiver<Check>>) {
    loop {
        let next = checks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Check { hash, password, fits }) = next else { return };
        // Nobody waits for it any more.
        if fits.is_closed() {
            continue;
        }
        let is_right = PasswordHash::new(&hash).is_ok_and(|hash| {
            Argon2::default().verify_password(password.as_bytes(), &hash).is_ok()
        });
        let _ = fits.send(is_right);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::IpAddr;

    use super::super::users::hash_password;
    use super::*;

    fn peer(text: &str) -> Peer {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn waits_grow_up_to_a_minute() {
        let seconds = [0, 4, 5, 6, 8, 12, 13, 1_000].map(|n| wait_after(n).as_secs_f64());
        assert_eq!(seconds, [0.0, 0.0, 0.5, 1.0, 4.0, 60.0, 60.0, 60.0]);
    }

    #[tokio::test]
    async fn a_peer_that_fails_too_often_waits_and_others_do_not() {
        let logins = Logins::new();
        let hash = hash_password("right").unwrap();
        let check = |from, password: &str| logins.check(peer(from), hash.clone(), password.into());
        for _ in 0..FREE_FAILURES {
            assert!(!check("10.0.0.1", "wrong").await.unwrap());
        }
        let refused = check("10.0.0.1", "right").await.unwrap_err();
        assert!(refused.message().contains("wrong passwords"), "{refused}");
        assert!(check("10.0.0.2", "right").await.unwrap());
        tokio::time::sleep(WAIT_FIRST).await;
        assert!(check("10.0.0.1", "right").await.unwrap());
    }

    #[tokio::test]
    async fn a_peer_has_few_places_in_the_queue() {
        let logins = Logins::new();
        let hash = hash_password("right").unwrap();
        let many = (0..200).map(|_| logins.check(peer("10.0.0.1"), hash.clone(), "wrong".into()));
        let other = logins.check(peer("10.0.0.2"), hash.clone(), "right".into());
        let (answers, other) = tokio::join!(futures::future::join_all(many), other);
        assert_eq!(answers.iter().filter(|a| a.is_ok()).count(), OF_PEER_MAX);
        assert!(other.unwrap());
        logins.sweep();
        assert_eq!(lock(&logins.peers).len(), 1);
    }
}
