//! All loads of a server: beginning, going on, publishing, listing, dropping.

mod ending;
mod identity;
mod in_cluster;
mod shares;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak, atomic::Ordering};
use std::time::{Duration, Instant};

use arrow_flight::FlightData;
use coload_cluster::Table;
use coload_ddl::create_table_sql;
use coload_link::{Exchange, Message, Replies, exchange};
use coload_store::{JournalEntry, LoadId, LoadJournal, LoadMode, Store};
use coload_threads::lock;
use coload_types::{Error, Result, same_name};
use coload_wire::{LoadDescription, LoadStage, LoadStatus, ServerLoad, ShareStatus, WELCOME, Work};
use futures::Stream;
use identity::{Identity, target_of};
use in_cluster::BeginsAt;
pub(crate) use shares::AllShares;
pub use shares::PendingShares;
use tonic::Status;

use crate::active::Active;
use crate::busy::CpuGauge;
use crate::connection::Connection;
use crate::options::ReceiveOptions;
use crate::pool::Pool;
use crate::whole_inputs::WholeInputs;

/// Published loads that a list names, of each table.
const PUBLISHED_LISTED_MAX: usize = 20;
/// How often a server looks for loads that expired.
const EXPIRE_INTERVAL: Duration = Duration::from_secs(3600);
/// Window of one connection.
const WINDOW_BYTES: u64 = 8 << 20;
/// Share of the memory of loads that is the window of a connection on which inputs come as they are.
const WINDOW_WHOLE_SHARE: u64 = 128;
/// Window when memory is short: a frame with its header fits at least.
const WINDOW_BYTES_MIN: u64 = 2 << 20;

/// Tenths of the memory of loads that one message may take: a client may have a record of a third of as much.
const MESSAGE_TENTHS: u64 = 3;

/// What a client wants of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// To know its columns and loads.
    See,
    /// To add rows, or make it.
    Add,
    /// To put rows in place of those that are there.
    Replace,
}

impl Need {
    /// What a load needs: rows that give way to its own are taken away, as by an UPDATE.
    pub(crate) fn of(description: &LoadDescription) -> Self {
        let LoadDescription { mode, on_conflict, delete_where, .. } = description;
        match *mode != LoadMode::Replace && on_conflict.only_adds() && delete_where.is_none() {
            true => Need::Add,
            false => Need::Replace,
        }
    }
}

/// Says whether somebody may have what he needs of a table.
pub type Permission = Arc<dyn Fn(&str, Need) -> Result<()> + Send + Sync>;

/// The loads of a store that arrive over the network. Clones share them.
///
/// A Flight service gives each `DoExchange` (or `DoPut`) whose first descriptor's command begins with
/// [`coload_link::LOAD_COMMAND`] to [`Loads::exchange`]:
///
/// ```text
/// let loads = Loads::open(store, ReceiveOptions::default())?;
/// // in do_exchange, after looking at the first message, which must be passed on too:
/// let answers = loads.exchange(stream, Arc::new(move |table, need| user.may(table, need)));
/// Ok(Response::new(answers))
/// ```
#[derive(Debug, Clone)]
pub struct Loads {
    inner: Arc<Inner>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub store: Store,
    pub options: ReceiveOptions,
    pub pool: Arc<Pool>,
    active: Mutex<HashMap<LoadId, Arc<Active>>>,
    /// Loads that clients began, also those that are complete and wait for the map of a cluster.
    begun: Mutex<HashMap<LoadId, Weak<Active>>>,
    whole: Mutex<HashMap<LoadId, Arc<WholeInputs>>>,
    cpu: CpuGauge,
    expired_at: Mutex<Instant>,
    /// Held while the rows of a load are put in order: it takes the memory of loads.
    pub(crate) one_sort: Mutex<()>,
}

impl Loads {
    /// Takes loads into a store; drops what earlier ones left too long ago.
    ///
    /// # Errors
    /// `Unavailable` when threads cannot be started or the store cannot be read.
    pub fn open(store: Store, options: ReceiveOptions) -> Result<Self> {
        let pool = Arc::new(Pool::start(&options)?);
        let inner = Inner {
            store,
            options,
            pool,
            active: Mutex::default(),
            begun: Mutex::default(),
            whole: Mutex::default(),
            cpu: CpuGauge::default(),
            expired_at: Mutex::new(Instant::now()),
            one_sort: Mutex::default(),
        };
        let loads = Loads { inner: Arc::new(inner) };
        loads.inner.join_cluster()?;
        loads.inner.expire()?;
        Ok(loads)
    }

