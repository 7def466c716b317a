//! Sets aside what cannot be read, and publishes a version without it.
//!
//! ```text
//!   verify                          what is damaged
//!   damaged/<id>/                   a second name of each damaged file: nothing is ever deleted
//!   publish                         a version that does not name them; cleaning takes the first names
//!   journals, manifests             moved, if nobody works on them
//! ```
//!
//! A crash at any point leaves a store that can be repaired again: before the publish there are only second names, after
//! it only what cleaning removes. Readers of older versions fail where they failed before.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coload_types::{Error, Result};

use super::{
    Catalog, Damage, Part, VerifyOptions, VerifyReport, named_files, names, read_catalog,
    verify_catalog,
};
use crate::change::Outcome;
use crate::deleted::{DeletedEntry, Place, read_set};
use crate::directory::{
    FORMAT_TEXT, Layout, dir_access_of, is_same_file, is_still_at, link_new, make_dir, rename,
    sync_dir, write_new, writer_of,
};
use crate::held::HELD_BYTES_MAX;
use crate::load_record::{LoadId, LoadRecord};
use crate::lock::{Lock, LockedFile};
use crate::manifest::{Manifest, TableEntry};
use crate::publish::publish_change;
use crate::store::Store;

/// Rows that a repair took out of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRows {
    /// Name of the table.
    pub table: String,
    /// File name of the segment that held them.
    pub segment: String,
    /// Rows of the segment.
    pub rows: u64,
    /// The load or merge that wrote the segment.
    pub load: LoadId,
    /// The load's record, if the table has it still; a merge has none, and joins rows of several loads.
    pub record: Option<LoadRecord>,
}

/// Rows of a table that were deleted, and are there again: what told that they are was damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredRows {
    /// Name of the table.
    pub table: String,
    /// File name of their segment.
    pub segment: String,
    /// How many they are.
    pub rows: u64,
}

/// What a repair did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repaired {
    /// The version without what was damaged; `None` when no table lost anything.
    pub version: Option<u64>,
    /// Where the damaged files are now.
    pub folder: PathBuf,
    /// Files set aside, by the names that they had.
    pub moved: Vec<PathBuf>,
    /// Rows that are lost.
    pub lost: Vec<LostRows>,
    /// Rows that were deleted, and are there again.
    pub restored: Vec<RestoredRows>,
    /// What was not done, and why.
    pub left: Vec<String>,
}

/// Verifies a store and repairs it. `version` is the one to go back to, if the newest cannot be read.
///
/// # Errors
/// Those of [`super::verify`]; `Invalid` when the newest version cannot be read and no older one was named, or that one
/// cannot be read either. The store is as it was then.
pub fn repair(path: &Path, options: &VerifyOptions, version: Option<u64>) -> Result<VerifyReport> {
    let catalog = read_catalog(path)?;
    check_version(&catalog, version)?;
    let mut report = verify_catalog(&catalog, options)?;
    if report.damages.is_empty() {
        return Ok(report);
    }
    let folder = make_folder(&catalog.layout)?;
    let mut repaired = Repaired { folder, ..Repaired::default() };
    let layout = catalog.layout.clone();
    if !catalog.is_current() {
        keep_unnamed(&catalog, &mut repaired)?;
    }
    // Its locks end here, so that manifests can be moved.
    drop(catalog);
    move_manifests(&layout, &report.damages, &mut repaired)?;
    restore_format(&layout, &report.damages, &mut repaired)?;
    move_journals(&layout, &report.damages, &mut repaired)?;
    let files = set_aside(&layout, &report.damages, &mut repaired)?;
    let store = Store::of(layout, HELD_BYTES_MAX);
    if !files.is_empty() {
        let (mut lost, mut restored) = (Vec::new(), Vec::new());
        repaired.version = publish_change(&store, |manifest| {
            lost = take_out(manifest, &files);
            let moved;
            (moved, restored) = leave_deleted(store.layout(), manifest, &files)?;
            let rebuilt = leave_indexes(manifest, &files);
            Ok(if lost.is_empty() && !moved && !rebuilt && !files_of_loads(manifest, &files) {
                Outcome::Unchanged
            } else {
                manifest.tables.iter_mut().for_each(|table| forget_files(table, &files));
                Outcome::Changed
            })
        })?;
        (repaired.lost, repaired.restored) = (lost, restored);
    }
    // What nobody names any more goes by itself, now or later.
    let _ = store.clean();
    report.repaired = Some(repaired);
    Ok(report)
}

