//! Rows whose keys are there already, against a map: random loads, conflicts, deletes and merges; writers of the same keys at
//! once, and writers that die.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use coload_ddl::{Key, KeyKind, Schema};
use coload_store::failpoints::WRITE_DELETED;
use coload_store::{
    Basis, Deletions, KeyCounts, LoadKind, LoadMode, LoadRecord, LoadTarget, OnConflict,
    SegmentFile, SegmentWriter, Shown, Snapshot, Store, VerifyOptions, merge_small, verify,
};
use coload_transform::{DictionaryPolicy, FragmentColumn, compress_column};
use coload_types::{Column, DataType, Error, Plain, Result, Value};

use crate::child;
use crate::support::{Random, check_no_leftovers, scratch};

/// A row: two columns of keys, and one of values.
pub type Row = (i64, String, Option<i64>);

const PAGE_ROWS: usize = 7;

pub fn schema(key: &[usize]) -> Schema {
    let columns =
        [("a", DataType::BigInt), ("b", DataType::Varchar(None)), ("v", DataType::BigInt)];
    let column = |(name, data_type): (&str, DataType)| {
        let mut column = Column::new(name, data_type);
        column.nullable = name == "v";
        column
    };
    let schema = Schema::new(columns.map(column).to_vec()).unwrap();
    schema.with_key(Some(Key::new(KeyKind::Primary, key.to_vec()).unwrap())).unwrap()
}

fn target(key: &[usize]) -> LoadTarget {
    target_of(schema(key))
}

/// The table of a schema of the same columns.
pub fn target_of(schema: Schema) -> LoadTarget {
    LoadTarget { name: "t".into(), schema, mode: LoadMode::Append }
}

pub fn values(row: &Row) -> [Option<Value>; 3] {
    let text = Value::Bytes(row.1.as_bytes().into());
    [Some(Value::Int(row.0)), Some(text), row.2.map(Value::Int)]
}

fn write_rows(
    writer: SegmentWriter,
    rows: &[Row],
    policy: DictionaryPolicy,
) -> coload_store::SegmentSummary {
    let mut finished = Vec::new();
    for (index, column) in schema(&[0]).columns().iter().enumerate() {
        let physical = column.data_type.physical();
        let page = |rows: &[Row]| {
            let mut plain = Plain::empty(physical);
            rows.iter().for_each(|row| plain.push(values(row)[index].as_ref()));
            FragmentColumn::Plain(plain)
        };
        let pages = rows.chunks(PAGE_ROWS).map(page).collect();
        let column = compress_column(pages, &[], None, None, physical, policy).unwrap();
        finished.push(writer.write_column(column, physical).unwrap());
    }
    let page_rows = rows.chunks(PAGE_ROWS).map(|page| page.len() as u32).collect();
    writer.finish(finished, page_rows).unwrap()
}

/// A load of some segments.
pub fn load(
    store: &Store,
    key: &[usize],
    segments: &[Vec<Row>],
    on_conflict: OnConflict,
) -> Result<Shown> {
    load_into(store, target(key), segments, on_conflict)
}

/// A load of some segments into a table.
pub fn load_into(
    store: &Store,
    target: LoadTarget,
    segments: &[Vec<Row>],
    on_conflict: OnConflict,
) -> Result<Shown> {
    let schema = target.schema.clone();
    let mut load = store.begin_load(target)?;
    load.set_on_conflict(on_conflict)?;
    let mut entries = Vec::new();
    for (number, rows) in (0..).zip(segments.iter().filter(|rows| !rows.is_empty())) {
        let policy = match number % 2 {
            0 => DictionaryPolicy::Auto,
            _ => DictionaryPolicy::Always,
        };
        let summary = write_rows(load.segment_writer(number, &schema)?, rows, policy);
        entries.push(summary.entry(load.id(), number));
    }
    let mut record = LoadRecord::new(load.id(), LoadKind::Append);
    record.rows = segments.iter().map(|rows| rows.len() as u64).sum();
    load.ready(entries, record)?.publish(None)
}

