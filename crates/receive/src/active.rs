//! A load that arrives in partitions: what is durable, what is under way, who sends.

mod wider;

use std::collections::{BTreeMap, HashMap};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use coload_cluster::Table;
use coload_link::{Credit, LargeMessages, Message, Replies};
use coload_load::TextFragmentParser;
use coload_store::{LoadId, LoadJournal, LoadTarget, PlacedRows, SegmentEntry, SegmentSummary};
use coload_threads::{lock, thread_cpu_ns};
use coload_types::bytes::{ByteReader, put_varint};
use coload_types::{Column, Error, Physical, Result};
use coload_wire::{
    Block, BlockContent, Finish, LoadDescription, PARTITIONS_MAX, REREAD_FROM, SEALED, Seal,
    Welcome,
};
use wider::{Types, convert_all};

use crate::costs::Costs;
use crate::guard::Guard;
use crate::legs::Legs;
use crate::options::Keep;
use crate::part::{Part, WELCOME_REJECTS_BYTES_MAX, told_parts};
use crate::partition::{KeyOf, Next, Receiving, verify_block, verify_plain};
use crate::pending::Waits;
use crate::pool::{Class, Pool};
use crate::rules::Rules;

/// Most partitions of a load under way; a client has two, and those that wait in its outbox.
const PARTITIONS_UNDER_WAY_MAX: usize = 16;

/// Share of the memory of loads from which on a message is large.
const LARGE_MESSAGE_SHARE: u64 = 16;

/// A load with a client.
#[derive(Debug)]
pub struct Active {
    /// Id of the journal of the load.
    pub id: LoadId,
    /// What it is published as; named after nothing that was published before.
    pub publish_id: LoadId,
    /// What the load is, as its client described it.
    pub description: LoadDescription,
    target: LoadTarget,
    types: Mutex<Types>,
    rules: Rules,
    pub(crate) keep: Keep,
    pub(crate) memory_max: u64,
    /// `None` once it is published or dropped.
    pub journal: Mutex<Option<LoadJournal>>,
    received: Mutex<Received>,
    /// Rows of the table that go when those of the load come.
    pub(crate) gone: Mutex<Option<PlacedRows>>,
    /// The load, when it is ready and its client tells rejects.
    pub(crate) pending: Mutex<Option<Waits>>,
    /// The attempt that may send.
    pub attempt: AtomicU64,
    /// Set while it is being published.
    pub publishing: AtomicBool,
    /// Bytes of messages that wait for a thread.
    pub waiting_bytes: AtomicU64,
    /// Lets one large message at a time come.
    pub large_messages: LargeMessages,
    /// CPU nanoseconds of the process when the load began.
    pub cpu_started_ns: u64,
    costs: Mutex<Costs>,
    /// How fragments are read that come as text.
    pub(crate) text_parser: Option<Arc<TextFragmentParser>>,
}

#[derive(Debug)]
struct Received {
    parts: BTreeMap<u32, Part>,
    legs: Legs,
    under_way: HashMap<u32, Arc<Receiving>>,
    /// Connections of this attempt.
    replies: Vec<Replies>,
    failed: Option<Error>,
}

impl Received {
    /// Partitions that are durable, without texts.
    fn parts(&self) -> impl Iterator<Item = (&u32, &Part)> {
        self.parts.range(..PARTITIONS_MAX)
    }
}

impl Active {
    /// A load, with the partitions that its journal has.
    ///
    /// # Errors
    /// `Corrupt` when the journal is damaged.
    pub fn new(
        description: LoadDescription,
        target: LoadTarget,
        journal: LoadJournal,
        keep: Keep,
        memory_max: u64,
    ) -> Result<Self> {
        let mut parts = BTreeMap::new();
        for number in journal.part_numbers()? {
            parts.insert(number, Part::decode(&journal.part(number)?)?.0);
        }
        let legs = Legs::open(&description, &journal)?;
        Ok(Active {
            id: journal.id(),
            publish_id: LoadId::random()?,
            types: Mutex::new(Types::new(&legs)),
            text_parser: TextFragmentParser::new(&description)
                .map(|parser| Arc::new(parser.with_memory(memory_max as usize))),
            description,
            rules: Rules::new(&target),
            target,
            keep,
            memory_max,
            journal: Mutex::new(Some(journal)),
            received: Mutex::new(Received {
                parts,
                legs,
                under_way: HashMap::new(),
                replies: Vec::new(),
                failed: None,
            }),
            gone: Mutex::default(),
            pending: Mutex::default(),
            attempt: AtomicU64::new(0),
            publishing: AtomicBool::new(false),
            waiting_bytes: AtomicU64::new(0),
            large_messages: LargeMessages::new(memory_max / LARGE_MESSAGE_SHARE),
            cpu_started_ns: coload_threads::process_cpu_ns(),
            costs: Mutex::default(),
        })
    }

