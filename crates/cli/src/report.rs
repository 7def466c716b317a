//! The report of a load, for people and for programs.

mod dry_run;
mod parquet;

use std::fmt::{self, Display, Formatter, Write};
use std::time::Duration;

use coload::{
    ColumnReport, Dialect, Distinct, FileReport, FileReports, LoadReport, Mending, Reject,
    RejectKind, Step, Widened,
};
use coload_source::{MENDED_TOLD_MAX, Mended, shorten};
use serde_json::{Value, json};

pub use dry_run::{dry_run_json, dry_run_text};
pub use parquet::{parquet_json, parquet_text};

use crate::given::flags;
use crate::size::{show_bytes, show_count};

/// Files that the text names one by one; of more it tells the sums, and those with rejects.
const FILES_SHOWN_MAX: usize = 20;

/// The report as text.
pub fn text(report: &LoadReport) -> String {
    let mut out = String::new();
    let seconds = report.wall.as_secs_f64();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "loaded {} rows into {} in {} s: {}, {} MB/s (version {}, load {})",
        show_count(report.rows()),
        report.table,
        show_seconds(report.wall),
        show_bytes(report.bytes_read()),
        show_count(rate(report.bytes_read(), seconds).round() as u64),
        report.version,
        report.id,
    );
    out.push('\n');
    out.push_str(&files_table(&report.files));
    out.push('\n');
    out.push_str(&columns_table(&report.columns));
    out.push('\n');
    let _ = writeln!(
        out,
        "stored {} in {} of {}, {:.1} times smaller than the input",
        show_bytes(report.bytes_stored),
        counted(report.segments, "segment"),
        counted(report.partitions, "partition"),
        report.bytes_read() as f64 / report.bytes_stored.max(1) as f64,
    );
    out.push_str(&cpu_line(report.cpu, &report.steps, report.peak_memory));
    out.push_str(&merge(report));
    out.push_str(&widened(&report.widened));
    out.push_str(&mended(&report.files));
    out.push_str(&kinds_list(&report.reject_kinds));
    out
}

/// What a load took of the machine.
fn cpu_line(cpu: Duration, steps: &[(Step, Duration)], peak_memory: u64) -> String {
    let step = |(s, time): &(Step, Duration)| format!("{} {}", s.name(), show_seconds(*time));
    let steps: Vec<String> = steps.iter().map(step).collect();
    format!(
        "CPU {} s ({}), peak memory {}\n",
        show_seconds(cpu),
        steps.join(", "),
        show_bytes(peak_memory)
    )
}

/// What was merged after the load; nothing if there was nothing to merge.
fn merge(report: &LoadReport) -> String {
    match &report.merge {
        Ok(merge) if merge.merges == 0 => String::new(),
        Ok(merge) => format!(
            "then merged small segments of the table: {} became {}, {} rows, {}\n",
            show_count(merge.segments_before as u64),
            show_count(merge.segments_after as u64),
            show_count(merge.rows),
            show_bytes(merge.bytes)
        ),
        Err(error) => format!(
            "the rows are loaded, but small segments of the table could not be merged: {error}\n"
        ),
    }
}

/// The report as JSON; docs/loading.md lists the fields.
pub fn json<'a>(report: &'a LoadReport, dialect: Option<&Dialect>) -> JsonReport<'a> {
    let mut json = to_json(report);
    json["dialect"] = dialect_json(dialect);
    JsonReport::new(json, &report.files)
}

/// A report as JSON, with its inputs, a line each. There may be a million of them: a tree of values takes a kilobyte for
/// each, and their lines a quarter of that, so each is made when it is written.
pub struct JsonReport<'a> {
    before: String,
    files: &'a FileReports,
    after: String,
}

impl<'a> JsonReport<'a> {
    /// The report of these inputs; `json` has what else there is to say.
    pub fn new(mut json: Value, files: &'a FileReports) -> Self {
        const EMPTY: &str = "\"files\": []";
        json["files"] = json!([]);
        let mut text = serde_json::to_string_pretty(&json).unwrap_or_default();
        text.push('\n');
        // Quotes within a text are escaped, so this is the place and no value.
        let (before, after) = match text.split_once(EMPTY) {
            Some((before, after)) => (format!("{before}\"files\": ["), format!("]{after}")),
            None => (text, String::new()),
        };
        JsonReport { before, files, after }
    }
}

