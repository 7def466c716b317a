//! What a load into a server tells of the link, the server, and who transformed what.

use std::fmt::Write;

use coload::{LoadReport, NetworkReport, PlacementReport};
use coload_load::ColumnChoice;
use coload_transform::Placement;
use serde_json::{Value, json};

use super::notes::mended;
use super::tables::{Side, align, counted, show_seconds};
use crate::size::{show_bytes, show_count};

/// What was sent, stored and placed, as text.
pub fn network_lines(report: &LoadReport, network: &NetworkReport) -> String {
    let mut out = String::new();
    let segments = report.published.as_ref().map_or(0, |published| published.segments);
    // Writing to a String cannot fail.
    if report.reject_count() > 0 {
        let _ = writeln!(out, "rejected {} records", show_count(report.reject_count()));
    }
    if report.filtered() > 0 {
        let _ = writeln!(out, "filtered out {} records", show_count(report.filtered()));
    }
    out.push_str(mended(&report.files).trim_start());
    let link = &network.link;
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
        show_seconds(network.server_cpu),
        show_bytes(report.peak_memory),
        show_bytes(network.server_peak_memory),
    );
    let _ = writeln!(
        out,
        "stored {} in {}{}",
        show_bytes(report.bytes_stored),
        counted(segments as usize, "segment"),
        match [report.partitions, network.partitions_known] {
            // The server cuts them where it parses too.
            [0, _] => String::new(),
            [sent, 0] => format!(" of {}", counted(sent, "partition")),
            [sent, known] =>
                format!(" of {}, {known} of them by an earlier attempt", counted(sent, "partition")),
        }
    );
    if network.attempts > 1 {
        let _ = writeln!(out, "it took {} attempts", network.attempts);
    }
    let Some(placement) = &report.placement else { return out };
    let on_client = placement.choices.iter().filter(|c| c.placement == Placement::Client).count();
    if !placement.choices.is_empty() {
        let _ = writeln!(
            out,
            "columns placed here at the end: {on_client} of {}; the choice changed {} times",
            placement.choices.len(),
            placement.changes.len().saturating_sub(1)
        );
    }
    if let Some(ColumnChoice { fragments: [here, there], .. }) = placement.sorting {
        let _ = writeln!(
            out,
            "partitions put in the order of the key here: {} of {}",
            show_count(here),
            show_count(here + there)
        );
    }
    let texts = &placement.text_fragments;
    if texts.sent > 0 {
        let _ = writeln!(
            out,
            "raw fragments: {} of {}, parsed at the server{}",
            show_count(texts.sent),
            show_count(texts.fragments),
            match texts.handed_back {
                0 => String::new(),
                back => format!("; {} of them came back, and were parsed here", show_count(back)),
            }
        );
    }
    out
}

/// The table of columns, what was estimated and chosen, and the changes.
pub fn explanation(placement: &PlacementReport) -> String {
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
    for (column, choice) in placement.columns.iter().zip(&placement.choices) {
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
    for change in &placement.changes {
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
            change.text_share * 100.0,
            times.client,
            capacity.client_cores,
            times.link,
            times.server,
            capacity.server_cores,
            capacity.server_weight,
        );
    }
    if let Some(ColumnChoice { cost, fragments: [here, there], .. }) = &placement.sorting {
        let _ = writeln!(
            out,
            "order of the key: {} partitions sorted here, {} there; a row takes {:.0} ns here, or {:.0} ns at the server ({:.0} if it comes \
             sorted)",
            show_count(*here),
            show_count(*there),
            cost.client_placed_ns,
            cost.server_plain_ns,
            cost.server_placed_ns,
        );
    }
    let texts = &placement.text_fragments;
    let _ = writeln!(
        out,
        "raw fragments: {} of {}{}",
        show_count(texts.sent),
        show_count(texts.fragments),
        match texts.sent {
            0 => String::new(),
            _ => format!(
                "; a row of text took {:.0} ns at the server; {} came back; {:.0} % were wanted at the end",
                texts.server_ns,
                show_count(texts.handed_back),
                texts.share * 100.0
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

/// What went over the link, as JSON.
pub fn network_json(network: &NetworkReport) -> Value {
    json!({
        "partitions_known": network.partitions_known, "attempts": network.attempts,
        "server_cpu_s": network.server_cpu.as_secs_f64(),
        "server_peak_memory_bytes": network.server_peak_memory,
        "wire_bytes": network.link.wire_bytes, "message_bytes": network.link.message_bytes,
        "frames": network.link.frames, "frames_compressed": network.link.frames_compressed,
        "link_bytes_per_s": network.link.bytes_per_second,
    })
}

/// Who transformed what, as JSON.
pub fn placement_json(placement: &PlacementReport) -> Value {
    let columns: Vec<Value> = placement
        .columns
        .iter()
        .zip(&placement.choices)
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
    let changes: Vec<Value> = placement
        .changes
        .iter()
        .map(|c| {
            json!({
                "fragment": c.fragment, "seconds": c.seconds, "columns_client": c.on_client,
                "raw_share": c.text_share,
                "client_ns": c.times.client, "link_ns": c.times.link, "server_ns": c.times.server,
            })
        })
        .collect();
    let sorting = placement.sorting.map(|choice| {
        json!({
            "placed": placed(choice.placement),
            "partitions_client": choice.fragments[0], "partitions_server": choice.fragments[1],
            "client_ns": choice.cost.client_placed_ns, "server_ns": choice.cost.server_plain_ns,
        })
    });
    let mut all = json!({
        "fragments": placement.text_fragments.fragments, "fragments_raw": placement.text_fragments.sent,
        "fragments_handed_back": placement.text_fragments.handed_back,
        "columns": columns, "changes": changes,
    });
    if let (Some(sorting), Some(all)) = (sorting, all.as_object_mut()) {
        all.insert("sorting".to_owned(), sorting);
    }
    all
}
