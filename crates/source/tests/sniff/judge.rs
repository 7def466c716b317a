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

/// Where a table differs from what was meant.
enum Difference {
    /// The names, or how many rows there are: what was taken for the header.
    Shape(String),
    /// A value; whether characters that are not ASCII differ.
    Value(String, bool),
}

/// Reads a file with nothing given, and compares it with what it was made of.
pub fn judge(made: &Made) -> Outcome {
    let table = match read(&made.bytes) {
        Ok(table) => table,
        Err(error) => return Outcome::Said(format!("refused: {error}")),
    };
    let said = |what: &str| table.evidence.iter().any(|line| line.contains(what));
    // What is said must be about what is wrong: a guess about the encoding excuses no header.
    match difference(made, &table) {
        None => Outcome::Exact,
        Some(Difference::Shape(what) | Difference::Value(what, _)) if table.rejects > 0 => {
            Outcome::Said(format!("{} rejects: {what}", table.rejects))
        }
        Some(Difference::Shape(what)) if said("header: a guess") => Outcome::Said(what),
        Some(Difference::Value(what, true)) if said("is a guess from little") => {
            Outcome::Said(what)
        }
        Some(Difference::Value(what, _)) if said("kept as text") => Outcome::Said(what),
        Some(Difference::Shape(what) | Difference::Value(what, _)) => Outcome::Silent(what),
    }
}

fn difference(made: &Made, table: &Table) -> Option<Difference> {
    let made_up: Vec<String> = (1..=made.kinds.len()).map(|c| format!("c{c}")).collect();
    let names = made.names.as_ref().unwrap_or(&made_up);
    let letters =
        |a: &str, b: &str| a.chars().filter(char::is_ascii).eq(b.chars().filter(char::is_ascii));
    if names.len() != table.names.len() {
        return Some(Difference::Shape(format!("names {:?} for {names:?}", table.names)));
    }
    if let Some((own, found)) = names.iter().zip(&table.names).find(|(own, found)| own != found) {
        let what = format!("name {found:?} for {own:?}");
        return Some(match letters(own, found) {
            true => Difference::Value(what, true),
            false => Difference::Shape(what),
        });
    }
    if made.rows.len() != table.rows.len() {
        let what = format!("{} rows for {}", table.rows.len(), made.rows.len());
        return Some(Difference::Shape(what));
    }
    for (row, (own, found)) in made.rows.iter().zip(&table.rows).enumerate() {
        for (column, (own, found)) in own.iter().zip(found).enumerate() {
            if !same(own, found, table.types[column]) {
                let what = format!("row {row} column {column}: {found:?} for {own:?}");
                let other_letters = match (own, found) {
                    (Some(own), Some(found)) => !own.is_ascii() && letters(own, found),
                    _ => false,
                };
                return Some(Difference::Value(what, other_letters));
            }
        }
    }
    None
}
