#![allow(clippy::unwrap_used)]

use coload_store::ExpandedPages;
use coload_types::{Physical, Plain};
use proptest::prelude::*;

use crate::random::{Random, Table, predicate, table};
use crate::{ColumnPage, Filter, NullBits, Predicate, Selection, may_match};

const SHAPES: [Physical; 4] = [Physical::Int, Physical::Int, Physical::Bytes, Physical::Wide];

/// Where each page of a table starts.
fn page_starts(table: &Table) -> Vec<usize> {
    let mut at = 0;
    let next = |rows: &u32| {
        let start = at;
        at += *rows as usize;
        start
    };
    table.segment.page_rows().iter().map(next).collect()
}

fn check_selection(table: &Table, predicates: &[Predicate]) {
    let filter = Filter::new(&table.segment, table.deleted.as_ref(), predicates).unwrap();
    let mut selection = Selection::default();
    for (page, start) in page_starts(table).into_iter().enumerate() {
        filter.select(&table.segment, page, &mut selection).unwrap();
        let mut count = 0;
        for row in 0..selection.rows() {
            let selected = selection.block(row / 1024).0.get(row % 1024);
            let expected = table.passes(predicates, start + row);
            assert_eq!(selected, expected, "row {} of {predicates:?}", start + row);
            count += usize::from(selected);
        }
        assert_eq!(selection.count(), count);
        check_decoding(table, page, start, &selection);
    }
}

fn check_decoding(table: &Table, page: usize, start: usize, selection: &Selection) {
    let rows: Vec<usize> = (0..selection.rows())
        .filter(|row| selection.block(row / 1024).0.get(row % 1024))
        .map(|row| start + row)
        .collect();
    let blocks = 0..selection.block_count();
    for (column, physical) in SHAPES.iter().enumerate() {
        let expanded = ExpandedPages::default();
        let open = ColumnPage::open(&table.segment, column, page, &expanded).unwrap();
        let mut decoded = Plain::empty(*physical);
        let mut nulls = NullBits::default();
        match physical {
            Physical::Int => {
                let mut out = Vec::new();
                open.decode_ints(selection, blocks.clone(), |v| v, &mut out, &mut nulls).unwrap();
                decoded.values = coload_types::Values::Int(out);
            }
            Physical::Wide => {
                let mut out = Vec::new();
                open.decode_wides(selection, blocks.clone(), |v| v, &mut out, &mut nulls).unwrap();
                decoded.values = coload_types::Values::Wide(out);
            }
            Physical::Bytes => open
                .decode_strings(selection, blocks.clone(), |s| {
                    decoded.push(s.map(|s| coload_types::Value::Bytes(s.into())).as_ref());
                    Ok(())
                })
                .unwrap(),
        }
        if *physical != Physical::Bytes {
            assert_eq!(nulls.len(), rows.len());
            decoded.nulls = nulls.take();
        }
        assert_eq!(decoded.len(), rows.len());
        for (i, row) in rows.iter().enumerate() {
            assert_eq!(decoded.get(i), table.get(column, *row), "column {column} row {row}");
        }
        if let Some(dictionary) = open.dictionary() {
            let mut codes = Vec::new();
            open.decode_codes(selection, blocks.clone(), &mut codes).unwrap();
            for (code, row) in codes.iter().zip(&rows) {
                let value = dictionary.get(coload_types::Code(*code));
                assert_eq!(value, table.get(column, *row));
            }
        }
    }
}

fn check_pruning(table: &Table, predicate: &Predicate) {
    let column = &table.columns[predicate.column];
    let values: Vec<_> = (0..table.rows()).filter_map(|row| column.get(row)).collect();
    let nulls = column.null_count() as u64;
    let (min, max) = (values.iter().min(), values.iter().max());
    let may = may_match(&predicate.test, table.rows() as u64, nulls, min, max);
    let does = (0..table.rows()).any(|row| predicate.test.matches(column.get(row).as_ref()));
    assert!(may || !does, "{predicate:?} was pruned wrongly");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn filters_and_decoding_agree_with_looking_at_each_row(seed: u64) {
        let mut random = Random(seed);
        let table = table(&mut random, &SHAPES, 0);
        check_selection(&table, &[]);
        for _ in 0..4 {
            let count = 1 + random.below(3);
            let predicates: Vec<_> = (0..count)
                .map(|_| {
                    let column = random.below(4) as usize;
                    predicate(&mut random, column, SHAPES[column])
                })
                .collect();
            check_selection(&table, &predicates);
            check_pruning(&table, &predicates[0]);
        }
    }
}

#[test]
fn a_test_of_another_shape_is_refused() {
    let table = table(&mut Random(1), &SHAPES, 0);
    let wrong = Predicate { column: 0, test: crate::Test::Prefix(b"a"[..].into()) };
    assert!(Filter::new(&table.segment, None, &[wrong]).is_err());
    let missing = Predicate { column: 9, test: crate::Test::IsNull };
    assert!(Filter::new(&table.segment, None, &[missing]).is_err());
}
