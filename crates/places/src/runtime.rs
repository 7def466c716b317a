//! The threads that speak with servers, one set for the process.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::mpsc;

use coload_types::{Error, Result};
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that move bytes: one does a Gbit/s with TLS, and those who parse want the others.
const THREADS: usize = 2;

static RUNTIME: OnceLock<std::result::Result<Runtime, String>> = OnceLock::new();

/// Where requests run.
///
/// # Errors
/// `Unavailable` when there are no threads for it.
pub fn handle() -> Result<&'static Handle> {
    let start = || {
        let threads = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("coload-places")
            .enable_all()
            .build();
        threads.map_err(|e| e.to_string())
    };
    match RUNTIME.get_or_init(start) {
        Ok(runtime) => Ok(runtime.handle()),
        Err(e) => Err(Error::Unavailable(format!("cannot start threads for the network: {e}"))),
    }
}

/// Runs a request, and waits for what comes of it. It may be called from any thread.
///
/// # Errors
/// Those of the request; `Unavailable` when it could not run.
pub fn wait_for<T: Send + 'static>(
    request: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    begin(request)?()
}

/// Begins a request, and gives what waits for what comes of it.
///
/// # Errors
/// `Unavailable` when it could not run.
pub fn begin<T: Send + 'static>(
    request: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<impl FnOnce() -> Result<T>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    handle()?.spawn(async move {
        // Who asked has gone if nobody takes it.
        let _ = sender.send(request.await);
    });
    let gone = |_| Error::Unavailable("a request to a server was dropped".to_owned());
    Ok(move || receiver.recv().map_err(gone)?)
}
