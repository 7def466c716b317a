#![allow(clippy::unwrap_used)]
use coload_types::{Bitmap, ordinal_from_f32, ordinal_from_f64};
use proptest::prelude::*;

use super::*;

const DECIMAL: fn(u8, u8) -> DataType = |precision, scale| DataType::Decimal { precision, scale };

fn int(value: i64, data_type: DataType) -> u64 {
    hash_value(Some(&Value::Int(value)), data_type)
}

#[test]
fn hashes_are_these_on_all_machines() {
    // Stored rows lie where these say: a change here is a change of all clusters. Numbers were made by another program, too.
    let text = |text: &str| {
        hash_value(Some(&Value::Bytes(text.as_bytes().into())), DataType::Varchar(None))
    };
    let found = [
        hash_value(None, DataType::BigInt),
        int(0, DataType::BigInt),
        int(1, DataType::Integer),
        int(-1, DataType::BigInt),
        int(i64::MAX, DataType::BigInt),
        int(1250, DECIMAL(9, 2)),
        hash_value(Some(&Value::Wide(10_i128.pow(30) + 1)), DECIMAL(38, 3)),
        int(ordinal_from_f64(1.5), DataType::Double),
        int(ordinal_from_f64(-0.0), DataType::Double),
        int(ordinal_from_f64(f64::NAN), DataType::Double),
        text(""),
        text("coload"),
        hash_value(Some(&Value::Wide(7)), DataType::Uuid),
    ];
    assert_eq!(found, VECTORS);
    let mut rows = RowHashes::new(2);
    let plain = |values: Vec<i64>| Plain { values: Values::Int(values), nulls: None };
    let (a, b) = (plain(vec![1, 2]), plain(vec![2, 1]));
    rows.add(&CheckedColumn::Plain(&a), DataType::BigInt);
    rows.add(&CheckedColumn::Plain(&b), DataType::BigInt);
    assert_eq!(rows.hashes(), ROWS);
    assert_eq!(RowHashes::in_turn(5, 3).shards(64).collect::<Vec<_>>(), IN_TURN);
}

const VECTORS: [u64; 13] = [
    0x4063_e00b_cd98_6211,
    0xe220_a839_7b1d_cdaf,
    0x910a_2dec_8902_5cc1,
    0xe4d9_7177_1b65_2c20,
    0x2a67_d755_2e03_9ea7,
    0x4fd2_8a1c_4a06_61e2,
    0xd294_dcca_7fbe_d35e,
    0xd80c_3c14_e28e_0da1,
    0xf725_441d_87a5_fe5e,
    0x4a6f_0049_a116_7479,
    0x2d06_8005_38d3_94c2,
    0x4335_539b_61f7_0da4,
    0x066b_e9f9_0a4c_3e8f,
];
const ROWS: [u64; 2] = [0x8d0a_afa1_4b96_2b16, 0xd31e_1e44_0ea1_9080];
const IN_TURN: [u32; 3] = [24, 47, 24];

#[test]
fn a_number_has_one_hash_in_all_exact_types() {
    for (digits, scale, whole) in [(1500, 2, 15), (-700, 2, -7), (0, 5, 0), (30, 1, 3)] {
        assert_eq!(int(digits, DECIMAL(10, scale)), int(whole, DataType::BigInt));
        let wide = hash_value(Some(&Value::Wide(digits.into())), DECIMAL(38, scale));
        assert_eq!(wide, int(whole, DataType::SmallInt));
    }
    assert_eq!(int(125, DECIMAL(5, 1)), int(12_500, DECIMAL(9, 3)));
    assert_ne!(int(125, DECIMAL(5, 1)), int(125, DECIMAL(5, 2)));
    let large = 10_i128.pow(25) + 7;
    let as_is = hash_value(Some(&Value::Wide(large)), DECIMAL(38, 0));
    assert_eq!(as_is, hash_value(Some(&Value::Wide(large * 1000)), DECIMAL(38, 3)));
}

#[test]
fn floats_that_are_equal_in_sql_have_one_hash() {
    let double = |value: f64| int(ordinal_from_f64(value), DataType::Double);
    let real = |value: f32| int(ordinal_from_f32(value), DataType::Real);
    assert_eq!(double(0.0), double(-0.0));
    assert_eq!(double(f64::NAN), double(-f64::NAN));
    assert_eq!(double(f64::NAN), double(f64::from_bits(0x7ff8_0000_0000_0001)));
    assert_eq!(double(f64::NAN), real(f32::NAN));
    assert_eq!(double(1.5), real(1.5));
    assert_eq!(double(0.0), real(-0.0));
    assert_ne!(double(1.5), double(-1.5));
}

proptest! {
    #[test]
    fn codes_and_values_are_routed_alike(
        rows in proptest::collection::vec(proptest::option::of(-3_i64..4), 0..50),
        shards in 1_u32..70,
    ) {
        let values = Values::Int((-3..4).collect());
        let code = |v: &Option<i64>| v.map_or(u16::MAX, |v| (v + 3) as u16);
        let codes: Vec<u16> = rows.iter().map(code).collect();
        let mut nulls = Bitmap::zeros(rows.len());
        rows.iter().enumerate().filter(|(_, v)| v.is_none()).for_each(|(row, _)| nulls.set(row));
        let plain = Plain { values: Values::Int(rows.iter().map(|v| v.unwrap_or(0)).collect()), nulls: Some(nulls) };
        let mut coded = RowHashes::new(rows.len());
        coded.add(&CheckedColumn::Coded { codes: &codes, values: &values }, DECIMAL(5, 1));
        let mut plainly = RowHashes::new(rows.len());
        plainly.add(&CheckedColumn::Plain(&plain), DECIMAL(5, 1));
        prop_assert_eq!(&coded, &plainly);
        prop_assert!(coded.shards(shards).all(|shard| shard < shards));
        // The slow way, a value at a time.
        for (row, hash) in rows.iter().zip(coded.hashes()) {
            let value = row.map(Value::Int);
            prop_assert_eq!(hash_row([(value.as_ref(), DECIMAL(5, 1))]), *hash);
        }
    }

    #[test]
    fn no_value_of_a_type_panics(value: i128, scale in 0_u8..39, data in proptest::collection::vec(any::<u8>(), 0..9)) {
        for data_type in [DECIMAL(38, scale), DataType::Uuid, DataType::Double, DataType::BigInt] {
            hash_value(Some(&Value::Wide(value)), data_type);
            hash_value(Some(&Value::Int(value as i64)), data_type);
            hash_value(Some(&Value::Bytes(data.clone().into())), data_type);
        }
    }
}
