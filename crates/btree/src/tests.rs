#![allow(clippy::unwrap_used)]
use std::collections::BTreeSet;

use coload_types::bytes::checksum;
use proptest::prelude::*;

use super::*;

fn build(keys: &[Vec<u8>]) -> (Vec<u8>, u64) {
    let (first, last) = (keys.first().cloned(), keys.last().cloned());
    let mut builder = TreeBuilder::new(&first.unwrap_or_default(), &last.unwrap_or_default());
    let mut bytes = Vec::new();
    for key in keys {
        builder.push(key).unwrap();
        bytes.extend(builder.take_bytes().unwrap_or_default());
    }
    let (rest, seal) = builder.finish();
    bytes.extend(rest);
    (bytes, seal)
}

/// Compares a tree with a list of its keys, by each key and by others.
fn check(keys: &[Vec<u8>], others: &[Vec<u8>]) {
    let (bytes, seal) = build(keys);
    let tree = Tree::open(&bytes, seal).unwrap();
    assert_eq!((tree.keys(), tree.bytes()), (keys.len() as u64, bytes.len()));
    let mut all = Vec::new();
    tree.for_each_key(&bytes, |key| {
        all.push(key.to_vec());
        Ok(())
    })
    .unwrap();
    assert_eq!(all, keys);
    let longer = keys.iter().map(|key| [&key[..], &[0]].concat());
    let shorter = keys.iter().filter_map(|key| Some(key.split_last()?.1.to_vec()));
    for key in keys.iter().cloned().chain(longer).chain(shorter).chain(others.iter().cloned()) {
        let below = keys.partition_point(|other| *other < key) as u64;
        let is_there = keys.binary_search(&key).is_ok();
        assert_eq!(tree.find(&bytes, &key).unwrap(), Position { below, is_there }, "{key:?}");
    }
}

fn numbers(count: u64, step: u64) -> Vec<Vec<u8>> {
    (0..count).map(|i| (i * step).to_be_bytes().to_vec()).collect()
}

#[test]
fn numbers_are_found_by_themselves_and_by_what_is_between() {
    let between: Vec<_> = (0..500u64).map(|i| (i * 977 + 1).to_be_bytes().to_vec()).collect();
    for (count, step) in [(0, 1), (1, 1), (63, 3), (512, 1), (513, 1), (5_000, 3), (40_000, 70_001)]
    {
        check(&numbers(count, step), &between);
    }
    let edges = [vec![], vec![0xff; 8], vec![0xff; 9]];
    check(&numbers(2_000, 1 << 52), &edges);
    check(&[vec![]], &edges);
    check(&[vec![], vec![0], vec![0, 0]], &edges);
}

#[test]
fn long_keys_that_begin_alike_are_told_apart() {
    let alike = "p".repeat(4096);
    let mut keys: Vec<Vec<u8>> =
        (0..2_000).map(|i| format!("{alike}{:05}", i * 7).into_bytes()).collect();
    let others =
        [alike.clone().into_bytes(), b"q".to_vec(), b"o".to_vec(), "p".repeat(9).into_bytes()];
    check(&keys, &others);
    // One that is like no other, so that starts of leaves are all the same but for one.
    keys.push(b"z".to_vec());
    check(&keys, &others);
    let long: Vec<_> = (0..40u8).map(|i| vec![i; 64 << 10]).collect();
    check(&long, &[vec![7; 3], vec![7; 70_000]]);
}

#[test]
fn keys_of_line_items_take_few_bytes() {
    // As packed keys of lineitem are: 8 of 32 numbers of orders, each with 1 to 7 lines.
    let mut keys = Vec::new();
    for order in 0..150_000u32 {
        let number = order / 8 * 32 + order % 8;
        for line in 0..(order % 7 + 1) as u8 {
            keys.push([&number.to_be_bytes()[1..], &[line]].concat());
        }
    }
    let (bytes, seal) = build(&keys);
    let each = bytes.len() as f64 / keys.len() as f64;
    assert!(each < 3.0, "{each} bytes a key");
    let tree = Tree::open(&bytes, seal).unwrap();
    for (row, key) in keys.iter().enumerate().step_by(997) {
        assert_eq!(tree.find(&bytes, key).unwrap(), Position { below: row as u64, is_there: true });
    }
}

