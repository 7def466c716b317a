//! What an engine is to a load: connections, types, and the form of its rows.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use coload_ddl::{CheckedColumn, Schema};
use coload_load::{RowBytes, TypedSource};
use coload_types::{DataType, Error, Result};

use crate::costs::Costs;
use crate::names::{Quotes, TableName};
use crate::options::Method;
use crate::read::RowsOf;
use crate::rebuild::{Ddl, Indexes, TakenOff};
use crate::watch::Others;

/// A database engine at a place.
pub trait Engine: Debug + Send + Sync {
    /// Opens a connection.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached, `Refused` when it does not let us in.
    fn connect(&self) -> Result<Box<dyn Connection>>;

    /// The rows of a table or a query, of one snapshot, and whether they can be read again. Over so many connections at
    /// most, if somebody says so.
    ///
    /// # Errors
    /// `Invalid` when there is no such table, or the query answers no rows; as [`Self::connect`].
    fn rows(
        &self,
        rows_of: &RowsOf,
        connections: Option<usize>,
    ) -> Result<(Arc<dyn TypedSource>, bool)>;

    /// Methods that it has, the best for many rows first.
    fn methods(&self) -> &'static [Method];

    /// What loads cost on such a server, as it was measured on one.
    fn priors(&self) -> Costs;

    /// Where the server is, as a name for a file: engine, host, port.
    fn place(&self) -> String;

    /// How names are quoted.
    fn quotes(&self) -> Quotes;

    /// The columns of a table that has this schema, as `CREATE TABLE` has them between its parentheses.
    ///
    /// # Errors
    /// `Invalid` when a column is of a type that the engine does not hold.
    fn columns_sql(&self, schema: &Schema) -> Result<String>;

    /// Whether values of a type go into a column of another one as they are, as the engine has no such type.
    fn stands_for(&self, loaded: DataType, column: &TableColumn) -> bool;

    /// What follows these columns.
    fn table_options(&self) -> &'static str;

    /// The form in which a method sends rows of these columns.
    ///
    /// # Errors
    /// `Invalid` when it does not take a column.
    fn form(&self, method: Method, columns: &[TableColumn]) -> Result<Box<dyn RowForm>>;

    /// Whether rows of these methods have the same form.
    fn is_same_form(&self, one: Method, other: Method) -> bool;

    /// Types of a text that is a key, of a whole number, of any text, and of a moment that is now by default.
    fn journal_types(&self) -> [&'static str; 4];

    /// A parameter of a statement, by its number from 1 on.
    fn parameter(&self, number: usize) -> String;

    /// The same, whose text is a whole number.
    fn whole_parameter(&self, number: usize) -> String;

    /// The statements that begin a transaction in which each row is checked when it comes.
    fn begin_sql(&self) -> &'static str;

    /// The statements that begin one of a chunk of a table beside the table. Nobody waits for its commit to be durable, where
    /// the engine can do so: the last one is, which makes the rows those of the table, and all before it with it.
    fn begin_beside_sql(&self) -> &'static str {
        self.begin_sql()
    }

    /// Whether a commit of such a transaction waits until it is durable all the same.
    fn beside_waits(&self) -> bool {
        true
    }

    /// The statements that put a savepoint `coload_rows` in place of the one that is open.
    fn renew_savepoint_sql(&self) -> &'static str;

    /// The statement that puts that savepoint.
    fn savepoint_sql(&self) -> &'static str {
        "SAVEPOINT coload_rows"
    }

    /// The statements that undo what was done since, and leave it open.
    fn undo_savepoint_sql(&self) -> &'static str {
        "ROLLBACK TO SAVEPOINT coload_rows"
    }

    /// The statement that forgets it, where there is one.
    fn release_savepoint_sql(&self) -> Option<&'static str> {
        Some("RELEASE SAVEPOINT coload_rows")
    }

    /// The statement that undoes the transaction, if the server has not done so by itself.
    fn rollback_sql(&self) -> &'static str {
        "ROLLBACK"
    }

    /// How a statement begins that makes a table, if it is not there where the engine can say so; its name follows.
    fn create_missing_sql(&self) -> &'static str {
        "CREATE TABLE IF NOT EXISTS"
    }

    /// The statement that takes all rows out of a table, within a transaction.
    fn empty_sql(&self, table: &TableName) -> String;

    /// Makes a table as another is, with its rules, and its indexes if they are wanted.
    ///
    /// # Errors
    /// What the server says.
    fn make_like(
        &self,
        on: &mut dyn Connection,
        new_and_like: (&TableName, &TableName),
        indexes: Indexes,
    ) -> Result<()>;

    /// What becomes of statements that make and alter tables.
    fn ddl(&self) -> Ddl {
        Ddl::InTransactions
    }

    /// Why nothing may be taken off a table, if so.
    ///
    /// # Errors
    /// What the server says.
    fn keeps_indexes(
        &self,
        _on: &mut dyn Connection,
        _table: &TableName,
    ) -> Result<Option<String>> {
        Ok(None)
    }

    /// The statement by which others wait for the end of the transaction before they read or write a table.
    fn lock_table_sql(&self, _table: &TableName) -> Option<String> {
        None
    }

    /// The query that answers a row if a table has any.
    fn any_row_sql(&self, table: &TableName) -> String {
        format!("SELECT 'y' FROM {} LIMIT 1", self.quotes().table(table))
    }

    /// Takes indexes and constraints off a table: of one that others see, in the transaction that is open.
    ///
    /// # Errors
    /// What the server says.
    fn take_off(&self, on: &mut dyn Connection, table: &TableName) -> Result<TakenOff>;

    /// Whether rows of a table that the open transaction made or emptied may come frozen (COPY FREEZE), which no row is
    /// that is refused with others.
    ///
    /// # Errors
    /// What the server says.
    fn may_freeze(&self, _on: &mut dyn Connection, _table: &TableName) -> Result<bool> {
        Ok(false)
    }

    /// The statement that gives a table another name, in the same schema.
    fn rename_sql(&self, from: &TableName, to: &TableName) -> String;

    /// The name of the schema in which tables are made that name none, in SQL.
    fn current_schema_sql(&self) -> &'static str;
}

