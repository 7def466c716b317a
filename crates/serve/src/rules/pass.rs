//! Rules that go over a plan together.
//!
//! ```text
//!   for each node, inputs and subqueries first:
//!     step 1 | step 2 | .. | names of the expressions as they were | schema of what they are now
//! ```
//!
//! Names and schemas cost more than most steps, so a pass makes them once for each node, not once for each step. A step
//! sees inputs that have taken all steps of the pass, and expressions that have taken those before it.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Union};
use datafusion::optimizer::AnalyzerRule;

/// What becomes of a part of a plan.
pub(super) enum Step {
    /// Of a node, but for its inputs.
    Node(fn(LogicalPlan) -> Result<Transformed<LogicalPlan>>),
    /// Of each expression, from the leaves up, with the columns that it can name.
    Expressions(fn(Expr, &DFSchema, &ConfigOptions) -> Result<Transformed<Expr>>),
}

/// When the schemas of nodes are made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Schemas {
    /// Where a step has changed something, in the node or below it.
    Changed,
    /// Everywhere: what ran before the pass has left them as they were.
    All,
}

/// Steps that a plan takes together.
pub(super) struct Pass {
    pub name: &'static str,
    pub schemas: Schemas,
    pub steps: Vec<Step>,
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl AnalyzerRule for Pass {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let has_changed = Cell::new(self.schemas == Schemas::All);
        let rewritten = plan.transform_up_with_subqueries(|node| {
            let node = self.rewrite(node, config)?;
            has_changed.set(has_changed.get() || node.transformed);
            if has_changed.get() { node.map_data(fresh) } else { Ok(node) }
        });
        Ok(rewritten?.data)
    }

    fn name(&self) -> &str {
        self.name
    }
}

impl Pass {
    /// Takes the steps: those of expressions that stand one after the other go over each expression in turn.
    fn rewrite(
        &self,
        node: LogicalPlan,
        config: &ConfigOptions,
    ) -> Result<Transformed<LogicalPlan>> {
        let schema = schema_of_inputs(&node);
        let mut node = Transformed::no(node);
        let mut steps = self.steps.as_slice();
        while let [step, rest @ ..] = steps {
            node = match step {
                Step::Node(rewrite) => {
                    steps = rest;
                    node.transform_data(rewrite)?
                }
                Step::Expressions(_) => {
                    let until = steps.iter().position(|step| matches!(step, Step::Node(_)));
                    let (together, others) = steps.split_at(until.unwrap_or(steps.len()));
                    steps = others;
                    node.transform_data(|node| {
                        rewrite_expressions(node, together, &schema, config)
                    })?
                }
            };
        }
        Ok(node)
    }
}

fn rewrite_expressions(
    node: LogicalPlan,
    steps: &[Step],
    schema: &DFSchema,
    config: &ConfigOptions,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    let has_names = !matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
    node.map_expressions(|expr| {
        let before = has_names.then(|| expr.clone());
        let mut after = Transformed::no(expr);
        for step in steps {
            let Step::Expressions(rewrite) = step else { continue };
            after = after
                .transform_data(|expr| expr.transform_up(|part| rewrite(part, schema, config)))?;
        }
        // A step that changes an expression and does not say so leaves the types of the plans above as they were.
        debug_assert!(
            after.transformed || before.as_ref().is_none_or(|before| *before == after.data)
        );
        Ok(match before.filter(|_| after.transformed) {
            Some(before) => after.update_data(|expr| names.save(&before).restore(expr)),
            None => after,
        })
    })
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
