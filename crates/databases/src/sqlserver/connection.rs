//! A connection to SQL Server.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use coload_load::RowBytes;
use coload_types::{Error, Result};

use super::QUOTES;
use super::catalogue::{COLUMNS_SQL, column_of};
use super::errors::{refusal, world};
use super::insert::{
    Hints, PARAMETERS_MAX, VALUES_ROWS_MAX, bulk_columns, bulk_sql, declared, insert_sql, kinds,
    put_parameters,
};
use super::tds::{
    Counts, LEFT_OUT, Login, Procedure, ServerError, Session, Token, put_numbered_name,
    put_text_value,
};
use super::values::text_of_value;
use crate::engine::{Connection, Refusal, RowTable, TableColumn, TextCell};
use crate::names::TableName;
use crate::options::Method;
use crate::row_maker::refused;
use crate::staging::PREFIX;
use crate::watch::Others;

/// What a session means by its values and errors: an error ends its statement and leaves the transaction, strings are not
/// cut without a word, names are in brackets or double quotes. The language of a login says how texts become days, days
/// become texts, and what errors are told in, which we read.
const SESSION_SQL: &str = "\
SET ANSI_NULLS ON; SET ANSI_PADDING ON; SET ANSI_WARNINGS ON; SET ARITHABORT ON; SET CONCAT_NULL_YIELDS_NULL ON; \
SET QUOTED_IDENTIFIER ON; SET XACT_ABORT OFF; SET IMPLICIT_TRANSACTIONS OFF; SET NOCOUNT OFF; SET TEXTSIZE 2147483647; \
SET LANGUAGE us_english";
const SERVER_SQL: &str = "SELECT CAST(@@VERSION AS nvarchar(300)), CAST(@@SPID AS nvarchar(20))";
/// Triggers of a table.
const TRIGGERS_SQL: &str =
    "SELECT CAST(COUNT(*) AS int) FROM sys.triggers WHERE parent_id = OBJECT_ID(@P1)";
/// Indexes of a table: into one without, many may load under locks of it.
const INDEXES_SQL: &str = "SELECT CAST(COUNT(*) AS int) FROM sys.indexes WHERE object_id = OBJECT_ID(@P1) AND index_id > 0";
/// Requests of others that wait for somebody, and that run. Who may not see them sees none.
const OTHERS_SQL: &str = "\
SELECT CAST(COUNT(CASE WHEN blocking_session_id <> 0 THEN 1 END) AS int), CAST(COUNT(*) AS int) FROM sys.dm_exec_requests \
WHERE session_id > 50 AND session_id <> @@SPID AND @P1 NOT LIKE '%,' + CAST(session_id AS varchar(11)) + ',%' \
AND status IN ('running', 'runnable', 'suspended')";
const LOCK_SQL: &str = "\
DECLARE @got int; EXEC @got = sp_getapplock @Resource = @P1, @LockMode = 'Exclusive', @LockOwner = 'Session', \
@LockTimeout = 0; SELECT @got";
/// Most bytes of an answer to what the load asks for itself: lines of a journal, mostly.
const ANSWER_MAX: u64 = 256 << 20;

/// A connection.
pub struct SqlServerConnection {
    pub(super) session: Session,
    server: String,
    number: u64,
    round_trip: Duration,
    /// Handles of statements that were prepared.
    prepared: HashMap<String, i32>,
    /// With which words INSERT BULK goes into tables.
    hints: HashMap<String, Hints>,
    /// Whether it is PostgreSQL that speaks as SQL Server does, and knows not all of its words.
    is_babelfish: bool,
}

impl SqlServerConnection {
    /// Connects, and sets what values mean.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached, `Refused` when it does not let us in.
    pub fn open(login: &Login) -> Result<Self> {
        let session = Session::open(login, world).map_err(|error| match error {
            Error::Refused(text) => Error::Refused(format!("cannot connect to {text}")),
            other => other,
        })?;
        let mut opened = SqlServerConnection {
            session,
            server: String::new(),
            number: 0,
            round_trip: Duration::MAX,
            prepared: HashMap::new(),
            hints: HashMap::new(),
            is_babelfish: false,
        };
        opened.run(SESSION_SQL, &[])?;
        let told = opened.ask(SERVER_SQL, &[])?;
        let mut told = told.into_iter().flatten().flatten();
        let version = told.next().unwrap_or_default();
        opened.is_babelfish = version.contains("Babelfish");
        let first = version.split(['\n', '\r']).next().unwrap_or_default().trim();
        opened.server = match first.contains("SQL Server") {
            true => first.to_owned(),
            false => format!("SQL Server {first}"),
        };
        opened.number = told.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        Ok(opened)
    }

    /// Sends a statement whose parameters are texts.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost.
    pub(super) fn send_sql(&mut self, sql: &str, parameters: &[&str]) -> Result<()> {
        if parameters.is_empty() {
            return self.session.send_batch(sql);
        }
        let collation = self.session.collation();
        let (mut declared, mut values) = (Vec::new(), Vec::new());
        for (number, text) in parameters.iter().enumerate() {
            // As short as it is, so that indexes are used.
            let long = text.encode_utf16().nth(4000).is_some();
            let of = if long { "nvarchar(max)" } else { "nvarchar(4000)" };
            declared.push(format!("@P{} {of}", number + 1));
            put_numbered_name(number + 1, &mut values);
            values.push(0);
            put_text_value(text, collation, &mut values);
        }
        self.session.send_sql(sql, &declared.join(","), &values)
    }

