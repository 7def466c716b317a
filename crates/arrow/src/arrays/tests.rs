//! Arrays of the `arrow` crates, whole and in slices, and arrays that lie.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int32Array, RunArray, StringArray,
    StringViewArray,
};
use arrow_data::ArrayDataBuilder;
use arrow_schema::{DataType, Field as ArrowField};

use super::*;
use crate::dictionary::Dictionary;
use crate::value::write_scalar;

/// The values of rows as texts.
fn texts(array: &dyn Array, rows: Range<usize>) -> Result<Vec<Option<String>>> {
    let schema = Schema::new(vec![ArrowField::new("f", array.data_type().clone(), true)]);
    let (schema, data) = (schema_of(&schema)?, array.to_data());
    let of = (&schema, &schema.columns()?[0]);
    let none = |_| Err(Fault::damaged("no dictionary"));
    let dictionary = dictionaries_of(of, &data).pop().map(|found| -> Result<_> {
        let values = read_array(&found.field, found.data, u64::MAX, &none)?;
        Ok(Arc::new(Dictionary::new(values.values, values.slice.into_owned())))
    });
    let dictionary = dictionary.transpose()?;
    let find = |_| dictionary.clone().ok_or_else(|| Fault::damaged("no dictionary"));
    let column = read_array_column(of, &data, rows, u64::MAX, &find)?;
    let text = |row| {
        column.get(row).map(|value| {
            let mut text = Vec::new();
            write_scalar(value, &mut text);
            String::from_utf8(text).unwrap()
        })
    };
    Ok((0..column.slice.rows).map(text).collect())
}

const LONG: &str = "a text that does not stand in its view";

fn arrays() -> Vec<(ArrayRef, Vec<Option<&'static str>>)> {
    let some = vec![Some("x"), None, Some(LONG), Some(""), Some("x"), None, Some("yy")];
    let keys: DictionaryArray<Int32Type> = some.iter().copied().collect();
    let runs = RunArray::try_new(
        &Int32Array::from(vec![2, 3, 7]),
        &StringArray::from(vec![Some("x"), None, Some("y")]),
    );
    let of_runs = vec![Some("x"), Some("x"), None, Some("y"), Some("y"), Some("y"), Some("y")];
    let bools = BooleanArray::from(vec![
        Some(true),
        None,
        Some(false),
        Some(true),
        None,
        Some(true),
        Some(false),
    ]);
    let of_bools =
        [Some("true"), None, Some("false"), Some("true"), None, Some("true"), Some("false")];
    let ints = Int32Array::from(vec![Some(1), None, Some(-3), Some(4), None, Some(6), Some(7)]);
    let of_ints = [Some("1"), None, Some("-3"), Some("4"), None, Some("6"), Some("7")];
    vec![
        (Arc::new(StringArray::from(some.clone())), some.clone()),
        (Arc::new(StringViewArray::from(some.clone())), some.clone()),
        (Arc::new(keys), some),
        (Arc::new(runs.unwrap()), of_runs),
        (Arc::new(bools), of_bools.to_vec()),
        (Arc::new(ints), of_ints.to_vec()),
    ]
}

#[test]
fn slices_of_arrays_have_the_rows_of_the_arrays() {
    for (array, expected) in arrays() {
        for from in 0..=expected.len() {
            for to in from..=expected.len() {
                let wanted: Vec<Option<String>> =
                    expected[from..to].iter().map(|text| text.map(str::to_owned)).collect();
                let whole = texts(&array, from..to).unwrap();
                let cut = texts(&array.slice(from, to - from), 0..to - from).unwrap();
                assert_eq!(
                    (&whole, &cut),
                    (&wanted, &wanted),
                    "{} {from}..{to}",
                    array.data_type()
                );
            }
        }
    }
}

#[test]
fn rows_that_are_not_there_are_refused() {
    let array = Int32Array::from(vec![1]);
    assert!(texts(&array, 0..2).is_err());
}

