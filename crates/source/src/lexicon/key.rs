//! Keys of fields: their bytes in two words, and where these stand in the index.

use crate::rows::Rows;

/// Longest field that is its own key.
pub(super) const KEY_BYTES: usize = 15;
/// What a longer field has in place of its length.
const LONG: u64 = 32;
/// Fields whose keys are made together.
#[cfg(target_arch = "x86_64")]
pub(super) const BATCH: usize = 32;
pub(super) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const KEY_MIX: u64 = 0xD6E8_FEB8_6659_FD93;

/// 15 bytes of a field, zeros behind them, and the length in the last byte; or the first 8 bytes of a
/// long one, and a hash.
pub(super) type Key = [u64; 2];

/// The keys and codes of some fields of a column.
#[cfg(target_arch = "x86_64")]
pub(super) struct Batch {
    /// Key 0 is that of the field before the batch.
    pub(super) keys: [std::arch::x86_64::__m128i; BATCH + 1],
    /// Code of the last field.
    pub(super) code: u16,
}

#[cfg(target_arch = "x86_64")]
impl Batch {
    pub(super) fn new() -> Self {
        // SAFETY: SSE 2 is in every x86-64.
        let none = unsafe { std::arch::x86_64::_mm_set1_epi8(-1) };
        Batch { keys: [none; BATCH + 1], code: 0 }
    }

    /// Makes the last field one that no field is equal to.
    pub(super) fn forget(&mut self, count: usize) {
        self.keys[count] = Self::new().keys[0];
    }

    /// Makes the keys of `count` fields; says which differ from the one before, or are long.
    ///
    /// # Safety
    /// AVX2; the records are in `rows`.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    #[inline]
    pub(super) unsafe fn load(
        &mut self,
        rows: &Rows<'_>,
        field: usize,
        first: usize,
        count: usize,
    ) -> u32 {
        use std::arch::x86_64::*;
        let mut changed = 0u32;
        let mut before = self.keys[0];
        let (mut start_before, mut len_before) = (0, 0);
        let last = field + 1 == rows.stride;
        // SAFETY: the caller's records are in `ends`; 64 bytes of padding follow the text; there
        // are 17 masks and tags.
        unsafe {
            let mut ends = rows.ends.as_ptr().add(first * rows.stride + field);
            for i in 0..count {
                let start = (*ends).wrapping_add(1) as usize;
                let mut end = *ends.add(1) as usize;
                ends = ends.add(rows.stride);
                if last && end > start && *rows.text.as_ptr().add(end - 1) == b'\r' {
                    end -= 1;
                }
                let kept = (end - start).min(KEY_BYTES + 1);
                let bytes = _mm_loadu_si128(rows.text.as_ptr().add(start).cast());
                let keep = _mm_loadu_si128(MASKS.as_ptr().add(kept).cast());
                let tag = _mm_loadu_si128(TAGS.as_ptr().add(kept).cast());
                let key = _mm_or_si128(_mm_and_si128(bytes, keep), tag);
                let differ = _mm_xor_si128(key, before);
                let mut equal = _mm_testz_si128(differ, differ) == 1;
                if kept > KEY_BYTES {
                    let len = end - start;
                    equal = equal
                        && len == len_before
                        && same_long(rows.text.as_ptr(), start, start_before, len);
                    (start_before, len_before) = (start, len);
                }
                changed |= u32::from(!equal) << i;
                *self.keys.get_unchecked_mut(i + 1) = key;
                before = key;
            }
        }
        changed
    }
}