    /// Reads an answer without rows; an error is a refusal.
    fn taken(&mut self) -> std::result::Result<Counts, Refusal> {
        match self.session.read_all()? {
            (_, Some(error)) => Err(refusal(&error)),
            (counts, None) => Ok(counts),
        }
    }

    /// With which words INSERT BULK goes into a table.
    fn hints(&mut self, table: &TableName) -> Result<Hints> {
        let name = QUOTES.table(table);
        if let Some(hints) = self.hints.get(&name) {
            return Ok(*hints);
        }
        let hints = match self.is_babelfish {
            true => Hints { locks: false, fires: self.count(TRIGGERS_SQL, &name)? != 0 },
            false => Hints {
                locks: table.name.starts_with(PREFIX) && self.count(INDEXES_SQL, &name)? == 0,
                fires: true,
            },
        };
        self.hints.insert(name, hints);
        Ok(hints)
    }

    fn count(&mut self, sql: &str, table: &str) -> Result<u64> {
        let told = self.ask(sql, &[table])?;
        let count = told.into_iter().flatten().flatten().next().and_then(|c| c.parse().ok());
        count.ok_or_else(|| Error::Refused(format!("SQL Server does not tell about {table}")))
    }

    fn bulk(
        &mut self,
        table: &RowTable,
        (rows, range): (&RowBytes, Range<usize>),
    ) -> std::result::Result<(), Refusal> {
        let kinds = kinds(table)?;
        let hints = self.hints(&table.name)?;
        self.session.send_batch(&bulk_sql(table, &kinds, hints))?;
        if let (_, Some(error)) = self.session.read_all()? {
            // No row was sent.
            return Err(Refusal::Failed(world(&error)));
        }
        let columns = bulk_columns(table, &kinds, self.session.collation());
        let count = range.len() as u64;
        self.session.send_bulk(&columns, rows.slice(range))?;
        // Triggers count, too, but only within.
        match self.taken()?.of_batch {
            Some(taken) if taken != count => Err(left_out(taken, count)),
            _ if self.session.has_left_out() => Err(left_out(0, count)),
            _ => Ok(()),
        }
    }

    fn insert(
        &mut self,
        table: &RowTable,
        (rows, range): (&RowBytes, Range<usize>),
    ) -> std::result::Result<(), Refusal> {
        let kinds = kinds(table)?;
        let batch = match table.method {
            Method::Values => {
                let most = (PARAMETERS_MAX / kinds.len().max(1)).clamp(1, VALUES_ROWS_MAX);
                table.batch_rows.clamp(1, most)
            }
            _ => 1,
        };
        let mut statement = Statement::default();
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at + batch);
            if statement.rows != end - at {
                statement = Statement {
                    rows: end - at,
                    sql: insert_sql(table, end - at),
                    declared: declared(&kinds, end - at),
                };
            }
            let prepares = table.method == Method::Prepared;
            let mut parameters = Vec::new();
            let collation = self.session.collation();
            put_parameters(&kinds, (rows, at..end), collation, !prepares, &mut parameters)?;
            match prepares {
                true => {
                    let handle = self.handle(&statement)?;
                    self.session.send_prepared(Procedure::Execute, handle, &parameters)?;
                }
                false => {
                    self.session.send_sql(&statement.sql, &statement.declared, &parameters)?;
                }
            }
            let ran = self.taken().and_then(|_| match self.session.has_left_out() {
                true => Err(left_out(0, (end - at) as u64)),
                false => Ok(()),
            });
            let base = at - range.start;
            ran.map_err(|refusal| match refusal {
                Refusal::Row { row, column, reason, detail } => {
                    let row = row.map(|row| row + base).or((end - at == 1).then_some(base));
                    Refusal::Row { row, column, reason, detail }
                }
                failed => failed,
            })?;
            at = end;
        }
        Ok(())
    }

    /// The handle of a statement, which is prepared the first time.
    fn handle(&mut self, statement: &Statement) -> Result<i32> {
        if let Some(handle) = self.prepared.get(&statement.sql) {
            return Ok(*handle);
        }
        // Those of tables before are of no use any more.
        let old: Vec<i32> = self.prepared.drain().map(|(_, handle)| handle).collect();
        for handle in old {
            self.session.send_prepared(Procedure::Unprepare, handle, &[])?;
            self.session.read_all()?;
        }
        self.session.send_prepare(&statement.sql, &statement.declared)?;
        let (mut given, mut failed): (Option<i32>, Option<ServerError>) = (None, None);
        loop {
            match self.session.next()? {
                Token::Returned(handle) => given = given.or(handle),
                Token::Error(error) => error.keep(&mut failed),
                Token::End => break,
                Token::Columns(_) | Token::Done(_) => {}
                Token::Row => return Err(Error::Corrupt("rows of a preparation".into())),
            }
        }
        if let Some(error) = failed {
            return Err(world(&error));
        }
        let handle = given.ok_or_else(|| Error::Refused("SQL Server: no handle".into()))?;
        self.prepared.insert(statement.sql.clone(), handle);
        Ok(handle)
    }
}

