//! Finds aggregates that can run on codes.

use std::sync::Arc;

use coload_scan::aggregate::{Program, Query};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::exec::{AggregateOnCodesExec, RowsOf, asked_of, is_supported};
use super::lower::{Input, Scan, lower};
use crate::physical_rules::Replaced;

/// An aggregate that runs on codes, in the place of one that can.
pub(crate) fn aggregate_on_codes(plan: &Arc<dyn ExecutionPlan>) -> Replaced {
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
    let rows = match input.scan() {
        Scan::Store(scan) => {
            // A damaged segment is left to the scan, which says so.
            is_supported(scan, &query).ok()?.then(|| RowsOf::Store(scan.clone()))?
        }
        Scan::Leaves(scan) => {
            let asked = asked_of(&query);
            if scan.leaves() == 0 || !asked.can_be_sent() {
                return None;
            }
            // What cannot be here is likely to be impossible elsewhere; other leaves say so when they are asked.
            if let Some(own) = scan.own() {
                is_supported(own, &query).ok()?.then_some(())?;
            }
            RowsOf::Leaves { scan: scan.clone(), otherwise: Arc::clone(plan) }
        }
        Scan::Inputs(scan) => RowsOf::Inputs { scan: scan.clone(), otherwise: Arc::clone(plan) },
    };
    Some(Arc::new(AggregateOnCodesExec::new(rows, query, program, outputs, last.schema())))
}
