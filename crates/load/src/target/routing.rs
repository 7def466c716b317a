//! Rows to the leaves of a cluster: each leaf gets partitions of its own, of the rows that are in its shards. Of a table
//! that is everywhere all leaves get the same ones, which are made once.
//!
//! ```text
//!   fragment parsed -> make_rows   hash of the shard columns -> leaf; codes and values of each leaf's rows   (split)
//!            verified -> in order  the next fragment of each leaf's partition: codes kept, values encoded
//!   partition complete -> for each leaf and column: compress -> Out::Column;  then Out::Seal -> whoever sends to the leaf
//! ```
//!
//! Invariants: which leaf a row goes to depends on its values, or on its place in the input where rows are dealt in turn;
//! so partition n of a leaf has the same rows in each attempt, whoever parsed them. Rows of a leaf keep the order of the
//! input. The first leaf's account has the rejects and what a filter left out, so that the accounts of all leaves
//! together are that of the load.
//!
//! Memory: the partitions under way, as for one server; a few compressed columns wait for each leaf.

mod split;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use coload_assemble::{Assembly, ColumnBuilder, Parsed};
use coload_cluster::{ShardBy, Table};
use coload_ddl::CheckedColumn;
use coload_page::Page;
use coload_source::LeftOut;
use coload_threads::{Step, StepClock, lock};
use coload_transform::{
    DictionaryLimit, DictionaryPolicy, FragmentColumn, PartitionColumn, Symbols,
    TemporaryDictionary,
};
use coload_types::{DataType, Error, Physical, Result};
use coload_wire::{InputShare, PartitionAccount, RowsAre, Seal};

use super::{Ahead, AheadColumn, MadeRows, TakesRows, Target, Work, Works};
use split::{LeafRows, RoutedColumn, RoutedRows, split_rows};

/// What may wait to be sent to a leaf.
const OUT_MAX: usize = 4;
/// Bytes of pages that go into one message.
const MESSAGE_PAGES_BYTES: usize = 4 << 20;

/// Something for a leaf.
#[derive(Debug, Clone)]
pub enum Out {
    /// A column of a partition, or some pages of it.
    Column {
        /// Number of the partition.
        partition: usize,
        /// Column of the table.
        column: usize,
        /// Numbers of the fragments that the pages are of.
        fragments: Vec<u32>,
        /// The pages.
        pages: PartitionColumn,
    },
    /// The end of a partition.
    Seal(Seal),
}

/// How rows are routed, and what each leaf gets.
pub struct Routing {
    shared: Arc<Shared>,
    partitions: Mutex<BTreeMap<usize, Part>>,
}

/// What the work on partitions needs.
struct Shared {
    shard_by: ShardBy,
    /// For each shard the number of its way.
    shards: Vec<u16>,
    types: Vec<DataType>,
    physicals: Vec<Physical>,
    policy: DictionaryPolicy,
    limit: DictionaryLimit,
    /// Where rows go: for each leaf a way, or one to all of them.
    ways: Vec<Vec<SyncSender<Out>>>,
    rows: AtomicU64,
    rows_of: Vec<AtomicU64>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("ways", &self.ways.len()).finish_non_exhaustive()
    }
}

/// A partition whose fragments come.
struct Part {
    /// The fragment that is next.
    next: u32,
    /// Fragments that came before it.
    waiting: BTreeMap<u32, RoutedRows>,
    /// What each leaf has of it.
    taken: Arc<Taken>,
    /// The end of it, when that has come.
    seal: Option<Seal>,
}

/// What all leaves have of a partition.
#[derive(Debug)]
struct Taken {
    leaves: Vec<LeafPart>,
    /// Fragments of leaves that are not taken yet, and one more until the end of the partition has come.
    pending: AtomicUsize,
    /// The end of it, from when all of its fragments have come.
    seal: Mutex<Option<Seal>>,
}

/// What a leaf has of a partition.
#[derive(Debug)]
struct LeafPart {
    columns: Vec<Mutex<Column>>,
    page_rows: Mutex<Vec<u32>>,
    blocks: AtomicU64,
    /// Columns that are not sent.
    left: AtomicUsize,
}

/// A column of a leaf's partition.
#[derive(Debug)]
struct Column {
    builder: ColumnBuilder,
    parsed: Parsed,
    pages: Vec<(u32, Page)>,
}

