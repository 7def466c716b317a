//! What ends the statement that runs: Ctrl-C, and that nobody reads the output any more.
//!
//! A thread of its own waits for signals, and for the reader of a pipe to go away, which writing would only find out with the
//! next rows.

use std::io;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use coload::Result;
use coload_serve::Canceller;
use coload_threads::lock;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::interrupt::{INTERRUPTED, Signals, Told, on_signals};

/// Exit status of a command that SIGTERM has ended, as shells have it.
const TERMINATED: i32 = 143;

/// What a signal means between two statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A command ends.
    Command,
    /// A shell goes on.
    Shell,
}

/// Watches over the statement that runs.
#[derive(Debug)]
pub struct Watch(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    used: Use,
    running: Mutex<Option<Running>>,
    interrupted: AtomicBool,
    closed: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Running {
    canceller: Canceller,
    /// Whether its rows go to standard output, and it does nothing else than to make them.
    only_prints: bool,
}

impl Watch {
    /// Starts to watch; from here on signals do not end the process by themselves.
    ///
    /// # Errors
    /// `Unavailable` when signals cannot be waited for.
    pub fn start(used: Use) -> Result<Self> {
        let watched = Arc::new(Watched {
            used,
            running: Mutex::new(None),
            interrupted: AtomicBool::new(false),
            closed: Arc::default(),
        });
        let own = Arc::clone(&watched);
        on_signals(|signals| own.wait(signals))?;
        Ok(Watch(watched))
    }

    /// Set when nobody reads the output any more.
    pub fn closed(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0.closed)
    }

    /// Whether nobody reads the output any more.
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Relaxed)
    }

    /// Watches over a statement.
    pub fn begin(&self, canceller: Canceller) {
        self.0.interrupted.store(false, Ordering::Relaxed);
        *lock(&self.0.running) = Some(Running { canceller, only_prints: false });
    }

    /// From here on the statement ends when nobody reads the output.
    pub fn only_prints(&self) {
        let mut running = lock(&self.0.running);
        let Some(running) = &mut *running else { return };
        running.only_prints = true;
        if self.0.closed.load(Ordering::Relaxed) {
            running.canceller.cancel();
        }
    }

    /// The statement is done; whether Ctrl-C was pressed.
    pub fn end(&self) -> bool {
        *lock(&self.0.running) = None;
        self.0.interrupted.load(Ordering::Relaxed)
    }
}

impl Watched {
    async fn wait(self: Arc<Self>, mut signals: Signals) {
        // None where standard output is a file, which nobody closes.
        // SAFETY: standard output stays open: nothing closes descriptor 1.
        let output = unsafe { AsyncFd::register_with_interest(io::stdout(), Interest::ERROR) };
        let mut output = output.ok();
        loop {
            tokio::select! {
                told = signals.next() => self.signal(told),
                () = unread(output.as_ref()) => {
                    output = None;
                    self.closed.store(true, Ordering::Relaxed);
                    if let Some(running) = &*lock(&self.running) && running.only_prints {
                        running.canceller.cancel();
                    }
                }
            }
        }
    }

    fn signal(&self, told: Told) {
        let running = lock(&self.running);
        let again = self.interrupted.swap(true, Ordering::Relaxed);
        if let Some(running) = &*running {
            running.canceller.cancel();
        }
        match (told, self.used) {
            (Told::Terminate, Use::Shell) => exit(TERMINATED),
            (_, Use::Shell) => {}
            // A statement that runs is given time to end, once.
            (_, Use::Command) if running.is_none() || again => exit(INTERRUPTED.into()),
            (_, Use::Command) => {}
        }
    }
}

/// Waits until nobody reads what is written.
async fn unread(output: Option<&AsyncFd<io::Stdout>>) {
    match output {
        Some(output) => drop(output.ready(Interest::ERROR).await),
        None => std::future::pending().await,
    }
}
