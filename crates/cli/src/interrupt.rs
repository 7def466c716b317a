//! Ctrl-C and SIGTERM during a load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coload::{Error, Result};
use tokio::signal::unix::{SignalKind, signal};

use crate::output::say;

/// How long a load may take to stop. One that waits for standard input cannot look at the flag.
const GRACE: Duration = Duration::from_secs(3);

/// Sets `cancel` at the first signal. At the second, or when the load does not end by itself, ends the
/// process, which leaves the store as whole as stopping does.
///
/// # Errors
/// `Unavailable` when signals cannot be waited for.
pub fn cancel_on_signal(cancel: Arc<AtomicBool>) -> Result<()> {
    let failed = |e| Error::Unavailable(format!("cannot wait for Ctrl-C: {e}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let guard = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    drop(guard);
    let wait = async move {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        cancel.store(true, Ordering::Relaxed);
        let again = async {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        };
        let _ = tokio::time::timeout(GRACE, again).await;
        say("error: stopped at once; the store shows all of the load or nothing of it");
        std::process::exit(1);
    };
    let thread = std::thread::Builder::new().name("coload-signals".to_owned());
    thread.spawn(move || runtime.block_on(wait)).map_err(failed)?;
    Ok(())
}