impl Routing {
    /// Rows to the leaves of a table; what each gets comes out at its place among them.
    pub fn new(
        table: &Table,
        policy: DictionaryPolicy,
        limit: DictionaryLimit,
    ) -> (Self, Vec<Receiver<Out>>) {
        let (outs, received): (Vec<_>, _) =
            table.leaves.iter().map(|_| sync_channel(OUT_MAX)).unzip();
        let ways = match table.is_everywhere() {
            true => vec![outs],
            false => outs.into_iter().map(|out| vec![out]).collect(),
        };
        let types: Vec<DataType> = table.schema.columns().iter().map(|c| c.data_type).collect();
        let shared = Shared {
            shard_by: table.shard_by.clone(),
            shards: table.shards.clone(),
            physicals: types.iter().map(|data_type| data_type.physical()).collect(),
            types,
            policy,
            limit,
            rows: AtomicU64::new(0),
            rows_of: ways.iter().map(|_| AtomicU64::new(0)).collect(),
            ways,
        };
        (Routing { shared: Arc::new(shared), partitions: Mutex::default() }, received)
    }

    /// Rows of each leaf, when all work is done.
    pub fn rows_of_leaves(&self) -> Vec<u64> {
        let ways = self.shared.rows_of.iter().zip(&self.shared.ways);
        ways.flat_map(|(rows, outs)| vec![rows.load(Ordering::Acquire); outs.len()]).collect()
    }

    /// Work of the fragments of a partition that are next, and of its end.
    fn advance(&self, number: usize, change: impl FnOnce(&mut Part)) -> Works {
        let mut partitions = lock(&self.partitions);
        let part = partitions.entry(number).or_insert_with(|| Part::new(&self.shared));
        change(part);
        let mut works = Works::new();
        while let Some(rows) = part.waiting.remove(&part.next) {
            part.next += 1;
            for (leaf, rows) in rows.leaves.into_iter().enumerate() {
                if rows.rows == 0 {
                    continue;
                }
                let mut page_rows = lock(&part.taken.leaves[leaf].page_rows);
                let fragment = page_rows.len() as u32;
                page_rows.push(rows.rows);
                part.taken.pending.fetch_add(1, Ordering::AcqRel);
                let (shared, taken) = (Arc::clone(&self.shared), Arc::clone(&part.taken));
                works.push(Box::new(TakeFragment { shared, taken, leaf, fragment, rows }));
            }
        }
        let is_whole = |seal: &mut Seal| seal.page_rows.len() == part.next as usize;
        if let Some(seal) = part.seal.take_if(is_whole)
            && let Some(Part { taken, .. }) = partitions.remove(&number)
        {
            *lock(&taken.seal) = Some(seal);
            works.push(Box::new(EndPartition { shared: Arc::clone(&self.shared), taken }));
        }
        works
    }
}

impl Part {
    fn new(shared: &Shared) -> Self {
        let leaf = |_| LeafPart::new(shared);
        let leaves = (0..shared.ways.len()).map(leaf).collect();
        let taken = Taken { leaves, pending: AtomicUsize::new(1), seal: Mutex::default() };
        Part { next: 0, waiting: BTreeMap::new(), taken: Arc::new(taken), seal: None }
    }
}

impl LeafPart {
    fn new(shared: &Shared) -> Self {
        let column = |column| {
            let builder = shared.builder(column);
            Mutex::new(Column { builder, parsed: Parsed::default(), pages: Vec::new() })
        };
        let width = shared.physicals.len();
        LeafPart {
            columns: (0..width).map(column).collect(),
            page_rows: Mutex::default(),
            blocks: AtomicU64::new(0),
            left: AtomicUsize::new(width),
        }
    }
}

impl Shared {
    fn builder(&self, column: usize) -> ColumnBuilder {
        ColumnBuilder::new(Assembly {
            physical: self.physicals[column],
            policy: self.policy,
            limit: self.limit,
            symbols: Symbols::Train,
        })
    }

