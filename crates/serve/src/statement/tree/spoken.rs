//! Functions that users of other databases type, by those of the engine: a line each, with `$1` for an argument.
//!
//! Deliberately not here: functions that others mean differently, and those that need code (`functions/`).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, Value, visit_expressions,
    visit_expressions_mut,
};

use super::super::limits::StatementLimits;
use super::super::text::parse_expression;
use super::function::function_name;
use super::{Walker, postgres, refuse};
use crate::functions::kind_of;

/// A name, how many arguments it has, and what it stands for.
const SPOKEN: &[(&str, usize, &str)] = &[
    (
        "arg_max",
        2,
        "first_value($1 ORDER BY $2 DESC) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)",
    ),
    (
        "arg_min",
        2,
        "first_value($1 ORDER BY $2 ASC) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)",
    ),
    ("count_if", 1, "count(CASE WHEN $1 THEN 1 END)"),
    ("date", 1, "CAST($1 AS DATE)"),
    ("day", 1, "date_part('day', $1)"),
    ("dayname", 1, "to_char($1, '%A')"),
    ("dayofmonth", 1, "date_part('day', $1)"),
    ("dayofweek", 1, "date_part('dow', $1)"),
    ("dayofyear", 1, "date_part('doy', $1)"),
    ("epoch", 1, "date_part('epoch', $1)"),
    ("gen_random_uuid", 0, "uuid()"),
    ("hour", 1, "date_part('hour', $1)"),
    ("if", 3, "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("isodow", 1, "date_part('isodow', $1)"),
    (
        "last_day",
        1,
        "CAST(date_trunc('month', $1) + INTERVAL '1 month' - INTERVAL '1 day' AS DATE)",
    ),
    ("minute", 1, "date_part('minute', $1)"),
    ("mod", 2, "$1 % $2"),
    ("month", 1, "date_part('month', $1)"),
    ("monthname", 1, "to_char($1, '%B')"),
    ("quarter", 1, "date_part('quarter', $1)"),
    ("second", 1, "date_part('second', $1)"),
    ("strftime", 2, "to_char($1, $2)"),
    ("strptime", 2, "to_timestamp($1, $2)"),
    ("week", 1, "date_part('week', $1)"),
    ("weekday", 1, "date_part('dow', $1)"),
    ("year", 1, "date_part('year', $1)"),
];

/// Other names of functions that take the same arguments.
const RENAMED: &[(&str, &str)] = &[
    ("approx_count_distinct", "approx_distinct"),
    ("approx_quantile", "approx_percentile_cont"),
    ("argmax", "arg_max"),
    ("argmin", "arg_min"),
    ("countif", "count_if"),
    ("first", "first_value"),
    ("group_concat", "string_agg"),
    ("iff", "if"),
    ("last", "last_value"),
    ("lcase", "lower"),
    ("len", "length"),
    ("listagg", "string_agg"),
    ("max_by", "arg_max"),
    ("min_by", "arg_min"),
    ("newid", "uuid"),
    ("regexp_matches", "regexp_like"),
    ("sign", "signum"),
    ("ucase", "upper"),
];

/// Terms of arguments that may be written twice.
const COPIED_MAX: usize = 10_000;

/// What a function stands for with so many arguments.
type Template = (usize, Option<Expr>);

static TEMPLATES: LazyLock<HashMap<&str, Vec<Template>>> = LazyLock::new(|| {
    let mut templates: HashMap<&str, Vec<Template>> = HashMap::new();
    for (name, count, text) in SPOKEN.iter().chain(postgres::FUNCTIONS) {
        templates.entry(name).or_default().push((*count, expression(text)));
    }
    templates
});

/// The expression of a template.
pub(super) fn expression(text: &str) -> Option<Expr> {
    parse_expression(text, &StatementLimits::default()).ok()
}

impl Walker<'_> {
    /// What a call stands for; `None` where it is one of the engine.
    pub(super) fn spoken(&mut self, call: &mut Function) -> Result<Option<Expr>> {
        let mut called = function_name(&call.name)?;
        if kind_of(&called).is_some() {
            return Ok(None);
        }
        if let Some((_, ours)) = RENAMED.iter().find(|(theirs, _)| *theirs == called) {
            call.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(*ours))]);
            order_within(call);
            if kind_of(ours).is_some() {
                return Ok(None);
            }
            called = (*ours).to_owned();
        }
        if called == "time_bucket" {
            return time_bucket(call).map(Some);
        }
        let Some(templates) = TEMPLATES.get(&*called) else { return Ok(None) };
        let arguments = arguments(call)?;
        let template = templates.iter().find(|(count, _)| *count == arguments.len());
        let Some((_, Some(template))) = template else {
            let counts: Vec<String> =
                templates.iter().map(|(count, _)| count.to_string()).collect();
            return Err(Error::Invalid(format!(
                "{called}() has {} arguments and takes {}",
                arguments.len(),
                counts.join(" or ")
            )));
        };
        let mut expr = template.clone();
        self.fill(&mut expr, &arguments)?;
        if let Expr::Function(made) = &mut expr {
            if let Some(filter) = call.filter.take() {
                made.filter = Some(Box::new(match made.filter.take() {
                    None => *filter,
                    Some(own) => and(*own, *filter),
                }));
            }
            made.over = call.over.take();
        }
        if call.filter.is_some() || call.over.is_some() || !call.within_group.is_empty() {
            return refuse(&format!("FILTER, OVER or WITHIN GROUP of {called}()"), "leave it out");
        }
        // What stands for a call is one term, whatever is around it.
        Ok(Some(Expr::Nested(Box::new(expr))))
    }

    /// Puts arguments into the places of a template.
    fn fill(&mut self, template: &mut Expr, arguments: &[Expr]) -> Result<()> {
        let mut uses = vec![0_usize; arguments.len()];
        let done = visit_expressions_mut(template, |part| {
            let Expr::Value(literal) = part else { return ControlFlow::Continue(()) };
            let Value::Placeholder(place) = &literal.value else {
                return ControlFlow::Continue(());
            };
            let index = place.trim_start_matches('$').parse::<usize>().unwrap_or(0);
            let Some(argument) = index.checked_sub(1).and_then(|i| arguments.get(i)) else {
                return ControlFlow::Break(());
            };
            uses[index - 1] += 1;
            *part = argument.clone();
            ControlFlow::Continue(())
        });
        if done.is_break() {
            return Err(Error::Refused("internal error: a function of too few arguments".into()));
        }
        for (argument, uses) in arguments.iter().zip(uses).filter(|(_, uses)| *uses > 1) {
            self.copied += (uses - 1) * terms(argument);
        }
        match self.copied > COPIED_MAX {
            true => Err(Error::Limit("functions like arg_max() of too long expressions".into())),
            false => Ok(()),
        }
    }
}

