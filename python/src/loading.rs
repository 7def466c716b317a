//! Loads, on a thread of their own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::Builder;

use coload::command_line::{self, LoadCall};
use coload::{ArrowRows, Error, Identity, Progress, Result};
use coload_serve::STACK_BYTES;
use coload_threads::lock;
use pyo3::prelude::*;

use crate::c_data::Stream;
use crate::errors::{Doing, exception};
use crate::waiting::wait_for;

/// Rows that a caller brings: an object with `__arrow_c_stream__`, and what it is called in messages.
#[derive(FromPyObject)]
pub struct Frame(Py<PyAny>, String);

/// How far a load is.
#[derive(Default)]
struct Far {
    bytes: AtomicU64,
    bytes_total: AtomicU64,
    rows: AtomicU64,
    rejects: AtomicU64,
}

impl Far {
    fn note(&self, progress: &Progress) {
        self.bytes.store(progress.bytes(), Ordering::Relaxed);
        self.bytes_total.store(progress.bytes_total(), Ordering::Relaxed);
        self.rows.store(progress.rows(), Ordering::Relaxed);
        self.rejects.store(progress.rejects(), Ordering::Relaxed);
    }

    fn numbers(&self) -> (u64, u64, u64, u64) {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (of(&self.bytes), of(&self.bytes_total), of(&self.rows), of(&self.rejects))
    }
}

/// Loads; the report as JSON, and what was told on the way.
pub fn load(
    py: Python<'_>,
    words: Vec<String>,
    identity: Identity,
    frame: Option<Frame>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    let frame = match frame {
        None => None,
        Some(Frame(object, name)) => Some((Stream::of(object.bind(py))?, name)),
    };
    let (cancel, far, told) =
        (Arc::<AtomicBool>::default(), Arc::<Far>::default(), Arc::<Mutex<Vec<String>>>::default());
    let call = {
        let (far, told) = (Arc::clone(&far), Arc::clone(&told));
        LoadCall {
            words,
            rows: None,
            identity,
            told: Box::new(move |line| lock(&told).push(line.to_owned())),
            progress: Some(Arc::new(move |progress: &Progress| far.note(progress))),
            cancel: Arc::clone(&cancel),
        }
    };
    let loaded = on_thread(
        py,
        move || run(call, frame),
        |py| match &progress {
            None => Ok(()),
            Some(progress) => progress.call1(py, far.numbers()).map(drop),
        },
        || cancel.store(true, Ordering::Relaxed),
    )?;
    let json = loaded.map_err(|error| exception(py, &error, Doing::Load))?;
    if let Some(progress) = &progress {
        progress.call1(py, far.numbers())?;
    }
    let told = std::mem::take(&mut *lock(&told));
    Ok((json, told))
}

fn run(mut call: LoadCall, frame: Option<(Stream, String)>) -> Result<String> {
    if let Some((stream, name)) = frame {
        let (schema, batches) = stream.batches(&name)?;
        call.rows = Some(ArrowRows::new(&name, schema, batches)?.into());
    }
    Ok(command_line::load(&call)?.json)
}

/// What is found out of an input, as JSON.
pub fn sniff(py: Python<'_>, words: Vec<String>) -> PyResult<String> {
    let found = on_thread(py, move || command_line::sniff(&words), |_| Ok(()), || {})?;
    found.map_err(|error| exception(py, &error, Doing::Load))
}

/// Does work on a thread of its own, which may recurse as deep as statements do.
fn on_thread<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
    tick: impl Fn(Python<'_>) -> PyResult<()>,
    stop: impl Fn(),
) -> PyResult<Result<T>> {
    let (sender, done) = channel();
    let builder = Builder::new().name("coload-load".to_owned()).stack_size(STACK_BYTES);
    let started = coload_threads::spawn(builder, move || {
        // Whom it is for may have gone.
        let _ = sender.send(work());
    });
    let thread = match started {
        Ok(thread) => thread,
        Err(error) => {
            return Ok(Err(Error::Unavailable(format!("cannot start a thread: {error}"))));
        }
    };
    match wait_for(py, &Mutex::new(done), tick, stop)? {
        Some(result) => Ok(result),
        None => {
            let panicked = py.detach(|| thread.join()).err();
            let text = panicked.as_ref().map_or("", |panic| match panic.downcast_ref::<String>() {
                Some(text) => text,
                None => panic.downcast_ref::<&str>().copied().unwrap_or_default(),
            });
            Ok(Err(Error::Refused(format!("internal error: {text}"))))
        }
    }
}
