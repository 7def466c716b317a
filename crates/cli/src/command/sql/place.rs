//! Where answers go: standard output, a file, a pager.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coload::Error;
use coload_load::ReplacedFile;
use coload_serve::Canceller;
use coload_serve::output::{Layout, OutputFormat};
use console::Term;

use super::session::Settings;
use crate::output::{Done, Printed};

/// Rows of a table that a terminal is shown.
const TERMINAL_ROWS: usize = 40;
/// Bytes that are written to a file together.
const FILE_BYTES: usize = 256 << 10;
/// What shows answers where no other pager is named: lines are not folded, and what fits the screen is only printed.
const PAGER: &str = "less -SFX";

/// A file that answers go into.
pub struct AnswerFile {
    path: PathBuf,
    whole: ReplacedFile,
    file: File,
    format: &'static OutputFormat,
    answers: usize,
}

impl AnswerFile {
    /// Begins a file.
    ///
    /// # Errors
    /// When its ending says no form and none is given, or the folder does not take it.
    pub fn create(path: &Path, given: Option<&'static OutputFormat>) -> Done<Self> {
        let format = match given {
            Some(format) => format,
            None => OutputFormat::of_file(path)?,
        };
        let (whole, file) = ReplacedFile::create(path)?;
        Ok(AnswerFile { path: path.to_owned(), whole, file, format, answers: 0 })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    pub fn finish(self) -> Done {
        Ok(self.whole.finish(&self.file)?)
    }

    /// Takes the next answer.
    ///
    /// # Errors
    /// `Invalid` when the form holds one only.
    fn next_answer(&mut self) -> Done<Out> {
        if self.answers > 0 && !self.format.is_text {
            return Err(Error::Invalid(format!(
                "{} holds an answer already, and a file of {} holds one: give the next a file of its own",
                self.path.display(),
                self.format.name
            ))
            .into());
        }
        self.answers += 1;
        let file = self.file.try_clone().map_err(|e| Error::io("write", &self.path, &e))?;
        Ok(Out {
            format: self.format,
            layout: Layout::default(),
            out: Box::new(BufWriter::with_capacity(FILE_BYTES, file)),
            pager: None,
            only_prints: false,
        })
    }
}

/// What takes the rows of one answer.
pub struct Out {
    pub format: &'static OutputFormat,
    pub layout: Layout,
    pub out: Box<dyn Write + Send>,
    /// The pager behind `out`, to be waited for when that is dropped.
    pub pager: Option<Child>,
    /// Whether nothing of it is left when standard output is closed.
    pub only_prints: bool,
}

impl Out {
    /// Chooses where the next answer goes.
    ///
    /// # Errors
    /// `Invalid` for files on a terminal; when the pager cannot be started.
    pub fn choose(
        settings: &Settings,
        file: Option<&mut AnswerFile>,
        closed: Arc<AtomicBool>,
    ) -> Done<Self> {
        if let Some(file) = file {
            let mut out = file.next_answer()?;
            out.layout.max_rows = settings.max_rows.filter(|rows| *rows > 0);
            return Ok(out);
        }
        let is_terminal = io::stdout().is_terminal();
        let format = match (settings.expanded, settings.format) {
            (true, _) => OutputFormat::expanded(),
            (false, format) => format.unwrap_or_else(OutputFormat::table),
        };
        if is_terminal && !format.is_text {
            return Err(Error::Invalid(format!(
                "a file of {} is nothing for a terminal: give -o FILE, or send it to a program",
                format.name
            ))
            .into());
        }
        let mut layout =
            Layout { width: None, max_rows: settings.max_rows.filter(|rows| *rows > 0) };
        if is_terminal && settings.pager {
            let mut pager = start_pager()?;
            let out: Box<dyn Write + Send> = match pager.stdin.take() {
                Some(input) => Box::new(crate::output::Visible(BufWriter::new(input))),
                None => Box::new(io::sink()),
            };
            return Ok(Out { format, layout, out, pager: Some(pager), only_prints: false });
        }
        if is_terminal {
            layout.width = Term::stdout().size_checked().map(|(_, columns)| columns.into());
            if settings.max_rows.is_none() {
                layout.max_rows = Some(TERMINAL_ROWS);
            }
        }
        let out = Box::new(Printed::new(closed));
        Ok(Out { format, layout, out, pager: None, only_prints: true })
    }
}

fn start_pager() -> Done<Child> {
    let named = ["COLOAD_PAGER", "PAGER"].into_iter().filter_map(|name| std::env::var(name).ok());
    let pager = named.into_iter().find(|text| !text.trim().is_empty());
    let pager = pager.unwrap_or_else(|| PAGER.to_owned());
    let started = Command::new("sh").args(["-c", &pager]).stdin(Stdio::piped()).spawn();
    started.map_err(|e| Error::Invalid(format!("cannot start the pager {pager}: {e}")).into())
}

/// Writes until a statement is cancelled, and notes when nobody reads: who writes to a slow terminal does not look at the next rows for long.
pub struct UntilCancelled<W> {
    pub out: W,
    pub canceller: Canceller,
    /// Set when nobody reads any more.
    pub closed: Arc<AtomicBool>,
}

impl<W: Write> UntilCancelled<W> {
    fn look(&self) -> io::Result<()> {
        match self.canceller.is_cancelled() {
            // Not `Interrupted`, after which writers try again.
            true => Err(io::Error::other("the statement was cancelled")),
            false => Ok(()),
        }
    }

    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|e| {
            self.closed.fetch_or(e.kind() == io::ErrorKind::BrokenPipe, Ordering::Relaxed);
        })
    }
}

impl<W: Write> Write for UntilCancelled<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// Bytes that are written before the next look.
        const TOGETHER_BYTES: usize = 4 << 10;
        self.look()?;
        let written = self.out.write(&bytes[..bytes.len().min(TOGETHER_BYTES)]);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.look()?;
        let flushed = self.out.flush();
        self.note(flushed)
    }
}
