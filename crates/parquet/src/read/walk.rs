//! The pages of a column chunk: where they are and which rows they have, found by going from head to head, as far as rows
//! are wanted: the bytes of a large column chunk may still be on their way.
//!
//! Cost: one read a page, and 64 bytes of memory; pages without rows are passed over.

use std::ops::Range;

use coload_arrow::{Body, Fault, Result};

use super::codec::decompress;
use super::footer::ColumnAt;
use super::head::{Encoding, PageHead, PageKind};

/// Bytes in which the head of a page is looked for first.
const HEAD_BYTES: usize = 256;
/// Longest head; those with long texts as bounds are long.
const HEAD_BYTES_MAX: usize = 16 << 20;

/// Pages of a column chunk that follow each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnMap {
    /// The page of the dictionary, and how many values it has.
    pub(super) dictionary: Option<(PageAt, u32)>,
    /// Number of the first of the pages.
    first: usize,
    /// Pages with rows, in their order.
    pages: Vec<PageAt>,
}

/// Finds the pages of a column chunk that is in no lists, as far as its rows are wanted.
#[derive(Debug)]
pub struct ColumnWalk {
    walk: Walk,
    /// Rows of the row group.
    rows: u64,
}

/// A page of a column chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageAt {
    /// Where its bytes start, and those of the head before them.
    start: u64,
    head: u32,
    /// How many these are in the file.
    stored: u32,
    /// How many when they are decompressed.
    raw: u32,
    crc: Option<u32>,
    /// Its first row in the row group, of lists the first that begins in it.
    pub(super) first_row: u64,
    /// Rows that begin in it.
    pub(super) rows: u32,
    /// Values and what stands for none; of lists there may be more than rows, or fewer.
    pub(super) entries: u32,
    pub(super) encoding: Encoding,
    pub(super) form: PageForm,
}

/// How the levels of a page stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageForm {
    /// Before the values, with their length, and compressed with them.
    One { levels: Encoding },
    /// Before the values, of these bytes, not compressed.
    Two { levels: u32, repetitions: u32, compressed: bool },
    /// There are none.
    Dictionary,
}

impl PageAt {
    /// Bytes of the page in memory.
    pub fn bytes(&self) -> usize {
        self.raw as usize
    }

    /// Its rows in the row group.
    pub fn row_range(&self) -> Range<u64> {
        self.first_row..self.first_row + u64::from(self.rows)
    }
}

impl ColumnMap {
    /// The pages that have any of these rows: their numbers.
    pub fn pages_of(&self, rows: &Range<u64>) -> Range<usize> {
        let from = self.pages.partition_point(|page| page.row_range().end <= rows.start);
        let to = self.pages.partition_point(|page| page.first_row < rows.end);
        self.first + from..self.first + to.max(from)
    }

    /// The same of lists: the page in which the first of these rows begins, and those up to where the row behind the last does.
    pub fn pages_of_lists(&self, rows: &Range<u64>) -> Range<usize> {
        let from = self.pages.partition_point(|page| page.row_range().end <= rows.start);
        let to = self.pages.partition_point(|page| page.first_row <= rows.end);
        self.first + from..self.first + to.max(from)
    }

    /// A page.
    pub fn page(&self, number: usize) -> &PageAt {
        &self.pages[number - self.first]
    }

    /// Whether all rows of the pages are places in the dictionary.
    pub fn is_coded(&self) -> bool {
        self.pages.iter().all(|page| page.encoding == Encoding::Dictionary)
    }

    /// Bytes of the largest page in memory.
    pub fn bytes_of_largest(&self) -> usize {
        self.pages.iter().map(PageAt::bytes).max().unwrap_or(0)
    }

    /// Bytes of memory that this takes.
    pub fn bytes(&self) -> usize {
        self.pages.capacity() * size_of::<PageAt>()
    }
}

impl ColumnWalk {
    /// Nothing is found yet, of a column chunk that has so many rows.
    pub fn new(column: &ColumnAt, rows: u64) -> Self {
        ColumnWalk { walk: Walk::new(column, Lists::None), rows }
    }

