//! The fields of a block of records that differ from the record before.
//!
//! ```text
//!   record 0   A|7|x        column 0: row 0 A           row 2 B
//!   record 1   A|8|x   ->   column 1: row 0 7   row 1 8   row 2 9
//!   record 2   B|9|x        column 2: row 0 x
//! ```
//!
//! The block is read record by record, as it lies in memory, and each field is compared with the one
//! above it. Where the lines of one document follow each other, most fields of its head are the same:
//! neighbouring columns that rarely change form a zone, whose bytes are compared at once, and a zone
//! that is the same costs nothing more. What is left for each column are the keys to look up, one
//! after the other in memory.
//!
//! Where most fields of a column change, finding out which do costs more than looking all up: such
//! columns are dense: their fields count as changed, and nothing is done here. How often they change is
//! measured again in one of [`MEASURED_EVERY`] blocks.
//!
//! Cost: about 25 instructions for a field outside of zones that are the same.

use super::key::{IS_LONG, KEY_BYTES, Key, MASKS, word};
use crate::rows::Rows;

/// Most records of a block.
pub(crate) const BLOCK_ROWS: usize = 512;
/// Keys from one column's to the next's: not a power of two, so that columns do not share cache sets.
const STRIDE: usize = BLOCK_ROWS + 4;
/// Fewest columns of a zone.
const ZONE_COLUMNS: usize = 3;
/// Bytes that are compared in one step.
const STEP: usize = 64;
/// Blocks from one in which dense columns are compared to the next.
const MEASURED_EVERY: usize = 16;
/// The records of a block.
static EACH_RECORD: [u16; BLOCK_ROWS] = {
    let mut records = [0; BLOCK_ROWS];
    let mut record = 0;
    while record < BLOCK_ROWS {
        records[record] = record as u16;
        record += 1;
    }
    records
};

/// The changed fields of some columns.
#[derive(Debug, Default)]
pub struct Changes {
    columns: Vec<usize>,
    zones: Vec<Zone>,
    keys: Vec<Key>,
    rows: Vec<u16>,
    /// For each column, where its next key goes.
    next: Vec<u32>,
    /// For each column, whether all its fields count as changed.
    dense: Vec<bool>,
    records: usize,
    /// Blocks since the columns are these.
    blocks: usize,
}

/// The changed fields of one column; row 0 is always one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldChanges<'a> {
    /// Number of the field in a record.
    pub(super) field: usize,
    /// The keys of the fields; long ones only say that they are. `None` where all count as changed: who needs keys makes them.
    pub(super) keys: Option<&'a [Key]>,
    /// The record it is in.
    pub(crate) rows: &'a [u16],
}

/// Columns next to each other in the records and in the list, whose fields are compared. Dense columns are in no zone.
#[derive(Debug, Clone, Copy)]
struct Zone {
    first: usize,
    count: usize,
    kind: Kind,
}

/// How often the fields of a column change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// So rarely that columns next to each other are compared at once.
    Steady,
    Mixed,
    /// So often that they are not compared.
    Dense,
}

impl Changes {
    /// Finds the changed fields of these columns in a block of at most [`BLOCK_ROWS`] records.
    pub(crate) fn collect(&mut self, rows: &Rows<'_>, columns: &[usize]) {
        assert!(rows.count <= BLOCK_ROWS && rows.count * rows.stride < rows.ends.len());
        if columns != self.columns {
            self.columns = columns.to_vec();
            self.keys.resize(self.columns.len() * STRIDE, [0; 2]);
            self.rows.resize(self.columns.len() * STRIDE, 0);
            self.next = (0..self.columns.len()).map(first_place).collect();
            self.dense = vec![false; self.columns.len()];
            (self.records, self.blocks) = (0, 0);
        }
        assert!(self.columns.iter().all(|c| *c < rows.stride));
        self.find_zones();
        self.blocks += 1;
        self.records = rows.count;
        for (slot, (next, dense)) in self.next.iter_mut().zip(&self.dense).enumerate() {
            let found = if *dense { rows.count } else { 0 };
            *next = first_place(slot) + found as u32;
        }
        if self.zones.is_empty() {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        match coload_types::simd_level() {
            // SAFETY: the instructions are there.
            coload_types::SimdLevel::Avx512 => return unsafe { self.collect_avx512(rows) },
            // SAFETY: as above.
            coload_types::SimdLevel::Avx2 => return unsafe { self.collect_avx2(rows) },
            coload_types::SimdLevel::Portable => {}
        }
        self.collect_with(rows, same_bytes, look);
    }

    /// What was found of column number `slot` of those given.
    pub(crate) fn of(&self, slot: usize) -> FieldChanges<'_> {
        let found = slot * STRIDE..self.next[slot] as usize;
        let (keys, rows) = match self.dense[slot] {
            true => (None, &EACH_RECORD[..found.len()]),
            false => (Some(&self.keys[found.clone()]), &self.rows[found]),
        };
        FieldChanges { field: self.columns[slot], keys, rows }
    }

