//! What a dry run tells.

use std::fmt::Write;

use coload::{Dialect, DryRun};
use serde_json::{Value, json};

use super::{
    JsonReport, column_json, columns_table, dialect_json, files_table, mended, reject_json,
    rejects_list, show_seconds, steps_json, widened, widened_json,
};
use crate::size::{show_bytes, show_count};

/// Share of the inputs from which all of them was read.
const WHOLE: f64 = 0.999_999;

/// The report of a dry run as text for people; `place` is where the rows would be: in the store, or as what.
pub fn dry_run_text(run: &DryRun, place: &str) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "dry run: {} rows would go into {}, {} records would be rejected; nothing was written\n",
        show_count(run.rows()),
        run.table,
        show_count(run.reject_count()),
    );
    out.push_str(&files_table(&run.files));
    out.push('\n');
    out.push_str(&columns_table(&run.columns));
    let _ = writeln!(
        out,
        "\nthe rows would take {} {place}; this took {} s of time and {} s of CPU",
        show_bytes(run.bytes_stored),
        show_seconds(run.wall),
        show_seconds(run.cpu),
    );
    if run.share < WHOLE {
        let _ = writeln!(
            out,
            "{:.2} % of the input was read; all of it would be about {} rows, {} {place}, {:.1} s",
            run.share * 100.0,
            show_count(run.of_all(run.rows() as f64) as u64),
            show_bytes(run.of_all(run.bytes_stored as f64) as u64),
            run.of_all(run.wall.as_secs_f64()),
        );
    }
    out.push_str(&widened(&run.widened));
    out.push_str(&mended(&run.files));
    out.push_str(&rejects_list(&run.rejects));
    out
}

/// As JSON; docs/loading.md lists the fields.
pub fn dry_run_json<'a>(run: &'a DryRun, dialect: Option<&Dialect>) -> JsonReport<'a> {
    let columns: Vec<Value> = run
        .columns
        .iter()
        .map(|column| {
            let mut json = column_json(column);
            json["estimated_bytes"] = json!(run.of_all(column.bytes as f64).round());
            json
        })
        .collect();
    let json = json!({
        "dry_run": true,
        "table": run.table,
        "records": run.rows() + run.reject_count() + run.filtered(),
        "rows": run.rows(),
        "rejects": run.reject_count(),
        "filtered": run.filtered(),
        "bytes_read": run.files.bytes(),
        "bytes_stored": run.bytes_stored,
        "share_read": run.share,
        "estimated_rows": run.of_all(run.rows() as f64).round(),
        "estimated_bytes_stored": run.of_all(run.bytes_stored as f64).round(),
        "estimated_wall_s": run.of_all(run.wall.as_secs_f64()),
        "wall_s": run.wall.as_secs_f64(),
        "cpu_s": run.cpu.as_secs_f64(),
        "cpu_by_step_s": steps_json(&run.steps),
        "peak_memory_bytes": run.peak_memory,
        "columns": columns,
        "first_rejects": run.rejects.iter().map(reject_json).collect::<Vec<_>>(),
        "widened": run.widened.iter().map(widened_json).collect::<Vec<_>>(),
        "dialect": dialect_json(dialect),
    });
    JsonReport::new(json, &run.files)
}
