//! `coload cluster`.

use coload_cluster::{Map, Maps, ShardBy, Table, open_place};
use coload_load::{Address, cluster_map};

use crate::args::{ClusterCommand, ClusterStatusArgs};
use crate::output::{Done, Failure, print};
use crate::remote_args::{Identity, remote_options};
use crate::report::{Side, align};

#[cfg(feature = "sql")]
mod moves;

/// Shows a cluster, or moves its shards.
///
/// # Errors
/// `Usage` when a node's name is wrong, `Failed` when the place or the node cannot be read, or shards not be moved.
pub fn run(command: &ClusterCommand) -> Done {
    match command {
        ClusterCommand::Status(args) => show(args),
        #[cfg(feature = "sql")]
        ClusterCommand::Rebalance(args) => moves::rebalance(args),
        #[cfg(feature = "sql")]
        ClusterCommand::Add(args) => moves::add(args),
        #[cfg(feature = "sql")]
        ClusterCommand::Remove(args) => moves::remove(args),
    }
}

fn show(args: &ClusterStatusArgs) -> Done {
    let ClusterStatusArgs { place } = args;
    if Address::is_meant(place) {
        let node: Address = place.parse().map_err(Failure::Usage)?;
        let map = cluster_map(&remote_options(&node, &Identity::of_environment())?)?;
        let none = vec![None; map.nodes.len()];
        return print(&status(&map, &none));
    }
    let maps = Maps::new(open_place(place)?);
    let map = maps.current()?;
    let applied = map.nodes.iter().map(|node| maps.applied(node.id).map(Some));
    let applied = applied.collect::<coload::Result<Vec<_>>>()?;
    print(&status(&map, &applied))
}

/// The nodes and tables of a map; `applied` is the version that each node has come to, where that is known.
fn status(map: &Map, applied: &[Option<u64>]) -> String {
    let mut lines = vec![["node", "address", "version", "behind"].map(str::to_owned).to_vec()];
    for (node, applied) in map.nodes.iter().zip(applied) {
        let version = applied.map_or_else(String::new, |version| version.to_string());
        let behind = applied.map_or_else(String::new, |version| {
            let behind = |event: &&coload_cluster::Event| event.version > version;
            match map.events.iter().filter(behind).count() {
                0 => String::new(),
                loads => format!("{loads} loads"),
            }
        });
        lines.push(vec![node.id.to_string(), node.address.clone(), version, behind]);
    }
    let (left, right) = (Side::Left, Side::Right);
    let nodes = align(&lines, &[left, left, right, left]);
    let mut lines = vec![["table", "shard by", "shards", "on leaves"].map(str::to_owned).to_vec()];
    for table in map.tables.iter().filter(|table| table.making.is_none()) {
        let by = match &table.shard_by {
            ShardBy::InTurn => "in turn".to_owned(),
            ShardBy::Everywhere => "everywhere".to_owned(),
            ShardBy::Columns(columns) => {
                let names = columns.iter().map(|column| &*table.schema.columns()[*column].name);
                names.collect::<Vec<_>>().join(", ")
            }
        };
        lines.push(vec![
            table.name.clone(),
            by,
            table.shard_count().to_string(),
            spread(map, table),
        ]);
    }
    let tables = align(&lines, &[left, left, right, left]);
    let cluster = map.cluster;
    format!("cluster {cluster:032x}, version {}\n\n{nodes}\n{tables}", map.version)
}

/// How many shards each leaf has: `16 coload://a:8470, 16 coload://b:8470`.
fn spread(map: &Map, table: &Table) -> String {
    let shards =
        |place: usize| table.shards.iter().filter(|leaf| usize::from(**leaf) == place).count();
    let leaves = table.leaves.iter().enumerate().map(|(place, leaf)| {
        let address = map.node(*leaf).map_or("?", |node| &node.address);
        format!("{} {address}", shards(place))
    });
    leaves.collect::<Vec<_>>().join(", ")
}
