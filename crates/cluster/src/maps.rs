//! All versions of the map of a cluster: the newest is read, and the next one is made from it.
//!
//! ```text
//!   read version n, make n + 1 of it, create PLACE/map/<n + 1>.map
//!       taken: somebody was faster; read his, and make the next one of that
//! ```
//!
//! A version is named by its number, and a name is taken once. Old versions are removed, [`VERSIONS_KEPT`] behind the
//! newest; so that a node which slept for so long does not take a name anew that was removed, and believe that it has
//! decided something, it looks after it has made a version whether the newest is as far ahead as that.

use std::sync::{Arc, Mutex};

use coload_store::LoadId;
use coload_threads::lock;
use coload_types::{Error, Result};

use crate::map::{Map, NodeId, Table, What};
use crate::marks::{Fits, Verdict};
use crate::place::{Created, Place};

/// Versions behind the newest that stay.
const VERSIONS_KEPT: u64 = 1_000;
/// How often others may be faster before a writer gives up.
const ATTEMPTS_MAX: usize = 10_000;
/// Most events of a map. More are there when a node has been away for that many loads.
pub const EVENTS_MAX: usize = 10_000;
/// Events from which on it is worth asking how far all nodes are.
const EVENTS_FEW: usize = 32;
/// Digits of a version in a name: enough for any `u64`, so that names sort as versions.
const VERSION_DIGITS: usize = 20;

/// What a change of the map came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<T> {
    /// The map is another one.
    Changed(T),
    /// It is as wanted already.
    Same(T),
}

/// Whether a load that cannot be committed now is tried again by its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// It is, and is prepared anew by leaves that have dropped it.
    Again,
    /// Its inputs come once.
    Once,
}

impl Tried {
    /// The error for what may be over when the load is prepared anew.
    fn not_now(self, text: String) -> Error {
        match self {
            Tried::Again => Error::Unavailable(format!(
                "{text}; nothing was loaded yet, and the same load goes on"
            )),
            Tried::Once => Error::Refused(format!("{text}; nothing was loaded (load again)")),
        }
    }
}

/// What became of a load that was to be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// The version that has it.
    pub version: u64,
    /// Rows of all leaves; 0 when it was committed before.
    pub rows: u64,
    /// Whether it was committed before.
    pub already: bool,
}

/// The map of a cluster in its place. Clones share what was read last.
#[derive(Debug, Clone)]
pub struct Maps {
    place: Arc<dyn Place>,
    newest: Arc<Mutex<Option<Arc<Map>>>>,
}

fn name_of(version: u64) -> String {
    format!("map/{version:0VERSION_DIGITS$}.map")
}

fn version_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".map")?;
    let is_ours = digits.len() == VERSION_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    if is_ours { digits.parse().ok() } else { None }
}

impl Maps {
    /// The map in a place.
    pub fn new(place: Arc<dyn Place>) -> Self {
        Maps { place, newest: Arc::default() }
    }

    /// Where it is.
    pub fn place(&self) -> &dyn Place {
        &*self.place
    }

    /// The newest version; `None` when nobody has made one.
    ///
    /// Costs one look at a name when nothing has changed.
    ///
    /// # Errors
    /// `Unavailable` when the place is away, `Corrupt` when the map is damaged.
    pub fn newest(&self) -> Result<Option<Arc<Map>>> {
        let known = lock(&self.newest).clone();
        if let Some(known) = known
            && !self.place.exists(&name_of(known.version + 1))?
            // Removed, it is so old that the next one is gone too.
            && self.place.exists(&name_of(known.version))?
        {
            return Ok(Some(known));
        }
        // One that is removed while it is asked for is old, and there are newer ones.
        for _ in 0..ATTEMPTS_MAX {
            let Some(version) = self.versions()?.into_iter().max() else { return Ok(None) };
            let Some(bytes) = self.place.read(&name_of(version))? else { continue };
            let map = Map::decode(&bytes)?;
            if map.version != version {
                return Err(Error::Corrupt(format!(
                    "{} of {} is version {}",
                    name_of(version),
                    self.place.shown(),
                    map.version
                )));
            }
            return Ok(Some(self.remember(Arc::new(map))));
        }
        Err(Error::Unavailable(format!(
            "versions of {} go faster than they can be read",
            self.place.shown()
        )))
    }

