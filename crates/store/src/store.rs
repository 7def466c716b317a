//! A store: opening it, reading it through snapshots, changing it through publishing.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use coload_ddl::{Index, Schema};
use coload_threads::lock;
use coload_types::{Error, Result};

use crate::alter::{self, Alteration};
use crate::change::{self, LoadTarget, OnExisting, OnMissing};
use crate::counted::{CountedBytes, CountsMemory};
use crate::deleted::{DeletedEntry, DeletedRows, Deletions, read_rows};
use crate::directory::{
    FORMAT_NAME, FORMAT_TEXT, Layout, OWNER_ONLY, link_new, make_dir, sync_dir, write_new,
};
use crate::gc::{self, Cleaned};
use crate::held::{HELD_BYTES_MAX, HeldBytes};
use crate::index;
use crate::keyed::SortWith;
use crate::manifest::{Manifest, SegmentEntry, ViewEntry};
use crate::on_conflict::{DeleteWhere, OnConflict};
use crate::publish::{
    LoadDir, MergeDir, check_load_target, check_on_conflict, publish_change, publish_deletions,
};
use crate::row_change::{Basis, Changed};
use crate::segment::SegmentFile;
use crate::snapshot::{ManifestKey, Snapshot};
use crate::work_dir::WorkDir;

/// Most segments kept open while nobody uses them; each is a memory map, of which a process can
/// have some 65,000.
const IDLE_SEGMENTS_MAX: usize = 4_096;
/// More than any `format` file holds.
const FORMAT_BYTES_MAX: u64 = 256;

/// A directory of tables. Clones are cheap and share what is open.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
    /// What its writers may take to put rows in order and to build indexes, where they do not say it themselves.
    sort_with: SortWith,
    /// Who counts what indexes take while they are built.
    counts: Option<Arc<dyn CountsMemory>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    layout: Layout,
    /// The manifest decoded last.
    pub newest: Mutex<Option<(ManifestKey, Arc<Manifest>)>>,
    /// Open segments by file name.
    segments: Mutex<HashMap<String, Arc<SegmentFile>>>,
    /// Deleted rows by the file of their segment, with what the manifest told of them.
    deleted: Mutex<HashMap<String, (DeletedEntry, Arc<DeletedRows>)>>,
    /// What these hold in memory.
    held: Arc<HeldBytes>,
}

