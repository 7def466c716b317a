//! The Python package `coload`: what of it is not Python.
//!
//! ```text
//!   coload (Python)    connect, load, sql, sniff, dbapi; keywords -> words of the command line
//!       |
//!   _native            Connection -> thread of a load, or a statement -> Rows -> Python values, or the C interface of Arrow
//! ```
//!
//! Invariants: no rule of loads or SQL is here. While work is done the lock of the interpreter is not held, and signals are
//! asked for every tenth of a second. What comes from Python is untrusted; what pointers of the C interface of Arrow lead to
//! is the affair of the library that made them.

mod c_data;
mod classes;
mod connection;
mod errors;
mod loading;
mod parameters;
mod rows;
mod times;
mod values;
mod waiting;

use pyo3::prelude::*;

/// What is native of the package.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::connection::Connection;
    #[pymodule_export]
    use crate::rows::Rows;

    /// What `coload sniff --output json` says of an input.
    #[pyfunction]
    fn sniff(py: Python<'_>, words: Vec<String>) -> PyResult<String> {
        crate::loading::sniff(py, words)
    }

    /// The flags of a command: name, whether it takes a value, whether it may come several times, and its help.
    #[pyfunction]
    fn flags(command: &str) -> Vec<(String, bool, bool, String)> {
        let flags = coload::command_line::flags(command).into_iter();
        flags.map(|flag| (flag.name, flag.takes_value, flag.repeats, flag.help)).collect()
    }

    /// Loads, into what the words name.
    #[pyfunction]
    fn load(
        py: Python<'_>,
        words: Vec<String>,
        frame: Option<crate::loading::Frame>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(String, Vec<String>)> {
        crate::loading::load(py, words, coload::Identity::of_environment(), frame, progress)
    }

    /// Bytes of a size such as 1GiB.
    #[pyfunction]
    fn size(py: Python<'_>, text: &str) -> PyResult<usize> {
        let doing = crate::errors::Doing::Connecting;
        coload::command_line::size(text).map_err(|e| crate::errors::exception(py, &e, doing))
    }

    /// The version of the library.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("version", env!("CARGO_PKG_VERSION"))
    }
}
