//! Stores and inputs of the tests, and the rows of a table.

use std::path::{Path, PathBuf};

use coload_ddl::{Schema, parse_columns};
use coload_load::{LoadReport, Nowhere, ParquetFolder};
use coload_source::{Dialect, Inputs, expand_inputs};
use coload_store::Store;
use coload_types::{Plain, Result};
use coload_wire::RejectLimit;
use tempfile::TempDir;

use crate::model::Row;
pub use crate::options::*;

/// A directory, in memory where there is one: these tests are about what is written, not whether the
/// disk keeps it.
pub fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory).unwrap() } else { TempDir::new().unwrap() }
}

/// Columns from SQL.
pub fn schema(columns: &str) -> Schema {
    parse_columns(columns).unwrap()
}

/// Writes `text` to a file of the directory.
pub fn write(dir: &TempDir, name: &str, text: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Whether a text begins as compressed data or an archive do.
pub fn may_be_compressed(text: &[u8]) -> bool {
    matches!(
        text,
        [0x1f, 0x8b, ..]
            | [0x28, 0xb5, ..]
            | [0xfd, b'7', ..]
            | [0x02, 0x21, ..]
            | [0x04, 0x22, ..]
            | [0x50..=0x5f, 0x2a, ..]
            | [0xff, 6, ..]
            | [b'B', b'Z', b'h', ..]
            | [b'P', b'K', ..]
    )
}

/// Inputs of these files.
pub fn inputs(paths: &[PathBuf]) -> Inputs {
    let names: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    expand_inputs(&names).unwrap()
}

/// A load of files into table `t` that rejects what it must.
pub fn options(paths: &[PathBuf], columns: &str, dialect: Dialect) -> Options {
    let mut options = Options::new(inputs(paths), "t", schema(columns), dialect);
    options.resources.threads = 2;
    options.max_rejects = RejectLimit::Count(u64::MAX);
    options
}

/// All rows of a table, in order.
pub fn rows(store: &Store, table: &str) -> Vec<Row> {
    let snapshot = store.snapshot().unwrap();
    let Some(table) = snapshot.table(table) else { return Vec::new() };
    let mut rows = Vec::new();
    for entry in &table.segments {
        let segment = snapshot.segment(table, entry).unwrap();
        let columns: Vec<Plain> = (0..segment.column_count())
            .map(|c| {
                let mut plain = Plain::empty(segment.physical(c));
                for page in 0..segment.page_rows().len() {
                    segment.decode_page(c, page, &mut plain).unwrap();
                }
                assert_eq!(plain.len() as u64, entry.rows);
                assert_eq!(plain.null_count() as u64, entry.columns[c].nulls);
                check_bounds(&plain, &entry.columns[c]);
                plain
            })
            .collect();
        rows.extend(
            (0..entry.rows as usize).map(|r| columns.iter().map(|c| c.get(r)).collect::<Row>()),
        );
    }
    rows
}

/// Checks that minimum and maximum of the manifest are bounds.
fn check_bounds(plain: &Plain, stats: &coload_store::ColumnStats) {
    for row in 0..plain.len() {
        let Some(value) = plain.get(row) else { continue };
        assert!(stats.min.as_ref().is_some_and(|min| *min <= value), "{value:?} {stats:?}");
        assert!(stats.max.as_ref().is_none_or(|max| *max >= value), "{value:?} {stats:?}");
    }
}

/// The bytes of a table's segments, in order.
pub fn segment_bytes(store: &Store, table: &str) -> Vec<Vec<u8>> {
    let snapshot = store.snapshot().unwrap();
    let Some(table) = snapshot.table(table) else { return Vec::new() };
    let read = |s| without_id(std::fs::read(snapshot.segment_path(s)).unwrap());
    table.segments.iter().map(read).collect()
}

/// A segment's bytes as if it were of no load: all else depends on the data only.
fn without_id(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut footer = coload_page::SegmentFooter::decode(&bytes).unwrap();
    let columns = footer.columns.iter().map(|column| column.offset + column.bytes);
    let end = columns.chain(footer.tree.iter().map(|tree| tree.offset + tree.bytes)).max().unwrap();
    footer.id = Some(Default::default());
    bytes.truncate(end as usize);
    bytes.extend(footer.encode());
    bytes
}

/// Loads nowhere.
pub fn dry_run(store: Option<&Store>, options: &Options) -> Result<LoadReport> {
    let Options { request, resources, hooks } = options;
    coload_load::load(request, resources, hooks, &Nowhere::LikeStore(store))
}

/// Loads into files of a folder.
pub fn load_parquet(folder: &Path, options: &Options) -> Result<LoadReport> {
    let Options { request, resources, hooks } = options;
    coload_load::load(request, resources, hooks, &ParquetFolder::new(folder)?)
}
