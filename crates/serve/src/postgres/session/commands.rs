//! What statements ask of the session: transactions, settings, cursors, COPY.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema as ArrowSchema};

use super::{
    Given, NAMES_MAX, Portal, Prepared, Session, State, Transaction, What, columns_of, no_portal,
    too_many,
};
use crate::postgres::command::Command;
use crate::postgres::copy::{CopyFormat, CopyIn, CopyOut};
use crate::postgres::copy_binary::put_trailer;
use crate::postgres::fault::{Fault, code};
use crate::postgres::feed;
use crate::postgres::kinds::{Column, Kind, Scalar};
use crate::postgres::message::{Format, Formats};
use crate::postgres::reply::Standing;
use crate::postgres::rows::{Rows, Said};
use crate::postgres::settings::Settings;
use crate::postgres::wire::Ended;
use crate::statement::Parameters;

impl Session {
    /// Does what a statement asks of the session.
    pub(super) async fn command(&mut self, command: &Command, text: &str) -> Result<Given, Ended> {
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

    pub(super) fn check_block(&self, what: &str) -> Result<(), Fault> {
        match self.standing {
            Standing::Idle => Err(Fault::error(
                code::NO_TRANSACTION,
                format!("{what} is for transactions: BEGIN one"),
            )),
            Standing::InTransaction | Standing::Failed => Ok(()),
        }
    }

    /// The place of a savepoint among those of the transaction.
    pub(super) fn savepoint(&self, name: &str) -> Result<usize, Fault> {
        self.check_block("a savepoint")?;
        let at = self.transaction.savepoints.iter().rposition(|(known, _)| known == name);
        at.ok_or_else(|| {
            Fault::error(code::NO_SAVEPOINT, format!("no savepoint is named {name:?}"))
        })
    }

    pub(super) fn end_transaction(&mut self) {
        if self.standing == Standing::Idle {
            self.wire.replies.warning("there is no transaction in progress");
        }
        self.standing = Standing::Idle;
        self.transaction = Transaction::default();
        self.portals.retain(|_, portal| portal.is_held);
    }

    pub(super) fn tell_setting(&mut self, name: &str) {
        if let Some(told) = Settings::told_name(name)
            && let Ok(value) = self.settings.get(name)
        {
            self.wire.replies.setting(told, value);
        }
    }

    pub(super) async fn declare(
        &mut self,
        name: &str,
        query: &str,
        is_held: bool,
    ) -> Result<Given, Ended> {
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
        let mut prepared = Prepared::of(What::Engine, query.to_owned(), self.held.another());
        prepared.columns = Some(columns);
        let portal = Portal {
            prepared: Arc::new(prepared),
            formats: Formats::default(),
            state: State::Open(rows, "FETCH"),
            is_held,
            _held: self.held.another(),
        };
        self.portals.insert(name.to_owned(), portal);
        Ok(Given::Done("DECLARE CURSOR".to_owned()))
    }

    pub(super) async fn fetch(
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
    pub(super) async fn send_fetched(
        &mut self,
        name: &str,
        rows_max: Option<u64>,
    ) -> Result<(), Ended> {
        let cursor = self.portals.get_mut(name).ok_or_else(|| no_portal(name))?;
        let State::Open(rows, _) = &mut cursor.state else { return Err(no_portal(name).into()) };
        let (sent, _) = rows.send(&mut self.wire, rows_max, Said::Rows).await?;
        self.wire.replies.done(&format!("FETCH {sent}"));
        Ok(())
    }

    pub(super) async fn copy_out(&mut self, copy: &CopyOut) -> Result<String, Ended> {
        let planned = self.plan(&copy.query, Parameters::default()).await?;
        if planned.writes() {
            return Err(
                Fault::error(code::INVALID, "COPY .. TO STDOUT is of a table or a query").into()
            );
        }
        let (formats, format) = match copy.form.format {
            CopyFormat::Binary => (Formats::all(Format::Binary), Format::Binary),
            CopyFormat::Text | CopyFormat::Csv => (Formats::default(), Format::Text),
        };
        let columns = columns_of(&planned, &formats);
        let mut rows = self.open(&copy.query, planned, columns).await?;
        self.wire.replies.copy_out(rows.columns().len(), format);
        if copy.form.header {
            let names = rows.columns().iter().enumerate();
            self.wire.replies.copy_row(|line| {
                names.for_each(|(index, column)| {
                    copy.form.put(index == 0, Some(column.name.as_bytes()), line);
                });
                Ok::<_, Fault>(())
            })?;
        }
        let (sent, _) = rows.send(&mut self.wire, None, Said::Copy(&copy.form)).await?;
        if format == Format::Binary {
            self.wire.replies.copy_piece(|out| {
                put_trailer(out);
                Ok::<_, Fault>(())
            })?;
        }
        self.wire.replies.copy_done();
        Ok(format!("COPY {sent}"))
    }

    pub(super) async fn copy_in(&mut self, copy: &CopyIn, text: &str) -> Result<String, Ended> {
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

pub(super) fn text_column(name: &str) -> Column {
    let kind = Kind { scalar: Scalar::Text, is_array: false };
    Column { name: name.to_owned(), kind, modifier: -1, format: Format::Text }
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
