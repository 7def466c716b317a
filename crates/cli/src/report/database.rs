//! How a database took the rows of a load, for people and for programs.

use std::fmt::Write;

use coload::{DatabaseReport, LoadReport, SentBy};
use serde_json::{Value, json};

use crate::report::counted;
use crate::size::{show_bytes, show_count};

/// What was sent, and how.
pub fn database_lines(report: &DatabaseReport) -> String {
    let DatabaseReport { server, sent, guarantee, committed_before, refused, .. } = report;
    let SentBy { method, connections, batch_rows, bytes } = sent;
    let batches = match batch_rows {
        0 => String::new(),
        rows => format!(", {} a statement", counted(*rows, "row")),
    };
    let mut out = format!(
        "{server}: {method}, {}{batches}, {} sent; {guarantee}\n",
        counted(*connections, "connection"),
        show_bytes(*bytes)
    );
    // Writing to a String cannot fail.
    if *committed_before > 0 {
        let _ = writeln!(
            out,
            "{} rows were committed by an earlier attempt, and not sent again",
            show_count(*committed_before)
        );
    }
    if *refused > 0 {
        let _ = writeln!(out, "the server refused {} rows", show_count(*refused));
    }
    out
}

/// What was chosen, and why; nothing if the load was into no database.
pub fn database_explanation(report: &LoadReport) -> String {
    let because = report.database.iter().flat_map(|database| &database.because);
    because.map(|line| format!("{line}\n")).collect()
}

/// The same, as JSON.
pub fn database_json(report: &DatabaseReport) -> Value {
    let DatabaseReport { server, sent, because, guarantee, committed_before, refused } = report;
    json!({ "database": {
        "server": server, "method": sent.method, "connections": sent.connections,
        "batch_rows": sent.batch_rows, "bytes_sent": sent.bytes, "because": because,
        "guarantee": guarantee, "rows_committed_before": committed_before, "rows_refused": refused,
    } })
}
