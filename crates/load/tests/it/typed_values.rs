//! Values of typed inputs, each made of a number, and their texts as CSV has them.

use crate::text::Random;

/// NULL in that text.
pub const NULL: &str = "\\N";

/// A column of some rows: for each a seed of its value, or NULL.
pub type Seeds = Vec<Option<u32>>;

pub fn seeds(rows: usize, random: &mut Random) -> Seeds {
    // Some are without NULL, and some have nothing else.
    let nulls = random.of(&[0, 3, 3, 10]);
    (0..rows).map(|_| (random.below(10) >= nulls).then(|| random.below(1 << 20) as u32)).collect()
}

pub fn small(seed: u32) -> i64 {
    i64::from(seed % 70_000) - 35_000
}

/// A text that may look like a value of another type.
pub fn word(seed: u32) -> String {
    match seed % 7 {
        0 => String::new(),
        1 => (seed % 100).to_string(),
        2 => format!("{}.50", seed % 1000),
        3 => "2024-02-29".to_owned(),
        4 => format!("say \"é\", {seed}"),
        5 => "true".to_owned(),
        _ => "x".repeat((seed % 40) as usize),
    }
}

pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A number of thousandths, with its point.
pub fn thousandths(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", value.abs() / 1000, value.abs() % 1000)
}

/// Microseconds of a day, of which [`clock`] is the text.
pub fn micros(seed: u32) -> i64 {
    i64::from(seed % 86_400) * 1_000_000 + i64::from(seed % 2) * 1000
}

pub fn clock(seed: u32) -> String {
    let day = seed % 86_400;
    let fraction = if seed % 2 == 1 { ".001" } else { "" };
    format!("{:02}:{:02}:{:02}{fraction}", day / 3600, day / 60 % 60, day % 60)
}

/// Days since 1970, of which [`date`] is the text.
pub fn days(seed: u32) -> i32 {
    (seed % 28) as i32
}

pub fn date(seed: u32) -> String {
    format!("1970-01-{:02}", seed % 28 + 1)
}

pub fn uuid(seed: u32) -> String {
    format!("00000000-0000-0000-0000-0000{seed:08x}")
}
