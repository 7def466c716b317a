//! How numbers and dates are written: what the fields of whole columns can only mean.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use coload_format::{DataType, parse_int};

use super::describe_byte;
use crate::dialect::GivenDialect;
use crate::field::FieldRules;
use crate::formats::{DateFormat, Formats};
use crate::infer::{has_form, is_null};
use crate::sample::Field;

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

/// The formats that were given, else those of SQL.
pub(super) fn given_formats(given: &GivenDialect) -> Formats {
    let decimal = given.decimal.unwrap_or(b'.');
    Formats { decimal, thousands: given.thousands, date: given.date, timestamp: given.timestamp }
}

/// The formats that were given, else those that the columns tell. Names do not count: the first record
/// may have them.
pub(super) fn choose_formats(
    records: &[Vec<Field<'_>>],
    columns: usize,
    rules: &FieldRules,
    given: &GivenDialect,
    evidence: &mut Vec<String>,
) -> Formats {
    let mut formats = given_formats(given);
    if given.all_text {
        return formats;
    }
    let rows = records.get(1..).unwrap_or_default();
    let column = |index: usize| -> Vec<&[u8]> {
        let usual = rows.iter().filter(|row| row.len() == columns);
        let fields = usual.map(|row| &row[index]).filter(|field| !is_null(field, rules));
        fields.map(|field| field.text.trim_ascii()).collect()
    };
    let texts: Vec<Vec<&[u8]>> = (0..columns).map(column).collect();
    // What SQL can read is as it is written.
    let is_unread =
        |fields: &&Vec<&[u8]>| !fields.is_empty() && !fields.iter().all(|f| has_form(f));
    let unread: Vec<_> = texts.iter().filter(is_unread).collect();
    if given.decimal.is_none() && given.thousands.is_none() {
        let points = texts.iter().filter(|f| !is_unread(f)).flatten().any(|f| f.contains(&b'.'));
        choose_numbers(&unread, points, &mut formats, evidence);
    }
    if given.date.is_none() && given.timestamp.is_none() {
        choose_dates(&unread, &mut formats, evidence);
    }
    formats
}

/// The form that most columns have, and that can only be numbers of this form; of two the simpler one.
fn choose_numbers(
    unread: &[&Vec<&[u8]>],
    points: bool,
    formats: &mut Formats,
    evidence: &mut Vec<String>,
) {
    let mut best: Option<(usize, u8, Option<u8>)> = None;
    for (decimal, thousands) in NUMBERS {
        // Another column has numbers with a point.
        if points && decimal == b',' {
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