    /// The load at a leaf of a cluster, whose rows must be in its shards.
    pub fn of_leaf(mut self, table: &Table, place: usize) -> Self {
        self.rules = self.rules.of_leaf(table, place);
        self
    }

    /// Begins an attempt: what an earlier one had under way is dropped, and its connections end.
    ///
    /// # Errors
    /// `Corrupt` when the journal is damaged.
    pub fn begin_attempt(&self, replies: &Replies) -> Result<(u64, Welcome)> {
        let mut received = lock(&self.received);
        let attempt = self.attempt.fetch_add(1, Ordering::AcqRel) + 1;
        let taken_over = Error::Refused(format!("another client goes on with load {}", self.id));
        for old in received.replies.drain(..) {
            old.fail(&taken_over);
        }
        received.under_way.clear();
        received.failed = None;
        drop(lock(&self.pending).take());
        received.replies.push(replies.clone());
        let journal = lock(&self.journal);
        let journal = journal.as_ref().ok_or_else(|| self.is_over())?;
        let parts = match self.keep {
            Keep::All => told_parts(&received.parts, journal, WELCOME_REJECTS_BYTES_MAX)?,
            Keep::Nothing => {
                received.parts.iter().map(|(n, p)| (*n, p.account_without_rejects())).collect()
            }
        };
        let welcome = Welcome {
            id: self.id,
            attempt,
            parts,
            stored: Vec::new(),
            began_us: self.description.began_us,
            columns: received.legs.is_wider().then(|| received.legs.last().clone()),
            reread_partitions: received.legs.reread_partitions(),
        };
        Ok((attempt, welcome))
    }

    /// Adds a connection of the current attempt.
    ///
    /// # Errors
    /// `Refused` when it is of another attempt.
    pub fn join(&self, attempt: u64, replies: &Replies) -> Result<()> {
        let mut received = lock(&self.received);
        self.check_attempt(attempt)?;
        received.replies.push(replies.clone());
        Ok(())
    }

    pub(crate) fn check_attempt(&self, attempt: u64) -> Result<()> {
        if self.attempt.load(Ordering::Acquire) == attempt {
            return Ok(());
        }
        Err(Error::Refused(format!("another client goes on with load {}", self.id)))
    }

    /// Ends the attempt with an error; the load can be gone on with.
    pub fn fail(&self, attempt: u64, error: &Error) {
        let mut received = lock(&self.received);
        if self.check_attempt(attempt).is_err() {
            return;
        }
        if received.failed.is_none() {
            received.failed = Some(error.clone());
            for replies in &received.replies {
                replies.fail(error);
            }
        }
        received.under_way.clear();
    }

    /// A connection ended; whether it was the last of the attempt.
    pub fn left(&self, attempt: u64) -> bool {
        let mut received = lock(&self.received);
        if self.check_attempt(attempt).is_err() {
            return false;
        }
        // All connections of a client end together.
        received.replies.clear();
        received.under_way.clear();
        drop(lock(&self.pending).take());
        true
    }

    /// Whether a client is there.
    pub fn has_client(&self) -> bool {
        !lock(&self.received).replies.is_empty()
    }

    /// Rows and rejects that are durable.
    pub fn counts(&self) -> (u64, u64) {
        let received = lock(&self.received);
        let rejects = received.parts().map(|(_, p)| p.rejects).sum();
        (received.parts().map(|(_, p)| p.rows).sum(), rejects)
    }

    /// Where the last record of each input ends, by the numbers of those that have some.
    pub fn ends(&self) -> HashMap<usize, u64> {
        let mut ends: HashMap<usize, u64> = HashMap::new();
        let received = lock(&self.received);
        for input in received.parts().flat_map(|(_, part)| &part.files) {
            let end = ends.entry(input.file as usize).or_default();
            *end = (*end).max(input.end);
        }
        ends
    }

