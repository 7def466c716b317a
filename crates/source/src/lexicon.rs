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
//! Cost: a field of up to 15 bytes is a masked load, a hash, and one probe, about 30 instructions.
//!
//! Source: seed 000, section 4.1 (sort step); decision 0002.

mod key;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use coload_format::parse_value::parse_value;
use coload_format::{DataType, Physical, Value};
use coload_transform::{CODES_PROVISIONAL_MAX, NULL_CODE, TemporaryDictionary};

use crate::field::{FieldError, FieldRules};
use crate::rows::Rows;
#[cfg(target_arch = "x86_64")]
use key::{BATCH, Batch};
use key::{GOLDEN, Hash, KEY_BYTES, Key, key_of};

const INDEX_START: usize = 512;
/// Places of the index for each text: most texts then stand at their first place.
const INDEX_PER_TEXT: usize = 6;
/// The number of no text.
const EMPTY: u16 = 0;
/// Most texts that are remembered; more can only be many texts of one value.
const TEXTS_MAX: usize = u16::MAX as usize;
/// What to do about fields whose text is new.
struct Misses<'a, B: FnMut(usize, FieldError)> {
    rules: &'a ColumnRules,
    bad: &'a mut B,
    too_many: bool,
    /// The last bad record.
    bad_row: Option<usize>,
}

/// A column being read: its type, its rules and whether it may be NULL.
#[derive(Debug, Clone)]
pub struct ColumnRules {
    /// Type.
    pub data_type: DataType,
    /// Whether NULL may stand in it.
    pub nullable: bool,
    /// How fields are read.
    pub fields: FieldRules,
}

