//! Files of Parquet that are damaged or cut off: an error, or rows; never a panic, never more memory than allowed.

use ::parquet::basic::Compression;
use proptest::prelude::*;

use crate::parquet_files::{KINDS, Seeds, Shape, bytes, seeds};
use crate::parquet_input::parquet_options;
use crate::support::{dry_run, scratch, write};
use crate::text::Random;

/// Loads damaged bytes as text columns: an error that names the file and leaves nothing, or rows.
#[track_caller]
fn check(dir: &tempfile::TempDir, bytes: &[u8], columns: usize) -> Option<u64> {
    let path = write(dir, "in.parquet", bytes);
    let columns: Vec<String> = (0..columns).map(|n| format!("c{n} VARCHAR")).collect();
    let mut options = parquet_options(&[path], &columns.join(", "));
    options.resources.memory = 64 << 20;
    options.resources.threads = 1;
    match dry_run(None, &options) {
        Ok(report) => {
            assert!(report.rows() < 1 << 24);
            Some(report.rows())
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("in.parquet") && !text.contains("panicked"), "{text}");
            None
        }
    }
}

fn file(kinds: &[usize], rows: usize, shape: Shape, random: &mut Random) -> Vec<u8> {
    let groups: Vec<Vec<Seeds>> =
        (0..2).map(|_| kinds.iter().map(|_| seeds(rows, random)).collect()).collect();
    bytes(kinds, &groups, shape, random)
}

/// All kinds, in few columns each, so that all bytes of small files are gone through.
#[test]
fn each_truncation_and_each_byte_is_told_or_gives_rows() {
    let mut random = Random::new(11);
    for (number, kinds) in [[0, 10, 3], [7, 15, 9]].into_iter().enumerate() {
        let shape = Shape {
            version: number % 2 + 1,
            compression: [Compression::SNAPPY, Compression::UNCOMPRESSED][number % 2],
            page_rows: 4,
            dictionary_bytes: 40,
        };
        let whole = file(&kinds, 4, shape, &mut random);
        let dir = scratch();
        assert_eq!(check(&dir, &whole, 3), Some(8));
        for cut in 0..whole.len() {
            let rows = check(&dir, &whole[..cut], 3);
            assert!(rows.is_none(), "{cut} bytes of {}: {rows:?}", whole.len());
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            // No file has a checksum of its footer: a row less is one that the format cannot tell.
            check(&dir, &damaged, 3);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(100)
    ) })]

    #[test]
    fn damage_is_told(
        seed: u64,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let dir = scratch();
        let mut random = Random::new(seed);
        let kinds: Vec<usize> = (0..KINDS.len()).collect();
        let shape = Shape::draw(&mut random);
        let rows = random.below(30);
        let mut bytes = file(&kinds, rows, shape, &mut random);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        check(&dir, &bytes, kinds.len());
    }
}
