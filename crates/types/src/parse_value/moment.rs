//! Days, times of day and instants.
//!
//! ```text
//!   DATE       YYYY-MM-DD or YYYY/MM/DD; month and day may have one digit
//!   TIME       HH:MM[:SS[.f]] [AM|PM]
//!   TIMESTAMP  DATE [(' ' | 'T') TIME]
//!   with zone  TIMESTAMP [' '] [Z | UTC | (+|-)hh[[:]mm]], UTC when absent
//! ```
//!
//! AM and PM may have points, and no space before them; hours are 1 to 12 then. More than six digits of a second's fraction are accepted when the further ones are zeros.

use super::Rule;
use super::swar::{POW10, Tail, all_digits, digit_pairs};
use super::text::trim;
use crate::calendar::{DATE_DAYS, DAY_MICROS, days_from_date};

const SECOND_MICROS: i64 = 1_000_000;
const MINUTE_MICROS: i64 = 60 * SECOND_MICROS;
const HOUR_MICROS: i64 = 60 * MINUTE_MICROS;
/// Offsets east or west of UTC are below this, as in other databases.
const ZONE_HOURS_MAX: u32 = 16;

const HOURS_OF_HALF_DAY: u32 = 12;

/// Whether a timestamp may name its zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// A zone is an error: it would be dropped.
    Absent,
    /// A zone is taken off; without one the time is UTC.
    Utc,
}

/// DATE: days since 1970-01-01.
#[inline]
pub fn parse_date(field: &[u8]) -> Result<i64, Rule> {
    if let Some(ten) = field.as_array::<10>()
        && let Some(days) = quick_date(ten)
    {
        return Ok(days);
    }
    slow_date(field)
}

/// Reads what the short way of [`parse_date`] does not know, and says what is wrong with it.
#[cold]
#[inline(never)]
pub fn slow_date(field: &[u8]) -> Result<i64, Rule> {
    let (days, rest) = read_date(trim(field)?)?;
    if rest.is_empty() { Ok(days) } else { Err(Rule::NotADate) }
}

/// TIME: microseconds since midnight.
#[inline]
pub fn parse_time(field: &[u8]) -> Result<i64, Rule> {
    if let Some(eight) = field.as_array::<8>()
        && let Some(micros) = quick_clock(eight)
    {
        return Ok(micros);
    }
    slow_time(field)
}

/// Reads what the short way of [`parse_time`] does not know, and says what is wrong with it.
#[cold]
#[inline(never)]
pub fn slow_time(field: &[u8]) -> Result<i64, Rule> {
    let (micros, rest) = read_time(trim(field)?)?;
    if rest.is_empty() { Ok(micros) } else { Err(Rule::NotATime) }
}

/// TIMESTAMP: microseconds since the epoch.
#[inline]
pub fn parse_timestamp(field: &[u8], zone: Zone) -> Result<i64, Rule> {
    if let Some((date, rest)) = field.split_first_chunk::<10>()
        && let Some((separator, rest)) = rest.split_first()
        && matches!(separator, b' ' | b'T')
        && let Some((clock, rest)) = rest.split_first_chunk::<8>()
        && let Some(fraction) = quick_fraction(rest)
        && let (Some(days), Some(micros)) = (quick_date(date), quick_clock(clock))
    {
        return Ok(days * DAY_MICROS + micros + fraction);
    }
    slow_timestamp(field, zone)
}

/// Reads what the short way of [`parse_timestamp`] does not know, and says what is wrong with it.
#[cold]
#[inline(never)]
pub fn slow_timestamp(field: &[u8], zone: Zone) -> Result<i64, Rule> {
    let (days, rest) = read_date(trim(field)?).map_err(as_timestamp)?;
    let (micros, rest) = match rest {
        [b' ' | b'T' | b't', rest @ ..] if rest.first().is_some_and(u8::is_ascii_digit) => {
            read_time(rest).map_err(as_timestamp)?
        }
        _ => (0, rest),
    };
    let local = days * DAY_MICROS + micros;
    if rest.is_empty() {
        return Ok(local);
    }
    let offset = read_zone(trim(rest)?)?;
    if zone == Zone::Absent {
        return Err(Rule::HasZone);
    }
    let instant = local - offset;
    let days = instant.div_euclid(DAY_MICROS);
    if DATE_DAYS.contains(&days) { Ok(instant) } else { Err(Rule::OutOfRange) }
}

