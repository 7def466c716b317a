//! What the pipeline makes goes to the server; of a partition whose rows are sorted here ([`super::sorting`]) all of it when it is sealed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{
    Arc, Condvar, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use coload_link::{Client, Message};
use coload_store::encode_dictionary;
use coload_threads::lock;
use coload_transform::{FinalPage, PartitionColumn, Placement};
use coload_types::{Error, Result};
use coload_wire::{
    BLOCK, Block, BlockContent, Parsed, PartitionAccount, RowsAre, SEAL, Seal, TEXT_FRAGMENT,
    TEXT_HEAD_BYTES, put_text_head,
};

use super::choose::Chooser;
use super::session::{WORK_TIMEOUT, not_in_time};
use super::sorting::{Held, SortRows};
use crate::partition::PartitionPlan;
use crate::target::{Ahead, AheadColumn, Answers, RowCosts, Sharing, Target, TextFragment, Works};

/// Sealed partitions that are not durable yet: the next waits, so that a server that is slow with small ones has no more under
/// way than it takes.
const SEALED_AHEAD_MAX: usize = 8;

/// Sends the blocks of partitions that the server does not have.
pub struct Sender<'a> {
    client: &'a Client,
    chooser: &'a Chooser,
    /// Numbers that its partitions have on the wire; more are not sent.
    numbers: Range<u32>,
    durable: Mutex<Durable>,
    durable_changed: Condvar,
    /// Whether the load goes on with wider types.
    takes_wider: bool,
    /// Partitions before the first that was not sealed.
    sealed: AtomicU32,
    /// Rows of partitions that were sealed here.
    rows: AtomicU64,
    /// Partitions that the server has from an earlier attempt.
    known: &'a [PartitionAccount],
    answers: Answers,
    /// Whether a fragment went as text.
    sent_text: AtomicBool,
    /// How rows are sorted here, if they may be, and the partitions that are to be.
    sort_rows: Option<SortRows>,
    held: Mutex<BTreeMap<usize, Held>>,
    one_sort: Mutex<()>,
}

/// What the server has told.
struct Durable {
    /// Partitions that are durable there.
    partitions: BTreeSet<u32>,
    /// It tells no more.
    has_ended: bool,
}

impl Durable {
    /// How many of the first partitions are durable.
    fn among_first(&self, partitions: u32) -> usize {
        self.partitions.range(..partitions).count()
    }
}

impl<'a> Sender<'a> {
    /// A sender to a server that has some partitions, by their numbers on the wire.
    pub fn new(
        client: &'a Client,
        chooser: &'a Chooser,
        numbers: Range<u32>,
        has: impl Iterator<Item = u32>,
        takes_wider: bool,
    ) -> Self {
        let first = numbers.start;
        let durable: BTreeSet<u32> =
            has.filter(|number| numbers.contains(number)).map(|number| number - first).collect();
        let leading = durable.iter().zip(0..).take_while(|(number, at)| **number == *at).count();
        let sealed = AtomicU32::new(leading as u32);
        let durable = Mutex::new(Durable { partitions: durable, has_ended: false });
        let (durable_changed, answers) = (Condvar::new(), Answers::default());
        Sender {
            client,
            chooser,
            numbers,
            durable,
            durable_changed,
            takes_wider,
            sealed,
            rows: AtomicU64::new(0),
            known: &[],
            answers,
            sent_text: AtomicBool::new(false),
            sort_rows: None,
            held: Mutex::default(),
            one_sort: Mutex::default(),
        }
    }

    /// The sender after the first partitions, of which these are the accounts.
    pub fn after(self, known: &'a [PartitionAccount]) -> Self {
        Sender { known, ..self }
    }

    /// The sender that sorts the rows of partitions, where the policy says so.
    pub fn sorting(self, sort_rows: Option<SortRows>) -> Self {
        Sender { sort_rows, ..self }
    }