/// The rows that are there, and where.
pub fn found(snapshot: &Snapshot) -> Vec<(usize, u64, Row)> {
    let Some(table) = snapshot.table("t") else { return Vec::new() };
    let mut all = Vec::new();
    for (index, entry) in table.segments.iter().enumerate() {
        let file = snapshot.segment(table, entry).unwrap();
        let deleted = snapshot.deleted_rows(entry).unwrap();
        let columns: Vec<Plain> = (0..3)
            .map(|column| {
                let mut plain = Plain::empty(file.physical(column));
                (0..file.page_rows().len())
                    .for_each(|page| file.decode_page(column, page, &mut plain).unwrap());
                plain
            })
            .collect();
        for row in (0..entry.rows).filter(|row| !deleted.as_ref().is_some_and(|d| d.contains(*row)))
        {
            let value = |column: usize| columns[column].get(row as usize);
            let (Some(Value::Int(a)), Some(Value::Bytes(b))) = (value(0), value(1)) else {
                panic!("no key")
            };
            let v = value(2).map(|v| if let Value::Int(v) = v { v } else { panic!("no number") });
            all.push((index, row, (a, String::from_utf8(b.to_vec()).unwrap(), v)));
        }
    }
    assert_eq!(table.rows(), all.len() as u64);
    all
}

fn key_of(row: &Row, key: &[usize]) -> Vec<Value> {
    let values = values(row);
    key.iter().map(|column| values[*column].clone().unwrap()).collect()
}

type Model = BTreeMap<Vec<Value>, Row>;

/// What a load makes of a map; `None` when it fails.
fn model_load(
    model: &Model,
    key: &[usize],
    rows: &[Row],
    on_conflict: OnConflict,
) -> Option<(Model, KeyCounts)> {
    let mut counts = KeyCounts::default();
    let mut own = Model::new();
    for row in rows {
        let Some(before) = own.insert(key_of(row, key), row.clone()) else { continue };
        counts.twice += 1;
        match on_conflict {
            OnConflict::Error | OnConflict::ReplaceOnce => return None,
            OnConflict::IgnoreKey | OnConflict::IgnoreUnique(_) => return None,
            OnConflict::Replace => {}
            OnConflict::Newest(_) if row.2 >= before.2 => {}
            OnConflict::Ignore | OnConflict::Reject | OnConflict::Newest(_) => {
                own.insert(key_of(row, key), before);
            }
        }
    }
    let mut next = model.clone();
    for (key, row) in own {
        match (next.get(&key), on_conflict) {
            (None, _) => counts.added += 1,
            (Some(_), OnConflict::Error) => return None,
            (Some(_), OnConflict::IgnoreKey | OnConflict::IgnoreUnique(_)) => return None,
            (Some(_), OnConflict::Replace | OnConflict::ReplaceOnce) => counts.replaced += 1,
            (Some(there), OnConflict::Newest(_)) if row.2 >= there.2 => counts.replaced += 1,
            (Some(_), OnConflict::Ignore | OnConflict::Reject | OnConflict::Newest(_)) => {
                counts.ignored += 1;
                continue;
            }
        }
        next.insert(key, row);
    }
    Some((next, counts))
}

pub fn random_row(random: &mut Random, keys: u64) -> Row {
    let number = random.below(keys);
    let text = match random.below(8) {
        0 => String::new(),
        1 => format!("{}{number}", "long ".repeat(30)),
        _ => format!("k{}", random.below(keys)),
    };
    let value = (random.below(4) > 0).then(|| random.below(5) as i64);
    (number as i64 - 3, text, value)
}

fn check(store: &Store, key: &[usize], model: &Model) {
    let snapshot = store.snapshot().unwrap();
    let found = found(&snapshot);
    for pair in found.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        assert!(key_of(&pair[0].2, key) < key_of(&pair[1].2, key), "a segment is not in order");
    }
    let rows: Model = found.iter().map(|(.., row)| (key_of(row, key), row.clone())).collect();
    assert_eq!(found.len(), rows.len(), "a key is there twice");
    assert_eq!(&rows, model);
}

