//! One partition while it arrives: blocks are verified and become columns of a segment.
//!
//! ```text
//!   pages of the client     verified, plain ones written at once, those with codes kept
//!   plain values            sorted at once: codes, or pages that are written
//!   numbers of rows         of a partition that was sorted, if its client says which rows they are: kept, and beside the segment then
//!   text                    parsed at once: codes that are kept, or pages that are written
//!   seal and all blocks     column by column: kept codes joined to one dictionary, written
//! ```
//!
//! A partition that was sorted says so in its seal, which is compared with its segment ([`Receiving::verify_order`]).
//!
//! A partition becomes a segment: what the client made is written once, to its final place. See decision
//! 0010.
//!
//! Memory: codes of the partition, and less than a MiB of pages for each column.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use coload_assemble::{Assembly, ColumnBuilder, Taken};
use coload_ddl::{Key, Schema};
use coload_load::{ParsedText, TextFragmentParser, TextFragments};
use coload_page::{
    Page, PageMeta, PageRules, SymbolDecoder, verify_dictionary, verify_page, verify_values_of,
};
use coload_store::{
    FinishedColumn, SegmentFile, SegmentSummary, SegmentWriter, TreeKey, append_page, is_in_order,
};
use coload_threads::{StepClock, lock};
use coload_transform::{
    DictionaryPolicy, FinalPage, PartitionColumn, Symbols, dictionary_limit, encoders,
};
use coload_types::{Bitmap, Column, DataType, Dictionary, Error, Physical, Plain, Result, Values};
use coload_wire::{Block, BlockContent, RowsAre, Seal, TextFragment, TextIs};

use crate::options::Keep;

/// Pages are written when there are so many bytes of them.
const FLUSH_BYTES: usize = 1 << 20;
/// Bytes of the number of a row while it is taken.
const NUMBER_BYTES: u64 = 12;

/// A partition that arrives.
#[derive(Debug)]
pub struct Receiving {
    /// Number in the load.
    pub number: u32,
    /// Path of the file of its segment.
    pub path: PathBuf,
    types: Arc<[Column]>,
    columns: Vec<Mutex<ReceivedColumn>>,
    /// Fragments that came as text, and how they are read.
    text: TextFragments,
    parser: Option<Arc<TextFragmentParser>>,
    writer: Mutex<Option<Arc<SegmentWriter>>>,
    /// The key that its rows may be in the order of.
    key: Option<Arc<KeyOf>>,
    /// Bytes that loads may hold.
    memory: usize,
    /// Which rows of the partition its rows are, by fragment, if they were sorted.
    numbers: Mutex<BTreeMap<u32, Vec<u32>>>,
    /// Blocks that are done, and the seal once it came.
    progress: Mutex<Progress>,
    unfinished: AtomicUsize,
    /// Bytes kept in memory.
    pub held_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct Progress {
    blocks: u64,
    seal: Option<Arc<Seal>>,
    finishing: bool,
}

#[derive(Debug)]
struct ReceivedColumn {
    /// What is not final; `None` once the column is finished.
    builder: Option<ColumnBuilder>,
    /// Pages in the file, by fragment.
    written: BTreeMap<u32, PageMeta>,
    /// Final pages that are not in the file yet.
    pending: Vec<(u32, Page)>,
    pending_bytes: usize,
    finished: Option<FinishedColumn>,
}

/// What is to be done after a block or a seal.
#[derive(Debug)]
pub enum Next {
    /// Blocks or the seal are still to come.
    Wait,
    /// All is there: the columns can be finished.
    Finish(Arc<Seal>),
}

impl Receiving {
    /// A partition without blocks; its segment goes to `path`.
    pub fn new(
        number: u32,
        path: PathBuf,
        types: Arc<[Column]>,
        (policy, memory): (DictionaryPolicy, usize),
        parser: Option<Arc<TextFragmentParser>>,
        key: Option<Arc<KeyOf>>,
    ) -> Self {
        let (limit, encoders) = (dictionary_limit(memory, types.len()), encoders(memory));
        let column = |(index, column): (usize, &Column)| {
            let physical = column.data_type.physical();
            let symbols = if index < encoders { Symbols::Train } else { Symbols::Omit };
            let assembly = Assembly { physical, policy, limit, symbols };
            Mutex::new(ReceivedColumn::new(ColumnBuilder::new(assembly)))
        };
        let columns = types.iter().enumerate().map(column).collect();
        Receiving {
            number,
            path,
            unfinished: AtomicUsize::new(types.len()),
            types,
            columns,
            text: TextFragments::default(),
            parser,
            writer: Mutex::default(),
            key,
            memory,
            numbers: Mutex::default(),
            progress: Mutex::default(),
            held_bytes: AtomicU64::new(0),
        }
    }

