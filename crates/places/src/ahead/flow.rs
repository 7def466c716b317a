//! How many blocks come at once: so few that they keep the line full, for those that come together share it, and the first
//! that is wanted waits for all.
//!
//! ```text
//!   at once   4 -> 6 -> 9 -> 6 ...... 9 -> 6 .......... 4 -> 6 ...
//!                       ^ no more bytes a second    ^ looked at again from time to time, upwards and downwards
//! ```
//!
//! More are tried as long as that brings more bytes a second. How long a block takes tells less: over a full line it takes the
//! longer the more there are, and alone it comes never.

use std::time::{Duration, Instant};

/// How many blocks come at once.
const STEPS: [usize; 8] = [4, 6, 9, 13, 20, 30, 45, 64];
/// What one step more must bring, and what one less may cost.
const GAIN: f64 = 1.1;
const LOSS: f64 = 0.95;
/// Rounds of blocks between two trials, at first and at most.
const REST: (u32, u32) = (4, 64);
/// Shortest time that a speed is measured for.
const ROUND: Duration = Duration::from_millis(10);

/// What is being tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    /// One step more.
    Up,
    /// One less.
    Down,
    /// Nothing, for so many rounds.
    Rest(u32),
}

/// How many blocks come at once.
#[derive(Debug, Clone)]
pub struct Flow {
    step: usize,
    trial: Trial,
    /// Bytes a second before the trial.
    before: f64,
    /// Rounds of the next rest, and what is tried behind it.
    rest: u32,
    next: Trial,
    /// Whether what comes was asked for since the trial began.
    is_settled: bool,
    /// When the round began, and what came since.
    since: Option<Instant>,
    blocks: usize,
    bytes: usize,
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            step: 0,
            trial: Trial::Rest(0),
            before: 0.0,
            rest: REST.0,
            next: Trial::Up,
            is_settled: true,
            since: None,
            blocks: 0,
            bytes: 0,
        }
    }
}

impl Flow {
    /// Whether a block may come beside those that are coming, with which it makes so many bytes. Small ones are more at once: it is
    /// bytes that keep a line full.
    pub fn may_come(&self, coming: usize, bytes: usize, block_bytes: usize) -> bool {
        let most = STEPS[self.step];
        coming < most || coming < STEPS[STEPS.len() - 1] && bytes <= most * block_bytes
    }

    /// A block of so many bytes has come.
    pub fn arrived(&mut self, bytes: usize, now: Instant) {
        let Some(since) = self.since else {
            // The first was waited for with nothing before it.
            self.since = Some(now);
            return;
        };
        self.blocks += 1;
        self.bytes += bytes;
        let time = now.duration_since(since);
        if self.blocks < STEPS[self.step] || time < ROUND {
            return;
        }
        match self.is_settled {
            true => self.end_round(self.bytes as f64 / time.as_secs_f64()),
            false => self.is_settled = true,
        }
        (self.since, self.blocks, self.bytes) = (Some(now), 0, 0);
    }

    fn end_round(&mut self, speed: f64) {
        match self.trial {
            Trial::Up if speed >= self.before * GAIN => {
                // As long as it helps.
                self.rest = REST.0;
                self.begin(Trial::Up, speed);
            }
            Trial::Up => {
                self.step -= 1;
                self.rest_before(Trial::Down);
            }
            Trial::Down if speed < self.before * LOSS => {
                self.step += 1;
                self.rest_before(Trial::Up);
            }
            Trial::Down => self.begin(Trial::Down, speed),
            Trial::Rest(0) => self.begin(self.next, speed),
            Trial::Rest(rounds) => self.trial = Trial::Rest(rounds - 1),
        }
    }

    /// Tries a step more or less, if there is one; before it, it were so many bytes a second.
    fn begin(&mut self, trial: Trial, speed: f64) {
        let step = match trial {
            Trial::Up => self.step + 1,
            _ => self.step.wrapping_sub(1),
        };
        if step >= STEPS.len() {
            return self.rest_before(if trial == Trial::Up { Trial::Down } else { Trial::Up });
        }
        (self.step, self.trial, self.before) = (step, trial, speed);
        self.is_settled = false;
    }

    fn rest_before(&mut self, next: Trial) {
        (self.trial, self.next) = (Trial::Rest(self.rest), next);
        self.is_settled = false;
        self.rest = (2 * self.rest).min(REST.1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A line and blocks that come over it one after the other.
    struct Line {
        bytes_per_s: f64,
        round_trip: f64,
        /// What one connection does at most.
        connection: f64,
        block: usize,
    }

    /// Fetches so many blocks; gives the share of the line that was used, and how many came at once on average.
    fn fetch(flow: &mut Flow, line: &Line, blocks: usize) -> (f64, f64) {
        let start = Instant::now();
        let (mut coming, mut free) = (VecDeque::new(), 0.0_f64);
        let (mut now, mut asked, mut at_once) = (0.0_f64, 0, 0);
        let best = (line.block as f64 / line.bytes_per_s, line.block as f64 / line.connection);
        for _ in 0..blocks {
            while asked < blocks
                && flow.may_come(coming.len(), (coming.len() + 1) * line.block, line.block)
            {
                free = free.max(now + line.round_trip) + best.0;
                coming.push_back(free.max(now + line.round_trip + best.1));
                asked += 1;
            }
            at_once += coming.len();
            now = coming.pop_front().expect("a block");
            flow.arrived(line.block, start + Duration::from_secs_f64(now));
        }
        (blocks as f64 * best.0 / now, at_once as f64 / blocks as f64)
    }

    #[test]
    fn as_many_come_as_keep_the_line_full() {
        let line = |bytes_per_s, round_trip, block| Line {
            bytes_per_s,
            round_trip,
            connection: bytes_per_s,
            block,
        };
        // 1 Gbit/s and 20 ms: 2.5 MB are under way.
        let (used, at_once) = fetch(&mut Flow::default(), &line(125e6, 0.02, 1_500_000), 200);
        assert!(used > 0.95 && at_once < 5.5, "{used} {at_once}");
        // 10 Gbit/s and 100 ms: 125 MB.
        let mut flow = Flow::default();
        let far = line(1250e6, 0.1, 2 << 20);
        fetch(&mut flow, &far, 600);
        let (used, at_once) = fetch(&mut flow, &far, 2_000);
        assert!(used > 0.9 && at_once > 45.0, "{used} {at_once}");
        // Connections of 50 MB/s each over a line of 1 GB/s.
        let mut flow = Flow::default();
        let shared = Line { connection: 50e6, ..line(1e9, 0.02, 2 << 20) };
        fetch(&mut flow, &shared, 600);
        let (used, at_once) = fetch(&mut flow, &shared, 2_000);
        assert!(used > 0.8 && at_once > 20.0, "{used} {at_once}");
    }

    #[test]
    fn a_line_that_changed_is_known_as_such() {
        let line =
            |bytes_per_s| Line { bytes_per_s, round_trip: 0.05, connection: 1e9, block: 1 << 20 };
        let mut flow = Flow::default();
        fetch(&mut flow, &line(1e9), 2_000);
        let (used, _) = fetch(&mut flow, &line(1e9), 1_000);
        assert!(used > 0.8, "{used}");
        fetch(&mut flow, &line(2e7), 20_000);
        let (used, at_once) = fetch(&mut flow, &line(2e7), 2_000);
        assert!(used > 0.95 && at_once < 8.0, "{used} {at_once}");
        assert!(!flow.may_come(64, 0, 1));
    }
}
