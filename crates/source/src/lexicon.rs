//! Fields to provisional codes without parsing: each distinct text is parsed once.
//!
//! ```text
//!   field bytes ---> key ---> table: code                              few short texts
//!                        ---> buckets: code, or number of a text ---> key, code
//! ```
//!
//! A field of up to 15 bytes is its own key, compared exactly; a longer one is hashed and its bytes
//! are compared with the copy in the arena. Texts that are the same value (`1.0` and `1.00`, `a` and
//! `"a"`) get the same code. NULL has its own code, and a text that is no value of the type is never
//! kept.
//!
//! Only fields that differ from the one above are looked up ([`Changes`]).
//!
//! Cost: of few short texts about 10 cycles a field; else a field of up to 15 bytes is a probe of one bucket, about 25
//! instructions.
//!
//! Source: seed 000, section 4.1 (sort step); decisions 0002 and 0034.

mod buckets;
mod changes;
mod cuckoo;
mod few;
mod finder;
mod group;
mod key;
mod numbering;
mod packing;

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
use buckets::{Buckets, Known, Packing};
use few::Few;
use finder::{Best, Finder, with_finder};
use group::Group;
use key::{GOLDEN, IS_LONG, KEY_BYTES, Key, key_of, text_of};
use packing::Packed;

pub(crate) use changes::{BLOCK_ROWS, Changes, FieldChanges};

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
    keys: [Key; GROUP],
    packed: Packed,
    found: [u16; GROUP],
}

impl Default for LookUp {
    fn default() -> Self {
        LookUp { keys: [[0; 2]; GROUP], packed: Packed::default(), found: [0; GROUP] }
    }
}

/// Why a column cannot go on with codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyValues;

