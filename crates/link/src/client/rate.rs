//! The rate that a link gives, measured while the network is what is waited for.

use std::time::{Duration, Instant};

/// Time over which the rate is averaged.
const RATE_WINDOW: Duration = Duration::from_millis(200);
/// Time after which the rate is measured again without compression.
const RAW_INTERVAL: Duration = Duration::from_secs(10);

/// Measures the link while it is never idle.
#[derive(Debug, Default)]
pub struct Rate {
    since: Option<Window>,
    /// Bytes a second; `None` until the network was what was waited for.
    pub bytes_per_second: Option<f64>,
    /// When the last window without compression ended.
    raw_at: Option<Instant>,
}

/// The beginning of a time over which the rate is measured.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub at: Instant,
    /// Wire bytes done so far.
    pub done: u64,
    /// Frames sent so far.
    pub frames: u64,
    /// Those of them that were compressed.
    pub compressed: u64,
}

impl Rate {
    /// Takes what an acknowledgement tells; `network` says that the network was what was waited for.
    pub fn observe(&mut self, now: Window, network: bool) {
        if !network {
            self.since = None;
            return;
        }
        let since = *self.since.get_or_insert(now);
        let elapsed = now.at.duration_since(since.at);
        if elapsed < RATE_WINDOW {
            return;
        }
        let rate = (now.done - since.done) as f64 / elapsed.as_secs_f64();
        let old = self.bytes_per_second.unwrap_or(rate);
        let compressed = now.compressed - since.compressed;
        let raw = compressed * 5 <= now.frames - since.frames;
        // Compressing may be what was waited for: then the link gives more than was seen.
        self.bytes_per_second = Some(if raw { (old + rate) / 2.0 } else { old.max(rate) });
        if raw {
            self.raw_at = Some(now.at);
        }
        self.since = Some(now);
    }

    /// The rate, unless it is time to look at it again without compression.
    pub fn raw_rate(&self) -> Option<f64> {
        let fresh = self.raw_at.is_some_and(|at| at.elapsed() < RAW_INTERVAL);
        self.bytes_per_second.filter(|_| fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start: Instant, ms: u64, done: u64, compressed: u64) -> Window {
        Window { at: start + Duration::from_millis(ms), done, frames: done / 1000, compressed }
    }

    #[test]
    fn only_times_in_which_the_network_is_waited_for_count() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        rate.observe(window(start, 0, 0, 0), false);
        rate.observe(window(start, 1000, 1_000_000, 0), false);
        assert_eq!(rate.bytes_per_second, None);
        rate.observe(window(start, 1000, 1_000_000, 0), true);
        rate.observe(window(start, 1100, 1_500_000, 0), true);
        assert_eq!(rate.bytes_per_second, None, "too short a time");
        rate.observe(window(start, 2000, 3_000_000, 0), true);
        assert_eq!(rate.bytes_per_second, Some(2e6));
        assert_eq!(rate.raw_rate(), Some(2e6));
        // What is compressed arrives slower when compressing is what is waited for.
        rate.observe(window(start, 3000, 4_000_000, 1000), true);
        assert_eq!(rate.bytes_per_second, Some(2e6));
    }
}
