#![allow(clippy::unwrap_used)]

use std::path::Path;

use coload_ddl::Schema;
use coload_types::bytes::checksum;
use coload_types::{Column, DataType, Error, Physical, Value};
use proptest::prelude::*;

use coload_ddl::{Index, IndexKind, Key, KeyKind};

use super::codec::NEWEST;
use super::*;
use crate::deleted::FilePart;
use crate::directory::{older_name, segment_name};
use crate::index::IndexTree;
use crate::load_record::LoadKind;

fn path() -> &'static Path {
    Path::new("x.manifest")
}

/// A column of each type.
fn wide_schema() -> Schema {
    let types = [
        DataType::Boolean,
        DataType::SmallInt,
        DataType::Integer,
        DataType::BigInt,
        DataType::decimal(15, 2).unwrap(),
        DataType::decimal(38, 0).unwrap(),
        DataType::Real,
        DataType::Double,
        DataType::Date,
        DataType::Time,
        DataType::Timestamp,
        DataType::TimestampTz,
        DataType::Char(3),
        DataType::Varchar(None),
        DataType::Varchar(Some(0)),
        DataType::Binary(Some(u32::MAX)),
        DataType::Uuid,
    ];
    let columns = types.iter().enumerate().map(|(i, t)| Column::new(format!("c{i}"), *t));
    let mut columns: Vec<Column> = columns.collect();
    columns[3].nullable = false;
    columns[3].default = Some(Value::Int(-1));
    columns[13].default = Some(Value::Bytes(vec![b'x'; 1000].into()));
    Schema::new(columns).unwrap()
}

fn value(data_type: DataType, seed: u8) -> Value {
    match data_type.physical() {
        Physical::Int => Value::Int(i64::from(seed) - 100),
        Physical::Wide => Value::Wide(i128::from(seed) << 80),
        Physical::Bytes => Value::Bytes(vec![seed; usize::from(seed % 70)].into()),
    }
}

fn segment(schema: &Schema, load: LoadId, number: u32, seed: u8) -> SegmentEntry {
    let stats = |c: &Column| {
        let v = (seed != 0).then(|| value(c.data_type, seed));
        ColumnStats::new(v.clone(), v, u64::from(seed % 3))
    };
    SegmentEntry {
        file: segment_name(load, number),
        rows: u64::from(seed) + 2,
        deleted: None,
        bytes: 1 << 40,
        load,
        seal: None,
        stored: None,
        trees: Vec::new(),
        columns: schema.columns().iter().map(stats).collect(),
    }
}

fn table(id: u64, name: &str, schema: Schema, seeds: &[u8]) -> TableEntry {
    let load = LoadId::from_u128(u128::from(id) << 100 | 5);
    let segments = seeds.iter().enumerate().map(|(i, s)| segment(&schema, load, i as u32, *s));
    let mut record = LoadRecord::new(load, LoadKind::Replace);
    record.set_inputs(["a.csv", "ä/b.csv"].iter());
    record.started_us = -5;
    record.rows = u64::MAX;
    let segments: Vec<SegmentEntry> = segments.collect();
    // As the older formats tell it.
    record.held = !segments.is_empty();
    let (loads, older) = (vec![record], Vec::new());
    TableEntry { id, name: name.to_owned(), segments, schema, loads, older, loads_count: 7 }
}

fn example() -> Manifest {
    Manifest {
        version: 42,
        next_table_id: 9,
        remember_days: REMEMBER_DAYS,
        tables: vec![
            table(3, "Alle Typen", wide_schema(), &[0, 1, 255]),
            table(8, "b", Schema::new(vec![Column::new("x", DataType::Date)]).unwrap(), &[]),
        ],
        views: Vec::new(),
    }
}

/// A manifest of format 2: a table has rules.
fn example_2() -> Manifest {
    let sql = "CREATE TABLE k (a INTEGER CHECK (a > 0), b VARCHAR, CONSTRAINT short CHECK (length(b) < 9))";
    let schema = coload_ddl::parse_create_table(sql).unwrap().1;
    let mut manifest = example();
    manifest.tables[1].schema = schema;
    manifest
}

