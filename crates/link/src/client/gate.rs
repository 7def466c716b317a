//! What one connection may send: the receiver's credit, and no more on its way than the link can use.
//!
//! Credit keeps the receiver's memory small. On a slow link it lets megabytes pile up in the kernel and the
//! network, where they can no longer be compressed, and where answers to keep-alive wait behind them. So a
//! connection begins no message while more is on its way than the link gives in [`UNDER_WAY_TIME`].

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use coload_threads::lock;

use crate::frame::{Ack, FRAME_BYTES_MAX, HEADER_BYTES};
use crate::server::CREDIT_FIRST_BYTES;

/// Time's worth of bytes that may be on their way: more than the round trip of most links.
const UNDER_WAY_TIME: Duration = Duration::from_millis(250);
/// A connection may always have two frames on their way, or one is made while none is sent.
const UNDER_WAY_BYTES_MIN: u64 = 2 * (FRAME_BYTES_MAX + HEADER_BYTES) as u64;

/// What one connection may send.
#[derive(Debug)]
pub struct CreditGate {
    state: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Debug)]
struct Gate {
    credit_bytes: u64,
    done_bytes: u64,
    under_way_max: u64,
    closed: bool,
}

/// Where in its message a frame stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameIs {
    /// The first: it can wait.
    First,
    /// Another: the receiver is not done with the message before it has all.
    Later,
}

impl Default for CreditGate {
    fn default() -> Self {
        CreditGate {
            state: Mutex::new(Gate {
                credit_bytes: CREDIT_FIRST_BYTES,
                done_bytes: 0,
                under_way_max: UNDER_WAY_BYTES_MIN,
                closed: false,
            }),
            changed: Condvar::new(),
        }
    }
}

impl CreditGate {
    /// Waits until a frame may be sent; `sent` bytes will have been then. Whether it may.
    pub fn wait(&self, sent: u64, frame: FrameIs) -> bool {
        let mut state = lock(&self.state);
        while !state.closed && !state.lets_pass(sent, frame) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.closed
    }

    /// Ends it: nothing may be sent any more.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }

    /// Takes an acknowledgement, and the rate of this connection if it is known; says how many bytes are
    /// newly done.
    pub fn take(&self, ack: &Ack, bytes_per_second: Option<f64>) -> u64 {
        let mut state = lock(&self.state);
        let new = ack.done_bytes.saturating_sub(state.done_bytes);
        state.done_bytes = state.done_bytes.max(ack.done_bytes);
        // Credit may also shrink: what was sent on it stays sent.
        state.credit_bytes = ack.credit_bytes;
        if let Some(rate) = bytes_per_second {
            let bytes = (rate * UNDER_WAY_TIME.as_secs_f64()) as u64;
            state.under_way_max = bytes.max(UNDER_WAY_BYTES_MIN);
        }
        drop(state);
        self.changed.notify_all();
        new
    }
}

impl Gate {
    fn lets_pass(&self, sent: u64, frame: FrameIs) -> bool {
        let under_way = sent.saturating_sub(self.done_bytes);
        let room = frame == FrameIs::Later || under_way <= self.under_way_max;
        self.credit_bytes >= sent && room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(done_bytes: u64, credit_bytes: u64) -> Ack {
        Ack { done_bytes, credit_bytes, waiting_bytes: 0, load: Vec::new() }
    }

    #[test]
    fn a_message_begins_when_little_is_under_way_and_ends_as_credit_allows() {
        let gate = CreditGate::default();
        assert_eq!(gate.take(&ack(0, 50 << 20), Some(1e6)), 0);
        let passes = |sent, frame| lock(&gate.state).lets_pass(sent, frame);
        assert!(passes(1 << 20, FrameIs::First));
        assert!(!passes(3 << 20, FrameIs::First));
        assert!(passes(3 << 20, FrameIs::Later));
        assert!(!passes(51 << 20, FrameIs::Later), "beyond the credit");
        assert_eq!(gate.take(&ack(2 << 20, 52 << 20), None), 2 << 20);
        assert!(passes(3 << 20, FrameIs::First));
        // A faster link holds more.
        gate.take(&ack(2 << 20, 52 << 20), Some(100e6));
        assert!(passes(20 << 20, FrameIs::First));
    }

    #[test]
    fn a_closed_gate_lets_nobody_wait() {
        let gate = CreditGate::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait(1 << 40, FrameIs::First));
            gate.close();
            assert!(!waiting.join().unwrap_or(true));
        });
    }
}
