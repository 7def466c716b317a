//! A load into a store of this machine that goes on where an earlier attempt of it was interrupted.
//!
//! ```text
//!   segments   0 1 2 | 3 4 x             written as those of any load, in its folder, which goes with the process
//!   journal    0 1 2 | 3 4               a second name of each that is whole, and what became of its records
//!   next time          skipped, 5 ..     the second names are the first segments of a new folder
//! ```
//!
//! The journal is made with the first segment behind which something is to come, so that small loads have none. It is known
//! again by what the load is: inputs and which versions of them, table, columns, dialect, sizes of chunks. Where columns became
//! wider, it has a leg (`legs`) with their types. A load is remembered by the name of its journal, so that one which was
//! published just before its process ended is not loaded again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use coload_ddl::Schema;
use coload_input::{InputFile, InputSource};
use coload_store::{
    FinishedColumn, JournalEntry, LoadDir, LoadId, LoadJournal, OnConflict, RememberedLoad,
    SegmentFile, SegmentSummary, Store,
};
use coload_threads::lock;
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Place, Result};
use coload_wire::{LoadDescription, LoadStage, LoadStatus, PartitionAccount, Widen, Work};

use crate::format::Position;
use crate::into_store::target;
use crate::load::Load;
use crate::pipeline::Stop;
use crate::remote::{describe_as, is_final_error};
use crate::request::LoadRequest;
use crate::share_into_store::INPUTS_LISTED_MAX;
use crate::target::DoneSegment;
use crate::widen::Widened;

/// What the description of such a load begins with, so that no server takes it for one that it was sent.
const MARK: &[u8] = b"\xffembedded\x01";
/// A journal that nobody went on with for so long is dropped by the next load of its kind.
const EXPIRE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The journal of a load, which is there or may come to be.
#[derive(Debug)]
pub struct ResumeJournal {
    store: Store,
    request: LoadRequest,
    /// What the load is, as bytes.
    description: Vec<u8>,
    journal: OnceLock<LoadJournal>,
    /// Held by who makes it.
    making: Mutex<()>,
    /// What became of the records of segments that are only kept if something comes behind them.
    waiting: Mutex<BTreeMap<u32, Vec<PartitionAccount>>>,
}

/// What an earlier attempt left.
#[derive(Debug, Default)]
pub struct Resumed {
    /// What has the same types, in order; all but the last are whole.
    pub legs: Vec<ResumedLeg>,
}

/// What an earlier attempt left that has the same types.
#[derive(Debug, Default)]
pub struct ResumedLeg {
    /// How it began; `None` of the first.
    pub begins: Option<LegRecord>,
    /// Its segments, in order, in the folder of the load now.
    pub segments: Vec<DoneSegment>,
    /// What became of the records of each partition.
    pub accounts: Vec<PartitionAccount>,
}

impl Resumed {
    /// What became of the records of all partitions, in order.
    pub fn accounts(&self) -> impl Iterator<Item = &PartitionAccount> {
        self.legs
            .iter()
            .flat_map(|leg| leg.begins.iter().flat_map(|begins| &begins.rest).chain(&leg.accounts))
    }
}

/// How a leg begins that has wider types than the one before.
#[derive(Debug, Clone, PartialEq)]
pub struct LegRecord {
    /// Where, in the inputs.
    pub from: Position,
    /// Partitions of all legs before.
    pub partitions: usize,
    /// Text of the leg before, in the terms of `sample_bytes`.
    pub bytes: u64,
    /// What became of the records of its partitions behind the last segment.
    pub rest: Vec<PartitionAccount>,
    /// Columns of the table from there on.
    pub schema: Schema,
    /// Columns that are read which became wider, and where the first field stands that did not fit.
    pub widened: Vec<(String, Place, Vec<u8>)>,
}

