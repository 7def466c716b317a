//! Numbers of days as dates, times and durations.
//!
//! A number counts days since the end of 1899, or of 1903 (`date1904`). The days of 1900 up to 28 February are one too many, as that year has a 29 February to
//! Excel, which is day 60. Its fraction is the time, to the millisecond, which is what Excel has: a DOUBLE of days holds no more.

use crate::kind::Kind;

/// From which day numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Epoch {
    /// 1 is 1 January 1900.
    #[default]
    Of1900,
    /// 0 is 1 January 1904.
    Of1904,
}

const DAY_MS: i64 = 86_400_000;
/// The last day that has a date, 31 December 9999, and one more.
const DAYS_MAX: f64 = 2_958_466.0;
/// Most days of a duration: what counts milliseconds exactly.
const DURATION_DAYS_MAX: f64 = 1e8;
/// Day 60 of 1900, which there is not.
const NO_DAY: i64 = 60;
/// Days from 1 January 1970 back to the day before 1 January 1900, and to 1 January 1904.
const BEFORE_1900: i64 = 25_568;
const BEFORE_1904: i64 = 24_107;

/// Appends a number as the kind of its cell: `2026-01-31`, `2026-01-31 08:30:00`, `08:30:00`, `36:30:00`; false when it has no such form.
pub fn append_serial(days: f64, kind: Kind, epoch: Epoch, out: &mut Vec<u8>) -> bool {
    if kind == Kind::Duration {
        return append_duration(days, out);
    }
    if !(0.0..DAYS_MAX).contains(&days) {
        return false;
    }
    let ms = (days * DAY_MS as f64).round() as i64;
    let (day, time) = (ms / DAY_MS, ms % DAY_MS);
    // Of a day before the first there is a time only.
    let is_time = day == 0 && (epoch == Epoch::Of1900 || kind == Kind::Time);
    if is_time {
        if kind == Kind::Date {
            return false;
        }
        append_time(time, out);
        return true;
    }
    let Some((year, month, day)) = date_of(day, epoch) else { return false };
    out.extend_from_slice(format!("{year:04}-{month:02}-{day:02}").as_bytes());
    if kind != Kind::Date || time != 0 {
        out.push(b' ');
        append_time(time, out);
    }
    true
}

/// Year, month and day of a number; `None` for a day that there is not.
fn date_of(day: i64, epoch: Epoch) -> Option<(i64, i64, i64)> {
    let since_1970 = match epoch {
        Epoch::Of1900 if day == NO_DAY => return None,
        Epoch::Of1900 if day < NO_DAY => day - BEFORE_1900,
        Epoch::Of1900 => day - 1 - BEFORE_1900,
        Epoch::Of1904 => day - BEFORE_1904,
    };
    let date = civil(since_1970);
    (date.0 <= 9999).then_some(date)
}

/// Source: Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn append_time(ms: i64, out: &mut Vec<u8>) {
    let seconds = ms / 1000;
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    out.extend_from_slice(text.as_bytes());
    append_fraction(ms % 1000, out);
}

fn append_fraction(ms: i64, out: &mut Vec<u8>) {
    if ms != 0 {
        out.extend_from_slice(format!(".{ms:03}").as_bytes());
    }
}

fn append_duration(days: f64, out: &mut Vec<u8>) -> bool {
    if !(-DURATION_DAYS_MAX..DURATION_DAYS_MAX).contains(&days) {
        return false;
    }
    let ms = (days * DAY_MS as f64).round() as i64;
    if ms < 0 {
        out.push(b'-');
    }
    let ms = ms.abs();
    let seconds = ms / 1000;
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    out.extend_from_slice(text.as_bytes());
    append_fraction(ms % 1000, out);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(days: f64, kind: Kind, epoch: Epoch) -> Option<String> {
        let mut out = Vec::new();
        append_serial(days, kind, epoch, &mut out)
            .then(|| String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn numbers_are_dates_of_the_book() {
        use Epoch::{Of1900, Of1904};
        for (days, kind, epoch, expected) in [
            (1.0, Kind::Date, Of1900, Some("1900-01-01")),
            (59.0, Kind::Date, Of1900, Some("1900-02-28")),
            (60.0, Kind::Date, Of1900, None),
            (61.0, Kind::Date, Of1900, Some("1900-03-01")),
            (46_053.0, Kind::Date, Of1900, Some("2026-01-31")),
            (46_053.5, Kind::Date, Of1900, Some("2026-01-31 12:00:00")),
            (46_053.0, Kind::Moment, Of1900, Some("2026-01-31 00:00:00")),
            (46_053.354_166_666_664, Kind::Moment, Of1900, Some("2026-01-31 08:30:00")),
            (2_958_465.999_999_99, Kind::Moment, Of1900, Some("9999-12-31 23:59:59.999")),
            (2_958_466.0, Kind::Date, Of1900, None),
            (2_958_465.999_999_999_9, Kind::Moment, Of1900, None),
            (-1.0, Kind::Date, Of1900, None),
            (f64::NAN, Kind::Date, Of1900, None),
            (0.0, Kind::Date, Of1900, None),
            (0.5, Kind::Moment, Of1900, Some("12:00:00")),
            (0.000_011_574_07, Kind::Time, Of1900, Some("00:00:01")),
            (0.0, Kind::Date, Of1904, Some("1904-01-01")),
            (0.25, Kind::Time, Of1904, Some("06:00:00")),
            (44_591.0, Kind::Date, Of1904, Some("2026-01-31")),
            (1.520_833_333_333_333_3, Kind::Duration, Of1900, Some("36:30:00")),
            (-0.5, Kind::Duration, Of1900, Some("-12:00:00")),
            (1e300, Kind::Duration, Of1900, None),
        ] {
            assert_eq!(text(days, kind, epoch).as_deref(), expected, "{days} {kind:?} {epoch:?}");
        }
    }
}
