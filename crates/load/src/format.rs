//! What a load asks of the form that its inputs are in.
//!
//! ```text
//!   open -> chunks, cut beforehand or taken one by one -> plan of a partition, by its first chunk
//!                                                      -> fragment of each chunk, and what became of its records
//! ```
//!
//! A format knows records, and what stands before the first and behind the last. The pipeline knows chunks by their
//! numbers, fragments and accounts. A format is asked once a chunk.

mod taken;

use std::fmt::Debug;
use std::sync::{Arc, atomic::AtomicBool};

use coload_source::{ColumnForm, LeftOut, Mended, ParseTime, RejectedRecord};
use coload_threads::StepClock;
use coload_transform::{DistinctSketch, Fragment, TemporaryDictionary};
use coload_types::Result;
use coload_wire::PartitionAccount;

use crate::account::Account;
use crate::file_parts::FileParts;
use crate::hooks::PartsRead;
use crate::partition::PartitionPlan;
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::spool::Spool;
use crate::widen::Way;

pub use taken::Taken;

/// Is told the bytes and the rows of each window that was parsed; its error ends the task.
pub type Tick<'a> = dyn Fn(u64, u64) -> Result<()> + 'a;

/// The inputs of a load, opened.
pub trait Format: Sized + Sync {
    /// Reads the chunks of a leg.
    type Reading<'a>: Reading
    where
        Self: 'a;

    /// Opens the inputs; what a stream gives goes into `spool`.
    ///
    /// # Errors
    /// `Invalid` when an input cannot be opened.
    fn open(
        request: &LoadRequest,
        resources: &Resources,
        spool: Option<&Arc<Spool>>,
    ) -> Result<Self>;

    /// Cuts inputs into chunks that need not be known before reading ahead has begun.
    ///
    /// # Errors
    /// `Input` when one is damaged, `Unavailable` when it cannot be read.
    fn cut_into_chunks(&self, request: &LoadRequest, resources: &Resources) -> Result<()> {
        let _ = (request, resources);
        Ok(())
    }

    /// Begins to read.
    fn read<'a>(&'a self, leg: Leg<'a>) -> Self::Reading<'a>;

    /// Chunks in all, as they were cut; `None` where they are taken one by one.
    fn chunks(&self) -> Option<usize>;

    /// Begins behind what an earlier attempt read, where chunks are taken one by one.
    fn begin_behind(&self, reached: Reached) {
        let _ = reached;
    }

    /// Whether [`Self::begin_behind`] does so.
    fn can_begin_behind(&self) -> bool {
        false
    }

    /// What is known of each input before its records are read.
    fn bounds(&self) -> Vec<InputBounds>;

    /// Stored bytes of all inputs; 0 where they are not known.
    fn stored_bytes(&self) -> u64;

    /// What is read of the inputs, as it is stored.
    fn parts_read(&self) -> PartsRead {
        PartsRead { bytes: self.stored_bytes(), row_groups: None }
    }

    /// The parts of files that have rows of their own, where they are known before these are read.
    fn file_parts(&self) -> FileParts {
        FileParts::default()
    }

    /// Bytes before the first records of inputs whose chunks are cut beforehand.
    fn head_bytes(&self) -> u64;

    /// Whether chunks that were cut beforehand are waited for: who reads them has time.
    fn comes_from_afar(&self) -> bool {
        false
    }

    /// Bytes that are looked at together before the first rows of them can be read, where these are many.
    fn together_bytes(&self) -> u64 {
        0
    }

    /// What `sample_bytes` must be to read what comes before a place; `records` are the bytes of its records.
    fn bytes_before(&self, place: Position, records: u64) -> u64;

    /// Checks that nobody wrote to the inputs meanwhile.
    ///
    /// # Errors
    /// `Unavailable` when somebody did.
    fn check_unchanged(&self) -> Result<()>;

    /// Checks that the inputs are those that were opened before; those of a stream are checked when they are opened.
    ///
    /// # Errors
    /// `Unavailable` when one is another.
    fn check_same(&self, before: &Self) -> Result<()>;

    /// Share of the inputs that was read; 1 where the whole is not known.
    fn share(&self, account: &Account) -> f64;
}

