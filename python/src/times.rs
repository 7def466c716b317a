//! Times as numbers.

/// Microseconds of a second.
pub const SECOND_MICROS: i64 = 1_000_000;
/// Microseconds of a day.
pub const DAY_MICROS: i64 = 86_400 * SECOND_MICROS;
/// What `date.toordinal` says of 1970-01-01.
pub const ORDINAL_OF_1970: i64 = 719_163;