/// What there is of a load before it begins.
pub enum Begins {
    /// It was published, and its process ended before it could say so.
    Published(LoadId, RememberedLoad),
    /// It has a journal, or may come to have one.
    Kept(Arc<ResumeJournal>),
    /// It is one that does not go on.
    Plain,
}

/// Looks for what an earlier attempt of a load left.
///
/// # Errors
/// `Unavailable` when inputs or the store cannot be read.
pub fn begin(store: &Store, load: Load<'_>) -> Result<Begins> {
    let request = load.request;
    if !is_kept(request) {
        return Ok(Begins::Plain);
    }
    let mut description = describe_as(request, load.resources, Work::Partitions)?;
    if description.salt != 0 || !request.inputs.iter().all(|input| is_versioned(&input)) {
        return Ok(Begins::Plain);
    }
    let found = find(store, &description)?;
    let mut request = request.clone();
    if let Some((journal, begun)) = &found {
        if let Some(published) = store.snapshot()?.published(&request.table, journal.id())? {
            let id = journal.id();
            found.map(|(journal, _)| journal.remove()).transpose()?;
            return Ok(Begins::Published(id, published));
        }
        description.began_us = begun.began_us;
        request.began_us = begun.began_us.unwrap_or(request.began_us);
    }
    let kept = ResumeJournal {
        store: store.clone(),
        description: [MARK, &description.encode()].concat(),
        request,
        journal: found.map(|(journal, _)| journal).map_or_else(OnceLock::new, OnceLock::from),
        making: Mutex::default(),
        waiting: Mutex::default(),
    };
    Ok(Begins::Kept(Arc::new(kept)))
}

/// A load has ended: what was kept goes, unless the same load may come to its end when it goes on.
///
/// # Errors
/// That of the load; it says how to go on with it.
pub fn end<T>(
    store: &Store,
    journal: Arc<ResumeJournal>,
    ended: std::result::Result<T, Stop>,
) -> std::result::Result<T, Stop> {
    let Some(id) = journal.id() else { return ended };
    match ended {
        Err(Stop::Failed(error)) if !is_final_error(&error) => {
            let hint = format!(
                "what was loaded so far is kept: the same command goes on with it (coload loads --store {} --abort {id} drops it)",
                store.path().display()
            );
            Err(Stop::Failed(match error {
                Error::Unavailable(text) => Error::Unavailable(format!("{text}; {hint}")),
                Error::Corrupt(text) => Error::Corrupt(format!("{text}; {hint}")),
                other => other,
            }))
        }
        ended => {
            // One that stays is known to be published.
            let _ = journal.remove();
            ended
        }
    }
}

/// Whether it is known which version of an object it is: of others it cannot be told whether they have changed.
fn is_versioned(input: &InputFile) -> bool {
    match &input.source {
        InputSource::Object(object) => object.etag().is_some() || object.modified_us() != 0,
        _ => true,
    }
}

/// Whether what there is of a load stays when it is interrupted: records whose keys are there must be told by what is read in one
/// go, and what others see with it is written in one go.
fn is_kept(request: &LoadRequest) -> bool {
    (request.resumable || request.inputs.are_far())
        && request.inputs.read_once().is_none()
        && request.source.is_none()
        && request.streams.is_none()
        && request.share.is_none()
        && request.key.is_none()
        && request.beside.is_empty()
        && request.on_conflict != OnConflict::Reject
        && request.sample_bytes.is_none()
}

/// What the load is that a journal is of, if it is one of these.
pub fn description_of(entry: &JournalEntry) -> Option<LoadDescription> {
    LoadDescription::decode(entry.description.strip_prefix(MARK)?).ok()
}

