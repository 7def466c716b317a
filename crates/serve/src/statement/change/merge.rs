//! What a MERGE says, and the query that it is written as.
//!
//! ```text
//!   MERGE INTO t USING s ON c WHEN MATCHED AND m THEN UPDATE SET a = e WHEN NOT MATCHED THEN INSERT VALUES (v, w)
//!     -->  SELECT m, e, v, w FROM s LEFT JOIN t ON c
//! ```
//!
//! The items of the query are the conditions and values of the clauses, so that names, types and subqueries are those of
//! queries. What becomes of each row of it is told by [`super::merged`].

use coload_ddl::Schema;
use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, Ident, JoinConstraint, JoinOperator, Merge, MergeAction, MergeClause,
    MergeClauseKind, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr, ObjectName, Query,
    SelectItem, SetExpr, Statement as SqlStatement, TableAlias, TableFactor, TableWithJoins,
    Values,
};

use super::super::unsupported;
use super::shape::{assigned_values, is_default, no_template, refuse_any, table_of, template};
use crate::names::{missing_field, quote};

/// How the user has written what is done as a MERGE, for what is said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    Merge,
    OnConflict,
}

impl Spelling {
    /// The statement.
    pub fn of_statement(self) -> &'static str {
        match self {
            Spelling::Merge => "MERGE",
            Spelling::OnConflict => "INSERT .. ON CONFLICT DO UPDATE",
        }
    }

    /// What sets columns in it.
    fn of_update(self) -> &'static str {
        match self {
            Spelling::Merge => "MERGE .. UPDATE",
            Spelling::OnConflict => "ON CONFLICT DO UPDATE",
        }
    }
}

/// A MERGE whose parts are all obeyed; others are refused.
pub(super) struct MergeShape {
    pub spelling: Spelling,
    pub name: ObjectName,
    pub alias: Option<TableAlias>,
    source: TableFactor,
    on: SqlExpr,
    clauses: Vec<MergeClause>,
}

/// A WHEN, over the items of the query.
pub(super) struct Clause {
    pub is_matched: bool,
    /// The item that must be true besides.
    pub condition: Option<usize>,
    pub action: Action,
}

/// What becomes of a row of the query for which a clause holds.
pub(super) enum Action {
    Delete,
    /// A row of the table, by column.
    Write(Vec<NewValue>),
}

/// The value of a column of a new row.
#[derive(Clone, Copy)]
pub(super) enum NewValue {
    /// An item of the query.
    Item(usize),
    /// That of the row that it takes the place of.
    Kept,
    Default,
}

/// A MERGE as a query.
pub(super) struct MergeQuery {
    pub query: Box<Query>,
    pub clauses: Vec<Clause>,
}

impl MergeShape {
    /// Takes a statement apart. Every field is named, so that none is dropped silently.
    ///
    /// # Errors
    /// `Invalid` for what is not obeyed.
    pub fn of(merge: &Merge, spelling: Spelling) -> Result<Self> {
        let Merge { merge_token: _, optimizer_hints, into: _, table, source, on, clauses, output } =
            merge;
        refuse_any(
            "MERGE",
            &[
                (output.is_some(), "with RETURNING", "SELECT the rows afterwards"),
                (!optimizer_hints.is_empty(), "with hints", "leave them out"),
                (clauses.is_empty(), "without WHEN", "write WHEN MATCHED THEN .."),
            ],
        )?;
        let table = TableWithJoins { relation: table.clone(), joins: Vec::new() };
        let (name, alias) = table_of("MERGE", &table)?;
        let (source, on) = (source.clone(), on.as_ref().clone());
        Ok(MergeShape { spelling, name, alias, source, on, clauses: clauses.clone() })
    }

    /// Whether no clause changes a row that is there.
    pub fn only_adds(&self) -> bool {
        self.clauses.iter().all(|clause| matches!(clause.action, MergeAction::Insert(_)))
    }

    /// The query, for a table of these columns.
    ///
    /// # Errors
    /// `Invalid` for clauses that are not obeyed, and columns that are not there.
    pub fn query(self, schema: &Schema) -> Result<MergeQuery> {
        let mut items = Items::default();
        let mut clauses = Vec::with_capacity(self.clauses.len());
        // A clause without condition is the last of its side.
        let mut is_done = [false; 2];
        for clause in &self.clauses {
            let MergeClause { when_token: _, clause_kind, predicate, action } = clause;
            let is_matched = match clause_kind {
                MergeClauseKind::Matched => true,
                MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => false,
                MergeClauseKind::NotMatchedBySource => {
                    return Err(unsupported(
                        "WHEN NOT MATCHED BY SOURCE",
                        "write DELETE or UPDATE .. WHERE NOT EXISTS (SELECT ..)",
                    ));
                }
            };
            let done = &mut is_done[usize::from(is_matched)];
            if *done {
                return Err(Error::Invalid(format!(
                    "MERGE: WHEN {clause_kind} after one without a condition would never be done"
                )));
            }
            *done = predicate.is_none();
            let condition = predicate.as_ref().map(|condition| items.push(condition));
            let action = match action {
                MergeAction::Delete { delete_token: _ } => Action::Delete,
                MergeAction::Update(update) => {
                    Action::Write(self.updated(update, schema, &mut items)?)
                }
                MergeAction::Insert(insert) => Action::Write(inserted(insert, schema, &mut items)?),
            };
            clauses.push(Clause { is_matched, condition, action });
        }
        let adds = clauses.iter().any(|clause| !clause.is_matched);
        Ok(MergeQuery { query: self.joined(items, adds)?, clauses })
    }

