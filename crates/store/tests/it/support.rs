//! Small loads whose files prove whose they are, and the checks of a whole store.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use coload_ddl::Schema;
use coload_page::ColumnIndex;
use coload_page::encode_plain;
use coload_store::{
    FinishedColumn, LoadDir, LoadId, LoadKind, LoadMode, LoadRecord, LoadTarget, SegmentEntry,
    SegmentWriter, Snapshot, Store, TableEntry, column_stats,
};
use coload_types::{Column, DataType, Physical, Plain, Result, Value};

/// A directory, in memory where there is one: for tests of many loads, to which the disk's time adds nothing.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.unwrap()
}

/// Segments of each load of these tests.
pub const SEGMENTS: u32 = 2;
/// Rows of each such segment.
pub const ROWS: u64 = 10;

pub fn schema() -> Schema {
    let mut id = Column::new("id", DataType::BigInt);
    id.nullable = false;
    Schema::new(vec![id, Column::new("note", DataType::Varchar(None))]).unwrap()
}

pub fn target(name: &str, mode: LoadMode) -> LoadTarget {
    LoadTarget { name: name.into(), schema: schema(), mode }
}

/// Row `row` of segment `number` of a load: a number, and text that says whose it is.
fn row(load: LoadId, number: u32, row: u64) -> [Option<Value>; 2] {
    let note = format!("{load}-{number}").into_bytes();
    [Some(Value::Int((u64::from(number) * ROWS + row) as i64)), Some(Value::Bytes(note.into()))]
}

/// Writes a segment with `rows` rows of a load, and describes it.
pub fn write_segment(path: &Path, load: LoadId, number: u32, rows: u64) -> Result<SegmentEntry> {
    let writer = SegmentWriter::create(path)?;
    let mut finished = Vec::new();
    for (index, column) in schema().columns().iter().enumerate() {
        let physical = column.data_type.physical();
        let mut plain = Plain::empty(physical);
        (0..rows).for_each(|r| plain.push(row(load, number, r)[index].as_ref()));
        let pages = [encode_plain(&plain)?];
        let pages = writer.write_pages(writer.reserve(&pages), &pages)?;
        let stats = column_stats(&pages, None);
        let index = ColumnIndex { pages, dictionary: None, symbols: Vec::new() };
        finished.push(FinishedColumn { physical, index, stats });
    }
    Ok(writer.finish(finished, vec![rows as u32])?.entry(load, number))
}

/// Writes the segments of a load and makes its record.
pub fn try_fill(load: &LoadDir) -> Result<(Vec<SegmentEntry>, LoadRecord)> {
    let write = |n| write_segment(&load.segment_path(n), load.id(), n, ROWS);
    let segments = (0..SEGMENTS).map(write).collect::<Result<Vec<_>>>()?;
    let mut record = LoadRecord::new(load.id(), LoadKind::Append);
    record.rows = segments.iter().map(|s| s.rows).sum();
    record.set_inputs(["a.csv"].iter());
    Ok((segments, record))
}

pub fn fill(load: &LoadDir) -> (Vec<SegmentEntry>, LoadRecord) {
    try_fill(load).unwrap()
}

/// A whole load.
pub fn load(store: &Store, name: &str, mode: LoadMode) -> Result<LoadId> {
    let load = store.begin_load(target(name, mode))?;
    let id = load.id();
    let (segments, record) = try_fill(&load)?;
    load.publish(segments, record)?;
    Ok(id)
}

/// File names in a directory, sorted.
pub fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

/// Checks everything that the newest version says: whole loads, whole files.
pub fn check_content(store: &Store) {
    let snapshot = store.snapshot().unwrap();
    for table in snapshot.tables() {
        for segment in &table.segments {
            check_segment(&snapshot, table, segment);
        }
        let loads: BTreeSet<_> = table.segments.iter().map(|s| s.load).collect();
        for load in &loads {
            let of_load = table.segments.iter().filter(|s| s.load == *load).count();
            assert_eq!(of_load, SEGMENTS as usize, "load {load} is there in part");
        }
        assert!(loads.iter().all(|id| table.loads.iter().any(|record| record.id == *id)));
    }
}

fn check_segment(snapshot: &Snapshot, table: &TableEntry, segment: &SegmentEntry) {
    let number: u32 = segment.file[33..].trim_end_matches(".seg").parse().unwrap();
    let file = snapshot.segment(table, segment).unwrap();
    let mut columns = [Plain::empty(Physical::Int), Plain::empty(Physical::Bytes)];
    for (index, column) in columns.iter_mut().enumerate() {
        file.decode_page(index, 0, column).unwrap();
        assert_eq!(column.len() as u64, segment.rows);
    }
    for r in 0..segment.rows {
        let found = [columns[0].get(r as usize), columns[1].get(r as usize)];
        assert_eq!(found, row(segment.load, number, r), "{}", segment.file);
    }
}

/// Checks that the directory holds what the newest version names, and nothing else.
pub fn check_no_leftovers(store: &Store) {
    let snapshot = store.snapshot().unwrap();
    let segments = snapshot.tables().iter().flat_map(|t| &t.segments);
    let older = snapshot.tables().iter().flat_map(|t| &t.older);
    let deleted = segments.clone().filter_map(|s| s.deleted.as_ref()?.file().map(str::to_owned));
    let trees = segments.clone().flat_map(|s| &s.trees).map(|tree| tree.file().to_owned());
    let deleted = deleted.chain(trees);
    let files = segments.map(|s| s.file.clone()).chain(older.map(|o| o.file.clone()));
    let files = files.chain(deleted);
    let named: BTreeSet<String> = files.collect();
    assert_eq!(names(&store.path().join("segments")), named);
    assert_eq!(names(&store.path().join("tmp")), BTreeSet::new());
    assert_eq!(names(&store.path().join("manifest")).len(), 1);
}

/// A small generator of random numbers; its seed is printed, and taken from `COLOAD_SEED` if set.
pub struct Random(u64);

impl Random {
    pub fn new() -> Self {
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed = std::env::var("COLOAD_SEED").map_or_else(|_| clock(), |s| s.parse().unwrap());
        println!("COLOAD_SEED={seed}");
        Random(seed | 1)
    }

    /// A number below `limit` (xorshift).
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
