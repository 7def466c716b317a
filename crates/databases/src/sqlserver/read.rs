//! Rows out of SQL Server: statements over ranges of a key, in snapshots of one moment.
//!
//! ```text
//!   control   a lock of the table that only keeps writers away, until all readers have begun
//!   reader    SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN; SELECT ... WHERE key >= @P1 AND key < @P2 ORDER BY key
//! ```
//!
//! Snapshots have no names that another connection could take: they are of one moment because nobody writes while they
//! begin (decision 0089). The numbers of ranges are parameters.

use std::fmt;
use std::sync::{Arc, Mutex};

use coload_load::{PartBytes, SourceParts, TypedField, TypedReader, TypedSource, Wanted};
use coload_threads::lock;
use coload_types::{DataType, Error, Result};

use super::QUOTES;
use super::catalogue::{COLUMNS_SQL, column_of};
use super::connection::SqlServerConnection;
use super::errors::world;
use super::reader::RowReader;
use super::tds::{ColumnInfo, Login, Token};
use super::values::read_as;
use crate::engine::{Cell, Connection, TableColumn};
use crate::names::TableName;
use crate::read::{Lent, Pool, ReadAs, RowsOf};

/// Most connections that nobody asked for.
const CONNECTIONS_MAX: usize = 8;
/// Least rows that more than one connection reads.
const ROWS_SHARED: u64 = 10_000;
/// Most parts of a table.
const PARTS_MAX: u64 = 10_000;

/// Whether the database has snapshots, and statements that see one.
const SNAPSHOT_SQL: &str = "\
SELECT CAST(snapshot_isolation_state AS int), CAST(is_read_committed_snapshot_on AS int), \
CASE WHEN DATABASEPROPERTYEX(DB_NAME(), 'Updateability') = 'READ_WRITE' THEN 1 ELSE 0 END \
FROM sys.databases WHERE database_id = DB_ID()";
/// Columns of unique indexes.
const UNIQUE_SQL: &str = "\
SELECT CAST(i.index_id AS int), c.name, CAST(c.is_nullable AS int), TYPE_NAME(c.system_type_id)
FROM sys.indexes AS i JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id
JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
WHERE i.object_id = OBJECT_ID(@P1) AND i.is_unique = 1 AND i.is_disabled = 0 AND i.has_filter = 0
AND ic.is_included_column = 0
ORDER BY i.index_id, ic.key_ordinal";
/// Rows of a table, as the server counts them.
const COUNT_SQL: &str = "\
SELECT CAST(SUM(p.rows) AS bigint) FROM sys.partitions AS p WHERE p.object_id = OBJECT_ID(@P1) AND p.index_id IN (0, 1)";
/// Pages of 8 KiB that they are in.
const PAGES_SQL: &str = "\
SELECT CAST(SUM(a.used_pages) AS bigint) FROM sys.partitions AS p
JOIN sys.allocation_units AS a ON a.container_id = p.partition_id
WHERE p.object_id = OBJECT_ID(@P1) AND p.index_id IN (0, 1)";
const PAGE_BYTES: u64 = 8192;
/// Begins a snapshot, which is of the moment of the first read.
const BEGIN_SQL: &str = "SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION";

/// Rows of a server, of one moment.
pub struct SqlServerRows {
    fields: Vec<TypedField>,
    kinds: Vec<FieldRead>,
    from: From,
    count: Option<u64>,
    row_bytes: Option<usize>,
    notes: Vec<String>,
    parts: Mutex<Vec<Range>>,
    pool: Arc<Pool<SqlServerConnection>>,
    /// The answer to a query, whose columns were read.
    begun: Mutex<Option<(Lent<SqlServerConnection>, Vec<ColumnInfo>)>>,
}

/// How a field is read.
#[derive(Debug, Clone)]
struct FieldRead {
    /// What is asked for.
    sql: String,
    kind: ReadAs,
}

/// Where rows come from.
#[derive(Debug, Clone)]
enum From {
    /// A table: only the fields that are wanted are asked for.
    Table(Table),
    /// A query, whose answer has all fields.
    Query(String),
}

#[derive(Debug, Clone)]
struct Table {
    /// In SQL.
    name: String,
    /// The columns of a unique index in SQL, in which order rows are read; none where there is no such index.
    order: Vec<String>,
    /// A column of whole numbers, and its least and its greatest.
    key: Option<(String, i64, i64)>,
}