    /// Takes a block.
    ///
    /// # Errors
    /// `Corrupt` when it is not what it should be, `Unavailable` when the disk fails.
    pub fn take_block(&self, block: Block) -> Result<Next> {
        let column = block.column as usize;
        match block.content {
            BlockContent::Pages { pages, .. } if column == self.columns.len() => {
                self.take_numbers(pages)?;
            }
            _ if column >= self.columns.len() => {
                return Err(Error::Corrupt(format!("a block of column {column}")));
            }
            BlockContent::Plain { fragment, values } => {
                verify_plain(&values, &self.types[column])?;
                self.take_plain(column, fragment, values)?;
            }
            BlockContent::Pages { dictionary, symbols, pages } => {
                let dictionary = verify_block(
                    dictionary.as_ref(),
                    &symbols,
                    pages.iter().map(|(_, p)| p),
                    &self.types[column],
                )?;
                self.take_pages(column, dictionary, symbols, pages)?;
            }
        }
        let mut progress = lock(&self.progress);
        progress.blocks += 1;
        self.next(&mut progress)
    }

    /// Takes which rows of the partition the rows of fragments are.
    fn take_numbers(&self, pages: Vec<(u32, Page)>) -> Result<()> {
        let column = Column { nullable: false, ..Column::new("row numbers", DataType::BigInt) };
        if pages.iter().any(|(_, page)| page.runs.is_some()) {
            return Err(not_numbered(self.number));
        }
        verify_block(None, &[], pages.iter().map(|(_, page)| page), &column)?;
        let mut numbers = lock(&self.numbers);
        for (fragment, page) in pages {
            // Few bytes may say many.
            let bytes = u64::from(page.rows) * NUMBER_BYTES;
            if self.held_bytes.load(Ordering::Relaxed) + bytes > self.memory as u64 {
                return Err(Error::Limit(format!(
                    "{} numbers of rows of partition {} do not fit into --load-memory of the server, {} bytes (lower \
                     --chunk-size, or raise --load-memory)",
                    page.rows, self.number, self.memory
                )));
            }
            let mut plain = Plain::empty(Physical::Int);
            append_page(&page.view()?, None, &[], &mut plain)?;
            let Values::Int(rows) = plain.values else { return Err(not_numbered(self.number)) };
            let rows = rows.into_iter().map(u32::try_from).collect::<std::result::Result<_, _>>();
            let rows: Vec<u32> = rows.map_err(|_| not_numbered(self.number))?;
            self.held_bytes.fetch_add(rows.len() as u64 * 4, Ordering::Relaxed);
            if numbers.insert(fragment, rows).is_some() {
                return Err(not_numbered(self.number));
            }
        }
        Ok(())
    }

