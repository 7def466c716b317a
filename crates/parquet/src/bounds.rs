//! Bounds of long values: statistics have the first bytes only.
//!
//! ```text
//!   least     abcdefgh..  ->  abcd    not above it
//!   largest   abcdefgh..  ->  abce    not below it
//! ```

/// Longest value that stands whole in statistics, as in the library.
pub(crate) const BOUND_BYTES_MAX: usize = 64;

/// Whether the bytes are text, of which bounds are text too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Bytes,
}

/// A bound, and whether it is the value itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    pub bytes: Vec<u8>,
    pub exact: bool,
}

/// What is not above a value.
pub(crate) fn lower_bound(value: &[u8], kind: Kind) -> Bound {
    Bound { bytes: first_bytes(value, kind).to_vec(), exact: value.len() <= BOUND_BYTES_MAX }
}

/// What is not below a value; `None` when only longer values are.
pub(crate) fn upper_bound(value: &[u8], kind: Kind) -> Option<Bound> {
    if value.len() <= BOUND_BYTES_MAX {
        return Some(Bound { bytes: value.to_vec(), exact: true });
    }
    let first = first_bytes(value, kind);
    let bytes = match kind {
        Kind::Bytes => next_bytes(first),
        Kind::Text => next_text(first),
    };
    bytes.map(|bytes| Bound { bytes, exact: false })
}

/// At most as many bytes as a bound has; of text, whole characters.
fn first_bytes(value: &[u8], kind: Kind) -> &[u8] {
    let mut end = value.len().min(BOUND_BYTES_MAX);
    let is_within = |end: usize| value.get(end).is_some_and(|byte| byte & 0xc0 == 0x80);
    while kind == Kind::Text && end > 0 && is_within(end) {
        end -= 1;
    }
    &value[..end]
}

/// The least of the bytes that are above all that begin with these.
fn next_bytes(first: &[u8]) -> Option<Vec<u8>> {
    let last = first.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut next = first[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// A text that is above all that begin with this one.
fn next_text(first: &[u8]) -> Option<Vec<u8>> {
    let mut text = std::str::from_utf8(first).ok()?.to_owned();
    while let Some(last) = text.pop() {
        // Between U+D7FF and U+E000 there are no characters.
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            last => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            text.push(next);
            return Some(text.into_bytes());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bounds_of_texts_hold_and_are_texts(
            text in prop::collection::vec(
                prop::sample::select(&['a', 'é', '\u{7f}', '\u{7ff}', '\u{d7ff}', '\u{ffff}', '\u{10ffff}'][..]),
                0..60,
            ),
        ) {
            let text: String = text.into_iter().collect();
            let (least, largest) =
                (lower_bound(text.as_bytes(), Kind::Text), upper_bound(text.as_bytes(), Kind::Text));
            prop_assert!(std::str::from_utf8(&least.bytes).is_ok());
            prop_assert!(&least.bytes[..] <= text.as_bytes());
            prop_assert_eq!(least.exact, text.len() <= BOUND_BYTES_MAX);
            if let Some(largest) = largest {
                prop_assert!(std::str::from_utf8(&largest.bytes).is_ok());
                prop_assert!(&largest.bytes[..] >= text.as_bytes());
                prop_assert!(largest.bytes.len() <= BOUND_BYTES_MAX + 3);
            } else {
                let last = '\u{10ffff}';
                prop_assert!(text.chars().take(16).all(|c| c == last));
            }
        }

        #[test]
        fn bounds_of_bytes_hold(
            bytes in prop::collection::vec(prop::sample::select(&[0_u8, 7, 254, 255][..]), 0..90),
        ) {
            prop_assert!(lower_bound(&bytes, Kind::Bytes).bytes <= bytes);
            let largest = upper_bound(&bytes, Kind::Bytes);
            prop_assert!(largest.is_none_or(|largest| largest.bytes >= bytes));
        }
    }

    #[test]
    fn what_has_nothing_above_it_has_no_bound() {
        assert_eq!(upper_bound(&[255; 65], Kind::Bytes), None);
        let longest = upper_bound(&[255; 64], Kind::Bytes).unwrap();
        assert!(longest.exact && longest.bytes == [255; 64]);
        assert_eq!(upper_bound("\u{10ffff}".repeat(17).as_bytes(), Kind::Text), None);
    }
}
