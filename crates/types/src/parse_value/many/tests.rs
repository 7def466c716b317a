#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::calendar::DATE_DAYS;
use crate::display::display_value;
use crate::parse_value::{is_double_as_written, parse_int};
use crate::{DataType, Value};

fn decimal(precision: u8, scale: u8) -> DataType {
    DataType::decimal(precision, scale).unwrap()
}

/// Reads fields many at once, each behind the one before, and the rest one by one.
fn read_many(fields: &[String], data_type: DataType, doubtful: Doubtful) {
    let Some(many) = ManyFields::new(data_type, doubtful) else { return };
    let around = [b'9'; 32];
    let mut chunk = around.to_vec();
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for field in fields {
        chunk.push(b'9');
        starts.push(chunk.len() as u32);
        chunk.extend(field.as_bytes());
        ends.push(chunk.len() as u32);
    }
    chunk.extend(around);
    let (mut values, mut missed) = (vec![7], Vec::new());
    many.read(&chunk, &starts, &ends, &mut values, &mut missed);
    assert_eq!(values.len(), fields.len() + 1);
    assert!(missed.is_sorted());
    for (i, field) in fields.iter().enumerate() {
        let expected = parse_int(field.as_bytes(), data_type);
        let digits = field.strip_prefix('-').unwrap_or(field).as_bytes();
        let is_code = matches!(digits, [b'0', b'0'..=b'9', ..]);
        if missed.contains(&(i as u32)) {
            let behind = digits.iter().rev().position(|b| *b == b'.');
            let is_short = match data_type {
                DataType::Decimal { scale, .. } => {
                    let read = behind.is_none_or(|n| n < 8 && n <= usize::from(scale));
                    // Nothing is multiplied by more.
                    digits.len() <= 16 && read && scale < 16
                }
                DataType::Double => digits.len() <= 15 && behind.is_none_or(|n| n <= 22),
                DataType::Real => digits.len() <= 7 && behind.is_none_or(|n| n <= 22),
                DataType::Date => digits.len() == 10 && !digits.contains(&b'/'),
                DataType::Timestamp | DataType::TimestampTz => {
                    matches!(digits.len(), 10 | 19 | 21..=26) && !digits.contains(&b'/')
                }
                _ => digits.len() <= 19 && behind.is_none() && expected != Ok(i64::MIN),
            };
            let is_moment =
                matches!(data_type, DataType::Date | DataType::Timestamp | DataType::TimestampTz);
            let others: &[u8] = if is_moment { b" T-:." } else { b"." };
            let is_plain = expected.is_ok()
                && digits.iter().all(|b| b.is_ascii_digit() || others.contains(b))
                && !digits.ends_with(b" ");
            let is_left_out = doubtful == Doubtful::LeftOut && is_code;
            assert!(!is_short || !is_plain || is_left_out, "{field:?} as {data_type} is left out");
        } else {
            assert_eq!(Ok(values[i + 1]), expected, "{field:?} as {data_type}");
            assert!(doubtful == Doubtful::Read || !is_code, "{field:?} is a code");
            if data_type == DataType::Double && doubtful == Doubtful::LeftOut {
                let printed = is_double_as_written(field.as_bytes(), values[i + 1]);
                assert!(printed, "{field:?} is changed");
            }
        }
    }
}

const NUMBERS: [DataType; 5] =
    [DataType::SmallInt, DataType::Integer, DataType::BigInt, DataType::Double, DataType::Real];

#[test]
fn many_numbers_at_the_edges() {
    let fields = [
        "0",
        "-0",
        "7",
        "-7",
        "",
        "-",
        ".",
        "-.",
        "5.",
        ".5",
        "0.5",
        "-0.05",
        "00",
        "007",
        "-007",
        "00.5",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "9999999999999999999",
        "12345678901234567",
        "-1234567890123456",
        "1234567890123456",
        "99999999.99",
        "1234567.1234567",
        "1.12345678",
        "1.2.3",
        "1..2",
        "12a4",
        "a",
        "1e5",
        " 12",
        "+5",
        "32767",
        "32768",
        "-32768",
        "-32769",
        "2147483647",
        "2147483648",
        "0.0",
        "-12.34",
        "12:4",
        "12/4",
        "1-2",
        "--5",
        "123456789012345678901234567890",
        "1\u{ff}",
        "0.00",
        "-0.0",
        "0.1",
        "123.45678901234567",
        "-123.45678901234567",
        "0.30000000000000004",
        "0.1000000000000000055511151231257827",
        "9007199254740992",
        "9007199254740993",
        "9007199254740994.5",
        "9007199254740993.00000000001",
        "18014398509481986",
        "16777217",
        "16777217.0000001",
        "16777219",
        "0.000000000000000000001",
        ".1234567890123456789012",
        ".12345678901234567890123",
        "9999999999999999999.9",
        "99999999999999999999",
        "1234567890.123456789",
        "12345678.90123456789",
        "1.234567.8901234567",
        "1234567890123456789.1234",
        "1234567890123456789012.3",
    ];
    let fields: Vec<String> =
        fields.iter().cycle().take(fields.len() * 8).map(|f| (*f).to_owned()).collect();
    for doubtful in [Doubtful::Read, Doubtful::LeftOut] {
        for data_type in NUMBERS {
            read_many(&fields, data_type, doubtful);
        }
        for (precision, scale) in
            [(18, 2), (10, 2), (4, 4), (18, 0), (18, 18), (1, 0), (12, 7), (3, 1)]
        {
            read_many(&fields, decimal(precision, scale), doubtful);
        }
    }
}

