//! `round`, whose type is decided once; of floats it is [`round_floats`].
//!
//! The engine's result has as many digits after the point as the second argument says, if that is a literal where the type is
//! asked for. What is a literal changes: its cast is none until constants are folded, and a column of constants becomes one
//! when projections are merged. A CASE, an IN or a comparison around it was then planned for another type, and values lost
//! digits. Here the digits are part of the function before operands get their types, or are those of the first argument.

use std::sync::Arc;

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::datatypes::{DataType as ArrowType, Decimal128Type, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions::math::round::RoundFunc;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::{call, round_floats};

pub(super) fn rewrite(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(function) = &expr else { return Ok(Transformed::no(expr)) };
    if !function.func.inner().is::<RoundFunc>() {
        return Ok(Transformed::no(expr));
    }
    let (places, arguments) = match function.args.as_slice() {
        [number] => (Some(0), vec![number.clone()]),
        [number, places] => match constant(places) {
            Some(places) => (Some(places), vec![number.clone()]),
            None => (None, function.args.clone()),
        },
        _ => return Ok(Transformed::no(expr)),
    };
    let round = Round { engine: RoundFunc::new(), places };
    Ok(Transformed::yes(call(ScalarUDF::from(round), arguments)))
}

/// A whole number that is written in the statement.
fn constant(expr: &Expr) -> Option<i32> {
    match expr {
        Expr::Literal(value, _) if value.data_type().is_integer() => {
            match value.cast_to(&ArrowType::Int32).ok()? {
                ScalarValue::Int32(places) => places,
                _ => None,
            }
        }
        Expr::Negative(inner) => constant(inner)?.checked_neg(),
        _ => None,
    }
}

/// The function: of a number, or of a number and its digits after the point where those are not written in the statement.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Round {
    engine: RoundFunc,
    places: Option<i32>,
}

impl Round {
    fn constant(&self) -> Option<ScalarValue> {
        self.places.map(|places| ScalarValue::Int32(Some(places)))
    }
}

impl ScalarUDFImpl for Round {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn signature(&self) -> &Signature {
        self.engine.signature()
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let mut texts: Vec<String> = args.iter().map(ToString::to_string).collect();
        texts.extend(self.places.map(|places| places.to_string()));
        Ok(format!("{}({})", self.name(), texts.join(", ")))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let mut texts: Vec<String> = args.iter().map(|e| e.schema_name().to_string()).collect();
        texts.extend(self.places.map(|places| places.to_string()));
        Ok(format!("{}({})", self.name(), texts.join(",")))
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Err(DataFusionError::Internal("round has a field".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let constant = self.constant();
        let [number, rest @ ..] = args.arg_fields else {
            return Err(DataFusionError::Internal("round has arguments".into()));
        };
        let places = match rest {
            [places] => Arc::clone(places),
            _ => Arc::new(Field::new("places", ArrowType::Int32, false)),
        };
        self.engine.return_field_from_args(ReturnFieldArgs {
            arg_fields: &[Arc::clone(number), places],
            scalar_arguments: &[None, constant.as_ref()],
        })
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        match (self.places, input) {
            (Some(_), [number]) => Ok(number.sort_properties),
            _ => self.engine.output_ordering(input),
        }
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(constant) = self.constant() {
            args.args.push(ColumnarValue::Scalar(constant));
            args.arg_fields.push(Arc::new(Field::new("places", ArrowType::Int32, false)));
        }
        if let [values, places] = args.args.as_slice()
            && let Some(rounded) = round_floats::round(values, places, args.number_rows)
        {
            return rounded;
        }
        let rounded = self.engine.invoke_with_args(args)?;
        if self.places.is_none() {
            check_digits(&rounded)?;
        }
        Ok(rounded)
    }
}

/// What keeps its digits after the point may need one more before it, which the engine does not look at.
fn check_digits(rounded: &ColumnarValue) -> Result<()> {
    let ArrowType::Decimal128(precision, _) = rounded.data_type() else { return Ok(()) };
    let array = rounded.to_array(1)?;
    Ok(array.as_primitive::<Decimal128Type>().validate_decimal_precision(precision)?)
}
