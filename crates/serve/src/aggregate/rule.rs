//! Finds aggregates that can run on codes.

use std::sync::Arc;

use coload_scan::aggregate::{Program, Query, supports};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::exec::{AggregateOnCodesExec, RowsOf};
use super::lower::{Input, Scan, lower};
use crate::physical_rules::Replaced;
use crate::scan::OpenedSegment;

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
            let segments = scan.open_segments().ok()?;
            let fits = |segment: &OpenedSegment| supports(&segment.file, &query).unwrap_or(false);
            segments.iter().all(fits).then(|| RowsOf::Store(scan.clone()))?
        }
        Scan::Inputs(scan) => RowsOf::Inputs { scan: scan.clone(), otherwise: Arc::clone(plan) },
    };
    Some(Arc::new(AggregateOnCodesExec::new(rows, query, program, outputs, last.schema())))
}
