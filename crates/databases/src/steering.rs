//! How many connections send, and how many rows a statement has, by what throughput answers while a load runs.
//!
//! ```text
//!   rest -> one more is tried -> throughput grew: kept, and one more -> it did not: taken back, rest twice as long
//!                             or one less, where no more may be: kept if throughput stays
//! ```
//!
//! Invariant: nothing here looks at a clock, a connection or a row: who sends says when which bytes were there.
//! Hysteresis: one more must bring [`GAIN`], and what was taken back is tried again only after a rest that doubles.

use std::time::Duration;

/// Least time over which throughput is measured.
const WINDOW: Duration = Duration::from_millis(400);
/// Chunks of each connection in such a time, at least: parts of chunks are not seen.
const CHUNKS_OF_EACH: usize = 2;
/// By what share throughput must grow for one connection more to stay.
const GAIN: f64 = 0.06;
/// By what share it may fall for one connection less to stay.
const LOSS: f64 = 0.02;
/// Windows of rest after the first try that was in vain.
const REST: u32 = 4;
/// Most windows of rest.
const REST_MAX: u32 = 64;
/// Windows of rest after others were hurt.
const REST_HURT: u32 = 16;

/// A change of the number of connections.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// When, after the first rows were sent.
    pub at: Duration,
    /// Connections from then on.
    pub connections: usize,
    /// Why.
    pub why: String,
}

/// What is being tried.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Nothing, for so many windows.
    Resting(u32),
    /// One more, or one less, where so many bytes a second went before.
    Trying { before: f64, added: bool },
}

/// The number of connections of a load.
#[derive(Debug)]
pub struct Steering {
    count: usize,
    most: usize,
    state: State,
    rest: u32,
    tries_less: bool,
    /// Chunks that were begun before the last change.
    settling: usize,
    window: Window,
}

#[derive(Debug, Default, Clone, Copy)]
struct Window {
    began: Option<Duration>,
    chunks: usize,
    bytes: u64,
}

impl Steering {
    /// Begins with so many connections, of so many at most.
    pub fn new(count: usize, most: usize) -> Self {
        Steering {
            count: count.max(1),
            most: most.max(count).max(1),
            state: State::Resting(0),
            rest: REST,
            tries_less: false,
            settling: 0,
            window: Window::default(),
        }
    }

