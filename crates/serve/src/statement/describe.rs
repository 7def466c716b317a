//! DESCRIBE, SHOW TABLES, SHOW CREATE TABLE and SUMMARIZE: queries over the catalog and its tables.

use std::sync::Arc;

use coload_ddl::{Schema, create_indexes_sql, create_table_sql};
use coload_store::{Snapshot, TableEntry};
use coload_types::{DataType, Error, Result};
use datafusion::arrow::datatypes::{Field, Schema as ArrowSchema};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, ident, lit};
use datafusion::sql::sqlparser::ast::{
    DescribeAlias, ObjectName, Query, ShowStatementFilter, ShowStatementFilterPosition,
    ShowStatementOptions, Statement as SqlStatement,
};

use datafusion::sql::sqlparser::tokenizer::Token;

use super::columns::table_name;
use super::limits::StatementLimits;
use super::text::{parse, parse_statement};
use super::tree::{Names, Scope};
use super::{check_plain, schemas, spelling, unsupported, view};
use crate::external::{reference, refused_kind};
use crate::functions::listing::{Listing, listing};
use crate::names::{find_table, missing_table};
use crate::rights::Rights;
use crate::types::sql_type;

/// What a statement is.
pub(super) enum Described {
    /// DESCRIBE of a query.
    Query(Box<Query>),
    /// Another one.
    Other(Box<SqlStatement>),
}

/// Takes the query out of a DESCRIBE.
pub(super) fn described(statement: SqlStatement) -> Described {
    match statement {
        SqlStatement::Explain {
            describe_alias: DescribeAlias::Describe | DescribeAlias::Desc,
            statement,
            ..
        } => match *statement {
            SqlStatement::Query(query) => Described::Query(query),
            other => Described::Other(Box::new(other)),
        },
        other => Described::Other(Box::new(other)),
    }
}

/// The columns of a table that is described: names as they were written, types of CREATE TABLE.
pub(super) fn columns_of_table(
    planned: &ArrowSchema,
    names: &Names,
) -> DataFusionResult<LogicalPlan> {
    let fields = planned.fields().iter().map(|field| {
        let name = names.stored(field.name()).unwrap_or(field.name());
        field.as_ref().clone().with_name(name)
    });
    let spelled = ArrowSchema::new(fields.collect::<Vec<_>>());
    columns(&spelled, |column| names.declared(planned.field(column).name()))
}

/// The same of a query.
pub(super) fn columns_of_query(
    query: &LogicalPlan,
    names: &Names,
) -> DataFusionResult<LogicalPlan> {
    let planned = Arc::new(query.schema().as_arrow().clone());
    let spelled = spelling::spelled_schema(query, names, &planned);
    columns(&spelled, |column| spelling::declared(query, column))
}

/// The same of fields, where `declared` tells the types that tables declare.
fn columns(
    fields: &ArrowSchema,
    declared: impl Fn(usize) -> Option<DataType>,
) -> DataFusionResult<LogicalPlan> {
    let row = |(column, field): (usize, &Arc<Field>)| {
        let declared = declared(column).or_else(|| sql_type(field.data_type()));
        let data_type = match (refused_kind(field), declared) {
            (Some(kind), _) => not_read(kind),
            (None, Some(data_type)) => data_type.to_string(),
            // Values within a statement only, such as an INTERVAL.
            (None, None) => field.data_type().to_string().to_uppercase(),
        };
        let is_nullable = if field.is_nullable() { "YES" } else { "NO" };
        vec![lit(field.name()), lit(data_type), lit(is_nullable)]
    };
    let rows = fields.fields().iter().enumerate().map(row).collect();
    LogicalPlanBuilder::values(rows)?
        .project([
            ident("column1").alias("column_name"),
            ident("column2").alias("data_type"),
            ident("column3").alias("is_nullable"),
        ])?
        .build()
}

/// What stands for the type of a column that no type holds.
fn not_read(kind: &str) -> String {
    format!("{kind} (not read)")
}

