//! Shares of a load into a store of this machine, by several processes.
//!
//! A share is written as a load is, and then put aside in a journal, complete. The process that completes the last one
//! publishes all. A process that ends before leaves nothing: its share is done again from the start.

use coload_store::{
    LoadId, LoadJournal, OnConflict, SettledShares, ShareSegment, SharesAre, SharesReady, SortWith,
    Store, merge_small_within,
};
use coload_threads::Started;
use coload_types::display::display_value;
use coload_types::{DataType, Error, Result, Value};
use coload_wire::{
    LoadDescription, LoadStage, LoadStatus, Share, ShareCounts, ShareStatus, SharesDone, Work,
};

use crate::account::Account;
use crate::into_store::{Written, report_columns, target, write_once};
use crate::legs::AllLegs;
use crate::load::Load;
use crate::pipeline::{Loaded, Stop};
use crate::remote::describe_as;
use crate::report::{Earlier, LoadReport, Merged, Published};
use crate::resources::Resources;
use crate::settle::{ATTEMPTS_MAX, changed_meanwhile};
use crate::share_rejects::{put_told, tell_of_load};

/// Inputs of a load that a list names.
pub const INPUTS_LISTED_MAX: usize = 4;

/// Takes a share of a load into a store.
///
/// # Errors
/// Those of a load; `Refused` when it does not fit the shares before, `Unavailable` when another process does this share.
pub fn take_share(
    store: &Store,
    load: Load<'_>,
    share: &Share,
    started: &Started,
) -> Result<LoadReport> {
    let mut request = load.request.clone();
    if request.rejects_table.is_some() {
        return Err(Error::Invalid(
            "--rejects table: is not for a share of a load, as it would be seen before the rows (give a file)".into(),
        ));
    }
    let mut description = describe_as(&request, load.resources, Work::Partitions)?;
    fit_shares(store, &mut description)?;
    if let Some(began_us) = description.began_us {
        request.begin_at(began_us)?;
    }
    let load = load.with_request(&request);
    let known = store.snapshot()?.published(&request.table, share.of.load)?;
    let journal = match known {
        Some(_) => None,
        None => open(store, load, &description)?,
    };
    let Some(journal) = journal else {
        let (are, told) = publish(store, load, share)?;
        let mut report = report_known(load, share, &are, started);
        told.into_iter().for_each(|told| put_told(&mut report, told));
        return Ok(report);
    };
    let written = write_once(store, load, started, (0, None)).map_err(|stop| match stop {
        Stop::Failed(error) => error,
        Stop::Widen(_) => Error::Corrupt("the columns of a share are given".into()),
    });
    let report = match written {
        Ok(written) => finish(&journal, load, &description, written),
        Err(error) => Err(error),
    };
    let mut report = match report {
        Ok(report) => report,
        Err(error) => {
            // It holds nothing yet.
            let _ = journal.remove();
            return Err(error);
        }
    };
    drop(journal);
    let (are, told) = publish(store, load, share)?;
    told.into_iter().for_each(|told| put_told(&mut report, told));
    report.shares = Some(SharesDone::new(share.of, &are));
    if let SharesAre::Published(all) = are {
        let merged = merge_small_within(store, &request.table, load.resources.memory);
        let (version, segments) = (all.version, all.segments);
        report.published = Some(Published { version, segments, merge: Merged::Here(merged) });
    }
    report.set_costs(started);
    Ok(report)
}

/// Compares a share with those of the same load that were begun; it began when the first of them did.
fn fit_shares(store: &Store, description: &mut LoadDescription) -> Result<()> {
    for entry in store.list_journals()? {
        let Ok(begun) = LoadDescription::decode(&entry.description) else { continue };
        description.fit_share(&begun)?;
    }
    Ok(())
}

/// The journal of a share that is to be done; `None` when it is complete.
fn open(
    store: &Store,
    load: Load<'_>,
    description: &LoadDescription,
) -> Result<Option<LoadJournal>> {
    let id = description.id(0);
    if let Some(journal) = store.open_journal(id)? {
        if journal.finished_share()?.is_some() {
            return Ok(None);
        }
        journal.remove()?;
    }
    let journal = store.begin_journal(id, &target(load.request), description.encode())?;
    let of = description.share.as_ref().map_or(LoadId::from_u128(0), |share| share.of.load);
    match store.snapshot()?.published(&load.request.table, of)? {
        // By another process, which ended before this one had the journal.
        Some(_) => journal.remove().map(|()| None),
        None => Ok(Some(journal)),
    }
}

/// Publishes all shares if they are complete; with the account of the load, if records of it are rejects for their keys.
fn publish(store: &Store, load: Load<'_>, share: &Share) -> Result<(SharesAre, Option<Account>)> {
    let limit = load.request.max_rejects;
    let Resources { threads, memory, .. } = *load.resources;
    let sort_with = SortWith { threads, memory: memory as u64 };
    let check = |total| limit.check_shares(share.of, total);
    let (of, table) = (share.of, &load.request.table);
    if load.request.on_conflict != OnConflict::Reject {
        return Ok((store.publish_shares(of, table, sort_with, check)?, None));
    }
    let mut ready = match store.ready_shares(of, table, sort_with, check)? {
        SharesReady::Are(are) => return Ok((are, None)),
        SharesReady::Ready(ready) => ready,
    };
    for _ in 0..ATTEMPTS_MAX {
        let rows = ready.find_rejects()?;
        let told = match ready.key() {
            Some(key) if !rows.is_empty() => {
                Some(tell_of_load(load, (&rows, key), ready.total().rows)?)
            }
            _ => None,
        };
        match store.publish_told(of, table, *ready)? {
            SettledShares::Are(are) => return Ok((are, told)),
            SettledShares::Moved(moved) => ready = moved,
        }
    }
    Err(changed_meanwhile(table))
}

