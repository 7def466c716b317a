//! What was read of column chunks, for the chunks that come next: where their pages are, dictionaries, and pages of which
//! not all rows were read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use coload_arrow::{Fault, Result};
use coload_parquet::{
    ColumnAt, ColumnMap, Dictionary, Stored, read_dictionary, read_page, walk_column,
};
use coload_threads::lock;

use crate::typed::{Dictionary as TypedDictionary, FileBody};

/// Number of a row group, and of a column that is read.
type Key = (usize, usize);

/// A column chunk that was looked at.
#[derive(Debug)]
pub struct ColumnRead {
    /// Its pages.
    pub map: ColumnMap,
    /// Its dictionary.
    pub dictionary: Option<Dictionary>,
    /// The values of it, as those of a column whose rows are places in it.
    typed: Mutex<Option<Arc<TypedDictionary>>>,
}

impl ColumnRead {
    fn bytes(&self) -> usize {
        let dictionary = self.dictionary.as_ref().map_or(0, Dictionary::bytes);
        // The values are there twice where rows are places.
        self.map.bytes() + 2 * dictionary
    }

    /// The values of the dictionary, as those of a column whose rows are places in it.
    ///
    /// # Errors
    /// `Damaged` when one is none of its type.
    pub fn typed(&self, stored: &Stored) -> Result<Option<Arc<TypedDictionary>>> {
        let Some(dictionary) = &self.dictionary else { return Ok(None) };
        let mut typed = lock(&self.typed);
        if let Some(typed) = &*typed {
            return Ok(Some(Arc::clone(typed)));
        }
        let slice = dictionary.slice(stored)?;
        let made = Arc::new(TypedDictionary::new(stored.values.clone(), slice));
        *typed = Some(Arc::clone(&made));
        Ok(Some(made))
    }
}

/// What is kept under a key, the oldest first.
#[derive(Debug)]
struct Kept<K, T> {
    items: VecDeque<(K, Arc<T>, usize)>,
    bytes: usize,
}

impl<K, T> Default for Kept<K, T> {
    fn default() -> Self {
        Kept { items: VecDeque::new(), bytes: 0 }
    }
}

impl<K: PartialEq, T> Kept<K, T> {
    fn get(&self, key: &K) -> Option<Arc<T>> {
        // The newest are asked for most.
        let found = self.items.iter().rev().find(|(other, ..)| other == key);
        found.map(|(_, item, _)| Arc::clone(item))
    }

    fn push(&mut self, key: K, item: Arc<T>, bytes: usize, bytes_max: usize) {
        self.items.push_back((key, item, bytes));
        self.bytes += bytes;
        while self.bytes > bytes_max
            && let Some((.., bytes)) = self.items.pop_front()
        {
            self.bytes -= bytes;
        }
    }

    fn remove(&mut self, key: &K) {
        if let Some(at) = self.items.iter().position(|(other, ..)| other == key)
            && let Some((.., bytes)) = self.items.remove(at)
        {
            self.bytes -= bytes;
        }
    }
}

/// What was read of column chunks.
#[derive(Debug)]
pub struct Cache {
    columns: Mutex<Kept<Key, ColumnRead>>,
    pages: Mutex<Kept<(Key, usize), Vec<u8>>>,
    /// Most bytes of each.
    bytes_max: usize,
}

impl Cache {
    /// Nothing yet; what is kept takes twice so many bytes at most.
    pub fn new(bytes_max: usize) -> Self {
        Cache { columns: Mutex::default(), pages: Mutex::default(), bytes_max }
    }

    /// The pages and the dictionary of a column chunk, which take `bytes_max` at most.
    ///
    /// # Errors
    /// As [`walk_column`] and [`read_dictionary`].
    pub fn column(
        &self,
        key: Key,
        (at, rows): (&ColumnAt, u64),
        stored: &Stored,
        body: &FileBody<'_>,
        bytes_max: u64,
    ) -> Result<Arc<ColumnRead>> {
        if let Some(found) = lock(&self.columns).get(&key) {
            return Ok(found);
        }
        let map = walk_column(at, rows, body, bytes_max)?;
        let page = |page: &_| read_page(at, page, body, bytes_max);
        let dictionary = read_dictionary(stored, &map, page, bytes_max)?;
        let read = Arc::new(ColumnRead { map, dictionary, typed: Mutex::default() });
        let mut columns = lock(&self.columns);
        // Another worker may have looked at it meanwhile.
        if let Some(found) = columns.get(&key) {
            return Ok(found);
        }
        columns.push(key, Arc::clone(&read), read.bytes(), self.bytes_max);
        Ok(read)
    }

    /// The bytes of a page, of which so many rows were left after these were read.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn page(
        &self,
        key: Key,
        page: usize,
        use_again: UseAgain,
        read: impl FnOnce() -> Result<Vec<u8>>,
    ) -> std::result::Result<Arc<Vec<u8>>, Fault> {
        if use_again == UseAgain::No {
            return read().map(Arc::new);
        }
        let key = (key, page);
        {
            let mut pages = lock(&self.pages);
            if let Some(found) = pages.get(&key) {
                if use_again == UseAgain::Last {
                    pages.remove(&key);
                }
                return Ok(found);
            }
        }
        let bytes = Arc::new(read()?);
        if use_again == UseAgain::Yes {
            lock(&self.pages).push(key, Arc::clone(&bytes), bytes.capacity(), self.bytes_max);
        }
        Ok(bytes)
    }
}

/// Whether rows of a page are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseAgain {
    /// All its rows are read now.
    No,
    /// Others are read with the next chunk.
    Yes,
    /// Those before were read with another chunk, and these are the last.
    Last,
}