    /// Which rows of the partition its rows are, if it was sorted and its client said so.
    ///
    /// # Errors
    /// `Corrupt` when they are not all rows, each once.
    pub fn take_row_numbers(&self, seal: &Seal) -> Result<Option<Vec<u32>>> {
        let numbers = std::mem::take(&mut *lock(&self.numbers));
        if numbers.is_empty() {
            return Ok(None);
        }
        let fragments = numbers.values().map(|rows| rows.len() as u32);
        let fits = seal.rows_are == RowsAre::Sorted
            && numbers.keys().copied().eq(0..seal.page_rows.len() as u32)
            && fragments.eq(seal.page_rows.iter().copied());
        let rows: Vec<u32> = numbers.into_values().flatten().collect();
        let mut came = Bitmap::zeros(rows.len());
        for row in &rows {
            if *row as usize >= rows.len() || came.get(*row as usize) {
                return Err(not_numbered(self.number));
            }
            came.set(*row as usize);
        }
        if fits { Ok(Some(rows)) } else { Err(not_numbered(self.number)) }
    }

    /// Checks that the rows of the partition, which is written, are in the order that its seal says.
    ///
    /// # Errors
    /// `Corrupt` when they are not.
    pub fn verify_order(&self, seal: &Seal) -> Result<()> {
        if seal.rows_are == RowsAre::AsRead {
            return Ok(());
        }
        let in_order = match &self.key {
            Some(of) => is_in_order(&SegmentFile::open(&self.path)?, &of.schema, &of.key)?,
            None => false,
        };
        match in_order {
            true => Ok(()),
            false => Err(Error::Corrupt(format!(
                "the rows of partition {} are not in the order of the key, as its seal says",
                self.number
            ))),
        }
    }

    /// Takes a text; of one that is handed back nothing.
    ///
    /// # Errors
    /// `Corrupt` when its fragment came before or this load has no texts, `Unavailable` when the disk fails.
    pub fn take_text(&self, text: &TextFragment<'_>, keep: Keep) -> Result<(TextIs, Next)> {
        let Some(parser) = &self.parser else {
            return Err(Error::Corrupt("a text of a load that has none".into()));
        };
        let pages = match self.text.parse(parser, text)? {
            ParsedText::HandedBack => return Ok((TextIs::HandedBack, Next::Wait)),
            ParsedText::Taken(pages, kept) => {
                self.held_bytes.fetch_add(kept, Ordering::Relaxed);
                pages
            }
        };
        if keep == Keep::All {
            self.take_parsed(text.fragment, pages)?;
        }
        let mut progress = lock(&self.progress);
        progress.blocks += 1;
        Ok((TextIs::Taken, self.next(&mut progress)?))
    }

    /// Takes what was made of a text: final pages; the other columns wait.
    fn take_parsed(&self, fragment: u32, pages: Vec<FinalPage>) -> Result<()> {
        let mut waiting: BTreeSet<usize> = (0..self.columns.len()).collect();
        for FinalPage { column, page, symbols } in pages {
            waiting.remove(&column);
            let symbols = symbols.map(|encoder| encoder.table()).into_iter().collect();
            self.take_pages(column, None, symbols, vec![(fragment, page)])?;
        }
        for column in waiting {
            lock(&self.columns[column]).builder()?.expect(fragment)?;
        }
        Ok(())
    }

    /// Counts a block that is dropped.
    ///
    /// # Errors
    /// `Corrupt` when there are more than the seal says.
    pub fn count_block(&self) -> Result<Next> {
        let mut progress = lock(&self.progress);
        progress.blocks += 1;
        self.next(&mut progress)
    }

    /// Takes the seal.
    ///
    /// # Errors
    /// `Corrupt` when there is one already.
    pub fn take_seal(&self, seal: Seal) -> Result<Next> {
        let mut progress = lock(&self.progress);
        if progress.seal.is_some() {
            return Err(Error::Corrupt(format!("partition {} is sealed twice", self.number)));
        }
        progress.seal = Some(Arc::new(seal));
        self.next(&mut progress)
    }

    fn next(&self, progress: &mut Progress) -> Result<Next> {
        let Some(seal) = &progress.seal else { return Ok(Next::Wait) };
        if progress.blocks > seal.blocks {
            return Err(Error::Corrupt(format!(
                "partition {} has {} blocks, and its seal says {}",
                self.number, progress.blocks, seal.blocks
            )));
        }
        if progress.blocks < seal.blocks || progress.finishing {
            return Ok(Next::Wait);
        }
        progress.finishing = true;
        Ok(Next::Finish(Arc::clone(seal)))
    }

