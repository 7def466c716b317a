#![allow(clippy::unwrap_used)]
use coload_types::{Physical, Value};
use proptest::prelude::*;

use super::*;

fn plain(physical: Physical, values: &[Option<Value>]) -> Plain {
    let mut plain = Plain::empty(physical);
    values.iter().for_each(|value| plain.push(value.as_ref()));
    plain
}

/// The order of keys, as slowly as it can be said.
fn model(columns: &[Plain]) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..columns[0].len() as u32).collect();
    rows.sort_by_key(|row| {
        let value = |column: &Plain| match column.get(*row as usize) {
            Some(value) => (0, Some(value)),
            None => (1, None),
        };
        columns.iter().map(value).collect::<Vec<_>>()
    });
    rows
}

fn check(columns: &[Plain]) {
    let wanted = model(columns);
    let order = sort_keys(columns).unwrap();
    let found: Vec<u32> = (0..wanted.len()).map(|place| order.row(place) as u32).collect();
    assert_eq!(found, wanted);
    let equal = |place: &usize| {
        let row = |place: usize| {
            let row = wanted[place] as usize;
            columns.iter().map(move |column| column.get(row))
        };
        row(*place - 1).eq(row(*place))
    };
    let repeated: Vec<u32> = (1..wanted.len()).filter(equal).map(|place| place as u32).collect();
    assert_eq!(order.repeated, repeated);
    assert_eq!(order.rows.is_none(), wanted.is_sorted());
    let (long, short) = (sort_in_place(columns, wanted.len()), sort_bytes(columns, wanted.len()));
    assert_eq!((&long, &short), (&order, &order));
    // Bytes of keys are ordered as the keys are, whichever columns have NULLs.
    let nullable: Vec<bool> = columns.iter().map(|column| column.nulls.is_some()).collect();
    let key = |row: usize| {
        let mut bytes = Vec::new();
        put_key(columns, &nullable, row, &mut bytes);
        bytes
    };
    for pair in wanted.windows(2) {
        let (a, b) = (pair[0] as usize, pair[1] as usize);
        assert_eq!(key(a).cmp(&key(b)), compare_keys(columns, a, columns, b));
        assert!(compare_keys(columns, a, columns, b).is_le());
    }
}

fn int() -> impl Strategy<Value = Value> {
    let edges = prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), Just(-1)];
    prop_oneof![4 => -3..4i64, 1 => edges].prop_map(Value::Int)
}

fn wide() -> impl Strategy<Value = Value> {
    let edges = prop_oneof![Just(i128::MIN), Just(i128::MAX), Just(1 << 90)];
    prop_oneof![4 => -2..3i128, 1 => edges].prop_map(Value::Wide)
}

fn text() -> impl Strategy<Value = Value> {
    let bytes =
        proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(b'a'), Just(255)], 0..11);
    bytes.prop_map(|bytes| Value::Bytes(bytes.into()))
}

fn column() -> impl Strategy<Value = (Physical, Vec<Option<Value>>)> {
    fn rows(
        value: impl Strategy<Value = Value> + 'static,
    ) -> impl Strategy<Value = Vec<Option<Value>>> {
        let value = value.boxed();
        let null = prop_oneof![Just(0.9999), Just(0.8)];
        null.prop_flat_map(move |share| {
            proptest::collection::vec(proptest::option::weighted(share, value.clone()), 40)
        })
    }
    prop_oneof![
        rows(int()).prop_map(|rows| (Physical::Int, rows)),
        rows((0..5i64).prop_map(Value::Int)).prop_map(|rows| (Physical::Int, rows)),
        rows(wide()).prop_map(|rows| (Physical::Wide, rows)),
        rows(text()).prop_map(|rows| (Physical::Bytes, rows)),
    ]
}

proptest! {
    #[test]
    fn keys_are_sorted_as_the_model_does(
        columns in proptest::collection::vec(column(), 1..4),
        rows in 0..40usize,
    ) {
        let cut = |(physical, values): &(Physical, Vec<Option<Value>>)| plain(*physical, &values[..rows]);
        let columns: Vec<Plain> = columns.iter().map(cut).collect();
        check(&columns);
    }
}

#[test]
fn many_rows_of_few_bits_are_sorted_by_radix() {
    let values = |factor: u64, modulus: u64| {
        let value = move |row: u64| Some(Value::Int((row * factor % modulus) as i64 - 500));
        plain(Physical::Int, &(0..5000).map(value).collect::<Vec<_>>())
    };
    check(&[values(7919, 100_003), values(31, 7)]);
    check(&[values(1, 1), values(31, 7)]);
    check(&[values(1, 1)]);
    check(&[values(1, 1_000_000)]);
}

#[test]
fn text_that_begins_alike_is_told_apart() {
    let long =
        |tail: &str| Some(Value::Bytes([&vec![b'x'; 4096][..], tail.as_bytes()].concat().into()));
    let whole = Some(Value::Bytes(vec![b'y'; 64 << 10].into()));
    let empty = Some(Value::Bytes(Box::new([])));
    check(&[plain(
        Physical::Bytes,
        &[long("b"), whole, long(""), empty, long("a\0"), long("a"), None],
    )]);
}
