//! Finds what is known of a key: a table whose lines of cache hold keys and answers side by side.
//!
//! ```text
//!   16-byte key --pack--> 8 bytes --hash--> bucket: [6 packed keys | 6 answers | which are used]   64 bytes
//! ```
//!
//! A look-up of a key that is there touches one line. Where keys are packed exactly that is all, and the answer is the
//! code: the bits in which any two keys differ are gathered into 8 bytes, and the others are compared with those that all
//! keys share. Ten digits are 40 bits, dates some 17. Where more than 64 bits differ, and for long fields, the packed key
//! is a hash, and the answer the number of a text, whose key is to be compared.
//!
//! A bucket that is full is followed by the next one. There is no removal.
//!
//! Cost: 64 bytes for 2.4 to 3.6 keys; about 20 instructions a look-up.

use super::finder::Finder;
use super::key::{IS_LONG, Key, hash_of};

/// Keys of a bucket.
const SLOTS: usize = 6;
const ALL_USED: u32 = (1 << SLOTS) - 1;
/// Buckets of a table that is new.
const BUCKETS_START: usize = 8;
/// Most keys of ten slots: more would often not find room in their bucket.
const KEYS_PER_TEN_SLOTS: usize = 6;
/// Most bits in which keys may differ to be packed exactly.
const PACKED_BITS: u32 = 64;

#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
struct Bucket {
    keys: [u64; SLOTS],
    answers: [u16; SLOTS],
    /// A bit for each slot.
    used: u32,
}

/// How a key becomes 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// By the bits in which keys differ; two packed keys are the same only if the keys are.
    Exact {
        /// Bits in which keys differ.
        varying: Key,
        /// Some key: all have its other bits.
        base: Key,
    },
    /// By a hash of all their bits, where packing does not hold them apart.
    Hashed,
}

/// A text that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) key: Key,
    pub(super) number: u16,
    pub(super) code: u16,
}

/// Answers by keys: codes where keys are packed exactly, else numbers.
#[derive(Debug)]
pub(super) struct Buckets {
    buckets: Vec<Bucket>,
    count: usize,
    packing: Packing,
}

impl Bucket {
    /// The bucket as words; its keys are the first six.
    #[inline(always)]
    fn words(&self) -> &[u64; 8] {
        // SAFETY: a bucket is 64 bytes without padding, aligned as words are; any bits are words.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}

impl Buckets {
    /// Holds nothing; keys are packed exactly, if the processor does that fast.
    pub(super) fn new(exact: bool) -> Self {
        let packing = match exact {
            true => Packing::Exact { varying: [0; 2], base: [0; 2] },
            false => Packing::Hashed,
        };
        Buckets { buckets: vec![Bucket::default(); BUCKETS_START], count: 0, packing }
    }

    /// How keys are packed.
    #[inline(always)]
    pub(super) fn packing(&self) -> Packing {
        self.packing
    }

    /// Where the search for a packed key begins.
    #[inline(always)]
    fn place(&self, packed: u64, finder: impl Finder) -> usize {
        let hash = finder.hash(packed) & u64::from(u32::MAX);
        ((hash * self.buckets.len() as u64) >> 32) as usize
    }

    /// The packed key, and whether it cannot be that of a key that is known.
    #[inline(always)]
    pub(super) fn pack(packing: Packing, key: Key, finder: impl Finder) -> (u64, bool) {
        match packing {
            Packing::Exact { varying, base } => {
                let other = (key[0] ^ base[0]) & !varying[0] | (key[1] ^ base[1]) & !varying[1];
                (finder.gather(key, varying), other != 0)
            }
            Packing::Hashed => (hash_of(key), false),
        }
    }

    /// Where the search for a packed key begins; the bucket is on its way to the cache then.
    #[inline(always)]
    pub(super) fn fetch(&self, packed: u64, finder: impl Finder) -> u32 {
        let place = self.place(packed, finder);
        finder.fetch(self.buckets.as_ptr().wrapping_add(place).cast());
        place as u32
    }

    /// The answer of the first match in the bucket where the search begins, and whether there is one. Without one it is
    /// that of some key, or 0.
    ///
    /// # Safety
    /// The place is one that [`Self::fetch`] told since a key was last added.
    #[inline(always)]
    pub(super) unsafe fn find_at(
        &self,
        place: u32,
        packed: u64,
        finder: impl Finder,
    ) -> (u16, bool) {
        // SAFETY: the place is less than the number of buckets, as the caller says.
        let bucket = unsafe { self.buckets.get_unchecked(place as usize) };
        let found = finder.matching(bucket.words(), packed) & bucket.used;
        let slot = (found | 1 << (SLOTS - 1)).trailing_zeros() as usize;
        // SAFETY: the slot is below six.
        (unsafe { *bucket.answers.get_unchecked(slot) }, found != 0)
    }

    /// The answer of a packed key for which `is_it` holds.
    pub(super) fn find(
        &self,
        packed: u64,
        finder: impl Finder,
        mut is_it: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        let mut place = self.place(packed, finder);
        loop {
            let bucket = &self.buckets[place];
            let mut found = finder.matching(bucket.words(), packed) & bucket.used;
            while found != 0 {
                let answer = bucket.answers[found.trailing_zeros() as usize];
                if is_it(answer) {
                    return Some(answer);
                }
                found &= found - 1;
            }
            if bucket.used != ALL_USED {
                return None;
            }
            place = (place + 1) % self.buckets.len();
        }
    }

    /// Adds a text that is not there; `all` are those that are.
    pub(super) fn add(
        &mut self,
        new: Known,
        finder: impl Finder,
        all: impl Iterator<Item = Known>,
    ) {
        let packing = self.packing_with(new.key);
        let is_full = (self.count + 1) * 10 > self.buckets.len() * SLOTS * KEYS_PER_TEN_SLOTS;
        if packing != self.packing || is_full {
            self.packing = packing;
            let buckets = self.buckets.len() + if is_full { self.buckets.len() / 2 } else { 0 };
            self.buckets.clear();
            self.buckets.resize(buckets, Bucket::default());
            self.count = 0;
            all.for_each(|known| self.put(known, finder));
        }
        self.put(new, finder);
    }

    /// How keys are packed when there is one more.
    fn packing_with(&self, key: Key) -> Packing {
        let Packing::Exact { varying, base } = self.packing else { return Packing::Hashed };
        if key[1] & IS_LONG != 0 {
            return Packing::Hashed;
        }
        if self.count == 0 {
            return Packing::Exact { varying, base: key };
        }
        let varying = [varying[0] | key[0] ^ base[0], varying[1] | key[1] ^ base[1]];
        match varying[0].count_ones() + varying[1].count_ones() <= PACKED_BITS {
            true => Packing::Exact { varying, base },
            false => Packing::Hashed,
        }
    }

    fn put(&mut self, known: Known, finder: impl Finder) {
        let (packed, _) = Self::pack(self.packing, known.key, finder);
        let mut place = self.place(packed, finder);
        while self.buckets[place].used == ALL_USED {
            place = (place + 1) % self.buckets.len();
        }
        let bucket = &mut self.buckets[place];
        let slot = bucket.used.trailing_ones() as usize;
        bucket.keys[slot] = packed;
        bucket.answers[slot] = match self.packing {
            Packing::Exact { .. } => known.code,
            Packing::Hashed => known.number,
        };
        bucket.used |= 1 << slot;
        self.count += 1;
    }
}

#[cfg(test)]
mod tests;
