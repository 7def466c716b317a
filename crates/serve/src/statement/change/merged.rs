//! The plan of a MERGE: what becomes of each row of the source with the row of the table that it matches.
//!
//! ```text
//!   Projection   a column of the table each: CASE action WHEN 1 THEN .. WHEN 2 THEN ..; action, place
//!   Filter       action > 0
//!   Projection   all columns, and the action: the number of the first clause whose side and condition hold, or 0
//!   Join         source with table, which tells the places of its rows; NULL where no row matches
//! ```
//!
//! The values of a clause are computed for its rows only, and cast to the columns of the table as INSERT casts them.

use std::sync::Arc;

use coload_types::{Error, Result};
use datafusion::arrow::array::{Array, AsArray, BooleanArray};
use datafusion::arrow::compute::{filter_record_batch, is_not_null};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::{
    Case, Expr, ExprSchemable, Filter, Join, LogicalPlan, Projection, lit,
};
use datafusion::scalar::ScalarValue;

use super::merge::{Action, Clause, NewValue};
use super::places_above::{Placed, place_below, placed_table, typed};
use crate::error::from_datafusion;
use crate::places::PLACE;

/// Name of the column that tells which clause holds: a control character, so that no statement can mean it.
const ACTION: &str = "\u{1}action";

/// What the clauses do, by the number that stands for each, less one.
#[derive(Debug, Clone)]
pub(super) struct Actions(Vec<Does>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Delete,
    Write,
}

/// What a batch of the plan says.
pub(super) struct Merged {
    /// Rows of the table that are new or changed.
    pub new: RecordBatch,
    /// Places of rows that are deleted or changed, as the only column.
    pub gone: RecordBatch,
}

/// The plan over that of the query.
pub(super) fn with_actions(
    plan: LogicalPlan,
    table: u64,
    clauses: &[Clause],
) -> Placed<(LogicalPlan, Actions)> {
    // What the items compute over several rows stands between them and the join.
    let over_rows = "an aggregate or a window in a condition or a value";
    let LogicalPlan::Projection(Projection { expr: items, input, .. }) = plan else {
        return Ok(Err(over_rows));
    };
    let LogicalPlan::Join(join) = input.as_ref().clone() else { return Ok(Err(over_rows)) };
    let Some(target) = placed_table(&join.right, table) else {
        return Ok(Err("anything but a table of the store to change"));
    };
    let (right, place) = match place_below(join.right.as_ref().clone(), table)? {
        Ok(found) => found,
        Err(what) => return Ok(Err(what)),
    };
    let Join { left, on, filter, join_type, join_constraint, null_equality, null_aware, .. } = join;
    let right = Arc::new(right);
    let join = Join::try_new(
        left,
        right,
        on,
        filter,
        join_type,
        join_constraint,
        null_equality,
        null_aware,
    )?;
    let schema = Arc::clone(&join.schema);
    for clause in clauses.iter().filter(|clause| !clause.is_matched) {
        if reads(clause, &items, &place) {
            return Ok(Err("columns of the table in WHEN NOT MATCHED"));
        }
    }

    let mut columns: Vec<Expr> =
        schema.iter().map(|field| Expr::Column(Column::from(field))).collect();
    columns.push(action(clauses, &items, &place).alias(ACTION));
    let all =
        LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::Join(join)))?);
    let action = Expr::Column(Column::new_unqualified(ACTION));
    let done = Filter::try_new(action.clone().gt(lit(0_i64)), Arc::new(all))?;

    let mut values = Vec::new();
    if clauses.iter().any(|clause| matches!(clause.action, Action::Write(_))) {
        let arrow = target.schema();
        for (index, field) in arrow.fields().iter().enumerate() {
            let mut choices = Vec::new();
            for (number, clause) in (1_i64..).zip(clauses) {
                let Action::Write(new) = &clause.action else { continue };
                let value = match new[index] {
                    NewValue::Item(item) => typed(items[item].clone().unalias(), field),
                    NewValue::Kept => {
                        Expr::Column(Column::new(place.relation.clone(), field.name()))
                    }
                    NewValue::Default => target
                        .get_column_default(field.name())
                        .cloned()
                        .unwrap_or(Expr::Literal(ScalarValue::Null, None)),
                };
                let of: &DFSchema = &schema;
                let value = value.cast_to(field.data_type(), of)?;
                choices.push((Box::new(lit(number)), Box::new(value)));
            }
            let chosen = Case::new(Some(Box::new(action.clone())), choices, None);
            values.push(Expr::Case(chosen).alias(field.name()));
        }
    }
    values.push(action);
    values.push(Expr::Column(place).alias(PLACE));
    let plan =
        LogicalPlan::Projection(Projection::try_new(values, Arc::new(LogicalPlan::Filter(done)))?);
    let does = |clause: &Clause| match clause.action {
        Action::Delete => Does::Delete,
        Action::Write(_) => Does::Write,
    };
    Ok(Ok((plan, Actions(clauses.iter().map(does).collect()))))
}

