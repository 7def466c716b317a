#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use datafusion::arrow::array::{
    BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int16Array,
    Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray, NullArray, StringArray,
    StringViewArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampSecondArray,
    UInt64Array,
};
use datafusion::arrow::datatypes::{Int64Type, IntervalMonthDayNano};
use proptest::prelude::*;

use super::*;
use crate::types::UTC;

/// Values that are special somewhere, in a small space.
const NUMBERS: [i64; 12] = [
    0,
    1,
    -1,
    10,
    99,
    -100,
    1_500_000,
    86_399_999_999,
    1_709_164_800_123_456,
    719_163,
    i64::MAX,
    i64::MIN,
];
const TEXTS: [&str; 10] = [
    "",
    "a",
    "NULL",
    "0",
    "true",
    "a,b",
    "say \"x\"",
    "it's",
    "two\nlines\r",
    "größe, die länger als zwölf Bytes ist",
];

/// What stands for NULL.
const NULLS: [&str; 5] = ["", "NULL", "0", "true", "a,b"];

/// Columns of all types, each value one of few; `None` is NULL.
fn batch(seeds: &[Option<u8>]) -> RecordBatch {
    let numbers = || seeds.iter().map(|s| s.map(|s| NUMBERS[usize::from(s) % NUMBERS.len()]));
    let texts = || seeds.iter().map(|s| s.map(|s| TEXTS[usize::from(s) % TEXTS.len()]));
    let decimals = |precision, scale| {
        let values =
            numbers().map(|n| n.map(|n| i128::from(n) * if scale > 18 { 1 << 40 } else { 1 }));
        let array: Decimal128Array = values.collect();
        Arc::new(array.with_precision_and_scale(precision, scale).unwrap()) as ArrayRef
    };
    let days = |outside: bool| -> ArrayRef {
        let day = |n: i64| {
            (if outside { n.clamp(-80_000_000, 90_000_000) } else { n.clamp(-700_000, 2_900_000) })
                as i32
        };
        Arc::new(numbers().map(|n| n.map(day)).collect::<Date32Array>())
    };
    let moments: TimestampMicrosecondArray = numbers().map(|n| n.map(|n| n / 100_000)).collect();
    let times: Time64MicrosecondArray =
        numbers().map(|n| n.map(|n| n.rem_euclid(86_400_000_000))).collect();
    let seconds: TimestampSecondArray = numbers().map(|n| n.map(|n| n % 10_000_000)).collect();
    let months = |n: i64| IntervalMonthDayNano::new((n % 100) as i32, (n % 40) as i32, n % 1_000);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(numbers().map(|n| n.map(|n| n as i16)).collect::<Int16Array>()),
        Arc::new(numbers().map(|n| n.map(|n| n as i32)).collect::<Int32Array>()),
        Arc::new(numbers().collect::<Int64Array>()),
        Arc::new(numbers().map(|n| n.map(|n| n as u64)).collect::<UInt64Array>()),
        Arc::new(numbers().map(|n| n.map(|n| n as f64 / 8.0)).collect::<Float64Array>()),
        Arc::new(numbers().map(|n| n.map(|n| n > 0)).collect::<BooleanArray>()),
        decimals(38, 0),
        decimals(38, 2),
        decimals(38, 18),
        decimals(38, 20),
        days(false),
        days(true),
        Arc::new(moments.clone()),
        Arc::new(moments.clone().with_timezone(UTC)),
        Arc::new(moments.with_timezone("+05:30")),
        Arc::new(times),
        Arc::new(seconds),
        Arc::new(numbers().map(|n| n.map(months)).collect::<IntervalMonthDayNanoArray>()),
        Arc::new(texts().collect::<StringArray>()),
        Arc::new(texts().collect::<StringViewArray>()),
        Arc::new(texts().map(|t| t.map(str::as_bytes)).collect::<BinaryViewArray>()),
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(
            numbers().map(|n| n.map(|n| [Some(n), None])),
        )),
        Arc::new(NullArray::new(seeds.len())),
    ];
    let named = columns.into_iter().enumerate().map(|(n, column)| (format!("c{n}"), column, true));
    RecordBatch::try_from_iter_with_nullable(named).unwrap()
}

fn options() -> impl Strategy<Value = CsvOptions> {
    (
        prop::sample::select(&b",;.-1:t\t "[..]),
        prop::sample::select(&b"\"'e"[..]),
        prop::sample::select(&NULLS[..]),
        any::<bool>(),
    )
        .prop_map(|(delimiter, quote, null, quoted)| CsvOptions {
            header: false,
            delimiter,
            quote,
            null: null.to_owned(),
            texts: if quoted { Texts::Quoted } else { Texts::AsNeeded },
        })
}

fn slow(batch: &RecordBatch, options: &CsvOptions) -> Vec<u8> {
    let format = text_options();
    let formatters = formatters(batch, &format).unwrap();
    let mut out = Vec::new();
    for row in 0..batch.num_rows() {
        push_line(batch, &formatters, row, options, |_, _| {}, &mut out).unwrap();
    }
    out
}

proptest! {
    #[test]
    fn lines_made_together_are_those_made_one_by_one(
        seeds in prop::collection::vec(prop::option::weighted(0.8, any::<u8>()), 0..20),
        options in options(),
        cut in 1_usize..400,
    ) {
        let batch = batch(&seeds);
        let expected = slow(&batch, &options);
        let mut found = Vec::new();
        push_lines(&batch, &options, &mut found).unwrap();
        prop_assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&expected));
        let mut of_parts = Vec::new();
        for part in parts(&batch, cut) {
            prop_assert!(part.num_rows() == 1 || lines_bytes(&part) <= cut);
            push_lines(&part, &options, &mut of_parts).unwrap();
        }
        prop_assert_eq!(of_parts, expected);
    }
}

/// A text of 1 MB that stands in each row is not written for all at once.
#[test]
fn parts_of_long_texts_are_few_rows() {
    let long = "x".repeat(1 << 20);
    let texts: StringViewArray = (0..64).map(|_| Some(long.as_str())).collect();
    let batch = RecordBatch::try_from_iter([("t", Arc::new(texts) as ArrayRef)]).unwrap();
    assert_eq!(parts(&batch, 512 << 10).len(), 64);
    assert_eq!(parts(&batch, 5 << 20).len(), 16);
}
