//! Who may have a connection, and for how long.
//!
//! ```text
//!   accepted --> outside --a call with credentials--> inside --no call for idle_time--> closed
//!                   |
//!                   +-- login_time passes, or newer connections need the room --> closed
//! ```
//!
//! Connections outside have a small share of their own, in which a new one takes the place of an old one.
//! Those inside never give way to them: whoever has no credentials can delay logins, and nothing else.
//!
//! Invariants: at most `inside_max` connections are inside, `per_peer_max` of one peer, and `outside_max`
//! outside.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use std::time::{Duration, Instant};

use coload_threads::lock;
use futures::task::AtomicWaker;
use tonic::Status;

use super::metrics::{Counted, Metrics};

/// Connections outside, for each four that may be inside.
const OUTSIDE_SHARE: usize = 4;
/// Bounds of the connections outside: some for a small server, and few enough for the descriptors of a large one.
const OUTSIDE_RANGE: std::ops::RangeInclusive<usize> = 8..=64;

/// How many connections there may be, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DoorLimits {
    pub inside_max: usize,
    pub per_peer_max: usize,
    pub login_time: Duration,
    pub idle_time: Duration,
}

impl DoorLimits {
    /// Connections without credentials at once.
    pub fn outside_max(&self) -> usize {
        (self.inside_max / OUTSIDE_SHARE).clamp(*OUTSIDE_RANGE.start(), *OUTSIDE_RANGE.end())
    }
}

/// Whom limits for each peer count as one: an address of IPv4, a network of 64 bits of IPv6, which is what
/// one machine gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Peer(IpAddr);

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        const NETWORK: u128 = !0 << 64;
        Peer(match address.to_canonical() {
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & NETWORK)),
            v4 => v4,
        })
    }
}

/// All connections of a listener.
#[derive(Debug)]
pub(crate) struct Door {
    limits: DoorLimits,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Those outside, the oldest first.
    outside: BTreeMap<u64, Arc<Visit>>,
    inside: HashMap<Peer, usize>,
    inside_count: usize,
}

/// A connection that has a place.
#[derive(Debug)]
pub(crate) struct Visit {
    number: u64,
    peer: Peer,
    came: Instant,
    door: Arc<Door>,
    is_inside: AtomicBool,
    /// Whether its client has said something, and was not refused.
    is_promising: AtomicBool,
    is_closing: AtomicBool,
    calls: AtomicUsize,
    quiet_since: Mutex<Instant>,
    /// Wakes who reads from the connection.
    pub waker: AtomicWaker,
    _counted: Counted,
}

/// A call, until it is dropped: its connection is not idle.
#[derive(Debug)]
pub(crate) struct Call(Arc<Visit>);