    /// Finds the pages of the rows before one, and the dictionary. What it has found takes `bytes_max` at most.
    ///
    /// # Errors
    /// `Damaged` when the heads contradict each other or the footer, `TooLarge` when there are too many pages; those of
    /// reading.
    pub fn find(&mut self, before: u64, body: &dyn Body, bytes_max: u64) -> Result<()> {
        let wanted = before.min(self.rows);
        while self.walk.row < wanted {
            self.walk.step(body, bytes_max)?;
        }
        match self.walk.row > self.rows {
            true => Err(other_rows(self.walk.row, self.rows)),
            false => Ok(()),
        }
    }

    /// The pages of rows that were found, and the dictionary.
    pub fn pages_of(&self, rows: &Range<u64>) -> ColumnMap {
        let ColumnMap { dictionary, pages, .. } = &self.walk.map;
        let numbers = self.walk.map.pages_of(rows);
        let first = numbers.start;
        ColumnMap { dictionary: *dictionary, first, pages: pages[numbers].to_vec() }
    }

    /// Bytes of memory that this takes.
    pub fn bytes(&self) -> usize {
        self.walk.map.bytes()
    }
}

impl ColumnMap {
    /// Bytes of the dictionary in memory, and its values.
    pub fn dictionary_bytes(&self) -> Option<(u64, u32)> {
        self.dictionary.map(|(page, values)| (page.raw.into(), values))
    }
}

fn other_rows(found: u64, rows: u64) -> Fault {
    Fault::Damaged(format!("pages of {found} rows in a row group of {rows}"))
}

/// Finds the pages of a column chunk that is in lists: `begin` tells how many rows begin in a page. What it finds takes
/// `bytes_max` at most.
///
/// # Errors
/// As [`ColumnWalk::find`], and those of `begin`.
pub fn walk_lists(
    column: &ColumnAt,
    rows: u64,
    body: &dyn Body,
    bytes_max: u64,
    mut begin: impl FnMut(&PageAt) -> Result<u32>,
) -> Result<ColumnMap> {
    let mut walk = Walk::new(column, Lists::Some);
    while walk.at < walk.end {
        walk.step(body, bytes_max)?;
    }
    let mut map = walk.map;
    let mut row = 0;
    for page in &mut map.pages {
        (page.first_row, page.rows) = (row, begin(page)?);
        if row == 0 && page.rows == 0 {
            return Err(Fault::Damaged("a first row that does not begin".to_owned()));
        }
        row += u64::from(page.rows);
    }
    match row == rows {
        true => Ok(map),
        false => Err(other_rows(row, rows)),
    }
}

/// Whether the values of a column chunk are in lists: then their number does not tell that of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lists {
    None,
    Some,
}

/// How far the pages of a column chunk are found.
#[derive(Debug)]
struct Walk {
    lists: Lists,
    map: ColumnMap,
    /// Where the next head is, and where the column chunk ends.
    at: u64,
    end: u64,
    /// Rows so far.
    row: u64,
}

impl Walk {
    fn new(column: &ColumnAt, lists: Lists) -> Self {
        let end = column.start + column.bytes;
        Walk { lists, map: ColumnMap::default(), at: column.start, end, row: 0 }
    }

    /// Takes the next page.
    fn step(&mut self, body: &dyn Body, bytes_max: u64) -> Result<()> {
        let head = head_at(body, self.at, self.end)?;
        let start = self.at + head.bytes as u64;
        self.at = start + u64::from(head.stored);
        if self.at > self.end {
            return Err(Fault::Damaged("a page that is longer than its column chunk".to_owned()));
        }
        let page = |rows: u32, encoding: Encoding, form: PageForm| PageAt {
            start,
            head: head.bytes as u32,
            stored: head.stored,
            raw: head.raw,
            crc: head.crc,
            first_row: self.row,
            rows,
            entries: rows,
            encoding,
            form,
        };
        let map = &mut self.map;
        let is_flat = self.lists == Lists::None;
        let page = match head.kind {
            PageKind::Other => return Ok(()),
            PageKind::Dictionary { values, encoding } => {
                // Its values are plain, whatever old writers call that.
                if map.dictionary.is_some() || !map.pages.is_empty() {
                    return Err(Fault::Damaged("a dictionary that comes too late".to_owned()));
                }
                if !matches!(encoding, Encoding::Plain | Encoding::Dictionary) {
                    let text =
                        format!("the values of a dictionary are {encoding:?}, which is not read");
                    return Err(Fault::Unknown(text));
                }
                map.dictionary = Some((page(0, Encoding::Plain, PageForm::Dictionary), values));
                return Ok(());
            }
            PageKind::Data { values, encoding, levels } => {
                page(values, encoding, PageForm::One { levels })
            }
            PageKind::DataTwo { values, rows: own, encoding, levels, repetitions, compressed } => {
                if is_flat && repetitions > 0 {
                    let text = "a page of a column without lists that has levels of lists";
                    return Err(Fault::Damaged(text.to_owned()));
                }
                if is_flat && own.is_some_and(|own| own != values) {
                    let text = "a page of a column without lists, with more values than rows";
                    return Err(Fault::Damaged(text.to_owned()));
                }
                page(values, encoding, PageForm::Two { levels, repetitions, compressed })
            }
        };
        if page.rows == 0 {
            return Ok(());
        }
        if page.encoding == Encoding::Dictionary && map.dictionary.is_none() {
            return Err(Fault::Damaged("places in a dictionary that is not there".to_owned()));
        }
        self.row += u64::from(page.rows);
        map.pages.push(page);
        match map.bytes() as u64 {
            bytes if bytes > bytes_max => Err(Fault::TooLarge(bytes)),
            _ => Ok(()),
        }
    }
}

