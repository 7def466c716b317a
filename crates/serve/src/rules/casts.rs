//! Casts that round.
//!
//! A number cast to an integer becomes the nearest one, as it does in PostgreSQL and DuckDB: halves of a DECIMAL go away from
//! zero, halves of a float to the even neighbour. The engine cuts the digits off. INSERT casts by the same [`convert`].
//!
//! A DECIMAL cast to one of fewer digits after the point is rounded by a function as well: the engine takes a cast beside a
//! literal away (`CAST(x AS DECIMAL(9,1)) = 0` becomes `x = 0`) as if nothing were lost by it. A TRY_CAST, which may make NULL of
//! a value, is kept from it by a function that does nothing.
//!
//! What is larger than any REAL or DOUBLE is an error, as in a load: the engine makes it infinite ([`floats`]).

use std::sync::Arc;

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options, not, nullif, take};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType as ArrowType, Decimal128Type, Float32Type, Float64Type,
    Int64Type, TimeUnit,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::lists::{element_of, with_elements};
use super::moments::{read_texts, refuse_units, write_texts};
use super::{call, map_values, only};

const MICRO_NANOS: i64 = 1_000;
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;

pub(super) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_tried = matches!(expr, Expr::TryCast(_));
    let (inner, to) = match &mut expr {
        Expr::Cast(cast) => (&mut cast.expr, &cast.field),
        Expr::TryCast(cast) => (&mut cast.expr, &cast.field),
        _ => return Ok(Transformed::no(expr)),
    };
    let from = inner.get_type(schema)?;
    if may_become_infinite(&from, to.data_type()) {
        let function = ScalarUDF::from(ToFloat::new(to.data_type().clone(), is_tried));
        return Ok(Transformed::yes(call(function, vec![std::mem::take(inner.as_mut())])));
    }
    let places = places_left(&from, to.data_type());
    if let Some(places) = places {
        let operand = std::mem::take(inner.as_mut());
        **inner = call(ScalarUDF::from(Nearest::new(places)), vec![operand]);
    }
    Ok(match expr {
        Expr::TryCast(_) => Transformed::yes(call(ScalarUDF::from(Kept::default()), vec![expr])),
        expr if places.is_some() => Transformed::yes(expr),
        expr => Transformed::no(expr),
    })
}

/// The digits after the point that a cast leaves, if it takes any away.
fn places_left(from: &ArrowType, to: &ArrowType) -> Option<i8> {
    let left = match to {
        ArrowType::Decimal128(_, scale) => *scale,
        other if other.is_integer() => 0,
        _ => return None,
    };
    match from {
        ArrowType::Decimal128(_, scale) => (*scale > left).then_some(left),
        // The engine rounds floats to a DECIMAL.
        other => (other.is_floating() && to.is_integer()).then_some(0),
    }
}

