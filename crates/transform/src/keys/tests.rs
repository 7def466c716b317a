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

/// Rows as many as are divided into buckets, whose keys come in no order, in order, nearly so, few times and often.
#[test]
fn keys_in_buckets_are_sorted_as_all_of_them_are() {
    const ROWS: usize = 100_000;
    fn drawn(row: usize) -> u64 {
        (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
    }
    let far = |row: usize| if row == 77 { i64::MAX >> 20 } else { drawn(row) as i64 % 5 };
    type KeyOf = Box<dyn Fn(usize) -> (i64, i64)>;
    let columns: [(&str, KeyOf); 6] = [
        ("in no order", Box::new(|row| (drawn(row) as i64 % 30_000 - 7, (row % 7) as i64))),
        ("in order", Box::new(|row| (row as i64 / 4, row as i64 % 4))),
        ("nearly", Box::new(|row| (row as i64 ^ i64::from(row % 1000 == 1), 0))),
        ("one value", Box::new(|_| (3, 3))),
        ("few values", Box::new(|row| (drawn(row) as i64 % 3, 5))),
        ("one far from all others", Box::new(move |row| (far(row), 1))),
    ];
    for (name, key) in columns {
        let (a, b): (Vec<i64>, Vec<i64>) = (0..ROWS).map(&key).unzip();
        let mut wanted: Vec<u32> = (0..ROWS as u32).collect();
        wanted.sort_by_key(|row| key(*row as usize));
        let range = |values: &[i64]| (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        let mut packed = PackedKeys::new(ROWS, &[range(&a), range(&b)]).unwrap();
        for row in (0..ROWS).step_by(1000) {
            for (column, values) in [(1, &b), (0, &a)] {
                let least = range(values).0;
                let distances = values[row..row + 1000].iter().map(|value| (value - least) as u64);
                packed.put(column, row, &distances.collect::<Vec<_>>());
            }
        }
        let order = packed.sort();
        let found: Vec<u32> = (0..ROWS).map(|place| order.row(place) as u32).collect();
        assert!(found == wanted, "{name}");
        let equal = |place: &u32| {
            let row = |place: u32| key(wanted[place as usize] as usize);
            row(*place) == row(*place - 1)
        };
        assert!(order.repeated.iter().copied().eq((1..ROWS as u32).filter(equal)), "{name}");
        assert_eq!(order.rows.is_none(), wanted.is_sorted(), "{name}");
    }
    assert!(PackedKeys::new(2, &[(i64::MIN, i64::MAX)]).is_none());
}
