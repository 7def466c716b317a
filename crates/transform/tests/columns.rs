//! The compress and merge steps against a model: rows in are rows out, in the same bytes, whoever saw
//! which fragment.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use coload_page::bitpack::BLOCK;
use coload_page::runs::expand_runs;
use coload_page::{PageView, SymbolDecoder, encode_plain};
use coload_transform::{
    DictionaryLimit, DictionaryPolicy, FragmentColumn, NULL_CODE, PartitionColumn,
    ProvisionalCodes, TemporaryDictionary, compress_column, merge_column, restore_codes,
    sort_temporaries,
};
use coload_types::{Code, Physical, Plain, Value, Values};
use proptest::prelude::*;

type Rows = Vec<Option<Value>>;

/// A value of a tiny space, in which the order of numbers is not that of their first bytes.
fn value(physical: Physical, number: u16) -> Value {
    match physical {
        Physical::Int => Value::Int(i64::from(number) * 1_000_003 - 9_000_000),
        Physical::Wide => Value::Wide((i128::from(number) - 3) << (number % 90)),
        Physical::Bytes => Value::Bytes(match number % 4 {
            0 => Box::default(),
            1 => [0, number as u8].into(),
            2 => format!("text {number}").into_bytes().into(),
            _ => vec![number as u8; number as usize % 40].into(),
        }),
    }
}

fn rows(physical: Physical, numbers: &[Option<u16>]) -> Rows {
    numbers.iter().map(|n| n.map(|n| value(physical, n))).collect()
}

fn plain(physical: Physical, rows: &Rows) -> Plain {
    let mut plain = Plain::empty(physical);
    rows.iter().for_each(|r| plain.push(r.as_ref()));
    plain
}

/// Who parsed a fragment, and how.
#[derive(Debug, Clone, Copy)]
enum Seen {
    /// As codes, by this worker.
    Codes(usize),
    /// As values.
    Plain,
    /// As a page.
    Page,
}

/// A partition's column: fragments, parsed as `seen` says by workers with `stale` more values.
fn compress(
    physical: Physical,
    fragments: &[Rows],
    seen: &[Seen],
    stale: &[u16],
    policy: DictionaryPolicy,
) -> PartitionColumn {
    let workers =
        1 + seen.iter().map(|s| if let Seen::Codes(w) = s { *w } else { 0 }).max().unwrap_or(0);
    let mut temporaries = vec![TemporaryDictionary::empty(physical); workers];
    for temporary in &mut temporaries {
        temporary.stale = !stale.is_empty();
        for number in stale {
            code_of(temporary, &value(physical, *number));
        }
    }
    let mut columns: Vec<FragmentColumn> = fragments
        .iter()
        .zip(seen)
        .map(|(rows, seen)| match seen {
            Seen::Plain => FragmentColumn::Plain(plain(physical, rows)),
            Seen::Page => FragmentColumn::Page(encode_plain(&plain(physical, rows)).unwrap()),
            Seen::Codes(worker) => {
                let temporary = &mut temporaries[*worker];
                let code =
                    |row: &Option<Value>| row.as_ref().map_or(NULL_CODE, |v| code_of(temporary, v));
                let codes: Vec<u16> = rows.iter().map(code).collect();
                let nulls = codes.contains(&NULL_CODE);
                let codes = ProvisionalCodes::new(&codes, temporary.values.len());
                FragmentColumn::Codes { codes, dictionary: *worker as u32, nulls }
            }
        })
        .collect();
    restore_codes(&mut columns, &mut temporaries, physical, DictionaryLimit::default()).unwrap();
    let sorted =
        sort_temporaries(&columns, &temporaries, physical, DictionaryLimit::default()).unwrap();
    compress_column(columns, &temporaries, sorted, None, physical, policy).unwrap()
}

/// The code of a value in a temporary dictionary, in order of first appearance.
fn code_of(temporary: &mut TemporaryDictionary, value: &Value) -> u16 {
    let known = (0..temporary.values.len()).find(|i| temporary.values.get(*i) == *value);
    known.unwrap_or_else(|| {
        temporary.values.push(value);
        temporary.values.len() - 1
    }) as u16
}