fn terms(expr: &Expr) -> usize {
    let mut count = 0;
    let _ = visit_expressions(expr, |_| {
        count += 1;
        ControlFlow::<()>::Continue(())
    });
    count
}

fn and(left: Expr, right: Expr) -> Expr {
    use datafusion::sql::sqlparser::ast::BinaryOperator::And;
    let nested = |expr| Box::new(Expr::Nested(Box::new(expr)));
    Expr::BinaryOp { left: nested(left), op: And, right: nested(right) }
}

/// The arguments of a call that are expressions.
fn arguments(call: &mut Function) -> Result<Vec<Expr>> {
    let list = match &mut call.args {
        FunctionArguments::List(list) => list,
        FunctionArguments::None => return Ok(Vec::new()),
        FunctionArguments::Subquery(_) => {
            return refuse("a query as the arguments", "write it in parentheses of its own");
        }
    };
    let FunctionArgumentList { duplicate_treatment, args, clauses } = list;
    if duplicate_treatment.is_some() || !clauses.is_empty() {
        return refuse(&format!("DISTINCT or ORDER BY in {}()", call.name), "leave it out");
    }
    let exprs = args.drain(..).map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
        other => refuse(&format!("the argument {other}"), "write an expression"),
    });
    exprs.collect()
}

/// `listagg(x, ',') WITHIN GROUP (ORDER BY y)` is `string_agg(x, ',' ORDER BY y)`.
fn order_within(call: &mut Function) {
    if let FunctionArguments::List(list) = &mut call.args
        && !call.within_group.is_empty()
        && call.name.to_string() == "string_agg"
    {
        let order = std::mem::take(&mut call.within_group);
        list.clauses.push(FunctionArgumentClause::OrderBy(order));
    }
}

