//! Passwords are checked here, and guessing them is made slow.
//!
//! ```text
//!   peer --too many failures of late--> refused for some time, at most a minute
//!        --two of its checks run------> waits for them; a pool of connections logs in all at once
//!        --else--> queue (bounded) --> threads of their own --> right, wrong
//! ```
//!
//! A check takes some 20 ms and 19 MiB. It has threads of its own, so that guessing takes nothing from queries, and a
//! peer has few places in their queue, so that it takes little from logins of others.

use std::collections::HashMap;
use std::sync::{
    Arc, Mutex,
    mpsc::{Receiver, SyncSender, sync_channel},
};
use std::time::{Duration, Instant};

use argon2::Argon2;
use argon2::password_hash::{PasswordVerifier, phc::PasswordHash};
use coload_threads::{lock, spawn};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tonic::Status;

use super::door::Peer;

/// Threads that check passwords.
const THREADS: usize = 2;
/// Checks that wait, of all peers.
const QUEUE_MAX: usize = 64;
/// Checks of one peer that run or are in the queue.
const OF_PEER_MAX: usize = 2;
/// Logins of one peer that wait for these.
const WAITING_MAX: usize = 256;
/// Wrong passwords of a peer before it has to wait.
const FREE_FAILURES: u32 = 5;
/// The first wait; each further failure doubles it.
const WAIT_FIRST: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Failures are forgotten when there was none for so long.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// Peers of which something is known; beyond it those who failed longest ago are forgotten.
const PEERS_MAX: usize = 16_384;

/// Checks passwords on threads of its own.
#[derive(Debug)]
pub(crate) struct Logins {
    queue: SyncSender<Check>,
    peers: Arc<Mutex<HashMap<Peer, Failures>>>,
}

/// What is known of a peer.
#[derive(Debug)]
struct Failures {
    count: u32,
    last: Instant,
    /// Logins that wait or are checked.
    logins: usize,
    checks: Arc<Semaphore>,
}

struct Check {
    hash: String,
    password: String,
    fits: oneshot::Sender<bool>,
}

/// Leave of a peer to have a password checked, until it is dropped.
pub(crate) struct Place {
    peer: Peer,
    peers: Arc<Mutex<HashMap<Peer, Failures>>>,
    check: Option<OwnedSemaphorePermit>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(known) = lock(&self.peers).get_mut(&self.peer) {
            known.logins = known.logins.saturating_sub(1);
        }
    }
}

/// How long a peer waits after so many failures.
fn wait_after(failures: u32) -> Duration {
    match failures.checked_sub(FREE_FAILURES) {
        None => Duration::ZERO,
        Some(over) => WAIT_FIRST.saturating_mul(1 << over.min(16)).min(WAIT_MAX),
    }
}

