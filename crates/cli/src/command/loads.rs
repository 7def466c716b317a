//! `coload loads`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use coload::Error;
use coload_load::{Address, abort_load, drop_unfinished, list_loads, list_unfinished};
use coload_store::{LoadId, Store};
use coload_wire::{LoadStage, LoadStatus, ShareStatus, show_numbers};

use crate::args::LoadsArgs;
use crate::output::{Done, Failure, print};
use crate::remote_args::{Identity, remote_options};
use crate::report::{Side, align};
use crate::size::{show_bytes, show_count};

/// Shows the loads of a server, or those into a store that are not published, or drops one.
///
/// # Errors
/// `Usage` when the server's name or the id is wrong, `Failed` when the server does not answer.
pub fn run(args: &LoadsArgs) -> Done {
    let abort = args.abort.as_deref().map(str::parse::<LoadId>);
    let abort = abort.transpose().map_err(|e: Error| Failure::Usage(e))?;
    let loads = match (&args.server, &args.store) {
        (Some(server), _) => {
            let server: Address = server.parse().map_err(Failure::Usage)?;
            let remote = remote_options(&server, &Identity::of_environment())?;
            match abort {
                Some(id) => abort_load(&remote, id)?,
                None => list_loads(&remote)?,
            }
        }
        (None, store) => {
            let store = Store::open(store.as_deref().unwrap_or(Path::new(".")))?;
            if let Some(id) = abort {
                drop_unfinished(&store, id)?;
            }
            list_unfinished(&store)?
        }
    };
    print(&(table(&loads) + &missing(&loads)))
}

/// Which shares of loads are there, and which are missing.
fn missing(loads: &[LoadStatus]) -> String {
    let mut of_load: BTreeMap<LoadId, (u32, BTreeMap<u32, bool>)> = BTreeMap::new();
    for ShareStatus { of, is_complete } in loads.iter().filter_map(|load| load.share) {
        let (count, shares) = of_load.entry(of.load).or_default();
        *count = of.count;
        shares.insert(of.number, is_complete);
    }
    let mut out = String::new();
    for (load, (count, shares)) in of_load {
        let which = |state: Option<bool>| -> Vec<u32> {
            (1..=count).filter(|number| shares.get(number).copied() == state).collect()
        };
        let complete = which(Some(true));
        // Writing to a String cannot fail.
        let _ = write!(out, "\nload {load}: {} of {count} shares are complete", complete.len());
        for (what, numbers) in [("begun", which(Some(false))), ("missing", which(None))] {
            if !numbers.is_empty() {
                let _ = write!(out, "; {what}: {}", show_numbers(&numbers));
            }
        }
        out.push('\n');
    }
    out
}

fn table(loads: &[LoadStatus]) -> String {
    let head = ["load", "table", "state", "share", "rows", "rejects", "bytes", "idle", "inputs"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for load in loads {
        lines.push(vec![
            load.share.map_or(load.id, |share| share.of.load).to_string(),
            load.table.clone(),
            match load.state {
                _ if load.share.is_some_and(|share| share.is_complete) => "complete".to_owned(),
                LoadStage::Arriving => "arriving".to_owned(),
                LoadStage::Waiting => "unfinished".to_owned(),
                LoadStage::Published => "published".to_owned(),
            },
            load.share.map_or_else(String::new, |ShareStatus { of, .. }| {
                format!("{}/{}", of.number, of.count)
            }),
            show_count(load.rows),
            show_count(load.rejects),
            show_bytes(load.bytes),
            show_time(load.idle_s),
            load.inputs.join(", "),
        ]);
    }
    let (left, right) = (Side::Left, Side::Right);
    align(&lines, &[left, left, left, left, right, right, right, right, left])
}

fn show_time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}
