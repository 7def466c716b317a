//! Files and objects that statements read where they are.
//!
//! ```text
//!   FROM 'a.csv', read_csv('a.csv', ..)   reference   a name in the tree, and what it names
//!     -> may it be read? what is it?      Externals   allowed, looked at by ExternalInputs, once a statement
//!     -> a table of the statement         table       scanned by the pipeline of loads
//!     -> batches, in the order of inputs  rows        workers parse; a short channel to the statement
//! ```
//!
//! What is read, and into which types, is decided as for a load: by a sample. A field further on that its type does not
//! hold ends the scan, and the type that holds it is remembered ([`Learned`]); a statement that has not answered anything
//! begins again ([decision 0077](../../../../docs/decisions/0077-files-are-tables-of-a-statement.md)).
//!
//! Invariant: nothing is opened or listed before [`Allowed`] has let it through.

mod allowed;
mod load;
pub(crate) mod reference;
mod rows;
mod scan;
mod table;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use coload_input::{InputFile, Inputs};
use coload_load::{LoadRequest, Widened, WiderColumns};
use coload_threads::lock;
use coload_types::{Error, Result};
use datafusion::catalog::TableProvider;

use crate::catalog::ExtraTable;
use crate::planning::pause::paused;
use crate::rights::Rights;
pub use allowed::{Allowed, ExternalPlace};
pub(crate) use load::{EndOnDrop, hold, load_of, run_load, run_load_into};
pub use reference::{ExternalOption, ExternalReference, OptionValue, ReadAs};
pub(crate) use rows::{Reading, counts_parts, read_all};
pub(crate) use scan::ExternalScanExec;
pub(crate) use table::{ExternalTable, refused_kind};

/// Finds out what inputs are, as loads do.
pub trait ExternalInputs: Debug + Send + Sync {
    /// The inputs that a reference names.
    ///
    /// # Errors
    /// `Invalid` when one is not there.
    fn find(&self, reference: &ExternalReference) -> Result<Inputs>;

    /// How they are read: the load of all their rows into a table.
    ///
    /// # Errors
    /// `Invalid` when they are nothing that can be read, or an option is wrong.
    fn plan(&self, reference: &ExternalReference, inputs: Inputs) -> Result<LoadRequest>;
}

/// Who reads inputs for the statements of a database, and which.
#[derive(Debug, Clone)]
pub struct ExternalPlaces {
    /// Looks at them.
    pub inputs: Arc<dyn ExternalInputs>,
    /// Those that any statement may read.
    pub allowed: Allowed,
}

/// Types that inputs turned out to need, of all statements of a database.
#[derive(Debug, Default)]
pub(crate) struct Learned(Mutex<HashMap<String, Lesson>>);

/// What was learned of one reference.
#[derive(Debug)]
struct Lesson {
    /// Its first input then, and how many there were: of others nothing is known.
    inputs: (Option<InputFile>, usize),
    columns: WiderColumns,
    /// Why each of them is wider.
    told: Vec<Widened>,
}

/// References that are remembered; when there are more, all are forgotten.
const LESSONS_MAX: usize = 1_024;

impl Learned {
    /// Gives a request the types that are known of its inputs, and tells why they are others than the sample's.
    fn apply(&self, name: &str, request: &mut LoadRequest) -> Result<Vec<Widened>> {
        let lessons = lock(&self.0);
        match lessons.get(name) {
            Some(lesson) if lesson.inputs == seen(&request.inputs) => {
                lesson.columns.apply(request)?;
                Ok(lesson.told.clone())
            }
            _ => Ok(Vec::new()),
        }
    }

    fn learn(&self, name: &str, inputs: &Inputs, columns: WiderColumns, told: &[Widened]) {
        let mut lessons = lock(&self.0);
        if lessons.len() >= LESSONS_MAX {
            lessons.clear();
        }
        let inputs = seen(inputs);
        let lesson = match lessons.get_mut(name).filter(|lesson| lesson.inputs == inputs) {
            Some(lesson) => {
                lesson.columns.merge(columns);
                lesson
            }
            None => {
                let lesson = Lesson { inputs, columns, told: Vec::new() };
                lessons.remove(name);
                lessons.entry(name.to_owned()).or_insert(lesson)
            }
        };
        for widened in told {
            lesson.told.retain(|known| known.column != widened.column);
            lesson.told.push(widened.clone());
        }
    }
}

fn seen(inputs: &Inputs) -> (Option<InputFile>, usize) {
    (inputs.first(), inputs.len())
}

