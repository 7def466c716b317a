#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn rows() -> impl Strategy<Value = Vec<u32>> {
    let row = prop_oneof![0u32..200, 65_500u32..65_600, 130_900u32..131_200];
    prop::collection::vec(row, 0..300)
}

proptest! {
    #[test]
    fn words_are_the_rows_from_any_start(rows in rows(), start in 0u64..131_300, count in 1usize..20) {
        let deleted = DeletedRows::new(rows.iter().copied().collect());
        let mut words = vec![u64::MAX; count];
        deleted.fill_words(start, &mut words);
        for row in 0..count as u64 * 64 {
            let bit = words[row as usize / 64] >> (row % 64) & 1 == 1;
            let is_there = rows.contains(&((start + row) as u32));
            prop_assert_eq!((bit, deleted.contains(start + row)), (is_there, is_there));
        }
        let end = start + count as u64 * 64;
        let within = deleted.iter().filter(|row| (start..end).contains(row)).count() as u64;
        prop_assert_eq!(deleted.count_in(start..end), within);
    }

    #[test]
    fn a_set_is_read_back_and_any_other_bytes_do_not_panic(rows in rows(), cut in any::<prop::sample::Index>(), flip in any::<prop::sample::Index>()) {
        let set: RoaringBitmap = rows.into_iter().collect();
        let mut bytes = encode(&set).unwrap();
        prop_assert_eq!(decode(&bytes), Some(set));
        prop_assert!(decode(&bytes[..cut.index(bytes.len())]).is_none());
        prop_assert!(decode(&[&bytes[..], &[0]].concat()).is_none());
        let at = flip.index(bytes.len());
        bytes[at] ^= 0x40;
        if let Some(set) = decode(&bytes) {
            // Whatever is taken is a set: its rows ascend, and are counted.
            let all: Vec<u32> = set.iter().collect();
            prop_assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(all.len() as u64, set.len());
        }
    }
}

#[test]
fn rows_past_32_bits_are_not_deleted() {
    let deleted = DeletedRows::new([5, u32::MAX].into_iter().collect());
    assert_eq!(deleted.count_in(0..1 << 40), 2);
    assert_eq!(deleted.count_in(6..u64::from(u32::MAX)), 0);
    assert_eq!(deleted.count_in(1 << 33..1 << 40), 0);
    assert!(deleted.contains(u64::from(u32::MAX)) && !deleted.contains(1 << 32 | 5));
}
