//! Columns of rows in another order: their values are gathered by row, and are pages again.
//!
//! Columns are gathered in the form that they are stored in: codes stay codes of a dictionary, which loses the values that no row has
//! any more ([`super::fields`]), and texts stay codes of symbols where all pages have the same ([`super::texts`]).
//!
//! Texts that would take too much memory at once are gathered in passes, a range of the new pages in each, and pages go to who takes
//! them when they are made.
//!
//! Cost: of columns that are made at once 8 bytes a row, of a wide number 16, of a text of a pass 3 and its bytes; 4 a row once for
//! all columns of text.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

use coload_page::{EncodedStrings, Page, PageView, SymbolEncoder, shrink_page};
use coload_space::Space;
use coload_threads::{in_order, relieve};
use coload_transform::{PartitionColumn, encode_column};
use coload_types::{Bitmap, Error, Physical, Plain, Result, Strings, Values};

use super::fields::{Field, WORD_BITS, bits_of, gather_fields};
use super::given::GivenPages;
use super::merge_keys::append_rows;
use super::new_pages::NewPages;
use super::sort_buffer::pick;
use super::texts::{TextPart, Texts, TextsAre, places_of};

/// What pages are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A segment: as few bytes as may be.
    Segment,
    /// A run, which is read once: no time is spent on fewer bytes.
    Run,
}

/// A page as it is kept in a form.
pub(super) fn finish_page(page: Page, form: Form) -> Result<Page> {
    match form {
        Form::Segment => shrink_page(page),
        Form::Run => Ok(page),
    }
}

pub(super) fn other_shape() -> Error {
    Error::Corrupt("a page of a column holds values of another shape".into())
}

/// The rows that columns get, and how.
#[derive(Clone, Copy)]
pub(super) struct Gather<'a> {
    /// Rows of the columns as they are, in the order that they get; some may be left out.
    pub rows: &'a [u32],
    /// The pages that are made.
    pub pages: &'a NewPages,
    pub form: Form,
    /// Where the columns lie meanwhile.
    pub space: &'a dyn Space,
    /// The new place of each row as it is, for columns that are read row by row: made by the first of them.
    pub places: &'a OnceLock<Vec<u32>>,
    pub threads: usize,
}

/// Columns that rows in another order are gathered of.
pub(super) trait GivenColumns {
    /// How many there are.
    fn width(&self) -> usize;

    /// Shape of the values of a column.
    fn shape(&self, column: usize) -> Physical;

    /// The greatest number that a column is as a field ([`Field`]), or more; `None` when it can be none.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written.
    fn greatest(&self, column: usize) -> Result<Option<u64>>;

    /// A column as a field, if it can be one.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written; `Limit` when its dictionary has too many values.
    fn field(&self, column: usize) -> Result<Option<Field<'_>>>;

    /// Any other column, which is given in parts.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written; those of the space and of the call.
    fn values(&self, column: usize, gather: Gather<'_>, take: TakePart<'_>) -> Result<()>;

    /// Bytes of the pages of a column, and the rows that these have.
    ///
    /// # Errors
    /// `Corrupt` when its index is damaged.
    fn bytes(&self, column: usize) -> Result<(u64, u64)>;

    /// Bytes of each text of a column as it is stored.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written.
    fn lengths(&self, column: usize) -> Result<Vec<u32>>;
}

/// Takes a part of a column: the first has dictionary and symbols, and all have pages.
pub(super) type TakePart<'t> = &'t mut dyn FnMut(PartitionColumn) -> Result<()>;

/// Gathers all columns, and gives them in their order while the next ones are made. Some come in parts, one after the other.
///
/// # Errors
/// `Corrupt` when a page is not what was written; `Limit` when texts of a page are too long; those of the space and of `take`.
pub(super) fn gather_columns(
    given: &impl GivenColumns,
    gather: Gather<'_>,
    mut take: impl FnMut(usize, PartitionColumn) -> Result<()> + Send,
) -> Result<()> {
    let mut take_all = move |(first, columns): (usize, Vec<PartitionColumn>)| {
        let mut numbered = columns.into_iter().enumerate();
        numbered.try_for_each(|(number, column)| take(first + number, column))
    };
    if gather.threads < 2 {
        return gather_each(given, gather, |first, columns| take_all((first, columns)));
    }
    std::thread::scope(|scope| {
        // Whoever sends waits until what came before is taken.
        let (send, made) = sync_channel(0);
        let taker = scope.spawn(move || made.into_iter().try_for_each(take_all));
        let gathered = gather_each(given, gather, |first, columns| {
            let gone = |_| Error::Unavailable("columns that nobody takes".into());
            send.send((first, columns)).map_err(gone)
        });
        drop(send);
        taker.join().unwrap_or_else(|panic| resume_unwind(panic)).and(gathered)
    })
}

