//! Splits to workers: the largest first, each to the worker that has least; or in their order.
//!
//! The worker that has most then has at most 4/3 of what it must have (Graham 1969), and little more than the mean where
//! splits are small.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Split, WorkerShare};

/// Gives each split its worker, and says what each worker has. Splits stay in their order.
pub fn assign_largest_first(splits: &mut [Split], workers: usize) -> Vec<WorkerShare> {
    let mut order: Vec<usize> = (0..splits.len()).collect();
    order.sort_by_key(|number| Reverse(splits[*number].bytes));
    // Of those that have the same bytes the one with fewest splits, and then the first.
    let mut least: BinaryHeap<Reverse<(u64, u64, usize)>> =
        (0..workers).map(|worker| Reverse((0, 0, worker))).collect();
    let mut shares = vec![WorkerShare::default(); workers];
    for number in order {
        let Some(Reverse((bytes, count, worker))) = least.pop() else { break };
        splits[number].worker = worker;
        let share = WorkerShare { splits: count + 1, bytes: bytes + splits[number].bytes };
        shares[worker] = share;
        least.push(Reverse((share.bytes, share.splits, worker)));
    }
    shares
}

/// Gives each split its worker so that these have them in their order, each about as many bytes: a split goes to the worker in whose
/// range its middle lies. No worker has more than the mean and the largest split.
pub fn assign_in_order(splits: &mut [Split], workers: usize) -> Vec<WorkerShare> {
    // A byte more of each, so that empty ones are shared, too.
    let weight = |split: &Split| 2 * (u128::from(split.bytes) + 1);
    let all: u128 = splits.iter().map(weight).sum();
    let mut shares = vec![WorkerShare::default(); workers];
    let mut before = 0;
    for split in splits {
        let middle = before + weight(split) / 2;
        before += weight(split);
        split.worker = (middle * workers as u128 / all) as usize;
        shares[split.worker].splits += 1;
        shares[split.worker].bytes += split.bytes;
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::SplitPart;
    use super::*;

    fn splits(bytes: &[u64]) -> Vec<Split> {
        let split = |(input, bytes): (usize, &u64)| Split {
            input,
            part: SplitPart::Whole,
            bytes: *bytes,
            worker: usize::MAX,
        };
        bytes.iter().enumerate().map(split).collect()
    }

    /// The least that the worker with most can have, by trying all.
    fn best(bytes: &[u64], held: &mut Vec<u64>) -> u64 {
        let Some((first, rest)) = bytes.split_first() else {
            return held.iter().copied().max().unwrap_or(0);
        };
        let mut least = u64::MAX;
        for worker in 0..held.len() {
            held[worker] += first;
            least = least.min(best(rest, held));
            held[worker] -= first;
        }
        least
    }

    proptest! {
        #[test]
        fn splits_in_order_go_to_workers_in_order_and_none_has_much_more_than_the_mean(
            bytes in prop::collection::vec(0_u64..20, 0..30),
            workers in 1_usize..5,
        ) {
            let mut splits = splits(&bytes);
            let shares = assign_in_order(&mut splits, workers);
            prop_assert!(splits.is_sorted_by_key(|split| split.worker));
            for (worker, share) in shares.iter().enumerate() {
                let own = splits.iter().filter(|split| split.worker == worker);
                prop_assert_eq!(share.bytes, own.clone().map(|split| split.bytes).sum::<u64>());
                prop_assert_eq!(share.splits, own.count() as u64);
                let mean = bytes.iter().map(|bytes| bytes + 1).sum::<u64>() / workers as u64;
                prop_assert!(share.bytes <= mean + bytes.iter().max().copied().unwrap_or(0) + 1);
            }
        }

        #[test]
        fn each_split_has_a_worker_and_none_has_much_more_than_it_must(
            bytes in prop::collection::vec(0_u64..20, 0..7),
            workers in 1_usize..4,
        ) {
            let mut splits = splits(&bytes);
            let shares = assign_largest_first(&mut splits, workers);
            for (worker, share) in shares.iter().enumerate() {
                let own = splits.iter().filter(|split| split.worker == worker);
                prop_assert_eq!(share.bytes, own.clone().map(|split| split.bytes).sum::<u64>());
                prop_assert_eq!(share.splits, own.count() as u64);
            }
            prop_assert_eq!(shares.iter().map(|s| s.splits).sum::<u64>(), bytes.len() as u64);
            let most = shares.iter().map(|share| share.bytes).max().unwrap_or(0);
            let least = best(&bytes, &mut vec![0; workers]);
            prop_assert!(3 * most <= 4 * least, "{} where {} would do", most, least);
        }
    }
}
