//! Digits eight at a time in one 64-bit word.
//!
//! ```text
//!   "1234" -> load_short  -> bytes 31 32 33 34 00 00 00 00 (first character lowest)
//!          -> digits_word -> bytes 00 00 00 00 01 02 03 04 (right aligned, leading zeros)
//!          -> eight_digits -> 1234
//! ```

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Powers of ten that fit.
pub const POW10: [u64; 20] = {
    let mut table = [1u64; 20];
    let mut i = 1;
    while i < 20 {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// Powers of ten up to the precision of DECIMAL.
pub const POW10_WIDE: [i128; 39] = {
    let mut table = [1i128; 39];
    let mut i = 1;
    while i < 39 {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// The first 8 bytes at most, first byte lowest, the rest zero.
#[inline(always)]
pub fn load_short(field: &[u8]) -> u64 {
    let len = field.len();
    if let Some(word) = field.first_chunk::<8>() {
        u64::from_le_bytes(*word)
    } else if let (Some(head), Some(tail)) = (field.first_chunk::<4>(), field.last_chunk::<4>()) {
        // The two loads overlap; the overlapping bytes are equal.
        let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
        u64::from(head) | u64::from(tail) << ((len - 4) * 8)
    } else if len > 0 {
        let (middle, last) = (len / 2, len - 1);
        u64::from(field[0])
            | u64::from(field[middle]) << (middle * 8)
            | u64::from(field[last]) << (last * 8)
    } else {
        0
    }
}

/// The first 16 bytes at most, first byte lowest, the rest zero.
#[inline(always)]
pub fn load_long(field: &[u8]) -> u128 {
    if let Some(word) = field.first_chunk::<16>() {
        u128::from_le_bytes(*word)
    } else if let (Some(head), Some(tail)) = (field.first_chunk::<8>(), field.last_chunk::<8>()) {
        let (head, tail) = (u64::from_le_bytes(*head), u64::from_le_bytes(*tail));
        u128::from(head) | u128::from(tail) << ((field.len() - 8) * 8)
    } else {
        u128::from(load_short(field))
    }
}

/// The high bit of the lowest byte that equals `byte`, and perhaps of higher ones; 0 if none does.
#[inline(always)]
pub fn find_byte(word: u64, byte: u8) -> u64 {
    let zero = word ^ (ONES * u64::from(byte));
    zero.wrapping_sub(ONES) & !zero & HIGHS
}

/// Right-aligns the `count` (1 to 8) characters of `word` and takes '0' off each.
#[inline(always)]
pub fn digits_word(word: u64, count: usize) -> u64 {
    (word ^ ZEROS) << (64 - 8 * count)
}

/// Whether each byte of a [`digits_word`] is 0 to 9.
#[inline(always)]
pub fn all_digits(word: u64) -> bool {
    // 0x76 + 10 = 0x80. Carries start at bytes that the second term has caught already.
    (word.wrapping_add(0x7676_7676_7676_7676) | word) & HIGHS == 0
}

/// Numbers 0 to 99 in four 16-bit lanes, first pair lowest.
#[inline(always)]
pub fn digit_pairs(word: u64) -> u64 {
    (word.wrapping_mul(2561) >> 8) & 0x00ff_00ff_00ff_00ff
}

/// The number of a checked [`digits_word`].
#[inline(always)]
pub fn eight_digits(word: u64) -> u64 {
    let fours = (digit_pairs(word).wrapping_mul(6_553_601) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(42_949_672_960_001) >> 32
}

/// 1 to 19 digits and nothing else.
#[inline(always)]
pub fn parse_digits(field: &[u8]) -> Option<u64> {
    let len = field.len();
    if len == 0 || len > 19 {
        return None;
    }
    if len <= 8 {
        let word = digits_word(load_short(field), len);
        return if all_digits(word) { Some(eight_digits(word)) } else { None };
    }
    let (head, tail) = field.split_at(len - 8);
    let low = load_short(tail) ^ ZEROS;
    if !all_digits(low) {
        return None;
    }
    Some(parse_head(head)? * POW10[8] + eight_digits(low))
}

/// The digits before the last eight: 1 to 11.
#[inline(always)]
fn parse_head(head: &[u8]) -> Option<u64> {
    let len = head.len();
    if len <= 8 {
        let word = digits_word(load_short(head), len);
        return if all_digits(word) { Some(eight_digits(word)) } else { None };
    }
    let (first, tail) = head.split_at(len - 8);
    let high = digits_word(load_short(first), first.len());
    let low = load_short(tail) ^ ZEROS;
    if !all_digits(high) || !all_digits(low) {
        return None;
    }
    Some(eight_digits(high) * POW10[8] + eight_digits(low))
}

/// Digits with at most one point, 16 characters at most: the number without its point, and how
/// many digits stand after the point. Nothing else is accepted, signs and spaces neither.
#[inline(always)]
pub fn parse_point(field: &[u8]) -> Option<(u64, usize)> {
    let len = field.len();
    if len <= 8 {
        let word = load_short(field);
        let found = find_byte(word, b'.');
        if found == 0 {
            return parse_digits(field).map(|v| (v, 0));
        }
        if len == 1 {
            return None;
        }
        let point = (found.trailing_zeros() / 8) as usize;
        let below = word & ((1u64 << (8 * point)) - 1);
        let above = word >> (8 * point) >> 8 << (8 * point);
        let digits = digits_word(below | above, len - 1);
        return all_digits(digits).then(|| (eight_digits(digits), len - 1 - point));
    }
    if len > 16 {
        return None;
    }
    parse_point_long(field)
}

/// [`parse_point`] for 9 to 16 characters.
#[inline(always)]
fn parse_point_long(field: &[u8]) -> Option<(u64, usize)> {
    let len = field.len();
    let word = load_long(field);
    let (first, last) = (find_byte(word as u64, b'.'), find_byte((word >> 64) as u64, b'.'));
    if first | last == 0 {
        return parse_digits(field).map(|v| (v, 0));
    }
    let point = if first != 0 { first.trailing_zeros() } else { 64 + last.trailing_zeros() } / 8;
    let point = point as usize;
    let below = word & ((1u128 << (8 * point)) - 1);
    let above = word >> (8 * point) >> 8 << (8 * point);
    let zeros = u128::from(ZEROS) << 64 | u128::from(ZEROS);
    let digits = ((below | above) ^ zeros) << (128 - 8 * (len - 1));
    let (high, low) = (digits as u64, (digits >> 64) as u64);
    if !all_digits(high) || !all_digits(low) {
        return None;
    }
    Some((eight_digits(high) * POW10[8] + eight_digits(low), len - 1 - point))
}

/// 8 hexadecimal characters to 4 bytes, in order from the lowest.
#[inline(always)]
pub fn eight_hex(word: u64) -> Option<u32> {
    // Additions below stay inside a byte, as no byte has its high bit.
    if word & HIGHS != 0 {
        return None;
    }
    let lower = word | (ONES * 0x20);
    let digit = (word + ONES * 0x50) & !(word + ONES * 0x46);
    let letter = (lower + ONES * 0x1f) & !(lower + ONES * 0x19);
    if (digit | letter) & HIGHS != HIGHS {
        return None;
    }
    let nibbles = (word & (ONES * 0x0f)) + ((word >> 6) & ONES) * 9;
    let bytes = (nibbles << 4 | nibbles >> 8) & 0x00ff_00ff_00ff_00ff;
    let twos = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    Some((twos | twos >> 16) as u32)
}

/// Whether all bytes are ASCII other than NUL.
#[inline(always)]
pub fn is_plain_ascii(field: &[u8]) -> bool {
    let mut bad = 0;
    let (words, rest) = field.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        bad |= word.wrapping_sub(ONES) | word;
    }
    // The padding of a short tail is made of ones, which are plain.
    let tail = load_short(rest) | (ONES << (8 * rest.len()));
    bad |= tail.wrapping_sub(ONES) | tail;
    bad & HIGHS == 0
}
