//! Ends statements when the process takes more memory than it may.
//!
//! The program tells how much its allocator has given out, all in all and to the thread that asks. What a thread takes
//! while it works on a statement counts as the statement's, also in tasks that the engine starts for it. When the
//! process is over its budget, or all statements together are, the statement with the most is ended with an error. What
//! is freed by the threads of the network still counts, so that what is handed over to them is taken off.
//!
//! The allocator keeps what was freed for a while, as it is soon needed again. When the process is larger than its budget
//! only for that, the allocator is told to give it back to the system.
//!
//! Cost: two reads of a number of the thread for each time a task is polled; a file of the system each 10 ms.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{
    Arc, Mutex, OnceLock, Weak,
    atomic::{AtomicBool, AtomicI64, Ordering},
};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use coload_threads::{lock, spawn};
use coload_types::Error;
use datafusion::arrow::{datatypes::SchemaRef, record_batch::RecordBatch};
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::Stream;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;

use super::sliced_bytes;
use crate::error::to_datafusion;

/// How often the process is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// What may be taken beside the memory of statements before one is ended, half of it at most: what the process has by itself,
/// and what an operator that keeps to its reservation takes for a step.
const BESIDE_MAX: usize = 32 << 20;
/// How long a statement may take to end before another is ended too.
const END_TIME: Duration = Duration::from_millis(200);
/// Freed memory that the process keeps in any case: it is what the next batches are made of.
const FREED_SHARE: usize = 16;
/// Part of the memory up to which freed memory is not looked at; above there is too little left for a step that takes much.
const KEPT_QUARTERS: (usize, usize) = (3, 4);
/// How often what was freed is looked at, and the allocator is told to give it back at most.
const TRIM_INTERVAL: Duration = Duration::from_millis(10);
/// A statement that holds less than this share of the budget is not what makes the process too large.
const BLAME_SHARE: usize = 32;

/// Tells what the allocator has given out, bytes.
#[derive(Debug, Clone, Copy)]
pub struct MemoryGauge {
    /// To the process, less what it gave back.
    pub process: fn() -> usize,
    /// To the thread that asks, less what that thread gave back; negative when it frees what others took.
    pub thread: fn() -> i64,
    /// What the process has from the system, what was freed and is kept included.
    pub resident: fn() -> usize,
    /// Gives what was freed back to the system.
    pub trim: fn(),
}

static GAUGE: OnceLock<MemoryGauge> = OnceLock::new();

/// Has databases that are opened from now on keep to their memory as the gauge measures it. The first call counts.
pub fn measure_memory(gauge: MemoryGauge) {
    let _ = GAUGE.set(gauge);
}

/// What a statement takes.
#[derive(Debug, Default)]
struct Account {
    bytes: AtomicI64,
    is_over: AtomicBool,
    /// Wakes who waits for its rows.
    waker: AtomicWaker,
}

thread_local! {
    /// The account of the statement on which this thread works.
    static CURRENT: RefCell<Option<Arc<Account>>> = const { RefCell::new(None) };
    /// What was counted on accounts within the work on another.
    static WITHIN: Cell<i64> = const { Cell::new(0) };
}

/// Counts bytes that others have taken and the statement on which this thread works will free.
pub(crate) fn taken_over(bytes: usize) {
    CURRENT.with_borrow(|account| {
        if let Some(account) = account {
            account.bytes.fetch_add(bytes as i64, Ordering::Relaxed);
        }
    });
}

impl Account {
    fn bytes(&self) -> usize {
        usize::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.waker.wake();
    }
}

/// A future whose memory is a statement's.
struct Measured<T> {
    account: Arc<Account>,
    future: BoxFuture<'static, T>,
}

/// Sets the account of this thread until it is dropped.
struct Working {
    before: Option<Arc<Account>>,
    taken: i64,
    within: i64,
    thread: fn() -> i64,
}

impl Working {
    fn begin(account: &Arc<Account>) -> Option<Self> {
        let MemoryGauge { thread, .. } = *GAUGE.get()?;
        let before = CURRENT.replace(Some(Arc::clone(account)));
        Some(Working { before, taken: thread(), within: WITHIN.get(), thread })
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let taken = (self.thread)() - self.taken;
        // What was counted on others meanwhile is not counted again, here or further out.
        let within = WITHIN.replace(self.within + taken) - self.within;
        if let Some(account) = CURRENT.replace(self.before.take()) {
            account.bytes.fetch_add(taken - within, Ordering::Relaxed);
        }
    }
}

