//! `min` and `max`, which know where NaN stands.
//!
//! The engine's, with groups, keep a NaN or lose it as it comes first or not. NaN is the greatest here.
//!
//! Cost: a value and a flag a group.

use std::marker::PhantomData;
use std::sync::Arc;

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, BooleanArray, PrimitiveArray,
};
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Float32Type, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs,
};

use super::exact_sum::is_let_through;

/// Makes a function of the name of the engine's that differs for groups of floats.
macro_rules! extreme {
    ($name:ident, $engine:ident, $wins:expr) => {
        #[derive(Debug, Default, PartialEq, Eq, Hash)]
        pub(super) struct $name {
            engine: $engine,
        }

        impl AggregateUDFImpl for $name {
            fn name(&self) -> &str {
                self.engine.name()
            }

            fn signature(&self) -> &Signature {
                self.engine.signature()
            }

            fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
                self.engine.return_type(types)
            }

            fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
                self.engine.accumulator(args)
            }

            fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
                self.engine.state_fields(args)
            }

            fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
                self.engine.groups_accumulator_supported(args)
            }

            fn create_groups_accumulator(
                &self,
                args: AccumulatorArgs,
            ) -> Result<Box<dyn GroupsAccumulator>> {
                Ok(match args.return_field.data_type() {
                    ArrowType::Float32 => Box::new(FloatExtremes::<Float32Type>::new($wins)),
                    ArrowType::Float64 => Box::new(FloatExtremes::<Float64Type>::new($wins)),
                    _ => return self.engine.create_groups_accumulator(args),
                })
            }

            fn create_sliding_accumulator(
                &self,
                args: AccumulatorArgs,
            ) -> Result<Box<dyn Accumulator>> {
                self.engine.create_sliding_accumulator(args)
            }

            fn is_descending(&self) -> Option<bool> {
                self.engine.is_descending()
            }

            fn order_sensitivity(&self) -> AggregateOrderSensitivity {
                self.engine.order_sensitivity()
            }

            fn coerce_types(&self, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
                self.engine.coerce_types(types)
            }

            fn reverse_expr(&self) -> ReversedUDAF {
                self.engine.reverse_expr()
            }

            fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
                self.engine.value_from_stats(args)
            }

            fn set_monotonicity(&self, data_type: &ArrowType) -> SetMonotonicity {
                self.engine.set_monotonicity(data_type)
            }
        }
    };
}

extreme!(Least, Min, Wins::Less);
extreme!(Greatest, Max, Wins::Greater);

/// Which of two values stays.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wins {
    Less,
    Greater,
}

/// The least or greatest float of each group, in total order.
#[derive(Debug)]
struct FloatExtremes<T: ArrowPrimitiveType> {
    wins: Wins,
    values: Vec<T::Native>,
    is_there: Vec<bool>,
    of: PhantomData<fn() -> T>,
}

impl<T: ArrowPrimitiveType<Native: ArrowNativeTypeOp>> FloatExtremes<T> {
    fn new(wins: Wins) -> Self {
        FloatExtremes { wins, values: Vec::new(), is_there: Vec::new(), of: PhantomData }
    }

    fn add(&mut self, group: usize, value: T::Native) {
        let known = &mut self.values[group];
        let wins = match self.wins {
            Wins::Less => value.is_lt(*known),
            Wins::Greater => value.is_gt(*known),
        };
        if wins || !self.is_there[group] {
            *known = value;
            self.is_there[group] = true;
        }
    }
}

impl<T: ArrowPrimitiveType<Native: ArrowNativeTypeOp>> GroupsAccumulator for FloatExtremes<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_count: usize,
    ) -> Result<()> {
        self.values.resize(groups_count, T::Native::ZERO);
        self.is_there.resize(groups_count, false);
        let values = values[0].as_primitive::<T>();
        for (row, group) in groups.iter().enumerate() {
            if values.is_valid(row) && is_let_through(filter, row) {
                self.add(*group, values.value(row));
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let values = emit.take_needed(&mut self.values);
        let is_there = emit.take_needed(&mut self.is_there);
        Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), Some(is_there.into()))))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit)?])
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        groups_count: usize,
    ) -> Result<()> {
        self.update_batch(states, groups, None, groups_count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<T>();
        let state: PrimitiveArray<T> = (0..values.len())
            .map(|row| {
                let is_there = values.is_valid(row) && is_let_through(filter, row);
                is_there.then(|| values.value(row))
            })
            .collect();
        Ok(vec![Arc::new(state)])
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<T::Native>() + self.is_there.capacity()
    }
}
