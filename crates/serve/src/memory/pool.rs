//! The reservations of all statements.
//!
//! ```text
//!   |<----------------------- all ------------------------>|
//!   |<-- can go to disk: shares alike --->|<--- kept ----->|
//!   |<-------------- cannot: as long as there is any ----->|
//! ```
//!
//! What can go to disk would take everything until it does; then there would be nothing for what reads it back, and the
//! statement would fail for some kB. So a half is kept for what cannot.
//!
//! A sort needs more of that half than others. It reserves twice the bytes of its rows; and while it brings them into order it
//! has, beside each row, its keys in a form that can be compared as bytes, which takes four times a short row. When it merges
//! what it wrote it reserves four batches of each part, and takes ten: five, in buffers that grew by doubling, and the keys
//! of two.

use std::sync::{Mutex, MutexGuard};

use coload_threads::lock;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

/// Part of the pool that is kept for what cannot go to disk.
const KEPT_SHARE: usize = 2;
/// How the engine calls a sort.
const SORT: &str = "ExternalSorter[";
/// Part of the share of one that can go to disk that a sort may have.
const SORT_SHARE: usize = 2;
/// How the engine calls what brings the rows of a sort into order.
const MERGE: &str = "ExternalSorterMerge[";
/// What each may have of the pool, in parts of 8.
const MERGE_EIGHTHS: usize = 5;

/// A pool in which what can go to disk does so in time.
#[derive(Debug)]
pub(crate) struct StatementPool {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Consumers that can go to disk.
    spilling: usize,
    spillable: usize,
    fixed: usize,
}

impl StatementPool {
    pub fn new(bytes_max: usize) -> Self {
        StatementPool { bytes_max, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// What a consumer that can go to disk may have.
    fn share(&self, state: &State, consumer: &MemoryConsumer) -> usize {
        let kept = state.fixed.max(self.bytes_max / KEPT_SHARE);
        let share = self.bytes_max.saturating_sub(kept) / state.spilling.max(1);
        if consumer.name().starts_with(SORT) { share / SORT_SHARE } else { share }
    }

    fn refused(&self, reservation: &MemoryReservation, more: usize) -> DataFusionError {
        DataFusionError::ResourcesExhausted(format!(
            "{} needs {more} bytes more than its {}, and statements may reserve {} together",
            reservation.consumer().name(),
            reservation.size(),
            self.bytes_max
        ))
    }
}

impl std::fmt::Display for StatementPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", self.name(), self.bytes_max)
    }
}

impl MemoryPool for StatementPool {
    fn name(&self) -> &str {
        "statements"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.lock().spilling += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            let mut state = self.lock();
            state.spilling = state.spilling.saturating_sub(1);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, more: usize) {
        let mut state = self.lock();
        match reservation.consumer().can_spill() {
            true => state.spillable += more,
            false => state.fixed += more,
        }
    }

    fn shrink(&self, reservation: &MemoryReservation, less: usize) {
        let mut state = self.lock();
        let of = match reservation.consumer().can_spill() {
            true => &mut state.spillable,
            false => &mut state.fixed,
        };
        *of = of.saturating_sub(less);
    }

    fn try_grow(&self, reservation: &MemoryReservation, more: usize) -> Result<()> {
        let mut state = self.lock();
        if reservation.consumer().can_spill() {
            if reservation.size().saturating_add(more) > self.share(&state, reservation.consumer())
            {
                return Err(self.refused(reservation, more));
            }
            state.spillable += more;
        } else {
            let used = state.spillable.saturating_add(state.fixed);
            let too_large = reservation.consumer().name().starts_with(MERGE)
                && reservation.size().saturating_add(more) > self.bytes_max / 8 * MERGE_EIGHTHS;
            if too_large || used.saturating_add(more) > self.bytes_max {
                return Err(self.refused(reservation, more));
            }
            state.fixed += more;
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        let state = self.lock();
        state.spillable + state.fixed
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes_max)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_goes_to_disk_leaves_room_for_what_reads_it_back() {
        let pool: Arc<dyn MemoryPool> = Arc::new(StatementPool::new(100));
        let sort = MemoryConsumer::new("sort").with_can_spill(true).register(&pool);
        sort.try_grow(50).unwrap();
        assert!(sort.try_grow(1).is_err());
        let merge = MemoryConsumer::new("merge").register(&pool);
        merge.try_grow(50).unwrap();
        assert!(merge.try_grow(1).is_err());
        sort.free();
        merge.try_grow(50).unwrap();
        assert_eq!(pool.reserved(), 100);
        let error = sort.try_grow(1).unwrap_err().to_string();
        assert!(error.contains("sort needs 1 bytes"), "{error}");
        merge.free();
        let other = MemoryConsumer::new("other").with_can_spill(true).register(&pool);
        assert!(sort.try_grow(26).is_err());
        sort.try_grow(25).unwrap();
        drop(other);
        sort.try_grow(25).unwrap();
        drop(sort);
        let sort = MemoryConsumer::new("ExternalSorter[0]").with_can_spill(true).register(&pool);
        assert!(sort.try_grow(26).is_err());
        sort.try_grow(25).unwrap();
        drop(sort);
        let merge = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
        assert!(merge.try_grow(61).is_err());
        merge.try_grow(60).unwrap();
    }
}
