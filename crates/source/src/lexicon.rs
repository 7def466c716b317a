//! Fields to provisional codes without parsing: each distinct text is parsed once.
//!
//! ```text
//!   field bytes ---hash---> index: number of a text ---> key, code
//! ```
//!
//! A field of up to 15 bytes is its own key, compared exactly; a longer one is hashed and its bytes
//! are compared with the copy in the arena. Texts that are the same value (`1.0` and `1.00`, `a` and
//! `"a"`) get the same code. NULL has its own code, and a text that is no value of the type is never
//! kept.
//!
//! Only fields that differ from the one above are looked up ([`Changes`]).
//!
//! Cost: a field of up to 15 bytes is a hash and one probe, about 20 instructions.
//!
//! Source: seed 000, section 4.1 (sort step); decision 0002.

mod changes;
mod key;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use foldhash::fast::RandomState;

use coload_transform::{DictionaryLimit, NULL_CODE, TemporaryDictionary};
use coload_types::{DataType, Physical, Value, Values, check_bytes};

use crate::column_rules::ColumnRules;
use crate::field::FieldError;
use crate::row_codes::{Block, RowCodes};
use crate::rows::Rows;
#[cfg(target_arch = "x86_64")]
use key::crc;
use key::{GOLDEN, Hash, IS_LONG, KEY_BYTES, Key, long_key, multiply, placed, same_long, text_of};

pub(crate) use changes::{BLOCK_ROWS, Changes, FieldChanges};

const INDEX_START: usize = 512;
/// Places of the index for each text: most texts then stand at their first place.
const INDEX_PER_TEXT: usize = 6;
/// The number of no text.
const EMPTY: u16 = 0;
/// Keys that are looked up together, so that the loads of many are under way at once.
const GROUP: usize = 64;
/// Most texts that are remembered; more can only be many texts of one value.
const TEXTS_MAX: usize = u16::MAX as usize;

/// What to do about fields whose text is new.
struct Misses<'a, B: FnMut(usize, FieldError)> {
    rules: &'a ColumnRules,
    bad: &'a mut B,
    too_many: bool,
    /// What is wrong with the last field looked up.
    error: Option<FieldError>,
}

/// What a look-up of a group needs besides the lexicon; the same for all columns.
#[derive(Debug)]
pub(crate) struct LookUp {
    long_keys: [Key; GROUP],
    numbers: [usize; GROUP],
    found: [u16; GROUP],
}

impl Default for LookUp {
    fn default() -> Self {
        LookUp { long_keys: [[0; 2]; GROUP], numbers: [0; GROUP], found: [0; GROUP] }
    }
}

/// Why a column cannot go on with codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyValues;

/// A temporary dictionary under construction, and the hash table over the texts seen.
///
/// The table is an index of numbers over dense arrays, so that a column of a few thousand texts
/// stays in the cache.
#[derive(Debug)]
pub struct Lexicon {
    /// Number of a text by the hash of its key, or `EMPTY`.
    index: Vec<u16>,
    keys: Vec<Key>,
    codes: Vec<u16>,
    /// Where the copy of a long text stands in the arena.
    places: Vec<(u32, u32)>,
    arena: Vec<u8>,
    hash: Hash,
    by_value: ByValue,
    dictionary: TemporaryDictionary,
    limit: DictionaryLimit,
    nulls: bool,
}

/// Finds values that two texts share. Text columns without quotes cannot have any.
#[derive(Debug)]
enum ByValue {
    Ints(HashMap<i64, u16, BuildHasherDefault<Mix>>),
    Others(HashMap<Value, u16, RandomState>),
    TextOnly,
}

/// Hash of one number, for values that no attacker gains by choosing: a column holds 32,768 at most.
#[derive(Debug, Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_i64(i64::from(*b));
        }
    }
    fn write_i64(&mut self, value: i64) {
        let x = (self.0 ^ value as u64).wrapping_mul(GOLDEN);
        self.0 = x ^ x >> 32;
    }
}

