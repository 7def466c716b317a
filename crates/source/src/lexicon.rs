//! Fields to provisional codes without parsing: each distinct text is parsed once.
//!
//! ```text
//!   field bytes ---hash---> slot: bytes 0..8, bytes 8..16, length, code
//! ```
//!
//! A field of up to 16 bytes is its own key, compared exactly; a longer one is hashed and its bytes
//! are compared with the copy in the arena. Texts that are the same value (`1.0` and `1.00`, `a` and
//! `"a"`) get the same code. NULL has its own code, and a text that is no value of the type is never
//! kept.
//!
//! Cost: one field of up to 16 bytes is a load, two multiplications, a probe; about 4 ns.
//!
//! Source: seed 000, section 4.1 (sort step); decision 0002.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use coload_format::parse_value::parse_value;
use coload_format::{DataType, Physical, Value};
use coload_transform::{CODES_PROVISIONAL_MAX, NULL_CODE, TemporaryDictionary};

use crate::field::{FieldError, FieldRules};
use crate::rows::Rows;

const SLOTS_START: usize = 256;
const EMPTY: u32 = u32::MAX;
/// Bytes of a field that are its key; longer ones are compared in the arena.
const KEY_BYTES: usize = 16;

/// Keeps the first `len` bytes of a 16-byte load.
static MASKS: [[u64; 2]; KEY_BYTES + 1] = {
    let mut masks = [[0; 2]; KEY_BYTES + 1];
    let mut len = 1;
    while len <= KEY_BYTES {
        masks[len][0] = if len >= 8 { u64::MAX } else { (1 << (8 * len)) - 1 };
        masks[len][1] = match len {
            0..=8 => 0,
            16 => u64::MAX,
            _ => (1 << (8 * (len - 8))) - 1,
        };
        len += 1;
    }
    masks
};

#[derive(Debug, Clone, Copy)]
struct Slot {
    key: [u64; 2],
    len: u32,
    code: u16,
}

const EMPTY_SLOT: Slot = Slot { key: [0; 2], len: EMPTY, code: 0 };

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
#[derive(Debug)]
pub struct Lexicon {
    slots: Vec<Slot>,
    /// Where the copy of a long text stands in the arena, for each slot.
    places: Vec<u32>,
    arena: Vec<u8>,
    texts: usize,
    shift: u32,
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
        let x = (self.0 ^ value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = x ^ x >> 32;
    }
}

impl Lexicon {
    /// Knows no text.
    pub fn new(physical: Physical) -> Self {
        Lexicon {
            slots: vec![EMPTY_SLOT; SLOTS_START],
            places: vec![0; SLOTS_START],
            arena: Vec::new(),
            texts: 0,
            shift: 64 - SLOTS_START.trailing_zeros(),
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
        let codes = &mut out[before..];
        let mut too_many = false;
        rows.for_each_span(field, |row, start, end| {
            // SAFETY: `row < count`, and `codes` has `count` items.
            let code = unsafe { codes.get_unchecked_mut(row) };
            let key = key_of(rows.text, start, end);
            let len = (end - start) as u32;
            let mut at = (mix(key, len) >> self.shift) as usize;
            loop {
                // SAFETY: `shift` leaves as many bits as there are slots; `next` wraps.
                let slot = unsafe { self.slots.get_unchecked(at) };
                if slot.key == key && slot.len == len {
                    let long = len as usize > KEY_BYTES;
                    if !long || self.is_text_of(at, &rows.text[start..end]) {
                        *code = slot.code;
                        return;
                    }
                } else if slot.len == EMPTY {
                    break;
                }
                at = (at + 1) & (self.slots.len() - 1);
            }
            if too_many {
                return;
            }
            match self.insert(&rows.text[start..end], key, rules) {
                Ok(Some(new)) => *code = new,
                Ok(None) => too_many = true,
                Err(error) => {
                    *code = NULL_CODE;
                    bad(row, error);
                }
            }
        });
        if too_many {
            out.truncate(before);
            return Err(TooManyValues);
        }
        Ok(())
    }

    fn is_text_of(&self, slot: usize, text: &[u8]) -> bool {
        let start = self.places[slot] as usize;
        self.arena.get(start..start + text.len()) == Some(text)
    }

    /// The code of a text not met before; `None` when there are too many values.
    #[cold]
    fn insert(
        &mut self,
        raw: &[u8],
        key: [u64; 2],
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
        if (self.texts + 1) * 2 > self.slots.len() {
            self.grow();
        }
        self.texts += 1;
        let place = self.arena.len() as u32;
        if raw.len() > KEY_BYTES {
            self.arena.extend_from_slice(raw);
        }
        self.put(Slot { key, len: raw.len() as u32, code }, place);
        Ok(Some(code))
    }

    fn put(&mut self, slot: Slot, place: u32) {
        let mask = self.slots.len() - 1;
        let mut at = (mix(slot.key, slot.len) >> self.shift) as usize;
        while self.slots[at].len != EMPTY {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
        self.places[at] = place;
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 4;
        let slots = std::mem::replace(&mut self.slots, vec![EMPTY_SLOT; size]);
        let places = std::mem::replace(&mut self.places, vec![0; size]);
        self.shift -= 2;
        for (slot, place) in slots.into_iter().zip(places) {
            if slot.len != EMPTY {
                self.put(slot, place);
            }
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

/// The key of a field: its bytes if they are few, else its first bytes and a hash of all.
#[inline(always)]
fn key_of(text: &[u8], start: usize, end: usize) -> [u64; 2] {
    let len = end - start;
    debug_assert!(start + KEY_BYTES <= text.len());
    // SAFETY: 64 bytes of padding follow the text.
    let [low, high] = unsafe { text.as_ptr().add(start).cast::<[u64; 2]>().read_unaligned() };
    if len <= KEY_BYTES {
        let mask = &MASKS[len];
        [low & mask[0], high & mask[1]]
    } else {
        [low, hash_long(&text[start..end])]
    }
}

#[inline(always)]
fn mix(key: [u64; 2], len: u32) -> u64 {
    let x = key[0] ^ key[1].wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ u64::from(len) << 56;
    (x ^ x >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Hash of a text over 16 bytes, 8 at a time, the last 8 overlapping.
#[inline]
fn hash_long(text: &[u8]) -> u64 {
    let word = |at: usize| {
        let mut raw = [0; 8];
        raw.copy_from_slice(&text[at..at + 8]);
        u64::from_le_bytes(raw)
    };
    let mut hash = text.len() as u64;
    let mut at = 0;
    while at + 8 < text.len() {
        hash = (hash ^ word(at)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        at += 8;
    }
    (hash ^ word(text.len() - 8)).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}
