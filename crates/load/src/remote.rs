//! Loads into a server: the client's part.
//!
//! ```text
//!   chunk -> fragment -> placed columns: pages    \
//!                        the others: plain values  > outbox -> connections -> server
//!            partition -> coded columns: pages    /
//! ```
//!
//! The file is the memory of what was sent: nothing is kept until it is acknowledged. When a connection is
//! cut or the server goes away, the load begins again with the same description, the server tells which
//! partitions are durable, and the client goes on behind them.
//!
//! Memory: two partitions, the outbox, and what is under way on the connections.

mod address;
mod choose;
mod cluster;
mod conflicts;
mod fingerprint;
mod going;
mod sender;
mod session;
mod sorting;
mod texts_sent;
mod whole_inputs;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use coload_cluster::Map;
use coload_link::{ClientTls, WireCompression};
use coload_store::OnConflict;
use coload_threads::Started;
use coload_transform::{Adaptive, Policy};
use coload_types::{Error, Result};
use coload_wire::{Again, LoadStatus, PROGRAM_AT_SERVER, RejectLimit, SHARE_AT_SERVER};

use crate::hooks::Hooks;
use crate::load::{Destination, Load};
use crate::opened::OpenedStream;
use crate::pipeline::Stop;
use crate::report::LoadReport;
use crate::request::LoadRequest;

pub use address::Address;
pub use cluster::{Gone, Leaves, cluster_map, holds_for};
pub use fingerprint::describe_as;
use going::Going;
pub use session::{abort_load, is_final_error, list_loads, table_schema};

/// First pause before a load is tried again, doubled each time.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
/// Longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Who does the work of a load into a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteWork {
    /// Both: the client parses, and the policy says who transforms which column.
    Shared(&'static dyn Policy),
    /// The server, while the inputs arrive.
    Pipe,
    /// The server, when the inputs have arrived.
    Seq,
}

impl Default for RemoteWork {
    fn default() -> Self {
        RemoteWork::Shared(&Adaptive)
    }
}

/// A server and how to load into it.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// Host and port of the server, as `host:port`.
    pub address: String,
    /// Value of the header `authorization`, if the server wants one.
    pub authorization: Option<String>,
    /// TLS; without it the connection is open to read.
    pub tls: Option<ClientTls>,
    /// Who does the work of the load.
    pub work: RemoteWork,
    /// Share of the fragments that go as text, whatever is measured; for tests and measurements.
    pub text_share: Option<f64>,
    /// What is compressed on the wire.
    pub compression: WireCompression,
    /// Connections over which the blocks of a load are sent.
    pub connections: usize,
    /// Bytes that may wait to be sent.
    pub outbox_bytes: usize,
    /// Whether a load that is published is loaded once more.
    pub again: Again,
    /// How long to try again without getting on, before giving up.
    pub patience: Duration,
}

impl RemoteOptions {
    /// Defaults for everything but the address.
    pub fn new(address: impl Into<String>) -> Self {
        RemoteOptions {
            address: address.into(),
            authorization: None,
            tls: None,
            work: RemoteWork::default(),
            text_share: None,
            compression: WireCompression::default(),
            connections: 4,
            outbox_bytes: 64 << 20,
            again: Again::No,
            patience: Duration::from_secs(120),
        }
    }
}

/// Into a table of a server. When the server or the network goes away, the load is tried again, and goes on where the
/// server's journal ends, as long as it gets on at all; then the table is as it was, and the same load goes on later.
impl Destination for RemoteOptions {
    fn take(&self, load: Load<'_>) -> Result<LoadReport> {
        let Load { request, resources, hooks } = load;
        check_rejecting(request)?;
        request.delete_where()?;
        let whole = matches!(self.work, RemoteWork::Pipe | RemoteWork::Seq);
        if whole && request.program.is_some() {
            return Err(Error::Invalid(PROGRAM_AT_SERVER.into()));
        }
        if whole && request.share.is_some() {
            return Err(Error::Invalid(SHARE_AT_SERVER.into()));
        }
        if whole && let Some(form) = request.form.typed_name() {
            return Err(Error::Invalid(format!(
                "--placement pipe and seq send text that the server reads, and the inputs are {form} (try another \
                 --placement)"
            )));
        }
        let not_widened = check_widening(request, self)?;
        let started = Started::now();
        let mut totals = session::Totals::default();
        let mut going = Going::new(request.clone(), (resources, hooks), self, 0)?;
        let mut widened = Vec::new();
        for pass in 1.. {
            match load_pass(&mut going, self, &mut totals) {
                Ok(Loaded::Elsewhere(map)) => return cluster::take(load, self, &map, &started),
                Ok(Loaded::Here(mut report)) => {
                    widened.append(&mut going.widened);
                    report.set_costs(&started);
                    return Ok(LoadReport { widened, ..*report });
                }
                Err(Stop::Failed(Error::Input { place, text })) => {
                    let why =
                        not_widened.map(|why| format!("; the types were inferred, and {why}"));
                    return Err(Error::Input { place, text: text + &why.unwrap_or_default() });
                }
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Widen(widening)) => {
                    widened.append(&mut going.widened);
                    let mut wider = going.request;
                    widened.extend(widening.widen(&mut wider, &[])?);
                    going = Going::new(wider, (resources, hooks), self, pass)?;
                }
            }
        }
        Err(Error::Limit(
            "the columns' types do not end to become wider: give --columns".to_owned(),
        ))
    }
}

