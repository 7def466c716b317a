//! Rows of a known shape into a table of our own, and the time that they take: what a server is measured by.
//!
//! The table is named as those of loads that are not finished, under a lock of its name: the next load removes that of a
//! measurement that died.

use std::time::Instant;

use coload_ddl::{CheckedColumn, Schema};
use coload_load::RowBytes;
use coload_store::LoadId;
use coload_types::{Column, DataType, Error, Plain, Result, Strings, Values};

use crate::engine::{Connection, Engine, Refusal, RowTable, TableColumn};
use crate::names::TableName;
use crate::options::Method;
use crate::staging::{PREFIX, drop_table};

/// Characters of the text of seed 004.
const TEXT: usize = 302;
/// Columns of the wide shape.
const WIDE: usize = 16;

/// What rows are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A counter.
    Counter,
    /// A counter and a text of 302 random characters, as in seed 004.
    Text,
    /// Sixteen whole numbers.
    Wide,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Shape; 3] = [Shape::Counter, Shape::Text, Shape::Wide];

    /// Its columns.
    pub fn columns(self) -> usize {
        match self {
            Shape::Counter => 1,
            Shape::Text => 2,
            Shape::Wide => WIDE,
        }
    }

    fn schema(self) -> Result<Schema> {
        let column = |at: usize| match (self, at) {
            (Shape::Wide, at) => Column::new(format!("c{at}"), DataType::Integer),
            (_, 0) => Column::new("counter", DataType::BigInt),
            (..) => Column::new("text", DataType::Varchar(None)),
        };
        Schema::new((0..self.columns()).map(column).collect())
    }
}

/// A table of our own.
#[derive(Debug)]
pub struct Trial {
    shape: Shape,
    name: TableName,
    columns: Vec<TableColumn>,
}

impl Trial {
    /// Makes the table, in the schema of another one.
    ///
    /// # Errors
    /// `Refused` when the server does not let us.
    pub fn make(
        engine: &dyn Engine,
        on: &mut dyn Connection,
        beside: &TableName,
        shape: Shape,
    ) -> Result<Self> {
        let name = beside.beside(format!("{PREFIX}{}", LoadId::random()?));
        on.lock(&name.name)?;
        let columns = engine.columns_sql(&shape.schema()?)?;
        let table = engine.quotes().table(&name);
        on.run(&format!("CREATE TABLE {table} ({columns}){}", engine.table_options()), &[])?;
        let columns = on.describe(&name)?.unwrap_or_default();
        Ok(Trial { shape, name, columns })
    }

    /// Rows in the form of a method; other ones for each `salt`.
    ///
    /// # Errors
    /// `Limit` when they are too many.
    pub fn rows(
        &self,
        engine: &dyn Engine,
        method: Method,
        count: usize,
        salt: u64,
    ) -> Result<RowBytes> {
        let form = engine.form(method, &self.columns)?;
        let mut random = Random(salt.wrapping_add(1));
        let plain: Vec<Plain> = (0..self.shape.columns())
            .map(|at| Plain { values: self.values(at, count, &mut random), nulls: None })
            .collect();
        let columns: Vec<_> = plain.iter().map(CheckedColumn::Plain).collect();
        form.make_rows(&columns, count)
    }

    fn values(&self, column: usize, count: usize, random: &mut Random) -> Values {
        if (self.shape, column) != (Shape::Text, 1) {
            let value = |row: usize| (row as i64) * 7 + column as i64;
            return Values::Int((0..count).map(value).collect());
        }
        let mut strings = Strings::default();
        for _ in 0..count {
            // Letters, digits and symbols, and none that the form of rows writes otherwise.
            let text: Vec<u8> = (0..TEXT).map(|_| b'!' + (random.next() % 58) as u8).collect();
            strings.push(&text);
        }
        Values::Bytes(strings)
    }

    /// Sends rows in one transaction that is committed; the microseconds that they took.
    ///
    /// # Errors
    /// What the server says.
    pub fn send(
        &self,
        engine: &dyn Engine,
        on: &mut dyn Connection,
        how: (Method, usize),
        rows: &RowBytes,
    ) -> Result<f64> {
        self.run(engine, on, how, (rows, "COMMIT"))
    }

    /// The same, and rolled back.
    ///
    /// # Errors
    /// What the server says.
    pub fn try_out(
        &self,
        engine: &dyn Engine,
        on: &mut dyn Connection,
        how: (Method, usize),
        rows: &RowBytes,
    ) -> Result<f64> {
        self.run(engine, on, how, (rows, "ROLLBACK"))
    }

    fn run(
        &self,
        engine: &dyn Engine,
        on: &mut dyn Connection,
        (method, batch_rows): (Method, usize),
        (rows, end): (&RowBytes, &str),
    ) -> Result<f64> {
        let table = RowTable {
            name: self.name.clone(),
            columns: self.columns.clone(),
            method,
            batch_rows: batch_rows.max(1),
        };
        let began = Instant::now();
        let in_transaction = method != Method::InsertAutocommit;
        if in_transaction {
            on.run(engine.begin_sql(), &[])?;
        }
        if let Err(refusal) = on.send(&table, rows, 0..rows.len()) {
            if in_transaction {
                // What it said first is what is told.
                let _ = on.run("ROLLBACK", &[]);
            }
            return Err(match refusal {
                Refusal::Failed(error) => error,
                Refusal::Row { reason, detail, .. } => {
                    Error::Refused(format!("{}: {reason}; {detail}", self.name))
                }
            });
        }
        if in_transaction {
            on.run(end, &[])?;
        }
        Ok(micros(began))
    }

    /// Takes all rows out of the table.
    ///
    /// # Errors
    /// What the server says.
    pub fn empty(&self, engine: &dyn Engine, on: &mut dyn Connection) -> Result<()> {
        on.run(&format!("TRUNCATE TABLE {}", engine.quotes().table(&self.name)), &[]).map(drop)
    }

    /// Removes the table.
    ///
    /// # Errors
    /// What the server says.
    pub fn remove(&self, engine: &dyn Engine, on: &mut dyn Connection) -> Result<()> {
        drop_table(engine, on, &self.name)
    }
}

/// Microseconds since a moment.
pub fn micros(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e6
}

/// Numbers without a pattern that a server could use (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