#[test]
fn keys_out_of_order_are_refused() {
    let fails = |keys: &[&[u8]]| {
        let mut builder = TreeBuilder::new(keys[0], keys[keys.len() - 1]);
        keys.iter().try_for_each(|key| builder.push(key)).is_err()
    };
    assert!(fails(&[b"b", b"a"]));
    assert!(fails(&[b"b", b"b"]));
    assert!(fails(&[b"aa", b"b", b"ab"]));
    assert!(!fails(&[b"a", b"aa", b"b"]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_keys_are_found(
        keys in proptest::collection::btree_set(proptest::collection::vec(0..3u8, 0..9), 0..400),
        long in proptest::collection::btree_set(proptest::collection::vec(any::<u8>(), 0..300), 0..80),
        others in proptest::collection::vec(proptest::collection::vec(0..4u8, 0..10), 0..50),
    ) {
        let all: BTreeSet<Vec<u8>> = keys.into_iter().chain(long).collect();
        check(&all.into_iter().collect::<Vec<_>>(), &others);
    }

    /// No bytes panic, whether a checksum tells that they are wrong or not.
    #[test]
    fn damaged_trees_are_errors_or_answers(
        count in 1..1_500u64,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        is_text in any::<bool>(),
    ) {
        let keys = match is_text {
            true => (0..count).map(|i| format!("key {i:06} {}", "x".repeat(i as usize % 40)).into_bytes()).collect(),
            false => numbers(count, 13),
        };
        let (mut bytes, seal) = build(&keys);
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        for (place, value) in &changes {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = *value;
            }
        }
        // Also as if the checksum of nodes and places were right, from wherever the leaves are said to end.
        let tail = bytes.len().saturating_sub(24);
        let said = bytes.get(tail..tail + 8).map(|said| u64::from_le_bytes(said.try_into().unwrap()));
        let forged = said.and_then(|said| bytes.get(usize::try_from(said).ok()?..)).map(checksum);
        for seal in [Some(seal), forged].into_iter().flatten() {
            let Ok(tree) = Tree::open(&bytes, seal) else { continue };
            for key in keys.iter().step_by(37) {
                let _ = tree.find(&bytes, key);
            }
            let _ = tree.for_each_key(&bytes, |_| Ok(()));
        }
    }

    #[test]
    fn any_bytes_are_no_tree_or_one(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let tail = bytes.len().saturating_sub(24);
        for start in [0, tail / 2, tail] {
            let Ok(tree) = Tree::open(&bytes, checksum(&bytes[start..])) else { continue };
            let _ = tree.find(&bytes, b"key");
            let _ = tree.for_each_key(&bytes, |_| Ok(()));
        }
    }
}

proptest! {
    #[test]
    fn numbers_make_the_same_tree_as_their_bytes(
        width in 0..9usize,
        steps in proptest::collection::vec(prop_oneof![4 => 1..4u64, 2 => 1..70_000u64, 1 => 1..u64::MAX / 4], 0..1500),
        first in any::<u64>(),
        cut in 1..700usize,
    ) {
        let most = if width == 0 { 0 } else { u64::MAX >> (64 - 8 * width as u32) };
        let mut keys = vec![first & (most / 2)];
        for step in steps {
            match keys[keys.len() - 1].checked_add(step & most).filter(|next| *next <= most) {
                Some(next) if next > keys[keys.len() - 1] => keys.push(next),
                _ => {}
            }
        }
        let bytes: Vec<Vec<u8>> = keys.iter().map(|key| key.to_be_bytes()[8 - width..].to_vec()).collect();
        let mut builder = TreeBuilder::new(&bytes[0], &bytes[bytes.len() - 1]);
        let mut made = Vec::new();
        for some in keys.chunks(cut) {
            builder.push_numbers(some, width).unwrap();
            made.extend(builder.take_bytes().unwrap_or_default());
        }
        let (rest, seal) = builder.finish();
        made.extend(rest);
        prop_assert!((made, seal) == build(&bytes));
    }
}

#[test]
fn numbers_that_are_not_in_order_are_refused() {
    let between = |keys: &[u64]| {
        let mut builder = TreeBuilder::new(&[7, 0], &[7, 9]);
        builder.push_numbers(keys, 2).is_ok()
    };
    assert!(between(&[0x700, 0x701, 0x709]));
    assert!(!between(&[0x701, 0x701]) && !between(&[0x702, 0x701]) && !between(&[0x800]));
}

#[test]
fn a_walk_finds_what_is_there_and_goes_over_what_is_not() {
    let keys: Vec<Vec<u8>> = (0..5_000_u32).map(|n| (n * 3).to_be_bytes().to_vec()).collect();
    let mut builder = TreeBuilder::new(&keys[0], &keys[keys.len() - 1]);
    keys.iter().for_each(|key| builder.push(key).unwrap());
    let (bytes, seal) = builder.finish();
    let tree = Tree::open(&bytes, seal).unwrap();
    for step in [1, 2, 7, 1000] {
        let mut walk = Walk::default();
        for asked in (0..16_000_u32).step_by(step) {
            let wanted = (asked % 3 == 0 && asked < 15_000).then_some(u64::from(asked / 3));
            assert_eq!(walk.find_next(&tree, &bytes, &asked.to_be_bytes()).unwrap(), wanted);
        }
    }
}
