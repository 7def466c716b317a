//! Rows out of MySQL and MariaDB: one statement, in the binary protocol, in a consistent snapshot of one connection.
//!
//! A thread reads rows and makes columns of them, a few blocks ahead of the workers that make fragments of these. Another
//! connection would need a lock on the table to see the same snapshot (decision 0081).

use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use coload_load::{
    PartBytes, SourceParts, TypedBlock, TypedField, TypedReader, TypedSource, Wanted,
};
use coload_threads::lock;
use coload_types::calendar::{DAY_MICROS, days_from_date};
use coload_types::{DECIMAL_PRECISION_MAX, DataType, Error, Result};
use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Opts, Params, Value};

use super::catalogue::ENGINE_SQL;
use super::connection::MysqlConnection;
use super::errors::world;
use crate::engine::Connection;
use crate::names::{Quotes, TableName};
use crate::read::{BLOCK_BYTES, ColumnBuilder, ReadAs, ReadRows, RowsOf, too_large};

/// Blocks that wait for the workers.
const BLOCKS_AHEAD: usize = 2;
/// The character set that stands for bytes.
const BINARY: u16 = 63;
/// Bytes that a character has at most in the character set of our connections.
const CHARACTER_BYTES: u32 = 4;
/// The connection that has the snapshot, when nobody reads.
type Slot = Arc<Mutex<Option<MysqlConnection>>>;

/// Rows of a server, of one snapshot.
pub struct MysqlRows {
    fields: Vec<TypedField>,
    kinds: Vec<ReadAs>,
    from: From,
    slot: Slot,
}

/// Where rows come from.
#[derive(Debug, Clone)]
enum From {
    /// A table: only the fields that are wanted are asked for.
    Table(TableName),
    /// A query, whose answer has all fields.
    Query(String),
}

impl fmt::Debug for MysqlRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlRows").field("from", &self.from).finish_non_exhaustive()
    }
}

impl MysqlRows {
    /// Finds the fields of a table or a query, and begins a snapshot. Whether its rows can be read again is told too.
    ///
    /// # Errors
    /// `Invalid` when there is no such table, or the query answers no rows; those of the server.
    pub fn open(
        opts: &Opts,
        rows_of: &RowsOf,
        _connections: Option<usize>,
    ) -> Result<(Self, bool)> {
        let mut on = MysqlConnection::open(opts, &Arc::default())?;
        on.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", &[])?;
        // A reader that waits for disks must not lose its answer.
        on.run("SET SESSION net_write_timeout = 3600", &[])?;
        on.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", &[])?;
        let (sql, from, again) = match rows_of {
            RowsOf::Table(table) => {
                let sql = format!("SELECT * FROM {}", Quotes('`').table(table));
                (sql, From::Table(table.clone()), has_snapshots(&mut on, table)?)
            }
            RowsOf::Query(query) => (query.clone(), From::Query(query.clone()), false),
        };
        let columns = columns_of(&mut on, &sql)?;
        if columns.is_empty() {
            return Err(Error::Invalid("--query answers no rows: give a SELECT".to_owned()));
        }
        let is_table = matches!(from, From::Table(_));
        let read: Vec<(ReadAs, DataType)> =
            columns.iter().map(|column| read_as(column, is_table)).collect();
        let field = |(column, (_, data_type)): (&Column, &(ReadAs, DataType))| TypedField {
            name: column.name_str().into_owned(),
            nullable: !column.flags().contains(ColumnFlags::NOT_NULL_FLAG),
            kind: kind_name(column),
            data_type: Ok(*data_type),
            is_readable: true,
            is_null: false,
            is_null_list: false,
        };
        let fields = columns.iter().zip(&read).map(field).collect();
        let kinds = read.iter().map(|(kind, _)| *kind).collect();
        Ok((MysqlRows { fields, kinds, from, slot: Arc::new(Mutex::new(Some(on))) }, again))
    }
}

