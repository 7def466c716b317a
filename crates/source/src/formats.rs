//! Numbers and dates that are not written as SQL writes them.
//!
//! ```text
//!   1.234,50      decimal separator ',', thousands '.'      1234.50
//!   31.12.2024    %d.%m.%Y                                  2024-12-31
//! ```
//!
//! A field is rewritten before its type is looked at; one that is not of the form is no value, rather
//! than a guess.

mod moment;

use std::borrow::Cow;

use coload_types::DataType;

pub use moment::{DateFormat, TimestampFormat};

/// Spaces between thousands that are not ASCII: no-break, narrow no-break, thin, figure.
const SPACES: [&[u8]; 4] = [b"\xc2\xa0", b"\xe2\x80\xaf", b"\xe2\x80\x89", b"\xe2\x80\x87"];
/// The curved apostrophe, which some write between thousands.
const APOSTROPHES: [&[u8]; 1] = [b"\xe2\x80\x99"];

/// How numbers and dates are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats {
    /// Before the digits of a fraction.
    pub decimal: u8,
    /// Between groups of three digits.
    pub thousands: Option<u8>,
    /// Dates, and the dates of timestamps; as SQL writes them if there is none.
    pub date: Option<DateFormat>,
    /// Timestamps as a whole, in place of `date`.
    pub timestamp: Option<TimestampFormat>,
}

impl Default for Formats {
    fn default() -> Self {
        Formats { decimal: b'.', thousands: None, date: None, timestamp: None }
    }
}

impl Formats {
    /// Whether fields of a type are rewritten.
    pub fn rewrites(&self, data_type: DataType) -> bool {
        use DataType::{Date, Timestamp, TimestampTz};
        match data_type {
            Date => self.date.is_some(),
            Timestamp | TimestampTz => self.has_dates(),
            other => other.is_number() && (self.decimal != b'.' || self.thousands.is_some()),
        }
    }

    /// Whether some dates are not as SQL writes them.
    pub fn has_dates(&self) -> bool {
        self.date.is_some() || self.timestamp.is_some()
    }

