//! The data access layer of the library, and its examples.

use coload::dal::{Cell, Writer, WriterOptions};
use coload::{DatabaseLoadOptions, LoadMode, Method};

use crate::servers::{Engine, Server};

#[allow(dead_code)]
#[path = "../../examples/batches_into_mariadb.rs"]
mod batches_into_mariadb;
#[allow(dead_code)]
#[path = "../../examples/rows_into_postgresql.rs"]
mod rows_into_postgresql;

#[test]
fn programs_write_rows_into_postgresql() {
    let server = &Server::start(Engine::Postgres);
    rows_into_postgresql::write(&server.url()).unwrap();
    let people = "SELECT count(*), count(DISTINCT id), min(born) FROM people";
    assert_eq!(server.sql(people), "4000|4000|1815-12-10");
    few_rows_are_sent_as_few(server);
    a_writer_that_fails_or_is_dropped_has_written_nothing(server);
}

#[test]
fn programs_write_batches_into_mariadb() {
    let server = &Server::start(Engine::Mariadb);
    batches_into_mariadb::write(&server.url()).unwrap();
    assert_eq!(server.sql("SELECT count(*), count(DISTINCT id) FROM texts"), "20000|20000");
    few_rows_are_sent_as_few(server);
    a_writer_that_fails_or_is_dropped_has_written_nothing(server);
}

fn few_rows_are_sent_as_few(server: &Server) {
    server.sql("CREATE TABLE few (ID int PRIMARY KEY, extra int DEFAULT 7, v varchar(5))");
    let columns = coload::parse_columns("v VARCHAR, id BIGINT").unwrap();
    let open = |options| Writer::for_rows(&server.url(), "few", &columns, options).unwrap();
    let writer = open(WriterOptions::default());
    writer.write_rows(&[]).unwrap();
    writer.write_rows(&[vec![Cell::from("a"), Cell::Int(1)], vec![Cell::Null, 2.into()]]).unwrap();
    assert!(writer.write_rows(&[vec![Cell::Int(1), Cell::Int(1)]]).is_err(), "a number as text");
    let report = writer.finish().unwrap();
    let told = report.database.as_ref().unwrap();
    assert_eq!((report.rows(), told.sent.connections), (2, 1), "{told:?}");
    assert!(told.because.iter().any(|line| line.contains("some 2 rows")), "{told:?}");
    let database =
        DatabaseLoadOptions { method: Some(Method::Values), ..DatabaseLoadOptions::default() };
    let mode = LoadMode::Replace;
    let writer = open(WriterOptions { database, mode, ..WriterOptions::default() });
    writer.write_rows(&[vec![Cell::from("b"), Cell::Int(3)]]).unwrap();
    assert_eq!(writer.finish().unwrap().database.unwrap().sent.method, "values");
    assert_eq!(server.sql("SELECT * FROM few"), "3|7|b");
}

fn a_writer_that_fails_or_is_dropped_has_written_nothing(server: &Server) {
    let columns = coload::parse_columns("id BIGINT, v VARCHAR").unwrap();
    let open = |table| {
        let options = WriterOptions::default();
        Writer::for_rows(&server.url(), table, &columns, options).unwrap()
    };
    // The key is there already, and rows that come once are not read again.
    let writer = open("few");
    writer.write_rows(&[vec![Cell::Int(3), Cell::Null], vec![Cell::Int(4), Cell::Null]]).unwrap();
    let error = writer.finish().unwrap_err().to_string();
    assert!(error.contains("refused 1 rows"), "{error}");
    let writer = open("few");
    for id in 0..30_000 {
        writer.write_rows(&[vec![Cell::Int(100 + id), Cell::Null]]).unwrap();
    }
    drop(writer);
    // Its load ends by itself.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(server.sql("SELECT count(*) FROM few"), "1");
    assert_eq!(open("nothing").finish().unwrap().rows(), 0);
    assert_eq!(server.sql("SELECT count(*) FROM nothing"), "0");
}
