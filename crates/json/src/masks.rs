//! Looks at 32 bytes at once: a bit for each byte.
//!
//! SSE2 is in every processor of x86-64, so that nothing is chosen at run time: most keys and values are shorter than 32
//! bytes, and longer vectors would look at what comes behind them.

/// Bytes behind a text that may be looked at; they are not text.
pub const PADDING: usize = 64;
/// Bytes looked at at once.
pub const STEP: usize = 32;

/// The 32 bytes from `at` on; `None` where the padding ends before.
#[inline(always)]
pub fn step_at(text: &[u8], at: usize) -> Option<&[u8; STEP]> {
    text.get(at..)?.first_chunk()
}

/// Bytes that a string cannot have as they are: quotes, backslashes, control characters.
#[inline(always)]
pub fn special_in_string(bytes: &[u8; STEP]) -> u32 {
    imp::special_in_string(bytes)
}

/// Bytes that are no digits.
#[inline(always)]
pub fn no_digits(bytes: &[u8; STEP]) -> u32 {
    imp::no_digits(bytes)
}

/// Bytes that are the same in both.
#[inline(always)]
pub fn equal(a: &[u8; STEP], b: &[u8; STEP]) -> u32 {
    imp::equal(a, b)
}

/// Quotes, backslashes, opening and closing brackets of both kinds.
#[inline(always)]
pub fn structure(bytes: &[u8; STEP]) -> [u32; 4] {
    imp::structure(bytes)
}

#[cfg(target_arch = "x86_64")]
mod imp {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_max_epu8, _mm_min_epu8, _mm_movemask_epi8,
        _mm_or_si128, _mm_set1_epi8, _mm_sub_epi8,
    };

    use super::STEP;

    #[inline(always)]
    fn halves(bytes: &[u8; STEP]) -> [__m128i; 2] {
        let at = bytes.as_ptr();
        // SAFETY: 32 bytes are there, and nothing needs to be aligned.
        unsafe { [_mm_loadu_si128(at.cast()), _mm_loadu_si128(at.add(16).cast())] }
    }

    #[inline(always)]
    fn bits(masks: [__m128i; 2]) -> u32 {
        // SAFETY: SSE2 is in every processor of the architecture.
        let [low, high] = masks.map(|mask| unsafe { _mm_movemask_epi8(mask) } as u32);
        low | high << 16
    }

    #[inline(always)]
    fn each(bytes: &[u8; STEP], look: impl Fn(__m128i) -> __m128i) -> u32 {
        bits(halves(bytes).map(look))
    }

    #[inline(always)]
    pub fn special_in_string(bytes: &[u8; STEP]) -> u32 {
        // SAFETY: SSE2 is in every processor of the architecture.
        each(bytes, |b| unsafe {
            let quote = _mm_cmpeq_epi8(b, _mm_set1_epi8(b'"' as i8));
            let backslash = _mm_cmpeq_epi8(b, _mm_set1_epi8(b'\\' as i8));
            let control = _mm_cmpeq_epi8(_mm_max_epu8(b, _mm_set1_epi8(0x1f)), _mm_set1_epi8(0x1f));
            _mm_or_si128(_mm_or_si128(quote, backslash), control)
        })
    }

    #[inline(always)]
    pub fn no_digits(bytes: &[u8; STEP]) -> u32 {
        // SAFETY: SSE2 is in every processor of the architecture.
        !each(bytes, |b| unsafe {
            let value = _mm_sub_epi8(b, _mm_set1_epi8(b'0' as i8));
            _mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value)
        })
    }

    #[inline(always)]
    pub fn equal(a: &[u8; STEP], b: &[u8; STEP]) -> u32 {
        let ([a0, a1], [b0, b1]) = (halves(a), halves(b));
        // SAFETY: SSE2 is in every processor of the architecture.
        bits(unsafe { [_mm_cmpeq_epi8(a0, b0), _mm_cmpeq_epi8(a1, b1)] })
    }

    #[inline(always)]
    pub fn structure(bytes: &[u8; STEP]) -> [u32; 4] {
        let of = |byte: u8| {
            // SAFETY: SSE2 is in every processor of the architecture.
            each(bytes, |b| unsafe { _mm_cmpeq_epi8(b, _mm_set1_epi8(byte as i8)) })
        };
        let bracket = |byte: u8| {
            // `[` and `{` differ in one bit, and so do `]` and `}`.
            // SAFETY: SSE2 is in every processor of the architecture.
            each(bytes, |b| unsafe {
                let folded = _mm_or_si128(b, _mm_set1_epi8(0x20));
                _mm_cmpeq_epi8(folded, _mm_set1_epi8(byte as i8))
            })
        };
        [of(b'"'), of(b'\\'), bracket(b'{'), bracket(b'}')]
    }
}

#[cfg(not(target_arch = "x86_64"))]
use portable as imp;

/// For other processors, and what the fast code is tested against.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    use super::STEP;

    #[inline(always)]
    fn each(bytes: &[u8; STEP], is: impl Fn(u8) -> bool) -> u32 {
        let bit = |(at, byte): (usize, &u8)| u32::from(is(*byte)) << at;
        bytes.iter().enumerate().map(bit).fold(0, |all, bit| all | bit)
    }

    pub fn special_in_string(bytes: &[u8; STEP]) -> u32 {
        each(bytes, |byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))
    }

    pub fn no_digits(bytes: &[u8; STEP]) -> u32 {
        each(bytes, |byte| !byte.is_ascii_digit())
    }

    pub fn equal(a: &[u8; STEP], b: &[u8; STEP]) -> u32 {
        let bit = |at: usize| u32::from(a[at] == b[at]) << at;
        (0..STEP).map(bit).fold(0, |all, bit| all | bit)
    }

    pub fn structure(bytes: &[u8; STEP]) -> [u32; 4] {
        [
            each(bytes, |byte| byte == b'"'),
            each(bytes, |byte| byte == b'\\'),
            each(bytes, |byte| matches!(byte, b'{' | b'[')),
            each(bytes, |byte| matches!(byte, b'}' | b']')),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_those_of_byte_by_byte() {
        for first in 0..=u8::MAX {
            let bytes: [u8; STEP] = std::array::from_fn(|at| first.wrapping_add(at as u8 * 7));
            let other: [u8; STEP] = std::array::from_fn(|at| bytes[at] ^ (at as u8 & 1));
            assert_eq!(special_in_string(&bytes), portable::special_in_string(&bytes));
            assert_eq!(no_digits(&bytes), portable::no_digits(&bytes));
            assert_eq!(structure(&bytes), portable::structure(&bytes));
            assert_eq!(equal(&bytes, &other), portable::equal(&bytes, &other));
        }
    }
}