    /// The field as SQL writes it; `None` when it is not of the form.
    pub fn rewrite<'a>(&self, field: &'a [u8], data_type: DataType) -> Option<Cow<'a, [u8]>> {
        if !self.rewrites(data_type) {
            return Some(Cow::Borrowed(field));
        }
        match data_type {
            DataType::Timestamp | DataType::TimestampTz if self.timestamp.is_some() => {
                self.timestamp?.read(field.trim_ascii()).map(Cow::Owned)
            }
            DataType::Date | DataType::Timestamp | DataType::TimestampTz => {
                self.rewrite_date(field)
            }
            other => {
                debug_assert!(other.is_number());
                self.rewrite_number(field)
            }
        }
    }

    fn rewrite_date<'a>(&self, field: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Some(format) = &self.date else { return Some(Cow::Borrowed(field)) };
        let (date, rest) = format.read(field.trim_ascii())?;
        let mut out = date.into_bytes();
        out.extend_from_slice(rest);
        Some(Cow::Owned(out))
    }

    /// Words such as NaN are left as they are.
    fn rewrite_number<'a>(&self, field: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let text = field.trim_ascii();
        if !text.iter().any(u8::is_ascii_digit) {
            return Some(Cow::Borrowed(field));
        }
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        if let [sign @ (b'-' | b'+'), after @ ..] = rest {
            out.push(*sign);
            rest = after;
        }
        let fraction = rest.iter().position(|b| *b == self.decimal);
        let tail = fraction.or_else(|| rest.iter().position(|b| b.eq_ignore_ascii_case(&b'e')));
        let (whole, tail) = rest.split_at(tail.unwrap_or(rest.len()));
        self.push_whole(&self.plain_groups(whole), &mut out)?;
        match tail.split_first() {
            Some((first, digits)) if fraction.is_some() => {
                debug_assert_eq!(*first, self.decimal);
                out.push(b'.');
                out.extend_from_slice(digits);
                // The point of SQL is nothing here.
                (!digits.contains(&b'.')).then_some(Cow::Owned(out))
            }
            _ => {
                out.extend_from_slice(tail);
                Some(Cow::Owned(out))
            }
        }
    }

    /// Digits with the separator of thousands as one byte: a space stands for those that do not break a line too, an apostrophe
    /// for the curved one.
    pub(crate) fn plain_groups<'a>(&self, whole: &'a [u8]) -> Cow<'a, [u8]> {
        let kin: &[&[u8]] = match self.thousands {
            Some(b' ') => &SPACES,
            Some(b'\'') => &APOSTROPHES,
            _ => &[],
        };
        let Some(separator) = self.thousands.filter(|_| !whole.is_ascii() && !kin.is_empty())
        else {
            return Cow::Borrowed(whole);
        };
        let mut out = Vec::with_capacity(whole.len());
        let mut rest = whole;
        while let Some((first, after)) = rest.split_first() {
            match kin.iter().find(|kin| rest.starts_with(kin)) {
                Some(kin) => {
                    out.push(separator);
                    rest = &rest[kin.len()..];
                }
                None => {
                    out.push(*first);
                    rest = after;
                }
            }
        }
        Cow::Owned(out)
    }

    /// Digits, in groups of three if they are separated.
    fn push_whole(&self, whole: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let mut groups = whole.split(|b| Some(*b) == self.thousands);
        let first = groups.next()?;
        let digits = |group: &[u8]| group.iter().all(u8::is_ascii_digit);
        let grouped = first.len() < whole.len();
        if !digits(first) || grouped && !(1..=3).contains(&first.len()) {
            return None;
        }
        out.extend_from_slice(first);
        for group in groups {
            if group.len() != 3 || !digits(group) {
                return None;
            }
            out.extend_from_slice(group);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rewrite(formats: Formats, field: &str, data_type: DataType) -> Option<String> {
        let found = formats.rewrite(field.as_bytes(), data_type)?;
        Some(String::from_utf8(found.into_owned()).unwrap())
    }

    #[test]
    fn numbers_are_rewritten_or_refused() {
        let comma = Formats { decimal: b',', thousands: Some(b'.'), ..Formats::default() };
        for (field, expected) in [
            ("12,50", Some("12.50")),
            ("-1.234.567,5", Some("-1234567.5")),
            ("1234,5", Some("1234.5")),
            (" 7 ", Some("7")),
            (",5", Some(".5")),
            ("1,5e3", Some("1.5e3")),
            ("1e3", Some("1e3")),
            ("NaN", Some("NaN")),
            ("1.5", None),
            ("12.34,5", None),
            ("1234.567", None),
            (".123", None),
            ("1,2.3", None),
            ("1.", None),
        ] {
            assert_eq!(rewrite(comma, field, DataType::Double).as_deref(), expected, "{field:?}");
        }
        let only = Formats { decimal: b',', ..Formats::default() };
        assert_eq!(rewrite(only, "1.5", DataType::Double), None);
        assert_eq!(rewrite(only, "1.5", DataType::Varchar(None)).as_deref(), Some("1.5"));
    }

    #[test]
    fn dates_are_rewritten_or_refused() {
        let date = |format: &str, field: &str, data_type: DataType| {
            let date = Some(DateFormat::parse(format).unwrap());
            rewrite(Formats { date, ..Formats::default() }, field, data_type)
        };
        for (format, field, expected) in [
            ("%d.%m.%Y", "31.12.2024", Some("2024-12-31")),
            ("%d.%m.%Y", "1.2.2024 10:00", Some("2024-02-01 10:00")),
            ("%m/%d/%y", "12/31/68", Some("2068-12-31")),
            ("%m/%d/%y", "12/31/69", Some("1969-12-31")),
            ("%d %b %Y", "5 MAR 2024", Some("2024-03-05")),
            ("%Y%m%d", "20240305", Some("2024-03-05")),
            ("%d.%m.%Y", "2024-12-31", None),
            ("%d.%m.%Y", "31.12.24", None),
            ("%d %b %Y", "5 Foo 2024", None),
            ("%d.%m.%Y", "", None),
        ] {
            assert_eq!(date(format, field, DataType::Timestamp).as_deref(), expected, "{field:?}");
        }
        let long = format!("%d.%m.%Y{}", "-".repeat(64));
        for bad in ["%d.%m", "%d.%d.%m.%Y", "%H", "%", "%d.%m.%Y %H", &long] {
            assert!(DateFormat::parse(bad).is_err(), "{bad}");
        }
    }
}