/// The columns of what a statement answers.
fn columns_of(on: &mut MysqlConnection, sql: &str) -> Result<Vec<Column>> {
    let MysqlConnection { runtime, conn, .. } = on;
    runtime
        .block_on(async {
            let statement = conn.prep(sql).await?;
            let columns = statement.columns().to_vec();
            conn.close(statement).await?;
            Ok(columns)
        })
        .map_err(|error| world(&error))
}

/// Whether a table is of a storage engine that has snapshots.
fn has_snapshots(on: &mut MysqlConnection, table: &TableName) -> Result<bool> {
    let (sql, parameters) = match &table.schema {
        Some(schema) => (ENGINE_SQL.to_owned(), vec![schema.as_str(), table.name.as_str()]),
        None => {
            let sql = ENGINE_SQL.replacen("COALESCE(?, DATABASE())", "DATABASE()", 1);
            (sql, vec![table.name.as_str()])
        }
    };
    let engine = on.ask(&sql, &parameters)?.into_iter().flatten().flatten().next();
    Ok(engine.is_some_and(|engine| matches!(engine.as_str(), "InnoDB" | "RocksDB" | "ROCKSDB")))
}

/// What values of a column are read as, and the type that holds them. The length of a text is that of a table's column only.
fn read_as(column: &Column, is_table: bool) -> (ReadAs, DataType) {
    let unsigned = column.flags().contains(ColumnFlags::UNSIGNED_FLAG);
    let length = column.column_length();
    let int = |width: usize, own: DataType, wider: DataType| match unsigned {
        true => (ReadAs::Unsigned(width), wider),
        false => (ReadAs::Int(width), own),
    };
    let is_bytes = column.character_set() == BINARY;
    let characters = Some(length / CHARACTER_BYTES).filter(|n| is_table && *n > 0);
    match column.column_type() {
        ColumnType::MYSQL_TYPE_TINY if length == 1 && !unsigned => {
            (ReadAs::Bool, DataType::Boolean)
        }
        ColumnType::MYSQL_TYPE_TINY => int(2, DataType::SmallInt, DataType::SmallInt),
        ColumnType::MYSQL_TYPE_YEAR => (ReadAs::Unsigned(2), DataType::SmallInt),
        ColumnType::MYSQL_TYPE_SHORT => int(2, DataType::SmallInt, DataType::Integer),
        ColumnType::MYSQL_TYPE_INT24 => (ReadAs::Int(4), DataType::Integer),
        ColumnType::MYSQL_TYPE_LONG => int(4, DataType::Integer, DataType::BigInt),
        ColumnType::MYSQL_TYPE_LONGLONG => {
            int(8, DataType::BigInt, DataType::Decimal { precision: 20, scale: 0 })
        }
        ColumnType::MYSQL_TYPE_FLOAT => (ReadAs::Float(4), DataType::Real),
        ColumnType::MYSQL_TYPE_DOUBLE => (ReadAs::Float(8), DataType::Double),
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => {
            let scale = column.decimals();
            let beside = u32::from(scale > 0) + u32::from(!unsigned);
            match u8::try_from(length.saturating_sub(beside)) {
                Ok(precision) if precision <= DECIMAL_PRECISION_MAX && scale <= precision => {
                    (ReadAs::Decimal(precision, scale), DataType::Decimal { precision, scale })
                }
                _ => (ReadAs::Text, DataType::Varchar(None)),
            }
        }
        ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_NEWDATE => {
            (ReadAs::Date, DataType::Date)
        }
        ColumnType::MYSQL_TYPE_TIME | ColumnType::MYSQL_TYPE_TIME2 => {
            (ReadAs::Time, DataType::Time)
        }
        ColumnType::MYSQL_TYPE_DATETIME | ColumnType::MYSQL_TYPE_DATETIME2 => {
            (ReadAs::Timestamp, DataType::Timestamp)
        }
        ColumnType::MYSQL_TYPE_TIMESTAMP | ColumnType::MYSQL_TYPE_TIMESTAMP2 => {
            (ReadAs::Instant, DataType::TimestampTz)
        }
        ColumnType::MYSQL_TYPE_JSON | ColumnType::MYSQL_TYPE_NULL => {
            (ReadAs::Text, DataType::Varchar(None))
        }
        ColumnType::MYSQL_TYPE_BIT | ColumnType::MYSQL_TYPE_GEOMETRY => {
            (ReadAs::Bytes, DataType::Binary(None))
        }
        _ if is_bytes => (ReadAs::Bytes, DataType::Binary(None)),
        ColumnType::MYSQL_TYPE_VAR_STRING | ColumnType::MYSQL_TYPE_VARCHAR => {
            (ReadAs::Text, DataType::Varchar(characters))
        }
        ColumnType::MYSQL_TYPE_STRING
            if !column.flags().intersects(ColumnFlags::ENUM_FLAG | ColumnFlags::SET_FLAG) =>
        {
            (ReadAs::Text, characters.map_or(DataType::Varchar(None), DataType::Char))
        }
        _ => (ReadAs::Text, DataType::Varchar(None)),
    }
}

