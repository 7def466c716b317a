//! Shards on their way to other leaves: which ones go where, and the versions of the map that begin and end it.
//!
//! ```text
//!   version f      table: moving = the leaves and shards that are to be      no load is committed into the table from here on
//!   ...            the rows go to their new leaves, which prepare them as a load
//!   version s      table: leaves and shards are those; event Moved           new leaves publish the rows, old ones delete them
//! ```
//!
//! One step moves few shards of one table, so that loads into it wait for a short time; readers name a version, and find
//! each row once in all of them. A leaf gives shards or gets some in a step, never both.
//!
//! Whoever moves may end: version f is undone by the one that gives its load up.

use coload_store::LoadId;
use coload_types::{Error, Result};

use crate::map::{Map, NodeId, ShardBy, Table, What};
use crate::maps::{Change, Maps};
use crate::shards::score;

/// Most shards that move in one step.
const SHARDS_A_STEP: usize = 8;

/// Shards of a table that are on their way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moving {
    /// The load that brings their rows.
    pub load: LoadId,
    /// The node that reads and routes them.
    pub node: NodeId,
    /// The leaves of the table when they are there.
    pub leaves: Vec<NodeId>,
    /// For each shard the place of its leaf among these.
    pub shards: Vec<u16>,
}

/// What a leaf gives away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Giver {
    /// The leaf.
    pub leaf: NodeId,
    /// Its shards that move; `None` when all its rows go.
    pub shards: Option<Vec<u32>>,
}

impl Table {
    /// The table as it is when its shards are moved; as it is, if none are.
    pub fn moved(&self) -> Table {
        match &self.moving {
            None => self.clone(),
            Some(Moving { leaves, shards, .. }) => Table {
                leaves: leaves.clone(),
                shards: shards.clone(),
                moving: None,
                ..self.clone()
            },
        }
    }

    fn leaf_of(&self, shard: usize) -> NodeId {
        self.leaves[usize::from(self.shards[shard])]
    }

    /// The table as the load of a move sees it: its leaves are those that get rows, its shards those that move. `None` when no
    /// rows have to be brought anywhere.
    pub fn receiving(&self) -> Option<Table> {
        let moving = self.moving.as_ref()?;
        let after = self.moved();
        let is_new = |leaf: &&NodeId| !self.leaves.contains(leaf);
        let goes = |shard: &usize| self.leaf_of(*shard) != after.leaf_of(*shard);
        let moved: Vec<usize> = (0..self.shards.len()).filter(goes).collect();
        let mut leaves: Vec<NodeId> = match self.shard_by {
            ShardBy::Everywhere => moving.leaves.iter().filter(is_new).copied().collect(),
            // Rows that are dealt have to go only where their leaf goes.
            ShardBy::InTurn if self.givers().is_empty() => Vec::new(),
            _ => moved.iter().map(|shard| after.leaf_of(*shard)).collect(),
        };
        leaves.sort_unstable();
        leaves.dedup();
        if leaves.is_empty() {
            return None;
        }
        let place = |leaf: NodeId| leaves.iter().position(|of| *of == leaf).unwrap_or(0) as u16;
        let shards = match self.shard_by {
            ShardBy::Everywhere => vec![0],
            ShardBy::InTurn => moved.iter().map(|shard| place(after.leaf_of(*shard))).collect(),
            // Rows of others are not read.
            ShardBy::Columns(_) => {
                (0..self.shards.len()).map(|shard| place(after.leaf_of(shard))).collect()
            }
        };
        Some(Table { leaves, shards, moving: None, ..self.clone() })
    }

