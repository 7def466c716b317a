//! Errors across the border between the workspace and DataFusion.

use coload_types::Error;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

use crate::functions::taken_by;
use crate::types::sql_type;

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
        DataFusionError::Plan(text) => wrong_arguments(text).unwrap_or_else(|| text.clone()),
        DataFusionError::NotImplemented(_)
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

/// What the engine says of a call whose arguments are none that the function takes, in the words of SQL.
fn wrong_arguments(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("No function matches the given name and argument types '")?;
    let (call, _) = rest.split_once("'. You might need")?;
    let (name, types) = call.split_once('(')?;
    let types = told_types(types.strip_suffix(')')?);
    Some(match taken_by(name) {
        Some(taken) => format!("{name}() takes {taken}, and is given {types}: write a CAST"),
        None => format!(
            "{name}() does not take {types}; SHOW FUNCTIONS LIKE '{name}' tells how it is called"
        ),
    })
}

/// Types of the engine, with commas between them, as those of SQL.
fn told_types(types: &str) -> String {
    let (mut depth, mut start, mut told) = (0_usize, 0, Vec::new());
    for (at, sign) in types.char_indices() {
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                told.push(told_type(types[start..at].trim()));
                start = at + 1;
            }
            _ => {}
        }
    }
    told.push(told_type(types[start..].trim()));
    told.join(", ")
}

fn told_type(text: &str) -> String {
    if let Some(element) = text.strip_prefix("List(").and_then(|rest| rest.strip_suffix(')')) {
        return format!("{}[]", told_type(element));
    }
    if text == "Null" {
        return "NULL".to_owned();
    }
    let known = text.parse::<ArrowType>().ok().and_then(|known| sql_type(&known));
    known.map_or_else(|| text.to_uppercase(), |known| known.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_the_engine_are_told_as_those_of_sql() {
        let told = told_types("Utf8View, List(Decimal128(9, 2)), Int64, Null");
        assert_eq!(told, "VARCHAR, DECIMAL(9,2)[], BIGINT, NULL");
    }
}
