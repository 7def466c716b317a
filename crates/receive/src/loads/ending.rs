//! How loads end: published, left for the next attempt, dropped, or forgotten.

use std::sync::{Arc, atomic::Ordering};
use std::time::{Instant, SystemTime};

use coload_link::Message;
use coload_store::{
    KeyCounts, LoadId, LoadJournal, LoadKind, LoadMode, LoadRecord, OnConflict, PublishedAs,
    Settled, merge_small_within,
};
use coload_threads::{lock, peak_memory_bytes, process_cpu_ns};
use coload_types::{Error, Result};
use coload_wire::{DONE, Done, Finish, LoadDescription};

use super::identity::key_of;
use super::shares::AllShares;
use super::{EXPIRE_INTERVAL, Inner, shares};
use crate::active::{Active, panicked};
use crate::duty::Duty;
use crate::options::Keep;
use crate::pending::{Pending, Waits};
use crate::whole_inputs::WholeInputs;

impl Inner {
    /// A connection of a load of whole inputs ended.
    pub fn leave_whole(&self, load: &Arc<WholeInputs>) {
        load.leave();
        let mut whole = lock(&self.whole);
        if whole.get(&load.id).is_some_and(|w| Arc::ptr_eq(w, load)) {
            whole.remove(&load.id);
        }
        if !load.is_finished() {
            drop(lock(&load.journal).take());
        }
    }

    /// Publishes a load whose partitions are all there; or tells its client which of its records are rejects, as their keys are there.
    pub fn finish(&self, load: &Arc<Active>, finish: &Finish) -> Result<Message> {
        self.publishing(load, || self.publish(load, finish))
    }

    /// Publishes a load whose client has set aside the records that it was told.
    pub fn settle(&self, load: &Arc<Active>, attempt: u64) -> Result<Message> {
        match load.take_pending(attempt)? {
            Waits::Load(pending) => self.publishing(load, || self.show(load, *pending)),
            Waits::Shares(pending) => self.publishing(load, || {
                self.show_shares(*pending).map(|shares| shares.answer_of(load))
            }),
        }
    }

