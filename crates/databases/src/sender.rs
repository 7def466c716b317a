//! Rows of the queue over a connection.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use coload_load::{FragmentRows, RowBytes};
use coload_source::LeftOut;
use coload_threads::lock;
use coload_types::bytes::checksum;
use coload_types::{Error, Result};

use crate::costs::Unit;
use crate::engine::{Connection, Engine, RowTable};
use crate::journal::{Journal, Line};
use crate::options::Method;
use crate::queue::Queue;
use crate::refusals::{Distance, Undo, send_but_refused, too_many};

/// First pause before a chunk is tried again, doubled each time.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How often a chunk is tried again while the connection stays.
const TRIES_MAX: u32 = 10;

/// What the connections of a load have in common.
#[derive(Debug)]
pub struct Sending {
    /// The server.
    pub engine: Arc<dyn Engine>,
    /// Where the rows go, and with how many rows a statement the first ones.
    pub table: RowTable,
    /// The rows.
    pub queue: Queue,
    /// What is one transaction.
    pub unit: Unit,
    /// The statements that begin it.
    pub begin: &'static str,
    /// Gets a line with each chunk, if chunks stay.
    pub journal: Option<Journal>,
    /// Chunks that are there from an earlier attempt.
    pub known: BTreeMap<usize, Line>,
    /// How long to try to connect again.
    pub patience: Duration,
    /// Rows that were refused.
    pub refused: Arc<Refused>,
    /// What was sent.
    pub counts: Counts,
}

/// Rows that the server refused, by their chunks.
#[derive(Debug, Default)]
pub struct Refused {
    /// Rows to leave out of each chunk when it is read again, those that had been left out before among them.
    pub by_chunk: Mutex<BTreeMap<usize, Vec<LeftOut>>>,
    /// How many the server refused.
    pub count: AtomicU64,
    /// How many may be refused, if that is known before the end.
    pub allowed: Option<u64>,
}

/// What was sent.
#[derive(Debug, Default)]
pub struct Counts {
    /// Rows that came, refused or not.
    pub rows: AtomicU64,
    /// Rows of these that were there.
    pub before: AtomicU64,
    /// Bytes of rows.
    pub bytes: AtomicU64,
}

/// Why a chunk was not committed.
enum Failed {
    /// It may be if it is tried again on the same connection.
    Again(Error),
    /// The connection is gone.
    Lost(Error),
    /// It will not be.
    Ended(Error),
}

/// What one connection sends by.
pub struct Hand {
    /// The connection.
    pub on: Box<dyn Connection>,
    /// Where rows go, and how many rows a statement has.
    pub table: RowTable,
    /// How far apart rows are that the server refuses.
    distance: Distance,
    /// Whether the transaction that is open has nothing in it.
    is_fresh: bool,
}

impl Hand {
    /// Over a connection; `is_fresh` says that a transaction is open with nothing in it.
    pub fn new(on: Box<dyn Connection>, table: RowTable, is_fresh: bool) -> Self {
        Hand { on, table, distance: Distance::default(), is_fresh }
    }
}

impl Sending {
    /// Sends a fragment, or finds that it is there.
    ///
    /// # Errors
    /// What ends the load.
    pub fn send(&self, hand: &mut Hand, fragment: FragmentRows<RowBytes>) -> Result<()> {
        let chunk = fragment.chunk;
        let sum = match self.journal {
            Some(_) => checksum(&fragment.rows.bytes),
            None => 0,
        };
        let count = fragment.rows.len() as u64;
        if let Some(line) = self.known.get(&chunk) {
            let before = line.rows + line.refused.len() as u64;
            if (line.sum, before) != (sum, count) {
                return Err(Error::Invalid(format!(
                    "chunk {chunk} of this load was committed with other rows: the inputs, the columns or the method \
                     are not those of the attempt before (--again begins anew; rows that are there stay)"
                )));
            }
            self.counts.before.fetch_add(line.rows, Ordering::Relaxed);
            return self.note(chunk, &fragment, line.refused.clone(), count);
        }
        let refused = match self.unit {
            Unit::Load => {
                let fresh = std::mem::replace(&mut hand.is_fresh, false);
                let undo = match (self.table.freezes, fresh) {
                    (true, _) => Undo::Nothing,
                    (false, true) => Undo::Transaction { begin: self.begin },
                    (false, false) => Undo::Savepoint,
                };
                let Hand { on, table, distance, .. } = hand;
                send_but_refused(&*self.engine, &mut **on, table, &fragment.rows, (undo, distance))?
            }
            Unit::Chunk => self.send_chunk(hand, (&fragment, sum))?,
        };
        self.counts.bytes.fetch_add(fragment.rows.bytes.len() as u64, Ordering::Relaxed);
        self.note(chunk, &fragment, refused, count)
    }