impl ColumnRules {
    /// The value of a field.
    pub fn value(&self, raw: &[u8]) -> Result<Option<Value>, FieldError> {
        match self.fields.read(raw)? {
            None if self.nullable => Ok(None),
            // An empty field of a NOT NULL text column is the empty string.
            None if raw.is_empty() && self.data_type.physical() == Physical::Bytes => {
                Ok(Some(Value::Bytes(Box::new([]))))
            }
            None => Err(FieldError::Null),
            Some(bytes) => parse_value(&bytes, self.data_type).map(Some).map_err(FieldError::Rule),
        }
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
    nulls: bool,
}

/// Finds values that two texts share. Text columns without quotes cannot have any.
#[derive(Debug)]
enum ByValue {
    Ints(HashMap<i64, u16, BuildHasherDefault<Mix>>),
    Others(HashMap<Value, u16>),
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
                Physical::Wide => ByValue::Others(HashMap::new()),
                Physical::Bytes => ByValue::TextOnly,
            },
            dictionary: TemporaryDictionary::empty(physical),
            nulls: false,
        }
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

    /// Appends a provisional code for each record's field to `out`; a field that is no value gets
    /// the code of NULL and is told to `bad`.
    ///
    /// # Errors
    /// `TooManyValues` when the column has more than the dictionary may hold; `out` is as before.
    pub fn encode(
        &mut self,
        rows: &Rows<'_>,
        field: usize,
        rules: &ColumnRules,
        out: &mut Vec<u16>,
        mut bad: impl FnMut(usize, FieldError),
    ) -> Result<(), TooManyValues> {
        let before = out.len();
        out.resize(before + rows.count, 0);
        let mut misses = Misses { rules, bad: &mut bad, too_many: false, bad_row: None };
        self.look_up(rows, field, &mut out[before..], &mut misses);
        if misses.too_many {
            out.truncate(before);
            return Err(TooManyValues);
        }
        Ok(())
    }

    /// Fills `codes`, a record each.
    fn look_up(
        &mut self,
        rows: &Rows<'_>,
        field: usize,
        codes: &mut [u16],
        misses: &mut Misses<'_, impl FnMut(usize, FieldError)>,
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.hash == Hash::Crc {
            // SAFETY: the hash was chosen because the instructions are there.
            unsafe { self.look_up_x86(rows, field, codes, misses) };
            return;
        }
        for (row, code) in codes.iter_mut().enumerate() {
            *code = self.code_at(rows, row, field, misses);
        }
    }

    /// The same in batches: the keys of all fields first, and which of them differ from the one
    /// before. Where few do only these are looked up: files of real life repeat most fields from
    /// line to line. What is not found at its first place, or is long, goes the slow way.
    ///
    /// Gathers that fetch eight fields at once were slower than this; see decision 0006.
    ///
    /// # Safety
    /// AVX2, which has SSE 4.2, and BMI.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    unsafe fn look_up_x86(
        &mut self,
        rows: &Rows<'_>,
        field: usize,
        codes: &mut [u16],
        misses: &mut Misses<'_, impl FnMut(usize, FieldError)>,
    ) {
        use std::arch::x86_64::*;
        assert!(codes.len() == rows.count && rows.count * rows.stride < rows.ends.len());
        let mut batch = Batch::new();
        let mut first = 0;
        while first < rows.count {
            let count = BATCH.min(rows.count - first);
            let batch_codes = &mut codes[first..first + count];
            // SAFETY: the instructions are there, and the records are in `rows`.
            let changed = unsafe { batch.load(rows, field, first, count) };
            // SAFETY: the instructions are there.
            let find = |lexicon: &Self, key: __m128i| unsafe {
                let low = _mm_cvtsi128_si64(key) as u64;
                let high = _mm_extract_epi64::<1>(key) as u64;
                let hash = _mm_crc32_u64(_mm_crc32_u64(0, low), high) as usize;
                let place = hash & (lexicon.index.len() - 1);
                let number = *lexicon.index.get_unchecked(place) as usize;
                // Number 0 is a key that no field has, so that an empty place is never equal; and a
                // long field's tag is in no known key.
                let known = _mm_loadu_si128(lexicon.keys.as_ptr().add(number).cast());
                let differ = _mm_xor_si128(key, known);
                (_mm_testz_si128(differ, differ) == 1).then(|| *lexicon.codes.get_unchecked(number))
            };
            if changed.count_ones() as usize * 4 > count {
                for (i, code) in batch_codes.iter_mut().enumerate() {
                    *code = match find(self, batch.keys[i + 1]) {
                        Some(known) => known,
                        None => self.code_at(rows, first + i, field, misses),
                    };
                }
                if misses.bad_row.take() == Some(first + count - 1) {
                    // An equal field at the start of the next batch is bad too, and is to be told.
                    batch.forget(count);
                }
            } else {
                let mut changed = changed;
                let mut at = 0;
                while changed != 0 {
                    let i = changed.trailing_zeros() as usize;
                    batch_codes[at..i].fill(batch.code);
                    at = i;
                    changed &= changed - 1;
                    batch.code = match find(self, batch.keys[i + 1]) {
                        Some(known) => known,
                        None => self.code_at(rows, first + i, field, misses),
                    };
                    if misses.bad_row == Some(first + i) {
                        // An equal field that follows is bad too, and is to be told.
                        misses.bad_row = None;
                        match i + 1 < count {
                            true => changed |= 1 << (i + 1),
                            false => batch.forget(count),
                        }
                    }
                }
                batch_codes[at..].fill(batch.code);
            }
            batch.code = batch_codes[count - 1];
            batch.keys[0] = batch.keys[count];
            first += count;
        }
    }

    /// The code of one field, known or new.
    #[inline(never)]
    fn code_at(
        &mut self,
        rows: &Rows<'_>,
        row: usize,
        field: usize,
        misses: &mut Misses<'_, impl FnMut(usize, FieldError)>,
    ) -> u16 {
        let (text, (start, end)) = (rows.text, rows.span(row, field));
        let key = key_of(text, start, end);
        let mask = self.index.len() - 1;
        let mut at = self.hash.of(key) as usize & mask;
        loop {
            let number = self.index[at] as usize;
            if number == EMPTY as usize {
                break;
            }
            if self.keys[number] == key
                && (end - start <= KEY_BYTES || self.is_text_of(number, &text[start..end]))
            {
                return self.codes[number];
            }
            at = (at + 1) & mask;
        }
        if misses.too_many {
            return 0;
        }
        match self.insert(&text[start..end], key, misses.rules) {
            Ok(Some(new)) => return new,
            Ok(None) => misses.too_many = true,
            Err(error) => {
                misses.bad_row = Some(row);
                (misses.bad)(row, error);
            }
        }
        NULL_CODE
    }

    fn is_text_of(&self, number: usize, text: &[u8]) -> bool {
        let (start, len) = self.places[number];
        len as usize == text.len() && &self.arena[start as usize..][..text.len()] == text
    }

    /// The code of a text not met before; `None` when there are too many values.
    #[cold]
    fn insert(
        &mut self,
        raw: &[u8],
        key: Key,
        rules: &ColumnRules,
    ) -> Result<Option<u16>, FieldError> {
        let code = match rules.value(raw)? {
            None => {
                self.nulls = true;
                NULL_CODE
            }
            Some(value) => {
                let quoted =
                    rules.fields.quote.is_some() && raw.first() == rules.fields.quote.as_ref();
                match self.code_of(value, quoted || matches!(rules.data_type, DataType::Binary(_)))
                {
                    Some(code) => code,
                    None => return Ok(None),
                }
            }
        };
        let number = self.keys.len();
        if number == TEXTS_MAX {
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
        let full = next >= CODES_PROVISIONAL_MAX;
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
