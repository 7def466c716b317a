//! How days and instants are written: `%d.%m.%Y`, `%m/%d/%y %I:%M %p`.
//!
//! ```text
//!   %Y %y      year of four digits, of two        %H %I    hour of 24, of 12
//!   %m %b %B   month as number, Jan, January      %M %S    minute, second
//!   %d %e      day                                %f       digits of a second's fraction
//!   %j is not there, nor are names of days        %p       AM or PM
//!   %F %T %R   %Y-%m-%d, %H:%M:%S, %H:%M          %z %Z    +02:00 or Z; UTC, GMT or Z
//!   %%         a percent sign
//! ```
//!
//! Other characters stand for themselves. A field that is not of the form is no value, rather than a guess.

/// Names of months; three letters are the short form.
const MONTHS: [&[u8]; 12] = [
    b"january",
    b"february",
    b"march",
    b"april",
    b"may",
    b"june",
    b"july",
    b"august",
    b"september",
    b"october",
    b"november",
    b"december",
];
/// Two digits of a year up to this are of 2000 and later (POSIX).
const CENTURY_TURN: u32 = 68;
/// Most digits of a fraction of a second.
const FRACTION_DIGITS_MAX: usize = 12;

/// A format as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pattern {
    bytes: [u8; Pattern::BYTES_MAX],
    length: u8,
}

/// How dates are written: day, month and year once each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateFormat(Pattern);

/// How timestamps are written: a date, and hour and minute at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampFormat(Pattern);

/// What one `%` of a format stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Day,
    Month,
    Year,
    Hour,
    HalfDayHour,
    Minute,
    Second,
    Fraction,
    HalfDay,
    Zone,
}

/// What a field says.
#[derive(Debug, Default)]
struct Moment<'a> {
    day: u32,
    month: u32,
    year: u32,
    hour: u32,
    minute: u32,
    second: u32,
    fraction: &'a [u8],
    zone: &'a [u8],
    /// Hours to be added to those of the half day.
    after_noon: u32,
    is_of_half_day: bool,
}

impl Part {
    /// What a letter stands for; `None` for the letters that stand for several.
    fn of(letter: u8) -> Option<Self> {
        Some(match letter {
            b'd' | b'e' => Part::Day,
            b'm' | b'b' | b'B' => Part::Month,
            b'Y' | b'y' => Part::Year,
            b'H' => Part::Hour,
            b'I' => Part::HalfDayHour,
            b'M' => Part::Minute,
            b'S' => Part::Second,
            b'f' => Part::Fraction,
            b'p' => Part::HalfDay,
            b'z' | b'Z' => Part::Zone,
            _ => return None,
        })
    }
}

/// The format that a letter stands for.
fn expand(letter: u8) -> Option<&'static [u8]> {
    match letter {
        b'F' => Some(b"%Y-%m-%d"),
        b'T' => Some(b"%H:%M:%S"),
        b'R' => Some(b"%H:%M"),
        _ => None,
    }
}

impl Pattern {
    /// Longest format that is taken, bytes of its text.
    const BYTES_MAX: usize = 64;

    fn new(text: &str) -> Result<Self, String> {
        let mut bytes = [0; Pattern::BYTES_MAX];
        let Some(target) = bytes.get_mut(..text.len()) else {
            return Err(format!("\"{text}\" is too long: at most {} bytes", Pattern::BYTES_MAX));
        };
        target.copy_from_slice(text.as_bytes());
        Ok(Pattern { bytes, length: text.len() as u8 })
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn text(&self) -> &str {
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }
}

/// The parts of a format in order.
///
/// # Errors
/// The part that there is not.
fn parts(format: &[u8], out: &mut Vec<Part>) -> Result<(), String> {
    let mut rest = format.iter();
    while let Some(byte) = rest.next() {
        if *byte != b'%' {
            continue;
        }
        match rest.next() {
            Some(b'%') => {}
            Some(letter) => match (Part::of(*letter), expand(*letter)) {
                (Some(part), _) => out.push(part),
                (None, Some(format)) => parts(format, out)?,
                (None, None) => return Err(format!("%{}", char::from(*letter))),
            },
            None => return Err("a lone %".to_owned()),
        }
    }
    Ok(())
}

impl DateFormat {
    /// Reads a format: day, month and year once each, and other characters as they are.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("\"{text}\" {why}, as in %d.%m.%Y or %m/%d/%y"));
        let pattern = Pattern::new(text)?;
        let mut found = Vec::new();
        if parts(pattern.bytes(), &mut found).is_err()
            || found.iter().any(|part| !matches!(part, Part::Day | Part::Month | Part::Year))
        {
            return wrong("has a part other than %d, %e, %m, %b, %B, %Y, %y and %F");
        }
        match has_date(&found) {
            true => Ok(DateFormat(pattern)),
            false => wrong("does not have day, month and year once each"),
        }
    }