impl<T> Future for Measured<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let _working = Working::begin(&self.account);
        self.future.as_mut().poll(context)
    }
}

/// The rows of a statement, as long as it may go on.
struct Watched {
    account: Arc<Account>,
    watch: Arc<Watch>,
    schema: SchemaRef,
    /// `None` when the statement was ended.
    rows: Option<SendableRecordBatchStream>,
}

impl Stream for Watched {
    type Item = Result<RecordBatch>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<RecordBatch>>> {
        self.account.waker.register(context.waker());
        if self.account.is_over.load(Ordering::Acquire) {
            // What it holds is given back at once.
            let was_running = self.rows.take().is_some();
            let error = to_datafusion(self.watch.error());
            return Poll::Ready(was_running.then_some(Err(error)));
        }
        let Self { account, rows: Some(rows), .. } = &mut *self else { return Poll::Ready(None) };
        let working = Working::begin(account);
        let next = rows.as_mut().poll_next(context);
        drop(working);
        if let Poll::Ready(Some(Ok(batch))) = &next {
            // Whoever has it frees it.
            account.bytes.fetch_sub(sliced_bytes(batch) as i64, Ordering::Relaxed);
        }
        next
    }
}

impl RecordBatchStream for Watched {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Passes the account on to the tasks that the engine starts for a statement.
struct PassOn;

type Erased = Box<dyn Any + Send>;

impl JoinSetTracer for PassOn {
    fn trace_future(&self, future: BoxFuture<'static, Erased>) -> BoxFuture<'static, Erased> {
        match CURRENT.with_borrow(Clone::clone) {
            Some(account) => Box::pin(Measured { account, future }),
            None => future,
        }
    }

    fn trace_block(
        &self,
        work: Box<dyn FnOnce() -> Erased + Send>,
    ) -> Box<dyn FnOnce() -> Erased + Send> {
        match CURRENT.with_borrow(Clone::clone) {
            Some(account) => Box::new(move || {
                let _working = Working::begin(&account);
                work()
            }),
            None => work,
        }
    }
}

/// Tells what may be taken beside statements.
pub(crate) type Elsewhere = Box<dyn Fn() -> usize + Send + Sync>;

/// Watches the statements of a database.
pub(crate) struct Watch {
    memory: usize,
    elsewhere: OnceLock<Elsewhere>,
    accounts: Mutex<Vec<Weak<Account>>>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl Watch {
    /// Starts to watch, if anything measures.
    pub fn start(memory: usize) -> Arc<Self> {
        let watch = Watch { memory, elsewhere: OnceLock::new(), accounts: Mutex::default() };
        let watch = Arc::new(watch);
        if let Some(gauge) = GAUGE.get() {
            static PASS_ON: PassOn = PassOn;
            // Fails only when it is set already.
            let _ = set_join_set_tracer(&PASS_ON);
            let (watched, gauge) = (Arc::downgrade(&watch), *gauge);
            let thread = std::thread::Builder::new().name("coload-memory".into());
            if let Err(error) = spawn(thread, move || look(&watched, &gauge)) {
                tracing::error!(%error, "nothing watches the memory of statements");
            }
        }
        watch
    }

    /// What statements may have together.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Watches the rows of a statement.
    pub fn rows(self: &Arc<Self>, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let (account, schema) = (self.open(), rows.schema());
        Box::pin(Watched { account, watch: Arc::clone(self), schema, rows: Some(rows) })
    }

    /// Runs what is no query, such as a writer of rows, as a statement that may be ended.
    ///
    /// # Errors
    /// Those of the work; `Limit` when it was ended for its memory.
    pub async fn work<T>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let account = self.open();
        let mut measured = Measured { account: Arc::clone(&account), future: Box::pin(work) };
        poll_fn(|context| {
            account.waker.register(context.waker());
            match account.is_over.load(Ordering::Acquire) {
                true => Poll::Ready(Err(self.error())),
                false => Pin::new(&mut measured).poll(context),
            }
        })
        .await
    }

