//! Progress, measured task by task: nothing depends on time.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;

use coload_ddl::parse_columns;
use coload_input::expand_inputs;
use coload_source::Dialect;

use super::*;
use crate::legs::segments_of;
use crate::text::Text;

const ROWS: usize = 60_000;

/// Records of about the same length, some with newlines in quotes.
fn records() -> Vec<u8> {
    let record = |i: usize| {
        let mixed = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        format!("{i},\"a\nb {mixed:x}\",{}\n", mixed % 1000)
    };
    (0..ROWS).map(record).collect::<String>().into_bytes()
}

/// Runs a load on one thread; bytes and rows after each task.
fn run(file: &Path) -> (u64, Vec<(u64, u64)>, u64) {
    let inputs = expand_inputs(&[file.display().to_string()]).unwrap();
    let schema = parse_columns("a BIGINT, b VARCHAR, c INTEGER").unwrap();
    let request = LoadRequest::new(inputs, "t", schema, Dialect::default());
    let resources = Resources { threads: 1, chunk_bytes: 64 << 10, ..Resources::default() };
    let load = Load { request: &request, resources: &resources, hooks: &Hooks::default() };
    let way = Way::StartAgain { pass: 0 };
    let source = Text::open(&request, &resources, None).unwrap();
    let begun = Begun::new(&request, &source, way).unwrap();
    let target = segments_of(load, None, 0);
    let pipeline = Pipeline::new(load, &source, &target, way, begun).unwrap();
    let (mut worker, mut seen) = (pipeline.reading.worker(), Vec::new());
    let mut redone = 0;
    while let Some(task) = pipeline.workers.next_task(|| pipeline.go_on()) {
        redone += u64::from(matches!(task, Task::ChunkAgain(_)));
        pipeline.run_task(task, &mut worker).unwrap();
        seen.push((pipeline.books.progress.bytes(), pipeline.books.progress.rows()));
    }
    assert!(pipeline.workers.lock().error.is_none());
    (pipeline.books.progress.bytes_total(), seen, redone)
}

/// Asserts that the share of bytes is the share of rows to within a tenth, from a fifth of the bytes on.
fn assert_right(file: &Path) -> u64 {
    let (total, seen, redone) = run(file);
    assert_eq!(total, std::fs::metadata(file).unwrap().len());
    assert_eq!(seen.last(), Some(&(total, ROWS as u64)), "{file:?}");
    let mut looked_at = 0;
    for (bytes, rows) in seen {
        let (bytes, rows) = (bytes as f64 / total as f64, rows as f64 / ROWS as f64);
        assert!(bytes <= 1.0 && rows <= 1.0, "{file:?}: {bytes} of the bytes, {rows} of the rows");
        if bytes >= 0.2 {
            looked_at += 1;
            let off = (bytes - rows).abs() / bytes;
            assert!(off <= 0.1, "{file:?}: {bytes} of the bytes, {rows} of the rows");
        }
    }
    assert!(looked_at > 20, "{looked_at}");
    redone
}

#[test]
fn progress_is_right_within_a_tenth_after_a_fifth() {
    let folder = tempfile::tempdir().unwrap();
    let text = records();
    let plain = folder.path().join("a.csv");
    std::fs::write(&plain, &text).unwrap();
    // Chunks that start within quotes are parsed again, and count once.
    assert!(assert_right(&plain) > 0);

    let one_member = folder.path().join("a.csv.gz");
    std::fs::write(&one_member, gzip(&text)).unwrap();
    assert_right(&one_member);

    let members = folder.path().join("b.csv.gz");
    let cut: Vec<u8> = text.chunks(300_000).flat_map(gzip).collect();
    std::fs::write(&members, cut).unwrap();
    assert_right(&members);

    let frames = folder.path().join("c.csv.zst");
    let cut: Vec<u8> = text.chunks(300_000).flat_map(zstd).collect();
    std::fs::write(&frames, cut).unwrap();
    assert_right(&frames);
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    let mut out = vec![0; zstd_safe::compress_bound(text.len())];
    let length = zstd_safe::compress(&mut out[..], text, 1).unwrap();
    out.truncate(length);
    out
}