/// What a leg of a load reads.
#[derive(Debug)]
pub struct Leg<'a> {
    /// What is loaded, with the types of the leg.
    pub request: &'a LoadRequest,
    /// What may be used.
    pub resources: &'a Resources,
    /// Where the leg begins.
    pub from: Position,
    /// Whether chunks may have to be read again after they were verified.
    pub way: Way,
    /// Whether somebody asks what columns cost.
    pub costs: Costs,
    /// What counts the distinct values of each column that is read, if they are counted.
    pub distinct: Vec<Arc<DistinctSketch>>,
}

/// Whether the costs of columns are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Costs {
    /// For a target that shares the work.
    Measured,
    /// Nobody asks.
    Unknown,
}

/// A place between two chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Chunks before it.
    pub chunks: usize,
    /// Where the records of the last of them end, of an input that is a file.
    pub end: u64,
}

/// How far an earlier attempt read inputs that come in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached {
    /// The input that it read last.
    pub file: usize,
    /// Where the last record ends in its text.
    pub end: u64,
    /// Lines of its records so far.
    pub lines: u64,
}

impl Reached {
    /// Where partitions end.
    pub fn of<'a>(accounts: impl Iterator<Item = &'a PartitionAccount>) -> Option<Self> {
        let shares = accounts.flat_map(|account| &account.files);
        shares.fold(None, |reached: Option<Reached>, share| {
            let file = share.file as usize;
            let before = reached.filter(|reached| reached.file == file);
            let lines = before.map_or(0, |before| before.lines) + share.lines;
            Some(Reached { file, end: share.end, lines })
        })
    }
}

/// What is known of an input before its records are read.
#[derive(Debug, Clone, Copy)]
pub struct InputBounds {
    /// Where its first record starts.
    pub start: u64,
    /// Lines before that.
    pub lines: u64,
    /// Where its last record ends, which of a stream is not known.
    pub end: Option<u64>,
    /// Of a part of an input: the records are read that start before this byte. What stands before `start` is no part.
    pub part: Option<u64>,
}

/// Reads the chunks of a leg.
pub trait Reading: Sync {
    /// What a worker keeps from chunk to chunk.
    type Worker: Send;
    /// What reads the chunks of a partition, one for each worker.
    type Parser: Parser;

    /// For a worker that begins.
    fn worker(&self) -> Self::Worker;

    /// Gives back what a task took, when nothing of it is needed any more.
    fn end_task(&self, worker: &mut Self::Worker);

    /// The plan of a partition, by its first chunk.
    ///
    /// # Errors
    /// `Unavailable` when the input cannot be read.
    fn plan(&self, first: usize) -> Result<PartitionPlan>;

    /// A parser for a partition.
    fn parser(&self, plan: &PartitionPlan) -> Self::Parser;

    /// Whether where the first record of a chunk starts is speculated on. Where rows are counted beforehand it is known.
    fn is_speculated(&self, _chunk: usize) -> bool {
        false
    }

    /// Reads a chunk, from `start` on if that is known: its records become rows of the parser.
    ///
    /// # Errors
    /// `Unavailable` when the input cannot be read, `Limit` when a record is too long; those of `tick`.
    fn parse(
        &self,
        read: Read<'_, Self>,
        clock: &StepClock,
        tick: &Tick<'_>,
    ) -> Result<Vec<PieceSpan>>
    where
        Self: Sized;

    /// Takes the next chunk where they come one by one, or does what must be done before. `number` gives it its number,
    /// and is called for one after the other, in their order.
    ///
    /// # Errors
    /// `Input` when an input is damaged, `Unavailable` when it cannot be read, `Limit` when a record is too long.
    fn take(&self, number: Number<'_>) -> Result<Turn> {
        let _ = number;
        Ok(Turn::End(Arrival::default()))
    }

    /// A chunk that was taken is parsed, for this time.
    fn parsed(&self, chunk: usize) {
        let _ = chunk;
    }

    /// Chunks before one were verified: they are not read again.
    fn verified(&self, before: usize) {
        let _ = before;
    }

    /// The leg has ended: the next one begins with a chunk.
    fn give_back(&self, from: usize) {
        let _ = from;
    }

    /// Whether the records of chunks can go as they stand in the input.
    fn can_cut(&self) -> bool {
        false
    }

    /// The records of a chunk as they stand in the input, behind room for the head of a message; `None` when it must be
    /// parsed.
    ///
    /// # Errors
    /// `Unavailable` when the input cannot be read.
    fn cut(&self, chunk: usize, worker: &mut Self::Worker) -> Result<Option<Cut>> {
        let _ = (chunk, worker);
        Ok(None)
    }

