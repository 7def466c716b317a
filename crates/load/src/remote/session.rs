//! One attempt of a load: connect, go on, send, publish.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use coload_cluster::Map;
use coload_ddl::{Schema, parse_create_table};
use coload_link::{Client, ClientOptions, LinkStats, Message, WIRE_VERSION, WireCompression};
use coload_store::LoadId;
use coload_threads::{AtEnd, Step, StepClock, epoch_us};
use coload_transform::{MEMORY_MIN, Policy};
use coload_types::bytes::ByteReader;
use coload_types::{Error, Result};
use coload_wire::{
    ABORT, Again, CONFLICTS, Conflicts, DESCRIBE, DONE, Done, FINISH, Finish, HELLO, JOIN, Join,
    LIST, LOADS, MAP, PARSED, PARTITIONS_MAX, Parsed, PartitionAccount, REREAD_FROM, SEALED,
    SETTLE, TABLE, WELCOME, Welcome, read_statuses,
};

use super::choose::{Chooser, Sorts};
use super::conflicts::{ChunksAre, tell, tell_shares};
use super::going::Going;
use super::sender::Sender;
use super::sorting::SortRows;
use super::whole_inputs::{self, send_whole};
use super::{LoadList, RemoteOptions, RemoteWork};
use crate::account::Account;
use crate::file_report::FileCounts;
use crate::hooks::Hooks;
use crate::legs::{run_once, way_of};
use crate::load::Load;
use crate::pipeline::{Loaded, Stop};
use crate::report::{
    Earlier, LoadReport, Merged, NetworkReport, PlacementReport, Published,
    published_without_rejects,
};
use crate::request::LoadRequest;
use crate::share_rejects::put_told;
use crate::workers::thread_failed;

/// How long a server may take for an answer that needs no work.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long it may take to make what was sent durable, or to publish: a server that parses may do so once it has all of it.
/// That it lives is known from the connection.
pub(super) const WORK_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a waiting thread looks whether it should end.
const POLL: Duration = Duration::from_millis(50);

/// What all attempts did together.
#[derive(Debug, Default)]
pub struct Totals {
    /// Attempts that were made, the one that succeeded among them.
    pub attempts: usize,
    /// Partitions that became durable.
    pub partitions: usize,
    /// Whether inputs were read.
    pub has_begun: bool,
    link: LinkStats,
}

impl Totals {
    /// Adds what went over a link.
    pub fn add(&mut self, link: LinkStats) -> LinkStats {
        self.link.frames += link.frames;
        self.link.frames_compressed += link.frames_compressed;
        self.link.message_bytes += link.message_bytes;
        self.link.wire_bytes += link.wire_bytes;
        self.link.done_bytes += link.done_bytes;
        self.link.cpu_ns += link.cpu_ns;
        self.link.bytes_per_second = link.bytes_per_second.or(self.link.bytes_per_second);
        self.link
    }

    /// What went over all links.
    pub fn link(&self) -> LinkStats {
        self.link
    }
}

/// Tries the load once, from where the server's journal ends; `None` when the next attempt goes on with wider types, or the
/// server is a node of a cluster, whose map is known then.
///
/// # Errors
/// `Unavailable` when trying again may help; else what is wrong.
pub fn attempt(
    going: &mut Going<'_>,
    remote: &RemoteOptions,
    totals: &mut Totals,
) -> std::result::Result<Option<LoadReport>, Stop> {
    totals.attempts += 1;
    let mut client = Client::new(client_options(remote, going.load().resources.memory))?;
    let tried = run(going, remote, &mut client, totals);
    let link = totals.add(client.stats());
    tried.map(|report| {
        report.map(|mut report| {
            report.network.get_or_insert_default().link = link;
            report.network.get_or_insert_default().attempts = totals.attempts;
            report
        })
    })
}

/// Share of the memory that waits to be sent.
const OUTBOX_SHARE: usize = 8;

