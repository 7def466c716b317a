//! Snapshots of a node's store by versions of the map, for readers that named one when they began.
//!
//! A version that nobody has asked for within a minute may be over; who asks for it then is told, and takes a newer one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coload_store::Snapshot;

/// Versions that are held besides the newest.
const HELD_MAX: usize = 64;
/// How long a version is held that is not the newest.
const HELD_FOR: Duration = Duration::from_secs(60);

/// A version of the map, and the store as of it.
#[derive(Debug)]
struct Held {
    version: u64,
    snapshot: Snapshot,
    /// Tables by their ids in the map.
    tables: Arc<BTreeMap<u64, String>>,
    since: Instant,
}

/// Versions that readers may name, oldest first.
#[derive(Debug, Default)]
pub struct HeldVersions {
    versions: Vec<Held>,
}

impl HeldVersions {
    /// Holds the store as it is at a version, which is the newest.
    pub fn hold(&mut self, version: u64, snapshot: Snapshot, tables: &BTreeMap<u64, String>) {
        let since = Instant::now();
        if let Some(last) = self.versions.last_mut().filter(|last| last.version == version) {
            (last.snapshot, last.since) = (snapshot, since);
            return;
        }
        let tables = match self.versions.last() {
            Some(last) if *last.tables == *tables => Arc::clone(&last.tables),
            _ => Arc::new(tables.clone()),
        };
        self.versions.push(Held { version, snapshot, tables, since });
        let count = self.versions.len();
        let mut number = 0;
        self.versions.retain(|held| {
            number += 1;
            number == count || (number + HELD_MAX > count && held.since.elapsed() < HELD_FOR)
        });
    }

    /// Lets go of all versions: who reads one of them is told to take a newer one.
    pub fn forget(&mut self) {
        self.versions.clear();
    }

    /// The store as of a version, if it has the table with this id in the map, and the table's name.
    pub fn find(&self, version: u64, table: u64) -> Option<(Snapshot, String)> {
        // All that a version changes is held, so that the one before it is the same.
        let held = self.versions.iter().rfind(|held| held.version <= version)?;
        let name = held.tables.get(&table)?;
        Some((held.snapshot.clone(), name.clone()))
    }
}
