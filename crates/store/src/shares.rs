//! Shares of a load that several workers do, none of which talks to another: each is kept until all are complete, and
//! then they are published together, once.
//!
//! ```text
//!   STORE/loads/<id of the share>/finished       the share is complete: what it is, and its segments
//!   STORE/loads/shares.lock                      held while shares are looked at together, and published
//! ```
//!
//! A share is a load with a journal of its own. Complete, it is not published: the journal gets a file that says so.
//! Whoever completes a share looks at all of its load, with the lock held, so that of several who end at once the last
//! one sees that nothing is missing. What is published is known by the load's id; journals that are left by a crash
//! after that are found to be published.
//!
//! Where an input is cut, a worker cannot know that a record starts where it begins: the records before say so. They are
//! compared here, where all shares are there; a share that began elsewhere is dropped, and has to be done again.

mod finished;
mod spans;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use coload_ddl::Key;
use coload_types::{Error, Result};

use crate::change::{LoadMode, LoadTarget};
use crate::deleted::Deletions;
use crate::directory::{Layout, list_names, open_or_make, segment_name, sync_file};
use crate::journal::{LoadJournal, begun_on, read_whole, remove_journal, rows_beside};
use crate::keyed::SortWith;
use crate::load_record::{LoadId, LoadKind, LoadRecord};
use crate::manifest::SegmentEntry;
use crate::older_loads::{RememberedLoad, now_us};
use crate::on_conflict::{KeyCounts, OnConflict};
use crate::publish::{ConflictingRow, PublishedAs, ReadyLoad, Settled, Shown};
use crate::row_change::{Basis, Changed};
use crate::segment::SegmentFile;
use crate::store::Store;

pub use finished::{FinishedShare, ShareOf, ShareSegment};
pub use spans::SplitSpan;
use spans::first_that_began_elsewhere;

/// Name of the file that says that a share is complete.
pub(crate) const FINISHED_NAME: &str = "finished";
/// Name of the lock beside the journals.
const LOCK_NAME: &str = "shares.lock";

/// What became of the shares of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharesAre {
    /// Not all are complete: the numbers of those that are.
    Incomplete(Vec<u32>),
    /// The share of this number began where no record does, and was dropped.
    Misread(u32),
    /// They are published now.
    Published(PublishedShares),
    /// They were published before.
    Known(RememberedLoad),
}

/// A load whose shares were published together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedShares {
    /// Id under which it was published.
    pub id: LoadId,
    /// The version that shows it.
    pub version: u64,
    /// Rows of all shares.
    pub rows: u64,
    /// Records of all shares that were set aside.
    pub rejects: u64,
    /// Bytes of the segments.
    pub bytes_stored: u64,
    /// Number of the segments.
    pub segments: u64,
    /// What became of the rows by their keys, where the shares said what is to.
    pub keys: Option<KeyCounts>,
}

/// Rows and rejects of all shares of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharesTotal {
    /// Rows that will be in the table.
    pub rows: u64,
    /// Records that were set aside.
    pub rejects: u64,
}

/// While it is held, nobody else publishes shares or drops complete ones.
#[derive(Debug)]
pub struct SharesLock {
    file: File,
}

impl Drop for SharesLock {
    fn drop(&mut self) {
        // A child that was started meanwhile has the open file too: it is freed in words.
        let _ = self.file.unlock();
    }
}

/// What can be done with the shares of a load.
#[derive(Debug)]
pub enum SharesReady {
    /// Nothing: what became of them.
    Are(SharesAre),
    /// They can be published, when the rows that are rejects for their keys were told.
    Ready(Box<ReadyShare>),
}

/// What became of shares whose rejects were told.
#[derive(Debug)]
pub enum SettledShares {
    /// They are published, by this process or another one.
    Are(SharesAre),
    /// Nothing was published: others changed the table meanwhile, and the load has other rejects now.
    Moved(Box<ReadyShare>),
}

/// One or all shares of a load, whose segments are durable and in order, which fit their table, and which nobody sees yet. Dropped, it
/// leaves the complete shares as they were.
#[derive(Debug)]
pub struct ReadyShare {
    complete: Vec<Complete>,
    ready: Ready,
}

/// A complete share, and where its journal lies.
#[derive(Debug)]
struct Complete {
    dir: PathBuf,
    share: FinishedShare,
}

