//! Classes of Python's library that values are of.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The classes, found once.
pub struct Classes {
    /// `decimal.Decimal`.
    pub decimal: Py<PyAny>,
    /// `datetime.date`.
    pub date: Py<PyAny>,
    /// `datetime.datetime`.
    pub datetime: Py<PyAny>,
    /// `datetime.time`.
    pub time: Py<PyAny>,
    /// `datetime.timedelta`.
    pub timedelta: Py<PyAny>,
    /// `datetime.timezone.utc`.
    pub utc: Py<PyAny>,
    /// `uuid.UUID`.
    pub uuid: Py<PyAny>,
    /// `coload.Interval`.
    pub interval: Py<PyAny>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

impl Classes {
    /// The classes.
    pub fn get(py: Python<'_>) -> PyResult<&Classes> {
        CLASSES.get_or_try_init(py, || {
            let datetime = py.import("datetime")?;
            let of = |name: &str| datetime.getattr(name).map(Bound::unbind);
            Ok(Classes {
                decimal: py.import("decimal")?.getattr("Decimal")?.unbind(),
                date: of("date")?,
                datetime: of("datetime")?,
                time: of("time")?,
                timedelta: of("timedelta")?,
                utc: datetime.getattr("timezone")?.getattr("utc")?.unbind(),
                uuid: py.import("uuid")?.getattr("UUID")?.unbind(),
                interval: py.import("coload._values")?.getattr("Interval")?.unbind(),
            })
        })
    }
}