    fn open(&self) -> Arc<Account> {
        let account = Arc::new(Account::default());
        let mut accounts = lock(&self.accounts);
        accounts.retain(|known| known.strong_count() > 0);
        accounts.push(Arc::downgrade(&account));
        account
    }

    /// Lets the process be larger, for what is not statements'. The first call counts.
    pub fn allow_elsewhere(&self, bytes: Elsewhere) {
        let _ = self.elsewhere.set(bytes);
    }

    /// What statements may have together before one is ended.
    fn of_statements_max(&self) -> usize {
        self.memory.saturating_add(BESIDE_MAX.min(self.memory / 2))
    }

    /// What the process may have.
    fn budget(&self) -> usize {
        let elsewhere = self.elsewhere.get().map_or(0, |bytes| bytes());
        self.of_statements_max().saturating_add(elsewhere)
    }

    /// What the process may have before it gives back what was freed: the least that anybody may have, as most of
    /// what the others may is not taken.
    fn kept_max(&self) -> usize {
        let least = match self.elsewhere.get().map_or(0, |bytes| bytes()) {
            0 => self.memory,
            elsewhere => self.memory.min(elsewhere),
        };
        least / KEPT_QUARTERS.1 * KEPT_QUARTERS.0
    }

    /// What all statements have.
    fn of_statements(&self) -> usize {
        let accounts = lock(&self.accounts);
        accounts.iter().filter_map(Weak::upgrade).map(|account| account.bytes()).sum()
    }

    fn is_over(&self, gauge: &MemoryGauge) -> bool {
        (gauge.process)() > self.budget() || self.of_statements() > self.of_statements_max()
    }

    /// What a statement ends with that took too much.
    fn error(&self) -> Error {
        Error::Limit(format!(
            "the statement took more memory than there is: all together may have {} bytes (write it so that it \
             holds less at once, or raise --memory)",
            self.memory
        ))
    }

    /// Ends the statement with the most. `false` when none has much.
    fn end_largest(&self) -> bool {
        let accounts: Vec<Arc<Account>> = {
            let accounts = lock(&self.accounts);
            accounts.iter().filter_map(Weak::upgrade).collect()
        };
        let running = accounts.iter().filter(|a| !a.is_over.load(Ordering::Acquire));
        let Some(largest) = running.max_by_key(|a| a.bytes()) else { return false };
        if largest.bytes() < self.memory / BLAME_SHARE {
            return false;
        }
        tracing::warn!(bytes = largest.bytes(), "a statement is ended for its memory");
        largest.end();
        true
    }
}

/// Looks at the process until the database is gone.
fn look(watched: &Weak<Watch>, gauge: &MemoryGauge) {
    let mut looked = Instant::now();
    let (mut ended_at, mut waits) = (Instant::now(), false);
    while let Some(watch) = watched.upgrade() {
        let is_over = watch.is_over(gauge);
        // What was ended gives its memory back, before another is.
        waits &= is_over && ended_at.elapsed() < END_TIME;
        if is_over && !waits && watch.end_largest() {
            (ended_at, waits) = (Instant::now(), true);
        }
        if looked.elapsed() >= TRIM_INTERVAL {
            looked = Instant::now();
            let resident = (gauge.resident)();
            let freed = resident.saturating_sub((gauge.process)());
            if resident > watch.kept_max() && freed > watch.memory / FREED_SHARE {
                (gauge.trim)();
            }
        }
        drop(watch);
        std::thread::sleep(LOOK_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_statement_with_the_most_is_ended_and_small_ones_are_not() {
        let watch = Watch { memory: 3_200, elsewhere: OnceLock::new(), accounts: Mutex::default() };
        let accounts = [50, 2_000, 1_000].map(|bytes| {
            let account = watch.open();
            account.bytes.store(bytes, Ordering::Relaxed);
            account
        });
        let over = || accounts.each_ref().map(|a| a.is_over.load(Ordering::Relaxed));
        assert!(watch.end_largest());
        assert_eq!(over(), [false, true, false]);
        accounts[2].bytes.store(10, Ordering::Relaxed);
        assert!(!watch.end_largest());
        assert_eq!(over(), [false, true, false]);
        assert!(watch.error().to_string().contains("--memory"));
    }
}