/// A manifest of format 3: segments with seals, loads with keys, and loads in files of their own.
fn example_3() -> Manifest {
    let mut manifest = example_2();
    manifest.remember_days = 30;
    let table = &mut manifest.tables[0];
    table.segments[0].seal = Some(0x0123_4567_89ab_cdef);
    table.segments[2].seal = Some(u64::MAX);
    table.loads[0].key = LoadId::from_u128(77);
    table.loads[0].version = 41;
    let mut forgotten = table.loads[0].clone();
    (forgotten.id, forgotten.held) = (LoadId::from_u128(78), false);
    table.loads.insert(0, forgotten);
    let file = older_name(LoadId::from_u128(79), 3);
    table.older = vec![OlderLoads { file, count: 500, newest_us: -1, seal: 12 }];
    manifest
}

/// A manifest of format 4: segments with deleted rows, in it and in a file, and a load that replaced rows.
fn example_4() -> Manifest {
    use crate::deleted::{DeletedEntry, FilePart, Place};
    let mut manifest = example_3();
    let table = &mut manifest.tables[0];
    let mut bytes = Vec::new();
    [0u32, 1, 100]
        .into_iter()
        .collect::<roaring::RoaringBitmap>()
        .serialize_into(&mut bytes)
        .unwrap();
    let place = Place::Here(bytes.into());
    table.segments[2].deleted = Some(DeletedEntry { rows: 3, place });
    let file = crate::directory::deleted_name(LoadId::from_u128(80), 3);
    let place = Place::File(FilePart { file, offset: 8, bytes: 4_000, seal: 99 });
    table.segments[1].deleted = Some(DeletedEntry { rows: 2, place });
    table.loads[0].kind = LoadKind::Update;
    manifest
}

/// A manifest of format 5: tables have keys.
fn example_5() -> Manifest {
    let mut manifest = example_4();
    let sql = "CREATE TABLE k (a INTEGER, b VARCHAR, PRIMARY KEY (b, a))";
    manifest.tables[1].schema = coload_ddl::parse_create_table(sql).unwrap().1;
    let first = &mut manifest.tables[0];
    let key = Key::new(KeyKind::Cluster, vec![0]).unwrap();
    first.schema = first.schema.clone().with_key(Some(key)).unwrap();
    manifest
}

/// A manifest of format 6: there are views.
fn example_6() -> Manifest {
    let mut manifest = example_5();
    let view = |name: &str, columns: &[&str]| ViewEntry {
        name: name.to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        sql: format!("SELECT 1 AS {name}"),
    };
    manifest.views = vec![view("v", &[]), view("Sicht ä", &["a", "b c"])];
    manifest
}

/// A manifest of format 7: a segment has its columns elsewhere.
fn example_7() -> Manifest {
    let mut manifest = example_6();
    let table = &mut manifest.tables[0];
    let mut stored: Vec<StoredColumn> =
        (0..table.schema.len() as u32).rev().map(StoredColumn::At).collect();
    stored[1] = StoredColumn::Constant(Some(Value::Int(-3)));
    stored[2] = StoredColumn::Constant(None);
    stored[5] = StoredColumn::Constant(Some(Value::Wide(1 << 90)));
    table.segments[1].stored = Some(stored.into());
    manifest
}

/// A manifest of format 8: tables have indexes, and segments trees of them.
fn example_8() -> Manifest {
    let mut manifest = example_7();
    let index = |name: &str, kind, columns: &[usize]| Index::new(name, kind, columns.to_vec());
    let indexes = vec![
        index("i", IndexKind::Plain, &[2, 0]).unwrap(),
        index("Schlüssel", IndexKind::Unique, &[1]).unwrap(),
    ];
    let table = &mut manifest.tables[0];
    table.schema = table.schema.clone().with_indexes(indexes).unwrap();
    for (segment, columns) in table.segments.iter_mut().zip([vec![2, 0], vec![1]]) {
        let file = crate::directory::index_name(LoadId::from_u128(81), 3);
        let part = FilePart { file, offset: 64, bytes: 1 << 33, seal: u64::MAX };
        segment.trees.push(IndexTree { columns, part });
    }
    manifest
}

