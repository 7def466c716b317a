//! Text of a user who may only read: it ends in an answer or an error, and changes nothing.
//!
//! Half of the inputs are the text itself, half choose words of the language.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use coload_serve::{Database, DatabaseOptions, Grant, Parameters, Rights, StatementLimits};
use coload_store::Store;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/serve/tests/it/sql_words.rs"]
mod sql_words;

/// Batches read of an answer: some have no end.
const BATCHES_MAX: usize = 3;

struct Served {
    database: Database,
    rights: Rights,
    folder: tempfile::TempDir,
    files: Vec<String>,
}

static SERVED: LazyLock<Served> = LazyLock::new(|| {
    let folder = tempfile::TempDir::new().expect("a folder");
    let store = Store::create_or_open(folder.path().join("store")).expect("a store");
    let statements = StatementLimits {
        text_bytes: 64 << 10,
        planning: Duration::from_secs(60),
        ..StatementLimits::default()
    };
    let options = DatabaseOptions { threads: 1, memory: 64 << 20, statements, ..Default::default() };
    let database = Database::open(store, options).expect("a database");
    for text in [
        "CREATE TABLE pub (a INT, \"From\" TEXT, d DATE)",
        "INSERT INTO pub VALUES (1, 'x', '2024-01-01'), (2, NULL, NULL)",
        "CREATE TABLE hidden AS SELECT 1 AS salary",
    ] {
        database.query(text).expect("a table");
    }
    let grant: Grant = "read:pub".parse().expect("a grant");
    let files = files(folder.path());
    Served { database, rights: Rights::of("rob", vec![grant]), folder, files }
});

fuzz_target!(|input: &[u8]| {
    let [kind, rest @ ..] = input else { return };
    let text = match kind % 2 {
        0 => String::from_utf8_lossy(rest).into_owned(),
        _ => {
            let mut bytes = rest.iter();
            sql_words::statement(&mut |n| usize::from(bytes.next().copied().unwrap_or(0)) % n)
        }
    };
    let served = &*SERVED;
    let database = &served.database;
    let _ = database.block_on(async {
        let planned = database.plan(&served.rights, &text, Parameters::default()).await?;
        let mut answer = planned.run(database).await?;
        for _ in 0..BATCHES_MAX {
            if answer.next().await?.is_none() {
                break;
            }
        }
        Ok::<_, coload_types::Error>(())
    });
    assert_eq!(files(served.folder.path()), served.files, "{text}");
});

/// The files below a folder with their sizes.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path)),
            path => {
                let bytes = entry.metadata().map_or(0, |m| m.len());
                found.push(format!("{} {bytes}", path.display()));
            }
        }
    }
    found.sort();
    found
}
