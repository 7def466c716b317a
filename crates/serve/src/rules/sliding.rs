//! Sums of floats over frames that move.
//!
//! A row that leaves a frame cannot be subtracted: 1e20 + 1 - 1e20 is 0, and infinity minus infinity is no number. Values
//! wait in two stacks instead, of which the front one knows the sum from each value to its end.
//!
//! ```text
//!   leaves <- front: [a+b+c, b+c, c]   back: d, e, f and their sum <- enters
//! ```
//!
//! Cost: each value is added at most three times.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::datatypes::Float64Type;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Accumulator;

use super::floats::canonical_f64;

/// What is made of the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Made {
    Sum,
    Average,
}

/// The sum of the floats in a frame.
#[derive(Debug)]
pub(super) struct SlidingFloats {
    made: Made,
    /// Sums from a value to the newest in front; the oldest value's is last.
    front: Vec<f64>,
    back: Vec<f64>,
    back_sum: f64,
}

impl SlidingFloats {
    pub(super) fn new(made: Made) -> Self {
        SlidingFloats { made, front: Vec::new(), back: Vec::new(), back_sum: 0.0 }
    }

    fn pop(&mut self) {
        if self.front.is_empty() {
            let mut sum = 0.0;
            while let Some(value) = self.back.pop() {
                sum += value;
                self.front.push(sum);
            }
            self.back_sum = 0.0;
        }
        self.front.pop();
    }
}

impl Accumulator for SlidingFloats {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Float64Type>().iter().flatten() {
            self.back.push(value);
            self.back_sum += value;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        values[0].as_primitive::<Float64Type>().iter().flatten().for_each(|_| self.pop());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let count = self.front.len() + self.back.len();
        if count == 0 {
            return Ok(ScalarValue::Float64(None));
        }
        let sum = self.front.last().unwrap_or(&0.0) + self.back_sum;
        let value = match self.made {
            Made::Sum => sum,
            Made::Average => sum / count as f64,
        };
        Ok(ScalarValue::Float64(Some(canonical_f64(value))))
    }

    fn size(&self) -> usize {
        size_of_val(self) + (self.front.capacity() + self.back.capacity()) * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(DataFusionError::Internal("the sum of a frame is not merged".into()))
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(DataFusionError::Internal("the sum of a frame is not merged".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Float64Array;
    use std::sync::Arc;

    #[test]
    fn a_frame_forgets_what_left_it() {
        let array = |v: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![v])) };
        let mut sum = SlidingFloats::new(Made::Sum);
        let values = [1e20, f64::INFINITY, 1.0, f64::NAN, 2.0, 4.0, 8.0];
        for width in 1..4 {
            let mut found = Vec::new();
            for (at, value) in values.iter().enumerate() {
                sum.update_batch(&[array(*value)]).expect("a float");
                if at >= width {
                    sum.retract_batch(&[array(values[at - width])]).expect("a float");
                }
                found.push(sum.evaluate().expect("a sum"));
            }
            for (at, found) in found.iter().enumerate() {
                let frame = &values[(at + 1).saturating_sub(width)..=at];
                let expected = canonical_f64(frame.iter().sum());
                assert_eq!(*found, ScalarValue::Float64(Some(expected)), "{frame:?}");
            }
            sum = SlidingFloats::new(Made::Sum);
        }
    }
}