/// Values of the dictionary of a column chunk and bytes of its page, if it begins with one.
///
/// # Errors
/// As [`ColumnWalk::find`].
pub fn dictionary_bytes(column: &ColumnAt, body: &dyn Body) -> Result<Option<(u32, u64)>> {
    if column.bytes == 0 {
        return Ok(None);
    }
    let head = head_at(body, column.start, column.start + column.bytes)?;
    Ok(match head.kind {
        PageKind::Dictionary { values, .. } => Some((values, head.raw.into())),
        _ => None,
    })
}

/// The head at a place of a column chunk.
fn head_at(body: &dyn Body, at: u64, end: u64) -> Result<PageHead> {
    let left = usize::try_from(end - at).unwrap_or(usize::MAX);
    let mut window = HEAD_BYTES.min(left);
    loop {
        let bytes = body.peek(at, window)?;
        match PageHead::decode(&bytes)? {
            Some(head) => return Ok(head),
            None if window < left.min(HEAD_BYTES_MAX) => window = (window * 8).min(left),
            None => {
                let text = "a column chunk that ends before its rows do".to_owned();
                return Err(Fault::Damaged(text));
            }
        }
    }
}

/// Reads a page: its bytes, decompressed.
///
/// # Errors
/// `Damaged` when they are others than it says, `TooLarge` when they are more than may be; those of reading.
pub fn read_page(
    column: &ColumnAt,
    page: &PageAt,
    body: &dyn Body,
    bytes_max: u64,
) -> Result<Vec<u8>> {
    let together = u64::from(page.raw) + u64::from(page.stored);
    if together > bytes_max {
        return Err(Fault::TooLarge(together));
    }
    // With its head, of which nobody wants to know any more then.
    let head = page.head as usize;
    let bytes = body.read(page.start - u64::from(page.head), head + page.stored as usize)?;
    let stored = &bytes[head..];
    if page.crc.is_some_and(|crc| crc != checksum(stored)) {
        return Err(Fault::Damaged(format!("the checksum of the page at byte {}", page.start)));
    }
    let plain = match page.form {
        PageForm::Two { levels, repetitions, .. } => levels as usize + repetitions as usize,
        PageForm::One { .. } | PageForm::Dictionary => 0,
    };
    let is_compressed = !matches!(page.form, PageForm::Two { compressed: false, .. });
    let raw = page.raw as usize;
    if plain > raw || plain > stored.len() {
        return Err(Fault::Damaged("levels that are longer than their page".to_owned()));
    }
    if (!is_compressed || column.codec == 0) && raw == stored.len() {
        return Ok(stored.to_vec());
    }
    let mut out = vec![0; raw];
    out[..plain].copy_from_slice(&stored[..plain]);
    let codec = if is_compressed { column.codec } else { 0 };
    // Pages without values are not compressed by all writers.
    if !(out.len() == plain && stored.len() == plain) {
        decompress(codec, &stored[plain..], &mut out[plain..])?;
    }
    Ok(out)
}

/// The checksum of pages, that of gzip.
fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = libdeflater::Crc::new();
    crc.update(bytes);
    crc.sum()
}
