//! Objects that were found, in their order, and how their bytes are read.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use coload_types::Result;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};

use crate::ahead::{ReadAhead, Then};
use crate::blocks::Wanted;
use crate::place::PlaceOptions;

/// An object, as it was when it was found.
#[derive(Debug, Clone)]
pub struct Object {
    /// Number of its store.
    pub store: u32,
    /// Its address, as messages show it.
    pub address: Box<str>,
    /// Its key in the store.
    pub key: Path,
    /// Its length.
    pub bytes: u64,
    /// What tells this version from others.
    pub version: Version,
    /// What the server called it when it was read first, where the list that it was found in does not say.
    pub etag_read: OnceLock<Box<str>>,
}

impl Object {
    /// What the server calls this version, as far as that is known.
    pub fn etag(&self) -> Option<&str> {
        self.version.etag.as_deref().or(self.etag_read.get().map(AsRef::as_ref))
    }

    /// Whether it is of this length and version. Of one that was found without an ETag the first that is told counts, if
    /// length and time are the same; all reads after that are of it.
    pub fn is(&self, bytes: u64, now: &Version) -> bool {
        if bytes != self.bytes {
            return false;
        }
        match (self.etag(), now.etag.as_deref()) {
            (Some(etag), Some(now)) => etag == now,
            // A server that has named a version does so again.
            (Some(_), None) => false,
            (None, None) => self.version.is_of_time(now),
            (None, Some(etag)) => {
                self.version.is_of_time(now)
                    && &**self.etag_read.get_or_init(|| etag.into()) == etag
            }
        }
    }
}

/// What tells one version of an object from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// What the server calls the version; `None` where it does not.
    pub etag: Option<Box<str>>,
    /// When it was written, microseconds since the epoch.
    pub modified_us: i64,
}

impl Version {
    /// The version that metadata tell.
    pub fn of(meta: &ObjectMeta) -> Self {
        let etag = meta.e_tag.as_deref().map(Into::into);
        Version { etag, modified_us: meta.last_modified.timestamp_micros() }
    }

    /// Whether both were written in the same second: lists tell parts of it, and answers do not.
    fn is_of_time(&self, other: &Version) -> bool {
        self.modified_us.div_euclid(1_000_000) == other.modified_us.div_euclid(1_000_000)
    }
}

/// Objects in an order, which are read in that order for the most part.
pub struct Objects {
    /// Their stores.
    pub(crate) stores: Vec<Arc<dyn ObjectStore>>,
    pub(crate) objects: Vec<Object>,
    pub(crate) options: PlaceOptions,
    pub(crate) ahead: ReadAhead,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("objects", &self.objects.len()).finish_non_exhaustive()
    }
}

impl Objects {
    pub(crate) fn new(
        stores: Vec<Arc<dyn ObjectStore>>,
        objects: Vec<Object>,
        options: PlaceOptions,
    ) -> Arc<Self> {
        Arc::new(Objects { stores, objects, options, ahead: ReadAhead::default() })
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// An object.
    ///
    /// # Panics
    /// When there is no such object.
    pub fn at(self: &Arc<Self>, number: usize) -> ObjectRef {
        assert!(number < self.objects.len(), "object {number} of {}", self.objects.len());
        ObjectRef { all: Arc::clone(self), number: number as u32 }
    }

    /// Ends it: objects are looked at again before they are read.
    pub fn look(&self) {
        self.ahead.stop();
    }

    /// Begins to read all objects in their order, ahead of who asks: so many bytes may be there that nobody has asked
    /// for yet. What is read of an object is what [`ObjectRef::will_read`] said, or all.
    pub fn read_ahead(self: &Arc<Self>, bytes: usize) {
        ReadAhead::start(self, bytes, 0);
    }
}

/// One of several objects that were found.
#[derive(Clone)]
pub struct ObjectRef {
    pub(crate) all: Arc<Objects>,
    pub(crate) number: u32,
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Object { address, bytes, version, .. } = self.object();
        let mut shown = f.debug_struct("Object");
        shown.field("address", address).field("bytes", bytes).field("version", version).finish()
    }
}

