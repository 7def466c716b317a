//! The queries that a PIVOT and an UNPIVOT are.

use std::collections::HashSet;
use std::ops::ControlFlow;

use coload_types::{Error, Result};
use datafusion::arrow::datatypes::{DataType as ArrowType, Schema as ArrowSchema};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, TypedString, UnaryOperator, Value as Literal, visit_expressions,
};

use super::COLUMNS_MAX;
use super::syntax::{On, Pivot, Unpivot, Unpivoted};
use crate::names::fold;

/// Names of a table that no statement can mean.
const NAMES: &str = "\"\u{1}names\"";
const NUMBER: &str = "\"\u{1}number\"";
const NAME: &str = "\"\u{1}name\"";

/// The values of an expression that become columns.
pub(super) struct Values(Vec<Value>);

#[derive(Clone)]
struct Value {
    /// What the column is called.
    text: String,
    /// The condition that a row has it.
    holds: String,
}

impl Values {
    /// Those that were found, as texts.
    pub fn found(expr: &str, texts: Vec<String>, data_type: &ArrowType) -> Self {
        let value = |text: String| {
            // Compared as the column is, where that can be written: the scan may do it then.
            let holds = match data_type {
                t if t.is_integer() || matches!(t, ArrowType::Decimal128(..)) => {
                    format!("({expr}) = {text}")
                }
                ArrowType::Boolean => format!("({expr}) = {text}"),
                ArrowType::Date32 => format!("({expr}) = DATE {}", literal(&text)),
                ArrowType::Timestamp(_, None) => format!("({expr}) = TIMESTAMP {}", literal(&text)),
                ArrowType::Utf8
                | ArrowType::LargeUtf8
                | ArrowType::Utf8View
                | ArrowType::Dictionary(..) => {
                    format!("({expr}) = {}", literal(&text))
                }
                _ => format!("CAST({expr} AS VARCHAR) = {}", literal(&text)),
            };
            Value { text, holds }
        };
        Values(texts.into_iter().map(value).collect())
    }
}

/// Those that IN names.
///
/// # Errors
/// `Invalid` for what is no literal.
pub(super) fn named_values(on: &On, named: &[Expr]) -> Result<Values> {
    let value = |of: &Expr| match text_of(of) {
        Some(text) => Ok(Value { text, holds: format!("({}) = {of}", on.expr) }),
        None if is_null(of) => {
            Ok(Value { text: "NULL".into(), holds: format!("({}) IS NULL", on.expr) })
        }
        None => Err(Error::Invalid(format!("PIVOT: IN takes literals, and not {of}"))),
    };
    named.iter().map(value).collect::<Result<_>>().map(Values)
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value == Literal::Null)
}

/// A literal as the name of a column.
fn text_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => Some(digits.clone()),
            Literal::SingleQuotedString(text) => Some(text.clone()),
            Literal::Boolean(truth) => Some(truth.to_string()),
            _ => None,
        },
        Expr::TypedString(TypedString { value, .. }) => value.value.clone().into_string(),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match text_of(expr) {
            Some(digits) if !matches!(**expr, Expr::UnaryOp { .. }) => Some(format!("-{digits}")),
            _ => None,
        },
        _ => None,
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The columns that neither ON nor USING names: the groups where GROUP BY names none.
pub(super) fn other_columns(pivot: &Pivot, columns: &ArrowSchema) -> Vec<String> {
    let mut named = HashSet::new();
    let exprs = pivot.on.iter().map(|on| &on.expr);
    for expr in exprs.chain(pivot.aggregates.iter().map(|(aggregate, _)| aggregate)) {
        let _ = visit_expressions(expr, |part| {
            let name = match part {
                Expr::Identifier(name) => Some(name),
                Expr::CompoundIdentifier(names) => names.last(),
                _ => None,
            };
            named.extend(name.map(|name| fold(&name.value)));
            ControlFlow::<()>::Continue(())
        });
    }
    let all = columns.fields().iter().map(|field| field.name());
    all.filter(|name| !named.contains(&fold(name))).map(|name| quoted(name)).collect()
}

