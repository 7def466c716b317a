//! Views: queries of a store that have a name. `FROM v` becomes `FROM (query) AS v` when the tree is looked at, so that all
//! that holds for a subquery holds for a view, limits and rights among it: who asks needs the right to what it reads.
//!
//! `CREATE EXTERNAL TABLE` makes a view of the function that reads the inputs.

use coload_store::{OnExisting, Snapshot, Store, ViewEntry};
use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    CreateTableOptions, CreateView, Ident, ObjectName, Query, SetExpr, Statement, TableAlias,
    TableAliasColumnDef, TableFactor, ViewColumnDef,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::columns::table_name;
use super::ddl::require_create;
use super::limits::StatementLimits;
use super::text::{parse, parse_statement};
use super::{Planning, done, parameters, unsupported};
use crate::Answer;
use crate::external::reference;
use crate::names::fold;
use crate::rights::Rights;

/// A view that is to be made.
#[derive(Debug)]
pub(crate) struct NewView {
    view: ViewEntry,
    on_existing: OnExisting,
}

/// Looks at a CREATE VIEW, and at its query as one that runs.
pub(crate) async fn plan(mut planning: Planning, statement: CreateView) -> Result<NewView> {
    let (view, query, on_existing) = definition(statement)?;
    require_create(&planning.rights, on_existing, &view.name)?;
    let (plan, schema) = planning.query(query).await?;
    if !parameters::fields_of(&plan)?.fields().is_empty() {
        return Err(unsupported("a parameter in a view", "write the value"));
    }
    let names = match view.columns.is_empty() {
        true => schema.fields().iter().map(|field| field.name().clone()).collect(),
        false => view.columns.clone(),
    };
    if names.len() != schema.fields().len() {
        return Err(Error::Invalid(format!(
            "view {} names {} columns, and its query has {}",
            view.name,
            names.len(),
            schema.fields().len()
        )));
    }
    let mut folded: Vec<String> = names.iter().map(|name| fold(name)).collect();
    folded.sort_unstable();
    if let Some(pair) = folded.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::Invalid(format!(
            "view {} would have two columns {}: name them, as in CREATE VIEW {} (a, b) AS ..",
            view.name, pair[0], view.name
        )));
    }
    Ok(NewView { view, on_existing })
}

impl NewView {
    /// Makes it.
    pub fn run(&self, store: &Store) -> Result<Answer> {
        store.create_view(&self.view, self.on_existing)?;
        Ok(done())
    }
}

/// What a CREATE VIEW says. Every field of it is named, so that none is dropped silently.
fn definition(statement: CreateView) -> Result<(ViewEntry, Box<Query>, OnExisting)> {
    let CreateView {
        or_alter,
        or_replace,
        materialized,
        secure,
        name,
        name_before_not_exists: _,
        columns,
        query,
        options,
        cluster_by,
        comment,
        with_no_schema_binding,
        if_not_exists,
        temporary,
        copy_grants,
        to,
        params,
    } = statement;
    let refused = [
        (or_alter, "CREATE OR ALTER VIEW"),
        (materialized, "a materialised view"),
        (secure, "a secure view"),
        (options != CreateTableOptions::None, "a view with options"),
        (!cluster_by.is_empty(), "a view with CLUSTER BY"),
        (comment.is_some(), "a view with a comment"),
        (with_no_schema_binding, "WITH NO SCHEMA BINDING"),
        (temporary, "a temporary view"),
        (copy_grants, "COPY GRANTS"),
        (to.is_some(), "a view TO a table"),
        (params.is_some(), "a view with parameters"),
    ];
    if let Some((_, what)) = refused.iter().find(|(is_there, _)| *is_there) {
        return Err(unsupported(what, "write CREATE [OR REPLACE] VIEW name [(columns)] AS SELECT"));
    }
    let on_existing = match (or_replace, if_not_exists) {
        (true, true) => {
            return Err(Error::Invalid("OR REPLACE and IF NOT EXISTS exclude each other".into()));
        }
        (true, false) => OnExisting::Replace,
        (false, true) => OnExisting::Keep,
        (false, false) => OnExisting::Fail,
    };
    let column = |column: ViewColumnDef| match column {
        ViewColumnDef { name, data_type: None, options: None } => Ok(name.value),
        _ => Err(unsupported("a type or an option of a view's column", "write CAST in the SELECT")),
    };
    let columns = columns.into_iter().map(column).collect::<Result<Vec<_>>>()?;
    let view = ViewEntry { name: table_name(&name)?, columns, sql: query.to_string() };
    // What is kept is the text of the tree: it must be the same query.
    if parse_query(&view.sql, &StatementLimits::default()).ok().as_ref() != Some(&query) {
        return Err(unsupported("this query as a view", "write it in a simpler form"));
    }
    Ok((view, query, on_existing))
}