    /// Bytes held for partitions under way.
    pub fn held_bytes(&self) -> u64 {
        let received = lock(&self.received);
        received.under_way.values().map(|p| p.held_bytes.load(Ordering::Relaxed)).sum()
    }

    /// Costs as acknowledgements tell them: of plain columns a row, of placed ones a byte.
    pub fn costs(&self) -> (Vec<(u32, f32)>, f32) {
        lock(&self.costs).told()
    }

    /// Takes a block, on a thread of the pool.
    pub fn take_block(
        self: &Arc<Self>,
        attempt: u64,
        bytes: Vec<u8>,
        credit: Credit,
        pool: &Arc<Pool>,
    ) {
        let wire_bytes = credit.wire_bytes();
        self.on_pool(attempt, bytes, credit, pool, move |active, bytes, pool| {
            active.block(attempt, bytes, wire_bytes, pool)
        });
    }

    /// Works on what was received on a thread of the pool; what fails there ends the attempt.
    pub(super) fn on_pool(
        self: &Arc<Self>,
        attempt: u64,
        bytes: Vec<u8>,
        credit: Credit,
        pool: &Arc<Pool>,
        work: impl FnOnce(&Arc<Self>, Vec<u8>, &Arc<Pool>) -> Result<()> + Send + 'static,
    ) {
        self.waiting_bytes.fetch_add(credit.wire_bytes(), Ordering::Relaxed);
        pool.received(credit.wire_bytes());
        let (active, again) = (Arc::clone(self), Arc::clone(pool));
        pool.submit(Class::Block, move || {
            let done = Guard::new(|| active.fail(attempt, &panicked()));
            let taken = work(&active, bytes, &again);
            active.waiting_bytes.fetch_sub(credit.wire_bytes(), Ordering::Relaxed);
            drop(credit);
            if let Err(error) = taken {
                active.fail(attempt, &error);
            }
            done.disarm();
        });
    }

    fn block(
        self: &Arc<Self>,
        attempt: u64,
        bytes: Vec<u8>,
        wire_bytes: u64,
        pool: &Arc<Pool>,
    ) -> Result<()> {
        let started = thread_cpu_ns();
        let partition = ByteReader::new(&bytes).varint_u32()?;
        let types = lock(&self.types).of(partition);
        // Behind the columns are the numbers of rows that were sorted.
        let is_keyed = self.target.schema.key().is_some() && partition < PARTITIONS_MAX;
        let physical = |c: u32| match types.get(c as usize) {
            Some(column) => Some(column.data_type.physical()),
            None => (c as usize == types.len() && is_keyed).then_some(Physical::Int),
        };
        let block = Block::decode(&bytes, physical)?;
        // What is made of the block takes as much again.
        drop(bytes);
        let column = block.column;
        let plain_rows = match &block.content {
            BlockContent::Plain { values, .. } => Some(values.len() as u64),
            BlockContent::Pages { .. } => None,
        };
        let of = types.get(column as usize);
        if let Some(of) = of.filter(|_| self.keep == Keep::Nothing) {
            verify_content(&block.content, of)?;
        }
        let Some(receiving) = self.receiving(attempt, block.partition)? else { return Ok(()) };
        let next = match self.keep {
            Keep::All => receiving.take_block(block)?,
            Keep::Nothing => receiving.count_block()?,
        };
        let spent = thread_cpu_ns() - started;
        if partition < PARTITIONS_MAX && of.is_some() {
            lock(&self.costs).note(column, plain_rows, wire_bytes, spent);
        }
        self.go_on(attempt, &receiving, next, pool)
    }

    /// Takes a seal, on a thread of the pool. It has the rejects of its partition, so it takes room as blocks do.
    pub fn take_seal(
        self: &Arc<Self>,
        attempt: u64,
        bytes: Vec<u8>,
        credit: Credit,
        pool: &Arc<Pool>,
    ) {
        self.on_pool(attempt, bytes, credit, pool, move |active, bytes, pool| {
            active.seal(attempt, bytes, pool)
        });
    }

