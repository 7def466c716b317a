//! What a load did, or would do, wherever its rows go.

mod database;
mod network;
mod placement;
mod sorted;
mod written;

use std::time::Duration;

use coload_page::{ColumnIndex, PageMeta};
use coload_source::{Mending, Reject};
use coload_store::{KeyCounts, LoadId, MergeReport};
use coload_threads::{Started, Step, StepClock, peak_memory_bytes, process_cpu_ns};
use coload_types::{Column, DataType, Error, Result};
use coload_wire::SharesDone;

use crate::file_report::FileReports;
use crate::kinds::RejectKind;
use crate::widen::Widened;

pub use database::{DatabaseReport, SendChange, SendEstimate, SentBy};
pub use network::NetworkReport;
pub use placement::{Change, ColumnChoice, PlacementReport, TextFragmentReport};
pub use sorted::SortReport;
pub use written::{WrittenFile, WrittenFiles};

/// Rejects that a report keeps; all are counted, and all go to the rejects file.
pub const REJECTS_KEPT_MAX: usize = 10;

/// What is known of the number of distinct values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distinct {
    /// One dictionary has all values.
    Exact(u64),
    /// Each of several segments has a dictionary of its own, or some pages have none; this is the
    /// largest dictionary.
    AtLeast(u64),
    /// About so many; the standard error is 1.6 %.
    About(u64),
    /// No segment has a dictionary of the column, and nothing was estimated.
    Unknown,
}

/// What became of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnReport {
    /// Name of the column.
    pub name: String,
    /// Type that the column has in the table.
    pub data_type: DataType,
    /// `dictionary`, `frame of reference`, `symbols`, ..., with shares if mixed.
    pub codec: String,
    /// Distinct values that are not NULL.
    pub distinct: Distinct,
    /// Rows that are NULL.
    pub nulls: u64,
    /// Bytes of pages, dictionaries and symbols.
    pub bytes: u64,
    /// Bits of `bytes` per row.
    pub bits_per_value: f64,
}

impl ColumnReport {
    /// What the indexes of a column, one a segment, tell; `rows` are those of all segments.
    pub fn new(column: &Column, rows: u64, indexes: &[&ColumnIndex]) -> Self {
        let bytes: u64 = indexes.iter().map(|x| x.data_bytes()).sum();
        ColumnReport {
            name: column.name.clone(),
            data_type: column.data_type,
            codec: codec(indexes),
            distinct: distinct(indexes),
            nulls: indexes.iter().map(|x| x.nulls()).sum(),
            bytes,
            bits_per_value: if rows == 0 { 0.0 } else { bytes as f64 * 8.0 / rows as f64 },
        }
    }
}

impl ColumnReport {
    /// The report with an estimate of the distinct values among `rows`, where no dictionary has all.
    pub fn with_estimate(mut self, rows: u64, estimate: Option<f64>) -> Self {
        let Some(estimate) = estimate else { return self };
        let most = rows - self.nulls;
        self.distinct = match self.distinct {
            Distinct::Exact(count) => Distinct::Exact(count),
            Distinct::AtLeast(least) => {
                Distinct::About((estimate as u64).clamp(least, most.max(least)))
            }
            Distinct::About(_) | Distinct::Unknown => Distinct::About((estimate as u64).min(most)),
        };
        self
    }
}

fn is_coded(page: &PageMeta) -> bool {
    page.detail.is_codes()
}

fn codec(indexes: &[&ColumnIndex]) -> String {
    let pages = || indexes.iter().flat_map(|x| &x.pages);
    let coded = pages().filter(|p| is_coded(p)).count();
    let plain = pages().find(|p| !is_coded(p)).map_or("empty", PageMeta::codec_name);
    match (coded, pages().count()) {
        (0, _) => plain.to_owned(),
        (coded, count) if coded == count => "dictionary".to_owned(),
        (coded, count) => format!("dictionary {} %, {plain}", coded * 100 / count),
    }
}

fn distinct(indexes: &[&ColumnIndex]) -> Distinct {
    let largest =
        indexes.iter().filter_map(|x| x.dictionary.as_ref()).map(|d| u64::from(d.rows)).max();
    match (largest, indexes) {
        (None, _) => Distinct::Unknown,
        (Some(count), [only]) if only.pages.iter().all(is_coded) => Distinct::Exact(count),
        (Some(count), _) => Distinct::AtLeast(count),
    }
}