    /// Does work ahead of the workers until the load has ended, on a thread of its own; `None` where there is none.
    fn ahead(&self) -> Option<&dyn WorkAhead> {
        None
    }
}

/// Gives a chunk its number; is told what came with it, and what plans a partition that it is the first of.
pub type Number<'a> =
    &'a mut dyn FnMut(&Arrival, &mut dyn FnMut() -> Result<PartitionPlan>) -> Result<usize>;

/// Work that is done ahead of the workers.
pub trait WorkAhead: Sync {
    /// Does it until the load has ended.
    fn run(&self, ended: &AtomicBool);

    /// The load has ended.
    fn wake(&self);
}

/// A chunk to be read.
pub struct Read<'a, R: Reading> {
    /// Its number.
    pub chunk: usize,
    /// Where its first record starts, if its start was speculated on and that was wrong.
    pub start: Option<u64>,
    /// Of the worker who reads it.
    pub worker: &'a mut R::Worker,
    /// Gets its rows.
    pub parser: &'a mut R::Parser,
}

/// What a worker can do where chunks come one by one.
#[derive(Debug)]
pub enum Turn {
    /// Parse a chunk.
    Parse(usize),
    /// Ask again.
    Again,
    /// Nothing, ever; what came after the last chunk.
    End(Arrival),
}

/// What comes with a chunk.
#[derive(Debug, Default)]
pub struct Arrival {
    /// Inputs whose first records it has: where these start, and lines before them.
    pub begins: Vec<(usize, u64, u64)>,
    /// Stored bytes of inputs since the chunk before.
    pub source_bytes: Vec<(usize, u64)>,
    /// Inputs that have ended since, and where.
    pub ends: Vec<(usize, u64)>,
}

/// The records of a chunk, not parsed.
pub struct Cut {
    /// Room for a head, and the records.
    pub message: Vec<u8>,
    /// What they are.
    pub spans: Vec<PieceSpan>,
}

/// Reads chunks of a partition, and keeps the dictionaries that their codes are of.
pub trait Parser: Send + Debug {
    /// How a column is read from now on.
    fn read_as(&mut self, column: usize, form: ColumnForm);

    /// A column has too many values for codes.
    fn leave_codes(&mut self, column: usize);

    /// Columns that met too many values for codes since this was asked last.
    fn take_plain_now(&mut self) -> Vec<usize>;

    /// Rows of the next chunk that are left out.
    fn leave_out(&mut self, rows: Vec<LeftOut>);

    /// The rows that were read, as a fragment whose codes are of the dictionaries of this number.
    ///
    /// # Errors
    /// `Limit` when a page is too large.
    fn finish(&mut self, number: u32) -> Result<Fragment>;

    /// CPU time since this was asked last.
    fn take_time(&mut self) -> ParseTime;

    /// The dictionary of a column that is read; `None` for one that has no codes.
    fn dictionary(&self, column: usize) -> Option<&TemporaryDictionary>;

    /// Some values of the dictionaries may stand in no row.
    fn mark_stale(&mut self);

    /// The dictionaries of the columns that are read; none if no column has codes.
    fn into_dictionaries(self) -> Vec<TemporaryDictionary>;
}

/// What became of a piece: where its records really started and ended, and how many there were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceSpan {
    /// Input.
    pub file: usize,
    /// First byte of the first record.
    pub start: u64,
    /// Byte after the last record.
    pub end: u64,
    /// Rows parsed, and kept.
    pub rows: u64,
    /// Rows parsed that a filter left out.
    pub filtered: u64,
    /// Newlines from `start` to `end`.
    pub lines: u64,
    /// Records rejected, in order.
    pub rejects: Vec<RejectedRecord>,
    /// Records that were mended, their lines counted from `start` on.
    pub mended: Mended,
    /// Up to where its records were read.
    pub read_to: ReadTo,
}

impl PieceSpan {
    /// A piece without records.
    pub fn empty(file: usize, span: std::ops::Range<u64>) -> Self {
        PieceSpan {
            file,
            start: span.start,
            end: span.end,
            rows: 0,
            filtered: 0,
            lines: 0,
            rejects: Vec::new(),
            mended: Mended::default(),
            read_to: ReadTo::End,
        }
    }
}

/// Up to where a piece was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadTo {
    /// To its end.
    End,
    /// Only to a record so long that its start, which was speculated, is in doubt.
    InDoubt,
}
