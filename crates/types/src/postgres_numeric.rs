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

/// A number that was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Number {
    /// The digits, of which as many are behind the point as was asked for.
    Exact(i128),
    /// Its text: it is no number, or has more digits than that.
    Told(String),
}

/// Signs of what is no number.
const NAN: u16 = 0xc000;
const INFINITY: u16 = 0xd000;
const MINUS_INFINITY: u16 = 0xf000;

/// Reads a number as one with so many digits behind the point; `None` when the bytes are none.
pub fn read_numeric(bytes: &[u8], scale: u8) -> Option<Number> {
    let mut fields = bytes.chunks_exact(2).map(|field| [field[0], field[1]]);
    let mut field = || fields.next().map(u16::from_be_bytes);
    let (count, weight, sign, digits) = (field()?, field()? as i16, field()?, field()?);
    let groups: Vec<u16> = bytes
        .get(8..)?
        .chunks_exact(2)
        .map(|group| u16::from_be_bytes([group[0], group[1]]))
        .collect();
    if groups.len() != usize::from(count)
        || !bytes.len().is_multiple_of(2)
        || groups.iter().any(|group| u32::from(*group) >= BASE)
    {
        return None;
    }
    match sign {
        NAN => return Some(Number::Told("NaN".to_owned())),
        INFINITY => return Some(Number::Told("Infinity".to_owned())),
        MINUS_INFINITY => return Some(Number::Told("-Infinity".to_owned())),
        0 | NEGATIVE => {}
        _ => return None,
    }
    let exact = exact(&groups, i32::from(weight), i32::from(scale));
    let signed = exact.map(|value| if sign == NEGATIVE { -value } else { value });
    Some(match signed {
        Some(value) => Number::Exact(value),
        None => Number::Told(text_of(&groups, (weight, sign, digits))),
    })
}

/// The digits of groups, if they are no more behind the point than `scale` and 128 bits hold them.
fn exact(groups: &[u16], weight: i32, scale: i32) -> Option<i128> {
    let mut value = 0_i128;
    for (at, group) in groups.iter().enumerate() {
        // The last digit of the group counts 10 to the power of this.
        let power = 4 * (weight - at as i32) + scale;
        let group = i128::from(*group);
        value = match u32::try_from(power) {
            Ok(_) if group == 0 => value,
            Ok(power) => value.checked_add(10_i128.checked_pow(power)?.checked_mul(group)?)?,
            Err(_) => {
                let below = 10_i128.checked_pow(power.unsigned_abs().min(5))?;
                if group % below != 0 {
                    return None;
                }
                value.checked_add(group / below)?
            }
        };
    }
    Some(value)
}

/// A number as PostgreSQL writes it.
fn text_of(groups: &[u16], (weight, sign, digits): (i16, u16, u16)) -> String {
    let group =
        |at: i32| usize::try_from(at).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0);
    let mut whole = String::new();
    (0..=i32::from(weight)).for_each(|at| whole.push_str(&format!("{:04}", group(at))));
    let whole = whole.trim_start_matches('0');
    let mut fraction = String::new();
    let first = i32::from(weight) + 1;
    for behind in 0..i32::from(digits.div_ceil(4)) {
        fraction.push_str(&format!("{:04}", group(first + behind)));
    }
    fraction.truncate(usize::from(digits));
    let sign = if sign == NEGATIVE { "-" } else { "" };
    let whole = if whole.is_empty() { "0" } else { whole };
    match fraction.is_empty() {
        true => format!("{sign}{whole}"),
        false => format!("{sign}{whole}.{fraction}"),
    }
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

    #[test]
    fn what_is_no_such_number_is_told() {
        let number = |weight: i16, sign: u16, digits: u16, groups: &[u16]| {
            let fields = [groups.len() as u16, weight as u16, sign, digits];
            let bytes: Vec<u8> =
                fields.iter().chain(groups).flat_map(|f| f.to_be_bytes()).collect();
            read_numeric(&bytes, 2)
        };
        let told = |text: &str| Some(Number::Told(text.to_owned()));
        assert_eq!(number(0, NAN, 0, &[]), told("NaN"));
        assert_eq!(number(0, MINUS_INFINITY, 0, &[]), told("-Infinity"));
        assert_eq!(number(0, NEGATIVE, 3, &[1, 2340]), told("-1.234"));
        assert_eq!(number(-2, 0, 8, &[1]), told("0.00000001"));
        assert_eq!(number(20, 0, 0, &[7]), told(&format!("7{}", "0000".repeat(20))));
        assert_eq!(number(1, 0, 2, &[12, 0, 5000]), Some(Number::Exact(12_000_050)));
        assert_eq!(number(0, 1, 0, &[]), None);
        assert_eq!(number(0, 0, 0, &[10_000]), None);
        assert_eq!(read_numeric(&[0, 1, 0], 2), None);
    }

    proptest! {
        #[test]
        fn a_number_that_was_written_is_read(number in -(10_i128.pow(38) - 1)..10_i128.pow(38), scale in 0_u8..=38, small in 0_u8..38) {
            let number = number / 10_i128.pow(u32::from(small));
            let mut bytes = Vec::new();
            put_numeric(number, scale, &mut bytes);
            prop_assert_eq!(read_numeric(&bytes[4..], scale), Some(Number::Exact(number)));
        }

        #[test]
        fn any_number_keeps_its_digits(number in -(10_i128.pow(38) - 1)..10_i128.pow(38), scale in 0_u8..=38) {
            check(number, scale);
            check(number % 1_000_000_000, scale);
        }
    }
}
