//! Loads into a cluster: the rows of each leaf go to that leaf, and one commit shows all of them.
//!
//! ```text
//!   any node: HELLO -> MAP
//!   each leaf: HELLO share -> WELCOME          pipeline -> Routing -> a sender for each leaf -> blocks, SEAL, FINISH
//!                          <- DONE             the leaf has prepared its share: it keeps it until the map decides
//!   any node: COMMIT -> COMMITTED              one new version of the map: all rows are there
//!   each leaf: LOOK                            it publishes at once, and not when somebody reads or its clock says so
//! ```
//!
//! Nothing is kept of what was sent. When a leaf goes away, all of them are asked again what they have: a leaf that has
//! prepared its share, or has partitions of it, is not sent these again. The inputs are read once more then, as rows of
//! what a leaf lacks may stand anywhere.
//!
//! Memory: two partitions, an outbox for each leaf.

mod leaf;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use coload_cluster::{Map, Node, NodeId, Table, hit};
use coload_link::Message;
use coload_store::{LoadId, OnConflict, PlacedRows};
use coload_threads::{AtEnd, Started, epoch_us, lock};
use coload_types::bytes::checksum;
use coload_types::{Error, Result};
use coload_wire::{
    ASK_MAP, Again, COMMIT, COMMITTED, Commit, Committed, DONE, Done, FINISH, Finish, GONE, LOOK,
    LOOKED, LoadDescription, Look, Looked, MAP, PARTITIONS_MAX, Work,
};

use super::choose::{Chooser, Sorts};
use super::sender::Sender;
use super::session::{Totals, WORK_TIMEOUT, ask, is_final_error, listen, wait_durable, wait_for};
use super::{PAUSE_FIRST, PAUSE_MAX, RemoteOptions, RemoteWork, ask_patiently, fingerprint, wait};
use crate::account::Account;
use crate::file_report::FileCounts;
use crate::grain::Grain;
use crate::hooks::Hooks;
use crate::legs::run_once;
use crate::load::{Destination, Load};
use crate::pipeline::{Loaded, Stop};
use crate::report::{
    Earlier, LoadReport, Merged, NetworkReport, Published, published_without_rejects,
};
use crate::request::LoadRequest;
use crate::target::{Out, Routing, Target};
use crate::widen::Way;
use crate::workers::thread_failed;
use leaf::{Leaf, LeafIs, begin, give_up, look, options_of};

/// What all leaves said when they had everything.
#[derive(Default)]
struct Sums {
    bytes_stored: u64,
    segments: u64,
    cpu: Duration,
    peak_memory: u64,
}

/// The map of the cluster that a server is a node of, with the tables that the client may know of.
///
/// # Errors
/// `Unavailable` when the server cannot be reached, `Invalid` when it is in no cluster.
pub fn cluster_map(remote: &RemoteOptions) -> Result<Map> {
    Map::decode(&ask(remote, Message::new(ASK_MAP, Vec::new()), MAP)?.bytes)
}

/// The leaves of a table of a cluster, for a node that is asked to load into it: it is their client as any other, and
/// commits as any other.
#[derive(Debug)]
pub struct Leaves {
    /// A version of the map.
    pub map: Arc<Map>,
    /// Id of the table there.
    pub table: u64,
    /// The node that commits, and how leaves are called.
    pub node: RemoteOptions,
    /// The id of the load, if whoever asks for it knows it already.
    pub id: Option<LoadId>,
    /// Rows of the table that go when those of the load come.
    pub gone: Option<Arc<Gone>>,
}

/// Rows of a table that go, on each leaf: they are known when all rows of the load are read.
pub type Gone = Mutex<BTreeMap<NodeId, PlacedRows>>;

/// Whether a node works on a load for which it holds a table of its cluster.
///
/// # Errors
/// `Unavailable` when it cannot be reached.
pub fn holds_for(remote: &RemoteOptions, node: &Node, load: LoadId) -> Result<bool> {
    let look = Message::new(LOOK, Look { held_for: Some(load) }.encode());
    let looked = ask(&options_of(remote, node)?, look, LOOKED)?;
    Ok(Looked::decode(&looked.bytes)?.holds)
}

impl Leaves {
    /// Has nodes do what was decided, as far as they are there: one that is away does so when it is back.
    ///
    /// # Errors
    /// That of the first one that is away.
    pub fn look(&self, is_told: impl Fn(&Node) -> bool) -> Result<()> {
        let look = |node: &Node| {
            let look = Message::new(LOOK, Look { held_for: None }.encode());
            ask(&options_of(&self.node, node)?, look, LOOKED).map(|_| ())
        };
        let nodes = self.map.nodes.iter().filter(|node| is_told(node));
        std::thread::scope(|scope| {
            let threads: Vec<_> = nodes.map(|node| scope.spawn(move || look(node))).collect();
            let told =
                threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(thread_failed())));
            told.fold(Ok(()), Result::and)
        })
    }
}

