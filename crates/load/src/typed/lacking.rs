//! Columns of the table that an input has no field for, where inputs are joined by name.

use std::borrow::Cow;

use coload_arrow::{ArrowType, Slice, SliceValues, Strings};
use coload_types::display::write_value;
use coload_types::{DataType, Value};

use super::Column;

/// Bytes of the places of strings.
const PLACE_BYTES: usize = 8;

/// So many rows of a column that an input lacks: its DEFAULT, else NULL.
pub fn lacking_rows(column: &coload_types::Column, rows: usize) -> Column<'static> {
    let (values, slice) = match &column.default {
        None => (ArrowType::Null, Slice::new(rows, None, SliceValues::Nothing)),
        Some(value) => {
            let (values, bytes) = match (value, column.data_type) {
                // Its text is read as the value again.
                (Value::Int(_) | Value::Wide(_), _) | (_, DataType::List(_)) => {
                    let mut text = Vec::new();
                    write_value(value, column.data_type, &mut text);
                    (ArrowType::Text(PLACE_BYTES), text)
                }
                (Value::Bytes(bytes), _) => (ArrowType::Binary(PLACE_BYTES), bytes.to_vec()),
            };
            let strings = Strings::Ends { places: vec![0, bytes.len()], bytes: Cow::Owned(bytes) };
            let one = Slice::new(1, None, SliceValues::Strings(strings));
            let all = SliceValues::Indexed(vec![0; rows], Box::new(one));
            (values, Slice::new(rows, None, all))
        }
    };
    Column { values, slice, dictionary: None }
}

#[cfg(test)]
mod tests {
    use coload_types::{DataType, parse_value};

    use super::super::convert::convert;
    use super::*;

    #[test]
    fn columns_that_are_lacking_have_their_default_in_each_row() {
        let defaults: [(DataType, &str); 8] = [
            (DataType::Integer, "-7"),
            (DataType::Decimal { precision: 30, scale: 3 }, "1.500"),
            (DataType::Double, "0.1"),
            (DataType::Boolean, "true"),
            (DataType::Date, "2024-02-29"),
            (DataType::TimestampTz, "2024-02-29 01:02:03.000004+00"),
            (DataType::Varchar(Some(9)), "x, \"y\""),
            (DataType::Uuid, "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        ];
        for (data_type, text) in defaults {
            let mut column = coload_types::Column::new("c", data_type);
            let null = lacking_rows(&column, 3);
            let null = convert(&null.slice, &null.values, data_type);
            assert!(null.bad.is_empty());
            assert_eq!(
                (0..3).map(|row| null.plain.get(row)).collect::<Vec<_>>(),
                [None, None, None]
            );
            let value = parse_value(text.as_bytes(), data_type).ok();
            assert!(value.is_some());
            column.default.clone_from(&value);
            let rows = lacking_rows(&column, 2);
            let rows = convert(&rows.slice, &rows.values, data_type);
            assert!(rows.bad.is_empty(), "{data_type}");
            assert_eq!([rows.plain.get(0), rows.plain.get(1)], [value.clone(), value]);
        }
    }
}
