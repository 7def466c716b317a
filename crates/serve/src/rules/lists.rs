//! Lists: keys by which they are compared, casts of their elements, and what there is not.
//!
//! The engine takes an element that is NULL for the least where it compares, and for the greatest where it sorts; -0 is below 0
//! in it. The key of a list is what the store has of it, whose bytes are in its order, with one zero and one NaN.
//!
//! A statement makes no list that is much longer than what it is given: those of the engine's functions that would are not
//! listed, and what its planner makes of operators is refused here.

use std::sync::Arc;

use coload_types::{Column, DataType as StoredType, Strings};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, LargeBinaryArray, ListArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::arrow::error::ArrowError;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::floats::{canonical, canonical_of, has_floats};
use super::unary::Unary;
use super::{call, convert, map_values, only, refused};
use crate::lists::append_lists;
use crate::types::{arrow_type, sql_type};

/// Whether values are lists, of whatever form.
pub(super) fn is_list(data_type: &ArrowType) -> bool {
    data_type.is_list()
}

/// A key for comparisons of lists.
pub(super) fn key_of(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let data_type = expr.get_type(schema)?;
    match sql_type(&data_type) {
        Some(StoredType::List(_)) => Ok(KEY.of(expr)),
        // A NULL that has no type yet.
        Some(_) => Ok(expr),
        None => Err(refused(format!(
            "{data_type} is not compared: its elements are no numbers, texts or times"
        ))),
    }
}

static KEY: Unary = Unary {
    name: "key_of_list",
    is_hidden: true,
    returns: |_| ArrowType::LargeBinary,
    map: |array| Ok(keys(array)?),
};

fn keys(array: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    let Some(StoredType::List(element)) = sql_type(array.data_type()) else {
        return Err(ArrowError::InvalidArgumentError(format!("{} has no key", array.data_type())));
    };
    let data_type = StoredType::List(element);
    let lists = canonical(convert(array, &arrow_type(data_type))?);
    let mut bytes = Strings::default();
    append_lists(&lists, &Column::new("list", data_type), element, &mut bytes)
        .map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
    let key = |row: usize| lists.is_valid(row).then(|| bytes.get(row));
    Ok(Arc::new((0..lists.len()).map(key).collect::<LargeBinaryArray>()))
}

/// Functions that compare elements, of which the engine takes floats in total order.
const COMPARING: [&str; 9] = [
    "array_distinct",
    "array_has",
    "array_max",
    "array_min",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_all",
    "array_sort",
];

/// Refuses what makes long lists of short ones, and lists of lists; makes casts of elements those of SQL.
pub(super) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (inner, to) = match &mut expr {
        Expr::ScalarFunction(function) => {
            let name = function.name();
            let is_nested =
                || function.args.iter().any(|arg| arg.get_type(schema).is_ok_and(|t| is_list(&t)));
            return match name {
                // What the engine's planner makes of `||`.
                "array_concat" => {
                    Err(refused("two lists are not joined: write array_append(list, element)"))
                }
                "make_array" if is_nested() => {
                    Err(refused("a list of lists is not made: they are not stored"))
                }
                "greatest" | "least" if is_nested() => Err(refused(format!(
                    "{name} of lists is not supported: write CASE WHEN a < b THEN .. END"
                ))),
                _ if COMPARING.contains(&name) => {
                    let mut changed = false;
                    for arg in &mut function.args {
                        if has_floats(&arg.get_type(schema)?) {
                            *arg = canonical_of(std::mem::take(arg));
                            changed = true;
                        }
                    }
                    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
                }
                _ => Ok(Transformed::no(expr)),
            };
        }
        Expr::Cast(cast) => (&mut cast.expr, cast.field.data_type().clone()),
        Expr::TryCast(cast)
            if is_list(cast.field.data_type()) && is_list(&cast.expr.get_type(schema)?) =>
        {
            return Err(refused("TRY_CAST of a list is not supported: write CAST"));
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let from = inner.get_type(schema)?;
    let (Some(old), Some(new)) = (element_of(&from), element_of(&to)) else {
        return Ok(Transformed::no(expr));
    };
    if old == new || *old == ArrowType::Null || is_text(old) && is_text(new) {
        return Ok(Transformed::no(expr));
    }
    let operand = std::mem::take(inner.as_mut());
    Ok(Transformed::yes(call(ScalarUDF::from(OfElements::new(to)), vec![operand])))
}

fn is_text(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View)
}

/// The type of the elements of a list whose ends are of 32 bits, which are those that columns have.
pub(super) fn element_of(data_type: &ArrowType) -> Option<&ArrowType> {
    match data_type {
        ArrowType::List(item) => Some(item.data_type()),
        _ => None,
    }
}

/// The lists of an array with elements of another type, each of which becomes it as a value by itself would.
pub(super) fn with_elements(
    array: &ArrayRef,
    element: &ArrowType,
) -> std::result::Result<ArrayRef, ArrowError> {
    let of_32_bits;
    let array = match array.data_type() {
        ArrowType::List(_) => array,
        ArrowType::LargeList(item)
        | ArrowType::ListView(item)
        | ArrowType::LargeListView(item)
        | ArrowType::FixedSizeList(item, _) => {
            of_32_bits = cast(array, &ArrowType::List(Arc::clone(item)))?;
            &of_32_bits
        }
        other => return Err(ArrowError::CastError(format!("{other} is no list"))),
    };
    let lists = array.as_list::<i32>();
    let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
    // What no list holds is not looked at.
    let (first, last) = (offsets[0] as usize, offsets[lists.len()] as usize);
    let items = lists.values().slice(first, last - first);
    let items = if items.data_type() == element { items } else { convert(&items, element)? };
    let field = Arc::new(Field::new_list_field(element.clone(), true));
    let lengths = datafusion::arrow::buffer::OffsetBuffer::from_lengths(offsets.lengths());
    Ok(Arc::new(ListArray::try_new(field, lengths, items, nulls)?))
}

/// A cast of the elements of lists.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfElements {
    to: ArrowType,
    signature: Signature,
}

impl OfElements {
    fn new(to: ArrowType) -> Self {
        OfElements { to, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for OfElements {
    fn name(&self) -> &str {
        "cast_of_elements"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args
            .first()
            .map_or_else(String::new, |argument| format!("CAST({argument} AS {})", self.to)))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_values(only(&args.args)?, |array| {
            let lists = convert(array, &self.to)?;
            // The names of fields within may differ.
            Ok(cast(&lists, &self.to)?)
        })
    }
}
