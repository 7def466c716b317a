//! Joins one column of several segments: small pages together, dictionaries into one.
//!
//! ```text
//!   segments   [p p] [p] [p] [P] [p]        p small, P large
//!   groups     [p p   p   p] [P] [p]        of at most 65,536 rows, the same in all columns
//! ```
//!
//! Deleted rows are left out. A group whose pages all hold codes becomes codes of the joined dictionary, if that is worth its space;
//! any other becomes a plain page. A page alone is taken as it is where nothing changes; the rows of the new pages are those that are left.

use std::collections::HashMap;
use std::sync::Arc;

use coload_page::bitpack::BLOCK;
use coload_page::{Page, PageDetail, PageView, encode_codes_u32};
use coload_transform::{
    DictionaryPolicy, FragmentColumn, PartitionColumn, compress_column, dictionary_pays,
    merge_dictionaries,
};
use coload_types::{Bitmap, Code, Dictionary, Plain, Result, Values};

use crate::{DeletedRows, ExpandedPages, SegmentFile};

/// Most rows of a joined page.
const PAGE_ROWS_MAX: u32 = 65_536;
/// Most bytes that the pages of a group have in any column, so that a page of long texts stays small.
const GROUP_BYTES_MAX: u64 = 32 << 20;

/// A segment that is joined with others.
#[derive(Debug)]
pub struct Source {
    /// Its file.
    pub file: Arc<SegmentFile>,
    /// Rows that are left out.
    deleted: Option<Arc<DeletedRows>>,
    /// First row of each page.
    starts: Vec<u64>,
}

impl Source {
    /// All rows of a segment.
    pub fn whole(file: Arc<SegmentFile>) -> Self {
        Self::new(file, None)
    }

    /// The rows of a segment that are not deleted.
    pub fn new(file: Arc<SegmentFile>, deleted: Option<Arc<DeletedRows>>) -> Self {
        let mut next = 0;
        let start = |rows: &u32| {
            let start = next;
            next += u64::from(*rows);
            start
        };
        let starts = file.page_rows().iter().map(start).collect();
        Source { file, deleted, starts }
    }

    /// Whether rows are left out.
    pub fn has_deleted(&self) -> bool {
        self.deleted.is_some()
    }

    /// Calls with each row that is left out.
    pub fn for_deleted(&self, take: impl FnMut(u64)) {
        self.deleted.iter().flat_map(|deleted| deleted.iter()).for_each(take);
    }

    /// The rows of a page that are left out, a bit each; `None` when all stay.
    fn deleted_of(&self, page: usize) -> Option<Vec<u64>> {
        let (start, rows) = (self.starts[page], self.file.page_rows()[page]);
        let deleted = self.deleted.as_ref()?;
        if deleted.count_in(start..start + u64::from(rows)) == 0 {
            return None;
        }
        let mut words = vec![0; (rows as usize).div_ceil(64)];
        deleted.fill_words(start, &mut words);
        Some(words)
    }

    /// Rows of a page that stay.
    fn rows_of(&self, page: usize) -> u32 {
        let (start, rows) = (self.starts[page], self.file.page_rows()[page]);
        let deleted = self.deleted.as_ref();
        rows - deleted.map_or(0, |d| d.count_in(start..start + u64::from(rows))) as u32
    }
}

/// Whether a row of a page is among these, as [`Source::deleted_of`] tells them.
fn is_deleted(words: Option<&[u64]>, row: usize) -> bool {
    words.is_some_and(|words| words[row / 64] >> (row % 64) & 1 == 1)
}

/// A page of one of the segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PagePlace {
    /// Number of the segment among the sources.
    pub source: usize,
    /// Number of the page in it.
    pub page: usize,
}

/// Pages that become one.
#[derive(Debug, Default)]
pub struct Group {
    /// The pages, in order.
    pages: Vec<PagePlace>,
    /// Rows of the pages that stay, together.
    pub rows: u32,
}