/// Values in another type, as a CAST gives them.
///
/// # Errors
/// When one does not fit, or is not written as the type wants.
pub(crate) fn convert(array: &ArrayRef, to: &ArrowType) -> Result<ArrayRef, ArrowError> {
    // The engine reads a key of a value that is NULL as the empty text.
    let unpacked;
    let array = match array.as_any_dictionary_opt() {
        Some(dictionary) => {
            unpacked = take(dictionary.values(), dictionary.keys(), None)?;
            &unpacked
        }
        None => array,
    };
    check_units(array, to)?;
    if let Some(new) = element_of(to)
        && array.data_type().is_list()
    {
        return with_elements(array, new);
    }
    refuse_units(array.data_type(), to).map_err(|e| ArrowError::CastError(e.strip_backtrace()))?;
    if let Some(converted) = read_texts(array, to).or_else(|| write_texts(array, to)) {
        return converted;
    }
    if may_become_infinite(array.data_type(), to) {
        return floats(array, to, false);
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let rounded;
    let array = match places_left(array.data_type(), to) {
        Some(places) => {
            rounded = nearest(array, places)?;
            &rounded
        }
        None => array,
    };
    cast_with_options(array, to, &options)
}

/// Checks that nothing is cut off times of a finer unit, which clients send and SQL has not.
fn check_units(array: &ArrayRef, to: &ArrowType) -> Result<(), ArrowError> {
    use ArrowType as T;
    use TimeUnit::{Microsecond, Nanosecond};
    let unit = match (array.data_type(), to) {
        (T::Timestamp(Nanosecond, _), T::Timestamp(Microsecond, _))
        | (T::Time64(Nanosecond), T::Time64(Microsecond)) => MICRO_NANOS,
        (T::Date64, T::Date32) => DAY_MILLIS,
        _ => return Ok(()),
    };
    let counts = cast_with_options(array, &T::Int64, &CastOptions::default())?;
    match counts.as_primitive::<Int64Type>().iter().flatten().find(|count| count % unit != 0) {
        None => Ok(()),
        Some(count) => Err(ArrowError::ComputeError(match unit {
            MICRO_NANOS => format!(
                "{count} nanoseconds are no whole microseconds, of which times are made: round them first"
            ),
            _ => format!(
                "{count} milliseconds are no whole days: send a timestamp, or round them first"
            ),
        })),
    }
}

/// Whether a cast may make a finite number infinite.
fn may_become_infinite(from: &ArrowType, to: &ArrowType) -> bool {
    match to {
        ArrowType::Float64 => from.is_string(),
        ArrowType::Float32 => from.is_string() || *from == ArrowType::Float64,
        _ => false,
    }
}

/// Texts or DOUBLEs as floats. What is infinite only then is an error, or NULL where the cast is `tried`.
fn floats(array: &ArrayRef, to: &ArrowType, tried: bool) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions { safe: tried, ..CastOptions::default() };
    let made = cast_with_options(array, to, &options)?;
    let wide = cast_with_options(&made, &ArrowType::Float64, &options)?;
    let wide = wide.as_primitive::<Float64Type>();
    if !wide.iter().flatten().any(f64::is_infinite) {
        return Ok(made);
    }
    let texts = cast_with_options(array, &ArrowType::Utf8, &options)?;
    let fits = |(value, text): (Option<f64>, Option<&str>)| {
        let is_infinite = value.is_some_and(f64::is_infinite);
        !is_infinite || text.is_some_and(is_word_of_infinity)
    };
    let texts = texts.as_string::<i32>();
    let fits: BooleanArray = wide.iter().zip(texts).map(|row| Some(fits(row))).collect();
    match (0..fits.len()).find(|row| !fits.value(*row)) {
        None => Ok(made),
        Some(_) if tried => nullif(&made, &not(&fits)?),
        Some(row) => {
            let name = if *to == ArrowType::Float32 { "REAL" } else { "DOUBLE" };
            let text = texts.value(row);
            Err(ArrowError::ComputeError(format!("{text} does not fit {name}: out of range")))
        }
    }
}

/// `inf`, `infinity`, with or without a sign, as texts and floats are written.
fn is_word_of_infinity(text: &str) -> bool {
    text.trim().trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("inf")
}

/// [`floats`] as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ToFloat {
    to: ArrowType,
    tried: bool,
    signature: Signature,
}

