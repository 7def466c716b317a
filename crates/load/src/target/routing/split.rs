//! The rows of a fragment by leaves: one pass for the hashes, one for each column.
//!
//! Bytes touched per row: its hash and leaf (10), its number (4), and each column's code or value, read and written.

use coload_cluster::{RowHashes, ShardBy};
use coload_ddl::CheckedColumn;
use coload_transform::{NULL_CODE, ProvisionalCodes};
use coload_types::{Bitmap, DataType, Plain, Strings, Values};

use super::super::MadeRows;

/// A column of which so many rows have values of their own goes as values: a dictionary would be as long.
const ROWS_A_VALUE_MIN: usize = 4;

/// The rows of a fragment, by leaves.
#[derive(Debug)]
pub struct RoutedRows {
    /// Rows of all leaves.
    pub rows: usize,
    /// What each leaf gets.
    pub leaves: Vec<LeafRows>,
}

/// What a leaf gets of a fragment.
#[derive(Debug)]
pub struct LeafRows {
    /// Number of rows.
    pub rows: u32,
    /// Columns in the order of the table; none where there are no rows.
    pub columns: Vec<RoutedColumn>,
}

/// A column of a leaf's rows.
#[derive(Debug)]
pub enum RoutedColumn {
    /// Codes of the values that stand in these rows.
    Coded {
        /// A code for each row.
        codes: ProvisionalCodes,
        /// The value of each code.
        values: Values,
        /// Whether any row is NULL.
        nulls: bool,
    },
    /// A value for each row.
    Plain(Plain),
}

impl MadeRows for RoutedRows {
    fn count(&self) -> usize {
        self.rows
    }
}

/// Splits the rows of a chunk's fragment among leaves.
pub fn split_rows(
    columns: &[CheckedColumn<'_>],
    rows: usize,
    (shard_by, types): (&ShardBy, &[DataType]),
    (chunk, shards): (usize, &[u16]),
    leaves: usize,
) -> RoutedRows {
    let hashes = match shard_by {
        // Rows of a chunk are dealt from a shard of its own on: chunks have few rows, or many.
        ShardBy::InTurn => RowHashes::in_turn((chunk as u64) << 32, rows),
        // There is one shard, and one way to all leaves.
        ShardBy::Everywhere => RowHashes::new(rows),
        ShardBy::Columns(by) => {
            let mut hashes = RowHashes::new(rows);
            by.iter().for_each(|column| hashes.add(&columns[*column], types[*column]));
            hashes
        }
    };
    let of_shard = |shard: u32| usize::from(shards[shard as usize]);
    let mut numbers: Vec<Vec<u32>> =
        (0..leaves).map(|_| Vec::with_capacity(rows / leaves + rows / 8)).collect();
    for (row, shard) in hashes.shards(shards.len() as u32).enumerate() {
        numbers[of_shard(shard)].push(row as u32);
    }
    let of_leaf = |numbers: Vec<u32>| {
        let taken = |column| take_column(column, &numbers);
        let columns = match numbers.is_empty() {
            true => Vec::new(),
            false => columns.iter().map(taken).collect(),
        };
        LeafRows { rows: numbers.len() as u32, columns }
    };
    RoutedRows { rows, leaves: numbers.into_iter().map(of_leaf).collect() }
}

fn take_column(column: &CheckedColumn<'_>, rows: &[u32]) -> RoutedColumn {
    match column {
        CheckedColumn::Plain(plain) => RoutedColumn::Plain(take_plain(plain, rows)),
        CheckedColumn::Coded { codes, values } => take_coded(codes, values, rows),
    }
}

fn take_plain(plain: &Plain, rows: &[u32]) -> Plain {
    let nulls = plain.nulls.as_ref().and_then(|all| {
        let mut nulls = Bitmap::zeros(rows.len());
        let mut any = false;
        for (at, row) in rows.iter().enumerate() {
            if all.get(*row as usize) {
                nulls.set(at);
                any = true;
            }
        }
        any.then_some(nulls)
    });
    Plain { values: take_values(&plain.values, rows), nulls }
}

fn take_values(values: &Values, rows: &[u32]) -> Values {
    match values {
        Values::Int(values) => Values::Int(rows.iter().map(|row| values[*row as usize]).collect()),
        Values::Wide(values) => {
            Values::Wide(rows.iter().map(|row| values[*row as usize]).collect())
        }
        Values::Bytes(strings) => {
            let mut taken = Strings::default();
            taken.ends.reserve(rows.len());
            rows.iter().for_each(|row| taken.push(strings.get(*row as usize)));
            Values::Bytes(taken)
        }
    }
}

fn take_coded(codes: &[u16], values: &Values, rows: &[u32]) -> RoutedColumn {
    /// A code that no row had so far.
    const UNSEEN: u16 = u16::MAX;
    let mut of_code = vec![UNSEEN; values.len()];
    let mut used: Vec<u32> = Vec::new();
    let (mut taken, mut nulls) = (Vec::with_capacity(rows.len()), false);
    for row in rows {
        let code = usize::from(codes[*row as usize]);
        let Some(new) = of_code.get_mut(code) else {
            // A code that has no value is NULL.
            taken.push(NULL_CODE);
            nulls = true;
            continue;
        };
        if *new == UNSEEN {
            *new = used.len() as u16;
            used.push(code as u32);
        }
        taken.push(*new);
    }
    if used.len() * ROWS_A_VALUE_MIN <= rows.len() {
        let codes = ProvisionalCodes::new(&taken, used.len());
        return RoutedColumn::Coded { codes, values: take_values(values, &used), nulls };
    }
    let mut bits = Bitmap::zeros(if nulls { rows.len() } else { 0 });
    // A NULL row holds any value.
    let mut numbers = Vec::with_capacity(rows.len());
    for (at, code) in taken.iter().enumerate() {
        match used.get(usize::from(*code)) {
            Some(code) => numbers.push(*code),
            None => {
                bits.set(at);
                numbers.push(0);
            }
        }
    }
    let values = match values.is_empty() {
        false => take_values(values, &numbers),
        // All rows are NULL.
        true => {
            let mut none = Values::empty(values.physical());
            numbers.iter().for_each(|_| none.push_default());
            none
        }
    };
    RoutedColumn::Plain(Plain { values, nulls: nulls.then_some(bits) })
}
