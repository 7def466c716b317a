//! Rows that nobody wants are not read: inputs whose paths say so, and row groups of Parquet whose bounds do.
//!
//! What is wanted is a hint. Rows that do not pass may come all the same, and whoever asks tests them again, as the filter of a load
//! (`--where`) does; rows that may pass are never left out: where nothing is known, all is read. Rows that are not read count as filtered.

use std::sync::Arc;

use coload_arrow::{ArrowType, Unit};
use coload_input::Inputs;
use coload_scan::{Predicate, Test, may_match};
use coload_types::{DataType, Physical, Result, Value};
use coload_wire::{ColumnFrom, FieldsByInput};

use crate::derive::Partition;
use crate::legs::table_column;
use crate::request::LoadRequest;

/// Tests that a row passes which is wanted, by columns: of the table, or those that are read.
#[derive(Debug, Clone)]
pub struct WantedRows(Vec<Predicate>);

impl WantedRows {
    /// The rows that pass all of these tests; `None` where all may be wanted. A test that passes NULL says nothing here.
    pub fn new(tests: &[Predicate]) -> Option<Self> {
        let of_values = tests.iter().filter(|test| !matches!(test.test, Test::IsNull));
        let tests: Vec<Predicate> = of_values.cloned().collect();
        (!tests.is_empty()).then_some(WantedRows(tests))
    }

    /// The tests of a load by the columns that it reads: those of who asked for some rows, and of its filter.
    pub(crate) fn of_read(request: &LoadRequest) -> Option<Self> {
        let asked = request.wanted.as_deref();
        let mut tests = Vec::new();
        for read in 0..request.read_schema().len() {
            let column = table_column(request, read);
            let of_column = |wanted| column.map(|column| WantedRows::of_column(wanted, column));
            let of_column = asked.and_then(of_column).into_iter().flatten().cloned();
            tests.extend(of_column.map(|test| Predicate { column: read, test }));
        }
        tests.extend(request.program.iter().flat_map(|program| program.tests()).cloned());
        WantedRows::new(&tests)
    }

    fn of_column(&self, column: usize) -> impl Iterator<Item = &Test> {
        self.0.iter().filter(move |test| test.column == column).map(|test| &test.test)
    }

    /// Whether a row may be wanted whose value in a column is one of these, or between them.
    pub fn may_pass(&self, column: usize, least: &Value, greatest: &Value) -> bool {
        // Of rows with NULL nothing is known here, but no test passes them: those that do were left out.
        self.of_column(column).all(|test| may_match(test, 2, 0, Some(least), Some(greatest)))
    }

    /// Whether anything is asked of a column; then no row is wanted that has NULL in it.
    pub fn asks(&self, column: usize) -> bool {
        self.of_column(column).next().is_some()
    }

    /// The values of a column of which a row has one that is wanted; `None` where these are not told one by one.
    pub fn one_of(&self, column: usize) -> Option<&[Value]> {
        self.of_column(column).find_map(|test| match test {
            Test::In(values) => Some(&values[..]),
            _ => None,
        })
    }
}

/// Leaves out the inputs of a load whose paths say that none of their rows is wanted; one is kept in any case.
///
/// # Errors
/// As [`check_partition`](crate::check_partition).
pub fn keep_wanted_inputs(request: &mut LoadRequest) -> Result<()> {
    let (Some(test), Some(derivation)) = (&request.wanted, &request.derivation) else {
        return Ok(());
    };
    let mut kept = vec![true; request.inputs.len()];
    for (column, from) in derivation.columns.iter().enumerate() {
        let ColumnFrom::Partition(key) = from else { continue };
        let of_table = &request.schema.columns()[column];
        let values = Partition::new(of_table, key, request.inputs.names())?;
        for (input, kept) in kept.iter_mut().enumerate() {
            let value = values.value(input);
            *kept &= match value {
                Some(value) => test.may_pass(column, &value, &value),
                None => !test.asks(column),
            };
        }
    }
    if kept.iter().all(|kept| *kept) {
        return Ok(());
    }
    let first = kept.iter().position(|kept| *kept).unwrap_or(0);
    let numbers = || (0..kept.len()).filter(|input| kept[*input] || *input == first);
    request.inputs = numbers().map(|number| request.inputs.at(number)).collect::<Inputs>();
    if let Some(fields) = &request.fields_by_input
        && !fields.of_input.is_empty()
    {
        let of_input = numbers().map(|number| fields.of_input[number]).collect();
        let fields = FieldsByInput { ways: fields.ways.clone(), of_input };
        request.fields_by_input = Some(Arc::new(fields));
    }
    Ok(())
}

/// A bound that a file has of a column, as a value of the column's type; `None` where the one is not the other by itself.
pub fn value_of_bound(stored: &ArrowType, bound: i64, data_type: DataType) -> Option<Value> {
    let value = match (stored, data_type) {
        (
            ArrowType::Int { signed: true, .. },
            DataType::SmallInt | DataType::Integer | DataType::BigInt,
        )
        | (ArrowType::Date { width: 4 }, DataType::Date) => bound,
        (ArrowType::Decimal { scale, .. }, DataType::Decimal { scale: own, .. })
            if i16::from(*scale) == i16::from(own) =>
        {
            bound
        }
        (ArrowType::Timestamp { unit, .. }, DataType::Timestamp | DataType::TimestampTz) => {
            match unit {
                Unit::Micro => bound,
                Unit::Milli => bound.checked_mul(1_000)?,
                Unit::Second | Unit::Nano => return None,
            }
        }
        _ => return None,
    };
    Some(match data_type.physical() {
        Physical::Wide => Value::Wide(value.into()),
        Physical::Int | Physical::Bytes => Value::Int(value),
    })
}

