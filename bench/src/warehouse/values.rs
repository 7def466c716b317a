//! The values of each column, made once, and how a row chooses among them.

use std::fmt::Write as _;

use super::columns::{COLUMNS, Column, DatePart, ITEMS_MAX, Many, Source, Values};
use super::random::{Zipf, mix};
use super::words::{PLACES, QUALITIES, THINGS};
use super::{Row, many};

/// Id of an empty field.
pub const EMPTY: u32 = u32::MAX;

/// Days are counted from here: 2005-01-01, as days since 1970-01-01.
pub const FIRST_DAY: i32 = 12_784;

/// The first document is of 2018-01-01.
pub const DOCUMENT_DAY_MIN: u32 = 4_748;

/// Days that have a text: to the end of 2029.
const DAYS: i32 = 9_131;

/// Half of the documents have one item; the mean is 3.7.
const ITEMS_SKEW: f64 = 1.7;

/// Everything that the blocks share.
pub struct Plan {
    /// The columns, in the order of the file.
    pub columns: Vec<PlannedColumn>,
    /// Number of items of a document, less one.
    pub items: Zipf,
}

/// A column with its values.
pub struct PlannedColumn {
    /// Where the id comes from.
    pub source: Source,
    column: &'static Column,
    /// Place of the column in `Of`.
    parent: usize,
    zipf: Option<Zipf>,
    /// Text of each id; empty for columns of many values.
    texts: Vec<Box<str>>,
}

impl Plan {
    /// Makes the values of all columns, and their frequencies.
    pub fn new() -> Self {
        let mut columns: Vec<PlannedColumn> = Vec::with_capacity(COLUMNS.len());
        for (at, column) in COLUMNS.iter().enumerate() {
            let parent = match column.source {
                Source::Of(name) => place(name),
                Source::Document | Source::Item | Source::Position => at,
            };
            let parent_count = columns.get(parent).map_or(0, |p| p.texts.len() as u32);
            columns.push(PlannedColumn {
                source: column.source,
                column,
                parent,
                zipf: zipf(&column.values),
                texts: texts(&column.values, at, parent_count),
            });
        }
        Self { columns, items: Zipf::new(ITEMS_MAX, ITEMS_SKEW) }
    }
}

impl PlannedColumn {
    /// The id of a column that depends on no other.
    pub fn draw(&self, bits: u64, day: u32) -> u32 {
        if self.is_empty(bits) {
            return EMPTY;
        }
        let id = self.zipf.as_ref().map_or(0, |zipf| zipf.choose(mix(bits)));
        match self.column.values {
            Values::Date { low, .. } => (day as i32 + low) as u32 + id,
            _ => id,
        }
    }

    /// The id of a column that is a function of an earlier one; `at` is its own place.
    pub fn follow(&self, ids: &[u32], at: usize) -> u32 {
        let id = ids[self.parent];
        let keeps_id = matches!(
            self.column.values,
            Values::TextOfCode | Values::PartOfDate(_) | Values::Many(_)
        );
        if id == EMPTY || keeps_id {
            return id;
        }
        self.draw(mix((u64::from(id) << 16) ^ at as u64), 0)
    }

    /// Whether a field is empty; the low bits decide, as [`Self::draw`] mixes before it chooses.
    fn is_empty(&self, bits: u64) -> bool {
        (bits & 0xffff) * 1000 < u64::from(self.column.empty_permille) << 16
    }

    /// Appends the field of column `at`.
    pub fn write(&self, row: &Row, at: usize, buffer: &mut Vec<u8>) {
        let id = row.ids[at];
        if id == EMPTY {
            return;
        }
        match self.column.values {
            Values::Many(which) => many::write(which, row, id, buffer),
            _ => buffer.extend_from_slice(self.texts[id as usize].as_bytes()),
        }
    }
}

/// Place of the column `name`; a column must come after the one it depends on.
fn place(name: &str) -> usize {
    COLUMNS.iter().position(|column| column.name == name).expect("columns name only columns in Of")
}

