//! What a store says of the cluster that it is in: bytes of the caller, in one file of the store's directory.

use coload_types::{Error, Result};

use crate::directory::{rename, sync_dir, write_new};
use crate::journal::{read_whole, sealed_bytes};
use crate::store::Store;

/// Name of the file beside `format`.
const NAME: &str = "cluster";

impl Store {
    /// What [`Self::put_membership`] kept; `None` for a store that is in no cluster.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged.
    pub fn membership(&self) -> Result<Option<Vec<u8>>> {
        let path = self.layout().root.join(NAME);
        match path.exists() {
            true => read_whole(&path).map(Some),
            false => Ok(None),
        }
    }

    /// Keeps what the store has to know of its cluster; durable when this returns.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    pub fn put_membership(&self, bytes: Vec<u8>) -> Result<()> {
        let root = &self.layout().root;
        let tmp = root.join(format!("{NAME}.tmp"));
        write_new("store::publish::write_manifest", &tmp, &sealed_bytes(bytes))?;
        rename("store::publish::rename", &tmp, &root.join(NAME))?;
        sync_dir("store::publish::sync_segments_dir", root)
    }

    /// Fails if the store is in a cluster: rows that somebody adds to it alone would be seen on no other node.
    ///
    /// # Errors
    /// `Refused` when it is.
    pub fn check_alone(&self) -> Result<()> {
        match self.layout().root.join(NAME).exists() {
            false => Ok(()),
            true => Err(Error::Refused(format!(
                "{} is the store of a node of a cluster (serve it with --cluster, and load into that)",
                self.path().display()
            ))),
        }
    }
}
