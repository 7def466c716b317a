//! Reports as JSON; docs/loading.md lists the fields.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use coload::{
    ColumnReport, Dialect, Distinct, DryRun, FileReport, FileReports, KeyCounts, LoadReport,
    Mending, Merged, Reject, RejectKind, SortReport, Step, Widened, WrittenFiles,
};
use coload_source::Mended;
use coload_wire::SharesDone;
use serde_json::{Value, json};

use super::database::database_json;
use super::network::{network_json, placement_json};
use super::notes::mending_name;
use super::tables::rate;
use crate::given::flags;

/// The report of a load, as JSON.
pub fn json<'a>(report: &'a LoadReport, dialect: Option<&Dialect>) -> JsonReport<'a> {
    let mut json = json_but_files(report, dialect);
    if !report.beside.is_empty() {
        let of_table = |beside: &LoadReport| {
            let mut json = json_but_files(beside, dialect);
            json["files"] = beside.files.iter().map(|file| file_json(&file)).collect();
            json
        };
        json["beside"] = report.beside.iter().map(of_table).collect();
    }
    JsonReport::new(json, &report.files)
}

fn json_but_files(report: &LoadReport, dialect: Option<&Dialect>) -> Value {
    let seconds = report.wall.as_secs_f64();
    let mut json = json!({
        "table": report.table,
        "records": report.records(),
        "rows": report.rows(),
        "rejects": report.reject_count(),
        "filtered": report.filtered(),
        "bytes_read": report.bytes_read(),
        "bytes_stored": report.bytes_stored,
        "wall_s": seconds,
        "cpu_s": report.cpu.as_secs_f64(),
        "cpu_by_step_s": steps_json(&report.steps),
        "peak_memory_bytes": report.peak_memory,
        "columns": report.columns.iter().map(column_json).collect::<Vec<_>>(),
        "first_rejects": report.rejects.iter().map(reject_json).collect::<Vec<_>>(),
        "widened": report.widened.iter().map(widened_json).collect::<Vec<_>>(),
        "dialect": dialect_json(dialect),
    });
    let mut add = |part: Value| {
        if let (Value::Object(all), Value::Object(part)) = (&mut json, part) {
            all.extend(part);
        }
    };
    match &report.dry_run {
        Some(run) => add(dry_run_json(report, run)),
        None => add(json!({
            "load_id": report.id.map(|id| id.to_string()),
            "partitions": report.partitions,
            "mb_per_s": rate(report.bytes_read(), seconds),
            "rows_per_s": report.rows() as f64 / seconds.max(1e-9),
            "reject_kinds": report.reject_kinds.iter().map(kind_json).collect::<Vec<_>>(),
        })),
    }
    if let Some(published) = &report.published {
        add(json!({ "version": published.version, "segments": published.segments }));
        add(merge_json(&published.merge));
    }
    if report.known_rows > 0 {
        add(json!({ "rows_known": report.known_rows }));
    }
    if let Some(keys) = &report.keys {
        add(json!({ "keys": keys_json(keys) }));
    }
    if let Some(sorted) = &report.sorted {
        add(sorted_json(sorted));
    }
    report.network.iter().for_each(|network| add(network_json(network)));
    report.shares.iter().for_each(|shares| add(shares_json(shares)));
    let is_told = report.earlier.is_some() && report.database.is_none();
    if report.network.is_some() || report.shares.is_some() || is_told {
        add(json!({ "already": report.earlier.is_some() }));
    }
    report.placement.iter().for_each(|placement| add(placement_json(placement)));
    report.database.iter().for_each(|database| add(database_json(database)));
    report.written.iter().for_each(|written| add(written_json(written)));
    if report.written.is_some()
        && let Some(table) = json.as_object_mut().and_then(|json| json.remove("table"))
    {
        json["directory"] = table;
    }
    json
}

