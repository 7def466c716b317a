//! A slow line before the server: the kernel of a machine need not be able to delay.
//!
//! ```text
//!   request -> round trip -> | chunk of this answer | chunk of another | chunk of this one |     one after the other
//! ```
//!
//! It costs a wait for each chunk, and no CPU beside it, as a network card does.

use std::ops::Range;
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use coload_threads::lock;

/// Bytes that have the line for themselves: at 1 Gbit/s, 1 ms.
const CHUNK_BYTES: u64 = 128 << 10;
/// Who sends is late by as much at most before the line is lost to him.
const LATE: Duration = Duration::from_millis(5);

/// A line that all answers share.
#[derive(Debug)]
pub struct Line {
    round_trip: Duration,
    seconds_per_byte: f64,
    /// When it is free again.
    free_at: Mutex<Option<Instant>>,
}

impl Line {
    /// A line of so many bits a second (0: no limit) with a round trip of so long.
    pub fn new(bits_per_second: f64, round_trip: Duration) -> Self {
        let seconds_per_byte = if bits_per_second > 0.0 { 8.0 / bits_per_second } else { 0.0 };
        Line { round_trip, seconds_per_byte, free_at: Mutex::new(None) }
    }

    /// Waits until an answer to a request that has come may begin.
    pub fn wait_for_answer(&self) {
        sleep(self.round_trip);
    }

    /// The chunks of a body, each when it has arrived.
    pub fn chunks(&self, body: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let chunks = body.clone().step_by(CHUNK_BYTES as usize);
        chunks.map(move |start| start..body.end.min(start + CHUNK_BYTES)).inspect(|chunk| {
            let takes = (chunk.end - chunk.start) as f64 * self.seconds_per_byte;
            let mut free_at = lock(&self.free_at);
            let now = Instant::now();
            let begins = free_at.map_or(now, |at| at.max(now.checked_sub(LATE).unwrap_or(now)));
            let ends = begins + Duration::from_secs_f64(takes);
            *free_at = Some(ends);
            drop(free_at);
            sleep(ends.saturating_duration_since(now));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_share_the_line() {
        let line = Line::new(8e8, Duration::ZERO);
        let started = Instant::now();
        let bytes = |body: Range<u64>| line.chunks(body).map(|part| part.end - part.start).sum();
        let all: u64 = std::thread::scope(|scope| {
            let two = [0..3_000_000, 7..2_000_007].map(|body| scope.spawn(move || bytes(body)));
            two.into_iter()
                .map(|one: std::thread::ScopedJoinHandle<'_, u64>| one.join().expect("a thread"))
                .sum()
        });
        assert_eq!(all, 5_000_000);
        // 5 MB at 100 MB/s.
        assert!(started.elapsed() >= Duration::from_millis(49), "{:?}", started.elapsed());
    }
}
