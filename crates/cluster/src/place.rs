//! Where a cluster keeps its map: named objects, of which a new one is made by one of several who want to.
//!
//! A shared directory is one ([`crate::Folder`]), and so is an object store with conditional puts ([`crate::Objects`]):
//! `create` is a put that fails when the name is taken.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use coload_places::PlaceOptions;
use coload_types::{Error, Result};

use crate::folder::Folder;
use crate::objects::Objects;

/// What became of a name that somebody wanted to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It has these bytes, durably.
    Now,
    /// Another one was faster.
    Taken,
}

/// Named objects. Names are relative, with one folder: `map/7.map`.
pub trait Place: fmt::Debug + Send + Sync {
    /// The bytes of an object; `None` when there is none.
    ///
    /// # Errors
    /// `Unavailable` when the place is away.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// Whether there is an object.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn exists(&self, name: &str) -> Result<bool>;

    /// Makes an object, whole and durable when this returns, unless the name is taken.
    ///
    /// # Errors
    /// `Unavailable` when the place is away; then it may have been made.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created>;

    /// Makes an object or puts these bytes in place of it, for objects that one node writes.
    ///
    /// # Errors
    /// As [`Self::create`].
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Names of the objects in a folder, without it, in any order.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Removes an object; one that is gone already is fine.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn remove(&self, name: &str) -> Result<()>;

    /// The place, for messages.
    fn shown(&self) -> String;
}

/// Opens a place that is named by a flag: a directory, which is made if it is absent, or a folder of an object store, whose
/// endpoint and credentials the environment tells.
///
/// # Errors
/// `Invalid` when it is the address of anything else, or cannot be made.
pub fn open_place(text: &str) -> Result<Arc<dyn Place>> {
    if coload_places::is_address(text) {
        return Ok(Arc::new(Objects::open(text, &PlaceOptions::default())?));
    }
    if let Some((scheme, _)) = text.split_once("://") {
        return Err(Error::Invalid(format!(
            "--cluster {text}: the map of a cluster lies in a directory that all nodes share, or in an object store (s3://bucket/folder), \
             and {scheme} is neither"
        )));
    }
    Ok(Arc::new(Folder::open(Path::new(text))?))
}
