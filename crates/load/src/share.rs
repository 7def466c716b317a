//! A share of a load that several workers do: what this worker reads of the inputs, and how often.
//!
//! ```text
//!   plan -> parts of this worker -> where their first records start -> load -> complete
//!                                                                        |        |
//!                     as the records before say  <-  a record is refused         another share began within a record
//! ```
//!
//! Where a part of a text starts is taken from the first newline, of Avro from the first marker that a block follows. Only
//! the records before know whether that ends one: the
//! store or server compares where parts begin and end when all shares are there. A share that is refused a record, or is
//! told that it began within one, reads what is before its parts, and begins again. The worker that hears it of
//! another's share does that again itself: its worker may be gone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use coload_input::{InputFile, InputSource, Inputs, ObjectRef};
use coload_store::{LoadId, OnConflict, ShareOf};
use coload_threads::lock;
use coload_types::{Error, Result};
use coload_wire::{FieldsByInput, InputPart, PartIs, PlanPrint, RejectLimit, SHARES_MAX, Share};

use crate::hooks::Hooks;
use crate::load::{Destination, load};
use crate::report::LoadReport;
use crate::request::{InputForm, LoadRequest};
use crate::resources::Resources;
use crate::share_rejects::file_of_load;
use crate::splits::{Split, SplitMethod, SplitPart, SplitPlan, worker_of_name};
use crate::starts::{RecordAt, first_record_at, first_record_behind};

/// How it is known where parts start that are cut at any byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Starts {
    /// As what stands there says: behind the first newline, or the marker before a block.
    Seen,
    /// As all records before them say.
    Records,
}

/// A load whose shares workers do, planned.
#[derive(Debug, Clone)]
pub struct SharedLoad {
    request: LoadRequest,
    method: SplitMethod,
    print: PlanPrint,
    load: LoadId,
    workers: u32,
    /// Whether the types were inferred from a sample.
    is_inferred: bool,
    /// Where records start, as those before them say, by inputs and the bytes that were asked for: inputs are read once
    /// for all of their parts.
    records: Arc<Mutex<BTreeMap<(usize, u64), RecordAt>>>,
}

impl SharedLoad {
    /// A load of these inputs, which is known by `load`.
    ///
    /// # Errors
    /// `Invalid` when there are too many workers, or records would be set aside that another load takes.
    pub fn new(
        mut request: LoadRequest,
        plan: SplitPlan,
        print: PlanPrint,
        load: LoadId,
    ) -> Result<Self> {
        let workers = u32::try_from(plan.workers).unwrap_or(u32::MAX);
        if workers > SHARES_MAX {
            return Err(Error::Invalid(format!(
                "{workers} workers of a load, and it has {SHARES_MAX} shares at most"
            )));
        }
        if plan.method == SplitMethod::Hashed && request.on_conflict == OnConflict::Reject {
            return Err(Error::Invalid(format!(
                "--on-conflict reject is for shares that have the inputs in their order, and {} inputs go to workers by the hashes of \
                 their names (raise --explicit-max for all shares, or say ignore)",
                plan.shares.iter().map(|share| share.splits).sum::<u64>()
            )));
        }
        let is_inferred = request.inferred.take().is_some();
        if is_inferred && request.max_rejects != RejectLimit::Count(0) {
            return Err(Error::Invalid(
                "rejects are allowed, the columns' types are inferred, and a share of a load does not widen them (give \
                 --columns or --schema to all shares)"
                    .to_owned(),
            ));
        }
        let (method, records) = (plan.method, Arc::default());
        Ok(SharedLoad { request, method, print, load, workers, is_inferred, records })
    }

