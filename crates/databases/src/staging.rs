//! How rows become those of the table: directly, by a table beside it, or chunk by chunk.

use coload_store::{LoadId, LoadMode};
use coload_types::{Error, Result};

use crate::engine::{Connection, Engine};
use crate::names::TableName;
use crate::options::{Guarantee, Method};

/// What names of tables begin with that are not finished; the id of the load follows.
pub const PREFIX: &str = "_coload_";

/// How rows become those of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// In one transaction over one connection, which empties the table first if it is to be replaced.
    Direct {
        /// Whether the rows that are there go.
        replaces: bool,
    },
    /// Into a table beside it, over any number of connections; then that gets the name, or its rows go over in one
    /// transaction.
    Beside {
        /// The table beside it.
        staging: TableName,
        /// What happens to it.
        switch: Switch,
    },
    /// Chunk by chunk, each with a line in the journal.
    Chunks {
        /// Whether the table is to be made.
        makes: bool,
    },
}

/// What happens to a table that has all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// It gets the name.
    Rename,
    /// Its rows go over.
    Move {
        /// Whether the rows that are there go.
        replaces: bool,
    },
    /// It takes the place of the table, which has no rows, or whose rows go.
    Exchange {
        /// Whether the rows that are there go.
        replaces: bool,
    },
}

/// What decides the route.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Whether the table is there.
    pub exists: bool,
    /// What happens to rows that are there.
    pub mode: LoadMode,
    /// What is to hold.
    pub guarantee: Guarantee,
    /// How rows are sent, if that is given.
    pub method: Option<Method>,
    /// Connections, if they are given.
    pub connections: Option<usize>,
    /// Whether a table beside it takes its place.
    pub exchanges: bool,
}

impl Route {
    /// The route of a load into a table.
    ///
    /// # Errors
    /// `Invalid` when the table must not be there, or what is asked for contradicts itself.
    pub fn of(facts: Facts, table: &TableName, id: LoadId) -> Result<Self> {
        let Facts { exists, mode, guarantee, method, connections, exchanges } = facts;
        let autocommit = method == Some(Method::InsertAutocommit);
        if guarantee == Guarantee::Resumable {
            if mode == LoadMode::Replace {
                return Err(Error::Invalid(
                    "--replace and --resumable: rows that are there would be gone before the others are there (leave out \
                     --resumable)"
                        .into(),
                ));
            }
            if autocommit {
                return Err(Error::Invalid(
                    "--method insert-autocommit and --resumable: a chunk and its line in the journal are one transaction \
                     (try --method insert)"
                        .into(),
                ));
            }
            return Ok(Route::Chunks { makes: !exists });
        }
        let staging = table.beside(format!("{PREFIX}{id}"));
        let replaces = mode == LoadMode::Replace;
        Ok(match (exists, mode) {
            (true, LoadMode::Create) => {
                return Err(Error::Invalid(format!(
                    "--create: table {table} is there (--append adds to it, --replace replaces its rows)"
                )));
            }
            (false, _) => Route::Beside { staging, switch: Switch::Rename },
            (true, _) if exchanges => {
                Route::Beside { staging, switch: Switch::Exchange { replaces } }
            }
            (true, _) if autocommit || connections.is_some_and(|count| count > 1) => {
                Route::Beside { staging, switch: Switch::Move { replaces } }
            }
            (true, _) => Route::Direct { replaces },
        })
    }
}

/// Removes tables of loads that died: nobody has the lock of their names.
///
/// # Errors
/// What the server says.
pub fn remove_dead(engine: &dyn Engine, on: &mut dyn Connection, beside: &TableName) -> Result<()> {
    let own = engine.current_schema_sql();
    let (schema, parameters) = match &beside.schema {
        Some(schema) => (engine.parameter(1), vec![schema.as_str()]),
        None => (own.to_owned(), Vec::new()),
    };
    let sql = format!(
        "SELECT CAST(TABLE_NAME AS char(64)) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = {schema} \
         AND LEFT(CAST(TABLE_NAME AS char(64)), {}) = '{PREFIX}'",
        PREFIX.len()
    );
    for row in on.ask(&sql, &parameters)? {
        let Some(Some(name)) = row.into_iter().next() else { continue };
        let name = name.trim_end();
        // Ours are those that end with an id.
        let Some(id) = name.strip_prefix(PREFIX) else { continue };
        if id.parse::<LoadId>().is_ok() && on.lock(name)? {
            drop_table(engine, on, &beside.beside(name))?;
        }
    }
    Ok(())
}

/// The statement by which a table beside it takes the place of a table, and that gets another name, at once.
pub fn exchange_sql(
    engine: &dyn Engine,
    (staging, table): (&TableName, &TableName),
    old: &TableName,
) -> String {
    let quotes = engine.quotes();
    let [staging, table, old] = [staging, table, old].map(|name| quotes.table(name));
    format!("RENAME TABLE {table} TO {old}, {staging} TO {table}")
}

/// Removes a table, if it is there.
///
/// # Errors
/// What the server says.
pub fn drop_table(engine: &dyn Engine, on: &mut dyn Connection, table: &TableName) -> Result<()> {
    on.run(&format!("DROP TABLE IF EXISTS {}", engine.quotes().table(table)), &[]).map(drop)
}

/// The statements that make the rows of a staging table those of the table, to be run in one transaction.
pub fn switch_sql(
    engine: &dyn Engine,
    switch: Switch,
    (staging, table): (&TableName, &TableName),
    columns: &[&str],
) -> Vec<String> {
    let quotes = engine.quotes();
    match switch {
        Switch::Rename => vec![engine.rename_sql(staging, table)],
        // Its statements are no matter of one transaction.
        Switch::Exchange { .. } => Vec::new(),
        Switch::Move { replaces } => {
            let list = quotes.list(columns.iter().copied());
            let moved = format!(
                "INSERT INTO {} ({list}) SELECT {list} FROM {}",
                quotes.table(table),
                quotes.table(staging)
            );
            replaces.then(|| engine.empty_sql(table)).into_iter().chain([moved]).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_beside_takes_the_place_only_where_that_is_wanted() {
        let table = TableName { schema: None, name: "t".to_owned() };
        let id = LoadId::random().expect("an id");
        let route = |exists, mode, exchanges, connections| {
            let guarantee = Guarantee::Atomic;
            let facts = Facts { exists, mode, guarantee, method: None, connections, exchanges };
            Route::of(facts, &table, id).expect("a route")
        };
        let switch = |route| match route {
            Route::Beside { switch, .. } => Some(switch),
            _ => None,
        };
        let (append, replace) = (LoadMode::Append, LoadMode::Replace);
        let exchange = |replaces| Some(Switch::Exchange { replaces });
        assert_eq!(switch(route(true, append, true, None)), exchange(false));
        assert_eq!(switch(route(true, replace, true, Some(4))), exchange(true));
        assert_eq!(route(true, append, false, None), Route::Direct { replaces: false });
        let moves = Some(Switch::Move { replaces: true });
        assert_eq!(switch(route(true, replace, false, Some(4))), moves);
        assert_eq!(switch(route(false, append, true, None)), Some(Switch::Rename));
    }
}
