//! Groups of digits to numbers and back.

/// Digits of a number of 64 bits in decimal.
const DIGITS: usize = 20;

/// The value of each byte as a digit of small letters; [`NONE`] for what is none.
static SMALL: [u8; 256] = digits(b'a');
/// As [`SMALL`], of capitals.
static CAPITAL: [u8; 256] = digits(b'A');
/// Bits that no digit has.
const NONE: u8 = 0xf0;

const fn digits(letter: u8) -> [u8; 256] {
    let mut of = [NONE; 256];
    let mut digit = 0;
    while digit < 16 {
        let byte = if digit < 10 { b'0' + digit } else { letter + digit - 10 };
        of[byte as usize] = digit;
        digit += 1;
    }
    of
}

/// Decimal digits that a string begins with.
pub(super) fn count_digits(string: &[u8]) -> usize {
    string.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The number of the first `count` bytes, which are 1 to 18 decimal digits, and what follows.
#[inline]
pub(super) fn parse_decimal(string: &[u8], count: usize) -> Option<(u64, &[u8])> {
    let (digits, rest) = string.split_at_checked(count)?;
    let (mut number, mut wrong) = (0u64, count == 0);
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        wrong |= digit > 9;
        number = number * 10 + u64::from(digit & 15);
    }
    if wrong { None } else { Some((number, rest)) }
}

#[inline(always)]
fn parse_hex<'a>(string: &'a [u8], count: usize, table: &[u8; 256]) -> Option<(u64, &'a [u8])> {
    let (digits, rest) = string.split_at_checked(count)?;
    let (mut number, mut seen) = (0, 0);
    for byte in digits {
        let digit = table[usize::from(*byte)];
        seen |= digit;
        number = number << 4 | u64::from(digit & 15);
    }
    if seen & NONE == 0 { Some((number, rest)) } else { None }
}

/// The number of the first `count` bytes, which are at most 16 hexadecimal digits, and what follows.
#[inline]
pub(super) fn parse_hex_small(string: &[u8], count: usize) -> Option<(u64, &[u8])> {
    parse_hex(string, count, &SMALL)
}

/// As [`parse_hex_small`], of digits in capitals.
#[inline]
pub(super) fn parse_hex_capital(string: &[u8], count: usize) -> Option<(u64, &[u8])> {
    parse_hex(string, count, &CAPITAL)
}

/// Appends the last `count` digits of a number, at most 18.
#[inline]
pub(super) fn put_decimal(mut number: u64, count: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; DIGITS];
    for digit in digits[DIGITS - count..].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits[DIGITS - count..]);
}

/// Appends a number in decimal.
#[inline]
pub(super) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; DIGITS];
    let mut first = DIGITS;
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// Eight hexadecimal digits; `letter` is how far letters are from what would follow 9.
#[inline(always)]
fn eight_digits(number: u32, letter: u64) -> [u8; 8] {
    let mut nibbles = u64::from(number);
    nibbles = (nibbles | nibbles << 16) & 0x0000_ffff_0000_ffff;
    nibbles = (nibbles | nibbles << 8) & 0x00ff_00ff_00ff_00ff;
    nibbles = (nibbles | nibbles << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let is_letter = (nibbles + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (nibbles + 0x3030_3030_3030_3030 + is_letter * letter).to_be_bytes()
}

/// Appends the last `count` hexadecimal digits of a number, at most 16; `letter` is 0x27 for small letters and 7 for capitals.
#[inline]
pub(super) fn put_hex(number: u64, count: usize, letter: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 16];
    digits[..8].copy_from_slice(&eight_digits((number >> 32) as u32, letter));
    digits[8..].copy_from_slice(&eight_digits(number as u32, letter));
    out.extend_from_slice(&digits[16 - count..]);
}
