//! Where the partitions of a load go.
//!
//! ```text
//!   fragment verified   -> take_ahead   its columns that are final
//!   partition complete  -> take_column  each of the others, compressed
//!                       -> seal         its rows and, if the target wants it, their account
//!   no partition more   -> end
//! ```
//!
//! A target is told of fragments and partitions by several workers at once, so that they may come in any order; their
//! numbers tell which. What takes longer than a moment it gives back as work, which any worker does.

mod arriving;
mod in_memory;
mod made;
mod rejecting;
mod routing;
mod rows;
mod segments;
mod sharing;

use std::fmt::Debug;

use coload_threads::StepClock;
use coload_transform::{FinalPage, PartitionColumn};
use coload_types::{Plain, Result};
use coload_wire::{PartitionAccount, Seal};

pub use crate::schedule::Lane;
pub use in_memory::{InMemory, TakesSegments};
pub use made::MadeSegments;
pub use rejecting::Rejecting;
pub use routing::{Out, Routing};
pub use rows::{FragmentRows, MadeRows, RowBytes, RowNumbers, TakesRows, add_left_out};
pub use segments::{DoneSegment, Segments};
pub use sharing::{Answers, RowCosts, Sharing, TextFragment};

/// Takes the partitions of a load.
pub trait Target: Sync {
    /// Partitions that it has from an earlier attempt, from the first of the leg on.
    fn known(&self) -> &[PartitionAccount] {
        &[]
    }

    /// Whether partitions that it has stay when an attempt ends early. Then partitions begin at the same chunks in all
    /// attempts, and each is sealed with its account.
    fn keeps_partitions(&self) -> bool {
        false
    }

    /// Whether the end of each partition comes with its account.
    fn wants_accounts(&self) -> bool {
        self.keeps_partitions()
    }

    /// What it does of the work, if it does some: then it may take values and text of fragments as they are.
    fn sharing(&self) -> Option<&dyn Sharing> {
        None
    }

    /// Makes rows of fragments, if it takes rows: then it gets nothing else of them.
    fn takes_rows(&self) -> Option<&dyn TakesRows> {
        None
    }

    /// Is told, before it is given anything, that the partitions from this one on are the last, and come slowly: what is before
    /// them can be finished meanwhile.
    fn ends_slowly_from(&self, partition: usize) {
        let _ = partition;
    }

    /// Takes the columns of a fragment that need not wait for their partition. Each fragment with rows comes once, with a
    /// number that counts those of its partition.
    ///
    /// # Errors
    /// What ends the load.
    fn take_ahead(&self, ahead: Ahead) -> Result<Works>;

    /// Takes a column of a partition, or of its fragments that waited, whose numbers these are.
    ///
    /// # Errors
    /// What ends the load.
    fn take_column(
        &self,
        partition: usize,
        column: usize,
        fragments: &[u32],
        compressed: PartitionColumn,
    ) -> Result<()>;

    /// Takes the end of a partition, of which all columns were taken.
    ///
    /// # Errors
    /// What ends the load.
    fn seal(&self, seal: Seal) -> Result<Works>;

    /// Takes the end of the load, when all partitions were sealed.
    ///
    /// # Errors
    /// What ends the load.
    fn end(&self) -> Result<Works> {
        Ok(Works::new())
    }

    /// Rows that it has, when all its work is done.
    fn rows(&self) -> u64;
}

/// Columns of a fragment that go ahead of their partition.
#[derive(Debug)]
pub struct Ahead {
    /// Number of the partition.
    pub partition: usize,
    /// Number of the fragment among those of the partition that have rows.
    pub fragment: u32,
    /// Columns of the fragment that are final.
    pub columns: Vec<AheadColumn>,
}

/// A column of a fragment that is final.
#[derive(Debug)]
pub enum AheadColumn {
    /// It needs no dictionary.
    Page(FinalPage),
    /// The target transforms it.
    Values {
        /// Column of the table.
        column: usize,
        /// A value for each row.
        values: Plain,
    },
    /// All columns: the target made rows of them.
    Rows(FragmentRows),
}

/// Work that a target leaves to the workers of a load.
pub trait Work: Debug + Send {
    /// Does it, and gives what is to be done then.
    ///
    /// # Errors
    /// What ends the load.
    fn run(self: Box<Self>, clock: &StepClock) -> Result<Works>;

    /// How much of its kind may be done at once.
    fn lane(&self) -> Lane {
        Lane::Any
    }
}

/// Work to be done in any order.
pub type Works = Vec<Box<dyn Work>>;
