//! Damaged files: an error that names the file, or right answers; never a panic, never another answer.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use coload_page::{ColumnIndex, encode_codes_u16, encode_plain};
use coload_store::{FinishedColumn, Manifest, SegmentFile, SegmentWriter, column_stats};
use coload_types::{Dictionary, Error, Physical, Plain, Value, Values};

use crate::support::Random;
use crate::{example, reseal};

/// A segment small enough to flip each of its bits: codes of text with a NULL, and numbers.
fn write_small(path: &Path) {
    let writer = SegmentWriter::create(path).unwrap();
    let mut values = Values::empty(Physical::Bytes);
    for text in ["AIR", "RAIL", "SHIP"] {
        values.push(&Value::Bytes(text.as_bytes().into()));
    }
    let dictionary = Dictionary::new(values).unwrap();
    let meta = Some(writer.write_dictionary(&dictionary).unwrap());
    let pages = [encode_codes_u16(&[2, 0, 3, 1, 1], 3), encode_codes_u16(&[1], 3)];
    let pages = writer.write_pages(writer.reserve(&pages), &pages).unwrap();
    let stats = column_stats(&pages, Some(&dictionary));
    let index = ColumnIndex { dictionary: meta, symbols: Vec::new(), pages };
    let codes = FinishedColumn { physical: Physical::Bytes, index, stats };
    let mut numbers = Plain::empty(Physical::Int);
    (0..5).for_each(|i| numbers.push((i != 3).then_some(&Value::Int(i * 10))));
    let one = Plain { values: Values::Int(vec![9]), nulls: None };
    let pages = [encode_plain(&numbers).unwrap(), encode_plain(&one).unwrap()];
    let pages = writer.write_pages(writer.reserve(&pages), &pages).unwrap();
    let stats = column_stats(&pages, None);
    let index = ColumnIndex { pages, ..ColumnIndex::default() };
    let numbers = FinishedColumn { physical: Physical::Int, index, stats };
    writer.finish(vec![codes, numbers], vec![5, 1]).unwrap();
}

#[test]
fn every_flipped_bit_of_a_segment_is_noticed_or_means_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.seg");
    write_small(&path);
    let expected = example::read(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let mut harmless = 0;
    for (at, byte) in bytes.iter().enumerate() {
        for bit in 0..8 {
            file.write_all_at(&[byte ^ 1 << bit], at as u64).unwrap();
            match example::read(&path) {
                Ok(rows) => {
                    assert!(rows == expected, "byte {at} bit {bit} gives other rows");
                    harmless += 1;
                }
                Err(Error::Corrupt(text)) => {
                    assert!(text.contains("x.seg"), "byte {at} bit {bit}: {text}");
                }
                Err(other) => panic!("byte {at} bit {bit}: {other:?}"),
            }
        }
        file.write_all_at(&[*byte], at as u64).unwrap();
    }
    // Only what fills pages up to multiples of 8 bytes.
    assert!(harmless <= 8 * 7 * 6, "{harmless} bits of {} mean nothing", bytes.len() * 8);
}

#[test]
fn every_cut_of_a_segment_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.seg");
    let bytes = std::fs::read(example::path(2)).unwrap();
    for length in (0..bytes.len()).step_by(97).chain(bytes.len() - 40..bytes.len()) {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let error = SegmentFile::open(&path).map(drop).unwrap_err();
        let named = matches!(&error, Error::Corrupt(t) if t.contains("x.seg"));
        assert!(named || length == 0, "{length} bytes: {error:?}");
    }
}

/// Changes a few bytes; one in four times to an extreme.
fn mutate(random: &mut Random, bytes: &mut [u8], from: usize) {
    for _ in 0..1 + random.below(4) {
        let at = from + random.below((bytes.len() - from) as u64) as usize;
        bytes[at] = match random.below(4) {
            0 => [0, 0x7f, 0x80, 0xff][random.below(4) as usize],
            1 => bytes[at] ^ 1 << random.below(8),
            _ => random.below(256) as u8,
        };
    }
}

/// For a second: changed content with checksums that fit. Any answer will do, but not a panic.
#[test]
fn segments_with_hostile_content_are_read_without_a_panic() {
    let dir = tempfile::tempdir().unwrap();
    let small = dir.path().join("small.seg");
    write_small(&small);
    let originals = [std::fs::read(&small).unwrap(), std::fs::read(example::path(2)).unwrap()];
    let path = dir.path().join("x.seg");
    let mut random = Random::new();
    let (began, mut read, mut refused) = (Instant::now(), 0, 0);
    while began.elapsed() < Duration::from_secs(2) {
        let mut bytes = originals[random.below(2) as usize].clone();
        let indexes = bytes.len() - bytes.len() / 8;
        let from = if random.below(2) == 0 { 0 } else { indexes };
        mutate(&mut random, &mut bytes, from);
        let Some(bytes) = reseal::segment(&bytes) else { continue };
        std::fs::write(&path, bytes).unwrap();
        let small = SegmentFile::open(&path).is_ok_and(|s| s.rows() < 1 << 20);
        match small.then(|| example::read(&path)) {
            Some(Ok(_)) => read += 1,
            _ => refused += 1,
        }
    }
    println!("{read} read, {refused} refused");
    assert!(read > 0 && refused > 0);
}

#[test]
fn manifests_with_hostile_content_are_read_without_a_panic() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples/manifest-3.manifest");
    let original = std::fs::read(&path).unwrap();
    let mut random = Random::new();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        let mut bytes = original.clone();
        mutate(&mut random, &mut bytes, 0);
        let bytes = reseal::manifest(&bytes);
        if let Ok(manifest) = Manifest::decode(&bytes, &path) {
            // What is read can be written.
            assert_eq!(Manifest::decode(&manifest.encode().unwrap(), &path).unwrap(), manifest);
        }
    }
}