/// What a dry run says of all of the inputs.
fn dry_run_json(report: &LoadReport, run: &DryRun) -> Value {
    let columns = report.columns.iter().map(|column| {
        let mut json = column_json(column);
        json["estimated_bytes"] = json!(run.of_all(column.bytes as f64).round());
        json
    });
    json!({
        "dry_run": true,
        "share_read": run.share,
        "estimated_rows": run.of_all(report.rows() as f64).round(),
        "estimated_bytes_stored": run.of_all(report.bytes_stored as f64).round(),
        "estimated_wall_s": run.of_all(report.wall.as_secs_f64()),
        "columns": columns.collect::<Vec<_>>(),
    })
}

fn shares_json(shares: &SharesDone) -> Value {
    let SharesDone { of, missing, rows, rejects, keys, .. } = shares;
    let all = missing.is_empty();
    let mut share = json!({
        "load_id": of.load.to_string(), "worker": of.number, "workers": of.count, "missing": missing,
        "published": all, "load_rows": all.then_some(rows), "load_rejects": all.then_some(rejects),
    });
    if let (Some(keys), Some(share)) = (keys, share.as_object_mut()) {
        share.insert("keys".to_owned(), keys_json(keys));
    }
    json!({ "share": share })
}

fn keys_json(keys: &KeyCounts) -> Value {
    json!({
        "added": keys.added, "replaced": keys.replaced, "ignored": keys.ignored, "twice": keys.twice,
        "rejected": keys.rejected, "deleting": keys.deleting, "deleted": keys.deleted,
    })
}

fn sorted_json(sorted: &SortReport) -> Value {
    let SortReport { read, sort, merge, nodes, runs, sort_space, run_space, notes } = sorted;
    json!({ "sorted": {
        "read_and_sort_s": (*read + *sort).as_secs_f64(), "read_s": read.as_secs_f64(), "sort_s": sort.as_secs_f64(),
        "merge_s": merge.as_secs_f64(), "inner_nodes_s": nodes.as_secs_f64(), "runs": runs,
        "sort_space": sort_space, "run_space": run_space, "notes": notes,
    } })
}

fn merge_json(merge: &Merged) -> Value {
    match merge {
        Merged::Here(Ok(merge)) => json!({ "merge": {
            "merges": merge.merges, "segments_before": merge.segments_before,
            "segments_after": merge.segments_after, "rows": merge.rows, "bytes": merge.bytes,
        } }),
        Merged::Here(Err(error)) => json!({ "merge": { "error": error.to_string() } }),
        Merged::AtServer(told) => json!({ "merged": told }),
    }
}

fn written_json(written: &WrittenFiles) -> Value {
    let files = written.files.iter().map(|file| {
        json!({
            "name": file.name, "rows": file.rows, "row_groups": file.row_groups, "bytes": file.bytes,
        })
    });
    json!({ "written": files.collect::<Vec<_>>(), "removed": written.removed })
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

fn column_json(column: &ColumnReport) -> Value {
    let (distinct, known) = match column.distinct {
        Distinct::Exact(count) => (Some(count), "exact"),
        Distinct::AtLeast(count) => (Some(count), "at least"),
        Distinct::About(count) => (Some(count), "estimated"),
        Distinct::Unknown => (None, "unknown"),
    };
    json!({
        "name": column.name, "type": column.data_type.to_string(), "codec": column.codec,
        "distinct": distinct, "distinct_known": known, "nulls": column.nulls, "bytes": column.bytes,
        "bits_per_value": column.bits_per_value,
    })
}

fn steps_json(steps: &[(Step, Duration)]) -> Value {
    steps.iter().map(|(step, time)| (step.name().to_owned(), json!(time.as_secs_f64()))).collect()
}

fn reject_json(reject: &Reject) -> Value {
    let Reject { place, part, column, reason, .. } = reject;
    let mut told = json!({
        "file": place.file, "line": place.line, "byte": place.byte, "column": column,
        "value": String::from_utf8_lossy(reject.value()), "reason": reason,
    });
    if let Some(part) = part {
        told["part"] = json!(part.to_string());
    }
    told
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
