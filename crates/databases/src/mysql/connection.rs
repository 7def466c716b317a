//! A connection to MySQL or MariaDB.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coload_load::RowBytes;
use coload_types::{Error, Result};
use futures::StreamExt;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Params, Row, Value};
use tokio::runtime::{Builder, Runtime};

use super::catalogue::{COLUMNS_SQL, ENGINE_SQL, column_of};
use super::errors::{kind, load_data_refusal, place, refusal, world};
use super::replicas::Replicas;
use crate::engine::{Cell, Connection, Refusal, RowTable, TableColumn, TextCell};
use crate::names::{Quotes, TableName};
use crate::options::Method;
use crate::row_maker::cells;
use crate::watch::Others;

/// Bytes of a packet of LOAD DATA.
const PACKET_BYTES: usize = 256 << 10;
/// Most parameters of a statement.
const PARAMETERS_MAX: usize = 65_535;
/// Bytes of a statement with its parameters: a quarter of the least `max_allowed_packet` that is a default.
const STATEMENT_BYTES: usize = 1 << 20;

/// A connection.
pub struct MysqlConnection {
    pub(super) runtime: Runtime,
    pub(super) conn: Conn,
    server: String,
    round_trip: Duration,
    /// Whether the server takes LOAD DATA LOCAL.
    takes_files: bool,
    opts: Opts,
    replicas: Arc<Replicas>,
}

/// Transactions of others that wait for locks, and their statements that run. The first needs the right PROCESS.
const OTHERS_SQL: &str = "\
SELECT (SELECT COUNT(*) FROM information_schema.innodb_trx
        WHERE trx_state = 'LOCK WAIT' AND FIND_IN_SET(trx_mysql_thread_id, ?) = 0),
       (SELECT COUNT(*) FROM information_schema.processlist
        WHERE command IN ('Query', 'Execute') AND id <> CONNECTION_ID() AND FIND_IN_SET(id, ?) = 0)";