#[test]
fn random_conflicts_leave_what_a_map_has() {
    let mut random = Random::new();
    let keys: [&[usize]; 4] = [&[0], &[1], &[1, 0], &[0, 1]];
    for round in 0..24 {
        let key = keys[round % keys.len()];
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        let mut model = Model::new();
        let mut held = Vec::new();
        for _ in 0..14 {
            let keys = [4, 12, 60][random.below(3) as usize];
            let mut segments: Vec<Vec<Row>> = Vec::new();
            for _ in 0..random.below(4) {
                let count = random.below(40);
                let mut rows: Vec<Row> =
                    (0..count).map(|_| random_row(&mut random, keys)).collect();
                if random.below(2) == 0 {
                    // In order already, with keys that come twice or without.
                    rows.sort_by_key(|row| key_of(row, key));
                    if random.below(2) == 0 {
                        rows.dedup_by_key(|row| key_of(row, key));
                    }
                }
                segments.push(rows);
            }
            let modes = [
                OnConflict::Error,
                OnConflict::Ignore,
                OnConflict::Replace,
                OnConflict::ReplaceOnce,
                OnConflict::Newest(2),
            ];
            let on_conflict = modes[random.below(5) as usize];
            let expected = model_load(&model, key, &segments.concat(), on_conflict);
            match (load(&store, key, &segments, on_conflict), expected) {
                (Ok(shown), Some((next, counts))) => {
                    assert_eq!(shown.keys, Some(counts), "{on_conflict:?}");
                    let snapshot = store.snapshot().unwrap();
                    let loads = &snapshot.table("t").unwrap().loads;
                    assert_eq!(loads.last().unwrap().rows, counts.kept());
                    model = next;
                }
                (Err(error), None) => {
                    let text = error.to_string();
                    assert!(text.contains("PRIMARY KEY") && text.contains("row"), "{text}");
                }
                (found, expected) => panic!("{on_conflict:?}: {found:?}, expected {expected:?}"),
            }
            check(&store, key, &model);
            if random.below(3) == 0 {
                let snapshot = store.snapshot().unwrap();
                delete(&store, &snapshot, |row| row.0 % 3 == 1);
                model.retain(|_, row| row.0 % 3 != 1);
                check(&store, key, &model);
                held.push((snapshot.clone(), found(&snapshot)));
            }
            if random.below(3) == 0 {
                merge_small(&store, "t").unwrap();
                check(&store, key, &model);
            }
        }
        for (snapshot, rows) in held.drain(..) {
            assert_eq!(found(&snapshot), rows);
        }
        store.clean().unwrap();
        check_no_leftovers(&store);
        let report = verify(store.path(), &VerifyOptions { threads: 1, progress: None }).unwrap();
        assert_eq!(report.damages, Vec::new());
    }
}

pub fn delete(store: &Store, snapshot: &Snapshot, wanted: impl Fn(&Row) -> bool) {
    let Some(table) = snapshot.table("t") else { return };
    let mut gone = Deletions::default();
    for (segment, row, _) in found(snapshot).into_iter().filter(|(.., row)| wanted(row)) {
        gone.insert(&table.segments[segment], row).unwrap();
    }
    store.delete_rows(Basis::Rows(table), &gone).unwrap();
}

fn row(a: i64, v: i64) -> Row {
    (a, format!("text {a}"), Some(v))
}