    /// The format as it was written.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// The date that `field` starts with, as SQL writes it, and what follows.
    pub(super) fn read<'a>(&self, field: &'a [u8]) -> Option<(String, &'a [u8])> {
        let mut moment = Moment::default();
        let rest = moment.read(self.0.bytes(), field)?;
        Some((moment.date(), rest))
    }
}

impl TimestampFormat {
    /// Reads a format: a date, an hour and a minute once each, and other characters as they are.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            Err(format!("\"{text}\" {why}, as in '%d.%m.%Y %H:%M:%S' or '%m/%d/%Y %I:%M %p'"))
        };
        let pattern = Pattern::new(text)?;
        let mut found = Vec::new();
        if let Err(part) = parts(pattern.bytes(), &mut found) {
            return wrong(&format!(
                "has {part}, and there is %d %e %m %b %B %Y %y %H %I %M %S %f %p %z %Z %F %T %R"
            ));
        }
        let count = |part: Part| found.iter().filter(|other| **other == part).count();
        if !has_date(&found) {
            return wrong("does not have day, month and year once each");
        }
        if count(Part::Hour) + count(Part::HalfDayHour) != 1 || count(Part::Minute) != 1 {
            return wrong("does not have hour and minute once each (--date-format is for dates)");
        }
        if count(Part::HalfDayHour) != count(Part::HalfDay) {
            return wrong("has %I without %p, or %p without %I");
        }
        if count(Part::Fraction) > count(Part::Second) {
            return wrong("has %f without %S");
        }
        match count(Part::Second) < 2 && count(Part::Zone) < 2 {
            true => Ok(TimestampFormat(pattern)),
            false => wrong("has seconds or a zone twice"),
        }
    }

    /// The format as it was written.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// The whole of `field` as SQL writes it.
    pub(super) fn read(&self, field: &[u8]) -> Option<Vec<u8>> {
        let mut moment = Moment::default();
        let rest = moment.read(self.0.bytes(), field)?;
        rest.is_empty().then(|| moment.timestamp())?
    }
}

fn has_date(parts: &[Part]) -> bool {
    let once = |part: Part| parts.iter().filter(|other| **other == part).count() == 1;
    once(Part::Day) && once(Part::Month) && once(Part::Year)
}