    fn note(
        &self,
        chunk: usize,
        fragment: &FragmentRows<RowBytes>,
        refused: Vec<LeftOut>,
        count: u64,
    ) -> Result<()> {
        self.counts.rows.fetch_add(count, Ordering::Relaxed);
        if refused.is_empty() {
            return Ok(());
        }
        let more = refused.len() as u64;
        let count = self.refused.count.fetch_add(more, Ordering::Relaxed) + more;
        let refused = fragment.numbers.with_refused(refused);
        lock(&self.refused.by_chunk).insert(chunk, refused);
        match self.refused.allowed {
            Some(allowed) if count > allowed => Err(too_many(count, allowed)),
            _ => Ok(()),
        }
    }

    /// Commits a chunk, however often it must be tried.
    fn send_chunk(
        &self,
        hand: &mut Hand,
        (fragment, sum): (&FragmentRows<RowBytes>, u64),
    ) -> Result<Vec<LeftOut>> {
        let (mut pause, mut tries) = (PAUSE_FIRST, 0);
        let began = Instant::now();
        loop {
            let error = match self.try_chunk(hand, (fragment, sum)) {
                Ok(refused) => return Ok(refused),
                Err(Failed::Ended(error)) => return Err(error),
                Err(Failed::Again(error)) if tries < TRIES_MAX => error,
                Err(Failed::Again(error)) => return Err(error),
                Err(Failed::Lost(error)) => {
                    // Without a journal nobody knows whether the chunk is there.
                    let Some(journal) = &self.journal else { return Err(error) };
                    self.connect_again(&mut hand.on, began, &error)?;
                    let (lines, _) = journal.read(&*self.engine, &mut *hand.on)?;
                    if let Some(line) = lines.get(&fragment.chunk) {
                        return Ok(line.refused.clone());
                    }
                    error
                }
            };
            if self.queue.has_failed()
                || self.queue.is_cancelled()
                || began.elapsed() > self.patience
            {
                return Err(error);
            }
            std::thread::sleep(pause);
            (pause, tries) = ((pause * 2).min(PAUSE_MAX), tries + 1);
        }
    }

    fn connect_again(
        &self,
        on: &mut Box<dyn Connection>,
        began: Instant,
        lost: &Error,
    ) -> Result<()> {
        let mut pause = PAUSE_FIRST;
        loop {
            match self.engine.connect() {
                Ok(connection) => {
                    *on = connection;
                    return Ok(());
                }
                Err(Error::Unavailable(_))
                    if began.elapsed() + pause < self.patience
                        && !self.queue.has_failed()
                        && !self.queue.is_cancelled() =>
                {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Err(Error::Unavailable(_)) => return Err(lost.clone()),
                Err(error) => return Err(error),
            }
        }
    }

    fn try_chunk(
        &self,
        hand: &mut Hand,
        (fragment, sum): (&FragmentRows<RowBytes>, u64),
    ) -> std::result::Result<Vec<LeftOut>, Failed> {
        let engine = &*self.engine;
        let Hand { on, table, distance, .. } = hand;
        let on = &mut **on;
        let in_transaction = table.method != Method::InsertAutocommit;
        let sent = (|| {
            if in_transaction {
                on.run(self.begin, &[])?;
            }
            let undo = (Undo::Transaction { begin: self.begin }, distance);
            let refused = send_but_refused(engine, on, table, &fragment.rows, undo)?;
            if let Some(journal) = &self.journal {
                let rows = fragment.rows.len() as u64 - refused.len() as u64;
                let line = Line { rows, sum, refused: refused.clone() };
                journal.put_chunk(engine, on, fragment.chunk, &line)?;
            }
            Ok(refused)
        })();
        let sent = match sent {
            Ok(refused) if !in_transaction => return Ok(refused),
            Ok(refused) => on.run("COMMIT", &[]).map(|_| refused),
            Err(error) => Err(error),
        };
        sent.map_err(|error| {
            let is_open = in_transaction && on.run(engine.rollback_sql(), &[]).is_ok();
            match error {
                Error::Unavailable(_) if is_open => Failed::Again(error),
                Error::Unavailable(_) => Failed::Lost(error),
                other => Failed::Ended(other),
            }
        })
    }
}
