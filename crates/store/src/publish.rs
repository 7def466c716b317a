//! From files in `tmp/` to a new version that everybody sees.
//!
//! ```text
//!   tmp/<id>/<id>-0.seg  --sync, rename-->  segments/<id>-0.seg     sync segments/
//!   pin version n, make n+1 from it, write it to tmp/<id>/manifest, sync
//!   link it to manifest/<n+1>     taken: pin the newer version and make it again
//!   sync manifest/, remove tmp/<id>/, clean
//! ```
//!
//! Invariants: the link is the one moment at which a load becomes visible; everything it names is
//! durable before. Version n stays pinned from the reading to the link, and cleaning keeps the
//! version after a pinned one, so a version n+1 that was ever published is still there to refuse
//! the link: without that, a slow writer could overwrite the history of faster ones.

mod in_order;
mod linked;
mod settled;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use coload_ddl::{Key, Schema};
use coload_types::{Error, Result};

use crate::addition::{Addition, new_segments};
use crate::change::{LoadTarget, Outcome, check_target, keys_of, replace_segments};
use crate::deleted::{Deletions, settle};
use crate::directory::{
    Layout, is_same_file, link_new, parse_segment_name, rename, segment_name, sync_dir, sync_file,
    write_new,
};
use crate::index::{Built, Checking, complete};
use crate::keyed::{KeyConflicts, Origin, SortTimes, TreeKey};
use crate::load_record::{LoadId, LoadRecord};
use crate::lock::Lock;
use crate::manifest::{Manifest, SegmentEntry};
use crate::older_loads::move_out;
use crate::on_conflict::{DeleteWhere, KeyCounts, OnConflict, TableKeys};
use crate::row_change::{Basis, Changed, Fit, apply_deletions, delete_rows_of};
use crate::segment_writer::SegmentWriter;
use crate::snapshot::{ManifestKey, pin_newest};
use crate::store::Store;
use crate::work_dir::WorkDir;

/// Name of the next manifest while it is written.
const MANIFEST_TMP: &str = "manifest";
/// How often others may publish first before a writer gives up.
const ATTEMPTS_MAX: usize = 100_000;

/// A load in progress: a directory to write segments in, which nobody sees until they are
/// published. Dropping it removes everything it wrote.
#[derive(Debug)]
pub struct LoadDir {
    store: Store,
    work: WorkDir,
    target: LoadTarget,
    begun_on: Option<u64>,
    /// What tells rows of the table apart.
    keys: TableKeys,
    /// What happens to keys that are there already.
    on_conflict: OnConflict,
    /// Which rows say that their keys go.
    delete_where: Option<DeleteWhere>,
    /// Where the rows of each segment come from, once these are in the order of the key.
    origins: Option<Vec<Origin>>,
    /// Rows that gave way to others of their segment when it was put in order.
    dropped: u64,
    /// How long it took to put rows in order.
    times: SortTimes,
    /// Nanoseconds that B+ trees took.
    tree_ns: Arc<AtomicU64>,
}

/// Checks that a load fits the newest version; gives the id of its table if that is there, and the table's keys.
fn check_newest(store: &Store, target: &LoadTarget) -> Result<(Option<u64>, TableKeys)> {
    let base = pin_newest(store)?;
    let begun_on = base.manifest.table(&target.name).map(|t| t.id);
    check_target(&base.manifest, target, begun_on)?;
    Ok((begun_on, keys_of(&base.manifest, target)))
}

/// Checks that a load fits the newest version.
pub(crate) fn check_load_target(store: &Store, target: &LoadTarget) -> Result<()> {
    check_newest(store, target).map(|_| ())
}

/// Checks that a load fits what it says of conflicts of keys.
pub(crate) fn check_on_conflict(
    store: &Store,
    target: &LoadTarget,
    on_conflict: OnConflict,
    delete_where: Option<&DeleteWhere>,
) -> Result<()> {
    let keys = check_newest(store, target)?.1;
    let LoadTarget { name, schema, .. } = target;
    on_conflict.check(name, schema, &keys)?;
    let check = |deletes: &DeleteWhere| deletes.check(name, schema, keys.key.as_ref(), on_conflict);
    delete_where.map_or(Ok(()), check)
}

