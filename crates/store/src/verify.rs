//! Reads everything that a store holds and says what is wrong with it.
//!
//! ```text
//!   format, every version of the manifest   checksum, and all that decoding checks
//!   every segment that a version names       seal, indexes, dictionaries, each page against its range and its type,
//!                                            statistics of the manifest against the values
//!   files of loads, of deleted rows, journals   checksums
//!   other files                              who left them, and who removes them
//! ```
//!
//! A version is locked as by a reader, so that writers and cleaning go on beside it; nothing is changed. What a repair does
//! with what was found is in [`mod@repair`].
//!
//! Memory: for each thread a page, and the dictionaries of one column. Time: one read of all bytes.
//!
//! Not looked at: the zeros between pages, which nobody reads; whether rows keep the rules (CHECK) of their table.

mod journals;
mod repair;
mod segments;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coload_types::{Error, Result};

use crate::deleted::read_set;
use crate::directory::{
    FORMAT_NAME, FORMAT_TEXT, Layout, is_still_at, parse_manifest_name, writer_of,
};
use crate::index::{IndexTree, verify_index};
use crate::load_record::LoadId;
use crate::lock::{Lock, LockedFile};
use crate::manifest::{Manifest, SegmentEntry, TableEntry};
use crate::older_loads;
use crate::snapshot::decode_file;

pub use repair::{LostRows, Repaired, RestoredRows, repair};

/// How often versions may vanish while they are listed.
const ATTEMPTS_MAX: usize = 100;

/// Told how many bytes of segments were read, and how many there are.
pub type VerifyProgress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// How a store is verified.
#[derive(Clone)]
pub struct VerifyOptions {
    /// Threads that read segments; at least one.
    pub threads: usize,
    /// Called after each column of a segment.
    pub progress: Option<VerifyProgress>,
}

impl fmt::Debug for VerifyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyOptions").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// What kind of file something was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The file that makes the directory a store.
    Format,
    /// The manifest of a version.
    Manifest,
    /// A segment that a version names.
    Segment,
    /// A file of loads that a version names.
    Loads,
    /// The deleted rows of a segment that a version names.
    Deleted,
    /// The tree of an index of a segment that a version names.
    Index,
    /// The journal of a load that arrives.
    Journal,
    /// Any other file of the directory.
    Other,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Format => "format",
            Part::Manifest => "manifest",
            Part::Segment => "segment",
            Part::Loads => "loads",
            Part::Deleted => "deleted rows",
            Part::Index => "index",
            Part::Journal => "journal",
            Part::Other => "other",
        })
    }
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What kind of file it is in.
    pub part: Part,
    /// The file, or the directory of a journal.
    pub path: PathBuf,
    /// What is wrong with the file, as a message to a person.
    pub what: String,
    /// The table that it belongs to.
    pub table: Option<String>,
    /// Rows that cannot be trusted.
    pub rows: u64,
}

/// What a verification read, and what it found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// The newest version that can be read; its tables were verified.
    pub version: Option<u64>,
    /// The newest version there is.
    pub newest: Option<u64>,
    /// Versions that were read whole.
    pub versions: Vec<u64>,
    /// Tables of the newest version that can be read.
    pub tables: usize,
    /// Segments of all versions.
    pub segments: usize,
    /// Pages and dictionaries that were read.
    pub pages: u64,
    /// Rows of all segments.
    pub rows: u64,
    /// Bytes of all segments.
    pub bytes: u64,
    /// Journals of loads that arrive from elsewhere.
    pub journals: usize,
    /// What is wrong, by kind and file.
    pub damages: Vec<Damage>,
    /// What is not wrong and may be of interest.
    pub notes: Vec<String>,
    /// What a repair did.
    pub repaired: Option<Repaired>,
}

/// A version that was read, locked against removal.
pub(crate) struct Version {
    pub manifest: Manifest,
    _lock: LockedFile,
}

/// What is read of a store before its segments.
pub(crate) struct Catalog {
    pub layout: Layout,
    /// Versions that can be read, the newest last.
    pub versions: Vec<Version>,
    pub damages: Vec<Damage>,
    pub newest: Option<u64>,
}

impl Catalog {
    /// The newest version that can be read.
    pub fn last(&self) -> Option<&Manifest> {
        self.versions.last().map(|version| &version.manifest)
    }

    /// Whether the newest version can be read.
    pub fn is_current(&self) -> bool {
        self.newest.is_some() && self.last().map(|manifest| manifest.version) == self.newest
    }
}

/// Verifies a store; changes nothing.
///
/// # Errors
/// `Invalid` when there is no store at `path` or it may not be read, `Unavailable` when a disk fails or threads cannot be
/// started. What is damaged is no error: it is in the report.
pub fn verify(path: &Path, options: &VerifyOptions) -> Result<VerifyReport> {
    let catalog = read_catalog(path)?;
    verify_catalog(&catalog, options)
}

