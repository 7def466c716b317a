//! The extended protocol: statements are prepared, get values, are described, and run for so many rows.

use std::sync::Arc;

use super::commands::text_column;
use super::{
    Given, NAMES_MAX, Portal, Prepared, Session, State, What, columns_of, no_portal, too_many,
    with_formats,
};
use crate::postgres::command::{Command, parse, without_blanks};
use crate::postgres::fault::{Fault, code};
use crate::postgres::gathered::{Gathered, inserts_one_row};
use crate::postgres::kinds::Column;
use crate::postgres::message::{Bind, Formats, Message, Named, Parse};
use crate::postgres::parameters::{types_of, values_of};
use crate::postgres::rows::{More, Said};
use crate::postgres::settings::is_setting;
use crate::postgres::wire::Ended;
use crate::statement::Parameters;

impl Session {
    /// A step of the extended protocol.
    pub(super) async fn step(&mut self, message: Message) -> Result<(), Ended> {
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

    pub(super) async fn parse(&mut self, asked: Parse) -> Result<(), Ended> {
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
        let mut prepared = Prepared::of(What::Nothing, text, held);
        if let Some(command) = parse(&prepared.text, is_setting)? {
            prepared.what = What::Session(command);
        } else if !without_blanks(&prepared.text).is_empty() {
            self.check_standing()?;
            let planned = self.plan(&prepared.text, Parameters::default()).await?;
            prepared.types = types_of(&types, planned.parameters())?;
            prepared.asked = planned.parameters().clone();
            prepared.columns =
                (!planned.writes()).then(|| columns_of(&planned, &Formats::default()));
            prepared.what = match !prepared.types.is_empty() && inserts_one_row(&prepared.text) {
                true => What::InsertOfOne,
                false => What::Engine,
            };
        }
        self.statements.insert(name, Arc::new(prepared));
        self.wire.replies.parsed();
        Ok(())
    }

    pub(super) fn bind(&mut self, bind: Bind) -> Result<(), Ended> {
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
        let mut held = self.held.another();
        held.add(values.bytes()).map_err(Fault::from)?;
        let state = State::Bound(values);
        let formats = bind.answer_formats;
        let portal = Portal { prepared, formats, state, is_held: false, _held: held };
        self.portals.insert(bind.portal, portal);
        self.wire.replies.bound();
        Ok(())
    }

    pub(super) fn statement(&self, name: &str) -> Result<Arc<Prepared>, Fault> {
        self.statements.get(name).cloned().ok_or_else(|| {
            Fault::error(
                code::NO_STATEMENT,
                format!("no statement is prepared under the name {name:?}"),
            )
        })
    }

    pub(super) fn describe(&mut self, named: &Named) -> Result<(), Ended> {
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
            What::Engine | What::InsertOfOne => prepared.columns.clone(),
            What::Session(command) => self.columns_of_command(command),
        };
        match columns {
            Some(columns) => self.wire.replies.columns(&with_formats(columns, &formats)),
            None => self.wire.replies.no_columns(),
        }
        Ok(())
    }

    pub(super) fn columns_of_command(&self, command: &Command) -> Option<Vec<Column>> {
        match command {
            Command::Show(name) => Some(vec![text_column(name)]),
            Command::ShowAll => Some(["name", "setting"].map(text_column).to_vec()),
            Command::Fetch { name, moves: false, .. } => self.columns_of_cursor(name),
            _ => None,
        }
    }

    pub(super) fn columns_of_cursor(&self, name: &str) -> Option<Vec<Column>> {
        match &self.portals.get(name)?.state {
            State::Open(rows, _) => Some(rows.columns().to_vec()),
            _ => None,
        }
    }

    pub(super) async fn execute(&mut self, name: &str, rows_max: u32) -> Result<(), Ended> {
        let mut portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        let rows_max = (rows_max > 0).then_some(u64::from(rows_max));
        let state = std::mem::replace(&mut portal.state, State::Done);
        let given = match (state, &portal.prepared.what) {
            (_, What::Nothing) => {
                self.wire.replies.nothing_to_run();
                self.portals.insert(name.to_owned(), portal);
                return Ok(());
            }
            (State::Bound(values), What::InsertOfOne) => {
                return self.gather(&portal.prepared, values).await;
            }
            (State::Bound(values), What::Engine) => {
                self.flush_gathered().await?;
                let Portal { prepared, formats, .. } = &portal;
                let given = self.start(&prepared.text, values, formats).await?;
                check_columns(&given, prepared.columns.as_deref())?;
                given
            }
            (State::Bound(_), What::Session(command)) => {
                self.flush_gathered().await?;
                self.command(command, &portal.prepared.text).await?
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

    /// Keeps a row of an INSERT for when all of them are known.
    pub(super) async fn gather(
        &mut self,
        prepared: &Arc<Prepared>,
        values: Parameters,
    ) -> Result<(), Ended> {
        let fits = self.gathered.as_ref().is_some_and(|gathered| gathered.is_of(prepared));
        if !fits {
            self.flush_gathered().await?;
            self.check_standing()?;
            self.check_writing()?;
            let from = self.wire.replies.bytes.len();
            self.gathered = Some(Gathered::new(Arc::clone(prepared), from, self.held.another()));
        }
        let is_full = self.gathered.as_mut().is_some_and(|gathered| gathered.add(values));
        self.wire.replies.done("INSERT 0 1");
        match is_full {
            true => self.flush_gathered().await,
            false => Ok(()),
        }
    }

    /// Writes the rows that were kept. What was said of them before is taken back when they cannot be written.
    pub(super) async fn flush_gathered(&mut self) -> Result<(), Ended> {
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