#[test]
fn indexes_that_cannot_be_are_refused() {
    let decode = |m: &Manifest| Manifest::decode(&m.encode().unwrap(), path());
    let good = example_8();
    assert_eq!((good.format(), decode(&good).unwrap()), (8, good.clone()));
    let mut twice = good.clone();
    let index = Index::new("I", IndexKind::Plain, vec![0]).unwrap();
    let other = &mut twice.tables[1];
    other.schema = other.schema.clone().with_indexes(vec![index]).unwrap();
    assert!(matches!(decode(&twice), Err(Error::Corrupt(_))));
    for columns in [vec![], vec![0, 99], vec![0; 17]] {
        let mut bad = good.clone();
        bad.tables[0].segments[0].trees[0].columns = columns;
        assert!(matches!(decode(&bad), Err(Error::Corrupt(_))));
    }
    let mut other_file = good;
    other_file.tables[0].segments[0].trees[0].part.file = "x.index".into();
    assert!(other_file.encode().is_err());
}

#[test]
fn places_of_columns_that_cannot_be_are_refused() {
    let manifest = example_7();
    assert_eq!(manifest.format(), 7);
    let mut short = manifest.clone();
    short.tables[0].segments[1].stored = Some(vec![StoredColumn::At(0)].into());
    assert!(short.encode().is_err());
    let mut other = manifest;
    let stored = &mut other.tables[0].segments[1].stored;
    let mut columns = stored.as_ref().unwrap().to_vec();
    columns[1] = StoredColumn::Constant(Some(Value::Wide(1)));
    *stored = Some(columns.into());
    let decoded = Manifest::decode(&other.encode().unwrap(), path());
    assert!(decoded.is_err() || decoded.unwrap() != other);
}

#[test]
fn views_that_cannot_be_are_refused() {
    let decode = |m: &Manifest| Manifest::decode(&m.encode().unwrap(), path());
    assert_eq!(example_6().format(), 6);
    for name in ["", "B", "V", "ALLE TYPEN", "a\nb"] {
        let mut bad = example_6();
        bad.views[1].name = name.to_owned();
        assert!(matches!(decode(&bad), Err(Error::Corrupt(_))), "{name}");
    }
    let mut long = example_6();
    long.views[0].sql = "x".repeat(VIEW_BYTES_MAX + 1);
    assert!(matches!(decode(&long), Err(Error::Corrupt(_))));
}

#[test]
fn keys_that_cannot_be_are_refused() {
    let manifest = example_5();
    assert_eq!(manifest.format(), 5);
    let bytes = manifest.encode().unwrap();
    let content = &bytes[..bytes.len() - 8];
    // The key of table k: its kind, its columns b and a.
    let at = content.windows(4).rposition(|window| window == [1, 2, 1, 0]).unwrap();
    for (key, word) in [
        ([3, 2, 1, 0], "kind of key 3"),
        ([1, 2, 1, 1], "twice"),
        ([1, 2, 1, 2], "column 3"),
        ([1, 17, 1, 0], "17 columns"),
    ] {
        let mut bad = content.to_vec();
        bad[at..at + 4].copy_from_slice(&key);
        let error = Manifest::decode(&sealed(&bad), path()).unwrap_err().to_string();
        assert!(error.contains(word), "{key:?}: {error}");
    }
}

/// Bytes with a checksum that fits, so that the decoder sees them.
fn sealed(content: &[u8]) -> Vec<u8> {
    [content, &checksum(content).to_le_bytes()].concat()
}