impl Lexicon {
    /// Knows no text.
    pub fn new(physical: Physical) -> Self {
        Lexicon {
            index: vec![EMPTY; INDEX_START],
            keys: vec![[u64::MAX; 2]],
            codes: vec![0],
            places: vec![(0, 0)],
            arena: Vec::new(),
            hash: Hash::best(),
            by_value: match physical {
                Physical::Int => ByValue::Ints(HashMap::default()),
                Physical::Wide => ByValue::Others(HashMap::default()),
                Physical::Bytes => ByValue::TextOnly,
            },
            dictionary: TemporaryDictionary::empty(physical),
            limit: DictionaryLimit::default(),
            nulls: false,
        }
    }

    /// The lexicon with a dictionary that may hold less.
    pub fn with_limit(self, limit: DictionaryLimit) -> Self {
        Lexicon { limit, ..self }
    }

    /// Whether one more value, of text with so many bytes, is too much.
    fn is_full(&self, bytes: usize) -> bool {
        let values = &self.dictionary.values;
        let held = match values {
            Values::Bytes(strings) => strings.bytes.len(),
            Values::Int(_) | Values::Wide(_) => 0,
        };
        !self.limit.holds(values.len() + 1, held + bytes)
    }

    /// The values found, in order of first appearance.
    pub fn dictionary(&self) -> &TemporaryDictionary {
        &self.dictionary
    }

    /// Takes the values found.
    pub fn into_dictionary(self) -> TemporaryDictionary {
        self.dictionary
    }

    /// Notes that some value may stand in no row that is kept.
    pub fn mark_stale(&mut self) {
        self.dictionary.stale = true;
    }

    /// Whether a NULL was met.
    pub fn has_nulls(&self) -> bool {
        self.nulls
    }

    /// The code of what stands in rows whose input lacks the column.
    ///
    /// # Errors
    /// `TooManyValues` when the column has more than the dictionary may hold.
    pub(crate) fn code_of_absent(&mut self, value: Option<Value>) -> Result<u16, TooManyValues> {
        match value {
            None => {
                self.nulls = true;
                Ok(NULL_CODE)
            }
            // A field may be the same text.
            Some(value) => self.code_of(value, true).ok_or(TooManyValues),
        }
    }

    /// Appends the provisional codes of a block's fields to `out`; a field that is no value gets the
    /// code of NULL and is told to `bad`.
    ///
    /// # Errors
    /// `TooManyValues` when the column has more than the dictionary may hold; `out` is as before.
    pub(crate) fn encode(
        &mut self,
        rows: &Rows<'_>,
        changes: FieldChanges<'_>,
        rules: &ColumnRules,
        out: &mut RowCodes,
        scratch: &mut LookUp,
        mut bad: impl FnMut(usize, FieldError),
    ) -> Result<(), TooManyValues> {
        let before = out.rows();
        let mut block = out.begin_block(&changes, rows.count);
        let mut misses = Misses { rules, bad: &mut bad, too_many: false, error: None };
        self.look_up(rows, changes, &mut block, &mut misses, scratch);
        block.finish();
        if misses.too_many {
            out.truncate(before);
            return Err(TooManyValues);
        }
        Ok(())
    }

    /// Gives `out` the code of each changed field.
    fn look_up(
        &mut self,
        rows: &Rows<'_>,
        changes: FieldChanges<'_>,
        out: &mut Block<'_>,
        misses: &mut Misses<'_, impl FnMut(usize, FieldError)>,
        scratch: &mut LookUp,
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.hash == Hash::Crc {
            #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt,sse4.2")]
            fn with_crc(
                lexicon: &mut Lexicon,
                rows: &Rows<'_>,
                changes: FieldChanges<'_>,
                out: &mut Block<'_>,
                misses: &mut Misses<'_, impl FnMut(usize, FieldError)>,
                scratch: &mut LookUp,
            ) {
                lexicon.look_up_with(rows, changes, out, misses, scratch, |key| crc(key));
            }
            // SAFETY: the hash was chosen because the instructions are there.
            unsafe { with_crc(self, rows, changes, out, misses, scratch) };
            return;
        }
        self.look_up_with(rows, changes, out, misses, scratch, multiply);
    }

