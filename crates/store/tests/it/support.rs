//! Small loads whose files prove whose they are, and the checks of a whole store.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use coload_format::{Column, DataType, Result, Schema, Value};
use coload_store::{
    ColumnStats, LoadDir, LoadId, LoadKind, LoadMode, LoadRecord, LoadTarget, SegmentEntry, Store,
};

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

/// What the file of a segment holds here.
pub fn segment_content(load: LoadId, number: u32) -> Vec<u8> {
    format!("segment {number} of {load};").repeat(100).into_bytes()
}

/// Writes a segment as a segment writer does, and describes it.
pub fn write_segment(load: &LoadDir, number: u32) -> Result<SegmentEntry> {
    let content = segment_content(load.id(), number);
    fs::write(load.segment_path(number), &content).unwrap();
    Ok(entry(load.id(), load.segment_name(number), content.len() as u64))
}

pub fn entry(load: LoadId, file: String, bytes: u64) -> SegmentEntry {
    let text = |t: &str| Some(Value::Bytes(t.as_bytes().into()));
    SegmentEntry {
        file,
        rows: ROWS,
        bytes,
        load,
        columns: vec![
            ColumnStats::new(Some(Value::Int(1)), Some(Value::Int(9)), 0),
            ColumnStats::new(text("a"), text("z"), 3),
        ],
    }
}

/// Writes the segments of a load and its record.
pub fn fill(load: &LoadDir) -> (Vec<SegmentEntry>, LoadRecord) {
    let segments: Vec<_> = (0..SEGMENTS).map(|n| write_segment(load, n).unwrap()).collect();
    let mut record = LoadRecord::new(load.id(), LoadKind::Append);
    record.rows = segments.iter().map(|s| s.rows).sum();
    record.set_inputs(&["a.csv"]);
    (segments, record)
}

/// A whole load.
pub fn load(store: &Store, name: &str, mode: LoadMode) -> Result<LoadId> {
    let load = store.begin_load(target(name, mode))?;
    let id = load.id();
    let (segments, record) = fill(&load);
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
            let number: u32 = segment.file[33..].trim_end_matches(".seg").parse().unwrap();
            let content = fs::read(snapshot.segment_path(segment)).unwrap();
            assert_eq!(content, segment_content(segment.load, number), "{}", segment.file);
        }
        let loads: BTreeSet<_> = table.segments.iter().map(|s| s.load).collect();
        for load in &loads {
            let of_load = table.segments.iter().filter(|s| s.load == *load).count();
            assert_eq!(of_load, SEGMENTS as usize, "load {load} is there in part");
        }
        assert!(loads.iter().all(|id| table.loads.iter().any(|record| record.id == *id)));
    }
}

/// Checks that the directory holds what the newest version names, and nothing else.
pub fn check_no_leftovers(store: &Store) {
    let snapshot = store.snapshot().unwrap();
    let segments = snapshot.tables().iter().flat_map(|t| &t.segments);
    let named: BTreeSet<String> = segments.map(|s| s.file.clone()).collect();
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
