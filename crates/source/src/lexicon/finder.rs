//! What looks keys up in the fastest way that the processor has.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod bits;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Avx512;

use super::GROUP;
use super::few::Few;
use super::key::{Key, hash_of, key_of, mix};
use super::packing::{Fields, Packed};

/// A [`Finder`] that this processor has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Best {
    Portable(Portable),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

/// Evaluates an expression with the finder that a [`Best`] is.
macro_rules! with_finder {
    ($best:expr, $finder:ident => $value:expr) => {
        match $best {
            $crate::lexicon::finder::Best::Portable($finder) => $value,
            #[cfg(target_arch = "x86_64")]
            $crate::lexicon::finder::Best::Avx2($finder) => $value,
            #[cfg(target_arch = "x86_64")]
            $crate::lexicon::finder::Best::Avx512($finder) => $value,
        }
    };
}
pub(super) use with_finder;

impl Best {
    /// The finders that this processor has, the best first.
    pub(super) fn all() -> impl Iterator<Item = Best> {
        #[cfg(target_arch = "x86_64")]
        let fast = [Avx512::new().map(Best::Avx512), Avx2::new().map(Best::Avx2)];
        #[cfg(not(target_arch = "x86_64"))]
        let fast = [None];
        fast.into_iter().flatten().chain([Best::Portable(Portable)])
    }

    /// The best of them.
    pub(super) fn new() -> Self {
        Best::all().next().unwrap_or(Best::Portable(Portable))
    }

    /// Whether fields are numbered fast.
    pub(super) fn numbers(self) -> bool {
        !matches!(self, Best::Portable(_))
    }

    /// Whether bits are gathered fast.
    pub(super) fn gathers(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.numbers() && bits::are_gathered_fast();
        #[cfg(not(target_arch = "x86_64"))]
        false
    }
}

/// What looks keys up in the fastest way that the processor has.
pub(super) trait Finder: Copy {
    /// The bits of `key` at those of `varying`, next to each other.
    fn gather(self, key: Key, varying: Key) -> u64;
    /// Hash of a packed key; the high bits of its low half are well mixed.
    fn hash(self, packed: u64) -> u64;
    /// Has a line of memory come to the cache.
    fn fetch(self, line: *const u8);
    /// A bit for each slot that holds the key.
    fn matching(self, keys: &[u64; 8], packed: u64) -> u32;
    /// Hash of the text of a field, as [`hash_of`] has it.
    fn hash_field(self, text: &[u8], start: usize, end: usize) -> u64;
    /// Whether two texts are the same.
    fn is_same(self, a: &[u8], b: &[u8]) -> bool;
    /// The codes of fields, and a bit for each that is not known; bits behind the fields mean nothing.
    fn find_all(
        self,
        few: &Few,
        fields: Fields<'_>,
        packed: &mut Packed,
        found: &mut [u16; GROUP],
    ) -> u64;
}

/// Any processor; keys are packed by a hash, as gathering bits takes long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portable;

impl Finder for Portable {
    #[inline(always)]
    fn gather(self, key: Key, varying: Key) -> u64 {
        let (mut packed, mut at) = (0, 0);
        for (word, mask) in key.into_iter().zip(varying) {
            let mut left = mask;
            while left != 0 {
                packed |= (word >> left.trailing_zeros() & 1) << at;
                left &= left - 1;
                at += 1;
            }
        }
        packed
    }

    #[inline(always)]
    fn hash(self, packed: u64) -> u64 {
        mix(packed) >> 32
    }

    #[inline(always)]
    fn fetch(self, _line: *const u8) {}

    #[inline(always)]
    fn matching(self, keys: &[u64; 8], packed: u64) -> u32 {
        keys.iter().enumerate().fold(0, |found, (i, key)| found | u32::from(*key == packed) << i)
    }

    #[inline(always)]
    fn hash_field(self, text: &[u8], start: usize, end: usize) -> u64 {
        hash_of(key_of(text, start, end))
    }

    #[inline(always)]
    fn is_same(self, a: &[u8], b: &[u8]) -> bool {
        a == b
    }

    #[inline(always)]
    fn find_all(
        self,
        few: &Few,
        fields: Fields<'_>,
        _packed: &mut Packed,
        found: &mut [u16; GROUP],
    ) -> u64 {
        few.find_each(fields, found)
    }
}
