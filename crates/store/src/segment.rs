//! Reads a segment file: mapped, checked where it is first touched, never changed.
//!
//! Opening reads the footer. A column's index, dictionary and symbol tables are read when the column
//! is first used, and a page's checksum is compared the first time the page is asked for. A part of the file that
//! cannot be read while it is in use reads as zeros ([`coload_space::Mapped`]): what is taken from a [`PageView`] counts only
//! once [`SegmentFile::check`] said that it is good.
//!
//! Memory: the map (given back under pressure), the decoded dictionaries of the columns used, and,
//! while there is room ([`crate::held`]), those of their pages that are stored as runs, expanded.

mod ends;
mod in_memory;
mod leave;

use std::borrow::Cow;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use coload_btree::Tree;
use coload_ddl::Schema;
use coload_page::bitpack::BLOCK;
use coload_page::runs::expand_runs;
use coload_page::{
    ColumnIndex, KeyPart, Page, PageMeta, PageView, SegmentFooter, SegmentId, SymbolDecoder,
    TreeEntry,
};
use coload_space::Mapped;
use coload_types::bytes::checksum;
use coload_types::{Dictionary, Error, Physical, Plain, Result, Strings, Values};

use crate::held::{ExpandedPages, HELD_BYTES_MAX, HeldBytes, Share, bytes_of};
use crate::index::LazyIndex;
use crate::manifest::{ColumnStats, StoredColumn};
use crate::segment_writer::column_stats;
use ends::Ends;
use in_memory::constant_column;

/// A segment that is open for reading: its file is mapped, its footer read and checked.
#[derive(Debug)]
pub struct SegmentFile {
    path: PathBuf,
    /// The file; none of a segment that is only in memory.
    map: Option<Mapped>,
    footer: SegmentFooter,
    seal: u64,
    /// The columns of the table.
    columns: Vec<OnceLock<SegmentColumn>>,
    /// Where they are, if they are not those of the file.
    stored: Option<View>,
    tree: OnceLock<Tree>,
    /// Trees of the indexes of its table, opened when they are asked first.
    pub(crate) indexes: Vec<LazyIndex>,
    held: Share,
}

/// The columns of a table that have changed since its segment was written.
#[derive(Debug)]
struct View {
    stored: Arc<[StoredColumn]>,
    shapes: Vec<Physical>,
    /// The parts of the tree's key, by columns of the table.
    parts: Vec<KeyPart>,
}

/// The parts of a key, the B+ tree of it, and the bytes that this lies in.
pub(crate) type OpenTree<'a> = (&'a [KeyPart], &'a Tree, &'a [u8]);

/// A column of an open segment, its index read.
#[derive(Debug)]
pub struct SegmentColumn {
    index: ColumnIndex,
    decoders: Vec<SymbolDecoder>,
    dictionary: OnceLock<Dictionary>,
    verified: Vec<AtomicBool>,
    /// Pages that are stored as runs, turned back into ordinary ones; those that are kept.
    expanded: Vec<OnceLock<Page>>,
    /// Whether no file has it, and all pages are kept.
    is_made: bool,
    ends: OnceLock<Ends>,
}

impl SegmentColumn {
    /// Where the pages stand and what they hold.
    pub fn index(&self) -> &ColumnIndex {
        &self.index
    }

    /// Decoders of the symbol tables that `Text` pages name (1-based there).
    pub fn decoders(&self) -> &[SymbolDecoder] {
        &self.decoders
    }

    /// A page that no file has.
    fn made(&self, page: usize) -> Option<&Page> {
        self.expanded[page].get().filter(|_| self.is_made)
    }
}

impl SegmentFile {
    /// Counts of NULLs and ranges of its columns, as a manifest has them.
    ///
    /// # Errors
    /// `Corrupt` when an index or a dictionary is damaged.
    pub fn stats(&self) -> Result<Vec<ColumnStats>> {
        let of = |c| Ok(column_stats(&self.column(c)?.index().pages, self.dictionary(c)?));
        (0..self.column_count()).map(of).collect()
    }

