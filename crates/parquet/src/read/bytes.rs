//! Numbers within bytes.

use coload_arrow::{Fault, Result};

/// A value that is cut off.
pub(super) fn cut_off() -> Fault {
    Fault::Damaged("a page that ends before its rows do".to_owned())
}

/// The number of 32 bits that bytes begin with, and what comes after it.
pub(super) fn split_word(bytes: &[u8]) -> Result<(usize, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut_off)?;
    Ok((u32::from_le_bytes(*word) as usize, rest))
}

/// The number of bytes that the first say, and the rest.
pub(super) fn split_sized(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let (size, rest) = split_word(bytes)?;
    rest.split_at_checked(size).ok_or_else(cut_off)
}

/// A number without sign, 7 bits a byte; moves `at` behind it.
pub(super) fn varint(bytes: &[u8], at: &mut usize) -> Result<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or_else(cut_off)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Fault::Damaged("a number that is too long".to_owned()))
}

/// The `width` bits from a bit on, of 64 at most, lowest first; `None` where they are not all there.
#[inline]
pub(super) fn bits_at(bytes: &[u8], bit: usize, width: u32) -> Option<u64> {
    if width == 0 {
        return Some(0);
    }
    let (byte, shift) = (bit / 8, bit % 8);
    if (bit + width as usize).div_ceil(8) > bytes.len() {
        return None;
    }
    let mask = u64::MAX >> (64 - width);
    if let Some(word) = bytes.get(byte..).and_then(|rest| rest.first_chunk::<8>())
        && shift + width as usize <= 64
    {
        return Some(u64::from_le_bytes(*word) >> shift & mask);
    }
    let mut word = [0; 16];
    let rest = &bytes[byte..bytes.len().min(byte + 16)];
    word[..rest.len()].copy_from_slice(rest);
    Some((u128::from_le_bytes(word) >> shift) as u64 & mask)
}
