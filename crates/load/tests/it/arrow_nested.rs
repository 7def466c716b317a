//! Nested Arrow as `pyarrow` writes it has the rows of the same table as Parquet: `examples/nested/make.py` makes both.

use std::path::PathBuf;

use coload_load::InputForm;
use coload_store::Store;
use coload_types::Value;

use crate::support::{load, rows, scratch, write};
use crate::text::Random;
use crate::typed_loads::{store, typed_options};

const COLUMNS: &str = "n BIGINT, s_a INTEGER, s_t_x VARCHAR, s_t_l VARCHAR, l VARCHAR, ll VARCHAR, ls VARCHAR, \
                       m VARCHAR, mi VARCHAR, f VARCHAR, dts VARCHAR, ts VARCHAR, b VARCHAR, fl VARCHAR, u VARCHAR";

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/examples/nested").join(name)
}

fn loaded(
    store: &Store,
    form: InputForm,
    path: PathBuf,
    chunk_bytes: usize,
) -> Vec<Vec<Option<Value>>> {
    let mut options = typed_options(form, &[path], COLUMNS);
    options.resources.chunk_bytes = chunk_bytes;
    let report = load(store, &options).unwrap();
    assert_eq!(report.rows(), 30);
    rows(store, "t")
}

fn text(value: &Option<Value>) -> Option<String> {
    match value {
        Some(Value::Bytes(bytes)) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nested_arrow_has_the_rows_of_nested_parquet() {
    let dir = scratch();
    let parquet = example("nested.parquet");
    let expected = loaded(&store(&dir, "parquet"), InputForm::Parquet, parquet, 10 << 20);
    // NULL at each level, and what is not NULL.
    for column in 1..15 {
        let nulls = expected.iter().filter(|row| row[column].is_none()).count();
        assert!((1..30).contains(&nulls), "{nulls} NULLs in column {column}");
    }
    let lists: Vec<String> = expected.iter().filter_map(|row| text(&row[4])).collect();
    assert!(
        lists.iter().any(|list| list == "[]") && lists.iter().any(|list| list.contains("null"))
    );
    for name in [
        "file.arrow",
        "sliced.arrow",
        "lz4.arrow",
        "zstd.arrows",
        "forms.arrows",
        "forms_zstd.arrow",
    ] {
        // As one chunk, and as a chunk of each row or two.
        for chunk_bytes in [10 << 20, 256] {
            let store = store(&dir, &format!("{name}-{chunk_bytes}"));
            let found = loaded(&store, InputForm::Arrow, example(name), chunk_bytes);
            assert_eq!(found, expected, "{name}");
        }
    }
    // As they come through a pipe.
    for name in ["file.arrow", "forms.arrows"] {
        let bytes = std::fs::read(example(name)).unwrap();
        let path = write(&dir, "in.arrow.gz", &crate::arrow_files::gzip_of(&bytes));
        let store = store(&dir, &format!("{name}-gz"));
        assert_eq!(loaded(&store, InputForm::Arrow, path, 10 << 20), expected, "{name}");
    }
}

#[test]
fn dictionaries_may_have_lists() {
    let dir = scratch();
    let store = store(&dir, "s");
    let path = example("coded_lists.arrow");
    load(&store, &typed_options(InputForm::Arrow, &[path], "c VARCHAR, d VARCHAR")).unwrap();
    let found: Vec<[Option<String>; 2]> =
        rows(&store, "t").iter().map(|row| [text(&row[0]), text(&row[1])]).collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        found,
        [
            [some("[1, null]"), None],
            [None, some("[1]")],
            [None, some("[2]")],
            [some("[3]"), some("[3]")],
            [some("[1, null]"), some("[4]")],
            [some("[]"), some("[5]")],
        ]
    );
}

/// Bytes that are others give other rows, rejects or an error.
#[test]
fn damaged_nested_arrow_is_told() {
    let dir = scratch();
    let mut random = Random::new(5);
    let mut failed = 0;
    for name in ["file.arrow", "forms.arrows", "forms_zstd.arrow", "coded_lists.arrow"] {
        let bytes = std::fs::read(example(name)).unwrap();
        for round in 0..150 {
            let mut bytes = bytes.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] = random.below(256) as u8;
            }
            let path = write(&dir, "in.arrow", &bytes);
            let columns =
                if name == "coded_lists.arrow" { "c VARCHAR, d VARCHAR" } else { COLUMNS };
            let mut options = typed_options(InputForm::Arrow, &[path], columns);
            options.resources.memory = 64 << 20;
            let store = store(&dir, &format!("{name}-{round}"));
            failed += usize::from(load(&store, &options).is_err());
        }
    }
    assert!(failed > 0);
}
