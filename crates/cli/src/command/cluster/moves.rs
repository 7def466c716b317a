//! `coload cluster rebalance`, `add` and `remove`: a node is asked for one step after the other, until there is none left.

use std::time::{Duration, Instant};

use coload::Error;
use coload_load::{Address, cluster_map};
use coload_serve::arrow::array::AsArray;
use coload_serve::arrow::datatypes::UInt64Type;
use coload_serve::{Credentials, Remote};

use crate::args::{ClusterMoveArgs, ClusterNodeArgs};
use crate::output::{Done, Failure, print};
use crate::remote_args::{Identity, remote_options};

/// How long is waited for a node that is to be added.
const JOIN_TIMEOUT: Duration = Duration::from_secs(60);

/// Gives all nodes their share.
///
/// # Errors
/// `Usage` when the address is wrong; `Failed` when a step fails: what was moved before stays.
pub fn rebalance(args: &ClusterMoveArgs) -> Done {
    steps(args, "REBALANCE", "all nodes have their share of all shards")
}

/// Waits for a node, and gives all nodes their share.
///
/// # Errors
/// As [`rebalance`]; `Failed` when the node does not come.
pub fn add(args: &ClusterNodeArgs) -> Done {
    let asked: Address = args.moves.asked.parse().map_err(Failure::Usage)?;
    let options = remote_options(&asked, &Identity::of_environment())?;
    let began = Instant::now();
    let is_it = |node: &coload_cluster::Node| {
        node.address == args.which || node.id.to_string() == args.which
    };
    while !cluster_map(&options)?.nodes.iter().any(is_it) {
        if began.elapsed() > JOIN_TIMEOUT {
            return Err(Error::Unavailable(format!(
                "node {} is not in the cluster (start it: coload serve --cluster, with the place of the others)",
                args.which
            ))
            .into());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    rebalance(&args.moves)
}

/// Moves the shards of a node to the others.
///
/// # Errors
/// As [`rebalance`].
pub fn remove(args: &ClusterNodeArgs) -> Done {
    if args.which.contains('\'') {
        return Err(Failure::Usage(Error::Invalid(format!("{} is no node", args.which))));
    }
    let done = format!("{} is none of the cluster any more", args.which);
    steps(&args.moves, &format!("REMOVE '{}'", args.which), &done)
}

/// Asks for steps, and tells each.
fn steps(args: &ClusterMoveArgs, what: &str, done: &str) -> Done {
    let asked: Address = args.asked.parse().map_err(Failure::Usage)?;
    let Identity { password, token, ca, certificate } = Identity::of_environment();
    let mut remote = Remote::connect(asked, &Credentials { password, token, ca, certificate })?;
    let statement = format!("ALTER CLUSTER {what} AT {}", args.bandwidth);
    loop {
        let (_, batches) = remote.query(&statement)?;
        let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else { break };
        let count = |column: usize| {
            let numbers = batch.column(column).as_primitive_opt::<UInt64Type>();
            numbers.map_or(0, |numbers| numbers.value(0))
        };
        let table = batch.column(0).as_string_opt::<i32>().map_or("", |names| names.value(0));
        let (shards, rows) = (count(1), count(2));
        print(&format!("{table}: {shards} shards moved, with {rows} rows\n"))?;
    }
    print(&format!("{done}\n"))
}
