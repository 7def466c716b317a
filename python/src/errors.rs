//! Errors of the library as exceptions of Python, one class a kind.

use coload::Error;
use pyo3::prelude::*;

/// What was being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// A load, or looking at an input.
    Load,
    /// A statement.
    Statement,
    /// Opening a store, or connecting.
    Connecting,
}

impl Doing {
    fn name(self) -> &'static str {
        match self {
            Doing::Load => "load",
            Doing::Statement => "statement",
            Doing::Connecting => "connecting",
        }
    }
}

/// The exception of an error.
pub fn exception(py: Python<'_>, error: &Error, doing: Doing) -> PyErr {
    let (kind, place) = match error {
        Error::Invalid(_) => ("invalid", None),
        Error::Input { place, .. } => ("input", Some(place)),
        Error::Limit(_) => ("limit", None),
        Error::Unavailable(_) => ("unavailable", None),
        Error::Refused(_) => ("refused", None),
        Error::Corrupt(_) => ("corrupt", None),
    };
    let place = place.map(|at| (at.file.clone(), at.line, at.byte, at.field));
    let made = py.import("coload._errors").and_then(|module| {
        module.getattr("of_kind")?.call1((kind, doing.name(), error.to_string(), place))
    });
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// An exception of the package by the name of its class.
pub fn named(py: Python<'_>, class: &str, text: &str) -> PyErr {
    let made = py.import("coload._errors").and_then(|module| module.getattr(class)?.call1((text,)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