/// Refuses to tell records that cannot be read again.
fn check_rejecting(request: &LoadRequest) -> Result<()> {
    if request.on_conflict != OnConflict::Reject {
        return Ok(());
    }
    match request.inputs.read_once() {
        Some(input) => Err(Error::Invalid(format!(
            "{}: --on-conflict reject reads the records again whose keys are there, and these can be read only once (ignore leaves \
             them out and counts them)",
            input.name
        ))),
        None => Ok(()),
    }
}

/// Why inferred types do not become wider, and what to do.
const WHOLE_NOT_WIDENED: &str = "--placement pipe and seq do not widen them (give --columns or --schema, or take \
                                 another --placement)";
const STREAM_NOT_WIDENED: &str = "a stream cannot be sent again with wider ones (give --columns or --schema, or load \
                                  a file)";

/// Why inferred types do not become wider during the load, if so.
///
/// # Errors
/// `Invalid` when records would be set aside then which another load takes.
fn check_widening(request: &LoadRequest, remote: &RemoteOptions) -> Result<Option<&'static str>> {
    let whole = matches!(remote.work, RemoteWork::Pipe | RemoteWork::Seq);
    let is_whole = |stream: &OpenedStream| stream.is_sampled_whole();
    let why = if request.inferred.is_none() {
        return Ok(None);
    } else if whole {
        WHOLE_NOT_WIDENED
    } else if request.inputs.read_once().is_some()
        && !request.stream.as_ref().is_some_and(is_whole)
        && request.read_schema().columns().iter().any(|column| !column.data_type.is_text())
    {
        STREAM_NOT_WIDENED
    } else {
        return Ok(None);
    };
    if request.max_rejects != RejectLimit::Count(0) {
        return Err(Error::Invalid(format!(
            "rejects are allowed, the columns' types are inferred, and {why}"
        )));
    }
    Ok(Some(why))
}

/// Where a load is loaded.
enum Loaded {
    /// At the server that was asked.
    Here(Box<LoadReport>),
    /// At the leaves of a cluster of which it is a node.
    Elsewhere(Box<Map>),
}

/// Loads from the first byte on, however many attempts it takes.
fn load_pass(
    going: &mut Going<'_>,
    remote: &RemoteOptions,
    totals: &mut session::Totals,
) -> std::result::Result<Loaded, Stop> {
    let mut pause = PAUSE_FIRST;
    let mut got_on = Instant::now();
    totals.partitions = 0;
    loop {
        let before = totals.partitions;
        match session::attempt(going, remote, totals) {
            Ok(Some(report)) => return Ok(Loaded::Here(Box::new(report))),
            Ok(None) if let Some(map) = going.cluster.take() => return Ok(Loaded::Elsewhere(map)),
            Ok(None) => (pause, got_on) = (PAUSE_FIRST, Instant::now()),
            // Inputs that are read once are still whole as long as nothing was read.
            Err(Stop::Failed(Error::Unavailable(text)))
                if going.description.salt == 0 || !totals.has_begun =>
            {
                if going.hooks.is_cancelled() {
                    return Err(Error::Unavailable(text).into());
                }
                if totals.partitions > before {
                    (pause, got_on) = (PAUSE_FIRST, Instant::now());
                }
                if got_on.elapsed() + pause > remote.patience {
                    return Err(Error::Unavailable(format!(
                        "{text}; gave up after {} attempts; the same load goes on where it ended",
                        totals.attempts
                    ))
                    .into());
                }
                wait(pause, going.hooks);
                pause = (pause * 2).min(PAUSE_MAX);
            }
            Err(stop) => return Err(stop),
        }
    }
}

fn wait(pause: Duration, hooks: &Hooks) {
    let until = Instant::now() + pause;
    while Instant::now() < until && !hooks.is_cancelled() {
        std::thread::sleep(Duration::from_millis(50).min(pause));
    }
}

/// Asks a server something until it answers, as long as the patience of a load lasts.
///
/// # Errors
/// `Unavailable` when it did not answer in time, or `cancel` was set; at once what it answers.
pub fn ask_patiently<T>(
    remote: &RemoteOptions,
    cancel: &AtomicBool,
    mut ask: impl FnMut() -> Result<T>,
) -> Result<T> {
    let (started, mut pause) = (Instant::now(), PAUSE_FIRST);
    loop {
        match ask() {
            Err(Error::Unavailable(text)) => {
                if started.elapsed() + pause > remote.patience || cancel.load(Ordering::Relaxed) {
                    return Err(Error::Unavailable(text));
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(PAUSE_MAX);
            }
            answered => return answered,
        }
    }
}

/// What `coload loads` shows.
pub type LoadList = Vec<LoadStatus>;