pub(super) fn client_options(remote: &RemoteOptions, memory: usize) -> ClientOptions {
    ClientOptions {
        address: remote.address.clone(),
        outbox_bytes: remote.outbox_bytes.min(memory.max(MEMORY_MIN) / OUTBOX_SHARE),
        compression: remote.compression,
        authorization: remote.authorization.clone(),
        tls: remote.tls.clone(),
    }
}

fn run(
    going: &mut Going<'_>,
    remote: &RemoteOptions,
    client: &mut Client,
    totals: &mut Totals,
) -> std::result::Result<Option<LoadReport>, Stop> {
    let started_us = epoch_us();
    let mut hello = vec![WIRE_VERSION];
    going.description.put(&mut hello);
    client.open(Message::new(HELLO, hello))?;
    // All shares of a load may have to be published, or told, before the client of one that was complete hears of it.
    let timeout = match going.request.share {
        Some(_) => WORK_TIMEOUT,
        None => ANSWER_TIMEOUT,
    };
    let kinds = [WELCOME, DONE, MAP, CONFLICTS];
    let answer = wait_for(client, &kinds, timeout, &going.hooks.cancel)?;
    if answer.kind == MAP {
        going.cluster = Some(Box::new(Map::decode(&answer.bytes)?));
        return Ok(None);
    }
    if answer.kind == DONE {
        return Ok(Some(report(&going.request, &Done::decode(&answer.bytes)?)));
    }
    if answer.kind == CONFLICTS {
        let tell = |conflicts: &Conflicts| tell_shares(going.load(), remote, conflicts);
        let (done, told) = settle(going, remote, client, answer, tell)?;
        let mut report = report(&going.request, &done);
        told.into_iter().for_each(|told| put_told(&mut report, told));
        return Ok(Some(report));
    }
    let welcome = Welcome::decode(&answer.bytes)?;
    if going.description.again == Again::Yes
        && *going.begun_as.get_or_insert(welcome.id) != welcome.id
    {
        // The load that this command began was published before the connection was lost; this would be one more.
        let _ = abort_load(remote, welcome.id);
        let note = "it was published, and the connection was lost before the server could say so";
        let done = Done { already: true, note: note.to_owned(), ..Done::default() };
        return Ok(Some(report(&going.request, &done)));
    }
    going.welcome(&welcome)?;
    let join = Join { id: welcome.id, attempt: welcome.attempt }.encode();
    for _ in 1..remote.connections {
        client.open(Message::new(JOIN, join.clone()))?;
    }
    let client = &*client;
    totals.has_begun = true;
    let sent = go_on(going, remote, client, &welcome, started_us, totals);
    if let Err(stop) = &sent
        && is_final(stop)
    {
        // The inputs must change before this helps: what the server has of them is of no use.
        let _ = abort_load(remote, welcome.id);
    }
    sent
}

/// Whether the same load would fail again.
fn is_final(stop: &Stop) -> bool {
    match stop {
        Stop::Widen(_) => true,
        Stop::Failed(error) => is_final_error(error),
    }
}

/// Whether the same load would fail with the same error again.
pub fn is_final_error(error: &Error) -> bool {
    matches!(error, Error::Input { .. } | Error::Invalid(_) | Error::Limit(_))
}

