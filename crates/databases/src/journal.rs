//! The journal of loads in a database: what was committed, in the transactions that committed it.
//!
//! ```text
//!   coload_loads   load_id | chunk | table_name | row_count | note           | committed_at
//!                  9f3c... | 0     | sales.t    | 81234     | <sum>, refused | ...            a chunk of a resumable load
//!                  9f3c... | -1    | sales.t    | 6001215   |                | ...            the end of any load
//! ```
//!
//! A line is there if and only if what it tells is there. So a load that was killed, or whose COMMIT was not answered, can
//! tell what happened.

use std::collections::BTreeMap;

use coload_source::{LeftOut, Told};
use coload_store::LoadId;
use coload_types::{Error, Result};

use crate::engine::{Connection, Engine};
use crate::names::TableName;

/// Name of the table.
const NAME: &str = "coload_loads";
/// What stands for a chunk in the line of the end.
const END: i64 = -1;
/// What the user can do about a refused row.
const ADVICE: &str = "--max-rejects N to set such records aside";

/// The lines of one load.
#[derive(Debug, Clone)]
pub struct Journal {
    table: TableName,
    /// Table into which the load goes.
    into: String,
    id: String,
}

/// A line of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Rows that were committed.
    pub rows: u64,
    /// Checksum of the rows as they were sent.
    pub sum: u64,
    /// Rows that the server refused.
    pub refused: Vec<LeftOut>,
}

/// A row that the server refused, by its number in the chunk as it was sent.
pub fn refused_row(row: u64, column: Option<String>, reason: String, detail: String) -> LeftOut {
    let told = Told { column, value: detail.into_bytes(), reason, advice: ADVICE.to_owned() };
    LeftOut { row, told: told.into() }
}

impl Journal {
    /// The journal beside a table.
    pub fn new(into: &TableName, id: LoadId) -> Self {
        Journal { table: into.beside(NAME), into: into.to_string(), id: id.to_string() }
    }

    /// Makes the table if it is not there.
    ///
    /// # Errors
    /// `Refused` when the server does not let us.
    pub fn create(&self, engine: &dyn Engine, on: &mut dyn Connection) -> Result<()> {
        if on.describe(&self.table)?.is_some() {
            return Ok(());
        }
        let [key, whole, text, moment] = engine.journal_types();
        let quotes = engine.quotes();
        let sql = format!(
            "{} {} (load_id {key} NOT NULL, chunk {whole} NOT NULL, table_name {text} NOT NULL, \
             row_count {whole} NOT NULL, note {text} NOT NULL, committed_at {moment}, PRIMARY KEY (load_id, chunk))",
            engine.create_missing_sql(),
            quotes.table(&self.table)
        );
        match on.run(&sql, &[]) {
            Ok(_) => Ok(()),
            // Another load may make it at the same time.
            Err(_) if on.describe(&self.table)?.is_some() => Ok(()),
            Err(error) => {
                Err(Error::Refused(format!("cannot make the journal {}: {error}", self.table)))
            }
        }
    }

    fn put(
        &self,
        engine: &dyn Engine,
        on: &mut dyn Connection,
        chunk: i64,
        (rows, note): (u64, &str),
    ) -> Result<()> {
        let sql = format!(
            "INSERT INTO {} (load_id, chunk, table_name, row_count, note) VALUES ({}, {}, {}, {}, {})",
            engine.quotes().table(&self.table),
            engine.parameter(1),
            engine.whole_parameter(2),
            engine.parameter(3),
            engine.whole_parameter(4),
            engine.parameter(5)
        );
        let (chunk, rows) = (chunk.to_string(), rows.to_string());
        on.run(&sql, &[&self.id, &chunk, &self.into, &rows, note]).map(drop)
    }

    /// Writes the line of a chunk, in the transaction that has its rows.
    ///
    /// # Errors
    /// What the server says.
    pub fn put_chunk(
        &self,
        engine: &dyn Engine,
        on: &mut dyn Connection,
        chunk: usize,
        line: &Line,
    ) -> Result<()> {
        self.put(engine, on, chunk as i64, (line.rows, &line.note()))
    }

    /// Writes the line of the end, in the transaction that makes all rows visible.
    ///
    /// # Errors
    /// What the server says.
    pub fn put_end(&self, engine: &dyn Engine, on: &mut dyn Connection, rows: u64) -> Result<()> {
        self.put(engine, on, END, (rows, ""))
    }

