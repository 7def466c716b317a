#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::moment::{slow_date, slow_time, slow_timestamp};
use super::number::{
    parse_decimal, parse_double, parse_integer, parse_real, parse_wide_decimal, slow_decimal,
    slow_double, slow_integer, slow_real,
};
use super::text::slow_uuid;
use super::*;
use crate::display::display_value;
use crate::{ordinal_from_f32, ordinal_from_f64};

/// Checks fields against what they parse to: the value printed, or the rule.
fn check(data_type: DataType, expected: &[(&str, Result<&str, Rule>)]) {
    for (field, expected) in expected {
        let found =
            parse_value(field.as_bytes(), data_type).map(|value| display_value(&value, data_type));
        assert_eq!(found, expected.map(str::to_owned), "{field:?} as {data_type}");
    }
}

fn decimal(precision: u8, scale: u8) -> DataType {
    DataType::decimal(precision, scale).unwrap()
}

#[test]
fn integers_keep_to_their_range() {
    let both = [
        ("7", Ok("7")),
        ("-0", Ok("0")),
        ("+5", Ok("5")),
        (" 12\t", Ok("12")),
        ("00123", Ok("123")),
        ("00000000000000000000000000001", Ok("1")),
        ("5.", Ok("5")),
        ("-5.000", Ok("-5")),
        ("-32768", Ok("-32768")),
        ("", Err(Rule::Empty)),
        ("  ", Err(Rule::Empty)),
        ("-", Err(Rule::NotANumber)),
        (".", Err(Rule::NotANumber)),
        ("--5", Err(Rule::NotANumber)),
        ("1 2", Err(Rule::NotANumber)),
        ("1,234", Err(Rule::NotANumber)),
        ("0x10", Err(Rule::NotANumber)),
        ("1\u{0}", Err(Rule::NotANumber)),
        ("\u{661}", Err(Rule::NotANumber)),
        ("5.5", Err(Rule::TooManyFractionDigits)),
        ("1e2", Err(Rule::NotAnInteger)),
    ];
    for data_type in [DataType::SmallInt, DataType::Integer, DataType::BigInt] {
        check(data_type, &both);
    }
    check(DataType::SmallInt, &[("32767", Ok("32767")), ("32768", Err(Rule::OutOfRange))]);
    check(
        DataType::Integer,
        &[
            ("-2147483648", Ok("-2147483648")),
            ("2147483648", Err(Rule::OutOfRange)),
            ("99999999999999999999", Err(Rule::OutOfRange)),
        ],
    );
    check(
        DataType::BigInt,
        &[
            ("9223372036854775807", Ok("9223372036854775807")),
            ("-9223372036854775808", Ok("-9223372036854775808")),
            ("9223372036854775808", Err(Rule::OutOfRange)),
            ("-9223372036854775809", Err(Rule::OutOfRange)),
            ("18446744073709551617", Err(Rule::OutOfRange)),
        ],
    );
}