/// The number of the first clause that holds.
fn action(clauses: &[Clause], items: &[Expr], place: &Column) -> Expr {
    let holds = |clause: &Clause| {
        let place = Expr::Column(place.clone());
        let side = if clause.is_matched { place.is_not_null() } else { place.is_null() };
        match clause.condition {
            Some(item) => side.and(items[item].clone().unalias()),
            None => side,
        }
    };
    let numbered = (1_i64..).zip(clauses);
    let choices = numbered.map(|(number, clause)| (Box::new(holds(clause)), Box::new(lit(number))));
    Expr::Case(Case::new(None, choices.collect(), Some(Box::new(lit(0_i64)))))
}

/// Whether a clause reads the row of the table.
fn reads(clause: &Clause, items: &[Expr], place: &Column) -> bool {
    let values = match &clause.action {
        Action::Write(values) => &values[..],
        Action::Delete => &[],
    };
    let values = values.iter().filter_map(|value| match value {
        NewValue::Item(item) => Some(*item),
        NewValue::Kept | NewValue::Default => None,
    });
    let of_table = |item: usize| {
        items[item].column_refs().iter().any(|column| column.relation == place.relation)
    };
    clause.condition.into_iter().chain(values).any(of_table)
}

impl Actions {
    /// Tells the new rows of a batch from the places of those that go.
    ///
    /// # Errors
    /// `Refused` when the batch is not of such a plan.
    pub fn split(&self, batch: &RecordBatch) -> Result<Merged> {
        let wrong = || Error::Refused("internal error: rows of a MERGE without actions".into());
        let columns = batch.num_columns().checked_sub(2).ok_or_else(wrong)?;
        let (action, place) = (batch.column(columns), batch.column(columns + 1));
        let action = action.as_primitive_opt::<Int64Type>().ok_or_else(wrong)?;
        if action.null_count() > 0 {
            return Err(wrong());
        }
        let does = |number: &i64| {
            let index = usize::try_from(*number - 1).ok();
            index.and_then(|index| self.0.get(index)).copied().ok_or_else(wrong)
        };
        let writes: Vec<bool> = action
            .values()
            .iter()
            .map(|number| Ok(does(number)? == Does::Write))
            .collect::<Result<_>>()?;
        let filter = |batch: RecordBatch, rows: BooleanArray| match rows.true_count() == rows.len()
        {
            true => Ok(batch),
            false => filter_record_batch(&batch, &rows).map_err(|e| from_datafusion(e.into())),
        };
        let project =
            |columns: &[usize]| batch.project(columns).map_err(|e| from_datafusion(e.into()));
        let is_there = is_not_null(place).map_err(|e| from_datafusion(e.into()))?;
        let new = project(&(0..columns).collect::<Vec<_>>())?;
        Ok(Merged {
            new: filter(new, writes.into())?,
            gone: filter(project(&[columns + 1])?, is_there)?,
        })
    }
}
