//! What threads of a load need besides their work: clocks, locks that outlive a thread that died, threads that may be left alone,
//! and work that is shared and taken in order.
//!
//! Invariant: nothing here knows what the threads do.

mod at_end;
mod clock;
mod freed;
mod in_order;
mod lock;
mod spawn;

pub use at_end::AtEnd;
pub use clock::{
    Started, Step, StepClock, epoch_us, peak_memory_bytes, process_cpu_ns, thread_cpu_ns,
    thread_run_and_wait_ns,
};
pub use freed::{FreedPages, leave_beside, relieve, tell_freed_pages, while_sizes_repeat};
pub use in_order::{in_order, map_in_order};
pub use lock::lock;
pub use spawn::{Thread, drop_elsewhere, join_all, spawn};
