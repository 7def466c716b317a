//! What open segments hold in memory besides their maps, and its bound.
//!
//! Dictionaries are needed as long as a scan lasts, and handed out by reference: they are counted, and
//! the store closes segments that nobody uses once the count is over the bound. Pages that are stored
//! as runs are kept, expanded, while there is room; over the bound the reader gets them in an
//! [`ExpandedPages`] of its own.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coload_page::{Page, PageMeta};
use coload_types::Values;

/// Most bytes that the open segments of a store keep for the next reader.
pub(crate) const HELD_BYTES_MAX: u64 = 256 << 20;

/// Bytes held by all open segments of a store.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    count: AtomicU64,
    max: u64,
}

impl HeldBytes {
    /// None yet; `max` may be kept.
    pub fn new(max: u64) -> Arc<Self> {
        Arc::new(HeldBytes { count: AtomicU64::new(0), max })
    }

    /// Bytes that all segments hold now.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether more is held than may be kept.
    pub fn is_over(&self) -> bool {
        self.count() > self.max
    }
}

/// One segment's part of [`HeldBytes`]; gives it back when it goes.
#[derive(Debug)]
pub(crate) struct Share {
    all: Arc<HeldBytes>,
    count: AtomicU64,
}

impl Share {
    /// A share of a segment that holds nothing yet.
    pub fn new(all: Arc<HeldBytes>) -> Self {
        Share { all, count: AtomicU64::new(0) }
    }

    /// Whether `more` bytes may be kept.
    pub fn has_room(&self, more: u64) -> bool {
        self.all.count() + more <= self.all.max
    }

    /// Counts bytes that are kept from now on.
    pub fn add(&self, bytes: u64) {
        self.count.fetch_add(bytes, Ordering::Relaxed);
        self.all.count.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.all.count.fetch_sub(*self.count.get_mut(), Ordering::Relaxed);
    }
}

/// Bytes of decoded values.
pub(crate) fn bytes_of(values: &Values) -> u64 {
    let bytes = match values {
        Values::Int(v) => size_of_val(&v[..]),
        Values::Wide(v) => size_of_val(&v[..]),
        Values::Bytes(v) => v.bytes.len() + size_of_val(&v.ends[..]),
    };
    bytes as u64
}

/// A reader's room for pages stored as runs that their segment does not keep. Make one for the columns
/// of a page, and let it go with them.
#[derive(Debug, Default)]
pub struct ExpandedPages {
    first: OnceCell<Box<Link>>,
}

/// A page and those that came after it: few, and none is ever moved.
#[derive(Debug)]
struct Link {
    stored: PageMeta,
    page: Page,
    next: OnceCell<Box<Link>>,
}

impl ExpandedPages {
    /// The page that was put here for `stored`.
    pub(crate) fn get(&self, stored: &PageMeta) -> Option<&Page> {
        let mut link = &self.first;
        while let Some(found) = link.get() {
            // The checksum is part of it, and was compared with the bytes.
            if found.stored == *stored {
                return Some(&found.page);
            }
            link = &found.next;
        }
        None
    }

