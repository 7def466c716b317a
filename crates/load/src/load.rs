//! A load: what is asked for, what it may use, who is told, and where it goes.

use coload_types::{Error, Result};

use crate::hooks::Hooks;
use crate::report::LoadReport;
use crate::request::LoadRequest;
use crate::resources::Resources;

/// Loads the inputs of a request into a destination: all of it or nothing.
///
/// # Errors
/// `Input` when a record cannot be a row and no reject is left, `Invalid` when the request does not fit the destination or
/// the inputs, `Refused` when a server does not want the load, `Unavailable` when the system or the network fails. The
/// destination is as it was then, unless the message says otherwise.
pub fn load(
    request: &LoadRequest,
    resources: &Resources,
    hooks: &Hooks,
    into: &dyn Destination,
) -> Result<LoadReport> {
    let load = Load { request, resources, hooks };
    load.check()?;
    if !into.sorts() {
        resources.refuse_spaces("rows are not sorted on their way there")?;
    }
    if !request.beside.is_empty() && !into.takes_several_tables() {
        return Err(Error::Invalid(
            "a load of several tables goes into a store of this machine: load each by itself, with its part of the mapping"
                .to_owned(),
        ));
    }
    into.take(load)
}

/// Where a load goes: a store, a folder of Parquet files, a server, or nowhere.
pub trait Destination {
    /// Takes the rows of a load, all of them or none.
    ///
    /// # Errors
    /// Those of [`load`].
    fn take(&self, load: Load<'_>) -> Result<LoadReport>;

    /// Whether it puts rows in the order of the table's key.
    fn sorts(&self) -> bool {
        false
    }

    /// Whether the loads beside it become visible with the load, and not before.
    fn takes_several_tables(&self) -> bool {
        false
    }
}

/// What is asked for, what it may take, and who is told. Who needs less of it is given less.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// What is loaded.
    pub request: &'a LoadRequest,
    /// What may be used.
    pub resources: &'a Resources,
    /// Who is told, and may stop it.
    pub hooks: &'a Hooks,
}

impl<'a> Load<'a> {
    /// Checks what does not depend on the inputs.
    ///
    /// # Errors
    /// `Invalid` with the flag that is wrong.
    pub(crate) fn check(self) -> Result<()> {
        self.request.check()?;
        self.resources.check()
    }

    /// The load of another request, such as one with wider types.
    pub(crate) fn with_request<'b>(self, request: &'b LoadRequest) -> Load<'b>
    where
        'a: 'b,
    {
        Load { request, ..self }
    }
}