fn too_long() -> Error {
    Error::Limit(format!(
        "SQL Server: an answer of more than {ANSWER_MAX} bytes to a question of the load"
    ))
}

/// INSERT of some rows.
#[derive(Default)]
struct Statement {
    rows: usize,
    sql: String,
    declared: String,
}

/// The server took fewer rows than it was sent, and called it no error.
fn left_out(taken: u64, sent: u64) -> Refusal {
    Refusal::Row {
        row: None,
        column: None,
        reason: format!("the server left it out without an error ({LEFT_OUT})"),
        detail: format!("{taken} rows of {sent} were taken"),
    }
}

impl Connection for SqlServerConnection {
    fn server(&self) -> String {
        self.server.clone()
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn round_trip(&self) -> Duration {
        self.round_trip
    }

    fn others(&mut self, own: &[u64]) -> Result<Others> {
        let own: Vec<String> = own.iter().map(u64::to_string).collect();
        let rows = self.ask(OTHERS_SQL, &[&format!(",{},", own.join(","))])?;
        let cell = |at: usize| rows.first().and_then(|row| row.get(at)?.as_ref()?.parse().ok());
        // Replicas are told only to administrators, in tables that not every edition has.
        Ok(Others { waiting: cell(0), active: cell(1), lag_s: None })
    }

    fn run(&mut self, sql: &str, parameters: &[&str]) -> Result<u64> {
        let began = Instant::now();
        self.send_sql(sql, parameters)?;
        let (counts, error) = self.session.read_all()?;
        self.round_trip = self.round_trip.min(began.elapsed());
        match error {
            Some(error) => Err(world(&error)),
            None => Ok(counts.last.unwrap_or(0)),
        }
    }

    fn ask(&mut self, sql: &str, parameters: &[&str]) -> Result<Vec<Vec<TextCell>>> {
        let began = Instant::now();
        self.send_sql(sql, parameters)?;
        let (mut columns, mut rows, mut failed) = (Vec::new(), Vec::new(), None);
        let (mut value, mut left) = (Vec::new(), ANSWER_MAX);
        loop {
            match self.session.next()? {
                Token::Columns(found) => columns = found,
                Token::Row => {
                    let mut row = Vec::with_capacity(columns.len());
                    for (at, column) in columns.iter().enumerate() {
                        let given = self.session.value(&column.type_info, at, (&mut value, left));
                        let is_given = given.map_err(|error| match error {
                            Error::Limit(_) => too_long(),
                            other => other,
                        })?;
                        let cell = is_given.then(|| text_of_value(&column.type_info, &value));
                        let bytes = size_of::<TextCell>() + cell.as_ref().map_or(0, String::len);
                        left = left.checked_sub(bytes as u64).ok_or_else(too_long)?;
                        row.push(cell);
                    }
                    left =
                        left.checked_sub(size_of::<Vec<TextCell>>() as u64).ok_or_else(too_long)?;
                    rows.push(row);
                }
                Token::Error(error) => error.keep(&mut failed),
                Token::Done(_) | Token::Returned(_) => {}
                Token::End => break,
            }
        }
        self.round_trip = self.round_trip.min(began.elapsed());
        match failed {
            Some(error) => Err(world(&error)),
            None => Ok(rows),
        }
    }

    fn describe(&mut self, table: &TableName) -> Result<Option<Vec<TableColumn>>> {
        let rows = self.ask(COLUMNS_SQL, &[&QUOTES.table(table)])?;
        if rows.is_empty() {
            return Ok(None);
        }
        let column = |row: &Vec<TextCell>| {
            column_of(row).ok_or_else(|| Error::Refused(format!("the columns of {table}: {row:?}")))
        };
        rows.iter().map(column).collect::<Result<_>>().map(Some)
    }

    fn lock(&mut self, name: &str) -> Result<bool> {
        let rows = self.ask(LOCK_SQL, &[name])?;
        let got = rows.into_iter().flatten().flatten().next();
        Ok(got.and_then(|got| got.parse::<i32>().ok()).is_some_and(|got| got >= 0))
    }

    fn has_lost_transaction(&self) -> bool {
        !self.session.is_in_transaction()
    }

    fn send(
        &mut self,
        table: &RowTable,
        rows: &RowBytes,
        range: Range<usize>,
    ) -> std::result::Result<(), Refusal> {
        for row in range.clone() {
            if let Some((column, reason, detail)) = refused(rows.slice(row..row + 1)) {
                let column = table.columns.get(column).map(|column| column.name.clone());
                return Err(Refusal::Row { row: Some(row - range.start), column, reason, detail });
            }
        }
        match table.method {
            Method::InsertBulk => self.bulk(table, (rows, range)),
            _ => self.insert(table, (rows, range)),
        }
    }
}
