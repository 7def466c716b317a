//! `avg`, whose sum is exact for exact numbers.
//!
//! | of | is |
//! |---|---|
//! | integers | DOUBLE, the exact sum divided by the count |
//! | DECIMAL(p, s) | DECIMAL(p + 4, s + 4), rounded with halves away from zero |
//! | REAL, DOUBLE | DOUBLE |

use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL128_MAX_SCALE, DataType as ArrowType, FieldRef,
};
use datafusion::error::Result;
use datafusion::functions_aggregate::average::Avg as EngineAverage;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility,
};

use super::exact_sum::{DistinctSum, ExactSum, ExactSums, Finish, state_fields};
use super::refused;
use super::sliding::{Made, SlidingFloats};
use super::sum::summed_type;

/// Digits, and digits after the point, that an average of decimals has more than they have.
const MORE_DIGITS: u8 = 4;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Average {
    /// For floats.
    engine: EngineAverage,
    signature: Signature,
    aliases: Vec<String>,
}

impl Default for Average {
    fn default() -> Self {
        Average {
            engine: EngineAverage::new(),
            signature: Signature::user_defined(Volatility::Immutable),
            aliases: vec!["mean".into()],
        }
    }
}

fn is_float(args: &AccumulatorArgs) -> bool {
    *args.expr_fields[0].data_type() == ArrowType::Float64
}

fn finish(args: &AccumulatorArgs) -> Finish {
    let output = args.return_field.data_type().clone();
    match (args.expr_fields[0].data_type(), &output) {
        (_, ArrowType::Float64) => Finish::FloatAverage,
        (ArrowType::Decimal128(_, from), ArrowType::Decimal128(_, to)) => {
            let more = u32::try_from(to.saturating_sub(*from)).unwrap_or(0);
            Finish::ExactAverage(output, 10i128.pow(more))
        }
        _ => Finish::ExactAverage(output, 1),
    }
}

impl AggregateUDFImpl for Average {
    fn name(&self) -> &str {
        "avg"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
        summed_type("avg", types)
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(match summed_type("avg", types)?.swap_remove(0) {
            ArrowType::Decimal128(precision, scale) => ArrowType::Decimal128(
                precision.saturating_add(MORE_DIGITS).min(DECIMAL128_MAX_PRECISION),
                scale.saturating_add(MORE_DIGITS as i8).min(DECIMAL128_MAX_SCALE),
            ),
            ArrowType::Int64 => ArrowType::Float64,
            other => other,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if *args.input_fields[0].data_type() == ArrowType::Float64 {
            return self.engine.state_fields(args);
        }
        Ok(state_fields(args.name, args.is_distinct))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(match (is_float(&args), args.is_distinct) {
            (true, _) => return self.engine.accumulator(args),
            (false, true) => Box::new(DistinctSum::new(finish(&args))),
            (false, false) => Box::new(ExactSum::new(finish(&args))),
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match (is_float(&args), args.is_distinct) {
            (true, true) => {
                Err(refused("avg(DISTINCT ..) of floats over a moving frame is not supported"))
            }
            (true, false) => Ok(Box::new(SlidingFloats::new(Made::Average))),
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
        if is_float(&args) {
            return self.engine.create_groups_accumulator(args);
        }
        Ok(Box::new(ExactSums::new(finish(&args))))
    }
}
