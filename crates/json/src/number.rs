//! Numbers: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`.

use crate::fault::{Fault, Rule};
use crate::masks::{no_digits, step_at};
use crate::space::byte_at;

/// The end of the number that begins at `at`.
#[inline(always)]
pub fn number_end(text: &[u8], at: usize) -> Result<usize, Fault> {
    if let Some(bytes) = step_at(text, at) {
        let others = no_digits(bytes);
        let sign = u32::from(bytes[0] == b'-');
        let whole = (others >> sign).trailing_zeros();
        let end = sign + whole;
        // One byte more tells what follows.
        if end < 31 && is_whole(whole, bytes[sign as usize]) {
            match bytes[end as usize] {
                b'.' => {
                    let digits = (others >> (end + 1)).trailing_zeros();
                    let end = end + 1 + digits;
                    if digits > 0 && end < 32 && !matches!(bytes[end as usize], b'e' | b'E') {
                        return Ok(at + end as usize);
                    }
                }
                b'e' | b'E' => {}
                _ => return Ok(at + end as usize),
            }
        }
    }
    long_number_end(text, at)
}

/// Whether so many digits, the first of which is given, are those before a point.
#[inline(always)]
fn is_whole(digits: u32, first: u8) -> bool {
    digits == 1 || digits > 1 && first != b'0'
}

/// [`number_end`], byte by byte.
#[cold]
fn long_number_end(text: &[u8], start: usize) -> Result<usize, Fault> {
    let digits = |mut at: usize| {
        let from = at;
        while byte_at(text, at).is_ascii_digit() {
            at += 1;
        }
        (at, at - from)
    };
    let bad = Fault::new(Rule::Number, start);
    let whole = start + usize::from(byte_at(text, start) == b'-');
    let (mut at, count) = digits(whole);
    if count == 0 || count > 1 && text[whole] == b'0' {
        return Err(bad);
    }
    if byte_at(text, at) == b'.' {
        let (end, count) = digits(at + 1);
        if count == 0 {
            return Err(bad);
        }
        at = end;
    }
    if matches!(byte_at(text, at), b'e' | b'E') {
        let sign = usize::from(matches!(byte_at(text, at + 1), b'+' | b'-'));
        let (end, count) = digits(at + 1 + sign);
        if count == 0 {
            return Err(bad);
        }
        at = end;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_look_is_the_slow_one() {
        let alphabet = b"019-.eE+,";
        for length in 0..=6_u32 {
            for number in 0..9_usize.pow(length) {
                let mut text: Vec<u8> =
                    (0..length).map(|place| alphabet[number / 9_usize.pow(place) % 9]).collect();
                text.extend([0; 64]);
                let (fast, slow) = (number_end(&text, 0), long_number_end(&text, 0));
                assert_eq!(fast, slow, "{:?}", text.escape_ascii().to_string());
            }
        }
        for digits in 20..40 {
            for point in [0, 1, 15, 29, 30, 31, 32] {
                let mut text = vec![b'7'; digits];
                if point > 0 && point < digits {
                    text[point] = b'.';
                }
                text.extend([b','; 64]);
                assert_eq!(number_end(&text, 0), long_number_end(&text, 0), "{digits} {point}");
            }
        }
    }
}
