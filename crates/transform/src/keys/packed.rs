//! Keys of numbers, packed as they come and sorted in parts that threads may share.
//!
//! ```text
//!   columns of the key   | 25 bits | 3 bits | row |      each from its least value on, in as many bits as its range has
//!   buckets              by the first bits of the key; each is then sorted by the others, in the cache
//! ```
//!
//! Rows are part of what is sorted, so that rows of equal keys keep their order, and a permutation need not be followed to compare
//! neighbours.
//!
//! Cost: 8 bytes a row, twice while buckets are made.

use coload_page::bitpack::width_of;

use super::KeyOrder;

/// Rows that a bucket should have: it and its copy are in a cache of the second level.
const BUCKET_ROWS: usize = 1 << 14;
/// Most bits that buckets are made by: as many places are written to in turn.
const BUCKET_BITS_MAX: u32 = 9;
/// Most bits of a digit: the counts of its values stay in the first cache.
const DIGIT_BITS: u32 = 11;
/// Keys of a bucket from which on they are sorted digit by digit.
const RADIX_KEYS_MIN: usize = 256;

/// Keys of some rows, packed with the numbers of these.
#[derive(Debug)]
pub struct PackedKeys {
    keys: Vec<u64>,
    row_bits: u32,
    key_bits: u32,
    /// Bits of each column, and where they are.
    columns: Vec<(u32, u32)>,
}

impl PackedKeys {
    /// Room for so many rows whose columns have values in these ranges; `None` where a key and the number of its row have more than 64
    /// bits.
    pub fn new(rows: usize, ranges: &[(i64, i64)]) -> Option<Self> {
        let row_bits = u32::from(width_of(rows as u64));
        let bits = |(least, greatest): &(i64, i64)| {
            u64::BITS - (greatest.wrapping_sub(*least) as u64).leading_zeros()
        };
        let key_bits: u32 = ranges.iter().map(bits).sum();
        if key_bits + row_bits > u64::BITS {
            return None;
        }
        let mut at = row_bits + key_bits;
        let column = |range: &(i64, i64)| {
            at -= bits(range);
            (bits(range), at)
        };
        let columns = ranges.iter().map(column).collect();
        Some(PackedKeys { keys: vec![0; rows], row_bits, key_bits, columns })
    }

    /// Keys of so many bits, which fit beside the numbers of their rows.
    pub(super) fn of(mut keys: Vec<u64>, key_bits: u32) -> Self {
        let row_bits = u32::from(width_of(keys.len() as u64));
        // Without bits the keys are all 0.
        keys.iter_mut().for_each(|key| *key = key.checked_shl(row_bits).unwrap_or(0));
        PackedKeys { keys, row_bits, key_bits, columns: Vec::new() }
    }

    /// Packs values of a column, those of the rows from `row` on, by their distances from the least.
    ///
    /// # Panics
    /// When there are not so many rows or columns.
    pub fn put(&mut self, column: usize, row: usize, distances: &[u64]) {
        let (bits, at) = self.columns[column];
        if bits == 0 {
            return;
        }
        for (key, distance) in self.keys[row..row + distances.len()].iter_mut().zip(distances) {
            *key |= distance << at;
        }
    }

    /// Divides the rows into buckets, unless they stand in order.
    pub fn divide(mut self) -> Divided {
        for (row, key) in self.keys.iter_mut().enumerate() {
            *key |= row as u64;
        }
        let PackedKeys { keys, row_bits, key_bits, .. } = self;
        if keys.is_sorted() {
            let repeated = repeated(&keys, row_bits).map(|place| place as u32).collect();
            return Divided::InOrder(KeyOrder { rows: None, repeated });
        }
        let wanted = (keys.len() / BUCKET_ROWS).max(1).ilog2();
        let bits = wanted.min(BUCKET_BITS_MAX).min(key_bits);
        let rest_bits = key_bits - bits;
        if bits == 0 {
            let ends = vec![keys.len()];
            return Divided::Buckets(KeyBuckets { keys, ends, row_bits, rest_bits });
        }
        let bucket = |key: u64| (key >> (row_bits + rest_bits)) as usize & ((1 << bits) - 1);
        let mut ends = vec![0usize; 1 << bits];
        keys.iter().for_each(|key| ends[bucket(*key)] += 1);
        let mut end = 0;
        for count in &mut ends {
            // The place of its next key, which is its end when all have come.
            (end, *count) = (end + *count, end);
        }
        let mut to = vec![0; keys.len()];
        for key in &keys {
            let place = &mut ends[bucket(*key)];
            to[*place] = *key;
            *place += 1;
        }
        Divided::Buckets(KeyBuckets { keys: to, ends, row_bits, rest_bits })
    }