/// Gathers all columns, and gives those that are made at once, with the number of the first.
fn gather_each(
    given: &impl GivenColumns,
    gather: Gather<'_>,
    mut take: impl FnMut(usize, Vec<PartitionColumn>) -> Result<()>,
) -> Result<()> {
    let mut column = 0;
    while column < given.width() {
        relieve();
        let (mut end, mut bits) = (column, 0);
        while end < given.width()
            && let Some(greatest) = given.greatest(end)?
            && bits + bits_of(greatest) <= WORD_BITS
        {
            bits += bits_of(greatest);
            end += 1;
        }
        let fields = (column..end).map(|column| given.field(column));
        let fields = fields.collect::<Result<Option<Vec<_>>>>()?.unwrap_or_default();
        if fields.is_empty() {
            given.values(column, gather, &mut |part| take(column, vec![part]))?;
            column += 1;
            continue;
        }
        let made = gather_fields(&fields, gather)?;
        let first = column;
        column += made.len();
        take(first, made)?;
    }
    Ok(())
}

impl<'a> Gather<'a> {
    /// The rows of each page.
    pub fn cut(&self) -> impl Iterator<Item = &'a [u32]> + use<'a> {
        let rows = self.rows;
        self.pages.rows.iter().scan(0, move |start, count| {
            let page = *start..*start + *count as usize;
            *start = page.end;
            Some(&rows[page])
        })
    }

    /// Gathers a column that is no field: of texts, of wide numbers, or of numbers of which some are codes.
    ///
    /// # Errors
    /// `Corrupt` when a page is not what was written; `Limit` when texts of a page are too long; those of the space.
    pub fn values(&self, given: &(impl GivenPages + Sync), take: TakePart<'_>) -> Result<()> {
        match given.physical() {
            Physical::Bytes => self.texts(given, take),
            Physical::Int | Physical::Wide => {
                let pages = self.numbers(given)?;
                take(PartitionColumn { dictionary: None, symbols: Vec::new(), pages })
            }
        }
    }

    fn texts(&self, given: &(impl GivenPages + Sync), take: TakePart<'_>) -> Result<()> {
        let to = self.places.get_or_init(|| places_of(given.rows(), self.rows));
        let bytes = given.all_bytes();
        let table = common_table(given);
        let texts_are = if table.is_some() { TextsAre::Codes } else { TextsAre::Plain };
        let mut starts = Vec::with_capacity(given.count() + 1);
        starts.push(0);
        for page in 0..given.count() {
            starts.push(starts[page] + given.rows_of(page).len());
        }
        let encoder = OnceLock::new();
        let parts = self.threads.clamp(1, given.count().max(1));
        // Symbols for texts that are not in any common ones, by those of the first pass.
        let mut symbols: Option<SymbolEncoder> = None;
        let mut tables: Vec<Vec<u8>> = table.map(<[u8]>::to_vec).into_iter().collect();
        for (number, pass) in self.pages.passes.iter().enumerate() {
            let texts = Texts::new(to, (self.pages.places(pass.clone()), bytes), texts_are);
            let read = |part: usize| {
                let mut made = texts.part(parts, number == 0 && self.form == Form::Segment);
                let pages = part * given.count() / parts..(part + 1) * given.count() / parts;
                for page in pages {
                    self.put_texts(given, (page, table), &encoder, |strings, nulls| {
                        made.push(starts[page], strings, nulls)
                    })?;
                    given.leave(page);
                }
                Ok(made)
            };
            let mut made: Vec<TextPart<'_>> = Vec::with_capacity(parts);
            in_order(parts, self.threads, read, |_, part| {
                made.push(part);
                Ok::<(), Error>(())
            })?;
            if number == 0 {
                symbols = texts.train(&made);
                tables.extend(symbols.as_ref().map(SymbolEncoder::table));
            }
            texts.pages(made, (*self, symbols.as_ref()), pass.clone(), |page| {
                let symbols = std::mem::take(&mut tables);
                take(PartitionColumn { dictionary: None, symbols, pages: vec![page] })
            })?;
        }
        if self.pages.rows.is_empty() {
            take(PartitionColumn { dictionary: None, symbols: tables, pages: Vec::new() })?;
        }
        Ok(())
    }