    /// How the rows of a partition are sorted here, if they are.
    fn sorts(&self, partition: usize) -> Option<&SortRows> {
        self.sort_rows.as_ref().filter(|_| self.chooser.is_sorted_here(partition))
    }

    /// Sorts a partition and sends it; how many blocks it has.
    fn send_sorted(&self, sort_rows: &SortRows, held: Held, seal: &Seal) -> Result<u64> {
        let (partition, mut blocks) = (seal.partition as usize, 0);
        // Each takes memory for some columns, and all threads.
        let one = lock(&self.one_sort);
        let sorted = sort_rows.sort(held, &seal.page_rows, |column, content| {
            blocks += 1;
            self.send(partition, column, content)
        })?;
        drop(one);
        self.chooser.sorted(partition, seal.account.rows(), sorted.cpu_ns);
        Ok(blocks)
    }

    /// Whether the partitions so far may stay when columns become wider: then a leg ends before the first partition
    /// with a field that does not fit.
    pub fn takes_wider(&self) -> bool {
        self.takes_wider
    }

    /// Sends values of a column.
    fn send(&self, partition: usize, column: usize, content: BlockContent) -> Result<()> {
        let (partition, column) = (partition as u32, column as u32);
        if self.has(partition) {
            return Ok(());
        }
        let partition = self.numbers.start + partition;
        let block = Block { partition, column, content }.encode();
        self.client.push(Message::new(BLOCK, block))
    }

    /// Partitions that are sealed, from the first on, once the pipeline has ended.
    pub fn sealed_count(&self) -> usize {
        self.sealed.load(Ordering::Acquire) as usize
    }

    /// Notes that the partition of a number on the wire is durable.
    pub fn sealed(&self, number: u32) {
        if self.numbers.contains(&number) {
            lock(&self.durable).partitions.insert(number - self.numbers.start);
            self.durable_changed.notify_all();
        }
    }

    /// The server tells no more: nobody waits for it.
    pub fn end(&self) {
        lock(&self.durable).has_ended = true;
        self.durable_changed.notify_all();
    }

    /// Waits until few of the first partitions, which are sealed, are not durable.
    fn wait_for_few(&self, partitions: u32) -> Result<()> {
        let is_ahead = |durable: &mut Durable| {
            let behind = partitions as usize - durable.among_first(partitions);
            !durable.has_ended && behind > SEALED_AHEAD_MAX
        };
        let durable = lock(&self.durable);
        let waited = self.durable_changed.wait_timeout_while(durable, WORK_TIMEOUT, is_ahead);
        match waited.unwrap_or_else(PoisonError::into_inner).1.timed_out() {
            true => Err(not_in_time()),
            false => Ok(()),
        }
    }

    /// Partitions that are durable.
    pub fn durable(&self) -> usize {
        lock(&self.durable).partitions.len()
    }

    /// Takes what became of a text.
    pub fn parsed(&self, mut parsed: Parsed) {
        self.chooser.answered(&parsed);
        parsed.partition = parsed.partition.wrapping_sub(self.numbers.start);
        self.answers.push(parsed);
    }

    /// Whether some fragment went as text.
    pub fn sent_text(&self) -> bool {
        self.sent_text.load(Ordering::Relaxed)
    }

    /// Whether the first `partitions` are durable.
    pub fn has_all(&self, partitions: usize) -> bool {
        let durable = lock(&self.durable);
        let partitions = partitions.min(self.numbers.len());
        durable.among_first(partitions as u32) == partitions
    }

    /// Whether a partition need not be sent.
    fn has(&self, partition: u32) -> bool {
        partition as usize >= self.numbers.len()
            || lock(&self.durable).partitions.contains(&partition)
    }
}

