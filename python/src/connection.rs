//! A store or a server, as Python sees it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use coload::{Coload, DatabaseOptions, Error, Identity, InPlace, is_database_url};
use coload_serve::{
    Address, Allowed, AnswerRows, Credentials, ExternalPlaces, Parameters, Remote, SpillOptions,
};
use coload_threads::{drop_elsewhere, lock};
use pyo3::prelude::*;

use crate::errors::{Doing, exception, named};
use crate::loading::{self, Frame};
use crate::parameters;
use crate::rows::Rows;

/// What statements run on.
enum Kind {
    Store(Box<Coload>, DatabaseOptions),
    Server(Box<Remote>),
}

/// What a copy of a process is told.
pub const FORKED: &str = "this process is a fork of the one that opened the connection, and has none of its threads: connect \
    anew in each process (multiprocessing: use the start method spawn or forkserver)";

/// What statements run on, for all that use it.
struct Target {
    /// Only taken away when nobody uses it any more.
    kind: Option<Kind>,
    /// The process that opened it: its threads are in no other.
    process: u32,
}

impl Drop for Target {
    fn drop(&mut self) {
        let kind = self.kind.take();
        match self.process == std::process::id() {
            // Its threads are waited for, and the lock of the interpreter may be held here.
            true => drop_elsewhere(kind),
            // A copy of a process has no threads that could be waited for.
            false => std::mem::forget(kind),
        }
    }
}

/// A store that this process reads and writes, or a server.
#[pyclass(frozen, module = "coload._native")]
pub struct Connection {
    target: Mutex<Option<Arc<Target>>>,
    /// What `--into` of a load is.
    into: String,
    identity: Identity,
}

/// What a connection is opened with.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    password: Option<String>,
    token: Option<String>,
    tls_ca: Option<PathBuf>,
    tls_certificate: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    threads: Option<usize>,
    memory: Option<usize>,
    spill: Option<PathBuf>,
    create: bool,
}

#[pymethods]
impl Connection {
    /// Opens a store, or connects to a server.
    #[new]
    fn new(py: Python<'_>, place: String, options: Options) -> PyResult<Self> {
        let environment = Identity::of_environment();
        let identity = Identity {
            password: options.password.clone().or(environment.password),
            token: options.token.clone().or(environment.token),
            ca: options.tls_ca.clone().or(environment.ca),
            certificate: match (&options.tls_certificate, &options.tls_key) {
                (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
                (None, None) => environment.certificate,
                _ => {
                    let text = "tls_certificate and tls_key are given together";
                    return Err(named(py, "UsageError", text));
                }
            },
        };
        let opened = py.detach(|| open(&place, &identity, options));
        let opened = opened.map_err(|error| exception(py, &error, Doing::Connecting))?;
        let target = Target { kind: Some(opened), process: std::process::id() };
        Ok(Connection { target: Mutex::new(Some(Arc::new(target))), into: place, identity })
    }

    /// Loads. `words` are flags and inputs; `frame` brings rows: a stream of Arrow, and a name for messages.
    #[pyo3(signature = (words, frame, progress))]
    fn load(
        &self,
        py: Python<'_>,
        words: Vec<String>,
        frame: Option<Frame>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(String, Vec<String>)> {
        self.target(py)?.kind(py)?;
        let into = ["--into".to_owned(), self.into.clone()];
        let words = into.into_iter().chain(words).collect();
        loading::load(py, words, self.identity.clone(), frame, progress)
    }

    /// Starts a statement, with a value for each of its parameters if it has some.
    #[pyo3(signature = (text, parameters))]
    fn start(
        &self,
        py: Python<'_>,
        text: &str,
        parameters: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Rows> {
        let target = self.target(py)?;
        let row = parameters.map(|row| parameters::batch(&[row])).transpose()?.flatten();
        let failed = |error: &Error| exception(py, error, Doing::Statement);
        let rows = match (target.kind(py)?, row) {
            (Kind::Store(store, options), row) => {
                let parameters = row.map(|row| Parameters::of_row(&row, 0)).transpose();
                let parameters = parameters.map_err(|error| failed(&error))?.unwrap_or_default();
                let database = py.detach(|| store.database(options.clone()));
                database.map_err(|error| failed(&error))?.start_with(text, parameters)
            }
            (Kind::Server(server), None) => server.start(text),
            (Kind::Server(server), Some(row)) => server.start_with(text, row),
        };
        Ok(self.rows(rows, target))
    }

    /// Starts an INSERT, UPDATE or DELETE for each row of values.
    fn start_for_each(
        &self,
        py: Python<'_>,
        text: &str,
        rows: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Rows> {
        let target = self.target(py)?;
        let Some(batch) = parameters::batch(&rows)? else {
            return Err(parameters::no_rows(py));
        };
        let rows = match target.kind(py)? {
            Kind::Store(store, options) => {
                let database = py.detach(|| store.database(options.clone()));
                let database = database.map_err(|error| exception(py, &error, Doing::Statement))?;
                database.start_for_each(text, batch)
            }
            Kind::Server(server) => server.start_for_each(text, batch),
        };
        Ok(self.rows(rows, target))
    }

    /// Closes it; statements that run go on until their rows are dropped.
    fn close(&self) {
        *lock(&self.target) = None;
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        lock(&self.target).is_none()
    }
}

impl Connection {
    fn target(&self, py: Python<'_>) -> PyResult<Arc<Target>> {
        lock(&self.target)
            .clone()
            .ok_or_else(|| named(py, "InterfaceError", "the connection is closed"))
    }

    fn rows(&self, rows: AnswerRows, target: Arc<Target>) -> Rows {
        // The threads of the target go when nobody takes rows of them any more.
        Rows::new(rows, Box::new(target))
    }
}

impl Target {
    fn kind(&self, py: Python<'_>) -> PyResult<&Kind> {
        match &self.kind {
            Some(kind) if self.process == std::process::id() => Ok(kind),
            _ => Err(named(py, "InterfaceError", FORKED)),
        }
    }
}

fn open(place: &str, identity: &Identity, options: Options) -> coload::Result<Kind> {
    if is_database_url(place) || place.starts_with("parquet:") {
        return Err(Error::Invalid(format!(
            "{place} is neither a store nor a server of coload: load into it with coload.load(inputs, {place:?}), or \
             from it by its URL as an input"
        )));
    }
    if Address::is_meant(place) {
        let credentials = Credentials {
            password: identity.password.clone(),
            token: identity.token.clone(),
            ca: identity.ca.clone(),
            certificate: identity.certificate.clone(),
        };
        return Ok(Kind::Server(Box::new(Remote::connect(place.parse()?, &credentials)?)));
    }
    let store = match options.create {
        true => Coload::create_or_open(place)?,
        false => Coload::open(place)?,
    };
    let usual = DatabaseOptions::default();
    let database = DatabaseOptions {
        threads: options.threads.unwrap_or(usual.threads),
        memory: options.memory.unwrap_or_else(coload::default_memory),
        spill: SpillOptions { folder: options.spill, ..usual.spill },
        statements: usual.statements,
        external: Some(ExternalPlaces {
            inputs: Arc::new(InPlace::default()),
            allowed: Allowed::Everything,
        }),
        cluster: usual.cluster,
    };
    Ok(Kind::Store(Box::new(store), database))
}