impl Store {
    /// Opens an existing store. Reads its newest manifest and removes the leftovers of writers that
    /// died; without permission to write, removes nothing.
    ///
    /// # Errors
    /// `Invalid` when `path` is not a store or cannot be read, `Corrupt` when its manifest is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let layout = layout_of(path.as_ref())?;
        check_format(&layout)?;
        let store = Self::of(layout, HELD_BYTES_MAX);
        store.snapshot()?;
        // Leftovers are in nobody's way; what cannot be removed now is tried again later.
        let _ = store.clean();
        Ok(store)
    }

    /// Opens a store, or makes one of a directory that is absent or empty.
    ///
    /// # Errors
    /// As [`Store::open`]; `Invalid` when the directory holds something else.
    pub fn create_or_open(path: impl AsRef<Path>) -> Result<Self> {
        let layout = layout_of(path.as_ref())?;
        if !layout.format().exists() {
            create(&layout)?;
        }
        Store::open(path)
    }

    /// Path of the store's directory, as it was opened.
    pub fn path(&self) -> &Path {
        &self.layout().root
    }

    /// The same store for writers that may take so much to put rows in order and to build indexes.
    #[must_use]
    pub fn sorting_with(&self, sort_with: SortWith) -> Self {
        Store { sort_with, ..self.clone() }
    }

    /// The same store for writers whose memory somebody counts.
    #[must_use]
    pub fn counted_by(&self, counts: Arc<dyn CountsMemory>) -> Self {
        Store { counts: Some(counts), ..self.clone() }
    }

    /// Takes so many bytes, if somebody counts them.
    pub(crate) fn take_memory(
        &self,
        what: &'static str,
        bytes: u64,
    ) -> Result<Option<CountedBytes>> {
        self.counts.as_ref().map(|counts| counts.take(what, bytes)).transpose()
    }

    /// What writers may take to put rows in order and to build indexes.
    pub fn sort_with(&self) -> SortWith {
        self.sort_with
    }

    /// The newest version, to read from; never waits for a writer.
    ///
    /// # Errors
    /// `Corrupt` when the manifest is damaged.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::newest(self)
    }

    /// Checks that a load fits the table, if it is there, and changes nothing.
    ///
    /// # Errors
    /// As [`Store::begin_load`].
    pub fn check_target(&self, target: &LoadTarget) -> Result<()> {
        check_load_target(self, target)
    }

    /// Checks that a load may say this of keys that are there already, and changes nothing.
    ///
    /// # Errors
    /// As [`Store::check_target`]; `Invalid` when the table has no PRIMARY KEY, or its rows do not give way to those that delete.
    pub fn check_on_conflict(
        &self,
        target: &LoadTarget,
        on_conflict: OnConflict,
        delete_where: Option<&DeleteWhere>,
    ) -> Result<()> {
        check_on_conflict(self, target, on_conflict, delete_where)
    }

    /// Begins a load: checks that it fits the table, and makes a directory to write segments in.
    ///
    /// # Errors
    /// `Invalid` when the table exists or has other columns; names the column. `Refused` when the store is in a cluster.
    pub fn begin_load(&self, target: LoadTarget) -> Result<LoadDir> {
        self.check_alone()?;
        // As in `open`.
        let _ = self.clean();
        LoadDir::begin(self, target)
    }

    /// Begins a merge of segments of the table with this id.
    ///
    /// # Errors
    /// `Unavailable` when the directory cannot be written.
    pub fn begin_merge(&self, table_id: u64) -> Result<MergeDir> {
        MergeDir::begin(self, table_id)
    }

    /// Makes an empty table. Returns the version, `None` when it is there and is to be kept.
    ///
    /// # Errors
    /// `Invalid` when it exists and must not.
    pub fn create_table(
        &self,
        name: &str,
        schema: &Schema,
        on_existing: OnExisting,
    ) -> Result<Option<u64>> {
        publish_change(self, |m| change::create_table(m, name, schema, on_existing))
    }

    /// Removes a table. Returns the version, `None` when there is none and that is fine.
    ///
    /// # Errors
    /// `Invalid` when it does not exist and must.
    pub fn drop_table(&self, name: &str, on_missing: OnMissing) -> Result<Option<u64>> {
        publish_change(self, |m| change::drop_table(m, name, on_missing))
    }

    /// Makes a view. Returns the version, `None` when there is one and that is fine.
    ///
    /// # Errors
    /// `Invalid` when a table or another view has its name, `Limit` when its text is long.
    pub fn create_view(&self, view: &ViewEntry, on_existing: OnExisting) -> Result<Option<u64>> {
        publish_change(self, |m| change::create_view(m, view, on_existing))
    }

    /// Changes the columns of a table, or its name, and rewrites no segment. `check` may refuse it for the views that there are.
    /// Returns the version, `None` when the table is as wanted already.
    ///
    /// # Errors
    /// `Invalid` when the table or a column is not there, a name is taken, or a key or a rule needs a column; those of `check`.
    pub fn alter_table(
        &self,
        name: &str,
        alteration: &Alteration,
        check: impl Fn(&[ViewEntry]) -> Result<()>,
    ) -> Result<Option<u64>> {
        publish_change(self, |m| {
            check(&m.views)?;
            alter::alter_table(m, name, alteration)
        })
    }

    /// Adds an index to a table, and builds its trees of the segments that are there. Returns the version, `None` when an index has the name
    /// and that is fine.
    ///
    /// # Errors
    /// `Invalid` when the table is not there, the name is taken, or two rows have the same values in a UNIQUE index.
    pub fn create_index(
        &self,
        table: &str,
        index: &Index,
        on_existing: OnExisting,
    ) -> Result<Option<u64>> {
        publish_change(self, |m| index::create_index(m, table, index, on_existing))
    }

    /// Takes an index away. Returns the version, `None` when there is none and that is fine.
    ///
    /// # Errors
    /// `Invalid` when it does not exist and must.
    pub fn drop_index(&self, name: &str, on_missing: OnMissing) -> Result<Option<u64>> {
        publish_change(self, |m| index::drop_index(m, name, on_missing))
    }

    /// Removes a view. Returns the version, `None` when there is none and that is fine.
    ///
    /// # Errors
    /// `Invalid` when it does not exist and must.
    pub fn drop_view(&self, name: &str, on_missing: OnMissing) -> Result<Option<u64>> {
        publish_change(self, |m| change::drop_view(m, name, on_missing))
    }

    /// Removes a table's rows. Returns the version, `None` when it was empty.
    ///
    /// # Errors
    /// `Invalid` when it does not exist.
    pub fn truncate_table(&self, name: &str) -> Result<Option<u64>> {
        publish_change(self, |m| change::truncate_table(m, name))
    }

    /// Deletes rows of a table, in one version.
    ///
    /// # Errors
    /// `Invalid` when the table is gone, `Corrupt` when rows that were deleted before cannot be read.
    pub fn delete_rows(&self, basis: Basis<'_>, deletions: &Deletions) -> Result<Changed<()>> {
        publish_deletions(self, basis, deletions)
    }

    /// Sets for how many days loads are remembered. Returns the version, `None` when it was so already.
    ///
    /// # Errors
    /// `Unavailable` when the directory cannot be written.
    pub fn set_remember_days(&self, days: u32) -> Result<Option<u64>> {
        if self.snapshot()?.remember_days() == days {
            return Ok(None);
        }
        publish_change(self, |m| change::set_remember_days(m, days))
    }

    /// Removes leftovers of dead writers, versions that nobody reads, and their segments. Opening a
    /// store, beginning a load and publishing do this by themselves.
    ///
    /// # Errors
    /// The first thing that could not be removed; the rest is removed all the same.
    pub fn clean(&self) -> Result<Cleaned> {
        gc::clean(self)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.inner.layout
    }

    /// A store whose open segments keep up to `held_max` bytes.
    pub(crate) fn of(layout: Layout, held_max: u64) -> Self {
        let (newest, segments, deleted) = Default::default();
        let inner = Inner { layout, newest, segments, deleted, held: HeldBytes::new(held_max) };
        Store { inner: Arc::new(inner), sort_with: SortWith::usual(), counts: None }
    }

    /// Where open segments count what they hold.
    pub(crate) fn held(&self) -> &Arc<HeldBytes> {
        &self.inner.held
    }

    /// Closes the segments that nobody uses when open ones hold too much; the next reader opens them
    /// again.
    pub(crate) fn close_idle(&self) {
        if self.held().is_over() {
            self.open_segments().retain(|_, idle| Arc::strong_count(idle) > 1);
            lock(&self.inner.deleted).retain(|_, (_, idle)| Arc::strong_count(idle) > 1);
        }
    }

    /// The deleted rows of a segment, from memory when they are those read last.
    pub(crate) fn deleted_rows(
        &self,
        segment: &SegmentEntry,
        entry: &DeletedEntry,
    ) -> Result<Arc<DeletedRows>> {
        self.close_idle();
        if let Some((known, rows)) = lock(&self.inner.deleted).get(&segment.file)
            && known == entry
        {
            return Ok(Arc::clone(rows));
        }
        let rows = Arc::new(read_rows(self.layout(), segment, entry, self.held())?);
        let kept = (entry.clone(), Arc::clone(&rows));
        lock(&self.inner.deleted).insert(segment.file.clone(), kept);
        Ok(rows)
    }

    pub(crate) fn open_segments(&self) -> MutexGuard<'_, HashMap<String, Arc<SegmentFile>>> {
        lock(&self.inner.segments)
    }

    /// Keeps a segment open for the next reader.
    pub(crate) fn keep_open(&self, segment: &SegmentEntry, open: &Arc<SegmentFile>) {
        let mut segments = self.open_segments();
        if segments.len() >= IDLE_SEGMENTS_MAX {
            segments.retain(|_, idle| Arc::strong_count(idle) > 1);
        }
        segments.insert(segment.file.clone(), Arc::clone(open));
    }

    /// Keeps the manifest decoded last, and closes segments that it no longer names.
    pub(crate) fn remember(&self, key: ManifestKey, manifest: &Arc<Manifest>) {
        let mut segments = self.open_segments();
        if !segments.is_empty() {
            let named: HashSet<&str> =
                manifest.tables.iter().flat_map(|t| &t.segments).map(|s| s.file.as_str()).collect();
            segments.retain(|file, _| named.contains(file.as_str()));
            lock(&self.inner.deleted).retain(|file, _| named.contains(file.as_str()));
        }
        *lock(&self.inner.newest) = Some((key, Arc::clone(manifest)));
    }
}

