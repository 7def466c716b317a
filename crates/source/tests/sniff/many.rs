//! Thousands of files made from seeds, read with nothing given.
//!
//! `COLOAD_SNIFF_FILES` is how many; `COLOAD_SNIFF_SEED` the first seed. What is not read exactly must be said, and is counted.

use std::collections::BTreeMap;

use crate::made::{Made, make};
use crate::read::{Table, read, same};

/// Files that are read if nothing else is asked for.
const FILES: u64 = 2000;
/// Share of files that is read exactly, at least.
const EXACT_MIN: f64 = 0.99;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Exact,
    /// It was refused, or records were set aside, or a guess was called one.
    Said(String),
    Silent(String),
}

fn judge(made: &Made) -> Outcome {
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

#[test]
fn files_as_programs_write_them_are_read_exactly() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (files, first) = (number("COLOAD_SNIFF_FILES", FILES), number("COLOAD_SNIFF_SEED", 1));
    let mut outcomes: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    let (mut silent, mut exact) = (0, 0);
    for seed in first..first + files {
        let made = make(seed);
        let outcome = judge(&made);
        let counts = outcomes.entry(format!("{:?}", made.writer)).or_default();
        match outcome {
            Outcome::Exact => {
                counts[0] += 1;
                exact += 1;
            }
            Outcome::Said(why) => {
                counts[1] += 1;
                println!("said    {seed} {:?}: {why}", made.writer);
            }
            Outcome::Silent(why) => {
                counts[2] += 1;
                silent += 1;
                println!("silent  {seed} {:?}: {why}", made.writer);
            }
        }
    }
    println!("writer: exact, said, silently wrong");
    for (writer, [exact, said, silent]) in &outcomes {
        println!("{writer}: {exact}, {said}, {silent}");
    }
    println!("{exact} of {files} exact, {silent} silently wrong");
    assert!(exact as f64 >= EXACT_MIN * files as f64, "{exact} of {files} files are read exactly");
    assert_eq!(silent, 0, "files are read wrongly, and nothing says so");
}

/// Prints a file and what is found out about it: `COLOAD_SNIFF_SEED=7 cargo test --test sniff shows_a_file -- --nocapture`.
#[test]
fn shows_a_file() {
    let Some(seed) = std::env::var("COLOAD_SNIFF_SEED").ok().and_then(|text| text.parse().ok())
    else {
        return;
    };
    let made = make(seed);
    let text = String::from_utf8_lossy(&made.bytes).into_owned();
    println!("{}", text.lines().take(12).collect::<Vec<_>>().join("\n"));
    match read(&made.bytes) {
        Ok(table) => println!("{}\n{:?}", table.evidence.join("\n"), table.rows.first()),
        Err(error) => println!("{error}"),
    }
}
