//! A load on its way, over all attempts: its types may become wider.
//!
//! ```text
//!   partition      0 1 2 | 3 4 5          types of a column     BIGINT | DECIMAL
//!   attempt 1      - - - x                a field of partition 3 does not fit: all before it are durable
//!                  RANGE, WIDEN           the server converts them when it publishes
//!   attempt 2              - - -
//! ```
//!
//! If a column became text, the text of it is sent for the partitions before, when all others are durable: that column alone
//! is read again. What must be decompressed is read from the start in any attempt, so such a load starts again.

use coload_cluster::Map;
use coload_ddl::Schema;
use coload_link::{Client, Message};
use coload_store::{LoadId, converts, text_columns};
use coload_types::{DataType, Error, Result};
use coload_wire::{
    DONE, Done, LoadDescription, RANGE, RANGES, Ranges, WIDEN, WIDENED, Welcome, Widen,
};

use super::sender::Sender;
use super::session::{WORK_TIMEOUT, wait_for};
use super::{RemoteOptions, fingerprint};
use crate::format::{Format, Position};
use crate::grain::{Grain, RecordSize};
use crate::hooks::Hooks;
use crate::legs::table_column;
use crate::load::Load;
use crate::pipeline::Stop;
use crate::request::LoadRequest;
use crate::reread::reread_request;
use crate::resources::Resources;
use crate::text::Text;
use crate::widen::{HASTY_PASSES, Widened, Widening};

/// A load on its way.
pub struct Going<'a> {
    resources: &'a Resources,
    /// Who is told, and may stop it.
    pub hooks: &'a Hooks,
    /// With the types that it began with.
    begun: LoadRequest,
    /// With the types that it has now.
    pub request: LoadRequest,
    /// What the load is, as the server is told.
    pub description: LoadDescription,
    /// What the server called it when it began, if it is to be loaded again: only that load is this one.
    pub begun_as: Option<LoadId>,
    /// Passes before this one, each from the first byte on.
    pub pass: usize,
    /// Columns that became wider.
    pub widened: Vec<Widened>,
    /// The map of the cluster, if the server is a node of one.
    pub cluster: Option<Box<Map>>,
    /// Types that the server may have made durable.
    next: Option<(LoadRequest, Vec<Widened>)>,
    /// Set when an earlier process made the types wider: its fields are not known here.
    adopted: bool,
}

impl<'a> Going<'a> {
    /// A load that begins.
    ///
    /// # Errors
    /// `Invalid` when an input cannot be opened, `Unavailable` when it cannot be read.
    pub fn new(
        mut request: LoadRequest,
        (resources, hooks): (&'a Resources, &'a Hooks),
        remote: &RemoteOptions,
        pass: usize,
    ) -> Result<Self> {
        // Partitions are counted over all attempts, whatever the types become.
        let record = request.record.unwrap_or_else(|| RecordSize::new(&request, None));
        request.record = Some(record.with_rejects(&request, resources));
        Ok(Going {
            description: fingerprint::describe(&request, resources, remote)?,
            resources,
            hooks,
            begun: request.clone(),
            request,
            begun_as: None,
            pass,
            widened: Vec::new(),
            cluster: None,
            next: None,
            adopted: false,
        })
    }

