//! `array_ordinals(list)`: the numbers of a list's elements, `[1, 2, 3]` of `['a', 'b', 'c']`; what WITH ORDINALITY is made of.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

/// Its name.
pub(crate) const ORDINALS: &str = "array_ordinals";

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Ordinals {
    signature: Signature,
}

impl Ordinals {
    pub fn new() -> Self {
        Ordinals { signature: Signature::any(1, Volatility::Immutable) }
    }
}

fn item() -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::Int64, true))
}

impl ScalarUDFImpl for Ordinals {
    fn name(&self) -> &str {
        ORDINALS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [list] if list.is_list() || list.is_null() => Ok(DataType::List(item())),
            _ => Err(DataFusionError::Plan(format!("{ORDINALS}() takes a list"))),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.first() {
            Some(ColumnarValue::Array(lists)) => Ok(ColumnarValue::Array(ordinals(lists)?)),
            Some(ColumnarValue::Scalar(list)) => {
                let numbers = ordinals(&list.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&numbers, 0)?))
            }
            None => Err(DataFusionError::Internal("no argument".into())),
        }
    }
}

fn ordinals(lists: &ArrayRef) -> Result<ArrayRef> {
    let as_list = match lists.data_type() {
        DataType::List(_) => Arc::clone(lists),
        DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
            cast(lists, &DataType::List(Arc::clone(of)))?
        }
        _ => cast(lists, &DataType::List(item()))?,
    };
    let lists = as_list.as_list::<i32>();
    let (first, last) = (lists.value_offsets()[0], lists.value_offsets()[lists.len()]);
    let mut numbers = Vec::with_capacity((last - first) as usize);
    lists.offsets().lengths().for_each(|length| numbers.extend(1..=length as i64));
    let lengths = datafusion::arrow::buffer::OffsetBuffer::from_lengths(lists.offsets().lengths());
    let numbers = Arc::new(Int64Array::from(numbers));
    Ok(Arc::new(ListArray::try_new(item(), lengths, numbers, lists.nulls().cloned())?))
}
