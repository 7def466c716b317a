//! A leaf of a load: its share begins there, and ends there.

use std::time::Duration;

use coload_cluster::{Map, Node, Table};
use coload_link::{Client, Message, WIRE_VERSION};
use coload_store::LoadId;
use coload_types::{Error, Result};
use coload_wire::{
    DONE, Done, HELLO, JOIN, Join, LOOK, LOOKED, LoadDescription, PlanPrint, Share, WELCOME,
    Welcome, share_of_leaf,
};

use super::super::session::{ask, client_options, wait_for};
use super::super::{Address, RemoteOptions, abort_load};
use crate::hooks::Hooks;
use crate::load::Load;

/// How long a leaf may take to begin a share: it may have to publish loads before.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// How long is waited for a leaf that is told to look when the load is committed already.
const LOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// A leaf of the table, and how far its share is.
pub struct Leaf {
    /// How it is called.
    pub options: RemoteOptions,
    /// How far it is.
    pub is: LeafIs,
}

/// How far the share of a leaf is.
pub enum LeafIs {
    /// It takes partitions.
    Open(Box<Client>, Box<Welcome>),
    /// It has its whole share.
    Prepared,
    /// The load is committed, and published there.
    Published(Box<Done>),
}

/// Where a leaf is reached, with the credentials that the first node was given.
///
/// # Errors
/// `Refused` when the password would go there without TLS, and did not so far.
pub fn options_of(remote: &RemoteOptions, node: &Node) -> Result<RemoteOptions> {
    let address: Address = node.address.parse()?;
    if address.tls != remote.tls.is_some() {
        return Err(Error::Refused(format!(
            "the map of the cluster names {}, and the node that was asked is {} TLS: passwords are not sent there",
            node.address,
            if remote.tls.is_some() { "reached by" } else { "reached without" }
        )));
    }
    Ok(RemoteOptions { address: address.authority(), ..remote.clone() })
}

fn node_of<'m>(map: &'m Map, table: &Table, place: usize) -> Result<&'m Node> {
    map.node(table.leaves[place]).ok_or_else(|| {
        Error::Corrupt(format!(
            "leaf {} of table {} is not in the map",
            table.leaves[place], table.name
        ))
    })
}

/// Begins the share of a leaf.
///
/// # Errors
/// `Unavailable` when it is away; what it says against the load.
pub fn begin(
    load: Load<'_>,
    remote: &RemoteOptions,
    (map, table): (&Map, &Table),
    (id, place): (LoadId, usize),
    description: &LoadDescription,
) -> Result<Leaf> {
    let count = table.leaves.len();
    let node = node_of(map, table, place)?;
    let options = options_of(remote, node)?;
    let of = share_of_leaf(id, place, count);
    let share = Share { of, plan: PlanPrint::of_cluster(table.id, table.since), parts: Vec::new() };
    let description = LoadDescription { share: Some(share), ..description.clone() };
    let mut hello = vec![WIRE_VERSION];
    description.put(&mut hello);
    let shown = |error: Error| match error {
        Error::Unavailable(text) => {
            Error::Unavailable(format!("leaf {} of table {}: {text}", node.address, table.name))
        }
        other => other,
    };
    let started = || {
        // All outboxes together are that of one server.
        let memory = load.resources.memory / count;
        let mut client = Client::new(client_options(&options, memory))?;
        client.open(Message::new(HELLO, hello))?;
        let answer = wait_for(&client, &[WELCOME, DONE], BEGIN_TIMEOUT, &load.hooks.cancel)?;
        if answer.kind == DONE {
            let done = Done::decode(&answer.bytes)?;
            let waits = done.shares.as_ref().is_some_and(|shares| !shares.missing.is_empty());
            return Ok(if waits { LeafIs::Prepared } else { LeafIs::Published(Box::new(done)) });
        }
        let welcome = Welcome::decode(&answer.bytes)?;
        let join = Join { id: welcome.id, attempt: welcome.attempt }.encode();
        // Several connections to each would be many.
        for _ in 1..(remote.connections / count).max(1) {
            client.open(Message::new(JOIN, join.clone()))?;
        }
        Ok(LeafIs::Open(Box::new(client), Box::new(welcome)))
    };
    let is = started().map_err(shown)?;
    Ok(Leaf { options, is })
}

/// Has leaves publish what is committed. One that is away does so when it is back.
pub fn look(leaves: &[Leaf], hooks: &Hooks) {
    std::thread::scope(|scope| {
        for leaf in leaves {
            scope.spawn(|| {
                let told = match &leaf.is {
                    LeafIs::Open(client, _) => {
                        client.push(Message::new(LOOK, Vec::new())).and_then(|()| {
                            wait_for(client, &[LOOKED], LOOK_TIMEOUT, &hooks.cancel).map(drop)
                        })
                    }
                    _ => ask(&leaf.options, Message::new(LOOK, Vec::new()), LOOKED).map(drop),
                };
                // It looks by itself, too.
                drop(told);
            });
        }
    });
}

/// Gives up a load that nobody can go on with, as its inputs come once. What is committed stays.
///
/// # Errors
/// When no leaf could be told, or it is committed.
pub fn give_up(leaves: &[Leaf], id: LoadId) -> Result<()> {
    let mut told = Err(Error::Unavailable(format!("no leaf has load {id}")));
    for leaf in leaves {
        // The map says so, for all.
        told = abort_load(&leaf.options, id).map(|_| ());
        if !matches!(told, Err(Error::Unavailable(_) | Error::Invalid(_))) {
            break;
        }
    }
    told
}
