//! What went wrong, as PostgreSQL's clients are told.

use coload_types::Error;
use tonic::{Code, Status};

/// SQLSTATEs, as PostgreSQL has them.
pub(super) mod code {
    pub const PROTOCOL: &str = "08P01";
    pub const UNSUPPORTED: &str = "0A000";
    pub const ENCODING: &str = "22021";
    pub const VALUE: &str = "22P02";
    pub const BINARY_VALUE: &str = "22P03";
    pub const PARAMETER: &str = "22023";
    pub const UNIQUE: &str = "23505";
    pub const READ_ONLY: &str = "25006";
    pub const NO_TRANSACTION: &str = "25P01";
    pub const FAILED_TRANSACTION: &str = "25P02";
    pub const NO_STATEMENT: &str = "26000";
    pub const NO_TLS: &str = "28000";
    pub const LOGIN: &str = "28P01";
    pub const NO_PORTAL: &str = "34000";
    pub const NO_ROLLBACK: &str = "2D000";
    pub const NO_SAVEPOINT: &str = "3B001";
    pub const INVALID: &str = "42601";
    pub const NO_RIGHT: &str = "42501";
    pub const NO_COLUMN: &str = "42703";
    pub const NO_TABLE: &str = "42P01";
    pub const HAS_PORTAL: &str = "42P03";
    pub const HAS_STATEMENT: &str = "42P05";
    pub const HAS_TABLE: &str = "42P07";
    pub const NO_PARAMETER: &str = "42704";
    pub const LIMIT: &str = "54000";
    pub const TOO_MANY: &str = "53300";
    pub const CANCELLED: &str = "57014";
    pub const STOPPED: &str = "57P01";
    pub const UNAVAILABLE: &str = "58000";
    pub const INTERNAL: &str = "XX000";
    pub const CORRUPT: &str = "XX001";
}

/// An error for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// Whether the connection ends with it.
    pub is_fatal: bool,
    pub code: &'static str,
    pub text: String,
}

impl Fault {
    /// One after which the connection goes on.
    pub fn error(code: &'static str, text: impl Into<String>) -> Self {
        Fault { is_fatal: false, code, text: text.into() }
    }

    /// One that ends the connection.
    pub fn fatal(code: &'static str, text: impl Into<String>) -> Self {
        Fault { is_fatal: true, code, text: text.into() }
    }

    /// The same, but the connection ends.
    pub fn ending(self) -> Self {
        Fault { is_fatal: true, ..self }
    }
}

/// Words by which a refusal of ours is known, and the code that clients look for: they make a table that is not there, and tell a
/// row that is there already from other errors.
const BY_WORDS: [(&str, &str, &str); 10] = [
    ("table ", " does not exist", code::NO_TABLE),
    ("table ", " not found", code::NO_TABLE),
    ("table ", " exists already", code::HAS_TABLE),
    ("view ", " exists already", code::HAS_TABLE),
    ("view ", " does not exist", code::NO_TABLE),
    ("column ", " does not exist", code::NO_COLUMN),
    ("no field named ", "", code::NO_COLUMN),
    ("the key ", " is in the table already", code::UNIQUE),
    ("the key ", " comes twice among them", code::UNIQUE),
    ("the key ", " would be there twice", code::UNIQUE),
];

fn code_of_invalid(text: &str) -> &'static str {
    let line = text.lines().next().unwrap_or_default();
    let fits = |(begins, has, _): &&(&str, &str, &str)| line.contains(begins) && line.contains(has);
    BY_WORDS.iter().find(fits).map_or(code::INVALID, |(_, _, code)| code)
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        let code = match error {
            Error::Invalid(_) => code_of_invalid(&text),
            Error::Input { .. } => code::VALUE,
            Error::Limit(_) => code::LIMIT,
            Error::Unavailable(_) => code::UNAVAILABLE,
            Error::Refused(_) if text.starts_with("internal error") => code::INTERNAL,
            Error::Refused(_) => code::NO_RIGHT,
            Error::Corrupt(_) => code::CORRUPT,
        };
        Fault::error(code, text)
    }
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        let code = match status.code() {
            Code::InvalidArgument => code_of_invalid(status.message()),
            Code::ResourceExhausted | Code::DeadlineExceeded => code::LIMIT,
            Code::PermissionDenied => code::NO_RIGHT,
            Code::Unauthenticated => code::LOGIN,
            Code::Cancelled => code::CANCELLED,
            Code::DataLoss => code::CORRUPT,
            Code::Unavailable => code::UNAVAILABLE,
            _ => code::INTERNAL,
        };
        Fault::error(code, status.message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_not_there_has_the_code_that_clients_look_for() {
        for (text, expected) in [
            ("table \"t\" does not exist", code::NO_TABLE),
            ("table t exists already", code::HAS_TABLE),
            ("expected an expression, found: FROM", code::INVALID),
        ] {
            assert_eq!(Fault::from(Error::Invalid(text.into())).code, expected, "{text}");
        }
    }
}