    /// A part of a partition is done; what is to be done when that was the last.
    fn done(self: &Arc<Self>, taken: &Arc<Taken>) -> Result<Works> {
        let mut works = Works::new();
        if taken.pending.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(works);
        }
        let Some(seal) = lock(&taken.seal).take().map(Arc::new) else { return Ok(works) };
        for (leaf, part) in taken.leaves.iter().enumerate() {
            if lock(&part.page_rows).is_empty() {
                self.send_seal(leaf, &seal, (&[], 0))?;
                continue;
            }
            for column in 0..self.physicals.len() {
                let (shared, taken) = (Arc::clone(self), Arc::clone(taken));
                let seal = Arc::clone(&seal);
                works.push(Box::new(EndColumn { shared, taken, seal, leaf, column }));
            }
        }
        Ok(works)
    }

    /// Sends something to the leaves of a way.
    fn send(&self, way: usize, out: Out) -> Result<()> {
        // Who sends has ended for a reason of his own, which is told instead.
        let ended = |_| Error::Unavailable("a leaf takes no more".into());
        let Some((last, others)) = self.ways[way].split_last() else { return Ok(()) };
        others.iter().try_for_each(|to| to.send(out.clone()).map_err(ended))?;
        last.send(out).map_err(ended)
    }

    /// Ends a partition for the leaves of a way.
    fn send_seal(&self, way: usize, seal: &Seal, (rows, blocks): (&[u32], u64)) -> Result<()> {
        for (number, to) in self.ways[way].iter().enumerate() {
            let seal = seal_of(seal, way + number, rows.to_vec(), blocks);
            let ended = |_| Error::Unavailable("a leaf takes no more".into());
            to.send(Out::Seal(seal)).map_err(ended)?;
        }
        Ok(())
    }
}

impl TakesRows for Routing {
    fn make_rows(&self, columns: &[CheckedColumn<'_>], rows: usize) -> Result<Box<dyn MadeRows>> {
        self.make_rows_of(0, columns, rows)
    }

    fn make_rows_of(
        &self,
        chunk: usize,
        columns: &[CheckedColumn<'_>],
        rows: usize,
    ) -> Result<Box<dyn MadeRows>> {
        let Shared { shard_by, shards, types, ways, .. } = &*self.shared;
        let routed = split_rows(columns, rows, (shard_by, types), (chunk, shards), ways.len());
        Ok(Box::new(routed))
    }

    fn left_out(&self, _: usize) -> Vec<LeftOut> {
        Vec::new()
    }
}

impl Target for Routing {
    fn keeps_partitions(&self) -> bool {
        true
    }

    fn takes_rows(&self) -> Option<&dyn TakesRows> {
        Some(self)
    }

    fn take_ahead(&self, ahead: Ahead) -> Result<Works> {
        let Ahead { partition, fragment, columns } = ahead;
        let mut works = Works::new();
        for column in columns {
            let AheadColumn::Rows(rows) = column else { return Err(columns_of_rows()) };
            let rows = rows.into_form::<RoutedRows>()?.rows;
            works.append(&mut self.advance(partition, |part| {
                part.waiting.insert(fragment, rows);
            }));
        }
        Ok(works)
    }

    fn take_column(&self, _: usize, _: usize, _: &[u32], _: PartitionColumn) -> Result<()> {
        Err(columns_of_rows())
    }

    fn seal(&self, seal: Seal) -> Result<Works> {
        Ok(self.advance(seal.partition as usize, |part| part.seal = Some(seal)))
    }

    fn rows(&self) -> u64 {
        self.shared.rows.load(Ordering::Acquire)
    }
}

fn columns_of_rows() -> Error {
    Error::Corrupt("columns for a cluster, which takes rows".into())
}

/// A leaf's rows of a fragment.
struct TakeFragment {
    shared: Arc<Shared>,
    taken: Arc<Taken>,
    leaf: usize,
    fragment: u32,
    rows: LeafRows,
}

impl fmt::Debug for TakeFragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakeFragment").field("leaf", &self.leaf).finish_non_exhaustive()
    }
}

impl Work for TakeFragment {
    fn run(self: Box<Self>, clock: &StepClock) -> Result<Works> {
        let TakeFragment { shared, taken, leaf, fragment, rows } = *self;
        let LeafRows { rows, columns } = rows;
        for (column, routed) in taken.leaves[leaf].columns.iter().zip(columns) {
            let Column { builder, parsed, pages } = &mut *lock(column);
            match routed {
                RoutedColumn::Coded { codes, values, nulls } => {
                    let dictionary = parsed.temporaries.len() as u32;
                    parsed.temporaries.push(TemporaryDictionary { values, stale: false });
                    let coded = FragmentColumn::Codes { codes, dictionary, nulls };
                    parsed.fragments.push((fragment, coded));
                }
                RoutedColumn::Plain(values) => {
                    let made =
                        clock.time(Step::Compress, || builder.take_values(fragment, values))?;
                    pages.extend(made.pages);
                }
            }
        }
        shared.rows.fetch_add(u64::from(rows), Ordering::AcqRel);
        shared.rows_of[leaf].fetch_add(u64::from(rows), Ordering::AcqRel);
        shared.done(&taken)
    }
}