#[test]
fn an_error_names_the_key_and_both_places() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let fail = |segments: &[Vec<Row>]| {
        load(&store, &[0], segments, OnConflict::Error).unwrap_err().to_string()
    };
    let text = fail(&[vec![row(9, 0), row(3, 0), row(5, 0), row(3, 1)]]);
    assert!(text.contains("the key (3) of PRIMARY KEY (a) comes twice among them"), "{text}");
    assert!(text.contains("(rows 2 and 4 of the input)"), "{text}");
    // Of two segments, of which one is put in order.
    let text = fail(&[vec![row(9, 0), row(3, 0)], vec![row(1, 0), row(2, 0), row(9, 1)]]);
    assert!(text.contains("the key (9)") && text.contains("(rows 1 and 5 of the input)"), "{text}");
    load(&store, &[0], &[vec![row(1, 0), row(2, 0)]], OnConflict::Error).unwrap();
    let text = fail(&[vec![row(7, 0)], vec![row(6, 0), row(2, 1)]]);
    assert!(text.contains("the key (2) of PRIMARY KEY (a) is in the table already"), "{text}");
    assert!(text.contains("(row 3 of the input has it, and row 2 of segment "), "{text}");
}

#[test]
fn a_table_without_a_primary_key_has_no_conflicts() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    for kind in [None, Some(KeyKind::Cluster)] {
        let key = kind.map(|kind| Key::new(kind, vec![0]).unwrap());
        let columns = schema(&[0]).columns().to_vec();
        let schema = Schema::new(columns).unwrap().with_key(key).unwrap();
        let target = LoadTarget { name: "p".into(), schema, mode: LoadMode::Replace };
        let mut load = store.begin_load(target).unwrap();
        let error = load.set_on_conflict(OnConflict::Replace).unwrap_err().to_string();
        assert!(error.contains("it has no PRIMARY KEY"), "{error}");
        load.set_on_conflict(OnConflict::Error).unwrap();
    }
}

#[test]
fn every_flipped_bit_of_a_tree_is_noticed_or_changes_no_answer() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let rows: Vec<Row> = (0..90).map(|a| row(a * 5, a)).collect();
    load(&store, &[0, 1], std::slice::from_ref(&rows), OnConflict::Error).unwrap();
    let snapshot = store.snapshot().unwrap();
    let path = snapshot.segment_path(&snapshot.table("t").unwrap().segments[0]);
    let good = std::fs::read(&path).unwrap();
    let open = |bytes: &[u8]| {
        let copy = dir.path().join("copy.seg");
        std::fs::write(&copy, bytes).unwrap();
        SegmentFile::open(&copy)
    };
    let find = |file: &SegmentFile, row: &Row| {
        file.row_of_key(&key_of(row, &[0, 1])).map(|found| found.map(|row| row as usize))
    };
    let file = open(&good).unwrap();
    assert!(file.tree_parts().is_some());
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(find(&file, row).unwrap(), Some(number));
        assert_eq!(find(&file, &(row.0 + 1, row.1.clone(), None)).unwrap(), None);
    }
    let mut harmless = 0;
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        let Ok(file) = open(&bad) else { continue };
        for (number, row) in rows.iter().enumerate().step_by(11) {
            match find(&file, row) {
                Ok(found) => assert_eq!(found, Some(number), "byte {at}"),
                Err(error) => assert!(matches!(error, Error::Corrupt(_)), "byte {at}: {error}"),
            }
            harmless += 1;
        }
    }
    assert!(harmless > 0);
}

/// Keys that all upserts of a test replace, each with one value for all.
const KEYS: i64 = 900;

fn generation(value: i64) -> Vec<Vec<Row>> {
    // Two segments, out of order, whose ranges overlap.
    let rows =
        |rest: i64| (0..KEYS).rev().filter(move |a| a % 2 == rest).map(move |a| row(a, value));
    vec![rows(0).collect(), rows(1).collect()]
}

/// The value that all keys have.
fn check_generation(store: &Store) -> i64 {
    let rows = found(&store.snapshot().unwrap());
    assert_eq!(rows.len() as i64, KEYS);
    let value = rows[0].2.2;
    assert!(rows.iter().all(|(.., row)| row.2 == value), "rows of two upserts are there");
    let keys: std::collections::BTreeSet<i64> = rows.iter().map(|(.., row)| row.0).collect();
    assert_eq!(keys.len() as i64, KEYS);
    value.unwrap()
}