    /// Does a share, numbered from 1, and those of others that turn out to have begun within a record.
    ///
    /// # Errors
    /// Those of a load; `Refused` when the share does not fit those before.
    pub fn load(
        &self,
        number: u32,
        resources: &Resources,
        hooks: &Hooks,
        into: &dyn Destination,
    ) -> Result<LoadReport> {
        let (mut doing, mut starts) = (number, Starts::Seen);
        let mut own: Option<LoadReport> = None;
        // Each share is done again once at most, unless others do it at the same time.
        for _ in 0..2 * self.workers as usize + 8 {
            let mut request = self.request_of(doing, starts)?;
            if doing != number {
                request.rejects_file = request.rejects_file.map(|path| beside(path, doing));
            }
            let report = match load(&request, resources, hooks, into) {
                Ok(report) => report,
                Err(error @ (Error::Input { .. } | Error::Limit(_))) => {
                    if starts == Starts::Seen && self.is_misread(&request)? {
                        starts = Starts::Records;
                        continue;
                    }
                    return Err(self.explain(error));
                }
                Err(error) => return Err(error),
            };
            let misread = report.shares.as_ref().and_then(|shares| shares.misread);
            own = Some(match own {
                Some(own) if doing != number => of_both(own, report),
                _ => report,
            });
            match misread {
                None => break,
                Some(misread) => (doing, starts) = (misread, Starts::Records),
            }
        }
        let own = own.ok_or_else(|| Error::Corrupt("a share that was not done".into()))?;
        match own.shares.as_ref().and_then(|shares| shares.misread) {
            None => Ok(own),
            Some(misread) => Err(Error::Unavailable(format!(
                "share {misread} of load {} begins within a record however often it is done; do others do it too?",
                self.load
            ))),
        }
    }

    /// What a share loads, if it can be read before others of it are.
    ///
    /// # Errors
    /// `Invalid` when there is no such share; those of reading inputs.
    pub fn request(&self, number: u32) -> Result<LoadRequest> {
        self.request_of(number, Starts::Seen)
    }

    fn request_of(&self, number: u32, starts: Starts) -> Result<LoadRequest> {
        let of = ShareOf { load: self.load, number, count: self.workers };
        if !(1..=self.workers).contains(&number) {
            return Err(Error::Invalid(format!(
                "--worker {number}/{0}: workers are numbered from 1 to {0}",
                self.workers
            )));
        }
        let parts = self.parts_of(number as usize - 1, starts)?;
        let mut request = self.request.clone();
        request.inputs = apart(parts.iter().map(|(input, _)| self.input(*input)).collect());
        if let Some(fields) = &request.fields_by_input
            && fields.differ()
        {
            let of_input = parts.iter().map(|(input, _)| fields.way(*input) as u32).collect();
            let fields = FieldsByInput { of_input, ways: fields.ways.clone() };
            request.fields_by_input = Some(Arc::new(fields));
        }
        let is_whole = parts.iter().all(|(_, is)| *is == PartIs::Whole);
        let part = |(input, is): (usize, PartIs)| InputPart { input: input as u32, is };
        let parts = match is_whole {
            true => Vec::new(),
            false => parts.into_iter().map(part).collect(),
        };
        request.share = Some(Arc::new(Share { of, plan: self.print, parts }));
        if request.on_conflict == OnConflict::Reject {
            let rejects_file = self.request.rejects_file.as_deref().map(file_of_load);
            request.whole = Some(Arc::new(LoadRequest { rejects_file, ..self.request.clone() }));
        }
        Ok(request)
    }

    fn input(&self, number: usize) -> InputFile {
        self.request.inputs.at(number)
    }

