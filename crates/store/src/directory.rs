//! The names in a data directory, and the system calls on them.
//!
//! ```text
//!   STORE/format                         what makes a directory a store; written last
//!   STORE/manifest/<20 digits>.manifest  one version of the whole catalog
//!   STORE/segments/<load id>-<n>.seg     immutable columns
//!   STORE/segments/<load id>-<table>.loads  loads that a table remembers, of long ago
//!   STORE/segments/<load id>-<table>.deleted  rows of its segments that are deleted
//!   STORE/tmp/<load id>/                 a load in progress
//!   STORE/tmp/<load id>/lock             flock'ed while that load lives
//!   STORE/damaged/                       what a repair set aside
//!   STORE/loads/<load id>/               the journal of a load that arrives from elsewhere
//!   STORE/cluster                        the cluster that the store is in, if it is in one
//! ```
//!
//! Names that are not of these forms are never touched. Every call that changes the directory
//! passes a failpoint first and turns a failure into an `Error` that names the file.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use coload_types::{Error, Result};

use crate::failpoints;
use crate::load_record::LoadId;

/// The whole content of the file `format`.
pub(crate) const FORMAT_TEXT: &str = "coload store 1\n";
/// Name of the file that marks a store.
pub(crate) const FORMAT_NAME: &str = "format";
/// Name of the lock file of a load.
pub(crate) const LOCK_NAME: &str = "lock";

const MANIFEST_SUFFIX: &str = ".manifest";
const SEGMENT_SUFFIX: &str = ".seg";
const OLDER_SUFFIX: &str = ".loads";
const DELETED_SUFFIX: &str = ".deleted";
const INDEX_SUFFIX: &str = ".index";
/// Permissions of a new store's directories: its owner's only.
pub(crate) const OWNER_ONLY: u32 = 0o700;
/// Permissions that a file may have.
const FILE_ACCESS: u32 = 0o666;
/// Permissions that a directory may have.
const DIR_ACCESS: u32 = 0o777;
/// Digits of a version in a file name: enough for any `u64`, so that names sort as versions.
const VERSION_DIGITS: usize = 20;

/// Where things lie in one store.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// The directory of the store itself.
    pub root: PathBuf,
    /// Manifests, one a version.
    pub manifests: PathBuf,
    /// Directory of the segments that versions name.
    pub segments: PathBuf,
    /// Directories of loads in progress, each named by its load's id.
    pub tmp: PathBuf,
    /// Journals of loads that arrive from elsewhere; made with the first.
    pub loads: PathBuf,
}

impl Layout {
    /// The places under `root`.
    pub fn new(root: PathBuf) -> Self {
        Layout {
            manifests: root.join("manifest"),
            segments: root.join("segments"),
            tmp: root.join("tmp"),
            loads: root.join("loads"),
            root,
        }
    }

    /// The file that marks a store.
    pub fn format(&self) -> PathBuf {
        self.root.join(FORMAT_NAME)
    }

    /// The manifest of a version.
    pub fn manifest(&self, version: u64) -> PathBuf {
        self.manifests.join(format!("{version:0VERSION_DIGITS$}{MANIFEST_SUFFIX}"))
    }

    /// Path of a published segment's file.
    pub fn segment(&self, file: &str) -> PathBuf {
        self.segments.join(file)
    }

    /// The directory of a load in progress.
    pub fn load(&self, id: LoadId) -> PathBuf {
        self.tmp.join(id.to_string())
    }

    /// All versions in the directory, oldest first.
    pub fn list_versions(&self) -> Result<Vec<u64>> {
        let mut versions = list_names(&self.manifests, parse_manifest_name)?;
        versions.sort_unstable();
        Ok(versions)
    }
}

/// The file name of a load's segment `number`.
pub(crate) fn segment_name(load: LoadId, number: u32) -> String {
    format!("{load}-{number}{SEGMENT_SUFFIX}")
}

/// The load and the number in a segment's file name; `None` for any other name.
pub(crate) fn parse_segment_name(name: &str) -> Option<(LoadId, u32)> {
    let (load, number) = name.strip_suffix(SEGMENT_SUFFIX)?.split_once('-')?;
    let parsed = (load.parse().ok()?, number.parse().ok()?);
    // "007" and "+7" parse too, but are not what we write.
    (segment_name(parsed.0, parsed.1) == name).then_some(parsed)
}

/// The name of a file with loads of a table that are long ago, written by a load or change.
pub(crate) fn older_name(writer: LoadId, table_id: u64) -> String {
    format!("{writer}-{table_id}{OLDER_SUFFIX}")
}

/// The name of a file with deleted rows of a table, written by a load or change.
pub(crate) fn deleted_name(writer: LoadId, table_id: u64) -> String {
    format!("{writer}-{table_id}{DELETED_SUFFIX}")
}

/// The name of a file with trees of indexes of a table, written by a load or change.
pub(crate) fn index_name(writer: LoadId, table_id: u64) -> String {
    format!("{writer}-{table_id}{INDEX_SUFFIX}")
}

/// The writer and the table of a file of trees of indexes; `None` for any other name.
pub(crate) fn parse_index_name(name: &str) -> Option<(LoadId, u64)> {
    parse_table_file(name, INDEX_SUFFIX)
}

/// The writer and the table of a file of loads; `None` for any other name.
pub(crate) fn parse_older_name(name: &str) -> Option<(LoadId, u64)> {
    parse_table_file(name, OLDER_SUFFIX)
}

