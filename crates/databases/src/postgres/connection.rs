//! A connection to PostgreSQL.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coload_load::RowBytes;
use coload_types::{Error, Result};
use futures::SinkExt;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, CopyInSink, NoTls, SimpleQueryMessage, Statement};

use super::catalogue::{COLUMNS_SQL, column_of};
use super::connect::Server;
use super::insert;
use crate::engine::{Connection, Refusal, RowTable, TableColumn, TextCell};
use crate::names::{Quotes, TableName};
use crate::options::Method;
use crate::tls::is_of_tls;
use crate::watch::Others;

/// Bytes of a message of COPY: the server keeps a message whole.
const COPY_BYTES: usize = 256 << 10;
/// What COPY in binary begins with: a signature, and no flags.
const COPY_HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What it ends with.
const COPY_END: &[u8] = &[0xff, 0xff];

/// Sessions that wait for ours, statements of others, and seconds that replicas are behind; who may not read the last has NULL.
const OTHERS_SQL: &str = "\
WITH own AS (SELECT coalesce(string_to_array(nullif($1, ''), ',')::int[], '{}') AS pids)
SELECT count(*) FILTER (WHERE wait_event_type = 'Lock' AND pg_blocking_pids(pid) && own.pids)::text,
       count(*) FILTER (WHERE state = 'active' AND backend_type = 'client backend')::text,
       (SELECT max(extract(epoch FROM replay_lag))::float8::text FROM pg_stat_replication)
FROM pg_stat_activity, own WHERE pid <> ALL (own.pids) AND pid <> pg_backend_pid()";

/// A connection, which is driven while somebody waits for an answer.
pub struct PostgresConnection {
    pub(super) runtime: Runtime,
    pub(super) client: Client,
    /// Statements that were prepared, by their text.
    pub(super) prepared: HashMap<String, Statement>,
    server: String,
    number: u64,
    round_trip: Duration,
}

impl PostgresConnection {
    /// Connects, and sets what values mean.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached, `Refused` when it does not let us in.
    pub fn open(server: &Server) -> Result<Self> {
        let failed = |e| Error::Unavailable(format!("cannot start the network: {e}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let client = runtime.block_on(async {
            let is_local = server
                .config
                .get_hosts()
                .iter()
                .all(|host| matches!(host, tokio_postgres::config::Host::Unix(_)));
            if is_local {
                let (client, connection) =
                    server.config.connect(NoTls).await.map_err(connect_error)?;
                tokio::spawn(connection);
                return Ok(client);
            }
            let connected = server.config.connect(server.tls.clone()).await;
            let (client, connection) = connected.map_err(connect_error)?;
            tokio::spawn(connection);
            Ok::<_, Error>(client)
        })?;
        let began = Instant::now();
        // What text says must not depend on who logs in. All in one round trip.
        let messages = runtime.block_on(client.simple_query(
            "SET client_encoding = 'UTF8'; SET DateStyle = 'ISO, YMD'; SET TimeZone = 'UTC'; \
             SET IntervalStyle = 'postgres'; SET standard_conforming_strings = on; \
             SET client_min_messages = warning; SET synchronous_commit = on; \
             SELECT current_setting('server_version'), pg_backend_pid()",
        ));
        let messages = messages.map_err(|error| world(&error))?;
        let cells = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some((row.get(0)?.to_owned(), row.get(1)?.to_owned())),
            _ => None,
        });
        let (version, number) = cells.unwrap_or_default();
        Ok(PostgresConnection {
            runtime,
            client,
            prepared: HashMap::new(),
            server: format!("PostgreSQL {version}"),
            number: number.parse().unwrap_or_default(),
            round_trip: began.elapsed(),
        })
    }

    fn copy(
        &mut self,
        table: &RowTable,
        rows: &RowBytes,
        range: Range<usize>,
    ) -> std::result::Result<(), Refusal> {
        let quotes = Quotes('"');
        let is_binary = table.method == Method::CopyBinary;
        let sql = format!(
            "COPY {} ({}) FROM STDIN (FORMAT {}{})",
            quotes.table(&table.name),
            quotes.list(table.columns.iter().map(|column| column.name.as_str())),
            if is_binary { "binary" } else { "text" },
            if table.freezes { ", FREEZE" } else { "" },
        );
        let statement = insert::prepare(self, sql)?;
        let PostgresConnection { runtime, client, .. } = self;
        let sent = runtime.block_on(async {
            let sink: CopyInSink<Bytes> = client.copy_in(&statement).await?;
            let mut sink = std::pin::pin!(sink);
            if is_binary {
                sink.send(Bytes::from_static(COPY_HEAD)).await?;
            }
            for part in rows.slice(range.clone()).chunks(COPY_BYTES) {
                sink.feed(Bytes::copy_from_slice(part)).await?;
            }
            if is_binary {
                sink.feed(Bytes::from_static(COPY_END)).await?;
            }
            sink.finish().await
        });
        let count = sent.map_err(|error| refusal(&error))?;
        match count == range.len() as u64 {
            true => Ok(()),
            // A trigger, or a rule, may leave rows out.
            false => Err(Error::Refused(format!(
                "{} took {count} rows of {} (a trigger leaves rows out?); nothing was loaded",
                table.name,
                range.len()
            ))
            .into()),
        }
    }
}

