//! A shared directory as a place.
//!
//! ```text
//!   PLACE/tmp/<random>   written, synced   --link-->  PLACE/map/<version>.map   the folder synced
//! ```
//!
//! A name appears whole or not at all: a link fails when the name is taken, on NFS too.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use coload_types::{Error, Result};

use crate::place::{Created, Place};

/// Folders of a place; others are not touched.
const FOLDERS: [&str; 4] = ["map", "prepared", "nodes", TMP];
const TMP: &str = "tmp";
/// Largest object that is read.
const OBJECT_BYTES_MAX: u64 = 256 << 20;

/// A directory that all nodes of a cluster see.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Opens a directory, or makes it.
    ///
    /// # Errors
    /// `Invalid` when it cannot be made.
    pub fn open(root: &Path) -> Result<Self> {
        for dir in [root.to_owned()].into_iter().chain(FOLDERS.map(|name| root.join(name))) {
            // The map is for the nodes only: it tells addresses, and who writes it commits loads.
            match DirBuilder::new().mode(0o700).recursive(true).create(&dir) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io("make", &dir, &e));
                }
                _ => {}
            }
        }
        Ok(Folder { root: root.to_owned() })
    }

    fn write_tmp(&self, bytes: &[u8]) -> Result<PathBuf> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|e| Error::Unavailable(format!("no random bytes: {e}")))?;
        let name = format!("{:032x}", u128::from_le_bytes(random));
        let path = self.root.join(TMP).join(name);
        let write = || {
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(|e: io::Error| Error::io("write", &path, &e))?;
        Ok(path)
    }

    fn sync_folder_of(&self, path: &Path) -> Result<()> {
        let dir = path.parent().unwrap_or(&self.root);
        let sync = || File::open(dir)?.sync_all();
        sync().map_err(|e: io::Error| Error::io("sync", dir, &e))
    }
}

impl Place for Folder {
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.root.join(name);
        let read = || {
            if fs::metadata(&path)?.len() > OBJECT_BYTES_MAX {
                return Err(io::Error::other("it is too large"));
            }
            fs::read(&path)
        };
        match read() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound && self.root.exists() => Ok(None),
            Err(e) => Err(away("read", &path, &e)),
        }
    }

    fn exists(&self, name: &str) -> Result<bool> {
        let path = self.root.join(name);
        match fs::symlink_metadata(&path) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound && self.root.exists() => Ok(false),
            Err(e) => Err(away("look at", &path, &e)),
        }
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created> {
        let (tmp, path) = (self.write_tmp(bytes)?, self.root.join(name));
        let created = match fs::hard_link(&tmp, &path) {
            Ok(()) => Ok(Created::Now),
            // The answer to a link that was made may be lost on a network, and the link asked for again.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => match is_one_file(&tmp, &path) {
                true => Ok(Created::Now),
                false => Ok(Created::Taken),
            },
            Err(e) => Err(away("link", &path, &e)),
        };
        let _ = fs::remove_file(&tmp);
        if created == Ok(Created::Now) {
            self.sync_folder_of(&path)?;
        }
        created
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let (tmp, path) = (self.write_tmp(bytes)?, self.root.join(name));
        fs::rename(&tmp, &path).map_err(|e| away("write", &path, &e))?;
        self.sync_folder_of(&path)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.root.join(folder);
        let fail = |e: io::Error| away("list", &path, &e);
        let mut names = Vec::new();
        for entry in fs::read_dir(&path).map_err(fail)? {
            names.extend(entry.map_err(fail)?.file_name().into_string());
        }
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.root.join(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(away("remove", &path, &e)),
            _ => Ok(()),
        }
    }

    fn shown(&self) -> String {
        self.root.display().to_string()
    }
}

/// A place that cannot be reached comes back: it is no fault of the request.
fn away(action: &str, path: &Path, error: &io::Error) -> Error {
    Error::Unavailable(format!("cannot {action} {} of the cluster: {error}", path.display()))
}

fn is_one_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_is_taken_once_and_keeps_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let place = Folder::open(&folder.path().join("place")).unwrap();
        assert_eq!(place.read("map/1.map").unwrap(), None);
        assert_eq!(place.create("map/1.map", b"one").unwrap(), Created::Now);
        assert_eq!(place.create("map/1.map", b"two").unwrap(), Created::Taken);
        assert_eq!(place.read("map/1.map").unwrap().unwrap(), b"one");
        place.replace("nodes/a", b"1").unwrap();
        place.replace("nodes/a", b"2").unwrap();
        assert_eq!(place.read("nodes/a").unwrap().unwrap(), b"2");
        assert_eq!(place.list("map").unwrap(), ["1.map"]);
        assert!(place.list("tmp").unwrap().is_empty());
        place.remove("map/1.map").unwrap();
        place.remove("map/1.map").unwrap();
        assert!(!place.exists("map/1.map").unwrap());
    }

    #[test]
    fn a_place_that_is_away_is_no_empty_place() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("place");
        let place = Folder::open(&root).unwrap();
        fs::rename(&root, folder.path().join("elsewhere")).unwrap();
        assert!(matches!(place.read("map/1.map"), Err(Error::Unavailable(_))));
        assert!(matches!(place.exists("map/1.map"), Err(Error::Unavailable(_))));
        assert!(matches!(
            place.create("map/1.map", b"x"),
            Err(Error::Invalid(_) | Error::Unavailable(_))
        ));
    }
}
