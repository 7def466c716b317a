//! PostgreSQL, by its own protocol.

mod binary_rows;
mod catalogue;
mod connect;
mod connection;
mod copied;
mod insert;
mod priors;
mod read;
mod rebuild;
mod text_rows;
mod tls;

use std::sync::Arc;

use coload_ddl::{Schema, literal_sql};
use coload_load::TypedSource;
use coload_types::{DataType, Result, write_postgres_list};

use crate::costs::Costs;
use crate::engine::{Connection, Engine, RowForm, TableColumn};
use crate::names::{Quotes, TableName};
use crate::options::Method;
use crate::read::RowsOf;
use crate::rebuild::{Indexes, TakenOff};
use binary_rows::BinaryRows;
use connect::Server;
use text_rows::TextRows;

/// Whether COPY FREEZE is to be had, and finds the row that is refused. Errors of foreign keys and triggers do not say which it
/// was, a transaction that keeps its snapshot has none of it, and servers that speak as PostgreSQL does may not know it.
const MAY_FREEZE_SQL: &str = "\
SELECT (relkind = 'r' AND NOT relhastriggers
        AND current_setting('default_transaction_isolation') IN ('read committed', 'read uncommitted')
        AND version() ~ '^PostgreSQL [0-9.]+ ')::text
FROM pg_class WHERE oid = to_regclass($1)";

/// A PostgreSQL server, and who we are to it.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
}

impl Postgres {
    /// The server of a URL, with what the environment and `.pgpass` say.
    ///
    /// # Errors
    /// `Invalid` when the URL is none, or a certificate cannot be read.
    pub fn new(url: &str) -> Result<Self> {
        Ok(Postgres { server: Server::of_url(url)? })
    }
}

impl Engine for Postgres {
    fn connect(&self) -> Result<Box<dyn Connection>> {
        Ok(Box::new(connection::PostgresConnection::open(&self.server)?))
    }

    fn rows(
        &self,
        rows_of: &RowsOf,
        connections: Option<usize>,
    ) -> Result<(Arc<dyn TypedSource>, bool)> {
        let (rows, again) = read::PostgresRows::open(&self.server, rows_of, connections)?;
        Ok((Arc::new(rows), again))
    }

    fn methods(&self) -> &'static [Method] {
        &[
            Method::CopyBinary,
            Method::CopyText,
            Method::Unnest,
            Method::Values,
            Method::Prepared,
            Method::Insert,
            Method::InsertAutocommit,
        ]
    }

    fn priors(&self) -> Costs {
        priors::priors()
    }

    fn place(&self) -> String {
        self.server.place()
    }

    fn quotes(&self) -> Quotes {
        Quotes('"')
    }

    fn stands_for(&self, _: DataType, _: &TableColumn) -> bool {
        false
    }

    fn table_options(&self) -> &'static str {
        ""
    }

    fn columns_sql(&self, schema: &Schema) -> Result<String> {
        let column = |column: &coload_types::Column| {
            let mut sql = format!(
                "{} {}",
                self.quotes().name(&column.name),
                catalogue::type_name(column.data_type)
            );
            if let Some(default) = &column.default {
                sql.push_str(" DEFAULT ");
                sql.push_str(&default_sql(default, column.data_type));
            }
            if !column.nullable {
                sql.push_str(" NOT NULL");
            }
            sql
        };
        let columns = schema.columns().iter().map(column);
        let checks = schema.checks().iter().map(coload_ddl::Check::sql);
        Ok(columns.chain(checks).collect::<Vec<_>>().join(", "))
    }

    fn form(&self, method: Method, columns: &[TableColumn]) -> Result<Box<dyn RowForm>> {
        Ok(match method {
            Method::CopyText => Box::new(TextRows::new(columns)?),
            _ => Box::new(BinaryRows::new(columns)?),
        })
    }

    fn is_same_form(&self, one: Method, other: Method) -> bool {
        (one == Method::CopyText) == (other == Method::CopyText)
    }

    fn journal_types(&self) -> [&'static str; 4] {
        ["text", "bigint", "text", "timestamptz DEFAULT now()"]
    }

    fn parameter(&self, number: usize) -> String {
        format!("${number}")
    }

    fn whole_parameter(&self, number: usize) -> String {
        format!("CAST(${number} AS bigint)")
    }

    fn begin_sql(&self) -> &'static str {
        "BEGIN; SET CONSTRAINTS ALL IMMEDIATE"
    }

    fn begin_beside_sql(&self) -> &'static str {
        "BEGIN; SET LOCAL synchronous_commit = off; SET CONSTRAINTS ALL IMMEDIATE"
    }

    fn beside_waits(&self) -> bool {
        false
    }

    fn renew_savepoint_sql(&self) -> &'static str {
        "RELEASE SAVEPOINT coload_rows; SAVEPOINT coload_rows"
    }

    fn empty_sql(&self, table: &TableName) -> String {
        format!("TRUNCATE {}", self.quotes().table(table))
    }

    fn make_like(
        &self,
        on: &mut dyn Connection,
        (new, like): (&TableName, &TableName),
        indexes: Indexes,
    ) -> Result<()> {
        let (new, like) = (self.quotes().table(new), self.quotes().table(like));
        let but = match indexes {
            Indexes::Copied => "",
            Indexes::LeftOut => " EXCLUDING INDEXES",
        };
        on.run(&format!("CREATE TABLE {new} (LIKE {like} INCLUDING ALL{but})"), &[]).map(drop)
    }

    fn keeps_indexes(&self, on: &mut dyn Connection, table: &TableName) -> Result<Option<String>> {
        rebuild::keeps_indexes(on, &self.quotes().table(table))
    }

    fn lock_table_sql(&self, table: &TableName) -> Option<String> {
        Some(format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", self.quotes().table(table)))
    }

    fn may_freeze(&self, on: &mut dyn Connection, table: &TableName) -> Result<bool> {
        let told = on.ask(MAY_FREEZE_SQL, &[&self.quotes().table(table)])?;
        Ok(told.into_iter().flatten().flatten().next().as_deref() == Some("true"))
    }

    fn take_off(&self, on: &mut dyn Connection, table: &TableName) -> Result<TakenOff> {
        rebuild::take_off(on, &self.quotes().table(table))
    }

    fn rename_sql(&self, from: &TableName, to: &TableName) -> String {
        let quotes = self.quotes();
        format!("ALTER TABLE {} RENAME TO {}", quotes.table(from), quotes.name(&to.name))
    }

    fn current_schema_sql(&self) -> &'static str {
        "current_schema()"
    }
}

/// A default as PostgreSQL reads it: a literal, of which bytes are written as `\x` and digits.
fn default_sql(value: &coload_types::Value, data_type: DataType) -> String {
    let literal = literal_sql(value, data_type);
    match data_type {
        DataType::Binary(_) => format!("'\\x{}", literal.trim_start_matches('\'')),
        DataType::List(element) => {
            let coload_types::Value::Bytes(list) = value else { return literal };
            let mut text = Vec::new();
            write_postgres_list(list, element, &mut text);
            format!("'{}'", String::from_utf8_lossy(&text).replace('\'', "''"))
        }
        _ => literal,
    }
}
