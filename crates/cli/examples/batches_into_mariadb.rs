//! Batches of Arrow into a table of MariaDB or MySQL.
//!
//! `cargo run --example batches_into_mariadb -- mysql://loader@localhost/shop`
#![allow(clippy::print_stdout, missing_docs)]

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use coload::dal::{Writer, WriterOptions};
use coload::{Error, Result};

pub fn main() -> Result<()> {
    let url = std::env::args().nth(1);
    write(&url.ok_or_else(|| Error::Invalid("give the URL of a database".into()))?)
}

pub fn write(url: &str) -> Result<()> {
    let batch = |first: i64| {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + 1000));
        let texts = (first..first + 1000).map(|id| format!("text {id}"));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        RecordBatch::try_from_iter([("id", ids), ("text", texts)])
            .map_err(|error| Error::Invalid(error.to_string()))
    };
    let first = batch(0)?;
    let writer = Writer::open(url, "texts", first.schema(), WriterOptions::default())?;
    writer.write(first)?;
    for number in 1..20 {
        writer.write(batch(number * 1000)?)?;
    }
    let report = writer.finish()?;
    println!("{} rows", report.rows());
    Ok(())
}