impl PartialEq for ObjectRef {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.object(), other.object());
        (&a.address, a.bytes, &a.version) == (&b.address, b.bytes, &b.version)
    }
}

impl Eq for ObjectRef {}

impl ObjectRef {
    pub(crate) fn object(&self) -> &Object {
        &self.all.objects[self.number as usize]
    }

    /// Its address, as messages show it.
    pub fn address(&self) -> &str {
        &self.object().address
    }

    /// Its key: what a name of a file would be.
    pub fn key(&self) -> &str {
        self.object().key.as_ref()
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.object().bytes
    }

    /// What the server calls this version of it, if it does.
    pub fn etag(&self) -> Option<&str> {
        self.object().version.etag.as_deref()
    }

    /// When it was written, microseconds since the epoch.
    pub fn modified_us(&self) -> i64 {
        self.object().version.modified_us
    }

    /// Some objects apart from those that they were found with: what is read ahead is these. Those of one address that follow
    /// each other are one object.
    pub fn apart(some: &[ObjectRef]) -> Vec<ObjectRef> {
        let Some(first) = some.first() else { return Vec::new() };
        let mut stores: Vec<Arc<dyn ObjectStore>> = Vec::new();
        let mut objects: Vec<Object> = Vec::with_capacity(some.len());
        let mut numbers = Vec::with_capacity(some.len());
        for one in some {
            let object = one.object();
            if objects.last().is_none_or(|last| last.address != object.address) {
                let store = &one.all.stores[object.store as usize];
                let known = stores.iter().position(|known| Arc::ptr_eq(known, store));
                let number = known.unwrap_or_else(|| {
                    stores.push(Arc::clone(store));
                    stores.len() - 1
                });
                objects.push(Object { store: number as u32, ..object.clone() });
            }
            numbers.push(objects.len() as u32 - 1);
        }
        let all = Objects::new(stores, objects, first.all.options.clone());
        numbers.into_iter().map(|number| ObjectRef { all: Arc::clone(&all), number }).collect()
    }

    /// All objects that were found with it.
    pub fn all(&self) -> &Arc<Objects> {
        &self.all
    }

    /// The same as [`Objects::read_ahead`], from this object on.
    pub fn read_ahead(&self, bytes: usize) {
        ReadAhead::start(&self.all, bytes, self.number);
    }

    /// Says which parts of it will be read, in the order of their turns, and of bytes in each; others are not read ahead.
    pub fn will_read(&self, parts: impl IntoIterator<Item: Into<Wanted>>) {
        self.all.ahead.announce(self, parts.into_iter().map(Into::into).collect());
    }

    /// Says which small parts of it will be looked at soon: all are on their way from now on.
    pub fn look_at(&self, parts: Vec<Range<u64>>) {
        ReadAhead::look_at(self, parts);
    }

    /// Fills `buffer` with its bytes from `at` on.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be read, or is another than the one that was found.
    ///
    /// # Panics
    /// When it has not so many bytes.
    pub fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<()> {
        self.check_end(buffer, at);
        ReadAhead::read(self, buffer, at, Then::Goes)
    }

    /// The same of bytes that are looked at and will be read then: what was fetched ahead of them stays.
    ///
    /// # Errors
    /// As [`ObjectRef::read_at`].
    ///
    /// # Panics
    /// As [`ObjectRef::read_at`].
    pub fn peek_at(&self, buffer: &mut [u8], at: u64) -> Result<()> {
        self.check_end(buffer, at);
        ReadAhead::read(self, buffer, at, Then::Stays)
    }

    fn check_end(&self, buffer: &[u8], at: u64) {
        let end = at.checked_add(buffer.len() as u64);
        assert!(end.is_some_and(|end| end <= self.bytes()), "a read beyond an object");
    }
}