    /// Connections that should send.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.count
    }

    /// A chunk of so many bytes is there; what changes by it.
    pub fn sent(&mut self, now: Duration, bytes: u64) -> Option<Change> {
        if self.settling > 0 {
            self.settling -= 1;
            self.window.began = Some(now);
            return None;
        }
        let began = *self.window.began.get_or_insert(now);
        self.window.chunks += 1;
        self.window.bytes += bytes;
        let lasted = now.saturating_sub(began);
        if lasted < WINDOW || self.window.chunks < CHUNKS_OF_EACH * self.count {
            return None;
        }
        let rate = self.window.bytes as f64 / lasted.as_secs_f64();
        self.window = Window { began: Some(now), ..Window::default() };
        self.answer(now, rate)
    }

    /// Throughput answered.
    fn answer(&mut self, now: Duration, rate: f64) -> Option<Change> {
        match self.state {
            State::Resting(left) if left > 0 => {
                self.state = State::Resting(left - 1);
                None
            }
            State::Resting(_) => self.try_next(now, rate),
            State::Trying { before, added: true } => match rate > before * (1.0 + GAIN) {
                true => {
                    self.rest = REST;
                    self.tries_less = false;
                    self.try_next(now, rate).or_else(|| self.settle())
                }
                false => {
                    let why = format!("{} gave {}", self.count, compared(rate, before));
                    self.rest_longer();
                    self.change(now, self.count - 1, why)
                }
            },
            State::Trying { before, added: false } => match rate >= before * (1.0 - LOSS) {
                true => self.settle(),
                false => {
                    let why = format!("{} gave {}", self.count, compared(rate, before));
                    self.rest_longer();
                    self.change(now, self.count + 1, why)
                }
            },
        }
    }

    /// Tries one more, or one less where there cannot be more, or more was in vain the last time.
    fn try_next(&mut self, now: Duration, rate: f64) -> Option<Change> {
        let less = self.tries_less && self.count > 1;
        self.tries_less = !self.tries_less;
        let (count, tried) = match (self.count < self.most, less) {
            (true, false) => (self.count + 1, "one more is tried"),
            (_, true) => (self.count - 1, "one less is tried"),
            (false, false) => return self.settle(),
        };
        self.state = State::Trying { before: rate, added: count > self.count };
        self.change(now, count, format!("{} gave {}, {tried}", self.count, shown(rate)))
    }

    fn settle(&mut self) -> Option<Change> {
        self.state = State::Resting(self.rest);
        None
    }

    fn rest_longer(&mut self) {
        self.state = State::Resting(self.rest);
        self.rest = (self.rest * 2).min(REST_MAX);
    }

    /// Others are hurt: one less, for long. `None` when there is only one.
    pub fn hurt(&mut self, now: Duration, why: String) -> Option<Change> {
        self.state = State::Resting(REST_HURT);
        self.tries_less = false;
        (self.count > 1).then(|| self.change(now, self.count - 1, why))?
    }

    /// One that was to be added could not be: no more are tried.
    pub fn could_not_add(&mut self, now: Duration, why: String) -> Option<Change> {
        let count = (self.count - 1).max(1);
        self.most = count;
        self.state = State::Resting(self.rest);
        self.change(now, count, why)
    }

    fn change(&mut self, at: Duration, count: usize, why: String) -> Option<Change> {
        // Each connection that stays ends a chunk that it began before.
        self.settling = self.count.min(count);
        self.window = Window::default();
        self.count = count;
        Some(Change { at, connections: count, why })
    }
}

fn shown(rate: f64) -> String {
    format!("{:.1} MB/s", rate / 1e6)
}

fn compared(rate: f64, before: f64) -> String {
    format!("{} after {}", shown(rate), shown(before))
}

/// Rows of a statement that has many: twice as many are tried as long as that helps.
#[derive(Debug)]
pub struct Batches {
    rows: usize,
    /// Rows a second of the best so far, and with how many rows a statement.
    best: Option<(f64, usize)>,
    ended: bool,
    seen: Option<(u64, Duration)>,
}

/// Rows of a statement beyond which nothing is tried: each is in memory once more.
const BATCH_ROWS_MAX: usize = 1 << 16;

impl Batches {
    /// Begins with so many rows; they stay so if they were given.
    pub fn new(rows: usize, given: bool) -> Self {
        Batches { rows: rows.max(1), best: None, ended: given, seen: None }
    }