/// Puts the segments of a share into its journal, and says that it is complete.
fn finish(
    journal: &LoadJournal,
    load: Load<'_>,
    description: &LoadDescription,
    written: Written<'_>,
) -> Result<LoadReport> {
    let Written { dir, record, whole, entries, sorted, .. } = written;
    let AllLegs { loaded, segments: done, clock, request, .. } = whole;
    let Loaded { partitions, mut account, distinct, .. } = loaded;
    let reject_kinds = account.take_kinds();
    let output = account.take_output();
    let (files, rejects) = account.into_files();
    if let Some(confirm) = &load.hooks.confirm {
        confirm()?;
    }
    let mut segments = Vec::with_capacity(entries.len());
    for entry in &entries {
        journal.take_segment(&dir.scratch_path(&entry.file), &entry.file)?;
        segments.push(ShareSegment {
            file: entry.file.clone(),
            rows: entry.rows,
            bytes: entry.bytes,
            seal: entry.seal.unwrap_or(0),
        });
    }
    let counts = ShareCounts {
        started_us: record.started_us,
        rows: record.rows,
        rejects: record.rejects,
        bytes: record.bytes,
    };
    let ends: Vec<u64> = files.counts().iter().map(|file| file.text_bytes).collect();
    let end = |number: usize| ends.get(number).copied().unwrap_or(0);
    let share = description.finished_share(target(&request), counts, segments, end)?;
    // Before the share is complete: one that is has all of its rejects.
    if let Some(output) = output {
        output.commit()?;
    }
    journal.finish_share(&share)?;
    let mut report = LoadReport {
        id: Some(dir.id()),
        files,
        columns: report_columns(&request, &done, &distinct),
        partitions,
        bytes_stored: entries.iter().map(|entry| entry.bytes).sum(),
        rejects,
        reject_kinds,
        sorted,
        ..LoadReport::new(request.table.clone())
    };
    report.set_steps(&clock);
    Ok(report)
}

/// The report of a share that was complete before.
fn report_known(load: Load<'_>, share: &Share, are: &SharesAre, started: &Started) -> LoadReport {
    let held = match are {
        SharesAre::Known(known) => {
            let time = display_value(&Value::Int(known.finished_us), DataType::Timestamp);
            let time = time.split('.').next().unwrap_or_default();
            format!("all shares were published at {time} UTC as version {}", known.version)
        }
        _ => format!("share {} was complete", share.shown()),
    };
    let shares = SharesDone::new(share.of, are);
    let (rows, rejects) = (shares.rows, shares.rejects);
    let published = match are {
        SharesAre::Published(all) => Some(Published {
            version: all.version,
            segments: all.segments,
            merge: Merged::AtServer(String::new()),
        }),
        _ => None,
    };
    let mut report = LoadReport {
        id: Some(share.of.load),
        earlier: Some(Earlier { rows, rejects, held }),
        shares: Some(shares),
        published,
        ..LoadReport::new(load.request.table.clone())
    };
    report.set_costs(started);
    report
}

/// The shares of loads in a store, whoever does them.
///
/// # Errors
/// `Unavailable` when the store cannot be read.
pub fn list_shares(store: &Store) -> Result<Vec<LoadStatus>> {
    let mut list = Vec::new();
    for entry in store.list_journals()? {
        let Ok(description) = LoadDescription::decode(&entry.description) else { continue };
        let Some(share) = &description.share else { continue };
        let complete = store.complete_share(entry.id)?;
        let is_locked = || matches!(store.open_journal(entry.id), Err(Error::Unavailable(_)));
        list.push(LoadStatus {
            id: entry.id,
            state: match complete.is_none() && is_locked() {
                true => LoadStage::Arriving,
                false => LoadStage::Waiting,
            },
            rows: complete.as_ref().map_or(0, |share| share.rows),
            rejects: complete.as_ref().map_or(0, |share| share.rejects),
            bytes: entry.bytes,
            idle_s: entry.modified.elapsed().map_or(0, |idle| idle.as_secs()),
            inputs: description.input_names(INPUTS_LISTED_MAX),
            share: Some(ShareStatus { of: share.of, is_complete: complete.is_some() }),
            table: description.table,
        });
    }
    list.sort_by_key(|status| status.share.map(|share| (share.of.load, share.of.number)));
    Ok(list)
}

/// Drops all shares of a load that is not published; whether there are any.
///
/// # Errors
/// `Unavailable` when somebody does a share of it now.
pub fn drop_shares(store: &Store, load: LoadId) -> Result<bool> {
    let shares = list_shares(store)?;
    let of_load = |status: &&LoadStatus| status.share.is_some_and(|share| share.of.load == load);
    let ids: Vec<LoadId> = shares.iter().filter(of_load).map(|status| status.id).collect();
    if ids.is_empty() {
        return Ok(false);
    }
    // Nobody publishes them meanwhile.
    let _lock = store.lock_shares()?;
    for id in ids {
        if let Some(journal) = store.open_journal(id)? {
            journal.remove()?;
        }
    }
    Ok(true)
}
