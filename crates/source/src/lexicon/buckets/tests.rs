use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::lexicon::finder::{Best, Portable, with_finder};

fn key_of(text: &[u8]) -> Key {
    let mut bytes = [0; 16];
    bytes[..text.len()].copy_from_slice(text);
    bytes[15] = text.len() as u8;
    [0, 8].map(|at| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    })
}

/// Looks each key up, adds it if it is new, and compares with a map.
fn check(keys: &[Key], exact: bool, finder: impl Finder) {
    let mut buckets = Buckets::new(exact);
    let mut known: Vec<Known> = Vec::new();
    let mut model: HashMap<Key, u16> = HashMap::new();
    for key in keys {
        let expected = model.get(key).copied();
        let (packed, is_new) = Buckets::pack(buckets.packing(), *key, finder);
        let is_exact = matches!(buckets.packing(), Packing::Exact { .. });
        let code_of = |answer| if is_exact { answer } else { answer + 3 };
        let is_it = |answer: u16| is_exact || known[usize::from(answer)].key == *key;
        let found = buckets.find(packed, finder, is_it).filter(|_| !is_new);
        assert_eq!(found.map(code_of), expected, "{key:x?}");
        let place = buckets.fetch(packed, finder);
        // SAFETY: the place was just told.
        let (first, is_there) = unsafe { buckets.find_at(place, packed, finder) };
        if is_exact && is_there && !is_new {
            assert_eq!(Some(first), expected);
        }
        if expected.is_none() {
            let number = known.len() as u16;
            let new = Known { key: *key, number, code: number + 3 };
            buckets.add(new, finder, known.iter().copied());
            known.push(new);
            model.insert(*key, number + 3);
        }
    }
}

fn check_all(keys: &[Key]) {
    for best in Best::all() {
        with_finder!(best, finder => check(keys, false, finder));
        with_finder!(best, finder => check(keys, true, finder));
    }
}

#[test]
fn gathering_is_the_same_everywhere() {
    for best in Best::all() {
        for (key, varying) in [
            ([0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321], [0xff00, 0xf0f0]),
            ([u64::MAX, 5], [u64::MAX, 0]),
            ([7, u64::MAX], [0, u64::MAX]),
            ([7, 7], [0, 0]),
        ] {
            let gathered = with_finder!(best, finder => finder.gather(key, varying));
            assert_eq!(gathered, Portable.gather(key, varying));
        }
    }
}

#[test]
fn many_keys_are_found_while_the_table_grows() {
    let digits = |n: u32| key_of(format!("{:010}", n.wrapping_mul(48_271) % 30_011).as_bytes());
    check_all(&(0..40_000).map(digits).collect::<Vec<_>>());
    let wide = |n: u32| {
        [u64::from(n % 5_000).wrapping_mul(super::super::GOLDEN), u64::from(n % 5_000) << 8 | 7]
    };
    check_all(&(0..10_000).map(wide).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn what_a_map_finds_is_found(texts in prop::collection::vec("[ab0]{0,3}|[0-9]{4}-[0-9]{2}|[a-z]{14,15}", 0..300)) {
        let mut keys: Vec<Key> = texts.iter().map(|text| key_of(text.as_bytes())).collect();
        // Long fields come in between.
        keys.extend(texts.iter().map(|text| [text.len() as u64, IS_LONG | text.len() as u64]));
        keys.extend(keys.clone());
        check_all(&keys);
    }
}