#[test]
fn a_manifest_is_read_back_as_written() {
    for manifest in [
        Manifest::first(),
        example(),
        example_2(),
        example_3(),
        example_4(),
        example_5(),
        example_6(),
        example_7(),
        example_8(),
    ] {
        let bytes = manifest.encode().unwrap();
        assert_eq!(Manifest::decode(&bytes, path()).unwrap(), manifest);
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let mut bytes = example_8().encode().unwrap();
    for at in 0..bytes.len() {
        bytes[at] ^= 1 << (at % 8);
        let error = Manifest::decode(&bytes, path()).unwrap_err();
        assert!(matches!(&error, Error::Corrupt(t) if t.starts_with("x.manifest: ")), "{error}");
        bytes[at] ^= 1 << (at % 8);
    }
}

#[test]
fn every_cut_is_noticed_with_a_checksum_that_fits_too() {
    let bytes = example_8().encode().unwrap();
    let content = &bytes[..bytes.len() - 8];
    for at in 0..content.len() {
        assert!(Manifest::decode(&bytes[..at], path()).is_err());
        assert!(Manifest::decode(&sealed(&content[..at]), path()).is_err(), "cut at {at}");
    }
    let longer = sealed(&[content, &[0]].concat());
    let error = Manifest::decode(&longer, path()).unwrap_err();
    assert!(error.to_string().contains("too many"), "{error}");
}

#[test]
fn a_newer_format_asks_for_a_newer_program() {
    let mut bytes = Manifest::first().encode().unwrap();
    bytes[8..10].copy_from_slice(&(NEWEST + 1).to_le_bytes());
    let error = Manifest::decode(&sealed(&bytes[..bytes.len() - 8]), path()).unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
}

#[test]
fn tables_that_contradict_each_other_are_corrupt() {
    let decode = |m: &Manifest| Manifest::decode(&m.encode().unwrap(), path());
    let mut same_name = example();
    same_name.tables[1].name = "ALLE typen".into();
    let mut same_id = example();
    same_id.tables[1].id = 3;
    let mut later_id = example();
    later_id.next_table_id = 8;
    let mut min_over_max = example();
    let stats = &mut min_over_max.tables[0].segments[1].columns[0];
    (stats.min, stats.max) = (Some(Value::Int(2)), Some(Value::Int(1)));
    let mut long_bound = example();
    let long = Some(Value::Bytes(vec![b'x'; BOUND_BYTES_MAX + 1].into()));
    long_bound.tables[0].segments[1].columns[13].max = long;
    for bad in [same_name, same_id, later_id, min_over_max, long_bound] {
        assert!(matches!(decode(&bad), Err(Error::Corrupt(_))));
    }
}

#[test]
fn a_segment_named_after_another_load_is_not_written() {
    let mut manifest = example();
    manifest.tables[0].segments[0].file = "../../etc/passwd".into();
    assert!(manifest.encode().is_err());
}

/// The files of each format must be readable for ever. `COLOAD_BLESS=1` writes them anew.
#[test]
fn the_stored_examples_of_each_format_are_read() {
    let examples = [
        (1, example()),
        (2, example_2()),
        (3, example_3()),
        (4, example_4()),
        (5, example_5()),
        (6, example_6()),
        (7, example_7()),
        (8, example_8()),
    ];
    for (format, example) in examples {
        let name = format!("tests/examples/manifest-{format}.manifest");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        if std::env::var_os("COLOAD_BLESS").is_some() {
            std::fs::write(&file, example.encode().unwrap()).unwrap();
        }
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(u16::from_le_bytes([bytes[8], bytes[9]]), format);
        assert_eq!(Manifest::decode(&bytes, &file).unwrap(), example);
        assert_eq!(example.encode().unwrap(), bytes, "format {format} is written as before");
    }
}

#[test]
fn rules_that_do_not_fit_their_table_are_corrupt() {
    let bytes = example_2().encode().unwrap();
    let content = &bytes[..bytes.len() - 8];
    let at = content.windows(5).position(|window| window == b"a > 0").unwrap();
    let decode = |rule: &[u8; 5]| {
        let mut content = content.to_vec();
        content[at..at + 5].copy_from_slice(rule);
        Manifest::decode(&sealed(&content), path())
    };
    assert!(decode(b"a > 1").is_ok());
    for rule in [b"z > 0", b"a > x", b"a > (", b"\xff > 0"] {
        assert!(matches!(decode(rule), Err(Error::Corrupt(_))), "{rule:?}");
    }
}

#[test]
fn long_bounds_are_cut_and_still_hold() {
    let long = |byte: u8| Value::Bytes(vec![byte; 100].into());
    let stats = ColumnStats::new(Some(long(b'a')), Some(long(b'b')), 0);
    let mut upper = vec![b'b'; 64];
    upper[63] = b'c';
    assert_eq!(stats.min, Some(Value::Bytes(vec![b'a'; 64].into())));
    assert_eq!(stats.max, Some(Value::Bytes(upper.into())));
    assert_eq!(ColumnStats::new(None, Some(long(0xff)), 0).max, None);
    let exact = Value::Bytes(vec![0xff; 64].into());
    assert_eq!(ColumnStats::new(None, Some(exact.clone()), 0).max, Some(exact));
    assert_eq!(
        ColumnStats::new(None, Some(Value::Int(i64::MAX)), 0).max,
        Some(Value::Int(i64::MAX))
    );
}

#[test]
fn deleted_rows_that_do_not_fit_their_segment_are_corrupt() {
    use crate::deleted::{DeletedEntry, Place};
    let decode = |rows: u64, set: &[u32]| {
        let mut manifest = example_4();
        let mut bytes = Vec::new();
        let set: roaring::RoaringBitmap = set.iter().copied().collect();
        set.serialize_into(&mut bytes).unwrap();
        let segment = &mut manifest.tables[0].segments[1];
        assert_eq!(segment.rows, 3);
        segment.deleted = Some(DeletedEntry { rows, place: Place::Here(bytes.into()) });
        Manifest::decode(&manifest.encode().unwrap(), path())
    };
    assert!(decode(2, &[0, 2]).is_ok());
    for (rows, set) in [(1, &[0, 2][..]), (2, &[0, 3]), (3, &[0, 1, 2]), (0, &[]), (1, &[])] {
        assert!(matches!(decode(rows, set), Err(Error::Corrupt(_))), "{rows} {set:?}");
    }
}

proptest! {
    #[test]
    fn bounds_hold_for_any_text(head in prop::collection::vec(prop::sample::select(vec![0, 7, 0xfe, 0xff]), 60..70)) {
        let value = Value::Bytes(head.into());
        let stats = ColumnStats::new(Some(value.clone()), Some(value.clone()), 0);
        prop_assert!(stats.min.as_ref() <= Some(&value));
        if let Some(max) = &stats.max {
            prop_assert!(*max >= value);
            let Value::Bytes(max) = max else { unreachable!() };
            prop_assert!(max.len() <= BOUND_BYTES_MAX);
        }
    }

    #[test]
    fn damaged_bytes_with_a_fitting_checksum_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        cut_it in any::<bool>(),
    ) {
        let bytes = example_4().encode().unwrap();
        let mut content = bytes[..bytes.len() - 8].to_vec();
        for (at, byte) in edits {
            let at = at.index(content.len());
            content[at] = byte;
        }
        if cut_it {
            content.truncate(cut.index(content.len()));
        }
        if let Ok(manifest) = Manifest::decode(&sealed(&content), path()) {
            // Whatever is accepted is a manifest: it can be written and read again.
            let again = manifest.encode().unwrap();
            prop_assert_eq!(Manifest::decode(&again, path()).unwrap(), manifest);
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let head = Manifest::first().encode().unwrap();
        let _ = Manifest::decode(&sealed(&[&head[..12], &bytes].concat()), path());
        let _ = Manifest::decode(&bytes, path());
    }
}

/// Names that differ in the case of letters beyond ASCII were two tables for a store, and one for a statement.
#[test]
fn tables_and_views_are_found_in_any_case_of_any_script() {
    let mut manifest = example();
    manifest.tables[0].name = "Été".to_owned();
    assert_eq!(manifest.position("ÉTÉ"), Some(0));
    assert_eq!(manifest.table("étÉ").map(|table| table.id), Some(manifest.tables[0].id));
    assert!(manifest.table("ete").is_none());
    // Two that an older program made are both there.
    manifest.tables.push(TableEntry { name: "éTé".to_owned(), ..manifest.tables[0].clone() });
    let last = manifest.tables.len() - 1;
    assert_eq!((manifest.position("été"), manifest.position("Été")), (Some(last), Some(0)));
    let sql = "SELECT 1".to_owned();
    manifest.views.push(ViewEntry { name: "Größe".to_owned(), columns: Vec::new(), sql });
    assert!(manifest.view("GRÖßE").is_some());
}