    /// Maps a segment and reads its footer.
    ///
    /// # Errors
    /// `Invalid` or `Unavailable` when it cannot be opened, `Corrupt` when it is not whole.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_within(path, HeldBytes::new(HELD_BYTES_MAX))
    }

    /// As [`Self::open`]; what it holds is counted in `held`.
    pub(crate) fn open_within(path: &Path, held: Arc<HeldBytes>) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io("open", path, &e))?;
        if file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            return Err(Error::corrupt(path, "it is empty"));
        }
        let map = Mapped::map(&file).map_err(|e| Error::io("map", path, &e))?;
        let decoded = SegmentFooter::decode_sealed(&map);
        if map.is_damaged() {
            return Err(unreadable(path));
        }
        let (footer, seal) = decoded.map_err(|e| name_file(path, e))?;
        Ok(Self::of_parts(path, Some(map), (footer, seal), held))
    }

    fn of_parts(
        path: &Path,
        map: Option<Mapped>,
        (footer, seal): (SegmentFooter, u64),
        held: Arc<HeldBytes>,
    ) -> Self {
        let columns = footer.columns.iter().map(|_| OnceLock::new()).collect();
        let (path, held) = (path.to_owned(), Share::new(held));
        let tree = OnceLock::new();
        let indexes = Vec::new();
        SegmentFile { path, map, footer, seal, columns, stored: None, tree, indexes, held }
    }

    /// The same as a segment of a table that has other columns by now.
    ///
    /// # Errors
    /// `Corrupt` when the file has no such columns.
    pub(crate) fn with_columns(self, stored: Arc<[StoredColumn]>, schema: &Schema) -> Result<Self> {
        let there = self.footer.columns.len();
        let place_of = |column: u32| {
            stored.iter().position(|stored| *stored == StoredColumn::At(column)).map(|p| p as u32)
        };
        let mut shapes = Vec::with_capacity(stored.len());
        for (stored, column) in stored.iter().zip(schema.columns()) {
            shapes.push(match stored {
                StoredColumn::At(index) => match self.footer.columns.get(*index as usize) {
                    Some(entry) => entry.physical,
                    None => {
                        let what = format!("the manifest names column {index} of {there}");
                        return Err(Error::corrupt(&self.path, what));
                    }
                },
                StoredColumn::Constant(_) => column.data_type.physical(),
            });
        }
        let parts = self.footer.tree.iter().flat_map(|tree| &tree.parts);
        let parts = parts
            .map(|part| place_of(part.column).map(|column| KeyPart { column, ..part.clone() }))
            .collect::<Option<Vec<_>>>();
        let parts = parts.ok_or_else(|| {
            Error::corrupt(&self.path, "the table has no column that its key is of")
        })?;
        let columns = stored.iter().map(|_| OnceLock::new()).collect();
        let view = View { stored, shapes, parts };
        Ok(SegmentFile { columns, stored: Some(view), ..self })
    }

    /// Where the columns of the table are, if they are not those of the file.
    pub(crate) fn stored(&self) -> Option<&Arc<[StoredColumn]>> {
        self.stored.as_ref().map(|view| &view.stored)
    }

    /// A segment of which all but the footer is written.
    pub(crate) fn of_written(path: &Path, file: &File, footer: SegmentFooter) -> Result<Self> {
        let map = Mapped::map(file).map_err(|e| Error::io("map", path, &e))?;
        Ok(Self::of_parts(path, Some(map), (footer, 0), HeldBytes::new(HELD_BYTES_MAX)))
    }

    pub(crate) fn tree_entry(&self) -> Option<&TreeEntry> {
        self.footer.tree.as_ref()
    }

    /// The B+ tree of the key, with the parts of the key and the bytes that it lies in; opens it the first time.
    pub(crate) fn tree(&self) -> Result<Option<OpenTree<'_>>> {
        let Some(entry) = self.tree_entry() else { return Ok(None) };
        let bytes = self.checked_result(self.slice(entry.offset, entry.bytes))?;
        let tree = match self.tree.get() {
            Some(tree) => tree,
            None => {
                let open = self.checked_result(Tree::open(bytes, entry.seal))?;
                self.tree.get_or_init(|| open)
            }
        };
        Ok(Some((self.tree_parts().unwrap_or_default(), tree, bytes)))
    }

    /// The parts of the key that the segment has a B+ tree of, by the columns of the table.
    pub fn tree_parts(&self) -> Option<&[KeyPart]> {
        let tree = self.footer.tree.as_ref()?;
        Some(self.stored.as_ref().map_or(&tree.parts[..], |view| &view.parts[..]))
    }

    /// Whether all that was read so far was the file. A part that cannot be read, of a file that was cut or lies on a bad
    /// sector, reads as zeros: nothing that was made of a page may be used before this was asked.
    ///
    /// # Errors
    /// `Corrupt` that names the file.
    pub fn check(&self) -> Result<()> {
        match &self.map {
            Some(map) if map.is_damaged() => Err(unreadable(&self.path)),
            _ => Ok(()),
        }
    }

    /// What was made of the file, if that could be read; errors name it.
    pub(crate) fn checked_result<T>(&self, made: Result<T>) -> Result<T> {
        self.check()?;
        made.map_err(|e| name_file(&self.path, e))
    }

    /// Checksum of the footer, which has those of all else: two segments with the same hold the same.
    pub fn seal(&self) -> u64 {
        self.seal
    }

    /// Which segment it was written as; `None` in files of format 1.
    pub fn id(&self) -> Option<SegmentId> {
        self.footer.id
    }

    /// Path of the mapped file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.file_bytes().len() as u64
    }

    /// Rows of the segment.
    pub fn rows(&self) -> u64 {
        self.footer.rows()
    }

    /// Rows of each page, the same in all columns.
    pub fn page_rows(&self) -> &[u32] {
        &self.footer.page_rows
    }

    /// Number of columns that the segment has.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Shape of a column's values.
    pub fn physical(&self, column: usize) -> Physical {
        match &self.stored {
            Some(view) => view.shapes[column],
            None => self.footer.columns[column].physical,
        }
    }

    /// A column; reads its index the first time.
    ///
    /// # Errors
    /// `Corrupt` when the index is not what was written.
    pub fn column(&self, column: usize) -> Result<&SegmentColumn> {
        if let Some(open) = self.columns[column].get() {
            return Ok(open);
        }
        let open = self.checked_result(self.open_column(column))?;
        Ok(self.columns[column].get_or_init(|| open))
    }

    fn open_column(&self, column: usize) -> Result<SegmentColumn> {
        let entry = match self.stored.as_ref().map(|view| &view.stored[column]) {
            None => &self.footer.columns[column],
            Some(StoredColumn::At(index)) => &self.footer.columns[*index as usize],
            Some(StoredColumn::Constant(value)) => {
                return constant_column(value, self.physical(column), &self.footer.page_rows);
            }
        };
        let bytes = self.slice(entry.offset, entry.bytes)?;
        if checksum(bytes) != entry.checksum {
            return Err(Error::Corrupt(format!("index of column {column} has another checksum")));
        }
        let index = ColumnIndex::decode(bytes, entry.physical, &self.footer.page_rows)?;
        let decoders =
            index.symbols.iter().map(|t| SymbolDecoder::open(t)).collect::<Result<Vec<_>>>()?;
        let verified = index.pages.iter().map(|_| AtomicBool::new(false)).collect();
        let expanded = index.pages.iter().map(|_| OnceLock::new()).collect();
        let (dictionary, is_made) = (OnceLock::new(), false);
        let ends = OnceLock::new();
        Ok(SegmentColumn { index, decoders, dictionary, verified, expanded, is_made, ends })
    }

    /// The dictionary of a column; decodes it the first time. `None` when no page holds codes.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written.
    pub fn dictionary(&self, column: usize) -> Result<Option<&Dictionary>> {
        let open = self.column(column)?;
        let Some(meta) = &open.index.dictionary else { return Ok(None) };
        if let Some(dictionary) = open.dictionary.get() {
            return Ok(Some(dictionary));
        }
        let decode = || -> Result<Dictionary> {
            let bytes = self.checked(meta)?;
            let mut plain = Plain::empty(self.physical(column));
            append_page(&PageView::open(bytes, meta)?, None, open.decoders(), &mut plain)?;
            Dictionary::new(plain.values)
        };
        let dictionary = self.checked_result(decode())?;
        Ok(Some(open.dictionary.get_or_init(|| {
            self.held.add(bytes_of(dictionary.values()));
            dictionary
        })))
    }

    /// A page of a column; compares its checksum the first time. One stored as runs that the segment
    /// does not keep goes into `expanded`.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written.
    pub fn page<'a>(
        &'a self,
        column: usize,
        page: usize,
        expanded: &'a ExpandedPages,
    ) -> Result<PageView<'a>> {
        let open = self.column(column)?;
        let meta = &open.index.pages[page];
        let view = || -> Result<PageView<'a>> {
            if let Some(made) = open.made(page) {
                return made.view();
            }
            if meta.runs.is_some() {
                return self.expanded(open, page, expanded)?.view();
            }
            let bytes = if open.verified[page].load(Ordering::Relaxed) {
                self.slice(meta.offset, meta.bytes)?
            } else {
                let bytes = self.checked(meta)?;
                open.verified[page].store(true, Ordering::Relaxed);
                bytes
            };
            PageView::open(bytes, meta)
        };
        self.checked_result(view())
    }

    /// The encoded bytes of a page, checked; runs are expanded.
    ///
    /// # Errors
    /// `Corrupt` when they are not what was written.
    pub fn page_bytes(&self, column: usize, page: usize) -> Result<Cow<'_, [u8]>> {
        let open = self.column(column)?;
        if let Some(made) = open.made(page) {
            return Ok(Cow::Borrowed(&made.bytes));
        }
        let meta = &open.index.pages[page];
        let bytes = match meta.runs {
            Some(_) => self.expand(meta).map(|page| Cow::Owned(page.bytes)),
            None => self.checked(meta).map(Cow::Borrowed),
        };
        self.checked_result(bytes)
    }

    /// A copy of a page, checked; runs are expanded.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written.
    pub fn rows_page(&self, column: usize, page: usize) -> Result<Page> {
        let open = self.column(column)?;
        if let Some(made) = open.made(page) {
            return Ok(made.clone());
        }
        let meta = &open.index.pages[page];
        self.checked_result(if meta.runs.is_some() {
            self.expand(meta)
        } else {
            self.read_stored(meta)
        })
    }

    /// The ordinary page of one stored as runs; kept if there is room, since the next scan wants it too.
    fn expanded<'a>(
        &'a self,
        open: &'a SegmentColumn,
        page: usize,
        expanded: &'a ExpandedPages,
    ) -> Result<&'a Page> {
        let (meta, kept) = (&open.index.pages[page], &open.expanded[page]);
        if let Some(known) = kept.get().or_else(|| expanded.get(meta)) {
            return Ok(known);
        }
        let new = self.expand(meta)?;
        let bytes = new.bytes.len() as u64;
        if !self.held.has_room(bytes) {
            return Ok(expanded.put(meta, new));
        }
        Ok(kept.get_or_init(|| {
            self.held.add(bytes);
            new
        }))
    }

    /// A page as it is stored, checked.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written.
    pub fn stored_page(&self, column: usize, page: usize) -> Result<Page> {
        let open = self.column(column)?;
        if let Some(made) = open.made(page) {
            return Ok(made.clone());
        }
        let meta = &open.index.pages[page];
        self.checked_result(self.read_stored(meta))
    }

    fn read_stored(&self, meta: &PageMeta) -> Result<Page> {
        let page = Page::of(meta.clone(), self.checked(meta)?.to_vec());
        self.check()?;
        Ok(page)
    }

    fn expand(&self, meta: &PageMeta) -> Result<Page> {
        expand_runs(&self.read_stored(meta)?)
    }

    /// Appends a page's rows, decoded, to `out`.
    ///
    /// # Errors
    /// `Corrupt` when the page is not what was written.
    pub fn decode_page(&self, column: usize, page: usize, out: &mut Plain) -> Result<()> {
        let expanded = ExpandedPages::default();
        let view = self.page(column, page, &expanded)?;
        let dictionary = self.dictionary(column)?;
        let decoders = self.column(column)?.decoders();
        self.checked_result(append_page(&view, dictionary, decoders, out))
    }

    /// Counts bytes that a caller keeps as long as the segment is open.
    pub fn add_held(&self, bytes: u64) {
        self.held.add(bytes);
    }

    fn file_bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    fn slice(&self, offset: u64, bytes: u64) -> Result<&[u8]> {
        let file = self.file_bytes();
        let end = offset.checked_add(bytes).filter(|end| *end <= file.len() as u64);
        match end {
            Some(end) => Ok(&file[offset as usize..end as usize]),
            None => Err(Error::Corrupt("page out of the file".into())),
        }
    }

    fn checked(&self, meta: &PageMeta) -> Result<&[u8]> {
        let bytes = self.slice(meta.offset, meta.bytes)?;
        if checksum(bytes) == meta.checksum {
            Ok(bytes)
        } else {
            Err(Error::Corrupt(format!("page at byte {} has another checksum", meta.offset)))
        }
    }
}