    /// The lines of the chunks, and the rows of the whole load if it has ended.
    ///
    /// # Errors
    /// What the server says, `Corrupt` when a line is none of ours.
    pub fn read(
        &self,
        engine: &dyn Engine,
        on: &mut dyn Connection,
    ) -> Result<(BTreeMap<usize, Line>, Option<u64>)> {
        let sql = format!(
            "SELECT CAST(chunk AS char(20)), CAST(row_count AS char(20)), note FROM {} WHERE load_id = {}",
            engine.quotes().table(&self.table),
            engine.parameter(1)
        );
        let (mut lines, mut end) = (BTreeMap::new(), None);
        for row in on.ask(&sql, &[&self.id])? {
            let cell = |at: usize| row.get(at).and_then(Option::as_deref).map(str::trim);
            let wrong = || Error::Corrupt(format!("a line of {}: {row:?}", self.table));
            let number = |at| cell(at).and_then(|text| text.parse::<i64>().ok());
            let (chunk, rows) = number(0).zip(number(1)).ok_or_else(wrong)?;
            let rows = u64::try_from(rows).map_err(|_| wrong())?;
            match usize::try_from(chunk) {
                Err(_) => end = Some(rows),
                Ok(chunk) => {
                    let line = cell(2).and_then(|note| Line::of_note(rows, note));
                    lines.insert(chunk, line.ok_or_else(wrong)?);
                }
            }
        }
        Ok((lines, end))
    }

    /// Whether the line of a chunk, or of the end, is there.
    ///
    /// # Errors
    /// What the server says.
    pub fn has(
        &self,
        engine: &dyn Engine,
        on: &mut dyn Connection,
        chunk: Option<usize>,
    ) -> Result<bool> {
        let sql = format!(
            "SELECT note FROM {} WHERE load_id = {} AND chunk = {}",
            engine.quotes().table(&self.table),
            engine.parameter(1),
            engine.whole_parameter(2)
        );
        let chunk = chunk.map_or(END, |chunk| chunk as i64).to_string();
        Ok(!on.ask(&sql, &[&self.id, &chunk])?.is_empty())
    }

    /// Forgets a load that is to be loaded once more.
    ///
    /// # Errors
    /// What the server says.
    pub fn forget(&self, engine: &dyn Engine, on: &mut dyn Connection) -> Result<()> {
        let sql = format!(
            "DELETE FROM {} WHERE load_id = {}",
            engine.quotes().table(&self.table),
            engine.parameter(1)
        );
        on.run(&sql, &[&self.id]).map(drop)
    }
}

impl Line {
    /// Checksum, then a line for each refused row: number, column, reason, detail, with tabs between.
    fn note(&self) -> String {
        let mut note = format!("{:016x}", self.sum);
        for LeftOut { row, told } in &self.refused {
            let column = told.column.as_deref().unwrap_or("");
            // A server's message may have any character.
            let plain = |text: &str| text.replace(['\t', '\n', '\r', '\0'], " ");
            let detail = String::from_utf8_lossy(&told.value);
            let parts = [column, &told.reason, &detail].map(plain);
            note.push_str(&format!("\n{row}\t{}", parts.join("\t")));
        }
        note
    }

    fn of_note(rows: u64, note: &str) -> Option<Self> {
        let mut lines = note.split('\n');
        let sum = u64::from_str_radix(lines.next()?, 16).ok()?;
        let refused = lines.map(|line| {
            let parts: Vec<&str> = line.split('\t').collect();
            let [row, column, reason, detail] = parts[..] else { return None };
            let column = (!column.is_empty()).then(|| column.to_owned());
            Some(refused_row(row.parse().ok()?, column, reason.to_owned(), detail.to_owned()))
        });
        Some(Line { rows, sum, refused: refused.collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_tells_its_line_again() {
        let refused = vec![
            refused_row(0, None, "no, never".to_owned(), String::new()),
            refused_row(81_234, Some("day".to_owned()), "range".to_owned(), "it is 7".to_owned()),
        ];
        for refused in [Vec::new(), refused] {
            let line = Line { rows: 7, sum: u64::MAX - 1, refused };
            assert_eq!(Line::of_note(7, &line.note()), Some(line));
        }
        for wrong in ["", "x", "0000000000000001\n", "0000000000000001\n1\ta", "1\nx\t\tb"] {
            assert_eq!(Line::of_note(1, wrong), None, "{wrong:?}");
        }
    }
}
