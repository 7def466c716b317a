//! Rows out of PostgreSQL: COPY in binary, of ranges of pages, over connections that see one snapshot.
//!
//! ```text
//!   control    BEGIN REPEATABLE READ; pg_export_snapshot()                    open until nothing is read any more
//!   reader     BEGIN REPEATABLE READ; SET TRANSACTION SNAPSHOT; COPY (SELECT ... WHERE ctid >= .. AND ctid < ..) TO STDOUT
//! ```
//!
//! Where pages are not ranges (views, queries, foreign tables, servers before 14), one connection reads all rows in order.
//! COPY takes no parameters: the numbers of pages, which are ours, are the only thing that is written into its text.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use coload_load::{
    PartBytes, SourceParts, TypedBlock, TypedField, TypedReader, TypedSource, Wanted,
};
use coload_threads::lock;
use coload_types::{DataType, Error, Result};
use futures::StreamExt;
use tokio_postgres::types::Type;
use tokio_postgres::{Column, CopyOutStream, Statement};

use super::catalogue::read_type;
use super::connect::Server;
use super::connection::{PostgresConnection, world};
use super::copied::CopiedRows;
use crate::engine::{Connection, TextCell};
use crate::names::{Quotes, TableName};
use crate::read::{BLOCK_BYTES, Lent, Pool, ReadAs, RowsOf, too_large};

/// First server whose ranges of `ctid` are read as such.
const RANGES_SINCE: u32 = 140_000;
/// Rows of a page where the server has not counted them.
const PAGE_ROWS: f64 = 100.0;
/// Most connections that nobody asked for.
const CONNECTIONS_MAX: usize = 8;

/// Rows of a server, of one snapshot.
pub struct PostgresRows {
    fields: Vec<TypedField>,
    /// How each field is read.
    kinds: Vec<FieldRead>,
    from: From,
    row_bytes: Option<usize>,
    parts: Mutex<Vec<Part>>,
    pool: Arc<Pool<PostgresConnection>>,
    /// Holds the snapshot.
    _control: Mutex<PostgresConnection>,
}

/// How a field is read.
#[derive(Debug, Clone)]
struct FieldRead {
    /// Its name in SQL.
    sql: String,
    kind: ReadAs,
    /// The server makes text of it.
    as_text: bool,
}

/// Where rows come from.
#[derive(Debug, Clone)]
enum From {
    /// These tables, in order, by ranges of their pages.
    Pages(Vec<Leaf>),
    /// What follows FROM.
    Sql(String),
}

/// A table with pages.
#[derive(Debug, Clone)]
struct Leaf {
    name: TableName,
    pages: u64,
    /// Bytes with those of long values.
    bytes: u64,
    rows_per_page: f64,
}

/// Pages of a table; the last part of one goes on to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    leaf: usize,
    from: u64,
    to: Option<u64>,
}

impl fmt::Debug for PostgresRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresRows").field("from", &self.from).finish_non_exhaustive()
    }
}

