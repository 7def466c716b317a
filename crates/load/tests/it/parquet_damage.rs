//! Files of Parquet that are damaged or cut off: an error, or rows; never a panic, never more memory than allowed.

use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use ::parquet::file::properties::{WriterProperties, WriterVersion};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use coload_load::InputForm;
use proptest::prelude::*;

use crate::parquet_files::{KINDS, Shape, bytes};
use crate::support::scratch;
use crate::text::Random;
use crate::typed_loads::check_damaged;
use crate::typed_values::{Seeds, seeds};

#[track_caller]
fn check(dir: &tempfile::TempDir, bytes: &[u8], columns: usize) -> Option<u64> {
    check_damaged(dir, (InputForm::Parquet, "in.parquet"), bytes, columns)
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

/// A list, a text in a group, and a map, in pages of few entries.
fn nested_file(version: usize) -> Vec<u8> {
    let schema = "message m { optional group l (LIST) { repeated group list { optional int64 element; } }
        optional group s { optional binary t (UTF8); }
        optional group m (MAP) { repeated group key_value { required binary key (UTF8); optional int32 value; } } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    let properties = WriterProperties::builder()
        .set_writer_version(versions[version])
        .set_data_page_row_count_limit(2)
        .set_write_batch_size(2)
        .set_dictionary_enabled(version == 0)
        .build();
    let mut out = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut out, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let texts =
        |texts: &[&str]| texts.iter().map(|text| ByteArray::from(*text)).collect::<Vec<_>>();
    // [1, null, 2], [], NULL, [3]
    let mut column = group.next_column().unwrap().unwrap();
    let levels: (&[i16], &[i16]) = (&[3, 2, 3, 1, 0, 3], &[0, 1, 1, 0, 0, 0]);
    column.typed::<Int64Type>().write_batch(&[1, 2, 3], Some(levels.0), Some(levels.1)).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<ByteArrayType>()
        .write_batch(&texts(&["a", "b"]), Some(&[2, 1, 0, 2]), None)
        .unwrap();
    column.close().unwrap();
    // {"k": 7, "q": null}, {}, NULL, {"r": 8}
    let mut column = group.next_column().unwrap().unwrap();
    let levels: (&[i16], &[i16]) = (&[2, 2, 1, 0, 2], &[0, 1, 0, 0, 0]);
    column
        .typed::<ByteArrayType>()
        .write_batch(&texts(&["k", "q", "r"]), Some(levels.0), Some(levels.1))
        .unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<Int32Type>()
        .write_batch(&[7, 8], Some(&[3, 2, 1, 0, 3]), Some(&[0, 1, 0, 0, 0]))
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    out
}

/// The same of lists, maps and groups, whose levels may lie.
#[test]
fn each_truncation_and_each_byte_of_nested_files_is_told_or_gives_rows() {
    for version in 0..2 {
        let whole = nested_file(version);
        let dir = scratch();
        assert_eq!(check(&dir, &whole, 3), Some(4));
        for cut in 0..whole.len() {
            assert_eq!(check(&dir, &whole[..cut], 3), None, "{cut} bytes of {}", whole.len());
        }
        for at in 0..whole.len() {
            for flip in [1_u8, 0x80] {
                let mut damaged = whole.clone();
                damaged[at] ^= flip.rotate_left(at as u32 % 7);
                check(&dir, &damaged, 3);
            }
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
