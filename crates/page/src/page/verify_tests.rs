#![allow(clippy::unwrap_used)]
use coload_types::{Bitmap, Plain, Value};
use proptest::prelude::*;

use super::*;
use crate::codec::{encode_codes_u32, encode_int, encode_plain, encode_text};
use crate::runs::shrink_to_runs;
use crate::{EncodedStrings, SOURCE_PADDING, SymbolEncoder};

fn rules(data_type: DataType, dictionary: Option<u32>) -> PageRules<'static> {
    PageRules { data_type, nullable: true, dictionary, decoders: &[] }
}

fn nulls_at(rows: usize, at: &[usize]) -> Bitmap {
    let mut nulls = Bitmap::zeros(rows);
    at.iter().for_each(|i| nulls.set(*i));
    nulls
}

#[test]
fn pages_of_our_own_are_accepted() {
    let ints: Vec<i64> = (0..3000).map(|i| i * 7 % 1000).collect();
    let nulls = nulls_at(3000, &[0, 9, 2999]);
    for nulls in [None, Some(&nulls)] {
        verify_page(&encode_int(&ints, nulls), &rules(DataType::Integer, None)).unwrap();
    }
    let codes: Vec<u32> = (0..2500).map(|i| i / 100).collect();
    let page = encode_codes_u32(&codes, 24);
    verify_page(&page, &rules(DataType::Date, Some(24))).unwrap();
    let runs = shrink_to_runs(page).unwrap();
    assert!(runs.runs.is_some());
    verify_page(&runs, &rules(DataType::Date, Some(24))).unwrap();
}

