//! A folder of an object store that is written: small objects, each made whole, and a name that one of several takes who want
//! it.
//!
//! A name is taken by a put with a condition (`If-None-Match: *`). The answer to one that was made may be lost, and asked for
//! again: then the name is taken, by the same bytes. Who else would have put these wanted the same.

use std::sync::Arc;
use std::time::Duration;

use coload_types::{Error, Result};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutPayload};

use crate::address::Address;
use crate::again::{Trouble, ask};
use crate::place::{PlaceOptions, open};
use crate::runtime::wait_for;

/// A server that says nothing for so long is away, and how long it is asked again: who waits for it can do something else.
const SILENCE_MAX: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// A folder of an object store.
#[derive(Debug)]
pub struct ObjectFolder {
    store: Arc<dyn ObjectStore>,
    /// Address of the folder, which messages show.
    shown: String,
    /// Key of the folder.
    key: String,
    options: PlaceOptions,
}

impl ObjectFolder {
    /// Opens a folder; no request is made. Credentials come from the environment.
    ///
    /// # Errors
    /// `Invalid` when the address is none of an object store.
    pub fn open(text: &str, options: &PlaceOptions) -> Result<Self> {
        let address = Address::parse(text)?;
        if !address.place.lists() || address.is_pattern() {
            return Err(Error::Invalid(format!(
                "{} is no folder of an object store",
                address.shown()
            )));
        }
        let options =
            PlaceOptions { silence_max: SILENCE_MAX, retry_max: RETRY_MAX, ..options.clone() };
        let store = open(&address, &options)?;
        let key = address.key.trim_end_matches('/').to_owned();
        Ok(ObjectFolder { store, shown: address.shown().to_owned(), key, options })
    }

    /// Address of the folder, for messages.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    fn path(&self, name: &str) -> Result<Path> {
        let key =
            if self.key.is_empty() { name.to_owned() } else { format!("{}/{name}", self.key) };
        Path::parse(key).map_err(|e| Error::Invalid(format!("{}: {e}", self.shown)))
    }

    /// Makes a request of an object, again and again if need be. `None` when there is no such object.
    fn request<T: Send + 'static, F>(
        &self,
        name: &str,
        request: impl Fn(Arc<dyn ObjectStore>, Path) -> F + Send + Sync + 'static,
    ) -> Result<Option<T>>
    where
        F: Future<Output = object_store::Result<T>> + Send,
    {
        let (store, path) = (Arc::clone(&self.store), self.path(name)?);
        let (options, shown) = (self.options.clone(), format!("{}/{name}", self.shown));
        wait_for(async move {
            match ask(&options, || request(Arc::clone(&store), path.clone())).await {
                Ok(given) => Ok(Some(given)),
                Err(Trouble::Refused(StoreError::NotFound { .. })) => Ok(None),
                Err(trouble) => Err(trouble.told(&shown, &options)),
            }
        })
    }

    /// The bytes of an object; `None` when there is none.
    ///
    /// # Errors
    /// `Unavailable` when the store is away, `Refused` when it does not tell.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.request(name, |store, path| async move {
            Ok(store.get(&path).await?.bytes().await?.to_vec())
        })
    }

    /// Whether there is an object.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn exists(&self, name: &str) -> Result<bool> {
        let found = self.request(name, |store, path| async move { store.head(&path).await });
        found.map(|meta| meta.is_some())
    }

    /// Makes an object unless the name is taken; `false` when it is, by other bytes.
    ///
    /// # Errors
    /// As [`Self::read`]; then it may have been made.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let payload = PutPayload::from(bytes.to_vec());
        let put = self.request(name, move |store, path| {
            let payload = payload.clone();
            async move {
                match store.put_opts(&path, payload, PutMode::Create.into()).await {
                    Ok(_) => Ok(true),
                    Err(StoreError::AlreadyExists { .. }) => Ok(false),
                    Err(error) => Err(error),
                }
            }
        })?;
        match put {
            None => Err(self.no_bucket()),
            Some(true) => Ok(true),
            Some(false) => Ok(self.read(name)?.is_some_and(|there| there == bytes)),
        }
    }

    /// Makes an object, or puts these bytes in place of it.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let payload = PutPayload::from(bytes.to_vec());
        let put = self.request(name, move |store, path| {
            let payload = payload.clone();
            async move { store.put(&path, payload).await }
        })?;
        put.map(|_| ()).ok_or_else(|| self.no_bucket())
    }

    fn no_bucket(&self) -> Error {
        Error::Unavailable(format!("{}: there is no such bucket", self.shown))
    }

    /// Names of the objects in a folder of this one, without it.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn list(&self, folder: &str) -> Result<Vec<String>> {
        let listed = self.request(folder, |store, path| async move {
            let found = store.list(Some(&path));
            let names =
                found.map_ok(|meta| meta.location.filename().unwrap_or_default().to_owned());
            names.try_collect::<Vec<String>>().await
        });
        listed.map(Option::unwrap_or_default)
    }

    /// Removes an object; one that is gone already is fine.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn remove(&self, name: &str) -> Result<()> {
        let removed = self.request(name, |store, path| async move { store.delete(&path).await });
        removed.map(|_| ())
    }
}
