//! Dates, times and lists as text, and text as these, as loads read and exports write them.
//!
//! The engine's casts cut digits beyond microseconds off, move a time by an offset that its type cannot hold, take `'10'` for
//! ten microseconds after midnight, write a `T` between date and time, and elements of lists without quotes. Here a text that is not wholly a value of the
//! type is an error, or NULL where TRY_CAST asks for that, and what is written is read back as the same value.
//!
//! A number is no time: its cast to one, or back, is refused, since its unit would be a guess.

use std::sync::Arc;

use coload_types::display::write_int;
use coload_types::{DataType as StoredType, Rule, parse_int, parse_list};
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef, Int64Array, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Int64Type, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::unary::Unary;
use super::{call, map_values, only, refused};
use crate::export::ColumnTexts;
use crate::lists::Lists;
use crate::types::{UTC, sql_type};

pub(super) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (inner, to, wrong) = match &mut expr {
        Expr::Cast(cast) => (&mut cast.expr, cast.field.data_type().clone(), Wrong::Error),
        Expr::TryCast(cast) => (&mut cast.expr, cast.field.data_type().clone(), Wrong::Null),
        _ => return Ok(Transformed::no(expr)),
    };
    let from = inner.get_type(schema)?;
    refuse_units(&from, &to)?;
    if is_text(&from) && stored(&to).is_some() {
        let operand = std::mem::take(inner.as_mut());
        return Ok(Transformed::yes(call(ScalarUDF::from(Read::new(to, wrong)), vec![operand])));
    }
    if is_text(&to) && stored(&from).is_some() {
        let operand = std::mem::take(inner.as_mut());
        **inner = WRITTEN.of(operand);
        return Ok(Transformed::yes(expr));
    }
    if matches!(from, ArrowType::Timestamp(..)) && is_part(&to) {
        let operand = std::mem::take(inner.as_mut());
        return Ok(Transformed::yes(call(ScalarUDF::from(Part::new(to)), vec![operand])));
    }
    Ok(Transformed::no(expr))
}

/// What a timestamp holds with more.
fn is_part(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Date32 | ArrowType::Time64(TimeUnit::Microsecond))
}

/// What has text of its own here.
fn stored(data_type: &ArrowType) -> Option<StoredType> {
    match data_type {
        ArrowType::Date32 => Some(StoredType::Date),
        ArrowType::Time64(TimeUnit::Microsecond) => Some(StoredType::Time),
        ArrowType::Timestamp(TimeUnit::Microsecond, None) => Some(StoredType::Timestamp),
        ArrowType::Timestamp(TimeUnit::Microsecond, Some(zone)) if zone.as_ref() == UTC => {
            Some(StoredType::TimestampTz)
        }
        ArrowType::List(_) => sql_type(data_type),
        _ => None,
    }
}

fn is_text(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View)
}

/// The engine counts days since 1970 or microseconds. A time of day as a number is what rules make of it.
pub(super) fn refuse_units(from: &ArrowType, to: &ArrowType) -> Result<()> {
    let is_instant = |t: &ArrowType| {
        matches!(t, ArrowType::Date32 | ArrowType::Date64 | ArrowType::Timestamp(..))
    };
    let is_moment =
        |t: &ArrowType| is_instant(t) || matches!(t, ArrowType::Time32(_) | ArrowType::Time64(_));
    if from.is_numeric() && is_moment(to) {
        return Err(refused(format!(
            "a number is not cast to {}: write to_timestamp_seconds(x), make_date(..) or date '1970-01-01' + x",
            name(to)
        )));
    }
    if is_instant(from) && to.is_numeric() {
        return Err(refused(format!(
            "a {} is not cast to a number: write extract(epoch from x)",
            name(from)
        )));
    }
    Ok(())
}

fn name(data_type: &ArrowType) -> &'static str {
    match data_type {
        ArrowType::Date32 | ArrowType::Date64 => "DATE",
        ArrowType::Time32(_) | ArrowType::Time64(_) => "TIME",
        ArrowType::Timestamp(_, None) => "TIMESTAMP",
        _ => "TIMESTAMP WITH TIME ZONE",
    }
}

/// What becomes of a text that is no value of the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wrong {
    Error,
    Null,
}

/// Values of text as dates or times; `None` when the types are others.
///
/// # Errors
/// When a text is not one.
pub(super) fn read_texts(array: &ArrayRef, to: &ArrowType) -> Option<Result<ArrayRef, ArrowError>> {
    (is_text(array.data_type()) && stored(to).is_some()).then(|| read(array, to, Wrong::Error))
}

/// Dates or times as text; `None` when the types are others.
///
/// # Errors
/// When the engine cannot bring the text to the type.
pub(super) fn write_texts(
    array: &ArrayRef,
    to: &ArrowType,
) -> Option<Result<ArrayRef, ArrowError>> {
    (is_text(to) && stored(array.data_type()).is_some()).then(|| cast(&written(array)?, to))
}

