//! The windows of decoders: what formats that look far back hold, xz and Zstandard up to 256 MiB.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a window is taken to be until it is known: `xz -9` asks for 65 MiB.
const EXPECTED_BYTES: usize = 65 << 20;

/// Bytes that windows take together, and may take.
#[derive(Debug)]
pub struct Windows {
    bytes_max: usize,
    held: AtomicUsize,
    /// The largest so far.
    largest: AtomicUsize,
}

impl Windows {
    /// Windows that may take so many bytes, alone or together.
    pub fn new(bytes_max: usize) -> Self {
        Windows { bytes_max, held: AtomicUsize::new(0), largest: AtomicUsize::new(0) }
    }

    /// Bytes that one may have.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Whether one more, like the largest so far, may be had beside those that are there.
    pub fn have_room(&self) -> bool {
        let held = self.held.load(Ordering::Acquire);
        held.saturating_add(self.largest.load(Ordering::Acquire)) <= self.bytes_max
    }
}

/// The window of one decoder, counted as long as it is there.
#[derive(Debug)]
pub struct HeldWindow {
    of: Arc<Windows>,
    bytes: usize,
}

impl HeldWindow {
    /// One whose size is not known before the decoder has begun.
    pub fn expected(of: &Arc<Windows>) -> Self {
        let bytes = EXPECTED_BYTES.min(of.bytes_max);
        of.held.fetch_add(bytes, Ordering::AcqRel);
        HeldWindow { of: Arc::clone(of), bytes }
    }

    /// One of so many bytes.
    pub fn of_bytes(of: &Arc<Windows>, bytes: usize) -> Self {
        let mut held = HeldWindow { of: Arc::clone(of), bytes: 0 };
        held.count(bytes);
        held
    }

    /// Takes note of its bytes.
    pub fn count(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.of.held.fetch_add(bytes, Ordering::AcqRel);
            self.of.held.fetch_sub(self.bytes, Ordering::AcqRel);
            self.bytes = bytes;
        }
        self.of.largest.fetch_max(bytes, Ordering::AcqRel);
    }
}

impl Drop for HeldWindow {
    fn drop(&mut self) {
        self.of.held.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_large_window_waits_for_the_first() {
        let windows = Arc::new(Windows::new(100 << 20));
        assert!(windows.have_room());
        let mut first = HeldWindow::expected(&windows);
        first.count(60 << 20);
        assert!(!windows.have_room());
        first.count(1 << 20);
        assert!(windows.have_room());
        let mut second = HeldWindow::expected(&windows);
        assert!(!windows.have_room(), "it may be large");
        second.count(2 << 20);
        assert!(windows.have_room());
        second.count(45 << 20);
        assert!(!windows.have_room());
        drop(second);
        assert!(windows.have_room());
        drop(first);
        assert_eq!(windows.held.load(Ordering::Relaxed), 0);
    }
}
