//! The report of a load, for people and for programs: one for all destinations, with what only some can tell.

mod database;
mod json;
mod network;
mod notes;
mod tables;

use std::fmt::Write;

use coload::{DryRun, KeyCounts, LoadReport, Merged, WrittenFiles};

use crate::size::{show_bytes, show_count};
use coload_wire::{SharesDone, show_numbers};
use notes::{kinds_list, mended, rejects_list, widened};
use tables::{FILES_SHOWN_MAX, files_table, rate, show_seconds};

pub use database::database_explanation;
pub use json::{JSON_OF_NOTHING, dialect_json, json};
pub use network::explanation;
pub use tables::{Side, align, columns_table, counted};

/// Share of the inputs from which all of them was read.
const WHOLE: f64 = 0.999_999;

/// The report as text.
pub fn text(report: &LoadReport) -> String {
    let mut out = headline(report);
    if let Some(shares) = &report.shares {
        out.push_str(&shares_line(report, shares));
    }
    if report.earlier.is_some() {
        return out;
    }
    match (&report.network, &report.database) {
        (Some(network), _) => out.push_str(&network::network_lines(report, network)),
        (None, Some(database)) => {
            out.push('\n');
            out.push_str(&files_table(&report.files));
            out.push('\n');
            out.push_str(&database::database_lines(database));
            out.push_str(&cpu_line(report));
        }
        (None, None) => {
            out.push('\n');
            out.push_str(&files_table(&report.files));
            out.push('\n');
            out.push_str(&columns_table(&report.columns));
            out.push('\n');
            out.push_str(&match (&report.dry_run, &report.written) {
                (Some(run), _) => dry_run_lines(report, run),
                (None, Some(written)) => written_lines(report, written) + &cpu_line(report),
                (None, None) => stored_line(report) + &cpu_line(report),
            });
        }
    }
    if report.known_rows > 0 {
        let rows = show_count(report.known_rows);
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{rows} rows were loaded by an earlier attempt, and not read again");
    }
    out.push_str(&sorted(report));
    out.push_str(&keys(report));
    out.push_str(&merge(report));
    out.push_str(&widened(&report.widened));
    if report.network.is_none() {
        out.push_str(&mended(&report.files));
    }
    out.push_str(&match report.reject_kinds.is_empty() {
        true => rejects_list(&report.rejects),
        false => kinds_list(&report.reject_kinds),
    });
    for beside in &report.beside {
        out.push('\n');
        out.push_str(&text(beside));
    }
    out
}

/// How many rows went where, and how fast.
fn headline(report: &LoadReport) -> String {
    let (rows, rejects) = (show_count(report.rows()), show_count(report.reject_count()));
    if report.dry_run.is_some() {
        return format!(
            "dry run: {rows} rows would go into {}, {rejects} records would be rejected; nothing was written\n",
            report.table
        );
    }
    let version = report.published.as_ref().map(|shown| format!("version {}", shown.version));
    let id = report.id.map(|id| format!("load {id}"));
    let names: Vec<String> = version.into_iter().chain(id).collect();
    format!(
        "{} {rows} rows into {} in {} s: {}, {} MB/s ({})\n",
        if report.earlier.is_some() { "had loaded" } else { "loaded" },
        report.table,
        show_seconds(report.wall),
        show_bytes(report.bytes_read()),
        show_count(rate(report.bytes_read(), report.wall.as_secs_f64()).round() as u64),
        names.join(", "),
    )
}

/// What became of all shares of a load.
fn shares_line(report: &LoadReport, shares: &SharesDone) -> String {
    let SharesDone { of, missing, rows, rejects, .. } = shares;
    if !missing.is_empty() {
        return format!(
            "share {} of {} is kept; nothing is visible until all are complete; missing: {}\n",
            of.number,
            of.count,
            show_numbers(missing)
        );
    }
    let version = match &report.published {
        Some(shown) => format!(" as version {}", shown.version),
        None => String::new(),
    };
    format!(
        "all {} shares of load {} are published{version}: {} rows, {} rejects\n",
        of.count,
        of.load,
        show_count(*rows),
        show_count(*rejects)
    )
}

/// What the segments of a store take.
fn stored_line(report: &LoadReport) -> String {
    let segments = report.published.as_ref().map_or(0, |published| published.segments);
    format!(
        "stored {} in {} of {}, {:.1} times smaller than the input\n",
        show_bytes(report.bytes_stored),
        counted(segments as usize, "segment"),
        counted(report.partitions, "partition"),
        report.bytes_read() as f64 / report.bytes_stored.max(1) as f64,
    )
}

