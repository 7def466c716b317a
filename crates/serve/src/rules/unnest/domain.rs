//! The values of outer columns for which a subquery is computed.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::Rows;
use crate::rules::refused;

/// Numbers the names of what a rule adds, which no SQL can say.
#[derive(Debug, Default)]
pub(super) struct Names(Cell<usize>);

impl Names {
    pub(super) fn next(&self) -> String {
        let number = self.0.get() + 1;
        self.0.set(number);
        format!("\u{1}q{number}_")
    }
}

/// A column of the rows around a subquery that the subquery names.
struct Outer {
    column: Column,
    /// What it is in the rows around the subquery.
    joined: Expr,
    /// What it is computed of there.
    value: Expr,
}

/// Outer columns and where their values come from.
pub(super) struct Domain<'a> {
    outer: Vec<Outer>,
    source: LogicalPlan,
    names: &'a Names,
}

impl<'a> Domain<'a> {
    /// The domain of a subquery over some rows; what is `sought`, a column of theirs and what it is computed of, comes last.
    ///
    /// # Errors
    /// When the rows are not the same each time they are computed.
    pub(super) fn new(
        subquery: &LogicalPlan,
        rows: &Rows,
        sought: Option<&(Column, Expr)>,
        names: &'a Names,
    ) -> Result<Self> {
        let schema = rows.plan.schema();
        let mut outer = Vec::new();
        for expr in subquery.all_out_ref_exprs() {
            let Expr::OuterReferenceColumn(_, column) = &expr else { continue };
            let is_local = schema.has_column(column);
            let value = if is_local { Expr::Column(column.clone()) } else { expr.clone() };
            outer.push(Outer { column: column.clone(), joined: value.clone(), value });
        }
        outer.extend(sought.map(|(column, value)| Outer {
            column: column.clone(),
            joined: Expr::Column(column.clone()),
            value: value.clone(),
        }));
        let named: HashSet<&Column> =
            outer.iter().flat_map(|one| one.value.column_refs()).collect();
        if named.is_empty() {
            let schema = Arc::new(DFSchema::empty());
            let source =
                LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema });
            return Ok(Self { outer, source, names });
        }
        let mut has_floats = false;
        for column in &named {
            has_floats |= schema.field_from_column(column)?.data_type().is_floating();
        }
        // Without the columns of other subqueries, where none is named.
        let is_of_base = named.iter().all(|column| rows.base.schema().has_column(column));
        let source = if is_of_base { &rows.base } else { &rows.plan };
        check_repeatable(source, has_floats)?;
        let source = source.clone();
        Ok(Self { outer, source, names })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outer.is_empty()
    }

    /// An outer column in the rows around the subquery.
    pub(super) fn outer(&self, at: usize) -> Expr {
        self.outer.get(at).map_or_else(|| lit(true), |one| one.joined.clone())
    }

    /// The rows of the domain, each once, and the names of their columns, which are others each time.
    pub(super) fn rows(&self) -> Result<(LogicalPlan, Vec<Column>)> {
        let name = self.names.next();
        let names: Vec<String> = (0..self.outer.len()).map(|at| format!("{name}{at}")).collect();
        let values = self.outer.iter().zip(&names).map(|(one, name)| one.value.clone().alias(name));
        let rows =
            LogicalPlanBuilder::from(self.source.clone()).project(values)?.distinct()?.build()?;
        Ok((rows, names.into_iter().map(Column::new_unqualified).collect()))
    }

    /// A name for what a plan needs besides.
    pub(super) fn name(&self) -> String {
        self.names.next()
    }

    /// Puts the columns of the domain in the place of outer columns.
    pub(super) fn bound(&self, expr: Expr, columns: &[Column]) -> Result<Expr> {
        let bound = expr.transform(|part| {
            let Expr::OuterReferenceColumn(_, column) = &part else {
                return Ok(Transformed::no(part));
            };
            let at = self.outer.iter().position(|one| one.column == *column);
            match at.and_then(|at| columns.get(at)) {
                Some(column) => Ok(Transformed::yes(Expr::Column(column.clone()))),
                None => Ok(Transformed::no(part)),
            }
        })?;
        Ok(bound.data)
    }
}

/// Checks that a plan gives the same rows each time, as the domain is computed apart from the rows around the subquery.
fn check_repeatable(plan: &LogicalPlan, has_floats: bool) -> Result<()> {
    plan.apply(|node| {
        let what = match node {
            LogicalPlan::Limit(_) => "LIMIT",
            LogicalPlan::Window(window) if window.window_expr.iter().any(is_of_order) => {
                "a window function that depends on the order of equal rows"
            }
            LogicalPlan::Window(window) if has_floats && has_float(&window.window_expr, node) => FLOATS,
            LogicalPlan::Aggregate(aggregate)
                if has_floats && has_float(&aggregate.aggr_expr, node) =>
            {
                FLOATS
            }
            _ => {
                node.apply_expressions(|expr| match expr.is_volatile() {
                    true => Err(refused("a subquery that names columns from outside stands over random values")),
                    false => Ok(TreeNodeRecursion::Continue),
                })?;
                return Ok(TreeNodeRecursion::Continue);
            }
        };
        Err(refused(format!(
            "a subquery names outer columns that come from {what}: write a JOIN with a table of them"
        )))
    })?;
    Ok(())
}

/// Their last digits depend on the order of the rows.
const FLOATS: &str = "an aggregate of floats (cast them to DECIMAL)";

/// Whether one of the expressions of a node is a float.
fn has_float(exprs: &[Expr], node: &LogicalPlan) -> bool {
    let names: Vec<String> = exprs.iter().map(|expr| expr.schema_name().to_string()).collect();
    let mut fields = node.schema().fields().iter();
    fields.any(|field| field.data_type().is_floating() && names.contains(field.name()))
}

fn is_of_order(expr: &Expr) -> bool {
    let found = expr.exists(|part| {
        let Expr::WindowFunction(window) = part else { return Ok(false) };
        Ok(match &window.fun {
            WindowFunctionDefinition::AggregateUDF(_) => false,
            WindowFunctionDefinition::WindowUDF(function) => {
                !matches!(function.name(), "rank" | "dense_rank" | "percent_rank" | "cume_dist")
            }
        })
    });
    found.unwrap_or(true)
}