/// The journal of a load, if an earlier attempt left one, and what it was then. Those that nobody came back to are dropped.
fn find(
    store: &Store,
    description: &LoadDescription,
) -> Result<Option<(LoadJournal, LoadDescription)>> {
    let id = description.id(0);
    let mut found = None;
    for entry in store.list_journals()? {
        let Some(begun) = description_of(&entry) else { continue };
        let is_same = found.is_none() && begun.id(0) == id;
        let is_old = entry.modified + EXPIRE < SystemTime::now();
        if !is_same && !is_old {
            continue;
        }
        // Another process may work on it: then this is another load.
        let Ok(Some(journal)) = store.open_journal(entry.id) else { continue };
        match is_same {
            true => found = Some((journal, begun)),
            // The next load tries again.
            false => drop(journal.remove()),
        }
    }
    Ok(found)
}

/// What interrupted loads left in a store.
///
/// # Errors
/// `Unavailable` when the store cannot be read.
pub fn list_kept(store: &Store) -> Result<Vec<LoadStatus>> {
    let mut list = Vec::new();
    for entry in store.list_journals()? {
        let Some(description) = description_of(&entry) else { continue };
        let (state, parts) = match store.open_journal(entry.id) {
            Ok(Some(journal)) => (LoadStage::Waiting, journal.parts()?),
            Ok(None) => continue,
            Err(_) => (LoadStage::Arriving, Vec::new()),
        };
        let parts = parts.iter().map(|(_, bytes)| Part::decode(bytes));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let accounts = parts.iter().flat_map(|part| &part.accounts);
        list.push(LoadStatus {
            id: entry.id,
            state,
            rows: parts.iter().map(|part| part.rows).sum(),
            rejects: accounts.map(|account| account.rejects.len()).sum(),
            bytes: entry.bytes,
            idle_s: entry.modified.elapsed().map_or(0, |idle| idle.as_secs()),
            inputs: description.input_names(INPUTS_LISTED_MAX),
            share: None,
            table: description.table,
        });
    }
    Ok(list)
}

/// Drops what an interrupted load left; whether it left something.
///
/// # Errors
/// `Unavailable` when a process works on it.
pub fn drop_kept(store: &Store, load: LoadId) -> Result<bool> {
    let is_kept = |entry: &JournalEntry| entry.id == load && description_of(entry).is_some();
    if !store.list_journals()?.iter().any(is_kept) {
        return Ok(false);
    }
    store.open_journal(load)?.map(LoadJournal::remove).transpose()?;
    Ok(true)
}

impl ResumeJournal {
    /// What the load is remembered by, if it has a journal.
    pub fn id(&self) -> Option<LoadId> {
        self.journal.get().map(LoadJournal::id)
    }

    /// When the load began: its first attempt.
    pub fn began_us(&self) -> i64 {
        self.request.began_us
    }

    /// Takes what an earlier attempt left into the folder of the load. What is not whole is dropped.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged, `Unavailable` when the disk fails.
    pub fn take(&self, dir: &LoadDir) -> Result<Resumed> {
        let Some(journal) = self.journal.get() else { return Ok(Resumed::default()) };
        let mut parts = journal.parts()?.into_iter().peekable();
        let mut begins = vec![(0, None)];
        for (number, bytes) in journal.legs()? {
            begins.push((number, Some(LegRecord::decode(&bytes)?)));
        }
        let ends: Vec<u32> = begins.iter().skip(1).map(|(number, _)| *number).collect();
        let mut legs = Vec::new();
        for (at, (first, begins)) in begins.into_iter().enumerate() {
            let mut leg = ResumedLeg { begins, segments: Vec::new(), accounts: Vec::new() };
            let mut next = first;
            while let Some((number, bytes)) = parts.next_if(|(number, _)| {
                *number == next && ends.get(at).is_none_or(|end| *number < *end)
            }) {
                let part = Part::decode(&bytes)?;
                dir.adopt_segment(&journal.existing_segment_path(number), number)?;
                leg.segments.push(part.open(dir, number)?);
                leg.accounts.extend(part.accounts);
                next += 1;
            }
            if let Some(end) = ends.get(at).filter(|end| **end != next) {
                return Err(Error::Corrupt(format!(
                    "the journal of load {} has {next} segments of {end}",
                    journal.id()
                )));
            }
            legs.push(leg);
        }
        // Those behind one that was not whole are written anew.
        parts.try_for_each(|(number, _)| journal.drop_part(number))?;
        Ok(Resumed { legs })
    }

