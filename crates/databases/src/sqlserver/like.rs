//! A table as another is: columns, defaults, rules, unique indexes. SQL Server has no statement for it.

use std::collections::BTreeMap;

use coload_types::{Error, Result};

use super::QUOTES;
use super::catalogue::{COLUMNS_SQL, column_of};
use crate::engine::{Connection, TextCell};
use crate::names::TableName;
use crate::rebuild::Indexes;

/// A name as a text in SQL.
pub fn literal(text: &str) -> String {
    format!("N'{}'", text.replace('\'', "''"))
}

/// Names of the columns of a table that a table as it is has too.
fn copied(described: &[Vec<TextCell>]) -> Vec<String> {
    let columns = described.iter().filter_map(|row| column_of(row));
    columns.filter(|column| !column.is_generated).map(|column| column.name).collect()
}

const DEFAULTS_SQL: &str = "\
SELECT c.name, d.definition FROM sys.default_constraints AS d
JOIN sys.columns AS c ON c.object_id = d.parent_object_id AND c.column_id = d.parent_column_id
WHERE d.parent_object_id = OBJECT_ID(@P1)";

const CHECKS_SQL: &str = "\
SELECT definition FROM sys.check_constraints WHERE parent_object_id = OBJECT_ID(@P1) AND is_disabled = 0";

const INDEXES_SQL: &str = "\
SELECT CAST(i.index_id AS int), c.name, CAST(ic.is_descending_key AS int), i.filter_definition, CAST(i.ignore_dup_key AS int)
FROM sys.indexes AS i JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id
JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
WHERE i.object_id = OBJECT_ID(@P1) AND i.is_unique = 1 AND i.is_disabled = 0 AND ic.is_included_column = 0
ORDER BY i.index_id, ic.key_ordinal";

/// A unique index: its columns in SQL, and what follows them.
#[derive(Default)]
struct Index {
    columns: Vec<String>,
    names: Vec<String>,
    filter: Option<String>,
    ignores: bool,
}

/// Makes it. Columns whose values the server makes (computed ones, rowversion, identity, periods of versions) are left out,
/// with the rules and indexes that need them: those are asked when the rows go over. SELECT INTO would make some of them
/// columns that must be given a value.
///
/// # Errors
/// What the server says.
pub fn make_like(
    on: &mut dyn Connection,
    (new, like): (&TableName, &TableName),
    indexes: Indexes,
) -> Result<()> {
    let (old, table) = (QUOTES.table(like), QUOTES.table(new));
    let copied = copied(&on.ask(COLUMNS_SQL, &[&old])?);
    if copied.is_empty() {
        return Err(Error::Refused(format!("SQL Server does not tell the columns of {like}")));
    }
    let list = QUOTES.list(copied.iter().map(String::as_str));
    on.run(&format!("SELECT TOP (0) {list} INTO {table} FROM {old}"), &[])?;
    for row in on.ask(DEFAULTS_SQL, &[&old])? {
        if let [Some(column), Some(definition)] = &row[..]
            && copied.contains(column)
        {
            let column = QUOTES.name(column);
            on.run(&format!("ALTER TABLE {table} ADD DEFAULT {definition} FOR {column}"), &[])?;
        }
    }
    for row in on.ask(CHECKS_SQL, &[&old])? {
        if let [Some(definition)] = &row[..] {
            match on.run(&format!("ALTER TABLE {table} ADD CHECK {definition}"), &[]) {
                Ok(_) | Err(Error::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    if indexes == Indexes::LeftOut {
        return Ok(());
    }
    let mut indexes: BTreeMap<String, Index> = BTreeMap::new();
    for row in on.ask(INDEXES_SQL, &[&old])? {
        let [Some(number), Some(column), descends, filter, ignores] = &row[..] else { continue };
        let index = indexes.entry(number.clone()).or_default();
        let order = if descends.as_deref() == Some("1") { " DESC" } else { "" };
        index.columns.push(format!("{}{order}", QUOTES.name(column)));
        index.names.push(column.clone());
        index.filter = filter.clone().filter(|filter| !filter.is_empty());
        index.ignores = ignores.as_deref() == Some("1");
    }
    for (number, index) in indexes {
        if !index.names.iter().all(|name| copied.contains(name)) {
            continue;
        }
        let filter = index.filter.map_or(String::new(), |filter| format!(" WHERE {filter}"));
        let options = if index.ignores { " WITH (IGNORE_DUP_KEY = ON)" } else { "" };
        let columns = index.columns.join(", ");
        on.run(
            &format!(
                "CREATE UNIQUE INDEX [coload_{number}] ON {table} ({columns}){filter}{options}"
            ),
            &[],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_whose_values_the_server_makes_are_not_those_of_a_table_beside() {
        let row = |name: &str, type_name: &str, [identity, computed, always]: [&str; 3]| {
            let cells = [name, type_name, "8", "0", "0", "0", identity, computed, "0", "", always];
            cells.map(|cell| Some(cell.to_owned())).to_vec()
        };
        let described = [
            row("id", "int", ["1", "0", "0"]),
            row("v", "int", ["0", "0", "0"]),
            row("twice", "int", ["0", "1", "0"]),
            row("version", "timestamp", ["0", "0", "0"]),
            // Of SYSTEM_TIME: 1 the beginning, 2 the end; later servers have others.
            row("since", "datetime2", ["0", "0", "1"]),
            row("until", "datetime2", ["0", "0", "2"]),
            row("t", "nvarchar", ["0", "0", "0"]),
        ];
        assert_eq!(copied(&described), ["v", "t"]);
    }
}