impl ReadyShare {
    /// The rows that are rejects for their keys if the load is added to the newest version, by their numbers in the order of the shares
    /// and, within, of their inputs.
    ///
    /// # Errors
    /// Those of [`ReadyLoad::find_rejects`].
    pub fn find_rejects(&mut self) -> Result<Vec<ConflictingRow>> {
        let rows = self.ready.load.find_rejects()?;
        let before: u64 = self.complete.iter().map(|complete| complete.share.rejects).sum();
        self.ready.of.total.rejects = before + rows.len() as u64;
        self.ready.load.set_rejects(self.ready.of.total.rejects);
        Ok(rows)
    }

    /// The key of the table, if it has one.
    pub fn key(&self) -> Option<&Key> {
        self.ready.load.key()
    }

    /// Rows of all shares before some are left out for their keys, and all rejects that are known.
    pub fn total(&self) -> SharesTotal {
        self.ready.of.total
    }
}

impl LoadJournal {
    /// Says that the share of this journal is complete, whose segments are durable: it is when this returns.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    pub fn finish_share(&self, share: &FinishedShare) -> Result<()> {
        for segment in &share.segments {
            sync_file("store::publish::sync_segment", &self.path_of(&segment.file))?;
        }
        self.write_file(FINISHED_NAME, share.encode()?)
    }

    /// What was said of the share of this journal if it is complete.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged.
    pub fn finished_share(&self) -> Result<Option<FinishedShare>> {
        read_finished(self.dir())
    }
}

impl Store {
    /// Waits until nobody else publishes shares, or drops complete ones.
    ///
    /// # Errors
    /// `Unavailable` when the file system has no locks.
    pub fn lock_shares(&self) -> Result<SharesLock> {
        let path = self.layout().loads.join(LOCK_NAME);
        let file = open_or_make(&path).map_err(|e| Error::io("lock", &path, &e))?;
        file.lock().map_err(|e| Error::io("lock", &path, &e))?;
        Ok(SharesLock { file })
    }

    /// The complete share in the journal of this id, if it is one.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged.
    pub fn complete_share(&self, journal: LoadId) -> Result<Option<FinishedShare>> {
        read_finished(&self.layout().loads.join(journal.to_string()))
    }

    /// Publishes the shares of load `of.load` into `table` together if all are complete; `check` is asked before that. Rows of a table
    /// with a key are put in order with `sort_with`.
    ///
    /// # Errors
    /// Those of `check`; `Invalid` when the shares do not fit together, or the table; `Unavailable` when the disk fails, or rows are to be
    /// rejects that were not told ([`Self::ready_shares`]).
    pub fn publish_shares(
        &self,
        of: ShareOf,
        table: &str,
        sort_with: SortWith,
        check: impl Fn(SharesTotal) -> Result<()>,
    ) -> Result<SharesAre> {
        let _lock = self.lock_shares()?;
        let complete = find_complete(self.layout(), of.load)?;
        match self.not_to_publish(of, table, &complete)? {
            Some(are) => Ok(are),
            None => publish(self, &complete, sort_with, check).map(SharesAre::Published),
        }
    }

    /// Makes all shares of a load ready to be published, if they can be, of which some rows may be rejects for their keys. Nobody waits
    /// while these are told: who publishes first has done it ([`Self::publish_told`]).
    ///
    /// # Errors
    /// As [`Self::publish_shares`].
    pub fn ready_shares(
        &self,
        of: ShareOf,
        table: &str,
        sort_with: SortWith,
        check: impl Fn(SharesTotal) -> Result<()>,
    ) -> Result<SharesReady> {
        let _lock = self.lock_shares()?;
        let complete = find_complete(self.layout(), of.load)?;
        if let Some(are) = self.not_to_publish(of, table, &complete)? {
            return Ok(SharesReady::Are(are));
        }
        let ready = make_ready(self, &complete, sort_with, check)?;
        Ok(SharesReady::Ready(Box::new(ReadyShare { complete, ready })))
    }