impl<'a> Moment<'a> {
    /// Reads what a format says; the rest of the field.
    fn read(&mut self, format: &[u8], field: &'a [u8]) -> Option<&'a [u8]> {
        let mut rest = field;
        let mut format = format.iter();
        while let Some(byte) = format.next() {
            if *byte != b'%' {
                rest = rest.strip_prefix(&[*byte])?;
                continue;
            }
            let letter = *format.next()?;
            rest = match expand(letter) {
                Some(format) => self.read(format, rest)?,
                None => self.read_part(letter, rest)?,
            };
        }
        Some(rest)
    }

    fn read_part(&mut self, letter: u8, text: &'a [u8]) -> Option<&'a [u8]> {
        let (target, least, most) = match letter {
            b'd' => (&mut self.day, 1, 2),
            b'e' => (&mut self.day, 1, 2),
            b'm' => (&mut self.month, 1, 2),
            b'Y' => (&mut self.year, 4, 4),
            b'y' => (&mut self.year, 2, 2),
            b'H' | b'I' => (&mut self.hour, 1, 2),
            b'M' => (&mut self.minute, 2, 2),
            b'S' => (&mut self.second, 2, 2),
            b'b' | b'B' => return self.read_month(letter, text),
            b'p' => return self.read_half_day(text),
            b'f' => {
                let digits = text.iter().take(FRACTION_DIGITS_MAX);
                let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
                self.fraction = &text[..digits];
                return (digits > 0).then_some(&text[digits..]);
            }
            b'z' | b'Z' => return self.read_zone(letter, text),
            _ => return text.strip_prefix(&[letter]),
        };
        let text = if letter == b'e' { text.strip_prefix(b" ").unwrap_or(text) } else { text };
        let (number, rest) = number(text, least, most)?;
        *target = number;
        match letter {
            b'y' => self.year += if self.year > CENTURY_TURN { 1900 } else { 2000 },
            b'I' => self.is_of_half_day = true,
            _ => {}
        }
        Some(rest)
    }

    fn read_month(&mut self, letter: u8, text: &'a [u8]) -> Option<&'a [u8]> {
        let length = |name: &[u8]| if letter == b'b' { 3 } else { name.len() };
        let is_it = |name: &&[u8]| {
            let name = &name[..length(name)];
            text.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name))
        };
        let found = MONTHS.iter().position(is_it)?;
        self.month = found as u32 + 1;
        Some(&text[length(MONTHS[found])..])
    }

    fn read_half_day(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        let (half, length) = coload_types::parse_value::half_of_day(text)?;
        self.after_noon = half;
        Some(&text[length..])
    }

    /// An offset, or a name that is no guess.
    fn read_zone(&mut self, letter: u8, text: &'a [u8]) -> Option<&'a [u8]> {
        let length = match (letter, text) {
            (_, [b'Z' | b'z', ..]) => 1,
            (b'Z', [a, b, c, ..])
                if [*a, *b, *c].eq_ignore_ascii_case(b"utc")
                    || [*a, *b, *c].eq_ignore_ascii_case(b"gmt") =>
            {
                3
            }
            (b'z', [b'+' | b'-', digits @ ..]) => {
                let of_zone = |byte: &&u8| byte.is_ascii_digit() || **byte == b':';
                1 + digits.iter().take("hh:mm".len()).take_while(of_zone).count()
            }
            _ => return None,
        };
        self.zone = if letter == b'Z' { b"Z" } else { &text[..length] };
        Some(&text[length..])
    }

    fn date(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    fn timestamp(&self) -> Option<Vec<u8>> {
        let hour = match self.is_of_half_day {
            false => self.hour,
            true if (1..=12).contains(&self.hour) => self.hour % 12 + self.after_noon,
            true => return None,
        };
        let clock = format!("{} {hour:02}:{:02}:{:02}", self.date(), self.minute, self.second);
        let mut out = clock.into_bytes();
        if !self.fraction.is_empty() {
            out.push(b'.');
            out.extend_from_slice(self.fraction);
        }
        out.extend_from_slice(self.zone);
        Some(out)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn timestamps_are_rewritten_or_refused() {
        for (format, field, expected) in [
            ("%d.%m.%Y %H:%M", "31.12.2024 7:05", Some("2024-12-31 07:05:00")),
            ("%m/%d/%Y %I:%M:%S %p", "1/2/2024 12:00:01 am", Some("2024-01-02 00:00:01")),
            ("%m/%d/%Y %I:%M %p", "1/2/2024 12:30 P.M.", Some("2024-01-02 12:30:00")),
            ("%m/%d/%Y %I:%M %p", "1/2/2024 13:30 PM", None),
            ("%e %B %Y %T.%f", "5 March 2024 01:02:03.0004", Some("2024-03-05 01:02:03.0004")),
            ("%d/%b/%Y:%T %z", "05/Mar/2024:01:02:03 +0200", Some("2024-03-05 01:02:03+0200")),
            ("%F %R %Z", "2024-03-05 01:02 GMT", Some("2024-03-05 01:02:00Z")),
            ("%F %R %Z", "2024-03-05 01:02 CET", None),
            ("%y%m%d%H%M%S", "240305010203", Some("2024-03-05 01:02:03")),
            ("%F %T", "2024-03-05 01:02:03 ", None),
            ("%F %T", "2024-03-05", None),
            ("%F %H%%%M", "2024-03-05 01%02", Some("2024-03-05 01:02:00")),
        ] {
            let found = TimestampFormat::parse(format).unwrap().read(field.as_bytes());
            let found = found.map(|text| String::from_utf8(text).unwrap());
            assert_eq!(found.as_deref(), expected, "{format} {field:?}");
        }
        for bad in [
            "%F",
            "%T",
            "%F %H",
            "%F %I:%M",
            "%F %H:%M %p",
            "%F %R %f",
            "%F %T %S",
            "%F %T %j",
            "%F %R %",
        ] {
            assert!(TimestampFormat::parse(bad).is_err(), "{bad}");
        }
    }
}
