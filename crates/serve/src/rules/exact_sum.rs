//! Sums and averages of integers, decimals and durations, which are exact or an error.
//!
//! A sum is kept in 128 bits, beside the number of its values. It may be too large for its type on the way; only the last
//! one must fit.
//!
//! Cost: 24 bytes a group.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, PrimitiveArray, UInt64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType as ArrowType, Decimal128Type, Field, FieldRef, Int64Type,
    UInt64Type,
};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::sum::too_large;

/// The type of sums under way.
const STATE: ArrowType = ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

/// What is made of a sum and a number of values.
#[derive(Debug, Clone)]
pub(super) enum Finish {
    /// The sum, of this type.
    Sum(ArrowType),
    /// The average as a DOUBLE.
    FloatAverage,
    /// The average of this type, whose unit is that of the sum divided by the factor.
    ExactAverage(ArrowType, i128),
}

impl Finish {
    fn array(&self, totals: impl Iterator<Item = (i128, u64)>) -> Result<ArrayRef> {
        if let Finish::FloatAverage = self {
            let averages =
                totals.map(|(sum, count)| (count > 0).then(|| sum as f64 / count as f64));
            return Ok(Arc::new(averages.collect::<Float64Array>()));
        }
        let (Finish::Sum(output) | Finish::ExactAverage(output, _)) = self else {
            return Err(DataFusionError::Internal("an average without a type".into()));
        };
        let numbers = totals
            .map(|(sum, count)| (count > 0).then(|| self.number(sum, count, output)).transpose())
            .collect::<Result<Decimal128Array>>()?;
        match output {
            ArrowType::Decimal128(..) => Ok(Arc::new(numbers.with_data_type(output.clone()))),
            // Each number fits, and the two types hold the same bits.
            other => Ok(cast(&cast(&numbers.with_data_type(STATE), &ArrowType::Int64)?, other)?),
        }
    }

    fn number(&self, sum: i128, count: u64, output: &ArrowType) -> Result<i128> {
        let number = match self {
            Finish::ExactAverage(_, factor) => {
                let scaled =
                    sum.checked_mul(*factor).ok_or_else(|| too_large("an average", output))?;
                divide_rounded(scaled, i128::from(count))
            }
            _ => sum,
        };
        let fits = match output {
            ArrowType::Decimal128(precision, _) => {
                number.unsigned_abs() < 10u128.pow(u32::from(*precision))
            }
            _ => i64::try_from(number).is_ok(),
        };
        if fits { Ok(number) } else { Err(too_large("a sum", output)) }
    }
}

/// A quotient, with halves away from zero.
pub(crate) fn divide_rounded(dividend: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (dividend / divisor, dividend % divisor);
    // Not `rest * 2`, which may not fit.
    let is_half = rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs();
    if is_half { quotient + dividend.signum() * divisor.signum() } else { quotient }
}

/// Fields of the state of a sum under way.
pub(super) fn state_fields(name: &str, is_distinct: bool) -> Vec<FieldRef> {
    if is_distinct {
        let values = Field::new_list_field(STATE, true);
        return vec![Arc::new(Field::new_list(format!("{name}[values]"), values, true))];
    }
    vec![
        Arc::new(Field::new(format!("{name}[sum]"), STATE, true)),
        Arc::new(Field::new(format!("{name}[count]"), ArrowType::UInt64, true)),
    ]
}

/// Values as numbers of 128 bits.
fn wide(array: &ArrayRef) -> Result<PrimitiveArray<Decimal128Type>> {
    Ok(match array.data_type() {
        ArrowType::Decimal128(..) => array.as_primitive::<Decimal128Type>().clone(),
        ArrowType::Int64 => array.as_primitive::<Int64Type>().unary(i128::from),
        ArrowType::Duration(_) => {
            cast(array, &ArrowType::Int64)?.as_primitive::<Int64Type>().unary(i128::from)
        }
        other => return Err(DataFusionError::Internal(format!("{other} has no exact sum"))),
    })
}

fn beyond() -> DataFusionError {
    too_large("a sum", &STATE)
}

/// Accumulator of one exact sum.
#[derive(Debug)]
pub(super) struct ExactSum {
    finish: Finish,
    sum: i128,
    count: u64,
}

impl ExactSum {
    pub(super) fn new(finish: Finish) -> Self {
        ExactSum { finish, sum: 0, count: 0 }
    }
}

