//! Names without regard to case.
//!
//! A store keeps names as they were written; statements may write them in any case, quoted or not. So that the planner,
//! which compares names exactly, finds them by every rule of SQL (USING, NATURAL, aliases, subqueries), it sees *folded*
//! names only: those of columns and tables here, those of the statement in `statement::tree`. Answers have the names as
//! they were written (`statement::spelling`).
//!
//! Folding is to lower case, of all scripts; columns of one table never differ in case only.

use std::sync::Arc;

use coload_ddl::Schema;
use coload_ddl::quote_name;
use coload_store::Snapshot;
use coload_types::Error;
use datafusion::arrow::datatypes::{Schema as ArrowSchema, SchemaRef};
use datafusion::sql::sqlparser::ast::Ident;

use crate::rights::Rights;
use crate::types::arrow_schema;

/// A name as the planner sees it.
pub(crate) fn fold(name: &str) -> String {
    name.to_lowercase()
}

/// The Arrow schema of a table with folded names.
pub(crate) fn folded_schema(schema: &Schema) -> SchemaRef {
    let arrow = arrow_schema(schema);
    if arrow.fields().iter().all(|field| *field.name() == fold(field.name())) {
        return arrow;
    }
    let fields = arrow.fields().iter();
    let fields: Vec<_> = fields.map(|f| f.as_ref().clone().with_name(fold(f.name()))).collect();
    Arc::new(ArrowSchema::new(fields))
}

/// A table by a name in any case.
pub(crate) fn find_table(snapshot: &Snapshot, name: &str) -> Option<usize> {
    snapshot.position(name)
}

/// The error for a table that is not there; it names those that the caller may see, and no other.
pub(crate) fn missing_table(snapshot: &Snapshot, rights: &Rights, name: &str) -> Error {
    /// Tables named in a message.
    const NAMED_MAX: usize = 10;
    if let Some(view) = snapshot.view(name).filter(|view| rights.may_read(&view.name)) {
        return Error::Invalid(format!("{} is a view, and holds no rows", view.name));
    }
    let seen = snapshot.tables().iter().map(|t| t.name.as_str()).filter(|t| rights.may_read(t));
    let mut named: Vec<String> = seen.clone().take(NAMED_MAX).map(quote).collect();
    if seen.count() > NAMED_MAX {
        named.push("...".into());
    }
    let there = match named.is_empty() {
        true => "there is none to see".to_owned(),
        false => format!("there is {}", named.join(", ")),
    };
    Error::Invalid(format!("table {name} not found: it does not exist ({there})"))
}

/// The error for a column that a table does not have; `before` says where it is named.
pub(crate) fn missing_field(before: &str, column: &Ident, schema: &Schema) -> Error {
    let there: Vec<String> = schema.columns().iter().map(|c| quote(&c.name)).collect();
    let (name, there) = (quote(&column.value), there.join(", "));
    Error::Invalid(format!("{before}no field named {name}; there is {there}"))
}

/// A name as a statement can write it: in quotes where it is no plain word, or a word of the language.
pub(crate) fn quote(name: &str) -> String {
    let mut letters = name.chars();
    let is_plain = letters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && letters.all(|c| c.is_alphanumeric() || c == '_');
    let lower = name.to_ascii_lowercase();
    if is_plain && (!name.is_ascii() || quote_name(&lower) == lower) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_language_are_quoted() {
        assert_eq!(quote("salary"), "salary");
        assert_eq!(quote("From"), "\"From\"");
        assert_eq!(quote("a b"), "\"a b\"");
        assert_eq!(quote("a\"b"), "\"a\"\"b\"");
        assert_eq!(quote(""), "\"\"");
    }
}
