//! Finds the objects that addresses name: one by one, by a prefix, or by a pattern.

mod paged;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use coload_types::{Error, Result};
use futures::TryStreamExt;
use glob::{MatchOptions, Pattern};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::time::timeout;

use crate::address::Address;
use crate::again::{Attempts, Trouble, ask, ask_or_tell};
use crate::object::{Object, Objects, Version};
use crate::place::{PlaceOptions, open};
use crate::runtime::wait_for;
use crate::words;

pub use paged::{KeepObject, find_objects_where};

/// As globs of files: `*` stays within a folder, `**` does not.
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// How often longer the list of a folder may take than an answer.
const PAGES_SILENCE: u32 = 10;

/// Finds the objects of all addresses, and for each address the numbers of its objects, sorted by key.
///
/// # Errors
/// `Invalid` when an address names nothing, is wrong, or is denied; `Unavailable` when a server does not answer.
pub fn find_objects(
    addresses: &[&str],
    options: &PlaceOptions,
) -> Result<(Arc<Objects>, Vec<Range<usize>>)> {
    let mut finding = Finding { options, roots: Vec::new(), stores: Vec::new(), found: Vec::new() };
    let mut ranges = Vec::with_capacity(addresses.len());
    for text in addresses {
        let first = finding.found.len();
        finding.add(&Address::parse(text)?)?;
        ranges.push(first..finding.found.len());
    }
    Ok((Objects::new(finding.stores, finding.found, options.clone()), ranges))
}

/// What was found so far.
struct Finding<'a> {
    options: &'a PlaceOptions,
    /// What each store is known by.
    roots: Vec<String>,
    stores: Vec<Arc<dyn ObjectStore>>,
    found: Vec<Object>,
}

impl Finding<'_> {
    fn add(&mut self, address: &Address<'_>) -> Result<()> {
        let number = self.store(address)?;
        let store = Arc::clone(&self.stores[number]);
        let (several, what) = match (address.is_pattern(), address.is_prefix()) {
            (true, _) => (matching(store, address, self.options)?, "no object matches it"),
            (_, true) => (below(store, address, self.options)?, "there is no object below it"),
            _ => {
                let object = one(store, address, self.options)?;
                let shown = address.shown().to_owned();
                self.push(number, shown, object);
                return Ok(());
            }
        };
        if several.is_empty() {
            return Err(Error::Invalid(format!("{}: {what}", address.shown())));
        }
        for object in several {
            let shown = address.of_key(object.location.as_ref());
            self.push(number, shown, object);
        }
        Ok(())
    }

    fn push(&mut self, store: usize, address: String, meta: ObjectMeta) {
        let version = Version::of(&meta);
        let (store, address) = (store as u32, address.into());
        self.found.push(Object {
            store,
            address,
            key: meta.location,
            bytes: meta.size,
            version,
            etag_read: OnceLock::new(),
        });
    }

    /// The store of an address, opened once for all that lie in it.
    fn store(&mut self, address: &Address<'_>) -> Result<usize> {
        let query = match address.place.lists() {
            true => "",
            false => address.key.split_once('?').map_or("", |(_, query)| query),
        };
        let root = format!("{}?{query}", address.root());
        if let Some(known) = self.roots.iter().position(|known| *known == root) {
            return Ok(known);
        }
        self.stores.push(open(address, self.options)?);
        self.roots.push(root);
        Ok(self.stores.len() - 1)
    }
}

/// The object of that very address.
fn one(
    store: Arc<dyn ObjectStore>,
    address: &Address<'_>,
    options: &PlaceOptions,
) -> Result<ObjectMeta> {
    let (shown, options) = (address.shown().to_owned(), options.clone());
    let key = address.place.key(address);
    let key = key.map_err(|e| Error::Invalid(format!("{shown} names no object: {e}")))?;
    let lists = address.place.lists();
    wait_for(async move {
        let found = ask(&options, || store.head(&key)).await;
        found.map_err(|trouble| match trouble {
            Trouble::Refused(object_store::Error::NotFound { .. }) if lists => Error::Invalid(
                format!("{shown}: there is no such object or bucket (for all below it: {shown}/)"),
            ),
            trouble => trouble.told(&shown, &options),
        })
    })
}

