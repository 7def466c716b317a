//! The journal of a load that arrives from elsewhere: what was acknowledged survives the process.
//!
//! ```text
//!   STORE/loads/<load id>/lock         flock'ed by the server that works on it
//!   STORE/loads/<load id>/load         what the load is: bytes of the caller, and the table's id
//!   STORE/loads/<load id>/<id>-<n>.seg segment of partition n, durable before its part
//!   STORE/loads/<load id>/<n>.part     partition n is acknowledged: bytes of the caller
//!   STORE/loads/<load id>/<n>.rows       which rows of the input those of partition n are, if they were sorted before they came
//!   STORE/loads/<load id>/<n>.leg      other columns from partition n on: bytes of the caller
//!   STORE/loads/<load id>/<n>.input    bytes of input n, for loads that the server parses
//!   STORE/loads/<load id>/finished     the load is a share of another, and complete; see `shares`
//! ```
//!
//! Each file but inputs ends with the checksum of its bytes and appears whole, by rename. A segment
//! gets its second name below `segments/` when the load is published, so a crash between that and the
//! publish leaves the journal as it was.
//!
//! Invariant: nothing here is visible to readers, and cleaning does not touch it; journals go by
//! [`LoadJournal::remove`].

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use coload_types::bytes::{ByteReader, checksum, put_varint};
use coload_types::{Error, Result};

use crate::change::{LoadTarget, check_target};
use crate::directory::{
    LOCK_NAME, Layout, dir_access_of, is_still_at, list_names, make_dir, open_or_make,
    parse_segment_name, rename, segment_name, sync_dir, sync_file, write_new,
};
use crate::load_record::{LoadId, LoadRecord};
use crate::lock::{Lock, LockedFile};
use crate::manifest::SegmentEntry;
use crate::publish::{PublishedAs, ReadyLoad};
use crate::shares::FINISHED_NAME;
use crate::snapshot::pin_newest;
use crate::store::Store;

/// Name of the file that says what a load is.
pub(crate) const LOAD_NAME: &str = "load";
const PART_SUFFIX: &str = ".part";
const LEG_SUFFIX: &str = ".leg";
const ROWS_SUFFIX: &str = ".rows";
/// Bytes of the checksum that a file ends with.
const SUM_BYTES: usize = 8;
/// Largest file of a journal that is read back whole.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// A load that arrives, with the lock on its journal.
#[derive(Debug)]
pub struct LoadJournal {
    store: Store,
    id: LoadId,
    dir: PathBuf,
    begun_on: Option<u64>,
    _lock: LockedFile,
}

/// A journal that lies in a store.
#[derive(Debug, Clone)]
pub struct JournalEntry {
    /// Id of the load that is journalled.
    pub id: LoadId,
    /// What its writer said that it is.
    pub description: Vec<u8>,
    /// Time at which something was acknowledged last.
    pub modified: SystemTime,
    /// Partitions that were acknowledged to the client.
    pub parts: usize,
    /// Bytes of all its files.
    pub bytes: u64,
}

impl Store {
    /// Begins the journal of load `id`, which goes to `target`; `description` is kept with it.
    ///
    /// # Errors
    /// `Invalid` when the load does not fit the table, `Unavailable` when another process has this
    /// load or the disk fails.
    pub fn begin_journal(
        &self,
        id: LoadId,
        target: &LoadTarget,
        description: Vec<u8>,
    ) -> Result<LoadJournal> {
        let base = pin_newest(self)?;
        let begun_on = base.manifest.table(&target.name).map(|t| t.id);
        check_target(&base.manifest, target, begun_on)?;
        let layout = self.layout();
        let dir = journal_dir(layout, id);
        for dir in [&layout.loads, &dir] {
            match make_dir("store::begin::mkdir", dir, dir_access_of(&layout.tmp)) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io("make", dir, &e));
                }
                _ => {}
            }
        }
        let lock = lock_journal(&dir, id)?;
        clear(&dir)?;
        // It may name a million inputs, so it is not copied to stand behind what comes first.
        let mut head = Vec::new();
        put_varint(&mut head, begun_on.unwrap_or(0));
        put_varint(&mut head, description.len() as u64);
        let mut bytes = description;
        bytes.reserve_exact(head.len() + SUM_BYTES);
        bytes.splice(..0, head);
        write_whole(&dir, LOAD_NAME, bytes)?;
        sync_dir("store::begin::mkdir", &layout.loads)?;
        Ok(LoadJournal { store: self.clone(), id, dir, begun_on, _lock: lock })
    }

    /// The journal of a load that was begun before; `None` when there is none.
    ///
    /// # Errors
    /// `Unavailable` when another process has it, `Corrupt` when it is damaged.
    pub fn open_journal(&self, id: LoadId) -> Result<Option<LoadJournal>> {
        let dir = journal_dir(self.layout(), id);
        if !dir.join(LOAD_NAME).exists() {
            return Ok(None);
        }
        let lock = lock_journal(&dir, id)?;
        let (begun_on, _) = read_load(&dir)?;
        Ok(Some(LoadJournal { store: self.clone(), id, dir, begun_on, _lock: lock }))
    }

    /// The journals in the store, whoever works on them.
    ///
    /// # Errors
    /// `Unavailable` when the directory cannot be read.
    pub fn list_journals(&self) -> Result<Vec<JournalEntry>> {
        let loads = &self.layout().loads;
        if !loads.exists() {
            return Ok(Vec::new());
        }
        let ids = list_names(loads, |name| name.parse::<LoadId>().ok())?;
        // One that goes or is being made meanwhile is none.
        Ok(ids.into_iter().filter_map(|id| look_at(self.layout(), id).ok()).collect())
    }
}

