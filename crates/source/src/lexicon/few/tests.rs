#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::lexicon::finder::{Best, Finder, with_finder};
use crate::rows::Rows;

fn key_of(text: &[u8]) -> Key {
    let mut padded = text.to_vec();
    padded.resize(text.len() + 16, 0);
    crate::lexicon::key::key_of(&padded, 0, text.len())
}

/// Looks fields up in groups, from keys and from records, adds those that are new, and compares with a map.
fn check_with(texts: &[Vec<u8>], finder: impl Finder, numbers: bool) {
    let mut few = Few::new(numbers);
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
        for fields in [Fields::Made(&keys), records] {
            let mut found = [0; GROUP];
            let missing = finder.find_all(&few, fields, &mut Packed::default(), &mut found);
            for (i, field) in group.iter().enumerate() {
                let code = (missing >> i & 1 == 0).then_some(found[i]);
                assert_eq!(code, model.get(field.as_slice()).copied(), "{field:?}");
            }
        }
        for (field, key) in group.iter().zip(keys) {
            if model.contains_key(field.as_slice()) {
                continue;
            }
            assert_eq!(few.find(key), None, "{field:?}");
            let new = Known { key, number: known.len() as u16, code: known.len() as u16 };
            if !few.add(new, known.iter().copied()) {
                return;
            }
            known.push(new);
            model.insert(field, new.code);
        }
        for Known { key, code, .. } in &known {
            assert_eq!(few.find(*key), Some(*code), "{key:x?}");
        }
    }
}