/// What the rows would take, of what was read and of all.
fn dry_run_lines(report: &LoadReport, run: &DryRun) -> String {
    let mut out = format!(
        "the rows would take {} {}; this took {} s of time and {} s of CPU\n",
        show_bytes(report.bytes_stored),
        run.place,
        show_seconds(report.wall),
        show_seconds(report.cpu),
    );
    if run.share < WHOLE {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{:.2} % of the input was read; all of it would be about {} rows, {} {}, {:.1} s",
            run.share * 100.0,
            show_count(run.of_all(report.rows() as f64) as u64),
            show_bytes(run.of_all(report.bytes_stored as f64) as u64),
            run.place,
            run.of_all(report.wall.as_secs_f64()),
        );
    }
    out
}

/// The Parquet files that were written, and those that they replaced.
fn written_lines(report: &LoadReport, written: &WrittenFiles) -> String {
    let mut lines = vec![["written", "rows", "row groups", "bytes"].map(str::to_owned).to_vec()];
    for file in written.files.iter().take(FILES_SHOWN_MAX) {
        lines.push(vec![
            file.name.clone(),
            show_count(file.rows),
            show_count(file.row_groups as u64),
            show_bytes(file.bytes),
        ]);
    }
    let left_out = written.files.len().saturating_sub(FILES_SHOWN_MAX);
    if left_out > 0 {
        lines.push(vec![format!("and {left_out} more")]);
    }
    let mut out = align(&lines, &[Side::Left, Side::Right, Side::Right, Side::Right]);
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "\nwrote {} in {} of {}, {:.1} times smaller than the input",
        show_bytes(report.bytes_stored),
        counted(written.files.len(), "file"),
        counted(written.row_groups(), "row group"),
        report.bytes_read() as f64 / report.bytes_stored.max(1) as f64,
    );
    if !written.removed.is_empty() {
        let _ = writeln!(out, "removed {} before", counted(written.removed.len(), "file of loads"));
    }
    out
}

/// What a load took of the machine.
fn cpu_line(report: &LoadReport) -> String {
    let steps = report.steps.iter();
    let steps: Vec<String> =
        steps.map(|(s, time)| format!("{} {}", s.name(), show_seconds(*time))).collect();
    format!(
        "CPU {} s ({}), peak memory {}\n",
        show_seconds(report.cpu),
        steps.join(", "),
        show_bytes(report.peak_memory)
    )
}

/// How rows were put in order, if runs were merged or a space is not what its name says.
fn sorted(report: &LoadReport) -> String {
    let Some(sorted) = &report.sorted else { return String::new() };
    let mut out = String::new();
    if sorted.runs > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "read and sorted in {} s ({} runs; sort buffer in {}, runs in {}), merged in {} s, inner nodes in {} s",
            show_seconds(sorted.read + sorted.sort),
            show_count(sorted.runs),
            sorted.sort_space,
            sorted.run_space,
            show_seconds(sorted.merge),
            show_seconds(sorted.nodes),
        );
    }
    sorted.notes.iter().for_each(|note| {
        let _ = writeln!(out, "{note}");
    });
    out
}

/// What became of rows whose keys were there already; nothing if all were new.
fn keys(report: &LoadReport) -> String {
    let is_told = |keys: &KeyCounts| {
        keys.replaced + keys.ignored + keys.twice + keys.rejected + keys.deleting > 0
    };
    let Some(keys) = report.keys.filter(is_told) else {
        return String::new();
    };
    let mut out = format!(
        "by their keys {} rows are new and {} replaced a row of the table",
        show_count(keys.added),
        show_count(keys.replaced)
    );
    let left_out = [
        (keys.ignored, "were left out for one of the table"),
        (keys.twice, "gave way to another record"),
        (keys.rejected, "were set aside as rejects"),
        (keys.deleting, "say that their keys go"),
        (keys.deleted, "rows of the table went by these"),
    ];
    for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
        // Writing to a String cannot fail.
        let _ = write!(out, ", {} {what}", show_count(count));
    }
    out + "\n"
}

/// What was merged after the load; nothing if there was nothing to merge.
fn merge(report: &LoadReport) -> String {
    match report.published.as_ref().map(|published| &published.merge) {
        None => String::new(),
        Some(Merged::Here(Ok(merge))) if merge.merges == 0 => String::new(),
        Some(Merged::AtServer(told)) if told.is_empty() => String::new(),
        Some(Merged::AtServer(told)) => format!("then {told}\n"),
        Some(Merged::Here(Ok(merge))) => format!(
            "then merged small segments of the table: {} became {}, {} rows, {}\n",
            show_count(merge.segments_before as u64),
            show_count(merge.segments_after as u64),
            show_count(merge.rows),
            show_bytes(merge.bytes)
        ),
        Some(Merged::Here(Err(error))) => format!(
            "the rows are loaded, but small segments of the table could not be merged: {error}\n"
        ),
    }
}