impl LoadJournal {
    /// Id of the load that is journalled.
    pub fn id(&self) -> LoadId {
        self.id
    }

    /// Where it lies.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where a file of it lies.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Gives the segment of a load that is written here a second name in the journal.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    pub fn take_segment(&self, from: &Path, file: &str) -> Result<()> {
        let path = self.path_of(file);
        fs::hard_link(from, &path).map_err(|e| Error::io("link", &path, &e))
    }

    /// Gives a segment that is written elsewhere in the store the name of partition `number` here, too; it is durable when this returns.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    pub fn keep_segment(&self, from: &Path, number: u32) -> Result<()> {
        sync_file("store::publish::sync_segment", from)?;
        let path = self.segment_path(number)?;
        fs::hard_link(from, &path).map_err(|e| Error::io("link", &path, &e))
    }

    /// Takes the acknowledgement of partition `number` back, which is to be written anew.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be removed.
    pub fn drop_part(&self, number: u32) -> Result<()> {
        let part = self.dir.join(format!("{number}{PART_SUFFIX}"));
        fs::remove_file(&part).map_err(|e| Error::io("remove", &part, &e))?;
        self.segment_path(number).map(drop)
    }

    /// Writes a file that appears whole, and is durable when this returns.
    pub(crate) fn write_file(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        write_whole(&self.dir, name, bytes)
    }

    /// What its writer said that it is. It is read when it is asked for: it may name a million inputs.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged.
    pub fn description(&self) -> Result<Vec<u8>> {
        Ok(read_load(&self.dir)?.1)
    }

    /// The name of the segment of partition `number`.
    pub fn segment_name(&self, number: u32) -> String {
        segment_name(self.id, number)
    }

    /// Where the segment of partition `number` is to be written; what an earlier attempt left there
    /// is removed.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be removed.
    pub fn segment_path(&self, number: u32) -> Result<PathBuf> {
        // An attempt that sorted them may not have come to the end.
        let rows = self.dir.join(format!("{number}{ROWS_SUFFIX}"));
        match fs::remove_file(&rows) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &rows, &e));
            }
            _ => {}
        }
        let path = self.dir.join(self.segment_name(number));
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &path, &e)),
            _ => Ok(path),
        }
    }

    /// Where the segment of an acknowledged partition lies.
    pub fn existing_segment_path(&self, number: u32) -> PathBuf {
        self.dir.join(self.segment_name(number))
    }

    /// Where the segment of partition `number` is to be written anew, for a load that is published as `id`; what an
    /// earlier attempt left there is removed.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be removed.
    pub fn segment_path_as(&self, id: LoadId, number: u32) -> Result<PathBuf> {
        let path = self.dir.join(segment_name(id, number));
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &path, &e)),
            _ => Ok(path),
        }
    }

    /// Gives the segment of partition `number` the name that it has in a load that is published as `id`, too.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    pub fn name_segment_as(&self, id: LoadId, number: u32) -> Result<String> {
        let path = self.segment_path_as(id, number)?;
        let from = self.existing_segment_path(number);
        fs::hard_link(&from, &path).map_err(|e| Error::io("link", &path, &e))?;
        Ok(segment_name(id, number))
    }

    /// Where the bytes of input `number` are kept.
    pub fn input_path(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{number}.input"))
    }

    /// Opens the file of input `number` to be read and written, or makes it.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be made.
    pub fn open_input(&self, number: u32) -> Result<File> {
        let path = self.input_path(number);
        open_or_make(&path).map_err(|e| Error::io("open", &path, &e))
    }

    /// Acknowledges partition `number`, whose segment is durable: the part is too when this returns.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or broken.
    pub fn put_part(&self, number: u32, bytes: Vec<u8>) -> Result<()> {
        write_whole(&self.dir, &format!("{number}{PART_SUFFIX}"), bytes)
    }

    /// The acknowledged partitions, in order.
    ///
    /// # Errors
    /// `Corrupt` when one is damaged.
    pub fn parts(&self) -> Result<Vec<(u32, Vec<u8>)>> {
        self.numbered(PART_SUFFIX)
    }

    /// The numbers of the acknowledged partitions, in order.
    ///
    /// # Errors
    /// `Unavailable` when the journal cannot be read.
    pub fn part_numbers(&self) -> Result<Vec<u32>> {
        let mut numbers = numbers(&self.dir, PART_SUFFIX)?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// What was put for an acknowledged partition.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged.
    pub fn part(&self, number: u32) -> Result<Vec<u8>> {
        read_whole(&self.dir.join(format!("{number}{PART_SUFFIX}")))
    }

    /// Notes that partitions from `number` on have other columns; durable when this returns.
    ///
    /// # Errors
    /// As [`Self::put_part`].
    pub fn put_leg(&self, number: u32, bytes: Vec<u8>) -> Result<()> {
        write_whole(&self.dir, &format!("{number}{LEG_SUFFIX}"), bytes)
    }

    /// From which partitions on the columns are others, in order.
    ///
    /// # Errors
    /// `Corrupt` when one is damaged.
    pub fn legs(&self) -> Result<Vec<(u32, Vec<u8>)>> {
        self.numbered(LEG_SUFFIX)
    }

    fn numbered(&self, suffix: &str) -> Result<Vec<(u32, Vec<u8>)>> {
        let mut numbers = numbers(&self.dir, suffix)?;
        numbers.sort_unstable();
        let read = |n: u32| Ok((n, read_whole(&self.dir.join(format!("{n}{suffix}")))?));
        numbers.into_iter().map(read).collect()
    }

    /// Keeps which rows of its input the rows of partition `number` are, in their order; durable when this returns.
    ///
    /// # Errors
    /// As [`Self::put_part`].
    pub fn put_rows(&self, number: u32, rows: &[u32]) -> Result<()> {
        let bytes = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
        write_whole(&self.dir, &format!("{number}{ROWS_SUFFIX}"), bytes)
    }

    /// What [`Self::put_rows`] kept of a partition, if it did.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged.
    pub fn rows(&self, number: u32) -> Result<Option<Vec<u32>>> {
        rows_beside(&self.existing_segment_path(number))
    }

    /// Makes the load ready to become visible: its rows are in the order of the table's key, if it has one. The journal stays as it is,
    /// until [`Self::remove`].
    ///
    /// # Errors
    /// As those of [`crate::LoadDir::put_in_order`] and [`crate::LoadDir::ready`].
    pub fn ready(
        &self,
        how: &PublishedAs<'_>,
        segments: Vec<SegmentEntry>,
        record: LoadRecord,
    ) -> Result<ReadyLoad> {
        let linked: Vec<_> = segments
            .into_iter()
            .map(|segment| {
                let path = self.dir.join(&segment.file);
                (segment, path)
            })
            .collect();
        for (segment, path) in &linked {
            let bytes = sync_file("store::publish::sync_segment", path)?;
            if bytes != segment.bytes {
                let what = format!("{bytes} bytes, and the journal says {}", segment.bytes);
                return Err(Error::corrupt(path, what));
            }
        }
        let load = how.begin(&self.store, (record.id, self.begun_on), &linked)?;
        for (segment, path) in linked.iter().filter(|_| load.key().is_some()) {
            if let Some(rows) = rows_beside(path)? {
                load.put_row_numbers(segment, &rows)?;
            }
        }
        how.order(load, linked, (record, 0))
    }

    /// Removes the journal: the load is published, or given up.
    ///
    /// # Errors
    /// `Unavailable` when files cannot be removed.
    pub fn remove(self) -> Result<()> {
        remove_journal(self.store.layout(), &self.dir)
    }
}

