//! `coload loads`.

use coload::Error;
use coload_load::{Address, abort_load, list_loads};
use coload_store::LoadId;
use coload_wire::{LoadStage, LoadStatus};

use crate::args::LoadsArgs;
use crate::output::{Done, Failure, print};
use crate::remote_args::{Identity, remote_options};
use crate::report::{Side, align};
use crate::size::{show_bytes, show_count};

/// Shows the loads of a server, or drops one.
///
/// # Errors
/// `Usage` when the server's name or the id is wrong, `Failed` when the server does not answer.
pub fn run(args: &LoadsArgs) -> Done {
    let server: Address = args.server.parse().map_err(Failure::Usage)?;
    let remote = remote_options(&server, &Identity::of_environment())?;
    let loads = match &args.abort {
        Some(id) => {
            let id: LoadId = id.parse().map_err(|e: Error| Failure::Usage(e))?;
            abort_load(&remote, id)?
        }
        None => list_loads(&remote)?,
    };
    print(&table(&loads))
}

fn table(loads: &[LoadStatus]) -> String {
    let head = ["load", "table", "state", "rows", "rejects", "bytes", "idle", "inputs"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for load in loads {
        lines.push(vec![
            load.id.to_string(),
            load.table.clone(),
            match load.state {
                LoadStage::Arriving => "arriving".to_owned(),
                LoadStage::Waiting => "unfinished".to_owned(),
                LoadStage::Published => "published".to_owned(),
            },
            show_count(load.rows),
            show_count(load.rejects),
            show_bytes(load.bytes),
            show_time(load.idle_s),
            load.inputs.join(", "),
        ]);
    }
    let (left, right) = (Side::Left, Side::Right);
    align(&lines, &[left, left, left, right, right, right, right, left])
}

fn show_time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}