    /// The load, with the types that it has now.
    pub fn load(&self) -> Load<'_> {
        Load { request: &self.request, resources: self.resources, hooks: self.hooks }
    }

    /// Whether what the server has may stay when columns become wider.
    pub fn takes_wider(&self) -> bool {
        self.description.salt == 0
            && self.pass < HASTY_PASSES
            && !self.adopted
            && !self.request.has_rows_by_value()
    }

    /// Takes what the server says of the load: its types, and when it began.
    ///
    /// # Errors
    /// `Corrupt` when they are not of this load.
    pub fn welcome(&mut self, welcome: &Welcome) -> Result<()> {
        let columns = welcome.columns.as_ref().unwrap_or(&self.description.schema);
        let next = self.next.take();
        if types(columns) != types(&self.request.schema) {
            match next {
                Some((next, told)) if types(&next.schema) == types(columns) => {
                    self.request = next;
                    self.widened.extend(told);
                }
                // Somebody dropped the load meanwhile: it begins anew.
                _ if types(columns) == types(&self.begun.schema) => {
                    self.request = self.begun.clone();
                    self.widened.clear();
                }
                _ => {
                    self.request.set_types(columns)?;
                    self.adopted = true;
                }
            }
        }
        match welcome.began_us {
            Some(began_us) if began_us != self.request.began_us => self.request.begin_at(began_us),
            _ => Ok(()),
        }
    }

    /// How to read the columns again that became text, of the first `partitions`.
    ///
    /// # Errors
    /// Those of opening the inputs; `Corrupt` when no column became text.
    pub fn request_to_reread(&self, partitions: u32, clean: bool) -> Result<LoadRequest> {
        let columns = text_columns(&self.begun.schema, &self.request.schema);
        if columns.is_empty() {
            return Err(Error::Corrupt("text is wanted, and no column became text".into()));
        }
        let mut request = reread_request(&self.request, &columns, clean)?;
        let source = Text::open(&request, self.resources, None)?;
        let grain = Grain::of(&request, self.resources);
        let chunks = grain.fragments_per_partition.saturating_mul(partitions as usize);
        let chunks = chunks.min(source.chunks().unwrap_or(0));
        let bytes = source.bytes_before(Position { chunks, end: 0 }, u64::MAX);
        request.sample_bytes = Some(bytes);
        Ok(request)
    }

    /// Checks that the inputs are still those which the load is of.
    ///
    /// # Errors
    /// `Unavailable` when they are not.
    pub fn check_inputs(&self, remote: &RemoteOptions) -> Result<()> {
        let now = fingerprint::describe(&self.request, self.resources, remote)?;
        match now.inputs == self.description.inputs {
            true => Ok(()),
            false => Err(Error::Unavailable("an input changed while it was loaded".into())),
        }
    }

    /// Tells the server wider types. The next attempt goes on with them, unless the server says that the load of these
    /// is published.
    ///
    /// # Errors
    /// `Stop::Widen` when the load has to start again, else those of an attempt.
    pub fn widen(
        &mut self,
        client: &Client,
        sender: &Sender<'_>,
        widening: Box<Widening>,
    ) -> std::result::Result<Option<Done>, Stop> {
        let partitions = sender.sealed_count();
        if partitions == 0 || Text::open(&self.request, self.resources, None)?.chunks().is_none() {
            return Err(Stop::Widen(widening));
        }
        if !sender.has_all(partitions) {
            return Err(Error::Unavailable("the server has not all that was sent".into()).into());
        }
        let cancel = &self.hooks.cancel;
        client.push(Message::new(RANGE, Vec::new()))?;
        let ranges = wait_for(client, &[RANGES], WORK_TIMEOUT, cancel)?;
        let mut ranges = Ranges::decode(&ranges.bytes)?.columns;
        ranges.resize(self.request.schema.len(), None);
        let of_read = |read| table_column(&self.request, read).and_then(|c| ranges[c].clone());
        let stored: Vec<_> = (0..self.request.read_schema().len()).map(of_read).collect();
        let mut next = self.request.clone();
        let told = widening.clone().widen(&mut next, &stored)?;
        if !converts(&self.request.schema, &next.schema) {
            return Err(Stop::Widen(widening));
        }
        let widen = Widen { partitions: partitions as u32, schema: next.schema.clone() };
        self.next = Some((next, told));
        client.push(Message::new(WIDEN, widen.encode()))?;
        let answer = wait_for(client, &[WIDENED, DONE], WORK_TIMEOUT, cancel)?;
        match answer.kind {
            DONE => Ok(Some(Done::decode(&answer.bytes)?)),
            _ => Ok(None),
        }
    }
}

fn types(schema: &Schema) -> Vec<DataType> {
    schema.columns().iter().map(|column| column.data_type).collect()
}