    fn seal(self: &Arc<Self>, attempt: u64, bytes: Vec<u8>, pool: &Arc<Pool>) -> Result<()> {
        let seal = Seal::decode(&bytes)?;
        drop(bytes);
        let inputs = self.description.inputs.len();
        if seal.account.files.iter().any(|f| f.file as usize >= inputs) {
            return Err(Error::Corrupt(format!("records of an input that is none of {inputs}")));
        }
        let Some(receiving) = self.receiving(attempt, seal.partition)? else {
            return self.tell_sealed(seal.partition);
        };
        let next = receiving.take_seal(seal)?;
        self.go_on(attempt, &receiving, next, pool)
    }

    /// The partition of a block; `None` when it is durable, and this is a repetition.
    pub(crate) fn receiving(&self, attempt: u64, number: u32) -> Result<Option<Arc<Receiving>>> {
        let mut received = lock(&self.received);
        if number >= PARTITIONS_MAX && number - REREAD_FROM >= received.legs.reread_partitions() {
            return Err(Error::Corrupt(format!("partition {number} of a load")));
        }
        self.check_attempt(attempt)?;
        if let Some(error) = &received.failed {
            return Err(error.clone());
        }
        if received.parts.contains_key(&number) {
            return Ok(None);
        }
        if let Some(receiving) = received.under_way.get(&number) {
            return Ok(Some(Arc::clone(receiving)));
        }
        if received.under_way.len() >= PARTITIONS_UNDER_WAY_MAX {
            return Err(Error::Limit(format!(
                "more than {PARTITIONS_UNDER_WAY_MAX} partitions of load {} under way at once",
                self.id
            )));
        }
        let held: u64 =
            received.under_way.values().map(|p| p.held_bytes.load(Ordering::Relaxed)).sum();
        if held > self.memory_max {
            return Err(Error::Limit(format!(
                "partitions of load {} hold {held} bytes, and --load-memory of the server is {} \
                 (lower --fragments-per-partition, or raise --load-memory)",
                self.id, self.memory_max
            )));
        }
        let journal = lock(&self.journal);
        let journal = journal.as_ref().ok_or_else(|| self.is_over())?;
        let path = journal.segment_path(number)?;
        let policy = self.description.dictionaries;
        let types = lock(&self.types).of(number);
        // It reads the types that the load began with.
        let parser = self.text_parser.clone();
        let parser = parser.filter(|_| *types == *self.description.schema.columns());
        let key = match (self.target.schema.key(), number < PARTITIONS_MAX) {
            (Some(key), true) => {
                let schema = received.legs.last().clone();
                Some(Arc::new(KeyOf { schema, key: key.clone() }))
            }
            _ => None,
        };
        let how = (policy, self.memory_max as usize);
        let receiving = Arc::new(Receiving::new(number, path, types, how, parser, key));
        received.under_way.insert(number, Arc::clone(&receiving));
        Ok(Some(receiving))
    }

    pub(crate) fn go_on(
        self: &Arc<Self>,
        attempt: u64,
        receiving: &Arc<Receiving>,
        next: Next,
        pool: &Arc<Pool>,
    ) -> Result<()> {
        let Next::Finish(seal) = next else { return Ok(()) };
        if seal.page_rows.is_empty() || self.keep == Keep::Nothing {
            return self.complete(attempt, receiving, &seal, None);
        }
        for column in 0..receiving.width() {
            let (active, receiving, seal) =
                (Arc::clone(self), Arc::clone(receiving), Arc::clone(&seal));
            pool.submit(Class::Merge, move || {
                let done = Guard::new(|| active.fail(attempt, &panicked()));
                let finished =
                    receiving.finish_column(column, &seal).and_then(|summary| match summary {
                        None => Ok(()),
                        summary => {
                            active.rules.verify(&receiving.path)?;
                            receiving.verify_order(&seal)?;
                            active.complete(attempt, &receiving, &seal, summary)
                        }
                    });
                if let Err(error) = finished {
                    active.fail(attempt, &error);
                }
                done.disarm();
            });
        }
        Ok(())
    }

