//! SQL Server, by its protocol.

mod catalogue;
mod cells;
mod connect;
mod connection;
mod errors;
mod insert;
mod like;
mod pages;
mod priors;
mod read;
mod reader;
mod rebuild;
mod tds;
mod values;

use std::sync::Arc;

use coload_ddl::{CheckedColumn, Schema};
use coload_load::{RowBytes, TypedSource};
use coload_types::{DataType, Result};

use crate::costs::Costs;
use crate::engine::{Connection, Engine, RowForm, TableColumn};
use crate::names::{Quotes, TableName};
use crate::options::Method;
use crate::read::RowsOf;
use crate::rebuild::{Indexes, TakenOff};
use crate::row_maker::{Frame, make_rows};
use crate::url::file_name;
use cells::{CellKind, ColumnCells};
use connection::SqlServerConnection;
use tds::Login;

/// How names are quoted.
const QUOTES: Quotes = Quotes('[');
/// What a row begins with.
const ROW: u8 = 0xd1;

/// A server of SQL Server, and who we are to it.
#[derive(Debug)]
pub struct SqlServer {
    login: Login,
}

impl SqlServer {
    /// The server of a URL, with what the environment says.
    ///
    /// # Errors
    /// `Invalid` when the URL is none, or a certificate cannot be read.
    pub fn new(url: &str) -> Result<Self> {
        Ok(SqlServer { login: connect::login_of_url(url)? })
    }
}

impl Engine for SqlServer {
    fn connect(&self) -> Result<Box<dyn Connection>> {
        Ok(Box::new(SqlServerConnection::open(&self.login)?))
    }

    fn rows(
        &self,
        rows_of: &RowsOf,
        connections: Option<usize>,
    ) -> Result<(Arc<dyn TypedSource>, bool)> {
        let (rows, again) = read::SqlServerRows::open(&self.login, rows_of, connections)?;
        Ok((Arc::new(rows), again))
    }

    fn methods(&self) -> &'static [Method] {
        &[
            Method::InsertBulk,
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
        file_name("sqlserver", &self.login.host, self.login.port)
    }

    fn quotes(&self) -> Quotes {
        QUOTES
    }

    fn columns_sql(&self, schema: &Schema) -> Result<String> {
        let column = |column: &coload_types::Column| {
            let name = QUOTES.name(&column.name);
            let mut sql = format!("{name} {}", catalogue::type_name(column.data_type));
            sql.push_str(if column.nullable { " NULL" } else { " NOT NULL" });
            if let Some(default) = &column.default {
                let default = catalogue::default_sql(default, column.data_type);
                sql.push_str(&format!(" DEFAULT ({default})"));
            }
            sql
        };
        // Rules are asked by the load; their text is of the standard, which SQL Server reads otherwise.
        Ok(schema.columns().iter().map(column).collect::<Vec<_>>().join(", "))
    }

    fn stands_for(&self, loaded: DataType, column: &TableColumn) -> bool {
        // As JSON.
        matches!(loaded, DataType::List(_)) && column.data_type.is_text()
    }

    fn table_options(&self) -> &'static str {
        ""
    }

    fn form(&self, method: Method, columns: &[TableColumn]) -> Result<Box<dyn RowForm>> {
        insert::check_width(method, columns.len())?;
        Ok(Box::new(Rows::new(columns)?))
    }

    fn is_same_form(&self, _: Method, _: Method) -> bool {
        true
    }

    fn journal_types(&self) -> [&'static str; 4] {
        ["nvarchar(64)", "bigint", "nvarchar(max)", "datetime2(6) DEFAULT SYSUTCDATETIME()"]
    }

    fn parameter(&self, number: usize) -> String {
        format!("@P{number}")
    }

    fn whole_parameter(&self, number: usize) -> String {
        format!("CAST(@P{number} AS bigint)")
    }

    fn begin_sql(&self) -> &'static str {
        "BEGIN TRANSACTION"
    }

    fn renew_savepoint_sql(&self) -> &'static str {
        // The last one of a name is the one that is meant.
        "SAVE TRANSACTION coload_rows"
    }

    fn savepoint_sql(&self) -> &'static str {
        "SAVE TRANSACTION coload_rows"
    }

    fn undo_savepoint_sql(&self) -> &'static str {
        "ROLLBACK TRANSACTION coload_rows; SAVE TRANSACTION coload_rows"
    }

    fn release_savepoint_sql(&self) -> Option<&'static str> {
        None
    }

    fn rollback_sql(&self) -> &'static str {
        // A deadlock, or an error in a trigger, has ended it already.
        "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION"
    }

    fn create_missing_sql(&self) -> &'static str {
        "CREATE TABLE"
    }

    fn empty_sql(&self, table: &TableName) -> String {
        format!("TRUNCATE TABLE {}", QUOTES.table(table))
    }

    fn make_like(
        &self,
        on: &mut dyn Connection,
        tables: (&TableName, &TableName),
        indexes: Indexes,
    ) -> Result<()> {
        like::make_like(on, tables, indexes)
    }

    fn lock_table_sql(&self, table: &TableName) -> Option<String> {
        Some(format!("SELECT TOP (1) 1 FROM {} WITH (TABLOCKX, HOLDLOCK)", QUOTES.table(table)))
    }

    fn any_row_sql(&self, table: &TableName) -> String {
        format!("SELECT TOP (1) 1 FROM {}", QUOTES.table(table))
    }

    fn take_off(&self, on: &mut dyn Connection, table: &TableName) -> Result<TakenOff> {
        rebuild::take_off(on, &QUOTES.table(table))
    }

    fn rename_sql(&self, from: &TableName, to: &TableName) -> String {
        format!(
            "EXEC sp_rename {}, {}, N'OBJECT'",
            like::literal(&QUOTES.table(from)),
            like::literal(&to.name)
        )
    }

    fn current_schema_sql(&self) -> &'static str {
        "SCHEMA_NAME()"
    }
}

/// Rows as INSERT BULK has them: a byte, and the cells.
#[derive(Debug)]
struct Rows {
    cells: Vec<ColumnCells>,
    frame: Frame,
}

impl Rows {
    fn new(columns: &[TableColumn]) -> Result<Self> {
        let cell = |column: &TableColumn| {
            let kind = CellKind::of(column)?;
            Ok(ColumnCells { kind, data_type: column.data_type })
        };
        let cells = columns.iter().map(cell).collect::<Result<_>>()?;
        Ok(Rows { cells, frame: Frame { start: vec![ROW], between: b"", end: b"", null: b"\0" } })
    }
}

impl RowForm for Rows {
    fn make_rows(&self, columns: &[CheckedColumn<'_>], rows: usize) -> Result<RowBytes> {
        make_rows(&self.cells, &self.frame, columns, rows)
    }
}
