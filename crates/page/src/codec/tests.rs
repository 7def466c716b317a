//! Each codec against the values that it was given, and against bytes that were changed.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::runs::expand_runs;
use crate::{PageRules, SymbolEncoder, verify_page};
use coload_types::{DataType, Strings, Value, ordinal_from_f32, ordinal_from_f64};
use proptest::prelude::*;

/// Numbers that look random, and are the same each time.
fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

fn ints(values: &[i64], nulls: &[usize]) -> Plain {
    let mut plain = Plain { values: Values::Int(values.to_vec()), nulls: None };
    set_nulls(&mut plain, nulls);
    plain
}

fn wides(values: &[i128], nulls: &[usize]) -> Plain {
    let mut plain = Plain { values: Values::Wide(values.to_vec()), nulls: None };
    set_nulls(&mut plain, nulls);
    plain
}

/// Random but for version and variant, in the order of texts.
fn uuid_of_version_4(next: &mut impl FnMut() -> u64) -> i128 {
    let (high, low) = (next() & !0xf000 | 0x4000, next() & !(3 << 62) | 1 << 63);
    ((u128::from(high) << 64 | u128::from(low)) ^ 1 << 127) as i128
}

fn texts<S: AsRef<[u8]>>(strings: &[S], nulls: &[usize]) -> Plain {
    let mut values = Strings::default();
    for (row, string) in strings.iter().enumerate() {
        values.push(if nulls.contains(&row) { b"" } else { string.as_ref() });
    }
    let mut plain = Plain { values: Values::Bytes(values), nulls: None };
    set_nulls(&mut plain, nulls);
    plain
}

fn set_nulls(plain: &mut Plain, at: &[usize]) {
    let mut nulls = Bitmap::zeros(plain.len());
    at.iter().filter(|row| **row < plain.len()).for_each(|row| nulls.set(*row));
    plain.nulls = (nulls.count_ones() > 0).then_some(nulls);
}

/// Rows of a page, as scans read them.
fn rows(page: &Page) -> Result<Vec<Option<Value>>> {
    let view = page.view()?;
    let mut values = match view.physical() {
        Some(physical) => Values::empty(physical),
        None => panic!("no codes"),
    };
    view.append_values(&[], &mut values)?;
    let bits = view.null_bits().unwrap_or(&[]);
    let is_null = |row: usize| bits.get(row / 8).is_some_and(|b| b >> (row % 8) & 1 == 1);
    Ok((0..view.rows()).map(|row| (!is_null(row)).then(|| values.get(row))).collect())
}

fn expected(plain: &Plain) -> Vec<Option<Value>> {
    (0..plain.len()).map(|row| (!plain.is_null(row)).then(|| plain.values.get(row))).collect()
}

fn rules(plain: &Plain) -> PageRules<'static> {
    let data_type = match plain.values {
        Values::Int(_) => DataType::BigInt,
        Values::Wide(_) => DataType::Uuid,
        Values::Bytes(_) => DataType::Varchar(None),
    };
    PageRules { data_type, nullable: true, dictionary: None, decoders: &[] }
}

/// The page of a column in a codec, which is compared with the column.
fn encode_as(id: CodecId, plain: &Plain) -> Option<Page> {
    let ordinary = encode_plain(plain).unwrap();
    let bytes = id.codec().unwrap().encode(&ordinary.view().unwrap()).unwrap()?;
    let page = Page { codec: id, bytes, ..ordinary };
    assert_eq!(rows(&page).unwrap(), expected(plain));
    verify_page(&page, &rules(plain)).unwrap();
    Some(page)
}

/// The page that is chosen for a column, which is compared with it.
fn chosen(plain: &Plain) -> Page {
    let page = shrink_page(encode_plain(plain).unwrap()).unwrap();
    assert_eq!(rows(&expand_runs(&page).unwrap()).unwrap(), expected(plain));
    verify_page(&page, &rules(plain)).unwrap();
    assert_eq!(shrink_page(page.clone()).unwrap(), page, "a page is shrunk once");
    page
}

