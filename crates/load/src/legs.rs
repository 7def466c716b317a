//! A load whose columns become wider goes on where it is.
//!
//! ```text
//!   chunks     0 1 2 3 | 4 5 6 7 | 8 9         types of a column    BIGINT | DECIMAL | VARCHAR
//!   legs       0       | 1       | 2
//! ```
//!
//! A leg is what has the same types. It ends before the first chunk with a field that these do not hold, which
//! depends on the input only; the next begins with that chunk and wider types. At the end the segments of the
//! legs before are written again with the last types ([`TypeChange`]): values are converted, and of a column
//! that became text the text is read again, that column only. Of a stream, which cannot be read again, it was
//! kept ([`crate::spool`]).
//!
//! Cost of a column that becomes wider: one chunk a thread, parsed twice, and a copy of the segments so far.

use std::borrow::Cow;
use std::sync::Arc;

use coload_ddl::Schema;
use coload_store::{LoadDir, OnConflict, Reread, TypeChange, text_columns};
use coload_threads::{Step, StepClock};
use coload_types::{DataType, Error, Result, Value};
use coload_wire::ColumnFrom;

use crate::arrow_ipc::Arrow;
use crate::avro_input::Avro;
use crate::format::{Format, Reached};
use crate::grain::Grain;
use crate::load::Load;
use crate::opened::OpenedStream;
use crate::parquet_input::Parquet;
use crate::pipeline::{Begun, Ended, Loaded, Pipeline, Stop};
use crate::request::{InputForm, LoadRequest};
use crate::reread::reread_request;
use crate::resources::Resources;
use crate::resume::{LegRecord, ResumeJournal, Resumed, ResumedLeg};
use crate::spool::Spool;
use crate::target::{DoneSegment, MadeSegments, Segments, Target};
use crate::text::Text;
use crate::typed_source::SourceRows;
use crate::widen::{Way, Widened, Widening};

/// A load, all legs of it.
pub struct AllLegs<'a> {
    /// What became of the inputs.
    pub loaded: Loaded,
    /// Durable segments in order, of the last types.
    pub segments: Vec<DoneSegment>,
    /// CPU time by step.
    pub clock: StepClock,
    /// The request with the last types.
    pub request: Cow<'a, LoadRequest>,
    /// Columns that became wider.
    pub widened: Vec<Widened>,
    /// The inputs, where records may have to be told that are rows already.
    pub inputs: Option<Box<dyn ReadInputs>>,
    /// Rows that an earlier attempt left.
    pub known_rows: u64,
}