/// What a load did, or would do. What only some destinations can tell is `None` for the others.
#[derive(Debug, Clone)]
pub struct LoadReport {
    /// Id of the load, by which what it wrote is named; `None` when nothing was written.
    pub id: Option<LoadId>,
    /// Name of the table, or of the folder.
    pub table: String,
    /// What became of each input, in their order; empty when nothing was loaded now.
    pub files: FileReports,
    /// What each column takes, in the table's order; empty where a server knows.
    pub columns: Vec<ColumnReport>,
    /// Partitions that were made; 0 where a server parses.
    pub partitions: usize,
    /// Bytes of what was written, or would be.
    pub bytes_stored: u64,
    /// Time from start to durable publish.
    pub wall: Duration,
    /// CPU time of the process meanwhile.
    pub cpu: Duration,
    /// CPU time by step.
    pub steps: Vec<(Step, Duration)>,
    /// Most memory the process has held.
    pub peak_memory: u64,
    /// The first rejects, at most [`REJECTS_KEPT_MAX`].
    pub rejects: Vec<Reject>,
    /// Rejects by kind, in the order in which they were met; of a load into a server and a dry run there are none.
    pub reject_kinds: Vec<RejectKind>,
    /// Columns whose inferred types became wider, in the order in which that was found.
    pub widened: Vec<Widened>,
    /// For a store, here or at a server: the version that shows the rows.
    pub published: Option<Published>,
    /// For a table with a PRIMARY KEY: what became of the rows by their keys.
    pub keys: Option<KeyCounts>,
    /// For a table with a key in a store of this machine: how rows were put in its order.
    pub sorted: Option<SortReport>,
    /// For a folder of Parquet files: the files.
    pub written: Option<WrittenFiles>,
    /// For a database: how the rows were brought into it.
    pub database: Option<DatabaseReport>,
    /// For a server: what went over the link, and what was done there.
    pub network: Option<NetworkReport>,
    /// For a server: who transformed what.
    pub placement: Option<PlacementReport>,
    /// For a dry run: what it says of all of the inputs.
    pub dry_run: Option<DryRun>,
    /// For a load of several tables: what became of the others, with the steps and costs of each.
    pub beside: Vec<LoadReport>,
    /// For a store of this machine: rows that an earlier attempt left.
    pub known_rows: u64,
    /// For a server that had loaded this before: nothing was loaded now.
    pub earlier: Option<Earlier>,
    /// For a share of a load of several workers: what became of all of them.
    pub shares: Option<SharesDone>,
}

/// A version of a store that shows the rows of a load.
#[derive(Debug, Clone)]
pub struct Published {
    /// Its number.
    pub version: u64,
    /// Segments that were written.
    pub segments: u64,
    /// What was merged after it; the load is published whatever becomes of that.
    pub merge: Merged,
}

/// What became of the table's small segments after a load.
#[derive(Debug, Clone)]
pub enum Merged {
    /// What was merged, or why that failed.
    Here(Result<MergeReport>),
    /// What the server says of it; nothing if it says nothing.
    AtServer(String),
}

/// A load that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// Rows that it brought into the table.
    pub rows: u64,
    /// Records that it set aside.
    pub rejects: u64,
    /// When it was published, and what the table holds, in words.
    pub held: String,
}

/// What a dry run says of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DryRun {
    /// Share of the inputs that was read, from 0 to 1; 1 where the whole is not known.
    pub share: f64,
    /// Where the rows would be, in words.
    pub place: &'static str,
}

impl DryRun {
    /// An amount of what was read, for all of the inputs. Dictionaries grow slower than their rows,
    /// so that of bytes it is rather too much.
    pub fn of_all(&self, amount: f64) -> f64 {
        amount / self.share.max(1e-9)
    }
}

impl LoadReport {
    /// Nothing yet, of a load into a table or folder.
    pub(crate) fn new(table: String) -> Self {
        LoadReport {
            id: None,
            table,
            files: FileReports::default(),
            columns: Vec::new(),
            partitions: 0,
            bytes_stored: 0,
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
            steps: Vec::new(),
            peak_memory: 0,
            rejects: Vec::new(),
            reject_kinds: Vec::new(),
            widened: Vec::new(),
            published: None,
            keys: None,
            sorted: None,
            written: None,
            database: None,
            network: None,
            placement: None,
            dry_run: None,
            beside: Vec::new(),
            known_rows: 0,
            earlier: None,
            shares: None,
        }
    }

    /// Sets what the process took since then.
    pub fn set_costs(&mut self, started: &Started) {
        self.wall = started.wall.elapsed();
        self.cpu = Duration::from_nanos(process_cpu_ns() - started.cpu_ns);
        self.peak_memory = peak_memory_bytes();
    }

    /// Sets the CPU time by step.
    pub(crate) fn set_steps(&mut self, clock: &StepClock) {
        self.steps = Step::ALL.into_iter().map(|step| (step, clock.get(step))).collect();
    }

    /// Rows that the load brought into the table.
    pub fn rows(&self) -> u64 {
        match (&self.earlier, self.keys) {
            (Some(earlier), _) => earlier.rows,
            (None, Some(keys)) => keys.kept(),
            (None, None) => self.files.rows(),
        }
    }

    /// Number of records that were set aside.
    pub fn reject_count(&self) -> u64 {
        self.earlier.as_ref().map_or(self.files.rejects(), |earlier| earlier.rejects)
    }

    /// Records left out by a filter.
    pub fn filtered(&self) -> u64 {
        self.files.filtered()
    }

    /// Records of all inputs that were read.
    pub fn records(&self) -> u64 {
        self.files.records()
    }

    /// Rows that were mended in one way.
    pub fn mended(&self, mending: Mending) -> u64 {
        self.files.mended(mending)
    }

    /// Bytes of all inputs that were read, as they are stored.
    pub fn bytes_read(&self) -> u64 {
        self.files.bytes()
    }
}

/// The rows are there, and the file of rejects is not.
pub fn published_without_rejects(version: u64, error: &Error) -> Error {
    // No attempt more helps: that would find the load published, and say nothing of the file.
    Error::Invalid(format!(
        "the load is published as version {version}, but its file of rejects is not there: {error}; the rows need not \
         be loaded again"
    ))
}
