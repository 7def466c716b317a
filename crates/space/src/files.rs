//! Files of extents, which have no name: the system takes them away when nobody has them open, whoever was killed.
//!
//! A file system that has no files without names gets one that is removed as soon as it is open. What is left when a process dies
//! between the two is an empty file, which the next load removes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use coload_types::{Error, Result};
use rustix::fs::OFlags;

/// How the names of files begin and end.
const PREFIX: &str = "coload-";
const SUFFIX: &str = ".run";

/// A directory that holds extents.
#[derive(Debug)]
pub(crate) struct Folder {
    space: String,
    dir: PathBuf,
}

/// A file without a name, and what messages call it.
#[derive(Debug)]
pub(crate) struct Unnamed {
    pub file: File,
    pub path: PathBuf,
}

impl Folder {
    /// A directory that is there; what dead loads left in it is removed.
    ///
    /// # Errors
    /// `Invalid` when it is none.
    pub fn open(space: &str, dir: &str) -> Result<Self> {
        let folder = Folder { space: space.to_owned(), dir: PathBuf::from(dir) };
        for entry in
            fs::read_dir(&folder.dir).map_err(|e| folder.failed("open", &folder.dir, &e))?
        {
            let Ok(entry) = entry else { continue };
            let name = entry.file_name();
            let is_ours =
                name.to_str().is_some_and(|n| n.starts_with(PREFIX) && n.ends_with(SUFFIX));
            let is_empty =
                |e: &fs::DirEntry| e.metadata().is_ok_and(|m| m.is_file() && m.len() == 0);
            if is_ours && is_empty(&entry) {
                // Another load may remove it at the same moment.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(folder)
    }

    /// Makes a file, to be read and written, with more flags of the system's.
    ///
    /// # Errors
    /// Those of the system.
    pub fn make(&self, flags: OFlags) -> io::Result<Unnamed> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("{PREFIX}{}-{number}{SUFFIX}", std::process::id()));
        let open = |path: &Path, flags: OFlags, new: bool| {
            let mut options = File::options();
            options.read(true).write(true).create_new(new).mode(0o600);
            options.custom_flags(flags.bits() as i32).open(path)
        };
        match open(&self.dir, flags | OFlags::TMPFILE, false) {
            Ok(file) => return Ok(Unnamed { file, path }),
            Err(e) if has_no_unnamed(&e) => {}
            Err(e) => return Err(e),
        }
        let file = open(&path, flags, true)?;
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(Unnamed { file, path }),
        }
    }

    /// The error for something that failed in the space.
    pub fn failed(&self, action: &str, path: &Path, source: &io::Error) -> Error {
        in_space(&self.space, Error::io(action, path, source))
    }

    /// The same for making a file.
    pub fn not_made(&self, source: &io::Error) -> Error {
        self.failed("make a file in", &self.dir, source)
    }
}

/// An error with the name of the space before it.
pub(crate) fn in_space(space: &str, error: Error) -> Error {
    match error {
        Error::Invalid(text) => Error::Invalid(format!("space {space}: {text}")),
        Error::Unavailable(text) => Error::Unavailable(format!("space {space}: {text}")),
        Error::Corrupt(text) => Error::Corrupt(format!("space {space}: {text}")),
        other => other,
    }
}

/// Whether a file system says that it has no files without names.
fn has_no_unnamed(error: &io::Error) -> bool {
    let known = [rustix::io::Errno::OPNOTSUPP, rustix::io::Errno::ISDIR, rustix::io::Errno::INVAL];
    known.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Checks that an option names a directory.
pub(crate) fn wants_folder(argument: Option<&str>) -> Result<()> {
    match argument {
        Some(dir) if !dir.is_empty() => Ok(()),
        _ => Err(Error::Invalid("it needs a directory".into())),
    }
}
