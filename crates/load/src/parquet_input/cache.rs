//! What was read of column chunks, for the chunks that come next: where their pages are, dictionaries, and pages of which
//! not all rows were read.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use coload_arrow::Result;
use coload_parquet::{
    ColumnAt, ColumnMap, ColumnWalk, Dictionary, Stored, read_dictionary, read_page,
    rows_that_begin, walk_lists,
};
use coload_threads::lock;

use crate::typed::{Dictionary as TypedDictionary, FileBody};

/// Number of a row group, and of a column that is read.
type Key = (usize, usize);
/// That, and the number of a page.
type PageKey = (Key, usize);

/// A column chunk that was looked at.
#[derive(Debug)]
pub struct ColumnRead {
    found: Found,
    /// Its dictionary.
    pub dictionary: Option<Dictionary>,
    /// Bytes of the page of the dictionary, and its values.
    pub dictionary_bytes: Option<(u64, u32)>,
    /// The values of it, as those of a column whose rows are places in it.
    typed: Mutex<Option<Arc<TypedDictionary>>>,
}

/// The pages of a column chunk.
#[derive(Debug)]
enum Found {
    /// As far as rows were wanted.
    InOrder(Mutex<ColumnWalk>),
    /// All, of one in lists.
    All(ColumnMap),
}

impl ColumnRead {
    fn bytes(&self) -> usize {
        let dictionary = self.dictionary.as_ref().map_or(0, Dictionary::bytes);
        let pages = match &self.found {
            Found::InOrder(walk) => lock(walk).bytes(),
            Found::All(map) => map.bytes(),
        };
        // The values are there twice where rows are places.
        pages + 2 * dictionary
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

/// What is kept under keys, until what is kept is too much.
#[derive(Debug)]
struct Kept<K, T> {
    items: HashMap<K, Item<T>, foldhash::fast::RandomState>,
    /// The oldest first; some are gone.
    order: VecDeque<K>,
    bytes: usize,
}

/// What is under a key, and what is known of it.
#[derive(Debug, Default)]
struct Item<T> {
    is: Arc<T>,
    bytes: usize,
    /// Rows of a page that were read so far.
    rows_read: u64,
}

impl<K, T> Default for Kept<K, T> {
    fn default() -> Self {
        Kept { items: HashMap::default(), order: VecDeque::new(), bytes: 0 }
    }
}

impl<K: Copy + Eq + Hash, T: Default> Kept<K, T> {
    /// What is under a key: what was there, or the default.
    fn get_or_push(&mut self, key: K) -> Arc<T> {
        // Keys of what went are not kept for all of a load.
        while self.order.front().is_some_and(|oldest| !self.items.contains_key(oldest)) {
            self.order.pop_front();
        }
        let order = &mut self.order;
        let item = self.items.entry(key).or_insert_with(|| {
            order.push_back(key);
            Item::default()
        });
        Arc::clone(&item.is)
    }

    /// What is under a key takes so many bytes now; the oldest go that are too much.
    fn weigh(&mut self, key: &K, bytes: usize, bytes_max: usize) {
        if let Some(item) = self.items.get_mut(key) {
            self.bytes = self.bytes - item.bytes + bytes;
            item.bytes = bytes;
        }
        while self.bytes > bytes_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.take(&oldest);
        }
    }

    /// Rows of a page were read: so many in all.
    fn rows_read(&mut self, key: &K, rows: u64) -> u64 {
        self.items.get_mut(key).map_or(0, |item| {
            item.rows_read += rows;
            item.rows_read
        })
    }

    /// What is under a key, which goes.
    fn take(&mut self, key: &K) -> Option<Arc<T>> {
        let item = self.items.remove(key)?;
        self.bytes -= item.bytes;
        Some(item.is)
    }
}

/// What one worker reads, while others that want it wait.
type Cell<T> = Mutex<Option<Arc<T>>>;
/// The bytes of a page.
type Page = Cell<Vec<u8>>;

/// What was read of column chunks.
#[derive(Debug)]
pub struct Cache {
    columns: Mutex<Kept<Key, Cell<ColumnRead>>>,
    pages: Mutex<Kept<PageKey, Page>>,
    /// Most bytes of each.
    columns_max: usize,
    pages_max: usize,
}

/// What is in a cell, read if it is not there.
fn read_once<T>(cell: &Cell<T>, read: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
    let mut held = lock(cell);
    if let Some(found) = &*held {
        return Ok(Arc::clone(found));
    }
    let read = Arc::new(read()?);
    *held = Some(Arc::clone(&read));
    Ok(read)
}

impl Cache {
    /// Nothing yet; what is kept of column chunks and of pages takes so many bytes at most.
    pub fn new(columns_max: usize, pages_max: usize) -> Self {
        Cache { columns: Mutex::default(), pages: Mutex::default(), columns_max, pages_max }
    }

