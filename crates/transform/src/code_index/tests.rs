#![allow(clippy::unwrap_used)]
use coload_types::{Physical, Value};
use proptest::prelude::*;

use super::*;

fn plain(physical: Physical, values: &[Option<Value>]) -> Plain {
    let mut plain = Plain::empty(physical);
    values.iter().for_each(|value| plain.push(value.as_ref()));
    plain
}

/// The codes in order of first appearance, the slow way.
fn expected(known: &mut Vec<Value>, values: &[Option<Value>]) -> Vec<u16> {
    let code = |value: &Option<Value>| {
        let Some(value) = value else { return NULL_CODE };
        let at = known.iter().position(|k| k == value).unwrap_or_else(|| {
            known.push(value.clone());
            known.len() - 1
        });
        at as u16
    };
    values.iter().map(code).collect()
}

fn value(physical: Physical, spread: u32, n: u16) -> Value {
    match physical {
        Physical::Int => Value::Int((i64::from(n) - 7) << spread),
        Physical::Wide => Value::Wide((i128::from(n) - 7) << (2 * spread)),
        // Texts of 0 to 40 bytes, many of which differ in one byte only.
        Physical::Bytes => {
            let mut text = vec![b'a'; usize::from(n) * spread as usize % 41];
            if let Some(last) = text.last_mut() {
                *last = b'a' + (n % 3) as u8;
            }
            Value::Bytes(text.into())
        }
    }
}

proptest! {
    #[test]
    fn codes_are_those_of_a_search_whatever_the_fragments(
        fragments in proptest::collection::vec(
            (proptest::collection::vec(proptest::option::of(0u16..20), 0..60), 0u32..60), 1..5),
        shape in 0usize..3,
    ) {
        let physical = [Physical::Int, Physical::Wide, Physical::Bytes][shape];
        let (mut index, mut known) = (CodeIndex::default(), Vec::new());
        let mut temporary = TemporaryDictionary::empty(physical);
        for (numbers, spread) in fragments {
            let values: Vec<Option<Value>> =
                numbers.iter().map(|n| n.map(|n| value(physical, spread, n))).collect();
            let codes = index
                .encode(&plain(physical, &values), DictionaryLimit::default(), &mut temporary)
                .unwrap();
            prop_assert_eq!(codes, expected(&mut known, &values));
            let met: Vec<Value> = (0..temporary.values.len()).map(|i| temporary.values.get(i)).collect();
            prop_assert_eq!(&met, &known);
        }
    }
}

/// Numbers at both ends of what 64 bits hold have no table between them.
#[test]
fn numbers_far_from_each_other_leave_the_table_and_keep_their_codes() {
    let mut temporary = TemporaryDictionary::empty(Physical::Int);
    let mut index = CodeIndex::default();
    let mut encode = |values: &[i64]| {
        let plain = Plain { values: Values::Int(values.to_vec()), nulls: None };
        let codes = index.encode(&plain, DictionaryLimit::default(), &mut temporary).unwrap();
        (codes, index.table.is_some())
    };
    assert_eq!(encode(&[5, 7, 5]), (vec![0, 1, 0], true));
    assert_eq!(encode(&[7, 3, 9, 5]), (vec![1, 2, 3, 0], true));
    assert_eq!(encode(&[i64::MAX, 3, i64::MIN, 7]), (vec![4, 2, 5, 1], false));
    assert_eq!(encode(&[9, 10, i64::MAX]), (vec![3, 6, 4], false));
}

#[test]
fn a_dictionary_that_is_full_gives_no_codes_and_is_stale() {
    for physical in [Physical::Int, Physical::Wide, Physical::Bytes] {
        let mut temporary = TemporaryDictionary::empty(physical);
        let mut index = CodeIndex::default();
        let limit = DictionaryLimit { values: 3, bytes: usize::MAX };
        let of = |numbers: &[u16]| {
            let values: Vec<_> = numbers.iter().map(|n| Some(value(physical, 1, *n))).collect();
            plain(physical, &values)
        };
        assert!(index.encode(&of(&[1, 2, 3, 2]), limit, &mut temporary).is_some());
        assert!(!temporary.stale);
        assert!(index.encode(&of(&[3, 4]), limit, &mut temporary).is_none());
        assert!(temporary.stale, "{physical:?}");
    }
}