/// The error of a file of which a part could not be read.
fn unreadable(path: &Path) -> Error {
    Error::corrupt(
        path,
        "a part of it cannot be read: it was cut while it was in use, or lies on a bad sector (`coload verify` says what \
         is left; a copy of the file in its place is used at once)",
    )
}

/// Puts the file's name into an error that has none.
fn name_file(path: &Path, error: Error) -> Error {
    match error {
        Error::Corrupt(what) if !what.starts_with(&*path.to_string_lossy()) => {
            Error::corrupt(path, what)
        }
        Error::Invalid(what) => Error::Invalid(format!("{}: {what}", path.display())),
        other => other,
    }
}

/// Appends the rows of `page`, decoded, to `out`: the plain way, for merges, exports and tests.
///
/// # Errors
/// `Corrupt` when codes have no dictionary or no value, or text does not add up.
pub fn append_page(
    page: &PageView<'_>,
    dictionary: Option<&Dictionary>,
    decoders: &[SymbolDecoder],
    out: &mut Plain,
) -> Result<()> {
    let before = out.len();
    match page {
        PageView::Codes(codes) => {
            let dictionary =
                dictionary.ok_or_else(|| Error::Corrupt("codes without dictionary".into()))?;
            let mut block = [0; BLOCK];
            for b in 0..codes.rows.div_ceil(BLOCK) {
                let count = codes.unpack(b, &mut block);
                for code in &block[..count] {
                    append_code(dictionary, *code, out)?;
                }
            }
            return Ok(());
        }
        values => {
            values.append_values(decoders, &mut out.values)?;
            append_nulls(values.null_bits(), values.rows(), out);
        }
    }
    normalise_nulls(out, before);
    Ok(())
}

