#![allow(clippy::unwrap_used)]
use coload_space::Dram;
use coload_types::{Dictionary, Value};
use proptest::prelude::*;

use super::*;
use crate::{SegmentFile, append_page};

/// A column of a test: its values, and how each page is stored.
#[derive(Debug, Clone)]
struct Shape {
    values: Vec<Option<Value>>,
    stored: Stored,
}

#[derive(Debug, Clone, Copy)]
enum Stored {
    Codes,
    Plain,
    /// Text in symbols of one table, but for the last page.
    OneTable,
    /// Each page has a table of its own.
    Tables,
}

fn physical(values: &[Option<Value>]) -> Physical {
    match values.iter().flatten().next() {
        Some(Value::Bytes(_)) => Physical::Bytes,
        Some(Value::Wide(_)) => Physical::Wide,
        _ => Physical::Int,
    }
}

fn plain(values: &[Option<Value>], physical: Physical) -> Plain {
    let mut plain = Plain::empty(physical);
    values.iter().for_each(|value| plain.push(value.as_ref()));
    plain
}

/// Symbols for some of the strings.
fn trained(plain: &Plain) -> Option<SymbolEncoder> {
    let Values::Bytes(strings) = &plain.values else { return None };
    Some(SymbolEncoder::train_symbols(strings.len(), |row| strings.get(row)))
}

fn column(shape: &Shape, page_rows: &[u32]) -> PartitionColumn {
    let physical = physical(&shape.values);
    let mut cut = Vec::new();
    let mut rest = &shape.values[..];
    for rows in page_rows {
        let (page, others) = rest.split_at(*rows as usize);
        cut.push(plain(page, physical));
        rest = others;
    }
    if let Stored::Codes = shape.stored {
        let mut values: Vec<Value> = shape.values.iter().flatten().cloned().collect();
        values.sort();
        values.dedup();
        let mut all = Values::empty(physical);
        values.iter().for_each(|value| all.push(value));
        let code = |value: Option<Value>| match value {
            Some(value) => values.binary_search(&value).unwrap() as u32,
            None => values.len() as u32,
        };
        let page = |plain: &Plain| {
            let codes: Vec<u32> = (0..plain.len()).map(|row| code(plain.get(row))).collect();
            coload_page::encode_codes_u32(&codes, values.len() as u32)
        };
        let pages = cut.iter().map(page).collect();
        let dictionary = Some(Dictionary::new(all).unwrap());
        return PartitionColumn { dictionary, symbols: Vec::new(), pages };
    }
    let all = plain(&shape.values, physical);
    let mut symbols = Vec::new();
    let mut pages = Vec::new();
    for (number, plain) in cut.iter().enumerate() {
        let encoder = match shape.stored {
            Stored::OneTable if number + 1 < cut.len() || cut.len() == 1 => trained(&all),
            Stored::Tables => trained(plain),
            _ => None,
        };
        let mut page = encode_column(plain, encoder.as_ref()).unwrap();
        if let (Some(encoder), coload_page::PageDetail::Text { symbols: of }) =
            (&encoder, &mut page.detail)
            && *of > 0
        {
            let table = encoder.table();
            let known = symbols.iter().position(|known| *known == table);
            *of = 1 + known.unwrap_or(symbols.len()) as u32;
            if known.is_none() {
                symbols.push(table);
            }
        }
        pages.push(page);
    }
    PartitionColumn { dictionary: None, symbols, pages }
}

fn decoded(column: &PartitionColumn, physical: Physical) -> Vec<Option<Value>> {
    let mut all = Plain::empty(physical);
    let decoders: Vec<_> = column
        .symbols
        .iter()
        .map(|table| coload_page::SymbolDecoder::open(table).unwrap())
        .collect();
    for page in &column.pages {
        let page = super::super::given::plain_page(page).unwrap();
        let view = page.view().unwrap();
        append_page(&view, column.dictionary.as_ref(), &decoders, &mut all).unwrap();
    }
    (0..all.len()).map(|row| all.get(row)).collect()
}

/// Rows in an order that does not repeat, some of them left out.
fn order(rows: usize, seed: usize, left_out: bool) -> Vec<u32> {
    let key = |row: &u32| (*row as usize + 1).wrapping_mul(seed * 2 + 0x9E37_79B1) % 10_007;
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_by_key(key);
    if left_out {
        order.retain(|row| row % 5 != 3);
    }
    order
}

fn check(shapes: &[Shape], page_rows: &[u32], order: &[u32], form: Form) {
    let columns: Vec<(Physical, PartitionColumn)> =
        shapes.iter().map(|shape| (physical(&shape.values), column(shape, page_rows))).collect();
    let segment = SegmentFile::in_memory(page_rows.to_vec(), columns).unwrap();
    let new_rows: Vec<u32> = order.chunks(2048).map(|rows| rows.len() as u32).collect();
    let mut by_threads = Vec::new();
    let at_once = NewPages::of_rows(&new_rows);
    let each = (0..new_rows.len()).map(|page| page..page + 1).collect();
    let in_passes = NewPages { rows: new_rows, passes: each };
    for (threads, pages) in [(1, &at_once), (3, &at_once), (1, &in_passes), (2, &in_passes)] {
        let space = Dram::new("dram", u64::MAX);
        let places = &OnceLock::new();
        let gather = Gather { rows: order, pages, form, space: &space, places, threads };
        let mut made: Vec<PartitionColumn> = Vec::new();
        gather_columns(&segment, gather, |number, mut part| {
            match made.get_mut(number) {
                Some(column) => {
                    assert!(part.dictionary.is_none() && part.symbols.is_empty());
                    column.pages.append(&mut part.pages);
                }
                None => {
                    assert_eq!(number, made.len());
                    made.push(part);
                }
            }
            Ok(())
        })
        .unwrap();
        for (shape, column) in shapes.iter().zip(&made) {
            let wanted: Vec<_> =
                order.iter().map(|row| shape.values[*row as usize].clone()).collect();
            assert!(decoded(column, physical(&shape.values)) == wanted, "{:?}", shape.stored);
        }
        by_threads.push(made);
    }
    let first = &by_threads[0];
    assert!(by_threads.iter().all(|made| made == first), "threads or passes change what is made");
}