#[test]
fn decimals_are_exact_or_refused() {
    check(
        decimal(15, 2),
        &[
            ("12.5", Ok("12.50")),
            (".5", Ok("0.50")),
            ("5.", Ok("5.00")),
            ("-.05", Ok("-0.05")),
            ("+5", Ok("5.00")),
            ("1.2300000", Ok("1.23")),
            ("1.2300000000000000000000000000000000000000000000", Ok("1.23")),
            ("1234567890123.45", Ok("1234567890123.45")),
            ("-9999999999999.99", Ok("-9999999999999.99")),
            ("1.5e3", Ok("1500.00")),
            ("15E-1", Ok("1.50")),
            ("0e99999999999999999999", Ok("0.00")),
            ("1000000000000000000000e-20", Ok("10.00")),
            ("1.005", Err(Rule::TooManyFractionDigits)),
            ("1e-3", Err(Rule::TooManyFractionDigits)),
            ("1e-99999999999999999999", Err(Rule::TooManyFractionDigits)),
            ("10000000000000", Err(Rule::TooManyDigits)),
            ("1e13", Err(Rule::TooManyDigits)),
            ("1e99999999999999999999", Err(Rule::TooManyDigits)),
            ("12,50", Err(Rule::NotANumber)),
            ("1.2.3", Err(Rule::NotANumber)),
            ("1234.5678.9", Err(Rule::NotANumber)),
            ("1.", Ok("1.00")),
            (".", Err(Rule::NotANumber)),
            ("-", Err(Rule::NotANumber)),
            ("e5", Err(Rule::NotANumber)),
            ("1e", Err(Rule::NotANumber)),
            ("1e+", Err(Rule::NotANumber)),
            ("nan", Err(Rule::NotANumber)),
            ("", Err(Rule::Empty)),
        ],
    );
    check(decimal(3, 3), &[(".999", Ok("0.999")), ("1", Err(Rule::TooManyDigits))]);
    check(decimal(18, 0), &[("999999999999999999", Ok("999999999999999999"))]);
    check(
        decimal(38, 10),
        &[
            (
                "1234567890123456789012345678.0123456789",
                Ok("1234567890123456789012345678.0123456789"),
            ),
            ("-1.5", Ok("-1.5000000000")),
            ("12345678901234567890123456789", Err(Rule::TooManyDigits)),
        ],
    );
    check(
        decimal(38, 0),
        &[(
            "-99999999999999999999999999999999999999",
            Ok("-99999999999999999999999999999999999999"),
        )],
    );
    check(decimal(38, 38), &[(".1", Ok("0.10000000000000000000000000000000000000"))]);
}

#[test]
fn days_exist_or_are_refused() {
    check(
        DataType::Date,
        &[
            ("1996-03-13", Ok("1996-03-13")),
            ("1996/03/13", Ok("1996-03-13")),
            (" 1996-3-1 ", Ok("1996-03-01")),
            ("0001-01-01", Ok("0001-01-01")),
            ("9999-12-31", Ok("9999-12-31")),
            ("2000-02-29", Ok("2000-02-29")),
            ("1900-02-29", Err(Rule::NoSuchDate)),
            ("2023-13-01", Err(Rule::NoSuchDate)),
            ("2023-04-31", Err(Rule::NoSuchDate)),
            ("0000-01-01", Err(Rule::NoSuchDate)),
            ("2023-00-10", Err(Rule::NoSuchDate)),
            ("1996-03/13", Err(Rule::NotADate)),
            ("96-03-13", Err(Rule::NotADate)),
            ("19960313", Err(Rule::NotADate)),
            ("1996-03-13x", Err(Rule::NotADate)),
            ("1996-03-131", Err(Rule::NotADate)),
            ("1996-03-13 00:00:00", Err(Rule::NotADate)),
            ("13.03.1996", Err(Rule::NotADate)),
            ("", Err(Rule::Empty)),
        ],
    );
}

#[test]
fn times_are_of_a_day() {
    check(
        DataType::Time,
        &[
            ("12:34:56", Ok("12:34:56")),
            ("1:02", Ok("01:02:00")),
            ("23:59:59.999999", Ok("23:59:59.999999")),
            ("00:00:00.5", Ok("00:00:00.5")),
            ("00:00:00.1234560000", Ok("00:00:00.123456")),
            ("00:00:00.1234567", Err(Rule::TooFine)),
            ("24:00:00", Err(Rule::NoSuchTime)),
            ("12:60:00", Err(Rule::NoSuchTime)),
            ("12:00:60", Err(Rule::NoSuchTime)),
            ("12", Err(Rule::NotATime)),
            ("12:3", Err(Rule::NotATime)),
            ("12:30:00.", Err(Rule::NotATime)),
            ("12:30 PM", Ok("12:30:00")),
            ("12:30 XM", Err(Rule::NotATime)),
        ],
    );
}

