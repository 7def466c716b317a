//! Tables that are held for a load: leaves say whether it fits, the node that commits it waits for them.
//!
//! ```text
//!   hold the table -> LOOK at all leaves: each makes its share ready, checks it, and says so in PLACE -> commit, which frees the table
//! ```
//!
//! A share that was found to fit stays ready, in the order of its key, until the map decides: it is sorted once.
//!
//! Who waits for a table that another load holds looks whether the node that holds it still works on that. So a node which ends leaves a
//! table held for seconds.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coload_cluster::{Commit, Fits, Hold, Holder, Map, Table, Tried, Verdict, hit};
use coload_load::holds_for;
use coload_store::{FinishedShare, LoadId, OnConflict, ReadyShare};
use coload_threads::lock;
use coload_types::{Error, Result};
use coload_wire::journal_of_share;

use super::{Doing, Member};

/// How long a load waits for another that holds its table.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How long the leaves may take to say whether a load fits: they sort it.
const FIT_MAX: Duration = Duration::from_secs(600);
/// How often is looked.
const PAUSE: Duration = Duration::from_millis(20);
/// How often the node that holds a table is asked whether it is at work.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// How often it may give no answer before it is taken for one that has ended.
const UNANSWERED_MAX: u32 = 3;

/// Whether what is in its table may forbid a share.
pub(super) fn fits(share: &FinishedShare) -> Fits {
    let has_key = share.target.schema.key().is_some_and(|key| key.is_unique());
    match share.gone.is_some() || has_key && share.on_conflict == OnConflict::Error {
        true => Fits::IfHeld,
        false => Fits::Always,
    }
}

/// A share of which was said whether it fits.
#[derive(Debug)]
pub(super) struct Fitting {
    holder: Holder,
    /// The share, if it does.
    ready: Option<ReadyShare>,
}

impl Fitting {
    /// The share of a load, ready.
    pub fn ready_of(self, load: LoadId) -> Option<ReadyShare> {
        self.ready.filter(|_| self.holder.load == load)
    }
}

/// A table that this node holds for a load. It is let go of when this is dropped.
#[derive(Debug)]
pub struct HeldTable {
    member: Arc<Member>,
    table: u64,
    load: LoadId,
    since: u64,
    /// Whether another of this node holds it for the same load.
    is_shared: bool,
}

impl HeldTable {
    /// The load that it is held for.
    pub fn load(&self) -> LoadId {
        self.load
    }
}

impl Drop for HeldTable {
    fn drop(&mut self) {
        if self.is_shared {
            return;
        }
        lock(&self.member.holds).remove(&self.load);
        // What fails is done by the look that comes next.
        let _ = self.member.let_go_of_ended();
    }
}

/// A wait for a load that holds a table.
struct Waiting {
    until: Instant,
    asked: Instant,
    unanswered: u32,
}

impl Waiting {
    fn new() -> Self {
        let now = Instant::now();
        Waiting { until: now + WAIT_MAX, asked: now, unanswered: 0 }
    }
}

impl Member {
    /// Whether this node works on a load for which it holds a table.
    pub(crate) fn holds(&self, load: LoadId) -> bool {
        lock(&self.holds).contains(&load)
    }

    /// Lets go of tables that this node holds for loads which it does not work on any more.
    ///
    /// # Errors
    /// `Unavailable` when the place is away.
    pub(crate) fn let_go_of_ended(&self) -> Result<()> {
        let is_over = |_: &Table, of: Holder| of.node == self.id && !self.holds(of.load);
        let map = self.maps.current()?;
        let is_ended = |table: &Table| table.holder.is_some_and(|holder| is_over(table, holder));
        match map.tables.iter().any(is_ended) {
            true => self.maps.let_go(is_over),
            false => Ok(()),
        }
    }

