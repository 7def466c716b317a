//! Instructions on single words that AVX2 and AVX-512 come with.

use std::arch::x86_64::{__cpuid, _MM_HINT_T0, _mm_crc32_u64, _mm_prefetch, _pext_u64};

use crate::lexicon::key::Key;

/// Whether the bits of a mask are gathered in some cycles. The first two generations of AMD's Zen take some hundred.
pub(super) fn are_gathered_fast() -> bool {
    const ZEN_AND_ZEN_2: u32 = 0x17;
    let vendor = __cpuid(0);
    let is_amd = vendor.ebx == u32::from_le_bytes(*b"Auth");
    let signature = __cpuid(1).eax;
    let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
    !(is_amd && family == ZEN_AND_ZEN_2)
}

/// As [`super::Finder::gather`].
#[inline]
#[target_feature(enable = "bmi2,popcnt")]
pub(super) fn gather(key: Key, varying: Key) -> u64 {
    let high = _pext_u64(key[1], varying[1]);
    _pext_u64(key[0], varying[0]) | high.unbounded_shl(varying[0].count_ones())
}

/// As [`super::Finder::hash`].
#[inline]
#[target_feature(enable = "sse4.2")]
pub(super) fn hash(packed: u64) -> u64 {
    _mm_crc32_u64(0, packed)
}

/// As [`super::Finder::fetch`].
#[inline(always)]
pub(super) fn fetch(line: *const u8) {
    // SAFETY: a hint reads nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}
