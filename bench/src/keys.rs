//! Look-ups of rows by key, in this process and without SQL.

use std::path::Path;
use std::time::Instant;

use coload_scan::KeyTable;
use coload_store::Store;
use coload_types::{Error, Result, Value};
use serde_json::json;

/// Keys that are asked for at once.
const BATCH_KEYS: usize = 1_000;

/// One JSON object: the median microseconds of a look-up of one key after the other, those of the same key again and again, rows a
/// second of a thousand keys at once, and how many of the keys are there. Keys are lines of whole numbers with bars between.
///
/// # Errors
/// What the store says; `Invalid` for a line that is no key.
pub fn run(store: &Path, table: &str, keys: &Path) -> Result<String> {
    let table = KeyTable::new(Store::open(store)?.snapshot()?, table)?;
    let text = std::fs::read_to_string(keys).map_err(|e| Error::io("read", keys, &e))?;
    let keys = text.lines().map(key).collect::<Result<Vec<_>>>()?;
    // Pages and dictionaries are opened before the clock counts.
    let found = table.get_many(&keys)?.iter().flatten().count();
    let each = median_us(keys.iter().map(|key| || table.get(key).map(|_| ())))?;
    let hot = match keys.first() {
        Some(key) => median_us((0..BATCH_KEYS).map(|_| || table.get(key).map(|_| ())))?,
        None => 0.0,
    };
    let began = Instant::now();
    for keys in keys.chunks(BATCH_KEYS) {
        table.get_many(keys)?;
    }
    let rate = keys.len() as f64 / began.elapsed().as_secs_f64();
    Ok(json!({ "each_us": each, "hot_us": hot, "many_per_s": rate, "found": found }).to_string())
}

fn key(line: &str) -> Result<Vec<Value>> {
    let number = |text: &str| text.parse().map(Value::Int);
    line.split('|')
        .map(number)
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| Error::Invalid(format!("{line:?} is no key of whole numbers")))
}

fn median_us<C: FnOnce() -> Result<()>>(calls: impl Iterator<Item = C>) -> Result<f64> {
    let mut times = Vec::new();
    for call in calls {
        let began = Instant::now();
        call()?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or(0.0))
}