    /// Runs one exchange with a client. `permission` is asked before anything is done to a table.
    ///
    /// Must be called within a tokio runtime.
    pub fn exchange<S>(&self, stream: S, permission: Permission) -> Exchange
    where
        S: Stream<Item = std::result::Result<FlightData, Status>> + Send + 'static,
    {
        exchange(stream, Arc::new(Connection::new(Arc::clone(&self.inner), permission)))
    }

    /// Bytes that loads may hold now: nothing while none is under way.
    pub fn memory(&self) -> usize {
        let is_idle = lock(&self.inner.active).is_empty() && lock(&self.inner.whole).is_empty();
        if is_idle { 0 } else { self.inner.options.load_memory }
    }

    /// Loads that arrive or wait, and those published of late.
    ///
    /// # Errors
    /// `Unavailable` when the store cannot be read.
    pub fn list(&self) -> Result<Vec<LoadStatus>> {
        self.inner.list()
    }

    /// Drops a load that is not published.
    ///
    /// # Errors
    /// `Invalid` when there is none of this id.
    pub fn abort(&self, id: LoadId) -> Result<()> {
        self.inner.abort(id)
    }
}

/// What a client is told when it begins.
pub(crate) enum Begun {
    /// The load goes on, with this number of an attempt and this welcome.
    Load(Arc<Active>, u64, Message),
    /// The client is to send its inputs, as the server parses them.
    WholeInputs(Arc<WholeInputs>, Message),
    /// It is published already, or the client is to begin elsewhere.
    Done(Message),
    /// It is the last share of a load that was complete before, and the client is asked which of its records are rejects.
    Shares(Box<PendingShares>, Message),
}

/// What became of opening a journal.
enum Journalled {
    /// The journal is open, and this process has it.
    Open(LoadJournal),
    /// Its load is published: what its client is told.
    Published(Message),
    /// Its share is complete, and waits for the others.
    Complete,
}

/// What became of opening a load.
enum Opened {
    /// The load goes on where its journal ends.
    Load(Box<Active>),
    /// It is published: what its client is told.
    Published(Message),
    /// It is a share that is complete, and waits for the others.
    Complete(Box<LoadDescription>),
}

impl Inner {
    /// Begins a load or goes on with it.
    pub fn begin(&self, description: LoadDescription, replies: &Replies) -> Result<Begun> {
        self.expire_at_times()?;
        // Not with a lock held: what the map has decided meanwhile is done first.
        let leaf = match self.check_in_cluster(&description)? {
            BeginsAt::Leaves(map) => return Ok(Begun::Done(map)),
            BeginsAt::Leaf(table, place) => Some((*table, place)),
            BeginsAt::Server => None,
        };
        let id = match self.id_of(&description)? {
            Identity::New(id) => id,
            Identity::Published(done) => return Ok(Begun::Done(done)),
        };
        let begun = self.store.list_journals()?;
        let mut description = description;
        if description.share.is_some() {
            self.fit_shares(id, &mut description, &begun)?;
        } else if !begun.iter().any(|entry| entry.id == id) {
            self.check_begun_differently(&description, &begun)?;
        }
        let asks_when = description.began_us.is_some();
        if description.work != Work::Partitions {
            return self.begin_whole(id, description, replies);
        }
        let mut active = lock(&self.active);
        let load = match active.get(&id) {
            Some(load) => Arc::clone(load),
            None => {
                let load = match self.open_load(id, description, leaf)? {
                    Opened::Load(load) => Arc::new(*load),
                    Opened::Published(done) => return Ok(Begun::Done(done)),
                    Opened::Complete(description) => {
                        // To publish may take long, and others begin meanwhile.
                        drop(active);
                        return self.complete_before(&description);
                    }
                };
                active.insert(id, Arc::clone(&load));
                load
            }
        };
        drop(active);
        if load.publishing.load(Ordering::Acquire) {
            return Err(Error::Unavailable(format!("load {id} is being published")));
        }
        let (attempt, mut welcome) = load.begin_attempt(replies)?;
        if load.description.comes_once() && self.member().is_some() {
            lock(&self.begun).insert(id, Arc::downgrade(&load));
        }
        welcome.began_us = welcome.began_us.filter(|_| asks_when);
        Ok(Begun::Load(load, attempt, Message::new(WELCOME, welcome.encode())))
    }