fn go_on(
    going: &mut Going<'_>,
    remote: &RemoteOptions,
    client: &Client,
    welcome: &Welcome,
    started_us: i64,
    totals: &mut Totals,
) -> std::result::Result<Option<LoadReport>, Stop> {
    let load = going.load();
    let RemoteWork::Shared(policy) = remote.work else {
        let done = send_whole(load, client, welcome, started_us)?;
        totals.partitions += 1;
        let report = whole_inputs::report(load, client, report(load.request, &done), done)?;
        return Ok(Some(report));
    };
    let known = leading(welcome, 0);
    let durable = welcome.parts.iter().map(|(n, _)| *n);
    totals.partitions = totals.partitions.max(welcome.parts.len());
    let sort_rows = SortRows::of(load);
    let sorts = match &sort_rows {
        None => Sorts::No,
        Some(sort_rows) if sort_rows.tells_rows() => Sorts::NumberedRows,
        Some(_) => Sorts::Rows,
    };
    let chooser = Chooser::new(policy, load.resources.threads, remote.text_share, sorts);
    let numbers = 0..PARTITIONS_MAX;
    let sender = Sender::new(client, &chooser, numbers, durable, going.takes_wider());
    let sender = sender.after(&known).sorting(sort_rows);
    let (loaded, clock) = match send(load, client, &sender, going.pass, totals) {
        Err(Stop::Widen(widening)) if going.takes_wider() => {
            let Some(done) = going.widen(client, &sender, widening)? else { return Ok(None) };
            let _ = abort_load(remote, welcome.id);
            return Ok(Some(report(&going.request, &done)));
        }
        sent => sent?,
    };
    let Loaded { partitions, account, .. } = loaded;
    if welcome.reread_partitions > 0 {
        send_reread(going, (remote, policy), client, welcome, account.is_clean(), totals)?;
    }
    let sum = |of: fn(&FileCounts) -> u64| account.files().iter().map(of).sum::<u64>();
    let finish = Finish {
        partitions: partitions as u32,
        records: sum(FileCounts::records),
        rows: sum(|file| file.rows),
        bytes: sum(|file| file.bytes),
        started_us,
    };
    client.push(Message::new(FINISH, finish.encode()))?;
    let chunks = match known.is_empty() && !sender.sent_text() {
        true => ChunksAre::Counted,
        false => ChunksAre::Unknown,
    };
    let answer = wait_for(client, &[DONE, CONFLICTS], WORK_TIMEOUT, &load.hooks.cancel)?;
    let (done, told) =
        settle(going, remote, client, answer, |conflicts| match load.request.share.is_some() {
            true => tell_shares(load, remote, conflicts),
            false => tell(load, remote, conflicts, (&account, chunks)),
        })?;
    let (of_load, told) = match load.request.share.is_some() {
        true => (told, None),
        false => (None, told),
    };
    let mut account = told.unwrap_or(account);
    let output = account.take_output();
    let (files, rejects) = account.into_files();
    let version = done.version;
    let mut report = report(load.request, &done);
    if let Some(output) = output {
        output.commit().map_err(|error| published_without_rejects(version, &error))?;
    }
    report.files = files;
    report.rejects = rejects;
    of_load.into_iter().for_each(|told| put_told(&mut report, told));
    report.partitions = partitions;
    report.network.get_or_insert_default().partitions_known = known.len();
    clock.add(Step::Sort, chooser.sorting_ns());
    report.set_steps(&clock);
    report.placement = Some(chooser.into_report(load.request.schema.columns()));
    Ok(Some(report))
}

/// Tells the records that the server asks for, until the load is published; with the account of what was told last.
fn settle(
    going: &Going<'_>,
    remote: &RemoteOptions,
    client: &Client,
    mut answer: Message,
    tell: impl Fn(&Conflicts) -> Result<Account>,
) -> Result<(Done, Option<Account>)> {
    let mut told = None;
    while answer.kind == CONFLICTS {
        let conflicts = Conflicts::decode(&answer.bytes)?;
        told = match conflicts.count() {
            // Others changed the table, and now all rows fit.
            0 => None,
            _ => Some(tell(&conflicts)?),
        };
        going.check_inputs(remote)?;
        client.push(Message::new(SETTLE, Vec::new()))?;
        answer = wait_for(client, &[DONE, CONFLICTS], WORK_TIMEOUT, &going.hooks.cancel)?;
    }
    Ok((Done::decode(&answer.bytes)?, told))
}