impl PostgresRows {
    /// Finds the fields of a table or a query, and begins a snapshot. Whether its rows can be read again is told too.
    ///
    /// # Errors
    /// `Invalid` when there is no such table, or the query answers no rows; those of the server.
    pub fn open(
        server: &Server,
        rows_of: &RowsOf,
        connections: Option<usize>,
    ) -> Result<(Self, bool)> {
        let mut control = PostgresConnection::open(server)?;
        begin(&mut control)?;
        let quotes = Quotes('"');
        let (statement, nullable) = match rows_of {
            RowsOf::Table(table) => {
                let described = control.describe(table)?.ok_or_else(|| {
                    Error::Invalid(format!("there is no table {table}, or we may not see it"))
                })?;
                let sql = format!("SELECT * FROM {}", quotes.table(table));
                let nullable = described.iter().map(|column| column.nullable).collect();
                (columns_of(&mut control, &sql)?, nullable)
            }
            RowsOf::Query(query) => {
                let statement = columns_of(&mut control, query)?;
                if statement.columns().is_empty() {
                    return Err(Error::Invalid(
                        "--query answers no rows: give a SELECT, or VALUES".to_owned(),
                    ));
                }
                let nullable = vec![true; statement.columns().len()];
                (statement, nullable)
            }
        };
        let is_query = matches!(rows_of, RowsOf::Query(_));
        let (mut fields, mut kinds) = (Vec::new(), Vec::new());
        for (number, column) in statement.columns().iter().enumerate() {
            let (kind, data_type, as_text) = read_as(column);
            let sql = if is_query { format!("c{number}") } else { quotes.name(column.name()) };
            kinds.push(FieldRead { sql, kind, as_text });
            fields.push(TypedField {
                name: column.name().to_owned(),
                nullable: nullable.get(number).copied().unwrap_or(true),
                kind: kind_name(column.type_(), column.type_modifier()),
                data_type: Ok(data_type),
                is_readable: true,
                is_null: false,
                is_null_list: false,
            });
        }
        let from = match rows_of {
            RowsOf::Table(table) => match leaves(&mut control, table)? {
                Some(leaves) => From::Pages(leaves),
                None => From::Sql(quotes.table(table)),
            },
            // A comment may end it.
            RowsOf::Query(query) => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.sql.as_str()).collect();
                From::Sql(format!("(\n{query}\n) AS q ({})", names.join(", ")))
            }
        };
        let again = matches!(from, From::Pages(_));
        let snapshot = match &from {
            From::Pages(leaves) if !leaves.is_empty() => export(&mut control)?,
            _ => None,
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let most = match (&from, &snapshot) {
            (From::Pages(_), Some(_)) => connections.unwrap_or(cores.min(CONNECTIONS_MAX)),
            _ => 1,
        };
        let server = server.clone();
        let open = move || {
            let mut reader = PostgresConnection::open(&server)?;
            begin(&mut reader)?;
            if let Some(id) = &snapshot {
                reader.run(&format!("SET TRANSACTION SNAPSHOT '{id}'"), &[])?;
            }
            Ok(reader)
        };
        let row_bytes = match &from {
            From::Pages(leaves) => mean_row(leaves),
            From::Sql(_) => None,
        };
        let rows = PostgresRows {
            fields,
            kinds,
            from,
            row_bytes,
            parts: Mutex::default(),
            pool: Pool::new(most, Box::new(open)),
            _control: Mutex::new(control),
        };
        Ok((rows, again))
    }

    /// The statement that reads a part.
    fn copy_sql(&self, part: usize, wanted: &Wanted) -> Result<String> {
        let field = |field: &usize| {
            let FieldRead { sql, as_text, .. } = &self.kinds[*field];
            match as_text {
                true => format!("{sql}::text"),
                false => sql.clone(),
            }
        };
        let list: Vec<String> = wanted.fields.iter().map(field).collect();
        let rest = match &self.from {
            From::Sql(sql) => sql.clone(),
            From::Pages(leaves) => {
                let parts = lock(&self.parts);
                let found = parts.get(part).and_then(|part| Some((part, leaves.get(part.leaf)?)));
                let Some((Part { from, to, .. }, leaf)) = found else {
                    return Err(Error::Corrupt(format!("part {part} of a table")));
                };
                let end = to.map_or_else(String::new, |to| format!(" AND ctid < '({to},0)'::tid"));
                let name = Quotes('"').table(&leaf.name);
                format!("ONLY {name} WHERE ctid >= '({from},0)'::tid{end}")
            }
        };
        Ok(format!("COPY (SELECT {} FROM {rest}) TO STDOUT (FORMAT binary)", list.join(", ")))
    }
}

/// Begins to read what is there now, in an order that is the same each time.
fn begin(on: &mut PostgresConnection) -> Result<()> {
    on.run(
        "SET extra_float_digits = 1; SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0; \
         BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        &[],
    )
    .map(|_| ())
}

/// The columns of what a statement answers.
fn columns_of(on: &mut PostgresConnection, sql: &str) -> Result<Statement> {
    on.runtime.block_on(on.client.prepare(sql)).map_err(|error| world(&error))
}