    /// Rows of a statement.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// So many rows were sent with `with` rows a statement, in so long a time. Says how many a statement has from now on,
    /// when that changes, and why.
    pub fn sent(&mut self, with: usize, rows: u64, took: Duration) -> Option<String> {
        // What was begun with another number says nothing of this one; nor do few statements.
        if self.ended || with != self.rows {
            return None;
        }
        let (before, lasted) = self.seen.unwrap_or_default();
        let (rows, took) = (before + rows, lasted + took);
        self.seen = Some((rows, took));
        if rows < 4 * self.rows as u64 || took < WINDOW / 4 {
            return None;
        }
        let rate = rows as f64 / took.as_secs_f64().max(1e-9);
        self.seen = None;
        match self.best {
            Some((best, of)) if rate < best * (1.0 + GAIN) => {
                self.ended = true;
                let why = format!("{of} rows a statement: {} gave no more", self.rows);
                self.rows = of;
                Some(why)
            }
            _ if self.rows * 2 > BATCH_ROWS_MAX => {
                self.ended = true;
                None
            }
            _ => {
                self.best = Some((rate, self.rows));
                self.rows *= 2;
                Some(format!(
                    "{} rows a statement are tried: half of them gave {rate:.0} rows/s",
                    self.rows
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server on which n connections do so many bytes a second together; chunks of a megabyte.
    fn run(steering: &mut Steering, seconds: f64, rate: impl Fn(usize) -> f64) -> Vec<Change> {
        let mut now = 0.0;
        let (mut changes, mut chunk) = (Vec::new(), 0_u32);
        while now < seconds {
            // Some noise, the same in each run.
            chunk += 1;
            let noise = 1.0 + 0.02 * f64::from(chunk % 3) - 0.02;
            now += 1e6 / (rate(steering.count()) * noise);
            changes.extend(steering.sent(Duration::from_secs_f64(now), 1_000_000));
        }
        changes
    }

    #[test]
    fn connections_are_added_as_long_as_throughput_grows() {
        let mut steering = Steering::new(1, 8);
        run(&mut steering, 60.0, |n| 20e6 * n.min(5) as f64);
        assert!((4..=5).contains(&steering.count()), "{steering:?}");
        let mut steering = Steering::new(1, 3);
        run(&mut steering, 60.0, |n| 20e6 * n as f64);
        assert!((2..=3).contains(&steering.count()), "{steering:?}");
    }

    #[test]
    fn connections_that_only_wait_are_taken_away() {
        let mut steering = Steering::new(6, 8);
        run(&mut steering, 240.0, |n| 40e6 / (1.0 + 0.2 * n.saturating_sub(2) as f64));
        assert!(steering.count() <= 3, "{steering:?}");
    }

    #[test]
    fn a_number_that_is_right_is_disturbed_seldom() {
        let mut steering = Steering::new(4, 8);
        let changes = run(&mut steering, 300.0, |n| 20e6 * n.min(4) as f64);
        assert!(changes.len() < 60, "{}", changes.len());
        let late = changes.iter().filter(|change| change.at > Duration::from_secs(200)).count();
        assert!(late < 12, "{late}");
    }

    #[test]
    fn who_hurts_others_sends_over_fewer_and_waits() {
        let mut steering = Steering::new(3, 8);
        let now = Duration::from_secs(1);
        let change = steering.hurt(now, "2 others wait for locks".into()).expect("a change");
        assert_eq!((change.connections, steering.count()), (2, 2));
        assert_eq!(steering.hurt(now, "still".into()).map(|c| c.connections), Some(1));
        assert_eq!(steering.hurt(now, "still".into()), None);
        let changes = run(&mut steering, 5.0, |n| 20e6 * n as f64);
        assert_eq!(changes, []);
    }

    #[test]
    fn a_server_that_gives_no_more_is_not_asked_again() {
        let mut steering = Steering::new(2, 8);
        run(&mut steering, 1.0, |n| 20e6 * n as f64);
        assert!(steering.count() > 2);
        let had = steering.count();
        let change = steering.could_not_add(Duration::from_secs(1), "too many".into());
        assert_eq!(change.expect("a change").connections, had - 1);
        run(&mut steering, 60.0, |n| 20e6 * n as f64);
        assert!(steering.count() < had);
    }

    #[test]
    fn batches_grow_until_they_no_longer_help() {
        let grown = |per_statement: f64, start: usize, given: bool| {
            let mut batches = Batches::new(start, given);
            for _ in 0..200 {
                let rows = batches.rows();
                let seconds = per_statement + rows as f64 * 1e-5;
                batches.sent(rows, rows as u64 * 4, Duration::from_secs_f64(seconds * 4.0));
                // One that was begun before says nothing.
                assert_eq!(batches.sent(rows + 1, 1, Duration::from_secs(1)), None);
            }
            batches.rows()
        };
        assert!(grown(0.0, 1000, false) <= 2000);
        assert!(grown(0.05, 1000, false) >= 4000);
        assert_eq!(grown(0.05, 1000, true), 1000);
        assert!(grown(1e6, 1000, false) <= BATCH_ROWS_MAX);
    }
}