    /// Publishes shares whose rejects are told, if they are still those of the newest version.
    ///
    /// # Errors
    /// As [`Self::publish_shares`]; `Unavailable` when shares were dropped or done again meanwhile.
    pub fn publish_told(
        &self,
        of: ShareOf,
        table: &str,
        shares: ReadyShare,
    ) -> Result<SettledShares> {
        let _lock = self.lock_shares()?;
        let complete = find_complete(self.layout(), of.load)?;
        if let Some(known) = self.known_share(of, table, &complete)? {
            return Ok(SettledShares::Are(known));
        }
        let same = |(now, then): (&Complete, &Complete)| now.share == then.share;
        if complete.len() != shares.complete.len()
            || !complete.iter().zip(&shares.complete).all(same)
        {
            return Err(Error::Unavailable(format!(
                "shares of load {} were dropped or done again while the records were told whose keys are there; nothing was loaded",
                of.load
            )));
        }
        show_told(self, shares)
    }

    /// What became of shares that are published, incomplete or misread.
    fn not_to_publish(
        &self,
        of: ShareOf,
        table: &str,
        complete: &[Complete],
    ) -> Result<Option<SharesAre>> {
        if let Some(known) = self.known_share(of, table, complete)? {
            return Ok(Some(known));
        }
        let numbers: BTreeSet<u32> = complete.iter().map(|c| c.share.of.number).collect();
        if !numbers.iter().copied().eq(1..=of.count) {
            return Ok(Some(SharesAre::Incomplete(numbers.into_iter().collect())));
        }
        let spans = complete.iter().map(|c| (c.share.of.number, &c.share.spans[..]));
        let Some(number) = first_that_began_elsewhere(spans) else { return Ok(None) };
        let misread = complete.iter().find(|c| c.share.of.number == number);
        misread.map_or(Ok(()), |share| remove_journal(self.layout(), &share.dir))?;
        Ok(Some(SharesAre::Misread(number)))
    }

    /// Publishes one share of a load by itself: the others are in the stores of other nodes of a cluster, and it was decided
    /// elsewhere that all are to be seen.
    ///
    /// # Errors
    /// `Invalid` when it does not fit the table; `Unavailable` when the disk fails.
    pub fn publish_own_share(
        &self,
        of: ShareOf,
        table: &str,
        sort_with: SortWith,
    ) -> Result<SharesAre> {
        let _lock = self.lock_shares()?;
        let mut complete = find_complete(self.layout(), of.load)?;
        complete.retain(|complete| complete.share.of.number == of.number);
        if let Some(known) = self.known_share(of, table, &complete)? {
            return Ok(known);
        }
        if complete.is_empty() {
            return Ok(SharesAre::Incomplete(Vec::new()));
        }
        publish(self, &complete, sort_with, |_| Ok(())).map(SharesAre::Published)
    }

    /// Makes one share of a load ready that is to be published as [`Self::publish_own_share`] does, and checks that it could be now.
    /// `None` when it is not complete, or published.
    ///
    /// # Errors
    /// `Invalid` when it does not fit the table, such as for a key that is there already; `Unavailable` when the disk fails.
    pub fn ready_own_share(
        &self,
        of: ShareOf,
        table: &str,
        sort_with: SortWith,
    ) -> Result<Option<ReadyShare>> {
        let _lock = self.lock_shares()?;
        let mut complete = find_complete(self.layout(), of.load)?;
        complete.retain(|complete| complete.share.of.number == of.number);
        if complete.is_empty() || self.known_share(of, table, &complete)?.is_some() {
            return Ok(None);
        }
        let mut ready = make_ready(self, &complete, sort_with, |_| Ok(()))?;
        ready.load.check(&ready.gone)?;
        Ok(Some(ReadyShare { complete, ready }))
    }

    /// Publishes a share that was made ready. Nobody may have changed its table since.
    ///
    /// # Errors
    /// As [`Self::publish_own_share`].
    pub fn publish_ready_share(&self, share: ReadyShare) -> Result<PublishedShares> {
        let _lock = self.lock_shares()?;
        show(self, &share.complete, share.ready)
    }

    /// What is known of the load if its table has it already.
    fn known_share(
        &self,
        of: ShareOf,
        table: &str,
        complete: &[Complete],
    ) -> Result<Option<SharesAre>> {
        let known = self.snapshot()?.published(table, of.load)?;
        if known.is_some() {
            // Left by a crash between the publish and the removal.
            complete.iter().try_for_each(|share| remove_journal(self.layout(), &share.dir))?;
        }
        Ok(known.map(SharesAre::Known))
    }
}

