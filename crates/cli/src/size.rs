//! Sizes in bytes, as flags take them and as reports show them.

/// Units by name, longest names first; without `i` a unit is decimal.
const UNITS: [(&str, f64); 13] = [
    ("tib", (1u64 << 40) as f64),
    ("gib", (1u64 << 30) as f64),
    ("mib", (1u64 << 20) as f64),
    ("kib", (1u64 << 10) as f64),
    ("tb", 1e12),
    ("gb", 1e9),
    ("mb", 1e6),
    ("kb", 1e3),
    ("t", (1u64 << 40) as f64),
    ("g", (1u64 << 30) as f64),
    ("m", (1u64 << 20) as f64),
    ("k", (1u64 << 10) as f64),
    ("b", 1.0),
];
/// Largest size: beyond it a float does not hold every byte.
const BYTES_MAX: f64 = (1u64 << 53) as f64;

/// Reads `1GiB`, `512MB`, `1.5g`, `4096`. One letter counts in powers of two, as `GiB` does.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let wrong = || "expected a size such as 512MB, 1GiB or 1073741824".to_owned();
    let lower = text.trim().to_ascii_lowercase();
    let unit = UNITS.iter().find_map(|(name, factor)| Some((lower.strip_suffix(name)?, *factor)));
    let (number, factor) = unit.unwrap_or((&lower, 1.0));
    let number = number.trim();
    if !number.starts_with(|c: char| c.is_ascii_digit()) || number.contains('e') {
        return Err(wrong());
    }
    let bytes = number.parse::<f64>().map_err(|_| wrong())? * factor;
    match (1.0..=BYTES_MAX).contains(&bytes) {
        true => Ok(bytes as usize),
        false => Err(wrong()),
    }
}

/// A size for people: `1.2 MB`, decimal units.
pub fn show_bytes(bytes: u64) -> String {
    let (factor, unit) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..1_000_000 => (1e3, "kB"),
        1_000_000..1_000_000_000 => (1e6, "MB"),
        _ => (1e9, "GB"),
    };
    let number = bytes as f64 / factor;
    let digits = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
    format!("{number:.digits$} {unit}")
}

/// A count with separators between thousands: `6,001,215`.
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, bytes) in [
            ("1GiB", 1 << 30),
            ("512MB", 512_000_000),
            ("10MiB", 10 << 20),
            ("1.5k", 1536),
            ("64 kb", 64_000),
            ("4096", 4096),
            ("7b", 7),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "GiB", "-1", "0", "1e3", "inf", "nan", "1XB", "9999999TiB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_and_counts_are_shown_for_people() {
        let sizes = [999, 1_500, 12_345_678, 760_000_000, 1_330_000_000].map(show_bytes);
        assert_eq!(sizes, ["999 B", "1.50 kB", "12.3 MB", "760 MB", "1.33 GB"]);
        assert_eq!([0, 999, 1000, 6_001_215].map(show_count), ["0", "999", "1,000", "6,001,215"]);
    }
}
