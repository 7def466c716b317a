#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use datafusion::arrow::array::{
    Date32Array, Decimal128Array, Int64Array, LargeStringArray, StringArray, StringViewArray,
};
use datafusion::arrow::buffer::{OffsetBuffer, ScalarBuffer};
use proptest::prelude::*;

use super::*;

fn column(data_type: DataType) -> Column {
    Column::new("c", data_type)
}

/// The rows of an array in one step, and one by one; both end with the same error, if one does.
fn whole_and_each(of: &Column, array: &ArrayRef) -> [std::result::Result<Plain, String>; 2] {
    let (mut whole, mut each) = (ColumnRows::new(of), ColumnRows::new(of));
    let one = |row| each.append(&array.slice(row, 1));
    let each_done = (0..array.len()).try_for_each(one);
    [
        whole.append(array).map(|()| whole.into_plain()).map_err(|e| e.to_string()),
        each_done.map(|()| each.into_plain()).map_err(|e| e.to_string()),
    ]
}

/// An array of these texts, in which the NULLs stand for bytes too.
fn over_garbage(texts: &[Option<&str>]) -> StringArray {
    let lengths = texts.iter().map(|text| text.unwrap_or("garbage").len());
    let bytes: String = texts.iter().map(|text| text.unwrap_or("garbage")).collect();
    let nulls: NullBuffer = texts.iter().map(Option::is_some).collect();
    StringArray::new(OffsetBuffer::from_lengths(lengths), bytes.as_bytes().into(), Some(nulls))
}

proptest! {
    #[test]
    fn texts_are_those_of_their_rows(
        picks in proptest::collection::vec(proptest::option::of(0usize..5), 0..12),
        dirty in proptest::option::of(0usize..3),
        limit in proptest::option::of(2u32..5),
        shape in 0usize..4,
        skipped in 0usize..3,
    ) {
        let words = ["", "a", "bcd", "two ", "éé"];
        let mut texts: Vec<Option<&str>> = picks.iter().map(|p| p.map(|p| words[p])).collect();
        texts.extend(dirty.map(|d| Some(["a\0b", "too long a text", "ééééé"][d])));
        let array: ArrayRef = match shape {
            0 => Arc::new(StringArray::from(texts)),
            1 => Arc::new(LargeStringArray::from(texts)),
            2 => Arc::new(StringViewArray::from(texts)),
            _ => Arc::new(over_garbage(&texts)),
        };
        let array = array.slice(skipped.min(array.len()), array.len().saturating_sub(skipped));
        let [whole, each] = whole_and_each(&column(DataType::Varchar(limit)), &array);
        prop_assert_eq!(whole, each);
    }

    #[test]
    fn numbers_are_those_of_their_rows(
        numbers in proptest::collection::vec((-120i64..120, any::<bool>()), 0..20),
        all_there in any::<bool>(),
    ) {
        let there = |is_there: bool| all_there || is_there;
        let nulls: NullBuffer = numbers.iter().map(|(_, is_there)| there(*is_there)).collect();
        let values: ScalarBuffer<i128> = numbers.iter().map(|(n, _)| i128::from(*n)).collect();
        let decimals = Decimal128Array::new(values, Some(nulls.clone()));
        let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(2, 0).unwrap());
        let of = column(DataType::Decimal { precision: 2, scale: 0 });
        let [whole, each] = whole_and_each(&of, &decimals);
        prop_assert_eq!(&whole, &each);
        let fit = numbers.iter().all(|(n, is_there)| !there(*is_there) || n.abs() < 100);
        prop_assert_eq!(whole.is_ok(), fit);
        let values: ScalarBuffer<i64> = numbers.iter().map(|(n, _)| *n).collect();
        let integers: ArrayRef = Arc::new(Int64Array::new(values, Some(nulls)));
        let [whole, each] = whole_and_each(&column(DataType::BigInt), &integers);
        prop_assert_eq!(whole, each);
    }
}

#[test]
fn a_date_outside_the_calendar_is_named_and_one_that_is_null_is_not() {
    let of = column(DataType::Date);
    let days = ScalarBuffer::from(vec![0, i32::MAX]);
    let nulls = NullBuffer::from(vec![true, false]);
    let array: ArrayRef = Arc::new(Date32Array::new(days.clone(), Some(nulls)));
    let [whole, _] = whole_and_each(&of, &array);
    assert_eq!(whole.unwrap().values, Values::Int(vec![0, 0]));
    let array: ArrayRef = Arc::new(Date32Array::new(days, None));
    let [whole, each] = whole_and_each(&of, &array);
    assert!(whole.clone().unwrap_err().contains("years are 0001 to 9999"), "{whole:?}");
    assert_eq!(whole, each);
}
