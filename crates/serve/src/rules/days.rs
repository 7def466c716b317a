//! A date and a number of days.
//!
//! The engine makes an interval of nanoseconds of the number, in which 106,751 days fit; here all that a DATE can be do, and no others ([`super::calendar`]).

use datafusion::arrow::compute::kernels::numeric::{add, sub};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    cast as cast_expr,
};

use super::calendar::check_years;
use super::{call, refused};

/// `date + days` or `date - days`.
pub(super) fn shifted(date: Expr, days: Expr, sign: Sign) -> Expr {
    let days = cast_expr(days, ArrowType::Int64);
    call(ScalarUDF::from(Shifted::new(sign)), vec![date, days])
}

/// Where the days go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sign {
    Plus,
    Minus,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Shifted {
    sign: Sign,
    signature: Signature,
}

impl Shifted {
    fn new(sign: Sign) -> Self {
        Shifted { sign, signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Shifted {
    fn name(&self) -> &str {
        match self.sign {
            Sign::Plus => "days_after",
            Sign::Minus => "days_before",
        }
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let [date, days] = args else { return Ok(self.name().to_owned()) };
        let sign = if self.sign == Sign::Plus { '+' } else { '-' };
        Ok(format!("{date} {sign} {days}"))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [date, days] = args else { return Ok(self.name().to_owned()) };
        let sign = if self.sign == Sign::Plus { '+' } else { '-' };
        Ok(format!("{} {sign} {}", date.schema_name(), days.schema_name()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Date32)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [date, days] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("a date and days".into()));
        };
        let is_scalar = [date, days].iter().all(|v| matches!(v, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let dates = cast(&cast(&date.to_array(rows)?, &ArrowType::Int32)?, &ArrowType::Int64)?;
        let days = days.to_array(rows)?;
        let sums = match self.sign {
            Sign::Plus => add(&dates, &days),
            Sign::Minus => sub(&dates, &days),
        }?;
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let shifted = cast_with_options(&sums, &ArrowType::Int32, &strict)
            .map_err(|_| refused("a date and so many days are no date"))?;
        let shifted = cast(&shifted, &ArrowType::Date32)?;
        check_years(shifted.as_ref())?;
        if is_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&shifted, 0)?));
        }
        Ok(ColumnarValue::Array(shifted))
    }
}
