//! Measures the steps of parsing.
//!
//! To ask for the CPU time of a thread costs what a record does, and a file may hold no more than one: of small windows some
//! are measured, and stand for the others.

/// Bytes of a window from which on each is measured.
const LARGE_BYTES: usize = 16 << 10;
/// One small window in so many is measured.
const ONE_IN: u64 = 32;

/// Measures what is done with windows, in units of the clock of who parses.
#[derive(Debug)]
pub struct Stopwatch {
    clock: fn() -> u64,
    /// Small windows so far.
    small: u64,
    /// For how many windows what is measured stands; 0 where nothing is.
    weight: u64,
}

impl Stopwatch {
    /// Measures with a clock.
    pub fn new(clock: fn() -> u64) -> Self {
        Stopwatch { clock, small: 0, weight: 1 }
    }

    /// A window of so many bytes comes next.
    pub fn next(&mut self, bytes: usize) {
        self.weight = match bytes >= LARGE_BYTES {
            true => 1,
            false if self.small.is_multiple_of(ONE_IN) => ONE_IN,
            false => 0,
        };
        self.small += u64::from(bytes < LARGE_BYTES);
    }

    /// When a step begins.
    pub fn start(&self) -> u64 {
        if self.weight == 0 { 0 } else { (self.clock)() }
    }

    /// What a step took that began then.
    pub fn since(&self, started: u64) -> u64 {
        if self.weight == 0 { 0 } else { (self.clock)().saturating_sub(started) * self.weight }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static ASKED: Cell<u64> = const { Cell::new(0) };
    }

    fn clock() -> u64 {
        ASKED.with(|asked| asked.replace(asked.get() + 1)) * 5
    }

    #[test]
    fn some_small_windows_stand_for_all() {
        let (mut watch, mut all) = (Stopwatch::new(clock), 0);
        for _ in 0..10 * ONE_IN {
            watch.next(100);
            all += watch.since(watch.start());
        }
        assert_eq!((all, clock() / 5), (10 * ONE_IN * 5, 20));
        watch.next(LARGE_BYTES);
        assert_eq!(watch.since(watch.start()), 5);
    }
}
