//! Loads into a store of this machine that are not published: shares of several workers, and what interrupted ones left.

use coload_store::{LoadId, Store};
use coload_types::{Error, Result};
use coload_wire::LoadStatus;

use crate::resume::{drop_kept, list_kept};
use crate::share_into_store::{drop_shares, list_shares};

/// The loads into a store that are not published, whoever does them.
///
/// # Errors
/// `Unavailable` when the store cannot be read.
pub fn list_unfinished(store: &Store) -> Result<Vec<LoadStatus>> {
    let mut list = list_shares(store)?;
    list.append(&mut list_kept(store)?);
    Ok(list)
}

/// Drops what an interrupted load left, or all shares of a load that is not published.
///
/// # Errors
/// `Invalid` when there is no such load, `Unavailable` when somebody works on it now.
pub fn drop_unfinished(store: &Store, load: LoadId) -> Result<()> {
    if drop_kept(store, load)? || drop_shares(store, load)? {
        return Ok(());
    }
    Err(Error::Invalid(format!("no load {load} is unfinished (coload loads shows them)")))
}
