#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

fn of(physical: i32) -> ColumnHints {
    ColumnHints { physical, ..ColumnHints::default() }
}

#[test]
fn bounds_that_contradict_themselves_are_none() {
    let ints = |least: i32, greatest: i32| {
        ValueBounds::new(INT32, &least.to_le_bytes(), &greatest.to_le_bytes())
    };
    assert_eq!(ints(-7, 9), Some(ValueBounds::Ints(-7, 9)));
    assert_eq!(ints(9, -7), None);
    assert_eq!(ValueBounds::new(INT64, &[0; 4], &[1; 4]), None);
    assert_eq!(ValueBounds::new(5, &[0; 8], &[1; 8]), None);
    let texts = ValueBounds::new(BYTE_ARRAY, b"a", b"b");
    assert_eq!(texts, Some(ValueBounds::Texts((*b"a").into(), (*b"b").into())));
    assert_eq!(ValueBounds::new(BYTE_ARRAY, b"a", &[b'b'; TEXT_BYTES_MAX + 1]), None);
}

#[test]
fn a_filter_has_what_was_put_into_it() {
    // Head: 1: 64 bytes, 2, 3, 4: the only kinds.
    let kind = [0x1c, 0x1c, 0, 0];
    let mut file = vec![0; 8];
    file.extend([0x15, 128, 1]);
    (0..3).for_each(|_| file.extend(kind));
    file.push(0);
    let start = file.len();
    file.extend([0; 64]);
    let mut hints = ColumnHints { bloom: PlaceAt { start: 8, bytes: 0 }, ..of(INT64) };
    let hash = |value: i64| {
        let mut hashes = Vec::new();
        assert!(of(INT64).push_hash_of_int(value, &mut hashes));
        hashes[0]
    };
    for value in [1_i64, 77, -5] {
        let hash = hash(value);
        let block = start + 32 * (((hash >> 32) * 2) >> 32) as usize;
        for (word, salt) in BLOOM_SALT.iter().enumerate() {
            let bit = (hash as u32).wrapping_mul(*salt) >> 27;
            file[block + 4 * word + bit as usize / 8] |= 1 << (bit % 8);
        }
    }
    let end = file.len() as u64;
    let body = file;
    let has = |hints: &ColumnHints, value| hints.may_have(&[hash(value)], end, &body).unwrap();
    assert!([1, 77, -5].iter().all(|value| has(&hints, *value)));
    assert_eq!((2..1_000).filter(|value| *value != 77 && has(&hints, *value)).count(), 0);
    assert!(hints.may_have(&[hash(2), hash(77)], end, &body).unwrap());
    // What cannot be read may have all.
    hints.bloom.start = 9;
    assert!(has(&hints, 2));
    hints.bloom.start = end + 5;
    assert!(has(&hints, 2));
}

proptest! {
    #[test]
    fn any_bytes_are_an_index_or_none(bytes: Vec<u8>, rows in 1_u64..100, hash: u64) {
        let end = bytes.len() as u64;
        let part = PlaceAt { start: 1, bytes: end.saturating_sub(1) };
        let hints =
            ColumnHints { column_index: part, offset_index: part, bloom: part, ..of(BYTE_ARRAY) };
        let body = bytes;
        if hints.has_page_index(end) {
            let pages = hints.pages(rows, &body).unwrap();
            prop_assert!(pages.is_none_or(|pages| pages[0].first_row == 0));
        }
        hints.may_have(&[hash], end, &body).unwrap();
    }
}

#[test]
fn values_that_no_filter_tells_are_not_asked_for() {
    let mut hashes = Vec::new();
    // Decimals in bytes.
    assert!(
        !of(7).push_hash_of_int(5, &mut hashes) && !of(BYTE_ARRAY).push_hash_of_int(5, &mut hashes)
    );
    assert!(!of(INT32).push_hash_of_text(b"a", &mut hashes) && hashes.is_empty());
    // No INT32 is so large.
    assert!(of(INT32).push_hash_of_int(1 << 40, &mut hashes) && hashes.is_empty());
}