impl Sharing for Sender<'_> {
    fn place(&self, partition: usize, plan: &PartitionPlan, costs: &RowCosts) -> Arc<[Placement]> {
        let load = self.client.receiver_load();
        self.chooser.place(partition, plan, costs, &self.client.stats(), &load)
    }

    fn leave_text(
        &self,
        partition: usize,
        plan: &PartitionPlan,
        costs: &RowCosts,
    ) -> Option<usize> {
        if self.has(partition as u32) {
            return None;
        }
        let load = self.client.receiver_load();
        self.chooser.leave_text(partition, plan, costs, &self.client.stats(), &load)
    }

    fn send_text(&self, text: TextFragment) -> Result<()> {
        let TextFragment { partition, fragment, rows, mut message } = text;
        self.sent_text.store(true, Ordering::Relaxed);
        let partition = self.numbers.start + partition as u32;
        put_text_head(&mut message[..TEXT_HEAD_BYTES], [partition, fragment, rows]);
        self.chooser.sent_text((partition, fragment), rows, message.len());
        self.client.push(Message::new(TEXT_FRAGMENT, message))
    }

    fn answers(&self) -> &Answers {
        &self.answers
    }
}

impl Target for Sender<'_> {
    fn known(&self) -> &[PartitionAccount] {
        self.known
    }

    fn keeps_partitions(&self) -> bool {
        true
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        Some(self)
    }

    fn take_ahead(&self, ahead: Ahead) -> Result<Works> {
        if self.sorts(ahead.partition).is_some() {
            if !self.has(ahead.partition as u32) {
                lock(&self.held).entry(ahead.partition).or_default().take_ahead(ahead)?;
            }
            return Ok(Works::new());
        }
        let Ahead { partition, fragment, columns } = ahead;
        for column in columns {
            let (column, content) = match column {
                AheadColumn::Values { column, values } => {
                    (column, BlockContent::Plain { fragment, values })
                }
                AheadColumn::Rows(_) => {
                    return Err(Error::Corrupt("rows for a server of stores".into()));
                }
                AheadColumn::Page(FinalPage { column, page, symbols }) => {
                    let symbols = symbols.map(|encoder| encoder.table()).into_iter().collect();
                    let pages = vec![(fragment, page)];
                    (column, BlockContent::Pages { dictionary: None, symbols, pages })
                }
            };
            self.send(partition, column, content)?;
        }
        Ok(Works::new())
    }

    fn take_column(
        &self,
        partition: usize,
        column: usize,
        fragments: &[u32],
        compressed: PartitionColumn,
    ) -> Result<()> {
        if self.sorts(partition).is_some() {
            if !self.has(partition as u32) {
                let mut held = lock(&self.held);
                held.entry(partition).or_default().take_column(column, fragments, compressed);
            }
            return Ok(());
        }
        let PartitionColumn { dictionary, symbols, pages } = compressed;
        let dictionary = dictionary.map(|d| encode_dictionary(&d)).transpose()?;
        let pages = fragments.iter().copied().zip(pages).collect();
        self.send(partition, column, BlockContent::Pages { dictionary, symbols, pages })
    }

    fn seal(&self, seal: Seal) -> Result<Works> {
        let rows = seal.account.rows();
        // Partitions are sealed in order, by several workers.
        self.sealed.fetch_max(seal.partition + 1, Ordering::AcqRel);
        if !self.has(seal.partition) {
            self.wait_for_few(seal.partition)?;
            let held = lock(&self.held).remove(&(seal.partition as usize));
            let (blocks, rows_are) = match (self.sorts(seal.partition as usize), held) {
                (Some(sort_rows), Some(held)) => {
                    (self.send_sorted(sort_rows, held, &seal)?, RowsAre::Sorted)
                }
                _ => (seal.blocks, seal.rows_are),
            };
            let partition = self.numbers.start + seal.partition;
            let seal = Seal { partition, blocks, rows_are, ..seal };
            self.client.push(Message::new(SEAL, seal.encode()))?;
        }
        self.rows.fetch_add(rows, Ordering::AcqRel);
        Ok(Works::new())
    }

    fn rows(&self) -> u64 {
        self.rows.load(Ordering::Acquire)
    }
}