    /// The order of the rows.
    pub fn sort(self) -> KeyOrder {
        let buckets = match self.divide() {
            Divided::InOrder(order) => return order,
            Divided::Buckets(buckets) => buckets,
        };
        let mut order = KeyOrder { rows: None, repeated: Vec::new() };
        (0..buckets.count()).for_each(|bucket| order.append(buckets.sort(bucket)));
        order
    }
}

/// Rows by the first bits of their keys.
#[derive(Debug)]
pub enum Divided {
    /// They stand in order.
    InOrder(KeyOrder),
    /// They do not.
    Buckets(KeyBuckets),
}

/// Keys in buckets, each of which has lesser keys than the next.
#[derive(Debug)]
pub struct KeyBuckets {
    keys: Vec<u64>,
    ends: Vec<usize>,
    row_bits: u32,
    rest_bits: u32,
}

impl KeyBuckets {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The order of the rows of a bucket; places are counted from its first on.
    pub fn sort(&self, bucket: usize) -> KeyOrder {
        let start = bucket.checked_sub(1).map_or(0, |before| self.ends[before]);
        let keys = self.keys[start..self.ends[bucket]].to_vec();
        let sorted = sort_digits(keys, self.row_bits, self.rest_bits);
        let mask = (1u64 << self.row_bits) - 1;
        let repeated = repeated(&sorted, self.row_bits).map(|place| place as u32).collect();
        KeyOrder { rows: Some(sorted.iter().map(|key| (key & mask) as u32).collect()), repeated }
    }
}

impl KeyOrder {
    /// Appends the order of the next bucket.
    pub fn append(&mut self, bucket: KeyOrder) {
        let rows = self.rows.get_or_insert_default();
        let before = rows.len() as u32;
        self.repeated.extend(bucket.repeated.into_iter().map(|place| before + place));
        rows.extend(bucket.rows.unwrap_or_default());
    }
}

/// Places at which the key is that of the place before.
fn repeated(sorted: &[u64], row_bits: u32) -> impl Iterator<Item = usize> {
    let key = move |key: u64| key.checked_shr(row_bits).unwrap_or(0);
    let places = sorted.windows(2).enumerate();
    places.filter(move |(_, pair)| key(pair[0]) == key(pair[1])).map(|(place, _)| place + 1)
}

/// Sorts by `bits` bits from `shift` on, the least significant digit first; numbers that are equal there keep their order, which is
/// that of the bits below.
fn sort_digits(mut from: Vec<u64>, shift: u32, bits: u32) -> Vec<u64> {
    if from.len() < RADIX_KEYS_MIN {
        from.sort_unstable();
        return from;
    }
    let mut to = vec![0; from.len()];
    let digits = bits.div_ceil(DIGIT_BITS);
    // As wide as need be: three digits of 9 bits instead of two of 11 and one of 5.
    let width = bits.div_ceil(digits.max(1)).max(1);
    let mask = (1u64 << width) - 1;
    for digit in 0..digits {
        let at = shift + digit * width;
        let mut starts = vec![0usize; 1 << width];
        from.iter().for_each(|number| starts[(number >> at & mask) as usize] += 1);
        let mut start = 0;
        for count in &mut starts {
            (start, *count) = (start + *count, start);
        }
        for number in &from {
            let place = &mut starts[(number >> at & mask) as usize];
            to[*place] = *number;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    from
}
