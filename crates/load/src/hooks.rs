//! What a load tells while it runs, and what may stop it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use coload_types::Result;

/// How far a load is; read it from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    pub(crate) bytes: AtomicU64,
    pub(crate) bytes_total: AtomicU64,
    pub(crate) rows: AtomicU64,
    pub(crate) rejects: AtomicU64,
}

impl Progress {
    pub(crate) fn add(&self, bytes: u64, rows: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Takes back what was counted of work that was in vain.
    pub(crate) fn take_back(&self, bytes: u64, rows: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.rows.fetch_sub(rows, Ordering::Relaxed);
    }

    /// Bytes of the inputs that were read so far, as they are stored.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Input bytes in all; 0 when not known (standard input).
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total.load(Ordering::Relaxed)
    }

    /// Rows that were parsed so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Records that were set aside so far.
    pub fn rejects(&self) -> u64 {
        self.rejects.load(Ordering::Relaxed)
    }
}

/// Called after each task with the CPU nanoseconds that it took.
pub type AfterTask = Arc<dyn Fn(u64) + Send + Sync>;

/// Called every tenth of a second while a load runs, and once at its end.
pub type ProgressCallback = Arc<dyn Fn(&Progress) + Send + Sync>;

/// What is read of inputs that were opened, and what is left out for nobody wants it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartsRead {
    /// Stored bytes of what is read: of Parquet those of column chunks.
    pub bytes: u64,
    /// Row groups, if the inputs have such.
    pub row_groups: Option<RowGroupsRead>,
}

/// Which row groups are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowGroupsRead {
    /// Those of which rows are read.
    pub read: u64,
    /// Those of which none is.
    pub left_out: u64,
    /// Rows of pages that are left out of row groups that are read.
    pub rows_left_out: u64,
}

/// Called when inputs were opened.
pub type OnOpened = Arc<dyn Fn(&PartsRead) + Send + Sync>;

/// Says whether a load may be published; may wait for what decides that.
pub type Confirm = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// Called when all rows of a load into a store are durable, and are to be published.
pub type OnWritten = Arc<dyn Fn() + Send + Sync>;

/// Who is told of a load while it runs, and may stop it. Nothing that is loaded depends on them.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Told how far the load is.
    pub progress: Option<ProgressCallback>,
    /// Told the CPU nanoseconds of each task by the thread that ran it, which goes on when it returns: so a
    /// load can be slowed down.
    pub after_task: Option<AfterTask>,
    /// Told what will be read of inputs that are read in place.
    pub opened: Option<OnOpened>,
    /// Told when what took memory is over: what is left is to publish, which mostly waits for the disk.
    pub written: Option<OnWritten>,
    /// Asked when all is durable, before it becomes visible.
    pub confirm: Option<Confirm>,
    /// Set it, and the load stops and leaves the target as it was.
    pub cancel: Arc<AtomicBool>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

impl Hooks {
    /// For a part of a load that is not its end: it can be slowed down and stopped, and tells nobody how far it is.
    pub(crate) fn of_part(&self) -> Self {
        Hooks { progress: None, written: None, confirm: None, ..self.clone() }
    }

    /// Whether the load is to stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}
