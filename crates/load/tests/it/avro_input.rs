//! Loads of Avro are the loads of the text of the same values: the same rows, the same rejects.

use std::path::PathBuf;

use coload_load::InputForm;
use coload_types::{Error, Value};
use coload_wire::RejectLimit;
use proptest::prelude::*;

use crate::avro_files::{CODECS, KINDS, block, bytes, gzip, header, long, sized, text};
use crate::support::{Options, load, rows, scratch, write};
use crate::text::Random;
use crate::typed_loads::{check_as_text, draw_columns, draw_kinds, store, typed_options};
use crate::typed_values::{Seeds, seeds};

pub fn avro_options(paths: &[PathBuf], columns: &str) -> Options {
    typed_options(InputForm::Avro, paths, columns)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(96)
    ) })]

    #[test]
    fn avro_is_loaded_as_its_text_is(seed: u64, is_checked: bool, is_stream: bool) {
        let dir = scratch();
        let mut random = Random::new(seed);
        let kinds = draw_kinds(KINDS.len(), &mut random);
        let columns = draw_columns(kinds.len(), is_checked, &mut random);
        let (mut csv, mut blocks) = (String::new(), Vec::new());
        for _ in 0..random.below(4) + 1 {
            let rows = random.below(60);
            let made: Vec<Seeds> = kinds.iter().map(|_| seeds(rows, &mut random)).collect();
            for row in 0..rows {
                let fields: Vec<String> =
                    kinds.iter().zip(&made).map(|(kind, seeds)| text(*kind, seeds[row])).collect();
                csv.push_str(&fields.join(","));
                csv.push('\n');
            }
            blocks.push(made);
        }
        let codec = random.of(&CODECS);
        let (avro, _) = bytes(&kinds, &blocks, codec, &mut random);
        let file = write(&dir, "in.avro", &if is_stream { gzip(&avro) } else { avro });
        check_as_text(&dir, (InputForm::Avro, file), (&csv, &columns))?;
    }
}

/// A block is longer than a chunk, and blocks are shorter: rows keep their order, whatever is put together.
#[test]
fn blocks_are_put_together_in_order() {
    let dir = scratch();
    let run = |from: u32, to: u32| vec![(from..to).map(Some).collect::<Seeds>()];
    let mut blocks = vec![run(0, 30_000)];
    blocks.extend((0..300).map(|n| run(30_000 + n * 10, 30_010 + n * 10)));
    blocks.push(run(0, 0));
    for codec in CODECS {
        let (avro, _) = bytes(&[0], &blocks, codec, &mut Random::new(7));
        let paths = [write(&dir, "in.avro", &avro), write(&dir, "more.avro", &avro)];
        let packed = [write(&dir, "in.avro.gz", &gzip(&avro)), paths[1].clone()];
        for (number, paths) in [&paths, &packed].into_iter().enumerate() {
            for threads in [1, 3] {
                let store = store(&dir, &format!("{codec}{number}{threads}"));
                let mut options = avro_options(paths, "c0 BIGINT");
                options.resources.chunk_bytes = 16 << 10;
                options.resources.threads = threads;
                let report = load(&store, &options).unwrap();
                assert_eq!(report.rows(), 66_000);
                let found = rows(&store, "t");
                let expected = |row: i64| [Some(Value::Int(row % 33_000 - 35_000))];
                assert!((0..66_000).all(|row| found[row as usize] == expected(row)));
            }
        }
    }
}

/// A strict load ends with the first record that is none, and says where it is.
#[test]
fn a_strict_load_tells_the_first_record_that_is_none() {
    let dir = scratch();
    let blocks = [vec![vec![Some(35_001), None]], vec![vec![Some(35_300), Some(0), Some(1)]]];
    let (avro, ends) = bytes(&[0], &blocks, "null", &mut Random::new(7));
    for (name, bytes) in [("in.avro", avro.clone()), ("in.avro.gz", gzip(&avro))] {
        let path = write(&dir, name, &bytes);
        let mut options = avro_options(&[path], "c0 SMALLINT");
        options.max_rejects = RejectLimit::Count(0);
        let error = load(&store(&dir, &format!("{name}.s")), &options).unwrap_err().to_string();
        let place = format!("{name}:4:1 (byte {})", ends[1]);
        assert!(
            error.contains(&place) && error.contains("\"-35000\" is not SMALLINT"),
            "{place} {error}"
        );
    }
}

/// What a block takes is told before it is taken.
#[test]
fn what_memory_does_not_hold_is_a_limit() {
    let dir = scratch();
    let mut raw = Vec::new();
    (0..400_000).for_each(|_| sized(b"a word or two", &mut raw));
    let schema = r#"{"type": "record", "name": "r", "fields": [{"name": "c0", "type": "string"}]}"#;
    for codec in CODECS {
        let mut avro = header(schema, codec);
        block(400_000, &raw, codec, &mut avro);
        let path = write(&dir, "in.avro", &avro);
        let mut options = avro_options(&[path], "c0 VARCHAR");
        options.resources.memory = 3 << 20;
        match load(&store(&dir, &format!("{codec}.s")), &options) {
            Err(Error::Limit(text)) => {
                assert!(text.contains("--memory") && text.contains("block 1"), "{text}");
            }
            other => panic!("{:?}", other.map(|report| report.rows())),
        }
        options.resources.memory = 96 << 20;
        assert_eq!(load(&store(&dir, &format!("{codec}.s")), &options).unwrap().rows(), 400_000);
    }
}

/// A field of other names in the second file, and values that are records by themselves.
#[test]
fn files_of_other_fields_are_refused_and_single_values_are_a_column() {
    let dir = scratch();
    let mut avro = header("\"long\"", "null");
    let mut raw = Vec::new();
    [5, -6].into_iter().for_each(|value| long(value, &mut raw));
    block(2, &raw, "null", &mut avro);
    let path = write(&dir, "in.avro", &avro);
    let values = store(&dir, "values");
    let loaded = load(&values, &avro_options(std::slice::from_ref(&path), "value BIGINT")).unwrap();
    assert_eq!(loaded.rows(), 2);
    assert_eq!(rows(&values, "t"), [[Some(Value::Int(5))], [Some(Value::Int(-6))]]);
    let others = avro_options(&[path], "a BIGINT, b BIGINT");
    let error = load(&store(&dir, "others"), &others).unwrap_err();
    assert!(error.to_string().contains("has 1 fields, and 2 are read"), "{error}");
}
