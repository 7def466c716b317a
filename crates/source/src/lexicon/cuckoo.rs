//! Codes by words, each at one of two places.
//!
//! Both places are looked at, so that nothing depends on what is there.
//!
//! Cost: 22 to 44 bytes a word; about 5 cycles a look-up.
//!
//! Source: Pagh and Rodler, "Cuckoo hashing", ESA 2001; Ross, "Efficient hash probes on modern processors", ICDE 2007.

use super::GROUP;
use super::key::GOLDEN;

/// Fewest places.
const PLACES_MIN: usize = 32;
/// Most places: 160 KB with the codes.
const PLACES_MAX: usize = 1 << 14;
/// Words that may be moved for one more.
const MOVES_MAX: usize = 64;
/// Bits between the halves of a word that are mixed; not those of a character.
const MIX: u32 = 29;

#[derive(Debug)]
pub(super) struct Cuckoo {
    /// An empty place holds a word that stands elsewhere.
    words: Vec<u64>,
    codes: Vec<u16>,
    used: Vec<bool>,
    /// Bits of a place.
    bits: u32,
    count: usize,
}

impl Cuckoo {
    /// Room for so many words, as they usually come; `None` where it would be too large.
    pub(super) fn with_room(count: usize) -> Option<Self> {
        // Half of the places are used at most: with more, words would be moved often.
        let places = (count * 2 + 1).next_power_of_two().max(PLACES_MIN);
        if places > PLACES_MAX {
            return None;
        }
        let mut new = Cuckoo {
            words: vec![0; places],
            codes: vec![0; places],
            used: vec![false; places],
            bits: places.trailing_zeros(),
            count: 0,
        };
        // Nobody looks for 0 elsewhere; at its own places stands a word that has others.
        for place in new.places(0) {
            let is_elsewhere = |word: &u64| !new.places(*word).contains(&place);
            new.words[place] = (1..).find(is_elsewhere).unwrap_or_default();
        }
        Some(new)
    }

    #[inline(always)]
    fn places(&self, word: u64) -> [usize; 2] {
        let hash = (word ^ word >> MIX).wrapping_mul(GOLDEN);
        let shift = u64::BITS - self.bits;
        [(hash >> shift) as usize, (hash << self.bits >> shift) as usize]
    }

    /// The code of a word.
    pub(super) fn find(&self, word: u64) -> Option<u16> {
        let places = self.places(word);
        let place = places.into_iter().find(|at| self.used[*at] && self.words[*at] == word)?;
        Some(self.codes[place])
    }

    /// The codes of words, and a bit for each that is not there.
    #[inline(always)]
    pub(super) fn find_all(&self, words: &[u64], found: &mut [u16; GROUP]) -> u64 {
        let mut missing = 0;
        for (i, (word, found)) in words.iter().zip(found).enumerate() {
            let [here, there] = self.places(*word);
            // SAFETY: places have as many bits as the number of words, and there are as many codes.
            unsafe {
                // Volatile, as the compiler would gather them, which takes longer.
                let word_at = |place: usize| self.words.as_ptr().add(place).read_volatile();
                let is_here = word_at(here) == *word;
                let is_there = word_at(there) == *word;
                // Which of the two it is cannot be predicted: no branch.
                let place = std::hint::select_unpredictable(is_here, here, there);
                *found = *self.codes.get_unchecked(place);
                missing |= u64::from(!(is_here | is_there)) << i;
            }
        }
        missing
    }

    /// Adds a word that is not there. Whether there was room; if not, one that was there may be gone.
    pub(super) fn put(&mut self, mut word: u64, mut code: u16) -> bool {
        if self.count * 2 >= self.words.len() {
            return false;
        }
        let mut place = self.places(word)[0];
        for _ in 0..MOVES_MAX {
            let [first, second] = self.places(word);
            if let Some(free) = [first, second].into_iter().find(|at| !self.used[*at]) {
                (self.words[free], self.codes[free], self.used[free]) = (word, code, true);
                self.count += 1;
                return true;
            }
            // The one that is in the way goes where it can, but not back.
            place = if place == first { second } else { first };
            std::mem::swap(&mut self.words[place], &mut word);
            std::mem::swap(&mut self.codes[place], &mut code);
        }
        false
    }
}
