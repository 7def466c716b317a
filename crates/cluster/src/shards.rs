//! Which leaf has which shard: rendezvous hashing, with room for the same number of shards on each leaf.
//!
//! Each shard goes to the leaf whose hash with it is the highest, of those that have room: `ceil(shards / leaves)`.
//! Without that limit 64 shards on 4 leaves are 16 each on average with a deviation of 3.5, so that the fullest leaf has
//! a quarter too many; with it each has 16. A leaf that comes or goes moves few shards more than it must.
//!
//! Source: Thaler and Ravishankar, 1998; Mirrokni et al., "Consistent Hashing with Bounded Loads", 2018.

use crate::hash::mix;
use crate::map::NodeId;

/// For each shard the place of its leaf among `leaves`, for a table of this id.
///
/// # Panics
/// When there are no leaves: a bug of the caller.
pub fn assign_shards(table: u64, shards: u32, leaves: &[NodeId]) -> Vec<u16> {
    assert!(!leaves.is_empty());
    let room = (shards as usize).div_ceil(leaves.len());
    let mut taken = vec![0; leaves.len()];
    (0..shards)
        .map(|shard| {
            let free = (0..leaves.len()).filter(|leaf| taken[*leaf] < room);
            // Of equal hashes that of the larger id.
            let best = free.max_by_key(|leaf| (score(table, shard, leaves[*leaf]), leaves[*leaf]));
            let best = best.unwrap_or(0);
            taken[best] += 1;
            best as u16
        })
        .collect()
}

/// How well a shard and a leaf fit; the same for all who ask.
pub(crate) fn score(table: u64, shard: u32, leaf: NodeId) -> u64 {
    let id = leaf.as_u128();
    let of_leaf = mix(id as u64 ^ mix((id >> 64) as u64));
    mix(of_leaf ^ mix(table ^ mix(u64::from(shard))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hash::RowHashes;

    fn leaves(count: usize, seed: u64) -> Vec<NodeId> {
        let id = |n: u64| u128::from(mix(seed ^ n)) << 64 | u128::from(mix(!seed ^ n));
        (0..count as u64).map(|n| NodeId::from_u128(id(n))).collect()
    }

    proptest! {
        #[test]
        fn no_leaf_has_more_than_its_share(
            shards in 1_u32..300, count in 1_usize..12, seed: u64, table: u64,
        ) {
            let leaves = leaves(count, seed);
            let assigned = assign_shards(table, shards, &leaves);
            prop_assert_eq!(assigned.len(), shards as usize);
            let most = (shards as usize).div_ceil(count);
            for leaf in 0..count as u16 {
                prop_assert!(assigned.iter().filter(|a| **a == leaf).count() <= most);
            }
        }

        #[test]
        fn the_order_in_which_leaves_are_named_does_not_matter(seed: u64, table: u64, turn in 0_usize..5) {
            let named = leaves(5, seed);
            let mut turned = named.clone();
            turned.rotate_left(turn);
            let of = |leaves: &[NodeId]| -> Vec<NodeId> {
                assign_shards(table, 64, leaves).iter().map(|leaf| leaves[usize::from(*leaf)]).collect()
            };
            prop_assert_eq!(of(&named), of(&turned));
        }
    }

    #[test]
    fn rows_of_a_unique_key_are_spread_within_5_percent() {
        for seed in 0..20 {
            let leaves = leaves(4, seed);
            let assigned = assign_shards(seed, 64, &leaves);
            let rows = 200_000;
            let mut count = [0_u32; 4];
            for shard in RowHashes::in_turn(seed << 40, rows).shards(64) {
                count[usize::from(assigned[shard as usize])] += 1;
            }
            let most = count.iter().max().copied().unwrap_or(0);
            assert!(f64::from(most) <= 1.05 * rows as f64 / 4.0, "{count:?}");
        }
    }

    #[test]
    fn a_leaf_more_moves_shards_to_it_and_few_others() {
        let (mut moved, mut least) = (0, 0);
        for seed in 0..50 {
            let five = leaves(5, seed);
            let of = |leaves: &[NodeId]| -> Vec<NodeId> {
                assign_shards(1, 64, leaves).iter().map(|leaf| leaves[usize::from(*leaf)]).collect()
            };
            let (before, after) = (of(&five[..4]), of(&five));
            moved += before.iter().zip(&after).filter(|(b, a)| b != a).count();
            least += after.iter().filter(|leaf| **leaf == five[4]).count();
        }
        assert!(moved <= 2 * least, "{moved} shards moved where {least} must");
    }
}
