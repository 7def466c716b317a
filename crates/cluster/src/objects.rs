//! A folder of an object store as a place.
//!
//! A version of the map is a put with a condition, so that a name is taken once; everything that was answered is durable and
//! seen by all, as S3 and its like promise.

use coload_places::{ObjectFolder, PlaceOptions};
use coload_types::Result;

use crate::place::{Created, Place};

/// A folder of an object store.
#[derive(Debug)]
pub struct Objects(ObjectFolder);

impl Objects {
    /// Opens it by its address, such as `s3://bucket/cluster`.
    ///
    /// # Errors
    /// `Invalid` when it is none of an object store.
    pub fn open(address: &str, options: &PlaceOptions) -> Result<Self> {
        ObjectFolder::open(address, options).map(Objects)
    }
}

impl Place for Objects {
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.0.read(name)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        self.0.exists(name)
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created> {
        Ok(if self.0.create(name, bytes)? { Created::Now } else { Created::Taken })
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.0.replace(name, bytes)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.0.list(folder)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.0.remove(name)
    }

    fn shown(&self) -> String {
        self.0.shown().to_owned()
    }
}
