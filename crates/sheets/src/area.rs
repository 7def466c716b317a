//! Cells by their names, and areas of them.

use std::fmt;

use coload_types::{Error, Result};

/// Rows that a sheet may have.
pub const ROWS_MAX: u32 = 1 << 20;
/// Columns that a sheet may have.
pub const COLUMNS_MAX: u32 = 1 << 14;

/// Rows and columns of a sheet, counted from 1, first and last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Area {
    /// First and last row.
    pub rows: (u32, u32),
    /// First and last column; A is 1.
    pub columns: (u32, u32),
}

impl Area {
    /// All cells of a sheet.
    pub const ALL: Area = Area { rows: (1, ROWS_MAX), columns: (1, COLUMNS_MAX) };

    /// What `--range` says: `A1:F200`, columns such as `A:F`, rows such as `2:200`, or `B3:F` for what follows.
    ///
    /// # Errors
    /// `Invalid` that says what it may be.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::Invalid(format!(
                "--range {text}: give cells such as A1:F200, columns such as A:F, rows such as 2:200, or B3:F for what is below"
            ))
        };
        let plain = text.trim().replace('$', "");
        let (first, last) = plain.split_once(':').unwrap_or((&plain, &plain));
        let (first_column, first_row) = corner(first).ok_or_else(wrong)?;
        let (last_column, last_row) = corner(last).ok_or_else(wrong)?;
        let is_open = first_column.is_none() && last_column.is_some()
            || first_row.is_none() && last_row.is_some()
            || first_column.is_some() && last_column.is_none();
        let area = Area {
            rows: (first_row.unwrap_or(1), last_row.unwrap_or(ROWS_MAX)),
            columns: (first_column.unwrap_or(1), last_column.unwrap_or(COLUMNS_MAX)),
        };
        let in_order = area.rows.0 <= area.rows.1 && area.columns.0 <= area.columns.1;
        if is_open || !in_order { Err(wrong()) } else { Ok(area) }
    }

    /// Columns of the area.
    pub fn width(&self) -> u32 {
        self.columns.1 - self.columns.0 + 1
    }

    /// Whether a cell is within.
    pub fn has(&self, row: u32, column: u32) -> bool {
        (self.rows.0..=self.rows.1).contains(&row)
            && (self.columns.0..=self.columns.1).contains(&column)
    }

    /// What both have.
    pub fn and(&self, other: &Area) -> Option<Area> {
        let of = |a: (u32, u32), b: (u32, u32)| (a.0.max(b.0), a.1.min(b.1));
        let (rows, columns) = (of(self.rows, other.rows), of(self.columns, other.columns));
        (rows.0 <= rows.1 && columns.0 <= columns.1).then_some(Area { rows, columns })
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = cell_name(self.rows.0, self.columns.0);
        write!(f, "{first}:{}", cell_name(self.rows.1, self.columns.1))
    }
}

/// Column and row of a corner; one of them may be left out.
fn corner(text: &str) -> Option<(Option<u32>, Option<u32>)> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (column, row) = text.split_at(letters);
    let column = if column.is_empty() { None } else { Some(column_number(column.as_bytes())?) };
    let row = if row.is_empty() { None } else { Some(row_number(row.as_bytes())?) };
    (column.is_some() || row.is_some()).then_some((column, row))
}

fn column_number(letters: &[u8]) -> Option<u32> {
    let digit = |byte: &u8| u32::from(byte.to_ascii_uppercase() - b'A') + 1;
    let fits = letters.len() <= 3 && letters.iter().all(u8::is_ascii_alphabetic);
    let number = fits.then(|| letters.iter().fold(0, |sum, byte| sum * 26 + digit(byte)))?;
    (1..=COLUMNS_MAX).contains(&number).then_some(number)
}

/// The number of a row as a book writes it.
pub fn row_number(digits: &[u8]) -> Option<u32> {
    let fits = digits.len() <= 7 && digits.iter().all(u8::is_ascii_digit);
    let number =
        fits.then(|| digits.iter().fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0')))?;
    (1..=ROWS_MAX).contains(&number).then_some(number)
}

/// Row and column of a cell such as `C17`.
pub fn cell_at(name: &[u8]) -> Option<(u32, u32)> {
    let letters = name.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    Some((row_number(&name[letters..])?, column_number(&name[..letters])?))
}

/// The name of a cell: `C17` of row 17 and column 3.
pub fn cell_name(row: u32, column: u32) -> String {
    let (mut letters, mut left) = (Vec::new(), column);
    while left > 0 {
        letters.push(b'A' + ((left - 1) % 26) as u8);
        left = (left - 1) / 26;
    }
    letters.reverse();
    format!("{}{row}", String::from_utf8_lossy(&letters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_names() {
        for (name, row, column) in
            [("A1", 1, 1), ("Z9", 9, 26), ("AA10", 10, 27), ("XFD1048576", ROWS_MAX, COLUMNS_MAX)]
        {
            assert_eq!(cell_at(name.as_bytes()), Some((row, column)));
            assert_eq!(cell_name(row, column), name);
        }
        for wrong in ["", "A", "1", "A0", "XFE1", "A1048577", "A-1", "1A", "AAAA1", "A1B"] {
            assert_eq!(cell_at(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn areas_are_what_a_flag_says() {
        for (text, shown) in [
            ("A1:F200", "A1:F200"),
            ("$b$2:c3", "B2:C3"),
            ("A:F", "A1:F1048576"),
            ("2:200", "A2:XFD200"),
            ("B3:F", "B3:F1048576"),
            ("C5", "C5:C5"),
        ] {
            assert_eq!(
                Area::parse(text).map(|area| area.to_string()).as_deref(),
                Ok(shown),
                "{text}"
            );
        }
        for wrong in
            ["", ":", "A1:", "F1:A1", "A9:B2", "A:F9", "A1:9", "3:B4", "A1:B2:C3", "Sheet1!A1"]
        {
            assert!(Area::parse(wrong).is_err(), "{wrong}");
        }
    }
}
