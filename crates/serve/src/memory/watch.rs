//! Ends statements when the process takes more memory than it may.
//!
//! The program tells how much its allocator has given out, all in all and to the thread that asks. What a thread takes
//! while it works on a statement counts as the statement's, also in tasks that the engine starts for it. When the
//! process is over its budget, the statement with the most is ended with an error. What is freed by the threads of
//! the network still counts, so that what is handed over to them is taken off.
//!
//! Cost: two reads of a number of the thread for each time a task is polled.

use std::any::Any;
use std::cell::RefCell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use coload_format::Error;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::Stream;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;

use crate::error::to_datafusion;

/// How often the process is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// How long a statement may take to end before another is ended too.
const END_TIME: Duration = Duration::from_millis(200);
/// A statement that holds less than this share of the budget is not what makes the process too large.
const BLAME_SHARE: usize = 32;

/// Tells what the allocator has given out, bytes.
#[derive(Debug, Clone, Copy)]
pub struct MemoryGauge {
    /// To the process, less what it gave back.
    pub process: fn() -> usize,
    /// To the thread that asks, less what that thread gave back; negative when it frees what others took.
    pub thread: fn() -> i64,
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
struct Measured {
    account: Arc<Account>,
    future: BoxFuture<'static, Erased>,
}

/// Sets the account of this thread until it is dropped.
struct Working {
    before: Option<Arc<Account>>,
    taken: i64,
    thread: fn() -> i64,
}

impl Working {
    fn begin(account: &Arc<Account>) -> Option<Self> {
        let MemoryGauge { thread, .. } = *GAUGE.get()?;
        let before = CURRENT.replace(Some(Arc::clone(account)));
        Some(Working { before, taken: thread(), thread })
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let taken = (self.thread)() - self.taken;
        if let Some(account) = CURRENT.replace(self.before.take()) {
            account.bytes.fetch_add(taken, Ordering::Relaxed);
        }
    }
}

impl Future for Measured {
    type Output = Erased;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Erased> {
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
            account.bytes.fetch_sub(batch.get_array_memory_size() as i64, Ordering::Relaxed);
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

/// Watches the statements of a database.
#[derive(Debug)]
pub(crate) struct Watch {
    memory: usize,
    /// What loads may take beside statements, while there are any.
    elsewhere: AtomicUsize,
    accounts: Mutex<Vec<Weak<Account>>>,
}

impl Watch {
    /// Starts to watch, if anything measures.
    pub fn start(memory: usize) -> Arc<Self> {
        let watch =
            Arc::new(Watch { memory, elsewhere: AtomicUsize::new(0), accounts: Mutex::default() });
        if let Some(gauge) = GAUGE.get() {
            static PASS_ON: PassOn = PassOn;
            // Fails only when it is set already.
            let _ = set_join_set_tracer(&PASS_ON);
            let (watched, process) = (Arc::downgrade(&watch), gauge.process);
            let thread = std::thread::Builder::new().name("coload-memory".into());
            if let Err(error) = thread.spawn(move || look(&watched, process)) {
                tracing::error!(%error, "nothing watches the memory of statements");
            }
        }
        watch
    }

    /// Watches the rows of a statement.
    pub fn rows(self: &Arc<Self>, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let (account, schema) = (self.open(), rows.schema());
        Box::pin(Watched { account, watch: Arc::clone(self), schema, rows: Some(rows) })
    }

    fn open(&self) -> Arc<Account> {
        let account = Arc::new(Account::default());
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.retain(|known| known.strong_count() > 0);
        accounts.push(Arc::downgrade(&account));
        account
    }

    /// Lets the process be larger, for what is not statements'.
    pub fn allow_elsewhere(&self, bytes: usize) {
        self.elsewhere.store(bytes, Ordering::Relaxed);
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
            let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
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
fn look(watched: &Weak<Watch>, process: fn() -> usize) {
    while let Some(watch) = watched.upgrade() {
        let budget = watch.memory + watch.elsewhere.load(Ordering::Relaxed);
        let is_over = process() > budget;
        let ended = is_over && watch.end_largest();
        drop(watch);
        std::thread::sleep(LOOK_INTERVAL);
        // What was ended gives its memory back, before another is.
        let mut waited = Duration::ZERO;
        while ended && waited < END_TIME && process() > budget {
            std::thread::sleep(LOOK_INTERVAL);
            waited += LOOK_INTERVAL;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_statement_with_the_most_is_ended_and_small_ones_are_not() {
        let watch =
            Watch { memory: 3_200, elsewhere: AtomicUsize::new(0), accounts: Mutex::default() };
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
