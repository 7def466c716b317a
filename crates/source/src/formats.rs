//! Numbers and dates that are not written as SQL writes them.
//!
//! ```text
//!   1.234,50      decimal separator ',', thousands '.'      1234.50
//!   31.12.2024    %d.%m.%Y                                  2024-12-31
//! ```
//!
//! A field is rewritten before its type is looked at; one that is not of the form is no value, rather
//! than a guess.

use std::borrow::Cow;

use coload_format::DataType;

/// Names of months, of which three letters count.
const MONTHS: [&[u8; 3]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];
/// Two digits of a year up to this are of 2000 and later (POSIX).
const CENTURY_TURN: u32 = 68;

/// How dates are written: `%d`, `%m`, `%b`, `%Y`, `%y`, and what stands between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateFormat {
    bytes: [u8; DateFormat::BYTES_MAX],
    length: u8,
}

impl DateFormat {
    /// Longest format.
    pub const BYTES_MAX: usize = 24;

    /// Reads a format: day, month and year once each, and other characters as they are.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("\"{text}\" {why}, as in %d.%m.%Y or %m/%d/%y"));
        let mut bytes = [0; DateFormat::BYTES_MAX];
        let Some(target) = bytes.get_mut(..text.len()) else { return wrong("is too long") };
        target.copy_from_slice(text.as_bytes());
        let mut found = [0; 3];
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            if byte != b'%' {
                continue;
            }
            match rest.next() {
                Some(b'd') => found[0] += 1,
                Some(b'm' | b'b') => found[1] += 1,
                Some(b'Y' | b'y') => found[2] += 1,
                _ => return wrong("has a part other than %d, %m, %b, %Y and %y"),
            }
        }
        if found != [1, 1, 1] {
            return wrong("does not have day, month and year once each");
        }
        Ok(DateFormat { bytes, length: text.len() as u8 })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }

    /// The date that `field` starts with, as SQL writes it, and what follows.
    fn read<'a>(&self, field: &'a [u8]) -> Option<(String, &'a [u8])> {
        let mut rest = field;
        let (mut day, mut month, mut year) = (0, 0, 0);
        let mut format = self.bytes[..usize::from(self.length)].iter();
        while let Some(byte) = format.next() {
            if *byte != b'%' {
                rest = rest.strip_prefix(&[*byte])?;
                continue;
            }
            match format.next()? {
                b'd' => (day, rest) = number(rest, 1, 2)?,
                b'm' => (month, rest) = number(rest, 1, 2)?,
                b'Y' => (year, rest) = number(rest, 4, 4)?,
                b'y' => {
                    (year, rest) = number(rest, 2, 2)?;
                    year += if year > CENTURY_TURN { 1900 } else { 2000 };
                }
                _ => {
                    let (name, after) = rest.split_at_checked(3)?;
                    let is_name = |month: &[u8; 3]| name.eq_ignore_ascii_case(&month[..]);
                    month = MONTHS.iter().position(|m| is_name(m))? as u32 + 1;
                    rest = after;
                }
            }
        }
        Some((format!("{year:04}-{month:02}-{day:02}"), rest))
    }
}

/// Digits at the start, no more than `most`, and what follows.
fn number(text: &[u8], least: usize, most: usize) -> Option<(u32, &[u8])> {
    let digits = text.iter().take(most).take_while(|b| b.is_ascii_digit()).count();
    if digits < least {
        return None;
    }
    let value = text[..digits].iter().fold(0, |sum, b| sum * 10 + u32::from(b - b'0'));
    Some((value, &text[digits..]))
}

/// How numbers and dates are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats {
    /// Before the digits of a fraction.
    pub decimal: u8,
    /// Between groups of three digits.
    pub thousands: Option<u8>,
    /// Dates, and the dates of timestamps; as SQL writes them if there is none.
    pub date: Option<DateFormat>,
}

impl Default for Formats {
    fn default() -> Self {
        Formats { decimal: b'.', thousands: None, date: None }
    }
}

impl Formats {
    /// Whether fields of a type are rewritten.
    pub fn rewrites(&self, data_type: DataType) -> bool {
        use DataType::{Date, Timestamp, TimestampTz};
        match data_type {
            Date | Timestamp | TimestampTz => self.date.is_some(),
            other => other.is_number() && (self.decimal != b'.' || self.thousands.is_some()),
        }
    }

    /// The field as SQL writes it; `None` when it is not of the form.
    pub fn rewrite<'a>(&self, field: &'a [u8], data_type: DataType) -> Option<Cow<'a, [u8]>> {
        if !self.rewrites(data_type) {
            return Some(Cow::Borrowed(field));
        }
        match data_type {
            DataType::Date | DataType::Timestamp | DataType::TimestampTz => {
                self.rewrite_date(field)
            }
            _ => self.rewrite_number(field),
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
        self.push_whole(whole, &mut out)?;
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
        let comma = Formats { decimal: b',', thousands: Some(b'.'), date: None };
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
        for bad in ["%d.%m", "%d.%d.%m.%Y", "%H", "%", "%d.%m.%Y and much else besides"] {
            assert!(DateFormat::parse(bad).is_err(), "{bad}");
        }
    }
}