impl Accumulator for ExactSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in wide(&values[0])?.iter().flatten() {
            self.sum = self.sum.checked_add(value).ok_or_else(beyond)?;
            self.count += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in wide(&values[0])?.iter().flatten() {
            self.sum = self.sum.checked_sub(value).ok_or_else(beyond)?;
            self.count -= 1;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let array = self.finish.array(std::iter::once((self.sum, self.count)))?;
        ScalarValue::try_from_array(&array, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = ScalarValue::Decimal128(Some(self.sum), DECIMAL128_MAX_PRECISION, 0);
        Ok(vec![sum, ScalarValue::UInt64(Some(self.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (sums, counts) =
            (states[0].as_primitive::<Decimal128Type>(), states[1].as_primitive::<UInt64Type>());
        for (sum, count) in sums.iter().zip(counts) {
            self.sum = self.sum.checked_add(sum.unwrap_or(0)).ok_or_else(beyond)?;
            self.count += count.unwrap_or(0);
        }
        Ok(())
    }
}

/// An exact sum for each group.
#[derive(Debug)]
pub(super) struct ExactSums {
    finish: Finish,
    sums: Vec<i128>,
    counts: Vec<u64>,
}

impl ExactSums {
    pub(super) fn new(finish: Finish) -> Self {
        ExactSums { finish, sums: Vec::new(), counts: Vec::new() }
    }

    fn add(&mut self, group: usize, sum: i128, count: u64) -> Result<()> {
        self.sums[group] = self.sums[group].checked_add(sum).ok_or_else(beyond)?;
        self.counts[group] += count;
        Ok(())
    }

    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups, 0);
        self.counts.resize(groups, 0);
    }
}

/// Whether a filter lets a row through.
pub(super) fn is_let_through(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for ExactSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_count: usize,
    ) -> Result<()> {
        self.resize(groups_count);
        let values = wide(&values[0])?;
        if filter.is_none() && values.null_count() == 0 {
            for (group, value) in groups.iter().zip(values.values()) {
                self.add(*group, *value, 1)?;
            }
            return Ok(());
        }
        for (row, group) in groups.iter().enumerate() {
            if values.is_valid(row) && is_let_through(filter, row) {
                self.add(*group, values.value(row), 1)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (sums, counts) = (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.counts));
        self.finish.array(sums.into_iter().zip(counts))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, counts) = (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.counts));
        let sums = Decimal128Array::from(sums).with_data_type(STATE);
        Ok(vec![Arc::new(sums), Arc::new(UInt64Array::from(counts))])
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        groups_count: usize,
    ) -> Result<()> {
        self.resize(groups_count);
        let (sums, counts) =
            (states[0].as_primitive::<Decimal128Type>(), states[1].as_primitive::<UInt64Type>());
        for ((group, sum), count) in groups.iter().zip(sums.values()).zip(counts.values()) {
            self.add(*group, *sum, *count)?;
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = wide(&values[0])?;
        let counts_row = |row: &usize| values.is_valid(*row) && is_let_through(filter, *row);
        let rows = 0..values.len();
        let sums = rows.clone().map(|row| if counts_row(&row) { values.value(row) } else { 0 });
        let sums = Decimal128Array::from_iter_values(sums).with_data_type(STATE);
        let counts = UInt64Array::from_iter_values(rows.map(|row| counts_row(&row).into()));
        Ok(vec![Arc::new(sums), Arc::new(counts)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.counts.capacity() * size_of::<u64>()
    }
}

/// The exact sum of the values that differ.
#[derive(Debug)]
pub(super) struct DistinctSum {
    finish: Finish,
    /// Each value, and how often it is there.
    values: HashMap<i128, u64>,
}

impl DistinctSum {
    pub(super) fn new(finish: Finish) -> Self {
        DistinctSum { finish, values: HashMap::new() }
    }
}

impl Accumulator for DistinctSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in wide(&values[0])?.iter().flatten() {
            *self.values.entry(value).or_default() += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in wide(&values[0])?.iter().flatten() {
            if let Some(count) = self.values.get_mut(&value) {
                *count -= 1;
                if *count == 0 {
                    self.values.remove(&value);
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.values.keys().try_fold(0i128, |sum, v| sum.checked_add(*v));
        let total = (sum.ok_or_else(beyond)?, self.values.len() as u64);
        ScalarValue::try_from_array(&self.finish.array(std::iter::once(total))?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * (size_of::<i128>() + size_of::<u64>())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let value = |v: &i128| ScalarValue::Decimal128(Some(*v), DECIMAL128_MAX_PRECISION, 0);
        let values: Vec<_> = self.values.keys().map(value).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &STATE))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[values])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_rounded_with_halves_away_from_zero() {
        assert_eq!(divide_rounded(5, 2), 3);
        assert_eq!(divide_rounded(-5, 2), -3);
        assert_eq!(divide_rounded(4, 3), 1);
        assert_eq!(divide_rounded(i128::MAX, 1), i128::MAX);
        assert_eq!(divide_rounded(0, 7), 0);
        assert_eq!(divide_rounded(i128::MAX, i128::MAX), 1);
    }

    #[test]
    fn a_sum_may_leave_its_type_on_the_way_and_must_not_at_the_end() {
        let finish = Finish::Sum(ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, 0));
        let most = 10i128.pow(38) - 1;
        let array = |values: Vec<i128>| -> ArrayRef { Arc::new(Decimal128Array::from(values)) };
        let mut sum = ExactSum::new(finish.clone());
        sum.update_batch(&[array(vec![most, 1])]).expect("fits 128 bits");
        assert!(sum.evaluate().is_err());
        sum.update_batch(&[array(vec![-1])]).expect("fits 128 bits");
        let expected = ScalarValue::Decimal128(Some(most), DECIMAL128_MAX_PRECISION, 0);
        assert_eq!(sum.evaluate().expect("fits"), expected);
        assert!(sum.update_batch(&[array(vec![i128::MAX])]).is_err());
    }
}
