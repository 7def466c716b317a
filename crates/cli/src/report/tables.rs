//! Tables of reports, and how their numbers are written.

use std::fmt::Write;
use std::time::Duration;

use coload::{ColumnReport, Distinct, FileReports};

use crate::size::{show_bytes, show_count};

/// Files that the text names one by one; of more it tells the sums, and those with rejects.
pub const FILES_SHOWN_MAX: usize = 20;

/// What became of each input.
pub fn files_table(files: &FileReports) -> String {
    let filtered = files.filtered() > 0;
    let line = |name: &str, bytes, counts: [u64; 4]| {
        let [records, rows, rejects, left_out] = counts.map(show_count);
        let mut line = vec![name.to_owned(), bytes, records, rows, rejects];
        line.extend(filtered.then_some(left_out));
        line
    };
    let mut head = ["file", "bytes", "records", "loaded", "rejected"].map(str::to_owned).to_vec();
    head.extend(filtered.then(|| "filtered out".to_owned()));
    let mut lines = vec![head];
    let all = files.len() <= FILES_SHOWN_MAX;
    for file in files.iter().filter(|f| all || f.rejects > 0).take(FILES_SHOWN_MAX) {
        let counts = [file.records, file.rows, file.rejects, file.filtered];
        lines.push(line(&file.name, show_bytes(file.bytes), counts));
    }
    if files.len() > 1 {
        let name = format!("{} files", files.len());
        let counts = [files.records(), files.rows(), files.rejects(), files.filtered()];
        lines.push(line(&name, show_bytes(files.bytes()), counts));
    }
    let right = Side::Right;
    align(&lines, &[Side::Left, right, right, right, right, right])
}

/// Encodings and sizes of columns.
pub fn columns_table(columns: &[ColumnReport]) -> String {
    let head = ["column", "type", "codec", "distinct", "nulls", "bits/value", "bytes"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for column in columns {
        lines.push(vec![
            column.name.clone(),
            column.data_type.to_string(),
            column.codec.clone(),
            match column.distinct {
                Distinct::Exact(count) => show_count(count),
                Distinct::AtLeast(count) => format!(">= {}", show_count(count)),
                Distinct::About(count) => format!("~{}", show_count(count)),
                Distinct::Unknown => "-".to_owned(),
            },
            show_count(column.nulls),
            format!("{:.2}", column.bits_per_value),
            show_bytes(column.bytes),
        ]);
    }
    let right = Side::Right;
    align(&lines, &[Side::Left, Side::Left, Side::Left, right, right, right, right])
}

/// Where the text of a column of a table stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// At the left, as texts stand.
    Left,
    /// At the right, as numbers stand.
    Right,
}

/// Lines of cells as a table whose columns are as wide as their widest cell.
pub fn align(lines: &[Vec<String>], sides: &[Side]) -> String {
    let width = |column: usize| {
        lines.iter().filter_map(|l| l.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..sides.len()).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let mut text = String::new();
        for ((cell, side), width) in line.iter().zip(sides).zip(&widths) {
            let space = " ".repeat(width.saturating_sub(cell.chars().count()));
            let gap = if text.is_empty() { "" } else { "  " };
            let _ = match side {
                Side::Left => write!(text, "{gap}{cell}{space}"),
                Side::Right => write!(text, "{gap}{space}{cell}"),
            };
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

/// Megabytes a second.
pub fn rate(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 / 1e6 / seconds.max(1e-9)
}

/// Seconds, with the digits that count.
pub fn show_seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let digits = if seconds < 10.0 { 3 } else { 1 };
    format!("{seconds:.digits$}")
}

/// "1 segment" or "2 segments".
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", plural(count))
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let line = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        let lines = [line("file", "rows"), line("a", "12,345")];
        assert_eq!(align(&lines, &[Side::Left, Side::Right]), "file    rows\na     12,345\n");
    }
}