    /// The leaves whose rows are read by a move.
    pub fn givers(&self) -> Vec<Giver> {
        let Some(moving) = &self.moving else { return Vec::new() };
        let after = self.moved();
        let stays = |leaf: &NodeId| moving.leaves.contains(leaf);
        match self.shard_by {
            // One of those that have all rows.
            ShardBy::Everywhere => {
                let staying = self.leaves.iter().find(|leaf| stays(leaf));
                let one = staying.or(self.leaves.first());
                one.map(|leaf| Giver { leaf: *leaf, shards: None }).into_iter().collect()
            }
            ShardBy::InTurn => {
                let goes = self.leaves.iter().filter(|leaf| !stays(leaf));
                goes.map(|leaf| Giver { leaf: *leaf, shards: None }).collect()
            }
            ShardBy::Columns(_) => {
                let of = |leaf: &NodeId| {
                    let goes = |shard: &usize| {
                        self.leaf_of(*shard) == *leaf && after.leaf_of(*shard) != *leaf
                    };
                    let shards = (0..self.shards.len()).filter(goes).map(|shard| shard as u32);
                    Giver { leaf: *leaf, shards: Some(shards.collect()) }
                };
                let givers = self.leaves.iter().map(of);
                givers
                    .filter(|giver| giver.shards.as_ref().is_some_and(|s| !s.is_empty()))
                    .collect()
            }
        }
    }

    /// Number of the shards that are on their way.
    pub fn moving_count(&self) -> usize {
        let after = self.moved();
        match self.shard_by {
            ShardBy::Everywhere => after.leaves.iter().filter(|l| !self.leaves.contains(l)).count(),
            _ => (0..self.shards.len())
                .filter(|shard| self.leaf_of(*shard) != after.leaf_of(*shard))
                .count(),
        }
    }
}

/// The leaves and shards of a table after one step, the last of which leaves none of these nodes more than its share, and others
/// nothing; `None` when it is so.
pub(crate) fn plan_step(table: &Table, nodes: &[NodeId]) -> Option<(Vec<NodeId>, Vec<u16>)> {
    let stays = |leaf: &NodeId| nodes.contains(leaf);
    if table.is_everywhere() {
        let is_done = table.leaves.len() == nodes.len() && table.leaves.iter().all(stays);
        return (!is_done).then(|| (nodes.to_vec(), vec![0]));
    }
    let mut of: Vec<NodeId> = (0..table.shards.len()).map(|shard| table.leaf_of(shard)).collect();
    let before = of.clone();
    let count = |of: &[NodeId], leaf: NodeId| of.iter().filter(|l| **l == leaf).count();
    let limit = match table.shard_by {
        ShardBy::Columns(_) => SHARDS_A_STEP,
        // Nothing tells the rows of one shard from those of another.
        ShardBy::InTurn | ShardBy::Everywhere => usize::MAX,
    };
    // As many as a leaf has at most in a table that is made anew.
    let room = of.len().div_ceil(nodes.len());
    let mut moved = 0;
    while moved < limit {
        let least = nodes.iter().copied().min_by_key(|leaf| (count(&of, *leaf), *leaf))?;
        let gone = of.iter().copied().find(|leaf| !stays(leaf));
        let most = nodes.iter().copied().max_by_key(|leaf| (count(&of, *leaf), *leaf))?;
        let from = match gone {
            Some(gone) => gone,
            None if count(&of, most) > room => most,
            None => break,
        };
        // Of its shards the one that the new leaf would have in a table that is made anew.
        let shards = (0..of.len()).filter(|shard| of[*shard] == from);
        let shard = shards.max_by_key(|shard| score(table.id, *shard as u32, least))?;
        of[shard] = least;
        moved += 1;
    }
    let kept = table.leaves.iter().filter(|leaf| stays(leaf) || of.contains(leaf));
    let new = nodes.iter().filter(|leaf| !table.leaves.contains(leaf) && of.contains(leaf));
    let leaves: Vec<NodeId> = kept.chain(new).copied().collect();
    let place = |leaf: &NodeId| leaves.iter().position(|l| l == leaf).unwrap_or(0) as u16;
    (of != before || leaves != table.leaves)
        .then(|| (leaves.clone(), of.iter().map(place).collect()))
}