/// A type in the words of MySQL.
fn kind_name(column: &Column) -> String {
    let name = format!("{:?}", column.column_type());
    let name = name.trim_start_matches("MYSQL_TYPE_").to_lowercase();
    match column.flags().contains(ColumnFlags::UNSIGNED_FLAG) {
        true => format!("{name} unsigned"),
        false => name,
    }
}

impl TypedSource for MysqlRows {
    fn engine(&self) -> &'static str {
        "MySQL"
    }

    fn fields(&self) -> &[TypedField] {
        &self.fields
    }

    fn row_bytes(&self) -> Option<usize> {
        None
    }

    fn cut(&self, _: PartBytes) -> Result<SourceParts> {
        Ok(SourceParts::Whole)
    }

    fn read(self: Arc<Self>, _: usize, wanted: &Wanted) -> Result<Box<dyn TypedReader>> {
        let Some(on) = lock(&self.slot).take() else {
            return Err(Error::Unavailable(
                "the connection that has the snapshot is gone: begin the load again".to_owned(),
            ));
        };
        let (sql, fields) = match &self.from {
            From::Query(query) => (query.clone(), wanted.fields.clone()),
            From::Table(table) => {
                let names = wanted.fields.iter().map(|field| self.fields[*field].name.as_str());
                let list = match wanted.fields.is_empty() {
                    true => "1".to_owned(),
                    false => Quotes('`').list(names),
                };
                let sql = format!("SELECT {list} FROM {}", Quotes('`').table(table));
                (sql, (0..wanted.fields.len()).collect())
            }
        };
        let kinds = wanted.fields.iter().map(|field| self.kinds[*field]).collect();
        let (sender, blocks) = sync_channel(BLOCKS_AHEAD);
        let reading = Reading { sql, fields, kinds, bytes_max: wanted.bytes_max, sender };
        let slot = Arc::clone(&self.slot);
        let thread = std::thread::Builder::new().name("coload-read".to_owned());
        let spawned = coload_threads::spawn(thread, move || reading.run(on, &slot));
        spawned.map_err(|e| Error::Unavailable(format!("cannot start a thread: {e}")))?;
        Ok(Box::new(BlockReader { blocks, is_over: false }))
    }
}

/// What the thread says: a block, or that there are no more.
type Said = Result<Option<ReadRows>>;

/// Blocks that a thread reads.
struct BlockReader {
    blocks: Receiver<Said>,
    is_over: bool,
}

impl TypedReader for BlockReader {
    fn next(&mut self) -> Result<Option<Box<dyn TypedBlock>>> {
        if self.is_over {
            return Ok(None);
        }
        let gone = |_| Err(Error::Unavailable("the thread that reads rows ended".to_owned()));
        match self.blocks.recv().unwrap_or_else(gone)? {
            Some(block) => Ok(Some(Box::new(block))),
            None => {
                self.is_over = true;
                Ok(None)
            }
        }
    }
}

