#![allow(clippy::unwrap_used)]
use coload_ddl::parse_create_table;
use coload_types::Value;

use super::*;
use crate::load_record::LoadId;

fn manifest(sql: &str) -> Manifest {
    let (name, schema) = parse_create_table(sql).unwrap();
    let load = LoadId::from_u128(7);
    let stats = |_| ColumnStats::new(None, None, 10);
    let segment = SegmentEntry {
        file: crate::directory::segment_name(load, 0),
        rows: 10,
        deleted: None,
        bytes: 100,
        load,
        seal: Some(1),
        stored: None,
        trees: Vec::new(),
        columns: schema.columns().iter().map(stats).collect(),
    };
    let table = TableEntry {
        id: 1,
        name,
        schema,
        segments: vec![segment],
        loads: Vec::new(),
        older: Vec::new(),
        loads_count: 0,
    };
    Manifest { next_table_id: 2, tables: vec![table], ..Manifest::first() }
}

fn added(name: &str, default: Option<i64>) -> Alteration {
    let mut column = Column::new(name, coload_types::DataType::BigInt);
    column.default = default.map(Value::Int);
    Alteration::AddColumn(column)
}

fn dropped(name: &str) -> Alteration {
    Alteration::DropColumn(name.to_owned())
}

#[test]
fn segments_say_where_the_columns_are() {
    use StoredColumn::{At, Constant};
    let mut manifest = manifest("CREATE TABLE t (a BIGINT, b BIGINT, c BIGINT, CHECK (c > a))");
    assert_eq!(manifest.format(), 3);
    for (alteration, expected) in [
        (dropped("B"), vec![At(0), At(2)]),
        (added("d", Some(7)), vec![At(0), At(2), Constant(Some(Value::Int(7)))]),
        (added("b", None), vec![At(0), At(2), Constant(Some(Value::Int(7))), Constant(None)]),
        (dropped("d"), vec![At(0), At(2), Constant(None)]),
    ] {
        assert_eq!(alter_table(&mut manifest, "T", &alteration).unwrap(), Outcome::Changed);
        let table = &manifest.tables[0];
        assert_eq!(table.segments[0].stored.as_deref(), Some(&expected[..]));
        assert_eq!(table.segments[0].columns.len(), table.schema.len());
        assert_eq!(table.schema.checks()[0].columns().len(), 2);
        assert_eq!(manifest.format(), 7);
        let path = std::path::Path::new("m");
        assert_eq!(Manifest::decode(&manifest.encode().unwrap(), path).unwrap(), manifest);
    }
}

#[test]
fn what_keys_and_rules_need_stays() {
    let sql = "CREATE TABLE t (a BIGINT, b BIGINT, c BIGINT CHECK (c > 0), PRIMARY KEY (b))";
    let mut manifest = manifest(sql);
    for (alteration, message) in [
        (dropped("b"), "PRIMARY KEY (b)"),
        (dropped("c"), "CHECK (c > 0) names it"),
        (dropped("x"), "it has a, b, c"),
        (added("A", None), "has a column A already"),
        (Alteration::RenameColumn { from: "a".into(), to: "B".into() }, "named twice"),
        (Alteration::RenameColumn { from: "c".into(), to: "d".into() }, "cannot be renamed"),
        (Alteration::Rename("\n".into()), "cannot name a table"),
    ] {
        let before = manifest.clone();
        let error = alter_table(&mut manifest, "t", &alteration).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(manifest, before);
    }
    alter_table(&mut manifest, "t", &dropped("a")).unwrap();
    assert_eq!(manifest.tables[0].schema.key().unwrap().columns(), [0]);
    let only = Alteration::Rename("u".into());
    assert_eq!(alter_table(&mut manifest, "t", &only).unwrap(), Outcome::Changed);
    assert_eq!(alter_table(&mut manifest, "u", &only).unwrap(), Outcome::Unchanged);
    assert!(manifest.table("t").is_none());
}
