//! What threads of a load need besides their work: clocks, locks that outlive a thread that died, and threads that may
//! be left alone.
//!
//! Invariant: nothing here knows what the threads do.

mod clock;
mod lock;
mod spawn;

pub use clock::{
    Started, Step, StepClock, epoch_us, peak_memory_bytes, process_cpu_ns, thread_cpu_ns,
    thread_run_and_wait_ns,
};
pub use lock::lock;
pub use spawn::{Thread, drop_elsewhere, join_all, spawn};
