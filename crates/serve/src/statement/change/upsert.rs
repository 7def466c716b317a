//! ON CONFLICT DO UPDATE that does not replace rows whole, as a MERGE.
//!
//! ```text
//!   INSERT INTO t rows ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n WHERE c
//!     -->  MERGE INTO t USING rows AS excluded ON t.k = excluded.k
//!          WHEN MATCHED AND c THEN UPDATE SET n = t.n + excluded.n  WHEN NOT MATCHED THEN INSERT VALUES (excluded.k, ..)
//! ```
//!
//! The rows are planned as those of the INSERT, cast to the columns of the table and with their defaults. A UUID is text for the engine, and
//! becomes the text that the column would have of it.

use std::sync::Arc;

use coload_ddl::Schema;
use coload_types::{DataType, Error, Result};
use datafusion::datasource::ViewTable;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DoUpdate, Expr as SqlExpr, Ident, Merge, MergeAction, MergeInsertKind,
    ObjectName, ObjectNamePart, Parens, Statement as SqlStatement, TableFactor,
};

use super::super::Planning;
use super::super::on_conflict::Upsert;
use super::shape::{no_template, template};
use crate::error::from_datafusion;
use crate::functions::uuid_text;

/// Name of the table of the rows: a control character, so that no statement can mean it.
const ROWS: &str = "\u{1}inserted";
/// Name of the rows in the clause.
const EXCLUDED: &str = "excluded";

/// The MERGE that an INSERT is, whose rows are a table of the session then.
///
/// # Errors
/// `Invalid` for what an INSERT may not be.
pub(super) async fn as_merge(
    planning: &mut Planning,
    upsert: Upsert<'_>,
    (schema, key): (&Schema, &[usize]),
) -> Result<Merge> {
    let Upsert { table: name, insert, update, .. } = upsert;
    let mut insert = insert.clone();
    insert.on = None;
    let rows = super::planned_insert(planning, SqlStatement::Insert(insert)).await?;
    let rows = with_uuids(rows, schema).map_err(from_datafusion)?;
    planning.add_table(ROWS, Arc::new(ViewTable::new(rows, None)));
    let text = "MERGE INTO t USING s AS excluded ON true WHEN MATCHED AND true THEN UPDATE SET a = 1 \
                WHEN NOT MATCHED THEN INSERT VALUES (1)";
    let SqlStatement::Merge(mut merge) = template(text)? else { return Err(no_template()) };
    let last = name.0.last().and_then(ObjectNamePart::as_ident).cloned();
    let last = last.ok_or_else(|| Error::Invalid("INSERT into a table without name".into()))?;
    set_name(&mut merge.table, name.clone())?;
    set_name(&mut merge.source, vec![Ident::with_quote('"', ROWS)].into())?;
    merge.on = Box::new(keys_are_equal(&last, schema, key)?);
    let [matched, other] = &mut merge.clauses[..] else { return Err(no_template()) };
    let DoUpdate { assignments, selection } = update.clone();
    matched.predicate = selection;
    let MergeAction::Update(change) = &mut matched.action else { return Err(no_template()) };
    change.assignments = assignments;
    let MergeAction::Insert(added) = &mut other.action else { return Err(no_template()) };
    let MergeInsertKind::Values(values) = &mut added.kind else { return Err(no_template()) };
    let new = schema.columns().iter().map(|c| column_of(&Ident::new(EXCLUDED), &c.name)).collect();
    values.rows = vec![Parens::with_empty_span(new)];
    Ok(merge)
}

/// Rows whose columns are those of a table, with the texts that it has of UUIDs.
fn with_uuids(rows: LogicalPlan, schema: &Schema) -> DataFusionResult<LogicalPlan> {
    if schema.columns().iter().all(|column| column.data_type != DataType::Uuid) {
        return Ok(rows);
    }
    let columns = rows.schema().columns().into_iter().zip(schema.columns());
    let made = columns.map(|(name, column)| match column.data_type {
        DataType::Uuid => uuid_text(Expr::Column(name.clone())).alias(name.name),
        _ => Expr::Column(name),
    });
    LogicalPlanBuilder::from(rows.clone()).project(made.collect::<Vec<_>>())?.build()
}

fn set_name(table: &mut TableFactor, to: ObjectName) -> Result<()> {
    let TableFactor::Table { name, .. } = table else { return Err(no_template()) };
    *name = to;
    Ok(())
}

fn column_of(relation: &Ident, column: &str) -> SqlExpr {
    SqlExpr::CompoundIdentifier(vec![relation.clone(), Ident::with_quote('"', column)])
}

fn keys_are_equal(table: &Ident, schema: &Schema, key: &[usize]) -> Result<SqlExpr> {
    let equal = |index: &usize| {
        let name = &schema.columns()[*index].name;
        SqlExpr::BinaryOp {
            left: Box::new(column_of(table, name)),
            op: BinaryOperator::Eq,
            right: Box::new(column_of(&Ident::new(EXCLUDED), name)),
        }
    };
    let both = |left, right| SqlExpr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    };
    key.iter().map(equal).reduce(both).ok_or_else(no_template)
}
