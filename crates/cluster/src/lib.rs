//! The map of a cluster, and who has which row.
//!
//! ```text
//!   row -> hash of its shard columns -> shard -> leaf          hash, shards
//!   nodes, tables, committed loads: one map, by versions       map, moves, holds
//!   PLACE/map/<version>.map, made once, never changed          maps, place
//!   PLACE/prepared/<load>-<node>, PLACE/nodes/<node>.applied   marks
//! ```
//!
//! Invariants: no SQL, no network, and nothing of a store but the names of loads. Two machines that have the same map
//! send a row to the same leaf. A load is committed by one new version of the map and by nothing else.

mod failpoints;
mod folder;
mod hash;
mod holds;
mod map;
mod maps;
mod marks;
mod moves;
mod objects;
mod place;
mod shards;

pub use failpoints::{POINTS, hit};
pub use folder::Folder;
pub use hash::{RowHashes, hash_row, hash_value, shard_of};
pub use holds::{Hold, Holder};
pub use map::{Event, Map, Node, NodeId, SHARDS_DEFAULT, SHARDS_MAX, ShardBy, Table, What};
pub use maps::{Change, Commit, EVENTS_MAX, Maps, Tried};
pub use marks::{Fits, Prepared, Verdict};
pub use moves::{Giver, Moving};
pub use objects::Objects;
pub use place::{Created, Place, open_place};
pub use shards::assign_shards;