#[test]
fn timestamps_lose_no_zone() {
    check(
        DataType::Timestamp,
        &[
            ("1996-03-13 12:34:56", Ok("1996-03-13 12:34:56")),
            ("1996-03-13T12:34:56.25", Ok("1996-03-13 12:34:56.25")),
            ("1996/03/13 12:34", Ok("1996-03-13 12:34:00")),
            ("1996-03-13", Ok("1996-03-13 00:00:00")),
            ("1969-12-31 23:59:59.999999", Ok("1969-12-31 23:59:59.999999")),
            ("1996-03-13T12:34:56Z", Err(Rule::HasZone)),
            ("1996-03-13 12:34:56+02", Err(Rule::HasZone)),
            ("1996-03-13T", Err(Rule::NotATimestamp)),
            ("1996-03-13 12:34:56.1234567", Err(Rule::TooFine)),
            ("1996-02-30 12:34:56", Err(Rule::NoSuchDate)),
            ("1996-03-13 25:34:56", Err(Rule::NoSuchTime)),
            ("yesterday", Err(Rule::NotATimestamp)),
        ],
    );
    check(
        DataType::TimestampTz,
        &[
            ("1996-03-13 12:34:56", Ok("1996-03-13 12:34:56+00")),
            ("1996-03-13T12:34:56Z", Ok("1996-03-13 12:34:56+00")),
            ("1996-03-13 12:34:56 UTC", Ok("1996-03-13 12:34:56+00")),
            ("1996-03-13 00:30:00+02", Ok("1996-03-12 22:30:00+00")),
            ("1996-03-13 12:34:56.5 -05:30", Ok("1996-03-13 18:04:56.5+00")),
            ("1996-03-13 12:34+0100", Ok("1996-03-13 11:34:00+00")),
            ("1996-03-13 12:34:56+1", Err(Rule::NotATimestamp)),
            ("1996-03-13 12:34:56+01:", Err(Rule::NotATimestamp)),
            ("1996-03-13 12:34:56+010", Err(Rule::NotATimestamp)),
            ("1996-03-13 12:34:56 CET", Err(Rule::NotATimestamp)),
            ("1996-03-13 12:34:56+99", Err(Rule::NoSuchZone)),
            ("0001-01-01 00:00:00+01", Err(Rule::OutOfRange)),
            ("9999-12-31 23:59:59-01", Err(Rule::OutOfRange)),
        ],
    );
}

#[test]
fn floats_do_not_overflow_silently() {
    check(
        DataType::Double,
        &[
            ("1", Ok("1.0")),
            ("-0.1", Ok("-0.1")),
            (" .5 ", Ok("0.5")),
            ("5.", Ok("5.0")),
            ("+1e3", Ok("1000.0")),
            ("-0", Ok("-0.0")),
            ("1e308", Ok("1e308")),
            ("inf", Ok("inf")),
            ("-Infinity", Ok("-inf")),
            ("NaN", Ok("NaN")),
            ("-nan", Ok("NaN")),
            ("1e-400", Ok("0.0")),
            ("1e309", Err(Rule::OutOfRange)),
            ("1,5", Err(Rule::NotANumber)),
            (".", Err(Rule::NotANumber)),
            ("1_000", Err(Rule::NotANumber)),
            ("0x1p3", Err(Rule::NotANumber)),
            ("", Err(Rule::Empty)),
        ],
    );
    check(DataType::Real, &[("0.1", Ok("0.1")), ("1e39", Err(Rule::OutOfRange))]);
}

#[test]
fn truth_has_many_words() {
    for word in ["t", "TRUE", "Yes", "y", "on", "1", " true "] {
        check(DataType::Boolean, &[(word, Ok("true"))]);
    }
    for word in ["f", "False", "no", "N", "OFF", "0"] {
        check(DataType::Boolean, &[(word, Ok("false"))]);
    }
    for word in ["2", "tr", "maybe", "falsely", "tr\u{fc}e"] {
        check(DataType::Boolean, &[(word, Err(Rule::NotABoolean))]);
    }
    check(DataType::Boolean, &[("", Err(Rule::Empty))]);
}

#[test]
fn uuids_need_32_digits() {
    let text = "00112233-4455-6677-8899-aabbccddeeff";
    check(
        DataType::Uuid,
        &[
            (text, Ok(text)),
            ("00112233-4455-6677-8899-AABBCCDDEEFF", Ok(text)),
            ("{00112233-4455-6677-8899-aabbccddeeff}", Ok(text)),
            ("00112233445566778899aabbccddeeff", Ok(text)),
            ("{00112233445566778899aabbccddeeff}", Ok(text)),
            ("00112233-4455-6677-8899-aabbccddeefg", Err(Rule::NotAUuid)),
            ("00112233-4455-6677-88990aabbccddeeff", Err(Rule::NotAUuid)),
            ("0-112233-4455-6677-8899-aabbccddeeff", Err(Rule::NotAUuid)),
            ("00112233-4455-6677-8899-aabbccddeef", Err(Rule::NotAUuid)),
        ],
    );
}

