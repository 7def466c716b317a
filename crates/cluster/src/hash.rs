//! From the values of a row to its shard; the same on all machines, for ever: shards that are stored depend on it.
//!
//! ```text
//!   value  -> 64 bits     NULL                                        mix(NULL_SEED)
//!                         integer, boolean, date, time, decimal       mix(scale, digits): the number without zeros behind the point
//!                         float                                       mix(FLOAT_SEED ^ bits of the f64), -0.0 as 0.0, each NaN as one
//!                         text, bytes                                 XXH3 (64 bits, seed 0) of the bytes
//!                         UUID                                        mix of its two halves
//!   row    -> h = 0, then for each shard column h = mix(rotate(h, 5) ^ value)
//!   shard  =  h * shards / 2^64
//! ```
//!
//! `mix` is the finalizer of SplitMix64. A number has one hash in all types of exact numbers: BIGINT 15, DECIMAL(9,2) 15.00
//! and DECIMAL(38,0) 15 are in one shard, so that joins of such columns find both sides on one leaf; so have REAL and
//! DOUBLE 1.5, and CHAR and VARCHAR. A float has not the hash of the same number as a decimal.
//!
//! Cost: a hash for each distinct code of a coded column and a look-up a row; else a hash a row.

use coload_ddl::CheckedColumn;
use coload_types::bytes::checksum;
use coload_types::{DataType, Plain, Value, Values, f32_from_ordinal, f64_from_ordinal};

const NULL_SEED: u64 = 0x6c62_272e_07bb_0142;
const FLOAT_SEED: u64 = 0x9ae1_6a3b_2f90_404f;
const WIDE_SEED: u64 = 0xc3a5_c85c_97cb_3127;

/// Turns bits into others of which each depends on all (SplitMix64).
#[inline]
pub(crate) fn mix(bits: u64) -> u64 {
    let mut x = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// How the values of a column are hashed.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Number { scale: u8 },
    Real,
    Double,
    Uuid,
    Bytes,
}

impl Kind {
    fn of(data_type: DataType) -> Self {
        match data_type {
            DataType::Decimal { scale, .. } => Kind::Number { scale },
            DataType::Real => Kind::Real,
            DataType::Double => Kind::Double,
            DataType::Uuid => Kind::Uuid,
            DataType::Char(_) | DataType::Varchar(_) | DataType::Binary(_) | DataType::List(_) => {
                Kind::Bytes
            }
            DataType::Boolean
            | DataType::SmallInt
            | DataType::Integer
            | DataType::BigInt
            | DataType::Date
            | DataType::Time
            | DataType::Timestamp
            | DataType::TimestampTz => Kind::Number { scale: 0 },
        }
    }

    #[inline]
    fn int(self, value: i64) -> u64 {
        match self {
            Kind::Real => float(f64::from(f32_from_ordinal(value))),
            Kind::Double => float(f64_from_ordinal(value)),
            Kind::Number { scale: 0 } => mix(value as u64),
            Kind::Number { scale } => short_decimal(value, scale),
            Kind::Uuid | Kind::Bytes => self.wide(value.into()),
        }
    }

    fn wide(self, value: i128) -> u64 {
        match self {
            Kind::Number { scale } => decimal(value, scale),
            _ => mix((value as u64) ^ mix(((value >> 64) as u64) ^ WIDE_SEED)),
        }
    }
}

fn float(value: f64) -> u64 {
    let value = if value == 0.0 {
        0.0
    } else if value.is_nan() {
        f64::NAN
    } else {
        value
    };
    let bits = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
    mix(FLOAT_SEED ^ bits)
}

fn short_decimal(mut digits: i64, mut scale: u8) -> u64 {
    while scale > 0 && digits % 10 == 0 {
        (digits, scale) = (digits / 10, scale - 1);
    }
    scaled(mix(digits as u64), scale)
}

