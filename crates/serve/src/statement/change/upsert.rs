//! ON CONFLICT DO UPDATE that does not replace rows whole, as a MERGE.
//!
//! ```text
//!   INSERT INTO t rows ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n WHERE c
//!     -->  MERGE INTO t USING rows AS excluded ON t.k = excluded.k
//!          WHEN MATCHED AND c THEN UPDATE SET n = t.n + excluded.n  WHEN NOT MATCHED THEN INSERT VALUES (excluded.k, ..)
//! ```
//!
//! The rows are planned as those of the INSERT, cast to the columns of the table and with their defaults.

use std::sync::Arc;

use coload_ddl::Schema;
use coload_types::{Error, Result};
use datafusion::datasource::ViewTable;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DoUpdate, Expr as SqlExpr, Ident, Merge, MergeAction, MergeInsertKind,
    ObjectName, ObjectNamePart, Parens, Statement as SqlStatement, TableFactor,
};

use super::super::Planning;
use super::super::on_conflict::Upsert;
use super::shape::{no_template, template};

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
