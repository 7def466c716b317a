//! Standard output and standard error, and how a command can fail.

use std::io::{self, Write};

use coload::Error;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// The request is wrong in itself: exit status 2.
    Usage(Error),
    /// It failed: exit status 1.
    Failed(Error),
    /// Nobody reads the output any more.
    OutputClosed,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Failed(error)
    }
}

/// What a command gives back.
pub type Done<T = ()> = Result<T, Failure>;

/// Writes text to standard output.
///
/// # Errors
/// `OutputClosed` when nobody reads it, `Failed` when it cannot be written.
pub fn print(text: &str) -> Done {
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output.
///
/// # Errors
/// As [`print`].
pub fn print_bytes(bytes: &[u8]) -> Done {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::OutputClosed),
        Err(e) => Err(Failure::Failed(Error::Unavailable(format!("cannot write the output: {e}")))),
    }
}

/// Writes a line to standard error. If that fails there is nobody left to tell.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