    /// Pages that have some rows of a column chunk, which is that of a key, and takes `bytes_max` at most.
    ///
    /// # Errors
    /// As [`ColumnWalk::find`].
    pub fn pages_of<'a>(
        &self,
        key: &Key,
        read: &'a ColumnRead,
        rows: &Range<u64>,
        (body, bytes_max): (&FileBody<'_>, u64),
    ) -> Result<Cow<'a, ColumnMap>> {
        let walk = match &read.found {
            Found::InOrder(walk) => walk,
            Found::All(map) => return Ok(Cow::Borrowed(map)),
        };
        let (pages, has_grown) = {
            let mut walk = lock(walk);
            let before = walk.bytes();
            walk.find(rows.end, body, bytes_max)?;
            (walk.pages_of(rows), walk.bytes() > before)
        };
        if has_grown {
            lock(&self.columns).weigh(key, read.bytes(), self.columns_max);
        }
        Ok(Cow::Owned(pages))
    }

    /// The first pages and the dictionary of a column chunk, or all pages of one in lists, which take `bytes_max` at most.
    ///
    /// # Errors
    /// As [`ColumnWalk::find`], [`walk_lists`] and [`read_dictionary`].
    pub fn column(
        &self,
        key: Key,
        (at, rows): (&ColumnAt, u64),
        stored: &Stored,
        body: &FileBody<'_>,
        bytes_max: u64,
    ) -> Result<Arc<ColumnRead>> {
        let cell = lock(&self.columns).get_or_push(key);
        let mut is_new = false;
        let read = read_once(&cell, || {
            is_new = true;
            let page = |page: &_| read_page(at, page, body, bytes_max);
            let (found, dictionary, dictionary_bytes) = if stored.is_in_lists() {
                let map = walk_lists(at, rows, body, bytes_max, |at| {
                    rows_that_begin(stored, at, &page(at)?, bytes_max)
                })?;
                let dictionary = read_dictionary(stored, &map, page, bytes_max)?;
                let bytes = map.dictionary_bytes();
                (Found::All(map), dictionary, bytes)
            } else {
                let mut walk = ColumnWalk::new(at, rows);
                walk.find(1, body, bytes_max)?;
                let first = walk.pages_of(&(0..1));
                let dictionary = read_dictionary(stored, &first, page, bytes_max)?;
                (Found::InOrder(Mutex::new(walk)), dictionary, first.dictionary_bytes())
            };
            Ok(ColumnRead { found, dictionary, dictionary_bytes, typed: Mutex::default() })
        })?;
        if is_new {
            lock(&self.columns).weigh(&key, read.bytes(), self.columns_max);
        }
        Ok(read)
    }

    /// The bytes of a page, of which so many rows are read now, and has so many in all. It is kept until all were read: workers read parts
    /// of it in any order.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn page(
        &self,
        key: Key,
        page: usize,
        (now, all): (u64, u64),
        read: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Arc<Vec<u8>>> {
        let key = (key, page);
        if now == all {
            // It is there if rows were read to plan a partition.
            return match lock(&self.pages).take(&key) {
                Some(cell) => read_once(&cell, read),
                None => read().map(Arc::new),
            };
        }
        let cell = lock(&self.pages).get_or_push(key);
        let bytes = read_once(&cell, read)?;
        let mut pages = lock(&self.pages);
        match pages.rows_read(&key, now) < all {
            true => pages.weigh(&key, bytes.capacity(), self.pages_max),
            false => drop(pages.take(&key)),
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Pages of lineitem were read twice, for of two workers that share one the last rows were mostly read first.
    #[test]
    fn a_page_is_read_once_in_whatever_order_its_rows_are() {
        let cache = Cache::new(1 << 20, 1 << 20);
        let mut reads = 0;
        let mut read = |page: usize, rows: (u64, u64)| {
            let found = cache.page((0, 0), page, rows, || {
                reads += 1;
                Ok(vec![page as u8])
            });
            assert_eq!(*found.unwrap(), [page as u8]);
            reads
        };
        // To plan, then the end, then the start.
        assert_eq!(read(0, (0, 10)), 1);
        assert_eq!(read(0, (4, 10)), 1);
        assert_eq!(read(0, (6, 10)), 1);
        assert!(lock(&cache.pages).items.is_empty());
        assert_eq!(read(0, (6, 10)), 2);
        // To plan, then all of it.
        assert_eq!(read(1, (0, 10)), 3);
        assert_eq!(read(1, (10, 10)), 3);
        // What nobody reads again is not kept.
        assert_eq!(read(2, (10, 10)), 4);
        assert_eq!(lock(&cache.pages).items.len(), 1);
    }

    #[test]
    fn the_oldest_pages_go_where_there_is_no_room() {
        let cache = Cache::new(0, 100);
        let page = |page: usize| cache.page((0, 0), page, (1, 10), || Ok(vec![0; 60]));
        (0..3).for_each(|number| drop(page(number).unwrap()));
        let pages = lock(&cache.pages);
        assert!(pages.bytes <= 100 && pages.items.contains_key(&((0, 0), 2)));
    }
}
