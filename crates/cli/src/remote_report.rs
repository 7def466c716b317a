//! The report of a load into a server.

use std::fmt::Write;

use coload_load::RemoteReport;
use coload_transform::Placement;
use serde_json::{Value, json};

use crate::report::{
    JsonReport, Side, align, counted, mended, rejects_list, show_seconds, widened, widened_json,
};
use crate::size::{show_bytes, show_count};

/// The report as text.
pub fn text(report: &RemoteReport) -> String {
    let mut out = String::new();
    let seconds = report.wall.as_secs_f64().max(1e-9);
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{} {} rows into {} in {} s: {}, {} MB/s (version {}, load {})",
        if report.already { "had loaded" } else { "loaded" },
        show_count(report.rows),
        report.table,
        show_seconds(report.wall),
        show_bytes(report.bytes_read()),
        show_count((report.bytes_read() as f64 / 1e6 / seconds).round() as u64),
        report.version,
        report.id,
    );
    if report.already {
        return out;
    }
    if report.rejects > 0 {
        let _ = writeln!(out, "rejected {} records", show_count(report.rejects));
    }
    if report.filtered() > 0 {
        let _ = writeln!(out, "filtered out {} records", show_count(report.filtered()));
    }
    out.push_str(mended(&report.files).trim_start());
    let link = &report.link;
    let _ = writeln!(
        out,
        "sent {} ({:.1} % of the input), {} of {} frames compressed{}",
        show_bytes(link.wire_bytes),
        link.wire_bytes as f64 * 100.0 / report.bytes_read().max(1) as f64,
        show_count(link.frames_compressed),
        show_count(link.frames),
        match link.bytes_per_second {
            Some(rate) => format!(", the link gave {}/s", show_bytes(rate as u64)),
            None => String::new(),
        }
    );
    let _ = writeln!(
        out,
        "CPU {} s here, {} s at the server; peak memory {} here, {} at the server",
        show_seconds(report.cpu),
        show_seconds(report.server_cpu),
        show_bytes(report.peak_memory),
        show_bytes(report.server_peak_memory),
    );
    let _ = writeln!(
        out,
        "stored {} in {}{}",
        show_bytes(report.bytes_stored),
        counted(report.segments as usize, "segment"),
        match report.partitions {
            // The server cuts them where it parses too.
            [0, _] => String::new(),
            [sent, 0] => format!(" of {}", counted(sent, "partition")),
            [sent, known] =>
                format!(" of {}, {known} of them by an earlier attempt", counted(sent, "partition")),
        }
    );
    if report.attempts > 1 {
        let _ = writeln!(out, "it took {} attempts", report.attempts);
    }
    let on_client = report.choices.iter().filter(|c| c.placement == Placement::Client).count();
    if !report.choices.is_empty() {
        let _ = writeln!(
            out,
            "columns placed here at the end: {on_client} of {}; the choice changed {} times",
            report.choices.len(),
            report.changes.len().saturating_sub(1)
        );
    }
    let raw = &report.raw;
    if raw.sent > 0 {
        let _ = writeln!(
            out,
            "raw fragments: {} of {}, parsed at the server{}",
            show_count(raw.sent),
            show_count(raw.fragments),
            match raw.handed_back {
                0 => String::new(),
                back => format!("; {} of them came back, and were parsed here", show_count(back)),
            }
        );
    }
    if !report.merged.is_empty() {
        let _ = writeln!(out, "then {}", report.merged);
    }
    out.push_str(&widened(&report.widened));
    out.push_str(&rejects_list(&report.first_rejects));
    out
}

