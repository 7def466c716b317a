//! URLs of tables: that of their database, and a table behind it.

use coload_types::{Error, Result};

use crate::names::TableName;
use crate::url::decode;

/// The URL of a table, in its parts.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceUrl {
    /// The URL of the database.
    pub server: String,
    /// What is told of it: no user, no password, no parameters.
    pub shown: String,
    /// The table, if one is named.
    pub table: Option<TableName>,
}

/// Takes the table out of a URL.
///
/// # Errors
/// `Invalid` when its path has more than a database and a table, or the name of the table is none.
pub fn split(url: &str) -> Result<SourceUrl> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, format!("?{query}")),
        None => (rest, String::new()),
    };
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let mut parts = path.splitn(2, '/');
    let database = parts.next().unwrap_or("");
    let table = parts.next().map(|table| table.trim_end_matches('/')).filter(|t| !t.is_empty());
    let shown = match table {
        Some(table) => format!("{scheme}://{host}/{database}/{table}"),
        None => format!("{scheme}://{host}/{database}"),
    };
    let wrong = |why: &str| {
        Error::Invalid(format!(
            "{shown}: {why}; a table is {scheme}://host/database/table, or schema.table, and what is no letter or digit of a \
             name may be written as % and two digits"
        ))
    };
    let table = match table {
        Some(table) if table.contains('/') => {
            return Err(wrong("the path has more than two parts"));
        }
        Some(table) => {
            Some(TableName::parse(&decode(table)).map_err(|_| wrong("no name of a table"))?)
        }
        None => None,
    };
    let server = format!("{scheme}://{authority}/{database}{query}");
    Ok(SourceUrl { server, shown, table })
}

/// A table and a query were named, or none of them.
pub fn one_of_both(shown: &str, has_query: bool, table: Option<&TableName>) -> Error {
    Error::Invalid(match (has_query, table) {
        (true, Some(table)) => format!(
            "{shown}: the URL names table {table}, and --query what is read instead: leave one of them out"
        ),
        _ => format!(
            "{shown} names no table: write {}/table, or schema.table, or give --query 'SELECT ...'",
            shown.trim_end_matches('/')
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_what_follows_the_database() {
        let split =
            split("postgres://ada:s%40c@h:5433/db/s.%22T%20x%22?sslmode=disable").expect("a URL");
        assert_eq!(split.server, "postgres://ada:s%40c@h:5433/db?sslmode=disable");
        assert_eq!(split.shown, "postgres://h:5433/db/s.%22T%20x%22");
        assert_eq!(split.table, Some(TableName::parse("s.\"T x\"").expect("a name")));
        let split = super::split("mysql://h/db/").expect("a URL");
        assert_eq!((split.server.as_str(), split.table), ("mysql://h/db", None));
    }

    #[test]
    fn what_is_wrong_with_a_url_does_not_tell_its_password() {
        for url in ["postgres://u:secret@h/d/a/b", "mysql://u:secret@h/d/a.b.c"] {
            let error = split(url).expect_err(url).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