impl Display for JsonReport<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(&self.before)?;
        for (number, file) in self.files.iter().enumerate() {
            out.write_str(if number == 0 { "\n    " } else { ",\n    " })?;
            out.write_str(&file_json(&file).to_string())?;
        }
        out.write_str(if self.files.is_empty() { "" } else { "\n  " })?;
        out.write_str(&self.after)
    }
}

/// The report of a load whose inputs are empty, and do not tell any columns.
pub const JSON_OF_NOTHING: &str = "{ \"table\": null, \"records\": 0, \"rows\": 0, \"rejects\": 0, \
     \"bytes_stored\": 0, \"files\": [], \"columns\": [], \"first_rejects\": [] }\n";

/// The dialect as the flags that give it; null where the inputs are no text.
pub fn dialect_json(dialect: Option<&Dialect>) -> Value {
    let Some(dialect) = dialect else { return Value::Null };
    let mut json = serde_json::Map::new();
    json.insert("header_rows".to_owned(), dialect.header_records().into());
    for (flag, value) in flags(dialect).into_iter().filter(|(flag, _)| *flag != "--header-rows") {
        let name = flag.trim_start_matches('-').replace('-', "_");
        json.entry(name)
            .and_modify(|old| *old = json!([old.clone(), value.clone()]))
            .or_insert_with(|| value.clone().into());
    }
    json.into()
}

/// How a kind of mending is named.
fn mending_name(mending: Mending) -> (&'static str, &'static str) {
    match mending {
        Mending::Padded => ("padded", "missing fields were filled (--ragged)"),
        Mending::Trimmed => ("trimmed", "empty fields too many were left out (--ragged)"),
        Mending::Truncated => ("truncated", "fields too many were left out (--ragged truncate)"),
        Mending::Requoted => ("requoted", "stray quotes were taken for text (--quotes lenient)"),
        Mending::Replaced => {
            ("replaced", "bytes that are not UTF-8 were replaced (--invalid-bytes)")
        }
    }
}

fn mended_json(mended: &Mended) -> Value {
    let counts = Mending::ALL.into_iter().filter(|m| mended.count(*m) > 0);
    let kind = |m: Mending| {
        let first = mended.first.iter().filter(|(kind, ..)| *kind == m);
        let first: Vec<Value> =
            first.map(|(_, line, byte)| json!({ "line": line, "byte": byte })).collect();
        (mending_name(m).0.to_owned(), json!({ "records": mended.count(m), "first": first }))
    };
    Value::Object(counts.map(kind).collect())
}

/// Columns whose types became wider than the sample told.
pub fn widened(columns: &[Widened]) -> String {
    let mut out = String::new();
    for Widened { column, from, to, place, value } in columns {
        let _ = writeln!(
            out,
            "\ncolumn {column} became {to}: {place} has \"{}\", which is not {from} as inferred (--columns \
             says otherwise; --sample all looks at all fields first)",
            shorten(value)
        );
    }
    out
}

/// Records that were mended: how many, and where the first are.
pub fn mended(files: &FileReports) -> String {
    let mut out = String::new();
    let count = |mending| files.mended(mending);
    for mending in Mending::ALL.into_iter().filter(|m| count(*m) > 0) {
        let first = files.with_mended().flat_map(|(name, mended)| {
            let of_kind = mended.first.iter().filter(move |(kind, ..)| *kind == mending);
            of_kind.map(move |(_, line, _)| format!("{name}:{line}"))
        });
        let first: Vec<String> = first.take(MENDED_TOLD_MAX).collect();
        let _ = writeln!(
            out,
            "\nrecords mended: {}, {}: {}{}",
            show_count(count(mending)),
            mending_name(mending).1,
            first.join(", "),
            if count(mending) > first.len() as u64 { ", ..." } else { "" }
        );
    }
    out
}