fn decimal(mut digits: i128, mut scale: u8) -> u64 {
    while scale > 0 && digits % 10 == 0 {
        (digits, scale) = (digits / 10, scale - 1);
    }
    let hash = match i64::try_from(digits) {
        Ok(short) => mix(short as u64),
        Err(_) => mix((digits as u64) ^ mix(((digits >> 64) as u64) ^ WIDE_SEED)),
    };
    scaled(hash, scale)
}

/// The hash of a number with so many digits behind the point; without any it is that of an integer.
fn scaled(hash: u64, scale: u8) -> u64 {
    match scale {
        0 => hash,
        scale => mix(hash ^ (u64::from(scale) << 56)),
    }
}

/// The hash of one value of a type; `None` is NULL.
///
/// Values come as they are stored: decimals without their point, floats by their ordinal.
pub fn hash_value(value: Option<&Value>, data_type: DataType) -> u64 {
    let kind = Kind::of(data_type);
    match value {
        None => mix(NULL_SEED),
        Some(Value::Int(value)) => kind.int(*value),
        Some(Value::Wide(value)) => kind.wide(*value),
        Some(Value::Bytes(bytes)) => checksum(bytes),
    }
}

/// The hash of one row, of its shard columns in order.
pub fn hash_row<'v>(values: impl IntoIterator<Item = (Option<&'v Value>, DataType)>) -> u64 {
    let mut hash = 0;
    values.into_iter().for_each(|(value, of)| combine(&mut hash, hash_value(value, of)));
    hash
}

/// The shard of a row with this hash, of so many.
#[inline]
pub fn shard_of(hash: u64, shards: u32) -> u32 {
    ((u128::from(hash) * u128::from(shards)) >> 64) as u32
}

/// The hashes of rows, of one shard column after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowHashes {
    hashes: Vec<u64>,
}

impl RowHashes {
    /// Of so many rows, of no column.
    pub fn new(rows: usize) -> Self {
        RowHashes { hashes: vec![0; rows] }
    }

    /// Of rows that are dealt in turn: row `first + i` of all has its own number in the place of values.
    pub fn in_turn(first: u64, rows: usize) -> Self {
        RowHashes { hashes: (first..).take(rows).map(mix).collect() }
    }

    /// Adds the next shard column.
    ///
    /// # Panics
    /// When it has fewer rows: a bug of the caller.
    pub fn add(&mut self, column: &CheckedColumn<'_>, data_type: DataType) {
        let kind = Kind::of(data_type);
        let null = mix(NULL_SEED);
        match column {
            CheckedColumn::Coded { codes, values } => {
                let mut of_code: Vec<u64> =
                    (0..values.len()).map(|code| at(values, code, kind)).collect();
                // A code that has no value is NULL.
                of_code.push(null);
                let last = of_code.len() - 1;
                let pairs = self.hashes.iter_mut().zip(*codes);
                pairs.for_each(|(hash, code)| combine(hash, of_code[usize::from(*code).min(last)]));
            }
            CheckedColumn::Plain(plain) => self.add_plain(plain, kind, null),
        }
    }

    fn add_plain(&mut self, plain: &Plain, kind: Kind, null: u64) {
        for (row, hash) in self.hashes.iter_mut().enumerate() {
            let value = if plain.is_null(row) { null } else { at(&plain.values, row, kind) };
            combine(hash, value);
        }
    }

    /// The shard of each row, of so many.
    pub fn shards(&self, shards: u32) -> impl ExactSizeIterator<Item = u32> {
        self.hashes.iter().map(move |hash| shard_of(*hash, shards))
    }

    /// The hash of each row.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }
}

#[inline]
fn combine(hash: &mut u64, value: u64) {
    *hash = mix(hash.rotate_left(5) ^ value);
}

#[inline]
fn at(values: &Values, index: usize, kind: Kind) -> u64 {
    match values {
        Values::Int(values) => kind.int(values[index]),
        Values::Wide(values) => kind.wide(values[index]),
        Values::Bytes(strings) => checksum(strings.get(index)),
    }
}

#[cfg(test)]
mod tests;