fn check(texts: &[Vec<u8>]) {
    for numbers in [true, false] {
        for best in Best::all() {
            with_finder!(best, finder => check_with(texts, finder, numbers));
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
fn there_is_room_for_thousands() {
    for (width, step, is_numbered) in [(4, 1, true), (9, 30_011, false)] {
        let mut few = Few::new(true);
        let known: Vec<Known> = (0..PACKED_MAX as u16)
            .map(|n| format!("{:0width$}", u32::from(n) * step))
            .enumerate()
            .map(|(i, text)| Known {
                key: key_of(text.as_bytes()),
                number: i as u16,
                code: i as u16,
            })
            .collect();
        for (i, new) in known.iter().enumerate() {
            assert!(few.add(*new, known[..i].iter().copied()), "{i}");
        }
        assert_eq!(matches!(few.table, Table::Numbers(..)), is_numbered);
        assert!(known.iter().all(|known| few.find(known.key) == Some(known.code)));
    }
}

#[test]
fn what_has_no_turn_is_left() {
    let texts = [
        "aaaaaaaaaaaaaaa",
        "zyxwvutsrqponml",
        "ZYXWVUTSRQPONML",
        "012345678901234",
        "!\"#$%&'()*+,-./",
    ];
    let mut few = Few::new(true);
    let mut known: Vec<Known> = Vec::new();
    let added = texts.iter().all(|text| {
        let new = Known { key: key_of(text.as_bytes()), number: 0, code: 7 };
        let is_added = few.add(new, known.iter().copied());
        known.push(new);
        is_added
    });
    assert!(!added);
}

#[test]
fn texts_of_one_form_are_numbered() {
    let forms: [&dyn Fn(u32) -> String; 6] = [
        &|n| n.to_string(),
        &|n| format!("C-{n:05}"),
        &|n| format!("{}.{:02}", n / 100, n % 100),
        &|n| format!("{:04}-{:02}-{:02}", 1990 + n / 336 % 9, 1 + n / 28 % 12, 1 + n % 28),
        &|n| if n % 3 == 0 { String::new() } else { format!("{n}") },
        &|n| ((b'A' + (n % 26) as u8) as char).to_string(),
    ];
    for form in forms {
        let texts: Vec<Vec<u8>> = (0..6_000).map(|n| form(n * 7 % 10_007).into_bytes()).collect();
        check(&texts);
        let mut few = Few::new(true);
        let mut known: Vec<Known> = Vec::new();
        for text in texts {
            let key = key_of(&text);
            if few.find(key).is_none() {
                let code = known.len() as u16;
                let new = Known { key, number: code, code };
                assert!(few.add(new, known.iter().copied()));
                known.push(new);
            }
        }
        assert!(matches!(few.table, Table::Numbers(..)));
    }
}

/// Days from 1905 on, of so many years.
fn day(n: u32, years: u32) -> String {
    format!("{:04}-{:02}-{:02}", 1905 + n / 336 % years, 1 + n / 28 % 12, 1 + n % 28)
}

/// Adds texts, and says how often a table by numbers was made anew.
fn numbered(texts: impl Iterator<Item = String>) -> (Few, Vec<Known>, usize) {
    let (mut few, mut known, mut tables) = (Few::new(true), Vec::new(), 0);
    let mut codes_at = std::ptr::null();
    for text in texts {
        let key = key_of(text.as_bytes());
        if few.find(key).is_some() {
            continue;
        }
        let code = known.len() as u16;
        let new = Known { key, number: code, code };
        assert!(few.add(new, known.iter().copied()), "{text}");
        known.push(new);
        if let Table::Numbers(_, codes) = &few.table
            && codes.as_ptr() != codes_at
        {
            (codes_at, tables) = (codes.as_ptr(), tables + 1);
        }
    }
    (few, known, tables)
}

/// Symptom: days of more than thirteen years were looked up in buckets, as the digits of all centuries are many numbers.
#[test]
fn days_of_a_lifetime_are_numbered() {
    let days = || (0..30_000_u32).map(|n| day(n.wrapping_mul(7_919), 90));
    check(&days().take(5_000).map(String::into_bytes).collect::<Vec<_>>());
    let (few, known, _) = numbered(days());
    assert!(matches!(few.table, Table::Numbers(..)));
    assert!(known.iter().all(|known| few.find(known.key) == Some(known.code)));
    for other in ["1904-12-28", "1995-01-01", "0001-01-01", "9999-12-31", "1905-1-01", "1905-01-1x"]
    {
        assert_eq!(few.find(key_of(other.as_bytes())), None, "{other}");
    }
    assert_eq!(few.find(key_of(b"")), None);
}

#[test]
fn days_that_go_on_growing_seldom_need_another_table() {
    let orders: [&dyn Fn(u32) -> String; 2] = [&|n| day(n, 90), &|n| day(30_000 - n, 90)];
    for days in orders {
        let (few, known, tables) = numbered((0..30_000_u32).map(days));
        assert!(matches!(few.table, Table::Numbers(..)));
        assert!(known.iter().all(|known| few.find(known.key) == Some(known.code)));
        assert!(tables < 100, "{tables}");
    }
}

#[test]
fn a_number_far_away_ends_a_table_by_numbers_and_loses_nothing() {
    let mut texts: Vec<Vec<u8>> = (0..4_000).map(|n| day(n, 90).into_bytes()).collect();
    texts.extend([b"9999-12-31".to_vec(), Vec::new(), b"0001-01-01".to_vec()]);
    texts.extend((4_000..4_400).map(|n| day(n, 90).into_bytes()));
    check(&texts);
}

#[test]
fn an_empty_field_and_one_of_zeros_are_others() {
    check(&[vec![], vec![0], vec![0; 8], vec![0; 15], vec![0; 16], vec![0; 40], vec![]]);
}

#[test]
fn all_bytes_at_a_place_are_told_apart() {
    let one = (0..=255_u8).map(|byte| vec![byte]);
    let two = (0..=255_u8).map(|byte| vec![byte, b'7']);
    let three = (0..=255_u8).map(|byte| vec![b'5', byte, b'7']);
    check(&one.clone().chain(two.clone()).collect::<Vec<_>>());
    check(&two.clone().chain(one.clone()).chain(three.clone()).collect::<Vec<_>>());
    check(&three.chain(two).chain(one).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn keys_are_found_as_in_a_map(
        texts in prop::collection::vec("[0-9]{0,3}|[0-9]{0,9}|[ab]{0,15}|[a-c-]{14,18}|[/0-9]{0,2}", 0..300),
    ) {
        check(&texts.into_iter().map(String::into_bytes).collect::<Vec<_>>());
    }
}