proptest! {
    #[test]
    fn many_floats_are_those_of_one_field(
        fields in prop::collection::vec("-?[0-9]{0,4}\\.[0-9]{10,20}|-?[0-9]{15,20}(\\.[0-9]{0,5})?|0\\.0{0,20}[1-9]{1,3}", 8..40),
        bits in prop::collection::vec(any::<u32>(), 8..40),
        kept in any::<bool>(),
    ) {
        let doubtful = if kept { Doubtful::Read } else { Doubtful::LeftOut };
        // In the middle between two REALs, and as near to it as a DOUBLE is.
        let middles = bits.iter().flat_map(|bits| {
            let real = f64::from(f32::from_bits(bits & 0x07ff_ffff | 0x3800_0000));
            let middle = f64::from_bits(real.to_bits() | 1 << 28);
            [middle, middle.next_up(), middle.next_down()].map(|double| double.to_string())
        });
        let fields: Vec<String> = fields.into_iter().chain(middles).collect();
        read_many(&fields, DataType::Double, doubtful);
        read_many(&fields, DataType::Real, doubtful);
    }

    #[test]
    fn many_numbers_are_those_of_one_field(
        fields in prop::collection::vec("-?[0-9]{0,20}(\\.[0-9]{0,9})?|[-+0-9.eE :/]{0,26}", 1..40),
        precision in 1u8..=18,
        scale in 0u8..=18,
        kept in any::<bool>(),
    ) {
        let doubtful = if kept { Doubtful::Read } else { Doubtful::LeftOut };
        for data_type in NUMBERS {
            read_many(&fields, data_type, doubtful);
        }
        read_many(&fields, decimal(precision, scale.min(precision)), doubtful);
    }
}

#[test]
fn nearly_all_printed_floats_are_read_many_at_once() {
    let mut state = 7u64;
    let mut fields = Vec::new();
    for i in 0..80_000u32 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (state >> 11) as f64 / (1u64 << 53) as f64;
        fields.push((unit * 10f64.powi((i % 9) as i32 - 3)).to_string());
    }
    for doubtful in [Doubtful::Read, Doubtful::LeftOut] {
        let Some(many) = ManyFields::new(DataType::Double, doubtful) else { return };
        let (mut chunk, mut starts, mut ends) = (vec![b'9'; 32], Vec::new(), Vec::new());
        for field in &fields {
            starts.push(chunk.len() as u32);
            chunk.extend(field.as_bytes());
            ends.push(chunk.len() as u32);
        }
        chunk.extend([b'9'; 32]);
        let (mut values, mut missed) = (Vec::new(), Vec::new());
        many.read(&chunk, &starts, &ends, &mut values, &mut missed);
        assert!(missed.len() < 8, "{} missed: {}", missed.len(), fields[missed[0] as usize]);
    }
}

#[test]
fn many_moments_are_those_of_one_field() {
    let fields = [
        "2026-11-23",
        "0001-01-01",
        "0000-01-01",
        "9999-12-31",
        "2024-02-29",
        "2023-02-29",
        "1900-02-29",
        "2000-02-29",
        "2000-00-10",
        "2000-13-10",
        "2000-16-10",
        "2000-10-00",
        "2000-04-31",
        "2000/01/01",
        "2000-1-01",
        "2000-01-01 ",
        "2000-01-01T",
        "",
        "2026-11-23 20:56:07",
        "2026-11-23T20:56:07",
        "2026-11-23t20:56:07",
        "2026-11-23 20:56",
        "2026-11-23 20:56:",
        "2026-11-23 23:59:59.999999",
        "2026-11-23 23:59:59.5",
        "2026-11-23 23:59:59.",
        "2026-11-23 23:59:59.000001",
        "2026-11-23 23:59:59.0000010",
        "2026-11-23 23:59:59.0000011",
        "2026-11-23 24:00:00",
        "2026-11-23 23:60:00",
        "2026-11-23 23:59:60",
        "1969-12-31 23:59:59.999999",
        "0001-01-01 00:00:00",
        "2026-11-23 20:56:07Z",
        "2026-11-23 20:56:07+01:00",
        "2026-11-23 20.56.07",
        "2026-11-23 20:56:07,5",
        "2026-11-23 2a:56:07",
        "2o26-11-23",
        " 2026-11-23",
    ];
    let fields: Vec<String> =
        fields.iter().cycle().take(fields.len() * 8).map(|f| (*f).to_owned()).collect();
    for data_type in [DataType::Date, DataType::Timestamp, DataType::TimestampTz] {
        read_many(&fields, data_type, Doubtful::Read);
    }
}

#[test]
fn days_of_all_years_are_read_many_at_once() {
    // A step that meets all days of months and years in turn.
    let days = (*DATE_DAYS.start()..=*DATE_DAYS.end()).step_by(13);
    let days: Vec<i64> = days.chain([*DATE_DAYS.end()]).collect();
    for days in days.chunks(80_000) {
        let text = |day: &i64| display_value(&Value::Int(*day), DataType::Date);
        let fields: Vec<String> = days.iter().map(text).collect();
        read_many(&fields, DataType::Date, Doubtful::Read);
    }
}

proptest! {
    #[test]
    fn many_instants_are_those_of_one_field(
        fields in prop::collection::vec("[012][0-9]{3}-[01][0-9]-[0-3][0-9]([ T][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,7})?)?|[-0-9 T:.]{8,28}", 8..40),
    ) {
        for data_type in [DataType::Date, DataType::Timestamp, DataType::TimestampTz] {
            read_many(&fields, data_type, Doubtful::Read);
        }
    }
}
