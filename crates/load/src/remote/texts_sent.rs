//! Fragments that go to the server as text: which are next, and what they cost it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use coload_wire::{Parsed, TextIs};

use crate::report::TextFragmentReport;

/// Texts that may wait for their answers: one is parsed, one is on its way, one is between.
const AWAITED_MAX: usize = 6;
/// What every server takes that takes texts.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Texts that are sent to see what the link gives.
const PROBES_MAX: u64 = 2;
/// One text of so many may be handed back: it costs a parse at the server for nothing.
const HANDED_BACK_SHARE: u64 = 10;

/// A text that was sent.
#[derive(Debug)]
struct Sent {
    rows: u32,
    bytes: usize,
    at: Instant,
}

/// The texts of a load.
#[derive(Debug, Default)]
pub struct TextsSent {
    /// The share that is wanted whatever is measured.
    forced: bool,
    share: f64,
    /// Fragments that were due to go as text and did not.
    due: f64,
    bytes_max: usize,
    /// Those whose answer is awaited.
    awaited: BTreeMap<(u32, u32), Sent>,
    /// Sent to see what the link gives.
    probes: u64,
    probe_next: bool,
    /// The most bytes a second that one came with.
    link_rate: f64,
    sent: u64,
    handed_back: u64,
    server_ns: u64,
    server_rows: u64,
}

impl TextsSent {
    /// None yet; with a share it is not chosen.
    pub fn new(share: Option<f64>) -> Self {
        let bytes_max = if share.is_some() { TEXT_BYTES_MAX } else { 0 };
        let share_is = share.unwrap_or(0.0);
        TextsSent { forced: share.is_some(), share: share_is, bytes_max, ..TextsSent::default() }
    }

    /// Takes what the server says that it takes; 0 for none.
    pub fn told(&mut self, bytes_max: u64) {
        let told = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        self.bytes_max = if self.forced { self.bytes_max.max(told) } else { told };
    }

    /// Whether it may be chosen to send texts.
    pub fn possible(&self) -> bool {
        !self.forced && self.bytes_max > 0 && self.handed_back * HANDED_BACK_SHARE <= self.sent
    }

    /// The share of the fragments that go as text.
    pub fn share(&self) -> f64 {
        if self.forced || self.possible() { self.share } else { 0.0 }
    }

    /// Whether some fragment is to go as text.
    pub fn is_wanted(&self) -> bool {
        self.share() > 0.0 || self.probe_next
    }

    /// Sets the share of fragments that go as text, from 0 to 1, unless the user has set one.
    pub fn set_share(&mut self, share: f64) {
        if !self.forced {
            self.share = share;
        }
    }

    /// The most bytes of text of the next fragment, if it is to go as text.
    pub fn next(&mut self) -> Option<usize> {
        self.due += self.share();
        // Time that the server did not have is not made up for.
        self.due = self.due.min(1.5);
        if self.probe_next && self.awaited.is_empty() && self.possible() {
            self.probe_next = false;
            self.probes += 1;
            return Some(self.bytes_max);
        }
        let room = self.forced || self.awaited.len() < AWAITED_MAX;
        if self.due < 1.0 || !room {
            return None;
        }
        self.due -= 1.0;
        Some(self.bytes_max)
    }

    /// Makes the next fragment a text, to see what the link gives.
    pub fn probe(&mut self) {
        self.probe_next |= self.probes < PROBES_MAX && self.awaited.is_empty();
    }

    /// Bytes a second that texts came with: the link gives as many at least. 0 when there was none.
    pub fn link_rate(&self) -> f64 {
        self.link_rate
    }

    /// Notes one that is sent.
    pub fn sent(&mut self, key: (u32, u32), rows: u32, bytes: usize) {
        self.sent += 1;
        self.awaited.insert(key, Sent { rows, bytes, at: Instant::now() });
    }

    /// Notes what the server says of a text, and measures server and link by it.
    pub fn answered(&mut self, parsed: &Parsed) {
        let Some(sent) = self.awaited.remove(&(parsed.partition, parsed.fragment)) else { return };
        let under_way = sent.at.elapsed().saturating_sub(Duration::from_nanos(parsed.stay_ns));
        self.link_rate = self.link_rate.max(sent.bytes as f64 / under_way.as_secs_f64().max(1e-3));
        self.handed_back += u64::from(parsed.is == TextIs::HandedBack);
        self.server_ns = self.server_ns.saturating_add(parsed.cpu_ns);
        self.server_rows += u64::from(sent.rows);
    }

    /// Nanoseconds that a row takes the server, and of how many texts that is known.
    pub fn server_ns(&self) -> Option<(f64, u64)> {
        let texts = self.sent - self.awaited.len() as u64;
        (self.server_rows > 0).then(|| (self.server_ns as f64 / self.server_rows as f64, texts))
    }

    /// What went as text, of so many fragments.
    pub fn report(&self, fragments: u64) -> TextFragmentReport {
        TextFragmentReport {
            fragments,
            sent: self.sent,
            handed_back: self.handed_back,
            share: self.share(),
            server_ns: self.server_ns().map_or(0.0, |(ns, _)| ns),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parsed(fragment: u32, is: TextIs) -> Parsed {
        Parsed { partition: 0, fragment, is, cpu_ns: 500, stay_ns: 0 }
    }

    #[test]
    fn as_many_go_as_text_as_were_chosen_and_the_server_can_take() {
        let mut texts = TextsSent::default();
        texts.set_share(0.5);
        assert_eq!(texts.next(), None, "the server takes none");
        texts.told(100);
        let next: Vec<bool> = (0..4).map(|_| texts.next().is_some()).collect();
        assert_eq!(next, [false, true, false, true]);
        texts.set_share(1.0);
        for fragment in 0..AWAITED_MAX as u32 {
            assert_eq!(texts.next(), Some(100));
            texts.sent((0, fragment), 10, 1_000);
        }
        assert_eq!(texts.next(), None, "{AWAITED_MAX} are awaited");
        texts.answered(&parsed(0, TextIs::Taken));
        assert_eq!((texts.next(), texts.server_ns()), (Some(100), Some((50.0, 1))));
        assert!(texts.link_rate() > 0.0);
    }

    #[test]
    fn few_texts_are_sent_to_see_what_the_link_gives() {
        let mut texts = TextsSent::default();
        texts.told(100);
        for fragment in 0..PROBES_MAX as u32 {
            assert_eq!(texts.next(), None);
            texts.probe();
            assert_eq!(texts.next(), Some(100));
            texts.sent((0, fragment), 10, 1_000);
            texts.probe();
            assert_eq!(texts.next(), None, "one is on its way");
            texts.answered(&parsed(fragment, TextIs::Taken));
        }
        texts.probe();
        assert_eq!(texts.next(), None);
    }

    #[test]
    fn no_text_goes_when_many_are_handed_back() {
        let mut texts = TextsSent::default();
        texts.told(100);
        texts.set_share(1.0);
        for fragment in 0..20 {
            texts.sent((0, fragment), 10, 1_000);
            texts.answered(&parsed(fragment, TextIs::Taken));
        }
        for fragment in 20..22 {
            assert!(texts.next().is_some(), "{fragment}");
            texts.sent((0, fragment), 10, 1_000);
            texts.answered(&parsed(fragment, TextIs::HandedBack));
        }
        texts.sent((0, 30), 10, 1_000);
        texts.answered(&parsed(30, TextIs::HandedBack));
        assert_eq!((texts.next(), texts.share(), texts.report(40).handed_back), (None, 0.0, 3));
    }
}