impl Failures {
    /// Refuses a peer that has to wait.
    fn may_try(&mut self, now: Instant) -> Result<(), Status> {
        if now.duration_since(self.last) >= FORGET_AFTER {
            self.count = 0;
        }
        let waits = (self.last + wait_after(self.count)).saturating_duration_since(now);
        match self.count >= FREE_FAILURES && !waits.is_zero() {
            false => Ok(()),
            true => Err(Status::resource_exhausted(format!(
                "too many wrong passwords from your address; try again in {} s",
                waits.as_secs() + 1
            ))),
        }
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
            if let Err(error) = spawn(thread, move || check_all(&checks)) {
                tracing::error!(%error, "a thread for passwords could not be started");
            }
        }
        Logins { queue, peers: Arc::default() }
    }

    /// Waits until a password of a peer may be checked. What was found out meanwhile should be looked at then.
    ///
    /// # Errors
    /// `ResourceExhausted` when the peer failed too often of late, or has too many logins that wait.
    pub async fn place(&self, peer: Peer) -> Result<Place, Status> {
        let checks = self.enter(peer)?;
        let mut place = Place { peer, peers: Arc::clone(&self.peers), check: None };
        place.check = checks.acquire_owned().await.ok();
        // Those before it may have been wrong.
        lock(&self.peers).get_mut(&peer).map_or(Ok(()), |known| known.may_try(Instant::now()))?;
        Ok(place)
    }

    /// Compares a password with a hash. `false` counts as a failure of the peer.
    ///
    /// # Errors
    /// `ResourceExhausted` when too many checks wait.
    pub async fn check(
        &self,
        place: &Place,
        hash: String,
        password: String,
    ) -> Result<bool, Status> {
        let (fits, answer) = oneshot::channel();
        self.queue.try_send(Check { hash, password, fits }).map_err(|_| {
            Status::resource_exhausted("too many logins at once; try again in a second")
        })?;
        let fits = answer.await.unwrap_or(false);
        if !fits {
            self.failed(place);
        }
        Ok(fits)
    }

    /// Counts a failure of a peer.
    pub fn failed(&self, place: &Place) {
        if let Some(known) = lock(&self.peers).get_mut(&place.peer) {
            known.count = known.count.saturating_add(1);
            known.last = Instant::now();
        }
    }

    fn enter(&self, peer: Peer) -> Result<Arc<Semaphore>, Status> {
        let now = Instant::now();
        let mut peers = lock(&self.peers);
        if peers.len() >= PEERS_MAX && !peers.contains_key(&peer) {
            forget(&mut peers, now);
        }
        let known = peers.entry(peer).or_insert_with(|| Failures {
            count: 0,
            last: now,
            logins: 0,
            checks: Arc::new(Semaphore::new(OF_PEER_MAX)),
        });
        known.may_try(now)?;
        if known.logins >= WAITING_MAX {
            return Err(Status::resource_exhausted(
                "too many logins at once from your address; try again in a second",
            ));
        }
        known.logins += 1;
        Ok(Arc::clone(&known.checks))
    }

    /// Forgets peers that have not failed for long.
    pub fn sweep(&self) {
        let now = Instant::now();
        lock(&self.peers).retain(|_, known| {
            let is_old = known.count == 0 || now.duration_since(known.last) >= FORGET_AFTER;
            known.logins > 0 || !is_old
        });
    }
}

/// Makes room among the peers.
fn forget(peers: &mut HashMap<Peer, Failures>, now: Instant) {
    peers.retain(|_, known| known.logins > 0 || known.count > 0);
    if peers.len() >= PEERS_MAX {
        let idle = peers.iter().filter(|(_, known)| known.logins == 0);
        let oldest = idle.max_by_key(|(_, known)| now.duration_since(known.last));
        if let Some(peer) = oldest.map(|(peer, _)| *peer) {
            peers.remove(&peer);
        }
    }
}

fn check_all(checks: &Mutex<Receiver<Check>>) {
    loop {
        let next = lock(checks).recv();
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

    async fn check(
        logins: &Logins,
        from: &str,
        hash: &str,
        password: &str,
    ) -> Result<bool, Status> {
        let place = logins.place(peer(from)).await?;
        logins.check(&place, hash.into(), password.into()).await
    }

    #[tokio::test]
    async fn a_peer_that_fails_too_often_waits_and_others_do_not() {
        let logins = Logins::new();
        let hash = hash_password("right").unwrap();
        for _ in 0..FREE_FAILURES {
            assert!(!check(&logins, "10.0.0.1", &hash, "wrong").await.unwrap());
        }
        let refused = check(&logins, "10.0.0.1", &hash, "right").await.unwrap_err();
        assert!(refused.message().contains("wrong passwords"), "{refused}");
        assert!(check(&logins, "10.0.0.2", &hash, "right").await.unwrap());
        tokio::time::sleep(WAIT_FIRST).await;
        assert!(check(&logins, "10.0.0.1", &hash, "right").await.unwrap());
    }

    #[tokio::test]
    async fn guesses_of_a_peer_are_checked_until_it_has_failed_too_often() {
        let logins = Logins::new();
        let hash = hash_password("right").unwrap();
        let many = (0..200).map(|_| check(&logins, "10.0.0.1", &hash, "wrong"));
        let other = check(&logins, "10.0.0.2", &hash, "right");
        let (answers, other) = tokio::join!(futures::future::join_all(many), other);
        let checked = answers.iter().filter(|a| a.is_ok()).count();
        assert!(checked < FREE_FAILURES as usize + OF_PEER_MAX, "{checked}");
        assert!(other.unwrap());
        logins.sweep();
        assert_eq!(lock(&logins.peers).len(), 1);
    }

    #[tokio::test]
    async fn a_pool_that_logs_in_all_at_once_is_let_in() {
        let logins = Logins::new();
        let hash = hash_password("right").unwrap();
        let many = (0..20).map(|_| check(&logins, "10.0.0.1", &hash, "right"));
        assert!(futures::future::join_all(many).await.into_iter().all(|fits| fits.unwrap()));
    }
}