fn parse_query(sql: &str, limits: &StatementLimits) -> Result<Box<Query>> {
    match parse_statement(sql, limits)? {
        Statement::Query(query) => Ok(query),
        _ => Err(Error::Corrupt("a view that is no query".into())),
    }
}

/// The view that a relation is, as a caller sees it.
pub(super) fn find<'a>(
    name: &ObjectName,
    (snapshot, rights): (&'a Snapshot, &Rights),
) -> Option<&'a ViewEntry> {
    let name = table_name(name).ok()?;
    snapshot.view(&name).filter(|view| rights.may_read(&view.name))
}

/// Whether a view has all rows and columns of inputs, as those have that CREATE EXTERNAL TABLE makes.
pub(super) fn is_external(view: &ViewEntry) -> bool {
    let Ok(query) = parse_query(&view.sql, &StatementLimits::default()) else { return false };
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let [from] = &select.from[..] else { return false };
    let reads_inputs = match &from.relation {
        TableFactor::Table { name, args: None, .. } => reference::of_name(name).is_some(),
        TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
            let called = name.to_string().to_ascii_lowercase();
            reference::function_names().any(|function| function == called)
        }
        _ => false,
    };
    reads_inputs && query.to_string() == format!("SELECT * FROM {}", from.relation)
}

/// The subquery that stands for a view.
pub(super) fn subquery(
    view: &ViewEntry,
    alias: Option<TableAlias>,
    limits: &StatementLimits,
) -> Result<TableFactor> {
    let column =
        |name: &String| TableAliasColumnDef { name: Ident::with_quote('"', name), data_type: None };
    let mut alias = alias.unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::with_quote('"', &view.name),
        columns: Vec::new(),
        at: None,
    });
    if alias.columns.is_empty() {
        alias.columns = view.columns.iter().map(column).collect();
    }
    let subquery = parse_query(&view.sql, limits)
        .map_err(|error| Error::Invalid(format!("view {}: {error}", view.name)))?;
    Ok(TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None })
}

/// The statement that makes a view.
pub(super) fn create_sql(view: &ViewEntry) -> String {
    let quoted = |name: &String| Ident::with_quote('"', name).to_string();
    let columns: Vec<String> = view.columns.iter().map(quoted).collect();
    let columns = match columns.is_empty() {
        true => String::new(),
        false => format!(" ({})", columns.join(", ")),
    };
    format!("CREATE VIEW {}{columns} AS {}", crate::names::quote(&view.name), view.sql)
}

/// What CREATE EXTERNAL TABLE says.
#[derive(Debug, Default)]
struct External {
    or_replace: bool,
    if_not_exists: bool,
    name: String,
    columns: Vec<String>,
    stored_as: Option<String>,
    location: Option<String>,
    has_partitions: bool,
    options: Vec<(String, String)>,
}

/// The CREATE VIEW that a CREATE EXTERNAL TABLE is; `None` for another statement.
///
/// # Errors
/// `Invalid` when it says what it cannot.
pub(super) fn external_table(text: &str, limits: &StatementLimits) -> Result<Option<Statement>> {
    let words = text.split_whitespace().take(4).map(str::to_ascii_lowercase).collect::<Vec<_>>();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if !matches!(words[..], ["create", "external", ..] | ["create", "or", "replace", "external"]) {
        return Ok(None);
    }
    let said = parse(text, limits, parse_external).map_err(|error| match error {
        Error::Invalid(text) => Error::Invalid(format!(
            "{text}: write CREATE EXTERNAL TABLE name [(columns)] [STORED AS format] LOCATION 'file' [OPTIONS (name 'value')]"
        )),
        other => other,
    })?;
    parse_statement(&said.into_view()?, limits).map(Some)
}