/// Inputs that were read, and are there to be read again.
pub trait ReadInputs {
    /// Reads them again into a target that takes rows, by the request with the last types.
    ///
    /// # Errors
    /// Those of a load; `Unavailable` when they are others now, or the text of a stream was not kept.
    fn read_again(&self, load: Load<'_>, target: &dyn Target) -> Result<Loaded>;
}

/// Inputs of a format.
struct InputsOf<F> {
    source: F,
    spool: Option<Arc<Spool>>,
}

impl<F: Format> ReadInputs for InputsOf<F> {
    fn read_again(&self, load: Load<'_>, target: &dyn Target) -> Result<Loaded> {
        let stream = match &self.spool {
            None => None,
            Some(spool) => Some(spool.reader().ok_or_else(|| {
                Error::Unavailable(
                    "the text of a stream so long is not kept, so that records whose keys are there already cannot be told \
                     (load a file, or say --on-conflict ignore)"
                        .to_owned(),
                )
            })?),
        };
        let name = load.request.inputs.name(0);
        let stream = stream.map(|reader| OpenedStream::new(name, reader));
        read_whole_again(load, stream, Some(&self.source), target)
    }
}

/// Reads inputs again into a target that takes rows; they are to be those that were read before, if these are there.
fn read_whole_again<F: Format>(
    load: Load<'_>,
    stream: Option<OpenedStream>,
    before: Option<&F>,
    target: &dyn Target,
) -> Result<Loaded> {
    // Types are the last, and the report of the load has the distinct values.
    let request =
        LoadRequest { stream, inferred: None, count_distinct: false, ..load.request.clone() };
    let hooks = load.hooks.of_part();
    let load = Load { request: &request, hooks: &hooks, ..load };
    let source = open_inputs::<F>(&request, load.resources, None)?;
    before.map_or(Ok(()), |before| source.check_same(before))?;
    let way = Way::StartAgain { pass: 0 };
    let begun = Begun::new(&request, &source, way)?;
    match Pipeline::new(load, &source, target, way, begun)?.run() {
        Ok(Ended::Whole(loaded, _)) => Ok(loaded),
        Err(Stop::Failed(error)) => Err(error),
        Ok(Ended::Cut { .. }) | Err(Stop::Widen(_)) => {
            Err(Error::Corrupt("inputs have other fields when they are read again".into()))
        }
    }
}

/// Reads inputs that are no streams again into a target that takes rows.
///
/// # Errors
/// Those of a load.
pub fn read_again(load: Load<'_>, target: &dyn Target) -> Result<Loaded> {
    match load.request.form {
        InputForm::Text => read_whole_again::<Text>(load, None, None, target),
        InputForm::Arrow => read_whole_again::<Arrow>(load, None, None, target),
        InputForm::Parquet => read_whole_again::<Parquet>(load, None, None, target),
        InputForm::Avro => read_whole_again::<Avro>(load, None, None, target),
        InputForm::Rows => read_whole_again::<SourceRows>(load, None, None, target),
    }
}

/// A leg that has ended.
struct Leg {
    /// Columns of the table.
    schema: Schema,
    segments: Vec<DoneSegment>,
    /// Text to be read to have all of it, in the terms of `sample_bytes`.
    bytes: u64,
}

/// Passes that start again before one that no longer goes on.
const RESTARTS_MAX: usize = 2;

/// What can be done when a column needs a wider type, if what there is may stay.
pub fn way_of(request: &LoadRequest, stays: bool, pass: usize) -> Way {
    match request.inferred {
        Some(_) if stays => Way::GoOn,
        _ => Way::StartAgain { pass },
    }
}

/// Segments of a load, in a folder or nowhere, from a number on.
pub fn segments_of<'a>(load: Load<'_>, dir: Option<&'a LoadDir>, first: u32) -> Segments<'a> {
    let grain = Grain::of(load.request, load.resources);
    Segments::new(dir, first, &load.request.schema, &grain)
}

/// Whether the rows so far are those that wider types give: no filter, expression or rule looked at a column
/// that became wider.
fn same_rows(before: &LoadRequest, wider: &LoadRequest) -> bool {
    let same_type = |a: &Schema, b: &Schema, column: usize| {
        a.columns()[column].data_type == b.columns()[column].data_type
    };
    let same_program = match (&before.program, &wider.program) {
        (Some(program), Some(now)) => {
            let (read, read_now) = (before.read_schema(), wider.read_schema());
            program.sources() == now.sources()
                && program.uses() == now.uses()
                && now.uses().iter().all(|column| same_type(read, read_now, *column))
        }
        _ => true,
    };
    let (table, now) = (&before.schema, &wider.schema);
    same_program
        && (now.checks().is_empty() || (0..now.len()).all(|column| same_type(table, now, column)))
}

/// Starts again with wider types, if the inputs can be read again.
fn start_again(
    request: &LoadRequest,
    widening: Box<Widening>,
    told: Vec<Widened>,
    now: &[Widened],
) -> Stop {
    let once = request.inputs.read_once().is_some();
    match now.first() {
        Some(Widened { column, from, place, value, .. }) if once => Stop::Failed(Error::Input {
            place: Box::new(place.clone()),
            text: format!(
                "column {column} was inferred as {from}, which \"{}\" is not; --where, --select or a CHECK looks at \
                 it, and a stream cannot be read again (give --columns, or load a file)",
                String::from_utf8_lossy(&value[..value.len().min(40)])
            ),
        }),
        _ => Stop::Widen(Box::new(widening.after(told))),
    }
}

/// Loads the inputs into a target that knows no legs.
///
/// # Errors
/// Those of a load. `Stop::Widen` where another attempt has to go on.
pub fn run_once(
    load: Load<'_>,
    target: &dyn Target,
    way: Way,
) -> std::result::Result<(Loaded, StepClock), Stop> {
    match load.request.form {
        InputForm::Text => run_once_of::<Text>(load, target, way),
        InputForm::Arrow => run_once_of::<Arrow>(load, target, way),
        InputForm::Parquet => run_once_of::<Parquet>(load, target, way),
        InputForm::Avro => run_once_of::<Avro>(load, target, way),
        InputForm::Rows => run_once_of::<SourceRows>(load, target, way),
    }
}

fn run_once_of<F: Format>(
    load: Load<'_>,
    target: &dyn Target,
    way: Way,
) -> std::result::Result<(Loaded, StepClock), Stop> {
    let source = open_inputs::<F>(load.request, load.resources, None)?;
    if let Some(opened) = &load.hooks.opened {
        opened(&source.parts_read());
    }
    let begun = Begun::new(load.request, &source, way)?;
    match Pipeline::new(load, &source, target, way, begun)?.run()? {
        Ended::Whole(loaded, clock) => Ok((loaded, clock)),
        Ended::Cut { widening, .. } => Err(Stop::Widen(widening)),
    }
}

/// Loads the inputs into segments, in a folder or nowhere, leg by leg.
///
/// # Errors
/// Those of a load. `Stop::Widen` where the load has to start again.
pub fn run_legs<'a>(
    load: Load<'a>,
    dir: Option<&LoadDir>,
    journal: Option<&Arc<ResumeJournal>>,
    pass: usize,
) -> std::result::Result<AllLegs<'a>, Stop> {
    match load.request.form {
        InputForm::Text => run_legs_of::<Text>(load, dir, journal, pass),
        InputForm::Arrow => run_legs_of::<Arrow>(load, dir, journal, pass),
        InputForm::Parquet => run_legs_of::<Parquet>(load, dir, journal, pass),
        InputForm::Avro => run_legs_of::<Avro>(load, dir, journal, pass),
        InputForm::Rows => run_legs_of::<SourceRows>(load, dir, journal, pass),
    }
}

