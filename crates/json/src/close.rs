//! Where an object or a list ends, by its brackets only.
//!
//! Cost: 1 byte read; about 0.3 ns a byte.

use crate::masks::{STEP, structure};

/// The end of the object or list that begins at `at`, if that is before `end`: where as many brackets are closed as opened,
/// of either kind, strings left out. What else is wrong with it is found when it is read.
pub fn find_close(text: &[u8], start: usize, end: usize) -> Option<usize> {
    let mut depth = 0_u64;
    // All ones within a string; whether the first byte is behind a backslash.
    let (mut inside, mut is_escaped) = (0_u32, false);
    let mut at = start;
    while at < end {
        let mut last = [0; STEP];
        let bytes = match text[..end].get(at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => bytes,
            None => {
                last[..end - at].copy_from_slice(&text[at..end]);
                &last
            }
        };
        let [mut quotes, backslashes, open, close] = structure(bytes);
        if backslashes != 0 || is_escaped {
            quotes &= !escaped(backslashes, &mut is_escaped);
        }
        let strings = fill(quotes) ^ inside;
        inside = ((strings as i32) >> 31) as u32;
        let (open, close) = (open & !strings, close & !strings);
        if u64::from(close.count_ones()) >= depth {
            let mut both = open | close;
            while both != 0 {
                let bit = both.trailing_zeros();
                if open >> bit & 1 == 1 {
                    depth += 1;
                } else if depth <= 1 {
                    return Some(at + bit as usize + 1);
                } else {
                    depth -= 1;
                }
                both &= both - 1;
            }
        } else {
            depth = depth + u64::from(open.count_ones()) - u64::from(close.count_ones());
        }
        at += STEP;
    }
    None
}

/// The bytes behind a backslash that is not itself behind one.
fn escaped(mut backslashes: u32, is_escaped: &mut bool) -> u32 {
    let mut found = u32::from(*is_escaped);
    backslashes &= !found;
    *is_escaped = false;
    while backslashes != 0 {
        let bit = backslashes.trailing_zeros();
        if bit == 31 {
            *is_escaped = true;
            break;
        }
        found |= 2 << bit;
        backslashes &= !(3 << bit);
    }
    found
}

/// Each bit is whether there is an odd number of bits at it or below.
fn fill(mut bits: u32) -> u32 {
    for shift in [1, 2, 4, 8, 16] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [`find_close`] byte by byte.
    fn find_close_slowly(text: &[u8], start: usize, end: usize) -> Option<usize> {
        let (mut depth, mut inside, mut at) = (0, false, start);
        while at < end {
            match text[at] {
                // Only of a quote it takes the meaning, in a string or not.
                b'\\' if matches!(text.get(at + 1), Some(b'"' | b'\\')) => at += 1,
                b'"' => inside = !inside,
                b'{' | b'[' if !inside => depth += 1,
                b'}' | b']' if !inside && depth <= 1 => return Some(at + 1),
                b'}' | b']' if !inside => depth -= 1,
                _ => {}
            }
            at += 1;
        }
        None
    }

    #[test]
    fn brackets_are_counted_as_byte_by_byte() {
        let mut state = 7_u64;
        for _ in 0..20_000 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as usize
            };
            let length = 1 + next() % 150;
            let mut text: Vec<u8> =
                (0..length).map(|_| b"{{}[]\"\\\\abcdefghi"[next() % 17]).collect();
            text[0] = b'{';
            let expected = find_close_slowly(&text, 0, length);
            assert_eq!(find_close(&text, 0, length), expected, "{}", text.escape_ascii());
        }
    }
}
