use proptest::prelude::*;

use super::*;

/// A field of column `column`: how often it changes depends on the column and on the block.
fn field(seed: usize, block: usize, row: usize, column: usize) -> String {
    let drawn = (seed + block * 7919 + row * 31 + column * 131).wrapping_mul(2_654_435_761) >> 7;
    match (column + block / 20) % 5 {
        0 => "same".to_owned(),
        1 => format!("{}", drawn % 1_000_003),
        2 if !drawn.is_multiple_of(4) => String::new(),
        2 => "x".repeat(1 + drawn % 20),
        3 => format!("a text of more than 15 bytes {}", drawn % 3),
        _ => format!("{}", row / 5),
    }
}

fn key_of(text: &[u8]) -> Key {
    let mut padded = text.to_vec();
    padded.resize(32, 0);
    super::super::key::key_of(&padded, 0, text.len())
}

/// Compares what is found with each field, block by block.
fn check(seed: usize, blocks: usize, block_rows: usize, columns: &[usize]) {
    let stride = 6;
    let mut changes = Changes::default();
    for block in 0..blocks {
        let (mut text, mut ends) = (vec![b'\n'], vec![0]);
        for row in 0..block_rows {
            for column in 0..stride {
                text.extend(field(seed, block, row, column).into_bytes());
                let is_last = column + 1 == stride;
                text.extend((is_last && row % 2 == 0).then_some(b'\r'));
                ends.push(text.len() as u32);
                text.push(if is_last { b'\n' } else { b'|' });
            }
        }
        text.extend([0; 64]);
        let rows = Rows { text: &text, ends: &ends, stride, count: block_rows, fields: stride };
        changes.collect(&rows, columns);
        for (slot, column) in columns.iter().enumerate() {
            let found = changes.of(slot);
            assert_eq!((found.field, found.rows[0]), (*column, 0));
            for row in 0..block_rows {
                let at = found.rows.partition_point(|r| usize::from(*r) <= row) - 1;
                let text = rows.field(usize::from(found.rows[at]), *column);
                let expected = field(seed, block, row, *column).into_bytes();
                assert_eq!(text, expected, "{block} {row} {column}");
                let key = found.keys.map(|keys| keys[at]);
                let made = if text.len() <= KEY_BYTES { key_of(text) } else { [0, IS_LONG] };
                assert_eq!(key.unwrap_or(made), made, "{block} {row} {column}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn each_field_is_as_the_last_that_changed(
        seed in 0usize..1000,
        block_rows in 1usize..40,
        columns in prop::sample::subsequence(vec![0usize, 1, 2, 3, 4, 5], 1..=6),
    ) {
        check(seed, 70, block_rows, &columns);
    }
}
