//! Shares of a load that several clients send: each is kept, complete, until all are there.

use std::collections::HashMap;
use std::time::SystemTime;

use coload_link::Message;
use coload_store::{
    JournalEntry, LoadId, LoadJournal, OnConflict, ReadyShare, SegmentEntry, SettledShares,
    ShareSegment, SharesAre, SharesReady, merge_small_within,
};
use coload_threads::{lock, peak_memory_bytes, process_cpu_ns};
use coload_types::{Error, Result};
use coload_wire::{
    DONE, Done, Finish, LoadDescription, ShareCounts, SharesDone, journal_of_share, show_numbers,
};

use super::{Begun, Inner};
use crate::active::Active;
use crate::options::Keep;
use crate::pending::{Waits, ask_for};

/// When something of the load of each share was acknowledged last, by the journals of the shares.
pub(super) fn last_used(journals: &[JournalEntry]) -> HashMap<LoadId, SystemTime> {
    let load_of = |entry: &JournalEntry| {
        let description = LoadDescription::decode(&entry.description).ok()?;
        description.share.map(|share| share.of.load)
    };
    let loads: Vec<(LoadId, &JournalEntry)> =
        journals.iter().filter_map(|entry| Some((load_of(entry)?, entry))).collect();
    let mut last: HashMap<LoadId, SystemTime> = HashMap::new();
    for (load, entry) in &loads {
        let used = last.entry(*load).or_insert(entry.modified);
        *used = (*used).max(entry.modified);
    }
    loads.iter().filter_map(|(load, entry)| Some((entry.id, *last.get(load)?))).collect()
}

/// Shares of a load that can be published when a client has told which of their records are rejects for their keys.
#[derive(Debug)]
pub struct PendingShares {
    ready: Box<ReadyShare>,
    description: LoadDescription,
    /// What the client is told in the end.
    done: Done,
}

/// What became of the shares of a load.
#[derive(Debug)]
pub(crate) enum AllShares {
    /// What the client is told of them.
    Done(Box<Done>),
    /// They are ready, and the client is asked for these rows.
    ToTell(Box<PendingShares>, Message),
}

impl AllShares {
    /// What the client of a share is told; what waits for it is kept with the share.
    pub fn answer_of(self, load: &Active) -> Message {
        match self {
            AllShares::Done(done) => Message::new(DONE, done.encode()),
            AllShares::ToTell(pending, question) => {
                *lock(&load.pending) = Some(Waits::Shares(pending));
                question
            }
        }
    }
}

fn corrupt() -> Error {
    Error::Corrupt("a load that is no share".into())
}

impl Inner {
    /// The journals of the shares of a load.
    pub(super) fn shares_of(&self, load: LoadId) -> Result<Vec<LoadId>> {
        let is_share = |entry: &JournalEntry| {
            let description = LoadDescription::decode(&entry.description);
            description.is_ok_and(|d| d.share.is_some_and(|share| share.of.load == load))
        };
        let journals = self.store.list_journals()?.into_iter();
        Ok(journals.filter(is_share).map(|entry| entry.id).collect())
    }

    /// Compares a share with those of the same load that were begun. What was begun of the same share in another way
    /// is dropped.
    pub(super) fn fit_shares(
        &self,
        id: LoadId,
        description: &mut LoadDescription,
        begun: &[JournalEntry],
    ) -> Result<()> {
        if self.options.keep == Keep::Nothing {
            return Err(Error::Invalid("this server keeps nothing, and no shares of loads".into()));
        }
        for entry in begun {
            let Ok(begun) = LoadDescription::decode(&entry.description) else { continue };
            description.fit_share(&begun)?;
            // A complete one stays, wherever it began: it is compared with the others.
            let other = entry.id == id && !description.is_same_share(&begun);
            if other && self.store.complete_share(id)?.is_none() {
                self.abort_one(id)?;
            }
        }
        Ok(())
    }

    /// Keeps a share whose partitions are all there, and publishes all if it was the last.
    pub(super) fn finish_share(
        &self,
        load: &Active,
        finish: &Finish,
        (segments, rejects): (Vec<SegmentEntry>, u64),
    ) -> Result<AllShares> {
        let share = load.description.share.as_ref().ok_or_else(corrupt)?;
        let bytes_stored = segments.iter().map(|segment| segment.bytes).sum();
        let count = segments.len() as u64;
        let kept = segments.into_iter().map(|entry| ShareSegment {
            file: entry.file,
            rows: entry.rows,
            bytes: entry.bytes,
            seal: entry.seal.unwrap_or(0),
        });
        let counts = ShareCounts {
            started_us: finish.started_us,
            rows: finish.rows,
            rejects,
            bytes: finish.bytes,
        };
        let ends = load.ends();
        let end = |number: usize| ends.get(&number).copied().unwrap_or(0);
        let target = load.target();
        let mut finished = load.description.finished_share(target, counts, kept.collect(), end)?;
        if let Some(gone) = lock(&load.gone).take() {
            finished.gone = Some(self.gone(share, &gone)?);
        }
        let over = || Error::Refused(format!("load {} is over", load.id));
        let journal: LoadJournal = lock(&load.journal).take().ok_or_else(over)?;
        let written = journal.finish_share(&finished);
        if written.is_err() {
            *lock(&load.journal) = Some(journal);
            written?;
            return Err(over());
        }
        drop(journal);
        self.prepare(share, finish.rows)?;
        let done = Done {
            id: load.publish_id.as_u128(),
            rows: finish.rows,
            rejects,
            bytes_stored,
            segments: count,
            ..Done::default()
        };
        let mut shares = self.publish_shares(&load.description, done)?;
        let done = match &mut shares {
            AllShares::Done(done) => done,
            AllShares::ToTell(pending, _) => &mut pending.done,
        };
        done.cpu_ns = process_cpu_ns() - load.cpu_started_ns;
        done.peak_memory = peak_memory_bytes();
        Ok(shares)
    }