impl Destination for Leaves {
    fn take(&self, load: Load<'_>) -> Result<LoadReport> {
        let table = self.map.table_of(self.table).ok_or_else(|| no_table(load.request))?;
        let into = AskedOf { remote: &self.node, id: self.id, gone: self.gone.as_deref() };
        take_into(load, into, (&self.map, table), &Started::now())
    }
}

fn no_table(request: &LoadRequest) -> Error {
    Error::Invalid(format!(
        "table {} does not exist in the cluster: CREATE TABLE .. SHARD BY .. at any node makes it (coload sniff tells the columns \
         of a file)",
        request.table
    ))
}

/// Loads into a table of a cluster, of which this is the map.
///
/// # Errors
/// Those of a load.
pub fn take(
    load: Load<'_>,
    remote: &RemoteOptions,
    map: &Map,
    started: &Started,
) -> Result<LoadReport> {
    let table = map.table(&load.request.table).ok_or_else(|| no_table(load.request))?;
    take_into(load, AskedOf { remote, id: None, gone: None }, (map, table), started)
}

/// The node that commits a load, and the id of the load if that is given.
#[derive(Clone, Copy)]
struct AskedOf<'a> {
    remote: &'a RemoteOptions,
    id: Option<LoadId>,
    gone: Option<&'a Gone>,
}