fn verify_catalog(catalog: &Catalog, options: &VerifyOptions) -> Result<VerifyReport> {
    let mut report = VerifyReport {
        version: catalog.last().map(|manifest| manifest.version),
        newest: catalog.newest,
        versions: catalog.versions.iter().map(|version| version.manifest.version).collect(),
        tables: catalog.last().map_or(0, |manifest| manifest.tables.len()),
        damages: catalog.damages.clone(),
        ..VerifyReport::default()
    };
    segments::verify_all(&catalog.layout, &named_segments(catalog), options, &mut report)?;
    verify_older(catalog, &mut report);
    verify_deleted(catalog, &mut report)?;
    verify_indexes(catalog, &mut report)?;
    journals::verify_all(&catalog.layout, &mut report)?;
    note_unsealed(catalog, &mut report);
    note_others(catalog, &mut report)?;
    report.damages.sort_by(|a, b| (a.part, &a.path, &a.what).cmp(&(b.part, &b.path, &b.what)));
    Ok(report)
}

/// Reads what says where everything is.
pub(crate) fn read_catalog(path: &Path) -> Result<Catalog> {
    let root = std::path::absolute(path).map_err(|e| Error::io("find", path, &e))?;
    let layout = Layout::new(root);
    if !layout.manifests.is_dir() || !layout.segments.is_dir() {
        return Err(Error::Invalid(format!(
            "{} is no store: it has no directories `manifest` and `segments`",
            layout.root.display()
        )));
    }
    let mut catalog = Catalog { layout, versions: Vec::new(), damages: Vec::new(), newest: None };
    check_format(&mut catalog)?;
    for _ in 0..ATTEMPTS_MAX {
        if read_versions(&mut catalog)? {
            break;
        }
    }
    if catalog.newest.is_none() {
        let (part, path) = (Part::Manifest, catalog.layout.manifests.clone());
        let what = "there is no manifest".to_owned();
        catalog.damages.push(Damage { part, path, what, table: None, rows: 0 });
    }
    Ok(catalog)
}