    /// What a worker reads, by the numbers of inputs.
    fn parts_of(&self, worker: usize, starts: Starts) -> Result<Vec<(usize, PartIs)>> {
        let inputs: &Inputs = &self.request.inputs;
        let SplitMethod::Explicit(splits) = &self.method else {
            let workers = self.workers as usize;
            let own = |number: &usize| worker_of_name(&inputs.name(*number), workers) == worker;
            return Ok((0..inputs.len()).filter(own).map(|n| (n, PartIs::Whole)).collect());
        };
        let mut parts: Vec<(usize, SplitPart)> = Vec::new();
        for Split { input, part, .. } in splits.iter().filter(|split| split.worker == worker) {
            match (parts.last_mut(), part) {
                // Parts of the same input that follow each other are one.
                (Some((last, SplitPart::Bytes(before))), SplitPart::Bytes(range))
                    if last == input && before.end == range.start =>
                {
                    before.end = range.end;
                }
                (Some((last, SplitPart::RowGroups(before))), SplitPart::RowGroups(range))
                | (Some((last, SplitPart::Batches(before))), SplitPart::Batches(range))
                    if last == input && before.end == range.start =>
                {
                    before.end = range.end;
                }
                _ => parts.push((*input, part.clone())),
            }
        }
        let mut found = Vec::with_capacity(parts.len());
        for (input, part) in parts {
            let is = match part {
                SplitPart::Whole => PartIs::Whole,
                SplitPart::RowGroups(range) | SplitPart::Batches(range) => {
                    PartIs::RowGroups(range.start as u32..range.end as u32)
                }
                SplitPart::Bytes(range) => {
                    let start = self.start_of(input, range.start, starts)?;
                    PartIs::Bytes { range, start }
                }
            };
            found.push((input, is));
        }
        Ok(found)
    }

    fn start_of(&self, input: usize, from: u64, starts: Starts) -> Result<u64> {
        match starts {
            // What stands before the first record of a text is read with it.
            _ if from == 0 && self.request.form == InputForm::Text => Ok(0),
            Starts::Seen => first_record_behind(&self.request, input, from),
            Starts::Records => self.record_at(input, from),
        }
    }

    fn record_at(&self, input: usize, from: u64) -> Result<u64> {
        let mut records = lock(&self.records);
        let mut before = records.range((input, 0)..=(input, from)).map(|(_, at)| *at);
        let known = before.rfind(|at| at.byte <= from);
        let at = match records.get(&(input, from)) {
            Some(at) => *at,
            None => first_record_at(&self.request, input, from, known)?,
        };
        records.insert((input, from), at);
        Ok(at.byte)
    }

    /// Whether a part of a share does not start where a record does.
    fn is_misread(&self, request: &LoadRequest) -> Result<bool> {
        let parts = request.share.iter().flat_map(|share| &share.parts);
        for InputPart { input, is } in parts {
            if let PartIs::Bytes { range, start } = is
                && self.start_of(*input as usize, range.start, Starts::Records)? != *start
                && range.start > 0
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn explain(&self, error: Error) -> Error {
        match error {
            Error::Input { place, text } if self.is_inferred => {
                let text = format!(
                    "{text}; the types were inferred, and a share of a load does not widen them (give --columns or \
                     --schema to all shares)"
                );
                Error::Input { place, text }
            }
            other => other,
        }
    }
}

/// Inputs apart from those of other workers, which are not read ahead here.
fn apart(mut inputs: Vec<InputFile>) -> Inputs {
    let object = |input: &InputFile| match &input.source {
        InputSource::Object(object) => Some(object.clone()),
        _ => None,
    };
    let objects: Vec<ObjectRef> = inputs.iter().filter_map(object).collect();
    let mut objects = ObjectRef::apart(&objects).into_iter();
    for input in inputs.iter_mut().filter(|input| object(input).is_some()) {
        if let Some(object) = objects.next() {
            input.source = InputSource::Object(object);
        }
    }
    inputs.into()
}

/// Where the rejects of another share go that is done again here.
fn beside(path: PathBuf, number: u32) -> PathBuf {
    let mut name = path.into_os_string();
    name.push(format!(".share-{number}"));
    PathBuf::from(name)
}

/// The report of a worker that did the share of another again, too.
fn of_both(own: LoadReport, again: LoadReport) -> LoadReport {
    let shares = match (&own.shares, again.shares) {
        (Some(own), Some(again)) => Some(coload_wire::SharesDone { of: own.of, ..again }),
        (_, again) => again,
    };
    LoadReport { shares, published: again.published, ..own }
}