/// Bins as DuckDB and TimescaleDB count them: from Monday 2000-01-03, those of months from 2000-01-01.
fn time_bucket(call: &mut Function) -> Result<Expr> {
    let mut arguments = arguments(call)?;
    let Some(Expr::Interval(width)) = arguments.first() else {
        return refuse(
            "time_bucket() with a width that is not written as an INTERVAL",
            "write date_bin(width, time, origin)",
        );
    };
    let text = width.to_string().to_lowercase();
    let of_months = ["mon", "year", "quarter", "decade", "centur"];
    let origin = match of_months.iter().any(|unit| text.contains(unit)) {
        true => "TIMESTAMP '2000-01-01 00:00:00'",
        false => "TIMESTAMP '2000-01-03 00:00:00'",
    };
    if arguments.len() == 2 {
        arguments.extend(expression(origin));
    }
    let args = arguments.into_iter().map(|a| FunctionArg::Unnamed(FunctionArgExpr::Expr(a)));
    let list = FunctionArgumentList {
        duplicate_treatment: None,
        args: args.collect(),
        clauses: Vec::new(),
    };
    let mut bin = call.clone();
    bin.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new("date_bin"))]);
    bin.args = FunctionArguments::List(list);
    Ok(Expr::Function(bin))
}

/// Names of these functions, in no order.
pub(crate) fn spoken_names() -> impl Iterator<Item = &'static str> {
    let renamed = RENAMED.iter().map(|(theirs, _)| *theirs);
    let listed = SPOKEN.iter().chain(postgres::FUNCTIONS).map(|(name, ..)| *name);
    listed.chain(renamed).chain(["time_bucket"])
}

/// These functions: names, how they are called, and what they stand for.
pub(crate) fn spoken_calls() -> impl Iterator<Item = (&'static str, String, String)> {
    let call = |name: &str, count: usize| {
        let arguments: Vec<String> = (1..=count).map(|number| format!("${number}")).collect();
        format!("{name}({})", arguments.join(", "))
    };
    let listed = SPOKEN.iter().chain(postgres::FUNCTIONS);
    let listed =
        listed.map(move |(name, count, text)| (*name, call(name, *count), (*text).to_owned()));
    let renamed = RENAMED
        .iter()
        .map(|(theirs, ours)| (*theirs, format!("{theirs}(..)"), format!("{ours}(..)")));
    let bins = ("time_bucket", call("time_bucket", 2), "date_bin($1, $2, origin)".to_owned());
    listed.chain(renamed).chain([bins])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_template_is_an_expression_of_functions_that_there_are() {
        for (name, count, text) in SPOKEN {
            assert!(kind_of(name).is_none(), "{name} is one of the engine");
            let expr = expression(text).unwrap_or_else(|| panic!("{name}: {text}"));
            let mut places = 0;
            let _ = visit_expressions(&expr, |part| {
                if let Expr::Function(function) = part {
                    let called = function.name.to_string();
                    assert!(kind_of(&called).is_some(), "{name}: {called}");
                }
                if let Expr::Value(literal) = part
                    && let Value::Placeholder(place) = &literal.value
                {
                    places = places.max(place[1..].parse::<usize>().unwrap());
                }
                ControlFlow::<()>::Continue(())
            });
            assert_eq!(places, *count, "{name}");
        }
        for (theirs, ours) in RENAMED {
            let known = kind_of(ours).is_some() || TEMPLATES.contains_key(ours);
            assert!(kind_of(theirs).is_none() && known, "{theirs}: {ours}");
        }
    }
}