fn read_finished(dir: &Path) -> Result<Option<FinishedShare>> {
    let path = dir.join(FINISHED_NAME);
    if !path.exists() {
        return Ok(None);
    }
    FinishedShare::decode(&read_whole(&path)?).map(Some)
}

/// The complete shares of a load, by their numbers.
fn find_complete(layout: &Layout, load: LoadId) -> Result<Vec<Complete>> {
    let mut found = Vec::new();
    for id in list_names(&layout.loads, |name| name.parse::<LoadId>().ok())? {
        let dir = layout.loads.join(id.to_string());
        if let Some(share) = read_finished(&dir)?
            && share.of.load == load
        {
            found.push(Complete { dir, share });
        }
    }
    found.sort_by_key(|complete| complete.share.of.number);
    Ok(found)
}

/// Shares as one load that is ready to become visible.
#[derive(Debug)]
struct Ready {
    load: ReadyLoad,
    of: ReadyOf,
    /// Rows of the table that go.
    gone: Deletions,
}

/// What is said of shares when they are visible.
#[derive(Debug)]
struct ReadyOf {
    id: LoadId,
    table: String,
    total: SharesTotal,
    bytes_stored: u64,
    segments: u64,
    on_conflict: OnConflict,
}

fn publish(
    store: &Store,
    complete: &[Complete],
    sort_with: SortWith,
    check: impl Fn(SharesTotal) -> Result<()>,
) -> Result<PublishedShares> {
    show(store, complete, make_ready(store, complete, sort_with, check)?)
}

fn make_ready(
    store: &Store,
    complete: &[Complete],
    sort_with: SortWith,
    check: impl Fn(SharesTotal) -> Result<()>,
) -> Result<Ready> {
    let Some(first) = complete.first() else {
        return Err(Error::Invalid("a load of no shares".into()));
    };
    let target: &LoadTarget = &first.share.target;
    let differs = |c: &&Complete| {
        c.share.target != *target
            || c.share.plan != first.share.plan
            || c.share.on_conflict != first.share.on_conflict
            || c.share.delete_where != first.share.delete_where
    };
    if let Some(other) = complete.iter().find(differs) {
        return Err(Error::Invalid(format!(
            "shares {} and {} of load {} are of other plans, tables or columns; nothing was loaded (drop the load with coload \
             loads --abort {0}, and begin it anew)",
            first.share.of.number, other.share.of.number, first.share.of.load
        )));
    }
    let sum = |of: fn(&FinishedShare) -> u64| complete.iter().map(|c| of(&c.share)).sum::<u64>();
    let total = SharesTotal { rows: sum(|s| s.rows), rejects: sum(|s| s.rejects) };
    check(total)?;
    let id = LoadId::random()?;
    let mut segments = Vec::new();
    for Complete { dir, share } in complete {
        for segment in &share.segments {
            let path = dir.join(&segment.file);
            segments.push((entry_of(&path, segment, id, segments.len() as u32)?, path));
        }
    }
    let begun_on = complete.iter().map(|c| begun_on(&c.dir)).collect::<Result<Vec<_>>>()?;
    let record = record_of(complete, id, total);
    let begun_on = begun_on.into_iter().flatten().next();
    let (on_conflict, delete_where) = (first.share.on_conflict, first.share.delete_where.clone());
    let how = PublishedAs { target, on_conflict, delete_where, sort_with };
    let bytes_stored = segments.iter().map(|(segment, _)| segment.bytes).sum();
    let count = segments.len() as u64;
    let load = how.begin(store, (id, begun_on), &segments)?;
    for (segment, path) in segments.iter().filter(|_| load.key().is_some()) {
        if let Some(rows) = rows_beside(path)? {
            load.put_row_numbers(segment, &rows)?;
        }
    }
    // Rows gave way to others of their share when that was written.
    let rows: u64 = segments.iter().map(|(segment, _)| segment.rows).sum();
    let gave_way = record.rows.saturating_sub(rows);
    let load = how.order(load, segments, (record, gave_way))?;
    let mut gone = Deletions::default();
    for of_share in complete.iter().filter_map(|complete| complete.share.gone.clone()) {
        gone.append(of_share);
    }
    let table = target.name.clone();
    let of = ReadyOf { id, table, total, bytes_stored, segments: count, on_conflict };
    Ok(Ready { load, of, gone })
}

