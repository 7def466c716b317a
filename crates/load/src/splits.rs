//! Which worker reads what of a load's inputs: planned before anything is read but footers, without a word between workers.
//!
//! ```text
//!   explicit   inputs -> splits, the largest first to the worker that has least     few inputs: balanced by bytes
//!              inputs -> splits, in their order                                     rows of one key give way to each other by the order of inputs
//!   hashed     name -> hash -> the worker in whose range it falls                   many: no list of who has which
//! ```
//!
//! The plan is made by each worker by itself, so it depends on the inputs and flags only; what tells it from others is
//! its print.
//!
//! Cost: explicit, 48 bytes a split and a footer for each file of Parquet and Arrow; hashed, a look at each name, of which none is kept.
//!
//! Source: seed 003, explicit and implicit distribution.

mod assign;
mod print;

use std::ops::Range;

use coload_input::{Inputs, Keep, Met, TextInput};
use coload_store::OnConflict;
use coload_types::bytes::checksum;
use coload_types::{Error, Result};
use coload_wire::PlanPrint;

use crate::arrow_ipc::{ArrowForm, batches_told};
use crate::avro_input::AvroForm;
use crate::parquet_input::row_groups;
use crate::request::{InputForm, LoadRequest};
use crate::starts::file_of;
use crate::text::has_documents;
use crate::typed::BlockForm;
use assign::{assign_in_order, assign_largest_first};
pub use print::InputsPrint;

/// Splits for each worker that a load is cut into at least, if its inputs can be cut: the last to end then has little left.
const SPLITS_PER_WORKER: u64 = 8;

/// How inputs are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitRules {
    /// Most inputs of which it is written down who reads what.
    pub explicit_max: usize,
    /// Smallest split: less is mostly not worth a request and a look for the first record.
    pub split_bytes_min: u64,
}

/// A part of an input that one worker reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Number of the input.
    pub input: usize,
    /// What is read of it.
    pub part: SplitPart,
    /// Bytes that are read.
    pub bytes: u64,
    /// Number of the worker.
    pub worker: usize,
}

/// What a split is of its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitPart {
    /// All of it.
    Whole,
    /// The records, or blocks of Avro, that begin in these bytes.
    Bytes(Range<u64>),
    /// These row groups.
    RowGroups(Range<usize>),
    /// These record batches of Arrow.
    Batches(Range<usize>),
}

/// How the inputs of a load are read by several workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitPlan {
    /// How many workers there are.
    pub workers: usize,
    /// Who reads what.
    pub method: SplitMethod,
    /// Inputs and bytes of each worker.
    pub shares: Vec<WorkerShare>,
    /// Why it is planned so, a line each.
    pub because: Vec<String>,
}

/// How it is known who reads what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitMethod {
    /// It is written down.
    Explicit(Vec<Split>),
    /// By the names of inputs: [`worker_of_name`].
    Hashed,
}

/// What one worker reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkerShare {
    /// Splits, or inputs where these are not split.
    pub splits: u64,
    /// Bytes of them, as they are stored.
    pub bytes: u64,
}

impl SplitPlan {
    /// Bytes of all inputs.
    pub fn bytes(&self) -> u64 {
        self.shares.iter().map(|share| share.bytes).sum()
    }

    /// How much more than the mean the worker has that has most, in percent.
    pub fn imbalance_percent(&self) -> f64 {
        let most = self.shares.iter().map(|share| share.bytes).max().unwrap_or(0);
        match self.bytes() {
            0 => 0.0,
            all => (most as f64 * self.workers as f64 / all as f64 - 1.0) * 100.0,
        }
    }
}

/// The worker that reads an input, by its name: hashes are cut into ranges of one length, one a worker.
pub fn worker_of_name(name: &str, workers: usize) -> usize {
    let hash = u128::from(checksum(name.as_bytes()));
    ((hash * workers as u128) >> 64) as usize
}

/// What can be planned.
fn check_asked(inputs: &Inputs, workers: usize) -> Result<()> {
    if workers == 0 {
        return Err(Error::Invalid("--workers is 0; it is at least 1".to_owned()));
    }
    match inputs.read_once() {
        Some(once) => Err(Error::Invalid(format!(
            "{}: standard input and pipes are read by one worker; there is nothing to plan",
            once.name
        ))),
        None => Ok(()),
    }
}

