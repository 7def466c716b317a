#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use datasketches::hll::{HllSketch, HllType};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const ERROR: f64 = 1.04 / 64.0;

/// Every hash goes to its register: no limit, no blocks.
fn model(hashes: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut registers = vec![0; REGISTERS];
    for hash in hashes {
        let rank = (hash | 0x800).leading_zeros() as u8 + 1;
        let register = &mut registers[(hash & 0xFFF) as usize];
        *register = rank.max(*register);
    }
    registers
}

fn registers(sketch: &DistinctSketch) -> Vec<u8> {
    sketch.registers.iter().map(|r| r.load(Relaxed)).collect()
}

fn add_text(sketch: &DistinctSketch, texts: &[Vec<u8>]) {
    let (mut starts, mut lengths) = (Vec::new(), Vec::new());
    let mut source = Vec::new();
    for text in texts {
        starts.push(source.len() as u32);
        lengths.push(text.len() as u32);
        source.extend_from_slice(text);
    }
    sketch.add_texts(&source, &starts, &lengths);
}

#[test]
fn estimates_stay_within_four_standard_errors_and_near_datasketches() {
    for distinct in [0i64, 1, 10, 1_000, 10_000, 50_000, 300_000, 2_000_000] {
        // Numbers that follow each other, and numbers far apart.
        for step in [1, 1_000_003, 1 << 24] {
            let values: Vec<i64> = (0..distinct).map(|i| i * step).collect();
            let ours = DistinctSketch::default();
            let mut theirs = HllSketch::new(12, HllType::Hll8).unwrap();
            ours.add_ints(&values);
            ours.add_ints(&values[..values.len() / 2]);
            values.iter().for_each(|v| theirs.update(*v));
            let of = distinct.max(1) as f64;
            assert!(
                (ours.estimate() - distinct as f64).abs() / of < 4.0 * ERROR,
                "{distinct} {step}"
            );
            assert!((ours.estimate() - theirs.estimate()).abs() / of < 8.0 * ERROR);
        }
    }
}

#[test]
fn texts_are_counted_as_well_as_numbers() {
    for distinct in [10, 1_000, 200_000] {
        let texts: Vec<Vec<u8>> = (0..distinct)
            .map(|i| format!("{i:>0$}", 1 + i % 90).into_bytes())
            .collect::<HashSet<_>>()
            .into_iter()
            .collect();
        let sketch = DistinctSketch::default();
        add_text(&sketch, &texts);
        let error = (sketch.estimate() - texts.len() as f64).abs() / texts.len() as f64;
        assert!(error < 4.0 * ERROR, "{distinct}: {error}");
    }
}

#[test]
fn workers_at_once_make_the_sketch_of_one() {
    let values: Vec<i64> = (0..400_000).map(|i| i * 7).collect();
    let (one, many) = (DistinctSketch::default(), DistinctSketch::default());
    one.add_ints(&values);
    std::thread::scope(|scope| {
        for part in values.chunks(100_000) {
            scope.spawn(|| part.chunks(777).for_each(|few| many.add_ints(few)));
        }
    });
    assert_eq!(registers(&one), registers(&many));
}

proptest! {
    #[test]
    fn what_is_skipped_changes_nothing(
        parts in vec(vec(any::<i64>(), 0..3000), 1..30),
        turn in any::<prop::sample::Index>(),
    ) {
        let hashes = parts.iter().flatten().map(|v| HyperLogLog::mix(*v as u64));
        let expected = model(hashes);
        let sketch = DistinctSketch::default();
        let first = turn.index(parts.len());
        for part in parts[first..].iter().chain(&parts[..first]) {
            sketch.add_ints(part);
        }
        prop_assert_eq!(registers(&sketch), expected);
    }

    #[test]
    fn every_way_to_a_text_gives_its_hash(texts in vec(vec(any::<u8>(), 0..200), 0..50)) {
        let expected = model(texts.iter().map(|text| text_hash(text)));
        let sketch = DistinctSketch::default();
        add_text(&sketch, &texts);
        prop_assert_eq!(registers(&sketch), expected.clone());
        let mut strings = Strings::default();
        texts.iter().for_each(|text| strings.push(text));
        let coded = DistinctSketch::default();
        coded.add_values(&Values::Bytes(strings));
        prop_assert_eq!(registers(&coded), expected);
    }

    #[test]
    fn wide_numbers_are_counted(low in any::<i128>()) {
        let values: Vec<i128> = (0..3000).map(|i| low.wrapping_add(i << 60)).collect();
        let sketch = DistinctSketch::default();
        sketch.add_wides(&values);
        prop_assert!((sketch.estimate() - 3000.0).abs() / 3000.0 < 6.0 * ERROR);
    }
}
