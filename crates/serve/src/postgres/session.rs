//! A session: its statements, portals and transaction.
//!
//! ```text
//!   Query                      --> each statement --> columns, rows, what was done;  ready
//!   Parse, Bind, Execute, Sync --> the same in steps, rows some at a time;           ready at Sync
//! ```
//!
//! Each statement is a transaction of its own, as everywhere in Coload. A block of BEGIN and COMMIT is taken, as most drivers
//! send them; a client that writes within one is warned, and a ROLLBACK that would have to take rows back is an error: nobody is
//! told that something is undone which is not.
//!
//! After an error between two Syncs everything up to the next Sync is passed over.

mod commands;
mod extended;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema as ArrowSchema;
use tokio::sync::watch;
use tokio::time::Instant;

use super::command::{Command, first_word, parse, without_blanks};
use super::fault::{Fault, code};
use super::gathered::Gathered;
use super::kinds::Column;
use super::message::{Formats, Message};
use super::questions;
use super::reply::Standing;
use super::rows::{Rows, Said, passed, too_long};
use super::settings::{Settings, is_setting};
use super::wire::{Ended, Wire};
use crate::flight::{HeldBytes, Running, Service, Visit, cancelled, wire_schema};
use crate::rights::Rights;
use crate::statement::{Parameters, Planned, split_statements};

/// Statements and portals of a session.
const NAMES_MAX: usize = 1_024;

/// A session of a client.
pub(super) struct Session {
    pub wire: Wire,
    pub service: Service,
    pub rights: Rights,
    pub visit: Arc<Visit>,
    pub settings: Settings,
    pub key: [u8; 8],
    standing: Standing,
    transaction: Transaction,
    statements: HashMap<String, Arc<Prepared>>,
    portals: HashMap<String, Portal>,
    gathered: Option<Gathered>,
    held: HeldBytes,
}

/// What is known of the block that is open.
#[derive(Debug, Default)]
struct Transaction {
    is_read_only: bool,
    /// Statements of it that have written, which nobody can take back.
    writes: usize,
    /// Savepoints, and how many statements had written when they were made.
    savepoints: Vec<(String, usize)>,
}

/// A statement that was looked at.
pub(super) struct Prepared {
    pub text: String,
    what: What,
    /// Numbers of the types of its parameters.
    types: Vec<u32>,
    /// The types that the statement asks for.
    asked: ArrowSchema,
    columns: Option<Vec<Column>>,
    _held: HeldBytes,
}

enum What {
    Nothing,
    Session(Command),
    Engine,
    /// One of the engine that inserts a row each time.
    InsertOfOne,
}

/// A statement with values.
struct Portal {
    prepared: Arc<Prepared>,
    formats: Formats,
    state: State,
    /// Whether it outlives its transaction.
    is_held: bool,
    _held: HeldBytes,
}

impl Prepared {
    /// A statement without parameters and columns, as far as is known.
    fn of(what: What, text: String, held: HeldBytes) -> Self {
        let (types, asked) = (Vec::new(), ArrowSchema::empty());
        Prepared { text, what, types, asked, columns: None, _held: held }
    }
}

enum State {
    Bound(Parameters),
    Open(Rows, &'static str),
    Done,
}

/// What a statement gives.
enum Given {
    Rows(Rows, &'static str),
    /// What it has done.
    Done(String),
    /// The next rows of a cursor.
    Fetched {
        cursor: String,
        rows_max: Option<u64>,
    },
}

impl Session {
    pub fn new(
        wire: Wire,
        service: Service,
        rights: Rights,
        settings: Settings,
        visit: Arc<Visit>,
        key: [u8; 8],
    ) -> Self {
        let held = service.held().of(rights.user());
        Session {
            wire,
            service,
            rights,
            visit,
            settings,
            key,
            standing: Standing::Idle,
            transaction: Transaction::default(),
            statements: HashMap::new(),
            portals: HashMap::new(),
            gathered: None,
            held,
        }
    }

    /// Serves until the client goes. What is fatal is told.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        for (name, value) in self.settings.told() {
            self.wire.replies.setting(name, value);
        }
        self.wire.replies.cancel_key(self.key);
        self.wire.replies.ready(self.standing);
        let mut passes_over = self.wire.send().await.is_err();
        loop {
            let ended = match self.next(&mut stop).await {
                Ok(message) => self.take(message, &mut passes_over).await,
                Err(ended) => Err(ended),
            };
            match ended {
                Ok(true) => {}
                Ok(false) | Err(Ended::Gone) => return,
                Err(Ended::Told(fault)) => {
                    self.wire.replies.fault(&fault);
                    return self.wire.close().await;
                }
            }
        }
    }

