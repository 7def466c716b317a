//! Errors across the border between the workspace and DataFusion.

use coload_types::Error;
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// Carries an error of the workspace through DataFusion; [`from_datafusion`] takes it out again.
pub(crate) fn to_datafusion(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// An error of DataFusion as one of the workspace.
pub(crate) fn from_datafusion(error: DataFusionError) -> Error {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<Error>() {
            Ok(error) => *error,
            Err(inner) => match inner.downcast::<DataFusionError>() {
                Ok(error) => from_datafusion(*error),
                Err(inner) => Error::Unavailable(inner.to_string()),
            },
        },
        DataFusionError::ArrowError(inner, _) => from_arrow(*inner),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            from_datafusion(*inner)
        }
        DataFusionError::Shared(inner) => from_shared(&inner),
        DataFusionError::Collection(mut errors) if !errors.is_empty() => {
            from_datafusion(errors.swap_remove(0))
        }
        DataFusionError::ResourcesExhausted(text) => {
            Error::Limit(format!("{text} (raise --memory)"))
        }
        DataFusionError::IoError(inner) => Error::Unavailable(inner.to_string()),
        DataFusionError::Internal(text) => internal(&text),
        other => Error::Invalid(plain_text(&other)),
    }
}

/// Errors behind an `Arc` cannot be moved out, so the nested one is looked for and copied.
fn from_shared(error: &DataFusionError) -> Error {
    match error {
        DataFusionError::External(inner) => match inner.downcast_ref::<Error>() {
            Some(error) => error.clone(),
            None => Error::Unavailable(inner.to_string()),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            from_shared(inner)
        }
        DataFusionError::Shared(inner) => from_shared(inner),
        DataFusionError::ResourcesExhausted(text) => {
            Error::Limit(format!("{text} (raise --memory)"))
        }
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            ArrowError::ExternalError(nested) => match nested.downcast_ref::<Error>() {
                Some(error) => error.clone(),
                None => Error::Invalid(nested.to_string()),
            },
            other => Error::Invalid(arrow_text(other)),
        },
        DataFusionError::Internal(text) => internal(text),
        other => Error::Invalid(plain_text(other)),
    }
}

/// An error that should not be, without the engine's wish to be told of it.
fn internal(text: &str) -> Error {
    let said = text.split(BUG_REPORT).next().unwrap_or(text).trim_end_matches(['.', '\n', ' ']);
    Error::Refused(format!("internal error: {said}"))
}

/// How the engine begins to ask for a report to its project.
const BUG_REPORT: &str = "This issue was likely caused by a bug in DataFusion";

fn from_arrow(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(error) => *error,
            Err(inner) => match inner.downcast::<DataFusionError>() {
                Ok(error) => from_datafusion(*error),
                Err(inner) => Error::Invalid(inner.to_string()),
            },
        },
        ArrowError::IoError(text, _) => Error::Unavailable(text),
        other => Error::Invalid(arrow_text(&other)),
    }
}

fn arrow_text(error: &ArrowError) -> String {
    match error {
        ArrowError::CastError(text)
        | ArrowError::ComputeError(text)
        | ArrowError::ArithmeticOverflow(text)
        | ArrowError::InvalidArgumentError(text)
        | ArrowError::ParseError(text) => text.clone(),
        ArrowError::DivideByZero => "division by zero".into(),
        other => other.to_string(),
    }
}

/// The text without DataFusion's prefix of the error's kind, and without a backtrace.
fn plain_text(error: &DataFusionError) -> String {
    match error {
        DataFusionError::SQL(inner, _) => inner.to_string(),
        DataFusionError::Plan(_)
        | DataFusionError::NotImplemented(_)
        | DataFusionError::Execution(_)
        | DataFusionError::SchemaError(..)
        | DataFusionError::Configuration(_) => error.message().into_owned(),
        other => {
            let text = other.strip_backtrace();
            text.split(BUG_REPORT)
                .next()
                .unwrap_or_default()
                .trim_end_matches(['.', '\n', ' '])
                .to_owned()
        }
    }
}