/// A statement whose rows are read.
struct Reading {
    sql: String,
    /// Places of the fields in the answer.
    fields: Vec<usize>,
    kinds: Vec<ReadAs>,
    bytes_max: u64,
    sender: SyncSender<Said>,
}

/// Nobody wants more rows, or reading failed.
enum Stopped {
    Left,
    Failed(Error),
}

impl Reading {
    /// Reads all rows, and gives the connection back when it has.
    fn run(self, mut on: MysqlConnection, slot: &Slot) {
        match self.read_all(&mut on) {
            Ok(()) => {
                *lock(slot) = Some(on);
                let _ = self.sender.send(Ok(None));
            }
            Err(Stopped::Failed(error)) => {
                let _ = self.sender.send(Err(error));
            }
            // Dropped in the middle of an answer, the connection is closed.
            Err(Stopped::Left) => {}
        }
    }

    fn read_all(&self, on: &mut MysqlConnection) -> std::result::Result<(), Stopped> {
        let failed = |error: mysql_async::Error| Stopped::Failed(world(&error));
        let MysqlConnection { runtime, conn, .. } = on;
        runtime.block_on(async {
            let mut answer =
                conn.exec_iter(self.sql.as_str(), Params::Empty).await.map_err(failed)?;
            let mut block = self.block();
            let (mut rows, mut bytes) = (0, 0);
            while let Some(row) = answer.next().await.map_err(failed)? {
                let before = bytes;
                for (column, field) in block.iter_mut().zip(&self.fields) {
                    bytes += push(column, row.as_ref(*field).unwrap_or(&Value::NULL));
                }
                rows += 1;
                let row_bytes = (bytes - before) as u64;
                if row_bytes > self.bytes_max {
                    return Err(Stopped::Failed(too_large("a row", row_bytes, self.bytes_max)));
                }
                if bytes >= BLOCK_BYTES {
                    self.send(std::mem::replace(&mut block, self.block()), rows, bytes)?;
                    (rows, bytes) = (0, 0);
                }
            }
            if rows > 0 {
                self.send(block, rows, bytes)?;
            }
            Ok(())
        })
    }

    fn block(&self) -> Vec<ColumnBuilder> {
        self.kinds.iter().map(|kind| ColumnBuilder::new(*kind)).collect()
    }

    fn send(
        &self,
        block: Vec<ColumnBuilder>,
        rows: usize,
        bytes: usize,
    ) -> std::result::Result<(), Stopped> {
        let block = ReadRows::new(block, rows, bytes);
        self.sender.send(Ok(Some(block))).map_err(|_| Stopped::Left)
    }
}

/// Adds a value; its bytes.
fn push(column: &mut ColumnBuilder, value: &Value) -> usize {
    let kind = column.kind();
    match (kind, value) {
        (_, Value::NULL) => {
            column.push_null();
            return 8;
        }
        (ReadAs::Bool, Value::Int(number @ (0 | 1))) => column.push_bool(*number == 1),
        (ReadAs::Int(width), Value::Int(number)) => push_int(column, width, *number),
        (ReadAs::Unsigned(width), Value::UInt(number)) => push_int(column, width, *number as i64),
        (ReadAs::Int(width), Value::UInt(number)) if i64::try_from(*number).is_ok() => {
            push_int(column, width, *number as i64);
        }
        (ReadAs::Unsigned(width), Value::Int(number)) if *number >= 0 => {
            push_int(column, width, *number);
        }
        (ReadAs::Float(4), Value::Float(number)) => column.push_fixed(number.to_le_bytes()),
        (ReadAs::Float(8), Value::Double(number)) => column.push_fixed(number.to_le_bytes()),
        (ReadAs::Decimal(_, scale), Value::Bytes(text)) => match exact(text, scale) {
            Some(number) => column.push_fixed(number.to_le_bytes()),
            None => column.push_told(&String::from_utf8_lossy(text)),
        },
        (ReadAs::Date, Value::Date(year, month, day, 0, 0, 0, 0)) => {
            let days = days_from_date(u32::from(*year), u32::from(*month), u32::from(*day));
            match days.filter(|_| *year > 0).and_then(|days| i32::try_from(days).ok()) {
                Some(days) => column.push_fixed(days.to_le_bytes()),
                None => column.push_told(&told(value)),
            }
        }
        (ReadAs::Timestamp | ReadAs::Instant, Value::Date(year, month, day, h, m, s, micros)) => {
            let days = days_from_date(u32::from(*year), u32::from(*month), u32::from(*day));
            let clock = micros_of([*h, *m, *s], *micros);
            match days.filter(|_| *year > 0) {
                Some(days) => column.push_fixed((days * DAY_MICROS + clock).to_le_bytes()),
                None => column.push_told(&told(value)),
            }
        }
        (ReadAs::Time, Value::Time(false, 0, h, m, s, micros)) => {
            column.push_fixed(micros_of([*h, *m, *s], *micros).to_le_bytes());
        }
        (ReadAs::Text | ReadAs::Bytes, Value::Bytes(bytes)) => {
            column.push_bytes(bytes);
            return bytes.len() + 8;
        }
        (_, other) => column.push_told(&told(other)),
    }
    16
}

