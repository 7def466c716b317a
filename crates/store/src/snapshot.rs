//! One reader's view of a store: a version that stays as it is while the view is held.
//!
//! A snapshot holds a shared lock on its version's manifest. Cleaning removes a version only under
//! an exclusive lock, and a segment only when no manifest in the directory names it, so everything
//! that a snapshot names can be opened until it is dropped.
//!
//! Cost: a listing of a directory of few names, an open and a lock; decoding only when the version is
//! new to this process.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use coload_ddl::Schema;
use coload_threads::lock;
use coload_types::{Error, Result};

use crate::change::missing_table;
use crate::deleted::DeletedRows;
use crate::directory::{Layout, is_still_at, segment_name};
use crate::failpoints;
use crate::held::HeldBytes;
use crate::load_record::LoadId;
use crate::lock::{Lock, LockedFile};
use crate::manifest::{MANIFEST_BYTES_MAX, Manifest, SegmentEntry, TableEntry, ViewEntry};
use crate::older_loads::{RememberedLoad, find};
use crate::segment::SegmentFile;
use crate::store::Store;

/// How often a version may vanish under a reader before it gives up: each time, a writer published
/// a newer one in between.
const ATTEMPTS_MAX: usize = 10_000;
/// Attempts without a pause.
const ATTEMPTS_BUSY: usize = 100;

/// A version of a store that does not change; clones share it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    store: Store,
    /// Kept so that nothing of the version is removed.
    _pinned: Arc<Pinned>,
    /// What of the version is seen.
    manifest: Arc<Manifest>,
}

/// A version whose manifest cannot be removed while this lives.
#[derive(Debug)]
pub(crate) struct Pinned {
    /// What the version holds.
    pub manifest: Arc<Manifest>,
    file: LockedFile,
}

impl Pinned {
    /// Whether the file system locks; if not, the version may be removed.
    pub fn lock(&self) -> Lock {
        self.file.lock()
    }
}