impl ToFloat {
    fn new(to: ArrowType, tried: bool) -> Self {
        ToFloat { to, tried, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for ToFloat {
    fn name(&self) -> &str {
        match (&self.to, self.tried) {
            (ArrowType::Float32, false) => "to_real",
            (ArrowType::Float32, true) => "try_to_real",
            (_, false) => "to_double",
            (_, true) => "try_to_double",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_values(only(&args.args)?, |array| Ok(floats(array, &self.to, self.tried)?))
    }
}

/// The nearest numbers of so many digits after the point, of which floats have none.
fn nearest(array: &ArrayRef, places: i8) -> Result<ArrayRef, ArrowError> {
    Ok(match array.data_type() {
        ArrowType::Decimal128(_, scale) => {
            let unit = 10i128.pow(u32::try_from(*scale - places).unwrap_or(0));
            let whole = array.as_primitive::<Decimal128Type>().unary::<_, Decimal128Type>(|v| {
                let (quotient, rest) = (v / unit, v % unit);
                // At most 10^38 - 1, whose double fits.
                if rest.abs() * 2 >= unit { quotient + v.signum() } else { quotient }
            });
            Arc::new(whole.with_precision_and_scale(DECIMAL128_MAX_PRECISION, places)?)
        }
        ArrowType::Float64 => Arc::new(
            array.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even),
        ),
        ArrowType::Float32 => Arc::new(
            array.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even),
        ),
        _ => Arc::clone(array),
    })
}

/// Its argument, in which the engine does not look for a cast.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Kept {
    signature: Signature,
}

impl Default for Kept {
    fn default() -> Self {
        Kept { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Kept {
    fn name(&self) -> &str {
        "kept"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map_or_else(|| self.name().to_owned(), ToString::to_string))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        types
            .first()
            .cloned()
            .ok_or_else(|| DataFusionError::Internal("kept: no argument".to_owned()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(only(&args.args)?.clone())
    }
}

/// [`nearest`] as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Nearest {
    places: i8,
    signature: Signature,
}

impl Nearest {
    fn new(places: i8) -> Self {
        Nearest { places, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Nearest {
    fn name(&self) -> &str {
        "nearest"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        match types {
            [ArrowType::Decimal128(..)] => {
                Ok(ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, self.places))
            }
            [other] => Ok(other.clone()),
            _ => Err(DataFusionError::Internal("one number is rounded".into())),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_values(only(&args.args)?, |array| Ok(nearest(array, self.places)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{
        Date64Array, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array,
        StringArray, Time64NanosecondArray, TimestampNanosecondArray,
    };

    #[test]
    fn halves_of_decimals_go_away_from_zero_and_of_floats_to_even() {
        let decimals: ArrayRef = Arc::new(
            Decimal128Array::from(vec![25, -25, 24, 26, -4, 5])
                .with_precision_and_scale(3, 1)
                .expect("a type"),
        );
        let expected: ArrayRef = Arc::new(Int64Array::from(vec![3, -3, 2, 3, 0, 1]));
        assert_eq!(&convert(&decimals, &ArrowType::Int64).expect("fits"), &expected);
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![2.5, -2.5, 3.5, 0.5, 1.6]));
        let expected: ArrayRef = Arc::new(Int64Array::from(vec![2, -2, 4, 0, 2]));
        assert_eq!(&convert(&floats, &ArrowType::Int64).expect("fits"), &expected);
    }

    #[test]
    fn what_is_larger_than_any_float_is_an_error_or_null() {
        let texts = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text, "1"])) };
        for to in [ArrowType::Float32, ArrowType::Float64] {
            for text in ["inf", " -Infinity ", "+INF", "1e30", "nan", "-0"] {
                assert_eq!(convert(&texts(text), &to).expect("fits").null_count(), 0, "{text}");
            }
            for text in ["1e400", "-1e999"] {
                assert!(convert(&texts(text), &to).is_err(), "{text}");
                let tried = floats(&texts(text), &to, true).expect("NULL");
                assert!(tried.is_null(0) && tried.is_valid(1), "{text}");
            }
        }
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![Some(f64::INFINITY), None]));
        assert!(convert(&doubles, &ArrowType::Float32).is_ok());
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![1e39]));
        assert!(convert(&doubles, &ArrowType::Float32).is_err());
    }

    /// Symptom: nanoseconds that a client sent were cut off, and a key of a NULL in a dictionary became the empty text.
    #[test]
    fn nothing_is_cut_off_what_clients_send() {
        let micros = ArrowType::Timestamp(TimeUnit::Microsecond, None);
        let sent = |nanos: i64| -> ArrayRef {
            Arc::new(TimestampNanosecondArray::from(vec![Some(nanos), None]))
        };
        assert!(convert(&sent(2_000), &micros).is_ok());
        assert!(convert(&sent(2_001), &micros).is_err());
        assert!(convert(&sent(-1), &micros).is_err());
        let time: ArrayRef = Arc::new(Time64NanosecondArray::from(vec![1]));
        assert!(convert(&time, &ArrowType::Time64(TimeUnit::Microsecond)).is_err());
        let day: ArrayRef = Arc::new(Date64Array::from(vec![DAY_MILLIS, -DAY_MILLIS]));
        assert!(convert(&day, &ArrowType::Date32).is_ok());
        let day: ArrayRef = Arc::new(Date64Array::from(vec![DAY_MILLIS + 1]));
        assert!(convert(&day, &ArrowType::Date32).is_err());
        let values: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None]));
        let keys = Int32Array::from(vec![Some(0), Some(1), None]);
        let coded: ArrayRef =
            Arc::new(DictionaryArray::try_new(keys, values).expect("keys of values"));
        let texts = convert(&coded, &ArrowType::Utf8View).expect("texts");
        assert_eq!((texts.is_null(0), texts.is_null(1), texts.is_null(2)), (false, true, true));
    }

    #[test]
    fn what_is_no_integer_is_an_error() {
        for wrong in [f64::NAN, f64::INFINITY, 1e19] {
            let floats: ArrayRef = Arc::new(Float64Array::from(vec![wrong]));
            assert!(convert(&floats, &ArrowType::Int64).is_err(), "{wrong}");
        }
    }
}