fn bits_of(page: &Page) -> f64 {
    page.bytes.len() as f64 * 8.0 / f64::from(page.rows)
}

#[test]
fn random_doubles_take_little_more_than_their_fractions() {
    let mut next = noise(1);
    let mut uniform = || (next() >> 11) as f64 / (1u64 << 53) as f64;
    let values: Vec<i64> = (0..20_000).map(|_| ordinal_from_f64(uniform())).collect();
    let page = chosen(&ints(&values, &[]));
    assert_eq!(page.codec, CodecId::HALVES);
    assert!(bits_of(&page) < 55.5, "{} bits", bits_of(&page));
    let signed: Vec<i64> = (0..20_000).map(|_| ordinal_from_f64((uniform() - 0.5) * 2e6)).collect();
    let page = chosen(&ints(&signed, &[3, 5_000]));
    assert_eq!(page.codec, CodecId::HALVES);
    assert!(bits_of(&page) < 57.5, "{} bits", bits_of(&page));
}

#[test]
fn floats_of_few_digits_take_the_bits_of_integers() {
    let mut next = noise(2);
    let cents: Vec<f64> = (0..20_000).map(|_| (next() % 1_000_000) as f64 / 100.0).collect();
    let doubles: Vec<i64> = cents.iter().map(|v| ordinal_from_f64(*v)).collect();
    let page = chosen(&ints(&doubles, &[]));
    assert_eq!(page.codec, CodecId::DECIMALS);
    assert!(bits_of(&page) < 21.0, "{} bits", bits_of(&page));
    let reals: Vec<i64> =
        (0..20_000).map(|_| ordinal_from_f32((next() % 100_000) as f32 / 10.0)).collect();
    let page = chosen(&ints(&reals, &[0, 7]));
    assert_eq!(page.codec, CodecId::DECIMALS);
    assert!(bits_of(&page) < 18.5, "{} bits", bits_of(&page));
}

#[test]
fn floats_keep_every_bit() {
    let odd = [
        f64::NAN.to_bits(),
        0x7ff0_0000_0000_0001,
        0xfff8_dead_beef_0001,
        (-0.0f64).to_bits(),
        f64::INFINITY.to_bits(),
        f64::NEG_INFINITY.to_bits(),
        1,
        f64::MIN_POSITIVE.to_bits(),
        f64::MAX.to_bits(),
        (0.1 + 0.2f64).to_bits(),
        1e300f64.to_bits(),
    ];
    let mut values: Vec<i64> = (0..3_000).map(|i| ordinal_from_f64(f64::from(i) * 0.25)).collect();
    for (at, bits) in odd.iter().enumerate() {
        values[at * 100 + 50] = ordinal_from_f64(f64::from_bits(*bits));
    }
    for id in [CodecId::DECIMALS, CodecId::HALVES, CodecId::DELTAS] {
        let nulls: &[usize] = if id == CodecId::DELTAS { &[] } else { &[0, 51, 2_999] };
        encode_as(id, &ints(&values, nulls)).unwrap();
    }
}

#[test]
fn counters_take_no_bits_a_row() {
    let values: Vec<i64> = (0..50_000).map(|i| 7_000_000_000 + i * 3).collect();
    let page = chosen(&ints(&values, &[]));
    assert_eq!(page.codec, CodecId::DELTAS);
    assert!(bits_of(&page) < 0.2, "{} bits", bits_of(&page));
    let edges = [i64::MIN, i64::MAX, 0, i64::MAX, i64::MIN, -1];
    encode_as(CodecId::DELTAS, &ints(&edges, &[])).unwrap();
}

