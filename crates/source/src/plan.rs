//! Chooses for each column, from a sample of a partition, between codes and plain values.
//!
//! The choice depends on the partition's first records only, so that it is the same whatever the
//! number of threads. A wrong choice costs time or space, never a value: a column of codes that
//! meets too many values goes on plain.
//!
//! Cost: some 20 ns a field of the first 2 MiB; beyond them only columns in doubt are looked at.

use std::sync::Arc;

use coload_page::SymbolEncoder;
use coload_transform::DictionaryLimit;
use coload_types::{DataType, Physical};

use crate::column::ColumnPlan;
use crate::rows::Rows;

/// Most records of a partition's first chunk that are looked at to plan it.
pub const SAMPLE_ROWS: usize = 8192;
/// Text of a sample in which all columns are looked at.
pub const SAMPLE_BYTES: usize = 2 << 20;
/// Text that a sample of long records has, for columns that less of it leaves in doubt.
pub const SAMPLE_BYTES_MOST: usize = 8 << 20;
/// Text of a sample that was cut for its length, and not because the input ends.
const CUT_BYTES: usize = 1 << 20;
/// Most distinct numbers that are expected to be worth codes.
const NUMBERS_MAX: f64 = 8192.0;
/// How much more values than expected there must be room for: the estimate is a lower bound, and to leave codes midway
/// costs more than never to have had them.
const ROOM: f64 = 1.25;
/// An estimate that is so many times too many, or too few, is no reason to look at more records.
const DOUBT: f64 = 8.0;
/// Numbers of fewer bytes are parsed in the time it takes to compare them.
const PARSED_ONCE_BYTES: usize = 16;

/// Plans a column from a sample; `limit` is what its dictionary may hold, `known` the symbols of the column in another partition, if
/// there are some. Where these suit the texts they are used: what puts partitions together then moves codes.
pub fn plan_column(
    rows: &Rows<'_>,
    column: usize,
    data_type: DataType,
    (limit, known): (DictionaryLimit, Option<&Arc<SymbolEncoder>>),
) -> ColumnPlan {
    if data_type == DataType::Boolean {
        return ColumnPlan::Codes;
    }
    let physical = data_type.physical();
    let all = rows.count.min(SAMPLE_ROWS);
    let first = first_rows(rows).min(all);
    let mut found = estimate(rows, column, first, Growth::Ignored);
    if found.is_in_doubt(physical, limit) {
        let growth = match physical {
            Physical::Bytes => Growth::Counted,
            Physical::Int | Physical::Wide => Growth::Ignored,
        };
        found = estimate(rows, column, all, growth);
    }
    let Estimate { repeats, .. } = found;
    match physical {
        _ if found.fullness(physical, limit) <= 1.0 => ColumnPlan::Codes,
        Physical::Bytes => {
            // Records near each other are as those of a fragment are, which is what the symbols are for.
            let field = |row| rows.field(row, column);
            let encoder = match known.filter(|known| known.suits(first, field)) {
                Some(known) => Arc::clone(known),
                None => Arc::new(SymbolEncoder::train(first, field)),
            };
            ColumnPlan::Text { encoder, repeats }
        }
        Physical::Int | Physical::Wide => {
            let bytes: usize = (0..first).map(|row| rows.field(row, column).len()).sum();
            ColumnPlan::Numbers { repeats: repeats && bytes >= first * PARSED_ONCE_BYTES }
        }
    }
}

/// Whether an estimate counts with what it grows by from half of the records to all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    Ignored,
    /// Of values as frequent as each other the estimate does not grow; of others more come to light the longer one looks.
    Counted,
}