/// Tells whether a manifest file is the one that was decoded before.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ManifestKey {
    version: u64,
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl ManifestKey {
    pub fn new(version: u64, metadata: &Metadata) -> Self {
        ManifestKey {
            version,
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl Snapshot {
    /// The newest version of `store`.
    pub(crate) fn newest(store: &Store) -> Result<Self> {
        let pinned = pin_newest(store)?;
        let manifest = Arc::clone(&pinned.manifest);
        Ok(Snapshot { store: store.clone(), _pinned: Arc::new(pinned), manifest })
    }

    /// The same version without the tables of these names, as they are written there.
    pub fn without(mut self, is_hidden: impl Fn(&str) -> bool) -> Self {
        if self.tables().iter().any(|table| is_hidden(&table.name)) {
            Arc::make_mut(&mut self.manifest).tables.retain(|table| !is_hidden(&table.name));
        }
        self
    }

    /// Number of the version.
    pub fn version(&self) -> u64 {
        self.manifest.version
    }

    /// All tables, in the order of their creation.
    pub fn tables(&self) -> &[TableEntry] {
        &self.manifest.tables
    }

    /// The place among [`Self::tables`] of the one of this name, without regard to case.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.manifest.position(name)
    }

    /// The table of this name, without regard to case.
    pub fn table(&self, name: &str) -> Option<&TableEntry> {
        self.manifest.table(name)
    }

    /// All views, in the order of their creation.
    pub fn views(&self) -> &[ViewEntry] {
        &self.manifest.views
    }

    /// The view of this name, without regard to case.
    pub fn view(&self, name: &str) -> Option<&ViewEntry> {
        self.manifest.view(name)
    }

    /// The table of this name, which must exist.
    ///
    /// # Errors
    /// `Invalid` with the names of the tables that do.
    pub fn require_table(&self, name: &str) -> Result<&TableEntry> {
        self.table(name).ok_or_else(|| missing_table(&self.manifest, name))
    }

    /// The load of this key whose rows the table holds, if it is not older than the store remembers.
    ///
    /// # Errors
    /// `Corrupt` when a file of loads is gone or damaged.
    pub fn published(&self, table: &str, key: LoadId) -> Result<Option<RememberedLoad>> {
        let manifest = &self.manifest;
        match manifest.table(table) {
            Some(table) => find(self.store.layout(), manifest, table, key),
            None => Ok(None),
        }
    }

    /// The format that its manifest is written in.
    pub fn format(&self) -> u16 {
        self.manifest.format()
    }

    /// Days after which a load is forgotten that its table still holds.
    pub fn remember_days(&self) -> u32 {
        self.manifest.remember_days
    }

    /// Where a segment of this version lies.
    pub fn segment_path(&self, segment: &SegmentEntry) -> PathBuf {
        self.store.layout().segment(&segment.file)
    }

    /// An open segment of this version; the store keeps it open for the next caller.
    ///
    /// # Errors
    /// `Corrupt` when the file is gone or is not what the manifest says of it.
    pub fn segment(&self, table: &TableEntry, segment: &SegmentEntry) -> Result<Arc<SegmentFile>> {
        open_shared(&self.store, &table.schema, segment)
    }

    /// The deleted rows of a segment of this version, which scans skip; `None` when there are none. The store keeps them
    /// for the next caller.
    ///
    /// # Errors
    /// `Corrupt` when they are not what the manifest says of them.
    pub fn deleted_rows(&self, segment: &SegmentEntry) -> Result<Option<Arc<DeletedRows>>> {
        match &segment.deleted {
            None => Ok(None),
            Some(entry) => self.store.deleted_rows(segment, entry).map(Some),
        }
    }

    /// The store of which this is a version.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// An open segment of a table; the store keeps it open for the next caller.
pub(crate) fn open_shared(
    store: &Store,
    schema: &Schema,
    segment: &SegmentEntry,
) -> Result<Arc<SegmentFile>> {
    store.close_idle();
    // One that could not be read is opened again: there may be a good copy in its place.
    if let Some(open) = store.open_segments().get(&segment.file)
        && open.check().is_ok()
        && open.stored() == segment.stored.as_ref()
        && open.has_indexes(&segment.trees)
    {
        return Ok(Arc::clone(open));
    }
    let path = store.layout().segment(&segment.file);
    let open = Arc::new(open_segment(&path, schema, segment, Arc::clone(store.held()))?);
    store.keep_open(segment, &open);
    Ok(open)
}

/// Opens a segment and checks that it is the one that the manifest names.
pub(crate) fn open_segment(
    path: &Path,
    schema: &Schema,
    segment: &SegmentEntry,
    held: Arc<HeldBytes>,
) -> Result<SegmentFile> {
    let bytes = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(Error::corrupt(path, "the manifest names this segment, and it is gone"));
        }
        Err(e) => return Err(Error::io("open", path, &e)),
    };
    if bytes != segment.bytes {
        let what = format!("{bytes} bytes, and the manifest says {}", segment.bytes);
        return Err(Error::corrupt(path, what));
    }
    let file = SegmentFile::open_within(path, held)?;
    if let Some(seal) = segment.seal
        && seal != file.seal()
    {
        return Err(Error::corrupt(path, other_segment(&file)));
    }
    let file = match &segment.stored {
        Some(stored) => file.with_columns(Arc::clone(stored), schema)?,
        None => file,
    };
    let shapes = (0..file.column_count()).map(|c| file.physical(c));
    let wanted = schema.columns().iter().map(|c| c.data_type.physical());
    if file.rows() != segment.rows || !shapes.eq(wanted) {
        let what = format!(
            "{} rows of {} columns, and the manifest says {} rows of {} columns, or other types",
            file.rows(),
            file.column_count(),
            segment.rows,
            schema.len()
        );
        return Err(Error::corrupt(path, what));
    }
    Ok(file.with_indexes(&segment.trees, schema))
}

/// What is wrong with a file that is a whole segment, and not the one that the manifest names.
fn other_segment(file: &SegmentFile) -> String {
    let other = "the manifest names another segment, or an earlier one of this name";
    match file.id() {
        Some(id) => {
            let was = segment_name(LoadId::from_u128(id.load), id.number);
            format!("{other} (this file was written as {was})")
        }
        None => other.to_owned(),
    }
}

/// Finds the newest version and locks it against removal.
///
/// Between the listing and the lock a writer may publish a newer version and remove this one. The
/// lock of a removed file protects nothing, so the name is looked at again after locking.
pub(crate) fn pin_newest(store: &Store) -> Result<Pinned> {
    let layout = store.layout();
    for attempt in 0..ATTEMPTS_MAX {
        if attempt > ATTEMPTS_BUSY {
            std::thread::sleep(Duration::from_millis(1));
        }
        let Some(version) = layout.list_versions()?.pop() else {
            // Also seen for an instant when all versions listed so far went while listing.
            if attempt < ATTEMPTS_BUSY {
                continue;
            }
            return Err(Error::corrupt(&layout.manifests, "no manifest in a store"));
        };
        let path = layout.manifest(version);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Error::io("open", &path, &e)),
        };
        failpoints::hit("store::snapshot::lock").map_err(|e| Error::io("lock", &path, &e))?;
        let file = LockedFile::try_shared(file);
        if file.lock() == Lock::Busy || !is_still_at(&path, file.file()) {
            continue;
        }
        let manifest = read_manifest(store, version, &path, file.file())?;
        return Ok(Pinned { manifest, file });
    }
    Err(Error::Unavailable(format!(
        "cannot take a snapshot of {}: its newest manifest is locked by another program",
        layout.root.display()
    )))
}

/// The decoded manifest of an open file, from memory when it is the one decoded last.
fn read_manifest(store: &Store, version: u64, path: &Path, file: &File) -> Result<Arc<Manifest>> {
    let metadata = file.metadata().map_err(|e| Error::io("read", path, &e))?;
    let key = ManifestKey::new(version, &metadata);
    if let Some((known, manifest)) = lock(&store.inner().newest).as_ref()
        && *known == key
    {
        return Ok(Arc::clone(manifest));
    }
    let manifest = Arc::new(decode_file(version, path, file)?);
    store.remember(key, &manifest);
    Ok(manifest)
}

/// Reads and decodes an open manifest.
pub(crate) fn decode_file(version: u64, path: &Path, file: &File) -> Result<Manifest> {
    let mut bytes = Vec::new();
    let mut limited = file.take(MANIFEST_BYTES_MAX as u64 + 1);
    limited.read_to_end(&mut bytes).map_err(|e| Error::io("read", path, &e))?;
    let manifest = Manifest::decode(&bytes, path)?;
    if manifest.version != version {
        let what = format!("holds version {}, not that of its name", manifest.version);
        return Err(Error::corrupt(path, what));
    }
    Ok(manifest)
}

/// The manifest of an older version, when it is still there.
pub(crate) fn read_version(layout: &Layout, version: u64) -> Result<Option<Manifest>> {
    let path = layout.manifest(version);
    match File::open(&path) {
        Ok(file) => decode_file(version, &path, &file).map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("open", &path, &e)),
    }
}