fn as_timestamp(rule: Rule) -> Rule {
    match rule {
        Rule::NotADate | Rule::NotATime => Rule::NotATimestamp,
        other => other,
    }
}

/// `YYYY-MM-DD` and nothing else.
#[inline(always)]
fn quick_date(field: &[u8; 10]) -> Option<i64> {
    const DASHES: u64 = (b'-' as u64) << 32 | (b'-' as u64) << 56;
    const DASH_BYTES: u64 = 0xff00_00ff_0000_0000;
    let [a, b, c, d, e, f, g, h, day1, day2] = *field;
    let head = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    if head & DASH_BYTES != DASHES {
        return None;
    }
    let day = u64::from(u16::from_le_bytes([day1, day2]));
    let text = (head & 0xffff_ffff) | (head >> 8 & 0xffff_0000_0000) | day << 48;
    // "YYYYMMDD"
    let digits = text ^ 0x3030_3030_3030_3030;
    if !all_digits(digits) {
        return None;
    }
    let pairs = digit_pairs(digits);
    let lane = |i: u32| (pairs >> (16 * i)) as u32 & 0xff;
    days_from_date(lane(0) * 100 + lane(1), lane(2), lane(3))
}

/// `HH:MM:SS` and nothing else.
#[inline(always)]
fn quick_clock(field: &[u8; 8]) -> Option<i64> {
    const COLONS: u64 = (b':' as u64) << 16 | (b':' as u64) << 40;
    const COLON_BYTES: u64 = 0x0000_ff00_00ff_0000;
    let word = u64::from_le_bytes(*field);
    if word & COLON_BYTES != COLONS {
        return None;
    }
    let text = (word & !COLON_BYTES) | (0x3030_3030_3030_3030 & COLON_BYTES);
    let digits = text ^ 0x3030_3030_3030_3030;
    if !all_digits(digits) {
        return None;
    }
    // "HH0MM0SS": hours in the first pair; minutes and seconds each straddle two.
    let digit = |i: u32| (digits >> (8 * i)) as u32 & 0xff;
    let (hour, minute) = (digit(0) * 10 + digit(1), digit(3) * 10 + digit(4));
    clock(hour, minute, digit(6) * 10 + digit(7))
}

/// Nothing, or `.` and one to six digits.
#[inline(always)]
fn quick_fraction(field: &[u8]) -> Option<i64> {
    let [b'.', digits @ ..] = field else {
        return field.is_empty().then_some(0);
    };
    if digits.is_empty() || digits.len() > 6 {
        return None;
    }
    let value = Tail::from_field(digits)?.digits()?;
    Some((value * POW10[6 - digits.len()]) as i64)
}

#[inline(always)]
fn clock(hour: u32, minute: u32, second: u32) -> Option<i64> {
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(i64::from(hour * 3600 + minute * 60 + second) * SECOND_MICROS)
}

/// A day at the start of `field`, and what follows it.
fn read_date(field: &[u8]) -> Result<(i64, &[u8]), Rule> {
    let (year, rest) = read_number(field, 4, 4).ok_or(Rule::NotADate)?;
    let (separator, rest) = match rest {
        [separator @ (b'-' | b'/'), rest @ ..] => (*separator, rest),
        _ => return Err(Rule::NotADate),
    };
    let (month, rest) = read_number(rest, 1, 2).ok_or(Rule::NotADate)?;
    let rest = rest.strip_prefix(&[separator]).ok_or(Rule::NotADate)?;
    let (day, rest) = read_number(rest, 1, 2).ok_or(Rule::NotADate)?;
    let days = days_from_date(year, month, day).ok_or(Rule::NoSuchDate)?;
    Ok((days, rest))
}

