//! Rows of several threads into a table of PostgreSQL.
//!
//! `cargo run --example rows_into_postgresql -- postgres://loader@localhost/shop`
#![allow(clippy::print_stdout, missing_docs)]

use coload::dal::{Cell, Writer, WriterOptions};
use coload::{Error, Result};

pub fn main() -> Result<()> {
    let url = std::env::args().nth(1);
    write(&url.ok_or_else(|| Error::Invalid("give the URL of a database".into()))?)
}

pub fn write(url: &str) -> Result<()> {
    let columns = coload::parse_columns("id BIGINT NOT NULL, name VARCHAR, born DATE")?;
    let writer = Writer::for_rows(url, "people", &columns, WriterOptions::default())?;
    std::thread::scope(|scope| {
        let write = |thread: i64| {
            let writer = &writer;
            scope.spawn(move || {
                let person = |id| vec![Cell::Int(id), Cell::from("Ada"), Cell::Date(-56_270)];
                let rows: Vec<_> = (thread * 1000..(thread + 1) * 1000).map(person).collect();
                writer.write_rows(&rows)
            })
        };
        let threads: Vec<_> = (0..4).map(write).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().map_err(|_| Error::Unavailable("a thread panicked".into()))?
        })
    })?;
    let report = writer.finish()?;
    if let Some(database) = &report.database {
        let sent = &database.sent;
        println!("{} rows, {}, {} connections", report.rows(), sent.method, sent.connections);
    }
    Ok(())
}