fn check_version(catalog: &Catalog, version: Option<u64>) -> Result<()> {
    if catalog.is_current() {
        return Ok(());
    }
    let root = catalog.layout.root.display();
    let readable = catalog.last().map(|manifest| manifest.version);
    match (readable, version) {
        (Some(readable), Some(version)) if readable == version => Ok(()),
        (Some(readable), _) => Err(Error::Invalid(format!(
            "the newest version of {root} cannot be read; version {readable} can: what came after it would be lost \
             (coload verify {root} --repair --to-version {readable} goes back to it, or put a copy of the newest \
             manifest in its place)"
        ))),
        (None, _) => Err(Error::Invalid(format!(
            "no version of {root} can be read, so that nothing says what its segments are (put a copy of its newest \
             manifest into {})",
            catalog.layout.manifests.display()
        ))),
    }
}

/// Makes a folder of this repair's own.
fn make_folder(layout: &Layout) -> Result<PathBuf> {
    let all = layout.root.join("damaged");
    let folder = all.join(LoadId::random()?.to_string());
    for dir in [&all, &folder] {
        match make_dir("store::repair::mkdir", dir, dir_access_of(&layout.tmp)) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io("make", dir, &e));
            }
            _ => {}
        }
    }
    sync_dir("store::repair::sync", &all)?;
    sync_dir("store::repair::sync", &layout.root)?;
    Ok(folder)
}

/// The place of a file in the folder of the repair.
fn place(folder: &Path, path: &Path) -> PathBuf {
    path.file_name().map_or_else(|| folder.to_owned(), |name| folder.join(name))
}

/// Gives a second name to all that only a version which cannot be read may name: once that is gone, cleaning takes the first.
fn keep_unnamed(catalog: &Catalog, repaired: &mut Repaired) -> Result<()> {
    let named = named_files(catalog);
    let unnamed = names(&catalog.layout.segments)?;
    let ours = |name: &&String| writer_of(name).is_some() && !named.contains(name.as_str());
    for path in unnamed.iter().filter(ours).map(|name| catalog.layout.segments.join(name)) {
        let aside = place(&repaired.folder, &path);
        match link_new("store::repair::link", &path, &aside) {
            Ok(()) => repaired.moved.push(path),
            // Of a load that ended meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("link", &aside, &e)),
        }
    }
    sync_dir("store::repair::sync", &repaired.folder)
}

/// Moves manifests that cannot be read, unless a reader or writer holds them: while one is there, nothing is cleaned.
fn move_manifests(layout: &Layout, damages: &[Damage], repaired: &mut Repaired) -> Result<()> {
    let manifests = damages.iter().filter(|damage| damage.part == Part::Manifest);
    for Damage { path, .. } in manifests.filter(|damage| damage.path != layout.manifests) {
        let Ok(file) = File::open(path).map(LockedFile::try_exclusive) else { continue };
        if file.lock() != Lock::Held || !is_still_at(path, file.file()) {
            repaired.left.push(format!("{} is in use, and stays", path.display()));
            continue;
        }
        rename("store::repair::rename", path, &place(&repaired.folder, path))?;
        repaired.moved.push(path.clone());
    }
    if repaired.moved.is_empty() {
        return Ok(());
    }
    sync_dir("store::repair::sync", &repaired.folder)?;
    sync_dir("store::repair::sync", &layout.manifests)
}

/// Writes the file that makes the directory a store anew: it always says the same.
fn restore_format(layout: &Layout, damages: &[Damage], repaired: &mut Repaired) -> Result<()> {
    let Some(damage) = damages.iter().find(|damage| damage.part == Part::Format) else {
        return Ok(());
    };
    let new = repaired.folder.join("format.new");
    write_new("store::repair::write", &new, FORMAT_TEXT.as_bytes())?;
    if damage.path.exists() {
        let aside = place(&repaired.folder, &damage.path);
        link_new("store::repair::link", &damage.path, &aside)
            .map_err(|e| Error::io("link", &aside, &e))?;
        repaired.moved.push(damage.path.clone());
    }
    rename("store::repair::rename", &new, &damage.path)?;
    sync_dir("store::repair::sync", &layout.root)
}

