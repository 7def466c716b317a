//! How a database took the rows of a load, for people and for programs.

use std::fmt::Write;

use coload::{DatabaseReport, LoadReport, SendChange, SendEstimate, SentBy};
use serde_json::{Value, json};

use crate::report::{Side, align, counted};
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

/// What was chosen, and why; the table of estimates, and what changed. Nothing if the load was into no database.
pub fn database_explanation(report: &LoadReport) -> String {
    let Some(DatabaseReport { because, estimates, changes, .. }) = &report.database else {
        return String::new();
    };
    let mut out: String = because.iter().map(|line| format!("{line}\n")).collect();
    if !estimates.is_empty() {
        out.push('\n');
        out.push_str(&estimates_table(estimates));
        out.push('\n');
    }
    for SendChange { after, connections, why } in changes {
        let connections = counted(*connections, "connection");
        // Writing to a String cannot fail.
        let _ = writeln!(out, "after {:.1} s: {connections}, for {why}", after.as_secs_f64());
    }
    out
}

/// A line for each method and number of rows a statement, with the time over each number of connections.
fn estimates_table(estimates: &[SendEstimate]) -> String {
    let mut numbers: Vec<usize> = estimates.iter().map(|e| e.connections).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut head = vec!["estimated ms".to_owned(), "rows a statement".to_owned()];
    head.extend(numbers.iter().map(|number| counted(*number, "connection")));
    let mut lines = vec![head];
    let mut ways: Vec<(&str, usize)> = Vec::new();
    for estimate in estimates {
        let way = (estimate.method.as_str(), estimate.batch_rows);
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    for (method, batch_rows) in ways {
        let mut line = vec![
            method.to_owned(),
            if batch_rows > 0 { batch_rows.to_string() } else { String::new() },
        ];
        for number in &numbers {
            let of = |e: &&SendEstimate| {
                (e.method.as_str(), e.batch_rows, e.connections) == (method, batch_rows, *number)
            };
            let cell = estimates.iter().find(of).map(|estimate| {
                let mark = if estimate.chosen { "* " } else { "" };
                format!("{mark}{:.1}", estimate.time.as_secs_f64() * 1000.0)
            });
            line.push(cell.unwrap_or_default());
        }
        lines.push(line);
    }
    let sides: Vec<Side> =
        (0..lines[0].len()).map(|at| if at == 0 { Side::Left } else { Side::Right }).collect();
    align(&lines, &sides)
}

/// The same, as JSON.
pub fn database_json(report: &DatabaseReport) -> Value {
    let DatabaseReport {
        server,
        sent,
        because,
        estimates,
        changes,
        guarantee,
        committed_before,
        refused,
    } = report;
    let estimates = estimates.iter().map(|estimate| {
        json!({
            "method": estimate.method, "connections": estimate.connections,
            "batch_rows": estimate.batch_rows, "ms": estimate.time.as_secs_f64() * 1000.0,
            "chosen": estimate.chosen,
        })
    });
    let changes = changes.iter().map(|change| {
        json!({
            "after_s": change.after.as_secs_f64(), "connections": change.connections, "why": change.why,
        })
    });
    json!({ "database": {
        "server": server, "method": sent.method, "connections": sent.connections,
        "batch_rows": sent.batch_rows, "bytes_sent": sent.bytes, "because": because,
        "estimates": estimates.collect::<Vec<_>>(), "changes": changes.collect::<Vec<_>>(),
        "guarantee": guarantee, "rows_committed_before": committed_before, "rows_refused": refused,
    } })
}
