//! Finds aggregates that can run on codes.

use std::sync::Arc;

use coload_scan::aggregate::{Program, Query, supports};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::exec::AggregateOnCodesExec;
use super::lower::{Input, lower};
use crate::memory::{FitSorts, NarrowInputs};
use crate::yielding::JoinsYield;

/// The rule after which this one stands: what the manifest answers needs no scan. The rules that
/// decide on distribution and order come later, so they see the new operator as any other.
const AFTER: &str = "aggregate_statistics";

/// Start of the names of the rules that move filters below joins once more. They find columns by name, and so move a filter on
/// one side of an outer join to the other side, where a column has the same name. Filters were moved before, by the logical
/// rules; and a scan takes none from these.
const FILTERS: &str = "FilterPushdown";

/// DataFusion's physical rules, with ours among them, for statements with so many bytes of memory.
pub(crate) fn optimizer_rules(memory: usize) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.retain(|rule| !rule.name().starts_with(FILTERS));
    let at = rules.iter().position(|rule| rule.name() == AFTER).map_or(0, |at| at + 1);
    rules.insert(at, Arc::new(AggregateOnCodes));
    // The last: other rules look for the joins themselves.
    rules.push(Arc::new(JoinsYield));
    rules.push(Arc::new(FitSorts { memory }));
    rules.push(Arc::new(NarrowInputs));
    rules
}

/// Puts [`AggregateOnCodesExec`] in the place of aggregates that it can run.
#[derive(Debug)]
struct AggregateOnCodes;

impl PhysicalOptimizerRule for AggregateOnCodes {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            Ok(match replace(&plan) {
                Some(replaced) => Transformed::yes(replaced),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "aggregate_on_codes"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn replace(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let last = plan.downcast_ref::<AggregateExec>()?;
    let first = match last.mode() {
        AggregateMode::Single | AggregateMode::SinglePartitioned => last,
        AggregateMode::Final | AggregateMode::FinalPartitioned => {
            let first = last.input().downcast_ref::<AggregateExec>()?;
            matches!(first.mode(), AggregateMode::Partial).then_some(first)?
        }
        _ => return None,
    };
    let group_by = first.group_expr();
    if group_by.has_grouping_set() || first.filter_expr().iter().any(Option::is_some) {
        return None;
    }
    let input = Input::find(first.input().as_ref())?;
    let mut query = Query { predicates: input.scan().predicates().to_vec(), ..Query::default() };
    for (expr, _) in group_by.expr() {
        query.groups.push(input.column(expr.as_ref(), 0)?);
    }
    let outputs = first
        .aggr_expr()
        .iter()
        .map(|function| lower(function, &input, &mut query))
        .collect::<Option<Vec<_>>>()?;
    let program = Program::new(&query.aggregates).ok()?;
    // A damaged segment is left to the scan, which says so.
    let segments = input.scan().open_segments().ok()?;
    if !segments.iter().all(|segment| supports(segment, &query).unwrap_or(false)) {
        return None;
    }
    let scan = input.scan().clone();
    Some(Arc::new(AggregateOnCodesExec::new(scan, query, program, outputs, last.schema())))
}
