//! Days and instants of the forms that most files have.
//!
//! ```text
//!   2026-11-23 20:56:07.25       exclusive or with "0000-00-00 00:00:00.000000", zeros behind the end
//!   -> digits where digits stand, zeros where not
//!   -> year month day, hour minute second, microseconds
//! ```

use super::{FIELDS, Group, above_nine, eight_digits, own_of_head, pairs, yes_if};
use crate::calendar::{DAY_MICROS, EPOCH_FROM_MARCH};
use crate::simd_dispatch;

/// Characters of a day, of an instant with seconds, of one with microseconds.
const DAY_LENGTH: u64 = 10;
const SECOND_LENGTH: u64 = 19;
const MICRO_LENGTH: u64 = 26;

simd_dispatch! {
    /// Days since 1970-01-01, of `YYYY-MM-DD`.
    pub(super) fn days(group: &mut Group) = days_inner;
}

#[inline(always)]
fn days_inner(group: &mut Group) {
    let [head, middle, ..] = &group.words;
    for i in 0..FIELDS {
        let middle = (middle[i] ^ word(b"00 00:00")) & 0xffff;
        let (days, bad) = day(head[i] ^ word(b"0000-00-"), middle);
        group.values[i] = days;
        group.read[i] = yes_if(bad == 0) & yes_if(group.lengths[i] == DAY_LENGTH);
    }
}

simd_dispatch! {
    /// Microseconds since 1970-01-01, of `YYYY-MM-DD[( |T)HH:MM:SS[.f]]`.
    pub(super) fn instants(group: &mut Group) = instants_inner;
}

#[inline(always)]
fn instants_inner(group: &mut Group) {
    // The place of the space, and what a T is there.
    const SPACE: u64 = 0xff << 16;
    const T: u64 = ((b' ' ^ b'T') as u64) << 16;
    let [head, middle, late, last] = &group.words;
    for i in 0..FIELDS {
        let length = group.lengths[i];
        let middle = middle[i] ^ word(b"00 00:00");
        let middle = middle ^ if middle & SPACE == T { T } else { 0 };
        let middle = own_of_head(middle, length, 8);
        let late = own_of_head(late[i] ^ word(b":00.0000"), length, 16);
        let last = own_of_head(last[i] ^ word(b"00000000"), length, 24);
        let separators = middle & 0x0000_ff00_00ff_0000 | late & 0xff00_00ff;
        let (days, no_day) = day(head[i] ^ word(b"0000-00-"), middle & 0xffff);

        // "00HHMMSS"
        let clock = middle >> 8 & 0xffff_0000
            | middle >> 16 & 0xffff_0000_0000
            | late << 40 & 0xffff_0000_0000_0000;
        let clock_pairs = pairs(clock);
        let (hour, minute) = (clock_pairs >> 16 & 0xff, clock_pairs >> 32 & 0xff);
        let second = clock_pairs >> 48 & 0xff;
        let no_time = u64::from(hour > 23) | u64::from(minute > 59) | u64::from(second > 59);
        let seconds = hour * 3600 + minute * 60 + second;
        // "00ffffff"
        let micros = eight_digits(late >> 32 << 16 | last << 48);
        let of_day = (seconds & 0x1_ffff) * 1_000_000 + micros;
        let bad = above_nine(middle)
            | above_nine(late)
            | above_nine(last)
            | separators
            | no_day
            | no_time;
        group.values[i] = days.wrapping_mul(DAY_MICROS as u64).wrapping_add(of_day);
        let is_length = yes_if(length == DAY_LENGTH)
            | yes_if(length == SECOND_LENGTH)
            | yes_if(length > SECOND_LENGTH + 1) & yes_if(length <= MICRO_LENGTH);
        group.read[i] = yes_if(bad == 0) & is_length;
    }
}

/// Eight characters, the first lowest.
const fn word(text: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*text)
}

/// The day of `YYYY-MM-` and `DD`, and something but zero if there is none such.
#[inline(always)]
fn day(head: u64, day: u64) -> (u64, u64) {
    // "YYYYMMDD"
    let digits = head & 0xffff_ffff | head >> 8 & 0xffff_0000_0000 | day << 48;
    let separators = head & 0xff00_00ff_0000_0000;
    let pairs = pairs(digits);
    let year = (pairs & 0xff) * 100 + (pairs >> 16 & 0xff);
    let (month, day) = (pairs >> 32 & 0xff, pairs >> 48 & 0xff);

    // Right for years of four digits.
    let century = ((year & 0x3fff) * 5243) >> 19;
    let is_century = (century & 0x7f) * 100 == year;
    // Divisible by 100 and by 16 is divisible by 400.
    let is_leap = year & 3 == 0 && (!is_century || year & 15 == 0);
    // 31 and 30 by turns, from January on and from August on.
    let length =
        if month == 2 { 28 + u64::from(is_leap) } else { 30 + ((month ^ (month >> 3)) & 1) };
    let none = u64::from(year == 0)
        | u64::from(month == 0)
        | u64::from(month > 12)
        | u64::from(day == 0)
        | u64::from(day > length);

    // The year starts in March.
    let early = u64::from(month < 3);
    let (year, month) = (year.wrapping_sub(early), month + 12 * early - 3);
    let century = ((year & 0x3fff) * 5243) >> 19;
    let of_years = (((year & 0x3fff) * 1461) >> 2) - century + (century >> 2);
    let of_months = (month.wrapping_mul(153) & 0xffff) + 2;
    // A division by 5, right below 2^16.
    let of_months = (of_months * 52_429) >> 18;
    let days = of_years + of_months + day;
    (days.wrapping_sub(EPOCH_FROM_MARCH as u64 + 1), above_nine(digits) | separators | none)
}
