//! Rows that the client filters and makes, and the time of a load: whoever transforms, and after a stop.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use coload_ddl::{CheckedColumn, Schema};
use coload_load::{RemoteWork, RowProgram, RowsMade};
use coload_receive::ReceiveOptions;
use coload_store::Store;
use coload_types::{Column, DataType, Plain, Result, Value, Values};
use coload_wire::{ColumnFrom, Derivation, RejectLimit, RowSql};

use crate::setup::{
    ADAPTIVE, ALL, NONE, Options, SIZE, Server, load, load_remote, options, records, rows,
};

/// Keeps the rows whose number is no multiple of another, and tells when the load began.
#[derive(Debug)]
struct NoMultiples {
    of: i64,
    sql: RowSql,
    began_us: i64,
    schema: Schema,
    sources: Vec<Option<usize>>,
}

impl NoMultiples {
    fn new(of: i64, read: &Schema, began_us: i64) -> Self {
        let mut columns = read.columns().to_vec();
        columns.push(Column::new("now", DataType::BigInt));
        let sources = (0..read.len()).map(Some).chain([None]).collect();
        let sql = RowSql { filter: Some(format!("id % {of} <> 0")), select: None };
        NoMultiples { of, sql, began_us, schema: Schema::new(columns).unwrap(), sources }
    }
}

