//! The directory of one writer in progress: `tmp/<load id>/`, alive while its lock file is locked.
//!
//! ```text
//!   made    mkdir, open or create `lock`, lock it, look that it is still there
//!   cleaned the same on somebody else's directory; whoever holds the lock of the file at that name
//!           owns the directory, so a live writer's is never touched
//! ```
//!
//! Dropping it removes everything of the load that was not published. The lock is the last to go.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use coload_types::{Error, Result};

use crate::directory::{
    LOCK_NAME, Layout, dir_access_of, is_still_at, make_dir, open_or_make, remove_file,
};
use crate::failpoints;
use crate::load_record::LoadId;
use crate::lock::{Lock, LockedFile};

/// How often another process may take a fresh directory for a leftover before we give up.
const ATTEMPTS_MAX: usize = 100;

/// A locked directory below `tmp/`.
#[derive(Debug)]
pub(crate) struct WorkDir {
    id: LoadId,
    dir: PathBuf,
    /// Published names of this load's segments, to take back if the load is not published.
    installed: Vec<PathBuf>,
    _lock: LockedFile,
}

impl WorkDir {
    /// Makes and locks a directory with a new id.
    pub fn make(layout: &Layout) -> Result<Self> {
        for _ in 0..ATTEMPTS_MAX {
            let id = LoadId::random()?;
            let dir = layout.load(id);
            make_dir("store::begin::mkdir", &dir, dir_access_of(&layout.tmp))
                .map_err(|e| Error::io("make", &dir, &e))?;
            match own(&dir) {
                Ok(Owned::Ours(lock)) => {
                    return Ok(WorkDir { id, dir, installed: Vec::new(), _lock: lock });
                }
                // A cleaner saw the directory before it was locked, and removes it.
                Ok(Owned::Another) => {}
                Err(e) => {
                    let _ = fs::remove_dir_all(&dir);
                    return Err(Error::io("lock", &dir.join(LOCK_NAME), &e));
                }
            }
        }
        Err(Error::Unavailable(format!(
            "cannot begin a load in {}: another process keeps removing its directory",
            layout.tmp.display()
        )))
    }

    /// Makes and locks the directory of a known id; what a dead writer left of it is removed first.
    ///
    /// # Errors
    /// `Unavailable` when a living writer has it.
    pub fn make_as(layout: &Layout, id: LoadId) -> Result<Self> {
        let dir = layout.load(id);
        for _ in 0..ATTEMPTS_MAX {
            match make_dir("store::begin::mkdir", &dir, dir_access_of(&layout.tmp)) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    match remove_leftover(&dir)? {
                        Leftover::Removed => continue,
                        Leftover::Live => break,
                    }
                }
                Err(e) => return Err(Error::io("make", &dir, &e)),
            }
            match own(&dir).map_err(|e| Error::io("lock", &dir.join(LOCK_NAME), &e))? {
                Owned::Ours(lock) => {
                    return Ok(WorkDir { id, dir, installed: Vec::new(), _lock: lock });
                }
                Owned::Another => {}
            }
        }
        Err(Error::Unavailable(format!("load {id} is being written by another process")))
    }

    /// The id, which is also the directory's name.
    pub fn id(&self) -> LoadId {
        self.id
    }

    /// A path within the directory.
    pub fn join(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Notes a file outside that belongs to the load until [`WorkDir::keep_installed`].
    pub fn note_installed(&mut self, path: PathBuf) {
        self.installed.push(path);
    }

    /// The installed files are published: they stay.
    pub fn keep_installed(&mut self) {
        self.installed.clear();
    }
}

impl Drop for WorkDir {
    /// Best effort: what cannot be removed is removed by the next cleaning, once the lock is free.
    fn drop(&mut self) {
        let point = "store::publish::remove_tmp";
        for path in &self.installed {
            let _ = remove_file(point, path);
        }
        let _ = failpoints::hit(point).and_then(|()| remove_tree(&self.dir));
    }
}

/// Whose a directory is.
enum Owned {
    /// Ours until the lock is dropped.
    Ours(LockedFile),
    /// Somebody else's, or gone.
    Another,
}

fn own(dir: &Path) -> io::Result<Owned> {
    let path = dir.join(LOCK_NAME);
    failpoints::hit("store::begin::lock")?;
    let file = match open_or_make(&path) {
        Ok(file) => LockedFile::try_exclusive(file),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Owned::Another),
        Err(e) => return Err(e),
    };
    match file.lock() {
        Lock::Held if is_still_at(&path, file.file()) => Ok(Owned::Ours(file)),
        Lock::Held | Lock::Busy => Ok(Owned::Another),
        Lock::Unsupported => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the file system has no file locks, which writing needs",
        )),
    }
}

/// What became of a directory that a cleaning looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// Its writer is dead; it was removed.
    Removed,
    /// Its writer lives, or another process removes it.
    Live,
}

/// Removes the directory of a writer that died.
pub(crate) fn remove_leftover(dir: &Path) -> Result<Leftover> {
    let clean = || {
        let Owned::Ours(_lock) = own(dir)? else { return Ok(Leftover::Live) };
        failpoints::hit("store::clean::remove_tmp")?;
        remove_tree(dir)?;
        Ok(Leftover::Removed)
    };
    clean().map_err(|e: io::Error| Error::io("remove the leftovers in", dir, &e))
}

/// Removes the directory's files, the lock as the last, and the directory.
fn remove_tree(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name() != LOCK_NAME {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(dir.join(LOCK_NAME))?;
    fs::remove_dir(dir)
}
