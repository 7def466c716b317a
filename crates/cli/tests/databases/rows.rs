//! Rows that loads of tests have.

use std::fmt::Write;

/// Numbered rows: an id, a number, and a text.
pub fn numbered(count: usize) -> String {
    let mut text = "id,v,t\n".to_owned();
    for id in 0..count {
        writeln!(text, "{id},{},text {id}", id % 97).unwrap();
    }
    text
}

/// The same with records that a table refuses: ids that are twice, and numbers over 99.
pub fn with_bad(count: usize, every: usize) -> (String, usize) {
    let (mut text, mut bad) = ("id,v,t\n".to_owned(), 0);
    for row in 0..count {
        let twice = row % (2 * every) == every + 3;
        let over = row % (2 * every) == 7;
        bad += usize::from(twice) + usize::from(over);
        let (id, v) = (if twice { row - 1 } else { row }, if over { 500 } else { row % 97 });
        writeln!(text, "{id},{v},text {row}").unwrap();
    }
    (text, bad)
}
