//! What errors and warnings of MySQL mean: of the world, or of a row.

use coload_types::Error;
use mysql_async::{DriverError, IoError};

use crate::engine::Refusal;
use crate::tls::is_of_tls;

/// An error that no row is at fault for.
pub fn world(error: &mysql_async::Error) -> Error {
    /// Deadlock, lock wait, too many connections, the server is ending, a read-only server, a killed query.
    const MAY_PASS: [u16; 9] = [1040, 1053, 1203, 1205, 1213, 1226, 1290, 1317, 1927];
    match error {
        mysql_async::Error::Server(told) => {
            let text = format!("MySQL: {} ({}, SQLSTATE {})", told.message, told.code, told.state);
            match MAY_PASS.contains(&told.code) {
                true => Error::Unavailable(text),
                false => Error::Refused(text),
            }
        }
        mysql_async::Error::Url(_) => Error::Invalid("not a URL of MySQL".into()),
        mysql_async::Error::Io(IoError::Tls(_))
        | mysql_async::Error::Driver(DriverError::NoClientSslFlagFromServer) => {
            Error::Refused(format!("MySQL: {error}"))
        }
        other if is_of_tls(other) => Error::Refused(format!("MySQL: {other}")),
        other => Error::Unavailable(format!("MySQL: {other}")),
    }
}

/// Why rows were not taken. Values, constraints and triggers are a row's fault.
pub fn refusal(error: &mysql_async::Error) -> Refusal {
    let mysql_async::Error::Server(told) = error else { return Refusal::Failed(world(error)) };
    let class = told.state.get(..2).unwrap_or_default();
    /// Of no class of their own, what a value is at fault for.
    const OF_VALUES: [u16; 10] = [1264, 1265, 1292, 1364, 1366, 1406, 1411, 1526, 3819, 4025];
    let is_row = matches!(class, "22" | "23" | "44" | "45") || OF_VALUES.contains(&told.code);
    if !is_row {
        return Refusal::Failed(world(error));
    }
    let (row, column) = place(&told.message);
    let (what, _) = told.message.rsplit_once(" at row ").unwrap_or((&told.message, ""));
    let reason = format!("{} ({}, SQLSTATE {})", kind(what), told.code, told.state);
    Refusal::Row { row, column, reason, detail: told.message.clone() }
}

/// What LOAD DATA failed with, and what to do where it is not allowed.
pub fn load_data_refusal(error: &mysql_async::Error) -> Refusal {
    match error {
        mysql_async::Error::Server(told) if matches!(told.code, 1148 | 3948 | 4166) => {
            Refusal::Failed(Error::Refused(format!(
                "MySQL: {} ({}): the server does not take LOAD DATA LOCAL (SET GLOBAL local_infile = 1 allows it, or \
                 give --method values)",
                told.message, told.code
            )))
        }
        other => refusal(other),
    }
}

/// A message without the value in it, which differs from row to row.
pub fn kind(text: &str) -> String {
    let mut kind = String::new();
    let mut parts = text.split('\'');
    kind.push_str(parts.next().unwrap_or_default());
    match (parts.next(), text.starts_with("Duplicate entry"), text.starts_with("Incorrect")) {
        (None, ..) => {}
        (Some(_), true, _) | (Some(_), _, true) => {
            kind.push_str("...");
            kind.push_str(&parts.collect::<Vec<_>>().join("'"));
        }
        (Some(name), ..) => {
            let rest: Vec<&str> = std::iter::once(name).chain(parts).collect();
            kind.push('\'');
            kind.push_str(&rest.join("'"));
        }
    }
    kind
}

/// The row and the column of a message such as `Out of range value for column 'a' at row 3`; rows count from 1.
pub fn place(text: &str) -> (Option<usize>, Option<String>) {
    let row = text.rsplit_once(" at row ").and_then(|(_, row)| row.trim().parse::<usize>().ok());
    let column = text.rsplit_once("column ").map(|(_, rest)| {
        let rest = rest.split(" at row ").next().unwrap_or(rest);
        // MariaDB names database and table before it.
        let last = rest.rsplit('.').next().unwrap_or(rest);
        last.trim_matches(['\'', '`', ' ']).to_owned()
    });
    (row.and_then(|row| row.checked_sub(1)), column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_column_and_kind_are_those_that_the_message_tells() {
        let some = |row, column: &str| (Some(row), Some(column.to_owned()));
        assert_eq!(place("Out of range value for column 'a' at row 3"), some(2, "a"));
        let text = "Incorrect integer value: 'x' for column `d`.`t`.`v` at row 1";
        assert_eq!(place(text), some(0, "v"));
        assert_eq!(place("Duplicate entry '5' for key 'PRIMARY'"), (None, None));
        assert_eq!(
            kind("Duplicate entry '5' for key 'PRIMARY'"),
            "Duplicate entry ... for key 'PRIMARY'"
        );
        assert_eq!(kind("Data too long for column 'v'"), "Data too long for column 'v'");
        assert_eq!(kind("no quotes"), "no quotes");
    }
}