/// Groups pages for all columns alike.
///
/// # Errors
/// `Corrupt` when a column index is not what was written.
pub fn group_pages(sources: &[Source]) -> Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut group_bytes = 0;
    for (source, from) in sources.iter().enumerate() {
        let segment = &from.file;
        let mut largest = vec![0; segment.page_rows().len()];
        for column in 0..segment.column_count() {
            let pages = &segment.column(column)?.index().pages;
            for (largest, page) in largest.iter_mut().zip(pages) {
                *largest = page.bytes.max(*largest);
            }
        }
        for (page, largest) in largest.into_iter().enumerate() {
            let (place, rows) = (PagePlace { source, page }, from.rows_of(page));
            if rows == 0 && from.has_deleted() {
                continue;
            }
            match groups.last_mut() {
                Some(last)
                    if rows.saturating_add(last.rows) <= PAGE_ROWS_MAX
                        && group_bytes + largest <= GROUP_BYTES_MAX =>
                {
                    last.pages.push(place);
                    last.rows += rows;
                    group_bytes += largest;
                }
                _ => {
                    groups.push(Group { pages: vec![place], rows });
                    group_bytes = largest;
                }
            }
        }
    }
    Ok(groups)
}

/// Each of these pages alone.
pub fn single_pages(pages: impl Iterator<Item = (PagePlace, u32)>) -> Vec<Group> {
    pages.map(|(place, rows)| Group { pages: vec![place], rows }).collect()
}

/// Joins a column.
///
/// # Errors
/// `Corrupt` when a segment is not what was written, `Limit` when the dictionary would be too large.
pub fn join_column(sources: &[Source], groups: &[Group], column: usize) -> Result<PartitionColumn> {
    let mut join = ColumnJoin::open(sources, column)?;
    for group in groups {
        let coded = join.dictionary.is_some() && group.pages.iter().all(|p| join.is_coded(*p));
        match &group.pages[..] {
            pages if coded => join.join_codes(pages)?,
            [only] if !join.is_coded(*only) && join.stays_whole(*only) => join.take(*only)?,
            pages => join.join_plain(pages)?,
        }
    }
    let coded = join.pages.iter().any(|p| p.detail.is_codes());
    let dictionary = join.dictionary.filter(|_| coded);
    Ok(PartitionColumn { dictionary, symbols: join.symbols, pages: join.pages })
}

/// A column being joined.
struct ColumnJoin<'a> {
    sources: &'a [Source],
    column: usize,
    /// The joined dictionary, if codes are kept.
    dictionary: Option<Dictionary>,
    /// New code of each old one, by source.
    translations: Vec<Vec<Code>>,
    symbols: Vec<Vec<u8>>,
    /// Where the tables of pages that were taken stand in `symbols`, 1-based.
    tables: HashMap<(usize, u32), u32>,
    pages: Vec<Page>,
}

impl<'a> ColumnJoin<'a> {
    fn open(sources: &'a [Source], column: usize) -> Result<Self> {
        let physical = sources[0].file.physical(column);
        let mut inputs = Vec::new();
        let mut coded = Vec::new();
        let (mut rows, mut forced) = (0, false);
        for (source, from) in sources.iter().enumerate() {
            let segment = &from.file;
            let Some(dictionary) = segment.dictionary(column)? else { continue };
            let pages = segment.column(column)?.index().pages.iter();
            let with_codes = pages.filter(|p| p.detail.is_codes());
            let coded_rows = with_codes.map(|p| u64::from(p.rows)).sum();
            rows += coded_rows;
            // Nobody would have written such a dictionary who was not asked to.
            forced |= !dictionary_pays(dictionary, coded_rows);
            inputs.push(dictionary);
            coded.push(source);
        }
        let (dictionary, joined) = merge_dictionaries(&inputs, physical)?;
        let mut translations = vec![Vec::new(); sources.len()];
        for (source, translation) in coded.into_iter().zip(joined) {
            translations[source] = translation;
        }
        let keep = !inputs.is_empty() && (forced || dictionary_pays(&dictionary, rows));
        Ok(ColumnJoin {
            sources,
            column,
            dictionary: keep.then_some(dictionary),
            translations,
            symbols: Vec::new(),
            tables: HashMap::new(),
            pages: Vec::new(),
        })
    }

