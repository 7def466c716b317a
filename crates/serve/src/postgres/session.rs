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

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema as ArrowSchema};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::command::{Command, first_word, parse};
use super::copy::{CopyIn, CopyOut};
use super::fault::{Fault, code};
use super::feed;
use super::gathered::Gathered;
use super::message::{Bind, Formats, Message, Named, Parse};
use super::parameters::{types_of, values_of};
use super::reply::Standing;
use super::rows::{More, Rows, Said, too_long};
use super::settings::{Settings, is_setting};
use super::values::{Column, Kind, Scalar};
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
}

/// A statement with values.
struct Portal {
    prepared: Arc<Prepared>,
    formats: Formats,
    state: State,
    /// Whether it outlives its transaction.
    is_held: bool,
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
        let rest = Some(found.rest).filter(|rest| !first_word(rest).is_empty() || has_words(rest));
        let statements: Vec<String> = found.complete.into_iter().chain(rest).collect();
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

    /// A step of the extended protocol.
    async fn step(&mut self, message: Message) -> Result<(), Ended> {
        match message {
            Message::Parse(parse) => self.parse(parse).await,
            Message::Bind(bind) => self.bind(bind),
            Message::Describe(named) => self.describe(&named),
            Message::Execute { portal, rows_max } => self.execute(&portal, rows_max).await,
            Message::Close(Named::Statement(name)) => {
                self.statements.remove(&name);
                self.wire.replies.closed();
                Ok(())
            }
            Message::Close(Named::Portal(name)) => {
                self.portals.remove(&name);
                self.wire.replies.closed();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn parse(&mut self, asked: Parse) -> Result<(), Ended> {
        let Parse { name, text, types } = asked;
        if !name.is_empty() && self.statements.contains_key(&name) {
            return Err(Fault::error(
                code::HAS_STATEMENT,
                format!("statement {name:?} is prepared already"),
            )
            .into());
        }
        if self.statements.len() >= NAMES_MAX {
            return Err(too_many("prepared statements", NAMES_MAX).into());
        }
        let mut held = self.held.another();
        held.add(text.len()).map_err(Fault::from)?;
        let mut prepared = Prepared {
            what: What::Engine,
            types: Vec::new(),
            asked: ArrowSchema::empty(),
            columns: None,
            text,
            _held: held,
        };
        if !has_words(&prepared.text) {
            prepared.what = What::Nothing;
        } else if let Some(command) = parse(&prepared.text, is_setting)? {
            prepared.what = What::Session(command);
        } else {
            self.check_standing()?;
            let planned = self.plan(&prepared.text, Parameters::default()).await?;
            prepared.types = types_of(&types, planned.parameters())?;
            prepared.asked = planned.parameters().clone();
            prepared.columns =
                (!planned.writes()).then(|| columns_of(&planned, &Formats::default()));
        }
        self.statements.insert(name, Arc::new(prepared));
        self.wire.replies.parsed();
        Ok(())
    }

    fn bind(&mut self, bind: Bind) -> Result<(), Ended> {
        let prepared = self.statement(&bind.statement)?;
        if !bind.portal.is_empty() && self.portals.contains_key(&bind.portal) {
            return Err(Fault::error(
                code::HAS_PORTAL,
                format!("portal {:?} is open already", bind.portal),
            )
            .into());
        }
        if self.portals.len() >= NAMES_MAX {
            return Err(too_many("portals", NAMES_MAX).into());
        }
        let values = values_of(&bind, &prepared.types, &prepared.asked)?;
        if let Some(columns) = &prepared.columns {
            bind.answer_formats.check(columns.len())?;
        }
        let state = State::Bound(values);
        let portal = Portal { prepared, formats: bind.answer_formats, state, is_held: false };
        self.portals.insert(bind.portal, portal);
        self.wire.replies.bound();
        Ok(())
    }

    fn statement(&self, name: &str) -> Result<Arc<Prepared>, Fault> {
        self.statements.get(name).cloned().ok_or_else(|| {
            Fault::error(
                code::NO_STATEMENT,
                format!("no statement is prepared under the name {name:?}"),
            )
        })
    }

    fn describe(&mut self, named: &Named) -> Result<(), Ended> {
        let (prepared, formats) = match named {
            Named::Statement(name) => {
                let prepared = self.statement(name)?;
                self.wire.replies.parameters(&prepared.types);
                (prepared, Formats::default())
            }
            Named::Portal(name) => {
                let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
                (Arc::clone(&portal.prepared), portal.formats.clone())
            }
        };
        let columns = match &prepared.what {
            What::Nothing => None,
            What::Engine => prepared.columns.clone(),
            What::Session(command) => self.columns_of_command(command),
        };
        match columns {
            Some(columns) => self.wire.replies.columns(&with_formats(columns, &formats)),
            None => self.wire.replies.no_columns(),
        }
        Ok(())
    }

    fn columns_of_command(&self, command: &Command) -> Option<Vec<Column>> {
        match command {
            Command::Show(name) => Some(vec![text_column(name)]),
            Command::ShowAll => Some(["name", "setting"].map(text_column).to_vec()),
            Command::Fetch { name, moves: false, .. } => self.columns_of_cursor(name),
            _ => None,
        }
    }

    fn columns_of_cursor(&self, name: &str) -> Option<Vec<Column>> {
        match &self.portals.get(name)?.state {
            State::Open(rows, _) => Some(rows.columns().to_vec()),
            _ => None,
        }
    }

    async fn execute(&mut self, name: &str, rows_max: u32) -> Result<(), Ended> {
        let mut portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        let rows_max = (rows_max > 0).then_some(u64::from(rows_max));
        let state = std::mem::replace(&mut portal.state, State::Done);
        let given = match (state, &portal.prepared.what) {
            (_, What::Nothing) => {
                self.wire.replies.nothing_to_run();
                self.portals.insert(name.to_owned(), portal);
                return Ok(());
            }
            (State::Bound(values), What::Engine) => {
                let prepared = Arc::clone(&portal.prepared);
                if self.gather(&prepared, &values).await? {
                    return Ok(());
                }
                self.flush_gathered().await?;
                let given = self.start(&prepared.text, values, &portal.formats).await?;
                check_columns(&given, prepared.columns.as_deref())?;
                given
            }
            (State::Bound(_), What::Session(_)) => {
                self.flush_gathered().await?;
                let prepared = Arc::clone(&portal.prepared);
                let What::Session(command) = &prepared.what else { return Ok(()) };
                self.command(command, &prepared.text).await?
            }
            (State::Open(rows, word), _) => Given::Rows(rows, word),
            (State::Done, _) => {
                return Err(Fault::error(
                    code::NO_PORTAL,
                    format!("portal {name:?} has run to its end"),
                )
                .into());
            }
        };
        match given {
            Given::Done(tag) => self.wire.replies.done(&tag),
            Given::Fetched { cursor, rows_max } => self.send_fetched(&cursor, rows_max).await?,
            Given::Rows(mut rows, word) => {
                match rows.send(&mut self.wire, rows_max, Said::Rows).await? {
                    (_, More::Maybe) => {
                        portal.state = State::Open(rows, word);
                        self.wire.replies.suspended();
                    }
                    (sent, More::No) => self.wire.replies.done(&format!("{word} {sent}")),
                }
            }
        }
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    /// Keeps a row of an INSERT for when all of them are known; `false` when it is no such statement.
    async fn gather(
        &mut self,
        prepared: &Arc<Prepared>,
        values: &Parameters,
    ) -> Result<bool, Ended> {
        if !Gathered::takes(&prepared.text) || prepared.types.is_empty() {
            return Ok(false);
        }
        let fits = self.gathered.as_ref().is_some_and(|gathered| gathered.is_of(prepared));
        if !fits {
            self.flush_gathered().await?;
            self.check_standing()?;
            self.check_writing()?;
            let from = self.wire.replies.bytes.len();
            self.gathered = Some(Gathered::new(Arc::clone(prepared), from));
        }
        let Some(gathered) = &mut self.gathered else { return Ok(false) };
        let is_full = gathered.add(values);
        self.wire.replies.done("INSERT 0 1");
        if is_full {
            self.flush_gathered().await?;
        }
        Ok(true)
    }

    /// Writes the rows that were kept. What was said of them before is taken back when they cannot be written.
    async fn flush_gathered(&mut self) -> Result<(), Ended> {
        let Some(gathered) = self.gathered.take() else { return Ok(()) };
        let said_from = gathered.said_from;
        let rows = gathered.rows();
        let text = gathered.text().to_owned();
        let (service, rights) = (self.service.clone(), self.rights.clone());
        let written = match rows {
            Ok(rows) => {
                let work = async move { service.insert_batch(&rights, &text, rows).await };
                self.until_cancelled(work).await
            }
            Err(fault) => Err(fault.into()),
        };
        if let Err(Ended::Told(_)) = &written {
            self.wire.replies.bytes.truncate(said_from);
        }
        written.map(|_| self.wrote())
    }

    /// Plans, as far as the session lets it run.
    fn plan(
        &self,
        text: &str,
        values: Parameters,
    ) -> impl Future<Output = Result<Planned, Fault>> + use<> {
        let (service, rights, text) = (self.service.clone(), self.rights.clone(), text.to_owned());
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

    /// Starts a statement that answers rows.
    async fn open(
        &mut self,
        text: &str,
        planned: Planned,
        columns: Vec<Column>,
    ) -> Result<Rows, Ended> {
        let until = self.settings.statement_time().map(|time| Instant::now() + time);
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
        let until = self.settings.statement_time().map(|time| Instant::now() + time);
        let out_of_time = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => futures::future::pending().await,
            }
        };
        tokio::select! {
            done = work => done.map_err(|status| Fault::from(status).into()),
            () = place.cancelled() => Err(Fault::from(cancelled()).into()),
            () = out_of_time => Err(too_long().into()),
            () = self.wire.gone() => Err(Ended::Gone),
        }
    }

    /// Does what a statement asks of the session.
    async fn command(&mut self, command: &Command, text: &str) -> Result<Given, Ended> {
        if !matches!(command, Command::Commit | Command::Rollback | Command::RollbackTo(_)) {
            self.check_standing()?;
        }
        let done = |tag: &str| Ok(Given::Done(tag.to_owned()));
        match command {
            Command::Begin { is_read_only } => {
                if self.standing == Standing::InTransaction {
                    self.wire.replies.warning("there is a transaction in progress already");
                }
                self.standing = Standing::InTransaction;
                self.transaction.is_read_only = *is_read_only;
                done("BEGIN")
            }
            Command::Commit if self.standing != Standing::Failed => {
                self.end_transaction();
                done("COMMIT")
            }
            Command::Commit | Command::Rollback => {
                let writes = self.transaction.writes;
                self.end_transaction();
                undone(writes == 0)?;
                done("ROLLBACK")
            }
            Command::Savepoint(name) => {
                self.check_block("SAVEPOINT")?;
                if self.transaction.savepoints.len() >= NAMES_MAX {
                    return Err(too_many("savepoints", NAMES_MAX).into());
                }
                self.transaction.savepoints.push((name.clone(), self.transaction.writes));
                done("SAVEPOINT")
            }
            Command::Release(name) => {
                let at = self.savepoint(name)?;
                self.transaction.savepoints.truncate(at);
                done("RELEASE")
            }
            Command::RollbackTo(name) => {
                let at = self.savepoint(name)?;
                undone(self.transaction.savepoints[at].1 == self.transaction.writes)?;
                self.transaction.savepoints.truncate(at + 1);
                self.standing = Standing::InTransaction;
                done("ROLLBACK")
            }
            Command::Set(name, value) => {
                self.settings.set(name, value)?;
                self.tell_setting(name);
                done("SET")
            }
            Command::Reset(name) => {
                self.settings.get(name)?;
                self.settings.reset(Some(name));
                self.tell_setting(name);
                done("RESET")
            }
            Command::ResetAll => {
                self.settings.reset(None);
                done("RESET")
            }
            Command::DiscardAll => {
                self.settings.reset(None);
                self.statements.clear();
                self.portals.clear();
                done("DISCARD ALL")
            }
            Command::Nothing(tag) => done(tag),
            Command::Show(name) => {
                let value = self.settings.get(name)?.to_owned();
                Ok(Given::Rows(texts(&[(name, vec![value])])?, "SHOW"))
            }
            Command::ShowAll => {
                let all = self.settings.all();
                let (names, values) =
                    all.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).unzip();
                Ok(Given::Rows(texts(&[("name", names), ("setting", values)])?, "SHOW"))
            }
            Command::Deallocate(name) => {
                match name {
                    Some(name) if self.statements.remove(name).is_none() => {
                        self.statement(name)?;
                    }
                    Some(_) => {}
                    None => self.statements.clear(),
                }
                done("DEALLOCATE")
            }
            Command::Declare { name, query, is_held } => self.declare(name, query, *is_held).await,
            Command::Fetch { name, rows_max, moves } => self.fetch(name, *rows_max, *moves).await,
            Command::CloseCursor(name) => {
                match name {
                    Some(name) => drop(self.portals.remove(name).ok_or_else(|| no_portal(name))?),
                    None => self.portals.clear(),
                }
                done("CLOSE CURSOR")
            }
            Command::CopyIn(copy) => self.copy_in(copy, text).await.map(Given::Done),
            Command::CopyOut(copy) => self.copy_out(copy).await.map(Given::Done),
        }
    }

    fn check_block(&self, what: &str) -> Result<(), Fault> {
        match self.standing {
            Standing::Idle => Err(Fault::error(
                code::NO_TRANSACTION,
                format!("{what} is for transactions: BEGIN one"),
            )),
            Standing::InTransaction | Standing::Failed => Ok(()),
        }
    }

    /// The place of a savepoint among those of the transaction.
    fn savepoint(&self, name: &str) -> Result<usize, Fault> {
        self.check_block("a savepoint")?;
        let at = self.transaction.savepoints.iter().rposition(|(known, _)| known == name);
        at.ok_or_else(|| {
            Fault::error(code::NO_SAVEPOINT, format!("no savepoint is named {name:?}"))
        })
    }

    fn end_transaction(&mut self) {
        if self.standing == Standing::Idle {
            self.wire.replies.warning("there is no transaction in progress");
        }
        self.standing = Standing::Idle;
        self.transaction = Transaction::default();
        self.portals.retain(|_, portal| portal.is_held);
    }

    fn tell_setting(&mut self, name: &str) {
        if let Some(told) = Settings::told_name(name)
            && let Ok(value) = self.settings.get(name)
        {
            self.wire.replies.setting(told, value);
        }
    }

    async fn declare(&mut self, name: &str, query: &str, is_held: bool) -> Result<Given, Ended> {
        if !is_held && self.standing == Standing::Idle {
            let text =
                "a cursor lives as long as its transaction: BEGIN one, or DECLARE it WITH HOLD";
            return Err(Fault::error(code::NO_TRANSACTION, text).into());
        }
        if self.portals.contains_key(name) {
            return Err(
                Fault::error(code::HAS_PORTAL, format!("cursor {name:?} is open already")).into()
            );
        }
        if self.portals.len() >= NAMES_MAX {
            return Err(too_many("cursors", NAMES_MAX).into());
        }
        let planned = self.plan(query, Parameters::default()).await?;
        if planned.writes() {
            return Err(Fault::error(code::INVALID, "a cursor is of a query").into());
        }
        let columns = columns_of(&planned, &Formats::default());
        let rows = self.open(query, planned, columns.clone()).await?;
        let prepared = Prepared {
            text: query.to_owned(),
            what: What::Engine,
            types: Vec::new(),
            asked: ArrowSchema::empty(),
            columns: Some(columns),
            _held: self.held.another(),
        };
        let state = State::Open(rows, "FETCH");
        let portal =
            Portal { prepared: Arc::new(prepared), formats: Formats::default(), state, is_held };
        self.portals.insert(name.to_owned(), portal);
        Ok(Given::Done("DECLARE CURSOR".to_owned()))
    }

    async fn fetch(
        &mut self,
        name: &str,
        rows_max: Option<u64>,
        moves: bool,
    ) -> Result<Given, Ended> {
        let cursor = self.portals.get_mut(name).ok_or_else(|| no_portal(name))?;
        match &mut cursor.state {
            State::Open(rows, _) if moves => {
                let passed = rows.pass(&mut self.wire, rows_max).await?;
                Ok(Given::Done(format!("MOVE {passed}")))
            }
            State::Open(..) => Ok(Given::Fetched { cursor: name.to_owned(), rows_max }),
            _ => Err(no_portal(name).into()),
        }
    }

    /// Sends the next rows of a cursor.
    async fn send_fetched(&mut self, name: &str, rows_max: Option<u64>) -> Result<(), Ended> {
        let cursor = self.portals.get_mut(name).ok_or_else(|| no_portal(name))?;
        let State::Open(rows, _) = &mut cursor.state else { return Err(no_portal(name).into()) };
        let (sent, _) = rows.send(&mut self.wire, rows_max, Said::Rows).await?;
        self.wire.replies.done(&format!("FETCH {sent}"));
        Ok(())
    }

    async fn copy_out(&mut self, copy: &CopyOut) -> Result<String, Ended> {
        let planned = self.plan(&copy.query, Parameters::default()).await?;
        if planned.writes() {
            return Err(
                Fault::error(code::INVALID, "COPY .. TO STDOUT is of a table or a query").into()
            );
        }
        let columns = columns_of(&planned, &Formats::default());
        let mut rows = self.open(&copy.query, planned, columns).await?;
        self.wire.replies.copy_out(rows.columns().len());
        if copy.form.header {
            let mut line = bytes::BytesMut::new();
            for (index, column) in rows.columns().iter().enumerate() {
                copy.form.put(index == 0, Some(column.name.as_bytes()), &mut line);
            }
            line.extend_from_slice(b"\n");
            self.wire.replies.copy_data(|out| out.extend_from_slice(&line));
        }
        let (sent, _) = rows.send(&mut self.wire, None, Said::Copy(&copy.form)).await?;
        self.wire.replies.copy_done();
        Ok(format!("COPY {sent}"))
    }

    async fn copy_in(&mut self, copy: &CopyIn, text: &str) -> Result<String, Ended> {
        self.check_writing()?;
        let rows = feed::copy_in(self, copy, text).await?;
        self.wrote();
        Ok(format!("COPY {rows}"))
    }
}

/// Says that nothing has to be undone, or that it cannot be.
fn undone(is_nothing: bool) -> Result<(), Fault> {
    match is_nothing {
        true => Ok(()),
        false => Err(Fault::error(
            code::NO_ROLLBACK,
            "what the statements wrote stays: each statement is a transaction of its own, and nothing is rolled back",
        )),
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

/// Whether a text is more than blanks, comments and semicolons.
fn has_words(text: &str) -> bool {
    let found = split_statements(text);
    let is_blank = |text: &String| {
        let mut rest = text.as_str();
        loop {
            rest = rest.trim_start();
            match rest.strip_prefix("--") {
                Some(comment) => rest = comment.split_once('\n').map_or("", |(_, rest)| rest),
                None => return rest.is_empty(),
            }
        }
    };
    found.complete.iter().chain([&found.rest]).any(|text| !is_blank(text))
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

/// Checks that the columns are those that the client was told of: a table may be another one by now.
fn check_columns(given: &Given, told: Option<&[Column]>) -> Result<(), Fault> {
    let Given::Rows(rows, _) = given else { return Ok(()) };
    let kinds = |columns: &[Column]| columns.iter().map(|c| c.kind).collect::<Vec<_>>();
    match told.is_none_or(|told| kinds(told) == kinds(rows.columns())) {
        true => Ok(()),
        false => Err(Fault::error(
            code::UNSUPPORTED,
            "the columns are others than when the statement was prepared: prepare it again",
        )),
    }
}

fn text_column(name: &str) -> Column {
    let kind = Kind { scalar: Scalar::Text, is_array: false };
    Column { name: name.to_owned(), kind, modifier: -1, format: super::message::Format::Text }
}

/// Columns of texts as rows.
fn texts(columns: &[(&str, Vec<String>)]) -> Result<Rows, Fault> {
    let fields = columns.iter().map(|(name, _)| Field::new(*name, ArrowType::Utf8, false));
    let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()));
    let arrays =
        columns.iter().map(|(_, texts)| Arc::new(StringArray::from_iter_values(texts)) as ArrayRef);
    let batch = RecordBatch::try_new(schema, arrays.collect());
    let batch = batch.map_err(|e| Fault::error(code::INTERNAL, format!("internal error: {e}")))?;
    Ok(Rows::of_batch(batch, columns.iter().map(|(name, _)| text_column(name)).collect()))
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
        ("CREATE" | "DROP" | "TRUNCATE", None) => {
            let what = super::command::behind_word(text, &word).map(first_word).unwrap_or_default();
            let what = if what == "VIEW" { "VIEW" } else { "TABLE" };
            format!("{word} {what}")
        }
        (_, None) => word,
    }
}