/// A temporary dictionary under construction, and the hash table over the texts seen.
///
/// Text number 0 is none.
#[derive(Debug)]
pub struct Lexicon {
    /// The texts, while they are few and short; then they are in the buckets.
    few: Option<Few>,
    buckets: Buckets,
    finder: Best,
    keys: Vec<Key>,
    codes: Vec<u16>,
    /// Where the copy of a text stands in the arena, if there is one.
    places: Vec<(u32, u32)>,
    /// Whether there are copies of short texts, too, as all are compared.
    keeps_all: bool,
    arena: Vec<u8>,
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
    /// A lexicon that knows no text yet, of a column with values of this physical form.
    pub fn new(physical: Physical) -> Self {
        let finder = Best::new();
        Lexicon {
            few: Some(Few::new(finder.numbers())),
            buckets: Buckets::new(finder.gathers()),
            finder,
            keys: vec![[u64::MAX; 2]],
            codes: vec![0],
            // No text is as long.
            places: vec![(0, u32::MAX)],
            keeps_all: false,
            arena: Vec::new(),
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
        // The same code with the instructions of each.
        macro_rules! compiled_with {
            ($features:literal, $finder:ident) => {{
                #[target_feature(enable = $features)]
                fn look_up(
                    lexicon: &mut Lexicon,
                    rows: &Rows<'_>,
                    changes: FieldChanges<'_>,
                    out: &mut Block<'_>,
                    misses: &mut Misses<'_, impl FnMut(usize, FieldError)>,
                    with: (&mut LookUp, impl Finder),
                ) {
                    lexicon.look_up_with(rows, changes, out, misses, with);
                }
                // SAFETY: there is such a finder only where the instructions are.
                unsafe { look_up(self, rows, changes, out, misses, (scratch, $finder)) }
            }};
        }
        match self.finder {
            Best::Portable(finder) => {
                self.look_up_with(rows, changes, out, misses, (scratch, finder));
            }
            #[cfg(target_arch = "x86_64")]
            Best::Avx2(finder) => {
                compiled_with!("avx2,bmi1,bmi2,popcnt,lzcnt,sse4.2", finder);
            }
            #[cfg(target_arch = "x86_64")]
            Best::Avx512(finder) => compiled_with!(
                "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt,lzcnt,sse4.2",
                finder
            ),
        }
    }

    #[inline(always)]
    fn look_up_with(
        &mut self,
        rows: &Rows<'_>,
        changes: FieldChanges<'_>,
        out: &mut Block<'_>,
        misses: &mut Misses<'_, impl FnMut(usize, FieldError)>,
        (scratch, finder): (&mut LookUp, impl Finder),
    ) {
        for (number, records) in changes.rows.chunks(GROUP).enumerate() {
            let first = number * GROUP;
            let next = changes.rows.get(first + GROUP).map_or(rows.count, |r| *r as usize);
            let keys = changes.keys.map(|keys| &keys[first..first + records.len()]);
            let group = Group { field: changes.field, keys, records };
            let mut missing = match &self.few {
                Some(few) => {
                    let fields = group.fields(rows, &mut scratch.keys);
                    finder.find_all(few, fields, &mut scratch.packed, &mut scratch.found)
                }
                None => self.find_in_buckets(rows, group, scratch, finder),
            };
            missing &= u64::MAX >> (GROUP - records.len());
            let found = &mut scratch.found[..records.len()];
            let end_of = |i: usize| records.get(i + 1).map_or(next, |r| *r as usize);
            while missing != 0 {
                let i = missing.trailing_zeros() as usize;
                missing &= missing - 1;
                let row = records[i] as usize;
                let (start, end) = rows.span(row, group.field);
                let key = key_of(rows.text, start, end);
                found[i] = self.code_of_text(&rows.text[start..end], key, row, misses);
                if let Some(error) = misses.error.take() {
                    (row + 1..end_of(i)).for_each(|row| (misses.bad)(row, error));
                }
            }
            out.extend(found, records, next);
        }
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
        let known = with_finder!(self.finder, finder => self.known_code(text, key, finder));
        if let Some(code) = known {
            return code;
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

    fn known_code(&self, text: &[u8], key: Key, finder: impl Finder) -> Option<u16> {
        if let Some(few) = &self.few {
            return few.find(key);
        }
        let packing = self.buckets.packing();
        let (packed, is_new) = Buckets::pack(packing, key, finder);
        if is_new {
            return None;
        }
        if let Packing::Exact { .. } = packing {
            return self.buckets.find(packed, finder, |_| true);
        }
        let is_it = |number: u16| {
            let number = usize::from(number);
            self.keys[number] == key
                && (text.len() <= KEY_BYTES || self.is_text_of(number, text, finder))
        };
        let number = self.buckets.find(packed, finder, is_it)?;
        Some(self.codes[usize::from(number)])
    }

    #[inline(always)]
    fn is_text_of(&self, number: usize, text: &[u8], finder: impl Finder) -> bool {
        let (start, len) = self.places[number];
        len as usize == text.len()
            && finder.is_same(&self.arena[start as usize..][..text.len()], text)
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
        let shared =
            rewritten || matches!(rules.data_type, DataType::Binary(_) | DataType::List(_));
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
        let new = Known { key, number: number as u16, code };
        with_finder!(self.finder, finder => self.add(new, finder));
        if self.few.is_none() && self.buckets.packing() == Packing::Hashed && !self.keeps_all {
            self.keep_all();
        }
        self.keys.push(key);
        self.codes.push(code);
        if raw.len() > KEY_BYTES || self.keeps_all {
            self.places.push((self.arena.len() as u32, raw.len() as u32));
            self.arena.extend_from_slice(raw);
        } else {
            self.places.push((0, 0));
        }
        Ok(Some(code))
    }

    /// Copies the short texts, which their keys were enough for.
    fn keep_all(&mut self) {
        self.keeps_all = true;
        for (key, place) in self.keys.iter().zip(&mut self.places).skip(1) {
            if key[1] & IS_LONG == 0 {
                let (text, len) = text_of(*key);
                *place = (self.arena.len() as u32, len as u32);
                self.arena.extend_from_slice(&text[..len]);
            }
        }
    }

    /// Adds a text to the table of those that are known.
    fn add(&mut self, new: Known, finder: impl Finder) {
        let all = self.keys.iter().zip(&self.codes).enumerate().skip(1);
        let all = all.map(|(number, (key, code))| Known {
            key: *key,
            number: number as u16,
            code: *code,
        });
        if let Some(few) = &mut self.few {
            if few.add(new, all.clone()) {
                return;
            }
            self.few = None;
            for (before, known) in all.clone().enumerate() {
                self.buckets.add(known, finder, all.clone().take(before));
            }
        }
        self.buckets.add(new, finder, all);
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