impl LoadDir {
    pub(crate) fn begin(store: &Store, target: LoadTarget) -> Result<Self> {
        let (begun_on, keys) = check_newest(store, &target)?;
        let work = WorkDir::make(store.layout())?;
        Ok(LoadDir::of(store, work, target, (begun_on, keys)))
    }

    /// A load of a known id whose segments lie, durable, elsewhere and stay there: they get second names here.
    pub(crate) fn of_links(
        store: &Store,
        id: LoadId,
        (target, begun_on): (&LoadTarget, Option<u64>),
        from: &[Linked],
    ) -> Result<Self> {
        let keys = check_newest(store, target)?.1;
        let work = WorkDir::make_as(store.layout(), id)?;
        for (segment, path) in from {
            let to = work.join(&segment.file);
            link_new("store::publish::rename", path, &to)
                .map_err(|e| Error::io("link a segment to", &to, &e))?;
        }
        Ok(LoadDir::of(store, work, target.clone(), (begun_on, keys)))
    }

    fn of(
        store: &Store,
        work: WorkDir,
        target: LoadTarget,
        (begun_on, keys): (Option<u64>, TableKeys),
    ) -> Self {
        LoadDir {
            store: store.clone(),
            work,
            target,
            begun_on,
            keys,
            on_conflict: OnConflict::Error,
            delete_where: None,
            origins: None,
            dropped: 0,
            times: SortTimes::default(),
            tree_ns: Arc::default(),
        }
    }

    /// Id of the load, by which its segments are named.
    pub fn id(&self) -> LoadId {
        self.work.id()
    }

    /// Where the load goes.
    pub fn target(&self) -> &LoadTarget {
        &self.target
    }

    /// Gives the load other columns before it is published.
    ///
    /// # Errors
    /// `Invalid` when they do not fit the table.
    pub fn set_schema(&mut self, schema: Schema) -> Result<()> {
        self.target.schema = schema;
        self.keys = check_newest(&self.store, &self.target)?.1;
        Ok(())
    }

    /// The name of segment `number`, for its [`SegmentEntry`].
    pub fn segment_name(&self, number: u32) -> String {
        segment_name(self.id(), number)
    }

    /// Where segment `number` is to be written, and made durable by its writer.
    pub fn segment_path(&self, number: u32) -> PathBuf {
        self.work.join(&self.segment_name(number))
    }

    /// Writes segment `number`, of these columns; it gets a B+ tree if its rows come in the order of a PRIMARY KEY.
    ///
    /// # Errors
    /// As [`SegmentWriter::create`].
    pub fn segment_writer(&self, number: u32, schema: &Schema) -> Result<SegmentWriter> {
        let pairs = schema.columns().iter().zip(self.target.schema.columns());
        let is_whole = schema.len() == self.target.schema.len()
            && pairs.into_iter().all(|(column, of_table)| column.name == of_table.name);
        // Columns that are read again are segments of their own, for a while.
        let key = self.key().filter(|_| is_whole);
        let key = TreeKey::of(schema, key);
        let writer = SegmentWriter::create(&self.segment_path(number))?;
        let writer = match self.keys.key {
            Some(_) => writer.synced_later(),
            None => writer,
        };
        Ok(writer.with_key(key).with_tree_clock(&self.tree_ns))
    }

    /// Takes a segment that an earlier attempt of the load wrote, as segment `number`; it stays where it is, too.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    pub fn adopt_segment(&self, from: &Path, number: u32) -> Result<()> {
        let path = self.segment_path(number);
        std::fs::hard_link(from, &path).map_err(|e| Error::io("link", &path, &e))
    }

    /// Where a file may be put that is of use until the load is published.
    pub fn scratch_path(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    /// The key of the table, if it has one.
    pub fn key(&self) -> Option<&Key> {
        self.keys.key.as_ref()
    }

    /// Makes the load visible, whole, as the store's next version, and returns that version.
    ///
    /// Several processes may publish at the same time; appends to one table all succeed.
    ///
    /// # Errors
    /// `Invalid` when the table was dropped, created or changed meanwhile so that the load no longer
    /// fits, or when segments and record do not agree; `Unavailable` when the disk fails. The store
    /// is as it was, unless the message says that the version is published.
    pub fn publish(self, segments: Vec<SegmentEntry>, record: LoadRecord) -> Result<u64> {
        self.ready(segments, record)?.publish(None).map(|shown| shown.version)
    }

    /// Makes the load ready to become visible.
    ///
    /// # Errors
    /// `Invalid` when segments and record do not agree, `Unavailable` when the disk fails.
    pub fn ready(mut self, segments: Vec<SegmentEntry>, record: LoadRecord) -> Result<ReadyLoad> {
        let segments = match self.keys.key.is_some() && self.origins.is_none() {
            true => {
                let sorting = self.usual_sorting()?;
                self.put_in_order(segments, &sorting)?.into_iter().map(|s| s.entry).collect()
            }
            false => segments,
        };
        self.on_conflict.check(&self.target.name, &self.target.schema, &self.keys)?;
        check_record(&self.work, &self.target, (&segments, self.dropped), &record)?;
        install(self.store.layout(), &mut self.work, &segments)?;
        let conflicts = key_conflicts(&self, &segments);
        Ok(ReadyLoad { dir: self, segments, record, conflicts })
    }
}