    /// Keeps a segment that is whole, with what became of the records of its partitions; `number` is its name in the folder.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    pub fn keep(
        &self,
        path: &std::path::Path,
        (number, summary): (u32, &SegmentSummary),
        accounts: Vec<PartitionAccount>,
    ) -> Result<()> {
        let journal = self.made()?;
        journal.keep_segment(path, number)?;
        let part = Part { rows: summary.rows, bytes: summary.bytes, seal: summary.seal, accounts };
        journal.put_part(number, part.encode())
    }

    /// What became of the records of a segment that is only kept if something comes behind it.
    pub fn wait(&self, number: u32, accounts: Vec<PartitionAccount>) {
        lock(&self.waiting).insert(number, accounts);
    }

    /// Keeps the segments of a leg that ended, and how the next begins, with segment `first`.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    pub fn begin_leg(
        &self,
        dir: &LoadDir,
        segments: &[DoneSegment],
        (first, record): (u32, &LegRecord),
    ) -> Result<()> {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for (number, accounts) in waiting {
            let Some(done) = segments.iter().find(|done| done.number == number) else { continue };
            self.keep(&dir.segment_path(number), (number, &done.summary), accounts)?;
        }
        let journal = self.made()?;
        let mut record = record.clone();
        // A leg without segments gives way to the next, which then tells of both.
        if let Some((_, bytes)) = journal.legs()?.into_iter().find(|(number, _)| *number == first) {
            let before = LegRecord::decode(&bytes)?;
            record.rest.splice(..0, before.rest);
            record.widened.splice(..0, before.widened);
        }
        journal.put_leg(first, record.encode())
    }

    /// The journal; the first who asks makes it.
    fn made(&self) -> Result<&LoadJournal> {
        let _one = lock(&self.making);
        if let Some(journal) = self.journal.get() {
            return Ok(journal);
        }
        let id = LoadId::random()?;
        let target = target(&self.request);
        let journal = self.store.begin_journal(id, &target, self.description.clone())?;
        Ok(self.journal.get_or_init(|| journal))
    }

    /// Drops what was kept: the load is published, or would fail again.
    ///
    /// # Errors
    /// `Unavailable` when files cannot be removed.
    pub fn remove(self: Arc<Self>) -> Result<()> {
        match Arc::into_inner(self).and_then(|kept| kept.journal.into_inner()) {
            Some(journal) => journal.remove(),
            None => Ok(()),
        }
    }
}

/// A segment that is kept.
#[derive(Debug, PartialEq)]
struct Part {
    rows: u64,
    bytes: u64,
    seal: u64,
    accounts: Vec<PartitionAccount>,
}

impl Part {
    /// Rows, bytes and seal, then how many accounts and these.
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.rows);
        put_varint(&mut out, self.bytes);
        out.extend(self.seal.to_le_bytes());
        put_accounts(&mut out, &self.accounts);
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let (rows, bytes, seal) = (reader.varint()?, reader.varint()?, reader.u64()?);
        let part = Part { rows, bytes, seal, accounts: read_accounts(&mut reader)? };
        reader.finish()?;
        Ok(part)
    }

    /// The segment, in the folder of the load.
    fn open(&self, dir: &LoadDir, number: u32) -> Result<DoneSegment> {
        let path = dir.segment_path(number);
        let file = SegmentFile::open(&path)?;
        let Part { rows, bytes, seal, .. } = *self;
        if (file.rows(), file.bytes(), file.seal()) != (rows, bytes, seal) {
            return Err(Error::Corrupt(format!(
                "{}: another segment than the journal of the load says",
                path.display()
            )));
        }
        let stats = file.stats()?;
        let column = |(number, stats): (usize, &_)| -> Result<FinishedColumn> {
            let (physical, index) = (file.physical(number), file.column(number)?.index().clone());
            Ok(FinishedColumn { physical, index, stats: Clone::clone(stats) })
        };
        let columns = stats.iter().enumerate().map(column).collect::<Result<_>>()?;
        file.check()?;
        let summary = SegmentSummary { rows, bytes, seal, columns: stats };
        Ok(DoneSegment { number, summary, columns })
    }
}