fn to_json(report: &LoadReport) -> Value {
    let seconds = report.wall.as_secs_f64();
    let merge = match &report.merge {
        Ok(merge) => json!({
            "merges": merge.merges, "segments_before": merge.segments_before,
            "segments_after": merge.segments_after, "rows": merge.rows, "bytes": merge.bytes,
        }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    json!({
        "load_id": report.id.to_string(),
        "table": report.table,
        "version": report.version,
        "records": report.rows() + report.reject_count() + report.filtered(),
        "rows": report.rows(),
        "rejects": report.reject_count(),
        "filtered": report.filtered(),
        "bytes_read": report.bytes_read(),
        "bytes_stored": report.bytes_stored,
        "segments": report.segments,
        "partitions": report.partitions,
        "wall_s": seconds,
        "mb_per_s": rate(report.bytes_read(), seconds),
        "rows_per_s": report.rows() as f64 / seconds.max(1e-9),
        "cpu_s": report.cpu.as_secs_f64(),
        "cpu_by_step_s": steps_json(&report.steps),
        "peak_memory_bytes": report.peak_memory,
        "columns": report.columns.iter().map(column_json).collect::<Vec<_>>(),
        "first_rejects": report.rejects.iter().map(reject_json).collect::<Vec<_>>(),
        "reject_kinds": report.reject_kinds.iter().map(kind_json).collect::<Vec<_>>(),
        "widened": report.widened.iter().map(widened_json).collect::<Vec<_>>(),
        "merge": merge,
    })
}

fn column_json(column: &ColumnReport) -> Value {
    let (distinct, known) = match column.distinct {
        Distinct::Exact(count) => (Some(count), "exact"),
        Distinct::AtLeast(count) => (Some(count), "at least"),
        Distinct::About(count) => (Some(count), "estimated"),
        Distinct::Unknown => (None, "unknown"),
    };
    json!({
        "name": column.name, "type": column.data_type.to_string(), "encoding": column.encoding,
        "distinct": distinct, "distinct_known": known, "nulls": column.nulls, "bytes": column.bytes,
        "bits_per_value": column.bits_per_value,
    })
}

fn steps_json(steps: &[(Step, Duration)]) -> Value {
    steps.iter().map(|(step, time)| (step.name().to_owned(), json!(time.as_secs_f64()))).collect()
}

fn reject_json(reject: &Reject) -> Value {
    let Reject { place, column, reason, .. } = reject;
    json!({
        "file": place.file, "line": place.line, "byte": place.byte, "column": column,
        "value": String::from_utf8_lossy(reject.value()), "reason": reason,
    })
}

/// A column whose type became wider, as JSON.
pub fn widened_json(widened: &Widened) -> Value {
    let Widened { column, from, to, place, value } = widened;
    json!({
        "column": column, "from": from.to_string(), "to": to.to_string(), "file": place.file,
        "line": place.line, "byte": place.byte, "value": String::from_utf8_lossy(value),
    })
}

/// What became of one input.
pub fn file_json(file: &FileReport) -> Value {
    json!({
        "name": file.name, "bytes": file.bytes, "records": file.records, "rows": file.rows,
        "rejects": file.rejects, "filtered": file.filtered, "mended": mended_json(&file.mended),
    })
}

fn files_table(files: &FileReports) -> String {
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
    let head = ["column", "type", "encoding", "distinct", "nulls", "bits/value", "bytes"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for column in columns {
        lines.push(vec![
            column.name.clone(),
            column.data_type.to_string(),
            column.encoding.clone(),
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

/// Rejects by kind, with the first of each.
fn kinds_list(kinds: &[RejectKind]) -> String {
    let mut out = String::new();
    if kinds.is_empty() {
        return out;
    }
    let count: u64 = kinds.iter().map(|kind| kind.count).sum();
    let s = if kinds.len() == 1 { "" } else { "s" };
    let _ = writeln!(out, "\nrejected records: {} of {} kind{s}", show_count(count), kinds.len());
    for RejectKind { column, reason, advice, count, first } in kinds {
        let column = column.as_ref().map_or(String::new(), |name| format!("column {name}; "));
        let _ = writeln!(out, "  {}: {reason} ({column}try {advice})", show_count(*count));
        for (place, value) in first {
            let value = match place.field {
                0 => String::new(),
                _ => format!(" \"{}\"", shorten(value)),
            };
            let _ = writeln!(out, "    {place}{value}");
        }
        if *count > first.len() as u64 && !first.is_empty() {
            out.push_str("    ...\n");
        }
    }
    out
}

fn kind_json(kind: &RejectKind) -> Value {
    let first = kind.first.iter().map(|(place, value)| {
        json!({
            "file": place.file, "line": place.line, "byte": place.byte,
            "value": String::from_utf8_lossy(value),
        })
    });
    json!({
        "column": kind.column, "reason": kind.reason, "advice": kind.advice, "count": kind.count,
        "first": first.collect::<Vec<_>>(),
    })
}

/// The first rejects, a line each.
pub fn rejects_list(rejects: &[Reject]) -> String {
    let mut out = String::new();
    if rejects.is_empty() {
        return out;
    }
    let _ = writeln!(out, "\nrejected records, the first {}:", rejects.len());
    for reject in rejects {
        let _ = writeln!(out, "  {}", reject.to_error());
    }
    out
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

fn rate(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 / 1e6 / seconds.max(1e-9)
}

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
