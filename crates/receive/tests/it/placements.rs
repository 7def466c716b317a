//! Every placement and encoding gives the rows of an embedded load.

use coload_ddl::Schema;
use coload_load::{RemoteWork, WireCompression};
use coload_receive::{Keep, ReceiveOptions};
use coload_store::Store;
use coload_transform::DictionaryPolicy;
use coload_types::{Column, DataType, Value};
use coload_wire::{ColumnFrom, Derivation, FieldMap};

use crate::setup::{ADAPTIVE, ALL, NONE, SIZE, Server, load, load_remote, options, records, rows};

#[test]
fn a_load_into_a_server_has_the_rows_of_one_into_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(6_000)).unwrap();
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    let report = load(&embedded, &options(&file, "t")).unwrap();
    assert_eq!(report.rows(), 6_000);
    let expected = rows(&embedded, "t");
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let policies = [ALL, NONE, SIZE, ADAPTIVE, RemoteWork::Pipe, RemoteWork::Seq];
    for (number, placement) in policies.into_iter().enumerate() {
        for encoding in [DictionaryPolicy::Auto, DictionaryPolicy::Always] {
            let table = format!("t{number}_{encoding:?}");
            let mut options = options(&file, &table);
            options.resources.dictionaries = encoding;
            let mut remote = server.remote();
            remote.work = placement;
            remote.compression = [WireCompression::Lz4, WireCompression::Zstd][number % 2];
            let report = load_remote(&options, &remote).unwrap();
            assert_eq!((report.rows, report.rejects, report.attempts), (6_000, 0, 1));
            let by_server = matches!(placement, RemoteWork::Pipe | RemoteWork::Seq);
            assert!(by_server || report.partitions[0] > 3, "partitions: {:?}", report.partitions);
            assert!(rows(&server.store, &table) == expected, "{table} {placement:?}");
        }
    }
}

#[test]
fn columns_that_are_not_read_are_the_same_wherever_the_others_are_transformed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("year=2026/t.csv");
    std::fs::create_dir(folder.path().join("year=2026")).unwrap();
    std::fs::write(&file, records(3_000)).unwrap();
    let derived = |table: &str| {
        let mut options = options(&file, table);
        let read = options.schema.clone();
        let mut columns = read.columns().to_vec();
        // Another order than that of the fields, and one field that is not read.
        columns.swap(0, 1);
        let mut from = vec![ColumnFrom::Read(1), ColumnFrom::Read(0)];
        from.extend((2..columns.len()).map(ColumnFrom::Read));
        columns.insert(1, Column::new("source", DataType::Varchar(None)));
        from.insert(1, ColumnFrom::InputName);
        columns.push(Column::new("batch", DataType::BigInt));
        from.push(ColumnFrom::Constant(Some(Value::Int(7))));
        columns.push(Column::new("nothing", DataType::Date));
        from.push(ColumnFrom::Constant(None));
        columns.push(Column::new("year", DataType::Integer));
        from.push(ColumnFrom::Partition("year".into()));
        let of_column = (0..read.len()).collect();
        options.fields = Some(FieldMap { count: read.len(), of_column });
        options.schema = Schema::new(columns).unwrap();
        options.derivation = Some(Derivation { read, columns: from });
        options
    };
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    load(&embedded, &derived("t")).unwrap();
    let expected = rows(&embedded, "t");
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    for placement in [ALL, NONE, RemoteWork::Pipe] {
        let table = format!("{placement:?}");
        let mut remote = server.remote();
        remote.work = placement;
        load_remote(&derived(&table), &remote).unwrap();
        assert!(rows(&server.store, &table) == expected, "{placement:?}");
        let mut other = derived(&table);
        if let Some(derivation) = &mut other.derivation {
            derivation.columns[1] = ColumnFrom::Constant(None);
        }
        // Another value makes another load, which is no repetition.
        assert!(!load_remote(&other, &remote).unwrap().already);
    }
}

#[test]
fn a_load_that_is_published_is_loaded_again_only_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(500)).unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let options = options(&file, "t");
    let mut remote = server.remote();
    let first = load_remote(&options, &remote).unwrap();
    let second = load_remote(&options, &remote).unwrap();
    assert!(!first.already && second.already && second.id == first.id);
    assert_eq!(rows(&server.store, "t")[0].len(), 500);
    remote.again = coload_wire::Again::Yes;
    let third = load_remote(&options, &remote).unwrap();
    assert!(!third.already && third.id != first.id);
    assert_eq!(rows(&server.store, "t")[0].len(), 1000);
}

#[test]
fn a_server_that_discards_publishes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(500)).unwrap();
    let discard = ReceiveOptions { keep: Keep::Nothing, ..ReceiveOptions::default() };
    let server = Server::start(&folder.path().join("server"), discard);
    let report = load_remote(&options(&file, "t"), &server.remote()).unwrap();
    assert_eq!(report.rows, 500);
    assert!(server.store.snapshot().unwrap().table("t").is_none());
    assert!(server.loads.list().unwrap().is_empty());
}
