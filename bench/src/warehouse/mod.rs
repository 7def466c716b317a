//! `warehouse`: a table of 155 columns and about 1.3 KB a row, as in seed 000, section 5.1.
//!
//! A row is an item of a document. Rows come in the order of the documents, and these in the order of time, as an
//! extract does. Columns of the document repeat in its items; columns `Of` another are a function of it. Values do
//! not sort in the order of their frequency.
//!
//! Cost: about 3 us of CPU time a row; 60 MB for the tables of values.

mod columns;
mod many;
pub mod random;
pub mod values;
pub mod words;

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use columns::{COLUMNS, Source};
use random::Random;
use values::{EMPTY, Plan};

use crate::blocks::write_file;

/// Part of the cache key; raise it when any byte of the table changes (a test notices).
pub const VERSION: &str = "warehouse 3";

/// Rows per block. Documents do not cross blocks, so that blocks are independent.
const BLOCK_ROWS: u64 = 8192;

/// Any number: it names this one data set.
const SEED: u64 = 20_150_831;

/// The days that the documents span.
const DAYS: u64 = 2_300;

/// The `CREATE TABLE` of the warehouse table.
#[must_use]
pub fn schema() -> String {
    let mut text = "CREATE TABLE warehouse (\n".to_owned();
    for (at, column) in COLUMNS.iter().enumerate() {
        let comma = if at + 1 < COLUMNS.len() { "," } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {} {}{comma}", column.name, column.sql);
    }
    text + ");\n"
}

/// Writes `rows` rows to `out`.
///
/// # Errors
/// Those of [`write_file`].
pub fn generate(rows: u64, out: &Path) -> io::Result<()> {
    let plan = Plan::new();
    write_file(out, rows.div_ceil(BLOCK_ROWS), |block, buffer| {
        write_block(&plan, rows, block, buffer)
    })
}

/// What the columns of many values need of the row and its document.
pub struct Row {
    /// 0-based place in the table.
    index: u64,
    /// Document's number in the table; ascending, with gaps.
    document: u64,
    /// Day of the document, in days since [`values::FIRST_DAY`].
    day: u32,
    /// Random bits that all items of the document share.
    document_bits: u64,
    /// Random bits of the item.
    item_bits: u64,
    /// Value ids of the columns, [`EMPTY`] where the field is empty.
    ids: Vec<u32>,
}

fn write_block(plan: &Plan, rows: u64, block: u64, buffer: &mut Vec<u8>) {
    let mut random = Random::new(SEED, block);
    let first = block * BLOCK_ROWS;
    let mut row = Row {
        index: first,
        document: first,
        day: 0,
        document_bits: 0,
        item_bits: 0,
        ids: vec![EMPTY; COLUMNS.len()],
    };
    let (mut position, mut items) = (0, 0);
    for index in first..rows.min(first + BLOCK_ROWS) {
        row.index = index;
        let starts_document = position == items;
        if starts_document {
            (position, items) = (0, 1 + plan.items.choose(random.bits()));
            row.document += 1 + u64::from(random.one_in(40));
            row.day = (index * DAYS / rows) as u32 + values::DOCUMENT_DAY_MIN;
            row.document_bits = random.bits();
        }
        row.item_bits = random.bits();
        for (at, column) in plan.columns.iter().enumerate() {
            match column.source {
                Source::Document if !starts_document => {}
                Source::Document | Source::Item => {
                    row.ids[at] = column.draw(random.bits(), row.day)
                }
                Source::Position => row.ids[at] = position,
                Source::Of(_) => row.ids[at] = column.follow(&row.ids, at),
            }
            column.write(&row, at, buffer);
            buffer.push(b'|');
        }
        position += 1;
        buffer.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::random::mix;
    use super::*;

    fn rows(count: u64, block: u64) -> String {
        let mut buffer = Vec::new();
        write_block(&Plan::new(), count, block, &mut buffer);
        String::from_utf8(buffer).expect("words are UTF-8")
    }

    #[test]
    fn the_table_has_140_columns_of_few_values_and_15_of_many() {
        let many = COLUMNS.iter().filter(|c| matches!(c.values, columns::Values::Many(_))).count();
        assert_eq!((COLUMNS.len(), many), (155, 15));
    }

    #[test]
    fn only_nullable_columns_are_ever_empty() {
        for line in rows(50_000, 3).lines() {
            let fields: Vec<&str> = line.split('|').collect();
            assert_eq!(fields.len(), COLUMNS.len() + 1);
            for (field, column) in fields.iter().zip(COLUMNS) {
                assert!(!field.is_empty() || !column.sql.ends_with("NOT NULL"), "{}", column.name);
            }
        }
    }

    #[test]
    fn texts_fit_their_declared_length() {
        for line in rows(50_000, 2).lines() {
            for (field, column) in line.split('|').zip(COLUMNS) {
                if let Some((_, rest)) = column.sql.split_once("CHAR(") {
                    let limit: usize =
                        rest.split(')').next().unwrap_or_default().parse().expect("a length");
                    assert!(
                        field.chars().count() <= limit,
                        "{} is longer than {limit}: {field}",
                        column.name
                    );
                }
            }
        }
    }

    /// A cached file is found by [`VERSION`]: bytes that change under the same version would never reach it.
    #[test]
    fn bytes_belong_to_the_version() {
        let hash = rows(10_000, 1).bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        assert_eq!(
            (VERSION, hash),
            ("warehouse 3", 15_378_528_941_175_753_801),
            "raise VERSION, then write the new hash here"
        );
    }
}