    /// The next message, when what was said is on its way. A server that stops waits for no more of them.
    async fn next(&mut self, stop: &mut watch::Receiver<bool>) -> Result<Message, Ended> {
        // What is said of rows that are kept may be taken back.
        if self.gathered.is_none() {
            self.wire.send_some().await?;
        }
        tokio::select! {
            message = self.wire.read() => message,
            _ = stop.wait_for(|stop| *stop) => Err(Fault::fatal(code::STOPPED, "the server stops").into()),
        }
    }

    /// Does what a message asks for; whether the session goes on.
    async fn take(&mut self, message: Message, passes_over: &mut bool) -> Result<bool, Ended> {
        let visit = Arc::clone(&self.visit);
        let _call = visit.call();
        let done = match message {
            Message::Terminate => return Ok(false),
            // What was sent of a COPY before its client knew that it had failed.
            Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => return Ok(true),
            Message::Password(_) => {
                Err(Fault::fatal(code::PROTOCOL, "nobody asked for a password").into())
            }
            Message::Query(text) => {
                *passes_over = false;
                let done = self.query(&text).await;
                self.tell(done)?;
                self.ready();
                self.wire.send().await?;
                return Ok(true);
            }
            Message::Sync => {
                let done = if *passes_over { Ok(()) } else { self.flush_gathered().await };
                *passes_over = false;
                self.tell(done)?;
                self.ready();
                self.wire.send().await?;
                return Ok(true);
            }
            Message::Flush if !*passes_over => match self.flush_gathered().await {
                Ok(()) => self.wire.send().await.map_err(Ended::from),
                failed => failed,
            },
            _ if *passes_over => return Ok(true),
            other => self.step(other).await,
        };
        if done.is_err() {
            self.tell(done)?;
            // Some clients wait for what was wrong before they send a Sync.
            self.wire.send().await?;
            *passes_over = true;
        }
        Ok(true)
    }

    /// Tells the client what went wrong, unless the connection ends with it.
    fn tell(&mut self, done: Result<(), Ended>) -> Result<(), Ended> {
        match done {
            Ok(()) => Ok(()),
            Err(Ended::Told(fault)) if !fault.is_fatal => {
                self.gathered = None;
                self.wire.replies.fault(&fault);
                if self.standing == Standing::InTransaction {
                    self.standing = Standing::Failed;
                }
                Ok(())
            }
            Err(ended) => Err(ended),
        }
    }

    fn ready(&mut self) {
        if self.standing == Standing::Idle {
            // Portals live as long as their transaction.
            self.portals.retain(|_, portal| portal.is_held);
        }
        self.wire.replies.ready(self.standing);
    }

    /// Runs the statements of a text, one after the other, up to one that fails.
    async fn query(&mut self, text: &str) -> Result<(), Ended> {
        let found = split_statements(text);
        let all = found.complete.into_iter().chain([found.rest]);
        let statements: Vec<String> = all.filter(|text| !without_blanks(text).is_empty()).collect();
        if statements.is_empty() {
            self.wire.replies.nothing_to_run();
        }
        for text in statements {
            let prepared = match parse(&text, is_setting)? {
                Some(command) => self.command(&command, &text).await?,
                None => self.start(&text, Parameters::default(), &Formats::default()).await?,
            };
            match prepared {
                Given::Rows(mut rows, word) => {
                    self.wire.replies.columns(rows.columns());
                    let (sent, _) = rows.send(&mut self.wire, None, Said::Rows).await?;
                    self.wire.replies.done(&format!("{word} {sent}"));
                }
                Given::Done(tag) => self.wire.replies.done(&tag),
                Given::Fetched { cursor, rows_max } => {
                    let columns = self.columns_of_cursor(&cursor).unwrap_or_default();
                    self.wire.replies.columns(&columns);
                    self.send_fetched(&cursor, rows_max).await?;
                }
            }
        }
        Ok(())
    }

    /// Plans, as far as the session lets it run.
    fn plan(
        &self,
        text: &str,
        values: Parameters,
    ) -> impl Future<Output = Result<Planned, Fault>> + use<> {
        let text = questions::understood(text).into_owned();
        let (service, rights) = (self.service.clone(), self.rights.clone());
        async move { service.plan(&rights, &text, values).await.map_err(Fault::from) }
    }

    /// Refuses what comes behind an error of the same transaction.
    fn check_standing(&self) -> Result<(), Fault> {
        match self.standing {
            Standing::Failed => Err(Fault::error(
                code::FAILED_TRANSACTION,
                "a statement of this transaction has failed: nothing runs until ROLLBACK",
            )),
            Standing::Idle | Standing::InTransaction => Ok(()),
        }
    }

