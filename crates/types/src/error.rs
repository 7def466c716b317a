//! The one error of the workspace: few kinds, chosen by what the caller does next.

use std::fmt;
use std::path::Path;

/// Shorthand for results of this workspace.
pub type Result<T> = std::result::Result<T, Error>;

/// Where in an input a record or a value stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Input name as the user gave it; `-` is standard input.
    pub file: String,
    /// 1-based line on which the record starts; 0 when only the byte is known.
    pub line: u64,
    /// 0-based byte offset in the input at which the record starts.
    pub byte: u64,
    /// 1-based field number; 0 when the whole record is meant.
    pub field: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.field > 0 {
            write!(f, ":{}", self.field)?;
        }
        write!(f, " (byte {})", self.byte)
    }
}

/// What went wrong, by what to do about it.
///
/// Texts say what was attempted, on which object, with the value, the limit and the flag that
/// changes it; lower case, no full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request cannot be served as it is: change it.
    #[error("{0}")]
    Invalid(String),
    /// The data is at fault: fix it at the place.
    #[error("{place}: {text}")]
    Input {
        /// Where the data is wrong.
        place: Box<Place>,
        /// What is wrong, with the value and the flag that helps.
        text: String,
    },
    /// A limit was met: raise it or send less.
    #[error("{0}")]
    Limit(String),
    /// The world is at fault (disk full, file gone, network): mend it and run the same again.
    #[error("{0}")]
    Unavailable(String),
    /// The target said no; its code is in the text.
    #[error("{0}")]
    Refused(String),
    /// Stored bytes are not what was written: do not retry, keep the file.
    #[error("corrupt: {0}")]
    Corrupt(String),
}

impl Error {
    /// `Corrupt` that names the file.
    pub fn corrupt(path: &Path, what: impl fmt::Display) -> Self {
        Error::Corrupt(format!("{}: {what}", path.display()))
    }

    /// The error for a failed operating system call: `action` is "open", "write", ...
    ///
    /// Missing files and permissions are `Invalid` (the request names the wrong thing); everything
    /// else is `Unavailable`.
    pub fn io(action: &str, path: &Path, source: &std::io::Error) -> Self {
        use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
        let text = format!("cannot {action} {}: {source}{}", path.display(), cure(source));
        match source.kind() {
            NotFound | PermissionDenied | NotADirectory => Error::Invalid(text),
            _ => Error::Unavailable(text),
        }
    }
}

/// What to do about an error of the system's, where its text does not say it.
fn cure(source: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    /// `EMFILE` and `ENFILE`, for which the library has no kind.
    const TOO_MANY_FILES: [i32; 2] = [24, 23];
    match source.kind() {
        StorageFull => " (free some space there; what was published is as it was)",
        QuotaExceeded => " (free some of your space there; what was published is as it was)",
        ReadOnlyFilesystem => " (it can be read there, and not written)",
        _ if source.raw_os_error().is_some_and(|code| TOO_MANY_FILES.contains(&code)) => {
            " (allow more, with ulimit -n, or end what holds them)"
        }
        _ => "",
    }
}