    /// Puts a page after all others.
    pub(crate) fn put(&self, stored: &PageMeta, page: Page) -> &Page {
        let mut link = &self.first;
        while let Some(found) = link.get() {
            link = &found.next;
        }
        let new = Box::new(Link { stored: stored.clone(), page, next: OnceCell::new() });
        &link.get_or_init(|| new).page
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use coload_ddl::Schema;
    use coload_page::ColumnIndex;
    use coload_page::runs::shrink_to_runs;
    use coload_page::{encode_codes_u32, encode_int};
    use coload_types::{Column, DataType, Dictionary, Physical, Plain};

    use super::*;
    use crate::{
        FinishedColumn, LoadKind, LoadMode, LoadRecord, LoadTarget, SegmentFile, SegmentSummary,
        SegmentWriter, Store, column_stats,
    };

    const ROWS: usize = 5_000;

    fn column(writer: &SegmentWriter, pages: [Page; 2], values: Option<Values>) -> FinishedColumn {
        let pages = pages.map(|page| shrink_to_runs(page).unwrap());
        let metas = writer.write_pages(writer.reserve(&pages), &pages).unwrap();
        let dictionary = values.map(|values| Dictionary::new(values).unwrap());
        let stats = column_stats(&metas, dictionary.as_ref());
        let dictionary = dictionary.map(|d| writer.write_dictionary(&d).unwrap());
        let index = ColumnIndex { pages: metas, dictionary, symbols: Vec::new() };
        FinishedColumn { physical: Physical::Int, index, stats }
    }

    /// Two pages of two columns, all of them runs: numbers, and codes.
    fn write(path: &Path) -> SegmentSummary {
        let writer = SegmentWriter::create(path).unwrap();
        let numbers = |page: usize| -> Vec<i64> {
            (0..ROWS).map(|row| ((page * ROWS + row) / 50 * 7_919) as i64).collect()
        };
        let codes = |page: usize| -> Vec<u32> {
            (0..ROWS).map(|row| ((page + row / 40) % 3) as u32).collect()
        };
        let columns = vec![
            column(&writer, [0, 1].map(|page| encode_int(&numbers(page), None)), None),
            column(
                &writer,
                [0, 1].map(|page| encode_codes_u32(&codes(page), 3)),
                Some(Values::Int(vec![10, 20, 30])),
            ),
        ];
        writer.finish(columns, vec![ROWS as u32; 2]).unwrap()
    }

    fn rows(segment: &SegmentFile, column: usize) -> Plain {
        let mut plain = Plain::empty(Physical::Int);
        for page in 0..2 {
            segment.decode_page(column, page, &mut plain).unwrap();
        }
        plain
    }

    #[test]
    fn runs_are_kept_while_there_is_room_and_read_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.seg");
        write(&path);
        let (much, none) = (HeldBytes::new(1 << 20), HeldBytes::new(0));
        let roomy = SegmentFile::open_within(&path, Arc::clone(&much)).unwrap();
        let tight = SegmentFile::open_within(&path, Arc::clone(&none)).unwrap();
        for column in 0..2 {
            let index = roomy.column(column).unwrap().index();
            assert!(index.pages.iter().all(|page| page.runs.is_some()));
            assert_eq!(rows(&roomy, column), rows(&tight, column));
            assert_eq!(rows(&roomy, column).len(), 2 * ROWS);
        }
        let dictionary_bytes = 3 * 8;
        assert_eq!(none.count(), dictionary_bytes);
        assert!(much.count() > dictionary_bytes + 2 * ROWS as u64 / 4, "{}", much.count());
        let before = much.count();
        rows(&roomy, 0);
        assert_eq!(much.count(), before);
        drop((roomy, tight));
        assert_eq!((much.count(), none.count()), (0, 0));
    }

    #[test]
    fn a_reader_expands_a_page_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.seg");
        write(&path);
        let segment = SegmentFile::open_within(&path, HeldBytes::new(0)).unwrap();
        let expanded = ExpandedPages::default();
        let mut found = Vec::new();
        for (column, page) in [(0, 0), (1, 0), (0, 1), (1, 1), (0, 0), (1, 0), (0, 1), (1, 1)] {
            segment.page(column, page, &expanded).unwrap();
            let meta = &segment.column(column).unwrap().index().pages[page];
            found.push(std::ptr::from_ref(expanded.get(meta).unwrap()));
        }
        assert_eq!(found[..4], found[4..]);
        assert!((1..4).all(|i| found[0] != found[i]));
    }

    #[test]
    fn a_store_that_holds_too_much_closes_what_nobody_uses() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        let columns = ["a", "b"].map(|name| Column::new(name, DataType::BigInt));
        let schema = Schema::new(columns.to_vec()).unwrap();
        let mode = LoadMode::Create;
        let load = store.begin_load(LoadTarget { name: "t".into(), schema, mode }).unwrap();
        let summary = write(&load.segment_path(0));
        let entry = summary.entry(load.id(), 0);
        let mut record = LoadRecord::new(load.id(), LoadKind::Create);
        record.rows = entry.rows;
        load.publish(vec![entry], record).unwrap();

        let store = Store::of(store.layout().clone(), 8);
        let snapshot = store.snapshot().unwrap();
        let table = snapshot.table("t").unwrap();
        let open = || snapshot.segment(table, &table.segments[0]).unwrap();
        let first = open();
        first.dictionary(1).unwrap();
        assert!(store.held().is_over());
        assert!(Arc::ptr_eq(&first, &open()), "it is in use");
        drop(first);
        open();
        assert_eq!(store.held().count(), 0);
    }
}