    fn take_plain(&self, column: usize, fragment: u32, values: Plain) -> Result<()> {
        let mut state = lock(&self.columns[column]);
        let taken = state.builder()?.take_values(fragment, values)?;
        self.keep(&mut state, taken)
    }

    fn take_pages(
        &self,
        column: usize,
        dictionary: Option<Dictionary>,
        symbols: Vec<Vec<u8>>,
        pages: Vec<(u32, Page)>,
    ) -> Result<()> {
        let mut state = lock(&self.columns[column]);
        let taken = state.builder()?.take_pages(dictionary, symbols, pages)?;
        self.keep(&mut state, taken)
    }

    fn keep(&self, state: &mut ReceivedColumn, taken: Taken) -> Result<()> {
        self.held_bytes.fetch_add(taken.kept_bytes, Ordering::Relaxed);
        taken
            .pages
            .into_iter()
            .try_for_each(|(fragment, page)| self.add_final(state, fragment, page))
    }

    fn add_final(&self, state: &mut ReceivedColumn, fragment: u32, page: Page) -> Result<()> {
        state.pending_bytes += page.bytes.len();
        state.pending.push((fragment, page));
        if state.pending_bytes >= FLUSH_BYTES { self.flush(state) } else { Ok(()) }
    }

    fn flush(&self, state: &mut ReceivedColumn) -> Result<()> {
        if state.pending.is_empty() {
            return Ok(());
        }
        let (fragments, pages): (Vec<u32>, Vec<Page>) = state.pending.drain(..).unzip();
        state.pending_bytes = 0;
        let writer = self.writer()?;
        let metas = writer.write_pages(writer.reserve(&pages), &pages)?;
        state.written.extend(fragments.into_iter().zip(metas));
        Ok(())
    }

    fn writer(&self) -> Result<Arc<SegmentWriter>> {
        let mut writer = lock(&self.writer);
        if let Some(writer) = &*writer {
            return Ok(Arc::clone(writer));
        }
        // A tree is built where the rows are in order, whoever put them so: then nobody looks at their order again.
        let key = self.key.as_ref().and_then(|of| TreeKey::of(&of.schema, Some(&of.key)));
        let new = Arc::new(SegmentWriter::create(&self.path)?.with_key(key));
        Ok(Arc::clone(writer.insert(new)))
    }

    /// Number of columns that the partition has.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Finishes a column, once; with the last one the segment, which is durable then.
    ///
    /// # Errors
    /// `Corrupt` when fragments are missing or have other rows than the seal says, `Unavailable` when
    /// the disk fails.
    pub fn finish_column(&self, column: usize, seal: &Seal) -> Result<Option<SegmentSummary>> {
        let finished = self.merge_column(column, seal)?;
        lock(&self.columns[column]).finished = Some(finished);
        if self.unfinished.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(None);
        }
        let columns = self.columns.iter().filter_map(|c| lock(c).finished.take()).collect();
        self.held_bytes.store(0, Ordering::Relaxed);
        self.writer()?.finish(columns, seal.page_rows.clone()).map(Some)
    }

