//! `fact`: the fact table of a star schema, shuffled: 155 columns whose values are drawn independently, row by row.
//!
//! It is the counterpart of `warehouse`: nothing repeats the row above, no column follows from another, and the columns
//! of a kind stand apart from each other. So it shows what a field costs that must be looked up.
//!
//! Cost: about 4 us of CPU time a row; 30 MB for the tables of values.

mod columns;
mod many;

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use crate::blocks::write_file;
use crate::warehouse::random::{Random, Zipf, mix};
use crate::warehouse::values::{code, date, description, number};
use columns::{FAMILIES, Family, Values};

/// Part of the cache key; raise it when any byte of the table changes (a test notices).
pub const VERSION: &str = "fact 1";

/// Rows per block; blocks are independent.
const BLOCK_ROWS: u64 = 8192;

/// Any number: it names this one data set.
const SEED: u64 = 20_261_123;

/// A column with its values.
struct Column {
    name: String,
    family: &'static Family,
    /// Place of the column in the table of families.
    number: u64,
    zipf: Option<Zipf>,
    /// Text of each id; empty for columns of many values.
    texts: Vec<Box<str>>,
}

/// The columns in the order of the file; with their values, if these are wanted.
fn columns(with_values: bool) -> Vec<Column> {
    let all = FAMILIES.iter().flat_map(|f| (1..=f.columns).map(move |n| (f, n)));
    let mut columns: Vec<Column> = all
        .enumerate()
        .map(|(number, (family, n))| {
            let name = match family.columns {
                1 => family.stem.to_owned(),
                _ => format!("{}_{n:02}", family.stem),
            };
            let texts = if with_values { texts(&family.values, number, n) } else { Vec::new() };
            let zipf = (!texts.is_empty()).then(|| Zipf::new(texts.len() as u32, family.skew));
            Column { name, family, number: number as u64, zipf, texts }
        })
        .collect();
    // The first column is the row's number; the others stand in no order.
    columns[1..].sort_by_key(|c| mix(SEED ^ c.number));
    columns
}

/// The texts of the ids of column `n` of a family; `salt` makes columns of the same form differ.
fn texts(values: &Values, salt: usize, n: u32) -> Vec<Box<str>> {
    match *values {
        Values::List(list) => list.iter().map(|&text| text.into()).collect(),
        Values::Code { form, count, step } => {
            (0..count + step * (n - 1)).map(|id| code(form, id, salt)).collect()
        }
        Values::Text { count, step } => {
            (0..count + step * (n - 1)).map(|id| description(id, salt)).collect()
        }
        Values::Number { low, apart, count, scale } => {
            let value = |id: u32| low + apart * i64::from(id);
            (0..count).map(|id| number(value(id), scale)).collect()
        }
        Values::Date { first, count, step } => {
            (0..count + step * (n - 1)).map(|id| date(first + id as i32)).collect()
        }
        Values::Many(_) => Vec::new(),
    }
}

/// The `CREATE TABLE` of the fact table.
#[must_use]
pub fn schema() -> String {
    let mut text = "CREATE TABLE fact (\n".to_owned();
    let columns = columns(false);
    for (at, column) in columns.iter().enumerate() {
        let comma = if at + 1 < columns.len() { "," } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {} {}{comma}", column.name, column.family.sql);
    }
    text + ");\n"
}

/// Writes `rows` rows to `out`.
///
/// # Errors
/// Those of [`write_file`].
pub fn generate(rows: u64, out: &Path) -> io::Result<()> {
    let columns = columns(true);
    write_file(out, rows.div_ceil(BLOCK_ROWS), |block, buffer| {
        write_block(&columns, rows, block, buffer)
    })
}

fn write_block(columns: &[Column], rows: u64, block: u64, buffer: &mut Vec<u8>) {
    let mut random = Random::new(SEED, block);
    let first = block * BLOCK_ROWS;
    for row in first..rows.min(first + BLOCK_ROWS) {
        for column in columns {
            let is_empty = random.one_in(column.family.empty_permille);
            match (&column.zipf, &column.family.values) {
                _ if is_empty => {}
                (_, Values::Many(which)) => many::write(*which, row, &mut random, buffer),
                (Some(zipf), _) => {
                    let id = zipf.choose(random.bits());
                    buffer.extend_from_slice(column.texts[id as usize].as_bytes());
                }
                (None, _) => {}
            }
            buffer.push(b'|');
        }
        buffer.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn rows(count: u64, block: u64) -> String {
        let mut buffer = Vec::new();
        write_block(&columns(true), count, block, &mut buffer);
        String::from_utf8(buffer).expect("words are UTF-8")
    }

    #[test]
    fn the_table_has_155_columns_of_distinct_names() {
        let columns = columns(false);
        let names: HashSet<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!((columns.len(), names.len()), (155, 155));
    }

    #[test]
    fn fields_fit_their_columns_and_do_not_repeat_the_row_above() {
        let columns = columns(false);
        let text = rows(20_000, 1);
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split('|').collect()).collect();
        for line in &lines {
            assert_eq!(line.len(), columns.len() + 1);
            for (field, column) in line.iter().zip(&columns) {
                let sql = column.family.sql;
                assert!(!field.is_empty() || !sql.ends_with("NOT NULL"), "{}", column.name);
                if let Some((_, rest)) = sql.split_once("CHAR(") {
                    let limit: usize =
                        rest.split(')').next().unwrap_or_default().parse().expect("a length");
                    assert!(field.chars().count() <= limit, "{}: {field}", column.name);
                }
            }
        }
        let pairs = lines.windows(2);
        let repeated = pairs.map(|p| p[0].iter().zip(&p[1]).filter(|(a, b)| a == b).count());
        let share = repeated.sum::<usize>() as f64 / (lines.len() * columns.len()) as f64;
        assert!(share < 0.3, "{share}");
    }

    /// A cached file is found by [`VERSION`]: bytes that change under the same version would never reach it.
    #[test]
    fn bytes_belong_to_the_version() {
        let hash = rows(10_000, 1).bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        assert_eq!(
            (VERSION, hash),
            ("fact 1", 5_279_891_920_762_367_106),
            "raise VERSION, then write the new hash here"
        );
    }
}