/// The rows of a column, page by page.
fn decode(column: &PartitionColumn, physical: Physical) -> Vec<Rows> {
    let decoders: Vec<SymbolDecoder> =
        column.symbols.iter().map(|s| SymbolDecoder::open(s).unwrap()).collect();
    column
        .pages
        .iter()
        .map(|page| {
            let page = expand_runs(page).unwrap();
            let view = page.view().unwrap();
            let rows: Rows = match &view {
                PageView::Codes(codes) => {
                    let dictionary = column.dictionary.as_ref().unwrap();
                    let mut block = [0; BLOCK];
                    let mut rows = Vec::new();
                    for b in 0..codes.rows.div_ceil(BLOCK) {
                        let count = codes.unpack(b, &mut block);
                        assert!(block[..count].iter().all(|c| *c as usize <= dictionary.len()));
                        rows.extend(block[..count].iter().map(|c| dictionary.get(Code(*c))));
                    }
                    rows
                }
                view => {
                    let mut values = Values::empty(physical);
                    view.append_values(&decoders, &mut values).unwrap();
                    let bits = view.null_bits();
                    let is_null = |i: usize| bits.is_some_and(|b| b[i / 8] >> (i % 8) & 1 == 1);
                    let row = |i| (!is_null(i)).then(|| values.get(i));
                    (0..view.rows()).map(row).collect()
                }
            };
            assert_eq!(page.rows as usize, rows.len());
            assert_eq!(page.nulls as usize, rows.iter().filter(|r| r.is_none()).count());
            rows
        })
        .collect()
}

/// Checks what a column says of itself: a dictionary of exactly the values of its coded rows.
fn check(column: &PartitionColumn, fragments: &[Rows], physical: Physical) {
    let decoded = decode(column, physical);
    assert_eq!(decoded, fragments);
    let is_coded = |p: &coload_page::Page| p.detail.is_codes();
    let coded: BTreeSet<&Value> = column
        .pages
        .iter()
        .zip(&decoded)
        .filter(|(p, _)| is_coded(p))
        .flat_map(|(_, rows)| rows.iter().flatten())
        .collect();
    match &column.dictionary {
        None => assert!(!column.pages.iter().any(is_coded)),
        Some(dictionary) => {
            let values: Vec<Value> =
                (0..dictionary.len()).map(|i| dictionary.values().get(i)).collect();
            assert_eq!(values.iter().collect::<Vec<_>>(), coded.into_iter().collect::<Vec<_>>());
        }
    }
}

fn physicals() -> impl Strategy<Value = Physical> {
    prop_oneof![Just(Physical::Int), Just(Physical::Wide), Just(Physical::Bytes)]
}

fn policies() -> impl Strategy<Value = DictionaryPolicy> {
    prop_oneof![Just(DictionaryPolicy::Auto), Just(DictionaryPolicy::Always)]
}

/// Fragments of numbers below `limit`, few or more than a dictionary is always kept for.
fn fragments() -> impl Strategy<Value = Vec<Vec<Option<u16>>>> {
    prop_oneof![Just(3u16), Just(40), Just(2_000)].prop_flat_map(|limit| {
        let rows = prop_oneof![Just(1..20usize), Just(1_000..1_300)];
        let fragment = rows.prop_flat_map(move |r| {
            prop::collection::vec(prop::option::weighted(0.9, 0..limit), r)
        });
        prop::collection::vec(fragment, 1..5)
    })
}

fn who() -> impl Strategy<Value = Vec<Seen>> {
    let seen = prop_oneof![
        4 => (0usize..3).prop_map(Seen::Codes),
        1 => Just(Seen::Plain),
        1 => Just(Seen::Page),
    ];
    prop::collection::vec(seen, 5)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_compressed_column_gives_its_rows_back(
        physical in physicals(),
        policy in policies(),
        fragments in fragments(),
        seen in who(),
        stale in prop::collection::vec(0u16..3_000, 0..3),
    ) {
        let rows: Vec<Rows> = fragments.iter().map(|f| rows(physical, f)).collect();
        check(&compress(physical, &rows, &seen, &stale, policy), &rows, physical);
    }

    #[test]
    fn a_compressed_column_does_not_tell_who_saw_what(
        physical in physicals(),
        policy in policies(),
        fragments in fragments(),
        workers in prop::collection::vec(0usize..4, 5),
        stale in prop::collection::vec(0u16..3_000, 0..3),
    ) {
        let rows: Vec<Rows> = fragments.iter().map(|f| rows(physical, f)).collect();
        let many: Vec<Seen> = workers.iter().map(|w| Seen::Codes(*w)).collect();
        let one = compress(physical, &rows, &[Seen::Codes(0); 5], &[], policy);
        prop_assert_eq!(&compress(physical, &rows, &many, &stale, policy), &one);
        // Nor whether a worker gave up codes for values that no row has.
        let mut left = many;
        left[0] = Seen::Plain;
        prop_assert!(compress(physical, &rows, &left, &[2_999], policy) == one);
    }

    #[test]
    fn merged_partitions_hold_their_rows(
        physical in physicals(),
        partitions in prop::collection::vec((policies(), fragments(), who()), 1..5),
    ) {
        let all: Vec<Vec<Rows>> = partitions
            .iter()
            .map(|(_, f, _)| f.iter().map(|f| rows(physical, f)).collect())
            .collect();
        let columns = || -> Vec<PartitionColumn> {
            let parts = partitions.iter().zip(&all);
            parts.map(|((policy, _, seen), rows)| compress(physical, rows, seen, &[], *policy)).collect()
        };
        let merged = merge_column(columns(), physical).unwrap();
        check(&merged, &all.concat(), physical);
        prop_assert!(merge_column(columns(), physical).unwrap() == merged);
    }
}