/// The query that SHOW TABLES stands for.
///
/// # Errors
/// `Invalid` for a filter other than LIKE.
pub(super) fn tables(options: &ShowStatementOptions) -> Result<Box<Query>> {
    let ShowStatementOptions { show_in, starts_with, limit, limit_from, filter_position } = options;
    if let Some(within) = show_in.as_ref().filter(|within| !schemas::is_within(within)) {
        let name = within.parent_name.as_ref().map(ToString::to_string).unwrap_or_default();
        return Err(schemas::no_schema("SHOW TABLES", &name));
    }
    if starts_with.is_some() || limit.is_some() || limit_from.is_some() {
        return Err(unsupported("SHOW TABLES with options", "write SHOW TABLES LIKE"));
    }
    let like = match filter_position {
        None => String::new(),
        Some(
            ShowStatementFilterPosition::Infix(filter)
            | ShowStatementFilterPosition::Suffix(filter),
        ) => {
            let (word, pattern) = match filter {
                ShowStatementFilter::Like(pattern) => ("LIKE", pattern),
                ShowStatementFilter::ILike(pattern) => ("ILIKE", pattern),
                other => return Err(unsupported(&format!("SHOW TABLES {other}"), "write LIKE")),
            };
            check_plain(pattern)?;
            format!(" AND table_name {word} '{pattern}'")
        }
    };
    let text = format!(
        "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = \
         'public'{like} ORDER BY table_name"
    );
    query(&text)
}

/// The query that SHOW FUNCTIONS stands for.
///
/// # Errors
/// `Invalid` for a filter other than LIKE.
pub(super) fn functions(filter: Option<&ShowStatementFilter>) -> Result<Box<Query>> {
    let like = match filter {
        None => String::new(),
        Some(filter) => {
            let (word, pattern) = match filter {
                ShowStatementFilter::Like(pattern) => ("LIKE", pattern),
                ShowStatementFilter::ILike(pattern) => ("ILIKE", pattern),
                other => {
                    return Err(unsupported(&format!("SHOW FUNCTIONS {other}"), "write LIKE"));
                }
            };
            check_plain(pattern)?;
            format!(" WHERE function_name {word} '{pattern}'")
        }
    };
    let row = |Listing { name, kind, syntax, description }: Listing| {
        let texts = [name.as_str(), kind, syntax.as_str(), description.as_str()];
        let texts: Vec<String> = texts
            .map(|text| if text.is_empty() { "NULL".to_owned() } else { literal(text) })
            .into();
        format!("({})", texts.join(", "))
    };
    let rows: Vec<String> = listing().into_iter().map(row).collect();
    query(&format!(
        "SELECT * FROM (VALUES {}) AS f(function_name, function_type, syntax, description){like} ORDER BY function_name, \
         function_type",
        rows.join(", ")
    ))
}

/// The query that SHOW CREATE TABLE stands for.
///
/// # Errors
/// `Invalid` when there is no such table to see.
pub(super) fn create(
    name: &ObjectName,
    snapshot: &Snapshot,
    rights: &Rights,
) -> Result<Box<Query>> {
    let (name, sql) = match view::find(name, (snapshot, rights)) {
        Some(found) => (&found.name, view::create_sql(found)),
        None => {
            let table = table_to_see(name, snapshot, rights)?;
            let indexes = create_indexes_sql(&table.name, &table.schema);
            (&table.name, create_table_sql(&table.name, &table.schema) + &indexes)
        }
    };
    query(&format!("SELECT {} AS table_name, {} AS sql", literal(name), literal(&sql)))
}

/// The table that SUMMARIZE names, if a text begins with that word.
///
/// # Errors
/// `Invalid` when something else follows.
pub(super) fn summarized(text: &str) -> Result<Option<ObjectName>> {
    let text = text.trim_start();
    let Some((word, rest)) = text.split_once(char::is_whitespace) else { return Ok(None) };
    if !word.eq_ignore_ascii_case("summarize") {
        return Ok(None);
    }
    let named = parse(rest, &StatementLimits::default(), |parser| {
        let name = parser.parse_object_name(false)?;
        parser.expect_token(&Token::EOF).map(|_| name)
    });
    named.map(Some).map_err(|_| {
        unsupported("SUMMARIZE of anything but a table", "write SUMMARIZE table, or the aggregates")
    })
}