fn put_accounts(out: &mut Vec<u8>, accounts: &[PartitionAccount]) {
    put_varint(out, accounts.len() as u64);
    accounts.iter().for_each(|account| account.put(out));
}

fn read_accounts(reader: &mut ByteReader<'_>) -> Result<Vec<PartitionAccount>> {
    let count = reader.count(1)?;
    (0..count).map(|_| PartitionAccount::read(reader)).collect()
}

impl LegRecord {
    /// Place, partitions, bytes, accounts, columns as they are sent when they become wider, then what did not fit.
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.from.chunks as u64);
        put_varint(&mut out, self.from.end);
        put_varint(&mut out, self.partitions as u64);
        put_varint(&mut out, self.bytes);
        put_accounts(&mut out, &self.rest);
        let columns = Widen { partitions: 0, schema: self.schema.clone() };
        put_bytes(&mut out, &columns.encode());
        put_varint(&mut out, self.widened.len() as u64);
        for (column, place, value) in &self.widened {
            put_bytes(&mut out, column.as_bytes());
            put_bytes(&mut out, place.file.as_bytes());
            put_varint(&mut out, place.line);
            put_varint(&mut out, place.byte);
            put_varint(&mut out, u64::from(place.field));
            put_bytes(&mut out, value);
        }
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let number = |reader: &mut ByteReader<'_>| -> Result<usize> {
            let value = reader.varint()?;
            usize::try_from(value).map_err(|_| Error::Corrupt(format!("{value} of a load")))
        };
        let text = |reader: &mut ByteReader<'_>| -> Result<String> {
            let bytes = reader.bytes()?;
            String::from_utf8(bytes.to_vec()).map_err(|_| Error::Corrupt("text of a load".into()))
        };
        let from = Position { chunks: number(&mut reader)?, end: reader.varint()? };
        let (partitions, bytes) = (number(&mut reader)?, reader.varint()?);
        let rest = read_accounts(&mut reader)?;
        let schema = Widen::decode(reader.bytes()?)?.schema;
        let count = reader.count(6)?;
        let mut widened = Vec::with_capacity(count);
        for _ in 0..count {
            let (column, file) = (text(&mut reader)?, text(&mut reader)?);
            let (line, byte) = (reader.varint()?, reader.varint()?);
            let field = number(&mut reader)? as u32;
            widened.push((column, Place { file, line, byte, field }, reader.bytes()?.to_vec()));
        }
        reader.finish()?;
        Ok(LegRecord { from, partitions, bytes, rest, schema, widened })
    }

    /// Gives a request the types of the leg; what became wider.
    ///
    /// # Errors
    /// `Corrupt` when they are not of this load.
    pub fn apply(&self, request: &mut Cow<'_, LoadRequest>) -> Result<Vec<Widened>> {
        let before = request.read_schema().clone();
        request.to_mut().set_types(&self.schema)?;
        let types = |schema: &Schema, name: &str| {
            let column = schema.columns().iter().find(|column| column.name == name);
            column.map(|column| column.data_type)
        };
        let widened = self.widened.iter().map(|(column, place, value)| {
            let both = types(&before, column).zip(types(request.read_schema(), column));
            let (from, to) = both.ok_or_else(|| {
                Error::Corrupt(format!("column {column} of a load, which has none of that name"))
            })?;
            Ok(Widened {
                column: column.clone(),
                from,
                to,
                place: place.clone(),
                value: value.clone(),
            })
        });
        widened.collect()
    }
}