fn take_into(
    load: Load<'_>,
    into: AskedOf<'_>,
    (map, table): (&Map, &Table),
    started: &Started,
) -> Result<LoadReport> {
    let remote = into.remote;
    check(load, remote)?;
    let mut known = (Cow::Borrowed(map), Cow::Borrowed(table));
    let mut totals = Totals::default();
    let mut pause = PAUSE_FIRST;
    let mut got_on = Instant::now();
    let mut nth = 0;
    let mut began = None;
    loop {
        let before = totals.partitions;
        match attempt(load, into, (&known.0, &known.1), (nth, &mut began), &mut totals) {
            Ok(Some(mut report)) => {
                report.set_costs(started);
                return Ok(report);
            }
            // It is there, and is wanted once more.
            Ok(None) => (nth, began) = (nth + 1, None),
            Err(Error::Unavailable(text))
                if load.request.inputs.read_once().is_none() || !totals.has_begun =>
            {
                if load.hooks.is_cancelled() {
                    return Err(Error::Unavailable(text));
                }
                if totals.partitions > before {
                    (pause, got_on) = (PAUSE_FIRST, Instant::now());
                }
                if got_on.elapsed() + pause > remote.patience {
                    return Err(Error::Unavailable(format!(
                        "{text}; gave up after {} attempts; the same load goes on where it ended",
                        totals.attempts
                    )));
                }
                wait(pause, load.hooks);
                pause = (pause * 2).min(PAUSE_MAX);
                // Shards may be elsewhere now. While the node is away, what is known stays.
                if into.id.is_none()
                    && let Ok(map) = cluster_map(remote)
                    && let Some(table) = map.table_of(table.id).cloned()
                {
                    known = (Cow::Owned(map), Cow::Owned(table));
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Refuses what does not work at a cluster yet.
fn check(load: Load<'_>, remote: &RemoteOptions) -> Result<()> {
    let request = load.request;
    if !matches!(remote.work, RemoteWork::Shared(_)) {
        return Err(Error::Invalid("a server that parses is no client of leaves".into()));
    }
    if request.share.is_some() {
        return Err(Error::Invalid(
            "--worker: a cluster takes no shares of a load yet; give all inputs to one load".into(),
        ));
    }
    if request.on_conflict == OnConflict::Reject || request.delete_where.is_some() {
        return Err(Error::Invalid(
            "--on-conflict reject and --delete-where are not for a cluster yet (ignore and replace are)".into(),
        ));
    }
    Ok(())
}

/// The load as a leaf is told it.
fn describe(load: Load<'_>, table: &Table, nth: u64) -> Result<(LoadId, LoadDescription)> {
    let mut description = fingerprint::describe_as(load.request, load.resources, Work::Partitions)?;
    if let Some(key) = load.request.key {
        // Who asks for it knows it by that, and brings the same inputs when he asks again.
        description.salt = key.as_u128() & !1;
    }
    // The same inputs into a table that was made anew are another load.
    let mut bytes = description.id(nth).as_u128().to_le_bytes().to_vec();
    bytes.extend(table.id.to_le_bytes());
    let (low, high) = (checksum(&bytes), checksum(&[&bytes[..], b"cluster"].concat()));
    Ok((LoadId::from_u128(u128::from(high) << 64 | u128::from(low)), description))
}

/// Tries the load once; `None` when it was published before, and is wanted once more.
fn attempt(
    load: Load<'_>,
    into: AskedOf<'_>,
    (map, table): (&Map, &Table),
    (nth, began): (u64, &mut Option<i64>),
    totals: &mut Totals,
) -> Result<Option<LoadReport>> {
    totals.attempts += 1;
    let remote = into.remote;
    let (id, description) = describe(load, table, nth)?;
    let id = into.id.unwrap_or(id);
    let mut leaves = Vec::with_capacity(table.leaves.len());
    let mut begun = Ok(());
    for place in 0..table.leaves.len() {
        match begin(load, remote, (map, table), (id, place), &description) {
            Ok(leaf) => leaves.push(leaf),
            Err(error) => {
                begun = Err(error);
                break;
            }
        }
    }
    let done = begun.and_then(|()| go_on(load, into, (table, &leaves), (id, began), totals));
    if let Err(error) = &done
        && (description.comes_once() || load.request.key.is_some() && is_final_error(error))
    {
        // Nobody goes on with it. What is committed stays, whatever the error says.
        let _ = give_up(&leaves, id);
    }
    done
}

/// Goes on with a load that has begun at its leaves.
fn go_on(
    load: Load<'_>,
    into: AskedOf<'_>,
    (table, leaves): (&Table, &[Leaf]),
    (id, began): (LoadId, &mut Option<i64>),
    totals: &mut Totals,
) -> Result<Option<LoadReport>> {
    let remote = into.remote;
    let started_us = epoch_us();
    hit("cluster::client::begun");
    let published = leaves.iter().find_map(|leaf| match &leaf.is {
        LeafIs::Published(done) => Some(done.note.clone()),
        _ => None,
    });
    if let Some(note) = published {
        look(leaves, load.hooks);
        // A leaf that the table did not have then knows nothing of it, and has begun.
        for leaf in leaves.iter().filter(|leaf| matches!(leaf.is, LeafIs::Open(..))) {
            let _ = give_up(std::slice::from_ref(leaf), id);
        }
        if remote.again == Again::Yes {
            return Ok(None);
        }
        return Ok(Some(earlier(load, id, leaves, note)));
    }
    totals.has_begun = true;
    // Once it is known, all attempts of this process are of that time.
    let began_us = match *began {
        Some(began_us) => began_us,
        None => *began.insert(began_at(load.request, leaves, id)?),
    };
    let request = as_begun(load.request, began_us)?;
    let load = load.with_request(&request);
    let (loaded, clock, rows) = send(load, remote, table, leaves, totals)?;
    let Loaded { partitions, account, .. } = loaded;
    hit("cluster::client::sent");
    let mut sums = Sums::default();
    let left_out = sum(&account, FileCounts::records) - sum(&account, |file| file.rows);
    let bytes = sum(&account, |file| file.bytes);
    // All at once: each may have much to make durable.
    for (place, leaf) in leaves.iter().enumerate() {
        let LeafIs::Open(client, _) = &leaf.is else { continue };
        if let Some(gone) = into.gone.and_then(|gone| lock(gone).remove(&table.leaves[place])) {
            client.push(Message::new(GONE, gone.encode()?))?;
        }
        let first = place == 0;
        let finish = Finish {
            partitions: partitions as u32,
            records: rows[place] + if first { left_out } else { 0 },
            rows: rows[place],
            bytes: if first { bytes } else { 0 },
            started_us,
        };
        client.push(Message::new(FINISH, finish.encode()))?;
    }
    for leaf in leaves {
        let LeafIs::Open(client, _) = &leaf.is else { continue };
        let done = wait_for(client, &[DONE], WORK_TIMEOUT, &load.hooks.cancel)?;
        let done = Done::decode(&done.bytes)?;
        sums.bytes_stored += done.bytes_stored;
        sums.segments += done.segments;
        sums.cpu += Duration::from_nanos(done.cpu_ns);
        sums.peak_memory = sums.peak_memory.max(done.peak_memory);
    }
    hit("cluster::client::prepared");
    if let Some(confirm) = &load.hooks.confirm {
        confirm()?;
    }
    let committed = commit(load, remote, (id, table), leaves)?;
    for leaf in leaves {
        if let LeafIs::Open(client, _) = &leaf.is {
            totals.add(client.stats());
        }
    }
    look(leaves, load.hooks);
    let mut report = report_of(load, account, (id, partitions), (committed, &sums))?;
    report.set_steps(&clock);
    report.network.get_or_insert_default().link = totals.link();
    report.network.get_or_insert_default().attempts = totals.attempts;
    Ok(Some(report))
}

/// Has what all leaves have prepared committed.
fn commit(
    load: Load<'_>,
    remote: &RemoteOptions,
    (id, table): (LoadId, &Table),
    leaves: &[Leaf],
) -> Result<Committed> {
    let comes_once = load.request.inputs.read_once().is_some();
    let ask = || {
        let commit = Commit { load: id, table: table.id, comes_once }.encode();
        Committed::decode(&ask(remote, Message::new(COMMIT, commit), COMMITTED)?.bytes)
    };
    if !comes_once {
        return ask();
    }
    // Nothing is tried again after this, so it is found out what became of it.
    match ask_patiently(remote, &load.hooks.cancel, ask) {
        Err(Error::Unavailable(text)) => match give_up(leaves, id) {
            Ok(()) => Err(Error::Unavailable(format!("{text}; nothing was loaded"))),
            Err(_) => ask().map_err(|_| {
                Error::Unavailable(format!(
                    "{text}; it is not known whether load {id} is committed"
                ))
            }),
        },
        done => done,
    }
}

/// When the load began first: rows that a leaf has are of that time, and so must be all.
fn began_at(request: &LoadRequest, leaves: &[Leaf], id: LoadId) -> Result<i64> {
    let welcome = |leaf: &Leaf| match &leaf.is {
        LeafIs::Open(_, welcome) => welcome.began_us,
        LeafIs::Prepared | LeafIs::Published(_) => None,
    };
    let began_us = leaves.iter().filter_map(welcome).min();
    let is_timed = request.program.is_some() || request.derivation.is_some();
    let is_prepared = leaves.iter().any(|leaf| matches!(leaf.is, LeafIs::Prepared));
    match began_us {
        // A leaf that has prepared its share no longer says when it began.
        Some(_) if is_timed && is_prepared => Err(Error::Refused(format!(
            "some leaves have prepared load {id} and others have not, and its columns or filters may depend on the time at which it began \
             (drop it with coload loads --abort {id}, and load again)"
        ))),
        began_us => Ok(began_us.unwrap_or(request.began_us)),
    }
}

/// The request of a load that began at a time.
fn as_begun(request: &LoadRequest, began_us: i64) -> Result<Cow<'_, LoadRequest>> {
    if began_us == request.began_us {
        return Ok(Cow::Borrowed(request));
    }
    let mut begun = request.clone();
    begun.begin_at(began_us)?;
    Ok(Cow::Owned(begun))
}

fn sum(account: &Account, of: fn(&FileCounts) -> u64) -> u64 {
    account.files().iter().map(of).sum()
}

fn report_of(
    load: Load<'_>,
    mut account: Account,
    (id, partitions): (LoadId, usize),
    (committed, sums): (Committed, &Sums),
) -> Result<LoadReport> {
    let output = account.take_output();
    let (files, rejects) = account.into_files();
    if let Some(output) = output {
        output.commit().map_err(|error| published_without_rejects(committed.version, &error))?;
    }
    let network = NetworkReport {
        server_cpu: sums.cpu,
        server_peak_memory: sums.peak_memory,
        ..NetworkReport::default()
    };
    Ok(LoadReport {
        id: Some(id),
        files,
        rejects,
        partitions,
        bytes_stored: sums.bytes_stored,
        published: Some(Published {
            version: committed.version,
            segments: sums.segments,
            merge: Merged::AtServer(String::new()),
        }),
        network: Some(network),
        ..LoadReport::new(load.request.table.clone())
    })
}

/// The report of a load that was committed before.
fn earlier(load: Load<'_>, id: LoadId, leaves: &[Leaf], note: String) -> LoadReport {
    let done = leaves.iter().filter_map(|leaf| match &leaf.is {
        LeafIs::Published(done) => Some(done),
        _ => None,
    });
    let (rows, rejects) =
        done.fold((0, 0), |(rows, rejects), done| (rows + done.rows, rejects + done.rejects));
    // What one leaf says is all that is known of the others.
    let held = match leaves.iter().all(|leaf| matches!(leaf.is, LeafIs::Published(_))) {
        true => "all leaves of the cluster have its rows".to_owned(),
        false => note,
    };
    let earlier = Some(Earlier { rows, rejects, held });
    LoadReport { id: Some(id), earlier, ..LoadReport::new(load.request.table.clone()) }
}

/// Runs the pipeline, and waits until all leaves have what is theirs. Gives the rows of each.
fn send(
    load: Load<'_>,
    remote: &RemoteOptions,
    table: &Table,
    leaves: &[Leaf],
    totals: &mut Totals,
) -> Result<(Loaded, coload_threads::StepClock, Vec<u64>)> {
    let RemoteWork::Shared(policy) = remote.work else {
        return Err(Error::Invalid("a server that parses is no leaf".into()));
    };
    let grain = Grain::of(load.request, load.resources);
    let limit = grain.dictionary_limit();
    let (routing, outs) = Routing::new(table, load.resources.dictionaries, limit);
    let chooser = Chooser::new(policy, load.resources.threads, None, Sorts::No);
    let mut senders: Vec<Option<Sender<'_>>> = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        senders.push(match &leaf.is {
            LeafIs::Open(client, welcome) => {
                let durable = welcome.parts.iter().map(|(number, _)| *number);
                Some(Sender::new(client, &chooser, 0..PARTITIONS_MAX, durable, false))
            }
            LeafIs::Prepared | LeafIs::Published(_) => None,
        });
    }
    // Tells the pipeline that a link is broken; the user's own flag is looked at too.
    let linked = Hooks { cancel: Arc::default(), ..load.hooks.clone() };
    let cancel = &load.hooks.cancel;
    let load = Load { hooks: &linked, ..load };
    let ended = AtomicBool::new(false);
    let (ran, heard, rows) = std::thread::scope(|scope| {
        let end = AtEnd::new(|| ended.store(true, Ordering::Release));
        let mut threads = Vec::new();
        for ((leaf, sender), out) in leaves.iter().zip(&senders).zip(outs) {
            let (linked, ended) = (&linked, &ended);
            threads.push(scope.spawn(move || {
                let _end = AtEnd::new(|| {
                    if std::thread::panicking() {
                        linked.cancel.store(true, Ordering::Relaxed);
                    }
                });
                let told = feed(sender.as_ref(), &out);
                if told.is_err() {
                    linked.cancel.store(true, Ordering::Relaxed);
                }
                told
            }));
            let (LeafIs::Open(client, _), Some(sender)) = (&leaf.is, sender) else { continue };
            threads.push(scope.spawn(move || {
                // Nobody waits for what is not heard any more.
                let _end = AtEnd::new(|| {
                    linked.cancel.store(true, Ordering::Relaxed);
                    sender.end();
                });
                listen(client, sender, ended, cancel)
            }));
        }
        let ran = run_once(load, &routing, Way::StartAgain { pass: 0 });
        let rows = routing.rows_of_leaves();
        // Whoever feeds a leaf ends when nothing more can come.
        drop(routing);
        if let Ok((loaded, _)) = &ran {
            for sender in senders.iter().flatten() {
                wait_durable(sender, loaded.partitions, &linked.cancel);
            }
        }
        drop(end);
        let mut heard = Ok(());
        for thread in threads {
            let told = thread.join().unwrap_or_else(|_| Err(thread_failed()));
            heard = heard.and(told);
        }
        (ran, heard, rows)
    });
    let durable = senders.iter().flatten().map(|sender| sender.durable()).sum();
    totals.partitions = totals.partitions.max(durable);
    match (ran, heard) {
        // What is wrong with the data says more than that a link ended then.
        (Err(Stop::Failed(error @ (Error::Input { .. } | Error::Invalid(_)))), _) => Err(error),
        (Err(Stop::Widen(_)), _) => Err(Error::Invalid(
            "the types of columns were inferred, and a field does not fit them; a cluster's table has its types (leave --columns out)"
                .into(),
        )),
        (_, Err(error)) => Err(error),
        (Err(Stop::Failed(error)), _) => Err(error),
        (Ok((loaded, clock)), Ok(())) => {
            match senders.iter().flatten().all(|sender| sender.has_all(loaded.partitions)) {
                true => Ok((loaded, clock, rows)),
                false => Err(super::session::not_in_time()),
            }
        }
    }
}

/// Gives a leaf what comes for it; what a leaf has already goes nowhere.
fn feed(sender: Option<&Sender<'_>>, out: &Receiver<Out>) -> Result<()> {
    for out in out {
        match (sender, out) {
            (None, _) => {}
            (Some(sender), Out::Column { partition, column, fragments, pages }) => {
                sender.take_column(partition, column, &fragments, pages)?;
            }
            (Some(sender), Out::Seal(seal)) => drop(sender.seal(seal)?),
        }
    }
    Ok(())
}