/// Numbers of the key: from one, to before another.
type Range = (Option<i64>, Option<i64>);

impl fmt::Debug for SqlServerRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlServerRows").field("from", &self.from).finish_non_exhaustive()
    }
}

impl SqlServerRows {
    /// Finds the fields of a table or a query, and begins a snapshot. Whether its rows can be read again is told too.
    ///
    /// # Errors
    /// `Invalid` when there is no such table, or the query answers no rows; those of the server.
    pub fn open(
        login: &Login,
        rows_of: &RowsOf,
        connections: Option<usize>,
    ) -> Result<(Self, bool)> {
        let mut first = SqlServerConnection::open(login)?;
        let Isolation { has_snapshots, keeps_writers, notes } = isolation(&mut first)?;
        match rows_of {
            RowsOf::Table(name) => {
                let described = first.ask(COLUMNS_SQL, &[&QUOTES.table(name)])?;
                let columns: Vec<TableColumn> =
                    described.iter().filter_map(|row| column_of(row)).collect();
                if columns.is_empty() {
                    return Err(Error::Invalid(format!(
                        "there is no table {name}, or we may not see it"
                    )));
                }
                let table = look(&mut first, name)?;
                let count = number(&mut first, COUNT_SQL, name).map(|count| count.max(0) as u64);
                let pages = number(&mut first, PAGES_SQL, name).map(|pages| pages.max(0) as u64);
                let mean = count.zip(pages).filter(|(count, _)| *count > 0);
                let row_bytes =
                    mean.map(|(count, pages)| (pages * PAGE_BYTES / count).max(1) as usize);
                let is_large = count.is_some_and(|count| count >= ROWS_SHARED);
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                let shares = has_snapshots && keeps_writers && table.key.is_some();
                let most = match (shares, connections) {
                    (false, _) => 1,
                    (true, Some(asked)) => asked.max(1),
                    (true, None) if is_large => cores.min(CONNECTIONS_MAX),
                    (true, None) => 1,
                };
                let readers = match has_snapshots {
                    true => begin_together(login, first, &table, (most, connections.is_some()))?,
                    false => vec![first],
                };
                let fields = columns.iter().map(field_of_table).collect();
                let kinds = columns.iter().map(read_of_table).collect();
                let again = has_snapshots && !table.order.is_empty();
                let rows = SqlServerRows {
                    fields,
                    kinds,
                    from: From::Table(table),
                    count,
                    row_bytes,
                    notes,
                    parts: Mutex::default(),
                    pool: pool_of(readers),
                    begun: Mutex::default(),
                };
                Ok((rows, again))
            }
            RowsOf::Query(query) => {
                if has_snapshots {
                    first.run(BEGIN_SQL, &[])?;
                }
                let pool = pool_of(vec![first]);
                let (lent, columns) = begin_query(&pool, query)?;
                let mut fields = Vec::new();
                let mut kinds = Vec::new();
                for (at, column) in columns.iter().enumerate() {
                    let (kind, data_type) = read_as(&column.name, &column.type_info)?;
                    let name = match column.name.is_empty() {
                        true => format!("column{}", at + 1),
                        false => column.name.clone(),
                    };
                    let kind_name = data_type.to_string();
                    fields.push(field(name, column.nullable, kind_name, data_type));
                    kinds.push(FieldRead { sql: String::new(), kind });
                }
                let rows = SqlServerRows {
                    fields,
                    kinds,
                    from: From::Query(query.clone()),
                    count: None,
                    row_bytes: None,
                    notes,
                    parts: Mutex::default(),
                    pool,
                    begun: Mutex::new(Some((lent, columns))),
                };
                Ok((rows, false))
            }
        }
    }