use linked::Linked;
pub use linked::PublishedAs;
pub use settled::{ConflictingRow, MeetsKey, Settled};

/// A load that everybody sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// The version that shows it.
    pub version: u64,
    /// What became of its rows, if its table has a PRIMARY KEY.
    pub keys: Option<KeyCounts>,
}

/// A load whose segments are durable, and which nobody sees yet. Dropped, it leaves nothing.
#[derive(Debug)]
pub struct ReadyLoad {
    dir: LoadDir,
    segments: Vec<SegmentEntry>,
    record: LoadRecord,
    /// What compares its keys with those of the table, if they may come only once.
    conflicts: Option<KeyConflicts>,
}

impl ReadyLoad {
    /// Checks that the load could be made visible now, and rows of its table deleted in the same version.
    ///
    /// # Errors
    /// As [`Self::publish_deleting`]; `Corrupt` when the rows are not there.
    pub(crate) fn check(&mut self, deletions: &Deletions) -> Result<()> {
        let store = self.dir.store.clone();
        let mut next = Manifest::clone(&pin_newest(&store)?.manifest);
        next.version += 1;
        let ReadyLoad { dir, segments, record, conflicts } = self;
        if let Some(table) = next.table_mut(&dir.target.name)
            && delete_rows_of(store.layout(), table, deletions)? == Fit::Moved
        {
            return Err(Error::Corrupt(format!(
                "rows of table {} that are to be deleted are not where they were",
                dir.target.name
            )));
        }
        let change = Addition::of(&dir.target, (dir.begun_on, dir.keys.key.as_ref()), record);
        change.apply(&store, &mut next, segments, conflicts.as_mut()).map(|_| ())
    }

    /// Makes the load visible, and rows of its table deleted, in the same version.
    ///
    /// The rows of the load come after all others, those that others added meanwhile among them.
    ///
    /// # Errors
    /// As [`LoadDir::publish`]; `Corrupt` when rows that were deleted before cannot be read.
    pub fn publish_deleting(
        mut self,
        basis: Basis<'_>,
        deletions: &Deletions,
    ) -> Result<Changed<ReadyLoad>> {
        let store = self.dir.store.clone();
        let mut fit = Fit::Fits;
        let ReadyLoad { dir, segments, record, conflicts } = &mut self;
        let change = Addition::of(&dir.target, (dir.begun_on, dir.keys.key.as_ref()), record);
        let version = commit(&store, &mut [&mut dir.work], Checking::NewRows, |manifest| {
            fit = apply_deletions(store.layout(), manifest, basis, deletions)?;
            if fit == Fit::Moved {
                return Ok(Outcome::Unchanged);
            }
            change.apply(&store, manifest, segments, conflicts.as_mut())?;
            Ok(Outcome::Changed)
        })?;
        if fit == Fit::Moved {
            return Ok(Changed::Moved(self));
        }
        finish(&store, self.dir.work);
        Ok(version.map_or(Changed::Nothing, Changed::Published))
    }
}

/// Publishes deletions that bring no rows.
pub(crate) fn publish_deletions(
    store: &Store,
    basis: Basis<'_>,
    deletions: &Deletions,
) -> Result<Changed<()>> {
    if deletions.is_empty() {
        return Ok(Changed::Nothing);
    }
    let mut fit = Fit::Fits;
    let version = publish_change(store, |manifest| {
        fit = apply_deletions(store.layout(), manifest, basis, deletions)?;
        if fit == Fit::Moved {
            return Ok(Outcome::Unchanged);
        }
        let emptied = manifest.tables.iter_mut().find(|table| table.id == basis.table().id);
        if let Some(table) = emptied.filter(|table| table.segments.is_empty()) {
            // As TRUNCATE does: what was loaded can be loaded again.
            table.forget_loads();
        }
        Ok(Outcome::Changed)
    })?;
    Ok(match (fit, version) {
        (Fit::Moved, _) => Changed::Moved(()),
        (Fit::Fits, Some(version)) => Changed::Published(version),
        (Fit::Fits, None) => Changed::Nothing,
    })
}

