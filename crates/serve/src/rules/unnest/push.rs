//! A subquery for all rows of a domain.
//!
//! | node | with the domain's columns `d` |
//! |---|---|
//! | anything that names no outer columns | its rows beside each row of the domain |
//! | projection, filter, alias, DISTINCT, DISTINCT ON, unnest | the same, with `d` |
//! | aggregates with GROUP BY | groups of `d` and the keys |
//! | aggregates without | of the domain's rows LEFT JOIN the pushed input, which those without partner are no part of |
//! | window | partitions of `d` and the keys |
//! | ORDER BY .. LIMIT, OFFSET | rows numbered in each partition of `d` |
//! | joins | also ON `d`, where both sides have it |
//! | UNION ALL | of both sides |

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprFunctionExt, FetchType, Filter, JoinType, Limit,
    LogicalPlan, LogicalPlanBuilder, Projection, SkipType, SubqueryAlias, Union, Unnest, Window,
    lit,
};

use super::NotDistinct;
use super::domain::Domain;
use crate::rules::refused;

mod join;

/// A plan, and where the columns of the domain are in it. It has the plan's columns and those.
pub(super) type Pushed = (LogicalPlan, Vec<Column>);

/// A plan for each row of a domain.
///
/// # Errors
/// When it has a node that no domain can be pushed through.
pub(super) fn push(plan: LogicalPlan, domain: &Domain<'_>) -> Result<Pushed> {
    if domain.is_empty() {
        return Ok((plan, Vec::new()));
    }
    if plan.all_out_ref_exprs().is_empty() {
        let (rows, columns) = domain.rows()?;
        return Ok((LogicalPlanBuilder::from(plan).cross_join(rows)?.build()?, columns));
    }
    match plan {
        LogicalPlan::Filter(filter) => {
            let (input, columns) = push(Arc::unwrap_or_clone(filter.input), domain)?;
            let predicate = domain.bound(filter.predicate, &columns)?;
            Ok((LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?), columns))
        }
        LogicalPlan::Projection(list) => {
            let (input, columns) = push(Arc::unwrap_or_clone(list.input), domain)?;
            let mut exprs = bound_list(list.expr, &columns, domain)?;
            exprs.extend(listed(&columns));
            let list = Projection::try_new(exprs, Arc::new(input))?;
            Ok((LogicalPlan::Projection(list), columns))
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
            let (input, columns) = push(Arc::unwrap_or_clone(input), domain)?;
            let named = columns.into_iter();
            let columns = named.map(|column| Column::new(Some(alias.clone()), column.name));
            let plan = SubqueryAlias::try_new(Arc::new(input), alias.clone())?;
            Ok((LogicalPlan::SubqueryAlias(plan), columns.collect()))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let (input, columns) = push(Arc::unwrap_or_clone(input), domain)?;
            Ok((LogicalPlan::Distinct(Distinct::All(Arc::new(input))), columns))
        }
        // Rows of a subquery have no order, but where LIMIT asks for one.
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
            push(Arc::unwrap_or_clone(sort.input), domain)
        }
        LogicalPlan::Aggregate(aggregate) => pushed_aggregate(aggregate, domain),
        LogicalPlan::Window(window) => pushed_window(window, domain),
        LogicalPlan::Limit(limit) => pushed_limit(limit, domain),
        LogicalPlan::Union(union) => pushed_union(union, domain),
        LogicalPlan::Join(join) => join::pushed(join, domain),
        LogicalPlan::Distinct(Distinct::On(first)) => pushed_first(first, domain),
        LogicalPlan::RecursiveQuery(_) => refuse("WITH RECURSIVE"),
        LogicalPlan::Values(_) => refuse("VALUES"),
        LogicalPlan::Unnest(Unnest { input, exec_columns, options, .. }) => {
            let (input, columns) = push(Arc::unwrap_or_clone(input), domain)?;
            let unnest = Unnest::try_new(Arc::new(input), exec_columns, options)?;
            Ok((LogicalPlan::Unnest(unnest), columns))
        }
        LogicalPlan::Subquery(_) => refuse("LATERAL"),
        other => refuse(&other.display().to_string()),
    }
}

fn refuse<T>(what: &str) -> Result<T> {
    Err(refused(format!(
        "a subquery names outer columns below {what}: name them in its own WHERE, or write a JOIN"
    )))
}