    fn detail(&self, place: PagePlace) -> Result<&'a PageDetail> {
        let index = self.sources[place.source].file.column(self.column)?.index();
        Ok(&index.pages[place.page].detail)
    }

    fn stays_whole(&self, place: PagePlace) -> bool {
        self.sources[place.source].deleted_of(place.page).is_none()
    }

    fn is_coded(&self, place: PagePlace) -> bool {
        self.detail(place).is_ok_and(PageDetail::is_codes)
    }

    /// Translates the codes of pages into one page.
    fn join_codes(&mut self, places: &[PagePlace]) -> Result<()> {
        let null = self.dictionary.as_ref().map_or(0, |d| d.len() as u32);
        let mut codes = Vec::new();
        let mut block = [0; BLOCK];
        for place in places {
            let translation = &self.translations[place.source];
            let expanded = ExpandedPages::default();
            let source = &self.sources[place.source];
            let view = source.file.page(self.column, place.page, &expanded)?;
            let deleted = source.deleted_of(place.page);
            let PageView::Codes(view) = view else { continue };
            for b in 0..view.rows.div_ceil(BLOCK) {
                let count = view.unpack(b, &mut block);
                let translate = |c: &u32| translation.get(*c as usize).map_or(null, |c| c.0);
                let stays = |row: &usize| !is_deleted(deleted.as_deref(), b * BLOCK + row);
                match deleted {
                    None => codes.extend(block[..count].iter().map(translate)),
                    Some(_) => {
                        let rows = (0..count).filter(stays);
                        codes.extend(rows.map(|row| translate(&block[row])));
                    }
                }
            }
        }
        self.pages.push(encode_codes_u32(&codes, null));
        Ok(())
    }

    /// Takes a plain page with its symbol table.
    fn take(&mut self, place: PagePlace) -> Result<()> {
        let segment = &self.sources[place.source].file;
        let index = segment.column(self.column)?.index();
        let meta = &index.pages[place.page];
        let mut detail = meta.detail.clone();
        if let PageDetail::Text { symbols } = &mut detail
            && *symbols > 0
        {
            let table = &index.symbols[*symbols as usize - 1];
            let known = &mut self.symbols;
            *symbols = *self.tables.entry((place.source, *symbols)).or_insert_with(|| {
                known.push(table.clone());
                known.len() as u32
            });
        }
        self.pages.push(Page { detail, ..segment.rows_page(self.column, place.page)? });
        Ok(())
    }

    /// Decodes pages into one plain page.
    fn join_plain(&mut self, places: &[PagePlace]) -> Result<()> {
        let physical = self.sources[0].file.physical(self.column);
        let mut plain = Plain::empty(physical);
        for place in places {
            let source = &self.sources[place.source];
            match source.deleted_of(place.page) {
                None => source.file.decode_page(self.column, place.page, &mut plain)?,
                Some(deleted) => {
                    let mut page = Plain::empty(physical);
                    source.file.decode_page(self.column, place.page, &mut page)?;
                    append_left(&page, &deleted, &mut plain);
                }
            }
        }
        let fragment = vec![FragmentColumn::Plain(plain)];
        let policy = DictionaryPolicy::Auto;
        let mut joined = compress_column(fragment, &[], None, None, physical, policy)?;
        for page in &mut joined.pages {
            page.detail.shift_symbols(self.symbols.len() as u32);
        }
        self.symbols.append(&mut joined.symbols);
        self.pages.append(&mut joined.pages);
        Ok(())
    }
}

/// Appends the rows of a page that are not deleted.
fn append_left(page: &Plain, deleted: &[u64], out: &mut Plain) {
    for row in (0..page.len()).filter(|row| !is_deleted(Some(deleted), *row)) {
        let before = out.len();
        match (&mut out.values, &page.values) {
            (Values::Int(to), Values::Int(from)) => to.push(from[row]),
            (Values::Wide(to), Values::Wide(from)) => to.push(from[row]),
            (Values::Bytes(to), Values::Bytes(from)) => to.push(from.get(row)),
            // A page of another type is refused when it is decoded.
            _ => {}
        }
        match (page.is_null(row), &mut out.nulls) {
            (false, None) => {}
            (is_null, nulls) => nulls.get_or_insert_with(|| Bitmap::zeros(before)).push(is_null),
        }
    }
}
