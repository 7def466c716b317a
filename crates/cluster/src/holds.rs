//! Tables that are held for one load: no other is committed into them meanwhile.
//!
//! ```text
//!   version f     table: held by a load        its rows are the same in all versions from here on
//!   ...           leaves check that its rows fit, or find rows that it changes
//!   version s     the load is committed, and the table is free; or it is let go
//! ```
//!
//! A load is held that may fail for what is in the table (a key that is there already), and a statement that changes rows of it: what
//! was found before the commit is still so when the commit is done.
//!
//! Who holds a table may end. Whoever waits for it asks the node that holds it, and lets go of it in its place when that has ended:
//! the commit of a load that is held fails when its table is held no longer.

use coload_store::LoadId;
use coload_types::{Error, Result};

use crate::map::{Map, NodeId, Table};
use crate::maps::{Change, Maps};

/// The load that a table is held for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// The load.
    pub load: LoadId,
    /// The node that commits it.
    pub node: NodeId,
    /// The version that holds it.
    pub since: u64,
}

/// What became of a wish to hold a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It is held since this version.
    Held(u64),
    /// Another load holds it.
    By(Holder),
    /// Its shards are on their way to other leaves.
    Moving,
}

impl Table {
    /// The holder of the table, if it is another than this load.
    pub fn held_by_other(&self, load: LoadId) -> Option<Holder> {
        self.holder.filter(|holder| holder.load != load)
    }
}

impl Maps {
    /// Holds a table for a load that a node commits. A load that is held by another node goes over to this one.
    ///
    /// # Errors
    /// `Invalid` when the table is gone; `Unavailable` when the place is away.
    pub fn hold(&self, table: u64, load: LoadId, node: NodeId) -> Result<Hold> {
        let (_, hold) = self.change(|map| {
            let version = map.version;
            let Some(of) = map.tables.iter_mut().find(|of| of.id == table) else {
                return Err(Error::Invalid(
                    "the table was dropped meanwhile; nothing was changed".into(),
                ));
            };
            match of.holder {
                Some(holder) if holder.load != load => return Ok(Change::Same(Hold::By(holder))),
                Some(holder) if holder.node == node => {
                    return Ok(Change::Same(Hold::Held(holder.since)));
                }
                _ => {}
            }
            if of.moving.is_some() {
                return Ok(Change::Same(Hold::Moving));
            }
            of.holder = Some(Holder { load, node, since: version });
            Ok(Change::Changed(Hold::Held(version)))
        })?;
        Ok(hold)
    }

    /// Lets go of tables that are held, of which `is_over` says so.
    ///
    /// # Errors
    /// `Unavailable` when the place is away.
    pub fn let_go(&self, is_over: impl Fn(&Table, Holder) -> bool) -> Result<()> {
        let done = self.change(|map| {
            let mut over = Change::Same(());
            for table in &mut map.tables {
                if table.holder.is_some_and(|holder| is_over(table, holder)) {
                    table.holder = None;
                    over = Change::Changed(());
                }
            }
            Ok(over)
        });
        done.map(|_| ())
    }
}

impl Map {
    /// Frees the table that is held for a load.
    pub(crate) fn end_hold(&mut self, load: LoadId) {
        let held = |table: &&mut Table| table.holder.is_some_and(|holder| holder.load == load);
        self.tables.iter_mut().filter(held).for_each(|table| table.holder = None);
    }
}