/// A time of day at the start of `field`, and what follows it.
fn read_time(field: &[u8]) -> Result<(i64, &[u8]), Rule> {
    let (hour, rest) = read_number(field, 1, 2).ok_or(Rule::NotATime)?;
    let rest = rest.strip_prefix(b":").ok_or(Rule::NotATime)?;
    let (minute, rest) = read_number(rest, 2, 2).ok_or(Rule::NotATime)?;
    let mut second = (0, rest);
    if let [b':', rest @ ..] = rest {
        second = read_number(rest, 2, 2).ok_or(Rule::NotATime)?;
    }
    let (second, mut rest) = second;
    let mut fraction = 0;
    if let [b'.', tail @ ..] = rest {
        (fraction, rest) = read_fraction(tail)?;
    }
    let (hour, rest) = match half_of_day(after_space(rest)) {
        None => (hour, rest),
        Some((half, length)) if (1..=HOURS_OF_HALF_DAY).contains(&hour) => {
            (hour % HOURS_OF_HALF_DAY + half, &after_space(rest)[length..])
        }
        Some(_) => return Err(Rule::NoSuchTime),
    };
    let micros = clock(hour, minute, second).ok_or(Rule::NoSuchTime)?;
    Ok((micros + fraction, rest))
}

/// The text without the space before it, be it one that does not break, or a narrow one as some programs put before AM.
fn after_space(text: &[u8]) -> &[u8] {
    let spaces: [&[u8]; 3] = [b" ", b"\xc2\xa0", b"\xe2\x80\xaf"];
    spaces.iter().find_map(|space| text.strip_prefix(*space)).unwrap_or(text)
}

/// Hours before the half of the day that the text begins with the name of, and the bytes of that: AM or PM, in any case, with
/// points or without.
pub fn half_of_day(text: &[u8]) -> Option<(u32, usize)> {
    let length = match text {
        [_, b'.', _, b'.', ..] => 4,
        [_, _, ..] => 2,
        _ => return None,
    };
    let (half, m) = (text[0], text[length / 2]);
    let ends = text.get(length).is_none_or(|next| !next.is_ascii_alphanumeric());
    match half.to_ascii_lowercase() {
        _ if !m.eq_ignore_ascii_case(&b'm') || !ends => None,
        b'a' => Some((0, length)),
        b'p' => Some((HOURS_OF_HALF_DAY, length)),
        _ => None,
    }
}

/// Microseconds of the digits after the point, and what follows them.
fn read_fraction(field: &[u8]) -> Result<(i64, &[u8]), Rule> {
    let len = field.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, rest) = field.split_at(len);
    if digits.is_empty() {
        return Err(Rule::NotATime);
    }
    let (micros, beyond) = digits.split_at(len.min(6));
    if beyond.iter().any(|digit| *digit != b'0') {
        return Err(Rule::TooFine);
    }
    let padded = micros.iter().chain(std::iter::repeat(&b'0')).take(6);
    Ok((padded.fold(0, |value, digit| value * 10 + i64::from(digit - b'0')), rest))
}

/// An offset from UTC in microseconds, positive to the east; the whole of `field`.
fn read_zone(field: &[u8]) -> Result<i64, Rule> {
    if field.eq_ignore_ascii_case(b"z") || field.eq_ignore_ascii_case(b"utc") {
        return Ok(0);
    }
    let (west, rest) = match field {
        [sign @ (b'+' | b'-'), rest @ ..] => (*sign == b'-', rest),
        _ => return Err(Rule::NotATimestamp),
    };
    let (hours, rest) = read_number(rest, 2, 2).ok_or(Rule::NotATimestamp)?;
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let (minutes, rest) = match rest {
        [] if field.last() != Some(&b':') => (0, rest),
        _ => read_number(rest, 2, 2).ok_or(Rule::NotATimestamp)?,
    };
    if !rest.is_empty() {
        return Err(Rule::NotATimestamp);
    }
    if hours >= ZONE_HOURS_MAX || minutes > 59 {
        return Err(Rule::NoSuchZone);
    }
    let offset = i64::from(hours) * HOUR_MICROS + i64::from(minutes) * MINUTE_MICROS;
    Ok(if west { -offset } else { offset })
}

/// As many digits as there are, `min` to `max`, and what follows them.
fn read_number(field: &[u8], min: usize, max: usize) -> Option<(u32, &[u8])> {
    let len = field.iter().take(max).take_while(|b| b.is_ascii_digit()).count();
    if len < min {
        return None;
    }
    let (digits, rest) = field.split_at(len);
    Some((digits.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')), rest))
}
