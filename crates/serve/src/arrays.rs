//! Values of a column in row order as Arrow arrays.
//!
//! Cost: a copy of each value; of a column with codes a look at a table of its values, and one copy of each text.

use std::sync::Arc;

use coload_ddl::CheckedColumn;
use coload_types::{DataType, Error, Result, Values, f32_from_ordinal, f64_from_ordinal};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array,
    Int32Array, Int64Array, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use datafusion::arrow::buffer::NullBuffer;

use crate::lists::Lists;
use crate::types::UTC;
use crate::views::Views;

/// The first `rows` values of a column as an array of its type.
///
/// # Errors
/// `Corrupt` when text is not UTF-8, `Limit` when it is over 2 GiB.
pub(crate) fn array_of(
    column: CheckedColumn<'_>,
    rows: usize,
    data_type: DataType,
) -> Result<ArrayRef> {
    let nulls = nulls_of(column, rows);
    Ok(match (values_of(column), data_type) {
        (Values::Int(values), data_type) => {
            let rows = Rows { column, rows, values };
            ints_of(&rows, nulls, data_type)?
        }
        (Values::Wide(values), DataType::Uuid) => {
            let mut views = Views::with_capacity(rows);
            let mut text = Vec::with_capacity(36);
            for value in (Rows { column, rows, values }).map(|v| *v) {
                text.clear();
                coload_types::display::write_wide(value, DataType::Uuid, &mut text);
                views.push(&text)?;
            }
            views.into_array(nulls, data_type)?
        }
        (Values::Wide(values), data_type) => {
            let values = (Rows { column, rows, values }).map(|v| *v);
            decimals(Decimal128Array::new(values.into(), nulls), data_type)?
        }
        (Values::Bytes(strings), DataType::List(element)) => {
            let mut lists = Lists::new(element);
            for row in 0..rows {
                lists.push(index_of(column, row).map(|at| strings.get(at)))?;
            }
            lists.into_array()?
        }
        (Values::Bytes(strings), data_type) => {
            if let CheckedColumn::Coded { codes, .. } = column {
                let mut views = Views::with_capacity(strings.len());
                strings.iter().try_for_each(|string| views.push(string))?;
                return views.gather(&codes[..rows]).into_array(nulls, data_type);
            }
            let mut views = Views::with_capacity(rows);
            for row in 0..rows {
                let at = index_of(column, row);
                views.push(at.map_or(&[][..], |at| strings.get(at)))?;
            }
            views.into_array(nulls, data_type)?
        }
    })
}

/// The numbers of a column.
struct Rows<'a, T> {
    column: CheckedColumn<'a>,
    rows: usize,
    values: &'a [T],
}

impl<T> Rows<'_, T> {
    fn map<N: Default + Copy>(&self, map: impl Fn(&T) -> N) -> Vec<N> {
        match self.column {
            CheckedColumn::Plain(plain) if plain.nulls.is_none() => {
                self.values[..self.rows].iter().map(map).collect()
            }
            CheckedColumn::Plain(_) => {
                let value = |row| {
                    index_of(self.column, row).map_or_else(N::default, |at| map(&self.values[at]))
                };
                (0..self.rows).map(value).collect()
            }
            CheckedColumn::Coded { codes, .. } => {
                let values: Vec<N> = self.values.iter().map(map).collect();
                let value =
                    |code: &u16| values.get(usize::from(*code)).copied().unwrap_or_default();
                codes[..self.rows].iter().map(value).collect()
            }
        }
    }
}

fn ints_of(
    rows: &Rows<'_, i64>,
    nulls: Option<NullBuffer>,
    data_type: DataType,
) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Boolean => Arc::new(BooleanArray::new(rows.map(|v| *v != 0).into(), nulls)),
        DataType::SmallInt => Arc::new(Int16Array::new(rows.map(|v| *v as i16).into(), nulls)),
        DataType::Integer => Arc::new(Int32Array::new(rows.map(|v| *v as i32).into(), nulls)),
        DataType::BigInt => Arc::new(Int64Array::new(rows.map(|v| *v).into(), nulls)),
        DataType::Real => {
            Arc::new(Float32Array::new(rows.map(|v| f32_from_ordinal(*v)).into(), nulls))
        }
        DataType::Double => {
            Arc::new(Float64Array::new(rows.map(|v| f64_from_ordinal(*v)).into(), nulls))
        }
        DataType::Date => Arc::new(Date32Array::new(rows.map(|v| *v as i32).into(), nulls)),
        DataType::Time => Arc::new(Time64MicrosecondArray::new(rows.map(|v| *v).into(), nulls)),
        DataType::Timestamp => {
            Arc::new(TimestampMicrosecondArray::new(rows.map(|v| *v).into(), nulls))
        }
        DataType::TimestampTz => {
            let instants = TimestampMicrosecondArray::new(rows.map(|v| *v).into(), nulls);
            Arc::new(instants.with_timezone(UTC))
        }
        DataType::Decimal { .. } => {
            decimals(Decimal128Array::new(rows.map(|v| i128::from(*v)).into(), nulls), data_type)?
        }
        DataType::Char(_)
        | DataType::Varchar(_)
        | DataType::Binary(_)
        | DataType::Uuid
        | DataType::List(_) => {
            return Err(Error::Invalid(format!("{data_type} is not an Int")));
        }
    })
}

fn decimals(array: Decimal128Array, data_type: DataType) -> Result<ArrayRef> {
    let DataType::Decimal { precision, scale } = data_type else {
        return Err(Error::Corrupt(format!("a {data_type} in a wrong shape")));
    };
    let array = array.with_precision_and_scale(precision, scale as i8);
    Ok(Arc::new(array.map_err(|e| Error::Corrupt(e.to_string()))?))
}

/// The values that rows or codes stand for.
fn values_of(column: CheckedColumn<'_>) -> &Values {
    match column {
        CheckedColumn::Plain(plain) => &plain.values,
        CheckedColumn::Coded { values, .. } => values,
    }
}

/// Where the value of a row is among [`values_of`]; `None` for NULL.
#[inline]
fn index_of(column: CheckedColumn<'_>, row: usize) -> Option<usize> {
    match column {
        CheckedColumn::Plain(plain) => (!plain.is_null(row)).then_some(row),
        CheckedColumn::Coded { codes, values } => {
            Some(usize::from(codes[row])).filter(|code| *code < values.len())
        }
    }
}

fn nulls_of(column: CheckedColumn<'_>, rows: usize) -> Option<NullBuffer> {
    let has_none = match column {
        CheckedColumn::Plain(plain) => plain.nulls.is_none(),
        CheckedColumn::Coded { codes, values } => {
            let values = values.len();
            codes[..rows].iter().all(|code| usize::from(*code) < values)
        }
    };
    if has_none {
        return None;
    }
    let nulls: NullBuffer = (0..rows).map(|row| index_of(column, row).is_some()).collect();
    (nulls.null_count() > 0).then_some(nulls)
}