/// All objects below a prefix.
fn below(
    store: Arc<dyn ObjectStore>,
    address: &Address<'_>,
    options: &PlaceOptions,
) -> Result<Vec<ObjectMeta>> {
    list(store, address, address.key, Depth::All, options)
}

/// All objects whose keys are like a pattern. One of that very key comes before what it is a pattern of.
fn matching(
    store: Arc<dyn ObjectStore>,
    address: &Address<'_>,
    options: &PlaceOptions,
) -> Result<Vec<ObjectMeta>> {
    let pattern = Pattern::new(address.key)
        .map_err(|e| Error::Invalid(format!("{} is no glob: {e}", address.shown())))?;
    let (folder, rest) = address.folder();
    let depth = if rest.contains('/') || rest.contains("**") { Depth::All } else { Depth::Folder };
    let mut found = list(store, address, folder, depth, options)?;
    if let Some(same) = found.iter().position(|object| object.location.as_ref() == address.key) {
        return Ok(vec![found.swap_remove(same)]);
    }
    found.retain(|object| pattern.matches_with(object.location.as_ref(), MATCHING));
    Ok(found)
}

/// How far down a list goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Objects in the folder itself.
    Folder,
    /// All below it.
    All,
}

/// The objects of a folder, sorted by key, without the empty ones that some tools make for folders.
fn list(
    store: Arc<dyn ObjectStore>,
    address: &Address<'_>,
    folder: &str,
    depth: Depth,
    options: &PlaceOptions,
) -> Result<Vec<ObjectMeta>> {
    let (shown, options) = (address.shown().to_owned(), options.clone());
    let prefix = prefix_of(&shown, folder)?;
    let mut found = wait_for(async move {
        match depth {
            Depth::Folder => {
                let list = || store.list_with_delimiter(prefix.as_ref());
                // It comes in pages, of which the library tells nothing.
                let pages = PlaceOptions {
                    silence_max: options.silence_max.saturating_mul(PAGES_SILENCE),
                    ..options
                };
                Ok(ask_or_tell(&pages, &shown, list).await?.objects)
            }
            Depth::All => list_all(&*store, prefix, &options)
                .await
                .map_err(|trouble| trouble.told(&shown, &options)),
        }
    })?;
    // Some tools make an empty object for a folder; the library leaves out the slash at the end of its key.
    let folder = folder.trim_end_matches('/');
    found.retain(|object| object.size > 0 || object.location.as_ref() != folder);
    found.sort_unstable_by(|a, b| a.location.cmp(&b.location));
    Ok(found)
}

/// What the keys of objects in a folder begin with.
fn prefix_of(shown: &str, folder: &str) -> Result<Option<Path>> {
    match folder.trim_end_matches('/') {
        "" => Ok(None),
        folder => Path::parse(folder)
            .map(Some)
            .map_err(|e| Error::Invalid(format!("{shown} names no objects: {e}"))),
    }
}

/// All objects below a prefix; a list that ends early goes on behind the last one.
async fn list_all(
    store: &dyn ObjectStore,
    prefix: Option<Path>,
    options: &PlaceOptions,
) -> std::result::Result<Vec<ObjectMeta>, Trouble> {
    let mut found: Vec<ObjectMeta> = Vec::new();
    let mut attempts = Attempts::new(options);
    loop {
        let before = found.len();
        let mut listed = match found.last() {
            Some(last) => store.list_with_offset(prefix.as_ref(), &last.location),
            None => store.list(prefix.as_ref()),
        };
        let trouble = loop {
            match timeout(options.silence_max, listed.try_next()).await {
                Ok(Ok(Some(object))) => found.push(object),
                Ok(Ok(None)) => return Ok(found),
                Ok(Err(error)) if words::may_pass(&error) => break Trouble::Refused(error),
                Ok(Err(error)) => return Err(Trouble::Refused(error)),
                Err(_) => break Trouble::Silent,
            }
        };
        if found.len() > before {
            attempts.got_on();
        }
        if !attempts.wait(&trouble).await {
            return Err(trouble);
        }
    }
}
