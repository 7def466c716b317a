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
mod casts;
mod date_bin;
mod date_trunc;
mod days;
mod exact_sum;
mod extremes;
mod floats;
mod guard;
mod intervals;
mod literals;
mod membership;
mod microseconds;
mod moments;
mod null_keys;
mod one_nan;
mod operators;
mod order;
mod round;
mod set_operations;
mod shifts;
mod sliding;
mod sum;
mod truth;

use std::cell::Cell;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionStateDefaults;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, EmptyRelation, Expr, LogicalPlan, Projection, ScalarUDF, Union,
};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::{Analyzer, AnalyzerRule};

pub(crate) use arithmetic::{Arithmetic, Operation};
pub(crate) use casts::convert;
pub(crate) use exact_sum::divide_rounded;
pub(crate) use floats::canonical_f64;
pub(crate) use guard::{physical_plan, physical_plan_fitted};

/// Puts the rules into a session that has the engine's defaults.
pub(crate) fn build(builder: SessionStateBuilder) -> Result<SessionState> {
    let mut planners = SessionStateDefaults::default_expr_planners();
    planners.insert(0, Arc::new(operators::Operators));
    let builder = builder
        .with_expr_planners(planners)
        .with_type_planner(Arc::new(microseconds::Types))
        .with_analyzer_rules(analyzer_rules())
        .with_optimizer_rules(null_keys::optimizer_rules());
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
fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let coercion = TypeCoercion::new();
    let mut rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![
        Arc::new(round::FixedRound),
        Arc::new(literals::FloatLiterals),
        Arc::new(membership::Membership),
        Arc::new(set_operations::KeepDuplicates),
        Arc::new(microseconds::BeforeTypes),
    ];
    for rule in Analyzer::new().rules {
        let is_coercion = rule.name() == coercion.name();
        rules.push(rule);
        if is_coercion {
            rules.push(Arc::new(truth::Truth));
            rules.push(Arc::new(microseconds::AfterTypes));
            rules.push(Arc::new(moments::Moments));
            rules.push(Arc::new(casts::RoundedCasts));
            rules.push(Arc::new(order::Order));
            rules.push(Arc::new(arithmetic::CheckedArithmetic));
            rules.push(Arc::new(shifts::CheckedShifts));
        }
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
    let analyzer = Analyzer::with_rules(analyzer_rules());
    let plan = analyzer.execute_and_check(plan, state.config_options(), |_, _| {})?;
    match plan {
        LogicalPlan::Projection(Projection { mut expr, .. }) if expr.len() == 1 => {
            Ok(expr.swap_remove(0).unalias())
        }
        other => Err(refused(format!("an expression became {}", other.display()))),
    }
}

/// Rewrites each expression of a plan and of its subqueries, from the leaves up. `rewrite` gets the columns that an
/// expression can name, and tells whether it changed it.
fn rewrite_expressions(
    plan: LogicalPlan,
    rewrite: &dyn Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    // Names and schemas cost more than most rules: they are made where something has changed, here or below.
    let changed = Cell::new(false);
    let rewritten = plan.transform_up_with_subqueries(|plan| {
        let schema = schema_of_inputs(&plan);
        let names = NamePreserver::new(&plan);
        let has_names = !matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
        let plan = plan.map_expressions(|expr| {
            let before = has_names.then(|| expr.clone());
            let after = expr.transform_up(|e| rewrite(e, &schema))?;
            Ok(match before.filter(|_| after.transformed) {
                Some(before) => after.update_data(|e| names.save(&before).restore(e)),
                None => after,
            })
        })?;
        changed.set(changed.get() || plan.transformed);
        if changed.get() { plan.map_data(fresh) } else { Ok(plan) }
    });
    Ok(rewritten?.data)
}

/// A plan whose nodes have the schemas that their inputs and expressions give them, see [`fresh`].
fn with_fresh_schemas(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(plan.transform_up_with_subqueries(|plan| fresh(plan).map(Transformed::yes))?.data)
}

/// A plan with the schema that its inputs and expressions give it. The engine leaves that of a UNION as it was, so that
/// it would tell of types and of NULLs what a rewritten side no longer has.
fn fresh(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Union(union) = plan else { return plan.recompute_schema() };
    let fields = union.schema.iter().enumerate().map(|(at, (qualifier, field))| {
        let sides = || union.inputs.iter().map(|input| input.schema().field(at));
        let data_type = sides().next().map_or(field.data_type(), |side| side.data_type());
        let field = field.as_ref().clone().with_data_type(data_type.clone());
        (qualifier.cloned(), Arc::new(field.with_nullable(sides().any(|side| side.is_nullable()))))
    });
    let schema = DFSchema::new_with_metadata(fields.collect(), union.schema.metadata().clone())?;
    Ok(LogicalPlan::Union(Union { inputs: union.inputs, schema: Arc::new(schema) }))
}

/// The columns that the expressions of a plan can name.
fn schema_of_inputs(plan: &LogicalPlan) -> DFSchemaRef {
    let inputs = plan.inputs();
    match inputs.as_slice() {
        [] => Arc::clone(plan.schema()),
        [one] => Arc::clone(one.schema()),
        several => Arc::new(merge_schema(several)),
    }
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