fn run_legs_of<'a, F: Format + 'static>(
    load: Load<'a>,
    dir: Option<&LoadDir>,
    journal: Option<&Arc<ResumeJournal>>,
    pass: usize,
) -> std::result::Result<AllLegs<'a>, Stop> {
    let mut request = Cow::Borrowed(load.request);
    let way = way_of(&request, pass <= RESTARTS_MAX, pass);
    let spool = make_spool(&request, dir, way)?;
    let source = look_at_inputs::<F>(&request, load.resources, spool.as_ref())?;
    let mut begun = Begun::new(&request, &source, way)?;
    let (mut legs, mut widened) = (Vec::new(), Vec::new());
    let mut first = 0;
    let (mut kept, mut begins_with) = (None, 0);
    let can_go_on = source.chunks().is_some() || source.can_begin_behind();
    let journal = journal.zip(dir).filter(|_| can_go_on);
    if let Some((journal, dir)) = journal {
        let resumed = journal.take(dir)?;
        if let Some(reached) = Reached::of(resumed.accounts()) {
            source.begin_behind(reached);
            begins_with = reached.file;
        }
        let leg = go_on(resumed, (&mut request, &mut begun), (&mut legs, &mut widened))?;
        first = legs.iter().map(|leg: &Leg| leg.segments.len() as u32).sum();
        kept = Some(leg);
    }
    read_ahead::<F>((&request, load.resources), &source, begins_with)?;
    let known_rows = (legs.iter().flat_map(|leg| &leg.segments))
        .chain(kept.iter().flat_map(|leg| &leg.segments))
        .map(|segment| segment.summary.rows)
        .sum();
    let (loaded, clock, mut segments) = loop {
        let load = load.with_request(&request);
        let target = segments_of(load, dir, first);
        let target = match journal {
            Some((journal, _)) => {
                target.kept_in(Arc::clone(journal), kept.take().unwrap_or_default())
            }
            None => target,
        };
        let ended = Pipeline::new(load, &source, &target, way, begun)?.run()?;
        let (widening, next) = match ended {
            Ended::Whole(loaded, clock) => break (loaded, clock, target.into_done()),
            Ended::Cut { widening, begun } => (widening, begun),
        };
        first = target.started();
        let rest = target.take_rest();
        let segments = target.into_done();
        let bytes = source.bytes_before(next.from, next.account.record_bytes());
        let leg = Leg { schema: request.schema.clone(), segments, bytes };
        let bounds = leg.bounds(&request);
        let before = request.clone();
        let now = widening.clone().widen(request.to_mut(), &bounds)?;
        if !same_rows(&before, &request) {
            return Err(start_again(&request, widening, widened, &now));
        }
        if let Some((journal, dir)) = journal {
            let did_not_fit =
                now.iter().map(|now| (now.column.clone(), now.place.clone(), now.value.clone()));
            let record = LegRecord {
                from: next.from,
                partitions: next.partitions,
                bytes,
                rest,
                schema: request.schema.clone(),
                widened: did_not_fit.collect(),
            };
            journal.begin_leg(dir, &leg.segments, (first, &record))?;
        }
        widened.extend(now);
        legs.push(leg);
        begun = next;
        begun.account.begin_leg(&request);
    };
    if let Some(dir) = dir
        && !legs.is_empty()
    {
        let clean = loaded.account.is_clean();
        let load = load.with_request(&request);
        let made = MadeSegments::new(dir);
        let kept = spool.clone();
        let rewrite =
            Rewrite { dir, made, load, source: &source, spool: kept, clean, widened: &widened };
        segments = clock.time(Step::Write, || rewrite.run(legs, segments))?;
    }
    let inputs = (request.on_conflict == OnConflict::Reject)
        .then(|| Box::new(InputsOf { source, spool }) as Box<dyn ReadInputs>);
    Ok(AllLegs { loaded, segments, clock, request, widened, inputs, known_rows })
}

