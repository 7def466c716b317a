//! How many blocks come at once: so few that they keep the line full, for those that come together share it, and the first
//! that is wanted waits for all.
//!
//! Blocks of about one size take about one time while the line has room for more. When they take twice that, they wait for
//! each other, and one less comes; else one more.

use std::time::Duration;

/// Fewest and most blocks that come at once.
const COMING: (usize, usize) = (4, 64);
/// How much longer than alone a block may take for one more to come.
const QUEUE: u32 = 2;
/// Share by which the least time comes nearer to those that are seen: a line may become slower.
const AGE: u32 = 64;
/// Sizes are told apart by their powers of 2.
const SIZES: usize = 64;

/// How many blocks come at once.
#[derive(Debug, Clone)]
pub struct Flow {
    most: usize,
    /// The least time of each size.
    least: [Option<Duration>; SIZES],
}

impl Default for Flow {
    fn default() -> Self {
        Flow { most: COMING.0, least: [None; SIZES] }
    }
}

impl Flow {
    /// Whether a block may come beside those that are coming, with which it makes so many bytes. Small ones are more at once: it is
    /// bytes that keep a line full.
    pub fn may_come(&self, coming: usize, bytes: usize, block_bytes: usize) -> bool {
        coming < self.most || coming < COMING.1 && bytes <= self.most * block_bytes
    }

    /// A block of so many bytes has come.
    pub fn arrived(&mut self, bytes: usize, took: Duration) {
        let least = &mut self.least[bytes.max(1).ilog2() as usize];
        let before = least.map_or(took, |before| before.min(took));
        let waited = took > before * QUEUE;
        *least = Some(before + (took - before) / AGE);
        self.most = match waited {
            true => (self.most - 1).max(COMING.0),
            false => (self.most + 1).min(COMING.1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many come at once over a line that does so many bytes a second, after some rounds.
    fn most_of(bytes_per_s: f64, round_trip_ms: u64, block: usize) -> usize {
        let mut flow = Flow::default();
        for _ in 0..200 {
            let together = flow.most;
            let shared = Duration::from_secs_f64((together * block) as f64 / bytes_per_s);
            (0..together)
                .for_each(|_| flow.arrived(block, Duration::from_millis(round_trip_ms) + shared));
        }
        flow.most
    }

    #[test]
    fn as_many_come_as_keep_the_line_full() {
        // 1 Gbit/s and 20 ms: 2.5 MB are under way.
        assert!((4..=16).contains(&most_of(125e6, 20, 2 << 20)), "{}", most_of(125e6, 20, 2 << 20));
        // 10 Gbit/s and 100 ms: 125 MB.
        assert!(most_of(1250e6, 100, 2 << 20) >= 56);
        // Small objects are as many as there may be.
        assert_eq!(most_of(125e6, 20, 10_000), COMING.1);
    }

    #[test]
    fn a_line_that_became_slower_is_known_as_such() {
        let mut flow = Flow::default();
        (0..100).for_each(|_| flow.arrived(1 << 20, Duration::from_millis(10)));
        (0..20).for_each(|_| flow.arrived(1 << 20, Duration::from_millis(100)));
        assert!(flow.most < COMING.1);
        (0..1000).for_each(|_| flow.arrived(1 << 20, Duration::from_millis(100)));
        assert_eq!(flow.most, COMING.1);
        assert!(!flow.may_come(COMING.1, 0, 1));
    }
}
