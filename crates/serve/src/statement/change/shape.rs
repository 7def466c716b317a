//! What a DELETE or UPDATE says, and the query or INSERT that it is written as.

use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr as SqlExpr, FromTable, Ident, ObjectName,
    ObjectNamePart, Query, Select, SelectItem, SetExpr, Statement as SqlStatement, TableAlias,
    TableFactor, TableObject, TableWithJoins, Update,
};

use super::super::limits::StatementLimits;
use super::super::{text, unsupported};
use crate::names::{fold, missing_field, quote};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A DELETE without WHERE, which reads no rows.
    DeleteAll,
    Delete,
    Update,
}

/// The parts of a DELETE or UPDATE that are obeyed; all others are refused.
pub(super) struct Shape {
    pub name: ObjectName,
    alias: Option<TableAlias>,
    assignments: Vec<Assignment>,
    selection: Option<SqlExpr>,
    pub kind: Kind,
}

/// Takes a statement apart. Every field is named, so that none is dropped silently.
pub(super) fn shape(statement: &SqlStatement) -> Result<Shape> {
    match statement {
        SqlStatement::Delete(delete) => shape_of_delete(delete),
        SqlStatement::Update(update) => shape_of_update(update),
        _ => Err(Error::Invalid("not a DELETE or UPDATE".into())),
    }
}

fn shape_of_delete(delete: &Delete) -> Result<Shape> {
    let Delete {
        delete_token: _,
        optimizer_hints,
        tables,
        from,
        using,
        selection,
        returning,
        output,
        order_by,
        limit,
    } = delete;
    refuse_any(
        "DELETE",
        &[
            (!tables.is_empty(), "from several tables", "delete from one after the other"),
            (using.is_some(), "with USING", "write WHERE column IN (SELECT ..)"),
            (returning.is_some() || output.is_some(), "with RETURNING", "SELECT the rows before"),
            (!order_by.is_empty() || limit.is_some(), "with ORDER BY or LIMIT", "write WHERE"),
            (!optimizer_hints.is_empty(), "with hints", "leave them out"),
        ],
    )?;
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
    let [table] = &from[..] else {
        return Err(unsupported("DELETE from several tables", "delete from one after the other"));
    };
    let (name, alias) = table_of("DELETE", table)?;
    let kind = if selection.is_some() { Kind::Delete } else { Kind::DeleteAll };
    Ok(Shape { name, alias, assignments: Vec::new(), selection: selection.clone(), kind })
}

fn shape_of_update(update: &Update) -> Result<Shape> {
    let Update {
        update_token: _,
        optimizer_hints,
        table,
        assignments,
        from,
        selection,
        returning,
        output,
        or,
        order_by,
        limit,
    } = update;
    refuse_any(
        "UPDATE",
        &[
            (
                from.is_some(),
                "with FROM",
                "write SET column = (SELECT ..) and WHERE .. IN (SELECT ..)",
            ),
            (
                returning.is_some() || output.is_some(),
                "with RETURNING",
                "SELECT the rows afterwards",
            ),
            (or.is_some(), "OR", "leave OR out"),
            (!order_by.is_empty() || limit.is_some(), "with ORDER BY or LIMIT", "write WHERE"),
            (!optimizer_hints.is_empty(), "with hints", "leave them out"),
        ],
    )?;
    let (name, alias) = table_of("UPDATE", table)?;
    let (assignments, selection) = (assignments.clone(), selection.clone());
    Ok(Shape { name, alias, assignments, selection, kind: Kind::Update })
}

pub(super) fn refuse_any(statement: &str, parts: &[(bool, &str, &str)]) -> Result<()> {
    match parts.iter().find(|(is_there, ..)| *is_there) {
        Some((_, what, instead)) => Err(unsupported(&format!("{statement} {what}"), instead)),
        None => Ok(()),
    }
}

/// The one table that a statement changes.
pub(super) fn table_of(
    statement: &str,
    table: &TableWithJoins,
) -> Result<(ObjectName, Option<TableAlias>)> {
    let TableWithJoins { relation, joins } = table;
    match relation {
        TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        } if joins.is_empty()
            && with_hints.is_empty()
            && partitions.is_empty()
            && index_hints.is_empty() =>
        {
            Ok((name.clone(), alias.clone()))
        }
        _ => Err(unsupported(
            &format!("{statement} of anything but one table"),
            "name the table, and read others in subqueries",
        )),
    }
}

