//! Fields of one column that are looked up together, so that the loads of many are under way at once.

use super::buckets::{Buckets, Packing};
use super::finder::Finder;
use super::key::{Key, key_of};
use super::packing::{Fields, Packed};
use super::{GROUP, Lexicon, LookUp};
use crate::rows::Rows;

/// Fields of a column that are looked up together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group<'a> {
    pub(super) field: usize,
    /// As [`FieldChanges`] has them; without keys the records follow each other.
    pub(super) keys: Option<&'a [Key]>,
    pub(super) records: &'a [u16],
}

impl Group<'_> {
    /// The fields, with keys made where there are none and the records are not enough.
    #[inline(always)]
    pub(super) fn fields<'b>(
        &'b self,
        rows: &'b Rows<'b>,
        made: &'b mut [Key; GROUP],
    ) -> Fields<'b> {
        if let Some(keys) = self.keys {
            return Fields::Made(keys);
        }
        let (field, first, count) = (self.field, self.records[0] as usize, self.records.len());
        if field + 1 < rows.stride {
            return Fields::OfRecords { rows, field, first, count };
        }
        // A carriage return is cut off the last field.
        Fields::Made(self.make_keys(rows, made))
    }

    /// The key of each field.
    #[inline(always)]
    fn make_keys<'b>(&self, rows: &Rows<'_>, made: &'b mut [Key; GROUP]) -> &'b [Key] {
        let made = &mut made[..self.records.len()];
        for (key, record) in made.iter_mut().zip(self.records) {
            let (start, end) = rows.span(*record as usize, self.field);
            *key = key_of(rows.text, start, end);
        }
        made
    }
}

impl Lexicon {
    /// The codes of a group's fields, and a bit for each whose text is not where it is looked for first.
    #[inline(always)]
    pub(super) fn find_in_buckets(
        &self,
        rows: &Rows<'_>,
        group: Group<'_>,
        scratch: &mut LookUp,
        finder: impl Finder,
    ) -> u64 {
        match self.buckets.packing() {
            Packing::Hashed => self.find_hashed(rows, group, scratch, finder),
            packing @ Packing::Exact { .. } => {
                let keys = match group.keys {
                    Some(keys) => keys,
                    None => group.make_keys(rows, &mut scratch.keys),
                };
                self.find_exact(packing, keys, &mut scratch.found, finder)
            }
        }
    }

    /// The codes of texts that stand in the first bucket of their key, and a bit for each that does not.
    #[inline(always)]
    fn find_exact(
        &self,
        packing: Packing,
        keys: &[Key],
        found: &mut [u16; GROUP],
        finder: impl Finder,
    ) -> u64 {
        let (mut packed, mut places, mut missing) = ([0; GROUP], [0; GROUP], 0);
        for (i, ((key, packed), place)) in keys.iter().zip(&mut packed).zip(&mut places).enumerate()
        {
            let (bits, is_new) = Buckets::pack(packing, *key, finder);
            *packed = bits;
            *place = self.buckets.fetch(bits, finder);
            missing |= u64::from(is_new) << i;
        }
        for (i, code) in found[..keys.len()].iter_mut().enumerate() {
            // SAFETY: the place was told above.
            let (answer, is_there) = unsafe { self.buckets.find_at(places[i], packed[i], finder) };
            *code = answer;
            missing |= u64::from(!is_there) << i;
        }
        missing
    }

    /// As [`Self::find_exact`], of texts that are found by their hashes and compared.
    #[inline(always)]
    fn find_hashed(
        &self,
        rows: &Rows<'_>,
        group: Group<'_>,
        scratch: &mut LookUp,
        finder: impl Finder,
    ) -> u64 {
        let LookUp { packed: Packed { keys: hashes, numbers, .. }, found, .. } = scratch;
        let (mut places, mut missing) = ([0; GROUP], 0);
        let fields = group.records.iter().zip(hashes.iter_mut()).zip(&mut places);
        for ((record, hash), place) in fields {
            let (start, end) = rows.span(*record as usize, group.field);
            *hash = finder.hash_field(rows.text, start, end);
            *place = self.buckets.fetch(*hash, finder);
        }
        let count = group.records.len();
        for ((number, hash), place) in numbers[..count].iter_mut().zip(hashes).zip(places) {
            // SAFETY: the place was told above.
            *number = u32::from(unsafe { self.buckets.find_at(place, *hash, finder) }.0);
            finder.fetch(self.places.as_ptr().wrapping_add(*number as usize).cast());
        }
        for number in &numbers[..count] {
            let start = self.places[*number as usize].0 as usize;
            finder.fetch(self.arena.as_ptr().wrapping_add(start));
        }
        let fields = group.records.iter().zip(numbers).zip(found);
        for (i, ((record, number), code)) in fields.enumerate() {
            let (start, end) = rows.span(*record as usize, group.field);
            let is_text = self.is_text_of(*number as usize, &rows.text[start..end], finder);
            missing |= u64::from(!is_text) << i;
            *code = self.codes[*number as usize];
        }
        missing
    }
}
