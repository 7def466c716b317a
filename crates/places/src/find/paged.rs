//! Objects that are found page by page, of which only some are kept: there may be a million of them.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use coload_types::{Error, Result};
use futures::TryStreamExt;
use glob::Pattern;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use tokio::time::{sleep, timeout};

use super::{Finding, MATCHING, prefix_of};
use crate::address::Address;
use crate::again::{Attempts, Trouble};
use crate::object::{Objects, Version};
use crate::place::PlaceOptions;
use crate::runtime::begin;
use crate::words;

/// Is told of an object: its address, length, ETag if the list tells it, and when it was written, microseconds since the
/// epoch. Says whether it is kept.
pub type KeepObject<'a> = dyn FnMut(&str, u64, Option<&str>, i64) -> bool + 'a;

/// Finds the objects of an address page by page, and keeps those that `keep` wants, sorted by key.
///
/// # Errors
/// As [`find_objects`]; `Invalid` when an object has the very name of a pattern.
pub fn find_objects_where(
    address: &str,
    options: &PlaceOptions,
    keep: &mut KeepObject<'_>,
) -> Result<Arc<Objects>> {
    let mut finding = Finding { options, roots: Vec::new(), stores: Vec::new(), found: Vec::new() };
    let address = &Address::parse(address)?;
    if !address.is_pattern() && !address.is_prefix() {
        finding.add(address)?;
    } else {
        finding.add_where(address, keep)?;
        return Ok(Objects::new(finding.stores, finding.found, options.clone()));
    }
    finding.found.retain(|object| {
        keep(&object.address, object.bytes, object.etag(), object.version.modified_us)
    });
    Ok(Objects::new(finding.stores, finding.found, options.clone()))
}

impl Finding<'_> {
    fn add_where(&mut self, address: &Address<'_>, keep: &mut KeepObject<'_>) -> Result<()> {
        let number = self.store(address)?;
        let store = Arc::clone(&self.stores[number]);
        let is_pattern = address.is_pattern();
        let wrong = |e| Error::Invalid(format!("{} is no glob: {e}", address.shown()));
        let pattern = is_pattern.then(|| Pattern::new(address.key)).transpose().map_err(wrong)?;
        let folder = if is_pattern { address.folder().0 } else { address.key };
        let prefix = prefix_of(address.shown(), folder)?;
        let folder = folder.trim_end_matches('/');
        let (shown, options) = (address.shown().to_owned(), self.options.clone());
        let (sender, pages) = sync_channel(OBJECTS_WAITING_MAX);
        let listing = begin(async move {
            let told = list_to(&*store, prefix, &options, &sender).await;
            told.map_err(|trouble| trouble.told(&shown, &options))
        })?;
        let mut any = false;
        for object in pages {
            let key = object.location.as_ref();
            if object.size == 0 && key == folder {
                continue;
            }
            if let Some(pattern) = &pattern {
                if key == address.key {
                    return Err(Error::Invalid(format!(
                        "{}: there is an object of that very name; a pattern for others is wanted (write [*] for a star)",
                        address.shown()
                    )));
                }
                if !pattern.matches_with(key, MATCHING) {
                    continue;
                }
            }
            any = true;
            let shown = address.of_key(object.location.as_ref());
            let version = Version::of(&object);
            if keep(&shown, object.size, version.etag.as_deref(), version.modified_us) {
                self.push(number, shown, object);
            }
        }
        listing()?;
        let what = if is_pattern { "no object matches it" } else { "there is no object below it" };
        if !any {
            return Err(Error::Invalid(format!("{}: {what}", address.shown())));
        }
        self.found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(())
    }
}

/// Objects of a list that wait to be looked at.
const OBJECTS_WAITING_MAX: usize = 4096;
/// How long a list waits until there is room for its objects.
const ROOM_WAIT: Duration = Duration::from_millis(1);

/// Sends the objects of a list as they come; one that ends early goes on behind the last one.
async fn list_to(
    store: &dyn ObjectStore,
    prefix: Option<Path>,
    options: &PlaceOptions,
    sender: &SyncSender<ObjectMeta>,
) -> std::result::Result<(), Trouble> {
    let mut last: Option<Path> = None;
    let mut attempts = Attempts::new(options);
    loop {
        let mut got_on = false;
        let mut listed = match &last {
            Some(last) => store.list_with_offset(prefix.as_ref(), last),
            None => store.list(prefix.as_ref()),
        };
        let trouble = loop {
            match timeout(options.silence_max, listed.try_next()).await {
                Ok(Ok(Some(object))) => {
                    got_on = true;
                    last = Some(object.location.clone());
                    let mut waiting = object;
                    loop {
                        match sender.try_send(waiting) {
                            Ok(()) => break,
                            Err(TrySendError::Full(back)) => waiting = back,
                            // Who asked has gone.
                            Err(TrySendError::Disconnected(_)) => return Ok(()),
                        }
                        sleep(ROOM_WAIT).await;
                    }
                }
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(error)) if words::may_pass(&error) => break Trouble::Refused(error),
                Ok(Err(error)) => return Err(Trouble::Refused(error)),
                Err(_) => break Trouble::Silent,
            }
        };
        if got_on {
            attempts.got_on();
        }
        if !attempts.wait(&trouble).await {
            return Err(trouble);
        }
    }
}
