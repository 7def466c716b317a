//! Thousands of files made from seeds, read with nothing given.
//!
//! `COLOAD_SNIFF_FILES` is how many; `COLOAD_SNIFF_SEED` the first seed. What is not read exactly must be said, and is counted.

use std::collections::BTreeMap;

use crate::judge::{Outcome, judge};
use crate::made::make;
use crate::read::read;

/// Files that are read if nothing else is asked for.
const FILES: u64 = 2000;
/// Share of files that is read exactly, at least.
const EXACT_MIN: f64 = 0.99;

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