    /// Does what may publish a load, which nobody goes on with meanwhile; forgets the load if it was.
    pub(super) fn publishing(
        &self,
        load: &Arc<Active>,
        publish: impl FnOnce() -> Result<Message> + Send,
    ) -> Result<Message> {
        load.publishing.store(true, Ordering::Release);
        // Rows are sorted behind queries, too; threads that are begun there inherit it.
        let answer = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                Duty::new(&self.options).begin();
                publish()
            });
            thread.join().unwrap_or_else(|_| Err(panicked()))
        });
        load.publishing.store(false, Ordering::Release);
        match &answer {
            Ok(answer) if answer.kind == DONE => drop(lock(&self.active).remove(&load.id)),
            // Its client may have gone meanwhile.
            _ => self.give_free(load),
        }
        answer
    }

    fn publish(&self, load: &Active, finish: &Finish) -> Result<Message> {
        let id = load.publish_id;
        let (segments, rejects) = load.segments(finish, &self.pool)?;
        let mut done = Done { id: id.as_u128(), rows: finish.rows, rejects, ..Done::default() };
        let target = load.target();
        if load.description.share.is_some() {
            let shares = self.finish_share(load, finish, (segments, rejects))?;
            if let AllShares::ToTell(..) = shares {
                // Its journal is complete: who comes again is not to go on with it.
                drop(lock(&self.active).remove(&load.id));
            }
            return Ok(shares.answer_of(load));
        }
        if self.options.keep == Keep::Nothing {
            drop(lock(&load.journal).take().map(LoadJournal::remove));
            self.set_costs(load, &mut done);
            return Ok(Message::new(DONE, done.encode()));
        }
        let mut record = LoadRecord::new(id, kind(target.mode));
        record.key = load.published_as();
        record.started_us = finish.started_us;
        record.finished_us = coload_threads::epoch_us();
        record.set_inputs(load.description.inputs.names().iter());
        (record.rows, record.rejects, record.bytes) = (finish.rows, rejects, finish.bytes);
        let how = PublishedAs {
            target: &target,
            on_conflict: load.description.on_conflict,
            delete_where: load.description.delete_where(&target.schema)?,
            sort_with: self.options.sort_with(),
        };
        // Nobody waits for the lock while rows are sorted.
        let of_load = lock(&load.journal).take().ok_or_else(|| over(load))?;
        let one = target.schema.key().map(|_| lock(&self.one_sort));
        let ready = of_load.ready(&how, segments, record);
        drop(one);
        *lock(&load.journal) = Some(of_load);
        let ready = ready?;
        done.bytes_stored = ready.segments().iter().map(|s| s.bytes).sum();
        done.segments = ready.segments().len() as u64;
        let pending = Pending { ready, sent: rejects, done };
        let (pending, rows) = pending.look()?;
        match rows.is_empty() {
            true => self.show(load, pending),
            false => Ok(load.wait_for_client(pending, &rows)),
        }
    }

    /// Makes a load visible, if its rejects are those that its client was told.
    fn show(&self, load: &Active, pending: Pending) -> Result<Message> {
        let Pending { ready, sent, mut done } = pending;
        let mut journal = lock(&load.journal);
        // Whoever drops the load takes it.
        let of_load = journal.take().ok_or_else(|| over(load))?;
        let shown = match ready.publish_settled(None) {
            Ok(Settled::Shown(shown)) => shown,
            Ok(Settled::Moved(ready, _)) => {
                *journal = Some(of_load);
                drop(journal);
                let (pending, rows) = Pending { ready: *ready, sent, done }.look()?;
                return Ok(load.wait_for_client(pending, &rows));
            }
            Err(error) => {
                *journal = Some(of_load);
                return Err(error);
            }
        };
        done.version = shown.version;
        let says = load.description.on_conflict != OnConflict::Error;
        done.keys = shown.keys.filter(|_| says);
        done.rows = done.keys.map_or(done.rows, KeyCounts::kept);
        // Published, whatever becomes of the rest; what stays is removed when the server starts.
        let _ = of_load.remove();
        drop(journal);
        let memory = self.options.load_memory;
        done.note = match merge_small_within(&self.store, &load.description.table, memory) {
            Ok(merge) if merge.merges == 0 => String::new(),
            Ok(merge) => {
                format!("{} small segments became {}", merge.segments_before, merge.segments_after)
            }
            Err(error) => format!("small segments could not be merged: {error}"),
        };
        self.set_costs(load, &mut done);
        Ok(Message::new(DONE, done.encode()))
    }

    fn set_costs(&self, load: &Active, done: &mut Done) {
        done.cpu_ns = process_cpu_ns() - load.cpu_started_ns;
        done.peak_memory = peak_memory_bytes();
    }

    /// The load of a connection ended without being published: it waits for the next attempt.
    pub fn leave(&self, load: &Arc<Active>, attempt: u64) {
        if load.left(attempt) {
            self.give_free(load);
        }
    }

    /// Closes the journal of a load without a client, so that another process may go on with it.
    pub(super) fn give_free(&self, load: &Arc<Active>) {
        let mut active = lock(&self.active);
        if !load.has_client() && !load.publishing.load(Ordering::Acquire) {
            if active.get(&load.id).is_some_and(|active| Arc::ptr_eq(active, load)) {
                active.remove(&load.id);
            }
            drop(lock(&load.pending).take());
            // Jobs may still hold the load; the journal's lock must not wait for them.
            drop(lock(&load.journal).take());
        }
    }

    /// Drops a load that is not published, or all shares of one.
    pub fn abort(&self, id: LoadId) -> Result<()> {
        // Nobody publishes shares meanwhile, and none that is complete is added.
        let lock = self.store.lock_shares()?;
        let shares = self.shares_of(id)?;
        if let Some(member) = self.member() {
            // Other leaves have theirs, and somebody may commit it now: the map decides.
            drop(lock);
            return member.abort(id, self.table_of_load(id)?);
        }
        if shares.is_empty() {
            drop(lock);
            return self.abort_one(id);
        }
        shares.into_iter().try_for_each(|share| self.abort_one(share))
    }

    pub(super) fn abort_one(&self, id: LoadId) -> Result<()> {
        self.drop_one(id, &Error::Refused(format!("load {id} was aborted")))
    }

    /// The same, with what its client is told.
    pub(super) fn drop_one(&self, id: LoadId, why: &Error) -> Result<()> {
        let unknown =
            || Error::Invalid(format!("no load {id} is unfinished (coload loads shows them)"));
        // The journal is taken before the connections are told: each gives it free for the next attempt when it ends, and then
        // it would stay.
        let mut wholes = lock(&self.whole);
        if let Some(whole) = wholes.remove(&id) {
            whole.leave();
            // Where the load fails by itself, the journal is removed with this lock held.
            let mut journal = lock(&whole.journal);
            drop(wholes);
            return journal.take().map_or(Ok(()), LoadJournal::remove);
        }
        drop(wholes);
        let mut active = lock(&self.active);
        let Some(load) = active.remove(&id) else {
            drop(active);
            return self.store.open_journal(id)?.ok_or_else(unknown)?.remove();
        };
        let journal = lock(&load.journal).take();
        drop(lock(&load.pending).take());
        drop(active);
        load.fail(load.attempt.load(Ordering::Acquire), why);
        journal.ok_or_else(unknown)?.remove()
    }

    pub(super) fn expire_at_times(&self) -> Result<()> {
        let mut at = lock(&self.expired_at);
        if at.elapsed() < EXPIRE_INTERVAL.min(self.options.expire) {
            return Ok(());
        }
        *at = Instant::now();
        drop(at);
        self.expire()
    }

    /// Removes journals that nobody needs: of published loads, and abandoned ones.
    pub(super) fn expire(&self) -> Result<()> {
        self.publish_complete()?;
        let snapshot = self.store.snapshot()?;
        let journals = self.store.list_journals()?;
        let shares = shares::last_used(&journals);
        for entry in journals {
            // One that somebody works on is locked.
            let Ok(Some(journal)) = self.store.open_journal(entry.id) else { continue };
            // A share is as old as the youngest of its load.
            let used = shares.get(&entry.id).copied().unwrap_or(entry.modified);
            let old = used + self.options.expire < SystemTime::now();
            let is_published = LoadDescription::decode(&entry.description).is_ok_and(|d| {
                let key = key_of(&d, &journal).unwrap_or(entry.id);
                snapshot.published(&d.table, key).is_ok_and(|load| load.is_some())
            });
            let share = LoadDescription::decode(&entry.description).ok().and_then(|d| d.share);
            if let (Some(member), Some(share), false) = (self.member(), share, is_published) {
                drop(journal);
                // Committed at this moment, it stays.
                let _ = old.then(|| member.abort(share.of.load, share.plan.cluster_table()));
                continue;
            }
            if old || is_published {
                journal.remove()?;
            }
        }
        Ok(())
    }
}

fn over(load: &Active) -> Error {
    Error::Refused(format!("load {} is over", load.id))
}

fn kind(mode: LoadMode) -> LoadKind {
    match mode {
        LoadMode::Append => LoadKind::Append,
        LoadMode::Replace => LoadKind::Replace,
        LoadMode::Create => LoadKind::Create,
    }
}
