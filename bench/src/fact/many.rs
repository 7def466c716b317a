//! The columns of many values.

use std::io::Write;

use crate::warehouse::random::Random;
use crate::warehouse::values::date;
use crate::warehouse::words::{Comments, NAMES, THINGS};

/// A column of many values.
#[derive(Clone, Copy)]
pub enum Many {
    RowId,
    Invoice,
    Uuid,
    Hash,
    Email,
    Timestamp,
    Amount,
    Number,
    Comment,
}

/// 2020-01-01, and the days from then on that changes are of.
const FIRST_DAY: i32 = 18_262;
const DAYS: u32 = 2_000;

/// Nothing in a tenth of the rows, else 3 to 14 words.
const COMMENTS: Comments = Comments { empty_permille: 100, lengths: 12, names: THINGS };

/// Appends one field of a column of many values; the row and `random` determine it.
pub fn write(which: Many, row: u64, random: &mut Random, buffer: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = match which {
        Many::RowId => write!(buffer, "{}", 7_000_000_000 + row),
        Many::Invoice => {
            let year = 2018 + random.below(8);
            write!(buffer, "INV-{year}-{:09}", random.below(900_000_000))
        }
        Many::Uuid => uuid(random, buffer),
        Many::Hash => {
            let (a, b, c) = (random.bits(), random.bits(), random.bits() as u32);
            write!(buffer, "{a:016x}{b:016x}{c:08x}")
        }
        Many::Email => email(random, buffer),
        Many::Timestamp => timestamp(random, buffer),
        Many::Amount => {
            let cents = (random.normal() * 1.6 + 9.5).exp() as u64;
            write!(buffer, "{}.{:02}", cents / 100, cents % 100)
        }
        Many::Number => write!(buffer, "{}", random.bits() >> 20),
        Many::Comment => COMMENTS.write(random, buffer),
    };
}

fn uuid(random: &mut Random, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    let (high, low) = (random.bits(), random.bits());
    let version = high & 0x0fff | 0x4000;
    let variant = low >> 48 & 0x3fff | 0x8000;
    let (first, second, last) = (high >> 32, high >> 16 & 0xffff, low & 0xffff_ffff_ffff);
    write!(buffer, "{first:08x}-{second:04x}-{version:04x}-{variant:04x}-{last:012x}")
}

fn email(random: &mut Random, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    for part in 0..2 {
        let name = random.pick(NAMES);
        buffer.extend(name.bytes().filter(u8::is_ascii_alphabetic).map(|b| b.to_ascii_lowercase()));
        buffer.extend(if part == 0 { &b"."[..] } else { b"" });
    }
    let domain = ["example.com", "mail.example.org", "example.net", "corp.example.eu"];
    write!(buffer, "{}@{}", random.below(10_000), domain[random.below(4) as usize])
}

fn timestamp(random: &mut Random, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    let day = date(FIRST_DAY + random.below(DAYS) as i32);
    let second = random.below(86_400);
    write!(buffer, "{day} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}
