//! Passes of a load that starts again when a column becomes wider.
//!
//! Files are read again. Of a stream whose columns were inferred, what was read is kept ([`Spool`]); the next pass reads
//! that, and goes on with the stream where the one before left it.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

use coload_store::LoadId;
use coload_threads::{Started, StepClock, lock};
use coload_types::{Error, Result};

use crate::legs::run_once;
use crate::load::Load;
use crate::opened::OpenedStream;
use crate::pipeline::{Loaded, Stop};
use crate::report::{Earlier, LoadReport};
use crate::request::LoadRequest;
use crate::spool::Spool;
use crate::target::Target;
use crate::widen::{Way, Widened};

/// A load whose target has all rows.
pub struct Ran<T> {
    /// What became of the inputs.
    pub loaded: Loaded,
    /// What has the rows.
    pub target: T,
    /// The request with the last types.
    pub request: LoadRequest,
    /// Columns that became wider.
    pub widened: Vec<Widened>,
    /// CPU time by step.
    pub clock: StepClock,
}

/// Runs passes until the types are wide enough, each into a target that `begin` makes. `scratch` is a name for the text of a
/// stream.
///
/// # Errors
/// Those of a load, and of `begin`.
pub fn run_passes<T: Target>(
    load: Load<'_>,
    scratch: &Path,
    mut begin: impl FnMut(&LoadRequest) -> Result<T>,
) -> Result<Ran<T>> {
    let mut request = load.request.clone();
    let mut passes = Passes::new(&request, scratch)?;
    let mut widened = Vec::new();
    loop {
        let way = passes.begin(&mut request, &widened)?;
        let target = begin(&request)?;
        match run_once(load.with_request(&request), &target, way) {
            Ok((loaded, clock)) => return Ok(Ran { loaded, target, request, widened, clock }),
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Widen(widening)) => widened.extend(widening.widen(&mut request, &[])?),
        }
    }
}

/// Reads the inputs of a load again, when the target refused rows: they are left out as rejects, and the account is that of
/// the rows which are there. `target` takes rows, and keeps none.
///
/// # Errors
/// Those of a load; `Input` with the place of the first record that is over the limit of rejects.
pub fn read_again(load: Load<'_>, target: &dyn Target) -> Result<Loaded> {
    let hooks = load.hooks.of_part();
    let again = Load { hooks: &hooks, ..load };
    // No type becomes wider for a record that the target refused.
    match run_once(again, target, Way::StartAgain { pass: 0 }) {
        Ok((loaded, _)) => Ok(loaded),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Widen(_)) => {
            Err(Error::Corrupt("inputs have other fields when they are read again".into()))
        }
    }
}

/// The report of a load that was done before: its rows, and what is to be said of them.
pub fn earlier_load(
    id: LoadId,
    table: String,
    (rows, held): (u64, String),
    started: &Started,
) -> LoadReport {
    let earlier = Some(Earlier { rows, rejects: 0, held });
    let mut report = LoadReport { id: Some(id), earlier, ..LoadReport::new(table) };
    report.set_costs(started);
    report
}

impl<T> Ran<T> {
    /// The report of a load whose rows are there, with what took them. The file of rejects gets its name.
    ///
    /// # Errors
    /// `Invalid` when the rows are there and the file of rejects cannot be.
    pub fn into_report(self, id: LoadId, started: &Started) -> Result<(LoadReport, T)> {
        let Ran { loaded, target, request, widened, clock } = self;
        let Loaded { partitions, mut account, .. } = loaded;
        let reject_kinds = account.take_kinds();
        if let Some(output) = account.take_output() {
            output.commit().map_err(|error| {
                Error::Invalid(format!(
                    "the rows are in {}, but the file of rejects is not there: {error}; they need not be loaded again",
                    request.table
                ))
            })?;
        }
        let (files, rejects) = account.into_files();
        let mut report = LoadReport {
            id: Some(id),
            files,
            partitions,
            rejects,
            reject_kinds,
            widened,
            ..LoadReport::new(request.table)
        };
        report.set_steps(&clock);
        report.set_costs(started);
        Ok((report, target))
    }
}

/// The passes of a load.
struct Passes {
    pass: usize,
    stream: Option<Kept>,
}

/// A stream whose text is kept.
struct Kept {
    name: String,
    spool: Arc<Spool>,
    rest: Rest,
}

impl Passes {
    /// The passes of a load; what a stream gives goes into a file that is made at `scratch`, and has no name then.
    ///
    /// # Errors
    /// `Unavailable` when that cannot be made, `Invalid` when the stream cannot be opened.
    fn new(request: &LoadRequest, scratch: &Path) -> Result<Self> {
        let typed = request.read_schema().columns().iter().any(|c| !c.data_type.is_text());
        let once = request.inputs.read_once().filter(|_| request.inputs.len() == 1);
        let stream = match once {
            Some(input) if request.inferred.is_some() && typed => {
                let opened = match &request.stream {
                    Some(stream) => Some(stream.clone()),
                    None => OpenedStream::open(&input)?,
                };
                let rest = opened.map(|opened| opened.take_bytes()).transpose()?;
                let kept = |rest| -> Result<Kept> {
                    let spool = Spool::create(scratch)?;
                    Ok(Kept { name: input.name.clone(), spool, rest: Rest::new(rest) })
                };
                rest.map(kept).transpose()?
            }
            _ => None,
        };
        Ok(Passes { pass: 0, stream })
    }

    /// Begins the next pass.
    ///
    /// # Errors
    /// `Input` when the text of a stream was too much to be kept.
    fn begin(&mut self, request: &mut LoadRequest, widened: &[Widened]) -> Result<Way> {
        let pass = self.pass;
        self.pass += 1;
        let Some(Kept { name, spool, rest }) = &self.stream else {
            return Ok(Way::StartAgain { pass });
        };
        let kept = match (spool.reader(), widened.last()) {
            (Some(kept), _) => kept,
            (None, Some(Widened { column, from, place, value, .. })) => {
                return Err(Error::Input {
                    place: Box::new(place.clone()),
                    text: format!(
                        "column {column} was inferred as {from}, which \"{}\" is not; of a stream so long the text \
                         before is not kept (give --columns or --all-text, or load a file)",
                        String::from_utf8_lossy(&value[..value.len().min(40)])
                    ),
                });
            }
            (None, None) => {
                return Err(Error::Unavailable("the text of the stream was not kept".into()));
            }
        };
        let reader = kept.chain(spool.keep(Box::new(rest.clone())));
        request.stream = Some(OpenedStream::new(name.clone(), Box::new(reader)));
        // A stream tells of a field that does not fit only where the pass may end before it.
        Ok(Way::GoOn)
    }
}

/// The bytes that nobody has read yet.
#[derive(Clone)]
struct Rest(Arc<Mutex<Box<dyn Read + Send>>>);

impl Rest {
    fn new(reader: Box<dyn Read + Send>) -> Self {
        Rest(Arc::new(Mutex::new(reader)))
    }
}

impl Read for Rest {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        lock(&self.0).read(buffer)
    }
}
