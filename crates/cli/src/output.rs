//! Standard output and standard error, and how a command can fail.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coload::Error;
use coload_types::visible;

/// Bytes that wait to be written to standard output together.
const OUTPUT_BYTES: usize = 64 << 10;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// The request is wrong in itself: exit status 2.
    Usage(Error),
    /// It failed: exit status 1.
    Failed(Error),
    /// Nobody reads the output any more.
    OutputClosed,
    /// Ctrl-C: exit status 130.
    #[cfg(feature = "sql")]
    Interrupted,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Failed(error)
    }
}

/// What a command gives back.
pub type Done<T = ()> = Result<T, Failure>;

/// Bytes as a terminal may have them, see [`visible`]; those that are no UTF-8 become U+FFFD.
fn visible_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    let text = String::from_utf8_lossy(bytes);
    match (visible(&text), &text) {
        (Cow::Borrowed(_), Cow::Borrowed(_)) => Cow::Borrowed(bytes),
        (shown, _) => Cow::Owned(shown.into_owned().into_bytes()),
    }
}

/// Writes lines without what commands a terminal, see [`visible`]. A character that two writes cut becomes U+FFFD.
pub struct Visible<W: Write>(pub W);

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(&visible_bytes(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Standard output for much that comes bit by bit: what is written goes out as it is to a file or another program, and
/// without what commands it to a terminal.
pub struct Printed {
    out: Box<dyn Write + Send>,
    closed: Arc<AtomicBool>,
}

impl Printed {
    /// `closed` is set when nobody reads the output any more.
    pub fn new(closed: Arc<AtomicBool>) -> Self {
        let out = BufWriter::with_capacity(OUTPUT_BYTES, io::stdout());
        let out: Box<dyn Write + Send> = match io::stdout().is_terminal() {
            true => Box::new(Visible(out)),
            false => Box::new(out),
        };
        Printed { out, closed }
    }

    fn look<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|e| {
            self.closed.fetch_or(e.kind() == io::ErrorKind::BrokenPipe, Ordering::Relaxed);
        })
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.look(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.look(flushed)
    }
}

/// Writes to standard output.
///
/// # Errors
/// What `write` fails with; `OutputClosed` when nobody reads the output, `Failed` when it cannot be written.
pub fn print_with(write: impl FnOnce(&mut Printed) -> Done<io::Result<()>>) -> Done {
    let closed = Arc::new(AtomicBool::new(false));
    let mut out = Printed::new(Arc::clone(&closed));
    match write(&mut out)?.and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(_) if closed.load(Ordering::Relaxed) => Err(Failure::OutputClosed),
        Err(e) => Err(Failure::Failed(Error::Unavailable(format!("cannot write the output: {e}")))),
    }
}

/// Writes text to standard output, without what commands a terminal to one.
///
/// # Errors
/// `OutputClosed` when nobody reads it, `Failed` when it cannot be written.
pub fn print<T: Display + ?Sized>(text: &T) -> Done {
    print_with(|out| Ok(write!(out, "{text}")))
}

/// Writes a line to standard error, without what commands a terminal. If that fails there is nobody left to tell.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", visible(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_do_not_reach_a_terminal() {
        for text in ["a\tb\n", "\u{1b}]0;title\u{7}"] {
            assert_eq!(&*visible_bytes(text.as_bytes()), visible(text).as_bytes());
        }
        assert_eq!(&*visible_bytes(b"\xff\x1b"), "\u{fffd}\\u{1b}".as_bytes());
    }
}