/// The inputs of one statement.
#[derive(Debug, Clone)]
pub(crate) struct Externals {
    places: Option<ExternalPlaces>,
    rights: Rights,
    learned: Arc<Learned>,
    experience: Arc<Experience>,
    /// By the names that the planner knows.
    tables: Vec<(String, Arc<ExternalTable>)>,
}

impl Externals {
    pub fn new(places: Option<ExternalPlaces>, rights: Rights, learned: Arc<Learned>) -> Self {
        Externals { places, rights, learned, experience: Arc::default(), tables: Vec::new() }
    }

    /// Looks at what a reference names, if nobody has; its table.
    ///
    /// # Errors
    /// `Refused` when it may not be read, `Invalid` when it cannot be.
    pub fn open(
        &mut self,
        name: &str,
        reference: &ExternalReference,
    ) -> Result<Arc<ExternalTable>> {
        if let Some((_, table)) = self.tables.iter().find(|(known, _)| known == name) {
            return Ok(Arc::clone(table));
        }
        let Some(places) = &self.places else {
            return Err(Error::Refused(format!(
                "cannot read {name}: this program reads tables of its store only"
            )));
        };
        let granted = self.rights.external();
        for input in &reference.inputs {
            places.allowed.check_name(input)?;
            granted.check_name(input).map_err(|error| self.rights.not_granted(&error))?;
        }
        let look = || {
            let inputs = places.inputs.find(reference)?;
            places.allowed.check_found(&inputs)?;
            granted.check_found(&inputs).map_err(|error| self.rights.not_granted(&error))?;
            match inputs.read_once() {
                None => places.inputs.plan(reference, inputs),
                Some(once) => Err(Error::Invalid(format!(
                    "{} can be read only once, and a statement may read it again: load it into a table",
                    once.name
                ))),
            }
        };
        let mut request = paused(look)??;
        let wider = self.learned.apply(name, &mut request)?;
        lock(&self.experience.wider).extend(wider);
        let table = ExternalTable::new(
            name.to_owned(),
            request,
            Arc::clone(&self.learned),
            Arc::clone(&self.experience),
        );
        self.experience.reads_inputs.store(true, Ordering::Relaxed);
        let table = Arc::new(table);
        self.tables.push((name.to_owned(), Arc::clone(&table)));
        Ok(table)
    }

    /// The tables that were opened, as those of a catalog.
    pub fn tables(&self) -> Vec<ExtraTable> {
        let table = |(name, table): &(String, Arc<ExternalTable>)| {
            (name.clone(), Arc::clone(table) as Arc<dyn TableProvider>)
        };
        self.tables.iter().map(table).collect()
    }

    /// Leaves what is known of inputs from other statements aside: their types are those of the samples.
    pub fn forget(&mut self) {
        self.learned = Arc::default();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// What the statement will have met when it has run.
    pub fn experience(&self) -> Arc<Experience> {
        Arc::clone(&self.experience)
    }
}

/// What a statement met in the inputs that it read.
#[derive(Debug, Default)]
pub(crate) struct Experience {
    reads_inputs: AtomicBool,
    has_learned: AtomicBool,
    /// Columns of its inputs that are wider than their samples told.
    wider: Mutex<Vec<Widened>>,
}

impl Experience {
    /// Whether it reads inputs at all.
    pub fn reads_inputs(&self) -> bool {
        self.reads_inputs.load(Ordering::Relaxed)
    }

    /// Whether a scan met a field that its column does not hold: planned anew the statement may go on.
    pub fn has_learned(&self) -> bool {
        self.has_learned.load(Ordering::Relaxed)
    }

    /// What is told of a statement that has no meaning for the types that its inputs turned out to need, and would have one for
    /// those of their samples; `None` when they are the same. `why` is what is wrong with it.
    pub fn too_wide(&self, why: &str) -> Option<Error> {
        let wider = lock(&self.wider);
        let is_named = |widened: &&Widened| why.contains(&widened.column.to_lowercase());
        let found = wider.iter().find(is_named).or(wider.first())?;
        let (Widened { column, from, to, place, .. }, shown) = (found, found.shown());
        Some(Error::Input {
            place: Box::new(place.clone()),
            text: format!(
                "column {column} was taken for {from}, which {shown} is not; as {to} it does not fit the statement: {why} (write \
                 types => '{column} {from}', for which such a record is an error, or TRY_CAST({column} AS {from}))"
            ),
        })
    }
}