    fn begin_whole(
        &self,
        id: LoadId,
        mut description: LoadDescription,
        replies: &Replies,
    ) -> Result<Begun> {
        // One whose client came back before its end was noticed gives its journal free.
        if let Some(old) = self.find_whole(id) {
            self.leave_whole(&old);
        }
        let journal = match self.journal(id, &mut description)? {
            Journalled::Open(journal) => journal,
            Journalled::Published(done) => return Ok(Begun::Done(done)),
            Journalled::Complete => return self.complete_before(&description),
        };
        let whole = Arc::new(WholeInputs::new(description, journal, self.options.spool_bytes)?);
        whole.begin(&self.store, &self.options, replies)?;
        let welcome = Message::new(WELCOME, whole.welcome().encode());
        lock(&self.whole).insert(id, Arc::clone(&whole));
        Ok(Begun::WholeInputs(whole, welcome))
    }

    /// The journal of a load, unless the load was published while we came to it: only who has the journal may say so.
    /// The load began when its first attempt did.
    fn journal(&self, id: LoadId, description: &mut LoadDescription) -> Result<Journalled> {
        let (journal, begun) = match self.store.open_journal(id)? {
            Some(journal) => (journal, true),
            None => {
                let target = target_of(description);
                // Told before anything is sent.
                let deletes = description.delete_where(&target.schema)?;
                self.store.check_on_conflict(&target, description.on_conflict, deletes.as_ref())?;
                (self.store.begin_journal(id, &target, description.encode())?, false)
            }
        };
        if let Some(done) = self.published_meanwhile(description, &journal)? {
            journal.remove()?;
            return Ok(Journalled::Published(done));
        }
        if description.share.is_some() && journal.finished_share()?.is_some() {
            return Ok(Journalled::Complete);
        }
        if begun {
            let first = LoadDescription::decode(&journal.description()?)?;
            description.began_us = first.began_us.or(description.began_us);
        }
        Ok(Journalled::Open(journal))
    }

    fn open_load(
        &self,
        id: LoadId,
        mut description: LoadDescription,
        leaf: Option<(Table, usize)>,
    ) -> Result<Opened> {
        let journal = match self.journal(id, &mut description)? {
            Journalled::Open(journal) => journal,
            Journalled::Published(done) => return Ok(Opened::Published(done)),
            Journalled::Complete => return Ok(Opened::Complete(Box::new(description))),
        };
        let (target, memory) = (target_of(&description), self.options.load_memory as u64);
        let mut load = Active::new(description, target, journal, self.options.keep, memory)?;
        if let Some((table, place)) = leaf {
            load = load.of_leaf(&table, place);
        }
        Ok(Opened::Load(Box::new(load)))
    }

    /// Refuses a load whose inputs or options changed since it was begun.
    fn check_begun_differently(
        &self,
        description: &LoadDescription,
        begun: &[JournalEntry],
    ) -> Result<()> {
        if description.salt != 0 {
            return Ok(());
        }
        for entry in begun {
            let Ok(begun) = LoadDescription::decode(&entry.description) else { continue };
            if same_name(&begun.table, &description.table)
                && begun.salt == 0
                && begun.share.is_none()
                && begun.origin == description.origin
                && begun.inputs.names() == description.inputs.names()
            {
                if description.widens(&begun) || begun.widens(description) {
                    // Nobody goes on with it: the types of this one are what the inputs need.
                    self.abort(entry.id)?;
                    continue;
                }
                let differences = description.differences(&begun);
                return Err(Error::Refused(format!(
                    "load {} of these inputs into {} is unfinished, and this one differs: {} (finish \
                     it as it was begun, or drop it with coload loads --abort {})",
                    entry.id,
                    begun.table,
                    differences.join("; "),
                    entry.id
                )));
            }
        }
        Ok(())
    }

    /// A load in progress.
    pub fn find(&self, id: LoadId) -> Result<Arc<Active>> {
        let active = lock(&self.active);
        let found = active.get(&id).cloned();
        found.ok_or_else(|| Error::Unavailable(format!("load {id} is not under way here")))
    }

    /// A load of whole inputs in progress.
    pub fn find_whole(&self, id: LoadId) -> Option<Arc<WholeInputs>> {
        lock(&self.whole).get(&id).cloned()
    }