/// Goes on with what an earlier attempt left: legs that are whole, and how the last begins, of which some may be there.
fn go_on(
    resumed: Resumed,
    (request, begun): (&mut Cow<'_, LoadRequest>, &mut Begun),
    (legs, widened): (&mut Vec<Leg>, &mut Vec<Widened>),
) -> Result<ResumedLeg> {
    let mut last: Option<ResumedLeg> = None;
    for mut leg in resumed.legs {
        if let Some(begins) = leg.begins.take()
            && let Some(ResumedLeg { segments, accounts, .. }) = last.take()
        {
            let before = begun.account.text_bytes();
            for account in accounts.iter().chain(&begins.rest) {
                begun.account.add_known(account)?;
                begun.rows += account.rows();
            }
            begun.progress.add(begun.account.text_bytes() - before, 0);
            (begun.from, begun.partitions) = (begins.from, begins.partitions);
            let before = Leg { schema: request.schema.clone(), segments, bytes: begins.bytes };
            let bounds = before.bounds(request);
            let columns = request.read_schema().columns().to_vec();
            // The types of columns that become wider later hold what is there.
            let forms = request.to_mut().inferred.iter_mut().flatten();
            for ((forms, column), bounds) in forms.zip(&columns).zip(bounds) {
                if let Some((least, largest)) = bounds.filter(|_| !forms.is_given()) {
                    forms.add_stored(&least, column.data_type);
                    forms.add_stored(&largest, column.data_type);
                }
            }
            widened.extend(begins.apply(request)?);
            legs.push(before);
            begun.account.begin_leg(request);
        }
        last = Some(leg);
    }
    begun.progress.add(0, begun.rows);
    Ok(last.unwrap_or_default())
}

/// Where the text of a stream is kept, if it may be needed again.
fn make_spool(
    request: &LoadRequest,
    dir: Option<&LoadDir>,
    way: Way,
) -> Result<Option<Arc<Spool>>> {
    let once = request.inputs.read_once().is_some();
    let typed = request.read_schema().columns().iter().any(|c| !c.data_type.is_text());
    let is_needed = way == Way::GoOn && typed || request.on_conflict == OnConflict::Reject;
    match dir {
        Some(dir) if once && is_needed => Spool::create(&dir.scratch_path("spool")).map(Some),
        _ => Ok(None),
    }
}

/// The column of the table that a column is that is read.
pub fn table_column(request: &LoadRequest, read: usize) -> Option<usize> {
    let Some(derivation) = &request.derivation else { return Some(read) };
    let made = match &request.program {
        Some(program) => program.sources().iter().position(|source| *source == Some(read))?,
        None => read,
    };
    derivation.columns.iter().position(|from| *from == ColumnFrom::Read(made))
}

impl Leg {
    /// The least and the largest value of each column that is read.
    fn bounds(&self, request: &LoadRequest) -> Vec<Option<(Value, Value)>> {
        let bounds = |read| {
            let column = table_column(request, read)?;
            let stats = || self.segments.iter().map(|s| &s.summary.columns[column]);
            let least = stats().filter_map(|s| s.min.clone()).min()?;
            Some((least, stats().filter_map(|s| s.max.clone()).max()?))
        };
        (0..request.read_schema().len()).map(bounds).collect()
    }
}

/// Gives the segments of all legs the last types.
struct Rewrite<'a, F> {
    dir: &'a LoadDir,
    made: MadeSegments<'a>,
    /// With the last types.
    load: Load<'a>,
    source: &'a F,
    spool: Option<Arc<Spool>>,
    /// Whether no record was rejected.
    clean: bool,
    widened: &'a [Widened],
}

