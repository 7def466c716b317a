//! A partition while its fragments arrive, in any order.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use coload_types::Result;

use crate::format::PieceSpan;
use crate::partition::{PartitionPlan, Waiting};
use crate::target::{Ahead, AheadColumn, TextFragment};

/// A chunk that was parsed.
#[derive(Debug)]
pub struct ParsedChunk {
    /// What became of its pieces.
    pub spans: Vec<PieceSpan>,
    /// Whether its start was speculated.
    pub speculated: bool,
    /// Its columns that wait for the partition.
    pub waiting: Waiting,
    /// Columns of the fragment that are final.
    pub ahead: Vec<AheadColumn>,
    /// What its progress was counted as.
    pub counted: Counted,
    /// Whether the types are too narrow for it: then the leg ends before it.
    pub unfit: bool,
    /// Its text behind room for a head, if it goes to the server so; then it has no columns.
    pub text: Option<ChunkText>,
}

/// The text of a chunk.
#[derive(Debug)]
pub struct ChunkText {
    /// Room for a head, and the text.
    pub message: Vec<u8>,
    /// How its columns are read if it is handed back.
    pub plan: Arc<PartitionPlan>,
}

/// What is told of the progress of a chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Bytes of the chunk's text.
    pub bytes: u64,
    /// Rows that were parsed.
    pub rows: u64,
    /// Records that were set aside.
    pub rejects: u64,
}

impl Counted {
    /// Adds what another was counted as.
    pub fn add(&mut self, other: Counted) {
        self.bytes += other.bytes;
        self.rows += other.rows;
        self.rejects += other.rejects;
    }
}

/// A partition whose fragments are arriving.
#[derive(Debug)]
pub struct Arriving<P> {
    /// Made by whoever needs it first.
    pub plan: Arc<OnceLock<Result<Arc<PartitionPlan>>>>,
    /// Chunks that were parsed and wait to be verified.
    pub fragments: BTreeMap<usize, ParsedChunk>,
    /// What waits of those that are verified, in order.
    pub verified: Vec<Waiting>,
    /// Fragments with rows.
    kept: u32,
    /// Columns of them that went ahead, and texts.
    pub flown: u64,
    /// The workers' parsers; `None` while one is in use. Its place is the number of its dictionaries.
    pub parsers: Vec<Option<P>>,
    /// Columns that met too many values for codes.
    pub plain_columns: Vec<usize>,
    /// Whether dictionaries have values that stand in no row.
    pub stale: bool,
}

impl<P> Default for Arriving<P> {
    fn default() -> Self {
        Arriving {
            plan: Arc::default(),
            fragments: BTreeMap::new(),
            verified: Vec::new(),
            kept: 0,
            flown: 0,
            parsers: Vec::new(),
            plain_columns: Vec::new(),
            stale: false,
        }
    }
}

impl<P> Arriving<P> {
    /// A parser that waits, and its number; or the number of a new one.
    pub fn take_parser(&mut self) -> (u32, Option<P>) {
        match self.parsers.iter().position(Option::is_some) {
            Some(number) => (number as u32, self.parsers[number].take()),
            None => {
                self.parsers.push(None);
                (self.parsers.len() as u32 - 1, None)
            }
        }
    }

    /// What goes ahead of a verified fragment with so many rows, if it has some.
    pub fn take_ahead(
        &mut self,
        partition: usize,
        rows: u32,
        columns: Vec<AheadColumn>,
    ) -> Option<Ahead> {
        if rows == 0 {
            return None;
        }
        let fragment = self.kept;
        self.kept += 1;
        self.flown += columns.len() as u64;
        Some(Ahead { partition, fragment, columns })
    }

    /// The text of a verified fragment, which has rows.
    pub fn take_text(
        &mut self,
        partition: usize,
        rows: u32,
        ChunkText { message, plan }: ChunkText,
    ) -> (TextFragment, Arc<PartitionPlan>) {
        let fragment = self.kept;
        self.kept += 1;
        self.flown += 1;
        (TextFragment { partition, fragment, rows, message }, plan)
    }

    /// Gives a parser back.
    pub fn return_parser(&mut self, number: u32, parser: P) {
        self.parsers[number as usize] = Some(parser);
    }
}