/// Removes the journal in a directory.
pub(crate) fn remove_journal(layout: &Layout, dir: &Path) -> Result<()> {
    // Away at once: who begins this load again meanwhile must find nothing of it.
    let gone = layout.load(LoadId::random()?);
    match fs::rename(dir, &gone) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io("remove", dir, &e)),
        Ok(()) => {}
    }
    match fs::remove_dir_all(&gone) {
        // A cleaning takes it for what a dead writer left.
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &gone, &e)),
        _ => Ok(()),
    }
}

/// The id that the table of a journal's load had when it began; `None` when there was none.
pub(crate) fn begun_on(dir: &Path) -> Result<Option<u64>> {
    Ok(read_load(dir)?.0)
}

fn journal_dir(layout: &Layout, id: LoadId) -> PathBuf {
    layout.loads.join(id.to_string())
}

/// Whether a name is that of a file which ends with the checksum of its bytes.
pub(crate) fn is_whole_file(name: &str) -> bool {
    name == LOAD_NAME
        || name == FINISHED_NAME
        || name.ends_with(PART_SUFFIX)
        || name.ends_with(LEG_SUFFIX)
        || name.ends_with(ROWS_SUFFIX)
}

/// The number of the partition that a file acknowledges.
pub(crate) fn part_number(name: &str) -> Option<u32> {
    name.strip_suffix(PART_SUFFIX)?.parse().ok()
}