/// The name of the snapshot for other connections; `None` where the server gives none.
fn export(on: &mut PostgresConnection) -> Result<Option<String>> {
    on.run("SAVEPOINT coload_export", &[])?;
    match on.ask("SELECT pg_catalog.pg_export_snapshot()", &[]) {
        Ok(rows) => {
            let id = rows.into_iter().flatten().flatten().next().unwrap_or_default();
            let is_name = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
            match !id.is_empty() && id.bytes().all(is_name) {
                true => Ok(Some(id)),
                false => Err(Error::Refused(format!("PostgreSQL: a snapshot named {id:?}"))),
            }
        }
        // One connection has a snapshot by itself.
        Err(Error::Refused(_)) => {
            on.run("ROLLBACK TO SAVEPOINT coload_export", &[])?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Asks for the tables with pages that the rows of a table are in, itself or its partitions, and for what stands in the
/// way: others that inherit from it, policies, other storage.
const LEAVES_SQL: &str = "\
WITH root AS (SELECT c.* FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($1)),
tree AS (
  SELECT oid FROM root WHERE relkind IN ('r', 'm') AND NOT relhassubclass
  UNION ALL
  SELECT t.relid FROM root, LATERAL pg_catalog.pg_partition_tree(root.oid) t
  WHERE root.relkind = 'p' AND NOT root.relrowsecurity AND t.isleaf
)
SELECT n.nspname::text, c.relname::text,
       (pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::int)::text,
       pg_catalog.pg_table_size(c.oid)::text, c.reltuples::float8::text, c.relpages::text,
       (c.relkind IN ('r', 'm') AND a.amname = 'heap'
        AND pg_catalog.has_table_privilege(c.oid, 'SELECT'))::text
FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam
ORDER BY c.oid";

/// The tables whose pages have the rows of a table; `None` where it is not read by pages.
fn leaves(on: &mut PostgresConnection, table: &TableName) -> Result<Option<Vec<Leaf>>> {
    let version = on.ask("SELECT current_setting('server_version_num')", &[])?;
    let version = version.into_iter().flatten().flatten().next();
    let version: u32 = version.and_then(|version| version.parse().ok()).unwrap_or(0);
    if version < RANGES_SINCE {
        return Ok(None);
    }
    let rows = on.ask(LEAVES_SQL, &[&Quotes('"').table(table)])?;
    let leaves: Option<Vec<Leaf>> = rows.iter().map(|row| leaf(row)).collect();
    Ok(leaves.filter(|leaves| !leaves.is_empty()))
}

fn leaf(row: &[TextCell]) -> Option<Leaf> {
    let cell = |at: usize| row.get(at).and_then(Option::as_deref);
    let (counted, pages): (f64, f64) = (cell(4)?.parse().ok()?, cell(5)?.parse().ok()?);
    let is_known = counted >= 0.0 && pages > 0.0;
    (cell(6)? == "true").then_some(())?;
    Some(Leaf {
        name: TableName { schema: Some(cell(0)?.to_owned()), name: cell(1)?.to_owned() },
        pages: cell(2)?.parse().ok()?,
        bytes: cell(3)?.parse().ok()?,
        rows_per_page: if is_known { (counted / pages).max(1.0) } else { PAGE_ROWS },
    })
}

/// Bytes of a row on average, if the server has counted rows.
fn mean_row(leaves: &[Leaf]) -> Option<usize> {
    let rows: f64 = leaves.iter().map(|leaf| leaf.rows_per_page * leaf.pages as f64).sum();
    let bytes: u64 = leaves.iter().map(|leaf| leaf.bytes).sum();
    (rows >= 1.0).then(|| ((bytes as f64 / rows) as usize).max(1))
}

impl Leaf {
    /// Pages of a part.
    fn part_pages(&self, part: PartBytes) -> u64 {
        // Of long values a page has only where they are.
        let page = self.bytes as f64 / self.pages.max(1) as f64;
        let weight = page.max(self.rows_per_page * part.row_bytes as f64).max(1.0);
        ((part.bytes as f64 / weight) as u64).max(1)
    }
}

/// What values of a column are read as, the type that holds them, and whether the server makes text of them.
fn read_as(column: &Column) -> (ReadAs, DataType, bool) {
    let (data_type, kind) = read_type(column.type_(), column.type_modifier());
    (kind.unwrap_or(ReadAs::Text), data_type, kind.is_none())
}

/// A type in the words of PostgreSQL.
fn kind_name(of: &Type, modifier: i32) -> String {
    match (of.name(), modifier) {
        (name, modifier) if modifier >= 4 && matches!(name, "varchar" | "bpchar") => {
            format!("{name}({})", modifier - 4)
        }
        ("numeric", modifier) if modifier >= 4 => {
            let digits = modifier - 4;
            format!("numeric({},{})", digits >> 16 & 0xffff, ((digits & 0x7ff) ^ 1024) - 1024)
        }
        (name, _) => name.to_owned(),
    }
}

impl TypedSource for PostgresRows {
    fn engine(&self) -> &'static str {
        "PostgreSQL"
    }

    fn fields(&self) -> &[TypedField] {
        &self.fields
    }

    fn row_bytes(&self) -> Option<usize> {
        self.row_bytes
    }

    fn cut(&self, part: PartBytes) -> Result<SourceParts> {
        let From::Pages(leaves) = &self.from else { return Ok(SourceParts::Whole) };
        let (mut parts, mut bytes) = (Vec::new(), Vec::new());
        for (number, leaf) in leaves.iter().enumerate() {
            let pages = leaf.part_pages(part);
            let mut from = 0;
            while from < leaf.pages {
                let end = (from + pages).min(leaf.pages);
                let to = (end < leaf.pages).then_some(end);
                parts.push(Part { leaf: number, from, to });
                bytes.push((leaf.bytes as f64 * (end - from) as f64 / leaf.pages as f64) as u64);
                from = end;
            }
        }
        *lock(&self.parts) = parts;
        Ok(SourceParts::Parts(bytes))
    }

    fn read(self: Arc<Self>, part: usize, wanted: &Wanted) -> Result<Box<dyn TypedReader>> {
        let sql = self.copy_sql(part, wanted)?;
        let mut lent = self.pool.lend()?;
        let gone = || Error::Unavailable("a connection is gone".to_owned());
        let on = lent.get().ok_or_else(gone)?;
        let stream =
            on.runtime.block_on(on.client.copy_out(&sql)).map_err(|error| world(&error))?;
        let kinds = wanted.fields.iter().map(|field| self.kinds[*field].kind).collect();
        Ok(Box::new(CopyReader {
            lent,
            stream: Box::pin(stream),
            kinds,
            bytes_max: wanted.bytes_max,
            is_first: true,
            is_over: false,
        }))
    }
}

/// Reads the answer to COPY.
struct CopyReader {
    lent: Lent<PostgresConnection>,
    stream: Pin<Box<CopyOutStream>>,
    kinds: Arc<[ReadAs]>,
    bytes_max: u64,
    is_first: bool,
    is_over: bool,
}

impl TypedReader for CopyReader {
    fn next(&mut self) -> Result<Option<Box<dyn TypedBlock>>> {
        let CopyReader { lent, stream, bytes_max, is_over, .. } = self;
        if *is_over {
            return Ok(None);
        }
        let Some(on) = lent.get() else { return Ok(None) };
        let mut bytes = Vec::with_capacity(BLOCK_BYTES + (BLOCK_BYTES >> 3));
        on.runtime.block_on(async {
            while bytes.len() < BLOCK_BYTES {
                match stream.next().await {
                    // A message is a row.
                    Some(Ok(message)) if message.len() as u64 > *bytes_max => {
                        return Err(too_large("a row", message.len() as u64, *bytes_max));
                    }
                    Some(Ok(message)) => bytes.extend_from_slice(&message),
                    Some(Err(error)) => return Err(world(&error)),
                    None => {
                        *is_over = true;
                        break;
                    }
                }
            }
            Ok(())
        })?;
        if self.is_over {
            self.lent.give_back();
        }
        let is_first = std::mem::replace(&mut self.is_first, false);
        let block = CopiedRows::new(bytes, is_first, self.is_over, Arc::clone(&self.kinds))?;
        Ok((!block.is_empty()).then(|| Box::new(block) as Box<dyn TypedBlock>))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_large_as_their_rows_are_in_memory() {
        let leaf = |bytes, rows_per_page| Leaf {
            name: TableName { schema: None, name: "t".to_owned() },
            pages: 1 << 20,
            bytes,
            rows_per_page,
        };
        let part = PartBytes { bytes: 8 << 20, row_bytes: 100 };
        assert_eq!(leaf(8 << 30, 50.0).part_pages(part), 1024, "pages as they are");
        assert_eq!(leaf(64 << 30, 50.0).part_pages(part), 128, "long values beside them");
        assert_eq!(leaf(8 << 30, 163.84).part_pages(part), 512, "rows of NULL");
        assert_eq!(leaf(1 << 50, 1.0).part_pages(part), 1, "long values only");
    }
}