/// Adds a whole number, of which the server says that it has so many bytes.
fn push_int(column: &mut ColumnBuilder, width: usize, number: i64) {
    let bytes = number.to_le_bytes();
    match width {
        2 => column.push_fixed([bytes[0], bytes[1]]),
        4 => column.push_fixed([bytes[0], bytes[1], bytes[2], bytes[3]]),
        _ => column.push_fixed(bytes),
    }
}

fn micros_of([hours, minutes, seconds]: [u8; 3], micros: u32) -> i64 {
    let seconds = (i64::from(hours) * 60 + i64::from(minutes)) * 60 + i64::from(seconds);
    seconds * 1_000_000 + i64::from(micros)
}

/// A value in the words of MySQL, without its quotes.
fn told(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Time(negative, days, hours, minutes, seconds, micros) => {
            let hours = u64::from(*days) * 24 + u64::from(*hours);
            let fraction = if *micros == 0 { String::new() } else { format!(".{micros:06}") };
            let sign = if *negative { "-" } else { "" };
            format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}")
        }
        other => other.as_sql(true).trim_matches('\'').to_owned(),
    }
}

/// A number with so many digits behind the point.
fn exact(text: &[u8], scale: u8) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let point = digits.iter().position(|byte| *byte == b'.').unwrap_or(digits.len());
    let fraction = digits.get(point + 1..).unwrap_or_default();
    let missing = usize::from(scale).checked_sub(fraction.len())?;
    let mut value = 0_i128;
    for byte in digits[..point].iter().chain(fraction) {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value = value.checked_mul(10)?.checked_add(i128::from(digit))?;
    }
    let value = value.checked_mul(10_i128.checked_pow(missing as u32)?)?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_with_all_its_digits_or_not_at_all() {
        assert_eq!(exact(b"-12.5", 2), Some(-1250));
        assert_eq!(exact(b"7", 0), Some(7));
        assert_eq!(exact(b"0.001", 3), Some(1));
        assert_eq!(exact(b"0.001", 2), None);
        assert_eq!(exact(b"1e3", 2), None);
        let most = "9".repeat(38);
        assert_eq!(exact(most.as_bytes(), 0), Some(10_i128.pow(38) - 1));
        assert_eq!(exact("9".repeat(40).as_bytes(), 0), None);
    }

    #[test]
    fn what_is_no_day_is_told_as_the_server_says_it() {
        let mut column = ColumnBuilder::new(ReadAs::Date);
        push(&mut column, &Value::Date(1970, 1, 2, 0, 0, 0, 0));
        push(&mut column, &Value::Date(0, 0, 0, 0, 0, 0, 0));
        let column = column.finish();
        assert_eq!(column.get(0), Some(coload_arrow::Scalar::Text(b"1970-01-02")));
        assert_eq!(column.get(1), Some(coload_arrow::Scalar::Text(b"0000-00-00")));
    }
}