impl Door {
    pub fn new(limits: DoorLimits, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Door { limits, metrics, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Lets a connection in as far as outside; an older one may have to go for it.
    pub fn come(self: &Arc<Self>, peer: Peer) -> Arc<Visit> {
        let mut state = self.lock();
        self.make_room(&state);
        let number = state.next;
        state.next += 1;
        let now = Instant::now();
        let visit = Arc::new(Visit {
            number,
            peer,
            came: now,
            door: Arc::clone(self),
            is_inside: AtomicBool::new(false),
            is_promising: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            quiet_since: Mutex::new(now),
            waker: AtomicWaker::new(),
            _counted: self.metrics.connection_opened(),
        });
        state.outside.insert(number, Arc::clone(&visit));
        visit
    }

    /// Closes one that is outside, where there are too many: of the peer that has the most, and one that was refused or
    /// has not said anything yet before others.
    fn make_room(&self, state: &State) {
        let waiting = || state.outside.values().filter(|v| !v.is_closing.load(Ordering::Relaxed));
        if waiting().count() < self.limits.outside_max() {
            return;
        }
        let mut by_peer: HashMap<Peer, usize> = HashMap::new();
        for visit in waiting() {
            *by_peer.entry(visit.peer).or_default() += 1;
        }
        let most = by_peer.values().max().copied().unwrap_or(0);
        let of_largest = waiting().filter(|v| by_peer.get(&v.peer) == Some(&most));
        let leaves = of_largest.min_by_key(|v| (v.is_promising.load(Ordering::Relaxed), v.number));
        if let Some(visit) = leaves {
            self.metrics.connections_refused.inc();
            tracing::debug!(peer = %visit.peer.0, "a connection without login was closed for a newer one");
            visit.close();
        }
    }
}

impl Visit {
    /// Whom limits for each peer count it with.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Lets it inside, once its client has shown who it is.
    ///
    /// # Errors
    /// `ResourceExhausted` when too many are inside.
    pub fn admit(&self) -> Result<(), Status> {
        if self.is_inside.load(Ordering::Acquire) {
            return Ok(());
        }
        let DoorLimits { inside_max, per_peer_max, .. } = self.door.limits;
        let mut state = self.door.lock();
        let of_peer = state.inside.get(&self.peer).copied().unwrap_or(0);
        let refused = if of_peer >= per_peer_max {
            Some(format!(
                "{of_peer} connections of {} are open, and no more are let in (--max-connections-per-peer)",
                self.peer.0
            ))
        } else if state.inside_count >= inside_max {
            Some(format!(
                "{inside_max} connections are open, and no more are let in (--max-connections)"
            ))
        } else {
            None
        };
        if let Some(text) = refused {
            self.door.metrics.connections_refused.inc();
            tracing::warn!("{text}");
            return Err(Status::resource_exhausted(text));
        }
        // One that was closed meanwhile is not in the list any more, or is about to leave it.
        if state.outside.remove(&self.number).is_none() {
            return Ok(());
        }
        state.inside_count += 1;
        *state.inside.entry(self.peer).or_default() += 1;
        self.is_inside.store(true, Ordering::Release);
        Ok(())
    }

    /// Counts a call as under way.
    pub fn call(self: &Arc<Self>) -> Call {
        self.calls.fetch_add(1, Ordering::AcqRel);
        Call(Arc::clone(self))
    }

    /// Notes that its client has sent something for the first time.
    pub fn has_spoken(&self) {
        self.is_promising.store(true, Ordering::Relaxed);
    }

    /// Notes that its client does not know who it is.
    pub fn was_refused(&self) {
        self.is_promising.store(false, Ordering::Relaxed);
    }

    fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// When to look again whether it may stay.
    ///
    /// # Errors
    /// Why it may not.
    pub fn stays_until(&self) -> Result<Instant, &'static str> {
        if self.is_closing.load(Ordering::Acquire) {
            return Err("closed for a newer connection");
        }
        let now = Instant::now();
        let limits = &self.door.limits;
        if !self.is_inside.load(Ordering::Acquire) {
            let until = self.came + limits.login_time;
            return if now < until { Ok(until) } else { Err("no login in time") };
        }
        let quiet_since = *lock(&self.quiet_since);
        if self.calls.load(Ordering::Acquire) > 0 {
            return Ok(now + limits.idle_time);
        }
        let until = quiet_since + limits.idle_time;
        if now < until { Ok(until) } else { Err("no call for a long time") }
    }

    /// Gives its place free.
    pub fn leave(&self) {
        let mut state = self.door.lock();
        state.outside.remove(&self.number);
        if self.is_inside.swap(false, Ordering::AcqRel) {
            state.inside_count -= 1;
            if let Some(count) = state.inside.get_mut(&self.peer) {
                *count -= 1;
                if *count == 0 {
                    state.inside.remove(&self.peer);
                }
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        *lock(&self.0.quiet_since) = Instant::now();
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn door(inside_max: usize, per_peer_max: usize) -> Arc<Door> {
        let limits = DoorLimits {
            inside_max,
            per_peer_max,
            login_time: Duration::from_secs(60),
            idle_time: Duration::from_secs(60),
        };
        Door::new(limits, Arc::default())
    }

    fn peer(text: &str) -> Peer {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn a_new_connection_takes_the_place_of_a_silent_one_of_the_largest_peer() {
        let door = door(32, 32);
        let other = door.come(peer("10.0.0.2"));
        let mut mine: Vec<_> = (0..7).map(|_| door.come(peer("10.0.0.1"))).collect();
        mine[0].has_spoken();
        mine[1].has_spoken();
        mine[1].was_refused();
        mine.push(door.come(peer("10.0.0.1")));
        mine.push(door.come(peer("10.0.0.3")));
        let closing: Vec<_> = mine.iter().map(|v| v.stays_until().is_err()).collect();
        assert_eq!(closing, [false, true, true, false, false, false, false, false, false]);
        assert!(other.stays_until().is_ok());
    }

    #[test]
    fn those_inside_are_counted_for_each_peer_and_never_give_way() {
        let door = door(3, 2);
        let come = |text| {
            let visit = door.come(peer(text));
            visit.admit().map(|()| visit)
        };
        let first = come("10.0.0.1").unwrap();
        let second = come("10.0.0.1").unwrap();
        assert!(come("10.0.0.1").unwrap_err().message().contains("--max-connections-per-peer"));
        let third = come("10.0.0.2").unwrap();
        assert!(come("10.0.0.3").unwrap_err().message().contains("(--max-connections)"));
        for _ in 0..200 {
            door.come(peer("10.0.0.4"));
        }
        assert!([&first, &second, &third].iter().all(|v| v.stays_until().is_ok()));
        second.leave();
        second.leave();
        assert!(come("10.0.0.1").is_ok());
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
    }
}
