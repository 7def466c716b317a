//! Answers of many statements, one after the other in this process: a line of JSON in, a line of JSON out.
//!
//! ```text
//!   "SELECT 1 AS a"  ->  {"types": ["Int64"], "rows": [["1"]]}
//!   "SELECT 1 +"     ->  {"error": "Invalid", "text": ".."}
//! ```
//!
//! Values are texts or null. A statement that panics is `"error": "panic"`, one that takes too long is `"error": "slow"`.

use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use coload_serve::arrow::array::Array;
use coload_serve::arrow::record_batch::RecordBatch;
use coload_serve::arrow::util::display::{ArrayFormatter, FormatOptions};
use coload_serve::{Database, DatabaseOptions};
use coload_store::Store;
use coload_types::{Error, Result};
use serde_json::{Value, json};

/// Time of one statement, planning included; those of the generator take milliseconds.
const STATEMENT_SECONDS_MAX: u64 = 30;

/// Answers each statement of `input` on a store, which is made if it is not there.
///
/// # Errors
/// What the store and the two ends of the pipe say, and `Invalid` for a line that is no JSON text.
pub fn run(store: &Path, threads: usize, input: impl BufRead, mut out: impl Write) -> Result<()> {
    let options = DatabaseOptions { threads, ..DatabaseOptions::default() };
    let database = Database::open(Store::create_or_open(store)?, options)?;
    let broken = |e: std::io::Error| Error::Unavailable(format!("the pipe is broken: {e}"));
    for line in input.lines() {
        let line = line.map_err(broken)?;
        let statement: String = serde_json::from_str(&line)
            .map_err(|e| Error::Invalid(format!("{line:?} is no JSON text: {e}")))?;
        let answer = catch_unwind(AssertUnwindSafe(|| answer(&database, &statement)));
        let answer = answer.unwrap_or_else(|_| json!({ "error": "panic", "text": "" }));
        writeln!(out, "{answer}").and_then(|()| out.flush()).map_err(broken)?;
    }
    Ok(())
}

fn answer(database: &Database, statement: &str) -> Value {
    let limit = Duration::from_secs(STATEMENT_SECONDS_MAX);
    let found = database.block_on(async {
        let run = async { database.sql(statement).await?.collect().await };
        tokio::time::timeout(limit, run).await
    });
    match found {
        Err(_) => json!({ "error": "slow", "text": "" }),
        Ok(Err(e)) => failure(&e),
        Ok(Ok(batches)) => match table(&batches) {
            Ok(table) => table,
            Err(e) => failure(&e),
        },
    }
}

fn failure(error: &Error) -> Value {
    let text = error.to_string();
    let kind = match error {
        // What a task of the engine panics with arrives as an error.
        _ if text.contains("panicked") => "panic",
        Error::Invalid(_) => "Invalid",
        Error::Limit(_) => "Limit",
        Error::Unavailable(_) => "Unavailable",
        Error::Refused(_) => "Refused",
        Error::Corrupt(_) => "Corrupt",
        _ => "Input",
    };
    json!({ "error": kind, "text": text })
}

fn table(batches: &[RecordBatch]) -> Result<Value> {
    let failed = |e| Error::Refused(format!("no text form of an answer: {e}"));
    let mut rows = Vec::new();
    let mut types = Vec::new();
    for batch in batches {
        types = batch.columns().iter().map(|c| c.data_type().to_string()).collect();
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &FormatOptions::default()))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(failed)?;
        for row in 0..batch.num_rows() {
            let value = |(column, text): (&_, &ArrayFormatter<'_>)| {
                let column: &dyn Array = column;
                match column.is_null(row) {
                    true => Ok(Value::Null),
                    false => text.value(row).try_to_string().map(Value::String).map_err(failed),
                }
            };
            let pairs = batch.columns().iter().map(AsRef::as_ref).zip(&columns);
            rows.push(Value::Array(pairs.map(|(c, t)| value((c, t))).collect::<Result<_>>()?));
        }
    }
    Ok(json!({ "types": types, "rows": rows }))
}
