//! Numbers as decimal digits, two at a time.
//!
//! Cost: a division for two digits, and one copy.

/// `00`, `01` to `99`.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Digits of the largest number.
const DIGITS_MAX: usize = 20;
/// Digits behind a point of a number that [`push_decimal`] writes.
pub(crate) const SCALE_MAX: u8 = 18;

/// A number below 100 with two digits.
#[inline]
pub(crate) fn pair(number: u32) -> [u8; 2] {
    PAIRS[number as usize % PAIRS.len()]
}

/// Puts the digits at the end of `digits`; where they begin.
#[inline]
fn put(mut number: u64, digits: &mut [u8]) -> usize {
    let mut at = digits.len();
    while number >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[number as usize]);
    } else {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    at
}

/// Appends a number with its sign.
#[inline]
pub(crate) fn push_signed(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0; DIGITS_MAX + 1];
    let mut start = put(number.unsigned_abs(), &mut digits);
    if number < 0 {
        start -= 1;
        digits[start] = b'-';
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends a number with a point before its last `scale` digits, of which there are at most [`SCALE_MAX`].
#[inline]
pub(crate) fn push_decimal(unscaled: i64, scale: u8, out: &mut Vec<u8>) {
    // A sign, the digits, a point between them.
    let mut text = [b'0'; DIGITS_MAX + 2];
    let point = text.len() - usize::from(scale.min(SCALE_MAX)) - 1;
    // At least one digit stands before the point.
    let first = put(unscaled.unsigned_abs(), &mut text).min(point);
    text.copy_within(first..=point, first - 1);
    text[point] = b'.';
    let mut start = first - 1;
    if unscaled < 0 {
        start -= 1;
        text[start] = b'-';
    }
    out.extend_from_slice(&text[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slow model: as the standard library writes it, with the point put in.
    fn decimal(unscaled: i64, scale: u8) -> String {
        let width = usize::from(scale) + 1;
        let mut text = format!("{:0width$}", unscaled.unsigned_abs());
        text.insert(text.len() - usize::from(scale), '.');
        if unscaled < 0 { format!("-{text}") } else { text }
    }

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"x".to_vec();
        write(&mut out);
        String::from_utf8_lossy(&out[1..]).into_owned()
    }

    #[test]
    fn numbers_are_as_the_standard_library_writes_them() {
        let mut numbers: Vec<i64> = (-1_100..1_100).collect();
        for power in 0..19 {
            let power = 10_i64.pow(power);
            numbers.extend([
                power - 1,
                power,
                power + 1,
                -power,
                i64::MAX / power,
                i64::MIN / power,
            ]);
        }
        for number in numbers {
            assert_eq!(written(|out| push_signed(number, out)), number.to_string());
            for scale in 1..=SCALE_MAX {
                let text = written(|out| push_decimal(number, scale, out));
                assert_eq!(text, decimal(number, scale), "{number} {scale}");
            }
        }
        for number in 0..100 {
            assert_eq!(pair(number), *format!("{number:02}").as_bytes());
        }
    }
}