impl Maps {
    /// Begins the next step after which no node has more than its share, and those that leave have nothing: gives the map that says so, and the table.
    /// `None` when there is nothing to move. A move that another node has begun is given up, as that node may be gone.
    ///
    /// # Errors
    /// `Invalid` when no node would be left; `Unavailable` when the place is away.
    pub fn begin_move(
        &self,
        (load, node): (LoadId, NodeId),
        leaving: &[NodeId],
    ) -> Result<Option<(std::sync::Arc<Map>, u64)>> {
        let (map, table) = self.change(|map| {
            let nodes = map.nodes.iter().map(|node| node.id).filter(|id| !leaving.contains(id));
            let nodes: Vec<NodeId> = nodes.collect();
            if nodes.is_empty() {
                return Err(Error::Invalid("no node would be left in the cluster".into()));
            }
            let others: Vec<LoadId> =
                map.tables.iter().filter_map(|t| t.moving.as_ref().map(|m| m.load)).collect();
            others.iter().for_each(|load| map.give_up(*load, None));
            let next = map.tables.iter_mut().filter(|table| table.making.is_none());
            let next = next.into_iter().find_map(|table| Some((plan_step(table, &nodes)?, table)));
            let Some(((leaves, shards), table)) = next else {
                return Ok(match others.is_empty() {
                    true => Change::Same(None),
                    false => Change::Changed(None),
                });
            };
            if table.holder.is_some() {
                return Err(Error::Unavailable(format!(
                    "rows of table {} are being changed; no shards were moved (try again)",
                    table.name
                )));
            }
            table.moving = Some(Moving { load, node, leaves, shards });
            Ok(Change::Changed(Some(table.id)))
        })?;
        Ok(table.map(|table| (map, table)))
    }

    /// Takes a node out of the cluster, that has no shards any more.
    ///
    /// # Errors
    /// `Invalid` when it has some; `Unavailable` when the place is away.
    pub fn remove_node(&self, node: NodeId) -> Result<()> {
        let removed = self.change(|map| {
            if let Some(table) = map.tables.iter().find(|table| table.leaves.contains(&node)) {
                return Err(Error::Invalid(format!(
                    "node {node} is a leaf of table {} yet",
                    table.name
                )));
            }
            let before = map.nodes.len();
            map.nodes.retain(|of| of.id != node);
            match before == map.nodes.len() {
                true => Ok(Change::Same(())),
                false => Ok(Change::Changed(())),
            }
        });
        removed.map(|_| ())
    }
}

impl Map {
    /// Gives a load up in this version, and the move that it is or the table that it makes.
    pub(crate) fn give_up(&mut self, load: LoadId, table: Option<u64>) {
        self.tables.retain(|of| of.making.is_none() || Some(of.id) != table);
        let moving =
            self.tables.iter_mut().filter(|t| t.moving.as_ref().is_some_and(|m| m.load == load));
        moving.for_each(|table| table.moving = None);
        self.end_hold(load);
        self.decide(What::Aborted { load });
    }

