//! What statements run on, how their answers are shown, and where these go.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use coload::Error;
use coload_serve::AnswerRows;
use coload_serve::output::{AnswerWriter, OutputFormat};

use super::place::{AnswerFile, Out, UntilCancelled};
use super::signals::Watch;
use super::target::Target;
use crate::args::AnswerArgs;
use crate::config::Config;
use crate::output::{Done, Failure, say};

/// How answers are shown.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The form; without it that of the file, or a table.
    pub format: Option<&'static OutputFormat>,
    /// Rows of a table, 0 for all; without it as many as fit who reads.
    pub max_rows: Option<usize>,
    /// Each row as lines of a name and a value.
    pub expanded: bool,
    /// Answers on a terminal go through a pager.
    pub pager: bool,
    /// Each statement is followed by its time; without it those of a person are.
    pub timing: Option<bool>,
}

impl Settings {
    /// Those of flags, else those of the file of settings.
    ///
    /// # Errors
    /// `Invalid` when the file names a form that there is not.
    pub fn new(args: &AnswerArgs, config: &Config) -> Done<Self> {
        let configured = match (&config.output, &args.output_file) {
            (Some(name), None) => Some(OutputFormat::of_name(name)?),
            _ => None,
        };
        Ok(Settings {
            format: args.output.or(configured),
            max_rows: args.max_rows.or(config.max_rows),
            expanded: false,
            pager: args.pager || config.pager.unwrap_or(false),
            timing: if args.timing { Some(true) } else { config.timing },
        })
    }
}

/// A target, and what was set.
pub struct Session {
    pub target: Target,
    pub settings: Settings,
    /// Scripts that run one another now.
    pub depth: usize,
    /// The statement that ran last.
    pub last: String,
    watch: Watch,
    file: Option<AnswerFile>,
}

impl Session {
    /// On a target, with answers to standard output.
    pub fn new(target: Target, settings: Settings, watch: Watch) -> Self {
        Session { target, settings, depth: 0, last: String::new(), watch, file: None }
    }

    /// Sends the answers that follow into a file; what was sent into another is finished.
    ///
    /// # Errors
    /// When a file cannot be written, or its ending says no form.
    pub fn write_to(&mut self, path: &Path) -> Done {
        self.finish()?;
        self.file = Some(AnswerFile::create(path, self.settings.format)?);
        Ok(())
    }

    /// Gives the file of answers its name; those that follow go to standard output.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(&mut self) -> Done {
        self.file.take().map_or(Ok(()), AnswerFile::finish)
    }

    /// Runs one statement and writes its rows as they come.
    ///
    /// # Errors
    /// `Failed` when it fails, `Interrupted` when Ctrl-C has ended it, `OutputClosed` when nobody reads its rows.
    pub fn answer(&mut self, statement: &str) -> Done {
        let started = Instant::now();
        self.last = format!("{statement};");
        let mut rows = self.target.start(statement);
        let canceller = rows.canceller();
        self.watch.begin(canceller.clone());
        let written = self.write(&mut rows);
        // The statement ends here, also at a server.
        drop(rows);
        let was_interrupted = self.watch.end();
        match written {
            Ok(()) => {
                if self.settings.timing == Some(true) {
                    say(&format!("{:.3} s", started.elapsed().as_secs_f64()));
                }
                Ok(())
            }
            Err(_) if was_interrupted => Err(Failure::Interrupted),
            Err(_) if self.watch.is_closed() => Err(Failure::OutputClosed),
            Err(failure) => Err(failure),
        }
    }

    fn write(&mut self, rows: &mut AnswerRows) -> Done {
        let schema = rows.schema()?;
        if schema.fields().is_empty() {
            while rows.next_rows()?.is_some() {}
            return Ok(());
        }
        let out = Out::choose(&self.settings, self.file.as_mut(), self.watch.closed())?;
        let Out { format, layout, out, pager, only_prints } = out;
        if only_prints {
            self.watch.only_prints();
        }
        let closed = Arc::new(AtomicBool::new(false));
        let out = UntilCancelled { out, canceller: rows.canceller(), closed: Arc::clone(&closed) };
        let written = AnswerWriter::new(schema, format, layout, out)
            .and_then(|writer| write_rows(rows, writer));
        let Some(mut pager) = pager else { return Ok(written?) };
        // Its input is closed: it ends when the person has seen enough, perhaps before all rows.
        let status = pager.wait();
        match (written, status) {
            (Ok(()), Err(e)) => {
                Err(Error::Unavailable(format!("cannot wait for the pager: {e}")).into())
            }
            (Ok(()), Ok(_)) => Ok(()),
            (Err(_), _) if closed.load(Ordering::Relaxed) => Ok(()),
            (Err(error), _) => Err(error.into()),
        }
    }
}

fn write_rows(rows: &mut AnswerRows, mut writer: AnswerWriter<'_>) -> Result<(), Error> {
    loop {
        if rows.is_waiting() {
            writer.flush()?;
        }
        match rows.next_rows()? {
            Some(batch) => writer.write(&batch)?,
            None => return writer.finish(),
        }
    }
}
