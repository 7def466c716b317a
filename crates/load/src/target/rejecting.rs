//! Reads the inputs of a load again, to tell the records of rows that are left out for their keys.
//!
//! Which rows these are is known when all are sorted and compared with the table (decision 0074), by their numbers in the order of the
//! input. Rows of each chunk were counted when it was read first, so that the chunk of a row follows.
//!
//! Cost: a parse of the inputs; of each chunk with such rows another one. Nothing is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coload_ddl::{CheckedColumn, Key, Schema};
use coload_source::{LeftOut, Told, told_bytes};
use coload_store::{ConflictingRow, MeetsKey};
use coload_transform::PartitionColumn;
use coload_types::{DataType, Error, Result, Value};
use coload_wire::Seal;

use super::{Ahead, AheadColumn, MadeRows, TakesRows, Target, Works};

/// Refuses the rows of a load that are left out for their keys, and keeps no other.
#[derive(Debug)]
pub struct Rejecting<'a> {
    /// In the order of the input.
    rows: &'a [ConflictingRow],
    /// The first row of each chunk, and the end of the last.
    starts: Vec<u64>,
    /// Columns of the key.
    key: &'a [usize],
    columns: Vec<(String, DataType)>,
    /// What is said of rows whose keys are in the table, and of those whose keys came before.
    reasons: [String; 2],
    kept: AtomicU64,
}

/// Rows of a chunk that nothing is made of.
#[derive(Debug)]
struct Uncounted(usize);

impl MadeRows for Uncounted {
    fn count(&self) -> usize {
        self.0
    }
}

impl<'a> Rejecting<'a> {
    /// Refuses these rows of a table with a key, of chunks with so many rows.
    pub fn new(
        rows: &'a [ConflictingRow],
        chunk_rows: &[u32],
        (schema, key): (&Schema, &'a Key),
    ) -> Self {
        let mut starts = Vec::with_capacity(chunk_rows.len() + 1);
        starts.push(0);
        let mut end = 0;
        starts.extend(chunk_rows.iter().map(|rows| {
            end += u64::from(*rows);
            end
        }));
        let columns = schema.columns().iter().map(|c| (c.name.clone(), c.data_type)).collect();
        let sql = key.sql(schema.columns());
        let reasons = [
            format!("is a key of {sql} that is in the table already"),
            format!("is a key of {sql} that came before in the load"),
        ];
        let kept = AtomicU64::new(0);
        Rejecting { rows, starts, key: key.columns(), columns, reasons, kept }
    }

    /// The rows of a chunk that are refused, and the number of its first row.
    fn of_chunk(&self, chunk: usize) -> (&'a [ConflictingRow], u64) {
        let (Some(start), Some(end)) = (self.starts.get(chunk), self.starts.get(chunk + 1)) else {
            return (&[], 0);
        };
        let place = |number: &u64| self.rows.partition_point(|row| row.number < *number);
        (&self.rows[place(start)..place(end)], *start)
    }

    fn tell(&self, meets: MeetsKey, row: usize, columns: &[Option<CheckedColumn<'_>>]) -> Told {
        let shown = |column: &usize| {
            let value = columns[*column].as_ref().and_then(|column| column.get(row));
            let value = match value {
                Some(Value::Bytes(bytes)) => Some(Value::Bytes(told_bytes(&bytes).into())),
                other => other,
            };
            value.map_or_else(String::new, |value| value.display(self.columns[*column].1))
        };
        let values: Vec<String> = self.key.iter().map(shown).collect();
        let names: Vec<&str> = self.key.iter().map(|c| self.columns[*c].0.as_str()).collect();
        let reason = match meets {
            MeetsKey::InTable => &self.reasons[0],
            MeetsKey::Earlier => &self.reasons[1],
        };
        Told {
            column: Some(names.join(", ")),
            value: values.join(", ").into_bytes(),
            reason: reason.clone(),
            advice: "--max-rejects N to set such records aside, or --on-conflict ignore or replace"
                .to_owned(),
        }
    }
}

impl TakesRows for Rejecting<'_> {
    fn make_rows(&self, _: &[CheckedColumn<'_>], rows: usize) -> Result<Box<dyn MadeRows>> {
        Ok(Box::new(Uncounted(rows)))
    }

    fn left_out(&self, _: usize) -> Vec<LeftOut> {
        Vec::new()
    }

    fn refuses_by(&self, chunk: usize) -> Option<&[usize]> {
        (!self.of_chunk(chunk).0.is_empty()).then_some(self.key)
    }

    fn refuse(
        &self,
        chunk: usize,
        rows: u32,
        columns: &[Option<CheckedColumn<'_>>],
    ) -> Result<Vec<LeftOut>> {
        let (refused, start) = self.of_chunk(chunk);
        if self.starts[chunk + 1] - start != u64::from(rows) {
            // Its start was speculated wrongly, and it is read again; whoever calls counts the rows that are left in the end.
            return Ok(Vec::new());
        }
        let left_out = |row: &ConflictingRow| {
            let number = row.number - start;
            let told = Arc::new(self.tell(row.meets, number as usize, columns));
            LeftOut { row: number, told }
        };
        Ok(refused.iter().map(left_out).collect())
    }
}

impl Target for Rejecting<'_> {
    fn takes_rows(&self) -> Option<&dyn TakesRows> {
        Some(self)
    }

    fn take_ahead(&self, ahead: Ahead) -> Result<Works> {
        for column in ahead.columns {
            let AheadColumn::Rows(rows) = column else { return Err(no_rows()) };
            self.kept.fetch_add(rows.rows.count() as u64, Ordering::Relaxed);
        }
        Ok(Works::new())
    }

    fn take_column(&self, _: usize, _: usize, _: &[u32], _: PartitionColumn) -> Result<()> {
        Err(no_rows())
    }

    fn seal(&self, _: Seal) -> Result<Works> {
        Ok(Works::new())
    }

    fn rows(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }
}

fn no_rows() -> Error {
    Error::Corrupt("columns of a load that is read again for its records".into())
}