#[test]
fn ids_uuids_and_hashes_take_the_bits_of_their_numbers() {
    let mut next = noise(3);
    let mut uuid = |capital: bool| {
        let (a, b) = (next(), next());
        let hex = format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            a & 0xffff,
            b & 0xfff,
            0x8000 | b >> 50,
            b & 0xffff_ffff_ffff
        );
        if capital { hex.to_uppercase() } else { hex }
    };
    for capital in [false, true] {
        let strings: Vec<String> = (0..5_000).map(|_| uuid(capital)).collect();
        let page = chosen(&texts(&strings, &[17, 2_000]));
        assert_eq!(page.codec, CodecId::TEMPLATES);
        assert!(bits_of(&page) < 130.0, "{} bits", bits_of(&page));
    }
    let hashes: Vec<String> =
        (0..5_000).map(|_| (0..4).map(|_| format!("{:016x}", next())).collect()).collect();
    let page = chosen(&texts(&hashes, &[]));
    assert_eq!((page.codec, bits_of(&page) < 258.0), (CodecId::TEMPLATES, true));
    let ids: Vec<String> = (0..5_000)
        .map(|_| format!("INV-20{:02}-{:09}", 20 + next() % 6, next() % 1_000_000_000))
        .collect();
    let page = chosen(&texts(&ids, &[]));
    assert_eq!(page.codec, CodecId::TEMPLATES);
    assert!(bits_of(&page) < 35.0, "{} bits", bits_of(&page));
    let mails: Vec<String> =
        (0..5_000).map(|_| format!("user{}@example.com", next() % 1_000_000)).collect();
    let page = chosen(&texts(&mails, &[1]));
    assert_eq!(page.codec, CodecId::TEMPLATES);
    assert!(bits_of(&page) < 22.0, "{} bits", bits_of(&page));
}

#[test]
fn strings_that_are_not_of_the_template_stand_as_they_are() {
    let mut strings: Vec<String> =
        (0..4_000).map(|i| format!("AB-{:06}", i * 7_919 % 1_000_000)).collect();
    for (at, other) in ["", "AB-12345", "AB-1234567", "AB-12345x", "ab-123456", "ß", "AB-00 001"]
        .iter()
        .enumerate()
    {
        strings[at * 400 + 1_023] = (*other).to_owned();
    }
    let page = chosen(&texts(&strings, &[1_024, 3_999]));
    assert_eq!(page.codec, CodecId::TEMPLATES);
    let mut numbers: Vec<String> = (0..4_000).map(|i| format!("n{}", i * i)).collect();
    for (at, other) in
        ["n", "n007", "n-1", "m5", "n999999999999999999", "n9999999999999999999"].iter().enumerate()
    {
        numbers[at * 500] = (*other).to_owned();
    }
    encode_as(CodecId::TEMPLATES, &texts(&numbers, &[])).unwrap();
}

