//! CPU time of threads and of the process, and peak memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// CPU nanoseconds of this thread.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

/// Nanoseconds that this thread has run, and that it could have run but had to wait for a core: others had it, or
/// a quota was used up. `None` where the system does not say.
pub fn thread_run_and_wait_ns() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut numbers = text.split_ascii_whitespace().map_while(|n| n.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// CPU nanoseconds of this process, all threads, since it started.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Most memory the process has held at once, in bytes; 0 where the system does not say.
pub fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Steps of the pipeline, as in figure 1 of seed 000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Input bytes into memory.
    Read,
    /// Fields and records found.
    Tokenise,
    /// Fields to codes and values.
    Convert,
    /// Temporary dictionaries are sorted.
    Sort,
    /// One dictionary a partition, codes packed.
    Compress,
    /// Partitions into a segment.
    Merge,
    /// Segments are written to the disk.
    Write,
}

impl Step {
    /// All steps in order.
    pub const ALL: [Step; 7] = [
        Step::Read,
        Step::Tokenise,
        Step::Convert,
        Step::Sort,
        Step::Compress,
        Step::Merge,
        Step::Write,
    ];

    /// The step's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Step::Read => "read",
            Step::Tokenise => "tokenise",
            Step::Convert => "convert",
            Step::Sort => "sort",
            Step::Compress => "compress",
            Step::Merge => "merge",
            Step::Write => "write",
        }
    }
}

/// CPU time by step, added up over threads.
#[derive(Debug, Default)]
pub struct StepClock {
    nanoseconds: [AtomicU64; 7],
}

impl StepClock {
    /// Adds CPU time to a step.
    pub fn add(&self, step: Step, nanoseconds: u64) {
        self.nanoseconds[step as usize].fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Runs `work` and adds its CPU time to a step.
    pub fn time<T>(&self, step: Step, work: impl FnOnce() -> T) -> T {
        let started = thread_cpu_ns();
        let result = work();
        self.add(step, thread_cpu_ns() - started);
        result
    }

    /// Time of a step.
    pub fn get(&self, step: Step) -> Duration {
        Duration::from_nanos(self.nanoseconds[step as usize].load(Ordering::Relaxed))
    }
}

/// When a load began, by both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Started {
    /// The monotonic clock, for how long the load takes.
    pub wall: Instant,
    /// CPU time of the process.
    pub cpu_ns: u64,
    /// Microseconds since the epoch.
    pub epoch_us: i64,
}

impl Started {
    /// What the clocks say now.
    pub fn now() -> Self {
        Started { wall: Instant::now(), cpu_ns: process_cpu_ns(), epoch_us: epoch_us() }
    }
}

/// Microseconds since the epoch.
pub fn epoch_us() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| d.as_micros() as i64)
}
