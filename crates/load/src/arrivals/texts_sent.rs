//! Chunks that go to the server as text.
//!
//! ```text
//!   verified -> sent -> taken by the server                         -> accounted for
//!                    -> handed back -> parsed here, sent plain      -> accounted for
//! ```
//!
//! Chunks are accounted for in the order of the input, so those after one whose answer is awaited wait too. A partition
//! is sealed when all its texts have been answered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use coload_types::{Error, Result};
use coload_wire::TextIs;

use super::Verified;
use crate::format::PieceSpan;
use crate::partition::PartitionPlan;
use crate::target::TextFragment;

/// A fragment of a partition.
type Key = (usize, u32);

/// A chunk that the server handed back.
#[derive(Debug)]
pub struct HandedBack {
    /// Number of the chunk in the load.
    pub chunk: usize,
    /// Where its first record starts.
    pub start: u64,
    /// The fragment that it is.
    pub key: Key,
    /// Rows that were counted.
    pub rows: u64,
    /// How its columns are read.
    pub plan: Arc<PartitionPlan>,
}

/// What the server says of a text.
#[derive(Debug)]
pub enum Answered {
    /// It has the rows: what this accounts for.
    Taken(Verified),
    /// The client parses it.
    HandedBack(HandedBack),
}

/// A text whose answer is awaited.
#[derive(Debug)]
struct Awaited {
    chunk: usize,
    rows: u32,
    /// What became of its pieces if the server takes it.
    spans: Vec<PieceSpan>,
    plan: Arc<PartitionPlan>,
    handed_back: bool,
}

/// The texts of a load.
#[derive(Debug, Default)]
pub struct TextsSent {
    awaited: BTreeMap<Key, Awaited>,
    /// What became of verified chunks, in order, with their numbers and partitions; nothing of those awaited.
    waiting: VecDeque<(usize, usize, Option<Vec<PieceSpan>>)>,
    /// Of partitions, fragments that were handed back: their rows, and the blocks sent in place of the text.
    corrections: BTreeMap<usize, Vec<(u32, u32, u64)>>,
}

impl TextsSent {
    /// Corrects what a partition has.
    pub fn correct(&mut self, partition: usize, blocks: &mut u64, page_rows: &mut Vec<u32>) {
        for (fragment, rows, sent) in self.corrections.remove(&partition).unwrap_or_default() {
            *blocks = *blocks - 1 + sent;
            page_rows[fragment as usize] = rows;
        }
        page_rows.retain(|rows| *rows > 0);
    }

    /// Accounts for a verified chunk, or lets it wait for those before it.
    pub fn account(
        &mut self,
        chunk: usize,
        partition: usize,
        spans: Vec<PieceSpan>,
        verified: &mut Verified,
    ) {
        if self.waiting.is_empty() {
            verified.spans.extend(spans.into_iter().map(|span| (partition, span)));
        } else {
            self.waiting.push_back((chunk, partition, Some(spans)));
        }
    }

    /// Notes that a verified chunk goes as text.
    pub fn send(
        &mut self,
        chunk: usize,
        text: &TextFragment,
        spans: Vec<PieceSpan>,
        plan: Arc<PartitionPlan>,
    ) {
        self.waiting.push_back((chunk, text.partition, None));
        let awaited = Awaited { chunk, rows: text.rows, spans, plan, handed_back: false };
        self.awaited.insert((text.partition, text.fragment), awaited);
    }

    /// Takes the answer to a text.
    ///
    /// # Errors
    /// `Corrupt` when none is awaited.
    pub fn answer(&mut self, key: Key, is: TextIs) -> Result<Answered> {
        let awaited = self.awaited.get_mut(&key).filter(|awaited| !awaited.handed_back);
        let Some(awaited) = awaited else {
            let (partition, fragment) = key;
            return Err(Error::Corrupt(format!(
                "the server tells of the text of fragment {fragment} of partition {partition}, which it does not have"
            )));
        };
        let (chunk, spans) = (awaited.chunk, std::mem::take(&mut awaited.spans));
        if is == TextIs::Taken {
            self.awaited.remove(&key);
            return Ok(Answered::Taken(self.tell(chunk, spans)));
        }
        awaited.handed_back = true;
        let start = spans.first().map_or(0, |span| span.start);
        let (rows, plan) = (u64::from(awaited.rows), Arc::clone(&awaited.plan));
        Ok(Answered::HandedBack(HandedBack { chunk, start, key, rows, plan }))
    }

    /// Takes what became of a chunk that was handed back: its rows, and the columns that are sent for it.
    pub fn take_back(
        &mut self,
        back: &HandedBack,
        rows: u32,
        columns: u64,
        spans: Vec<PieceSpan>,
    ) -> Verified {
        let (partition, fragment) = back.key;
        self.awaited.remove(&back.key);
        self.corrections.entry(partition).or_default().push((fragment, rows, columns));
        self.tell(back.chunk, spans)
    }

    /// Accounts for a chunk that was awaited, and for those that waited behind it.
    fn tell(&mut self, chunk: usize, spans: Vec<PieceSpan>) -> Verified {
        if let Ok(at) = self.waiting.binary_search_by_key(&chunk, |(chunk, ..)| *chunk) {
            self.waiting[at].2 = Some(spans);
        }
        let mut verified = Verified::default();
        while let Some((_, partition, spans)) =
            self.waiting.pop_front_if(|(_, _, spans)| spans.is_some())
        {
            verified.spans.extend(spans.into_iter().flatten().map(|span| (partition, span)));
        }
        verified
    }
}