/// Makes rows in the form that a method sends.
pub trait RowForm: Debug + Send + Sync {
    /// Makes the rows of a fragment, of its columns in the order of the table.
    ///
    /// # Errors
    /// `Limit` when a row is larger than the engine takes.
    fn make_rows(&self, columns: &[CheckedColumn<'_>], rows: usize) -> Result<RowBytes>;
}

/// A table into which rows go.
#[derive(Debug, Clone)]
pub struct RowTable {
    /// Its name.
    pub name: TableName,
    /// Columns that are loaded, in the order of the rows' cells.
    pub columns: Vec<TableColumn>,
    /// How rows are sent.
    pub method: Method,
    /// Rows of a statement, of methods that have batches.
    pub batch_rows: usize,
    /// Whether rows come frozen: the transaction that is open made the table or emptied it, and has no savepoints.
    pub freezes: bool,
}

/// Why rows were not taken.
#[derive(Debug)]
pub enum Refusal {
    /// A row is at fault; all rows of the call are not there.
    Row {
        /// Its number in the call, if the server says it.
        row: Option<usize>,
        /// The column, if the server says it.
        column: Option<String>,
        /// What the server says, with its code: the same for all rows of a kind.
        reason: String,
        /// What it says of this row.
        detail: String,
    },
    /// No row is: the load ends, or tries again.
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Failed(error)
    }
}

/// A cell of an answer; `None` is NULL.
pub type TextCell = Option<String>;

/// A connection. Called by one thread at a time; each call returns when the server has answered.
pub trait Connection: Send {
    /// The engine and its version, as the server says it.
    fn server(&self) -> String;

    /// The number by which the server knows it.
    fn number(&self) -> u64;

    /// The least time in which the server has answered.
    fn round_trip(&self) -> Duration;

    /// A method that the server does not take, and what to do for it.
    fn lacks(&self) -> Option<(Method, String)> {
        None
    }

    /// What sessions do that have none of these numbers.
    ///
    /// # Errors
    /// As [`Self::run`].
    fn others(&mut self, own: &[u64]) -> Result<Others>;

    /// Runs a statement, whose parameters are texts.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost, `Refused` with what the server says.
    fn run(&mut self, sql: &str, parameters: &[&str]) -> Result<u64>;

    /// Runs a query whose answers are texts.
    ///
    /// # Errors
    /// As [`Self::run`].
    fn ask(&mut self, sql: &str, parameters: &[&str]) -> Result<Vec<Vec<TextCell>>>;

    /// The columns of a table; `None` when there is none.
    ///
    /// # Errors
    /// As [`Self::run`].
    fn describe(&mut self, table: &TableName) -> Result<Option<Vec<TableColumn>>>;

    /// Takes a lock of a name, which lasts as long as the connection; whether nobody had it.
    ///
    /// # Errors
    /// As [`Self::run`].
    fn lock(&mut self, name: &str) -> Result<bool>;

    /// Whether the server ended the transaction by itself, at the last row that it refused.
    fn has_lost_transaction(&self) -> bool {
        false
    }

    /// Sends some of the rows, within the transaction that is open if there is one.
    ///
    /// # Errors
    /// Why they were not taken.
    fn send(
        &mut self,
        table: &RowTable,
        rows: &RowBytes,
        range: Range<usize>,
    ) -> std::result::Result<(), Refusal>;
}

/// A column of a table of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// Name, as the catalogue has it.
    pub name: String,
    /// Type, as the engine writes it.
    pub type_name: String,
    /// What is read for it.
    pub data_type: DataType,
    /// How a value becomes the engine's.
    pub cell: Cell,
    /// Whether NULL may stand in it.
    pub nullable: bool,
    /// Whether the engine gives it a value that none may be given for.
    pub is_generated: bool,
    /// Whether the engine gives it a value where none is given.
    pub has_default: bool,
    /// Number of its type in the catalogue; 0 where types have none.
    pub type_number: u32,
    /// Number of the type of arrays of it; 0 where there is none.
    pub array_number: u32,
}

/// How a value becomes the engine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// As its type of Coload says.
    OfType,
    /// Text of JSON, which PostgreSQL's jsonb has behind a version.
    Jsonb,
    /// Text that only the server can read: the method must send text.
    TextOnly,
    /// The server rounds values without a word: nothing is loaded into such a column.
    Rounds,
    /// Bytes as hexadecimal digits, which a statement makes bytes of (MySQL).
    Hex,
}

impl TableColumn {
    /// Why its values do not go in the binary form of a row.
    pub fn text_only(&self) -> Error {
        Error::Invalid(format!(
            "column {} is of type {}, which only goes as text (--method copy-text)",
            self.name, self.type_name
        ))
    }

    /// Why nothing is loaded into a column whose values the server rounds.
    pub fn rounds(&self) -> Error {
        Error::Invalid(format!(
            "column {} is of type {}, of which the server rounds or cuts values without a word: nothing is loaded into it \
             (give it a type that has all digits)",
            self.name, self.type_name
        ))
    }
}