    /// The statement that reads a part, and its parameters.
    fn select_sql(&self, part: usize, wanted: &Wanted) -> Result<(String, Vec<String>)> {
        let table = match &self.from {
            From::Query(query) => return Ok((query.clone(), Vec::new())),
            From::Table(table) => table,
        };
        let list: Vec<&str> =
            wanted.fields.iter().map(|field| self.kinds[*field].sql.as_str()).collect();
        let list = if list.is_empty() { "1".to_owned() } else { list.join(", ") };
        let parts = lock(&self.parts);
        let (from, to) = match (parts.get(part), parts.is_empty()) {
            (Some(range), _) => *range,
            (None, true) if part == 0 => (None, None),
            (None, _) => return Err(Error::Corrupt(format!("part {part} of a table"))),
        };
        let (mut conditions, mut parameters) = (Vec::new(), Vec::new());
        if let Some((key, ..)) = &table.key {
            for (sign, bound) in [(">=", from), ("<", to)] {
                if let Some(bound) = bound {
                    parameters.push(bound.to_string());
                    let number = parameters.len();
                    conditions.push(format!("{key} {sign} CAST(@P{number} AS bigint)"));
                }
            }
        }
        let mut sql = format!("SELECT {list} FROM {}", table.name);
        if !conditions.is_empty() {
            sql.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
        }
        if !table.order.is_empty() {
            sql.push_str(&format!(" ORDER BY {}", table.order.join(", ")));
        }
        Ok((sql, parameters))
    }
}

/// What a database keeps apart.
struct Isolation {
    has_snapshots: bool,
    /// Whether a lock keeps writers away: on a replica that only reads, writes come from elsewhere.
    keeps_writers: bool,
    /// What is to be said.
    notes: Vec<String>,
}

fn isolation(on: &mut SqlServerConnection) -> Result<Isolation> {
    let told = match on.ask(SNAPSHOT_SQL, &[]) {
        Ok(told) => told,
        Err(Error::Refused(_)) => Vec::new(),
        Err(error) => return Err(error),
    };
    let is = |at: usize| {
        let cell = told.first().and_then(|row| row.get(at)?.as_deref());
        cell == Some("1")
    };
    let why = "the database does not allow snapshots (ALTER DATABASE ... SET ALLOW_SNAPSHOT_ISOLATION ON): ";
    let note = match (is(0), is(1)) {
        (true, _) => None,
        (false, true) => Some("all rows are read by one statement, which sees one moment"),
        (false, false) => Some(
            "rows are read as they are when they are read, and those that others write meanwhile may be there or not",
        ),
    };
    let notes = note.into_iter().map(|note| format!("{why}{note}")).collect();
    Ok(Isolation { has_snapshots: is(0), keeps_writers: is(2), notes })
}

fn number(on: &mut SqlServerConnection, sql: &str, table: &TableName) -> Option<i64> {
    // What the server does not tell, nobody needs.
    let told = on.ask(sql, &[&QUOTES.table(table)]).ok()?;
    told.into_iter().flatten().flatten().next()?.parse().ok()
}

/// The key of a table, if it has one.
fn look(on: &mut SqlServerConnection, name: &TableName) -> Result<Table> {
    let quoted = QUOTES.table(name);
    let mut table = Table { name: quoted.clone(), order: Vec::new(), key: None };
    let rows = on.ask(UNIQUE_SQL, &[&quoted])?;
    let mut index = None;
    for row in &rows {
        let [Some(number), Some(column), nullable, type_name] = &row[..] else { continue };
        if *index.get_or_insert(number) != number {
            break;
        }
        let column = QUOTES.name(column);
        let is_whole =
            matches!(type_name.as_deref(), Some("tinyint" | "smallint" | "int" | "bigint"));
        if table.order.is_empty() && is_whole && nullable.as_deref() == Some("0") {
            let sql = format!(
                "SELECT CAST(MIN({column}) AS bigint), CAST(MAX({column}) AS bigint) FROM {quoted}"
            );
            let told = on.ask(&sql, &[])?;
            let bound = |at: usize| told.first()?.get(at)?.as_ref()?.parse::<i64>().ok();
            if let (Some(least), Some(most)) = (bound(0), bound(1)) {
                table.key = Some((column.clone(), least, most));
            }
        }
        table.order.push(column);
    }
    Ok(table)
}