    /// Cuts the columns into zones by how often they changed in the block before.
    fn find_zones(&mut self) {
        self.zones.clear();
        let is_measured = self.blocks.is_multiple_of(MEASURED_EVERY);
        for slot in 0..self.columns.len() {
            let count = (self.next[slot] - first_place(slot)) as usize;
            let kind = match count * 2 < self.records {
                true => Kind::Steady,
                false if is_measured => Kind::Mixed,
                false => Kind::Dense,
            };
            self.dense[slot] = kind == Kind::Dense;
            if kind == Kind::Dense {
                continue;
            }
            let next = slot > 0 && self.columns[slot] == self.columns[slot - 1] + 1;
            match self.zones.last_mut() {
                Some(zone) if next && zone.kind == kind && zone.first + zone.count == slot => {
                    zone.count += 1;
                }
                _ => self.zones.push(Zone { first: slot, count: 1, kind }),
            }
        }
        for zone in &mut self.zones {
            if zone.kind == Kind::Steady && zone.count < ZONE_COLUMNS {
                zone.kind = Kind::Mixed;
            }
        }
    }

    /// # Safety
    /// The instructions are there.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt,lzcnt,sse4.2"
    )]
    unsafe fn collect_avx512(&mut self, rows: &Rows<'_>) {
        use std::arch::x86_64::*;
        let load = |text: &[u8], at: usize, mask: u64| {
            // SAFETY: `at` lies in the text, and 64 bytes of padding follow it.
            unsafe { _mm512_maskz_loadu_epi8(mask, text.as_ptr().add(at).cast()) }
        };
        let same = |text: &[u8], a: usize, b: usize, len: usize| {
            let mut at = 0;
            while at < len {
                let mask = _bzhi_u64(u64::MAX, (len - at).min(STEP) as u32);
                let differ =
                    _mm512_cmpneq_epi8_mask(load(text, a + at, mask), load(text, b + at, mask));
                if differ != 0 {
                    return false;
                }
                at += STEP;
            }
            true
        };
        let look = |text: &[u8], start: usize, len: usize, before: usize, key: &mut Key| {
            // SAFETY: both places lie in the text, and 64 bytes of padding follow it; `len` is at most
            // 15, and a key has 16 bytes.
            unsafe {
                let load = |at: usize| _mm_loadu_si128(text.as_ptr().add(at).cast());
                let mask = _mm_loadu_si128(BYTE_MASKS.as_ptr().add(16 - len).cast());
                let tag = _mm_loadu_si128(TAGS.as_ptr().add(len).cast());
                let now = load(start);
                // now & mask | tag, and (now ^ before) & mask.
                let key = std::ptr::from_mut(key).cast();
                _mm_storeu_si128(key, _mm_ternarylogic_epi64::<0xEA>(now, mask, tag));
                let differ = _mm_ternarylogic_epi64::<0x28>(now, load(before), mask);
                _mm_testz_si128(differ, differ) == 1
            }
        };
        self.collect_with(rows, same, look);
    }

    /// # Safety
    /// The instructions are there.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt,sse4.2")]
    unsafe fn collect_avx2(&mut self, rows: &Rows<'_>) {
        use std::arch::x86_64::*;
        const HALF: usize = STEP / 2;
        let same = |text: &[u8], a: usize, b: usize, len: usize| {
            // SAFETY: the places lie in the text, and 64 bytes of padding follow it.
            let load = |at: usize| unsafe { _mm256_loadu_si256(text.as_ptr().add(at).cast()) };
            let mut at = 0;
            while at < len {
                let equal = _mm256_cmpeq_epi8(load(a + at), load(b + at));
                let differ = !_mm256_movemask_epi8(equal).cast_unsigned();
                if _bzhi_u32(differ, (len - at).min(HALF) as u32) != 0 {
                    return false;
                }
                at += HALF;
            }
            true
        };
        let look = |text: &[u8], start: usize, len: usize, before: usize, key: &mut Key| {
            // SAFETY: both places lie in the text, and 64 bytes of padding follow it; `len` is at most
            // 15, and a key has 16 bytes.
            unsafe {
                let load = |at: usize| _mm_loadu_si128(text.as_ptr().add(at).cast());
                let mask = _mm_loadu_si128(BYTE_MASKS.as_ptr().add(16 - len).cast());
                let tag = _mm_loadu_si128(TAGS.as_ptr().add(len).cast());
                let now = load(start);
                let key = std::ptr::from_mut(key).cast();
                _mm_storeu_si128(key, _mm_or_si128(_mm_and_si128(now, mask), tag));
                let differ = _mm_xor_si128(now, load(before));
                _mm_testz_si128(differ, mask) == 1
            }
        };
        self.collect_with(rows, same, look);
    }

    /// `same` compares any two pieces of the text; `look` makes the key of a field of up to 15 bytes,
    /// and says whether the bytes at another place are the same.
    #[inline(always)]
    fn collect_with(
        &mut self,
        rows: &Rows<'_>,
        same: impl Fn(&[u8], usize, usize, usize) -> bool,
        look: impl Fn(&[u8], usize, usize, usize, &mut Key) -> bool,
    ) {
        let last = rows.stride - 1;
        let (keys, key_rows) = (self.keys.as_mut_ptr(), self.rows.as_mut_ptr());
        for row in 0..rows.count {
            let ends = &rows.ends[row * rows.stride..][..=rows.stride];
            let above = &rows.ends[row.saturating_sub(1) * rows.stride..][..=rows.stride];
            let is_first = u32::from(row == 0);
            for zone in &self.zones {
                let first = self.columns[zone.first];
                let mut start = ends[first].wrapping_add(1) as usize;
                let mut before = above[first].wrapping_add(1) as usize;
                if zone.kind == Kind::Steady && row > 0 {
                    let end = ends[first + zone.count] as usize;
                    let end_before = above[first + zone.count] as usize;
                    if end - start == end_before - before
                        && same(rows.text, start, before, end - start)
                    {
                        continue;
                    }
                }
                let ends = &ends[first + 1..][..zone.count];
                let above = &above[first + 1..][..zone.count];
                let next = &mut self.next[zone.first..][..zone.count];
                let has_last = first + zone.count > last;
                for (i, ((end, end_before), next)) in ends.iter().zip(above).zip(next).enumerate() {
                    let (mut end, mut end_before) = (*end as usize, *end_before as usize);
                    let (start_next, before_next) = (end + 1, end_before + 1);
                    if has_last && first + i == last {
                        let cut = |start: usize, end: usize| {
                            end - usize::from(end > start && rows.text[end - 1] == b'\r')
                        };
                        (end, end_before) = (cut(start, end), cut(before, end_before));
                    }
                    let len = end - start;
                    let at = *next as usize;
                    // SAFETY: a column has a place for each record of a block, and one more.
                    let key = unsafe {
                        *key_rows.add(at) = row as u16;
                        &mut *keys.add(at)
                    };
                    let equal = if len <= KEY_BYTES {
                        look(rows.text, start, len, before, key) & (len == end_before - before)
                    } else {
                        *key = [0, IS_LONG];
                        len == end_before - before && same(rows.text, start, before, len)
                    };
                    *next += u32::from(!equal) | is_first;
                    (start, before) = (start_next, before_next);
                }
            }
        }
    }
}

