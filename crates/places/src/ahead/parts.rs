//! Small parts of objects that were looked at, and those that will be.
//!
//! ```text
//!   object   | head |  ...  | a footer | ... | a page's head, expected |  ...  | tail |
//! ```
//!
//! What is expected is on its way since it was said, and stays when reading ahead begins; what was looked at by the way goes then.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use coload_types::Result;

use super::{Filling, Way};

/// Most bytes of parts that are kept.
const BYTES_MAX: usize = 4 << 20;

/// An object, and the first byte of a part of it.
type Key = (u32, u64);

/// Parts of objects.
#[derive(Default)]
pub struct Parts {
    by_place: BTreeMap<Key, Part>,
    /// Those that are there, the oldest first.
    order: VecDeque<Key>,
    /// Bytes of these.
    bytes: usize,
}

struct Part {
    bytes: usize,
    filling: Filling,
    is_expected: bool,
}

impl Parts {
    /// Says that a part is on its way. One that is known already is not fetched again: `false`.
    pub fn expect(&mut self, number: u32, part: &Range<u64>) -> bool {
        let key = (number, part.start);
        let bytes = (part.end - part.start) as usize;
        let is_known = self.by_place.get_mut(&key).is_some_and(|known| {
            known.is_expected = true;
            known.bytes >= bytes && !matches!(known.filling, Filling::Failed(_))
        });
        if !is_known {
            self.forget(key);
            let part = Part { bytes, filling: Filling::Coming, is_expected: true };
            self.by_place.insert(key, part);
        }
        !is_known
    }

    /// Takes a part that was expected.
    pub fn arrived(&mut self, number: u32, start: u64, bytes: Result<Vec<u8>>) {
        let key = (number, start);
        let Some(part) = self.by_place.get_mut(&key) else { return };
        if !matches!(part.filling, Filling::Coming) {
            return;
        }
        match bytes {
            Ok(bytes) => {
                part.filling = Filling::There(Arc::new(bytes));
                self.count(key);
            }
            Err(error) => part.filling = Filling::Failed(error),
        }
    }

    /// Keeps a part that was looked at; the oldest go.
    pub fn keep(&mut self, number: u32, start: u64, bytes: Vec<u8>) {
        let key = (number, start);
        if self.by_place.contains_key(&key) {
            return;
        }
        let filling = Filling::There(Arc::new(bytes));
        let bytes = filling.bytes();
        self.by_place.insert(key, Part { bytes, filling, is_expected: false });
        self.count(key);
    }

    /// Counts a part that is there now.
    fn count(&mut self, key: Key) {
        self.bytes += self.by_place.get(&key).map_or(0, |part| part.bytes);
        self.order.push_back(key);
        while self.bytes > BYTES_MAX
            && let Some(oldest) = self.order.front().copied()
        {
            self.forget(oldest);
        }
    }

    fn forget(&mut self, key: Key) {
        let Some(part) = self.by_place.remove(&key) else { return };
        if let Filling::There(_) = part.filling {
            self.bytes -= part.bytes;
            self.order.retain(|other| *other != key);
        }
    }

    /// Keeps what is expected, and nothing else.
    pub fn keep_expected(&mut self) {
        self.by_place.retain(|_, part| part.is_expected);
        self.order.retain(|key| self.by_place.contains_key(key));
        self.bytes = self.order.iter().map(|key| self.by_place[key].bytes).sum();
    }

    /// How so many bytes of an object come, if a part has all of them.
    pub fn way(&self, number: u32, at: u64, bytes: usize) -> Option<Way> {
        let ((of, start), part) = self.by_place.range(..=(number, at)).next_back()?;
        let has_all = *of == number && at + bytes as u64 <= start + part.bytes as u64;
        has_all.then(|| part.filling.way(*start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known of a byte: where its part starts, or that it is waited for.
    fn known(parts: &Parts, number: u32, at: u64, bytes: usize) -> Option<Option<u64>> {
        parts.way(number, at, bytes).map(|way| match way {
            Way::There(_, start, _) => Some(start),
            _ => None,
        })
    }

    #[test]
    fn what_is_expected_is_waited_for_and_stays() {
        let mut parts = Parts::default();
        assert!(parts.expect(1, &(10..20)));
        assert!(!parts.expect(1, &(10..20)));
        parts.keep(1, 100, vec![0; 10]);
        assert_eq!(known(&parts, 1, 12, 8), Some(None));
        assert_eq!(known(&parts, 1, 12, 9), None);
        assert_eq!(known(&parts, 0, 12, 1), None);
        assert_eq!(known(&parts, 2, 12, 1), None);
        assert_eq!(known(&parts, 1, 105, 5), Some(Some(100)));
        parts.keep_expected();
        assert_eq!(known(&parts, 1, 105, 5), None);
        parts.arrived(1, 10, Ok(vec![0; 10]));
        parts.keep_expected();
        assert_eq!(known(&parts, 1, 10, 10), Some(Some(10)));
        assert_eq!(parts.bytes, 10);
    }

    #[test]
    fn the_oldest_go_and_their_bytes_with_them() {
        let mut parts = Parts::default();
        let each = BYTES_MAX / 4;
        (0..6).for_each(|n| parts.keep(0, n * each as u64, vec![0; each]));
        assert_eq!(parts.bytes, BYTES_MAX);
        assert_eq!(known(&parts, 0, 0, 1), None);
        assert_eq!(known(&parts, 0, 2 * each as u64, each), Some(Some(2 * each as u64)));
        // One that comes again counts once.
        assert!(!parts.expect(0, &(2 * each as u64..2 * each as u64 + 1)));
        assert!(parts.expect(0, &(2 * each as u64..4 * each as u64)));
        assert_eq!(parts.bytes, BYTES_MAX - each);
        parts.arrived(0, 2 * each as u64, Ok(vec![0; 2 * each]));
        assert!(parts.bytes <= BYTES_MAX && parts.order.len() == parts.by_place.len());
    }
}
