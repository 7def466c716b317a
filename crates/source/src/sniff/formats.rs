//! How numbers and dates are written: what the fields of whole columns can only mean.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use coload_ddl::Schema;
use coload_types::{DataType, TextForm, parse_int};

use super::describe_byte;
use crate::dialect::{GivenDialect, Header};
use crate::field::FieldRules;
use crate::formats::{DateFormat, Formats};
use crate::infer::{has_form, is_null};
use crate::sample::Field;
use crate::units::{UNIT_RECORDS_MAX, is_units};

/// Dates that are tried, besides those of SQL.
const DATES: [&str; 13] = [
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%Y.%m.%d",
    "%d.%m.%y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d %b %Y",
    "%b %d, %Y",
];
/// Numbers that are tried, besides those of SQL: decimal separator and thousands.
const NUMBERS: [(u8, Option<u8>); 7] = [
    (b',', None),
    (b',', Some(b'.')),
    (b',', Some(b' ')),
    (b'.', Some(b',')),
    (b'.', Some(b' ')),
    (b'.', Some(b'\'')),
    (b',', Some(b'\'')),
];

/// The records among which formats are sought.
#[derive(Clone, Copy)]
pub(super) struct Among<'a> {
    pub(super) table: &'a [Vec<Field<'a>>],
    /// Fields of a usual record.
    pub(super) columns: usize,
    /// The columns, if they are given, in the order of the fields.
    pub(super) schema: Option<&'a Schema>,
    /// Whether the table begins with names, if it is said.
    pub(super) header: Option<Header>,
}

impl<'a> Among<'a> {
    /// Those that tell something. The first may have the names of the columns, unless it has a value of theirs or it is said that it
    /// has none.
    pub(super) fn rows(&self) -> &'a [Vec<Field<'a>>] {
        let is_value = |(column, field): (usize, &Field<'_>)| {
            self.may_be_typed(column) && has_form(field.text.trim_ascii())
        };
        let is_row = self.schema.is_some()
            && self.table.first().is_some_and(|first| first.iter().enumerate().any(is_value));
        match self.header == Some(Header::Absent) || is_row {
            true => self.table,
            false => self.table.get(1..).unwrap_or_default(),
        }
    }

    /// Whether a column may hold numbers.
    fn may_be_numbers(&self, column: usize) -> bool {
        self.may_be(column, DataType::is_number)
    }

    /// Whether a column may hold days or moments.
    fn may_be_moments(&self, column: usize) -> bool {
        self.may_be(column, |data_type| data_type.facts().text == TextForm::Moment)
    }

    /// Whether a column may hold one of both, which formats are of.
    pub(super) fn may_be_typed(&self, column: usize) -> bool {
        self.may_be_numbers(column) || self.may_be_moments(column)
    }

    /// Whether a column's type is such a one, or not given.
    fn may_be(&self, column: usize, is_such: impl Fn(DataType) -> bool) -> bool {
        let Some(schema) = self.schema else { return true };
        schema.columns().get(column).is_some_and(|column| is_such(column.data_type))
    }

    /// Whether a column that must be numbers or moments has a field that SQL does not read as one.
    pub(super) fn has_unread(&self, rules: &FieldRules) -> bool {
        let is_unread = |(column, field): (usize, &Field<'_>)| {
            self.may_be_typed(column)
                && !is_null(field, rules)
                && !has_form(field.text.trim_ascii())
        };
        let usual = self.rows().iter().filter(|row| row.len() == self.columns);
        self.schema.is_some() && usual.flat_map(|row| row.iter().enumerate()).any(is_unread)
    }
}

/// The formats that were given, else those of SQL.
pub(super) fn given_formats(given: &GivenDialect) -> Formats {
    let decimal = given.decimal.unwrap_or(b'.');
    Formats { decimal, thousands: given.thousands, date: given.date, timestamp: given.timestamp }
}