fn check_format(catalog: &mut Catalog) -> Result<()> {
    let path = catalog.layout.format();
    let mut text = Vec::new();
    let limit = FORMAT_TEXT.len() as u64 + 1;
    let what = match File::open(&path).and_then(|file| file.take(limit).read_to_end(&mut text)) {
        Ok(_) if text == FORMAT_TEXT.as_bytes() => return Ok(()),
        Ok(_) => format!("does not say {:?}", FORMAT_TEXT.trim_end()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => format!("{FORMAT_NAME} is not there"),
        Err(e) => return Err(Error::io("open", &path, &e)),
    };
    let part = Part::Format;
    catalog.damages.push(Damage { part, path, what, table: None, rows: 0 });
    Ok(())
}

/// Reads and locks all versions; false when the newest vanished meanwhile.
fn read_versions(catalog: &mut Catalog) -> Result<bool> {
    let listed = catalog.layout.list_versions()?;
    catalog.newest = listed.last().copied();
    catalog.versions.clear();
    catalog.damages.retain(|damage| damage.part != Part::Manifest);
    for version in listed {
        let path = catalog.layout.manifest(version);
        let file = match File::open(&path) {
            Ok(file) => LockedFile::try_shared(file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Error::io("open", &path, &e)),
        };
        if file.lock() == Lock::Busy || !is_still_at(&path, file.file()) {
            // Cleaning removes it.
            continue;
        }
        match decode_file(version, &path, file.file()) {
            Ok(manifest) => catalog.versions.push(Version { manifest, _lock: file }),
            Err(error) => {
                let (part, what) = (Part::Manifest, error.to_string());
                catalog.damages.push(Damage { part, path, what, table: None, rows: 0 });
            }
        }
    }
    let is_damaged = |version| {
        let path = catalog.layout.manifest(version);
        catalog.damages.iter().any(|damage| damage.path == path)
    };
    Ok(catalog.newest.is_none_or(|newest| catalog.is_current() || is_damaged(newest)))
}

/// The segments that versions name, each once, with a table that has it.
fn named_segments(catalog: &Catalog) -> Vec<(&TableEntry, &SegmentEntry)> {
    let mut by_file = BTreeMap::new();
    for version in &catalog.versions {
        for table in &version.manifest.tables {
            by_file.extend(table.segments.iter().map(|s| (s.file.as_str(), (table, s))));
        }
    }
    by_file.into_values().collect()
}

fn verify_older(catalog: &Catalog, report: &mut VerifyReport) {
    let mut seen = HashSet::new();
    for version in catalog.versions.iter().rev() {
        for table in &version.manifest.tables {
            for older in table.older.iter().filter(|older| seen.insert(older.file.as_str())) {
                let path = catalog.layout.segment(&older.file);
                if let Err(error) = older_loads::read(&path, older) {
                    let (part, what) = (Part::Loads, error.to_string());
                    let table = Some(table.name.clone());
                    report.damages.push(Damage { part, path, what, table, rows: 0 });
                }
            }
        }
    }
}

/// Reads the deleted rows of all segments. Those that stand in a manifest were checked when it was decoded.
fn verify_deleted(catalog: &Catalog, report: &mut VerifyReport) -> Result<()> {
    let mut seen = Vec::new();
    for version in catalog.versions.iter().rev() {
        for table in &version.manifest.tables {
            for segment in &table.segments {
                let Some(entry) = &segment.deleted else { continue };
                let Some(file) = entry.file() else { continue };
                if seen.contains(&entry) {
                    continue;
                }
                seen.push(entry);
                match read_set(&catalog.layout, segment, entry) {
                    Ok(_) => {}
                    Err(error @ (Error::Corrupt(_) | Error::Limit(_))) => {
                        let (part, what) = (Part::Deleted, error.to_string());
                        let (path, table) =
                            (catalog.layout.segment(file), Some(table.name.clone()));
                        let rows = entry.rows();
                        report.damages.push(Damage { part, path, what, table, rows });
                    }
                    Err(other) => return Err(other),
                }
            }
        }
    }
    Ok(())
}

/// Compares the trees of indexes with the columns of their segments.
fn verify_indexes(catalog: &Catalog, report: &mut VerifyReport) -> Result<()> {
    let mut seen: Vec<(&str, &IndexTree)> = Vec::new();
    for version in catalog.versions.iter().rev() {
        for table in &version.manifest.tables {
            let trees =
                table.segments.iter().flat_map(|s| s.trees.iter().map(move |tree| (s, tree)));
            for (segment, tree) in trees {
                if seen.contains(&(&segment.file, tree)) {
                    continue;
                }
                seen.push((&segment.file, tree));
                match verify_index(&catalog.layout, &table.schema, segment, tree) {
                    Ok(()) => {}
                    Err(error @ (Error::Corrupt(_) | Error::Limit(_))) => {
                        let what = error.to_string();
                        let path = catalog.layout.segment(&tree.part.file);
                        let table = Some(table.name.clone());
                        report.damages.push(Damage {
                            part: Part::Index,
                            path,
                            what,
                            table,
                            rows: 0,
                        });
                    }
                    Err(other) => return Err(other),
                }
            }
        }
    }
    Ok(())
}

/// Says what cannot be checked of segments that older programs wrote.
fn note_unsealed(catalog: &Catalog, report: &mut VerifyReport) {
    let Some(manifest) = catalog.last() else { return };
    for table in &manifest.tables {
        let unsealed = table.segments.iter().filter(|segment| segment.seal.is_none()).count();
        if unsealed > 0 {
            report.notes.push(format!(
                "{unsealed} segments of table {} were written by an older program: that each is whole was checked, not \
                 that it is the one that the manifest means",
                table.name
            ));
        }
    }
}

/// The files in `segments/` that versions name.
fn named_files(catalog: &Catalog) -> HashSet<&str> {
    let tables = catalog.versions.iter().flat_map(|version| &version.manifest.tables);
    tables.flat_map(TableEntry::file_names).collect()
}

/// Tells of files that no version names.
fn note_others(catalog: &Catalog, report: &mut VerifyReport) -> Result<()> {
    let layout = &catalog.layout;
    let named = named_files(catalog);
    let (mut left, mut unknown) = (0, Vec::new());
    for name in names(&layout.segments)? {
        match writer_of(&name) {
            Some(_) if named.contains(name.as_str()) => {}
            Some(_) => left += 1,
            None => unknown.push(layout.segments.join(name)),
        }
    }
    let not_ours = |name: &String| parse_manifest_name(name).is_none();
    let strange = names(&layout.manifests)?.into_iter().filter(not_ours);
    unknown.extend(strange.map(|name| layout.manifests.join(name)));
    if left > 0 {
        report.notes.push(format!(
            "{left} files in {} are named by no version: loads that run, or that ended early; cleaning removes these when \
             a load begins",
            layout.segments.display()
        ));
    }
    let writers = if layout.tmp.is_dir() { names(&layout.tmp)? } else { Vec::new() };
    let writers = writers.iter().filter(|name| name.parse::<LoadId>().is_ok()).count();
    if writers > 0 {
        report.notes.push(format!(
            "{writers} loads or changes run, or ended early, in {}",
            layout.tmp.display()
        ));
    }
    for path in unknown {
        report.notes.push(format!("{} is not of the store, and is left alone", path.display()));
    }
    Ok(())
}

fn names(dir: &Path) -> Result<Vec<String>> {
    let mut names = crate::directory::list_names(dir, |name| Some(name.to_owned()))?;
    names.sort_unstable();
    Ok(names)
}
