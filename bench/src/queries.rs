//! Queries on a store, hot, in this process: from their text to all rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use coload_serve::arrow::record_batch::RecordBatch;
use coload_serve::arrow::util::display::{ArrayFormatter, FormatOptions};
use coload_serve::{Database, DatabaseOptions};
use coload_store::Store;
use coload_types::{Error, Result};
use serde_json::{Map, Value, json};

/// Calls before the clock counts, as in rivals/queries.py.
const WARM_UP: usize = 5;

/// One JSON object: for each of `queries` (`NAME=SQL`) the median ms of `repeat` calls under `times`, and its rows as texts
/// under `answers`.
///
/// # Errors
/// What the store says, and `Invalid` for a query without a name.
pub fn run(store: &Path, queries: &[String], repeat: usize, threads: usize) -> Result<String> {
    let options = DatabaseOptions { threads, ..DatabaseOptions::default() };
    let database = Database::open(Store::open(store)?, options)?;
    let queries = queries
        .iter()
        .map(|query| query.split_once('=').ok_or_else(|| no_name(query)))
        .collect::<Result<BTreeMap<_, _>>>()?;
    let (mut times, mut answers) = (Map::new(), Map::new());
    for (name, sql) in &queries {
        answers.insert((*name).to_owned(), rows(&database.query(sql)?)?);
    }
    for (name, sql) in &queries {
        times.insert((*name).to_owned(), median_ms(&database, sql, repeat)?.into());
    }
    Ok(json!({ "times": times, "answers": answers }).to_string())
}

fn no_name(query: &str) -> Error {
    Error::Invalid(format!("--query {query:?} is not NAME=SQL"))
}

fn median_ms(database: &Database, sql: &str, repeat: usize) -> Result<f64> {
    let mut times = Vec::with_capacity(repeat);
    for call in 0..WARM_UP + repeat.max(1) {
        let start = Instant::now();
        database.query(sql)?;
        if call >= WARM_UP {
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    Ok((times[middle] + times[(times.len() - 1) / 2]) / 2.0)
}

fn rows(batches: &[RecordBatch]) -> Result<Value> {
    let failed = |e| Error::Refused(format!("no text form of an answer: {e}"));
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &FormatOptions::default()))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(failed)?;
        rows.extend((0..batch.num_rows()).map(|row| {
            columns
                .iter()
                .map(|column| Value::String(column.value(row).to_string()))
                .collect::<Value>()
        }));
    }
    Ok(rows.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn times_and_answers_come_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create_or_open(folder.path()).unwrap();
        let database = Database::open(store, DatabaseOptions::default()).unwrap();
        database.query("CREATE TABLE t (a BIGINT, b VARCHAR)").unwrap();
        database.query("INSERT INTO t VALUES (1, 'x'), (2, 'y')").unwrap();
        let queries =
            ["all=SELECT * FROM t ORDER BY a DESC".to_owned(), "n=SELECT sum(a) FROM t".to_owned()];
        let found: Value =
            serde_json::from_str(&run(folder.path(), &queries, 2, 2).unwrap()).unwrap();
        assert_eq!(found["answers"], json!({ "all": [["2", "y"], ["1", "x"]], "n": [["3"]] }));
        assert!(found["times"]["all"].as_f64().unwrap() > 0.0);
        let nameless = run(folder.path(), &["SELECT 1".to_owned()], 1, 1);
        assert!(matches!(nameless, Err(Error::Invalid(_))));
    }
}
