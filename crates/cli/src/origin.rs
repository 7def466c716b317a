//! Where the records of a load come from.
//!
//! Invariant: only names that nobody has looked for are opened, or connected to.

use std::sync::Arc;

use coload_databases::DatabaseRows;
use coload_input::SheetChoice;
use coload_load::{ArrowRows, TypedSource};
use coload_source::{InputFile, Inputs, PlaceOptions, expand_inputs_with};
use coload_types::Result;

/// Where the records of a load come from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Files, globs, objects, or `-` for standard input, which nobody has looked for yet.
    Named(Vec<String>),
    /// Inputs that somebody has looked for.
    Found(Inputs),
    /// Rows that somebody brings: of a database, or batches of Arrow. Their name is only told: nothing is opened by it.
    Rows(Rows),
}

/// Rows that somebody brings.
#[derive(Debug, Clone)]
pub struct Rows {
    /// What they are in messages, the name of a table that is made of them, and whether they can be read again.
    pub input: InputFile,
    /// Who has them.
    pub source: Arc<dyn TypedSource>,
}

impl From<ArrowRows> for Rows {
    fn from(rows: ArrowRows) -> Self {
        Rows { input: rows.input("rows"), source: Arc::new(rows) }
    }
}

impl From<DatabaseRows> for Rows {
    fn from(rows: DatabaseRows) -> Self {
        Rows { input: rows.input, source: rows.source }
    }
}

impl Origin {
    /// The inputs, which are looked for if nobody has; of texts of small files so many bytes may be kept.
    ///
    /// # Errors
    /// `Invalid` when one is not there.
    pub fn inputs(
        &self,
        places: &PlaceOptions,
        sheets: &SheetChoice,
        text_room: usize,
    ) -> Result<Inputs> {
        match self {
            Origin::Named(names) => expand_inputs_with(names, places, sheets, text_room),
            Origin::Found(inputs) => Ok(inputs.clone()),
            Origin::Rows(rows) => Ok(vec![rows.input.clone()].into()),
        }
    }

    /// The same, with inputs that were looked for.
    ///
    /// # Errors
    /// As [`Self::inputs`].
    pub fn found(
        self,
        places: &PlaceOptions,
        sheets: &SheetChoice,
        text_room: usize,
    ) -> Result<Self> {
        match self {
            Origin::Named(_) => Ok(Origin::Found(self.inputs(places, sheets, text_room)?)),
            Origin::Found(_) | Origin::Rows(_) => Ok(self),
        }
    }

    /// Its inputs, for messages.
    pub fn told(&self) -> String {
        match self {
            Origin::Named(names) => names.join(", "),
            Origin::Found(inputs) => inputs.first().map_or_else(String::new, |first| first.name),
            Origin::Rows(rows) => rows.input.name.clone(),
        }
    }

    /// The rows that somebody brings.
    pub(crate) fn rows(&self) -> Option<&Arc<dyn TypedSource>> {
        match self {
            Origin::Named(_) | Origin::Found(_) => None,
            Origin::Rows(rows) => Some(&rows.source),
        }
    }
}
