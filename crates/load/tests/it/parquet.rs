//! Loads into several Parquet files: what the command's tests would need gigabytes for.

use std::fs::File;
use std::path::Path;

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::RowAccessor;
use coload_source::Dialect;
use tempfile::TempDir;

use crate::support::{load_parquet, options, scratch, write};

/// Row groups after which a file ends.
const ROW_GROUPS_MAX: usize = 1_000;

/// The values of the only column of the files, in the order of their names, and the row groups of each.
fn read(folder: &Path) -> (Vec<i64>, Vec<usize>) {
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let (mut values, mut row_groups) = (Vec::new(), Vec::new());
    for path in paths {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        row_groups.push(reader.num_row_groups());
        values.extend(
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().get_long(0).unwrap()),
        );
    }
    (values, row_groups)
}

fn bytes(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn load(dir: &TempDir, text: &str, threads: usize, folder: &str) {
    let dialect = Dialect::default();
    let mut options =
        options(&[write(dir, "in.csv", text.as_bytes())], "id BIGINT NOT NULL", dialect);
    options.resources.chunk_bytes = 16;
    options.resources.fragments_per_partition = 1;
    options.resources.threads = threads;
    let report = load_parquet(&dir.path().join(folder), &options).unwrap();
    let written = report.written.as_ref().unwrap();
    let rows: u64 = written.files.iter().map(|file| file.rows).sum();
    assert_eq!((rows, report.rows()), (text.lines().count() as u64, rows));
    let row_groups: usize = written.files.iter().map(|file| file.row_groups).sum();
    assert_eq!(written.row_groups(), row_groups);
}

#[test]
fn files_follow_one_another_in_the_order_of_the_input() {
    let dir = scratch();
    let text: String = (0..9_000).map(|id| format!("{id:04}\n")).collect();
    for (threads, folder) in [(1, "one"), (4, "four")] {
        load(&dir, &text, threads, folder);
    }
    let (values, row_groups) = read(&dir.path().join("four"));
    assert!(values.iter().copied().eq(0..9_000), "{} rows, or not in order", values.len());
    let (last, whole) = row_groups.split_last().unwrap();
    assert!(whole.len() >= 2 && whole.iter().all(|count| *count == ROW_GROUPS_MAX));
    assert!((1..=ROW_GROUPS_MAX).contains(last), "{row_groups:?}");
    assert!(bytes(&dir.path().join("one")) == bytes(&dir.path().join("four")));
}

/// Of records that are all rejected there is a partition, and no row group.
#[test]
fn partitions_without_rows_are_no_row_groups() {
    let dir = scratch();
    let dialect = Dialect::default();
    let text = format!("1\n2\n{}3\n{}", "x\n".repeat(100), "y\n".repeat(100));
    let mut options =
        options(&[write(&dir, "in.csv", text.as_bytes())], "id BIGINT NOT NULL", dialect);
    options.resources.chunk_bytes = 16;
    options.resources.fragments_per_partition = 2;
    load_parquet(&dir.path().join("out"), &options).unwrap();
    let (values, row_groups) = read(&dir.path().join("out"));
    assert_eq!((values, row_groups.len()), (vec![1, 2, 3], 1));
    assert!(row_groups[0] <= 2, "{row_groups:?}");
}
