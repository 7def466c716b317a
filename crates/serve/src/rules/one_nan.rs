//! Aggregates of floats that give one NaN.
//!
//! Infinity less infinity is a NaN with its sign bit set, which the total order puts below all numbers; what compares the
//! answer of an aggregate relies on the NaN of [`super::floats`], which is above.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature,
};

use super::floats::{canonical_f32, canonical_f64, canonical_nans};

/// Functions of the engine that compute with floats and give a float.
pub(super) const STATISTICS: [&str; 16] = [
    "stddev",
    "stddev_pop",
    "var",
    "var_pop",
    "covar_samp",
    "covar_pop",
    "corr",
    "regr_avgx",
    "regr_avgy",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "median",
];

/// A function of the list above, whose answers have no NaN but one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Statistic {
    engine: Arc<AggregateUDF>,
}

impl Statistic {
    pub(super) fn new(engine: Arc<AggregateUDF>) -> Self {
        Statistic { engine }
    }
}

impl AggregateUDFImpl for Statistic {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn aliases(&self) -> &[String] {
        self.engine.aliases()
    }

    fn signature(&self) -> &Signature {
        self.engine.signature()
    }

    fn coerce_types(&self, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
        self.engine.coerce_types(types)
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        self.engine.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.engine.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(one_nan(self.engine.accumulator(args)?))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(one_nan(self.engine.create_sliding_accumulator(args)?))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.engine.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(one_nan_of_groups(self.engine.create_groups_accumulator(args)?))
    }
}

/// An accumulator whose NaN is the one.
pub(super) fn one_nan(engine: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
    Box::new(OneNan { engine })
}

/// The same as [`one_nan`], for the groups of a query.
pub(super) fn one_nan_of_groups(engine: Box<dyn GroupsAccumulator>) -> Box<dyn GroupsAccumulator> {
    Box::new(OneNanOfGroups { engine })
}

#[derive(Debug)]
struct OneNan {
    engine: Box<dyn Accumulator>,
}

impl Accumulator for OneNan {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.engine.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(match self.engine.evaluate()? {
            ScalarValue::Float64(Some(v)) if v.is_nan() => {
                ScalarValue::Float64(Some(canonical_f64(v)))
            }
            ScalarValue::Float32(Some(v)) if v.is_nan() => {
                ScalarValue::Float32(Some(canonical_f32(v)))
            }
            other => other,
        })
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.engine.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.engine.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.engine.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.engine.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.engine.supports_retract_batch()
    }
}

struct OneNanOfGroups {
    engine: Box<dyn GroupsAccumulator>,
}

impl GroupsAccumulator for OneNanOfGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_count: usize,
    ) -> Result<()> {
        self.engine.update_batch(values, groups, filter, groups_count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        Ok(canonical_nans(self.engine.evaluate(emit)?))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.engine.state(emit)
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        groups_count: usize,
    ) -> Result<()> {
        self.engine.merge_batch(states, groups, groups_count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.engine.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.engine.size()
    }
}