fn zipf(values: &Values) -> Option<Zipf> {
    let (count, skew) = match *values {
        Values::List(list, skew) => (list.len() as u32, skew),
        Values::Code { count, skew, .. }
        | Values::Text { count, skew }
        | Values::Number { count, skew, .. }
        | Values::Date { count, skew, .. } => (count, skew),
        Values::Many(Many::CustomerNumber) => (many::CUSTOMERS, 0.75),
        Values::Many(Many::MaterialNumber) => (many::MATERIALS, 0.7),
        Values::TextOfCode | Values::PartOfDate(_) | Values::Many(_) => return None,
    };
    Some(Zipf::new(count, skew))
}

/// The texts of ids `0..`; `salt` makes columns of the same form differ.
fn texts(values: &Values, salt: usize, parent_count: u32) -> Vec<Box<str>> {
    match *values {
        Values::List(list, _) => list.iter().map(|&text| text.into()).collect(),
        Values::Code { form, count, .. } => (0..count).map(|id| code(form, id, salt)).collect(),
        Values::Text { count, .. } => (0..count).map(|id| description(id, salt)).collect(),
        Values::TextOfCode => (0..parent_count).map(|id| description(id, salt)).collect(),
        Values::Number { low, step, count, scale, .. } => {
            (0..count).map(|id| number(low + step * i64::from(id), scale)).collect()
        }
        Values::Date { .. } => (0..DAYS).map(|day| date(FIRST_DAY + day)).collect(),
        Values::PartOfDate(part) => {
            (0..DAYS).map(|day| part_of_date(part, FIRST_DAY + day)).collect()
        }
        Values::Many(_) => Vec::new(),
    }
}

/// Writes `id` into `form`, spread over all texts of the form so that frequent ids are not the smallest texts.
pub fn code(form: &str, id: u32, salt: usize) -> Box<str> {
    let base = |symbol| match symbol {
        'A' => 26,
        '9' => 10,
        _ => 1,
    };
    let space: u64 = form.chars().map(base).product();
    // A prime that divides neither 10 nor 26: multiplying by it permutes the space.
    let mut left = (u64::from(id) * 15_485_863 + salt as u64 * 7_919) % space;
    let mut symbols: Vec<char> = form.chars().collect();
    for symbol in symbols.iter_mut().rev() {
        let digit = (left % base(*symbol)) as u8;
        left /= base(*symbol);
        *symbol = match *symbol {
            'A' => char::from(b'A' + digit),
            '9' => char::from(b'0' + digit),
            other => other,
        };
    }
    symbols.into_iter().collect()
}

/// A description of two or three words, unique among the first 32,768 ids of a column.
pub fn description(id: u32, salt: usize) -> Box<str> {
    let spread = (u64::from(id) * 15_485_863 + salt as u64 * 7_919) as usize % (32 * 32 * 32);
    let (quality, thing, place) = (spread % 32, spread / 32 % 32, spread / 1024);
    if place == 0 {
        format!("{} {}", QUALITIES[quality], THINGS[thing]).into()
    } else {
        format!("{} {} {}", QUALITIES[quality], THINGS[thing], PLACES[place]).into()
    }
}

/// `unscaled` with `scale` decimal places.
pub fn number(unscaled: i64, scale: u32) -> Box<str> {
    let one = 10_i64.pow(scale);
    let mut text = (unscaled / one).to_string();
    if scale > 0 {
        // Writing to a String cannot fail.
        let _ = write!(text, ".{:0width$}", unscaled % one, width = scale as usize);
    }
    text.into()
}

/// `YYYY-MM-DD` of a day since 1970-01-01.
pub fn date(day: i32) -> Box<str> {
    let (year, month, day) = civil(day);
    format!("{year:04}-{month:02}-{day:02}").into()
}

fn part_of_date(part: DatePart, day: i32) -> Box<str> {
    let (year, month, _) = civil(day);
    let new_year = (day - 365..=day).find(|&d| civil(d) == (year, 1, 1)).unwrap_or(day);
    match part {
        DatePart::Year => year.to_string().into(),
        DatePart::Month => month.to_string().into(),
        DatePart::Week => ((day - new_year) / 7 + 1).to_string().into(),
    }
}

/// Year, month and day of a day since 1970-01-01.
///
/// Source: Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
fn civil(day: i32) -> (i32, u32, u32) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_shifted + 2) / 5 + 1) as u32;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 } as u32;
    (year_of_era + era * 400 + i32::from(month <= 2), month, day)
}
