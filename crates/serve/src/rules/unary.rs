//! Functions of one value that stand in plans only: no statement can call them.

use std::hash::{Hash, Hasher};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::{call, map_values, only};

/// What such a function is. NULL gives NULL.
#[derive(Debug)]
pub(super) struct Unary {
    /// Its name, which tells it from the others.
    pub name: &'static str,
    /// Whether answers call it by its argument, as it stands in no statement.
    pub is_hidden: bool,
    /// The type of what it gives, of that of its argument.
    pub returns: fn(&ArrowType) -> ArrowType,
    /// What it gives for all values of an array.
    pub map: fn(&ArrayRef) -> Result<ArrayRef>,
}

impl Unary {
    /// A call of the function.
    pub fn of(&'static self, argument: Expr) -> Expr {
        let signature = Signature::any(1, Volatility::Immutable);
        call(ScalarUDF::from(Function { unary: self, signature }), vec![argument])
    }
}

#[derive(Debug)]
struct Function {
    unary: &'static Unary,
    signature: Signature,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.unary.name == other.unary.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.unary.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.unary.name
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let shown = args.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Ok(if self.unary.is_hidden { shown } else { format!("{}({shown})", self.name()) })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        match types {
            [argument] => Ok((self.unary.returns)(argument)),
            _ => Err(DataFusionError::Internal(format!("{} takes one argument", self.unary.name))),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_values(only(&args.args)?, self.unary.map)
    }
}
