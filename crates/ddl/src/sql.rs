//! `CREATE TABLE` and lists of columns, read and written.
//!
//! Understood: type names of the SQL standard and the synonyms of common systems, quoted names,
//! NOT NULL, NULL, DEFAULT with a literal, CHECK, PRIMARY KEY, CLUSTER BY behind the columns, comments. A name keeps
//! its case; a schema before the table's name is read over. What would have no effect, such as UNIQUE or FOREIGN KEY,
//! is an error, so that nobody relies on it.
//!
//! Where systems differ: FLOAT is DOUBLE, CHAR is CHAR(1), DECIMAL is DECIMAL(18,3).

mod condition;
mod lexer;
mod parser;
mod types;

pub use types::list_refused;

use coload_types::display::display_value;
use coload_types::{Column, DataType, Result, TextForm, Value};
use parser::Parser;

use crate::{Check, Index, KeyKind, Schema};

/// Reads one `CREATE TABLE` statement: the table's name and its columns.
///
/// # Errors
/// `Invalid` with line:column and what was expected there.
pub fn parse_create_table(sql: &str) -> Result<(String, Schema)> {
    Parser::new("CREATE TABLE", sql)?.create_table()
}

/// Reads columns as they stand between the parentheses of `CREATE TABLE`.
///
/// # Errors
/// `Invalid` with line:column and what was expected there.
pub fn parse_columns(list: &str) -> Result<Schema> {
    Parser::new("columns", list)?.column_list()
}

/// Reads the condition of a CHECK, as it stands between its parentheses.
///
/// # Errors
/// `Invalid` with line:column and what was expected there.
pub fn parse_check(name: Option<String>, condition: &str, columns: &[Column]) -> Result<Check> {
    Parser::new("CHECK", condition)?.check(name, columns)
}

/// The statement that makes such a table; [`parse_create_table`] reads it back.
pub fn create_table_sql(name: &str, schema: &Schema) -> String {
    let columns = schema.columns().iter().map(column_sql);
    let unique = |index: &Index| match &index.name[..] {
        "" => index.sql(schema.columns()),
        name => format!("CONSTRAINT {} {}", quote_name(name), index.sql(schema.columns())),
    };
    let key_sql =
        |kind| schema.key().filter(|key| key.kind() == kind).map(|key| key.sql(schema.columns()));
    let parts: Vec<String> = columns
        .chain(schema.checks().iter().map(Check::sql))
        .chain(key_sql(KeyKind::Primary))
        .chain(schema.indexes().iter().filter(|index| index.is_unique()).map(unique))
        .collect();
    let order = key_sql(KeyKind::Cluster).map_or_else(String::new, |order| format!(" {order}"));
    format!("CREATE TABLE {} (\n  {}\n){order};", quote_name(name), parts.join(",\n  "))
}

/// The statements that make the indexes of a table that are no part of [`create_table_sql`], each on a line of its own.
pub fn create_indexes_sql(name: &str, schema: &Schema) -> String {
    let indexes = schema.indexes().iter().filter(|index| !index.is_unique());
    indexes.map(|index| format!("\n{};", index.create_sql(name, schema.columns()))).collect()
}

/// One column as [`parse_columns`] reads it.
pub fn column_sql(column: &Column) -> String {
    let mut sql = format!("{} {}", quote_name(&column.name), column.data_type);
    if !column.nullable {
        sql.push_str(" NOT NULL");
    }
    if let Some(default) = &column.default {
        sql.push_str(" DEFAULT ");
        sql.push_str(&literal_sql(default, column.data_type));
    }
    sql
}

/// The value as a literal: bare for truth values and exact numbers, else in quotes.
pub fn literal_sql(value: &Value, data_type: DataType) -> String {
    let text = display_value(value, data_type);
    match data_type.facts().text {
        TextForm::Word | TextForm::ExactNumber => text,
        TextForm::Float
        | TextForm::Moment
        | TextForm::Characters
        | TextForm::Hex
        | TextForm::List => {
            format!("'{}'", text.replace('\'', "''"))
        }
    }
}

/// The name, in double quotes unless every system reads it bare.
pub fn quote_name(name: &str) -> String {
    let bare = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && RESERVED.binary_search(&name).is_err();
    if bare { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Words that this or another system keeps for itself, sorted.
const RESERVED: [&str; 77] = [
    "all",
    "alter",
    "and",
    "any",
    "as",
    "asc",
    "between",
    "both",
    "by",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "cross",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "delete",
    "desc",
    "distinct",
    "drop",
    "else",
    "end",
    "except",
    "exclude",
    "exists",
    "false",
    "fetch",
    "for",
    "foreign",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "if",
    "in",
    "inner",
    "insert",
    "intersect",
    "into",
    "is",
    "join",
    "key",
    "lateral",
    "left",
    "like",
    "limit",
    "natural",
    "not",
    "null",
    "offset",
    "on",
    "or",
    "order",
    "outer",
    "primary",
    "references",
    "right",
    "select",
    "set",
    "table",
    "then",
    "to",
    "true",
    "union",
    "unique",
    "update",
    "user",
    "using",
    "values",
    "when",
];

#[cfg(test)]
mod tests;