    /// The values that an UPDATE gives.
    fn updated(
        &self,
        update: &MergeUpdateExpr,
        schema: &Schema,
        items: &mut Items,
    ) -> Result<Vec<NewValue>> {
        let MergeUpdateExpr { update_token: _, assignments, update_predicate, delete_predicate } =
            update;
        refuse_any(
            "MERGE .. UPDATE",
            &[
                (update_predicate.is_some(), "with WHERE", "write WHEN MATCHED AND condition"),
                (
                    delete_predicate.is_some(),
                    "with DELETE WHERE",
                    "write WHEN MATCHED AND condition THEN DELETE before it",
                ),
            ],
        )?;
        let of_table = (&self.name, self.alias.as_ref());
        let statement = self.spelling.of_update();
        let values = assigned_values(statement, assignments, of_table, schema)?;
        let new =
            |value: Option<&SqlExpr>| value.map_or(NewValue::Kept, |value| items.value(value));
        Ok(values.into_iter().map(new).collect())
    }

    /// SELECT items FROM source [LEFT] JOIN table ON condition.
    fn joined(self, items: Items, adds: bool) -> Result<Box<Query>> {
        let SqlStatement::Query(mut query) = template("SELECT 1 FROM s JOIN t ON true")? else {
            return Err(no_template());
        };
        let SetExpr::Select(select) = query.body.as_mut() else { return Err(no_template()) };
        let [TableWithJoins { relation, joins }] = &mut select.from[..] else {
            return Err(no_template());
        };
        let [join] = &mut joins[..] else { return Err(no_template()) };
        let TableFactor::Table { name, alias, .. } = &mut join.relation else {
            return Err(no_template());
        };
        (*name, *alias) = (self.name, self.alias);
        *relation = self.source;
        let on = JoinConstraint::On(self.on);
        join.join_operator =
            if adds { JoinOperator::LeftOuter(on) } else { JoinOperator::Inner(on) };
        if !items.0.is_empty() {
            select.projection = items.0;
        }
        Ok(query)
    }
}

/// The values that an INSERT gives.
fn inserted(insert: &MergeInsertExpr, schema: &Schema, items: &mut Items) -> Result<Vec<NewValue>> {
    let MergeInsertExpr { insert_token: _, columns, kind_token: _, kind, insert_predicate } =
        insert;
    if insert_predicate.is_some() {
        return Err(unsupported(
            "MERGE .. INSERT with WHERE",
            "write WHEN NOT MATCHED AND condition",
        ));
    }
    let MergeInsertKind::Values(Values { explicit_row: _, value_keyword: _, rows }) = kind else {
        return Err(unsupported("MERGE .. INSERT ROW", "write VALUES"));
    };
    let [row] = &rows[..] else {
        return Err(unsupported("MERGE .. INSERT of several rows", "write one row of VALUES"));
    };
    let targets: Vec<usize> = match columns.is_empty() {
        true => (0..schema.len()).collect(),
        false => columns.iter().map(|name| column_of(name, schema)).collect::<Result<_>>()?,
    };
    if targets.len() != row.content.len() {
        return Err(Error::Invalid(format!(
            "MERGE .. INSERT has {} values for {} columns",
            row.content.len(),
            targets.len()
        )));
    }
    let mut values = vec![None; schema.len()];
    for (index, value) in targets.into_iter().zip(&row.content) {
        if values[index].replace(items.value(value)).is_some() {
            let name = quote(&schema.columns()[index].name);
            return Err(Error::Invalid(format!("MERGE .. INSERT names column {name} twice")));
        }
    }
    Ok(values.into_iter().map(|value| value.unwrap_or(NewValue::Default)).collect())
}

fn column_of(name: &ObjectName, schema: &Schema) -> Result<usize> {
    let column = match &name.0[..] {
        [part] => part.as_ident(),
        _ => None,
    };
    let Some(column) = column else {
        return Err(unsupported(
            &format!("MERGE .. INSERT ({name})"),
            "name a column of the table alone",
        ));
    };
    schema.position(&column.value).ok_or_else(|| missing_field("", column, schema))
}

/// The items of the query.
#[derive(Default)]
struct Items(Vec<SelectItem>);

impl Items {
    fn push(&mut self, expr: &SqlExpr) -> usize {
        let number = self.0.len();
        // A control character, so that no statement can mean it.
        let alias = Ident::with_quote('"', format!("\u{1}{number}"));
        self.0.push(SelectItem::ExprWithAlias { expr: expr.clone(), alias });
        number
    }

    fn value(&mut self, value: &SqlExpr) -> NewValue {
        match value {
            SqlExpr::Identifier(ident) if is_default(ident) => NewValue::Default,
            value => NewValue::Item(self.push(value)),
        }
    }
}