/// An array of these buffers, which nobody has checked.
fn unchecked(data_type: DataType, rows: usize, buffers: Vec<Buffer>) -> ArrayData {
    let builder = ArrayDataBuilder::new(data_type).len(rows).buffers(buffers);
    // SAFETY: what is read of it is only bytes, by the code that is tested.
    unsafe { builder.build_unchecked() }
}

fn read(data: &ArrayData) -> Result<()> {
    let schema = Schema::new(vec![ArrowField::new("f", data.data_type().clone(), true)]);
    let schema = schema_of(&schema)?;
    let of = (&schema, &schema.columns()?[0]);
    // What is only counted must not panic either.
    array_bytes(of, data);
    let none = |_| Err(Fault::damaged("no dictionary"));
    read_array_column(of, data, 0..data.len(), 1 << 20, &none).map(drop)
}

#[test]
fn arrays_that_contradict_themselves_are_refused() {
    let places = |places: &[i32]| Buffer::from_vec(places.to_vec());
    let bytes = || Buffer::from_vec(b"abc".to_vec());
    let strings = |of: &[i32]| unchecked(DataType::Utf8, of.len() - 1, vec![places(of), bytes()]);
    assert!(read(&strings(&[0, 1, 3])).is_ok());
    for wrong in [&[0, 2, 1][..], &[0, 1, 4], &[-1, 1, 2], &[0, 9, 3], &[3, 3, 2]] {
        assert!(read(&strings(wrong)).is_err(), "{wrong:?}");
    }
    let mut view = [0_u8; 16];
    view[0] = 13;
    view[12] = 1;
    let views = |data: usize| {
        let data = Buffer::from_vec(vec![b'x'; data]);
        unchecked(DataType::Utf8View, 1, vec![Buffer::from_vec(view.to_vec()), data])
    };
    assert!(read(&views(14)).is_ok());
    assert!(read(&views(13)).is_err());
    let short = unchecked(DataType::Int32, 3, vec![places(&[1, 2])]);
    assert!(read(&short).is_err());
}

#[test]
fn lists_that_contradict_themselves_are_refused() {
    let item = || Arc::new(ArrowField::new("item", DataType::Int32, true));
    let numbers = |numbers: &[i32]| Buffer::from_vec(numbers.to_vec());
    let of = |data_type: DataType, rows: usize, buffers: Vec<Buffer>| {
        let builder = ArrayDataBuilder::new(data_type).len(rows).buffers(buffers);
        let items = unchecked(DataType::Int32, 3, vec![numbers(&[1, 2, 3])]);
        // SAFETY: what is read of it is only bytes, by the code that is tested.
        unsafe { builder.add_child_data(items).build_unchecked() }
    };
    let list = |ends: &[i32]| of(DataType::List(item()), ends.len() - 1, vec![numbers(ends)]);
    assert!(read(&list(&[0, 1, 3])).is_ok());
    for wrong in [&[0, 2, 1][..], &[0, 1, 4], &[-1, 1, 2], &[3, 3, 2], &[0, i32::MAX]] {
        assert!(read(&list(wrong)).is_err(), "{wrong:?}");
    }
    let views = |starts: &[i32], counts: &[i32]| {
        let buffers = vec![numbers(starts), numbers(counts)];
        of(DataType::ListView(item()), starts.len(), buffers)
    };
    assert!(read(&views(&[1, 0, 900], &[2, 3, 0])).is_ok());
    for (starts, counts) in [([1], [3]), ([-1], [1]), ([0], [-1]), ([i32::MAX], [i32::MAX])] {
        assert!(read(&views(&starts, &counts)).is_err(), "{starts:?} {counts:?}");
    }
    let fixed =
        |width: i32, rows: usize| of(DataType::FixedSizeList(item(), width), rows, Vec::new());
    assert!(read(&fixed(3, 1)).is_ok());
    assert!(read(&fixed(3, 2)).is_err());
    assert!(read(&fixed(i32::MAX, 1 << 40)).is_err());
}
