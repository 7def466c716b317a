//! Days of the proleptic Gregorian calendar, counted from 1970-01-01.
//!
//! Years 0001 to 9999 come in; any day number can be turned back without a panic.

/// First and last day that a DATE can hold: 0001-01-01 and 9999-12-31.
pub const DATE_DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;
/// Microseconds of a day.
pub const DAY_MICROS: i64 = 86_400_000_000;

/// Days from 0000-03-01 to 1970-01-01; years start in March so that the leap day comes last.
pub(crate) const EPOCH_FROM_MARCH: i64 = 719_468;

/// Whether February has 29 days.
#[inline]
pub fn is_leap_year(year: u32) -> bool {
    // Divisible by 100 and by 16 is divisible by 400. No branches: days are parsed by the million.
    year.is_multiple_of(4) & (!year.is_multiple_of(100) | year.is_multiple_of(16))
}

/// Days of a month, 0 for a month that does not exist.
#[inline]
pub fn days_in_month(year: u32, month: u32) -> u32 {
    const DAYS: [[u8; 16]; 2] = [
        [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0],
        [0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0],
    ];
    u32::from(DAYS[usize::from(is_leap_year(year))][month.min(15) as usize])
}

/// Days since 1970-01-01, or `None` when there is no such day in the years 0001 to 9999.
#[inline]
pub fn days_from_date(year: u32, month: u32, day: u32) -> Option<i64> {
    if year == 0 || year > 9999 || day == 0 || day > days_in_month(year, month) {
        return None;
    }
    // The year starts in March, without a branch.
    let early = u32::from(month < 3);
    let (year, month) = (year - early, month + 12 * early - 3);
    let century = year / 100;
    let days = year * 1461 / 4 - century + century / 4 + (153 * month + 2) / 5 + day - 1;
    Some(i64::from(days) - EPOCH_FROM_MARCH)
}

/// Year, month and day of a day number; years outside 0001 to 9999 are what arithmetic gives.
pub fn date_from_days(days: i64) -> (i64, u32, u32) {
    let days = days.saturating_add(EPOCH_FROM_MARCH);
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * march_month + 2) / 5 + 1) as u32;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_day_of_ten_thousand_years_goes_there_and_back() {
        let mut expected = *DATE_DAYS.start();
        for year in 1..=9999 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    assert_eq!(days_from_date(year, month, day), Some(expected));
                    if day == 1 || day >= 28 {
                        assert_eq!(date_from_days(expected), (i64::from(year), month, day));
                    }
                    expected += 1;
                }
                assert_eq!(days_from_date(year, month, days_in_month(year, month) + 1), None);
            }
        }
        assert_eq!(expected, DATE_DAYS.end() + 1);
        assert_eq!(days_from_date(1970, 1, 1), Some(0));
    }

    #[test]
    fn days_that_do_not_exist_are_none() {
        for (y, m, d) in [(0, 1, 1), (10_000, 1, 1), (2023, 2, 29), (1900, 2, 29), (2024, 13, 1)] {
            assert_eq!(days_from_date(y, m, d), None, "{y}-{m}-{d}");
        }
        for (y, m, d) in [(2024, 0, 1), (2024, 1, 0), (2024, 99, 1), (2024, 4, 31)] {
            assert_eq!(days_from_date(y, m, d), None, "{y}-{m}-{d}");
        }
        assert!(days_from_date(2000, 2, 29).is_some());
    }

    #[test]
    fn extreme_day_numbers_do_not_panic() {
        for days in [i64::MIN, i64::MAX, 0, -1] {
            date_from_days(days);
        }
    }
}