fn read(array: &ArrayRef, to: &ArrowType, wrong: Wrong) -> Result<ArrayRef, ArrowError> {
    let Some(stored) = stored(to) else {
        return Err(ArrowError::CastError(format!("{to} is not read from text")));
    };
    let texts = cast(array, &ArrowType::LargeUtf8)?;
    let fault = |text: &str, rule: Rule| {
        ArrowError::CastError(format!("cannot cast '{text}' to {stored}: {}", rule.text()))
    };
    if let StoredType::List(element) = stored {
        let mut lists = Lists::new(element);
        for text in texts.as_string::<i64>() {
            let list = match text.map(|text| (text, parse_list(text.as_bytes(), element))) {
                None => None,
                Some((_, Ok(list))) => Some(list),
                Some((_, Err(_))) if wrong == Wrong::Null => None,
                Some((text, Err(rule))) => return Err(fault(text, rule)),
            };
            lists.push(list.as_deref()).map_err(external)?;
        }
        return cast(&lists.into_array().map_err(external)?, to);
    }
    let values = texts
        .as_string::<i64>()
        .iter()
        .map(|text| match text.map(|text| (text, parse_int(text.as_bytes(), stored))) {
            None => Ok(None),
            Some((_, Ok(value))) => Ok(Some(value)),
            Some((_, Err(_))) if wrong == Wrong::Null => Ok(None),
            Some((text, Err(rule))) => Err(fault(text, rule)),
        })
        .collect::<Result<Int64Array, _>>()?;
    match to {
        ArrowType::Date32 => cast(&cast(&values, &ArrowType::Int32)?, to),
        _ => cast(&values, to),
    }
}

fn written(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let Some(stored) = stored(array.data_type()) else {
        return Err(ArrowError::CastError(format!("{} is not written as text", array.data_type())));
    };
    if let StoredType::List(_) = stored {
        let texts = ColumnTexts::new(array).map_err(external)?;
        /// Of a batch of rows: a statement may hold several.
        const TEXTS_BYTES_MAX: usize = 64 << 20;
        let mut out = StringBuilder::new();
        let mut text = Vec::new();
        let mut bytes = 0;
        for row in 0..array.len() {
            bytes += text.len();
            if bytes > TEXTS_BYTES_MAX {
                return Err(ArrowError::CastError(format!(
                    "the texts of lists of a batch of rows are over {TEXTS_BYTES_MAX} bytes"
                )));
            }
            text.clear();
            match texts.push(row, &mut text).map_err(external)? {
                true => out.append_value(String::from_utf8_lossy(&text)),
                false => out.append_null(),
            }
        }
        return Ok(Arc::new(out.finish()));
    }
    let counts = match array.data_type() {
        ArrowType::Date32 => cast(&cast(array, &ArrowType::Int32)?, &ArrowType::Int64)?,
        _ => cast(array, &ArrowType::Int64)?,
    };
    let mut out = StringBuilder::with_capacity(counts.len(), counts.len() * LENGTH);
    let mut text = Vec::with_capacity(LENGTH);
    for count in counts.as_primitive::<Int64Type>() {
        let Some(count) = count else {
            out.append_null();
            continue;
        };
        text.clear();
        write_int(count, stored, &mut text);
        out.append_value(String::from_utf8_lossy(&text));
    }
    Ok(Arc::new(out.finish()))
}

fn external(error: coload_types::Error) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}

/// Bytes of a timestamp with a fraction.
const LENGTH: usize = 26;

/// Text as a date or time.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Read {
    to: ArrowType,
    wrong: Wrong,
    signature: Signature,
}

impl Read {
    fn new(to: ArrowType, wrong: Wrong) -> Self {
        Read { to, wrong, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Read {
    fn name(&self) -> &str {
        "moment_of_text"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let argument = args.first().map_or_else(String::new, ToString::to_string);
        let word = if self.wrong == Wrong::Null { "TRY_CAST" } else { "CAST" };
        Ok(format!("{word}({argument} AS {})", name(&self.to)))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_values(only(&args.args)?, |array| Ok(read(array, &self.to, self.wrong)?))
    }
}

/// A date or time as text.
static WRITTEN: Unary = Unary {
    name: "text_of_moment",
    is_hidden: true,
    returns: |_| ArrowType::Utf8,
    map: |array| Ok(written(array)?),
};

/// The date or the time of a timestamp. The engine estimates how many rows a condition lets through by casts back and
/// forth, and fails where one loses something.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Part {
    to: ArrowType,
    signature: Signature,
}

impl Part {
    fn new(to: ArrowType) -> Self {
        Part { to, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Part {
    fn name(&self) -> &str {
        "part_of_timestamp"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let argument = args.first().map_or_else(String::new, ToString::to_string);
        Ok(format!("CAST({argument} AS {})", name(&self.to)))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.to.clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_values(only(&args.args)?, |array| Ok(cast(array, &self.to)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringViewArray;

    const MOMENTS: [ArrowType; 3] = [
        ArrowType::Date32,
        ArrowType::Time64(TimeUnit::Microsecond),
        ArrowType::Timestamp(TimeUnit::Microsecond, None),
    ];

    #[test]
    fn what_is_written_is_read_back() {
        for (data_type, texts) in MOMENTS.iter().zip([
            ["0001-01-01", "9999-12-31", "2024-02-29"],
            ["00:00:00", "23:59:59.999999", "12:00:00.5"],
            ["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "2024-02-29 12:00:00.5"],
        ]) {
            let array: ArrayRef = Arc::new(StringViewArray::from(texts.to_vec()));
            let values = read(&array, data_type, Wrong::Error).expect("values");
            let again = cast(&written(&values).expect("texts"), &ArrowType::Utf8View);
            assert_eq!(&again.expect("texts"), &array);
        }
    }

    #[test]
    fn what_would_be_lost_is_an_error_or_null() {
        for text in [
            "2024-01-01 00:00:00.1234567",
            "2024-01-01 10:00:00+02",
            "2024-01-01 10:00:00Z",
            "10",
            "-5",
            "",
            "24:00:00",
            "12:00:00.1234567",
        ] {
            let array: ArrayRef = Arc::new(StringViewArray::from(vec![text]));
            for data_type in &MOMENTS {
                assert!(read(&array, data_type, Wrong::Error).is_err(), "{text} {data_type}");
                let value = read(&array, data_type, Wrong::Null).expect("no error");
                assert!(value.is_null(0), "{text} {data_type}");
            }
        }
    }
}