fn parse_external(parser: &mut Parser<'_>) -> std::result::Result<External, ParserError> {
    parser.expect_keyword(Keyword::CREATE)?;
    let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    parser.expect_keywords(&[Keyword::EXTERNAL, Keyword::TABLE])?;
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?.to_string();
    let mut said = External { or_replace, if_not_exists, name, ..External::default() };
    if matches!(parser.peek_token().token, Token::LParen) {
        let (columns, constraints) = parser.parse_columns()?;
        if let Some(constraint) = constraints.first() {
            return Err(ParserError::ParserError(format!("{constraint} of files is not kept")));
        }
        said.columns = columns.iter().map(ToString::to_string).collect();
    }
    loop {
        if said.stored_as.is_none() && parser.parse_keywords(&[Keyword::STORED, Keyword::AS]) {
            said.stored_as = Some(parser.parse_identifier()?.value.to_ascii_lowercase());
        } else if said.location.is_none() && parser.parse_keyword(Keyword::LOCATION) {
            said.location = Some(parser.parse_literal_string()?);
        } else if !said.has_partitions
            && parser.parse_keywords(&[Keyword::PARTITIONED, Keyword::BY])
        {
            // Their names are those in the paths.
            parser.expect_token(&Token::LParen)?;
            parser.parse_comma_separated(Parser::parse_identifier)?;
            parser.expect_token(&Token::RParen)?;
            said.has_partitions = true;
        } else if said.options.is_empty() && parser.parse_keyword(Keyword::OPTIONS) {
            parser.expect_token(&Token::LParen)?;
            said.options = parser.parse_comma_separated(parse_option)?;
            parser.expect_token(&Token::RParen)?;
        } else {
            break;
        }
    }
    parser.expect_token(&Token::EOF)?;
    Ok(said)
}

/// `name value`, `'name' 'value'` or `name = value`.
fn parse_option(parser: &mut Parser<'_>) -> std::result::Result<(String, String), ParserError> {
    let name = match parser.peek_token().token {
        Token::SingleQuotedString(text) => {
            parser.next_token();
            text
        }
        // The engine's have points in them.
        _ => parser.parse_object_name(false)?.to_string(),
    };
    let _ = parser.consume_token(&Token::Eq) || parser.consume_token(&Token::RArrow);
    let value = match parser.next_token().token {
        Token::Word(word) => word.value,
        Token::SingleQuotedString(text) => text,
        Token::Number(digits, false) => digits,
        other => return parser.expected("the value of an option", TokenWithSpan::wrap(other)),
    };
    Ok((name.to_ascii_lowercase(), value))
}

impl External {
    /// The text of the view.
    fn into_view(self) -> Result<String> {
        let Some(location) = &self.location else {
            return Err(Error::Invalid("CREATE EXTERNAL TABLE needs LOCATION 'file'".into()));
        };
        let function = match self.stored_as.as_deref() {
            None => "read_file",
            Some("csv" | "tsv" | "text") => "read_csv",
            Some("json") => "read_json",
            Some("ndjson" | "jsonl") => "read_ndjson",
            Some("parquet") => "read_parquet",
            Some("arrow") => "read_arrow",
            Some("avro") => "read_avro",
            Some("xlsx") => "read_xlsx",
            Some(other) => {
                return Err(Error::Invalid(format!(
                    "STORED AS {other}: there is CSV, JSON, NDJSON, PARQUET, ARROW, AVRO and XLSX; without it, it is found out"
                )));
            }
        };
        let mut arguments = vec![literal(location)];
        if !self.columns.is_empty() {
            arguments.push(format!("columns => {}", literal(&self.columns.join(", "))));
        }
        if self.has_partitions {
            arguments.push("partitions => true".to_owned());
        }
        for (name, value) in &self.options {
            let name = name.strip_prefix("format.").unwrap_or(name);
            let name = if name == "has_header" { "header" } else { name };
            let value = match value.to_ascii_lowercase().as_str() {
                on @ ("true" | "false") => on.to_owned(),
                _ => literal(value),
            };
            arguments.push(format!("{} => {value}", Ident::with_quote('"', name)));
        }
        let External { or_replace, if_not_exists, name, .. } = &self;
        let or_replace = if *or_replace { "OR REPLACE " } else { "" };
        let if_not_exists = if *if_not_exists { "IF NOT EXISTS " } else { "" };
        Ok(format!(
            "CREATE {or_replace}VIEW {if_not_exists}{name} AS SELECT * FROM {function}({})",
            arguments.join(", ")
        ))
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
