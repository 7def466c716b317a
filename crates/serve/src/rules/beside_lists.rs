//! Lists beside texts: what the engine would take their JSON for.
//!
//! | written | here | the engine alone |
//! |---|---|---|
//! | `x = '{1}'`, `x IN ('[1]')` | the text is cast to the list's type | compares the list's JSON with the text |
//! | `length(x)` | number of elements, as in DuckDB | length of the JSON |
//! | `upper(x)`, `x LIKE 'a'` and other functions of texts and numbers | refused | those of the JSON |
//!
//! It runs before operands have their types.

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::functions_nested::length::array_length;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, cast};

use super::microseconds::CHOOSING;
use super::refused;
use crate::functions::takes_lists;

/// Functions of texts, and what does for lists what they do.
const INSTEAD: [(&str, &str); 6] = [
    ("concat", "array_append(list, element)"),
    ("concat_ws", "array_append(list, element)"),
    ("contains", "array_has(list, element)"),
    ("reverse", "array_reverse(list)"),
    ("strpos", "array_position(list, element)"),
    ("substr", "list[from:to]"),
];

/// Gives texts beside lists their type, and makes of functions of texts those of lists.
pub(super) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::BinaryExpr(e) if compares(e.op) => {
            texts_as_lists(vec![&mut e.left, &mut e.right], schema)
        }
        Expr::BinaryExpr(e) if matches_patterns(e.op) => {
            refuse_lists(&e.op.to_string(), [&*e.left, &*e.right], schema)?;
            false
        }
        Expr::Between(e) => texts_as_lists(vec![&mut e.expr, &mut e.low, &mut e.high], schema),
        Expr::InList(e) => {
            texts_as_lists(std::iter::once(e.expr.as_mut()).chain(&mut e.list).collect(), schema)
        }
        Expr::Case(case) => match &mut case.expr {
            Some(base) => {
                let whens = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                texts_as_lists(std::iter::once(base.as_mut()).chain(whens).collect(), schema)
            }
            None => false,
        },
        Expr::Like(like) | Expr::SimilarTo(like) => {
            refuse_lists("LIKE", [&*like.expr, &*like.pattern], schema)?;
            false
        }
        Expr::ScalarFunction(f) => {
            return function(f, schema).map(|made| match made {
                Some(made) => Transformed::yes(made),
                None => Transformed::no(expr),
            });
        }
        _ => false,
    };
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn matches_patterns(op: Operator) -> bool {
    use Operator::{
        LikeMatch, NotLikeMatch, RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch,
    };
    matches!(
        op,
        LikeMatch | NotLikeMatch | RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch
    )
}

/// The type of an expression, if it is a list. What cannot be one is not asked for its type, which takes longer the more there is
/// within it.
fn list_type(expr: &Expr, schema: &DFSchema) -> Option<ArrowType> {
    let may_be = match expr {
        Expr::ScalarFunction(f) => takes_any(f.name()) || takes_lists(f.name()),
        Expr::BinaryExpr(_) | Expr::Not(_) | Expr::Like(_) | Expr::IsNull(_) => false,
        _ => true,
    };
    let list = may_be.then(|| expr.get_type(schema).ok()).flatten();
    list.filter(ArrowType::is_list)
}

fn takes_any(name: &str) -> bool {
    name == "typeof" || CHOOSING.contains(&name)
}

/// Whether texts among values that are compared have the type of a list now, as one of the others has.
fn texts_as_lists(mut values: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let Some(list) = values.iter().find_map(|value| list_type(value, schema)) else { return false };
    let mut changed = false;
    for value in &mut values {
        let is_text = value.get_type(schema).is_ok_and(|t| t.is_string());
        if is_text {
            **value = cast(std::mem::take(*value), list.clone());
            changed = true;
        }
    }
    changed
}

/// Refuses lists where texts are wanted.
fn refuse_lists<'a>(
    what: &str,
    values: impl IntoIterator<Item = &'a Expr>,
    schema: &DFSchema,
) -> Result<()> {
    match values.into_iter().any(|value| list_type(value, schema).is_some()) {
        false => Ok(()),
        true => {
            let instead = INSTEAD.iter().find(|(name, _)| *name == what);
            let instead = match instead {
                Some((_, instead)) => format!("write {instead}, or "),
                None => String::new(),
            };
            Err(refused(format!(
                "{what} of a list is not supported: {instead}unnest it, or CAST(list AS VARCHAR) for its JSON"
            )))
        }
    }
}

/// What a function of a list is; `None` where it stays as it is.
fn function(function: &mut ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let name = function.name();
    if takes_any(name) || takes_lists(name) {
        return Ok(None);
    }
    if name == "character_length"
        && let [list] = &function.args[..]
        && list_type(list, schema).is_some()
    {
        let number = array_length(list.clone());
        return Ok(Some(cast(number, ArrowType::Int32)));
    }
    // What `||` of two lists is, is refused with other words.
    if name != "array_concat" {
        refuse_lists(name, &function.args, schema)?;
    }
    Ok(None)
}