/// What compares the keys of a load with those of its table, if they may come only once.
fn key_conflicts(dir: &LoadDir, segments: &[SegmentEntry]) -> Option<KeyConflicts> {
    let of = dir.keyed().filter(|of| of.key.is_unique())?;
    let origins = dir.origins.as_deref().unwrap_or_default();
    let conflicts = KeyConflicts::new(&dir.store, of, new_segments(segments, origins));
    Some(conflicts.with_deletes(dir.delete_where.clone()))
}

/// A merge in progress: like a load, but its segments take the place of others.
#[derive(Debug)]
pub struct MergeDir {
    store: Store,
    work: WorkDir,
    table_id: u64,
}

/// What became of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The new segments are in this version.
    Published(u64),
    /// The table or one of the old segments is gone, or they do not stand one after the other; the
    /// merge was thrown away.
    Superseded,
}

impl MergeDir {
    pub(crate) fn begin(store: &Store, table_id: u64) -> Result<Self> {
        Ok(MergeDir { store: store.clone(), work: WorkDir::make(store.layout())?, table_id })
    }

    /// The id that the merged segments carry.
    pub fn id(&self) -> LoadId {
        self.work.id()
    }

    /// The name of segment `number`, for its [`SegmentEntry`].
    pub fn segment_name(&self, number: u32) -> String {
        segment_name(self.id(), number)
    }

    /// Where segment `number` is to be written, and made durable by its writer.
    pub fn segment_path(&self, number: u32) -> PathBuf {
        self.work.join(&self.segment_name(number))
    }

    /// Puts `new` segments in the place of the `old` ones, which stand one after the other in the
    /// table and hold as many rows that are not deleted. The order of rows stays. Rows that were deleted since the version of
    /// `old` are deleted in the new ones too.
    ///
    /// # Errors
    /// `Invalid` when the counts of rows differ, `Unavailable` when the disk fails.
    pub fn publish(self, old: &[SegmentEntry], new: Vec<SegmentEntry>) -> Result<MergeOutcome> {
        let MergeDir { store, mut work, table_id } = self;
        check_segments(&work, &new)?;
        install(store.layout(), &mut work, &new)?;
        let version = commit(&store, &mut [&mut work], Checking::SameRows, |manifest| {
            replace_segments(store.layout(), manifest, table_id, old, &new)
        })?;
        finish(&store, work);
        Ok(version.map_or(MergeOutcome::Superseded, MergeOutcome::Published))
    }
}

/// Publishes a change that brings no segments.
pub(crate) fn publish_change(
    store: &Store,
    change: impl FnMut(&mut Manifest) -> Result<Outcome>,
) -> Result<Option<u64>> {
    let mut work = WorkDir::make(store.layout())?;
    let version = commit(store, &mut [&mut work], Checking::NewRows, change)?;
    finish(store, work);
    Ok(version)
}

/// Rows read = rows loaded + rejects is proven per file by the load; here the parts that the store
/// sees must agree.
fn check_record(
    work: &WorkDir,
    target: &LoadTarget,
    (segments, dropped): (&[SegmentEntry], u64),
    record: &LoadRecord,
) -> Result<()> {
    check_segments(work, segments)?;
    let rows = segments.iter().map(|s| s.rows).sum::<u64>() + dropped;
    if record.rows != rows || record.id != work.id() {
        return Err(Error::Invalid(format!(
            "cannot publish load {}: its record is of load {} with {} rows, its segments have {rows}",
            work.id(),
            record.id,
            record.rows,
        )));
    }
    let wanted = target.schema.len();
    match segments.iter().find(|s| s.columns.len() != wanted) {
        None => Ok(()),
        Some(segment) => Err(Error::Invalid(format!(
            "cannot publish segment {}: statistics of {} columns for a table of {wanted}",
            segment.file,
            segment.columns.len(),
        ))),
    }
}

