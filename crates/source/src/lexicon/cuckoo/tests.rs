#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::lexicon::buckets::fast;

fn key_of(text: &[u8]) -> Key {
    let mut padded = text.to_vec();
    padded.resize(text.len() + 16, 0);
    super::key_of(&padded, 0, text.len())
}

/// Looks fields up in groups, from keys and from records, adds those that are new, and compares with a map.
fn check(texts: &[Vec<u8>]) {
    let mut cuckoo = Cuckoo::new();
    let mut known: Vec<Known> = Vec::new();
    let mut model: HashMap<&[u8], u16> = HashMap::new();
    for group in texts.chunks(GROUP) {
        let keys: Vec<Key> = group.iter().map(|text| key_of(text)).collect();
        let (mut text, mut ends) = (vec![b'\n'], vec![0]);
        for field in group {
            for field in [b"x".as_slice(), field, b"last"] {
                text.extend(field);
                ends.push(text.len() as u32);
                text.push(b'|');
            }
        }
        text.extend([b'7'; 64]);
        let rows = Rows { text: &text, ends: &ends, stride: 3, count: group.len(), fields: 3 };
        let records = Fields::OfRecords { rows: &rows, field: 1, first: 0, count: group.len() };
        if fast().is_some() {
            for fields in [Fields::Made(&keys), records] {
                let mut found = [0; GROUP];
                // SAFETY: there is a finder only where the instructions are.
                #[cfg(target_arch = "x86_64")]
                let missing =
                    unsafe { cuckoo.find_all(fields, &mut Packed::default(), &mut found) };
                for (i, field) in group.iter().enumerate() {
                    let code = (missing >> i & 1 == 0).then_some(found[i]);
                    assert_eq!(code, model.get(field.as_slice()).copied(), "{field:?}");
                }
            }
        }
        for (field, key) in group.iter().zip(keys) {
            if model.contains_key(field.as_slice()) {
                continue;
            }
            assert_eq!(cuckoo.find(key), None, "{field:?}");
            let new = Known { key, number: known.len() as u16, code: known.len() as u16 };
            if !cuckoo.add(new, known.iter().copied()) {
                return;
            }
            known.push(new);
            model.insert(field, new.code);
        }
        for Known { key, code, .. } in &known {
            assert_eq!(cuckoo.find(*key), Some(*code), "{key:x?}");
        }
    }
}

#[test]
fn digits_of_all_lengths_are_packed() {
    let numbers = (0..3_000_u64).map(|n| format!("{}", n * n * 7_919 % 10_000_000_000_000));
    check(&numbers.map(String::into_bytes).collect::<Vec<_>>());
    let codes = (0..6_000_u32).map(|n| format!("C-{:06}", n.wrapping_mul(48_271) % 1_000_000));
    check(&codes.map(String::into_bytes).collect::<Vec<_>>());
}

#[test]
fn a_table_holds_thousands_of_codes() {
    let mut cuckoo = Cuckoo::new();
    let known: Vec<Known> = (0..PLACES_MAX as u16 / 3)
        .map(|code| Known { key: key_of(format!("{code:09}").as_bytes()), number: code, code })
        .collect();
    for (i, new) in known.iter().enumerate() {
        assert!(cuckoo.add(*new, known[..i].iter().copied()), "{i}");
    }
    assert!(known.iter().all(|known| cuckoo.find(known.key) == Some(known.code)));
}

#[test]
fn an_empty_field_and_one_of_zeros_are_others() {
    check(&[vec![], vec![0], vec![0; 8], vec![0; 15], vec![0; 16], vec![0; 40], vec![]]);
}

proptest! {
    #[test]
    fn keys_are_found_as_in_a_map(
        texts in prop::collection::vec("[0-9]{0,9}|[ab]{0,15}|[a-c-]{14,18}", 0..300),
    ) {
        check(&texts.into_iter().map(String::into_bytes).collect::<Vec<_>>());
    }
}