fn listed(columns: &[Column]) -> impl Iterator<Item = Expr> {
    columns.iter().cloned().map(Expr::Column)
}

/// Expressions over the domain's columns, under their names.
fn bound_list(exprs: Vec<Expr>, columns: &[Column], domain: &Domain<'_>) -> Result<Vec<Expr>> {
    let bound = exprs.into_iter().map(|expr| {
        let (relation, name) = expr.qualified_name();
        let bound = domain.bound(expr, columns)?;
        Ok(match bound.qualified_name() == (relation.clone(), name.clone()) {
            true => bound,
            false => bound.unalias().alias_qualified(relation, name),
        })
    });
    bound.collect()
}

fn pushed_aggregate(aggregate: Aggregate, domain: &Domain<'_>) -> Result<Pushed> {
    let Aggregate { input, group_expr, aggr_expr, .. } = aggregate;
    if group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
        return refuse("GROUPING SETS, ROLLUP or CUBE");
    }
    let (input, columns) = push(Arc::unwrap_or_clone(input), domain)?;
    let aggregates = bound_list(aggr_expr, &columns, domain)?;
    if !group_expr.is_empty() {
        let mut keys = bound_list(group_expr, &columns, domain)?;
        keys.extend(listed(&columns));
        let plan = Aggregate::try_new(Arc::new(input), keys, aggregates)?;
        return Ok((LogicalPlan::Aggregate(plan), columns));
    }
    // Aggregates of no rows have a row as well: that of the domain without a partner, which they are told to leave out.
    let mark = domain.name();
    let mut marked: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    marked.push(lit(true).alias(&mark));
    let marked = LogicalPlanBuilder::from(input).project(marked)?.build()?;
    let (rows, keys) = domain.rows()?;
    let equal = keys.iter().zip(columns);
    let on: Vec<Expr> =
        equal.map(|(key, column)| Expr::Column(key.clone()).equal_or_both_null(column)).collect();
    let padded = LogicalPlanBuilder::from(rows).join_on(marked, JoinType::Left, on)?.build()?;
    let is_row = Expr::Column(Column::new_unqualified(mark)).is_not_null();
    let aggregates = aggregates.into_iter().map(|expr| of_rows(expr, &is_row));
    let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
    let plan = Aggregate::try_new(Arc::new(padded), listed(&keys).collect(), aggregates)?;
    Ok((LogicalPlan::Aggregate(plan), keys))
}

/// An aggregate of the rows that fulfil a further condition, under its name.
fn of_rows(expr: Expr, condition: &Expr) -> Result<Expr> {
    let (relation, name) = expr.qualified_name();
    let filtered = expr.transform_up(|part| {
        let Expr::AggregateFunction(mut aggregate) = part else { return Ok(Transformed::no(part)) };
        let filter = match aggregate.params.filter.take() {
            None => condition.clone(),
            Some(filter) => condition.clone().and(*filter),
        };
        aggregate.params.filter = Some(Box::new(filter));
        Ok(Transformed::yes(Expr::AggregateFunction(aggregate)))
    })?;
    Ok(filtered.data.unalias().alias_qualified(relation, name))
}

fn pushed_window(window: Window, domain: &Domain<'_>) -> Result<Pushed> {
    let (input, columns) = push(Arc::unwrap_or_clone(window.input), domain)?;
    let exprs = window.window_expr.into_iter().map(|expr| {
        let (relation, name) = expr.qualified_name();
        let bound = domain.bound(expr, &columns)?.transform_up(|part| {
            let Expr::WindowFunction(mut function) = part else { return Ok(Transformed::no(part)) };
            function.params.partition_by.extend(listed(&columns));
            Ok(Transformed::yes(Expr::WindowFunction(function)))
        })?;
        Ok(bound.data.unalias().alias_qualified(relation, name))
    });
    let window = Window::try_new(exprs.collect::<Result<Vec<_>>>()?, Arc::new(input))?;
    Ok((LogicalPlan::Window(window), columns))
}

