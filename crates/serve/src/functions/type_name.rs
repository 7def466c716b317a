//! `typeof(x)`: the type of CREATE TABLE that holds a value.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::types::sql_type;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TypeName {
    signature: Signature,
    aliases: [String; 1],
}

impl TypeName {
    pub fn new() -> Self {
        let signature = Signature::any(1, Volatility::Immutable);
        TypeName { signature, aliases: ["pg_typeof".to_owned()] }
    }
}

impl ScalarUDFImpl for TypeName {
    fn name(&self) -> &str {
        "typeof"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrow = args.arg_fields[0].data_type();
        let name = match (arrow, sql_type(arrow)) {
            (DataType::Null, _) => "NULL".to_owned(),
            (_, Some(data_type)) => data_type.to_string(),
            // Values within a statement only.
            (DataType::Interval(_), None) => "INTERVAL".to_owned(),
            (other, None) => other.to_string().to_uppercase(),
        };
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(name))))
    }
}