    /// Gives the texts of a page to `put`: as codes of a table if there is one.
    fn put_texts(
        &self,
        given: &impl GivenPages,
        (page, table): (usize, Option<&[u8]>),
        encoder: &OnceLock<SymbolEncoder>,
        mut put: impl FnMut((&[u8], &[u32]), Option<&Bitmap>) -> Result<()>,
    ) -> Result<()> {
        let within = given.rows_of(page);
        let mut put = |bytes: &[u8], ends: &[u32], nulls: Option<&Bitmap>| {
            if within.end > ends.len() {
                return Err(other_shape());
            }
            if within.len() == ends.len() {
                return put((bytes, ends), nulls);
            }
            // A range of the key begins or ends within the page.
            let start = within.start.checked_sub(1).map_or(0, |before| ends[before]);
            let ends: Vec<u32> = ends[within.clone()].iter().map(|end| end - start).collect();
            let nulls = nulls.map(|nulls| {
                let mut some = Bitmap::zeros(0);
                within.clone().for_each(|row| some.push(nulls.get(row)));
                some
            });
            put((&bytes[start as usize..], &ends), nulls.as_ref())
        };
        if table.is_some() && given.table(page) == table {
            return given.with_view(page, &mut |view| {
                let PageView::Text(view) = view else { return Err(other_shape()) };
                let (codes, ends) = view.all_strings()?;
                let nulls = view.null_bits().map(|bits| {
                    let mut nulls = Bitmap::zeros(0);
                    nulls.extend_from_bytes(bits, view.rows());
                    nulls
                });
                put(&codes, &ends, nulls.as_ref())
            });
        }
        let mut plain = Plain::empty(Physical::Bytes);
        given.decode(page, &mut plain)?;
        let Values::Bytes(strings) = &plain.values else { return Err(other_shape()) };
        let Some(table) = table else {
            return put(&strings.bytes, &strings.ends, plain.nulls.as_ref());
        };
        let encoder = match encoder.get() {
            Some(encoder) => encoder,
            None => {
                let opened = SymbolEncoder::open(table)?;
                encoder.get_or_init(|| opened)
            }
        };
        let codes = encode(strings, encoder)?;
        put(&codes.bytes, &codes.ends, plain.nulls.as_ref())
    }

    fn numbers(&self, given: &impl GivenPages) -> Result<Vec<Page>> {
        let mut all = Plain::empty(given.physical());
        match &mut all.values {
            Values::Int(values) => values.reserve_exact(given.rows()),
            Values::Wide(values) => values.reserve_exact(given.rows()),
            Values::Bytes(_) => {}
        }
        for page in 0..given.count() {
            let mut whole = Plain::empty(given.physical());
            given.decode(page, &mut whole)?;
            append_rows(&mut all, &whole, given.rows_of(page))?;
        }
        let Plain { values, nulls } = all;
        let mut made = Vec::with_capacity(self.pages.rows.len());
        let mut finish = |rows: &[u32], values: Values| {
            let nulls = nulls.as_ref().and_then(|nulls| {
                let mut picked = Bitmap::zeros(rows.len());
                let is_null = |place: &usize| nulls.get(rows[*place] as usize);
                (0..rows.len()).filter(is_null).for_each(|place| picked.set(place));
                (picked.count_ones() > 0).then_some(picked)
            });
            let page = encode_column(&Plain { values, nulls }, None)?;
            made.push(finish_page(page, self.form)?);
            Ok(())
        };
        match values {
            Values::Int(values) => {
                let bits = values.into_iter().map(|value| value as u64).collect();
                pick(
                    bits,
                    self.cut(),
                    self.space,
                    |bits: u64| bits as i64,
                    |rows, values| finish(rows, Values::Int(values)),
                )?;
            }
            Values::Wide(values) => {
                pick(
                    values,
                    self.cut(),
                    self.space,
                    |value: i128| value,
                    |rows, values| finish(rows, Values::Wide(values)),
                )?;
            }
            Values::Bytes(_) => return Err(other_shape()),
        }
        Ok(made)
    }
}

/// Share of the bytes of a column's pages that may be of other symbols, or of none, where all become codes of one table: such texts
/// may be longer as codes.
const OTHER_SHARE: u64 = 8;

/// The table of symbols that nearly all texts of a column are in, if there is one.
fn common_table(given: &impl GivenPages) -> Option<&[u8]> {
    let mut tables: Vec<(&[u8], u64)> = Vec::new();
    let mut all = 0;
    for page in 0..given.count() {
        let bytes = given.bytes(page);
        all += bytes;
        let Some(table) = given.table(page) else { continue };
        // Pages name the tables in turn, and the last is most often that of the next page.
        match tables.iter_mut().rev().find(|(known, _)| *known == table) {
            Some((_, of_table)) => *of_table += bytes,
            None => tables.push((table, bytes)),
        }
    }
    let (table, bytes) = tables.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    (bytes >= all - all / OTHER_SHARE).then_some(table)
}

/// Strings as codes, whatever these take.
fn encode(strings: &Strings, encoder: &SymbolEncoder) -> Result<Strings> {
    let (mut starts, mut lengths, mut start) = (Vec::new(), Vec::new(), 0);
    for end in &strings.ends {
        starts.push(start);
        lengths.push(end - start);
        start = *end;
    }
    let mut encoded = EncodedStrings::default();
    encoder.encode(&strings.bytes, &starts, &lengths, &mut encoded);
    if encoded.bytes.len() > u32::MAX as usize {
        return Err(Error::Limit("text of one page over 4 GiB".into()));
    }
    let mut end = 0;
    let end = |length: &u32| {
        end += length;
        end
    };
    Ok(Strings { ends: encoded.lengths.iter().map(end).collect(), bytes: encoded.bytes })
}

#[cfg(test)]
mod tests;