/// The end of a partition, when all of its fragments have come; some may still be taken.
#[derive(Debug)]
struct EndPartition {
    shared: Arc<Shared>,
    taken: Arc<Taken>,
}

impl Work for EndPartition {
    fn run(self: Box<Self>, _: &StepClock) -> Result<Works> {
        self.shared.done(&self.taken)
    }
}

/// A column of a leaf's partition that is complete.
#[derive(Debug)]
struct EndColumn {
    shared: Arc<Shared>,
    taken: Arc<Taken>,
    seal: Arc<Seal>,
    leaf: usize,
    column: usize,
}

impl Work for EndColumn {
    fn run(self: Box<Self>, clock: &StepClock) -> Result<Works> {
        let EndColumn { shared, taken, seal, leaf, column } = *self;
        let part = &taken.leaves[leaf];
        let empty = Column {
            builder: shared.builder(column),
            parsed: Parsed::default(),
            pages: Vec::new(),
        };
        let all = std::mem::replace(&mut *lock(&part.columns[column]), empty);
        let Column { mut builder, mut parsed, mut pages } = all;
        parsed.fragments.sort_by_key(|(number, _)| *number);
        builder.take_parsed(parsed);
        let (numbers, mut made) = builder.finish(clock, None)?;
        pages.extend(numbers.into_iter().zip(std::mem::take(&mut made.pages)));
        pages.sort_by_key(|(number, _)| *number);
        let mut blocks = 0;
        for (fragments, pages) in messages(made, pages) {
            blocks += 1;
            let partition = seal.partition as usize;
            shared.send(leaf, Out::Column { partition, column, fragments, pages })?;
        }
        part.blocks.fetch_add(blocks, Ordering::AcqRel);
        if part.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let page_rows = std::mem::take(&mut *lock(&part.page_rows));
            let blocks = part.blocks.load(Ordering::Acquire);
            shared.send_seal(leaf, &seal, (&page_rows, blocks))?;
        }
        Ok(Works::new())
    }
}

/// The pages of a column in messages that are not too large; those with codes go with their dictionary.
fn messages(column: PartitionColumn, pages: Vec<(u32, Page)>) -> Vec<(Vec<u32>, PartitionColumn)> {
    let PartitionColumn { dictionary, symbols, .. } = column;
    let (coded, plain): (Vec<_>, Vec<_>) =
        pages.into_iter().partition(|(_, page)| page.detail.is_codes());
    let mut out = Vec::new();
    if !coded.is_empty() {
        let (fragments, pages) = coded.into_iter().unzip();
        out.push((fragments, PartitionColumn { dictionary, symbols: Vec::new(), pages }));
    }
    let mut bytes = MESSAGE_PAGES_BYTES;
    for (fragment, page) in plain {
        if bytes >= MESSAGE_PAGES_BYTES {
            let symbols = symbols.clone();
            out.push((
                Vec::new(),
                PartitionColumn { dictionary: None, symbols, pages: Vec::new() },
            ));
            bytes = 0;
        }
        bytes += page.bytes.len();
        if let Some((fragments, column)) = out.last_mut() {
            fragments.push(fragment);
            column.pages.push(page);
        }
    }
    out
}

/// The end of a leaf's partition. What became no row is told to the first leaf.
fn seal_of(seal: &Seal, leaf: usize, page_rows: Vec<u32>, blocks: u64) -> Seal {
    let rows: u64 = page_rows.iter().map(|rows| u64::from(*rows)).sum();
    let mut account = PartitionAccount::default();
    match leaf {
        0 => {
            account = seal.account.clone();
            account.files.iter_mut().for_each(|file| file.rows = 0);
            if let Some(first) = account.files.first_mut() {
                first.rows = rows;
            }
        }
        _ => {
            let file = seal.account.files.first().map_or(0, |first| first.file);
            account.files.push(InputShare { file, rows, ..InputShare::default() });
        }
    }
    Seal { partition: seal.partition, blocks, page_rows, account, rows_are: RowsAre::AsRead }
}

#[cfg(test)]
mod tests;
