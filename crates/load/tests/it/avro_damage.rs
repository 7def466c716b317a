//! Files of Avro that are damaged or cut off: an error, or rows; never a panic, never more memory than allowed.

use coload_load::InputForm;
use proptest::prelude::*;

use crate::avro_files::{CODECS, KINDS, block, bytes, gzip, header, long, sized};
use crate::support::scratch;
use crate::text::Random;
use crate::typed_loads::check_damaged;
use crate::typed_values::{Seeds, seeds};

#[track_caller]
fn check(dir: &tempfile::TempDir, bytes: &[u8], columns: usize) -> Option<u64> {
    check_damaged(dir, (InputForm::Avro, "in.avro"), bytes, columns)
}

fn file(kinds: &[usize], rows: usize, codec: &str, random: &mut Random) -> (Vec<u8>, Vec<usize>) {
    let blocks: Vec<Vec<Seeds>> =
        (0..2).map(|_| kinds.iter().map(|_| seeds(rows, random)).collect()).collect();
    bytes(kinds, &blocks, codec, random)
}

/// All kinds, in few columns each, so that all bytes of small files are gone through.
#[test]
fn each_truncation_and_each_byte_is_told_or_gives_rows() {
    let mut random = Random::new(11);
    for (number, kinds) in [[0, 8, 3], [18, 19, 17], [5, 7, 13]].into_iter().enumerate() {
        let (whole, ends) = file(&kinds, 4, CODECS[number], &mut random);
        let dir = scratch();
        assert_eq!(check(&dir, &whole, 3), Some(8));
        for cut in 0..whole.len() {
            let rows = check(&dir, &whole[..cut], 3);
            // Nothing says how many blocks there are.
            let blocks = ends.iter().position(|end| *end == cut);
            assert_eq!(rows, blocks.map(|blocks| 4 * blocks as u64), "{cut} of {}", whole.len());
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            check(&dir, &damaged, 3);
        }
    }
}

/// The same of what comes as a stream.
#[test]
fn each_truncation_of_a_stream_is_told() {
    let (whole, ends) = file(&[0, 7, 18], 3, "deflate", &mut Random::new(5));
    let dir = scratch();
    for cut in 1..=whole.len() {
        let rows = check(&dir, &gzip(&whole[..cut]), 3);
        let blocks = ends.iter().position(|end| *end == cut);
        assert_eq!(rows, blocks.map(|blocks| 3 * blocks as u64), "{cut} of {}", whole.len());
    }
}

/// Lengths and counts that lie, and values that never end.
#[test]
fn lies_are_told_before_anything_is_made_of_them() {
    let of = |field: &str| {
        format!(
            r#"{{"type": "record", "name": "r", "fields": [{{"name": "c", "type": {field}}}]}}"#
        )
    };
    let number = |values: &[i64]| {
        let mut out = Vec::new();
        values.iter().for_each(|value| long(*value, &mut out));
        out
    };
    let nulls = r#"{"type": "array", "items": "null"}"#;
    let itself = r#"["null", "r"]"#;
    let chain = number(&[1; 100_000]);
    for (field, rows, raw) in [
        // Items that take no bytes, of which there are many.
        (nulls, 1, number(&[1 << 40, 0])),
        (nulls, 1, number(&[i64::MIN, 0])),
        (r#""string""#, 1, number(&[i64::MAX])),
        (r#""string""#, 1 << 30, vec![0]),
        (r#""bytes""#, 1, number(&[-1])),
        (itself, 1, chain),
        (r#""r""#, 1, Vec::new()),
        (r#"["int", "string"]"#, 1, number(&[2])),
        (r#"{"type": "enum", "name": "e", "symbols": ["a"]}"#, 1, number(&[1])),
        (r#"{"type": "fixed", "name": "f", "size": 1073741824}"#, 1, Vec::new()),
    ] {
        let dir = scratch();
        let mut whole = header(&of(field), "null");
        block(rows, &raw, "null", &mut whole);
        assert_eq!(check(&dir, &whole, 1), None, "{field}");
        assert_eq!(check(&dir, &gzip(&whole), 1), None, "{field}");
    }
    // Many rows of nothing are told, or read within the memory.
    for rows in [0_i64, 1000, i64::from(i32::MAX), 1 << 40, -1] {
        let dir = scratch();
        let mut whole = header(&of("\"null\""), "null");
        long(rows, &mut whole);
        sized(&[], &mut whole);
        whole.extend(crate::avro_files::MARKER);
        let found = check(&dir, &whole, 1);
        assert_eq!(found, (0..=1000).contains(&rows).then_some(rows as u64), "{rows}");
    }
    // A block that is longer than the file, and one that is longer than memory.
    for bytes in [100_i64, 1 << 30, i64::MAX] {
        let dir = scratch();
        let mut whole = header(&of("\"long\""), "null");
        long(1, &mut whole);
        long(bytes, &mut whole);
        whole.extend([0; 40]);
        assert_eq!(check(&dir, &whole, 1), None, "{bytes}");
        assert_eq!(check(&dir, &gzip(&whole), 1), None, "{bytes}");
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
        is_stream: bool,
    ) {
        let dir = scratch();
        let mut random = Random::new(seed);
        let kinds: Vec<usize> = (0..KINDS.len()).collect();
        let rows = random.below(30);
        let codec = random.of(&CODECS);
        let (mut bytes, ends) = file(&kinds, rows, codec, &mut random);
        // Most bytes are those of the schema: half of the changes are behind it.
        for (number, (at, value)) in changes.into_iter().enumerate() {
            let from = if number % 2 == 0 { ends[0].min(bytes.len() - 1) } else { 0 };
            let at = from + at.index(bytes.len() - from);
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        check(&dir, &if is_stream { gzip(&bytes) } else { bytes }, kinds.len());
    }
}