    /// Journals a partition whose segment is durable, and tells the client.
    fn complete(
        &self,
        attempt: u64,
        receiving: &Arc<Receiving>,
        seal: &Seal,
        summary: Option<SegmentSummary>,
    ) -> Result<()> {
        let number = receiving.number;
        let rows = receiving.take_row_numbers(seal)?;
        let mut received = lock(&self.received);
        self.check_attempt(attempt)?;
        if !received.under_way.get(&number).is_some_and(|r| Arc::ptr_eq(r, receiving)) {
            return Ok(());
        }
        let journal = lock(&self.journal);
        let journal = journal.as_ref().ok_or_else(|| self.is_over())?;
        let mut part = Part::new(&seal.account);
        if let Some(summary) = summary {
            part.bytes = summary.bytes;
            part.seal = Some(summary.seal);
            part.entry = Some(summary.entry(self.id, number));
        }
        if let Some(rows) = rows.filter(|_| self.keep == Keep::All) {
            journal.put_rows(number, &rows)?;
        }
        if self.keep == Keep::All {
            // Under the lock: nobody may begin an attempt between the check and the journal.
            journal.put_part(number, part.encode(&seal.account))?;
        }
        received.under_way.remove(&number);
        received.parts.insert(number, part);
        let first = received.replies.first().cloned();
        drop(received);
        first.map_or(Ok(()), |replies| replies.send(&sealed(number)))
    }

    fn is_over(&self) -> Error {
        Error::Unavailable(format!("load {} is over", self.id))
    }

    fn tell_sealed(&self, number: u32) -> Result<()> {
        let first = lock(&self.received).replies.first().cloned();
        first.map_or(Ok(()), |replies| replies.send(&sealed(number)))
    }

    /// Says something to the client of an attempt, not to one that has taken over since.
    ///
    /// # Errors
    /// `Refused` when one has.
    pub(crate) fn tell(&self, attempt: u64, message: &Message) -> Result<()> {
        let received = lock(&self.received);
        self.check_attempt(attempt)?;
        let first = received.replies.first().cloned();
        drop(received);
        first.map_or(Ok(()), |replies| replies.send(message))
    }

    /// The segments of the whole load, in order, if all that the client has sent is there.
    ///
    /// # Errors
    /// `Corrupt` when the accounts do not agree.
    pub fn segments(&self, finish: &Finish, pool: &Pool) -> Result<(Vec<SegmentEntry>, u64)> {
        let received = lock(&self.received);
        let whole = received.parts().map(|(number, _)| *number).eq(0..finish.partitions);
        let rows: u64 = received.parts().map(|(_, p)| p.rows).sum();
        let rejects: u64 = received.parts().map(|(_, p)| p.rejects).sum();
        let filtered = received.parts().fold(0, |sum, (_, p)| p.filtered().saturating_add(sum));
        let records = rows.saturating_add(rejects).saturating_add(filtered);
        if !whole || rows != finish.rows || records != finish.records {
            return Err(Error::Corrupt(format!(
                "the accounts of load {} do not agree: the client has {} partitions, {} records, {} \
                 rows; the server {} partitions, {rows} rows, {rejects} rejects, {filtered} filtered out; \
                 nothing was loaded",
                self.id,
                finish.partitions,
                finish.records,
                finish.rows,
                received.parts().count()
            )));
        }
        received.check_reread()?;
        let legs = received.legs.clone();
        let parts: Vec<(u32, Part)> = received.parts().map(|(n, p)| (*n, p.clone())).collect();
        drop(received);
        if self.keep == Keep::Nothing {
            return Ok((Vec::new(), rejects));
        }
        let segments = {
            let journal = lock(&self.journal);
            let journal = journal.as_ref().ok_or_else(|| self.is_over())?;
            let parts = parts.iter().filter(|(_, part)| part.rows > 0);
            let publishable = |(number, part): &(u32, Part)| {
                let entry = part.entry_in(journal, *number)?;
                legs.publishable(journal, *number, entry, self.publish_id)
            };
            parts.map(publishable).collect::<Result<Vec<_>>>()?
        };
        // Without the journal's lock, which jobs of the pool may wait for.
        Ok((convert_all(segments, pool)?, rejects))
    }
}

/// Checks a block that is dropped then.
fn verify_content(content: &BlockContent, column: &Column) -> Result<()> {
    match content {
        BlockContent::Plain { values, .. } => verify_plain(values, column),
        BlockContent::Pages { dictionary, symbols, pages } => {
            let pages = pages.iter().map(|(_, page)| page);
            verify_block(dictionary.as_ref(), symbols, pages, column).map(drop)
        }
    }
}

fn sealed(number: u32) -> Message {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, u64::from(number));
    Message::new(SEALED, bytes)
}

pub(crate) fn panicked() -> Error {
    Error::Unavailable("a thread of the server failed; its log has more".into())
}