/// Each segment is one of this writer's, named once.
fn check_segments(work: &WorkDir, segments: &[SegmentEntry]) -> Result<()> {
    let mut numbers = Vec::with_capacity(segments.len());
    for segment in segments {
        match parse_segment_name(&segment.file) {
            Some((id, number)) if id == work.id() && segment.load == id => numbers.push(number),
            _ => {
                return Err(Error::Invalid(format!(
                    "cannot publish segment {:?}: it is not one of load {}",
                    segment.file,
                    work.id()
                )));
            }
        }
    }
    numbers.sort_unstable();
    match numbers.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::Invalid(format!(
            "cannot publish segment {} of load {} twice",
            pair[0],
            work.id()
        ))),
    }
}

/// Moves the segments, durable, to where the next manifest will name them.
fn install(layout: &Layout, work: &mut WorkDir, segments: &[SegmentEntry]) -> Result<()> {
    for segment in segments {
        let path = work.join(&segment.file);
        let bytes = sync_file("store::publish::sync_segment", &path)?;
        if bytes != segment.bytes {
            return Err(Error::Invalid(format!(
                "cannot publish {}: it has {bytes} bytes, its entry says {}",
                path.display(),
                segment.bytes
            )));
        }
    }
    for segment in segments {
        let to = layout.segment(&segment.file);
        work.note_installed(to.clone());
        rename("store::publish::rename", &work.join(&segment.file), &to)?;
    }
    if segments.is_empty() {
        return Ok(());
    }
    sync_dir("store::publish::sync_segments_dir", &layout.segments)
}

/// Makes the next version from the newest until nobody else was faster. `None` when the change has
/// nothing to change. What the writers installed stays then.
fn commit(
    store: &Store,
    works: &mut [&mut WorkDir],
    mut checking: Checking<'_>,
    mut change: impl FnMut(&mut Manifest) -> Result<Outcome>,
) -> Result<Option<u64>> {
    let layout = store.layout();
    let Some(tmp) = works.first().map(|work| work.join(MANIFEST_TMP)) else { return Ok(None) };
    let mut built = Built::default();
    for _ in 0..ATTEMPTS_MAX {
        let base = pin_newest(store)?;
        if base.lock() != Lock::Held {
            return Err(Error::Unavailable(format!(
                "cannot publish in {}: the file system has no file locks",
                layout.root.display()
            )));
        }
        let mut next = Manifest::clone(&base.manifest);
        next.version += 1;
        if change(&mut next)? == Outcome::Unchanged {
            return Ok(None);
        }
        if let Some(work) = works.first_mut() {
            complete(store, work, (&base.manifest, &mut next), &mut checking, &mut built)?;
            move_out(layout, work, &mut next)?;
            settle(layout, work, &mut next)?;
        }
        write_new("store::publish::write_manifest", &tmp, &next.encode()?)?;
        let path = layout.manifest(next.version);
        match link_new("store::publish::link", &tmp, &path) {
            Ok(()) => {}
            // A network file system may report a failure of a link that it made.
            Err(_) if is_same_file(&tmp, &path) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(Error::io("publish", &path, &e)),
        }
        works.iter_mut().for_each(|work| work.keep_installed());
        let version = next.version;
        remember(store, &tmp, next);
        sync_published(layout, version)?;
        return Ok(Some(version));
    }
    Err(Error::Unavailable(format!(
        "cannot publish in {}: other processes published first {ATTEMPTS_MAX} times",
        layout.root.display()
    )))
}

/// Spares this process decoding what it wrote. `tmp` is another name of the published file.
fn remember(store: &Store, tmp: &Path, next: Manifest) {
    if let Ok(metadata) = std::fs::metadata(tmp) {
        store.remember(ManifestKey::new(next.version, &metadata), &Arc::new(next));
    }
}

fn sync_published(layout: &Layout, version: u64) -> Result<()> {
    sync_dir("store::publish::sync_manifest_dir", &layout.manifests).map_err(|e| {
        Error::Unavailable(format!(
            "version {version} of {} is published, but may not outlive a power failure: {e}",
            layout.root.display()
        ))
    })
}

/// Ends a writer and removes what its change made superfluous. The version is published whatever
/// happens here, and the next cleaning does what this one could not.
fn finish(store: &Store, work: WorkDir) {
    drop(work);
    let _ = store.clean();
}
