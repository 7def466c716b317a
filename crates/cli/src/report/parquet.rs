//! What a load into Parquet files tells.

use std::fmt::Write;

use coload::{Dialect, ParquetReport};
use serde_json::{Value, json};

use super::{
    FILES_SHOWN_MAX, JsonReport, Side, align, column_json, columns_table, counted, cpu_line,
    dialect_json, files_table, kind_json, kinds_list, mended, rate, reject_json, show_seconds,
    steps_json, widened, widened_json,
};
use crate::size::{show_bytes, show_count};

/// As text.
pub fn parquet_text(report: &ParquetReport) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "loaded {} rows into {} in {} s: {}, {} MB/s (load {})\n",
        show_count(report.rows()),
        report.folder.display(),
        show_seconds(report.wall),
        show_bytes(report.bytes_read()),
        show_count(rate(report.bytes_read(), report.wall.as_secs_f64()).round() as u64),
        report.id,
    );
    out.push_str(&files_table(&report.files));
    out.push('\n');
    out.push_str(&columns_table(&report.columns));
    out.push('\n');
    out.push_str(&written_table(report));
    let _ = writeln!(
        out,
        "\nwrote {} in {} of {}, {:.1} times smaller than the input",
        show_bytes(report.bytes_written()),
        counted(report.written.len(), "file"),
        counted(report.row_groups(), "row group"),
        report.bytes_read() as f64 / report.bytes_written().max(1) as f64,
    );
    if !report.removed.is_empty() {
        let _ = writeln!(out, "removed {} before", counted(report.removed.len(), "file of loads"));
    }
    out.push_str(&cpu_line(report.cpu, &report.steps, report.peak_memory));
    out.push_str(&widened(&report.widened));
    out.push_str(&mended(&report.files));
    out.push_str(&kinds_list(&report.reject_kinds));
    out
}

fn written_table(report: &ParquetReport) -> String {
    let mut lines = vec![["written", "rows", "row groups", "bytes"].map(str::to_owned).to_vec()];
    for file in report.written.iter().take(FILES_SHOWN_MAX) {
        lines.push(vec![
            file.name.clone(),
            show_count(file.rows),
            show_count(file.row_groups as u64),
            show_bytes(file.bytes),
        ]);
    }
    let left_out = report.written.len().saturating_sub(FILES_SHOWN_MAX);
    if left_out > 0 {
        lines.push(vec![format!("and {left_out} more")]);
    }
    align(&lines, &[Side::Left, Side::Right, Side::Right, Side::Right])
}

/// As JSON; docs/loading.md lists the fields.
pub fn parquet_json<'a>(report: &'a ParquetReport, dialect: Option<&Dialect>) -> JsonReport<'a> {
    let seconds = report.wall.as_secs_f64();
    let written = report.written.iter().map(|file| {
        json!({
            "name": file.name, "rows": file.rows, "row_groups": file.row_groups, "bytes": file.bytes,
        })
    });
    let json = json!({
        "load_id": report.id.to_string(),
        "directory": report.folder.to_string_lossy(),
        "records": report.rows() + report.reject_count() + report.filtered(),
        "rows": report.rows(),
        "rejects": report.reject_count(),
        "filtered": report.filtered(),
        "bytes_read": report.bytes_read(),
        "bytes_stored": report.bytes_written(),
        "written": written.collect::<Vec<Value>>(),
        "removed": report.removed,
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
        "dialect": dialect_json(dialect),
    });
    JsonReport::new(json, &report.files)
}
