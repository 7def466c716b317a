//! Tables with known names and values, written as programs write them.

// The paths are written out, as the fuzz target reads this file from elsewhere.
#[path = "made/kinds.rs"]
mod kinds;
#[path = "made/values.rs"]
mod values;
#[path = "made/writers.rs"]
mod writers;

use crate::random::Random;
use kinds::{KINDS, name_of};
use values::{CATEGORIES, value_of};
use writers::{Form, form_of, write};

pub use kinds::{Kind, is_typed};
pub use writers::{WRITERS, Writer};

/// A file and what it holds.
#[derive(Debug, Clone)]
pub struct Made {
    pub writer: Writer,
    pub bytes: Vec<u8>,
    /// `None` where the file has no names.
    pub names: Option<Vec<String>>,
    pub kinds: Vec<Kind>,
    /// Values as SQL writes them; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// Makes a table and its file.
pub fn make(seed: u64) -> Made {
    let mut random = Random::new(seed);
    let writer = *random.of(&WRITERS);
    let form = form_of(writer, &mut random);
    let mut kinds = vec![];
    let most = if matches!(writer, Writer::Markdown | Writer::Unix) { 6 } else { 12 };
    for _ in 0..random.between(2, most) {
        // R does not quote times, and a space stands between day and hour.
        let kind = *random.of(&KINDS);
        kinds.push(if writer == Writer::RTable && kind == Kind::Timestamp {
            Kind::Date
        } else {
            kind
        });
    }
    // Text of words alone has no names that anyone could tell from rows, if rows are few.
    if !kinds.iter().any(|kind| is_typed(*kind)) {
        kinds[0] = Kind::Id;
    }
    let header = match writer {
        Writer::PostgresCopy | Writer::MysqlOutfile | Writer::Bcp | Writer::Carets => {
            random.one_in(4)
        }
        Writer::Pandas | Writer::Pipe | Writer::Unix => !random.one_in(6),
        _ => true,
    };
    let count = match random.below(10) {
        0 => random.between(2, 4),
        1..=6 => random.between(5, 40),
        _ => random.between(40, 300),
    };
    let categories: Vec<usize> = kinds.iter().map(|_| random.below(CATEGORIES.len())).collect();
    let sparse: Vec<bool> = kinds.iter().map(|_| random.one_in(4)).collect();
    let plain = matches!(
        writer,
        Writer::Unix | Writer::Markdown | Writer::Psql | Writer::MysqlTable | Writer::Sap
    );
    let mut rows = Vec::new();
    for row in 0..count {
        let mut values = Vec::new();
        for (column, kind) in kinds.iter().enumerate() {
            let value = value_of(*kind, row, categories[column], plain, &form, &mut random);
            let is_null =
                sparse[column] && *kind != Kind::Id && random.one_in(5) && writer != Writer::Unix;
            values.push((!is_null).then_some(value));
        }
        rows.push(values);
    }
    // A column has a value, or nobody could tell what it is.
    for column in 0..kinds.len() {
        if rows.iter().all(|row| row[column].is_none()) {
            rows[0][column] =
                Some(value_of(kinds[column], 0, categories[column], plain, &form, &mut random));
        }
    }
    settle(&kinds, &mut rows, &form, &mut random);
    let mut names: Vec<String> = Vec::new();
    for kind in &kinds {
        let mut name = name_of(*kind, &mut random);
        if writer == Writer::Unix {
            name = name.replace(' ', "_");
        }
        while names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            name = format!("{name}{}", random.between(2, 99));
        }
        names.push(name);
    }
    let bytes = write(writer, &form, header.then_some(&names[..]), &kinds, &rows, &mut random);
    let rows = rows.into_iter().map(|row| read_back(row, &kinds, &form, writer)).collect();
    Made { writer, bytes, names: header.then_some(names), kinds, rows }
}

/// What must be so that the form of dates and numbers can be told: a day over 12, and a number that is no thousand.
fn settle(kinds: &[Kind], rows: &mut [Vec<Option<String>>], form: &Form, random: &mut Random) {
    for (column, kind) in kinds.iter().enumerate() {
        let row = random.below(rows.len());
        match kind {
            Kind::Date | Kind::Timestamp if form.date != "%Y-%m-%d" => {
                let time = if *kind == Kind::Timestamp { " 10:30:00" } else { "" };
                rows[row][column] = Some(format!("2023-07-{}{time}", random.between(13, 28)));
            }
            Kind::Amount if form.thousands.is_some() || form.decimal == ',' => {
                rows[row][column] = Some(format!("{}234.56", random.between(1, 9)));
            }
            _ => {}
        }
    }
}

/// What is meant by the values that a writer cannot tell apart: an empty text and NULL.
fn read_back(
    row: Vec<Option<String>>,
    kinds: &[Kind],
    form: &Form,
    writer: Writer,
) -> Vec<Option<String>> {
    let one = |(value, kind): (Option<String>, &Kind)| match value {
        // In columns of text these are text, as the file has them.
        None if !is_typed(*kind) && form.null == "NA" => Some("NA".to_owned()),
        None if !is_typed(*kind) && form.null == "NULL" && writer != Writer::Psql => {
            Some("NULL".to_owned())
        }
        value => value,
    };
    row.into_iter().zip(kinds).map(one).collect()
}