#[test]
fn text_is_utf8_without_nul_and_counts_characters() {
    check(
        DataType::Varchar(Some(5)),
        &[
            ("", Ok("")),
            ("  a  ", Ok("  a  ")),
            ("h\u{e9}llo", Ok("h\u{e9}llo")),
            ("hello!", Err(Rule::TooLong)),
            ("h\u{e9}llo!", Err(Rule::TooLong)),
            ("a\u{0}b", Err(Rule::NulByte)),
            ("\u{e9}\u{0}", Err(Rule::NulByte)),
        ],
    );
    assert_eq!(check_bytes(b"caf\xe9", DataType::Char(9)), Err(Rule::NotUtf8));
    assert_eq!(check_bytes(b"12345678\xff", DataType::Varchar(None)), Err(Rule::NotUtf8));
    assert_eq!(check_bytes(b"12345678\0", DataType::Varchar(None)), Err(Rule::NulByte));
}

#[test]
fn bytes_are_raw_or_hexadecimal() {
    let binary = DataType::Binary(Some(3));
    assert_eq!(*check_bytes(b"\xff\0a", binary).unwrap(), *b"\xff\0a");
    assert_eq!(*check_bytes(b"\\xFF00", binary).unwrap(), *b"\xff\0");
    assert_eq!(*check_bytes(b"\\x", binary).unwrap(), *b"");
    assert_eq!(check_bytes(b"\\xf", binary), Err(Rule::NotHex));
    assert_eq!(check_bytes(b"\\xfg", binary), Err(Rule::NotHex));
    assert_eq!(check_bytes(b"abcd", binary), Err(Rule::TooLong));
}

/// Short strings over the characters that matter to numbers and moments.
fn near_misses() -> impl Strategy<Value = String> {
    let digits = prop::collection::vec(prop::sample::select(b"0123456789".to_vec()), 0..24);
    let mixed = prop::collection::vec(
        prop::sample::select(b"0123456789012345678901234567890123456789.-+:/e TZ\0".to_vec()),
        0..24,
    );
    prop_oneof![
        (digits, 0usize..40, any::<bool>()).prop_map(|(mut digits, point, minus)| {
            if point < digits.len() {
                digits[point] = b'.';
            }
            if minus {
                digits.insert(0, b'-');
            }
            digits
        }),
        mixed,
    ]
    .prop_map(|bytes| String::from_utf8(bytes).unwrap())
}

