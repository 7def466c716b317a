//! What errors of SQL Server mean: of the world, or of a row.

use coload_types::Error;

use super::tds::ServerError;
use crate::engine::Refusal;

/// The server says that a duplicate was left out (an index with IGNORE_DUP_KEY).
pub const LEFT_OUT: i32 = 3604;

/// What may be otherwise in a moment: deadlocks, lock timeouts, conflicts of snapshots, no memory, locks or workers, a session
/// that was killed, a database or a server that starts, ends, moves or only reads.
const MAY_PASS: [i32; 42] = [
    596, 601, 701, 802, 845, 847, 904, 921, 922, 924, 926, 976, 978, 983, 1204, 1205, 1222, 3906,
    3908, 3935, 3960, 3966, 4221, 6005, 6104, 8628, 8645, 8651, 9002, 10_928, 10_929, 17_142,
    17_197, 17_809, 17_830, 18_401, 40_143, 40_197, 40_501, 40_613, 49_918, 49_919,
];
/// What a value is at fault for: keys, rules, NULL, text that is cut, numbers and days that are out of range, conversions,
/// rows too large.
const OF_VALUES: [i32; 27] = [
    220, 232, 234, 235, 241, 242, 244, 245, 248, 295, 296, 511, 515, 517, 547, 550, 1088, 2601,
    2627, 2628, 3609, 8114, 8115, 8152, 8169, 8170, 8672,
];

/// An error that no row is at fault for.
pub fn world(error: &ServerError) -> Error {
    let text = format!("SQL Server: {} ({})", error.text, error.number);
    // The connection ends with the worst ones, and may be made again.
    match MAY_PASS.contains(&error.number) || error.class >= 20 {
        true => Error::Unavailable(text),
        false => Error::Refused(text),
    }
}

/// Why rows were not taken. Values, constraints and triggers are a row's fault.
pub fn refusal(error: &ServerError) -> Refusal {
    let is_xml = (9400..9500).contains(&error.number);
    let is_of_bulk = matches!(error.number, 4863..=4869);
    // What triggers and procedures raise by themselves.
    let is_raised = error.number >= 50_000;
    let is_row = OF_VALUES.contains(&error.number) || is_xml || is_of_bulk || is_raised;
    if !is_row || error.class >= 20 {
        return Refusal::Failed(world(error));
    }
    Refusal::Row {
        row: None,
        column: column_of(&error.text),
        reason: format!("{} ({})", kind(&error.text), error.number),
        detail: error.text.clone(),
    }
}

/// A message without the value in it, which differs from row to row.
fn kind(text: &str) -> String {
    const BEFORE_VALUES: [&str; 2] = [" The duplicate key value is", " Truncated value:"];
    let cut = BEFORE_VALUES.iter().filter_map(|before| text.find(before)).min();
    let text = &text[..cut.unwrap_or(text.len())];
    match text.split_once(" value '") {
        Some((before, rest)) => match rest.rsplit_once('\'') {
            Some((_, after)) => format!("{before} value ...{after}"),
            None => format!("{before} value ..."),
        },
        None => text.to_owned(),
    }
}

/// The column that a message names.
fn column_of(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("column '")?;
    rest.split_once('\'').map(|(column, _)| column.to_owned()).filter(|column| !column.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_refusal_has_no_value_and_its_column_is_named() {
        let told = |number, text: &str| {
            let error = ServerError { number, class: 16, text: text.to_owned() };
            match refusal(&error) {
                Refusal::Row { column, reason, .. } => (column, reason),
                Refusal::Failed(error) => (None, error.to_string()),
            }
        };
        let text = "Violation of PRIMARY KEY constraint 'PK'. Cannot insert duplicate key in object 'dbo.t'. The duplicate \
                    key value is (5).";
        let (column, reason) = told(2627, text);
        assert_eq!(column, None);
        assert!(reason.ends_with("in object 'dbo.t'. (2627)"), "{reason}");
        let text = "Conversion failed when converting the nvarchar value 'it''s' to data type int.";
        let expected =
            "Conversion failed when converting the nvarchar value ... to data type int. (245)";
        assert_eq!(told(245, text).1, expected);
        let text = "Cannot insert the value NULL into column 'v', table 'd.dbo.t'; column does not allow nulls.";
        assert_eq!(told(515, text).0.as_deref(), Some("v"));
        assert!(told(1205, "deadlock").1.contains("deadlock (1205)"));
    }
}