    /// The newest version.
    ///
    /// # Errors
    /// As [`Self::newest`]; `Invalid` when nobody has made one.
    pub fn current(&self) -> Result<Arc<Map>> {
        self.newest()?.ok_or_else(|| {
            Error::Invalid(format!(
                "{} has no cluster yet (coload serve --cluster makes one)",
                self.place.shown()
            ))
        })
    }

    fn remember(&self, map: Arc<Map>) -> Arc<Map> {
        let mut newest = lock(&self.newest);
        match &*newest {
            Some(known) if known.version >= map.version => Arc::clone(known),
            _ => Arc::clone(newest.insert(map)),
        }
    }

    fn versions(&self) -> Result<Vec<u64>> {
        Ok(self.place.list("map")?.iter().filter_map(|name| version_of(name)).collect())
    }

    /// The newest version, or the first one if nobody has made any.
    ///
    /// # Errors
    /// As [`Self::newest`].
    pub fn open_or_create(&self) -> Result<Arc<Map>> {
        if let Some(map) = self.newest()? {
            return Ok(map);
        }
        let first = Map::new(LoadId::random()?.as_u128());
        // Whoever is faster, it is the map of all.
        self.place.create(&name_of(first.version), &first.encode())?;
        self.current()
    }

    /// Makes the next version: `change` gets the newest one with the next number, again when somebody was faster.
    /// Gives the version that has it.
    ///
    /// # Errors
    /// Those of `change`; `Limit` when there are too many events; `Unavailable` when the place is away, and then it may have
    /// been made.
    pub fn change<T>(
        &self,
        mut change: impl FnMut(&mut Map) -> Result<Change<T>>,
    ) -> Result<(Arc<Map>, T)> {
        for _ in 0..ATTEMPTS_MAX {
            let base = self.current()?;
            let mut next = Map::clone(&base);
            next.version += 1;
            let told = match change(&mut next)? {
                Change::Same(told) => return Ok((base, told)),
                Change::Changed(told) => told,
            };
            self.forget_events(&mut next)?;
            if self.place.create(&name_of(next.version), &next.encode())? == Created::Taken {
                continue;
            }
            self.check_newly_made(next.version)?;
            self.remove_old(next.version);
            return Ok((self.remember(Arc::new(next)), told));
        }
        Err(Error::Unavailable(format!(
            "others change the map of {} all the time; nothing was changed",
            self.place.shown()
        )))
    }

    /// Leaves out events that all nodes have done.
    fn forget_events(&self, map: &mut Map) -> Result<()> {
        if map.events.len() < EVENTS_FEW {
            return Ok(());
        }
        let mut least = (u64::MAX, None);
        for node in &map.nodes {
            let applied = self.applied(node.id)?.max(node.joined);
            least = least.min((applied, Some(node.id)));
        }
        if let (version, Some(_)) = least {
            map.events.retain(|event| event.version > version);
            map.horizon = map.horizon.max(version.min(map.version - 1));
        }
        if map.events.len() <= EVENTS_MAX {
            return Ok(());
        }
        let behind = least.1.and_then(|id| map.node(id));
        Err(Error::Limit(format!(
            "node {} has been away for {EVENTS_MAX} loads; the cluster takes no more until it is back",
            behind.map_or("?", |node| &node.address)
        )))
    }

    /// A version that was made must be the first of its number.
    fn check_newly_made(&self, version: u64) -> Result<()> {
        let newest = self.versions()?.into_iter().max().unwrap_or(version);
        if newest < version + VERSIONS_KEPT {
            return Ok(());
        }
        let _ = self.place.remove(&name_of(version));
        Err(Error::Unavailable(format!(
            "this process slept while {} versions of the map were made; what it wanted is not done, or was done before",
            newest - version
        )))
    }

    fn remove_old(&self, newest: u64) {
        // Not at each version, so that a list is asked for rarely.
        if !newest.is_multiple_of(64) {
            return;
        }
        // What stays is removed later.
        for version in self.versions().unwrap_or_default() {
            if version + VERSIONS_KEPT < newest {
                let _ = self.place.remove(&name_of(version));
            }
        }
    }