impl Connection for PostgresConnection {
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
        let rows = self.ask(OTHERS_SQL, &[&own.join(",")])?;
        let cell = |at: usize| rows.first().and_then(|row| row.get(at)?.as_deref());
        Ok(Others {
            waiting: cell(0).and_then(|text| text.parse().ok()),
            active: cell(1).and_then(|text| text.parse().ok()),
            lag_s: cell(2).and_then(|text| text.parse().ok()),
        })
    }

    fn run(&mut self, sql: &str, parameters: &[&str]) -> Result<u64> {
        let began = Instant::now();
        let PostgresConnection { runtime, client, .. } = self;
        let ran = runtime.block_on(async {
            if !parameters.is_empty() {
                let typed = parameters.iter().map(|text| (text, Type::TEXT));
                return client.execute_typed(sql, &as_parameters(&typed.collect::<Vec<_>>())).await;
            }
            let messages = client.simple_query(sql).await?;
            let last = messages.iter().rev().find_map(|message| match message {
                SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
                _ => None,
            });
            Ok(last.unwrap_or(0))
        });
        self.round_trip = self.round_trip.min(began.elapsed());
        ran.map_err(|error| world(&error))
    }

    fn ask(&mut self, sql: &str, parameters: &[&str]) -> Result<Vec<Vec<TextCell>>> {
        let began = Instant::now();
        let PostgresConnection { runtime, client, .. } = self;
        let typed: Vec<_> = parameters.iter().map(|text| (text, Type::TEXT)).collect();
        let asked = runtime.block_on(client.query_typed(sql, &as_parameters(&typed)));
        self.round_trip = self.round_trip.min(began.elapsed());
        let rows = asked.map_err(|error| world(&error))?;
        let cells = |row: &tokio_postgres::Row| -> Result<Vec<TextCell>> {
            let cell = |at| row.try_get::<_, TextCell>(at).map_err(|error| world(&error));
            (0..row.len()).map(cell).collect()
        };
        rows.iter().map(cells).collect()
    }

    fn describe(&mut self, table: &TableName) -> Result<Option<Vec<TableColumn>>> {
        let name = Quotes('"').table(table);
        let rows = self.ask(COLUMNS_SQL, &[&name])?;
        if rows.is_empty() {
            return Ok(None);
        }
        let column = |row: &Vec<TextCell>| {
            column_of(row).ok_or_else(|| Error::Refused(format!("the columns of {table}: {row:?}")))
        };
        rows.iter().map(column).collect::<Result<_>>().map(Some)
    }

    fn lock(&mut self, name: &str) -> Result<bool> {
        let sql = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))::text";
        let rows = self.ask(sql, &[name])?;
        Ok(rows
            .first()
            .and_then(|row| row.first())
            .is_some_and(|cell| cell.as_deref() == Some("true")))
    }

    fn send(
        &mut self,
        table: &RowTable,
        rows: &RowBytes,
        range: Range<usize>,
    ) -> std::result::Result<(), Refusal> {
        match table.method {
            Method::CopyBinary | Method::CopyText => self.copy(table, rows, range),
            _ => insert::send(self, table, rows, range),
        }
    }
}

