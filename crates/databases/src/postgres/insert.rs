//! Rows by INSERT: the cells of rows in binary are the parameters as they are.

use std::error::Error as StdError;
use std::ops::Range;

use bytes::{BufMut, BytesMut};
use coload_load::RowBytes;
use tokio_postgres::Statement;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::connection::{PostgresConnection, refusal, world};
use crate::engine::{Refusal, RowTable};
use crate::names::Quotes;
use crate::options::Method;
use crate::row_maker::{NULL_LENGTH, cells};

/// Most parameters of a statement.
const PARAMETERS_MAX: usize = 65_535;

/// A parameter whose bytes are there.
#[derive(Debug)]
struct Raw<'a>(Option<&'a [u8]>);

impl ToSql for Raw<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        Ok(match self.0 {
            None => IsNull::Yes,
            Some(bytes) => {
                out.extend_from_slice(bytes);
                IsNull::No
            }
        })
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Sends rows by a method that is an INSERT.
///
/// # Errors
/// Why they were not taken.
pub fn send(
    on: &mut PostgresConnection,
    table: &RowTable,
    rows: &RowBytes,
    range: Range<usize>,
) -> Result<(), Refusal> {
    match table.method {
        Method::Values => send_values(on, table, rows, range),
        Method::Unnest => send_arrays(on, table, rows, range),
        _ => send_single(on, table, rows, range),
    }
}

fn head(table: &RowTable) -> String {
    let quotes = Quotes('"');
    let columns = quotes.list(table.columns.iter().map(|column| column.name.as_str()));
    format!("INSERT INTO {} ({columns})", quotes.table(&table.name))
}

/// A list of VALUES of so many rows.
fn values_sql(table: &RowTable, rows: usize) -> String {
    let width = table.columns.len();
    let row = |row: usize| {
        let cells = (1..=width).map(|column| format!("${}", row * width + column));
        format!("({})", cells.collect::<Vec<_>>().join(", "))
    };
    format!("{} VALUES {}", head(table), (0..rows).map(row).collect::<Vec<_>>().join(", "))
}

pub(super) fn prepare(on: &mut PostgresConnection, sql: String) -> Result<Statement, Refusal> {
    if let Some(statement) = on.prepared.get(&sql) {
        return Ok(statement.clone());
    }
    let prepared = on.runtime.block_on(on.client.prepare(&sql));
    let statement = prepared.map_err(|error| Refusal::Failed(world(&error)))?;
    on.prepared.insert(sql, statement.clone());
    Ok(statement)
}

fn run(
    on: &PostgresConnection,
    statement: &Statement,
    parameters: &[Raw<'_>],
) -> Result<(), Refusal> {
    let ran = on.runtime.block_on(on.client.execute_raw(statement, parameters));
    ran.map(drop).map_err(|error| refusal(&error))
}

/// Names the row of the call at fault.
fn at_row(refusal: Refusal, at: usize) -> Refusal {
    match refusal {
        Refusal::Row { column, reason, detail, .. } => {
            Refusal::Row { row: Some(at), column, reason, detail }
        }
        failed => failed,
    }
}

/// One INSERT a row, prepared once or each time.
fn send_single(
    on: &mut PostgresConnection,
    table: &RowTable,
    rows: &RowBytes,
    range: Range<usize>,
) -> Result<(), Refusal> {
    let sql = values_sql(table, 1);
    let types: Vec<Type> = match table.method {
        Method::Prepared => Vec::new(),
        _ => prepare(on, sql.clone())?.params().to_vec(),
    };
    let prepared = match table.method {
        Method::Prepared => Some(prepare(on, sql.clone())?),
        _ => None,
    };
    for (at, row) in range.enumerate() {
        let parameters: Vec<Raw<'_>> = cells(rows.slice(row..row + 1)).map(Raw).collect();
        let sent = match &prepared {
            Some(statement) => run(on, statement, &parameters),
            None => {
                let typed: Vec<(&(dyn ToSql + Sync), Type)> = parameters
                    .iter()
                    .zip(&types)
                    .map(|(raw, of)| (raw as &(dyn ToSql + Sync), of.clone()))
                    .collect();
                let ran = on.runtime.block_on(on.client.execute_typed(&sql, &typed));
                ran.map(drop).map_err(|error| refusal(&error))
            }
        };
        sent.map_err(|refusal| at_row(refusal, at))?;
    }
    Ok(())
}

/// Lists of VALUES of many rows.
fn send_values(
    on: &mut PostgresConnection,
    table: &RowTable,
    rows: &RowBytes,
    range: Range<usize>,
) -> Result<(), Refusal> {
    let batch = table.batch_rows.clamp(1, (PARAMETERS_MAX / table.columns.len().max(1)).max(1));
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + batch);
        let statement = prepare(on, values_sql(table, end - at))?;
        let parameters: Vec<Raw<'_>> =
            (at..end).flat_map(|row| cells(rows.slice(row..row + 1)).map(Raw)).collect();
        run(on, &statement, &parameters)?;
        at = end;
    }
    Ok(())
}

/// An array a column, each with the cells of many rows.
fn send_arrays(
    on: &mut PostgresConnection,
    table: &RowTable,
    rows: &RowBytes,
    range: Range<usize>,
) -> Result<(), Refusal> {
    let array = |(at, column): (usize, &crate::engine::TableColumn)| {
        // Without digits and length, which belong to the column.
        let name = column.type_name.split_once('(');
        let base = name.map_or(column.type_name.as_str(), |(base, _)| base.trim_end());
        let base = match column.type_name.as_str() {
            text if text.ends_with("with time zone") => "timestamptz",
            text if text.starts_with("timestamp") => "timestamp",
            text if text.starts_with("time") => "time",
            _ => base,
        };
        format!("${}::{base}[]", at + 1)
    };
    let arrays: Vec<String> = table.columns.iter().enumerate().map(array).collect();
    let statement =
        prepare(on, format!("{} SELECT * FROM unnest({})", head(table), arrays.join(", ")))?;
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + table.batch_rows.max(1));
        let mut elements: Vec<BytesMut> = table.columns.iter().map(|_| BytesMut::new()).collect();
        for (column, out) in table.columns.iter().zip(&mut elements) {
            // One dimension, NULLs allowed, the type, the count, and the first index.
            for number in [1, 1, column.type_number, (end - at) as u32, 1] {
                out.put_u32(number);
            }
        }
        for row in at..end {
            for (cell, out) in cells(rows.slice(row..row + 1)).zip(&mut elements) {
                match cell {
                    None => out.extend_from_slice(NULL_LENGTH),
                    Some(bytes) => {
                        out.put_u32(bytes.len() as u32);
                        out.extend_from_slice(bytes);
                    }
                }
            }
        }
        let parameters: Vec<Raw<'_>> = elements.iter().map(|bytes| Raw(Some(&bytes[..]))).collect();
        run(on, &statement, &parameters)?;
        at = end;
    }
    Ok(())
}