    /// Holds a table for a load that this node commits; waits for others that hold it.
    ///
    /// # Errors
    /// `Unavailable` when others hold it for too long, or the place is away; `Invalid` when it is gone.
    pub fn hold(self: &Arc<Self>, table: u64, load: LoadId) -> Result<HeldTable> {
        // Before the map says so, so that nobody who asks is told that it is over.
        let is_shared = !lock(&self.holds).insert(load);
        let mut held = HeldTable { member: Arc::clone(self), table, load, since: 0, is_shared };
        let mut waiting = Waiting::new();
        loop {
            match self.maps.hold(table, load, self.id)? {
                Hold::Held(since) => {
                    held.since = since;
                    return Ok(held);
                }
                Hold::By(holder) => self.wait_for(table, holder, &mut waiting)?,
                Hold::Moving => {
                    if Instant::now() > waiting.until {
                        return Err(Error::Unavailable(
                            "shards of the table are on their way to other leaves (try again)"
                                .into(),
                        ));
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }

    /// Waits a while for a load that holds a table, and lets go of it if it has ended.
    fn wait_for(&self, table: u64, holder: Holder, waiting: &mut Waiting) -> Result<()> {
        if Instant::now() > waiting.until {
            return Err(Error::Unavailable(format!(
                "load {} has held the table for {} s; nothing was changed (try again)",
                holder.load,
                WAIT_MAX.as_secs()
            )));
        }
        std::thread::sleep(PAUSE);
        if waiting.asked.elapsed() < ASK_INTERVAL {
            return Ok(());
        }
        waiting.asked = Instant::now();
        let map = self.maps.current()?;
        let is_over = match map.node(holder.node) {
            None => true,
            Some(_) if holder.node == self.id => !self.holds(holder.load),
            Some(node) => match holds_for(&self.calls, node, holder.load) {
                Ok(holds) => !holds,
                Err(Error::Unavailable(_)) => {
                    waiting.unanswered += 1;
                    waiting.unanswered >= UNANSWERED_MAX
                }
                Err(error) => return Err(error),
            },
        };
        match is_over {
            true => self.maps.let_go(|of, held| of.id == table && held == holder),
            false => Ok(()),
        }
    }

    /// Says whether shares fit the tables that are held for their loads.
    pub(super) fn say_what_fits(&self, doing: &mut Doing, map: &Map) -> Result<()> {
        let is_held = |table: &u64, of: &mut Fitting| {
            map.table_of(*table).is_some_and(|table| table.holder == Some(of.holder))
        };
        doing.fitting.retain(is_held);
        for table in &map.tables {
            let Some(holder) = table.holder else { continue };
            let Some(share) = self.share(table, holder.load) else { continue };
            if doing.fitting.contains_key(&table.id) {
                continue;
            }
            let Some(complete) = self.store.complete_share(journal_of_share(share))? else {
                continue;
            };
            if fits(&complete) == Fits::Always {
                continue;
            }
            let ready = self.store.ready_own_share(share, &table.name, self.sort_with);
            let (ready, refused) = match ready {
                Ok(ready) => (ready, None),
                Err(Error::Invalid(text) | Error::Corrupt(text)) => (None, Some(text)),
                Err(error) => return Err(error),
            };
            self.maps.put_verdict(
                holder.load,
                self.id,
                &Verdict { since: holder.since, refused },
            )?;
            hit("cluster::leaf::fits");
            doing.fitting.insert(table.id, Fitting { holder, ready });
        }
        Ok(())
    }

    /// Commits a load that all leaves have prepared.
    ///
    /// # Errors
    /// As [`coload_cluster::Maps::commit`]; `Invalid` when its rows do not fit the table.
    pub fn commit(self: &Arc<Self>, load: LoadId, table: u64, tried: Tried) -> Result<Commit> {
        hit("cluster::commit::before");
        let mut waiting = Waiting::new();
        loop {
            let held = match self.is_to_be_held(load, table)? {
                true => {
                    let held = self.hold(table, load)?;
                    hit("cluster::commit::held");
                    self.have_leaves_say(&held)?;
                    Some(held)
                }
                false => None,
            };
            let done = self.maps.commit(load, table, tried);
            drop(held);
            let error = match done {
                Ok(commit) => {
                    hit("cluster::commit::after");
                    return Ok(commit);
                }
                Err(error) => error,
            };
            if matches!(error, Error::Invalid(_)) {
                // Nobody can go on with it.
                let _ = self.maps.abort(load, None);
                return Err(error);
            }
            let map = self.maps.current()?;
            match map.table_of(table).and_then(|of| of.held_by_other(load)) {
                Some(holder) if map.aborted(load).is_none() => {
                    self.wait_for(table, holder, &mut waiting)?;
                }
                _ => return Err(error),
            }
        }
    }

    /// Whether a load may fail for what is in its table.
    fn is_to_be_held(&self, load: LoadId, table: u64) -> Result<bool> {
        let map = self.maps.current()?;
        let Some(of) = map.table_of(table).filter(|_| map.loaded(load, table).is_none()) else {
            return Ok(false);
        };
        let is_held = of.holder.is_some_and(|holder| holder.load == load);
        if !is_held && !of.schema.key().is_some_and(|key| key.is_unique()) {
            return Ok(false);
        }
        for leaf in &of.leaves {
            let mark = self.maps.prepared(load, *leaf)?;
            if mark.is_some_and(|mark| mark.fits == Fits::IfHeld) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until all leaves have said whether a load fits its table, which is held.
    fn have_leaves_say(&self, held: &HeldTable) -> Result<()> {
        let until = Instant::now() + FIT_MAX;
        loop {
            let map = self.maps.current()?;
            let Some(of) = map.table_of(held.table) else { return Ok(()) };
            if of.holder.map(|holder| holder.since) != Some(held.since) {
                // The commit says so.
                return Ok(());
            }
            let mut waits = HashSet::new();
            for leaf in &of.leaves {
                let mark = self.maps.prepared(held.load, *leaf)?;
                let verdict = self.maps.verdict(held.load, *leaf)?;
                let has_said = verdict.is_some_and(|verdict| verdict.since == held.since);
                if mark.is_some_and(|mark| mark.fits == Fits::IfHeld) && !has_said {
                    waits.insert(*leaf);
                }
            }
            if waits.is_empty() {
                return Ok(());
            }
            let looked = self.leaves_at(&map, held.table).look(|node| waits.contains(&node.id));
            if Instant::now() > until {
                return looked.and(Err(Error::Unavailable(format!(
                    "leaves have not said within {} s whether load {} fits",
                    FIT_MAX.as_secs(),
                    held.load
                ))));
            }
            std::thread::sleep(PAUSE);
        }
    }
}
