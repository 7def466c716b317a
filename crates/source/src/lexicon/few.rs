//! The codes of few short texts.
//!
//! ```text
//!   field -> packed key -> its varying bits -> [code, ...]                      where these are few
//!                       -> two places       -> [packed key, ...] [code, ...]    else
//! ```
//!
//! Keys are packed by vectors ([`super::packing`]) and looked up one by one: instructions that gather take longer than as
//! many loads. A table by the varying bits needs one load and no comparison: dates have some 15 of them, numbers below a
//! thousand 12. Where no turn packs the keys, or there are more than the caches hold, buckets are better.
//!
//! Cost: 22 to 256 bytes a key; 3 to 7 cycles a field.

use super::GROUP;
use super::buckets::{Finder, Known};
use super::cuckoo::Cuckoo;
use super::key::{IS_LONG, Key};
use super::packing::{Fields, Packed, Turn};

/// Most varying bits of a table by them: 128 KB.
const DIRECT_BITS_MAX: u32 = 16;
/// Codes of a table by varying bits that need no keys.
const DIRECT_CODES: usize = 1024;
/// Codes of a table by varying bits for each key besides.
const DIRECT_CODES_A_KEY: usize = 128;
/// Keys from which buckets are better.
const KEYS_MAX: usize = 5_000;
/// A code that no text has.
const NONE: u16 = u16::MAX - 1;

/// Codes by keys.
#[derive(Debug)]
pub(super) struct Few {
    turn: Option<Turn>,
    table: Table,
    count: usize,
}

#[derive(Debug)]
enum Table {
    /// By the bits in which packed keys differ, which are these.
    Direct(u64, Vec<u16>),
    Cuckoo(Cuckoo),
}

impl Few {
    /// Holds nothing.
    pub(super) fn new() -> Self {
        Few { turn: None, table: Table::Direct(0, vec![NONE]), count: 0 }
    }

    /// The code of a key.
    pub(super) fn find(&self, key: Key, finder: impl Finder) -> Option<u16> {
        let packed = self.turn.as_ref()?.pack(key)?;
        match &self.table {
            Table::Direct(bits, codes) => {
                let code = codes[finder.gather([packed, 0], [*bits, 0]) as usize];
                (code != NONE).then_some(code)
            }
            Table::Cuckoo(cuckoo) => cuckoo.find(packed),
        }
    }

    /// The codes of fields, and a bit for each that is not known.
    pub(super) fn find_each(
        &self,
        fields: Fields<'_>,
        found: &mut [u16; GROUP],
        finder: impl Finder,
    ) -> u64 {
        let mut missing = 0;
        for (i, found) in found.iter_mut().enumerate().take(fields.count()) {
            match self.find(fields.key(i), finder) {
                Some(code) => *found = code,
                None => missing |= 1 << i,
            }
        }
        missing
    }

    /// As [`Self::find_each`], of keys that were packed; bits behind them mean nothing.
    #[inline(always)]
    pub(super) fn find_packed(
        &self,
        packed: &Packed,
        count: usize,
        found: &mut [u16; GROUP],
        finder: impl Finder,
    ) -> u64 {
        match &self.table {
            Table::Direct(bits, codes) => {
                for (key, found) in packed.keys[..count].iter().zip(found.iter_mut()) {
                    let at = finder.gather([*key, 0], [*bits, 0]) as usize;
                    // SAFETY: there is a code for all that the bits may be.
                    *found = unsafe { *codes.get_unchecked(at) };
                }
                let missing = found.iter().enumerate();
                missing.fold(0, |missing, (i, code)| missing | u64::from(*code == NONE) << i)
            }
            Table::Cuckoo(cuckoo) => cuckoo.find_all(&packed.keys[..count], found),
        }
    }

    pub(super) fn turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    /// Adds a text that is not there; `all` are those that are. Whether the table holds them: if not, it is of no more use.
    pub(super) fn add(
        &mut self,
        new: Known,
        all: impl Iterator<Item = Known> + Clone,
        finder: impl Finder,
    ) -> bool {
        if new.key[1] & IS_LONG != 0 || self.count == KEYS_MAX {
            return false;
        }
        self.count += 1;
        let turn = match self.turn {
            None => Turn::of(new.key),
            Some(turn) => match turn.with(new.key) {
                Some(turn) => turn,
                None => return false,
            },
        };
        if self.turn == Some(turn) && self.put(turn, new, finder) {
            return true;
        }
        self.turn = Some(turn);
        let bits = turn.varying().count_ones();
        let direct_codes = DIRECT_CODES + DIRECT_CODES_A_KEY * self.count;
        if bits <= DIRECT_BITS_MAX && 1 << bits <= direct_codes {
            self.table = Table::Direct(turn.varying(), vec![NONE; 1 << bits]);
        } else if let Some(cuckoo) = Cuckoo::with_room(self.count) {
            self.table = Table::Cuckoo(cuckoo);
        } else {
            return false;
        }
        let mut places = self.count;
        while !all.clone().chain([new]).all(|known| self.put(turn, known, finder)) {
            places *= 2;
            let Some(cuckoo) = Cuckoo::with_room(places) else { return false };
            self.table = Table::Cuckoo(cuckoo);
        }
        true
    }

    /// Whether there is room.
    fn put(&mut self, turn: Turn, known: Known, finder: impl Finder) -> bool {
        let Some(packed) = turn.pack(known.key) else { return false };
        match &mut self.table {
            Table::Direct(bits, codes) => {
                codes[finder.gather([packed, 0], [*bits, 0]) as usize] = known.code;
                true
            }
            Table::Cuckoo(cuckoo) => cuckoo.put(packed, known.code),
        }
    }
}

#[cfg(test)]
mod tests;
