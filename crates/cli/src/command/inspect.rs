//! `coload inspect`.

use std::fmt::Write;

use coload::{Coload, ColumnReport, DataType, Result, Snapshot};
use coload_ddl::{create_indexes_sql, create_table_sql};
use coload_page::ColumnIndex;
use coload_store::{SegmentEntry, TableEntry};
use coload_types::Value;
use coload_types::display::display_value;

use crate::args::InspectArgs;
use crate::output::{Done, print};
use crate::report::{Side, align, columns_table, counted};
use crate::size::{show_bytes, show_count};

/// Loads and segments that are listed; of more, the newest.
const LISTED_MAX: usize = 20;
/// Characters of a minimum or maximum.
const VALUE_CHARACTERS_MAX: usize = 24;

/// Prints what a store or a table holds.
///
/// # Errors
/// `Failed` when the store or the table is not there, or is damaged.
pub fn run(args: &InspectArgs) -> Done {
    let store = Coload::open(&args.store)?;
    let snapshot = store.snapshot()?;
    let text = match &args.table {
        None => show_store(&snapshot),
        Some(name) => show_table(&snapshot, snapshot.require_table(name)?)?,
    };
    print(&text)
}

fn show_store(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "store {}, version {}; manifest format {}, loads are remembered for {} days\n{}\n",
        snapshot.store().path().display(),
        snapshot.version(),
        snapshot.format(),
        snapshot.remember_days(),
        seals(snapshot.tables()),
    );
    let head = ["table", "rows", "bytes", "columns", "segments", "loads", "last load (UTC)"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for table in snapshot.tables() {
        lines.push(vec![
            table.name.clone(),
            show_count(table.rows()),
            show_bytes(table.bytes()),
            table.schema.len().to_string(),
            table.segments.len().to_string(),
            show_count(table.loads_count),
            table.loads.last().map_or_else(|| "-".to_owned(), |l| show_time(l.finished_us)),
        ]);
    }
    let right = Side::Right;
    out.push_str(&align(&lines, &[Side::Left, right, right, right, right, right, Side::Left]));
    for view in snapshot.views() {
        let _ = writeln!(out, "\nview {}: {}", view.name, view.sql.escape_debug());
    }
    out
}

/// How many segments can be told from others, and what checks them.
fn seals(tables: &[TableEntry]) -> String {
    let segments = || tables.iter().flat_map(|table| &table.segments);
    let sealed = segments().filter(|segment| segment.seal.is_some()).count();
    match segments().count() - sealed {
        0 => format!(
            "{}, each known by its seal; coload verify reads them all",
            counted(sealed, "segment")
        ),
        older => format!(
            "{sealed} segments are known by their seals, {older} were written by an older program and are not; coload verify \
             reads them all"
        ),
    }
}

fn show_table(snapshot: &Snapshot, table: &TableEntry) -> Result<String> {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "table {} of {}, version {}: {} rows, {}{}\n",
        table.name,
        snapshot.store().path().display(),
        snapshot.version(),
        show_count(table.rows()),
        show_bytes(table.bytes()),
        match table.deleted_rows() {
            0 => String::new(),
            deleted => format!("; {} deleted rows are still in segments", show_count(deleted)),
        },
    );
    let indexes = create_indexes_sql(&table.name, &table.schema);
    let _ = writeln!(out, "{}{indexes}\n", create_table_sql(&table.name, &table.schema));
    out.push_str(&columns_table(&columns(snapshot, table)?));
    let _ = writeln!(out, "\nvalues\n{}", bounds(table));
    let _ = writeln!(out, "segments: {}\n{}", table.segments.len(), segments(snapshot, table)?);
    let _ = write!(out, "loads: {}\n{}", show_count(table.loads_count), loads(table));
    Ok(out)
}

/// Encodings and sizes over all segments.
fn columns(snapshot: &Snapshot, table: &TableEntry) -> Result<Vec<ColumnReport>> {
    let open = |s: &SegmentEntry| snapshot.segment(table, s);
    let segments = table.segments.iter().map(open).collect::<Result<Vec<_>>>()?;
    // Sizes are those of deleted rows too.
    let stored = table.rows() + table.deleted_rows();
    let mut columns = Vec::with_capacity(table.schema.len());
    for (i, column) in table.schema.columns().iter().enumerate() {
        let open = segments.iter().map(|s| s.column(i)).collect::<Result<Vec<_>>>()?;
        let indexes: Vec<&ColumnIndex> = open.iter().map(|c| c.index()).collect();
        columns.push(ColumnReport::new(column, stored, &indexes));
    }
    Ok(columns)
}

/// The least and the greatest value of each column.
fn bounds(table: &TableEntry) -> String {
    let mut lines = vec![["column", "min", "max"].map(str::to_owned).to_vec()];
    for (i, column) in table.schema.columns().iter().enumerate() {
        let stats = || table.segments.iter().map(|s| &s.columns[i]);
        // A segment of NULLs has neither; one without an upper bound has no maximum that is known.
        let filled = || stats().filter(|s| s.min.is_some());
        let min = filled().filter_map(|s| s.min.as_ref()).min();
        let max = match filled().all(|s| s.max.is_some()) {
            true => filled().filter_map(|s| s.max.as_ref()).max(),
            false => None,
        };
        let show = |v: Option<&Value>| {
            v.map_or_else(|| "-".to_owned(), |v| show_value(v, column.data_type))
        };
        lines.push(vec![column.name.clone(), show(min), show(max)]);
    }
    align(&lines, &[Side::Left; 3])
}

fn show_value(value: &Value, data_type: DataType) -> String {
    let text: String = display_value(value, data_type)
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    match text.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn segments(snapshot: &Snapshot, table: &TableEntry) -> Result<String> {
    let mut lines =
        vec![["file", "rows", "deleted", "bytes", "pages a column"].map(str::to_owned).to_vec()];
    let skipped = table.segments.len().saturating_sub(LISTED_MAX);
    for segment in &table.segments[skipped..] {
        lines.push(vec![
            segment.file.clone(),
            show_count(segment.rows),
            show_count(segment.deleted_rows()),
            show_bytes(segment.bytes),
            snapshot.segment(table, segment)?.page_rows().len().to_string(),
        ]);
    }
    let right = Side::Right;
    let mut out = align(&lines, &[Side::Left, right, right, right, right]);
    if skipped > 0 {
        let _ = writeln!(out, "and {skipped} before them");
    }
    Ok(out)
}

fn loads(table: &TableEntry) -> String {
    let head = ["load", "kind", "finished (UTC)", "seconds", "rows", "rejects", "bytes", "inputs"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let skipped = table.loads.len().saturating_sub(LISTED_MAX);
    for load in &table.loads[skipped..] {
        let more = match load.inputs_more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        lines.push(vec![
            load.id.to_string(),
            load.kind.to_string(),
            show_time(load.finished_us),
            format!("{:.3}", (load.finished_us - load.started_us) as f64 / 1e6),
            show_count(load.rows),
            show_count(load.rejects),
            show_bytes(load.bytes),
            load.inputs.join(", ") + &more,
        ]);
    }
    let (left, right) = (Side::Left, Side::Right);
    align(&lines, &[left, left, left, right, right, right, right, left])
}

/// Microseconds since the epoch, to the second.
fn show_time(micros: i64) -> String {
    let text = display_value(&Value::Int(micros), DataType::Timestamp);
    text.split('.').next().unwrap_or_default().to_owned()
}