/// The slow model of decimals: move the point by hand, then let the standard library read it.
fn model_decimal(text: &str, precision: u8, scale: u8) -> Option<i128> {
    let text = text.trim_matches([' ', '\t']);
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, exponent.parse::<i128>().ok()?.clamp(-1000, 1000) as i32)
        }
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let trimmed = digits.trim_end_matches('0');
    if trimmed.is_empty() {
        return Some(0);
    }
    let moved = exponent - fraction.len() as i32 + (digits.len() - trimmed.len()) as i32;
    let zeros = moved + i32::from(scale);
    if !(0..100).contains(&zeros) {
        return None;
    }
    let all = format!("{trimmed}{}", "0".repeat(zeros as usize));
    let all = all.trim_start_matches('0');
    if all.len() > usize::from(precision) { None } else { Some(sign * all.parse::<i128>().ok()?) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn quick_paths_agree_with_slow_ones(text in near_misses(), precision in 1u8..=38, scale in 0u8..=38) {
        let field = text.as_bytes();
        let scale = scale.min(precision);
        // The field inside of a chunk, after bytes that must not count.
        let chunk = [b"1234567.901234567890".as_slice(), field, b"99"].concat();
        let inside = Quick::from_chunk(&chunk, 20, 20 + field.len());
        let at_start = Quick::from_chunk(field, 0, field.len());
        let slow = slow_decimal(field, precision, scale);
        prop_assert_eq!(slow.ok(), model_decimal(&text, precision, scale));
        for number in [Quick::from_field(field), inside, at_start] {
            for (min, max) in [(-32768, 32767), (i64::MIN, i64::MAX)] {
                prop_assert_eq!(parse_integer(number, min, max), slow_integer(field, min, max));
            }
            prop_assert_eq!(parse_wide_decimal(number, precision, scale), slow);
            if precision <= 18 {
                prop_assert_eq!(parse_decimal(number, precision, scale).map(i128::from), slow);
            }
            prop_assert_eq!(parse_double(number), slow_double(field));
            prop_assert_eq!(parse_real(number), slow_real(field));
        }
        prop_assert_eq!(parse_date(field), slow_date(field));
        prop_assert_eq!(parse_time(field), slow_time(field));
        for zone in [Zone::Absent, Zone::Utc] {
            prop_assert_eq!(parse_timestamp(field, zone), slow_timestamp(field, zone));
        }
        prop_assert_eq!(parse_uuid(field), slow_uuid(field));
    }

    #[test]
    fn damaged_moments_agree(
        days in -719_162i64..=2_932_896,
        micros in 0i64..86_400_000_000,
        at in 0usize..40,
        byte in any::<u8>(),
    ) {
        let value = Value::Int(days * 86_400_000_000 + micros);
        let mut text = display_value(&value, DataType::Timestamp).into_bytes();
        prop_assert_eq!(parse_value(&text, DataType::Timestamp), Ok(value));
        if let Some(place) = text.get_mut(at) {
            *place = byte;
        }
        prop_assert_eq!(parse_timestamp(&text, Zone::Utc), slow_timestamp(&text, Zone::Utc));
        prop_assert_eq!(parse_date(&text[..10]), slow_date(&text[..10]));
        prop_assert_eq!(parse_time(&text[11..]), slow_time(&text[11..]));
    }

    #[test]
    fn damaged_uuids_agree(wide in any::<i128>(), at in 0usize..40, byte in any::<u8>()) {
        let mut text = display_value(&Value::Wide(wide), DataType::Uuid).into_bytes();
        prop_assert_eq!(parse_uuid(&text), Ok(wide));
        if let Some(place) = text.get_mut(at) {
            *place = byte;
        }
        prop_assert_eq!(parse_uuid(&text), slow_uuid(&text));
    }

    #[test]
    fn text_check_agrees_with_the_standard_library(
        bytes in prop::collection::vec(
            prop::sample::select(vec![b'a', b'b', 0, 0x7f, 0x80, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 1]), 0..20),
        limit in prop::option::of(0u32..12),
    ) {
        let expected = match std::str::from_utf8(&bytes) {
            Err(_) => Err(Rule::NotUtf8),
            Ok(text) if text.contains('\0') => Err(Rule::NulByte),
            Ok(text) if limit.is_some_and(|n| text.chars().count() > n as usize) => Err(Rule::TooLong),
            Ok(_) => Ok(()),
        };
        prop_assert_eq!(check_text(&bytes, limit), expected);
    }

    #[test]
    fn display_reads_back(int in any::<i64>(), wide in any::<i128>(), bits in any::<u64>()) {
        let wide = wide % 10i128.pow(38);
        let double = f64::from_bits(bits);
        let double = if double.is_nan() { f64::NAN } else { double };
        let real = f32::from_bits(bits as u32);
        let real = if real.is_nan() { f32::NAN } else { real };
        let pairs = [
            (Value::Int(int), DataType::BigInt),
            (Value::Int(i64::from(int as i16)), DataType::SmallInt),
            (Value::Int(int % 1_000_000_000_000_000_000), decimal(18, 4)),
            (Value::Wide(wide), decimal(38, 0)),
            (Value::Wide(wide), decimal(38, 38)),
            (Value::Wide(wide), DataType::Uuid),
            (Value::Int(ordinal_from_f64(double)), DataType::Double),
            (Value::Int(ordinal_from_f32(real)), DataType::Real),
            (Value::Int(int.rem_euclid(86_400_000_000)), DataType::Time),
            (Value::Int(int.rem_euclid(2)), DataType::Boolean),
            (Value::Bytes(wide.to_le_bytes().into()), DataType::Binary(None)),
        ];
        for (value, data_type) in pairs {
            let text = display_value(&value, data_type);
            prop_assert_eq!(parse_value(text.as_bytes(), data_type), Ok(value), "{} as {}", text, data_type);
        }
    }
}
