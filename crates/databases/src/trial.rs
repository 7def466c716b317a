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
/// Bytes of a cell from which on rows are mostly text.
const LONG_CELL: f64 = 40.0;
/// Columns of the wide shape.
const WIDE: usize = 16;
/// Characters of its texts.
const WIDE_TEXT: usize = 10;

/// What rows are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A counter.
    Counter,
    /// A counter and a text of 302 random characters, as in seed 004.
    Text,
    /// Sixteen columns of many types, as a table of facts has them: those of lineitem.
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

    /// The shape that is most like rows of so many columns and bytes.
    pub fn nearest(columns: usize, row_bytes: f64) -> Self {
        match columns {
            _ if row_bytes / columns.max(1) as f64 > LONG_CELL => Shape::Text,
            0..4 => Shape::Counter,
            _ => Shape::Wide,
        }
    }

    /// Bytes of a row, about.
    fn row_bytes(self) -> f64 {
        match self {
            Shape::Counter => 10.0,
            Shape::Text => 320.0,
            Shape::Wide => 170.0,
        }
    }

    fn schema(self) -> Result<Schema> {
        let column = |at: usize| match (self, at) {
            (Shape::Wide, at) => Column::new(format!("c{at}"), wide_type(at)),
            (_, 0) => Column::new("counter", DataType::BigInt),
            (..) => Column::new("text", DataType::Varchar(None)),
        };
        Schema::new((0..self.columns()).map(column).collect())
    }
}

/// The type of a column of the wide shape.
fn wide_type(at: usize) -> DataType {
    match at {
        0..3 => DataType::BigInt,
        3 => DataType::Integer,
        4..8 => DataType::Decimal { precision: 15, scale: 2 },
        8..11 => DataType::Date,
        _ => DataType::Varchar(Some(44)),
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

    /// Columns of its rows.
    pub fn columns(&self) -> usize {
        self.shape.columns()
    }

    /// Bytes of a row, about.
    pub fn row_bytes(&self) -> f64 {
        self.shape.row_bytes()
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
        let length = match (self.shape, column) {
            (Shape::Text, 1) => TEXT,
            (Shape::Wide, 11..) => WIDE_TEXT,
            _ => {
                let value = |row: usize| match (self.shape, column) {
                    (Shape::Wide, 4..8) => (random.next() % 10_000_000) as i64,
                    // Days of a century.
                    (Shape::Wide, 8..11) => (random.next() % 36_500) as i64,
                    _ => (row as i64) * 7 + column as i64,
                };
                return Values::Int((0..count).map(value).collect());
            }
        };
        let mut strings = Strings::default();
        for _ in 0..count {
            // Letters, digits and symbols, and none that the form of rows writes otherwise.
            let text: Vec<u8> = (0..length).map(|_| b'!' + (random.next() % 58) as u8).collect();
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
        Ok(self.send_and_commit(engine, on, how, rows)?.0)
    }

    /// The same, and how many of the microseconds COMMIT took.
    ///
    /// # Errors
    /// What the server says.
    pub fn send_and_commit(
        &self,
        engine: &dyn Engine,
        on: &mut dyn Connection,
        (method, batch_rows): (Method, usize),
        rows: &RowBytes,
    ) -> Result<(f64, f64)> {
        let table = RowTable {
            name: self.name.clone(),
            columns: self.columns.clone(),
            method,
            batch_rows: batch_rows.max(1),
            freezes: false,
        };
        let began = Instant::now();
        let in_transaction = method != Method::InsertAutocommit;
        if in_transaction {
            on.run(engine.begin_sql(), &[])?;
        }
        if let Err(refusal) = on.send(&table, rows, 0..rows.len()) {
            if in_transaction {
                // What it said first is what is told.
                let _ = on.run(engine.rollback_sql(), &[]);
            }
            return Err(match refusal {
                Refusal::Failed(error) => error,
                Refusal::Row { reason, detail, .. } => {
                    Error::Refused(format!("{}: {reason}; {detail}", self.name))
                }
            });
        }
        let sent = micros(began);
        if in_transaction {
            on.run("COMMIT", &[])?;
        }
        let all = micros(began);
        Ok((all, all - sent))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_rows_is_that_of_their_cells() {
        assert_eq!(Shape::nearest(1, 8.0), Shape::Counter);
        assert_eq!(Shape::nearest(2, 310.0), Shape::Text);
        assert_eq!(Shape::nearest(16, 125.0), Shape::Wide);
        assert_eq!(Shape::nearest(0, 0.0), Shape::Counter);
    }
}