    /// What the client of a share is told, or asked, that was complete before it came.
    pub(super) fn complete_before(&self, description: &LoadDescription) -> Result<Begun> {
        let share = description.share.as_ref().ok_or_else(corrupt)?;
        if let Some(complete) = self.store.complete_share(journal_of_share(share.of))? {
            self.prepare(share, complete.rows)?;
        }
        let done = Done { id: share.of.load.as_u128(), already: true, ..Done::default() };
        Ok(match self.publish_shares(description, done)? {
            AllShares::Done(done) => Begun::Done(Message::new(DONE, done.encode())),
            AllShares::ToTell(pending, question) => Begun::Shares(pending, question),
        })
    }

    /// Publishes the shares of a load, if all are there and no record is to be told.
    fn publish_shares(&self, description: &LoadDescription, done: Done) -> Result<AllShares> {
        let share = description.share.as_ref().ok_or_else(corrupt)?;
        let limit = description.max_rejects;
        let check = |total| limit.check_shares(share.of, total);
        let one = description.schema.key().map(|_| lock(&self.one_sort));
        let (of, table, sort_with) = (share.of, &description.table, self.options.sort_with());
        let ready = match description.on_conflict {
            OnConflict::Reject => self.store.ready_shares(of, table, sort_with, check)?,
            _ => SharesReady::Are(self.store.publish_shares(of, table, sort_with, check)?),
        };
        drop(one);
        match ready {
            SharesReady::Are(are) => Ok(self.done_with(description, done, &are)?),
            SharesReady::Ready(ready) => {
                self.look_at_shares(PendingShares { ready, description: description.clone(), done })
            }
        }
    }

    /// Looks which rows are rejects in the newest version; publishes the shares if none are.
    fn look_at_shares(&self, mut pending: PendingShares) -> Result<AllShares> {
        let rows = pending.ready.find_rejects()?;
        if rows.is_empty() {
            return self.show_shares(pending);
        }
        let question = ask_for(&rows, pending.ready.total().rows);
        Ok(AllShares::ToTell(Box::new(pending), question))
    }

    /// Publishes shares whose rejects were told, or asks for them once more where others changed the table meanwhile.
    pub(crate) fn show_shares(&self, pending: PendingShares) -> Result<AllShares> {
        let PendingShares { ready, description, done } = pending;
        let share = description.share.as_ref().ok_or_else(corrupt)?;
        match self.store.publish_told(share.of, &description.table, *ready)? {
            SettledShares::Are(are) => self.done_with(&description, done, &are),
            SettledShares::Moved(ready) => {
                self.look_at_shares(PendingShares { ready, description, done })
            }
        }
    }

    /// What a client is told at last.
    fn done_with(
        &self,
        description: &LoadDescription,
        done: Done,
        are: &SharesAre,
    ) -> Result<AllShares> {
        let share = description.share.as_ref().ok_or_else(corrupt)?;
        let shares = SharesDone::new(share.of, are);
        let Done { version, mut note, .. } = self.done_of(description, are);
        if note.is_empty() && done.already {
            note = match shares.missing.as_slice() {
                [] => format!("share {} was complete, and all are published now", share.shown()),
                missing => format!(
                    "share {} was complete before; missing: {}",
                    share.shown(),
                    show_numbers(missing)
                ),
            };
        }
        Ok(AllShares::Done(Box::new(Done { version, note, shares: Some(shares), ..done })))
    }

    /// The version that shows the shares, and what was merged after it.
    fn done_of(&self, description: &LoadDescription, are: &SharesAre) -> Done {
        match are {
            SharesAre::Published(all) => {
                let merged =
                    merge_small_within(&self.store, &description.table, self.options.load_memory);
                let note = match merged {
                    Ok(merge) if merge.merges == 0 => String::new(),
                    Ok(merge) => format!(
                        "{} small segments became {}",
                        merge.segments_before, merge.segments_after
                    ),
                    Err(error) => format!("small segments could not be merged: {error}"),
                };
                Done { version: all.version, note, ..Done::default() }
            }
            SharesAre::Known(load) => Done { version: load.version, ..Done::default() },
            SharesAre::Incomplete(_) | SharesAre::Misread(_) => Done::default(),
        }
    }

    /// Publishes loads whose shares are all complete: the process that completed the last one ended before it could.
    pub(super) fn publish_complete(&self) -> Result<()> {
        let mut asked = Vec::new();
        for entry in self.store.list_journals()? {
            let Ok(description) = LoadDescription::decode(&entry.description) else { continue };
            let Some(share) = &description.share else { continue };
            if asked.contains(&share.of.load) {
                continue;
            }
            asked.push(share.of.load);
            if description.on_conflict == OnConflict::Reject {
                // Who tells the records that are rejects is a client: it comes again.
                continue;
            }
            // What does not fit is told to whoever comes again.
            let _ = self.publish_shares(&description, Done::default());
        }
        Ok(())
    }
}