/// The writer and the table of a file of deleted rows; `None` for any other name.
pub(crate) fn parse_deleted_name(name: &str) -> Option<(LoadId, u64)> {
    parse_table_file(name, DELETED_SUFFIX)
}

fn parse_table_file(name: &str, suffix: &str) -> Option<(LoadId, u64)> {
    let (writer, table) = name.strip_suffix(suffix)?.split_once('-')?;
    let parsed: (LoadId, u64) = (writer.parse().ok()?, table.parse().ok()?);
    (format!("{}-{}{suffix}", parsed.0, parsed.1) == name).then_some(parsed)
}

/// The load or change that wrote a file in `segments/`; `None` for a name that is not ours.
pub(crate) fn writer_of(name: &str) -> Option<LoadId> {
    let segment = parse_segment_name(name).map(|(load, _)| load);
    let of_table = || {
        let known = parse_older_name(name).or_else(|| parse_deleted_name(name));
        known.or_else(|| parse_index_name(name))
    };
    segment.or_else(|| of_table().map(|(writer, _)| writer))
}

pub(crate) fn parse_manifest_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(MANIFEST_SUFFIX)?;
    let all_digits = digits.len() == VERSION_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    if all_digits { digits.parse().ok() } else { None }
}

/// The names in a directory that `parse` knows.
pub(crate) fn list_names<T>(dir: &Path, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
    let fail = |e: io::Error| Error::io("list", dir, &e);
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        if let Some(parsed) = name.to_str().and_then(&parse) {
            found.push(parsed);
        }
    }
    Ok(found)
}

/// Whether `path` still names the opened `file`: a lock on a file that was removed protects nothing.
pub(crate) fn is_still_at(path: &Path, file: &File) -> bool {
    match (fs::symlink_metadata(path), file.metadata()) {
        (Ok(at), Ok(open)) => at.ino() == open.ino() && at.dev() == open.dev(),
        _ => false,
    }
}

/// Whether both paths name one file.
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    File::open(a).is_ok_and(|file| is_still_at(b, &file))
}

/// Whether this process may change the names in `dir`.
pub(crate) fn is_writable(dir: &Path) -> bool {
    rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Makes a directory with these permissions, less what the umask forbids.
pub(crate) fn make_dir(point: &'static str, dir: &Path, access: u32) -> io::Result<()> {
    failpoints::hit(point)?;
    DirBuilder::new().mode(access).create(dir)
}

/// The permissions of new directories beside `dir`: those it has. A new store's are for its owner only; who opens one
/// to others by `chmod` shares what is written later too.
pub(crate) fn dir_access_of(dir: &Path) -> u32 {
    fs::metadata(dir).map_or(OWNER_ONLY, |meta| meta.mode() & DIR_ACCESS)
}

/// The permissions of a new file at `path`: those of its directory, but to be run.
pub(crate) fn file_access_in(path: &Path) -> u32 {
    path.parent().map_or(OWNER_ONLY, dir_access_of) & FILE_ACCESS
}

/// Opens a file to be written, or makes it.
pub(crate) fn open_or_make(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(file_access_in(path));
    options.open(path)
}

/// Writes a new file and makes its bytes durable (its name is not: see [`sync_dir`]).
pub(crate) fn write_new(point: &'static str, path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        failpoints::hit(point)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(file_access_in(path));
        let mut file = options.open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|e| Error::io("write", path, &e))
}

/// Gives a file a second name, unless that name is taken.
pub(crate) fn link_new(point: &'static str, from: &Path, to: &Path) -> io::Result<()> {
    failpoints::hit(point)?;
    fs::hard_link(from, to)
}

/// Makes a file's bytes durable and returns how many there are.
pub(crate) fn sync_file(point: &'static str, path: &Path) -> Result<u64> {
    let sync = || {
        let file = File::open(path)?;
        failpoints::hit(point)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    };
    sync().map_err(|e: io::Error| Error::io("sync", path, &e))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(point: &'static str, dir: &Path) -> Result<()> {
    let sync = || {
        failpoints::hit(point)?;
        File::open(dir)?.sync_all()
    };
    sync().map_err(|e: io::Error| Error::io("sync", dir, &e))
}

/// Moves a file within the store.
pub(crate) fn rename(point: &'static str, from: &Path, to: &Path) -> Result<()> {
    let rename = || {
        failpoints::hit(point)?;
        fs::rename(from, to)
    };
    rename().map_err(|e: io::Error| Error::io("move a segment to", to, &e))
}

/// Removes a file; one that is gone already is fine.
pub(crate) fn remove_file(point: &'static str, path: &Path) -> Result<()> {
    let remove = || {
        failpoints::hit(point)?;
        fs::remove_file(path)
    };
    match remove() {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path, &e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_we_write_are_ours() {
        let load = LoadId::from_u128(7);
        let name = segment_name(load, 12);
        assert_eq!(name, "00000000000000000000000000000007-12.seg");
        assert_eq!(parse_segment_name(&name), Some((load, 12)));
        for other in [
            "00000000000000000000000000000007-012.seg",
            "00000000000000000000000000000007-+1.seg",
            "00000000000000000000000000000007-4294967296.seg",
            "../0000000000000000000000000007-1.seg",
            "notes.txt",
            ".seg",
        ] {
            assert_eq!(parse_segment_name(other), None, "{other}");
        }
        assert_eq!(parse_manifest_name("00000000000000000012.manifest"), Some(12));
        assert_eq!(parse_manifest_name("99999999999999999999.manifest"), None);
        assert_eq!(parse_manifest_name("12.manifest"), None);
    }
}
