//! Numbers in the form in which PostgreSQL sends and takes `numeric`.
//!
//! ```text
//!   count of groups, weight of the first, sign, digits after the point: 2 bytes each; then groups of four digits
//!   -1234.5, scale 1   ->   2, 0, 0x4000, 1;  1234 5000
//! ```
//!
//! The point stands between two groups, so the last one may have zeros behind the last digit. Groups of zeros at either end
//! are left out.

/// Sign of a negative number.
const NEGATIVE: u16 = 0x4000;
/// What a group counts to.
const BASE: u32 = 10_000;
/// Groups that 38 digits and those added before the point take.
const GROUPS_MAX: usize = 12;

/// Appends a number of so many digits after the point, with its length before it.
pub fn put_numeric(unscaled: i128, scale: u8, out: &mut Vec<u8>) {
    let added = (4 - scale % 4) % 4;
    let fraction_groups = i32::from(scale.div_ceil(4));
    let mut groups = [0_u16; GROUPS_MAX];
    let mut count = 0;
    // The groups of the last digits first.
    let magnitude = unscaled.unsigned_abs();
    let shift = 10_u32.pow(u32::from(added));
    let mut rest = match u64::try_from(magnitude) {
        Ok(0) => 0,
        Ok(small) => {
            let (first, mut small) = first_group(small, shift);
            groups[0] = first;
            count = 1;
            while small > 0 {
                groups[count] = (small % u64::from(BASE)) as u16;
                small /= u64::from(BASE);
                count += 1;
            }
            0
        }
        Err(_) => magnitude,
    };
    if rest > 0 {
        let modulus = u128::from(BASE / shift);
        groups[0] = ((rest % modulus) as u32 * shift) as u16;
        rest /= modulus;
        count = 1;
        while rest > 0 {
            groups[count] = (rest % u128::from(BASE)) as u16;
            rest /= u128::from(BASE);
            count += 1;
        }
    }
    let zeros = groups[..count].iter().take_while(|group| **group == 0).count();
    let kept = count - zeros;
    let weight = if kept == 0 { 0 } else { count as i32 - fraction_groups - 1 };
    let sign = if unscaled < 0 { NEGATIVE } else { 0 };
    let mut cell = [0; 12 + 2 * GROUPS_MAX];
    cell[3] = 8 + 2 * kept as u8;
    cell[5] = kept as u8;
    cell[6..8].copy_from_slice(&(weight as i16).to_be_bytes());
    cell[8..10].copy_from_slice(&sign.to_be_bytes());
    cell[11] = scale;
    for (to, group) in cell[12..].chunks_exact_mut(2).zip(groups[zeros..count].iter().rev()) {
        to.copy_from_slice(&group.to_be_bytes());
    }
    // A copy whose length is known when this is compiled, and then fewer bytes: faster than a copy of any length.
    let end = out.len() + 12 + 2 * kept;
    out.extend_from_slice(&cell);
    out.truncate(end);
}

/// The last group of a number whose digits move left by `shift`, and the number without the digits in it.
fn first_group(number: u64, shift: u32) -> (u16, u64) {
    let modulus = u64::from(BASE / shift);
    (((number % modulus) as u32 * shift) as u16, number / modulus)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The number that the bytes say, as text with all digits of its scale: slow and obvious.
    fn read(bytes: &[u8]) -> String {
        let field = |at: usize| i16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let length = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        assert_eq!(length + 4, bytes.len());
        let (count, weight, sign, scale) = (field(4), field(6), field(8), field(10) as usize);
        let group = |n: i16| match n >= 0 && n < count {
            true => field(12 + 2 * n as usize),
            false => 0,
        };
        let mut whole = String::new();
        (0..=weight.max(0)).for_each(|n| {
            whole += &format!("{:04}", group(if weight < 0 { -1 } else { n }));
        });
        let mut fraction = String::new();
        (0..10).for_each(|n| fraction += &format!("{:04}", group(weight + 1 + n)));
        let whole = whole.trim_start_matches('0');
        let digits = format!("{whole}{}", &fraction[..scale]);
        assert!(fraction[scale..].bytes().all(|b| b == b'0'), "digits behind the scale");
        format!("{}{}", if sign == 0 { "" } else { "-" }, digits.trim_start_matches('0'))
    }

    fn check(unscaled: i128, scale: u8) {
        let mut bytes = Vec::new();
        put_numeric(unscaled, scale, &mut bytes);
        let expected = unscaled.to_string();
        let expected = if unscaled == 0 { String::new() } else { expected };
        assert_eq!(read(&bytes), expected, "{unscaled} with scale {scale}: {bytes:?}");
        let count = u16::from_be_bytes([bytes[4], bytes[5]]);
        assert!(count == 0 || bytes[12..14] != [0, 0], "zeros before {unscaled}");
        assert!(count == 0 || !bytes.ends_with(&[0, 0]), "zeros behind {unscaled}");
    }

    #[test]
    fn numbers_at_the_ends_of_groups_keep_their_digits() {
        let most = 10_i128.pow(38) - 1;
        for scale in 0..=38 {
            for number in [0, 1, 9, 10, 9_999, 10_000, 10_001, 99_999_999, 100_000_000] {
                check(number, scale);
                check(-number, scale);
            }
            for number in [u64::MAX.into(), i128::from(u64::MAX) + 1, most, -most, i64::MIN.into()]
            {
                check(number, scale);
            }
        }
    }

    proptest! {
        #[test]
        fn any_number_keeps_its_digits(number in -(10_i128.pow(38) - 1)..10_i128.pow(38), scale in 0_u8..=38) {
            check(number, scale);
            check(number % 1_000_000_000, scale);
        }
    }
}