    /// Commits a load: all nodes see its rows from that version on, or nobody does. All leaves of its table must have
    /// prepared it.
    ///
    /// # Errors
    /// `Invalid` when the table is another one meanwhile; `Refused` when the load was given up; `Unavailable` when a leaf has
    /// not prepared it.
    pub fn commit(&self, load: LoadId, table: u64, tried: Tried) -> Result<Commit> {
        let decided = self.change(|map| {
            if let Some(version) = map.loaded(load, table).or_else(|| map.moved(load, table)) {
                return Ok(Change::Same(Commit { version, rows: 0, already: true }));
            }
            let Some(of) = map.table_of(table) else {
                return Err(Error::Invalid(format!(
                    "the table of load {load} was dropped meanwhile; nothing was loaded"
                )));
            };
            let moves = of.moving.as_ref().is_some_and(|moving| moving.load == load);
            if of.moving.is_some() && !moves {
                return Err(tried.not_now(format!(
                    "shards of table {} are on their way to other leaves",
                    of.name
                )));
            }
            if let Some(other) = of.held_by_other(load) {
                return Err(tried.not_now(format!(
                    "rows of table {} are being changed by load {}",
                    of.name, other.load
                )));
            }
            let receiving = of.receiving();
            let leaves = match (moves, &receiving) {
                (false, _) => &of.leaves[..],
                (true, Some(receiving)) => &receiving.leaves,
                (true, None) => &[],
            };
            let mut rows = 0;
            for leaf in leaves {
                let mark = self.prepared(load, *leaf)?.filter(|mark| {
                    mark.table == table
                        && mark.version >= of.since
                        && map.aborted(load).is_none_or(|gone| gone <= mark.version)
                });
                let Some(mark) = mark else {
                    if map.aborted(load).is_some() {
                        return Err(Error::Refused(format!("load {load} was given up")));
                    }
                    let shown = map
                        .node(*leaf)
                        .map_or_else(|| leaf.to_string(), |node| node.address.clone());
                    return Err(
                        tried.not_now(format!("load {load} is not prepared by leaf {shown}"))
                    );
                };
                if mark.fits == Fits::IfHeld {
                    self.check_fits((load, *leaf), of, tried)?;
                }
                // Each leaf of a table that is everywhere has the same rows.
                rows = if of.is_everywhere() { mark.rows } else { rows + mark.rows };
            }
            if moves {
                map.end_move(table);
                return Ok(Change::Changed(Commit { version: map.version, rows, already: false }));
            }
            if let Some(made) = map.tables.iter_mut().find(|of| of.id == table) {
                made.making = None;
            }
            map.end_hold(load);
            map.decide(What::Loaded { load, table });
            Ok(Change::Changed(Commit { version: map.version, rows, already: false }))
        });
        decided.map(|(_, commit)| commit)
    }

    /// Rows that may not fit are committed only into a table that is held for them since the leaf found that they do.
    fn check_fits(&self, (load, leaf): (LoadId, NodeId), of: &Table, tried: Tried) -> Result<()> {
        let held = of.holder.filter(|holder| holder.load == load).map(|holder| holder.since);
        let verdict = self.verdict(load, leaf)?;
        match verdict.filter(|verdict| Some(verdict.since) == held) {
            None => {
                Err(tried
                    .not_now(format!("table {} is not held for load {load} any more", of.name)))
            }
            Some(Verdict { refused: Some(text), .. }) => Err(Error::Invalid(text)),
            Some(Verdict { refused: None, .. }) => Ok(()),
        }
    }

    /// Gives a load up that is not committed: nodes drop what they have of it. So does its table, if that is known, while it is
    /// being made: nobody else loads into it; and shards that it was to bring elsewhere stay where they are. Gives the version
    /// that says so.
    ///
    /// # Errors
    /// `Refused` when it is committed; `Unavailable` when the place is away.
    pub fn abort(&self, load: LoadId, table: Option<u64>) -> Result<u64> {
        let decided = self.change(|map| {
            let is = |what: What| {
                matches!(what, What::Loaded { load: of, .. } | What::Moved { load: of, .. } if of == load)
            };
            if map.events.iter().any(|event| is(event.what)) {
                return Err(Error::Refused(format!("load {load} is committed")));
            }
            map.give_up(load, table);
            Ok(Change::Changed(map.version))
        });
        decided.map(|(_, version)| version)
    }

    /// Drops tables that are being made, of which `is_gone` says that nobody makes them any more.
    ///
    /// # Errors
    /// `Unavailable` when the place is away.
    pub fn drop_unmade(&self, is_gone: impl Fn(&Table) -> bool) -> Result<()> {
        let dropped = self.change(|map| {
            let before = map.tables.len();
            map.tables.retain(|table| table.making.is_none() || !is_gone(table));
            match before == map.tables.len() {
                true => Ok(Change::Same(())),
                false => Ok(Change::Changed(())),
            }
        });
        dropped.map(|_| ())
    }
}

#[cfg(test)]
mod tests;
