//! Rows into a table of SQL Server, which is made for them.
//!
//! `SQLCMDPASSWORD=... cargo run --example rows_into_sql_server -- 'sqlserver://loader@localhost/shop?trustServerCertificate=true'`
#![allow(clippy::print_stdout, missing_docs)]

use coload::dal::{Cell, Writer, WriterOptions};
use coload::{Error, Result};

pub fn main() -> Result<()> {
    let url = std::env::args().nth(1);
    write(&url.ok_or_else(|| Error::Invalid("give the URL of a database".into()))?)
}

pub fn write(url: &str) -> Result<()> {
    let columns = coload::parse_columns("id BIGINT NOT NULL, name VARCHAR(20), born DATE")?;
    let writer = Writer::for_rows(url, "dbo.people", &columns, WriterOptions::default())?;
    for start in (0..4000).step_by(1000) {
        let person = |id| vec![Cell::Int(id), Cell::from("Ada 🧮"), Cell::Date(-56_270)];
        let rows: Vec<_> = (start..start + 1000).map(person).collect();
        writer.write_rows(&rows)?;
    }
    let report = writer.finish()?;
    if let Some(database) = &report.database {
        let sent = &database.sent;
        println!("{} rows, {}, {} connections", report.rows(), sent.method, sent.connections);
    }
    Ok(())
}