/// Paths are made absolute once, so that a change of the working directory does not move the store.
fn layout_of(path: &Path) -> Result<Layout> {
    let root = std::path::absolute(path).map_err(|e| Error::io("find", path, &e))?;
    Ok(Layout::new(root))
}

fn check_format(layout: &Layout) -> Result<()> {
    let path = layout.format();
    let mut text = Vec::new();
    let read = File::open(&path).and_then(|f| f.take(FORMAT_BYTES_MAX).read_to_end(&mut text));
    match read {
        Ok(_) if text == FORMAT_TEXT.as_bytes() => Ok(()),
        Ok(_) if text.starts_with(b"coload store ") => Err(Error::Invalid(format!(
            "store {} has a newer format than this program reads: {:?} (update it)",
            layout.root.display(),
            String::from_utf8_lossy(&text).trim_end(),
        ))),
        Ok(_) => Err(Error::corrupt(&path, "does not say `coload store 1`")),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Err(not_a_store(layout))
        }
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(Error::Invalid(format!(
            "cannot open store {}: {e}: it is its owner's only (who can open it to others: chmod -R go+rX {}; or run \
             coload serve on it, and connect)",
            layout.root.display(),
            layout.root.display(),
        ))),
        Err(e) => Err(Error::io("open", &path, &e)),
    }
}