    pub fn list(&self) -> Result<Vec<LoadStatus>> {
        let mut list = Vec::new();
        for entry in self.store.list_journals()? {
            let Ok(description) = LoadDescription::decode(&entry.description) else { continue };
            let complete = self.store.complete_share(entry.id).ok().flatten();
            let active = lock(&self.active).get(&entry.id).cloned();
            let counts = complete.as_ref().map_or((0, 0), |share| (share.rows, share.rejects));
            let (rows, rejects) = active.as_ref().map_or(counts, |a| a.counts());
            let arriving =
                active.is_some_and(|a| a.has_client()) || lock(&self.whole).contains_key(&entry.id);
            list.push(LoadStatus {
                id: entry.id,
                inputs: description.input_names(4),
                table: description.table,
                state: if arriving { LoadStage::Arriving } else { LoadStage::Waiting },
                rows,
                rejects,
                bytes: entry.bytes,
                idle_s: entry.modified.elapsed().map_or(0, |d| d.as_secs()),
                share: description
                    .share
                    .map(|share| ShareStatus { of: share.of, is_complete: complete.is_some() }),
            });
        }
        for table in self.store.snapshot()?.tables() {
            for record in table.loads.iter().rev().take(PUBLISHED_LISTED_MAX) {
                list.push(LoadStatus {
                    id: record.id,
                    table: table.name.clone(),
                    state: LoadStage::Published,
                    rows: record.rows,
                    rejects: record.rejects,
                    bytes: record.bytes,
                    idle_s: ((coload_threads::epoch_us() - record.finished_us).max(0) / 1_000_000)
                        as u64,
                    inputs: record.inputs.iter().take(4).cloned().collect(),
                    share: None,
                });
            }
        }
        Ok(list)
    }

    /// The table that an unfinished load goes to, and what is needed of it: who may drop a load may make it.
    pub fn needs(&self, id: LoadId) -> Result<(String, Need)> {
        for entry in self.store.list_journals()? {
            let description = LoadDescription::decode(&entry.description);
            let is_share = |d: &LoadDescription| d.share.as_ref().is_some_and(|s| s.of.load == id);
            if entry.id == id || description.as_ref().is_ok_and(is_share) {
                let description = description?;
                let need = Need::of(&description);
                return Ok((description.table, need));
            }
        }
        Err(Error::Invalid(format!("no load {id} is unfinished (coload loads shows them)")))
    }

    /// The CREATE TABLE of a table, empty if there is none.
    pub fn describe(&self, table: &str) -> Result<String> {
        let snapshot = match self.member() {
            // A table that another node made a moment ago is there, and none that is being made.
            Some(member) => member.read()?.snapshot,
            None => self.store.snapshot()?,
        };
        Ok(snapshot.table(table).map_or(String::new(), |t| create_table_sql(&t.name, &t.schema)))
    }

    /// Whether the client of a load that comes once is connected.
    fn has_client(&self, id: LoadId) -> bool {
        let load = lock(&self.begun).get(&id).and_then(Weak::upgrade);
        load.is_some_and(|load| load.has_client())
    }

    fn forget_clients(&self) {
        lock(&self.begun).retain(|_, load| load.strong_count() > 0);
    }

    /// Bytes that a connection of a load may have under way.
    pub fn window_bytes(&self, load: Option<&Active>) -> u64 {
        let Some(load) = load else {
            // What comes is written to a file at once.
            let room = self.options.load_memory as u64 / WINDOW_WHOLE_SHARE;
            return room.clamp(WINDOW_BYTES_MIN, WINDOW_BYTES);
        };
        let held = load.held_bytes() + load.waiting_bytes.load(Ordering::Relaxed);
        let room = (self.options.load_memory as u64 / 2).saturating_sub(held) / 4;
        room.clamp(WINDOW_BYTES_MIN, WINDOW_BYTES)
    }

    /// What an acknowledgement tells of the server and of this load.
    pub fn load_of(&self, load: Option<&Active>) -> ServerLoad {
        let queries = self.options.queries.as_ref().map(|q| q()).unwrap_or_default();
        let (plain_costs, placed_cost) = load.map(|l| l.costs()).unwrap_or_default();
        ServerLoad {
            cpu_busy: self.cpu.busy(),
            load_cpu: self.options.load_cpu as f32,
            backlog_bytes: load.map_or(0, |l| l.waiting_bytes.load(Ordering::Relaxed)),
            queries: queries.running,
            query_latency_us: queries.latency_us,
            cpu_ns: self.pool.cpu_ns(),
            plain_costs,
            placed_cost,
            core_share: if load.is_some() { self.pool.core_share() } else { 0.0 },
            text_bytes_max: match load {
                Some(load) if load.text_parser.is_some() => self.message_bytes_max(),
                _ => 0,
            },
        }
    }

    /// Bytes of the largest message of a connection.
    pub fn message_bytes_max(&self) -> u64 {
        (self.options.load_memory as u64 / 10 * MESSAGE_TENTHS).max(4 << 20)
    }
}
