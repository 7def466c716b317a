//! MySQL and MariaDB, by their protocol.

mod catalogue;
mod connect;
mod connection;
mod errors;
mod priors;
mod read;
mod rebuild;
mod replicas;
mod rows;

use std::sync::Arc;

use coload_ddl::{Schema, literal_sql};
use coload_load::TypedSource;
use coload_types::{DataType, Result, TextForm, Value};
use mysql_async::Opts;

use crate::costs::Costs;
use crate::engine::{Connection, Engine, RowForm, TableColumn};
use crate::names::{Quotes, TableName};
use crate::options::Method;
use crate::read::RowsOf;
use crate::rebuild::{Ddl, Indexes, TakenOff};
use crate::url::file_name;
use connection::MysqlConnection;
use replicas::Replicas;
use rows::{CellRows, LineRows};

/// A MySQL or MariaDB server, and who we are to it.
#[derive(Debug)]
pub struct Mysql {
    opts: Opts,
    /// What its connections ask how far they are behind.
    replicas: Arc<Replicas>,
}

impl Mysql {
    /// The server of a URL, with what the environment and `.my.cnf` say.
    ///
    /// # Errors
    /// `Invalid` when the URL is none.
    pub fn new(url: &str) -> Result<Self> {
        Ok(Mysql { opts: connect::opts_of_url(url)?, replicas: Arc::default() })
    }
}

impl Engine for Mysql {
    fn connect(&self) -> Result<Box<dyn Connection>> {
        Ok(Box::new(MysqlConnection::open(&self.opts, &self.replicas)?))
    }

    fn rows(
        &self,
        rows_of: &RowsOf,
        connections: Option<usize>,
    ) -> Result<(Arc<dyn TypedSource>, bool)> {
        let (rows, again) = read::MysqlRows::open(&self.opts, rows_of, connections)?;
        Ok((Arc::new(rows), again))
    }

    fn methods(&self) -> &'static [Method] {
        &[
            Method::LoadData,
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
        file_name("mysql", self.opts.ip_or_hostname(), self.opts.tcp_port())
    }

    fn quotes(&self) -> Quotes {
        Quotes('`')
    }

    fn columns_sql(&self, schema: &Schema) -> Result<String> {
        let column = |column: &coload_types::Column| -> Result<String> {
            let name = self.quotes().name(&column.name);
            let mut sql =
                format!("{name} {}", catalogue::type_name(&column.name, column.data_type)?);
            sql.push_str(if column.nullable { " NULL" } else { " NOT NULL" });
            if let Some(default) = &column.default {
                sql.push_str(&format!(" DEFAULT ({})", default_sql(default, column.data_type)));
            }
            Ok(sql)
        };
        // Rules are asked by the load; their text is of the standard, which MySQL reads otherwise.
        let columns = schema.columns().iter().map(column).collect::<Result<Vec<_>>>()?;
        Ok(columns.join(", "))
    }

    fn stands_for(&self, loaded: DataType, column: &TableColumn) -> bool {
        match loaded {
            // The moment in UTC.
            DataType::TimestampTz => column.data_type == DataType::Timestamp,
            // As JSON.
            DataType::List(_) => column.data_type.is_text(),
            DataType::Uuid => {
                matches!(column.data_type, DataType::Char(36..) | DataType::Varchar(_))
            }
            _ => false,
        }
    }

    fn table_options(&self) -> &'static str {
        " ENGINE = InnoDB CHARACTER SET = utf8mb4"
    }

    fn form(&self, method: Method, columns: &[TableColumn]) -> Result<Box<dyn RowForm>> {
        Ok(match method {
            Method::LoadData => Box::new(LineRows::new(columns)?),
            _ => Box::new(CellRows::new(columns)?),
        })
    }

    fn is_same_form(&self, one: Method, other: Method) -> bool {
        (one == Method::LoadData) == (other == Method::LoadData)
    }

    fn journal_types(&self) -> [&'static str; 4] {
        [
            "varchar(64) CHARACTER SET ascii",
            "bigint",
            "longtext CHARACTER SET utf8mb4",
            "timestamp(6) DEFAULT CURRENT_TIMESTAMP(6)",
        ]
    }

    fn parameter(&self, _: usize) -> String {
        "?".to_owned()
    }

    fn whole_parameter(&self, _: usize) -> String {
        "CAST(? AS signed)".to_owned()
    }

    fn begin_sql(&self) -> &'static str {
        "START TRANSACTION"
    }

    fn renew_savepoint_sql(&self) -> &'static str {
        // One of the same name goes away.
        "SAVEPOINT coload_rows"
    }

    fn empty_sql(&self, table: &TableName) -> String {
        // TRUNCATE would commit.
        format!("DELETE FROM {}", self.quotes().table(table))
    }

    fn make_like(
        &self,
        on: &mut dyn Connection,
        (new, like): (&TableName, &TableName),
        _: Indexes,
    ) -> Result<()> {
        // With its indexes in any case: they are taken off when it is known how the server writes them.
        let quotes = self.quotes();
        let (new, like) = (quotes.table(new), quotes.table(like));
        on.run(&format!("CREATE TABLE {new} LIKE {like}"), &[])?;
        rebuild::count_on(on, &new, &like)
    }

    fn ddl(&self) -> Ddl {
        Ddl::CommitsAtOnce
    }

    fn keeps_indexes(&self, on: &mut dyn Connection, table: &TableName) -> Result<Option<String>> {
        rebuild::keeps_indexes(on, table)
    }

    fn take_off(&self, on: &mut dyn Connection, table: &TableName) -> Result<TakenOff> {
        rebuild::take_off(on, &self.quotes().table(table))
    }

    fn rename_sql(&self, from: &TableName, to: &TableName) -> String {
        format!("RENAME TABLE {} TO {}", self.quotes().table(from), self.quotes().table(to))
    }

    fn current_schema_sql(&self) -> &'static str {
        "DATABASE()"
    }
}

/// A default as MySQL reads it: a text has no escapes in the SQL mode of our connections.
fn default_sql(value: &Value, data_type: DataType) -> String {
    let literal = literal_sql(value, data_type);
    match (data_type, data_type.facts().text) {
        (DataType::Binary(_), _) => format!("X{literal}"),
        (_, TextForm::Word) => u8::from(literal.eq_ignore_ascii_case("true")).to_string(),
        _ => literal,
    }
}
