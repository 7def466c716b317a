//! Errors across the wire: the kind says what the caller does next, so it travels with the text.

use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Place, Result};
use tonic::{Code, Status};

/// An error as bytes: its kind and text, and the place if it has one.
pub fn error_to_bytes(error: &Error) -> Vec<u8> {
    let (kind, text) = match error {
        Error::Invalid(text) => (0, text),
        Error::Input { text, .. } => (1, text),
        Error::Limit(text) => (2, text),
        Error::Unavailable(text) => (3, text),
        Error::Refused(text) => (4, text),
        Error::Corrupt(text) => (5, text),
    };
    let mut out = vec![kind];
    put_bytes(&mut out, text.as_bytes());
    if let Error::Input { place, .. } = error {
        put_bytes(&mut out, place.file.as_bytes());
        put_varint(&mut out, place.line);
        put_varint(&mut out, place.byte);
        put_varint(&mut out, u64::from(place.field));
    }
    out
}

/// The error that [`error_to_bytes`] wrote; `Corrupt` when the bytes are none.
pub fn error_from_bytes(bytes: &[u8]) -> Error {
    read_error(bytes).unwrap_or_else(|e| e)
}

fn read_error(bytes: &[u8]) -> Result<Error> {
    let mut reader = ByteReader::new(bytes);
    let kind = reader.u8()?;
    let text = String::from_utf8_lossy(reader.bytes()?).into_owned();
    Ok(match kind {
        0 => Error::Invalid(text),
        1 => {
            let file = String::from_utf8_lossy(reader.bytes()?).into_owned();
            let (line, byte, field) = (reader.varint()?, reader.varint()?, reader.varint_u32()?);
            Error::Input { place: Box::new(Place { file, line, byte, field }), text }
        }
        2 => Error::Limit(text),
        3 => Error::Unavailable(text),
        4 => Error::Refused(text),
        5 => Error::Corrupt(text),
        other => return Err(Error::Corrupt(format!("an error of kind {other}: {text}"))),
    })
}

/// The gRPC status of an error.
pub fn status_from_error(error: &Error) -> Status {
    let code = match error {
        Error::Invalid(_) | Error::Input { .. } => Code::InvalidArgument,
        Error::Limit(_) => Code::ResourceExhausted,
        Error::Unavailable(_) => Code::Unavailable,
        Error::Refused(_) => Code::FailedPrecondition,
        Error::Corrupt(_) => Code::DataLoss,
    };
    Status::new(code, error.to_string())
}

/// The error of a gRPC status; `target` is who said it.
pub fn error_from_status(target: &str, status: &Status) -> Error {
    let text = format!("{target}: {}", status.message());
    match status.code() {
        Code::InvalidArgument | Code::NotFound | Code::AlreadyExists => Error::Invalid(text),
        Code::ResourceExhausted | Code::OutOfRange => Error::Limit(text),
        Code::Unauthenticated | Code::PermissionDenied | Code::FailedPrecondition => {
            Error::Refused(text)
        }
        Code::Unimplemented => {
            Error::Refused(format!("{target} does not take loads: {}", status.message()))
        }
        Code::DataLoss => Error::Corrupt(text),
        _ => Error::Unavailable(format!("the connection to {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_kind_and_place() {
        let place = Place { file: "a.csv".into(), line: 7, byte: 99, field: 2 };
        let errors = [
            Error::Invalid("i".into()),
            Error::Input { place: Box::new(place), text: "t".into() },
            Error::Limit("l".into()),
            Error::Unavailable("u".into()),
            Error::Refused("r".into()),
            Error::Corrupt("c".into()),
        ];
        for error in errors {
            assert_eq!(error_from_bytes(&error_to_bytes(&error)), error);
        }
        assert!(matches!(error_from_bytes(&[9, 1]), Error::Corrupt(_)));
    }
}
