//! Ctrl-C and SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coload::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::output::say;

/// How long a load may take to stop. One that waits for standard input cannot look at the flag.
const GRACE: Duration = Duration::from_secs(3);

#[cfg(feature = "sql")]
/// Exit status of a command that Ctrl-C has ended, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// Waits for SIGINT and SIGTERM.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// A signal that asks to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signals {
    /// The next of either.
    pub async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.interrupt.recv() => Told::Interrupt,
            _ = self.terminate.recv() => Told::Terminate,
        }
    }
}

/// Runs what reacts to signals on a thread of its own; from here on they do not end the process.
///
/// # Errors
/// `Unavailable` when signals cannot be waited for.
pub fn on_signals<F>(react: impl FnOnce(Signals) -> F) -> Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let failed = |e| Error::Unavailable(format!("cannot wait for signals: {e}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let guard = runtime.enter();
    let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let terminate = signal(SignalKind::terminate()).map_err(failed)?;
    drop(guard);
    let reaction = react(Signals { interrupt, terminate });
    let thread = std::thread::Builder::new().name("coload-signals".to_owned());
    coload_threads::spawn(thread, move || runtime.block_on(reaction)).map_err(failed)?;
    Ok(())
}

/// Sets `cancel` at the first signal. At the second, or when the load does not end by itself, ends the
/// process, which leaves the store as whole as stopping does.
///
/// # Errors
/// As [`on_signals`].
pub fn cancel_on_signal(cancel: Arc<AtomicBool>) -> Result<()> {
    on_signals(|mut signals| async move {
        signals.next().await;
        cancel.store(true, Ordering::Relaxed);
        let _ = tokio::time::timeout(GRACE, signals.next()).await;
        say("error: stopped at once; the store shows all of the load or nothing of it");
        std::process::exit(1);
    })
}