/// The query that SUMMARIZE stands for: a row for each column, with its least and greatest value, about how many differ, mean,
/// deviation, quartiles of numbers, rows, and the share of NULLs.
///
/// # Errors
/// `Invalid` when there is no such table to see, `Refused` when inputs may not be read.
pub(super) fn summarize(name: &ObjectName, scope: Scope<'_>) -> Result<Box<Query>> {
    match reference::of_name(name) {
        Some(reference) => {
            let from = reference.to_string();
            let table = scope.externals.open(&from, &reference)?;
            let refused = |column: usize| table.request().refused(column).map(|r| r.kind.as_str());
            summary(table.columns(), refused, &from)
        }
        None => {
            let table = table_to_see(name, scope.snapshot, scope.rights)?;
            summary(&table.schema, |_| None, &quoted(&table.name))
        }
    }
}

/// The same of these columns; `refused` says what a column is of which nothing can be read.
fn summary<'a>(
    schema: &Schema,
    refused: impl Fn(usize) -> Option<&'a str>,
    from: &str,
) -> Result<Box<Query>> {
    let mut parts = Vec::new();
    for (place, column) in schema.columns().iter().enumerate() {
        if let Some(kind) = refused(place) {
            parts.push(format!(
                "SELECT {place} AS place, {} AS column_name, {} AS column_type, NULL AS min, NULL AS max, NULL AS approx_unique, \
                 NULL AS avg, NULL AS std, NULL AS q25, NULL AS q50, NULL AS q75, count(*) AS \"count\", NULL AS \
                 null_percentage FROM {from}",
                literal(&column.name),
                literal(&not_read(kind)),
            ));
            continue;
        }
        let name = quoted(&column.name);
        let is_number = matches!(
            column.data_type,
            DataType::SmallInt
                | DataType::Integer
                | DataType::BigInt
                | DataType::Decimal { .. }
                | DataType::Real
                | DataType::Double
        );
        let if_number = |text: String| if is_number { text } else { "NULL".to_owned() };
        let end = |function: &str| match column.data_type {
            DataType::Binary(_) | DataType::List(_) => "NULL".to_owned(),
            DataType::Boolean => format!("{function}(CAST({name} AS VARCHAR))"),
            _ => format!("CAST({function}({name}) AS VARCHAR)"),
        };
        let quartile = |share: &str| {
            let value = format!("approx_percentile_cont(CAST({name} AS DOUBLE), {share})");
            if_number(format!("CAST({value} AS VARCHAR)"))
        };
        let number = format!("CAST({name} AS DOUBLE)");
        parts.push(format!(
            "SELECT {place} AS place, {} AS column_name, {} AS column_type, {} AS min, {} AS max, approx_distinct({name}) AS \
             approx_unique, CAST({} AS DOUBLE) AS avg, CAST({} AS DOUBLE) AS std, {} AS q25, {} AS q50, {} AS q75, count(*) AS \
             \"count\", CASE WHEN count(*) > 0 THEN round(100.0 * (count(*) - count({name})) / count(*), 2) END AS \
             null_percentage FROM {from}",
            literal(&column.name),
            literal(&column.data_type.to_string()),
            end("min"),
            end("max"),
            if_number(format!("avg({number})")),
            if_number(format!("stddev({number})")),
            quartile("0.25"),
            quartile("0.5"),
            quartile("0.75"),
        ));
    }
    query(&format!(
        "SELECT column_name, column_type, min, max, approx_unique, avg, std, q25, q50, q75, \"count\", null_percentage FROM ({}) \
         AS summary ORDER BY place",
        parts.join(" UNION ALL ")
    ))
}

fn table_to_see<'a>(
    name: &ObjectName,
    snapshot: &'a Snapshot,
    rights: &Rights,
) -> Result<&'a TableEntry> {
    let last = &table_name(name)?;
    let found = find_table(snapshot, last).map(|index| &snapshot.tables()[index]);
    found
        .filter(|table| rights.may_read(&table.name))
        .ok_or_else(|| missing_table(snapshot, rights, last))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub(super) fn query(text: &str) -> Result<Box<Query>> {
    match parse_statement(text, &StatementLimits::default())? {
        SqlStatement::Query(query) => Ok(query),
        _ => Err(Error::Refused("internal error: a view of the catalog is no query".into())),
    }
}
