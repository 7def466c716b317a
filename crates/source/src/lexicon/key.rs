//! Keys of fields: their bytes in two words.

use std::hash::BuildHasher;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

/// Longest field that is its own key.
pub(super) const KEY_BYTES: usize = 15;
/// What a longer field has in place of its length.
const LONG: u64 = 32;
/// The bit of a key's last word that says so.
pub(super) const IS_LONG: u64 = LONG << 56;
/// The bits that have the length.
const LENGTH: u64 = 0xff << 56;
pub(super) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// 15 bytes of a field, zeros behind them, and the length in the last byte; or the first 8 bytes of a
/// long one, and a hash.
pub(super) type Key = [u64; 2];

/// Keeps the first bytes of a 16-byte load, by their number.
pub(super) static MASKS: [Key; KEY_BYTES + 2] = {
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

/// The key of a field of up to 15 bytes; 16 bytes are read.
#[inline(always)]
pub(super) fn make_key(text: &[u8], start: usize, len: usize, key: &mut Key) {
    let [low, high] = MASKS[len];
    *key = [word(text, start) & low, word(text, start + 8) & high | (len as u64) << 56];
}

/// The key of a field; a long one has the hash of its text.
#[inline(always)]
pub(super) fn key_of(text: &[u8], start: usize, end: usize) -> Key {
    let mut key = [0; 2];
    match end - start <= KEY_BYTES {
        true => make_key(text, start, end - start, &mut key),
        false => key = [word(text, start), hash_long(&text[start..end]) | IS_LONG],
    }
    key
}

#[inline(always)]
pub(super) fn word(text: &[u8], at: usize) -> u64 {
    let mut raw = [0; 8];
    raw.copy_from_slice(&text[at..at + 8]);
    u64::from_le_bytes(raw)
}

/// A hash of a word, whose high bits are well mixed.
#[inline(always)]
pub(super) fn mix(word: u64) -> u64 {
    (word ^ word >> 31).wrapping_mul(GOLDEN)
}

/// Hash of a key's text, which has no bits where a key has the length.
#[inline(always)]
pub(super) fn hash_of(key: Key) -> u64 {
    let word = key[1] & !LENGTH;
    if key[1] & IS_LONG != 0 {
        return word;
    }
    let factors = &*FACTORS;
    let sum = key[0].wrapping_mul(factors[0]).wrapping_add(word.wrapping_mul(factors[1]));
    with_block(key[1] >> 56, sum) >> 8
}

/// The text of a short key, and its length.
pub(super) fn text_of(key: Key) -> ([u8; 16], usize) {
    let mut text = [0; 16];
    text[..8].copy_from_slice(&key[0].to_le_bytes());
    text[8..].copy_from_slice(&key[1].to_le_bytes());
    let length = std::mem::take(&mut text[KEY_BYTES]);
    (text, usize::from(length))
}

/// Bytes of a text that are hashed at once.
const BLOCK: usize = 64;

/// What the words of a block are multiplied with: others in each process, so that no file can be made whose texts have the
/// same hash.
static FACTORS: LazyLock<[u64; BLOCK / 8]> = LazyLock::new(|| {
    let random = RandomState::default();
    std::array::from_fn(|i| random.hash_one(i) | 1)
});

/// Hash of a text, as [`hash_of`] has it. Words are zero where the text ends before them.
fn hash_long(text: &[u8]) -> u64 {
    let factors = &*FACTORS;
    let hash = text.chunks(BLOCK).fold(text.len() as u64, |hash, block| {
        let (words, rest) = block.as_chunks::<8>();
        let whole = words.iter().zip(factors);
        let whole = whole.map(|(word, factor)| u64::from_le_bytes(*word).wrapping_mul(*factor));
        let mut sum = whole.fold(0, u64::wrapping_add);
        if !rest.is_empty() {
            sum = sum.wrapping_add(short_word(block, rest).wrapping_mul(factors[words.len()]));
        }
        with_block(hash, sum)
    });
    // The high bits are mixed best.
    hash >> 8
}

/// The bytes of `rest`, fewer than eight and the last of `block`, zeros behind them.
#[inline(always)]
fn short_word(block: &[u8], rest: &[u8]) -> u64 {
    match block.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last) >> (8 * (8 - rest.len())),
        None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[inline(always)]
fn with_block(hash: u64, sum: u64) -> u64 {
    let mixed = (hash ^ sum).wrapping_mul(GOLDEN);
    mixed ^ mixed >> 32
}

#[cfg(target_arch = "x86_64")]
pub(super) mod avx512 {
    use std::arch::x86_64::*;

    use super::{BLOCK, FACTORS, with_block};

    /// The bytes of a text from `at` on, zeros behind it.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,bmi2")]
    fn block(text: &[u8], at: usize) -> __m512i {
        let mask = _bzhi_u64(u64::MAX, (text.len() - at).min(BLOCK) as u32);
        // SAFETY: only bytes of the text are loaded.
        unsafe { _mm512_maskz_loadu_epi8(mask, text.as_ptr().add(at).cast()) }
    }

    /// Hash of a text, as [`super::hash_of`] has it.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,bmi2")]
    pub(in crate::lexicon) fn hash(text: &[u8]) -> u64 {
        // SAFETY: the load is of the eight factors.
        let factors = unsafe { _mm512_loadu_si512(FACTORS.as_ptr().cast()) };
        let mut hash = text.len() as u64;
        for at in (0..text.len()).step_by(BLOCK) {
            let products = _mm512_mullo_epi64(block(text, at), factors);
            hash = with_block(hash, _mm512_reduce_add_epi64(products).cast_unsigned());
        }
        // A block of an empty text makes a difference in a key.
        if text.is_empty() {
            hash = with_block(0, 0);
        }
        hash >> 8
    }

    /// Whether two texts are the same.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,bmi2")]
    pub(in crate::lexicon) fn is_same(a: &[u8], b: &[u8]) -> bool {
        let differs = |at: usize| _mm512_cmpneq_epi8_mask(block(a, at), block(b, at)) != 0;
        a.len() == b.len() && !(0..a.len()).step_by(BLOCK).any(differs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_hashed_as_words_with_zeros_behind_them() {
        let text: Vec<u8> = (0..300_u32).map(|i| (i * 7 % 251) as u8).collect();
        for length in 0..text.len() {
            let mut padded = text[..length].to_vec();
            padded.resize(length.next_multiple_of(BLOCK), 0);
            let hash = padded.chunks(BLOCK).fold(length as u64, |hash, block| {
                let (words, _) = block.as_chunks::<8>();
                let products = words.iter().zip(FACTORS.iter());
                let products = products.map(|(w, f)| u64::from_le_bytes(*w).wrapping_mul(*f));
                with_block(hash, products.fold(0, u64::wrapping_add))
            });
            assert_eq!(hash_long(&text[..length]), hash >> 8, "{length}");
        }
    }

    #[test]
    fn texts_are_hashed_and_compared_alike_everywhere() {
        #[cfg(target_arch = "x86_64")]
        if coload_types::simd_level() == coload_types::SimdLevel::Avx512 {
            let text: Vec<u8> = (0..300_u32).map(|i| (i * 7 % 251) as u8).collect();
            for length in 0..text.len() - 16 {
                let (a, mut b) = (&text[..length], text[..length].to_vec());
                // SAFETY: the instructions are there.
                unsafe {
                    let key = key_of(&text, 0, length);
                    assert_eq!(avx512::hash(a), hash_of(key), "{length}");
                    assert!(avx512::is_same(a, &b));
                    for at in 0..length {
                        b[at] ^= 1;
                        assert!(!avx512::is_same(a, &b));
                        assert_ne!(avx512::hash(&b), avx512::hash(a));
                        b[at] ^= 1;
                    }
                    assert!(!avx512::is_same(&text, a));
                }
            }
        }
    }
}