    fn merge_column(&self, column: usize, seal: &Seal) -> Result<FinishedColumn> {
        let mut state = lock(&self.columns[column]);
        let mut builder = state.take_builder()?;
        if let Some(parser) = &self.parser
            && let Some((numbers, part)) = self.text.compress(parser, column)?
        {
            builder.take_part(numbers, part);
        }
        let (numbers, kept) = builder.finish(&StepClock::default(), None)?;
        let PartitionColumn { dictionary, symbols, pages } = kept;
        for (fragment, page) in numbers.into_iter().zip(pages) {
            self.add_final(&mut state, fragment, page)?;
        }
        self.flush(&mut state)?;
        let place = match &dictionary {
            Some(dictionary) => Some(self.writer()?.write_dictionary(dictionary)?),
            None => None,
        };
        let pages: Vec<PageMeta> = std::mem::take(&mut state.written).into_values().collect();
        if !pages.iter().map(|p| p.rows).eq(seal.page_rows.iter().copied()) {
            return Err(Error::Corrupt(format!(
                "column {} of partition {} has fragments of other rows than its seal says",
                self.types[column].name, self.number
            )));
        }
        let physical = self.types[column].data_type.physical();
        Ok(FinishedColumn::new(physical, dictionary.as_ref().zip(place), symbols, pages))
    }
}

impl ReceivedColumn {
    fn new(builder: ColumnBuilder) -> Self {
        ReceivedColumn {
            builder: Some(builder),
            written: BTreeMap::new(),
            pending: Vec::new(),
            pending_bytes: 0,
            finished: None,
        }
    }

    /// The builder that takes fragments; `Corrupt` once the column is finished.
    fn builder(&mut self) -> Result<&mut ColumnBuilder> {
        self.builder.as_mut().ok_or_else(complete)
    }

    fn take_builder(&mut self) -> Result<ColumnBuilder> {
        self.builder.take().ok_or_else(complete)
    }
}

/// The key of a table with these columns.
#[derive(Debug)]
pub struct KeyOf {
    pub schema: Schema,
    pub key: Key,
}

fn not_numbered(partition: u32) -> Error {
    Error::Corrupt(format!("the numbers of the rows of partition {partition} are not its rows"))
}

fn complete() -> Error {
    Error::Corrupt("a fragment of a column that is complete".into())
}

/// Checks everything of a block of pages; gives its dictionary.
///
/// # Errors
/// `Corrupt` that says what is wrong.
pub fn verify_block<'a>(
    dictionary: Option<&Page>,
    symbols: &[Vec<u8>],
    pages: impl Iterator<Item = &'a Page>,
    column: &Column,
) -> Result<Option<Dictionary>> {
    let fail = |e: Error| match e {
        Error::Corrupt(what) => Error::Corrupt(format!("column {}: {what}", column.name)),
        other => other,
    };
    let decoders =
        symbols.iter().map(|s| SymbolDecoder::open(s)).collect::<Result<Vec<_>>>().map_err(fail)?;
    let dictionary = dictionary.map(|d| open_dictionary(d, column)).transpose().map_err(fail)?;
    let rules = PageRules {
        data_type: column.data_type,
        nullable: column.nullable,
        dictionary: dictionary.as_ref().map(|d| d.len() as u32),
        decoders: &decoders,
    };
    for page in pages {
        verify_page(page, &rules).map_err(fail)?;
    }
    Ok(dictionary)
}

fn open_dictionary(page: &Page, column: &Column) -> Result<Dictionary> {
    if page.nulls > 0 || page.runs.is_some() {
        return Err(Error::Corrupt("a dictionary with NULLs or runs".into()));
    }
    if page.detail.is_codes() {
        return Err(Error::Corrupt("a dictionary of codes".into()));
    }
    let mut plain = Plain::empty(column.data_type.physical());
    append_page(&page.view()?, None, &[], &mut plain)?;
    let dictionary = Dictionary::new(plain.values)?;
    verify_dictionary(&dictionary, column.data_type)?;
    Ok(dictionary)
}

/// Checks plain values.
///
/// # Errors
/// `Corrupt` that says what is wrong.
pub fn verify_plain(values: &Plain, column: &Column) -> Result<()> {
    if !column.nullable && values.null_count() > 0 {
        return Err(Error::Corrupt(format!("NULL in column {}, which is NOT NULL", column.name)));
    }
    // What stands in the rows that are NULL is 0, which some types do not have.
    verify_values_of(&values.values, column.data_type)
        .map_err(|e| Error::Corrupt(format!("column {}: {e}", column.name)))
}
