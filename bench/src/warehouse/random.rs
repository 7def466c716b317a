//! Seeded random numbers and skewed choices.

/// Number generator of one block of rows; the same seed gives the same numbers everywhere.
///
/// Source: Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014 (SplitMix64).
pub struct Random(u64);

impl Random {
    /// A generator for `block` of the data set that `seed` names.
    pub fn new(seed: u64, block: u64) -> Self {
        Self(mix(seed ^ mix(block)))
    }

    /// The next 64 bits of the sequence.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number of `0..count`.
    pub fn below(&mut self, count: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(count)) >> 32) as u32
    }

    /// Any of a list.
    pub fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u32) as usize]
    }

    /// True in `permille` of a thousand cases.
    pub fn one_in(&mut self, permille: u32) -> bool {
        self.below(1000) < permille
    }

    /// About normal, mean 0, deviation 1, within -6..6: the sum of twelve uniform numbers.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| f64::from(self.below(1 << 24)) / f64::from(1 << 24)).sum::<f64>() - 6.0
    }
}

/// Spreads the bits of `x`; a bijection.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Draws ids `0..count` with frequencies proportional to `1 / (rank + 1)^skew` in constant time.
///
/// Source: Walker's alias method, in Vose's form.
pub struct Zipf {
    /// Per id: keep it when the coin is below the first number, else take the second.
    cells: Vec<(u32, u32)>,
}

impl Zipf {
    /// A choice among `count` ids; `skew` 0 makes all equally frequent.
    pub fn new(count: u32, skew: f64) -> Self {
        let weights: Vec<f64> = (0..count).map(|rank| f64::from(rank + 1).powf(-skew)).collect();
        let mean = weights.iter().sum::<f64>() / f64::from(count);
        let mut share: Vec<f64> = weights.iter().map(|w| w / mean).collect();
        let (mut poor, mut rich): (Vec<u32>, Vec<u32>) =
            (0..count).partition(|&id| share[id as usize] < 1.0);
        let mut cells: Vec<(u32, u32)> = (0..count).map(|id| (u32::MAX, id)).collect();
        while let (Some(&giver), Some(taker)) = (rich.last(), poor.pop()) {
            cells[taker as usize] = ((share[taker as usize] * f64::from(u32::MAX)) as u32, giver);
            share[giver as usize] -= 1.0 - share[taker as usize];
            if share[giver as usize] < 1.0 {
                rich.pop();
                poor.push(giver);
            }
        }
        Self { cells }
    }

    /// The id that 64 random bits choose.
    pub fn choose(&self, bits: u64) -> u32 {
        let cell = (((bits >> 32) * self.cells.len() as u64) >> 32) as u32;
        let (keep_below, other) = self.cells[cell as usize];
        if (bits as u32) < keep_below { cell } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_fall_with_the_rank() {
        let zipf = Zipf::new(100, 1.0);
        let mut random = Random::new(1, 1);
        let mut counts = vec![0_u32; 100];
        for _ in 0..100_000 {
            counts[zipf.choose(random.bits()) as usize] += 1;
        }
        // The sum of 1/1 ..= 1/100 is 5.19, so the first id should get 100,000 / 5.19.
        assert!((18_500..20_000).contains(&counts[0]), "{}", counts[0]);
        assert!((1_700..2_200).contains(&counts[9]), "{}", counts[9]);
        assert!(counts.iter().all(|&count| count > 0));
    }
}
