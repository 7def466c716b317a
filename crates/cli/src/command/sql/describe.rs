//! What `\\d NAME` shows of a table or view, from its own CREATE statement and what the catalog tells of its size.
//!
//! ```text
//!   table orders  1,500,000 rows  45.2 MB
//!
//!   column      type           null      default
//!   o_orderkey  BIGINT         NOT NULL
//!   o_status    CHAR(1)                  'O'
//!
//!   PRIMARY KEY (o_orderkey)
//! ```

use coload::Error;
use coload_ddl::{Schema, literal_sql, quote_name};
use coload_serve::parse_create_table;

use super::target::Target;
use crate::output::Done;
use crate::report::{Side, align};
use crate::size::{show_bytes, show_count};

/// A table or view by the name that a person has typed, in quotes where SQL needs them.
///
/// # Errors
/// `Failed` when there is none to see.
pub fn table(target: &mut Target, typed: &str) -> Done<String> {
    let written = if is_plain(typed) || typed.starts_with('"') {
        typed.to_owned()
    } else {
        quote_name(typed.trim_matches('\''))
    };
    let shown = target.texts(&format!("SHOW CREATE TABLE {written}"))?;
    let [name, sql] =
        shown.into_iter().next().and_then(|row| row.try_into().ok()).ok_or_else(missing)?;
    let (name, sql) = (name.ok_or_else(missing)?, sql.ok_or_else(missing)?);
    if sql.starts_with("CREATE VIEW") {
        return view(target, &name, &sql);
    }
    let (_, schema) = parse_create_table(&sql)?;
    let size = format!(
        "SELECT table_rows, data_length FROM information_schema.tables WHERE table_schema = 'public' AND table_name = '{}'",
        name.replace('\'', "''")
    );
    let size = target.texts(&size)?.into_iter().next().unwrap_or_default();
    let number = |index: usize| size.get(index)?.as_ref()?.parse().ok();
    let mut head = format!("table {}", quote_name(&name));
    if let (Some(rows), Some(bytes)) = (number(0), number(1)) {
        let unit = if rows == 1 { "row" } else { "rows" };
        head.push_str(&format!("  {} {unit}  {}", show_count(rows), show_bytes(bytes)));
    }
    Ok(format!("{head}\n\n{}{}", columns(&schema), rules(&schema)))
}

fn missing() -> Error {
    Error::Refused("internal error: SHOW CREATE TABLE answered no text".into())
}

/// Words with points between them, as a schema and a table.
fn is_plain(name: &str) -> bool {
    let is_word =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    name.split('.').all(is_word)
}

fn columns(schema: &Schema) -> String {
    let mut lines = vec![["column", "type", "null", "default"].map(str::to_owned).to_vec()];
    for column in schema.columns() {
        let default = column.default.as_ref();
        lines.push(vec![
            quote_name(&column.name),
            column.data_type.to_string(),
            if column.nullable { "" } else { "NOT NULL" }.to_owned(),
            default.map_or_else(String::new, |value| literal_sql(value, column.data_type)),
        ]);
    }
    align(&lines, &[Side::Left; 4])
}

/// The key and the checks, a line each.
fn rules(schema: &Schema) -> String {
    let key = schema.key().map(|key| key.sql(schema.columns()));
    let checks = schema.checks().iter().map(|check| check.sql());
    let lines: String = key.into_iter().chain(checks).map(|rule| rule + "\n").collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

fn view(target: &mut Target, name: &str, sql: &str) -> Done<String> {
    let mut lines = vec![["column", "type", "null"].map(str::to_owned).to_vec()];
    for row in target.texts(&format!("DESCRIBE {}", quote_name(name)))? {
        let [column, data_type, null] = row.try_into().map_err(|_| missing())?;
        let null = if null.as_deref() == Some("NO") { "NOT NULL" } else { "" };
        lines.push(vec![
            quote_name(&column.unwrap_or_default()),
            data_type.unwrap_or_default(),
            null.to_owned(),
        ]);
    }
    let columns = align(&lines, &[Side::Left; 3]);
    Ok(format!("view {}\n\n{columns}\n{sql}\n", quote_name(name)))
}
