//! Chooses for each column, from a sample of a partition, between codes and plain values.
//!
//! The choice depends on the partition's first records only, so that it is the same whatever the
//! number of threads. A wrong choice costs time or space, never a value: a column of codes that
//! meets too many values goes on plain.

use std::sync::Arc;

use coload_format::{DataType, Physical, SymbolEncoder};

use crate::column::ColumnPlan;
use crate::rows::Rows;

/// Records looked at.
pub const SAMPLE_ROWS: usize = 8192;
/// Most distinct numbers that are expected to be worth codes.
const NUMBERS_MAX: f64 = 8192.0;
/// Most distinct texts that are expected to be worth codes.
const TEXTS_MAX: f64 = 24_000.0;

/// Plans a column from a sample.
pub fn plan_column(rows: &Rows<'_>, column: usize, data_type: DataType) -> ColumnPlan {
    let count = rows.count.min(SAMPLE_ROWS);
    let distinct = estimate_distinct(rows, column, count);
    match data_type.physical() {
        _ if data_type == DataType::Boolean => ColumnPlan::Codes,
        Physical::Bytes if distinct > TEXTS_MAX => {
            let sample = (0..count).map(|row| rows.field(row, column));
            ColumnPlan::Text(Arc::new(SymbolEncoder::train(sample)))
        }
        Physical::Int | Physical::Wide if distinct > NUMBERS_MAX => ColumnPlan::Numbers,
        _ => ColumnPlan::Codes,
    }
}

/// Distinct values expected in the whole partition: those seen, and Chao's estimate of the rest
/// from how many were seen once and twice.
///
/// Source: Chao, "Nonparametric Estimation of the Number of Classes in a Population",
/// Scandinavian Journal of Statistics 11(4), 1984.
fn estimate_distinct(rows: &Rows<'_>, column: usize, count: usize) -> f64 {
    let mut hashes: Vec<u64> = (0..count).map(|row| hash(rows.field(row, column))).collect();
    // Lines of one document repeat its values, which says nothing of how many documents there are.
    hashes.dedup();
    hashes.sort_unstable();
    let (mut distinct, mut once, mut twice) = (0u64, 0u64, 0u64);
    for group in hashes.chunk_by(|a, b| a == b) {
        distinct += 1;
        once += u64::from(group.len() == 1);
        twice += u64::from(group.len() == 2);
    }
    if count < SAMPLE_ROWS / 8 {
        return distinct as f64; // too few to say more
    }
    distinct as f64 + (once * once) as f64 / (2.0 * (twice + 1) as f64)
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
