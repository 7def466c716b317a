//! A database in a temporary directory.

use std::time::Duration;

use coload_serve::{Database, DatabaseOptions, StatementLimits};
use coload_store::Store;
use tempfile::TempDir;

/// A database that goes with its directory.
pub struct Scratch {
    pub database: Database,
    pub dir: TempDir,
}

impl Scratch {
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let store = Store::create_or_open(dir.path().join("store")).unwrap();
        // Tests run on busy machines, without optimisation.
        let statements =
            StatementLimits { planning: Duration::from_secs(300), ..StatementLimits::default() };
        let options = DatabaseOptions {
            threads: 2,
            memory: 256 << 20,
            statements,
            ..DatabaseOptions::default()
        };
        Scratch { database: Database::open(store, options).unwrap(), dir }
    }
}

/// A generator that only has to be the same for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((u128::from(self.0) * u128::from(below)) >> 64) as u64
    }
}
