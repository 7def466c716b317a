//! Where archives are: on disks, and in object stores.

use std::path::{Path, PathBuf};

use coload_places::ObjectRef;
use coload_types::Result;

use super::Member;
use crate::disk::{FileIdentity, check_path};
use crate::raw::RawFile;

/// Bytes of a member of an object that are fetched before they are asked for.
const AHEAD_BYTES: usize = 8 << 20;

/// Where an archive is, and which it was when its members were listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveAt {
    /// On a disk.
    File {
        /// Path of the archive.
        path: PathBuf,
        /// Which file it was.
        identity: FileIdentity,
    },
    /// In an object store.
    Object(ObjectRef),
}

impl ArchiveAt {
    /// Its path; of an object its key.
    pub fn path(&self) -> &Path {
        match self {
            ArchiveAt::File { path, .. } => path,
            ArchiveAt::Object(object) => Path::new(object.key()),
        }
    }

    /// What it is called.
    pub fn shown(&self) -> String {
        match self {
            ArchiveAt::File { path, .. } => path.to_string_lossy().into_owned(),
            ArchiveAt::Object(object) => object.address().to_owned(),
        }
    }

    /// Which file it is, if it is one.
    pub fn identity(&self) -> Option<&FileIdentity> {
        match self {
            ArchiveAt::File { identity, .. } => Some(identity),
            ArchiveAt::Object(_) => None,
        }
    }

    /// Checks that it is still as it was; all that is read of an object is of the version that was found.
    ///
    /// # Errors
    /// `Unavailable` when it is another, or somebody wrote to it.
    pub fn check_unchanged(&self, name: &str) -> Result<()> {
        match self {
            ArchiveAt::File { path, identity } => check_path(name, path, identity),
            ArchiveAt::Object(_) => Ok(()),
        }
    }

    /// Opens it under a name for messages.
    ///
    /// # Errors
    /// `Unavailable` when it is another file now.
    pub fn open(&self, name: &str) -> Result<RawFile> {
        match self {
            ArchiveAt::File { path, identity } => RawFile::open_as(name, path, identity),
            ArchiveAt::Object(object) => Ok(RawFile::of_object(name, object)),
        }
    }

    /// Opens what is stored of a member, to be read in order.
    ///
    /// # Errors
    /// As [`ArchiveAt::open`]; `Input` when it is not within the archive.
    pub fn open_part(&self, name: &str, member: &Member) -> Result<RawFile> {
        let ArchiveAt::Object(object) = self else {
            return self.open(name)?.part(member.start, member.bytes);
        };
        // By itself, so that these bytes are fetched ahead, and no others.
        let Some(own) = ObjectRef::apart(std::slice::from_ref(object)).pop() else {
            return self.open(name)?.part(member.start, member.bytes);
        };
        let file = RawFile::of_object(name, &own).part(member.start, member.bytes)?;
        file.will_read(std::iter::once(0..member.bytes));
        own.all().read_ahead(AHEAD_BYTES);
        Ok(file)
    }
}
