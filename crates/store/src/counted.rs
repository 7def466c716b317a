//! Memory of writers that somebody counts with that of others: statements of a database hold so much together.

use std::any::Any;
use std::fmt::Debug;

use coload_types::Result;

/// Who counts memory.
pub trait CountsMemory: Debug + Send + Sync {
    /// Takes so many bytes for something that a message names. They are given back when what this gives is dropped.
    ///
    /// # Errors
    /// `Limit` when others have too much.
    fn take(&self, what: &'static str, bytes: u64) -> Result<CountedBytes>;
}

/// Bytes that were taken.
pub type CountedBytes = Box<dyn Any + Send>;