/// Texts of words of a list, in which the same words return after a while.
fn sentences(count: usize, words: usize) -> Vec<String> {
    let mut next = noise(5);
    let list: Vec<String> =
        (0..2_000).map(|_| format!("{:x}", next() >> (24 + next() % 30))).collect();
    let mut sentence = || {
        (0..words)
            .map(|_| list[next() as usize % list.len()].as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    (0..count).map(|_| sentence()).collect()
}

#[test]
fn long_texts_are_compressed_where_symbols_help_less() {
    let strings = sentences(3_000, 30);
    let plain = texts(&strings, &[5]);
    let page = encode_as(CodecId::ZSTANDARD, &plain).unwrap();
    assert!(page.bytes.len() * 2 < strings.concat().len());
    let encoder = SymbolEncoder::train(strings.len(), |i| strings[i].as_bytes());
    assert!(
        encoder
            .encode_strings(match &plain.values {
                Values::Bytes(strings) => strings,
                _ => panic!("text"),
            })
            .is_none(),
        "symbols are for others"
    );
    assert_eq!(chosen(&plain).codec, CodecId::ZSTANDARD);
    // What does not become shorter is not compressed.
    let mut next = noise(6);
    let noise: Vec<Vec<u8>> =
        (0..40).map(|_| (0..400).map(|_| 1 + next() as u8 % 127).collect()).collect();
    encode_as(CodecId::ZSTANDARD, &texts(&noise, &[])).unwrap();
}

#[test]
fn runs_go_around_other_codecs() {
    let mut next = noise(7);
    let mut strings = Vec::new();
    for _ in 0..2_000 {
        let id = format!("{:016x}{:016x}", next(), next());
        strings.extend(std::iter::repeat_n(id, 1 + next() as usize % 5));
    }
    let page = chosen(&texts(&strings, &[]));
    assert_eq!((page.codec, page.runs.is_some()), (CodecId::TEMPLATES, true));
    let doubles: Vec<i64> =
        (0..20_000).map(|i| ordinal_from_f64(f64::from(i / 7 * 131 % 9_999) / 100.0)).collect();
    let page = chosen(&ints(&doubles, &[]));
    assert_eq!((page.codec, page.runs.is_some()), (CodecId::DECIMALS, true));
}

#[test]
fn pages_of_one_codec_only_are_left_alone() {
    let mut next = noise(8);
    let values: Vec<i64> = (0..5_000).map(|_| (next() % 1_000) as i64).collect();
    assert_eq!(chosen(&ints(&values, &[])).codec, CodecId::FRAMES);
    let values: Vec<i64> = (0..5_000).map(|_| (next() >> 2) as i64).collect();
    assert_eq!(chosen(&ints(&values, &[])).codec, CodecId::FRAMES);
    assert_eq!(chosen(&ints(&[5; 3], &[0, 1, 2])).codec, CodecId::FRAMES);
    assert_eq!(chosen(&texts(&["a", "bc", ""], &[2])).codec, CodecId::TEXT);
    assert_eq!(chosen(&texts::<&str>(&[], &[])).codec, CodecId::TEXT);
}

#[test]
fn an_unknown_codec_is_named() {
    let text = CodecId(77).codec().map(|codec| codec.name()).unwrap_err().to_string();
    assert!(text.contains("77") && text.contains("newer"), "{text}");
}

#[test]
fn whole_seconds_take_no_bits_for_microseconds() {
    let mut next = noise(12);
    let start = 1_600_000_000_000_000;
    let mut seconds = |step: i64| -> Vec<i64> {
        (0..20_000).map(|_| start + (next() % 50_000_000) as i64 * step).collect()
    };
    let page = chosen(&ints(&seconds(1_000_000), &[]));
    assert_eq!(page.codec, CodecId::MULTIPLES);
    assert!(bits_of(&page) < 26.2, "{} bits", bits_of(&page));
    let page = chosen(&ints(&seconds(-1_000), &[0, 9_000]));
    assert_eq!(page.codec, CodecId::MULTIPLES);
    // One that is no multiple, where a sample does not look.
    let mut values = seconds(1_000_000);
    values[600] += 1;
    assert_eq!(chosen(&ints(&values, &[])).codec, CodecId::FRAMES);
    // It is no value where the row is NULL.
    assert_eq!(chosen(&ints(&values, &[600])).codec, CodecId::MULTIPLES);
    // From one end to the other.
    let far = [i64::MIN, i64::MAX, -1];
    assert_eq!(encode_as(CodecId::MULTIPLES, &ints(&far, &[])), None);
    let far = [i64::MIN, i64::MAX - 1, 0, i64::MIN + 2];
    assert!(encode_as(CodecId::MULTIPLES, &ints(&far, &[])).is_some());
    for alike in [vec![7; 3_000], vec![i64::MIN], vec![]] {
        assert_eq!(encode_as(CodecId::MULTIPLES, &ints(&alike, &[])), None);
    }
}

#[test]
fn bits_that_all_wide_numbers_share_are_kept_once() {
    let mut next = noise(13);
    let uuids: Vec<i128> = (0..20_000).map(|_| uuid_of_version_4(&mut next)).collect();
    for nulls in [&[][..], &[0, 1, 1_500]] {
        let page = chosen(&wides(&uuids, nulls));
        assert_eq!(page.codec, CodecId::MASKED);
        assert!(bits_of(&page) < 123.2, "{} bits", bits_of(&page));
    }
    // One of another version, where a sample does not look.
    let mut others = uuids.clone();
    others[600] ^= 1 << 76;
    assert!(bits_of(&chosen(&wides(&others, &[]))) < 124.2);
    // Blocks whose bits are the same within each.
    let blocks: Vec<i128> = (0..4_000).map(|i| if i < 1_024 { 5 } else { -5 }).collect();
    assert!(encode_as(CodecId::MASKED, &wides(&blocks, &[])).is_some());
    // Runs without end.
    let odd: Vec<i128> = (0..2_000).map(|i| if i % 2 == 0 { 0 } else { 0x5555 << 60 }).collect();
    assert!(encode_as(CodecId::MASKED, &wides(&odd, &[])).is_some());
    let odd: Vec<i128> = (0..2_000).map(|i| if i % 2 == 0 { 0 } else { 0x55555 }).collect();
    assert_eq!(encode_as(CodecId::MASKED, &wides(&odd, &[])), None);
    assert!(encode_as(CodecId::MASKED, &wides(&[i128::MIN, i128::MAX], &[])).is_some());
}

/// A page in each codec that is chosen by estimate.
fn pages() -> Vec<(Plain, Page)> {
    let mut next = noise(9);
    let count = 2_500;
    let cents: Vec<i64> = (0..count)
        .map(|i| match i % 97 {
            0 => ordinal_from_f64(f64::NAN),
            _ => ordinal_from_f64((next() % 10_000) as f64 / 100.0),
        })
        .collect();
    let uniform: Vec<i64> = (0..count).map(|_| ordinal_from_f64(next() as f64)).collect();
    let seconds: Vec<i64> = (0..count).map(|_| (next() % 9_999) as i64 * 1_000_000).collect();
    let uuids: Vec<i128> = (0..count).map(|_| uuid_of_version_4(&mut next)).collect();
    let steps: Vec<i64> = (0..count as i64).map(|i| i * 5 + i % 3).collect();
    let mut ids: Vec<String> = (0..count).map(|_| format!("k{:08x}", next() as u32)).collect();
    ids[77] = "other".into();
    let numbers: Vec<String> = (0..count).map(|i| format!("n{i}z")).collect();
    [
        (CodecId::DECIMALS, ints(&cents, &[4, 2_000])),
        (CodecId::HALVES, ints(&uniform, &[4, 2_000])),
        (CodecId::DELTAS, ints(&steps, &[])),
        (CodecId::MULTIPLES, ints(&seconds, &[4, 2_000])),
        (CodecId::MASKED, wides(&uuids, &[4, 2_000])),
        (CodecId::TEMPLATES, texts(&ids, &[4, 2_000])),
        (CodecId::TEMPLATES, texts(&numbers, &[])),
        (CodecId::ZSTANDARD, texts(&sentences(1_200, 12), &[4, 1_000])),
    ]
    .into_iter()
    .map(|(id, plain)| {
        let page = encode_as(id, &plain).unwrap();
        (plain, page)
    })
    .collect()
}

#[test]
fn changed_bytes_are_no_panic() {
    let mut next = noise(10);
    for (plain, page) in pages() {
        let rules = rules(&plain);
        for round in 0..250 {
            let mut bytes = page.bytes.clone();
            // Heads are few bytes, and say the most.
            let reach = if round % 2 == 0 { bytes.len().min(400) } else { bytes.len() };
            for _ in 0..1 + next() % 3 {
                let at = next() as usize % reach;
                bytes[at] = match next() % 3 {
                    0 => 0xff,
                    1 => 0,
                    _ => next() as u8,
                };
            }
            let changed = Page { bytes, ..page.clone() };
            let _ = verify_page(&changed, &rules);
            let _ = rows(&changed);
        }
        for cut in (0..page.bytes.len()).step_by(page.bytes.len() / 200 + 1) {
            let cut = Page { bytes: page.bytes[..cut].to_vec(), ..page.clone() };
            assert!(verify_page(&cut, &rules).is_err(), "{:?} cut", page.codec);
        }
        let longer = Page { bytes: [&page.bytes[..], &[0]].concat(), ..page.clone() };
        assert!(verify_page(&longer, &rules).is_err(), "{:?} with a byte more", page.codec);
    }
}

#[test]
fn any_bytes_are_no_panic() {
    let mut next = noise(11);
    for id in 3..11u8 {
        for length in 0..600usize {
            let codec = CodecId(id);
            let detail = match codec.codec().unwrap().content() {
                Content::Int => crate::PageDetail::Int { min: 0, max: 9 },
                Content::Wide => crate::PageDetail::Wide { min: 0, max: 9 },
                _ => crate::PageDetail::Text { symbols: 0 },
            };
            let small = next().is_multiple_of(2);
            let bytes: Vec<u8> =
                (0..length).map(|_| if small { next() as u8 % 4 } else { next() as u8 }).collect();
            let (rows_of, nulls) = ((next() % 1_100) as u32, 0);
            let page = Page { codec, detail, rows: rows_of, nulls, bytes, runs: None };
            let _ = rows(&page);
        }
    }
}

proptest! {
    #[test]
    fn numbers_come_back_from_every_codec(
        values in prop::collection::vec(prop_oneof![-3i64..3, Just(i64::MIN), Just(i64::MAX), any::<i64>()], 1..2_100),
        nulls in prop::collection::vec(0usize..2_100, 0..3),
    ) {
        for id in [CodecId::DELTAS, CodecId::DECIMALS, CodecId::HALVES, CodecId::MULTIPLES] {
            encode_as(id, &ints(&values, &nulls));
        }
        chosen(&ints(&values, &nulls));
    }

    #[test]
    fn multiples_come_back(
        values in prop::collection::vec(-300i64..300, 1..2_100),
        step in prop_oneof![2i64..9, Just(1 << 54), Just(1_000_000)],
        first in prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>()],
        nulls in prop::collection::vec(0usize..2_100, 0..3),
    ) {
        let value = |n: &i64| n.checked_mul(step).and_then(|n| first.checked_add(n));
        let values: Vec<i64> = values.iter().filter_map(value).collect();
        encode_as(CodecId::MULTIPLES, &ints(&values, &nulls));
        chosen(&ints(&values, &nulls));
    }

    #[test]
    fn wide_numbers_come_back_from_every_codec(
        values in prop::collection::vec(any::<i128>(), 1..2_100),
        mask in prop_oneof![Just(u128::MAX), Just(!(0xf << 76 | 3 << 62)), Just(0), any::<u128>(), any::<u64>().prop_map(u128::from)],
        nulls in prop::collection::vec(0usize..2_100, 0..3),
    ) {
        let values: Vec<i128> = values.iter().map(|v| (*v as u128 & mask) as i128).collect();
        encode_as(CodecId::MASKED, &wides(&values, &nulls));
        chosen(&wides(&values, &nulls));
    }

    #[test]
    fn any_float_comes_back(
        values in prop::collection::vec(prop_oneof![any::<f64>(), (-100i32..100).prop_map(|v| f64::from(v) / 10.0)], 1..300),
        reals in prop::collection::vec(prop_oneof![any::<f32>(), (-100i16..100).prop_map(|v| f32::from(v) / 10.0)], 1..300),
    ) {
        let doubles: Vec<i64> = values.iter().map(|v| ordinal_from_f64(*v)).collect();
        encode_as(CodecId::DECIMALS, &ints(&doubles, &[]));
        encode_as(CodecId::HALVES, &ints(&doubles, &[0]));
        let reals: Vec<i64> = reals.iter().map(|v| ordinal_from_f32(*v)).collect();
        encode_as(CodecId::DECIMALS, &ints(&reals, &[]));
        encode_as(CodecId::HALVES, &ints(&reals, &[]));
        chosen(&ints(&doubles, &[]));
        chosen(&ints(&reals, &[]));
    }

    #[test]
    fn strings_come_back_from_every_codec(
        strings in prop::collection::vec("(a|b)?[0-9]{0,3}(-[0-9a-c]{2})?|ab0[0-9]|[0-9]{19,21}", 1..80),
        nulls in prop::collection::vec(0usize..80, 0..3),
    ) {
        for id in [CodecId::TEMPLATES, CodecId::ZSTANDARD] {
            encode_as(id, &texts(&strings, &nulls));
        }
        chosen(&texts(&strings, &nulls));
    }
}