/// Locks the journal in a directory, so that nobody works on it.
pub(crate) fn lock_dir(dir: &Path) -> Result<LockedFile> {
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    lock_journal(dir, name.parse()?)
}

fn lock_journal(dir: &Path, id: LoadId) -> Result<LockedFile> {
    let path = dir.join(LOCK_NAME);
    let open = open_or_make(&path);
    let file = LockedFile::try_exclusive(open.map_err(|e| Error::io("lock", &path, &e))?);
    match file.lock() {
        Lock::Held if is_still_at(&path, file.file()) => Ok(file),
        Lock::Unsupported => Err(Error::Unavailable(format!(
            "cannot lock {}: the file system has no file locks, which loads need",
            path.display()
        ))),
        _ => Err(Error::Unavailable(format!("another process works on load {id}"))),
    }
}

/// Removes what is left of an earlier journal of the same load, whose removal did not come to its end.
fn clear(dir: &Path) -> Result<()> {
    for name in list_names(dir, |name| (name != LOCK_NAME).then(|| name.to_owned()))? {
        let path = dir.join(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &path, &e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Bytes with their checksum behind them, as [`read_whole`] wants them.
pub(crate) fn sealed_bytes(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&bytes);
    bytes.reserve_exact(SUM_BYTES);
    bytes.extend(sum.to_le_bytes());
    bytes
}

fn write_whole(dir: &Path, name: &str, bytes: Vec<u8>) -> Result<()> {
    let bytes = sealed_bytes(bytes);
    let tmp = dir.join(format!("{name}.tmp"));
    write_new("store::publish::write_manifest", &tmp, &bytes)?;
    rename("store::publish::rename", &tmp, &dir.join(name))?;
    sync_dir("store::publish::sync_segments_dir", dir)
}

/// Which rows of its input the rows of a segment in a journal are, if they were sorted before they came.
pub(crate) fn rows_beside(segment: &Path) -> Result<Option<Vec<u32>>> {
    let name = segment.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((_, number)) = parse_segment_name(name) else { return Ok(None) };
    let path = segment.with_file_name(format!("{number}{ROWS_SUFFIX}"));
    if !path.exists() {
        return Ok(None);
    }
    let bytes = read_whole(&path)?;
    match bytes.as_chunks() {
        (rows, []) => Ok(Some(rows.iter().map(|row| u32::from_le_bytes(*row)).collect())),
        _ => Err(Error::corrupt(&path, "half a number")),
    }
}

/// Reads a file that ends with the checksum of its bytes.
pub(crate) fn read_whole(path: &Path) -> Result<Vec<u8>> {
    let fail = |e: io::Error| Error::io("read", path, &e);
    let length = fs::metadata(path).map_err(fail)?.len();
    if length > FILE_BYTES_MAX {
        return Err(Error::corrupt(path, format!("{length} bytes are too many")));
    }
    let mut bytes = fs::read(path).map_err(fail)?;
    let split =
        bytes.len().checked_sub(SUM_BYTES).ok_or_else(|| Error::corrupt(path, "too short"))?;
    let sum = bytes.split_off(split);
    if checksum(&bytes).to_le_bytes() != sum[..] {
        return Err(Error::corrupt(path, "another checksum"));
    }
    Ok(bytes)
}

fn read_load(dir: &Path) -> Result<(Option<u64>, Vec<u8>)> {
    let path = dir.join(LOAD_NAME);
    let mut bytes = read_whole(&path)?;
    let mut reader = ByteReader::new(&bytes);
    let begun_on = reader.varint()?;
    let length = reader.bytes()?.len();
    // What stands before it goes, so that it is there once.
    let end = bytes.len() - reader.remaining();
    bytes.truncate(end);
    bytes.drain(..end - length);
    Ok(((begun_on > 0).then_some(begun_on), bytes))
}

fn numbers(dir: &Path, suffix: &str) -> Result<Vec<u32>> {
    list_names(dir, |name| name.strip_suffix(suffix)?.parse().ok())
}

fn look_at(layout: &Layout, id: LoadId) -> Result<JournalEntry> {
    let dir = journal_dir(layout, id);
    let (_, description) = read_load(&dir)?;
    let fail = |e: io::Error| Error::io("look at", &dir, &e);
    let mut modified = SystemTime::UNIX_EPOCH;
    let mut bytes = 0;
    for entry in fs::read_dir(&dir).map_err(fail)? {
        let meta = match entry.and_then(|e| e.metadata()) {
            // Who works on it gave a file its name meanwhile: the journal is there all the same.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            meta => meta.map_err(fail)?,
        };
        modified = modified.max(meta.modified().map_err(fail)?);
        bytes += meta.len();
    }
    Ok(JournalEntry { id, description, modified, parts: numbers(&dir, PART_SUFFIX)?.len(), bytes })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::LoadMode;
    use coload_ddl::parse_columns;

    fn target() -> LoadTarget {
        let schema = parse_columns("a BIGINT").unwrap();
        LoadTarget { name: "t".into(), schema, mode: LoadMode::Append }
    }

    #[test]
    fn a_journal_is_found_again_with_its_parts_and_belongs_to_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create_or_open(folder.path().join("s")).unwrap();
        let id = LoadId::from_u128(5);
        assert!(store.open_journal(id).unwrap().is_none());
        let journal = store.begin_journal(id, &target(), b"what".to_vec()).unwrap();
        journal.put_part(1, b"one".to_vec()).unwrap();
        journal.put_part(0, b"zero".to_vec()).unwrap();
        journal.put_leg(2, b"wider".to_vec()).unwrap();
        assert!(matches!(store.open_journal(id), Err(Error::Unavailable(_))));
        drop(journal);
        store.clean().unwrap();
        let journal = store.open_journal(id).unwrap().unwrap();
        assert_eq!(journal.description().unwrap(), b"what");
        let parts = journal.parts().unwrap();
        assert_eq!(parts, [(0, b"zero".to_vec()), (1, b"one".to_vec())]);
        assert_eq!(journal.legs().unwrap(), [(2, b"wider".to_vec())]);
        let listed = store.list_journals().unwrap();
        assert_eq!((listed.len(), listed[0].parts), (1, 2));
        journal.remove().unwrap();
        assert!(store.list_journals().unwrap().is_empty());
    }

    #[test]
    fn what_a_removed_journal_left_is_not_taken_for_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create_or_open(folder.path().join("s")).unwrap();
        let id = LoadId::from_u128(7);
        let journal = store.begin_journal(id, &target(), b"what".to_vec()).unwrap();
        journal.put_part(0, b"zero".to_vec()).unwrap();
        journal.put_leg(1, b"wider".to_vec()).unwrap();
        // A removal that ended early.
        fs::remove_file(journal.dir.join(LOAD_NAME)).unwrap();
        drop(journal);
        let journal = store.begin_journal(id, &target(), b"what".to_vec()).unwrap();
        assert!(journal.parts().unwrap().is_empty() && journal.legs().unwrap().is_empty());
    }

    #[test]
    fn a_damaged_part_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create_or_open(folder.path().join("s")).unwrap();
        let journal = store.begin_journal(LoadId::from_u128(6), &target(), Vec::new()).unwrap();
        journal.put_part(0, b"zero".to_vec()).unwrap();
        fs::write(journal.dir.join("0.part"), b"zerO12345678").unwrap();
        assert!(matches!(journal.parts(), Err(Error::Corrupt(_))));
    }
}
