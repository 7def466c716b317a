//! What is wrong with a message, or a part of a file.

use std::fmt;

use coload_types::Error;

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Fault>;

/// Why a message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Its bytes contradict each other, or are cut off.
    Damaged(String),
    /// It is what no reader of this crate takes.
    Unknown(String),
    /// So many bytes would be in memory at once, which is more than may be.
    TooLarge(u64),
    /// Its bytes could not be had.
    Read(Error),
}

impl Fault {
    /// Bytes that contradict each other.
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Fault::Damaged(what.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Damaged(what) => write!(f, "the data are damaged or truncated: {what}"),
            Fault::Unknown(what) => f.write_str(what),
            Fault::TooLarge(bytes) => write!(f, "{bytes} bytes would be in memory at once"),
            Fault::Read(error) => error.fmt(f),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Read(error)
    }
}