/// Plans who reads what, written down for each split.
///
/// # Errors
/// `Invalid` when there are no workers, or an input can be read only once or its size is not known; those of looking at inputs.
pub fn plan_splits(request: &LoadRequest, workers: usize, rules: SplitRules) -> Result<SplitPlan> {
    let inputs = &request.inputs;
    check_asked(inputs, workers)?;
    let all = (0..inputs.len()).map(|number| bytes_of(inputs, number)).sum::<Result<u64>>()?;
    // Rounded up: one split more than there are for each worker would be one that a single worker has.
    let share = all.div_ceil(workers as u64 * SPLITS_PER_WORKER);
    let most = share.max(rules.split_bytes_min.max(1));
    let (mut splits, mut whole) = (Vec::new(), 0_usize);
    let large = (0..inputs.len()).any(|number| inputs.bytes(number).is_some_and(|b| b > most));
    let cut = match large && are_cut(request)? {
        true => Cut::Large,
        false => Cut::None,
    };
    for number in 0..inputs.len() {
        let before = splits.len();
        split_input(request, (number, cut), most, &mut splits)?;
        let is_large = bytes_of(inputs, number)? > most;
        whole += usize::from(is_large && splits.len() == before + 1);
    }
    let in_order = request.on_conflict != OnConflict::Error;
    let shares = match in_order {
        true => assign_in_order(&mut splits, workers),
        false => assign_largest_first(&mut splits, workers),
    };
    let mut because = vec![
        format!(
            "{} inputs are few enough to say who reads which (--explicit-max {})",
            inputs.len(),
            rules.explicit_max
        ),
        format!("what can be cut is cut into splits of {most} bytes at most"),
        match in_order {
            true => {
                "in the order of the inputs, to each worker about as many bytes (--on-conflict)"
            }
            false => "the largest first, each to the worker that has least",
        }
        .to_owned(),
    ];
    if whole > 0 {
        because.push(format!(
            "{whole} larger inputs cannot be cut: some are compressed or in another encoding than UTF-8, have one row group or \
             record batch, or are documents of JSON, streams of Arrow, or objects of Avro"
        ));
    }
    Ok(SplitPlan { workers, method: SplitMethod::Explicit(splits), shares, because })
}

/// Inputs as they are found, for a plan: what it takes to plan by hashes of names, of which none is kept.
#[derive(Debug, Clone)]
pub struct FoundInputs {
    workers: usize,
    rules: SplitRules,
    /// The worker whose inputs are kept, if they are loaded.
    own: Option<usize>,
    shares: Vec<WorkerShare>,
    print: InputsPrint,
    count: usize,
    /// The least name: all workers look at that input.
    least: Option<String>,
}

impl FoundInputs {
    /// None was found yet. `own` is the number of the worker that loads its inputs, from 0.
    ///
    /// # Errors
    /// `Invalid` when there are no workers.
    pub fn new(workers: usize, own: Option<usize>, rules: SplitRules) -> Result<Self> {
        if workers == 0 {
            return Err(Error::Invalid("--workers is 0; it is at least 1".to_owned()));
        }
        Ok(FoundInputs {
            workers,
            rules,
            own,
            shares: vec![WorkerShare::default(); workers],
            print: InputsPrint::default(),
            count: 0,
            least: None,
        })
    }