/// The query that a PIVOT is, with these groups and the values of each expression of ON.
///
/// # Errors
/// `Limit` for too many columns, `Invalid` for two of one name.
pub(super) fn pivoted(pivot: &Pivot, groups: &[String], values: &[Values]) -> Result<String> {
    let each = pivot.aggregates.len().max(1);
    let combinations =
        values.iter().map(|values| values.0.len()).try_fold(1_usize, usize::checked_mul);
    let count = combinations.and_then(|count| count.checked_mul(each));
    if count.is_none_or(|count| count > COLUMNS_MAX) {
        return Err(Error::Limit(format!(
            "PIVOT would have over {COLUMNS_MAX} columns: name the values that are wanted, as in ON c IN ('a', 'b')"
        )));
    }
    let mut all = vec![Value { text: String::new(), holds: String::new() }];
    for (number, values) in values.iter().enumerate() {
        let with = |before: &Value, value: &Value| match number {
            0 => value.clone(),
            _ => Value {
                text: format!("{}_{}", before.text, value.text),
                holds: format!("{} AND {}", before.holds, value.holds),
            },
        };
        all = all
            .iter()
            .flat_map(|before| values.0.iter().map(move |value| with(before, value)))
            .collect();
    }
    let mut names: HashSet<String> =
        groups.iter().map(|group| fold(group.trim_matches('"'))).collect();
    let mut items: Vec<String> = groups.to_vec();
    // Without USING rows are counted.
    let mut aggregates: Vec<(Option<&Expr>, Option<&Ident>)> = Vec::new();
    aggregates.extend(
        pivot.aggregates.iter().map(|(aggregate, alias)| (Some(aggregate), alias.as_ref())),
    );
    if aggregates.is_empty() {
        aggregates.push((None, None));
    }
    for Value { text, holds } in &all {
        for (aggregate, alias) in &aggregates {
            let name = match (alias, aggregate) {
                (Some(alias), _) => format!("{text}_{}", alias.value),
                (None, Some(aggregate)) if aggregates.len() > 1 => format!("{text}_{aggregate}"),
                (None, _) => text.clone(),
            };
            if !names.insert(fold(&name)) {
                return Err(Error::Invalid(format!(
                    "PIVOT would have two columns {}, as names have no case: make the values alike, as in ON lower(c), or name them \
                     with IN",
                    quoted(&name)
                )));
            }
            items.push(format!("{} AS {}", filtered(*aggregate, holds)?, quoted(&name)));
        }
    }
    if items.is_empty() {
        return Err(Error::Invalid("PIVOT: there are no values, and no groups".into()));
    }
    let by =
        if groups.is_empty() { String::new() } else { format!(" GROUP BY {}", groups.join(", ")) };
    Ok(format!("SELECT {} FROM {}{by}{}", items.join(", "), pivot.from, pivot.tail))
}

/// An aggregate of the rows for which a condition holds.
fn filtered(aggregate: Option<&Expr>, holds: &str) -> Result<String> {
    let Some(aggregate) = aggregate else { return Ok(format!("count(*) FILTER (WHERE {holds})")) };
    let Expr::Function(function) = aggregate else {
        return Err(Error::Invalid(format!(
            "PIVOT: USING takes aggregates, such as sum(x), and not {aggregate}: compute with its columns in a SELECT around it"
        )));
    };
    let mut function = function.clone();
    let holds = match function.filter.take() {
        Some(own) => format!("({own}) AND {holds}"),
        None => holds.to_owned(),
    };
    Ok(format!("{function} FILTER (WHERE {holds})"))
}

/// The query that an UNPIVOT is, of what has these columns.
///
/// # Errors
/// `Invalid` for a column that is not there.
pub(super) fn unpivoted(unpivot: &Unpivot, columns: &ArrowSchema) -> Result<String> {
    let all: Vec<&str> = columns.fields().iter().map(|field| field.name().as_str()).collect();
    let place = |wanted: &Ident| {
        let found = all.iter().position(|name| fold(name) == fold(&wanted.value));
        found.ok_or_else(|| {
            let there: Vec<String> = all.iter().map(|name| crate::names::quote(name)).collect();
            Error::Invalid(format!(
                "UNPIVOT: no field named {wanted}; there is {}",
                there.join(", ")
            ))
        })
    };
    let places = |names: &[Ident]| names.iter().map(place).collect::<Result<Vec<usize>>>();
    let chosen = match &unpivot.columns {
        Unpivoted::These(names) => places(names)?,
        Unpivoted::AllBut(names) => {
            let but = places(names)?;
            (0..all.len()).filter(|index| !but.contains(index)).collect()
        }
    };
    if chosen.is_empty() {
        return Err(Error::Invalid("UNPIVOT of no column".into()));
    }
    let rest =
        (0..all.len()).filter(|index| !chosen.contains(index)).map(|index| quoted(all[index]));
    let mut items: Vec<String> = rest.collect();
    let numbered = || (1..).zip(&chosen);
    let whens: Vec<String> = numbered()
        .map(|(number, index)| format!("WHEN {number} THEN {}", quoted(all[*index])))
        .collect();
    let rows: Vec<String> =
        numbered().map(|(number, index)| format!("({number}, {})", literal(all[*index]))).collect();
    let Unpivot { from, name, value, tail, .. } = unpivot;
    items.push(format!("{NAMES}.{NAME} AS {name}"));
    items.push(format!("CASE {NAMES}.{NUMBER} {} END AS {value}", whens.join(" ")));
    let values =
        if unpivot.keeps_nulls { String::new() } else { format!(" WHERE {value} IS NOT NULL") };
    Ok(format!(
        "SELECT * FROM (SELECT {} FROM {from} CROSS JOIN (VALUES {}) AS {NAMES} ({NUMBER}, {NAME})) AS {NAMES}{values}{tail}",
        items.join(", "),
        rows.join(", ")
    ))
}