impl<F: Format> Rewrite<'_, F> {
    /// Gives the segments of all legs, `last_leg` being those of the last.
    fn run(&self, legs: Vec<Leg>, mut last_leg: Vec<DoneSegment>) -> Result<Vec<DoneSegment>> {
        let schema = &self.load.request.schema;
        // What is no text in the first leg, and is in the last, became so.
        let texts = legs.first().map_or_else(Vec::new, |leg| text_columns(&leg.schema, schema));
        let change = |leg: &Leg| TypeChange::new(leg.schema.columns(), schema.columns(), &texts);
        let changes = legs.iter().map(change).collect::<Result<Vec<_>>>()?;
        let last = changes.iter().rposition(TypeChange::wants_text);
        let all = legs.iter().flat_map(|leg| &leg.segments).chain(&last_leg);
        let mut next = all.map(|segment| segment.number + 1).max().unwrap_or(0);
        let (mut reread, numbers) = match last {
            Some(last) => self.read_again(&texts, legs[last].bytes, &mut next)?,
            None => (Reread::default(), Vec::new()),
        };
        let mut segments = Vec::new();
        for (number, (leg, change)) in legs.into_iter().zip(&changes).enumerate() {
            let was_read = last.is_some_and(|last| number <= last);
            for segment in leg.segments {
                let pages = if was_read { reread.take(&segment.page_rows())? } else { Vec::new() };
                if change.is_none() {
                    segments.push(segment);
                    continue;
                }
                segments.push(self.made.change(&segment, change, (&reread, &pages), next)?);
                next += 1;
            }
        }
        numbers.iter().try_for_each(|number| self.made.remove(*number))?;
        segments.append(&mut last_leg);
        Ok(segments)
    }

    /// Reads columns of the table again, as text; their segments, and the numbers of these.
    fn read_again(
        &self,
        texts: &[usize],
        bytes: u64,
        next: &mut u32,
    ) -> Result<(Reread, Vec<u32>)> {
        let mut request = reread_request(self.load.request, texts, self.clean)?;
        (request.stream, request.sample_bytes) = (self.kept_stream()?, Some(bytes));
        let hooks = self.load.hooks.of_part();
        let load = Load { request: &request, hooks: &hooks, ..self.load };
        let source = open_inputs::<F>(&request, load.resources, None)?;
        source.check_same(self.source)?;
        let way = Way::StartAgain { pass: 0 };
        let begun = Begun::new(&request, &source, way)?;
        let target = segments_of(load, Some(self.dir), *next);
        match Pipeline::new(load, &source, &target, way, begun)?.run() {
            Ok(Ended::Whole(..)) => {}
            Err(Stop::Failed(error)) => return Err(error),
            Ok(Ended::Cut { .. }) | Err(Stop::Widen(_)) => {
                return Err(Error::Corrupt("text that no column of text holds".to_owned()));
            }
        }
        let numbers: Vec<u32> = target.into_done().iter().map(|segment| segment.number).collect();
        *next = numbers.iter().map(|number| number + 1).max().unwrap_or(*next);
        let segments = numbers.iter().map(|number| self.made.open(*number).map(Arc::new));
        Ok((Reread::new(segments.collect::<Result<_>>()?), numbers))
    }

    /// What was kept of a stream.
    fn kept_stream(&self) -> Result<Option<OpenedStream>> {
        let Some(spool) = &self.spool else { return Ok(None) };
        if let Some(reader) = spool.reader() {
            return Ok(Some(OpenedStream::new(self.load.request.inputs.name(0), reader)));
        }
        let text = |widened: &&Widened| widened.to == DataType::Varchar(None);
        Err(match self.widened.iter().find(text) {
            Some(Widened { column, from, place, .. }) => Error::Input {
                place: Box::new(place.clone()),
                text: format!(
                    "column {column} was inferred as {from}, and this is text; of a stream so long the text \
                     before is not kept (give --columns or --all-text, or load a file)"
                ),
            },
            None => Error::Unavailable("the text of the stream was not kept".to_owned()),
        })
    }
}