    #[inline(always)]
    fn look_up_with(
        &mut self,
        rows: &Rows<'_>,
        changes: FieldChanges<'_>,
        out: &mut Block<'_>,
        misses: &mut Misses<'_, impl FnMut(usize, FieldError)>,
        scratch: &mut LookUp,
        hash: impl Fn(Key) -> u64,
    ) {
        let LookUp { long_keys, numbers, found } = scratch;
        let groups = changes.keys.chunks(GROUP).zip(changes.rows.chunks(GROUP));
        for (group, (given, group_rows)) in groups.enumerate() {
            let next = changes.rows.get((group + 1) * GROUP).map_or(rows.count, |r| *r as usize);
            let long = given.iter().fold(0, |tags, key| tags | key[1]) & IS_LONG != 0;
            let keys = if long {
                for (key, given) in long_keys.iter_mut().zip(given) {
                    *key = match placed(*given) {
                        None => *given,
                        Some((start, end)) => long_key(&rows.text[start..end]),
                    };
                }
                &long_keys[..given.len()]
            } else {
                given
            };
            let mut missing = self.find(keys, numbers, found, &hash);
            if long {
                for (i, given) in given.iter().enumerate() {
                    if let Some((start, end)) = placed(*given) {
                        let is_text = self.is_text_of(numbers[i], &rows.text[start..end]);
                        missing |= u64::from(!is_text) << i;
                    }
                }
            }
            let end_of = |i: usize| group_rows.get(i + 1).map_or(next, |r| *r as usize);
            while missing != 0 {
                let i = missing.trailing_zeros() as usize;
                missing &= missing - 1;
                let row = group_rows[i] as usize;
                found[i] = match placed(given[i]) {
                    Some((start, end)) => {
                        self.code_of_text(&rows.text[start..end], keys[i], row, misses)
                    }
                    None => {
                        let (text, len) = text_of(keys[i]);
                        self.code_of_text(&text[..len], keys[i], row, misses)
                    }
                };
                if let Some(error) = misses.error.take() {
                    (row + 1..end_of(i)).for_each(|row| (misses.bad)(row, error));
                }
            }
            out.extend(&found[..given.len()], group_rows, next);
        }
    }

    /// The codes of texts that stand at the first place of their key, and a bit for each that does
    /// not; of a long text the bytes are yet to be compared with those of its number.
    #[inline(always)]
    fn find(
        &self,
        keys: &[Key],
        numbers: &mut [usize; GROUP],
        found: &mut [u16; GROUP],
        hash: impl Fn(Key) -> u64,
    ) -> u64 {
        let mask = self.index.len() - 1;
        let mut missing = 0;
        for (i, ((key, number), code)) in keys.iter().zip(numbers).zip(found).enumerate() {
            // SAFETY: the index has a power of two of places; the numbers in it are those of keys, and
            // each key has a code.
            unsafe {
                *number = usize::from(*self.index.get_unchecked(hash(*key) as usize & mask));
                // Number 0 is a key that no field has, so that an empty place is never equal.
                let differs = *self.keys.get_unchecked(*number) != *key;
                missing |= u64::from(differs) << i;
                *code = *self.codes.get_unchecked(*number);
            }
        }
        missing
    }

    /// The code of one field, known or new.
    #[inline(never)]
    fn code_of_text(
        &mut self,
        text: &[u8],
        key: Key,
        row: usize,
        misses: &mut Misses<'_, impl FnMut(usize, FieldError)>,
    ) -> u16 {
        let mask = self.index.len() - 1;
        let mut at = self.hash.of(key) as usize & mask;
        loop {
            let number = self.index[at] as usize;
            if number == EMPTY as usize {
                break;
            }
            if self.keys[number] == key
                && (text.len() <= KEY_BYTES || self.is_text_of(number, text))
            {
                return self.codes[number];
            }
            at = (at + 1) & mask;
        }
        if misses.too_many {
            return 0;
        }
        match self.insert(text, key, misses.rules) {
            Ok(Some(new)) => return new,
            Ok(None) => misses.too_many = true,
            Err(error) => {
                misses.error = Some(error);
                (misses.bad)(row, error);
            }
        }
        NULL_CODE
    }

    fn is_text_of(&self, number: usize, text: &[u8]) -> bool {
        let (start, len) = self.places[number];
        len as usize == text.len() && same_long(&self.arena[start as usize..][..text.len()], text)
    }

