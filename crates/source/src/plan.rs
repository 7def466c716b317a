//! Chooses for each column, from a sample of a partition, between codes and plain values.
//!
//! The choice depends on the partition's first records only, so that it is the same whatever the
//! number of threads. A wrong choice costs time or space, never a value: a column of codes that
//! meets too many values goes on plain.

use std::sync::Arc;

use coload_page::SymbolEncoder;
use coload_types::{DataType, Physical};

use crate::column::ColumnPlan;
use crate::rows::Rows;

/// Records looked at.
pub const SAMPLE_ROWS: usize = 8192;
/// Most distinct numbers that are expected to be worth codes.
const NUMBERS_MAX: f64 = 8192.0;
/// Most distinct texts that are expected to be worth codes: half of what a dictionary may hold, for the
/// estimate is a lower bound, and to leave codes midway costs more than never to have had them.
const TEXTS_MAX: f64 = 16_000.0;
/// Numbers of fewer bytes are parsed in the time it takes to compare them.
const PARSED_ONCE_BYTES: usize = 16;

/// Plans a column from a sample.
pub fn plan_column(rows: &Rows<'_>, column: usize, data_type: DataType) -> ColumnPlan {
    let count = rows.count.min(SAMPLE_ROWS);
    let Estimate { distinct, repeats } = estimate(rows, column, count);
    match data_type.physical() {
        _ if data_type == DataType::Boolean => ColumnPlan::Codes,
        Physical::Bytes if distinct > TEXTS_MAX => {
            let encoder = SymbolEncoder::train(count, |row| rows.field(row, column));
            ColumnPlan::Text { encoder: Arc::new(encoder), repeats }
        }
        Physical::Int | Physical::Wide if distinct > NUMBERS_MAX => {
            let bytes: usize = (0..count).map(|row| rows.field(row, column).len()).sum();
            ColumnPlan::Numbers { repeats: repeats && bytes >= count * PARSED_ONCE_BYTES }
        }
        _ => ColumnPlan::Codes,
    }
}

/// What a sample says of a column.
struct Estimate {
    /// Distinct values expected in the whole partition.
    distinct: f64,
    /// Whether most fields are the same as the one above.
    repeats: bool,
}

/// Counts those seen, and estimates the rest from how many were seen once and twice, after Chao.
///
/// Source: Chao, "Nonparametric Estimation of the Number of Classes in a Population",
/// Scandinavian Journal of Statistics 11(4), 1984.
fn estimate(rows: &Rows<'_>, column: usize, count: usize) -> Estimate {
    let mut hashes: Vec<u64> = (0..count).map(|row| hash(rows.field(row, column))).collect();
    // Lines of one document repeat its values, which says nothing of how many documents there are.
    hashes.dedup();
    let repeats = hashes.len() * 2 < count;
    hashes.sort_unstable();
    let (mut distinct, mut once, mut twice) = (0u64, 0u64, 0u64);
    for group in hashes.chunk_by(|a, b| a == b) {
        distinct += 1;
        once += u64::from(group.len() == 1);
        twice += u64::from(group.len() == 2);
    }
    if count < SAMPLE_ROWS / 8 {
        return Estimate { distinct: distinct as f64, repeats }; // too few to say more
    }
    let unseen = (once * once) as f64 / (2.0 * (twice + 1) as f64);
    Estimate { distinct: distinct as f64 + unseen, repeats }
}

fn hash(field: &[u8]) -> u64 {
    let mut hash = field.len() as u64;
    for chunk in field.chunks(8) {
        let mut raw = [0; 8];
        raw[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(raw)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^= hash >> 29;
    }
    hash
}