impl RowProgram for NoMultiples {
    fn sql(&self) -> &RowSql {
        &self.sql
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn sources(&self) -> &[Option<usize>] {
        &self.sources
    }

    fn uses(&self) -> &[usize] {
        &[0]
    }

    fn for_load(&self, read: &Schema, began_us: i64) -> Result<Arc<dyn RowProgram>> {
        Ok(Arc::new(NoMultiples::new(self.of, read, began_us)))
    }

    fn run(&self, columns: &[Option<CheckedColumn<'_>>], rows: usize) -> Result<RowsMade> {
        let id = |row: &u32| match columns[0].unwrap().get(*row as usize) {
            Some(Value::Int(id)) => id,
            other => panic!("{other:?}"),
        };
        let kept: Vec<u32> = (0..rows as u32).filter(|row| id(row) % self.of != 0).collect();
        let now = Values::Int(vec![self.began_us; kept.len()]);
        let mut columns: Vec<Option<Plain>> = vec![None; self.sources.len()];
        columns[self.sources.len() - 1] = Some(Plain { values: now, nulls: None });
        Ok(RowsMade { kept: Some(kept), columns, failed: Vec::new() })
    }
}

/// Options of a load with a filter, and a column with its time.
fn filtered(file: &Path, table: &str, multiples_of: i64, began_us: i64) -> Options {
    let mut options = options(file, table);
    let read = options.schema.clone();
    let program = NoMultiples::new(multiples_of, &read, began_us);
    let mut columns = program.schema.columns().to_vec();
    let mut from: Vec<ColumnFrom> = (0..columns.len()).map(ColumnFrom::Read).collect();
    columns.push(Column::new("loaded", DataType::TimestampTz));
    from.push(ColumnFrom::LoadTime);
    options.schema = Schema::new(columns).unwrap();
    options.derivation = Some(Derivation { read, columns: from });
    options.program = Some(Arc::new(program));
    options.began_us = began_us;
    options
}

#[test]
fn a_load_with_a_filter_is_the_same_as_into_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    // A chunk without any row that is kept, and rejects.
    let mut text = records(3_000);
    (0..400).for_each(|_| text.push_str("33,Rom,1.00,2001-01-01,n,1.0,true,\n"));
    text.push_str("x,Rom,1.00,2001-01-01,n,1.0,true,\n");
    std::fs::write(&file, &text).unwrap();
    let store = Store::create_or_open(folder.path().join("embedded")).unwrap();
    let mut of_store = filtered(&file, "t", 3, 1_000);
    of_store.max_rejects = RejectLimit::Count(1);
    let embedded = load(&store, &of_store).unwrap();
    let expected = rows(&store, "t");
    assert_eq!(expected[0].len(), 2_000);
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let policies = [ALL, NONE, SIZE, ADAPTIVE];
    for (number, placement) in policies.into_iter().enumerate() {
        let table = format!("t{number}");
        let mut remote = server.remote();
        remote.work = placement;
        let mut of_server = of_store.clone();
        of_server.table.clone_from(&table);
        let report = load_remote(&of_server, &remote).unwrap();
        assert_eq!((report.rows, report.rejects, report.filtered()), (2_000, 1, 1_400));
        assert_eq!(report.records(), 3_401);
        assert_eq!(report.filtered(), embedded.filtered());
        assert!(rows(&server.store, &table) == expected, "{placement:?}");
    }
}

#[test]
fn a_stopped_load_goes_on_with_its_filter_and_with_the_time_of_its_first_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(12_000)).unwrap();
    let path = folder.path().join("server");
    let server = Server::start(&path, ReceiveOptions::default());
    let mut stopped = filtered(&file, "t", 5, 1_000);
    let (cancel, store) = (Arc::clone(&stopped.hooks.cancel), server.store.clone());
    stopped.hooks.progress = Some(Arc::new(move |_| {
        // When a partition is durable.
        if store.list_journals().unwrap().iter().any(|journal| journal.parts > 0) {
            cancel.store(true, Ordering::Relaxed);
        }
    }));
    load_remote(&stopped, &server.remote()).unwrap_err();
    drop(server);
    // The journal is what the next server knows.
    let server = Server::start(&path, ReceiveOptions::default());
    let error = load_remote(&filtered(&file, "t", 7, 2_000), &server.remote()).unwrap_err();
    let told = "--where is \"id % 7 <> 0\" and was \"id % 5 <> 0\"";
    assert!(error.to_string().contains(told), "{error}");
    let without = load_remote(&options(&file, "t"), &server.remote()).unwrap_err();
    assert!(without.to_string().contains("--where is not given and was"), "{without}");
    let report = load_remote(&filtered(&file, "t", 5, 3_000), &server.remote()).unwrap();
    assert!(report.partitions[1] > 0, "{:?}", report.partitions);
    assert_eq!((report.rows, report.filtered(), report.records()), (9_600, 2_400, 12_000));
    let mut ids: Vec<i64> = (0..12_000).filter(|id| id % 5 != 0).collect();
    let columns = rows(&server.store, "t");
    let times =
        |column: &[Option<Value>]| column.iter().all(|time| *time == Some(Value::Int(1_000)));
    assert!(
        columns[0].iter().flatten().eq(ids.drain(..).map(Value::Int).collect::<Vec<_>>().iter())
    );
    assert!(times(&columns[8]) && times(&columns[9]));
    // It is published: nobody wants it again, whenever that is.
    assert!(load_remote(&filtered(&file, "t", 5, 4_000), &server.remote()).unwrap().already);
}

#[test]
fn a_server_that_parses_sets_the_time_and_runs_no_filter() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(1_000)).unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    for (table, placement) in [("pipe", RemoteWork::Pipe), ("seq", RemoteWork::Seq)] {
        let mut remote = server.remote();
        remote.work = placement;
        let mut options = filtered(&file, table, 5, 1_000);
        let error = load_remote(&options, &remote).unwrap_err();
        assert!(error.to_string().contains("take --placement adaptive"), "{error}");
        options.program = None;
        let read = options.derivation.as_ref().unwrap().read.clone();
        let columns = options.schema.columns().iter().filter(|c| c.name != "now").cloned();
        let mut from: Vec<ColumnFrom> = (0..read.len()).map(ColumnFrom::Read).collect();
        from.push(ColumnFrom::LoadTime);
        options.schema = Schema::new(columns.collect()).unwrap();
        options.derivation = Some(Derivation { read, columns: from });
        load_remote(&options, &remote).unwrap();
        let columns = rows(&server.store, table);
        assert_eq!(columns[8], vec![Some(Value::Int(1_000)); 1_000]);
    }
}