    /// Takes an input, and says whether it is kept: each as long as they may be few, then those of the worker.
    pub fn meet(&mut self, met: &Met<'_>) -> Keep {
        let worker = worker_of_name(met.name, self.workers);
        self.shares[worker].splits += 1;
        self.shares[worker].bytes += met.bytes;
        self.print.add(met);
        self.count += 1;
        if self.least.as_deref().is_none_or(|least| met.name < least) {
            self.least = Some(met.name.to_owned());
        }
        match self.are_few() || self.own == Some(worker) {
            true => Keep::Yes,
            false => Keep::No,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether it is written down who reads what.
    pub fn are_few(&self) -> bool {
        self.count <= self.rules.explicit_max
    }

    /// The least name of all.
    pub fn least(&self) -> Option<&str> {
        self.least.as_deref()
    }

    /// What tells the plan of this method from others.
    pub fn print(&self, method: &SplitMethod) -> PlanPrint {
        self.print.of_method(method)
    }

    /// Who reads what by the hashes of names; nothing is opened.
    pub fn plan_hashed(&self) -> SplitPlan {
        let because = vec![
            format!(
                "{} inputs are more than are listed for each worker (--explicit-max {})",
                self.count, self.rules.explicit_max
            ),
            "each worker takes the names whose hash falls into its range, whole".to_owned(),
        ];
        let (workers, shares) = (self.workers, self.shares.clone());
        SplitPlan { workers, method: SplitMethod::Hashed, shares, because }
    }
}

fn bytes_of(inputs: &Inputs, number: usize) -> Result<u64> {
    inputs.bytes(number).ok_or_else(|| {
        Error::Invalid(format!(
            "{}: its size is not known, so that it is not planned",
            inputs.name(number)
        ))
    })
}

/// Whether inputs are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Those that are larger than a split.
    Large,
    /// None.
    None,
}

/// Whether the inputs can be cut. All of a worker are read in the same way: as files, or one after the other.
fn are_cut(request: &LoadRequest) -> Result<bool> {
    let is_cut: fn(&LoadRequest, usize) -> Result<bool> = match request.form {
        InputForm::Parquet => return Ok(true),
        InputForm::Rows => return Ok(false),
        InputForm::Text => is_plain_text,
        InputForm::Arrow => is_indexed::<ArrowForm>,
        InputForm::Avro => is_indexed::<AvroForm>,
    };
    for number in 0..request.inputs.len() {
        if !is_cut(request, number)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The splits of an input, which have no worker yet.
fn split_input(
    request: &LoadRequest,
    (number, cut): (usize, Cut),
    most: u64,
    splits: &mut Vec<Split>,
) -> Result<()> {
    let bytes = bytes_of(&request.inputs, number)?;
    let before = splits.len();
    let mut push = |part: SplitPart, bytes: u64| {
        splits.push(Split { input: number, part, bytes, worker: 0 });
    };
    if cut == Cut::Large && bytes > most {
        match request.form {
            InputForm::Parquet => {
                let groups = row_groups(file_of(request, number)?.as_ref())?;
                let groups: Vec<u64> = groups.iter().map(|group| group.bytes).collect();
                put_together(&groups, most, |range, bytes| {
                    push(SplitPart::RowGroups(range), bytes)
                });
            }
            InputForm::Arrow => {
                let batches = batches_told(file_of(request, number)?.as_ref())?;
                put_together(&batches, most, |range, bytes| push(SplitPart::Batches(range), bytes));
            }
            InputForm::Text | InputForm::Avro => {
                // Of one size, so that none is a small rest.
                let count = bytes.div_ceil(most);
                let size = bytes.div_ceil(count);
                for start in (0..count).map(|n| n * size).filter(|start| *start < bytes) {
                    let range = start..(start + size).min(bytes);
                    push(SplitPart::Bytes(range.clone()), range.end - range.start);
                }
            }
            InputForm::Rows => {}
        }
    }
    if splits.len() == before {
        splits.push(Split { input: number, part: SplitPart::Whole, bytes, worker: 0 });
    }
    Ok(())
}

/// Puts parts of a file together that have so many bytes each, into splits of `most` bytes.
fn put_together(parts: &[u64], most: u64, mut push: impl FnMut(Range<usize>, u64)) {
    let mut first = 0;
    while first < parts.len() {
        let mut held = parts[first];
        let mut end = first + 1;
        while end < parts.len() && held.saturating_add(parts[end]) <= most {
            held += parts[end];
            end += 1;
        }
        push(first..end, held);
        first = end;
    }
}

/// Whether the blocks of an input can be found when it is opened.
fn is_indexed<F: BlockForm>(request: &LoadRequest, number: usize) -> Result<bool> {
    let input = request.inputs.at(number);
    Ok(F::is_indexed(&input) && TextInput::open(&input)?.is_plain_file())
}

/// Whether an input of text can be cut at any byte.
fn is_plain_text(request: &LoadRequest, number: usize) -> Result<bool> {
    if has_documents(request) {
        return Ok(false);
    }
    let text = TextInput::open(&request.inputs.at(number))?;
    Ok(text.is_plain_file() && request.dialect.encoding.is_utf8(&text.start()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million names were a list in each worker.
    #[test]
    fn of_many_inputs_few_are_kept_and_all_are_planned() {
        let rules = SplitRules { explicit_max: 100, split_bytes_min: 1 };
        let found_by = |own: Option<usize>, order: &mut dyn Iterator<Item = u32>| {
            let mut found = FoundInputs::new(8, own, rules).expect("workers");
            let mut kept = Vec::new();
            for number in order {
                let name = format!("s3://bucket/{number:06}.json");
                let met = Met { name: &name, bytes: 7, etag: Some("e"), modified_ns: 5 };
                if found.meet(&met) == Keep::Yes {
                    kept.push(name);
                }
            }
            (found, kept)
        };
        let (planned, kept) = found_by(None, &mut (0..20_000));
        assert_eq!((kept.len(), planned.are_few(), planned.count()), (100, false, 20_000));
        let (loaded, kept) = found_by(Some(3), &mut (0..20_000).rev());
        let own = kept.iter().filter(|name| worker_of_name(name, 8) == 3).count() as u64;
        let plan = loaded.plan_hashed();
        assert_eq!(own, plan.shares[3].splits);
        assert!(kept.len() as u64 <= own + 100 && own < 20_000 / 7);
        assert_eq!((plan.bytes(), plan.shares.len()), (140_000, 8));
        // Whoever looks in whatever order plans the same.
        let method = SplitMethod::Hashed;
        assert_eq!(planned.print(&method), loaded.print(&method));
        assert_eq!((planned.least(), planned.plan_hashed()), (loaded.least(), plan));
        let (fewer, _) = found_by(None, &mut (0..19_999));
        assert_ne!(planned.print(&method), fewer.print(&method));
    }

    #[test]
    fn names_fall_to_all_workers_about_alike() {
        for workers in [1, 2, 3, 8, 100] {
            let mut counts = vec![0_u32; workers];
            for name in 0..10_000 {
                counts
                    [worker_of_name(&format!("s3://bucket/data/part-{name:05}.json"), workers)] +=
                    1;
            }
            let mean = 10_000.0 / workers as f64;
            let most = f64::from(*counts.iter().max().expect("workers"));
            // Of 8 workers at most a tenth more than the mean.
            assert!(most <= mean * 1.1 + 4.0 * mean.sqrt() * 0.5, "{workers}: {most} of {mean}");
        }
    }
}