/// The columns that rows are made of, and what becomes of each: those that get their DEFAULT are left out.
pub(super) fn new_values(
    shape: &Shape,
    schema: &coload_ddl::Schema,
) -> Result<(Vec<Ident>, Vec<SelectItem>)> {
    let of_table = (&shape.name, shape.alias.as_ref());
    let values = assigned_values("UPDATE", &shape.assignments, of_table, schema)?;
    let (mut names, mut items) = (Vec::new(), Vec::new());
    for (column, value) in schema.columns().iter().zip(values) {
        let name = Ident::with_quote('"', column.name.clone());
        let expr = match value {
            Some(SqlExpr::Identifier(ident)) if is_default(ident) => continue,
            Some(value) => value.clone(),
            None => SqlExpr::Identifier(name.clone()),
        };
        names.push(name.clone());
        items.push(SelectItem::ExprWithAlias { expr, alias: name });
    }
    if names.is_empty() {
        return Err(unsupported(
            "UPDATE that sets all columns to DEFAULT",
            "write the value of one of them",
        ));
    }
    Ok((names, items))
}

pub(super) fn is_default(ident: &Ident) -> bool {
    ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default")
}

/// What each column of a table is set to, where it is; the table has this name and alias.
///
/// # Errors
/// `Invalid` for a column that is not there or is set twice; `statement` is what sets it.
pub(super) fn assigned_values<'a>(
    statement: &str,
    assignments: &'a [Assignment],
    of_table: (&ObjectName, Option<&TableAlias>),
    schema: &coload_ddl::Schema,
) -> Result<Vec<Option<&'a SqlExpr>>> {
    let mut values = vec![None; schema.len()];
    for Assignment { target, value } in assignments {
        let index = assigned(target, of_table, schema)?;
        if values[index].replace(value).is_some() {
            let name = quote(&schema.columns()[index].name);
            return Err(Error::Invalid(format!("{statement} sets column {name} twice")));
        }
    }
    Ok(values)
}

fn assigned(
    target: &AssignmentTarget,
    (table, alias): (&ObjectName, Option<&TableAlias>),
    schema: &coload_ddl::Schema,
) -> Result<usize> {
    let AssignmentTarget::ColumnName(name) = target else {
        return Err(unsupported("UPDATE .. SET (a, b) = ..", "write SET a = .., b = .."));
    };
    let parts: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
    let is_target = |ident: &Ident| {
        let of_table = table.0.last().and_then(ObjectNamePart::as_ident);
        let known = alias.map(|alias| &alias.name).or(of_table);
        known.is_some_and(|known| fold(&known.value) == fold(&ident.value))
    };
    let column = match parts[..] {
        [column] if name.0.len() == 1 => column,
        [table, column] if name.0.len() == 2 && is_target(table) => column,
        _ => {
            return Err(unsupported(
                &format!("UPDATE .. SET {name}"),
                "name a column of the table",
            ));
        }
    };
    schema.position(&column.value).ok_or_else(|| missing_field("", column, schema))
}

/// SELECT items FROM table WHERE condition.
pub(super) fn query_of(shape: Shape, items: Vec<SelectItem>) -> Result<Box<Query>> {
    let SqlStatement::Query(mut query) = template("SELECT 1")? else { return Err(no_template()) };
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(no_template()) };
    let Select { projection, from, selection, .. } = select.as_mut();
    if !items.is_empty() {
        *projection = items;
    }
    let relation = TableFactor::Table {
        name: shape.name,
        alias: shape.alias,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    *from = vec![TableWithJoins { relation, joins: Vec::new() }];
    *selection = shape.selection;
    Ok(query)
}

/// INSERT INTO table (columns) SELECT items FROM table WHERE condition.
pub(super) fn insert_of(
    shape: Shape,
    names: Vec<Ident>,
    items: Vec<SelectItem>,
) -> Result<SqlStatement> {
    let SqlStatement::Insert(mut insert) = template("INSERT INTO t SELECT 1")? else {
        return Err(no_template());
    };
    insert.table = TableObject::TableName(shape.name.clone());
    insert.columns = names.into_iter().map(|name| vec![name].into()).collect();
    insert.source = Some(query_of(shape, items)?);
    Ok(SqlStatement::Insert(insert))
}

pub(super) fn template(sql: &str) -> Result<SqlStatement> {
    text::parse_statement(sql, &StatementLimits::default())
}

pub(super) fn no_template() -> Error {
    Error::Refused("internal error: a statement has another form".into())
}
