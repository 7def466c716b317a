//! `coload tune`.

use std::path::PathBuf;

use coload::{Allowed, CostModel, Error, Policy, TuneOptions, Tuning, Unit, Way, Work, cheapest};

use crate::args::TuneArgs;
use crate::database_args::tuning_file;
use crate::output::{Done, Failure, print, say};
use crate::report::{Side, align};
use crate::size::show_count;

/// Loads for which is told what would be chosen: rows of seed 004's table, and of a million more.
const SIZES: [u64; 5] = [1, 100, 10_000, 100_000, 1_000_000];
/// Bytes of such a row.
const ROW_BYTES: f64 = 320.0;
/// Bytes of a chunk.
const CHUNK_BYTES: f64 = 10e6;

/// Measures a server, and writes what was measured.
///
/// # Errors
/// `Failed` when the server does not let us, or the file cannot be written.
pub fn run(args: &TuneArgs) -> Done {
    let path = match &args.output {
        Some(path) => path.clone(),
        None => tuning_file(&args.url)?.ok_or_else(|| {
            Failure::Usage(Error::Invalid(
                "there is no home directory for what is measured: give --output FILE".into(),
            ))
        })?,
    };
    let usual = TuneOptions::default();
    let options = TuneOptions {
        methods: args.method.clone(),
        connections: match args.connections.is_empty() {
            true => usual.connections,
            false => args.connections.clone(),
        },
        rows_max: args.rows.unwrap_or(usual.rows_max),
        times: args.times.unwrap_or(usual.times),
    };
    let tuning = coload::tune(&args.url, &options, &say)?;
    write(&path, &tuning)?;
    print(&table(&tuning, &options.connections))?;
    say(&format!("written to {}", path.display()));
    Ok(())
}

fn write(path: &PathBuf, tuning: &Tuning) -> Done {
    let failed = |e: std::io::Error| Failure::Failed(Error::io("write", path, &e));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    // Whole, or as before.
    let mut new = path.clone().into_os_string();
    new.push(format!(".{}", std::process::id()));
    std::fs::write(&new, tuning.to_json()).map_err(failed)?;
    std::fs::rename(&new, path).map_err(failed)
}

/// What would be chosen for loads of some sizes.
fn table(tuning: &Tuning, connections: &[usize]) -> String {
    let head = ["rows of 320 bytes", "chosen", "connections", "rows a statement", "estimated ms"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let mut numbers = connections.to_vec();
    if !numbers.contains(&1) {
        numbers.insert(0, 1);
    }
    let allowed = Allowed {
        methods: tuning.costs.methods.iter().map(|costs| costs.method).collect(),
        connections: numbers,
        batches: vec![100, 1000],
    };
    let model = CostModel { costs: tuning.costs.clone() };
    for rows in SIZES {
        let chunks = (rows as f64 * ROW_BYTES / CHUNK_BYTES).ceil() as u64;
        let (row_bytes, unit) = (ROW_BYTES, Unit::Chunk);
        let work = Work { rows, columns: 2, row_bytes, chunks, unit, commits_wait: true };
        let Some(best) = cheapest(&model.estimates(&work, &allowed)) else { continue };
        let Way { method, connections, batch_rows } = best.way;
        lines.push(vec![
            show_count(rows),
            method.name().to_owned(),
            connections.to_string(),
            if batch_rows > 0 { batch_rows.to_string() } else { String::new() },
            format!("{:.1}", best.time_us / 1000.0),
        ]);
    }
    let (left, right) = (Side::Left, Side::Right);
    align(&lines, &[right, left, right, right, right])
}