/// Share of the memory for what is read ahead of inputs whose parts must be there as wholes.
const TOGETHER_SHARE: usize = 6;

/// Opens the inputs of a load; those on other machines are then read ahead.
fn open_inputs<F: Format>(
    request: &LoadRequest,
    resources: &Resources,
    spool: Option<&Arc<Spool>>,
) -> Result<F> {
    let source = look_at_inputs(request, resources, spool)?;
    read_ahead::<F>((request, resources), &source, 0)?;
    Ok(source)
}

/// Opens the inputs of a load.
fn look_at_inputs<F: Format>(
    request: &LoadRequest,
    resources: &Resources,
    spool: Option<&Arc<Spool>>,
) -> Result<F> {
    request.inputs.look();
    F::open(request, resources, spool)
}

/// Begins to fetch inputs that are on other machines, from one on, and cuts them meanwhile.
fn read_ahead<F: Format>(
    (request, resources): (&LoadRequest, &Resources),
    source: &F,
    from: usize,
) -> Result<()> {
    // What is looked at together, and what is read next, should be there at once.
    let together = usize::try_from(source.together_bytes()).unwrap_or(usize::MAX);
    let wanted = together.saturating_mul(2).min(resources.memory / TOGETHER_SHARE);
    request.inputs.read_ahead(Grain::of(request, resources).ahead_bytes.max(wanted), from);
    source.cut_into_chunks(request, resources)
}
