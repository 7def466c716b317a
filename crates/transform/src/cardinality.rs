//! How many distinct values: HyperLogLog with the HIP estimator.
//!
//! ```text
//!   hash (64 bits)   high 11 bits: register   the rest: rank = leading zeros + 1
//! ```
//!
//! HIP ("historic inverse probability") counts while registers change: each change adds the inverse
//! of the probability that a new value would have changed some register. It needs no bias
//! correction, and its error is 0.82 / sqrt(registers), 1.8 % here.
//!
//! Cost: a shift, a load and a compare for a value seen before; 2 KiB a column.
//!
//! Source: Flajolet et al., AofA 2007; Cohen, "All-Distances Sketches, Revisited", PODS 2014;
//! seed 000, section 4.3.

const REGISTER_BITS: u32 = 11;
const REGISTERS: usize = 1 << REGISTER_BITS;

/// Estimates the number of distinct hashes put in. Estimates depend on the order, so two sketches
/// cannot be joined without losing HIP; a partition counts in one.
#[derive(Debug, Clone)]
pub struct HyperLogLog {
    registers: Box<[u8; REGISTERS]>,
    /// Sum over registers of 2^-rank: the probability that a new value changes one, times registers.
    change: f64,
    estimate: f64,
}

impl Default for HyperLogLog {
    fn default() -> Self {
        HyperLogLog { registers: Box::new([0; REGISTERS]), change: REGISTERS as f64, estimate: 0.0 }
    }
}

impl HyperLogLog {
    /// Counts a value by its 64-bit hash, all bits of which must be well mixed.
    #[inline]
    pub fn insert(&mut self, hash: u64) {
        let register = (hash >> (64 - REGISTER_BITS)) as usize;
        let rank = ((hash << REGISTER_BITS) | 1 << (REGISTER_BITS - 1)).leading_zeros() as u8 + 1;
        if rank > self.registers[register] {
            self.raise(register, rank);
        }
    }

    #[cold]
    fn raise(&mut self, register: usize, rank: u8) {
        self.estimate += REGISTERS as f64 / self.change;
        self.change -= (-f64::from(self.registers[register])).exp2() - (-f64::from(rank)).exp2();
        self.registers[register] = rank;
    }

    /// The estimated number of distinct values.
    pub fn estimate(&self) -> f64 {
        self.estimate
    }

    /// Mixes any 64 bits into a hash that can be counted.
    pub fn mix(value: u64) -> u64 {
        let x = (value ^ value >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let x = (x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^ x >> 32
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn estimates_stay_within_three_standard_errors_and_near_datasketches() {
        for distinct in [1u64, 10, 1_000, 50_000, 1_000_000] {
            let mut ours = HyperLogLog::default();
            let mut theirs =
                datasketches::hll::HllSketch::new(11, datasketches::hll::HllType::Hll8).unwrap();
            for i in 0..distinct {
                for _ in 0..if distinct < 10_000 { 3 } else { 1 } {
                    ours.insert(HyperLogLog::mix(i));
                    theirs.update(i);
                }
            }
            let error = 0.82 / (REGISTERS as f64).sqrt();
            let relative = |estimate: f64| (estimate - distinct as f64).abs() / distinct as f64;
            assert!(relative(ours.estimate()) < 3.0 * error + 1e-9, "{distinct}: {ours:?}");
            assert!((ours.estimate() - theirs.estimate()).abs() / (distinct as f64) < 6.0 * error);
        }
    }
}
