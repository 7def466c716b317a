//! Removes what nobody needs: directories of dead writers, old versions, segments without a version.
//!
//! The order of looking is what makes it safe beside live writers and readers:
//!
//! ```text
//!   1  list segments/        a segment that is not listed yet is not touched
//!   2  try the locks of tmp/ a load that ended before this is published by now, or never will be
//!   3  remove old versions   those that can be locked, and whose version before can be
//!   4  read what remains     the newest, and older ones that readers hold
//!   5  remove the segments of 1 that no live writer (2) owns and no version (4) names
//! ```
//!
//! Invariants: nothing is removed when a manifest cannot be read. The version after a locked one
//! stays (see `publish`). Ids are random and never used again, so what is dead stays dead.
//!
//! Cost: three listings and an open per old version; the newest manifest is in memory already.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;

use coload_types::{Error, Result};

use crate::directory::{
    Layout, is_still_at, is_writable, list_names, remove_file, sync_dir, writer_of,
};
use crate::load_record::LoadId;
use crate::lock::{Lock, LockedFile};
use crate::manifest::{Manifest, TableEntry};
use crate::snapshot::{pin_newest, read_version};
use crate::store::Store;
use crate::work_dir::{Leftover, remove_leftover};

/// What a cleaning removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Directories of writers that died.
    pub loads: usize,
    /// Manifests of versions that are no longer the newest and that no reader holds.
    pub versions: usize,
    /// Segments that no version names.
    pub segments: usize,
}

/// One pass. Goes on after a failure, so that one file that cannot be removed does not keep the
/// others, and returns the first failure.
pub(crate) fn clean(store: &Store) -> Result<Cleaned> {
    let layout = store.layout();
    if ![&layout.tmp, &layout.manifests, &layout.segments].into_iter().all(|d| is_writable(d)) {
        return Ok(Cleaned::default());
    }
    let mut pass = Pass { layout, cleaned: Cleaned::default(), failure: None };
    let candidates = list_names(&layout.segments, |n| Some((n.to_owned(), writer_of(n)?)))?;
    let live = pass.remove_leftovers()?;
    let newest = pin_newest(store)?;
    let kept = pass.remove_versions(newest.manifest.version)?;
    let named = named_files(&newest.manifest, &kept);
    for (file, load) in &candidates {
        if !live.contains(load) && !named.contains(file.as_str()) {
            pass.remove_segment(&layout.segment(file));
        }
    }
    pass.failure.map_or(Ok(pass.cleaned), Err)
}

struct Pass<'a> {
    layout: &'a Layout,
    cleaned: Cleaned,
    failure: Option<Error>,
}

impl Pass<'_> {
    /// Removes the directories of dead writers and returns the live ones.
    fn remove_leftovers(&mut self) -> Result<HashSet<LoadId>> {
        let mut live = HashSet::new();
        for id in list_names(&self.layout.tmp, |name| name.parse::<LoadId>().ok())? {
            match remove_leftover(&self.layout.load(id)) {
                Ok(Leftover::Removed) => self.cleaned.loads += 1,
                Ok(Leftover::Live) => {
                    live.insert(id);
                }
                Err(e) => {
                    live.insert(id);
                    self.failure.get_or_insert(e);
                }
            }
        }
        Ok(live)
    }

    /// Removes the versions before `newest` that nobody holds and returns those that stay.
    fn remove_versions(&mut self, newest: u64) -> Result<Vec<Manifest>> {
        let mut kept = Vec::new();
        let versions = self.layout.list_versions()?;
        let old = versions.iter().take_while(|v| **v < newest);
        if old.clone().next().is_some() {
            // Its writer may not have come to this yet, and what follows must not be durable first.
            sync_dir("store::clean::sync_manifest_dir", &self.layout.manifests)?;
        }
        for &version in old {
            match remove_version(self.layout, version) {
                Ok(Removal::Removed) => {
                    self.cleaned.versions += 1;
                    continue;
                }
                Ok(Removal::Held) => {}
                Err(e) => {
                    self.failure.get_or_insert(e);
                }
            }
            kept.extend(read_version(self.layout, version)?);
        }
        Ok(kept)
    }

    fn remove_segment(&mut self, path: &Path) {
        match remove_file("store::clean::remove_segment", path) {
            Ok(()) => self.cleaned.segments += 1,
            Err(e) => {
                self.failure.get_or_insert(e);
            }
        }
    }
}

enum Removal {
    Removed,
    Held,
}

/// Removes an old version unless a reader or writer holds it, or the version before it.
fn remove_version(layout: &Layout, version: u64) -> Result<Removal> {
    let path = layout.manifest(version);
    let Free::Ours(_before) = lock_version(&layout.manifest(version.saturating_sub(1)))? else {
        return Ok(Removal::Held);
    };
    let Free::Ours(_this) = lock_version(&path)? else { return Ok(Removal::Held) };
    remove_file("store::clean::remove_manifest", &path)?;
    Ok(Removal::Removed)
}

enum Free {
    /// Locked by us until it is dropped, or not there.
    Ours(Option<LockedFile>),
    Held,
}

/// Locks an old version against new readers and writers.
fn lock_version(path: &Path) -> Result<Free> {
    let file = match File::open(path) {
        Ok(file) => LockedFile::try_exclusive(file),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Free::Ours(None)),
        Err(e) => return Err(Error::io("open", path, &e)),
    };
    match file.lock() {
        Lock::Held if is_still_at(path, file.file()) => Ok(Free::Ours(Some(file))),
        // Removed by another process meanwhile.
        Lock::Held => Ok(Free::Ours(None)),
        Lock::Busy | Lock::Unsupported => Ok(Free::Held),
    }
}

/// The files in `segments/` that some version names.
fn named_files<'a>(newest: &'a Manifest, kept: &'a [Manifest]) -> HashSet<&'a str> {
    std::iter::once(newest)
        .chain(kept)
        .flat_map(|manifest| &manifest.tables)
        .flat_map(TableEntry::file_names)
        .collect()
}