/// Whether two texts of more than 15 bytes are equal.
///
/// # Safety
/// Both lie in the text, and 16 bytes of padding follow it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn same_long(text: *const u8, a: usize, b: usize, len: usize) -> bool {
    use std::arch::x86_64::*;
    // SAFETY: every load starts in one of the two texts.
    unsafe {
        let load = |at: usize| _mm_loadu_si128(text.add(at).cast());
        let mut at = 16;
        let mut differ = _mm_xor_si128(load(a), load(b));
        while at + 16 < len {
            differ = _mm_or_si128(differ, _mm_xor_si128(load(a + at), load(b + at)));
            at += 16;
        }
        // The last 16 bytes, which overlap what was compared; a text of 15 bytes and more has them.
        let end = len.max(16) - 16;
        differ = _mm_or_si128(differ, _mm_xor_si128(load(a + end), load(b + end)));
        _mm_movemask_epi8(_mm_cmpeq_epi8(differ, _mm_setzero_si128())) == 0xffff
    }
}

/// The length in a key's last byte, by the length.
#[cfg(target_arch = "x86_64")]
static TAGS: [Key; KEY_BYTES + 2] = {
    let mut tags = [[0; 2]; KEY_BYTES + 2];
    let mut len = 0;
    while len < tags.len() {
        tags[len][1] = (len as u64) << 56;
        len += 1;
    }
    tags
};

/// Keeps the first bytes of a 16-byte load, by their number.
static MASKS: [Key; KEY_BYTES + 2] = {
    let mut masks = [[0; 2]; KEY_BYTES + 2];
    let mut len = 1;
    while len <= KEY_BYTES {
        masks[len][0] = if len >= 8 { u64::MAX } else { (1 << (8 * len)) - 1 };
        masks[len][1] = if len <= 8 { 0 } else { (1 << (8 * (len - 8))) - 1 };
        len += 1;
    }
    masks[KEY_BYTES + 1] = masks[KEY_BYTES];
    masks
};

/// The key of a field: its bytes if they are few, else its first bytes and a hash of all.
#[inline(always)]
pub(super) fn key_of(text: &[u8], start: usize, end: usize) -> Key {
    let len = end - start;
    debug_assert!(start + 16 <= text.len());
    // SAFETY: 64 bytes of padding follow the text.
    let [low, high] = unsafe { text.as_ptr().add(start).cast::<Key>().read_unaligned() };
    let (low, high) = (u64::from_le(low), u64::from_le(high));
    match MASKS.get(len) {
        Some(mask) if len <= KEY_BYTES => [low & mask[0], high & mask[1] | (len as u64) << 56],
        _ => [low, hash_long(&text[start..end]) >> 8 | LONG << 56],
    }
}

/// How a key becomes a place in the index; the same for the life of a lexicon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    /// CRC-32C, an instruction of SSE 4.2.
    #[cfg(target_arch = "x86_64")]
    Crc,
    /// Two multiplications.
    Multiply,
}

impl Hash {
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if coload_format::simd_level() >= coload_format::SimdLevel::Avx2 {
            return Hash::Crc;
        }
        Hash::Multiply
    }

    /// Low bits are well mixed.
    #[inline(always)]
    pub(super) fn of(self, key: Key) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `best` chose this because AVX2, and so SSE 4.2, is there.
            Hash::Crc => unsafe { crc(key) },
            Hash::Multiply => {
                let x = key[0] ^ key[1].wrapping_mul(KEY_MIX);
                let x = (x ^ x >> 31).wrapping_mul(GOLDEN);
                x >> 32
            }
        }
    }
}

/// # Safety
/// SSE 4.2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
#[inline]
unsafe fn crc(key: Key) -> u64 {
    use std::arch::x86_64::_mm_crc32_u64;
    _mm_crc32_u64(_mm_crc32_u64(0, key[0]), key[1])
}

/// Hash of a text over 16 bytes, 8 at a time, the last 8 overlapping.
#[inline]
fn hash_long(text: &[u8]) -> u64 {
    let word = |at: usize| {
        let mut raw = [0; 8];
        raw.copy_from_slice(&text[at..at + 8]);
        u64::from_le_bytes(raw)
    };
    let mut hash = text.len() as u64;
    let mut at = 0;
    while at + 8 < text.len() {
        hash = (hash ^ word(at)).wrapping_mul(GOLDEN).rotate_left(29);
        at += 8;
    }
    (hash ^ word(text.len() - 8)).wrapping_mul(KEY_MIX)
}
