//! `sum`, which is exact for exact numbers.
//!
//! | of | is |
//! |---|---|
//! | integers | DECIMAL(38, 0) |
//! | DECIMAL(p, s) | DECIMAL(p + 10, s), at most 38 digits |
//! | REAL, DOUBLE | DOUBLE |
//!
//! A sum that does not fit is an error. The engine's is of 64 bits and wraps around.

use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType as ArrowType, FieldRef, TimeUnit,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::sum::Sum as EngineSum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility,
};

use super::exact_sum::{DistinctSum, ExactSum, ExactSums, Finish, state_fields};
use super::refused;
use super::sliding::{Made, SlidingFloats};

/// Digits that a sum of decimals has more than they have.
const MORE_DIGITS: u8 = 10;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Sum {
    /// For floats.
    engine: EngineSum,
    signature: Signature,
}

impl Default for Sum {
    fn default() -> Self {
        Sum { engine: EngineSum::new(), signature: Signature::user_defined(Volatility::Immutable) }
    }
}

pub(super) fn too_large(what: &str, data_type: &ArrowType) -> DataFusionError {
    DataFusionError::Execution(format!("a {what} is too large for {}", sql_name(data_type)))
}

fn sql_name(data_type: &ArrowType) -> String {
    match data_type {
        ArrowType::Decimal128(precision, scale) => format!("DECIMAL({precision},{scale})"),
        other => other.to_string(),
    }
}

/// The type in which an argument is summed.
pub(super) fn summed_type(function: &str, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
    let [argument] = types else {
        return Err(refused(format!("{function} takes one argument, not {}", types.len())));
    };
    Ok(vec![match argument {
        ArrowType::Null => ArrowType::Int64,
        ArrowType::UInt64 => ArrowType::Decimal128(20, 0),
        t if t.is_integer() => ArrowType::Int64,
        t if t.is_floating() => ArrowType::Float64,
        t @ ArrowType::Decimal128(..) => t.clone(),
        ArrowType::Duration(_) => ArrowType::Duration(TimeUnit::Microsecond),
        ArrowType::Interval(_) => {
            return Err(refused(format!(
                "{function} of an INTERVAL is not supported: use extract(epoch from ..)"
            )));
        }
        other => {
            return Err(refused(format!("{function} takes numbers, not {other} (use CAST)")));
        }
    }])
}

fn finish(args: &AccumulatorArgs) -> Finish {
    Finish::Sum(args.return_field.data_type().clone())
}

fn is_float(args: &AccumulatorArgs) -> bool {
    *args.return_field.data_type() == ArrowType::Float64
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
        summed_type("sum", types)
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(match summed_type("sum", types)?.swap_remove(0) {
            ArrowType::Int64 => ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
            ArrowType::Decimal128(precision, scale) => {
                let precision = precision.saturating_add(MORE_DIGITS);
                ArrowType::Decimal128(precision.min(DECIMAL128_MAX_PRECISION), scale)
            }
            other => other,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if *args.return_type() == ArrowType::Float64 {
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
                Err(refused("sum(DISTINCT ..) of floats over a moving frame is not supported"))
            }
            (true, false) => Ok(Box::new(SlidingFloats::new(Made::Sum))),
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
