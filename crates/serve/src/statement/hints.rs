//! Errors of parser and planner in terms of the names that the caller knows.

use coload_ddl::Schema;
use coload_store::Snapshot;
use coload_types::Error;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;

use super::schemas::no_schema;
use super::tree::{Names, PG_CATALOG};
use crate::catalog::is_schema;
use crate::error::from_datafusion;
use crate::external::reference;
use crate::functions::{TABLE_FUNCTIONS, function_names};
use crate::names::{fold, missing_table, quote};
use crate::rights::Rights;

/// Schemas of the catalog, in which a table may be missing.
const OF_CATALOG: [&str; 2] = [INFORMATION_SCHEMA, PG_CATALOG];

/// Columns that a message names.
const NAMED_MAX: usize = 20;

/// An error of the planner.
pub(super) fn planning_error(
    error: DataFusionError,
    names: &Names,
    snapshot: &Snapshot,
    rights: &Rights,
) -> Error {
    if let Some((field, valid)) = missing_field(&error) {
        return unknown_column(field, valid, names);
    }
    match from_datafusion(error) {
        Error::Invalid(text) => match (missing_name(&text), missing_function(&text)) {
            (Some((Some(schema), name)), _) => no_schema(name, schema),
            (Some((None, name)), _) => missing_table(snapshot, rights, name),
            (None, Some(name)) => unknown_function(name),
            (None, None) => Error::Invalid(text),
        },
        other => other,
    }
}

/// An error of the planner of an expression of a load, whose columns have the names that they are written with.
pub(crate) fn expression_error(error: DataFusionError) -> Error {
    match missing_field(&error) {
        Some((field, valid)) => unknown_column(field, valid, &Names::default()),
        None => match from_datafusion(error) {
            Error::Invalid(text) => match missing_function(&text) {
                Some(name) => unknown_function(name),
                None => Error::Invalid(text),
            },
            other => other,
        },
    }
}

fn missing_field(error: &DataFusionError) -> Option<(&Column, &[Column])> {
    match error {
        DataFusionError::SchemaError(inner, _) => match &**inner {
            SchemaError::FieldNotFound { field, valid_fields } => Some((field, valid_fields)),
            _ => None,
        },
        DataFusionError::Diagnostic(_, inner) | DataFusionError::Context(_, inner) => {
            missing_field(inner)
        }
        DataFusionError::Shared(inner) => missing_field(inner),
        DataFusionError::Collection(errors) => missing_field(errors.first()?),
        _ => None,
    }
}

/// The name in `table 'coload.public.x' not found`, and its schema where that is none of the store.
fn missing_name(text: &str) -> Option<(Option<&str>, &str)> {
    let name = text.strip_prefix("table '")?.strip_suffix("' not found")?;
    let name = name.strip_prefix("coload.").unwrap_or(name);
    Some(match name.split_once('.') {
        Some((schema, table)) if is_schema(schema) => (None, table),
        Some((schema, _)) if !OF_CATALOG.contains(&schema) => (Some(schema), name),
        _ => (None, name),
    })
}

/// The name in `Invalid function 'x'.`
fn missing_function(text: &str) -> Option<&str> {
    text.strip_prefix("Invalid function '")?.split('\'').next()
}

fn unknown_function(name: &str) -> Error {
    let folded = fold(name);
    if TABLE_FUNCTIONS.contains(&folded.as_str()) {
        return Error::Invalid(format!(
            "{folded}() is a table, and no value: write FROM {folded}(..), or (SELECT array_agg(value) FROM {folded}(..)) for a list"
        ));
    }
    if reference::function_names().any(|known| known == folded) {
        return Error::Invalid(format!(
            "{folded}() is a table, and no value: write FROM {folded}(..)"
        ));
    }
    let distance = |known: &&str| levenshtein(known, &folded);
    let near = function_names().filter(|known| distance(known) <= 1 + folded.chars().count() / 4);
    // Of those that are as near the first by name, so that the message is the same each time.
    let nearest = near.min_by_key(|known| (distance(known), *known));
    let hint = match nearest {
        Some(known) => format!("; did you mean {known}()?"),
        None => "; SHOW FUNCTIONS lists them".to_owned(),
    };
    Error::Invalid(format!("no function named {name}{hint}"))
}

fn unknown_column(field: &Column, valid: &[Column], names: &Names) -> Error {
    let shown = |name: &str| {
        let written = names.alias(name).or_else(|| names.stored(name));
        quote(written.unwrap_or(name))
    };
    let wanted = match &field.relation {
        Some(relation) => format!("{}.{}", shown(relation.table()), shown(&field.name)),
        None => shown(&field.name),
    };
    let mut there: Vec<&str> = valid.iter().map(|c| c.name.as_str()).collect();
    there.dedup();
    let near = |name: &&str| levenshtein(name, &field.name) <= 1 + field.name.chars().count() / 4;
    let nearest =
        there.iter().copied().filter(near).min_by_key(|name| levenshtein(name, &field.name));
    let mut text = format!("no field named {wanted}");
    if let Some(name) = nearest {
        text.push_str(&format!("; did you mean {}?", shown(name)));
    }
    if !there.is_empty() {
        let listed: Vec<String> = there.iter().take(NAMED_MAX).map(|name| shown(name)).collect();
        let more = if there.len() > NAMED_MAX { ", ..." } else { "" };
        text.push_str(&format!("; there is {}{more}", listed.join(", ")));
    }
    Error::Invalid(text)
}

/// An error of the parser, which says how to quote a column of which it took the name for a word of the language.
pub(super) fn parser_error(
    error: Error,
    text: &str,
    snapshot: &Snapshot,
    rights: &Rights,
) -> Error {
    let Error::Invalid(message) = error else { return error };
    let found = message.split("found: ").nth(1).and_then(|rest| rest.split(" at Line").next());
    let is_there = |word: &str| {
        let of = |table: &&coload_store::TableEntry| {
            rights.may_read(&table.name) && names_table(text, &table.name)
        };
        snapshot.tables().iter().filter(of).find_map(|t| column_like(&t.schema, word))
    };
    // The word that the parser stumbled over, or the one before it.
    let before = word_before(text, &message);
    match found.and_then(is_there).or_else(|| before.and_then(is_there)) {
        Some(column) => Error::Invalid(format!(
            "{message}; if the column is meant, write {} in quotes",
            quote_always(&column)
        )),
        None => Error::Invalid(message),
    }
}

fn quote_always(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn names_table(text: &str, table: &str) -> bool {
    fold(text).contains(&fold(table))
}

fn column_like(schema: &Schema, word: &str) -> Option<String> {
    let word = fold(word);
    schema.columns().iter().map(|c| &c.name).find(|name| fold(name) == word).cloned()
}

/// The word before the place that a message tells, `at Line: 1, Column: 8`.
fn word_before<'a>(text: &'a str, message: &str) -> Option<&'a str> {
    let place = message.rsplit("at Line: ").next()?;
    let (line, column) = place.split_once(", Column: ")?;
    let digits: String = column.chars().take_while(char::is_ascii_digit).collect();
    let (line, column): (usize, usize) = (line.parse().ok()?, digits.parse().ok()?);
    let line = text.lines().nth(line.checked_sub(1)?)?;
    let end = line.char_indices().nth(column.checked_sub(1)?).map_or(line.len(), |(at, _)| at);
    line[..end].split(|c: char| !c.is_alphanumeric() && c != '_').rfind(|word| !word.is_empty())
}