/// Moves journals that cannot be read, if nobody works on them: their loads begin anew.
fn move_journals(layout: &Layout, damages: &[Damage], repaired: &mut Repaired) -> Result<()> {
    for Damage { path, .. } in damages.iter().filter(|damage| damage.part == Part::Journal) {
        let Ok(lock) = crate::journal::lock_dir(path) else {
            repaired.left.push(format!("{} is in use, and stays", path.display()));
            continue;
        };
        rename("store::repair::rename", path, &place(&repaired.folder, path))?;
        repaired.moved.push(path.clone());
        sync_dir("store::repair::sync", &layout.loads)?;
        drop(lock);
    }
    Ok(())
}

/// Gives damaged segments and files of loads a second name, and returns their first ones.
fn set_aside(
    layout: &Layout,
    damages: &[Damage],
    repaired: &mut Repaired,
) -> Result<HashSet<String>> {
    let mut files = HashSet::new();
    let is_file = |damage: &&Damage| {
        matches!(damage.part, Part::Segment | Part::Loads | Part::Deleted | Part::Index)
    };
    for Damage { path, .. } in damages.iter().filter(is_file) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let aside = place(&repaired.folder, path);
        match link_new("store::repair::link", path, &aside) {
            Ok(()) => repaired.moved.push(path.clone()),
            Err(_) if is_same_file(path, &aside) => {}
            // Gone: that is what is wrong with it.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("link", &aside, &e)),
        }
        files.insert(name.to_owned());
    }
    sync_dir("store::repair::sync", &repaired.folder)?;
    sync_dir("store::repair::sync", &layout.segments)?;
    Ok(files)
}

fn files_of_loads(manifest: &Manifest, files: &HashSet<String>) -> bool {
    let older = manifest.tables.iter().flat_map(|table| &table.older);
    older.into_iter().any(|older| files.contains(&older.file))
}

/// Takes damaged segments out of their tables. A load of which nothing is left is forgotten, so that it can come again.
fn take_out(manifest: &mut Manifest, files: &HashSet<String>) -> Vec<LostRows> {
    let mut lost = Vec::new();
    for table in &mut manifest.tables {
        for segment in table.segments.iter().filter(|segment| files.contains(&segment.file)) {
            let record = table.loads.iter().find(|load| load.id == segment.load).cloned();
            lost.push(LostRows {
                table: table.name.clone(),
                segment: segment.file.clone(),
                rows: segment.rows,
                load: segment.load,
                record,
            });
        }
        table.segments.retain(|segment| !files.contains(&segment.file));
        for load in &mut table.loads {
            let of_load =
                lost.iter().filter(|lost| lost.table == table.name && lost.load == load.id);
            let rows: u64 = of_load.map(|lost| lost.rows).sum();
            if rows > 0 && rows == load.rows {
                load.held = false;
            }
        }
    }
    lost
}

/// Takes the deleted rows of segments out of damaged files: those that can be read are written anew. Of the others all rows
/// are there again, which loses nothing. Whether there were any is the first of the answer.
fn leave_deleted(
    layout: &Layout,
    manifest: &mut Manifest,
    files: &HashSet<String>,
) -> Result<(bool, Vec<RestoredRows>)> {
    let (mut moved, mut restored) = (false, Vec::new());
    for table in &mut manifest.tables {
        for segment in &mut table.segments {
            let Some(entry) = segment.deleted.clone() else { continue };
            if !entry.file().is_some_and(|file| files.contains(file)) {
                continue;
            }
            moved = true;
            segment.deleted = match read_set(layout, segment, &entry) {
                Ok(set) => {
                    let place = Place::Unwritten(Arc::new(set));
                    Some(DeletedEntry { rows: entry.rows(), place })
                }
                Err(Error::Corrupt(_)) => {
                    let (table, segment) = (table.name.clone(), segment.file.clone());
                    restored.push(RestoredRows { table, segment, rows: entry.rows() });
                    None
                }
                Err(other) => return Err(other),
            };
        }
    }
    Ok((moved, restored))
}

/// Takes the trees of indexes out of damaged files: they are built anew when the version is published. Whether there were any.
fn leave_indexes(manifest: &mut Manifest, files: &HashSet<String>) -> bool {
    let mut left = false;
    for segment in manifest.tables.iter_mut().flat_map(|table| &mut table.segments) {
        let before = segment.trees.len();
        segment.trees.retain(|tree| !files.contains(&tree.part.file));
        left |= segment.trees.len() < before;
    }
    left
}

fn forget_files(table: &mut TableEntry, files: &HashSet<String>) {
    table.older.retain(|older| !files.contains(&older.file));
}
