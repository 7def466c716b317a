//! `coload verify`.

use std::fmt::Write;
use std::sync::Arc;

use coload::Error;
use coload_store::{
    Damage, LostRows, Repaired, RestoredRows, VerifyOptions, VerifyReport, repair, verify,
};
use serde_json::{Value, json};

use crate::args::{ReportForm, VerifyArgs};
use crate::output::{Done, Failure, print};
use crate::progress::ProgressBar;
use crate::size::{show_bytes, show_count};

/// Says what is wrong with a store, and repairs it if told to.
///
/// # Errors
/// `Failed` when something is wrong, repaired or not, or the store cannot be read.
pub fn run(args: &VerifyArgs) -> Done {
    if args.to_version.is_some() && !args.repair {
        let text = "--to-version is of use with --repair only";
        return Err(Failure::Usage(Error::Invalid(text.to_owned())));
    }
    let bar = ProgressBar::on_terminal();
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let shown = bar.clone();
    let progress: coload_store::VerifyProgress =
        Arc::new(move |done, total| shown.show_bytes(done, total));
    let options = VerifyOptions { threads, progress: Some(progress) };
    let verified = match args.repair {
        true => repair(&args.store, &options, args.to_version),
        false => verify(&args.store, &options),
    };
    bar.clear();
    let report = verified?;
    print(&match args.report {
        ReportForm::Text => text(&report),
        ReportForm::Json => format!("{:#}\n", json_report(&report)),
    })?;
    match (report.damages.len(), &report.repaired) {
        (0, _) => Ok(()),
        (count, Some(_)) => Err(Failure::Failed(Error::Corrupt(format!(
            "{count} files of {} were damaged, and were set aside",
            args.store.display()
        )))),
        (count, None) => Err(Failure::Failed(Error::Corrupt(format!(
            "{count} files of {} are damaged (coload verify {} --repair sets them aside, and says which rows are lost; \
             where there is a copy of a file, put it in its place instead)",
            args.store.display(),
            args.store.display()
        )))),
    }
}

fn text(report: &VerifyReport) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "read {} tables, {} segments, {} pages, {} rows, {}, {} journals{}",
        report.tables,
        show_count(report.segments as u64),
        show_count(report.pages),
        show_count(report.rows),
        show_bytes(report.bytes),
        report.journals,
        report.version.map_or_else(String::new, |version| format!(" of version {version}")),
    );
    if report.version != report.newest
        && let Some(newest) = report.newest
    {
        let _ = match report.version {
            Some(version) => writeln!(
                out,
                "the newest version, {newest}, cannot be read; version {version} can (--repair --to-version {version})"
            ),
            None => writeln!(out, "the newest version, {newest}, cannot be read, and no other can"),
        };
    }
    for Damage { part, what, table, rows, .. } in &report.damages {
        let of = table.as_ref().map_or_else(String::new, |table| format!(" of table {table}"));
        let rows = match rows {
            0 => String::new(),
            rows => format!(" ({} rows)", show_count(*rows)),
        };
        let _ = writeln!(out, "damaged {part}{of}{rows}: {what}");
    }
    for note in &report.notes {
        let _ = writeln!(out, "note: {note}");
    }
    if let Some(repaired) = &report.repaired {
        repaired_text(repaired, &mut out);
    } else if report.damages.is_empty() {
        let _ = writeln!(out, "nothing is wrong");
    }
    out
}

fn repaired_text(repaired: &Repaired, out: &mut String) {
    for path in &repaired.moved {
        let _ = writeln!(out, "set aside: {} is in {}", path.display(), repaired.folder.display());
    }
    for lost in &repaired.lost {
        let _ = writeln!(out, "lost: {}", lost_text(lost));
    }
    for RestoredRows { table, segment, rows } in &repaired.restored {
        let _ = writeln!(
            out,
            "there again: {} rows of table {table} (segment {segment}) that had been deleted; what told so was damaged \
             (delete them again)",
            show_count(*rows)
        );
    }
    for left in &repaired.left {
        let _ = writeln!(out, "not done: {left}");
    }
    if let Some(version) = repaired.version {
        let _ = writeln!(out, "version {version} is without what was damaged");
    }
}

fn lost_text(lost: &LostRows) -> String {
    let rows = format!(
        "{} rows of table {} (segment {})",
        show_count(lost.rows),
        lost.table,
        lost.segment
    );
    match &lost.record {
        None => format!(
            "{rows}, written by {}, of which there is no record: a merge of earlier loads, or a load of long ago",
            lost.load
        ),
        Some(record) => {
            let more = match record.inputs_more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "{rows} of the {} of load {} of {}{more}{}",
                show_count(record.rows),
                record.id,
                record.inputs.join(", "),
                match record.rows == lost.rows {
                    true => ": all, so that it can be loaded again",
                    false => "",
                }
            )
        }
    }
}

fn json_report(report: &VerifyReport) -> Value {
    let damage = |damage: &Damage| {
        json!({
            "part": damage.part.to_string(), "path": damage.path.to_string_lossy(), "what": damage.what,
            "table": damage.table, "rows": damage.rows,
        })
    };
    let lost = |lost: &LostRows| {
        json!({
            "table": lost.table, "segment": lost.segment, "rows": lost.rows, "load_id": lost.load.to_string(),
            "load_rows": lost.record.as_ref().map(|record| record.rows),
            "inputs": lost.record.as_ref().map(|record| &record.inputs),
            "inputs_more": lost.record.as_ref().map(|record| record.inputs_more),
        })
    };
    let restored = |restored: &RestoredRows| json!({ "table": restored.table, "segment": restored.segment, "rows": restored.rows });
    let paths = |paths: &[std::path::PathBuf]| -> Vec<String> {
        paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    };
    let repaired = report.repaired.as_ref().map(|repaired| {
        json!({
            "version": repaired.version, "folder": repaired.folder.to_string_lossy(),
            "moved": paths(&repaired.moved), "left": repaired.left,
            "lost": repaired.lost.iter().map(lost).collect::<Vec<_>>(),
            "restored": repaired.restored.iter().map(restored).collect::<Vec<_>>(),
        })
    });
    json!({
        "version": report.version, "newest_version": report.newest, "versions": report.versions,
        "tables": report.tables, "segments": report.segments, "pages": report.pages, "rows": report.rows,
        "bytes": report.bytes, "journals": report.journals,
        "damages": report.damages.iter().map(damage).collect::<Vec<_>>(),
        "notes": report.notes, "repaired": repaired,
    })
}