fn numbers(modulus: i64, step: i64) -> impl Fn(usize) -> Option<Value> {
    move |row| Some(Value::Int((row as i64 * 7919 % modulus) * step - 50))
}

fn words(row: usize) -> Option<Value> {
    let words = ["furiously ", "carefully ", "deposits ", "sleep ", "quickly"];
    let text: String = (0..row % 9).map(|word| words[(row * word + row) % 5]).collect();
    Some(Value::Bytes(text.into_bytes().into()))
}

fn shape(rows: usize, stored: Stored, value: impl Fn(usize) -> Option<Value>) -> Shape {
    Shape { values: (0..rows).map(value).collect(), stored }
}

#[test]
fn columns_of_all_kinds_follow_the_rows() {
    let page_rows = [3000, 1024, 2048, 100];
    let rows = page_rows.iter().sum::<u32>() as usize;
    let with_nulls = |row: usize| words(row).filter(|_| row % 3 != 1);
    let long = |row: usize| {
        let byte = b'a' + (row % 7) as u8;
        Some(Value::Bytes(vec![byte; [0, 1, 254, 255, 256, 5000][row % 6]].into()))
    };
    let shapes = [
        shape(rows, Stored::Plain, numbers(6000, 1)),
        shape(rows, Stored::Codes, numbers(7, 3)),
        shape(rows, Stored::Plain, |row| numbers(90, 1 << 30)(row).filter(|_| row % 4 != 2)),
        shape(rows, Stored::Codes, |row| numbers(600, 1)(row).filter(|_| row % 100 != 2)),
        shape(rows, Stored::OneTable, words),
        shape(rows, Stored::Plain, |row| {
            Some(Value::Int(if row == 9 { i64::MIN } else { i64::MAX }))
        }),
        shape(rows, Stored::Plain, |row| Some(Value::Wide((row as i128) << 70))),
        shape(rows, Stored::Plain, |_| None),
        shape(rows, Stored::Plain, |_| Some(Value::Int(5))),
        shape(rows, Stored::Tables, with_nulls),
        shape(rows, Stored::OneTable, with_nulls),
        shape(rows, Stored::Plain, long),
        shape(rows, Stored::Codes, long),
        shape(rows, Stored::Plain, numbers(5000, i64::MAX / 10_000)),
        shape(rows, Stored::Plain, numbers(5000, i64::MAX / 10_000)),
    ];
    for form in [Form::Segment, Form::Run] {
        check(&shapes, &page_rows, &order(rows, 1, false), form);
        check(&shapes, &page_rows, &order(rows, 2, true), form);
    }
    let none = vec![Shape { values: Vec::new(), stored: Stored::Plain }; 2];
    check(&none, &[], &[], Form::Segment);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn few_values_follow_the_rows(
        columns in proptest::collection::vec((0..4usize, 0..4usize, 1..40i64), 1..5),
        rows in 1..50usize,
        seed in 0..1000usize,
        left_out in any::<bool>(),
    ) {
        let shapes: Vec<Shape> = columns.iter().map(|(kind, nulls, modulus)| {
            let stored = [Stored::Codes, Stored::Plain, Stored::OneTable, Stored::Tables][*kind];
            let value = |row: usize| match stored {
                Stored::OneTable | Stored::Tables => words(row * *modulus as usize),
                _ => numbers(*modulus, 1)(row),
            };
            shape(rows, stored, |row| value(row).filter(|_| (row * seed) % 4 >= *nulls))
        }).collect();
        // A column without values has no shape of its own.
        prop_assume!(shapes.iter().all(|shape| shape.values.iter().any(Option::is_some)));
        let first = (rows / 2) as u32;
        let page_rows: Vec<u32> = [first, rows as u32 - first].into_iter().filter(|r| *r > 0).collect();
        check(&shapes, &page_rows, &order(rows, seed, left_out), Form::Segment);
    }
}

#[test]
fn other_texts_become_codes_of_the_table_that_most_have() {
    let page_rows = [4096, 4096, 512];
    let rows = page_rows.iter().sum::<u32>() as usize;
    // The last page is as it is, and of letters that no symbol has.
    let value = |row: usize| match row < 8192 {
        true => words(row),
        false => Some(Value::Bytes(format!("{row:x}").into_bytes().into())),
    };
    let shapes = [shape(rows, Stored::OneTable, value)];
    let given = column(&shapes[0], &page_rows);
    let pages = super::super::given::JoinedPages::open(&given, Physical::Bytes).unwrap();
    assert_eq!(common_table(&pages), Some(&given.symbols[0][..]));
    check(&shapes, &page_rows, &order(rows, 3, false), Form::Segment);
    check(&shapes, &page_rows, &order(rows, 3, true), Form::Run);
}
