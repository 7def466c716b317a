//! How much of a core the threads of loads get, while others want it too.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use coload_threads::lock;

/// Time of running and waiting over which it is measured.
const SPAN_NS: u64 = 20_000_000;
/// The same the first time: clients want to know early.
const FIRST_SPAN_NS: u64 = 2_000_000;
/// Least that is told: of threads that hardly ran little is known.
const SHARE_MIN: f32 = 0.05;
/// Nanoseconds of the network's threads to receive a byte: the threads of loads wait for these, but others do not run then.
const RECEIVE_BYTE_NS: u64 = 1;

/// Measures which share of a core a thread of loads gets, over 0 to 1.
#[derive(Debug, Default)]
pub struct CoreShare {
    ran_ns: AtomicU64,
    waited_ns: AtomicU64,
    received_bytes: AtomicU64,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    ran_ns: u64,
    waited_ns: u64,
    received_bytes: u64,
    share: f32,
}

impl CoreShare {
    /// Notes what a thread has run and waited since it did last.
    pub fn note(&self, ran_ns: u64, waited_ns: u64) {
        self.ran_ns.fetch_add(ran_ns, Ordering::Relaxed);
        self.waited_ns.fetch_add(waited_ns, Ordering::Relaxed);
    }

    /// Notes bytes that came over the network.
    pub fn received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The share of late, over 0 to 1; 0 until it is known.
    pub fn share(&self) -> f32 {
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let (ran_ns, waited_ns) = (get(&self.ran_ns), get(&self.waited_ns));
        let received_bytes = get(&self.received_bytes);
        let mut last = lock(&self.last);
        let (ran, waited) =
            (ran_ns.saturating_sub(last.ran_ns), waited_ns.saturating_sub(last.waited_ns));
        let span = if last.share > 0.0 { SPAN_NS } else { FIRST_SPAN_NS };
        if ran + waited < span {
            return last.share;
        }
        let received = received_bytes.saturating_sub(last.received_bytes) * RECEIVE_BYTE_NS;
        let now = (ran + waited.min(received)) as f32 / (ran + waited) as f32;
        let share = if last.share > 0.0 { (last.share + now) / 2.0 } else { now };
        *last = Last { ran_ns, waited_ns, received_bytes, share: share.max(SHARE_MIN) };
        last.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_others_counts_and_waiting_for_the_network_does_not() {
        let share = CoreShare::default();
        share.note(FIRST_SPAN_NS / 2, 0);
        assert_eq!(share.share(), 0.0, "too short a time");
        share.note(FIRST_SPAN_NS / 2, 0);
        assert_eq!(share.share(), 1.0);
        share.note(0, SPAN_NS / 2);
        assert_eq!(share.share(), 1.0);
        share.received(2 * SPAN_NS);
        share.note(SPAN_NS, SPAN_NS);
        assert_eq!(share.share(), 1.0);
        share.note(SPAN_NS, 3 * SPAN_NS);
        assert_eq!(share.share(), 0.625, "the half of what it was, and of a quarter");
        share.note(0, 1000 * SPAN_NS);
        share.note(0, 1000 * SPAN_NS);
        share.share();
        share.note(0, 1000 * SPAN_NS);
        assert!(share.share() >= SHARE_MIN);
    }
}
