//! Waits for work on other threads, so that Ctrl-C is obeyed.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use coload_threads::lock;
use pyo3::prelude::*;

/// How long nothing is asked of the interpreter.
pub const TICK: Duration = Duration::from_millis(100);

/// Waits for what a thread sends, with the lock of the interpreter left to others. `tick` is called every tenth of a second;
/// when it fails, `stop` tells the thread to end, and its end is waited for, unless `tick` fails once more.
///
/// # Errors
/// That of `tick`; `None` within `Ok` when the thread went away without a word.
pub fn wait_for<T: Send>(
    py: Python<'_>,
    done: &Mutex<Receiver<T>>,
    tick: impl Fn(Python<'_>) -> PyResult<()>,
    stop: impl Fn(),
) -> PyResult<Option<T>> {
    let mut failed = None;
    loop {
        match py.detach(|| lock(done).recv_timeout(TICK)) {
            Ok(result) => match failed {
                // What was asked to stop may have been done already.
                Some(error) => return Err(error),
                None => return Ok(Some(result)),
            },
            Err(RecvTimeoutError::Disconnected) => return failed.map_or(Ok(None), Err),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(error) = py.check_signals().and_then(|()| tick(py)) {
            if failed.is_some() {
                return Err(error);
            }
            stop();
            failed = Some(error);
        }
    }
}