    /// The code of a text not met before; `None` when there are too many values.
    #[cold]
    fn insert(
        &mut self,
        raw: &[u8],
        key: Key,
        rules: &ColumnRules,
    ) -> Result<Option<u16>, FieldError> {
        let quoted = rules.fields.quote.is_some() && raw.first() == rules.fields.quote.as_ref();
        let rewritten = quoted || rules.fields.has_escape(raw);
        let shared = rewritten || matches!(rules.data_type, DataType::Binary(_));
        if !self.limit.holds(1, raw.len() / 2) {
            // A text of megabytes is not copied to find that no dictionary holds it; a value is half of its text at
            // least.
            return Ok(None);
        }
        let code = match self.push_text(raw, shared, rules)? {
            Some(code) => code,
            None => match rules.value(raw)? {
                None => {
                    self.nulls = true;
                    NULL_CODE
                }
                Some(value) => match self.code_of(value, shared) {
                    Some(code) => code,
                    None => return Ok(None),
                },
            },
        };
        let number = self.keys.len();
        // Many texts of few values are not worth their bytes; they are parsed each time.
        if number == TEXTS_MAX || !self.limit.holds(0, (self.arena.len() + raw.len()) / 2) {
            return Ok(Some(code));
        }
        if number * INDEX_PER_TEXT > self.index.len() {
            self.grow();
        }
        self.keys.push(key);
        self.codes.push(code);
        if raw.len() > KEY_BYTES {
            self.places.push((self.arena.len() as u32, raw.len() as u32));
            self.arena.extend_from_slice(raw);
        } else {
            self.places.push((0, 0));
        }
        self.put(key, number as u16);
        Ok(Some(code))
    }

    /// The code of a text that is its own value and that no other text shares: it needs no more than
    /// a place in the dictionary. `None` when that is not known.
    fn push_text(
        &mut self,
        raw: &[u8],
        shared: bool,
        rules: &ColumnRules,
    ) -> Result<Option<u16>, FieldError> {
        let next = self.dictionary.values.len();
        let full = self.is_full(raw.len());
        let Values::Bytes(strings) = &mut self.dictionary.values else { return Ok(None) };
        let known = !shared && matches!(self.by_value, ByValue::TextOnly);
        if !known || full || rules.fields.nulls.iter().any(|n| n == raw) {
            return Ok(None);
        }
        strings.push(&check_bytes(raw, rules.data_type).map_err(FieldError::Rule)?);
        Ok(Some(next as u16))
    }

    fn put(&mut self, key: Key, number: u16) {
        let mask = self.index.len() - 1;
        let mut at = self.hash.of(key) as usize & mask;
        while self.index[at] != EMPTY {
            at = (at + 1) & mask;
        }
        self.index[at] = number;
    }

    fn grow(&mut self) {
        let size = self.index.len() * 2;
        self.index.clear();
        self.index.resize(size, EMPTY);
        for number in 1..self.keys.len() {
            self.put(self.keys[number], number as u16);
        }
    }

    /// The code of a value, new or known. `shared` says that another text may be the same value.
    fn code_of(&mut self, value: Value, shared: bool) -> Option<u16> {
        let next = self.dictionary.values.len();
        if shared && matches!(self.by_value, ByValue::TextOnly) {
            let known = (0..next).map(|i| (self.dictionary.values.get(i), i as u16));
            self.by_value = ByValue::Others(known.collect());
        }
        let full = self.is_full(if let Value::Bytes(text) = &value { text.len() } else { 0 });
        let known = match (&mut self.by_value, &value) {
            (ByValue::Ints(map), Value::Int(v)) => match map.entry(*v) {
                Entry::Occupied(e) => Some(*e.get()),
                Entry::Vacant(_) if full => return None,
                Entry::Vacant(e) => {
                    e.insert(next as u16);
                    None
                }
            },
            (ByValue::Others(map), _) => match map.entry(value.clone()) {
                Entry::Occupied(e) => Some(*e.get()),
                Entry::Vacant(_) if full => return None,
                Entry::Vacant(e) => {
                    e.insert(next as u16);
                    None
                }
            },
            _ if full => return None,
            _ => None,
        };
        Some(known.unwrap_or_else(|| {
            self.dictionary.values.push(&value);
            next as u16
        }))
    }
}