/// Readers whose snapshots are of one moment: as many as asked for, or one where writers would have to wait.
fn begin_together(
    login: &Login,
    mut first: SqlServerConnection,
    table: &Table,
    (most, is_asked): (usize, bool),
) -> Result<Vec<SqlServerConnection>> {
    let look = format!("SELECT TOP (1) 1 FROM {}", table.name);
    let begin = |on: &mut SqlServerConnection| {
        on.run(BEGIN_SQL, &[])?;
        on.ask(&look, &[]).map(drop)
    };
    let mut readers = Vec::new();
    if most > 1 {
        // Nobody who was not asked for it waits for writers, and has others wait behind.
        let patience = if is_asked { 5000 } else { 0 };
        let locked = format!("SELECT TOP (1) 1 FROM {} WITH (TABLOCK, HOLDLOCK)", table.name);
        let mut control = SqlServerConnection::open(login)?;
        control.run(&format!("SET LOCK_TIMEOUT {patience}; BEGIN TRANSACTION"), &[])?;
        match control.ask(&locked, &[]) {
            Ok(_) => {
                for _ in 1..most {
                    let mut reader = match SqlServerConnection::open(login) {
                        Ok(reader) => reader,
                        // Fewer will do.
                        Err(Error::Unavailable(_) | Error::Refused(_)) => break,
                        Err(error) => return Err(error),
                    };
                    begin(&mut reader)?;
                    readers.push(reader);
                }
                begin(&mut first)?;
                readers.push(first);
                control.run("COMMIT TRANSACTION", &[])?;
                return Ok(readers);
            }
            // Somebody writes.
            Err(Error::Unavailable(_) | Error::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    begin(&mut first)?;
    readers.push(first);
    Ok(readers)
}

/// These connections, and no others: another one would see another moment.
fn pool_of(readers: Vec<SqlServerConnection>) -> Arc<Pool<SqlServerConnection>> {
    let most = readers.len();
    let idle = Mutex::new(readers);
    let open = move || {
        lock(&idle).pop().ok_or_else(|| {
            Error::Unavailable(
                "the connection that has the snapshot is gone: begin the load again".to_owned(),
            )
        })
    };
    Pool::new(most, Box::new(open))
}

/// Sends a query, and reads the columns of its answer.
fn begin_query(
    pool: &Arc<Pool<SqlServerConnection>>,
    query: &str,
) -> Result<(Lent<SqlServerConnection>, Vec<ColumnInfo>)> {
    let mut lent = pool.lend()?;
    let gone = || Error::Unavailable("a connection is gone".to_owned());
    let on = lent.get().ok_or_else(gone)?;
    on.session.send_batch(query)?;
    let columns = columns_of(on)?;
    match columns.is_empty() {
        true => Err(Error::Invalid("--query answers no rows: give a SELECT".to_owned())),
        false => Ok((lent, columns)),
    }
}

/// The columns of the answer that comes; none if it has none.
fn columns_of(on: &mut SqlServerConnection) -> Result<Vec<ColumnInfo>> {
    loop {
        match on.session.next()? {
            Token::Columns(columns) => return Ok(columns),
            Token::Error(error) => return Err(world(&error)),
            Token::End => return Ok(Vec::new()),
            Token::Done(_) | Token::Returned(_) => {}
            Token::Row => return Err(Error::Corrupt("SQL Server: rows of no columns".into())),
        }
    }
}

fn field(name: String, nullable: bool, kind: String, data_type: DataType) -> TypedField {
    TypedField {
        name,
        nullable,
        kind,
        data_type: Ok(data_type),
        is_readable: true,
        is_null: false,
        is_null_list: false,
    }
}

fn field_of_table(column: &TableColumn) -> TypedField {
    field(column.name.clone(), column.nullable, column.type_name.clone(), column.data_type)
}

/// How a column of a table is asked for: text that is not Unicode, and what only the server reads, as Unicode.
fn read_of_table(column: &TableColumn) -> FieldRead {
    let name = QUOTES.name(&column.name);
    let base = column.type_name.split('(').next().unwrap_or_default();
    let is_converted = matches!(base, "char" | "varchar" | "text" | "ntext" | "xml" | "json")
        || column.cell == Cell::Rounds;
    let sql = if is_converted { format!("CONVERT(nvarchar(max), {name})") } else { name };
    let kind = match column.data_type {
        DataType::Boolean => ReadAs::Bool,
        DataType::SmallInt => ReadAs::Int(2),
        DataType::Integer => ReadAs::Int(4),
        DataType::BigInt => ReadAs::Int(8),
        DataType::Decimal { precision, scale } => ReadAs::Decimal(precision, scale),
        DataType::Real => ReadAs::Float(4),
        DataType::Double => ReadAs::Float(8),
        DataType::Date => ReadAs::Date,
        DataType::Time => ReadAs::Time,
        DataType::Timestamp => ReadAs::Timestamp,
        DataType::TimestampTz => ReadAs::Instant,
        DataType::Char(_) | DataType::Varchar(_) | DataType::List(_) => ReadAs::Text,
        DataType::Binary(_) => ReadAs::Bytes,
        DataType::Uuid => ReadAs::Uuid,
    };
    FieldRead { sql, kind }
}

impl TypedSource for SqlServerRows {
    fn engine(&self) -> &'static str {
        "SQL Server"
    }

    fn fields(&self) -> &[TypedField] {
        &self.fields
    }

    fn row_bytes(&self) -> Option<usize> {
        self.row_bytes
    }

    fn rows(&self) -> Option<u64> {
        self.count
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn cut(&self, part: PartBytes) -> Result<SourceParts> {
        let key = match &self.from {
            From::Table(table) => table.key.as_ref(),
            From::Query(_) => None,
        };
        let (Some((_, least, most)), Some(count)) = (key, self.count) else {
            return Ok(SourceParts::Whole);
        };
        let bytes =
            count.saturating_mul(self.row_bytes.unwrap_or(0).max(part.row_bytes as usize) as u64);
        let ranges = ranges(*least, *most, bytes.div_ceil(part.bytes.max(1)).clamp(1, PARTS_MAX));
        let each = bytes / ranges.len().max(1) as u64;
        let sizes = vec![each.max(1); ranges.len()];
        *lock(&self.parts) = ranges;
        Ok(SourceParts::Parts(sizes))
    }

    fn read(self: Arc<Self>, part: usize, wanted: &Wanted) -> Result<Box<dyn TypedReader>> {
        let begun = lock(&self.begun).take();
        let (lent, columns) = match (begun, &self.from) {
            (Some(begun), _) => begun,
            (None, From::Query(query)) => begin_query(&self.pool, query)?,
            (None, From::Table(_)) => {
                let (sql, parameters) = self.select_sql(part, wanted)?;
                let mut lent = self.pool.lend()?;
                let gone = || Error::Unavailable("a connection is gone".to_owned());
                let on = lent.get().ok_or_else(gone)?;
                let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
                on.send_sql(&sql, &parameters)?;
                let columns = columns_of(on)?;
                (lent, columns)
            }
        };
        let is_query = matches!(self.from, From::Query(_));
        let mut places = vec![Vec::new(); columns.len()];
        for (place, field) in wanted.fields.iter().enumerate() {
            let column = if is_query { *field } else { place };
            match places.get_mut(column) {
                Some(places) => places.push(place),
                None => {
                    return Err(Error::Corrupt("SQL Server: an answer of fewer columns".into()));
                }
            }
        }
        let kinds: Vec<ReadAs> =
            wanted.fields.iter().map(|field| self.kinds[*field].kind).collect();
        for (column, places) in columns.iter().zip(&places) {
            let (found, _) = read_as(&column.name, &column.type_info)?;
            let is_same = |place: &usize| match (kinds[*place], found) {
                // Money has no digits of its own.
                (ReadAs::Decimal(_, own), ReadAs::Decimal(_, scale)) => own == scale,
                (own, found) => own == found,
            };
            if !places.iter().all(is_same) {
                return Err(Error::Unavailable(format!(
                    "column {} is of another type than before: begin the load again",
                    column.name
                )));
            }
        }
        Ok(Box::new(RowReader {
            lent,
            columns,
            places,
            kinds,
            most: wanted.bytes_max,
            is_over: false,
        }))
    }
}

/// So many ranges of the numbers from the least to the most; rows may come beside them.
fn ranges(least: i64, most: i64, count: u64) -> Vec<Range> {
    let width = (i128::from(most) - i128::from(least) + 1).max(1);
    let count = i128::from(count).min(width);
    let bound = |at: i128| {
        let at = i128::from(least) + width * at / count;
        i64::try_from(at).ok()
    };
    let inner = |at: i128| bound(at).filter(|_| at > 0 && at < count);
    (0..count).map(|at| (inner(at), inner(at + 1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_all_numbers_once() {
        assert_eq!(ranges(1, 10, 3), [(None, Some(4)), (Some(4), Some(7)), (Some(7), None)]);
        assert_eq!(ranges(5, 5, 4), [(None, None)]);
        let all = ranges(i64::MIN, i64::MAX, 2);
        assert_eq!(all, [(None, Some(0)), (Some(0), None)]);
    }
}
