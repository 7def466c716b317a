//! `sum` and `avg`, which are exact for exact numbers.
//!
//! | of | `sum` is | `avg` is |
//! |---|---|---|
//! | integers | DECIMAL(38, 0) | DOUBLE, the exact sum divided by the count |
//! | DECIMAL(p, s) | DECIMAL(p + 10, s), at most 38 digits | DECIMAL(p + 4, s + 4), halves away from zero |
//! | REAL, DOUBLE | DOUBLE | DOUBLE |
//!
//! What does not fit is an error. The engine's sum is of 64 bits and wraps around.

use std::sync::Arc;

use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL128_MAX_SCALE, DataType as ArrowType, FieldRef, TimeUnit,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::average::Avg;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility,
};

use super::exact_sum::{DistinctSum, ExactSum, ExactSums, Finish, state_fields};
use super::one_nan::{one_nan, one_nan_of_groups};
use super::refused;
use super::sliding::{Made, SlidingFloats};

/// Digits that a sum of decimals has more than they have.
const SUM_DIGITS: u8 = 10;

/// Digits, and digits after the point, that an average of decimals has more than they have.
const AVERAGE_DIGITS: u8 = 4;

/// One of the two functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Total {
    made: Made,
    /// The engine's own, for floats.
    engine: Arc<AggregateUDF>,
    signature: Signature,
    aliases: Vec<String>,
}

impl Total {
    pub(super) fn sum() -> Self {
        Total::new(Made::Sum, Sum::new().into(), Vec::new())
    }

    pub(super) fn average() -> Self {
        Total::new(Made::Average, Avg::new().into(), vec!["mean".into()])
    }

    fn new(made: Made, engine: AggregateUDF, aliases: Vec<String>) -> Self {
        let signature = Signature::user_defined(Volatility::Immutable);
        Total { made, engine: Arc::new(engine), signature, aliases }
    }

    fn finish(&self, args: &AccumulatorArgs) -> Finish {
        let output = args.return_field.data_type().clone();
        match (self.made, args.expr_fields[0].data_type(), &output) {
            (Made::Sum, ..) => Finish::Sum(output),
            (Made::Average, _, ArrowType::Float64) => Finish::FloatAverage,
            (Made::Average, ArrowType::Decimal128(_, from), ArrowType::Decimal128(_, to)) => {
                let more = u32::try_from(to.saturating_sub(*from)).unwrap_or(0);
                Finish::ExactAverage(output, 10i128.pow(more))
            }
            (Made::Average, ..) => Finish::ExactAverage(output, 1),
        }
    }

    /// The type in which an argument is summed.
    fn summed_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        let name = self.name();
        let [argument] = types else {
            return Err(refused(format!("{name} takes one argument, not {}", types.len())));
        };
        Ok(match argument {
            ArrowType::Null => ArrowType::Int64,
            ArrowType::UInt64 => ArrowType::Decimal128(20, 0),
            t if t.is_integer() => ArrowType::Int64,
            t if t.is_floating() => ArrowType::Float64,
            t @ ArrowType::Decimal128(..) => t.clone(),
            ArrowType::Duration(_) => ArrowType::Duration(TimeUnit::Microsecond),
            ArrowType::Interval(_) => {
                return Err(refused(format!(
                    "{name} of an INTERVAL is not supported: use extract(epoch from ..)"
                )));
            }
            other => return Err(refused(format!("{name} takes numbers, not {other} (use CAST)"))),
        })
    }
}

fn is_float(data_type: &ArrowType) -> bool {
    *data_type == ArrowType::Float64
}

fn sums_floats(args: &AccumulatorArgs) -> bool {
    is_float(args.expr_fields[0].data_type())
}

pub(super) fn too_large(what: &str, data_type: &ArrowType) -> DataFusionError {
    let name = match data_type {
        ArrowType::Decimal128(precision, scale) => format!("DECIMAL({precision},{scale})"),
        other => other.to_string(),
    };
    DataFusionError::Execution(format!("{what} is too large for {name}"))
}

impl AggregateUDFImpl for Total {
    fn name(&self) -> &str {
        match self.made {
            Made::Sum => "sum",
            Made::Average => "avg",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
        Ok(vec![self.summed_type(types)?])
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        let (more, more_scale) = match self.made {
            Made::Sum => (SUM_DIGITS, 0),
            Made::Average => (AVERAGE_DIGITS, AVERAGE_DIGITS as i8),
        };
        Ok(match (self.made, self.summed_type(types)?) {
            (Made::Sum, ArrowType::Int64) => ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
            (Made::Average, ArrowType::Int64) => ArrowType::Float64,
            (_, ArrowType::Decimal128(precision, scale)) => ArrowType::Decimal128(
                precision.saturating_add(more).min(DECIMAL128_MAX_PRECISION),
                scale.saturating_add(more_scale).min(DECIMAL128_MAX_SCALE),
            ),
            (_, other) => other,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if is_float(args.input_fields[0].data_type()) {
            return self.engine.state_fields(args);
        }
        Ok(state_fields(args.name, args.is_distinct))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(match (sums_floats(&args), args.is_distinct) {
            (true, _) => one_nan(self.engine.accumulator(args)?),
            (false, true) => Box::new(DistinctSum::new(self.finish(&args))),
            (false, false) => Box::new(ExactSum::new(self.finish(&args))),
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match (sums_floats(&args), args.is_distinct) {
            (true, true) => Err(refused(format!(
                "{}(DISTINCT ..) of floats over a moving frame is not supported",
                self.name()
            ))),
            (true, false) => Ok(Box::new(SlidingFloats::new(self.made))),
            _ => self.accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        if sums_floats(&args) {
            return Ok(one_nan_of_groups(self.engine.create_groups_accumulator(args)?));
        }
        Ok(Box::new(ExactSums::new(self.finish(&args))))
    }
}