/// A page of strings as symbols, and what decodes it.
fn symbols_page(strings: &[String], nulls: Option<&Bitmap>) -> (Page, SymbolDecoder) {
    let encoder = SymbolEncoder::train_symbols(strings.len(), |i| strings[i].as_bytes());
    let (mut source, mut starts, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    for s in strings {
        starts.push(source.len() as u32);
        lengths.push(s.len() as u32);
        source.extend_from_slice(s.as_bytes());
    }
    source.extend([0; SOURCE_PADDING]);
    let mut encoded = EncodedStrings::default();
    encoder.encode(&source, &starts, &lengths, &mut encoded);
    let page = encode_text(&encoded.bytes, &encoded.lengths, nulls, 1).unwrap();
    (page, SymbolDecoder::open(&encoder.table()).unwrap())
}

#[test]
fn text_is_accepted_through_symbols_and_without_them() {
    let strings: Vec<String> = (0..1500).map(|i| format!("carefully {} ü{i}", i % 7)).collect();
    let (page, decoder) = symbols_page(&strings, None);
    let decoders = [decoder];
    let mut plain = Plain::empty(Physical::Bytes);
    strings.iter().for_each(|s| plain.push(Some(&Value::Bytes(s.as_bytes().into()))));
    let text = PageRules { decoders: &decoders, ..rules(DataType::Varchar(Some(20)), None) };
    verify_page(&page, &text).unwrap();
    verify_page(&encode_plain(&plain).unwrap(), &rules(DataType::Varchar(None), None)).unwrap();
    assert!(verify_page(&page, &rules(DataType::Varchar(None), None)).is_err(), "no table");
    let short = PageRules { decoders: &decoders, ..rules(DataType::Varchar(Some(9)), None) };
    assert!(verify_page(&page, &short).is_err(), "too long for the type");
}

#[test]
fn the_one_string_that_is_wrong_is_found_wherever_it_stands() {
    // In and behind blocks and groups of strings that are checked at once.
    for at in [0, 1, 63, 64, 1000, 1023, 1024, 1099] {
        for (wrong, why) in [("carefully longer", "long"), ("care\0fully", "NUL")] {
            let mut strings: Vec<String> =
                (0..1100).map(|i| format!("carefully {}", i % 7)).collect();
            let check = |strings: &[String], nulls: Option<&Bitmap>| {
                let (page, decoder) = symbols_page(strings, nulls);
                let decoders = [decoder];
                let rules =
                    PageRules { decoders: &decoders, ..rules(DataType::Varchar(Some(11)), None) };
                verify_page(&page, &rules)
            };
            check(&strings, None).unwrap();
            assert!(check(&strings, Some(&nulls_at(1100, &[at]))).is_err(), "text in NULL {at}");
            strings[at] = wrong.to_owned();
            assert!(check(&strings, None).is_err(), "{why} at {at}");
            strings[at] = String::new();
            check(&strings, Some(&nulls_at(1100, &[at]))).unwrap();
        }
    }
}

#[test]
fn an_escape_at_the_end_of_a_string_hides_nothing_of_the_next() {
    // All symbols, b'a' too, are a byte that is no UTF-8.
    let table = [&[98][..], &[1, 0xff].repeat(98)].concat();
    let decoders = [SymbolDecoder::open(&table).unwrap()];
    let rules = PageRules { decoders: &decoders, ..rules(DataType::Varchar(None), None) };
    let check = |bytes: &[u8], lengths: &[u32]| {
        verify_page(&encode_text(bytes, lengths, None, 1).unwrap(), &rules)
    };
    check(&[255, b'a', 255, b'b'], &[2, 2]).unwrap();
    check(&[255, b'a', 255], &[2, 1]).unwrap();
    assert!(check(&[255, b'a', b'a'], &[2, 1]).is_err());
    assert!(check(&[255, b'a', 255, b'a'], &[3, 1]).is_err());
}

#[test]
fn lies_are_refused() {
    let codes = encode_codes_u32(&[0, 1, 5, 3], 5);
    let check = |page: &Page, dictionary| verify_page(page, &rules(DataType::BigInt, dictionary));
    check(&codes, Some(5)).unwrap();
    assert!(check(&codes, Some(4)).is_err(), "a code out of the dictionary");
    assert!(check(&codes, None).is_err(), "no dictionary");
    let strict = PageRules { nullable: false, ..rules(DataType::BigInt, Some(5)) };
    assert!(verify_page(&codes, &strict).is_err(), "NULL where there must be none");
    for change in [
        |p: &mut Page| p.nulls = 0,
        |p: &mut Page| p.nulls = 2,
        |p: &mut Page| p.rows = 5000,
        |p: &mut Page| p.detail = PageDetail::Codes { base: 0, max: 4, width: 3 },
        |p: &mut Page| p.detail = PageDetail::Codes { base: 1, max: 3, width: 3 },
        |p: &mut Page| p.detail = PageDetail::Codes { base: u32::MAX, max: 3, width: 3 },
        |p: &mut Page| p.detail = PageDetail::Int { min: 0, max: 3 },
        |p: &mut Page| p.bytes.truncate(1),
    ] {
        let mut page = codes.clone();
        change(&mut page);
        assert!(check(&page, Some(5)).is_err(), "{page:?}");
    }
    let ints = encode_int(&[5, -3, 40_000], None);
    check(&ints, None).unwrap();
    assert!(verify_page(&ints, &rules(DataType::SmallInt, None)).is_err(), "out of the type");
    assert!(verify_page(&ints, &rules(DataType::Varchar(None), None)).is_err());
    let mut page = ints;
    page.detail = PageDetail::Int { min: -3, max: 50_000 };
    assert!(check(&page, None).is_err(), "another maximum");
}

proptest! {
    #[test]
    fn the_range_of_codes_is_that_of_those_that_are_not_null(
        codes in proptest::collection::vec(0u32..6, 1..3000),
        null in 3u32..8,
    ) {
        let seen = see_codes(&codes, null);
        prop_assert_eq!(seen.2, codes.iter().copied().max().unwrap());
        if seen.2 <= null {
            let high = codes.iter().copied().filter(|c| *c != null).max().unwrap_or(0);
            let nulls = codes.iter().filter(|c| **c == null).count();
            prop_assert_eq!((seen.0, seen.1, seen.3), (codes.iter().copied().min().unwrap(), high, nulls));
        }
    }

    #[test]
    fn text_of_symbols_is_good_if_each_decoded_string_is(
        strings in proptest::collection::vec(
            proptest::collection::vec(prop_oneof![3 => 0u8..5, 1 => Just(255u8)], 0..4), 1..12),
        symbols in proptest::collection::vec(prop_oneof![9 => Just("ab"), 1 => Just("\u{fc}"), 1 => Just("\0")], 5),
        limit in 3u32..8,
    ) {
        let mut table = vec![5];
        symbols.iter().for_each(|s| table.extend([&[s.len() as u8], s.as_bytes()].concat()));
        let decoders = [SymbolDecoder::open(&table).unwrap()];
        let rules = PageRules { decoders: &decoders, ..rules(DataType::Varchar(Some(limit)), None) };
        let lengths: Vec<u32> = strings.iter().map(|s| s.len() as u32).collect();
        let page = encode_text(&strings.concat(), &lengths, None, 1).unwrap();
        let good = strings.iter().all(|codes| {
            let mut string = Vec::new();
            decoders[0].decode(codes, &mut string);
            check_string(&string, rules.data_type).is_ok()
        });
        prop_assert_eq!(verify_page(&page, &rules).is_ok(), good);
    }

    #[test]
    fn changed_bytes_never_panic(
        values in proptest::collection::vec(0i64..5, 1..2000),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in 0usize..4,
    ) {
        let codes: Vec<u32> = values.iter().map(|v| *v as u32).collect();
        let pages = [
            encode_int(&values, None),
            shrink_to_runs(encode_int(&values, None)).unwrap(),
            shrink_to_runs(encode_codes_u32(&codes, 5)).unwrap(),
        ];
        for mut page in pages {
            if page.bytes.is_empty() { continue; }
            let index = at.index(page.bytes.len());
            page.bytes[index] = byte;
            let length = page.bytes.len().saturating_sub(cut);
            page.bytes.truncate(length);
            let _ = verify_page(&page, &rules(DataType::BigInt, Some(5)));
        }
    }
}