impl MysqlConnection {
    /// Connects, and sets what values mean.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached, `Refused` when it does not let us in.
    pub fn open(opts: &Opts, replicas: &Arc<Replicas>) -> Result<Self> {
        let failed = |e| Error::Unavailable(format!("cannot start the network: {e}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let connected = runtime.block_on(Conn::new(opts.clone()));
        let conn = connected.map_err(|error| match world(&error) {
            Error::Unavailable(text) => Error::Unavailable(format!("cannot connect to {text}")),
            Error::Refused(text) => Error::Refused(format!("cannot connect to {text}")),
            other => other,
        })?;
        let mut opened = MysqlConnection {
            runtime,
            conn,
            server: String::new(),
            round_trip: Duration::MAX,
            takes_files: true,
            opts: opts.clone(),
            replicas: Arc::clone(replicas),
        };
        opened.run(
            "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,\
             NO_AUTO_VALUE_ON_ZERO,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_BACKSLASH_ESCAPES'",
            &[],
        )?;
        let told = opened.ask("SELECT VERSION(), @@local_infile", &[])?;
        let mut told = told.into_iter().flatten().flatten();
        let version = told.next().unwrap_or_default();
        opened.takes_files = told.next().is_none_or(|on| on != "0");
        let name = if version.contains("MariaDB") { "" } else { "MySQL " };
        opened.server = format!("{name}{version}");
        Ok(opened)
    }

    /// Rows of LOAD DATA LOCAL, of which the server makes warnings of errors: any warning is a refusal.
    fn load_data(
        &mut self,
        table: &RowTable,
        rows: &RowBytes,
        range: Range<usize>,
    ) -> std::result::Result<(), Refusal> {
        let sql = load_data_sql(table);
        let data: Vec<std::io::Result<Bytes>> = rows
            .slice(range.clone())
            .chunks(PACKET_BYTES)
            .map(|part| Ok(Bytes::copy_from_slice(part)))
            .collect();
        let MysqlConnection { runtime, conn, .. } = self;
        let (taken, warnings) = runtime.block_on(async {
            conn.set_infile_handler(async move { Ok(futures::stream::iter(data).boxed()) });
            conn.query_drop(sql).await.map_err(|error| load_data_refusal(&error))?;
            Ok::<_, Refusal>((conn.affected_rows(), conn.get_warnings()))
        })?;
        match taken == range.len() as u64 && warnings == 0 {
            true => Ok(()),
            false => Err(self.warned(range.len(), taken)?),
        }
    }

    /// The refusal that warnings of the last statement are, which had so many rows and took so many.
    fn warned(&mut self, rows: usize, taken: u64) -> Result<Refusal> {
        let told = self.ask("SHOW WARNINGS LIMIT 1", &[])?;
        let text = told.into_iter().next().map(|row| {
            let mut cells = row.into_iter().map(Option::unwrap_or_default).skip(1);
            (cells.next().unwrap_or_default(), cells.next().unwrap_or_default())
        });
        let (code, text) = text.unwrap_or_default();
        let (row, column) = place(&text);
        let detail = text.clone();
        let reason = match (code.is_empty(), text.rsplit_once(" at row ")) {
            (true, _) => format!("the server took {taken} rows of {rows}"),
            (false, Some((what, _))) => format!("{what} ({code})"),
            (false, None) => format!("{} ({code})", kind(&text)),
        };
        Ok(Refusal::Row { row: row.filter(|row| *row < rows), column, reason, detail })
    }

    fn insert(
        &mut self,
        table: &RowTable,
        rows: &RowBytes,
        range: Range<usize>,
    ) -> std::result::Result<(), Refusal> {
        let width = table.columns.len().max(1);
        let batch = match table.method {
            Method::Values => table.batch_rows.clamp(1, (PARAMETERS_MAX / width).max(1)),
            _ => 1,
        };
        let mut at = range.start;
        while at < range.end {
            let fits = |end: &usize| rows.slice(at..*end).len() <= STATEMENT_BYTES;
            let most = range.end.min(at + batch);
            let end = (at + 1..=most).rev().find(fits).unwrap_or(at + 1);
            let parameters: Vec<Value> = (at..end)
                .flat_map(|row| cells(rows.slice(row..row + 1)))
                .map(|cell| cell.map_or(Value::NULL, |bytes| Value::Bytes(bytes.to_vec())))
                .collect();
            let sql = insert_sql(table, end - at);
            let is_kept = table.method != Method::Insert && end - at == batch;
            let MysqlConnection { runtime, conn, .. } = self;
            let ran = runtime.block_on(async {
                let statement = conn.prep(sql).await?;
                conn.exec_drop(&statement, Params::Positional(parameters)).await?;
                let told = (conn.affected_rows(), conn.get_warnings());
                if !is_kept {
                    conn.close(statement).await?;
                }
                Ok(told)
            });
            let refused = match ran {
                // What was cut is a warning, as it is to LOAD DATA; one row that is committed cannot be undone.
                Ok((taken, warnings))
                    if warnings > 0 && table.method != Method::InsertAutocommit =>
                {
                    self.warned(end - at, taken)?
                }
                Ok(_) => {
                    at = end;
                    continue;
                }
                Err(error) => refusal(&error),
            };
            let base = at - range.start;
            return Err(match refused {
                Refusal::Row { column, reason, detail, row } => {
                    let row = row.map(|row| row + base).or((end - at == 1).then_some(base));
                    Refusal::Row { row, column, reason, detail }
                }
                failed => failed,
            });
        }
        Ok(())
    }
}

fn columns_list(table: &RowTable) -> String {
    Quotes('`').list(table.columns.iter().map(|column| column.name.as_str()))
}

/// Bytes come as hexadecimal digits, for a line is text.
fn load_data_sql(table: &RowTable) -> String {
    let quotes = Quotes('`');
    let (mut fields, mut sets) = (Vec::new(), Vec::new());
    for (at, column) in table.columns.iter().enumerate() {
        let name = quotes.name(&column.name);
        match column.cell {
            Cell::Hex => {
                fields.push(format!("@c{at}"));
                sets.push(format!("{name} = UNHEX(@c{at})"));
            }
            _ => fields.push(name),
        }
    }
    let set = if sets.is_empty() { String::new() } else { format!(" SET {}", sets.join(", ")) };
    format!(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {} CHARACTER SET utf8mb4 FIELDS TERMINATED BY X'09' ESCAPED BY X'5C' \
         LINES TERMINATED BY X'0A' ({}){set}",
        quotes.table(&table.name),
        fields.join(", ")
    )
}

fn insert_sql(table: &RowTable, rows: usize) -> String {
    let row = format!("({})", vec!["?"; table.columns.len()].join(", "));
    format!(
        "INSERT INTO {} ({}) VALUES {}",
        Quotes('`').table(&table.name),
        columns_list(table),
        vec![row.as_str(); rows].join(", ")
    )
}

impl Connection for MysqlConnection {
    fn server(&self) -> String {
        self.server.clone()
    }

    fn number(&self) -> u64 {
        u64::from(self.conn.id())
    }

    fn round_trip(&self) -> Duration {
        self.round_trip
    }

    fn lacks(&self) -> Option<(Method, String)> {
        let why = "local_infile is off (SET GLOBAL local_infile = 1 turns it on)";
        (!self.takes_files).then(|| (Method::LoadData, why.to_owned()))
    }

    fn others(&mut self, own: &[u64]) -> Result<Others> {
        let own: Vec<String> = own.iter().map(u64::to_string).collect();
        let own = own.join(",");
        let rows = self.ask(OTHERS_SQL, &[&own, &own])?;
        let cell = |at: usize| rows.first().and_then(|row| row.get(at)?.as_ref()?.parse().ok());
        let (waiting, active) = (cell(0), cell(1));
        let (opts, replicas) = (self.opts.clone(), Arc::clone(&self.replicas));
        Ok(Others { waiting, active, lag_s: replicas.lag_s(&opts, self) })
    }

    fn run(&mut self, sql: &str, parameters: &[&str]) -> Result<u64> {
        let began = Instant::now();
        let MysqlConnection { runtime, conn, .. } = self;
        let ran = runtime.block_on(async {
            match parameters.is_empty() {
                true => conn.query_drop(sql).await?,
                false => conn.exec_drop(sql, texts(parameters)).await?,
            }
            Ok(conn.affected_rows())
        });
        self.round_trip = self.round_trip.min(began.elapsed());
        ran.map_err(|error| world(&error))
    }

    fn ask(&mut self, sql: &str, parameters: &[&str]) -> Result<Vec<Vec<TextCell>>> {
        let began = Instant::now();
        let MysqlConnection { runtime, conn, .. } = self;
        let asked: mysql_async::Result<Vec<Row>> = runtime.block_on(async {
            match parameters.is_empty() {
                true => conn.query(sql).await,
                false => conn.exec(sql, texts(parameters)).await,
            }
        });
        self.round_trip = self.round_trip.min(began.elapsed());
        let rows = asked.map_err(|error| world(&error))?;
        let text = |value: Value| match value {
            Value::NULL => None,
            Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Value::Int(number) => Some(number.to_string()),
            Value::UInt(number) => Some(number.to_string()),
            other => Some(other.as_sql(true).trim_matches('\'').to_owned()),
        };
        Ok(rows.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect())
    }

    fn describe(&mut self, table: &TableName) -> Result<Option<Vec<TableColumn>>> {
        // A parameter that is NULL needs no text.
        let sql = |sql: &str| match table.schema {
            Some(_) => sql.to_owned(),
            None => sql.replacen("COALESCE(?, DATABASE())", "DATABASE()", 1),
        };
        let parameters: Vec<&str> =
            table.schema.as_deref().into_iter().chain([table.name.as_str()]).collect();
        let rows = self.ask(&sql(COLUMNS_SQL), &parameters)?;
        if rows.is_empty() {
            return Ok(None);
        }
        let engine = self.ask(&sql(ENGINE_SQL), &parameters)?;
        let engine = engine.into_iter().flatten().flatten().next().unwrap_or_default();
        if !matches!(engine.as_str(), "InnoDB" | "RocksDB" | "ROCKSDB" | "ndbcluster" | "") {
            return Err(Error::Invalid(format!(
                "table {table} is of the storage engine {engine}, which has no transactions: a load that fails would leave \
                 some of its rows (ALTER TABLE ... ENGINE = InnoDB)"
            )));
        }
        let column = |row: &Vec<TextCell>| {
            column_of(row).ok_or_else(|| Error::Refused(format!("the columns of {table}: {row:?}")))
        };
        rows.iter().map(column).collect::<Result<_>>().map(Some)
    }

    fn lock(&mut self, name: &str) -> Result<bool> {
        let rows = self.ask("SELECT GET_LOCK(?, 0)", &[name])?;
        Ok(rows.into_iter().flatten().flatten().next().as_deref() == Some("1"))
    }

    fn send(
        &mut self,
        table: &RowTable,
        rows: &RowBytes,
        range: Range<usize>,
    ) -> std::result::Result<(), Refusal> {
        match table.method {
            Method::LoadData => self.load_data(table, rows, range),
            _ => self.insert(table, rows, range),
        }
    }
}

fn texts(parameters: &[&str]) -> Params {
    let value = |text: &&str| Value::Bytes(text.as_bytes().to_vec());
    Params::Positional(parameters.iter().map(value).collect())
}