/// The formats that were given, else those that the columns tell. Names do not count: the first record
/// may have them, and units may stand below.
pub(super) fn choose_formats(
    among: &Among<'_>,
    rules: &FieldRules,
    given: &GivenDialect,
    evidence: &mut Vec<String>,
) -> Formats {
    let mut formats = given_formats(given);
    if given.all_text {
        return formats;
    }
    let rows = among.rows();
    let columns = among.columns;
    let units = rows.iter().take(UNIT_RECORDS_MAX).take_while(|record| is_units(record)).count();
    let rows = &rows[units..];
    let column = |index: usize| -> Vec<&[u8]> {
        let usual = rows.iter().filter(|row| row.len() == columns);
        let fields = usual.map(|row| &row[index]).filter(|field| !is_null(field, rules));
        fields.map(|field| field.text.trim_ascii()).collect()
    };
    let texts: Vec<Vec<&[u8]>> = (0..columns).map(column).collect();
    // What SQL can read is as it is written.
    let is_read = |fields: &Vec<&[u8]>| fields.iter().all(|f| has_form(f));
    let unread = |may_be: &dyn Fn(usize) -> bool| -> Vec<&Vec<&[u8]>> {
        let unread =
            texts.iter().enumerate().filter(|(at, fields)| may_be(*at) && !is_read(fields));
        unread.map(|(_, fields)| fields).collect()
    };
    if given.thousands.is_none() {
        let read = texts.iter().enumerate();
        let read = read.filter(|(at, fields)| among.may_be_numbers(*at) && is_read(fields));
        let read: Vec<_> = read.map(|(_, fields)| fields).collect();
        // Who says what stands before a fraction leaves no doubt about points.
        let points = match (Points::of(&read), given.decimal) {
            (Points::OfFractions, Some(_)) => Points::None,
            (points, _) => points,
        };
        let numbers = unread(&|column| among.may_be_numbers(column));
        choose_numbers(&numbers, points, given.decimal, &mut formats, evidence);
        // Who gives the types says what is a fraction.
        if formats.decimal == b'.' && given.decimal.is_none() && among.schema.is_none() {
            say_may_be_grouped(&read, evidence);
        }
    }
    if given.date.is_none() && given.timestamp.is_none() {
        choose_dates(&unread(&|column| among.may_be_moments(column)), &mut formats, evidence);
    }
    formats
}

/// The points of numbers that SQL can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Points {
    None,
    /// All may set thousands apart, as in `1.234`, and may be fractions.
    Ambiguous,
    /// The same, and a column has numbers below 1000 too, which have none.
    OfThousands,
    /// Some stand before a fraction.
    OfFractions,
}

impl Points {
    fn of(read: &[&Vec<&[u8]>]) -> Self {
        let is_number = |f: &&&[u8]| f.contains(&b'.') && parse_int(f, DataType::Double).is_ok();
        let mut numbers = read.iter().flat_map(|fields| fields.iter()).filter(is_number).peekable();
        match numbers.peek().is_some() {
            false => Points::None,
            true if !numbers.all(|f| may_be_grouped(f)) => Points::OfFractions,
            true if read.iter().any(|fields| may_be_thousands(fields)) => Points::OfThousands,
            true => Points::Ambiguous,
        }
    }
}

/// Whether the points of a number may set thousands apart: one to three digits, of which the first is not 0, and three behind the point.
fn may_be_grouped(field: &[u8]) -> bool {
    let field = field.strip_prefix(b"-").unwrap_or(field);
    let Some(at) = memchr::memchr(b'.', field) else { return false };
    let (whole, rest) = (&field[..at], &field[at + 1..]);
    let digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    (1..=3).contains(&whole.len())
        && whole[0] != b'0'
        && rest.len() == 3
        && digits(whole)
        && digits(rest)
}

/// Whether the numbers of a column are as they would be if points set thousands apart, and some are below 1000.
fn may_be_thousands(fields: &[&[u8]]) -> bool {
    let is_small = |f: &&[u8]| {
        let digits = f.strip_prefix(b"-").unwrap_or(f);
        digits.len() <= 3 && digits.iter().all(u8::is_ascii_digit)
    };
    fields.iter().any(|f| may_be_grouped(f))
        && fields.iter().any(is_small)
        && fields.iter().all(|f| may_be_grouped(f) || is_small(f))
}

/// Says that the points of a column may set thousands apart.
fn say_may_be_grouped(read: &[&Vec<&[u8]>], evidence: &mut Vec<String>) {
    let Some(fields) = read.iter().find(|fields| may_be_thousands(fields)) else { return };
    let shown = fields.iter().find(|f| may_be_grouped(f)).copied().unwrap_or_default();
    evidence.push(format!(
        "numbers: {} is read as a fraction, and may be thousands (--decimal-separator , --thousands-separator . say so)",
        String::from_utf8_lossy(shown)
    ));
}