fn as_parameters<'a>(
    typed: &'a [(&&str, Type)],
) -> Vec<(&'a (dyn tokio_postgres::types::ToSql + Sync), Type)> {
    typed
        .iter()
        .map(|(text, of)| (*text as &(dyn tokio_postgres::types::ToSql + Sync), of.clone()))
        .collect()
}

/// What the server says of an error, with its code.
fn told(error: &DbError) -> String {
    let mut text = format!("{} (SQLSTATE {})", error.message(), error.code().code());
    for more in [error.detail(), error.hint()].into_iter().flatten() {
        text.push_str("; ");
        text.push_str(more);
    }
    text
}

/// Whether the same may be taken later: the connection or the server is ending, resources lack, or others were in the way.
fn may_pass(code: &SqlState) -> bool {
    let class = &code.code()[..2.min(code.code().len())];
    matches!(class, "08" | "53" | "57" | "58" | "40") || *code == SqlState::LOCK_NOT_AVAILABLE
}

/// An error that no row is at fault for.
pub(super) fn world(error: &tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        Some(of_server) if may_pass(of_server.code()) => {
            Error::Unavailable(format!("PostgreSQL: {}", told(of_server)))
        }
        Some(of_server) => Error::Refused(format!("PostgreSQL: {}", told(of_server))),
        None => {
            let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
            // A server without TLS will have none in a moment either.
            let has_none = cause.as_ref().is_some_and(|text| text.contains("does not support TLS"));
            let text = format!("PostgreSQL: {error}{}", cause.unwrap_or_default());
            match has_none || is_of_tls(error) {
                true => Error::Refused(text),
                false => Error::Unavailable(text),
            }
        }
    }
}

/// Why nobody let us in.
fn connect_error(error: tokio_postgres::Error) -> Error {
    match world(&error) {
        Error::Unavailable(text) => Error::Unavailable(format!("cannot connect to {text}")),
        Error::Refused(text) => Error::Refused(format!("cannot connect to {text}")),
        other => other,
    }
}

/// Why rows were not taken. Values, constraints and triggers are a row's fault.
pub(super) fn refusal(error: &tokio_postgres::Error) -> Refusal {
    let Some(of_server) = error.as_db_error() else { return Refusal::Failed(world(error)) };
    let class = &of_server.code().code()[..2.min(of_server.code().code().len())];
    if !matches!(class, "22" | "23" | "44" | "54" | "P0" | "38" | "39") {
        return Refusal::Failed(world(error));
    }
    let (row, column) = of_server.where_().map_or((None, None), place);
    Refusal::Row {
        row,
        column: column.or_else(|| of_server.column().map(str::to_owned)),
        reason: format!("{} (SQLSTATE {})", of_server.message(), of_server.code().code()),
        detail: of_server.detail().unwrap_or_default().to_owned(),
    }
}

/// The row and column of a text such as `COPY orders, line 12, column day: "x"`; lines count from 1.
fn place(context: &str) -> (Option<usize>, Option<String>) {
    // The context of a trigger's function stands before it.
    let Some(copy) = context.lines().find(|line| line.starts_with("COPY ")) else {
        return (None, None);
    };
    let Some((_, rest)) = copy.split_once(", line ") else { return (None, None) };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let row = rest[..digits].parse::<usize>().ok().and_then(|line| line.checked_sub(1));
    let column = rest[digits..]
        .strip_prefix(", column ")
        .map(|column| column.split_once(':').map_or(column, |(name, _)| name).to_owned());
    (row, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_and_the_column_are_those_that_copy_tells() {
        let some = |row, column: &str| (Some(row), Some(column.to_owned()));
        assert_eq!(place("COPY a, line 12, column day: \"x\""), some(11, "day"));
        assert_eq!(place("COPY \"a, line b\", line 3"), (None, None));
        assert_eq!(place("COPY a, line 3"), (Some(2), None));
        assert_eq!(place("PL/pgSQL function f() line 3 at RAISE\nCOPY a, line 1"), (Some(0), None));
        assert_eq!(place("SQL statement"), (None, None));
        assert_eq!(place("COPY a, line 0"), (None, None));
    }
}
