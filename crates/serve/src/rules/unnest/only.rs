//! The one row of a subquery that stands for a value.

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::compute::max;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Int64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::rules::{call, refused};

/// A value of which there are so many rows: an error if there is more than one.
pub(super) fn only(value: Expr, rows: Expr) -> Expr {
    call(
        ScalarUDF::from(Only { signature: Signature::any(2, Volatility::Immutable) }),
        vec![value, rows],
    )
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Only {
    signature: Signature,
}

impl ScalarUDFImpl for Only {
    fn name(&self) -> &str {
        "only_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        types.first().cloned().ok_or_else(|| DataFusionError::Internal("a value".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [value, _] => Ok(std::sync::Arc::new(value.as_ref().clone().with_nullable(true))),
            _ => Err(DataFusionError::Internal("a value and its rows".into())),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, rows] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("a value and its rows".into()));
        };
        let rows = rows.to_array(args.number_rows)?;
        if max(rows.as_primitive::<Int64Type>()).is_some_and(|most| most > 1) {
            return Err(refused(
                "a subquery in the place of a value has more than one row: write LIMIT 1, or an aggregate such as max()",
            ));
        }
        Ok(value.clone())
    }
}
