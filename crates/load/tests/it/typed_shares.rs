//! Files that several workers share: together they load what one does, wherever the files are cut.

use coload_load::{InputForm, LoadReport, SharedLoad, SplitMethod, SplitRules, plan_splits};
use coload_store::{LoadId, Store};
use coload_wire::PlanPrint;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::arrow_files::{self, Form, batch, column};
use crate::avro_files::{self, CODECS, MARKER, block, header, long, sized};
use crate::parquet_files::{self, Shape};
use crate::support::{Options, load, rows, scratch, write};
use crate::text::Random;
use crate::typed_loads::{draw_columns, draw_kinds, store, typed_options};
use crate::typed_values::{Seeds, seeds};

/// A dictionary, which may not change within a file of Arrow.
const CODED: usize = 9;

/// Loads all shares, in any order, each with a file of rejects of its own; how many splits there were, and what the last told.
fn load_shared(
    (store, dir): (&Store, &TempDir),
    options: &Options,
    workers: usize,
    random: &mut Random,
) -> (usize, LoadReport) {
    let rules = SplitRules { explicit_max: 100, split_bytes_min: 1 };
    let plan = plan_splits(&options.request, workers, rules).unwrap();
    let SplitMethod::Explicit(splits) = &plan.method else { panic!("{:?}", plan.method) };
    let count = splits.len();
    let mut order: Vec<u32> = (1..=workers as u32).collect();
    order.rotate_left(random.below(workers));
    let load = |number: u32| {
        let mut request = options.request.clone();
        request.rejects_file = Some(dir.path().join(format!("{number}.rejects")));
        let (print, id) = (PlanPrint::default(), LoadId::from_u128(7));
        let shared = SharedLoad::new(request, plan.clone(), print, id).unwrap();
        shared.load(number, &options.resources, &options.hooks, store).unwrap()
    };
    let mut reports: Vec<LoadReport> = order.into_iter().map(load).collect();
    (count, reports.pop().unwrap())
}

/// The records that files of rejects have, in an order that does not depend on who wrote them.
fn sorted_rejects(dir: &TempDir) -> Vec<String> {
    let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|of| of == "rejects"));
    let mut lines: Vec<String> = files
        .flat_map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    lines.sort_unstable();
    lines
}

/// The rows of a store, in an order that does not depend on who loaded them.
fn sorted_rows(store: &Store) -> Vec<String> {
    let mut rows: Vec<String> = rows(store, "t").iter().map(|row| format!("{row:?}")).collect();
    rows.sort_unstable();
    rows
}