/// DISTINCT ON: the first row of each of its keys, and of each row of the domain.
fn pushed_first(first: DistinctOn, domain: &Domain<'_>) -> Result<Pushed> {
    let DistinctOn { on_expr, select_expr, sort_expr, input, .. } = first;
    let (input, columns) = push(Arc::unwrap_or_clone(input), domain)?;
    let mut keys: Vec<Expr> = listed(&columns).collect();
    for key in on_expr {
        keys.push(domain.bound(key, &columns)?);
    }
    let mut list = bound_list(select_expr, &columns, domain)?;
    list.extend(listed(&columns));
    let order = match sort_expr {
        None => None,
        Some(order) => {
            let of_domain = listed(&columns).map(|column| column.sort(true, true));
            let mut all: Vec<SortKey> = of_domain.collect();
            for SortKey { expr, asc, nulls_first } in order {
                all.push(SortKey { expr: domain.bound(expr, &columns)?, asc, nulls_first });
            }
            Some(all)
        }
    };
    let first = DistinctOn::try_new(keys, list, order, Arc::new(input))?;
    Ok((LogicalPlan::Distinct(Distinct::On(first)), columns))
}

/// The rows of a LIMIT are those with such numbers in the order below it.
fn pushed_limit(limit: Limit, domain: &Domain<'_>) -> Result<Pushed> {
    let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
        (limit.get_skip_type()?, limit.get_fetch_type()?)
    else {
        return refuse("a LIMIT that is no number");
    };
    let input = match Arc::unwrap_or_clone(limit.input) {
        // A list of columns of some rows is those rows of the list.
        LogicalPlan::Projection(list) => {
            let input = Arc::new(LogicalPlan::Limit(Limit { input: list.input, ..limit }));
            let list = Projection::try_new(list.expr, input)?;
            return push(LogicalPlan::Projection(list), domain);
        }
        other => other,
    };
    let (input, order) = match input {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => (sort.input, sort.expr),
        other => (Arc::new(other), Vec::new()),
    };
    let (input, columns) = push(Arc::unwrap_or_clone(input), domain)?;
    let order = order.into_iter().map(|key| {
        let SortKey { expr, asc, nulls_first } = key;
        Ok(SortKey { expr: domain.bound(expr, &columns)?, asc, nulls_first })
    });
    let number = domain.name();
    let numbers = row_number()
        .partition_by(listed(&columns).collect())
        .order_by(order.collect::<Result<Vec<_>>>()?)
        .build()?
        .alias(&number);
    let all: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let window = Window::try_new(vec![numbers], Arc::new(input))?;
    let number = Expr::Column(Column::new_unqualified(number));
    let above = |rows: usize| number.clone().gt(lit(u64::try_from(rows).unwrap_or(u64::MAX)));
    let last = fetch.map(|fetch| skip.saturating_add(fetch));
    let mut condition = above(skip);
    if let Some(last) = last {
        condition = condition.and(datafusion::logical_expr::not(above(last)));
    }
    let plan = LogicalPlanBuilder::from(LogicalPlan::Window(window));
    Ok((plan.filter(condition)?.project(all)?.build()?, columns))
}

fn pushed_union(union: Union, domain: &Domain<'_>) -> Result<Pushed> {
    let name = domain.name();
    let mut inputs = Vec::new();
    let mut fields: Vec<_> =
        union.schema.iter().map(|(q, field)| (q.cloned(), Arc::clone(field))).collect();
    let mut named = Vec::new();
    for input in union.inputs {
        let own = input.schema().columns();
        let (input, columns) = push(Arc::unwrap_or_clone(input), domain)?;
        named = (0..columns.len()).map(|at| format!("{name}{at}")).collect();
        let mut list: Vec<Expr> = own.into_iter().map(Expr::Column).collect();
        list.extend(listed(&columns).zip(&named).map(|(column, name)| column.alias(name)));
        let input = LogicalPlanBuilder::from(input).project(list)?.build()?;
        if inputs.is_empty() {
            for at in fields.len()..input.schema().fields().len() {
                let field = input.schema().field(at).as_ref().clone().with_nullable(true);
                fields.push((None, Arc::new(field)));
            }
        }
        inputs.push(Arc::new(input));
    }
    let schema = DFSchema::new_with_metadata(fields, union.schema.metadata().clone())?;
    let plan = LogicalPlan::Union(Union { inputs, schema: Arc::new(schema) });
    Ok((plan, named.into_iter().map(Column::new_unqualified).collect()))
}