fn shape() -> Error {
    Error::Corrupt("page of another type".into())
}

fn append_code(dictionary: &Dictionary, code: u32, out: &mut Plain) -> Result<()> {
    let index = code as usize;
    if index > dictionary.len() {
        return Err(Error::Corrupt(format!("code {code} of {} values", dictionary.len())));
    }
    if index == dictionary.len() {
        out.push(None);
        return Ok(());
    }
    match (&mut out.values, dictionary.values()) {
        (Values::Int(to), Values::Int(from)) => to.push(from[index]),
        (Values::Wide(to), Values::Wide(from)) => to.push(from[index]),
        (Values::Bytes(to), Values::Bytes(from)) => push_string(to, from.get(index))?,
        _ => return Err(shape()),
    }
    if let Some(nulls) = &mut out.nulls {
        nulls.push(false);
    }
    Ok(())
}

fn push_string(to: &mut Strings, string: &[u8]) -> Result<()> {
    if !to.has_room(string.len() as u64) {
        return Err(Error::Limit("text of one page over 4 GiB".into()));
    }
    to.push(string);
    Ok(())
}

fn append_nulls(bits: Option<&[u8]>, rows: usize, out: &mut Plain) {
    let before = out.values.len() - rows;
    match (bits, &mut out.nulls) {
        (None, None) => {}
        (None, Some(nulls)) => nulls.extend_zeros(rows),
        (Some(bits), nulls) => nulls
            .get_or_insert_with(|| coload_types::Bitmap::zeros(before))
            .extend_from_bytes(bits, rows),
    }
}

/// A NULL row of an `Int` or `Wide` page unpacks to its block's base; a plain column holds 0 there.
fn normalise_nulls(out: &mut Plain, from: usize) {
    let Some(nulls) = &out.nulls else { return };
    for i in from..nulls.len() {
        if nulls.get(i) {
            match &mut out.values {
                Values::Int(v) => v[i] = 0,
                Values::Wide(v) => v[i] = 0,
                Values::Bytes(_) => {}
            }
        }
    }
}
