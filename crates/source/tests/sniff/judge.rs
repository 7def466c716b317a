//! Whether a file was read as it was meant.

use crate::made::Made;
use crate::read::{Table, read, same};

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As it was meant.
    Exact,
    /// It was refused, or records were set aside, or a guess was called one.
    Said(String),
    /// It is not as it was meant, and nothing says so.
    Silent(String),
}

/// Reads a file with nothing given, and compares it with what it was made of.
pub fn judge(made: &Made) -> Outcome {
    let table = match read(&made.bytes) {
        Ok(table) => table,
        Err(error) => return Outcome::Said(format!("refused: {error}")),
    };
    match difference(made, &table) {
        None => Outcome::Exact,
        Some(what) if table.rejects > 0 => {
            Outcome::Said(format!("{} rejects: {what}", table.rejects))
        }
        Some(what) => {
            let guess =
                table.evidence.iter().any(|e| e.contains("guess") || e.contains("kept as text"));
            if guess { Outcome::Said(what) } else { Outcome::Silent(what) }
        }
    }
}

fn difference(made: &Made, table: &Table) -> Option<String> {
    let made_up: Vec<String> = (1..=made.kinds.len()).map(|c| format!("c{c}")).collect();
    let names = made.names.as_ref().unwrap_or(&made_up);
    if *names != table.names {
        return Some(format!("names {:?} for {names:?}", table.names));
    }
    if made.rows.len() != table.rows.len() {
        return Some(format!("{} rows for {}", table.rows.len(), made.rows.len()));
    }
    for (row, (own, found)) in made.rows.iter().zip(&table.rows).enumerate() {
        for (column, (own, found)) in own.iter().zip(found).enumerate() {
            if !same(own, found, table.types[column]) {
                return Some(format!("row {row} column {column}: {found:?} for {own:?}"));
            }
        }
    }
    None
}
