//! How a load gets its files into a folder.
//!
//! ```text
//!   DIR/_coload-<load>/lock                locked while the load lives
//!   DIR/_coload-<load>/000000.unfinished   whole and durable when the load publishes
//!   DIR/_coload-<load>/publishing          names of the files that are to be removed when all have their names
//!   DIR/<time>-<load>-000000.parquet       what readers find
//! ```
//!
//! Files get their names one after the other, as no system gives several at once. A load that dies before the last of them
//! has its name is undone by the next load into the folder: what has a name already loses it. One that dies after that is
//! finished: what it was to replace is removed. So, once another load has begun, a load is there whole or not at all.
//!
//! Loads look at the folder and change names in it one at a time: under a lock on the folder itself. Names that are not of
//! these forms are never touched, but for files that `--replace` removes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use coload_ddl::Schema;
use coload_store::{LoadId, LoadMode, Lock, LockedFile};
use coload_types::calendar::date_from_days;
use coload_types::{Error, Result};

use super::files::{UNFINISHED_SUFFIX, unfinished_name};
use super::folder::{ParquetFolder, SUFFIX};

const WORK_PREFIX: &str = "_coload-";
const LOCK_NAME: &str = "lock";
const RECORD_NAME: &str = "publishing";
const DAY_MICROS: i64 = 86_400_000_000;
/// How long a load waits for others that look at the folder, and how often it asks.
const LOCK_WAIT: Duration = Duration::from_secs(60);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// What a load did to the names of a folder.
#[derive(Debug, Default)]
pub struct Names {
    /// Of its files.
    pub added: Vec<String>,
    /// Of the files that these replaced.
    pub removed: Vec<String>,
}

/// A load on its way into a folder. Dropped before it is published, it leaves nothing.
#[derive(Debug)]
pub struct FolderLoad {
    folder: ParquetFolder,
    id: LoadId,
    /// The folder of its unfinished files.
    work: PathBuf,
    began_us: i64,
    is_folder_made: bool,
    stage: Stage,
    _lock: LockedFile,
}

/// How far a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Some of its files may have names.
    Unpublished,
    /// All have; some that they replace may have theirs still.
    Replacing,
    /// Only its own folder is left.
    Published,
}

impl ParquetFolder {
    /// Begins a load: makes the folder if it is absent, clears what dead loads left, and checks that this one fits.
    ///
    /// # Errors
    /// `Invalid` when it does not, `Unavailable` when the system fails.
    pub(super) fn begin(
        &self,
        mode: LoadMode,
        schema: &Schema,
        began_us: i64,
    ) -> Result<FolderLoad> {
        let is_folder_made = match fs::create_dir(self.path()) {
            Ok(()) => true,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => false,
            Err(e) => return Err(Error::io("make", self.path(), &e)),
        };
        let begin = || {
            let _folder = lock_path(self.path())?;
            clear(self)?;
            self.check(mode, schema)?;
            let id = LoadId::random()?;
            let work = self.path().join(format!("{WORK_PREFIX}{id}"));
            fs::create_dir(&work).map_err(|e| Error::io("make", &work, &e))?;
            let lock =
                lock_path(&work.join(LOCK_NAME)).inspect_err(|_| drop(fs::remove_dir(&work)))?;
            let (folder, stage) = (self.clone(), Stage::Unpublished);
            Ok(FolderLoad { folder, id, work, began_us, is_folder_made, stage, _lock: lock })
        };
        begin().inspect_err(|_| {
            if is_folder_made {
                // It goes only if nobody else has put anything there.
                let _ = fs::remove_dir(self.path());
            }
        })
    }
}

impl FolderLoad {
    /// Its id.
    pub fn id(&self) -> LoadId {
        self.id
    }

    /// Where its unfinished files are written, and made durable by their writer.
    pub fn path(&self) -> &Path {
        &self.work
    }