/// The same of a bound of texts, which may be cut: still not above the least, or not below the greatest.
pub fn value_of_text_bound(stored: &ArrowType, bound: &[u8], data_type: DataType) -> Option<Value> {
    let is_text = matches!(stored, ArrowType::Text(_)) && data_type.is_text();
    is_text.then(|| Value::Bytes(bound.into()))
}

/// What is stored in a file where a column has a value: the other way of [`value_of_bound`]. `Some(None)` where no row of the file can
/// have it.
pub fn bound_of_value(
    stored: &ArrowType,
    value: &Value,
    data_type: DataType,
) -> Option<Option<i64>> {
    // The one is the other for all values where it is for one; where it is not, nothing is known of any.
    value_of_bound(stored, 0, data_type)?;
    let value = match value {
        Value::Int(value) => *value,
        // Decimals of many digits are stored as bytes, of which nothing is known here.
        Value::Wide(value) => i64::try_from(*value).ok()?,
        Value::Bytes(_) => return None,
    };
    match stored {
        ArrowType::Timestamp { unit: Unit::Milli, .. } => {
            Some((value % 1_000 == 0).then_some(value / 1_000))
        }
        _ => Some(Some(value)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_ddl::parse_columns;
    use coload_source::{Dialect, InputFields, InputFile, InputSource};
    use coload_wire::Derivation;

    use super::*;

    #[test]
    fn inputs_whose_path_says_null_are_read_for_those_only_who_want_null() {
        let names = ["d/y=1/a.csv", "d/y=__HIVE_DEFAULT_PARTITION__/b.csv", "d/y=2/c.csv"];
        let file = |name: &str| InputFile { name: name.to_owned(), source: InputSource::Stdin };
        let kept = |tests: &[Predicate]| {
            let read = parse_columns("v BIGINT").unwrap();
            let schema = parse_columns("v BIGINT, y BIGINT").unwrap();
            let inputs: Vec<InputFile> = names.iter().map(|name| file(name)).collect();
            let mut request = LoadRequest::new(inputs, "t", schema, Dialect::default());
            let columns = vec![ColumnFrom::Read(0), ColumnFrom::Partition("y".into())];
            request.derivation = Some(Derivation { read, columns });
            let way = |count| InputFields { count, of_column: vec![Some(count - 1)] };
            let fields = FieldsByInput { ways: vec![way(1), way(2)], of_input: vec![0, 1, 0] };
            request.fields_by_input = Some(Arc::new(fields));
            request.wanted = WantedRows::new(tests).map(Arc::new);
            keep_wanted_inputs(&mut request).unwrap();
            let kept: Vec<String> = request.inputs.names().iter().collect();
            let of_input = request.fields_by_input.unwrap().of_input.clone();
            assert_eq!(of_input.len(), kept.len());
            (kept.iter().map(|name| name.as_bytes()[name.len() - 5]).collect::<Vec<_>>(), of_input)
        };
        let test = |test| vec![Predicate { column: 1, test }];
        assert_eq!(kept(&[]), (vec![b'a', b'b', b'c'], vec![0, 1, 0]));
        assert_eq!(kept(&test(Test::In(vec![Value::Int(2)]))), (vec![b'c'], vec![0]));
        let some = vec![Value::Int(1), Value::Int(2)];
        assert_eq!(kept(&test(Test::In(some))), (vec![b'a', b'c'], vec![0, 0]));
        assert_eq!(kept(&test(Test::IsNull)).0, [b'a', b'b', b'c']);
    }

    #[test]
    fn what_is_stored_is_what_it_was_made_of() {
        let micro = ArrowType::Timestamp { unit: Unit::Micro, zone: None };
        let milli = ArrowType::Timestamp { unit: Unit::Milli, zone: None };
        let of = |stored: &ArrowType, value| {
            bound_of_value(stored, &Value::Int(value), DataType::Timestamp)
        };
        assert_eq!(of(&micro, 1_234_567), Some(Some(1_234_567)));
        assert_eq!(of(&milli, 1_234_000), Some(Some(1_234)));
        assert_eq!(of(&milli, 1_234_567), Some(None));
        assert_eq!(of(&ArrowType::Float(8), 1), None);
        // Wide values were taken for numbers that no file has, and their rows were left out: UUIDs, and decimals in bytes.
        let wide = Value::Wide(i128::MIN);
        let uuid = bound_of_value(&ArrowType::Text(4), &wide, DataType::Uuid);
        let decimal = DataType::decimal(38, 0).expect("a decimal");
        let number = ArrowType::Decimal { width: 16, precision: 38, scale: 0 };
        assert_eq!((uuid, bound_of_value(&number, &wide, decimal)), (None, None));
        for bound in [-5, 0, 7_777] {
            let value = value_of_bound(&milli, bound, DataType::Timestamp);
            let back = value.and_then(|v| bound_of_value(&milli, &v, DataType::Timestamp));
            assert_eq!(back, Some(Some(bound)));
        }
    }
}
