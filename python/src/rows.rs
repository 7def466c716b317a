//! The rows of a statement, as Python takes them.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, OnceLock};

use coload::Error;
use coload::arrow::datatypes::SchemaRef;
use coload::arrow::record_batch::RecordBatch;
use coload_serve::{AnswerRows, Canceller};
use coload_threads::lock;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use crate::c_data::{Exported, Source, sql_name};
use crate::connection::FORKED;
use crate::errors::{Doing, exception};
use crate::values::rows_of;
use crate::waiting::TICK;

/// Rows of a statement, taken as they come.
#[pyclass(frozen, module = "coload._native")]
pub struct Rows {
    shared: Arc<Shared>,
}

/// Rows that Python and another library of the process may take.
pub struct Shared {
    rows: ManuallyDrop<Mutex<AnswerRows>>,
    schema: OnceLock<SchemaRef>,
    canceller: Canceller,
    /// What failed while another library took rows, which knows the text only.
    failed: Mutex<Option<Stopped>>,
    process: u32,
    /// What has the threads that make the rows.
    _target: Box<dyn Any + Send + Sync>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.canceller.cancel();
            // SAFETY: nobody uses them any more.
            unsafe { ManuallyDrop::drop(&mut self.rows) }
        }
    }
}

/// Why there are no rows.
enum Stopped {
    Failed(Error),
    /// A signal: the exception that its handler raised.
    Interrupted(PyErr),
}

impl Rows {
    /// The rows of an answer; `target` stays until they are dropped.
    pub fn new(rows: AnswerRows, target: Box<dyn Any + Send + Sync>) -> Self {
        let canceller = rows.canceller();
        let process = std::process::id();
        let shared = Shared {
            rows: ManuallyDrop::new(Mutex::new(rows)),
            schema: OnceLock::new(),
            canceller,
            failed: Mutex::default(),
            process,
            _target: target,
        };
        Rows { shared: Arc::new(shared) }
    }

    fn error(py: Python<'_>, stopped: Stopped) -> PyErr {
        match stopped {
            Stopped::Failed(error) => exception(py, &error, Doing::Statement),
            Stopped::Interrupted(error) => error,
        }
    }

    fn schema(&self, py: Python<'_>) -> PyResult<SchemaRef> {
        let schema = py.detach(|| self.shared.fields());
        schema.map_err(|stopped| Self::error(py, stopped))
    }
}

impl Shared {
    /// Waits until there is something, and takes it. Must be called without the lock of the interpreter, which a handler of
    /// signals may need.
    fn take<T>(
        &self,
        take: impl FnOnce(&mut AnswerRows) -> coload::Result<T>,
    ) -> Result<T, Stopped> {
        if self.process != std::process::id() {
            return Err(Stopped::Failed(Error::Unavailable(FORKED.to_owned())));
        }
        // Whoever holds it may wait for the interpreter, which may be held here.
        let Ok(mut rows) = self.rows.try_lock() else {
            let text = "another thread takes the rows of this statement, or failed in doing so";
            return Err(Stopped::Failed(Error::Invalid(text.to_owned())));
        };
        while !rows.wait(TICK) {
            if let Err(error) = Python::attach(|py| py.check_signals()) {
                self.canceller.cancel();
                return Err(Stopped::Interrupted(error));
            }
        }
        take(&mut rows).map_err(Stopped::Failed)
    }

    /// The fields, which are waited for once.
    fn fields(&self) -> Result<SchemaRef, Stopped> {
        if let Some(schema) = self.schema.get() {
            return Ok(Arc::clone(schema));
        }
        let schema = self.take(AnswerRows::schema)?;
        Ok(Arc::clone(self.schema.get_or_init(|| schema)))
    }

    /// The next rows; `None` at the end.
    fn take_rows(&self) -> Result<Option<RecordBatch>, Stopped> {
        self.fields()?;
        self.take(AnswerRows::next_rows)
    }

    /// What was taken, for another library: it is told a text, and Python the error when it asks.
    fn for_other<T>(&self, taken: Result<T, Stopped>) -> Result<T, String> {
        match taken {
            Ok(taken) => Ok(taken),
            Err(stopped) => {
                let text = match &stopped {
                    Stopped::Failed(error) => error.to_string(),
                    Stopped::Interrupted(_) => "interrupted by a signal".to_owned(),
                };
                *lock(&self.failed) = Some(stopped);
                Err(text)
            }
        }
    }
}

impl Source for Shared {
    fn schema(&self) -> Result<SchemaRef, String> {
        self.for_other(self.fields())
    }

    fn next(&self) -> Result<Option<RecordBatch>, String> {
        self.for_other(self.take_rows())
    }
}

#[pymethods]
impl Rows {
    /// The columns: names, types as SQL has them where they have a name there, and whether NULL may stand in them. Waits until
    /// the statement has started; one that writes is done then.
    fn columns(&self, py: Python<'_>) -> PyResult<Vec<(String, String, bool)>> {
        let schema = self.schema(py)?;
        let fields = schema.fields().iter();
        Ok(fields
            .map(|field| (field.name().clone(), sql_name(field.data_type()), field.is_nullable()))
            .collect())
    }

    /// The next rows as tuples; `None` at the end.
    fn next_rows<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let batch = py.detach(|| self.shared.take_rows());
        match batch.map_err(|stopped| Self::error(py, stopped))? {
            None => Ok(None),
            Some(batch) => rows_of(py, &batch).map(Some),
        }
    }

    /// The rows as a stream of Arrow, taken as they come and not copied. They are taken once.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish that need not be granted.
        drop(requested_schema);
        Exported::capsule(py, Arc::clone(&self.shared) as Arc<dyn Source>)
    }

    /// Raises what failed while another library took rows, if something did.
    fn raise_failed(&self, py: Python<'_>) -> PyResult<()> {
        let failed = lock(&self.shared.failed).take();
        failed.map_or(Ok(()), |stopped| Err(Self::error(py, stopped)))
    }

    /// Ends the statement, from any thread.
    fn cancel(&self) {
        self.shared.canceller.cancel();
    }
}