#[test]
fn upserts_at_once_and_merges_have_the_effect_of_one_after_the_other() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    load(&store, &[0], &generation(0), OnConflict::Replace).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (1..=3)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    for round in 0..8 {
                        let rows = generation(writer * 100 + round);
                        let shown = load(store, &[0], &rows, OnConflict::Replace).unwrap();
                        assert_eq!(shown.keys.unwrap().replaced as i64, KEYS);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                merge_small(&store, "t").unwrap();
                check_generation(&store);
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(check_generation(&store) % 100, 7);
    // Of two that add the same new key one is told.
    let both = [1, 2].map(|value| {
        let mut segment = store.begin_load(target(&[0])).unwrap();
        segment.set_on_conflict(OnConflict::Error).unwrap();
        let rows = [row(KEYS, value)];
        let summary = write_rows(
            segment.segment_writer(0, &schema(&[0])).unwrap(),
            &rows,
            DictionaryPolicy::Auto,
        );
        let mut record = LoadRecord::new(segment.id(), LoadKind::Append);
        record.rows = 1;
        let entry = summary.entry(segment.id(), 0);
        segment.ready(vec![entry], record).unwrap()
    });
    let [first, second] = both.map(|ready| ready.publish(None));
    assert_eq!(first.unwrap().keys.unwrap().added, 1);
    assert!(second.unwrap_err().to_string().contains("in the table already"));
}

/// What a child does: upserts all keys again and again, and merges.
pub fn upsert(path: &Path, rounds: i64) -> Result<()> {
    child::say("begun");
    let store = Store::open(path)?;
    let first = check_generation(&store) + 1;
    for value in first..first + rounds {
        load(&store, &[0], &generation(value), OnConflict::Replace)?;
        child::say(&format!("published {value}"));
        merge_small(&store, "t")?;
    }
    Ok(())
}

/// All keys are of one upsert, the last that was told to be published or the one after it.
fn check_after_death(path: &Path, published: &[String], before: i64) -> i64 {
    let store = Store::open(path).unwrap();
    let value = check_generation(&store);
    let last = published.last().map_or(before, |value| value.parse().unwrap());
    assert!(value == last || value == last + 1, "{last} was published, and {value} is there");
    store.clean().unwrap();
    check_no_leftovers(&store);
    value
}

#[test]
fn a_writer_that_dies_during_an_upsert_leaves_the_table_before_or_after() {
    let points = [
        WRITE_DELETED,
        "store::segment::sync",
        "store::publish::sync_segment",
        "store::publish::rename",
        "store::publish::sync_segments_dir",
        "store::publish::write_manifest",
        "store::publish::link",
        "store::publish::sync_manifest_dir",
        "store::publish::remove_tmp",
    ];
    let dir = scratch();
    let path = dir.path().join("s");
    let store = Store::create_or_open(&path).unwrap();
    load(&store, &[0], &generation(0), OnConflict::Replace).unwrap();
    let mut value = 0;
    for (point, nth) in points.iter().flat_map(|point| [(point, 1), (point, 2)]) {
        let mut child = child::start(&path, &format!("upsert 6 {point} {nth}"));
        let published = child::published(child::lines(&mut child));
        let status = child.wait().unwrap();
        assert!(status.success() || status.signal().is_some(), "{point} {nth}: {status}");
        value = check_after_death(&path, &published, value);
    }
    let mut random = Random::new();
    for _ in 0..6 {
        let mut child = child::start(&path, "upsert 1000");
        let mut lines = child::lines(&mut child);
        assert_eq!(lines.next().as_deref(), Some("begun"));
        sleep(Duration::from_millis(random.below(60)));
        child.kill().unwrap();
        let published = child::published(lines);
        child.wait().unwrap();
        value = check_after_death(&path, &published, value);
    }
}