    fn check_writing(&self) -> Result<(), Fault> {
        match self.settings.is_read_only() || self.transaction.is_read_only {
            true => Err(Fault::error(code::READ_ONLY, "the transaction may only read")),
            false => Ok(()),
        }
    }

    /// Notes that something was written, and says once in a transaction what that means.
    fn wrote(&mut self) {
        if self.standing != Standing::InTransaction {
            return;
        }
        self.transaction.writes += 1;
        if self.transaction.writes == 1 {
            self.wire.replies.warning(
                "each statement is a transaction of its own: what was written is visible now, and no ROLLBACK takes it back",
            );
        }
    }

    /// Starts a statement of the engine.
    async fn start(
        &mut self,
        text: &str,
        values: Parameters,
        formats: &Formats,
    ) -> Result<Given, Ended> {
        self.check_standing()?;
        let planned = self.plan(text, values).await?;
        if planned.writes() {
            self.check_writing()?;
            let counts = planned.counts_rows();
            let (service, rights, own) =
                (self.service.clone(), self.rights.clone(), text.to_owned());
            let work = async move { service.update(&rights, &own, planned).await };
            let rows = self.until_cancelled(work).await?;
            self.wrote();
            return Ok(Given::Done(tag_of(text, counts.then_some(rows))));
        }
        let columns = columns_of(&planned, formats);
        formats.check(columns.len())?;
        Ok(Given::Rows(self.open(text, planned, columns).await?, word_of(text)))
    }

    /// When a statement that begins now has run for too long.
    fn until(&self) -> Option<Instant> {
        self.settings.statement_time().map(|time| Instant::now() + time)
    }

    /// Starts a statement that answers rows.
    async fn open(
        &mut self,
        text: &str,
        planned: Planned,
        columns: Vec<Column>,
    ) -> Result<Rows, Ended> {
        let until = self.until();
        let place = self.service.running(&self.key, &self.rights);
        let turn = self.service.turn(&self.rights).await.map_err(Fault::from)?;
        let user = self.rights.user().to_owned();
        let running = Running { planned, text: text.to_owned(), user, turn, place };
        let rows = self.service.rows(running).map_err(Fault::from)?;
        Ok(Rows::of_statement(rows, columns, until))
    }

    /// Waits for something that writes, until it is cancelled, takes too long, or nobody waits for it any more.
    pub(super) async fn until_cancelled(
        &mut self,
        work: impl Future<Output = Result<i64, tonic::Status>>,
    ) -> Result<i64, Ended> {
        let mut place = self.service.running(&self.key, &self.rights);
        let until = self.until();
        tokio::select! {
            done = work => done.map_err(|status| Fault::from(status).into()),
            () = place.cancelled() => Err(Fault::from(cancelled()).into()),
            () = passed(until) => Err(too_long().into()),
            () = self.wire.gone() => Err(Ended::Gone),
        }
    }
}

fn too_many(what: &str, max: usize) -> Fault {
    Fault::error(
        code::LIMIT,
        format!("a session has at most {max} {what}: close those that are not needed"),
    )
}

fn no_portal(name: &str) -> Fault {
    Fault::error(code::NO_PORTAL, format!("no portal or cursor is open under the name {name:?}"))
}

fn columns_of(planned: &Planned, formats: &Formats) -> Vec<Column> {
    let schema = wire_schema(planned.schema());
    let columns = schema.fields().iter().map(|field| Column::of(field)).collect();
    with_formats(columns, formats)
}

fn with_formats(mut columns: Vec<Column>, formats: &Formats) -> Vec<Column> {
    columns.iter_mut().enumerate().for_each(|(index, column)| column.format = formats.of(index));
    columns
}

/// What a query is called when it is done.
fn word_of(text: &str) -> &'static str {
    match &*first_word(text) {
        "SHOW" => "SHOW",
        "EXPLAIN" => "EXPLAIN",
        _ => "SELECT",
    }
}

/// What a statement that writes is called when it is done.
fn tag_of(text: &str, rows: Option<i64>) -> String {
    let word = first_word(text);
    match (&*word, rows) {
        ("INSERT", Some(rows)) => format!("INSERT 0 {rows}"),
        ("CREATE", Some(rows)) => format!("SELECT {rows}"),
        (_, Some(rows)) => format!("{word} {rows}"),
        ("ALTER" | "CREATE" | "DROP" | "TRUNCATE", None) => {
            let what = super::command::behind_word(text, &word).map(first_word).unwrap_or_default();
            let what = if what == "VIEW" { "VIEW" } else { "TABLE" };
            format!("{word} {what}")
        }
        (_, None) => word,
    }
}
