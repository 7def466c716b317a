//! What errors of SQL Server mean: of the world, or of a row.

use coload_types::Error;

use super::tds::ServerError;
use crate::engine::Refusal;

/// What may be otherwise in a moment.
const MAY_PASS: [&[i32]; 5] = [
    // Deadlocks, lock timeouts, conflicts of snapshots and of tables in memory, rows that move while they are read.
    &[601, 617, 1204, 1205, 1221, 1222, 3960, 3966, 41_301, 41_302, 41_305, 41_325, 41_839],
    // No memory, locks, log or workers.
    &[
        701, 802, 845, 847, 3935, 8628, 8645, 8651, 9002, 10_928, 10_929, 10_936, 49_918, 49_919,
        49_920,
    ],
    // A database that starts, ends, is restored, moves to another server, or only reads until it has moved.
    &[669, 904, 921, 922, 924, 927, 952, 976, 978, 983, 988, 1203, 3906, 3908, 4221, 9515],
    // A server that starts or ends, or that has no connection to give; a session that was killed.
    &[596, 6005, 17_142, 17_187, 17_197, 17_809, 17_830, 18_401],
    // Azure moves a database.
    &[40_143, 40_197, 40_501, 40_540, 40_613, 42_108, 42_109, 49_983],
];
/// What a value is at fault for, directly or in what the table makes of it.
const OF_VALUES: [&[i32]; 7] = [
    // Keys, rules, NULL, views WITH CHECK OPTION, policies; what a trigger ended.
    &[513, 515, 547, 550, 2601, 2627, 3609, 3616, 33_504],
    // Text or bytes that are cut, or that are none of their type; rows too large.
    &[511, 2628, 4815, 7139, 8023, 8152, 9803],
    // Conversions.
    &[210, 234, 235, 236, 237, 238, 241, 244, 245, 248, 295, 8114, 8169, 8170],
    // Numbers and days that are out of range, here or in an expression.
    &[220, 232, 242, 296, 298, 517, 535, 542, 3623, 8115, 8134],
    // Arguments of functions of computed columns, rules and triggers.
    &[512, 536, 537, 8672, 13_608, 13_609],
    // Lines of BULK INSERT of a trigger.
    &[4863, 4864, 4866, 4867, 4869],
    // What code of .NET, of types and triggers, ended with.
    &[6522],
];

/// An error that no row is at fault for.
pub fn world(error: &ServerError) -> Error {
    let text = format!("SQL Server: {} ({})", error.text, error.number);
    // The connection ends with the worst ones, and may be made again.
    match has(&MAY_PASS, error.number) || error.class >= 20 {
        true => Error::Unavailable(text),
        false => Error::Refused(text),
    }
}

/// Why rows were not taken. Values, constraints and triggers are a row's fault.
pub fn refusal(error: &ServerError) -> Refusal {
    // Text that is no XML, or is none of the schema of the column.
    let is_xml = (9400..9500).contains(&error.number) || (6900..7000).contains(&error.number);
    // What triggers and procedures raise by themselves.
    let is_raised = error.number >= 50_000;
    let is_row = has(&OF_VALUES, error.number) || is_xml || is_raised;
    // From 17 on the server itself is at fault, and from 20 on the connection ends.
    if !is_row || error.class >= 17 {
        return Refusal::Failed(world(error));
    }
    Refusal::Row {
        row: None,
        column: column_of(&error.text),
        reason: format!("{} ({})", kind(&error.text), error.number),
        detail: error.text.clone(),
    }
}

fn has(kinds: &[&[i32]], number: i32) -> bool {
    kinds.iter().any(|numbers| numbers.contains(&number))
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

    #[test]
    fn rows_are_at_fault_for_what_values_cause_and_for_nothing_else() {
        let of = |number, class| {
            let error = ServerError { number, class, text: "why".to_owned() };
            match refusal(&error) {
                Refusal::Row { .. } => "row",
                Refusal::Failed(Error::Unavailable(_)) => "later",
                Refusal::Failed(_) => "ends",
            }
        };
        // Divide by zero, overflow, a conversion, a key, text that is cut, a trigger's RAISERROR, XML.
        for number in [8134, 8115, 245, 2627, 2628, 50_000, 50_123, 9420, 6926, 515, 547, 3609] {
            assert_eq!(of(number, 16), "row", "{number}");
        }
        // No table, no column, no right, a type that does not go, a wrong bulk stream, the wrong database.
        for number in [1088, 208, 207, 229, 206, 257, 4804, 4816, 4868, 4060, 18_456, 926, 6104] {
            assert_eq!(of(number, 16), "ends", "{number}");
        }
        for number in [1205, 1222, 3960, 41_302, 9002, 40_613, 17_187] {
            assert_eq!(of(number, 16), "later", "{number}");
        }
        assert_eq!(of(2627, 21), "later", "the connection is gone");
        let mut seen = std::collections::HashSet::new();
        for number in MAY_PASS.iter().chain(&OF_VALUES).copied().flatten() {
            assert!(seen.insert(number), "{number} is twice");
        }
    }
}