/// The form that most columns have, and that can only be numbers of this form; of two the simpler one.
fn choose_numbers(
    unread: &[&Vec<&[u8]>],
    points: Points,
    given: Option<u8>,
    formats: &mut Formats,
    evidence: &mut Vec<String>,
) {
    let mut best: Option<(usize, u8, Option<u8>)> = None;
    for (decimal, thousands) in NUMBERS {
        if given.is_some_and(|given| given != decimal) {
            continue;
        }
        // Another column has numbers with a point before a fraction.
        if points == Points::OfFractions && decimal == b',' {
            continue;
        }
        let form = Formats { decimal, thousands, ..Formats::default() };
        let all = |fields: &&&Vec<&[u8]>| fields.iter().all(|f| is_number(&form, f));
        let sure = |fields: &&&Vec<&[u8]>| fields.iter().any(|f| is_sure(&form, f));
        let count = unread.iter().filter(all).filter(sure).count();
        if count > best.map_or(0, |(most, ..)| most) {
            best = Some((count, decimal, thousands));
        }
    }
    let Some((count, decimal, thousands)) = best else { return };
    // The numbers of a file are written in one way: `1.234` and `999` beside `12,50` are thousands. Without numbers below 1000 they may
    // be codes or come from elsewhere, and stay text.
    let thousands = match thousands {
        None if points == Points::OfThousands && decimal == b',' => Some(b'.'),
        thousands => thousands,
    };
    (formats.decimal, formats.thousands) = (decimal, thousands);
    let grouped = match thousands {
        Some(thousands) => format!(", {} between thousands", describe_byte(thousands)),
        None => String::new(),
    };
    evidence.push(format!(
        "numbers: {} before the fraction{grouped} in {count} column{} (--decimal-separator, --thousands-separator say \
         otherwise)",
        describe_byte(decimal),
        if count == 1 { "" } else { "s" }
    ));
}

fn is_number(form: &Formats, field: &[u8]) -> bool {
    field.iter().any(u8::is_ascii_digit)
        && form
            .rewrite(field, DataType::Double)
            .is_some_and(|plain| parse_int(&plain, DataType::Double).is_ok() && has_form(&plain))
}

/// Whether a number cannot be of another form: `1,234` may be, `1,5` and `1.234,5` and `1,234,567` not.
fn is_sure(form: &Formats, field: &[u8]) -> bool {
    let field = &*form.plain_groups(field);
    let groups = field.iter().filter(|b| Some(**b) == form.thousands).count();
    match field.iter().position(|b| *b == form.decimal) {
        Some(at) => groups > 0 || form.decimal != b'.' && field.len() - at - 1 != 3,
        None if is_network_address(field) => false,
        None => groups > 1 || groups == 1 && !matches!(form.thousands, Some(b'.' | b',')),
    }
}

/// Whether a field is an address of IPv4: its groups may have three digits each.
fn is_network_address(field: &[u8]) -> bool {
    std::str::from_utf8(field).is_ok_and(|text| text.parse::<Ipv4Addr>().is_ok())
}

/// The only form that some column's dates can have.
fn choose_dates(unread: &[&Vec<&[u8]>], formats: &mut Formats, evidence: &mut Vec<String>) {
    let mut in_doubt: Vec<&str> = Vec::new();
    for fields in unread {
        let fits = |format: &&str| {
            let Ok(date) = DateFormat::parse(format) else { return false };
            let form = Formats { date: Some(date), ..Formats::default() };
            fields.iter().all(|field| is_date(&form, field))
        };
        match DATES.iter().copied().filter(fits).collect::<Vec<_>>()[..] {
            [] => {}
            [only] => {
                formats.date = DateFormat::parse(only).ok();
                evidence.push(format!("dates: of the form {only} (--date-format says otherwise)"));
                return;
            }
            ref several => in_doubt = several.to_vec(),
        }
    }
    if !in_doubt.is_empty() {
        evidence.push(format!(
            "dates may be of the form {}: they are kept as text (--date-format tells)",
            in_doubt.join(" or ")
        ));
    }
}

fn is_date(form: &Formats, field: &[u8]) -> bool {
    let read = |data_type| {
        let plain = form.rewrite(field, data_type).unwrap_or(Cow::Borrowed(b""));
        parse_int(&plain, data_type).is_ok()
    };
    read(DataType::Date) || read(DataType::Timestamp)
}