/// Makes shares visible that are ready.
fn show(store: &Store, complete: &[Complete], ready: Ready) -> Result<PublishedShares> {
    let Ready { load, of, gone } = ready;
    let shown = match gone.is_empty() {
        true => load.publish(None)?,
        false => show_deleting(store, load, &of.table, &gone)?,
    };
    Ok(of.shown(store, complete, shown))
}

/// Makes shares visible whose rejects are told.
fn show_told(store: &Store, shares: ReadyShare) -> Result<SettledShares> {
    let ReadyShare { complete, ready: Ready { load, of, gone } } = shares;
    Ok(match load.publish_settled(None)? {
        Settled::Shown(shown) => {
            SettledShares::Are(SharesAre::Published(of.shown(store, &complete, shown)))
        }
        Settled::Moved(load, _) => {
            let ready = Ready { load: *load, of, gone };
            SettledShares::Moved(Box::new(ReadyShare { complete, ready }))
        }
    })
}

impl ReadyOf {
    /// What is said of shares that are visible; their journals go.
    fn shown(self, store: &Store, complete: &[Complete], shown: Shown) -> PublishedShares {
        // Published, whatever becomes of the rest: what stays is known to be.
        complete.iter().for_each(|share| drop(remove_journal(store.layout(), &share.dir)));
        PublishedShares {
            id: self.id,
            version: shown.version,
            rows: shown.keys.map_or(self.total.rows, KeyCounts::kept),
            rejects: self.total.rejects,
            bytes_stored: self.bytes_stored,
            segments: self.segments,
            keys: shown.keys.filter(|_| self.on_conflict != OnConflict::Error),
        }
    }
}

fn show_deleting(store: &Store, load: ReadyLoad, table: &str, gone: &Deletions) -> Result<Shown> {
    let snapshot = store.snapshot()?;
    let Some(entry) = snapshot.table(table) else {
        return Err(Error::Invalid(format!("table {table} was dropped meanwhile")));
    };
    match load.publish_deleting(Basis::Rows(entry), gone)? {
        Changed::Published(version) => Ok(Shown { version, keys: None }),
        // Whoever decided that these rows go has seen to it that nobody changes them before.
        Changed::Nothing | Changed::Moved(_) => Err(Error::Corrupt(format!(
            "rows of table {table} that are to be deleted are not where they were"
        ))),
    }
}

/// The entry of a segment of a share, as number `number` of the load that is published.
fn entry_of(path: &Path, of: &ShareSegment, load: LoadId, number: u32) -> Result<SegmentEntry> {
    let file = SegmentFile::open(path)?;
    if file.seal() != of.seal || file.rows() != of.rows || file.bytes() != of.bytes {
        return Err(Error::corrupt(path, "another segment than the share says"));
    }
    Ok(SegmentEntry {
        file: segment_name(load, number),
        rows: of.rows,
        deleted: None,
        bytes: of.bytes,
        load,
        seal: Some(of.seal),
        stored: None,
        trees: Vec::new(),
        columns: file.stats()?,
    })
}

fn record_of(complete: &[Complete], id: LoadId, total: SharesTotal) -> LoadRecord {
    let shares = || complete.iter().map(|complete| &complete.share);
    let kind = match shares().next().map(|share| share.target.mode) {
        Some(LoadMode::Replace) => LoadKind::Replace,
        Some(LoadMode::Create) => LoadKind::Create,
        _ if shares().any(|share| share.gone.is_some()) => LoadKind::Update,
        _ => LoadKind::Append,
    };
    let mut record = LoadRecord::new(id, kind);
    record.key = shares().next().map_or(id, |share| share.of.load);
    record.started_us = shares().map(|share| share.started_us).min().unwrap_or(0);
    record.finished_us = now_us();
    let names: Vec<&String> = shares().flat_map(|share| &share.inputs).collect();
    record.set_inputs(names.iter());
    let all = shares().map(|share| share.input_count).sum::<u64>();
    record.inputs_more = all.saturating_sub(record.inputs.len() as u64);
    (record.rows, record.rejects) = (total.rows, total.rejects);
    record.bytes = shares().map(|share| share.bytes).sum();
    record
}

#[cfg(test)]
mod tests;