/// A file of some small blocks.
fn draw_file(form: InputForm, kinds: &[usize], random: &mut Random) -> Vec<u8> {
    let count = random.below(12) + 1;
    if form == InputForm::Arrow {
        let batches = (0..count).map(|_| {
            let rows = random.below(8);
            batch(kinds.iter().map(|kind| column(*kind, rows, random).0).collect())
        });
        let batches: Vec<_> = batches.collect();
        return arrow_files::bytes(Form::File, &batches);
    }
    let blocks = (0..count).map(|_| {
        let rows = random.below(8);
        kinds.iter().map(|_| seeds(rows, random)).collect()
    });
    let blocks: Vec<Vec<Seeds>> = blocks.collect();
    match form {
        InputForm::Parquet => parquet_files::bytes(kinds, &blocks, Shape::draw(random), random),
        _ => {
            let codec = random.of(&CODECS);
            avro_files::bytes(kinds, &blocks, codec, random).0
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(96)
    ) })]

    #[test]
    fn shares_of_a_file_are_all_of_it(
        seed: u64,
        form in prop::sample::select(&[InputForm::Avro, InputForm::Arrow, InputForm::Parquet][..]),
        workers in 2_usize..5,
    ) {
        let dir = scratch();
        let mut random = Random::new(seed);
        let count = match form {
            InputForm::Arrow => arrow_files::KINDS,
            InputForm::Parquet => parquet_files::KINDS.len(),
            _ => avro_files::KINDS.len(),
        };
        let mut kinds = draw_kinds(count, &mut random);
        if form == InputForm::Arrow {
            kinds.iter_mut().filter(|kind| **kind == CODED).for_each(|kind| *kind = 0);
        }
        let columns = draw_columns(kinds.len(), random.one_in(2), &mut random);
        // Some in one file, some in two.
        let files = (0..random.below(2) + 1)
            .map(|n| write(&dir, &format!("in{n}"), &draw_file(form, &kinds, &mut random)));
        let files: Vec<_> = files.collect();
        let mut options = typed_options(form, &files, &columns);
        options.resources.chunk_bytes = 1000;
        let (alone, together) = (scratch(), scratch());
        let (whole, shared) = (store(&dir, "whole"), store(&dir, "shared"));
        let (_, last) = load_shared((&shared, &together), &options, workers, &mut random);
        options.rejects_file = Some(alone.path().join("0.rejects"));
        let expected = load(&whole, &options).unwrap();
        prop_assert_eq!(sorted_rows(&shared), sorted_rows(&whole));
        prop_assert_eq!(sorted_rejects(&together), sorted_rejects(&alone));
        let all = last.shares.unwrap();
        prop_assert_eq!((all.rows, all.rejects), (expected.rows(), expected.reject_count()));
    }

    /// Texts that have the marker of their file, and what looks like a block behind it: nobody can tell without the blocks before.
    #[test]
    fn markers_within_blocks_are_found_out(seed: u64, workers in 2_usize..5) {
        let dir = scratch();
        let mut random = Random::new(seed);
        let schema = r#"{"type": "record", "name": "r", "fields": [{"name": "c0", "type": "string"}]}"#;
        let mut file = header(schema, "null");
        for _ in 0..random.below(6) + 3 {
            let rows = random.below(6);
            let mut raw = Vec::new();
            for number in 0..rows {
                let mut text = format!("row {number} ").into_bytes();
                for _ in 0..random.below(4) {
                    text.extend(MARKER);
                    let mut inner = Vec::new();
                    sized(b"no row", &mut inner);
                    match random.below(4) {
                        0 => block(1, &inner, "null", &mut text),
                        // It has fewer records than it says.
                        1 => block(3, &inner, "null", &mut text),
                        2 => block(0, &[], "null", &mut text),
                        _ => text.extend(b"\x02\x7e"),
                    }
                }
                if number + 1 == rows && random.one_in(2) {
                    // A block that ends where the real one does: all that is behind it is right.
                    let mut inner = Vec::new();
                    sized(b"no row", &mut inner);
                    text.extend(MARKER);
                    long(1, &mut text);
                    sized(&inner, &mut text);
                }
                sized(&text, &mut raw);
            }
            block(rows, &raw, "null", &mut file);
        }
        let mut options = typed_options(InputForm::Avro, &[write(&dir, "in", &file)], "c0 BINARY");
        options.resources.chunk_bytes = 1000;
        let (whole, shared) = (store(&dir, "whole"), store(&dir, "shared"));
        load(&whole, &options).unwrap();
        let (splits, _) = load_shared((&shared, &dir), &options, workers, &mut random);
        prop_assert!(splits > workers);
        prop_assert_eq!(sorted_rows(&shared), sorted_rows(&whole));
    }
}

/// What is damaged is told by the share that reads it, and by one that looks whether it began where a block does.
#[test]
fn a_damaged_block_fails_a_share() {
    let dir = scratch();
    let mut random = Random::new(5);
    let blocks: Vec<Vec<Seeds>> = (0..10).map(|_| vec![vec![Some(1), Some(2)]]).collect();
    let (mut file, ends) = avro_files::bytes(&[0], &blocks, "null", &mut random);
    // The marker behind the block in the middle.
    file[ends[5] - 3] ^= 1;
    let options = typed_options(InputForm::Avro, &[write(&dir, "in.avro", &file)], "c0 BIGINT");
    let rules = SplitRules { explicit_max: 100, split_bytes_min: 1 };
    let plan = plan_splits(&options.request, 2, rules).unwrap();
    let shared =
        SharedLoad::new(options.request.clone(), plan, PlanPrint::default(), LoadId::from_u128(7))
            .unwrap();
    let store = store(&dir, "s");
    let loads = [1, 2].map(|n| shared.load(n, &options.resources, &options.hooks, &store));
    let failed: Vec<String> =
        loads.iter().filter_map(|load| Some(load.as_ref().err()?.to_string())).collect();
    assert!(
        failed.iter().any(|text| text.contains("marker") && text.contains("in.avro")),
        "{failed:?}"
    );
    assert!(store.snapshot().unwrap().tables().is_empty());
}