    /// Has the shards of a table where they were to go.
    pub(crate) fn end_move(&mut self, id: u64) {
        let version = self.version;
        let Some(table) = self.tables.iter_mut().find(|table| table.id == id) else { return };
        let Some(Moving { load, leaves, shards, .. }) = table.moving.take() else { return };
        (table.leaves, table.shards, table.since) = (leaves, shards, version);
        self.decide(What::Moved { load, table: id });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_ddl::parse_columns;
    use proptest::prelude::*;

    use super::*;
    use crate::shards::assign_shards;

    fn ids(range: std::ops::Range<u128>) -> Vec<NodeId> {
        range.map(NodeId::from_u128).collect()
    }

    fn table(leaves: Vec<NodeId>, shards: u32, shard_by: ShardBy) -> Table {
        let shards = match shard_by {
            ShardBy::Everywhere => vec![0],
            _ => assign_shards(7, shards, &leaves),
        };
        let schema = parse_columns("a BIGINT").unwrap();
        let (name, making, moving, holder) = ("t".to_owned(), None, None, None);
        Table { id: 7, name, schema, shard_by, leaves, shards, making, moving, holder, since: 0 }
    }

    fn begin(table: &Table, (leaves, shards): (Vec<NodeId>, Vec<u16>)) -> Table {
        let (load, node) = (LoadId::from_u128(1), NodeId::from_u128(1));
        Table { moving: Some(Moving { load, node, leaves, shards }), ..table.clone() }
    }

    proptest! {
        #[test]
        fn steps_end_with_no_leaf_over_its_share_and_move_no_more_than_they_must(
            shards in 1_u32..100, before in 1_u128..9, first in 1_u128..9, after in 1_u128..9,
        ) {
            let nodes = ids(first..first + after);
            let begun = table(ids(1..1 + before), shards, ShardBy::Columns(vec![0]));
            let mut table = begun.clone();
            let mut steps = 0;
            while let Some(plan) = plan_step(&table, &nodes) {
                let going = begin(&table, plan);
                // Nobody gives and gets in one step, and what is read is what is received.
                let givers = going.givers();
                if let Some(receiving) = going.receiving() {
                    prop_assert!(givers.iter().all(|giver| !receiving.leaves.contains(&giver.leaf)));
                    let given: usize = givers.iter().map(|g| g.shards.as_ref().unwrap().len()).sum();
                    prop_assert_eq!(given, going.moving_count());
                    for shard in givers.iter().flat_map(|g| g.shards.as_ref().unwrap()) {
                        let shard = *shard as usize;
                        let place = usize::from(receiving.shards[shard]);
                        prop_assert_eq!(receiving.leaves[place], going.moved().leaf_of(shard));
                    }
                }
                table = going.moved();
                steps += 1;
                prop_assert!(steps < 200);
            }
            let counts: Vec<usize> = nodes.iter()
                .map(|leaf| (0..table.shards.len()).filter(|s| table.leaf_of(*s) == *leaf).count())
                .collect();
            let room = (shards as usize).div_ceil(nodes.len());
            prop_assert!(counts.iter().all(|count| *count <= room), "{counts:?}");
            prop_assert!(table.leaves.iter().all(|leaf| nodes.contains(leaf)));
            let moved = (0..table.shards.len()).filter(|s| begun.leaf_of(*s) != table.leaf_of(*s)).count();
            let must = (0..table.shards.len()).filter(|s| !nodes.contains(&begun.leaf_of(*s))).count();
            let over: usize = nodes.iter()
                .map(|leaf| (0..table.shards.len()).filter(|s| begun.leaf_of(*s) == *leaf).count().saturating_sub(room))
                .sum();
            prop_assert_eq!(moved, must + over);
        }
    }

    #[test]
    fn tables_without_shards_by_value_move_as_wholes() {
        let everywhere = table(ids(1..3), 1, ShardBy::Everywhere);
        let going = begin(&everywhere, plan_step(&everywhere, &ids(2..5)).unwrap());
        assert_eq!(going.receiving().unwrap().leaves, ids(3..5));
        assert_eq!(going.givers(), [Giver { leaf: NodeId::from_u128(2), shards: None }]);
        assert!(plan_step(&going.moved(), &ids(2..5)).is_none());
        let dealt = table(ids(1..3), 8, ShardBy::InTurn);
        // A node more gets rows of later loads only; one that leaves has its rows dealt to the others.
        let more = begin(&dealt, plan_step(&dealt, &ids(1..4)).unwrap());
        assert!(more.receiving().is_none() && more.givers().is_empty());
        assert_eq!(more.moved().leaves, ids(1..4));
        let fewer = begin(&dealt, plan_step(&dealt, &ids(2..4)).unwrap());
        assert_eq!(fewer.givers(), [Giver { leaf: NodeId::from_u128(1), shards: None }]);
        let receiving = fewer.receiving().unwrap();
        assert!(receiving.leaves.iter().all(|leaf| ids(2..4).contains(leaf)));
        assert!(!receiving.shards.is_empty());
    }
}
