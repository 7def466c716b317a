//! `date_diff(part, start, end)`: how many times a part of a date begins between two times, as in DuckDB: a year lies between
//! 2023-12-31 and 2024-01-01.

use std::sync::Arc;

use coload_types::Error;
use coload_types::calendar::{DAY_MICROS, date_from_days};
use datafusion::arrow::array::{Array, AsArray, Int64Builder};
use datafusion::arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::to_datafusion;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct DateDiff {
    signature: Signature,
    aliases: [String; 1],
}

impl DateDiff {
    pub fn new() -> Self {
        DateDiff {
            signature: Signature::user_defined(Volatility::Immutable),
            aliases: ["datediff".to_owned()],
        }
    }
}

/// The number of the part in which a time lies, counted from any one.
type Number = fn(i64) -> i64;

fn month(micros: i64) -> i64 {
    let (year, month, _) = date_from_days(micros.div_euclid(DAY_MICROS));
    year * 12 + i64::from(month) - 1
}

const SECOND: i64 = 1_000_000;

/// Parts by their names.
const PARTS: [(&[&str], Number); 13] = [
    (&["microsecond", "microseconds", "us"], |micros| micros),
    (&["millisecond", "milliseconds", "ms"], |micros| micros.div_euclid(SECOND / 1000)),
    (&["second", "seconds", "s"], |micros| micros.div_euclid(SECOND)),
    (&["minute", "minutes", "m"], |micros| micros.div_euclid(60 * SECOND)),
    (&["hour", "hours", "h"], |micros| micros.div_euclid(3600 * SECOND)),
    (&["day", "days", "d", "dayofyear", "doy"], |micros| micros.div_euclid(DAY_MICROS)),
    // 1970-01-01 was a Thursday, and weeks begin on Monday.
    (&["week", "weeks", "w"], |micros| (micros.div_euclid(DAY_MICROS) + 3).div_euclid(7)),
    (&["month", "months", "mon"], month),
    (&["quarter", "quarters"], |micros| month(micros).div_euclid(3)),
    (&["year", "years", "y"], |micros| month(micros).div_euclid(12)),
    (&["decade", "decades"], |micros| month(micros).div_euclid(120)),
    (&["century", "centuries"], |micros| (month(micros) - 12).div_euclid(1_200)),
    (&["millennium", "millennia"], |micros| (month(micros) - 12).div_euclid(12_000)),
];

fn part(name: &str) -> Result<Number> {
    let lower = name.to_ascii_lowercase();
    let found = PARTS.iter().find(|(names, _)| names.contains(&&*lower));
    found.map(|(_, number)| *number).ok_or_else(|| {
        to_datafusion(Error::Invalid(format!(
            "date_diff of '{name}': there is microsecond, millisecond, second, minute, hour, day, week, month, quarter, year, \
             decade, century and millennium"
        )))
    })
}

impl ScalarUDFImpl for DateDiff {
    fn name(&self) -> &str {
        "date_diff"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Dates, times and texts of them become times without a zone: instants are in UTC.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let moment = DataType::Timestamp(TimeUnit::Microsecond, None);
        let is_moment = |data_type: &DataType| {
            let is_text = matches!(data_type, DataType::Utf8 | DataType::Utf8View | DataType::Null);
            is_text || matches!(data_type, DataType::Date32 | DataType::Timestamp(..))
        };
        match types {
            [_, start, end] if is_moment(start) && is_moment(end) => {
                Ok(vec![DataType::Utf8View, moment.clone(), moment])
            }
            _ => Err(to_datafusion(Error::Invalid(
                "date_diff takes the name of a part and two dates or times".into(),
            ))),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let parts = arrays[0].as_string_view();
        let [start, end] =
            [1, 2].map(|index| arrays[index].as_primitive::<TimestampMicrosecondType>());
        let mut made = Int64Builder::with_capacity(parts.len());
        let mut last: Option<(String, Number)> = None;
        for row in 0..parts.len() {
            if parts.is_null(row) || start.is_null(row) || end.is_null(row) {
                made.append_null();
                continue;
            }
            let name = parts.value(row);
            let number = match &last {
                Some((known, number)) if known == name => *number,
                _ => last.insert((name.to_owned(), part(name)?)).1,
            };
            made.append_value(number(end.value(row)) - number(start.value(row)));
        }
        Ok(ColumnarValue::Array(Arc::new(made.finish())))
    }
}