/// Records that start in the first [`SAMPLE_BYTES`].
fn first_rows(rows: &Rows<'_>) -> usize {
    let (mut low, mut high) = (0, rows.count);
    while low < high {
        let middle = low + (high - low) / 2;
        match rows.start(middle) < rows.start(0) + SAMPLE_BYTES {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// What a sample says of a column.
struct Estimate {
    /// Distinct values expected in the whole partition.
    distinct: f64,
    /// Bytes of a distinct value.
    bytes: f64,
    /// Whether most fields are the same as the one above.
    repeats: bool,
}

impl Estimate {
    /// The share of what codes are good for that the values take.
    fn fullness(&self, physical: Physical, limit: DictionaryLimit) -> f64 {
        let (values, text_bytes) = (self.distinct * ROOM, self.distinct * ROOM * self.bytes);
        match physical {
            Physical::Bytes => limit.fullness(values, text_bytes),
            Physical::Int | Physical::Wide => {
                limit.fullness(values, 0.0).max(self.distinct / NUMBERS_MAX)
            }
        }
    }

    /// Whether more records may tell another plan.
    fn is_in_doubt(&self, physical: Physical, limit: DictionaryLimit) -> bool {
        (1.0 / DOUBT..DOUBT).contains(&self.fullness(physical, limit))
    }
}

/// Counts those seen, and estimates the rest from how many were seen once and twice, after Chao.
///
/// Source: Chao, "Nonparametric Estimation of the Number of Classes in a Population",
/// Scandinavian Journal of Statistics 11(4), 1984.
fn estimate(rows: &Rows<'_>, column: usize, count: usize, growth: Growth) -> Estimate {
    let mut fields: Vec<(u64, usize)> = (0..count)
        .map(|row| {
            let field = rows.field(row, column);
            (hash(field), field.len())
        })
        .collect();
    // Lines of one document repeat its values, which says nothing of how many documents there are.
    fields.dedup();
    let repeats = fields.len() * 2 < count;
    let is_short = count < SAMPLE_ROWS / 8 && rows.bytes() < CUT_BYTES;
    let halves = match growth {
        Growth::Counted if !is_short && fields.len() > 1 => {
            let half = fields.len() / 2;
            let (first, second) = fields.split_at(half);
            (Frequencies::of(first).all() + Frequencies::of(second).all()) / 2.0
        }
        _ => f64::MAX,
    };
    let frequencies = Frequencies::of(&fields);
    let bytes = frequencies.bytes as f64 / frequencies.distinct.max(1.0);
    if is_short {
        return Estimate { distinct: frequencies.distinct, bytes, repeats }; // too few to say more
    }
    let all = frequencies.all();
    // Two doublings of the records: more would be to trust a guess.
    let grown = (all / halves).max(1.0).powi(2);
    Estimate { distinct: all * grown, bytes, repeats }
}

/// How often values were seen.
#[derive(Default)]
struct Frequencies {
    distinct: f64,
    once: f64,
    twice: f64,
    /// Of each distinct value.
    bytes: usize,
}

/// A value in a table of values, and how often it was seen.
#[derive(Clone, Copy, Default)]
struct SeenValue {
    hash: u64,
    length: u32,
    count: u32,
}

impl Frequencies {
    /// Counts values by their hashes and lengths. Small partitions are planned often, so that they are not sorted for it.
    fn of(fields: &[(u64, usize)]) -> Self {
        let bits = (2 * fields.len()).max(2).next_power_of_two().ilog2();
        let mut table = vec![SeenValue::default(); 1 << bits];
        for (hash, length) in fields {
            let (length, mut slot) = (*length as u32, (hash >> (u64::BITS - bits)) as usize);
            loop {
                let seen = &mut table[slot];
                if seen.count == 0 {
                    *seen = SeenValue { hash: *hash, length, count: 1 };
                    break;
                }
                if (seen.hash, seen.length) == (*hash, length) {
                    seen.count += 1;
                    break;
                }
                slot = (slot + 1) & (table.len() - 1);
            }
        }
        let mut found = Frequencies::default();
        for seen in table.iter().filter(|seen| seen.count > 0) {
            found.distinct += 1.0;
            found.bytes += seen.length as usize;
            found.once += f64::from(u8::from(seen.count == 1));
            found.twice += f64::from(u8::from(seen.count == 2));
        }
        found
    }

    /// Those seen, and those not seen.
    fn all(&self) -> f64 {
        self.distinct + self.once * self.once / (2.0 * (self.twice + 1.0))
    }
}

fn hash(field: &[u8]) -> u64 {
    let mut hash = field.len() as u64;
    let mut words = field.chunks_exact(8);
    for word in words.by_ref() {
        let mut raw = [0; 8];
        raw.copy_from_slice(word);
        hash = mix(hash, u64::from_le_bytes(raw));
    }
    let mut raw = [0; 8];
    raw[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(hash, u64::from_le_bytes(raw))
}

fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^ hash >> 29
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plans column 0 of lines of one field.
    fn plan(fields: impl Iterator<Item = String>, data_type: DataType) -> ColumnPlan {
        let mut text = b"\n".to_vec();
        let mut ends = vec![0];
        for field in fields {
            text.extend_from_slice(field.as_bytes());
            ends.push(text.len() as u32);
            text.push(b'\n');
        }
        text.extend([0; 64]);
        let rows = Rows { text: &text, ends: &ends, stride: 1, count: ends.len() - 1, fields: 1 };
        plan_column(&rows, 0, data_type, (DictionaryLimit::of_bytes(4 << 20), None))
    }

    /// Numbers that look drawn at random.
    fn drawn(row: usize, below: usize) -> usize {
        (mix(row as u64, 77) >> 20) as usize % below
    }

    fn is_codes(plan: &ColumnPlan) -> bool {
        matches!(plan, ColumnPlan::Codes)
    }

    /// Symptom: 1,500 columns of 40,000 values filled a dictionary each before they went plain, for 2 MiB held 200 records.
    #[test]
    fn few_records_of_a_long_sample_tell_many_values() {
        let long = |row: usize| format!("{:>010000}", drawn(row, 1 << 40));
        assert!(!is_codes(&plan((0..300).map(long), DataType::Integer)));
        let short = |row: usize| format!("{}", drawn(row, 1 << 40));
        assert!(is_codes(&plan((0..300).map(short), DataType::Integer)));
    }

    /// Symptom: of columns of 20,000 codes some were read as text, by chance.
    #[test]
    fn values_that_fill_most_of_a_dictionary_are_codes() {
        let varchar = DataType::Varchar(None);
        for seed in 0..20 {
            let code = |row: usize| format!("{:0>8}", drawn(row + seed * 9000, 20_000));
            assert!(is_codes(&plan((0..8192).map(code), varchar)), "{seed}");
            let word = |row: usize| format!("{:0>8}", drawn(row + seed * 9000, 60_000));
            assert!(!is_codes(&plan((0..8192).map(word), varchar)), "{seed}");
        }
    }

    /// Symptom: customers, some of which buy often, looked like 21,000; a dictionary was full of them midway.
    #[test]
    fn values_of_which_more_come_to_light_are_texts() {
        for seed in 0..20 {
            // The rarer half of the values is seen in one of eight records.
            let skewed = |row: usize| {
                let below = 150_000 >> (drawn(row + seed * 9000 + 1_000_000, 4) * 2);
                format!("{:0>8}", drawn(row + seed * 9000, below))
            };
            let plan = plan((0..8192).map(skewed), DataType::Varchar(None));
            assert!(!is_codes(&plan), "{seed}");
        }
    }

    #[test]
    fn texts_that_few_fit_into_a_dictionary_are_plain() {
        let long = |row: usize| format!("{row:>060000}");
        assert!(!is_codes(&plan((0..30).map(long), DataType::Varchar(None))));
        let same = |_| format!("{:>060000}", 7);
        assert!(is_codes(&plan((0..30).map(same), DataType::Varchar(None))));
    }
}