/// Where the keys of a column begin.
fn first_place(slot: usize) -> u32 {
    (slot * STRIDE) as u32
}

/// Whether two pieces of the text are the same.
#[inline(always)]
fn same_bytes(text: &[u8], a: usize, b: usize, len: usize) -> bool {
    text[a..a + len] == text[b..b + len]
}

/// The key of a field, and whether the bytes at `before` are the same.
#[inline(always)]
fn look(text: &[u8], start: usize, len: usize, before: usize, key: &mut Key) -> bool {
    let word = |at: usize| word(text, at);
    let [low, high] = MASKS[len];
    let short = [word(start) & low, word(start + 8) & high];
    *key = [short[0], short[1] | (len as u64) << 56];
    short == [word(before) & low, word(before + 8) & high]
}

/// From byte 16 - n on, a vector of which the first n bytes are kept.
#[cfg(target_arch = "x86_64")]
static BYTE_MASKS: [u8; 32] = {
    let mut masks = [0; 32];
    let mut i = 0;
    while i < 16 {
        masks[i] = 0xff;
        i += 1;
    }
    masks
};

/// The length in the last byte of a vector.
#[cfg(target_arch = "x86_64")]
static TAGS: [[u8; 16]; KEY_BYTES + 1] = {
    let mut tags = [[0; 16]; KEY_BYTES + 1];
    let mut len = 0;
    while len <= KEY_BYTES {
        tags[len][15] = len as u8;
        len += 1;
    }
    tags
};

#[cfg(test)]
mod tests;
