//! A load, as it is handed from layer to layer.

use coload_types::Result;

use crate::hooks::Hooks;
use crate::request::LoadRequest;
use crate::resources::Resources;

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
    pub fn check(self) -> Result<()> {
        self.request.check()?;
        self.resources.check()
    }

    /// The load of another request, such as one with wider types.
    pub fn with_request<'b>(self, request: &'b LoadRequest) -> Load<'b>
    where
        'a: 'b,
    {
        Load { request, ..self }
    }
}
