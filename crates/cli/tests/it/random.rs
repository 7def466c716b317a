//! Numbers that look random, from seeds that a test prints.

/// Numbers that look random, from a seed (xorshift).
pub struct Random(pub u64);

impl Random {
    /// The next one, below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// The seed of `COLOAD_SEED`, else one of the clock.
pub fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let given = std::env::var("COLOAD_SEED").ok().and_then(|s| s.parse().ok());
    given.unwrap_or(now.as_nanos() as u64) | 1
}