/// The table of columns, what was estimated and chosen, and the changes.
pub fn explanation(report: &RemoteReport) -> String {
    let head = [
        "column",
        "client ns/row",
        "plain",
        "server ns/row",
        "plain",
        "wire B/row",
        "plain",
        "placed",
        "fragments here",
        "there",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for (column, choice) in report.columns.iter().zip(&report.choices) {
        let cost = &choice.cost;
        let number = |n: f64| format!("{n:.1}");
        lines.push(vec![
            column.name.clone(),
            number(cost.client_placed_ns),
            number(cost.client_plain_ns),
            number(cost.server_placed_ns),
            number(cost.server_plain_ns),
            number(cost.placed_bytes),
            number(cost.plain_bytes),
            placed(choice.placement).to_owned(),
            show_count(choice.fragments[0]),
            show_count(choice.fragments[1]),
        ]);
    }
    let mut sides = vec![Side::Right; 10];
    (sides[0], sides[7]) = (Side::Left, Side::Left);
    let mut out = align(&lines, &sides);
    for change in &report.changes {
        let (times, capacity) = (&change.times, &change.capacity);
        let rate = match capacity.link_rate.is_finite() {
            true => format!("{:.0} MB/s", capacity.link_rate * 1e3),
            false => "not what was waited for".to_owned(),
        };
        let _ = writeln!(
            out,
            "after fragment {}, {:.2} s: {} columns here, {:.0} % of the fragments as text; a row takes {:.0} ns here ({:.1} cores), {:.0} ns on \
             the link ({rate}), {:.0} ns at the server ({:.1} cores, weight {:.1})",
            change.fragment,
            change.seconds,
            change.on_client,
            change.raw_share * 100.0,
            times.client,
            capacity.client_cores,
            times.link,
            times.server,
            capacity.server_cores,
            capacity.server_weight,
        );
    }
    let raw = &report.raw;
    let _ = writeln!(
        out,
        "raw fragments: {} of {}{}",
        show_count(raw.sent),
        show_count(raw.fragments),
        match raw.sent {
            0 => String::new(),
            _ => format!(
                "; a row of text took {:.0} ns at the server; {} came back; {:.0} % were wanted at the end",
                raw.server_ns,
                show_count(raw.handed_back),
                raw.share * 100.0
            ),
        }
    );
    out
}

fn placed(placement: Placement) -> &'static str {
    match placement {
        Placement::Client => "client",
        Placement::Server => "server",
    }
}

/// The report as JSON; docs/loading.md lists the fields.
pub fn json(report: &RemoteReport) -> JsonReport<'_> {
    let seconds = report.wall.as_secs_f64().max(1e-9);
    let columns: Vec<Value> = report
        .columns
        .iter()
        .zip(&report.choices)
        .map(|(column, choice)| {
            json!({
                "name": column.name, "type": column.data_type.to_string(),
                "placed": placed(choice.placement),
                "fragments_client": choice.fragments[0], "fragments_server": choice.fragments[1],
                "client_placed_ns": choice.cost.client_placed_ns,
                "client_plain_ns": choice.cost.client_plain_ns,
                "server_placed_ns": choice.cost.server_placed_ns,
                "server_plain_ns": choice.cost.server_plain_ns,
                "placed_bytes": choice.cost.placed_bytes, "plain_bytes": choice.cost.plain_bytes,
            })
        })
        .collect();
    let changes: Vec<Value> = report
        .changes
        .iter()
        .map(|c| {
            json!({
                "fragment": c.fragment, "seconds": c.seconds, "columns_client": c.on_client,
                "raw_share": c.raw_share,
                "client_ns": c.times.client, "link_ns": c.times.link, "server_ns": c.times.server,
            })
        })
        .collect();
    let steps: serde_json::Map<String, Value> = report
        .steps
        .iter()
        .map(|(step, time)| (step.name().to_owned(), time.as_secs_f64().into()))
        .collect();
    let json = json!({
        "load_id": report.id.to_string(), "table": report.table, "already": report.already,
        "version": report.version, "records": report.records(), "rows": report.rows,
        "rejects": report.rejects, "filtered": report.filtered(),
        "bytes_read": report.bytes_read(), "bytes_stored": report.bytes_stored,
        "segments": report.segments, "partitions": report.partitions[0],
        "partitions_known": report.partitions[1], "attempts": report.attempts,
        "wall_s": seconds, "mb_per_s": report.bytes_read() as f64 / 1e6 / seconds,
        "cpu_s": report.cpu.as_secs_f64(), "cpu_by_step_s": steps,
        "peak_memory_bytes": report.peak_memory,
        "server_cpu_s": report.server_cpu.as_secs_f64(),
        "server_peak_memory_bytes": report.server_peak_memory,
        "wire_bytes": report.link.wire_bytes, "message_bytes": report.link.message_bytes,
        "frames": report.link.frames, "frames_compressed": report.link.frames_compressed,
        "link_bytes_per_s": report.link.bytes_per_second,
        "fragments": report.raw.fragments, "fragments_raw": report.raw.sent,
        "fragments_handed_back": report.raw.handed_back,
        "columns": columns, "changes": changes, "merged": report.merged,
        "widened": report.widened.iter().map(widened_json).collect::<Vec<_>>(),
    });
    JsonReport::new(json, &report.files)
}