/// Codes of rows, the runs they are, and their first rows.
fn runs(lengths: &[(u16, u32)]) -> (Vec<u16>, Vec<u16>, Vec<u32>) {
    let (mut rows, mut codes, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for (code, length) in lengths {
        if codes.last() != Some(code) {
            codes.push(*code);
            starts.push(rows.len() as u32);
        }
        rows.extend(std::iter::repeat_n(*code, *length as usize));
    }
    (rows, codes, starts)
}

proptest! {
    /// However provisional codes wait, the partition's bytes are the same.
    #[test]
    fn codes_of_runs_are_those_of_rows(
        lengths in prop::collection::vec(
            (prop_oneof![0u16..400, Just(NULL_CODE)], prop_oneof![1u32..4, 1u32..3000]), 1..400),
    ) {
        let (rows, codes, starts) = runs(&lengths);
        let temporary = TemporaryDictionary {
            values: Values::Int((0..400).map(|v| v * 1_000_003 % 8191).collect()),
            stale: false,
        };
        let compress = |codes: ProvisionalCodes| {
            let nulls = rows.contains(&NULL_CODE);
            let columns = vec![FragmentColumn::Codes { codes, dictionary: 0, nulls }];
            let temporaries = [temporary.clone()];
            let sorted = sort_temporaries(&columns, &temporaries, Physical::Int, DictionaryLimit::default()).unwrap();
            let policy = DictionaryPolicy::Auto;
            compress_column(columns, &temporaries, sorted, None, Physical::Int, policy).unwrap()
        };
        for distinct in [255, 400] {
            if distinct == 255 && codes.iter().any(|c| (255..NULL_CODE).contains(c)) {
                continue;
            }
            let of_rows = ProvisionalCodes::new(&rows, distinct);
            let of_runs =
                ProvisionalCodes::of_runs(&codes, &starts, rows.len() as u32, distinct);
            let mut scratch = Vec::new();
            prop_assert_eq!(of_runs.of_rows(&mut scratch), rows.as_slice());
            prop_assert_eq!(of_runs.len(), rows.len());
            prop_assert_eq!(compress(of_runs), compress(of_rows));
        }
    }
}

/// Symptom: a column of text that left codes midway was stored in other bytes with two threads than with one. Cause: its
/// symbols were made of the fragments that happened to be plain.
#[test]
fn text_that_left_codes_midway_is_stored_alike_whoever_met_the_last_value() {
    let text = |fragment: usize, row: usize| match fragment % 2 {
        0 => format!("https://example.org/catalogue/{fragment}/{row:05}"),
        _ => format!("{row:05} pieces of kind {fragment} in stock"),
    };
    let mut temporary = TemporaryDictionary::empty(Physical::Bytes);
    let fragments: Vec<(FragmentColumn, FragmentColumn)> = (0..3)
        .map(|fragment| {
            let (mut plain, mut codes) = (Plain::empty(Physical::Bytes), Vec::new());
            for row in 0..3_000 {
                let value = Value::Bytes(text(fragment, row).into_bytes().into());
                codes.push(temporary.values.len() as u16);
                temporary.values.push(&value);
                plain.push(Some(&value));
            }
            let codes = ProvisionalCodes::new(&codes, 9_000);
            (
                FragmentColumn::Codes { codes, dictionary: 0, nulls: false },
                FragmentColumn::Plain(plain),
            )
        })
        .collect();
    let compress = |coded: usize| {
        let form = |(n, (codes, plain)): (usize, &(FragmentColumn, FragmentColumn))| match n < coded
        {
            true => codes.clone(),
            false => plain.clone(),
        };
        let columns = fragments.iter().enumerate().map(form).collect();
        let temporaries = std::slice::from_ref(&temporary);
        compress_column(columns, temporaries, None, None, Physical::Bytes, DictionaryPolicy::Auto)
    };
    let plain = compress(0).unwrap();
    for coded in 1..=3 {
        assert!(compress(coded).unwrap() == plain, "{coded} fragments of codes");
    }
}