    /// Where a file may be put that is of use until the load is published.
    pub fn scratch_path(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    /// Gives the first `count` unfinished files their names, and removes those that they replace.
    ///
    /// # Errors
    /// `Invalid` when the load does not fit what is there now, `Unavailable` when the disk fails. The files are those that
    /// were there before, unless the message says otherwise.
    pub fn publish(&mut self, mode: LoadMode, schema: &Schema, count: usize) -> Result<Names> {
        let path = self.folder.path().to_owned();
        let _folder = lock_path(&path)?;
        let removed = self.folder.check(mode, schema)?;
        let record = self.work.join(RECORD_NAME);
        let lines: String = removed.iter().map(|name| format!("{name}\n")).collect();
        write_durable(&record, lines.as_bytes())?;
        sync(&self.work)?;
        let added: Vec<String> =
            (0..count).map(|number| file_name(self.began_us, self.id, number)).collect();
        for (number, name) in added.iter().enumerate() {
            let to = path.join(name);
            fs::rename(self.work.join(unfinished_name(number)), &to)
                .map_err(|e| Error::io("give its name to", &to, &e))?;
        }
        sync(&path)?;
        self.stage = Stage::Replacing;
        for name in &removed {
            remove(&path.join(name)).map_err(|error| {
                Error::Unavailable(format!(
                    "the load is published in {}, but a file that it replaces is still there, which the next load into \
                     it removes: {error}",
                    path.display()
                ))
            })?;
        }
        self.stage = Stage::Published;
        Ok(Names { added, removed })
    }
}

impl Drop for FolderLoad {
    /// Best effort: what cannot be removed is removed by the next load.
    fn drop(&mut self) {
        match self.stage {
            Stage::Unpublished => {
                let _ = take_back(&self.folder, self.id);
            }
            Stage::Replacing => return,
            Stage::Published => {}
        }
        let _ = remove_work(&self.work);
        if self.is_folder_made && self.stage == Stage::Unpublished {
            let _ = fs::remove_dir(self.folder.path());
        }
    }
}

/// Clears what dead loads left in a folder; its lock is held.
fn clear(folder: &ParquetFolder) -> Result<()> {
    let id = |name: &str| name.strip_prefix(WORK_PREFIX)?.parse::<LoadId>().ok();
    for id in folder.list(id)? {
        let work = folder.path().join(format!("{WORK_PREFIX}{id}"));
        // Who died before it had made its lock has none.
        let lock = match File::open(work.join(LOCK_NAME)) {
            Ok(file) => Some(LockedFile::try_exclusive(file)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(Error::io("open", &work.join(LOCK_NAME), &e)),
        };
        if lock.as_ref().is_none_or(|lock| lock.lock() == Lock::Held) {
            clear_load(folder, id, &work)?;
        }
    }
    Ok(())
}

/// Undoes a dead load, or finishes it if all of its files have their names.
fn clear_load(folder: &ParquetFolder, id: LoadId, work: &Path) -> Result<()> {
    let fail = |e: io::Error| Error::io("clear", work, &e);
    let mut has_unfinished = false;
    for entry in fs::read_dir(work).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        has_unfinished |= name.to_string_lossy().ends_with(UNFINISHED_SUFFIX);
    }
    match fs::read_to_string(work.join(RECORD_NAME)) {
        Ok(record) if !has_unfinished => {
            // A name with a slash is none that a load wrote there.
            for name in record.lines().filter(|name| name.ends_with(SUFFIX) && !name.contains('/'))
            {
                remove(&folder.path().join(name))?;
            }
        }
        _ => take_back(folder, id)?,
    }
    remove_work(work).map_err(fail)
}

/// Removes the files of a load that have names.
fn take_back(folder: &ParquetFolder, id: LoadId) -> Result<()> {
    let is_of = |name: &str| {
        let (rest, number) = name.strip_suffix(SUFFIX)?.rsplit_once('-')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && rest.ends_with(&format!("-{id}"))).then(|| name.to_owned())
    };
    // One that cannot be removed is no reason to leave the others.
    let removed: Vec<Result<()>> =
        folder.list(is_of)?.into_iter().map(|name| remove(&folder.path().join(name))).collect();
    removed.into_iter().collect()
}

/// Removes the folder of a load, the lock as the last of its files.
fn remove_work(work: &Path) -> io::Result<()> {
    for entry in fs::read_dir(work)? {
        let entry = entry?;
        if entry.file_name() != LOCK_NAME {
            fs::remove_file(entry.path())?;
        }
    }
    match fs::remove_file(work.join(LOCK_NAME)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => fs::remove_dir(work),
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path, &e)),
        _ => Ok(()),
    }
}

/// Locks a folder, which others change for a moment only, or a file that is new.
fn lock_path(path: &Path) -> Result<LockedFile> {
    let open = match path.is_dir() {
        true => File::open(path),
        false => File::create_new(path),
    };
    let file = open.map_err(|e| Error::io("lock", path, &e))?;
    let started = Instant::now();
    loop {
        let again = file.try_clone().map_err(|e| Error::io("lock", path, &e))?;
        let locked = LockedFile::try_exclusive(again);
        match locked.lock() {
            Lock::Held => return Ok(locked),
            Lock::Busy if started.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_PAUSE),
            Lock::Busy => {
                return Err(Error::Unavailable(format!(
                    "{} is locked by another process for {} s (loads lock it for a moment; try again)",
                    path.display(),
                    LOCK_WAIT.as_secs()
                )));
            }
            Lock::Unsupported => {
                return Err(Error::Unavailable(format!(
                    "cannot lock {}: the file system has no file locks, which loads into Parquet files need",
                    path.display()
                )));
            }
        }
    }
}

/// Removes the unfinished files of a pass that was in vain: one that is left would say that not all have their names.
///
/// # Errors
/// `Unavailable` when the system fails.
pub fn remove_unfinished(work: &Path) -> Result<()> {
    let fail = |e: io::Error| Error::io("clear", work, &e);
    for entry in fs::read_dir(work).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.to_string_lossy().ends_with(UNFINISHED_SUFFIX) {
            remove(&path)?;
        }
    }
    Ok(())
}

fn write_durable(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|e: io::Error| Error::io("write", path, &e))
}

/// Makes the names in a folder durable.
fn sync(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|e| Error::io("sync", folder, &e))
}

/// The name of a file: in the order of loads and, within one, of its input.
fn file_name(began_us: i64, id: LoadId, number: usize) -> String {
    let (day, micros) = (began_us.div_euclid(DAY_MICROS), began_us.rem_euclid(DAY_MICROS));
    let (year, month, day) = date_from_days(day);
    let seconds = micros / 1_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let micros = micros % 1_000_000;
    format!(
        "{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{micros:06}-{id}-{number:06}{SUFFIX}"
    )
}

#[cfg(test)]
mod tests;
