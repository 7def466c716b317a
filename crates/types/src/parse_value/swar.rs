//! Digits eight at a time in one 64-bit word.
//!
//! ```text
//!   "12345.67" -> Tail: 16 bytes, right aligned, each less '0' (the point is 0x1e):
//!                 low 00 00 00 00 00 00 00 00   high 01 02 03 04 05 1e 06 07
//!              -> the point taken out: high 00 01 02 03 04 05 06 07
//!              -> eight_digits: 1234567
//! ```
//!
//! Nothing here branches on the length of a field: lengths vary from row to row, and a branch
//! that is predicted wrongly costs more than the whole conversion.

pub const ONES: u64 = 0x0101_0101_0101_0101;
pub const HIGHS: u64 = 0x8080_8080_8080_8080;
pub const ZEROS: u64 = 0x3030_3030_3030_3030;
/// Added to a byte above nine, it sets the high bit: 0x76 + 10 = 0x80. A byte that carries into
/// its neighbour has its own high bit set before, and is caught by that.
pub const ABOVE_NINE: u64 = 0x7676_7676_7676_7676;

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

/// The 1 to 16 characters of a field, right aligned and with '0' taken off each (by exclusive
/// or); zeros in front of them.
#[derive(Debug, Clone, Copy)]
pub struct Tail {
    /// The characters before the last eight.
    low: u64,
    /// The last eight characters, the very last in the highest byte.
    high: u64,
}

/// For each length of a field less one, which bytes of a tail belong to it.
const TAIL_MASKS: [(u64, u64); 16] = {
    let mut table = [(u64::MAX, u64::MAX); 16];
    let mut len = 1;
    while len < 16 {
        table[len - 1] = match len {
            0..8 => (0, !(u64::MAX >> (8 * len))),
            8 => (0, u64::MAX),
            _ => (!(u64::MAX >> (8 * (len - 8))), u64::MAX),
        };
        len += 1;
    }
    table
};

impl Tail {
    /// From a field of its own; `None` unless it has 1 to 16 characters.
    #[inline(always)]
    pub fn from_field(field: &[u8]) -> Option<Tail> {
        let (low_mask, high_mask) = *TAIL_MASKS.get(field.len().wrapping_sub(1))?;
        let (low, high) = match (field.first_chunk::<8>(), field.last_chunk::<8>()) {
            (Some(first), Some(last)) => {
                let shift = 8 * (16 - field.len()) as u32;
                let low = u64::from_le_bytes(*first).checked_shl(shift).unwrap_or(0);
                (low, u64::from_le_bytes(*last))
            }
            _ => (0, load_short(field) << (8 * (8 - field.len()))),
        };
        Some(Tail { low: (low ^ ZEROS) & low_mask, high: (high ^ ZEROS) & high_mask })
    }

    /// From `chunk[start..end]`, by two loads that may reach back before `start`; `None` unless it
    /// has 1 to 16 characters and 16 bytes of the chunk are before `end`.
    #[inline(always)]
    pub fn from_chunk(chunk: &[u8], start: usize, end: usize) -> Option<Tail> {
        let (low_mask, high_mask) = *TAIL_MASKS.get(end.wrapping_sub(start).wrapping_sub(1))?;
        let bytes = chunk.get(end.wrapping_sub(16)..end)?.as_array::<16>()?;
        let word = u128::from_le_bytes(*bytes);
        let (low, high) = (word as u64, (word >> 64) as u64);
        Some(Tail { low: (low ^ ZEROS) & low_mask, high: (high ^ ZEROS) & high_mask })
    }

    /// The number, if all characters are digits.
    #[inline(always)]
    pub fn digits(self) -> Option<u64> {
        let (low, high) = (self.low, self.high);
        let over = (low.wrapping_add(ABOVE_NINE) | low) | (high.wrapping_add(ABOVE_NINE) | high);
        (over & HIGHS == 0).then(|| eight_digits(low) * POW10[8] + eight_digits(high))
    }

    /// The number without its point, if the point stands before the last `after` digits, 1 to 7.
    #[inline(always)]
    pub fn point_before(self, after: usize) -> Option<u64> {
        let place = 56 - 8 * after;
        let point = 0xff << place;
        let high = self.high ^ ((b'.' ^ b'0') as u64) << place;
        if high & point != 0 {
            return None;
        }
        let before = high & !(u64::MAX << place);
        let high = (high & (u64::MAX << place)) | before << 8 | self.low >> 56;
        Tail { low: self.low << 8, high }.digits()
    }

    /// The number without its point, and how many digits stand after the point. Nothing but
    /// digits and at most one point is accepted.
    #[inline(always)]
    pub fn point(self) -> Option<(u64, usize)> {
        let found = find_byte(self.high, b'.' ^ b'0');
        if found == 0 {
            return self.early_point();
        }
        let place = found.trailing_zeros() / 8;
        let before = self.high & ((1 << (8 * place)) - 1);
        let after = self.high & (!0xff << (8 * place));
        let high = after | before << 8 | self.low >> 56;
        let digits = Tail { low: self.low << 8, high }.digits()?;
        // "." looks like "0." from here: leave both to the slow path.
        (digits != 0 || place != 7).then_some((digits, 7 - place as usize))
    }

    /// [`Tail::point`] when no point is in the last eight characters.
    #[inline(always)]
    fn early_point(self) -> Option<(u64, usize)> {
        let found = find_byte(self.low, b'.' ^ b'0');
        if found == 0 {
            return self.digits().map(|digits| (digits, 0));
        }
        let place = found.trailing_zeros() / 8;
        let before = self.low & ((1 << (8 * place)) - 1);
        let after = self.low & (!0xff << (8 * place));
        let digits = Tail { low: after | before << 8, high: self.high }.digits()?;
        Some((digits, 15 - place as usize))
    }
}

/// The high bit of the lowest byte that equals `byte`, and perhaps of higher ones; 0 if none does.
#[inline(always)]
pub fn find_byte(word: u64, byte: u8) -> u64 {
    let zero = word ^ (ONES * u64::from(byte));
    zero.wrapping_sub(ONES) & !zero & HIGHS
}

/// Whether each byte, a character with '0' taken off, is 0 to 9.
#[inline(always)]
pub fn all_digits(word: u64) -> bool {
    (word.wrapping_add(ABOVE_NINE) | word) & HIGHS == 0
}

/// Numbers 0 to 99 in four 16-bit lanes, first pair lowest.
#[inline(always)]
pub fn digit_pairs(word: u64) -> u64 {
    (word.wrapping_mul(2561) >> 8) & 0x00ff_00ff_00ff_00ff
}

/// The number of eight digits that [`all_digits`] accepts.
#[inline(always)]
pub fn eight_digits(word: u64) -> u64 {
    let fours = (digit_pairs(word).wrapping_mul(6_553_601) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(42_949_672_960_001) >> 32
}

/// 17 to 19 digits and nothing else.
#[inline]
pub fn many_digits(field: &[u8]) -> Option<u64> {
    let (head, tail) = field.split_last_chunk::<16>()?;
    if head.is_empty() || head.len() > 3 {
        return None;
    }
    // At most 999 * 10^16 + 10^16 - 1, which fits.
    Some(Tail::from_field(head)?.digits()? * POW10[16] + Tail::from_field(tail)?.digits()?)
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
