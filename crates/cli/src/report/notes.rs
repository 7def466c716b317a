//! What a report says of rejects, of records that were mended, and of types that became wider.

use std::fmt::Write;

use coload::{FileReports, Mending, Reject, RejectKind, Widened};
use coload_source::{MENDED_TOLD_MAX, shorten};

use crate::size::show_count;

/// How a kind of mending is named.
pub fn mending_name(mending: Mending) -> (&'static str, &'static str) {
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

/// Rejects by kind, with the first of each.
pub fn kinds_list(kinds: &[RejectKind]) -> String {
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
