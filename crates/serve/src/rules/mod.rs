//! What SQL means here where the engine would give another answer.
//!
//! ```text
//!   text --operators, types--> plan --order_of_rules--> plan --optimizer--> physical plan
//! ```
//!
//! An [`ExprPlanner`] and a [`TypePlanner`] say what types expressions have, from the start; analyzer rules then rewrite
//! the plan, before and after the engine's own rule that makes operands of one type. All are before the optimizer, so that
//! constants are folded by the same functions that compute with columns.
//!
//! Invariant: each rule keeps the names of the columns of a plan.

mod arithmetic;
mod beside_floats;
mod beside_lists;
mod calendar;
mod casts;
mod date_bin;
mod date_trunc;
mod days;
mod exact_sum;
mod extremes;
mod floats;
mod guard;
mod idle;
mod intervals;
mod lists;
mod marks;
mod membership;
mod microseconds;
mod moments;
mod null_keys;
mod one_nan;
mod operators;
mod order;
mod pass;
mod round;
mod round_floats;
mod set_operations;
mod shifts;
mod sliding;
mod sum;
mod truth;
mod unary;
mod unnest;

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::ArrayRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionStateDefaults;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, EmptyRelation, Expr, LogicalPlan, Projection, ScalarUDF,
};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::{Analyzer, AnalyzerRule, Optimizer, OptimizerRule};

pub(crate) use arithmetic::{Arithmetic, Operation};
pub(crate) use calendar::check_years;
pub(crate) use casts::convert;
pub(crate) use exact_sum::divide_rounded;
pub(crate) use floats::canonical_f64;
pub(crate) use guard::{physical_plan, physical_plan_fitted};
use pass::{Pass, Schemas, Step};

use crate::memory::texts_of_values;

/// Puts the rules into a session that has the engine's defaults.
pub(crate) fn build(builder: SessionStateBuilder) -> Result<SessionState> {
    let mut planners = SessionStateDefaults::default_expr_planners();
    planners.insert(0, Arc::new(operators::Operators));
    let builder = builder
        .with_expr_planners(planners)
        .with_type_planner(Arc::new(microseconds::Types))
        .with_analyzer_rules(ANALYZER.rules.clone())
        .with_optimizer_rules(optimizer_rules());
    let mut state = builder.build();
    state.register_udaf(Arc::new(AggregateUDF::from(sum::Total::sum())))?;
    state.register_udaf(Arc::new(AggregateUDF::from(sum::Total::average())))?;
    for name in one_nan::STATISTICS {
        let engine = state.udaf(name)?;
        state.register_udaf(Arc::new(AggregateUDF::from(one_nan::Statistic::new(engine))))?;
    }
    state.register_udaf(Arc::new(AggregateUDF::from(extremes::Least::default())))?;
    state.register_udaf(Arc::new(AggregateUDF::from(extremes::Greatest::default())))?;
    state.register_udf(Arc::new(ScalarUDF::from(date_trunc::DateTrunc::default())))?;
    state.register_udf(Arc::new(ScalarUDF::from(date_bin::DateBin::default())))?;
    Ok(state)
}