/// Sends the text of columns that became text, for the partitions before they did. The other columns are not parsed
/// again if no record was rejected.
fn send_reread(
    going: &Going<'_>,
    (remote, policy): (&RemoteOptions, &'static dyn Policy),
    client: &Client,
    welcome: &Welcome,
    clean: bool,
    totals: &mut Totals,
) -> std::result::Result<(), Stop> {
    let request = going.request_to_reread(welcome.reread_partitions, clean)?;
    let hooks = going.hooks.of_part();
    let load = Load { request: &request, hooks: &hooks, ..going.load() };
    let numbers = REREAD_FROM..REREAD_FROM.saturating_add(welcome.reread_partitions);
    let known = leading(welcome, REREAD_FROM);
    let durable = welcome.parts.iter().map(|(n, _)| *n);
    let chooser = Chooser::new(policy, load.resources.threads, None, Sorts::No);
    let sender = Sender::new(client, &chooser, numbers, durable, false).after(&known);
    send(load, client, &sender, 0, totals)?;
    Ok(going.check_inputs(remote)?)
}

/// The accounts of partitions from a number on, up to the first that is not durable.
fn leading(welcome: &Welcome, from: u32) -> Vec<PartitionAccount> {
    let parts = welcome.parts.iter().filter(|(number, _)| *number >= from);
    let in_order = parts.zip(from..).take_while(|((number, _), at)| number == at);
    in_order.map(|((_, account), _)| account.clone()).collect()
}

/// Runs the pipeline, and waits until all of its partitions are durable.
fn send(
    load: Load<'_>,
    client: &Client,
    sender: &Sender<'_>,
    pass: usize,
    totals: &mut Totals,
) -> std::result::Result<(Loaded, StepClock), Stop> {
    // Tells the pipeline that the link is broken; the user's own flag is looked at too.
    let linked = Hooks { cancel: std::sync::Arc::default(), ..load.hooks.clone() };
    let cancel = &load.hooks.cancel;
    let load = Load { hooks: &linked, ..load };
    let ended = AtomicBool::new(false);
    let (ran, listened) = std::thread::scope(|scope| {
        let end = AtEnd::new(|| ended.store(true, Ordering::Release));
        let listener = scope.spawn(|| {
            // Nobody waits for what is not heard any more.
            let _end = AtEnd::new(|| {
                linked.cancel.store(true, Ordering::Relaxed);
                sender.end();
            });
            listen(client, sender, &ended, cancel)
        });
        let way =
            way_of(load.request, sender.takes_wider() && !load.request.has_rows_by_value(), pass);
        let ran = run_once(load, sender, way);
        match &ran {
            Ok((loaded, _)) => wait_durable(sender, loaded.partitions, &linked.cancel),
            Err(Stop::Widen(_)) if sender.takes_wider() => {
                wait_durable(sender, sender.sealed_count(), &linked.cancel);
            }
            Err(_) => {}
        }
        drop(end);
        let listened = listener.join().unwrap_or_else(|_| Err(thread_failed()));
        (ran, listened)
    });
    totals.partitions = totals.partitions.max(sender.durable());
    match (ran, listened) {
        // What is wrong with the data says more than that the link ended then.
        (Err(stop @ Stop::Widen(_)), _) => Err(stop),
        (Err(Stop::Failed(error @ (Error::Input { .. } | Error::Invalid(_)))), _) => {
            Err(error.into())
        }
        (_, Err(error)) => Err(error.into()),
        (Err(stop), _) => Err(stop),
        (Ok(done), Ok(())) if sender.has_all(done.0.partitions) => Ok(done),
        (Ok(_), Ok(())) => Err(not_in_time().into()),
    }
}

/// Takes what the server says until the load has ended.
pub(super) fn listen(
    client: &Client,
    sender: &Sender<'_>,
    ended: &AtomicBool,
    cancel: &AtomicBool,
) -> Result<()> {
    while !ended.load(Ordering::Acquire) {
        if cancel.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        let Some(message) = client.receive(POLL)? else { continue };
        match message.kind {
            SEALED => sender.sealed(ByteReader::new(&message.bytes).varint_u32()?),
            PARSED => sender.parsed(Parsed::decode(&message.bytes)?),
            other => return Err(Error::Corrupt(format!("the server says {other} unasked"))),
        }
    }
    Ok(())
}

pub(super) fn wait_durable(sender: &Sender<'_>, partitions: usize, cancel: &AtomicBool) {
    let until = Instant::now() + WORK_TIMEOUT;
    while !sender.has_all(partitions) && !cancel.load(Ordering::Relaxed) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(super) fn not_in_time() -> Error {
    Error::Unavailable("the server did not make the load durable in time".into())
}

pub(super) fn stopped() -> Error {
    Error::Unavailable("the load was stopped; the same load goes on where it ended".into())
}

/// The next message of one of these kinds; others are passed over.
pub(super) fn wait_for(
    client: &Client,
    kinds: &[u8],
    timeout: Duration,
    cancel: &AtomicBool,
) -> Result<Message> {
    let until = Instant::now() + timeout;
    while Instant::now() < until {
        if cancel.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        if let Some(message) = client.receive(POLL)?
            && kinds.contains(&message.kind)
        {
            return Ok(message);
        }
    }
    Err(Error::Unavailable(format!("the server did not answer within {} s", timeout.as_secs())))
}

/// What the server says of a load that it has.
pub(super) fn report(request: &LoadRequest, done: &Done) -> LoadReport {
    let earlier = || Earlier { rows: done.rows, rejects: done.rejects, held: done.note.clone() };
    let merged = if done.already { String::new() } else { done.note.clone() };
    let network = NetworkReport {
        server_cpu: Duration::from_nanos(done.cpu_ns),
        server_peak_memory: done.peak_memory,
        ..NetworkReport::default()
    };
    let columns = request.schema.columns().to_vec();
    LoadReport {
        id: Some(LoadId::from_u128(done.id)),
        bytes_stored: done.bytes_stored,
        published: (done.version > 0 || done.shares.is_none()).then_some(Published {
            version: done.version,
            segments: done.segments,
            merge: Merged::AtServer(merged),
        }),
        shares: done.shares.clone(),
        keys: done.keys,
        network: Some(network),
        placement: Some(PlacementReport { columns, ..PlacementReport::default() }),
        earlier: done.already.then(earlier),
        ..LoadReport::new(request.table.clone())
    }
}

/// Asks a server one question over a connection of its own; the answer must be of this kind.
pub(super) fn ask(remote: &RemoteOptions, question: Message, answer: u8) -> Result<Message> {
    let options =
        ClientOptions { compression: WireCompression::None, ..client_options(remote, usize::MAX) };
    let mut client = Client::new(options)?;
    client.open(question)?;
    wait_for(&client, &[answer], ANSWER_TIMEOUT, &AtomicBool::new(false))
}

/// The columns of a table of a server; `None` when there is no such table.
///
/// # Errors
/// `Unavailable` when the server cannot be reached, `Refused` when it does not tell.
pub fn table_schema(remote: &RemoteOptions, table: &str) -> Result<Option<Schema>> {
    let answer = ask(remote, Message::new(DESCRIBE, table.as_bytes().to_vec()), TABLE)?;
    let sql = String::from_utf8_lossy(&answer.bytes);
    if sql.is_empty() {
        return Ok(None);
    }
    parse_create_table(&sql).map(|(_, schema)| Some(schema))
}

/// The loads of a server.
///
/// # Errors
/// As [`table_schema`].
pub fn list_loads(remote: &RemoteOptions) -> Result<LoadList> {
    read_statuses(&ask(remote, Message::new(LIST, Vec::new()), LOADS)?.bytes)
}

/// Drops an unfinished load of a server; gives those that are left.
///
/// # Errors
/// As [`table_schema`]; `Invalid` when there is no such load.
pub fn abort_load(remote: &RemoteOptions, id: LoadId) -> Result<LoadList> {
    let id = id.as_u128().to_le_bytes().to_vec();
    read_statuses(&ask(remote, Message::new(ABORT, id), LOADS)?.bytes)
}
