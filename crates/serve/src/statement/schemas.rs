//! Statements about schemas: there is one, `public`, which `main` is another name of, as DuckDB's is called.
//!
//! What only names that one does nothing, so that scripts of other databases run; what would need another is refused.

use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, ObjectType, Query, SchemaName, Set,
    ShowStatementFilter, ShowStatementFilterPosition, ShowStatementIn, ShowStatementOptions,
    Statement as SqlStatement, Use,
};

use super::{check_plain, describe, unsupported};
use crate::catalog::{CATALOG, SCHEMA, is_schema};

/// What a statement about schemas comes to.
#[derive(Debug)]
pub(super) enum Instead {
    Nothing,
    Query(Box<Query>),
}

/// The same for a statement, if it is one of these.
///
/// # Errors
/// `Invalid` when it would need another schema.
pub(super) fn instead(statement: &SqlStatement) -> Result<Option<Instead>> {
    match statement {
        SqlStatement::CreateSchema {
            schema_name: SchemaName::Simple(name),
            if_not_exists,
            with: None,
            options: None,
            default_collate_spec: None,
            clone: None,
        } => match (is_default(name), if_not_exists) {
            (true, true) => Ok(Some(Instead::Nothing)),
            (true, false) => Err(Error::Invalid(format!("schema {name} exists already"))),
            (false, _) => Err(no_schema("CREATE SCHEMA", &name.to_string())),
        },
        SqlStatement::Drop { object_type: ObjectType::Schema, if_exists, names, .. } => {
            match names.iter().find(|name| is_default(name)) {
                Some(name) => Err(Error::Invalid(format!("schema {name} stays: DROP its tables"))),
                None if *if_exists => Ok(Some(Instead::Nothing)),
                None => Err(Error::Invalid(format!("schema {} not found", names_of(names)))),
            }
        }
        SqlStatement::CreateDatabase { .. } => Err(unsupported(
            "CREATE DATABASE",
            "a store is a database; `coload load INPUT --into DIR` makes another one",
        )),
        SqlStatement::Use(of) => match of {
            Use::Object(name) | Use::Schema(name) | Use::Database(name) | Use::Catalog(name) => {
                match is_default(name) || is_catalog(name) {
                    true => Ok(Some(Instead::Nothing)),
                    false => Err(no_schema("USE", &name.to_string())),
                }
            }
            Use::Default => Ok(Some(Instead::Nothing)),
            _ => Ok(None),
        },
        SqlStatement::Set(Set::SingleAssignment { scope: _, hivevar: false, variable, values }) => {
            set(variable, values)
        }
        SqlStatement::ShowSchemas { terse: _, history: _, show_options } => {
            let names = "SELECT schema_name FROM information_schema.schemata";
            let like = like("schema_name", "SHOW SCHEMAS", show_options)?;
            query(&format!("{names}{like} ORDER BY schema_name"))
        }
        SqlStatement::ShowDatabases { terse: _, history: _, show_options } => {
            let like = like("database_name", "SHOW DATABASES", show_options)?;
            query(&format!("SELECT * FROM (SELECT '{CATALOG}' AS database_name) AS d{like}"))
        }
        _ => Ok(None),
    }
}

fn query(text: &str) -> Result<Option<Instead>> {
    describe::query(text).map(|query| Some(Instead::Query(query)))
}

/// `SET search_path = ..` and `SET schema = ..`.
fn set(variable: &ObjectName, values: &[Expr]) -> Result<Option<Instead>> {
    let name = variable.to_string().to_ascii_lowercase();
    if !matches!(name.as_str(), "search_path" | "schema") {
        return Ok(None);
    }
    for value in values {
        let written = value.to_string();
        let schemas =
            written.trim_matches(['\'', '"']).split(',').map(|s| s.trim().trim_matches('"'));
        for schema in schemas {
            let is_known = is_schema(schema)
                || ["$user", "pg_catalog", "information_schema", "default", ""].contains(&schema);
            if !is_known {
                return Err(no_schema(&format!("SET {name}"), schema));
            }
        }
    }
    Ok(Some(Instead::Nothing))
}

/// The condition of LIKE behind a SHOW.
fn like(column: &str, statement: &str, options: &ShowStatementOptions) -> Result<String> {
    let ShowStatementOptions { show_in, starts_with, limit, limit_from, filter_position } = options;
    let is_more = starts_with.is_some() || limit.is_some() || limit_from.is_some();
    if is_more || show_in.as_ref().is_some_and(|within| !is_within(within)) {
        return Err(unsupported(&format!("{statement} with options"), "write LIKE"));
    }
    let filter = match filter_position {
        None => return Ok(String::new()),
        Some(ShowStatementFilterPosition::Infix(f) | ShowStatementFilterPosition::Suffix(f)) => f,
    };
    let (word, pattern) = match filter {
        ShowStatementFilter::Like(pattern) => ("LIKE", pattern),
        ShowStatementFilter::ILike(pattern) => ("ILIKE", pattern),
        other => return Err(unsupported(&format!("{statement} {other}"), "write LIKE")),
    };
    check_plain(pattern)?;
    Ok(format!(" WHERE {column} {word} '{pattern}'"))
}

/// Whether FROM or IN of a SHOW names the schema that there is, or the catalog.
pub(super) fn is_within(within: &ShowStatementIn) -> bool {
    let name = within.parent_name.as_ref();
    name.is_some_and(|name| is_default(name) || is_catalog(name))
}

/// Whether a name is that of the one schema.
fn is_default(name: &ObjectName) -> bool {
    match parts(name).as_deref() {
        Some([schema]) => is_schema(&schema.value),
        Some([catalog, schema]) => {
            catalog.value.eq_ignore_ascii_case(CATALOG) && is_schema(&schema.value)
        }
        _ => false,
    }
}

fn is_catalog(name: &ObjectName) -> bool {
    matches!(parts(name).as_deref(), Some([only]) if only.value.eq_ignore_ascii_case(CATALOG))
}

fn parts(name: &ObjectName) -> Option<Vec<&Ident>> {
    name.0.iter().map(ObjectNamePart::as_ident).collect()
}

fn names_of(names: &[ObjectName]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The error for a schema that is not there; `before` is what names it.
pub(super) fn no_schema(before: &str, schema: &str) -> Error {
    Error::Invalid(format!(
        "{before}: there is no schema {schema}, and none can be made: all tables of a store are in {SCHEMA}, also called main; make \
         the word a part of their names, as in {schema}_t, or make another store"
    ))
}