fn not_a_store(layout: &Layout) -> Error {
    let root = layout.root.display();
    Error::Invalid(if layout.root.is_dir() {
        format!("{root} is not a store: it has no file `{FORMAT_NAME}` (`coload load` makes one)")
    } else if layout.root.exists() {
        format!("{root} is not a store: it is not a directory")
    } else {
        format!("there is no store {root} (`coload load INPUT --into {root}` makes one)")
    })
}

/// Makes the directories, the first manifest and, last, the file that says that it is a store. Two
/// processes may do so at once, and one may take up what another one left.
fn create(layout: &Layout) -> Result<()> {
    if layout.root.exists() && !layout.root.is_dir() {
        return Err(not_a_store(layout));
    }
    make_dir_unless_there(&layout.root)?;
    check_empty(layout)?;
    for dir in [&layout.manifests, &layout.segments, &layout.tmp] {
        // For the owner only, however open the directory is that he made for it.
        make_dir_unless_there(dir)?;
    }
    let work = WorkDir::make(layout)?;
    if layout.list_versions()?.is_empty() {
        let tmp = work.join("manifest");
        let first = Manifest::first();
        write_new("store::publish::write_manifest", &tmp, &first.encode()?)?;
        link_unless_there("store::publish::link", &tmp, &layout.manifest(first.version))?;
    }
    sync_dir("store::publish::sync_manifest_dir", &layout.manifests)?;
    let tmp = work.join(FORMAT_NAME);
    write_new("store::create::write_format", &tmp, FORMAT_TEXT.as_bytes())?;
    link_unless_there("store::create::link_format", &tmp, &layout.format())?;
    sync_dir("store::create::sync_root", &layout.root)?;
    let parent = layout.root.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned);
    match sync_dir("store::create::sync_root", &parent) {
        // A directory one may pass and write but not list cannot be synced by us.
        Err(Error::Invalid(_)) => Ok(()),
        synced => synced,
    }
}

/// Refuses a directory with somebody else's files. Ours without `format` are a creation that was
/// interrupted; `lost+found` is in each root of an ext4 file system.
fn check_empty(layout: &Layout) -> Result<()> {
    let fail = |e: io::Error| Error::io("list", &layout.root, &e);
    for entry in fs::read_dir(&layout.root).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        let known = ["manifest", "segments", "tmp", "loads", "damaged", FORMAT_NAME, "lost+found"];
        if !known.iter().any(|k| name == *k) {
            return Err(Error::Invalid(format!(
                "{} is not a store and holds other files, such as {} (name an empty or absent \
                 directory)",
                layout.root.display(),
                name.to_string_lossy(),
            )));
        }
    }
    Ok(())
}

fn make_dir_unless_there(dir: &Path) -> Result<()> {
    match make_dir("store::create::mkdir", dir, OWNER_ONLY) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(e) => Err(Error::io("make the directory", dir, &e)),
        Ok(()) => Ok(()),
    }
}

fn link_unless_there(point: &'static str, from: &Path, to: &Path) -> Result<()> {
    match link_new(point, from, to) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(Error::io("make", to, &e)),
        _ => Ok(()),
    }
}
