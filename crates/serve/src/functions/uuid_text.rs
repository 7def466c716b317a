//! The text of a UUID as columns have it, of any text that stands for one: where rows are compared with those of a table before they are in it.
//! No statement can name the function.

use std::sync::Arc;

use coload_types::{DataType as ColumnType, Value, parse_value};
use datafusion::arrow::array::{AsArray, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct UuidText {
    signature: Signature,
}

/// The text of a UUID in the form that columns have.
pub(crate) fn uuid_text(of: Expr) -> Expr {
    let signature = Signature::exact(vec![DataType::Utf8View], Volatility::Immutable);
    Arc::new(ScalarUDF::from(UuidText { signature })).call(vec![of])
}

fn canonical(text: &str) -> Result<String> {
    match parse_value(text.as_bytes(), ColumnType::Uuid) {
        Ok(value @ Value::Wide(_)) => Ok(value.display(ColumnType::Uuid)),
        _ => Err(DataFusionError::Execution(format!("{text:?} is not a UUID"))),
    }
}

impl ScalarUDFImpl for UuidText {
    fn name(&self) -> &str {
        "\u{1}uuid"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let texts = arrays[0].as_string_view().iter();
        let made = texts.map(|text| text.map(canonical).transpose());
        Ok(ColumnarValue::Array(Arc::new(made.collect::<Result<StringViewArray>>()?)))
    }
}