/// The engine's rules with ours around the one that makes operands of one type.
static ANALYZER: LazyLock<Analyzer> = LazyLock::new(|| {
    use Step::{Expressions, Node};
    let coercion = TypeCoercion::new();
    let before = Pass {
        name: "before_types",
        schemas: Schemas::Changed,
        steps: vec![
            Node(texts_of_values),
            Node(set_operations::number_rows),
            Node(beside_floats::rewrite_node),
            Expressions(|expr, _, _| round::rewrite(expr)),
            Expressions(|expr, schema, _| beside_floats::rewrite(expr, schema)),
            Expressions(|expr, schema, _| beside_lists::rewrite(expr, schema)),
            Expressions(microseconds::before),
        ],
    };
    let after = Pass {
        name: "after_types",
        // What makes operands of one type leaves the schemas of some plans as they were.
        schemas: Schemas::All,
        steps: vec![
            Node(truth::rewrite_node),
            Node(|node| Ok(microseconds::keys_in_micros(node))),
            Expressions(|expr, _, _| microseconds::after(expr)),
            Expressions(|expr, schema, _| lists::rewrite(expr, schema)),
            Expressions(|expr, schema, _| moments::rewrite(expr, schema)),
            Expressions(|expr, schema, _| casts::rewrite(expr, schema)),
            Node(order::map_keys),
            Expressions(|expr, schema, _| order::rewrite(expr, schema)),
            Expressions(|expr, schema, _| arithmetic::rewrite(expr, schema)),
            Expressions(|expr, schema, _| shifts::rewrite(expr, schema)),
        ],
    };
    let mut rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = Analyzer::new().rules;
    let at = rules.iter().position(|rule| rule.name() == coercion.name());
    let at = at.map_or(rules.len(), |at| at + 1);
    rules.splice(at..at, [Arc::new(unnest::Unnest) as _, Arc::new(after) as _]);
    rules.splice(0..0, [Arc::new(membership::Membership) as _, Arc::new(before) as _]);
    Analyzer::with_rules(rules)
});

/// The engine's rules of the optimizer, with ours in the place of those that find keys of joins and make joins of EXISTS.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let ours: [Arc<dyn OptimizerRule + Send + Sync>; 2] =
        [Arc::new(null_keys::KeysOfJoins::default()), Arc::new(marks::Marks::default())];
    let mut rules = Optimizer::new().rules;
    for rule in &mut rules {
        let own = ours.iter().find(|own| own.name() == rule.name());
        *rule = own.map_or_else(|| idle::where_needed(Arc::clone(rule)), Arc::clone);
    }
    rules
}

/// An expression over columns by itself, after the analyzer's rules.
pub(crate) fn analyze_expr(state: &SessionState, expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let input = LogicalPlan::EmptyRelation(EmptyRelation {
        produce_one_row: true,
        schema: Arc::new(schema.clone()),
    });
    let plan = LogicalPlan::Projection(Projection::try_new(vec![expr], Arc::new(input))?);
    let plan = ANALYZER.execute_and_check(plan, state.config_options(), |_, _| {})?;
    match plan {
        LogicalPlan::Projection(Projection { mut expr, .. }) if expr.len() == 1 => {
            Ok(expr.swap_remove(0).unalias())
        }
        other => Err(refused(format!("an expression became {}", other.display()))),
    }
}

/// Whether a node of a plan or of its subqueries is as wanted.
fn has_node(plan: &LogicalPlan, wanted: impl Fn(&LogicalPlan) -> Result<bool>) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found = wanted(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether a part of an expression of a node is as wanted.
fn has_expression(node: &LogicalPlan, wanted: impl Fn(&Expr) -> bool) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found = expr.exists(|part| Ok(wanted(part)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// The error for what has no right answer here.
fn refused(text: impl Into<String>) -> DataFusionError {
    DataFusionError::Plan(text.into())
}

/// A function of arrays as one of values; a constant is computed once.
fn map_values(
    value: &ColumnarValue,
    map: impl FnOnce(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    match value {
        ColumnarValue::Array(array) => Ok(ColumnarValue::Array(map(array)?)),
        ColumnarValue::Scalar(scalar) => {
            let array = map(&scalar.to_array()?)?;
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
        }
    }
}

/// The only argument of a function.
fn only(args: &[ColumnarValue]) -> Result<&ColumnarValue> {
    match args {
        [value] => Ok(value),
        _ => Err(DataFusionError::Internal(format!("{} arguments, not one", args.len()))),
    }
}

fn call(function: ScalarUDF, arguments: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(datafusion::logical_expr::expr::ScalarFunction::new_udf(
        Arc::new(function),
        arguments,
    ))
}
