//! Errors of the workspace as gRPC statuses.

use coload_types::Error;
use tonic::{Code, Status};

/// A status's text travels in a header, and clients refuse large ones.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// The status of an error.
pub(crate) fn status(error: Error) -> Status {
    let code = match &error {
        Error::Invalid(_) | Error::Input { .. } => Code::InvalidArgument,
        Error::Limit(_) => Code::ResourceExhausted,
        Error::Unavailable(_) => Code::Unavailable,
        Error::Refused(text) if text.starts_with("internal error") => Code::Internal,
        Error::Refused(_) => Code::PermissionDenied,
        Error::Corrupt(_) => Code::DataLoss,
    };
    Status::new(code, cut(error.to_string()))
}

fn cut(mut text: String) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    let mut end = TEXT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push_str("...");
    text
}

/// The text of a statement in a line of the log: its start.
pub(crate) fn shown(statement: &str) -> std::borrow::Cow<'_, str> {
    const SHOWN_BYTES_MAX: usize = 1 << 10;
    if statement.len() <= SHOWN_BYTES_MAX {
        return statement.into();
    }
    let end = statement.floor_char_boundary(SHOWN_BYTES_MAX);
    format!("{}... ({} bytes)", &statement[..end], statement.len()).into()
}

/// What a statement ends with that was cancelled.
pub(crate) fn cancelled() -> Status {
    Status::cancelled("the statement was cancelled")
}

/// The error of a status that a server said.
pub(crate) fn error(status: &Status) -> Error {
    let text = status.message().to_owned();
    if std::error::Error::source(status).is_some() {
        // Said by the transport, not by the server.
        return Error::Unavailable(text);
    }
    match status.code() {
        Code::InvalidArgument | Code::NotFound | Code::AlreadyExists => Error::Invalid(text),
        Code::ResourceExhausted | Code::OutOfRange => Error::Limit(text),
        // Its own text begins so.
        Code::DataLoss => Error::Corrupt(text.trim_start_matches("corrupt: ").to_owned()),
        Code::Unauthenticated
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Internal
        | Code::Cancelled
        | Code::Unimplemented => Error::Refused(text),
        _ => Error::Unavailable(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_kind_on_the_way() {
        for sent in [
            Error::Invalid("a".into()),
            Error::Limit("b".into()),
            Error::Unavailable("c".into()),
            Error::Refused("internal error: d".into()),
            Error::Refused("e".into()),
            Error::Corrupt("f".into()),
        ] {
            assert_eq!(error(&status(sent.clone())), sent);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = cut("ä".repeat(TEXT_BYTES_MAX));
        assert!(text.len() <= TEXT_BYTES_MAX + 3 && text.ends_with("ä..."));
    }
}
