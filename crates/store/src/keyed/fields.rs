//! Columns of numbers and codes as fields of words: rows that get another order are looked for once, not once for each column.
//!
//! ```text
//!   columns as they are   7 2 9 ..  |  3 0 1 ..  |  45 12 ..      numbers from 0 on, in as many bits as their range takes
//!   words                 45|3|7    12|0|2    ..                  of 8, 16, 32 or 64 bits, one a row
//!   pages                 words of the rows of a page, and of these each column again
//! ```
//!
//! A row that is looked for is waited for: most are in no cache where the input is shuffled. Pages of the columns as they are, and those that
//! are made, are done by all threads; what is made does not depend on them.
//!
//! Memory: at most 8 bytes a row, and the pages that are made.

use std::ops::Range;
use std::sync::Mutex;

use coload_page::bitpack::BLOCK;
use coload_page::{Page, PageView, encode_codes_u16, encode_codes_u32};
use coload_threads::{in_order, lock};
use coload_transform::{PartitionColumn, encode_column};
use coload_types::{Bitmap, Dictionary, Error, Plain, Result, Values};

use super::bounds::bounds;
use super::gather::{Form, Gather, finish_page, other_shape};
use super::given::GivenPages;
use super::sort_buffer::{Fixed, Numbers};

/// Most bits of the columns that are fields of one word.
pub(super) const WORD_BITS: u32 = u64::BITS;

/// Calls with the numbers of a page, block by block.
type Blocks<'a> =
    Box<dyn Fn(usize, &mut dyn FnMut(&[u64]) -> Result<()>) -> Result<()> + Sync + 'a>;

/// A column as numbers from 0 on.
pub(super) struct Field<'a> {
    numbers_are: NumbersAre,
    greatest: u64,
    /// Rows of each page.
    page_rows: Vec<u32>,
    blocks: Blocks<'a>,
}

enum NumbersAre {
    /// Codes of a dictionary; NULL is the one after the last.
    Codes(Dictionary),
    /// Distances from the least value; one of them is NULL, if there is any.
    Distances { least: i64, null: Option<u64> },
}

/// The greatest number that a column is as a field, if it can be one: all its pages are codes of a dictionary of so many values, or numbers
/// whose bounds are known.
pub(super) fn greatest_of(given: &impl GivenPages, values: Option<u64>) -> Option<u64> {
    let details = || (0..given.count()).map(|page| given.detail(page));
    if let Some(values) = values.filter(|_| details().all(|detail| detail.is_codes())) {
        return Some(values);
    }
    let (least, greatest) = bounds(details())?;
    let range = greatest.checked_sub(least).filter(|range| *range >= 0)? as u64;
    let has_nulls = (0..given.count()).any(|page| given.nulls(page) > 0);
    Some(range + u64::from(has_nulls))
}

/// Bits of a number.
pub(super) fn bits_of(greatest: u64) -> u32 {
    u64::BITS - greatest.leading_zeros()
}

impl<'a> Field<'a> {
    /// A column that is one, by [`greatest_of`].
    pub fn of(given: impl GivenPages + Sync + 'a, dictionary: Option<&Dictionary>) -> Option<Self> {
        let greatest = greatest_of(&given, dictionary.map(|dictionary| dictionary.len() as u64))?;
        let page_rows = (0..given.count()).map(|page| given.rows_of(page).len() as u32).collect();
        let is_coded = (0..given.count()).all(|page| given.detail(page).is_codes());
        if let Some(dictionary) = dictionary.filter(|_| is_coded) {
            let blocks: Blocks<'a> = Box::new(move |page, take| {
                let within = given.rows_of(page);
                given.with_view(page, &mut |view| {
                    for_each_codes(view, within.clone(), u64::from, take)
                })
            });
            let numbers_are = NumbersAre::Codes(dictionary.clone());
            return Some(Field { numbers_are, greatest, page_rows, blocks });
        }
        let details = (0..given.count()).map(|page| given.detail(page));
        let (least, _) = bounds(details)?;
        let has_nulls = (0..given.count()).any(|page| given.nulls(page) > 0);
        let null = has_nulls.then_some(greatest);
        let blocks: Blocks<'a> = Box::new(move |page, take| {
            let within = given.rows_of(page);
            given.with_view(page, &mut |view| {
                for_each_distances(view, within.clone(), (least, null), take)
            })
        });
        let numbers_are = NumbersAre::Distances { least, null };
        Some(Field { numbers_are, greatest, page_rows, blocks })
    }

    /// A column of codes of a dictionary, which a call makes of those of a page.
    pub fn of_codes(
        dictionary: Dictionary,
        page_rows: Vec<u32>,
        blocks: impl Fn(usize, &mut dyn FnMut(&[u64]) -> Result<()>) -> Result<()> + Sync + 'a,
    ) -> Self {
        let greatest = dictionary.len() as u64;
        let numbers_are = NumbersAre::Codes(dictionary);
        Field { numbers_are, greatest, page_rows, blocks: Box::new(blocks) }
    }

    fn bits(&self) -> u32 {
        bits_of(self.greatest)
    }
}

/// The blocks that have some rows of a page, and which rows of each are meant.
fn blocks_of(within: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let end = if within.is_empty() { 0 } else { within.end.div_ceil(BLOCK) };
    (within.start / BLOCK..end).map(move |block| {
        let first = block * BLOCK;
        let rows = within.start.max(first)..within.end.min(first + BLOCK);
        (block, rows.start - first..rows.end - first)
    })
}

/// Calls with the codes of some rows of a page, as `change` makes them, block by block.
///
/// # Errors
/// `Corrupt` when it holds values or fewer rows; those of the call.
pub(super) fn for_each_codes(
    view: &PageView<'_>,
    within: Range<usize>,
    change: impl Fn(u32) -> u64,
    take: &mut dyn FnMut(&[u64]) -> Result<()>,
) -> Result<()> {
    let PageView::Codes(view) = view else {
        return Err(Error::Corrupt("values in a column of codes".into()));
    };
    if within.end > view.rows {
        return Err(other_shape());
    }
    let (mut codes, mut numbers) = ([0; BLOCK], [0; BLOCK]);
    blocks_of(within).try_for_each(|(block, rows)| {
        view.unpack(block, &mut codes);
        let pairs = numbers.iter_mut().zip(&codes[rows.clone()]);
        pairs.for_each(|(number, code)| *number = change(*code));
        take(&numbers[..rows.len()])
    })
}

/// Calls with the distances of numbers of some rows of a page from the least, block by block.
///
/// # Errors
/// As [`for_each_codes`].
pub(super) fn for_each_distances(
    view: &PageView<'_>,
    within: Range<usize>,
    (least, null): (i64, Option<u64>),
    take: &mut dyn FnMut(&[u64]) -> Result<()>,
) -> Result<()> {
    let PageView::Int(view) = view else { return Err(other_shape()) };
    if within.end > view.rows() {
        return Err(other_shape());
    }
    let (mut values, mut numbers) = ([0; BLOCK], [0; BLOCK]);
    blocks_of(within).try_for_each(|(block, rows)| {
        view.unpack_int(block, &mut values);
        let pairs = numbers.iter_mut().zip(&values[rows.clone()]);
        pairs.for_each(|(number, value)| *number = value.wrapping_sub(least) as u64);
        if let Some(null) = null.filter(|_| view.has_nulls()) {
            let is_null = |row: &usize| view.is_null(block * BLOCK + rows.start + row);
            (0..rows.len()).filter(is_null).for_each(|row| numbers[row] = null);
        }
        take(&numbers[..rows.len()])
    })
}

/// A word of fields.
trait Word: Fixed + Default + Send + Sync {
    fn of(number: u64) -> Self;
    fn number(self) -> u64;
    fn or(&mut self, other: Self);
}

macro_rules! words {
    ($($type:ty),*) => {$(
        impl Word for $type {
            #[inline(always)]
            fn of(number: u64) -> Self {
                number as $type
            }

            #[inline(always)]
            fn number(self) -> u64 {
                u64::from(self)
            }

            #[inline(always)]
            fn or(&mut self, other: Self) {
                *self |= other;
            }
        }
    )*};
}

words!(u8, u16, u32, u64);

/// Where a field is in its words.
#[derive(Clone, Copy)]
struct Place {
    shift: u32,
    mask: u64,
}

impl Place {
    #[inline(always)]
    fn of<T: Word>(self, word: T) -> u64 {
        (word.number() >> self.shift) & self.mask
    }
}

/// A field whose rows are known that stay.
struct Kept<'f> {
    place: Place,
    numbers_are: &'f NumbersAre,
    /// The dictionary without values that no row has any more, and the code that each code becomes.
    left: Option<(Dictionary, Vec<u32>)>,
}

/// Gathers columns whose fields have at most [`WORD_BITS`] together.
///
/// # Errors
/// `Corrupt` when a page is not what was written; those of the space.
pub(super) fn gather_fields(
    fields: &[Field<'_>],
    gather: Gather<'_>,
) -> Result<Vec<PartitionColumn>> {
    match fields.iter().map(Field::bits).sum() {
        0..=8 => gather_words::<u8>(fields, gather),
        9..=16 => gather_words::<u16>(fields, gather),
        17..=32 => gather_words::<u32>(fields, gather),
        33..=WORD_BITS => gather_words::<u64>(fields, gather),
        bits => Err(Error::Corrupt(format!("columns of {bits} bits in one word"))),
    }
}

fn gather_words<T: Word>(fields: &[Field<'_>], gather: Gather<'_>) -> Result<Vec<PartitionColumn>> {
    let mut shift = 0;
    let place = |field: &Field<'_>| {
        let bits = field.bits();
        let mask = 1u64.checked_shl(bits).map_or(u64::MAX, |end| end - 1);
        // A field of no bits may stand behind all of them.
        let place = Place { shift: if bits == 0 { 0 } else { shift }, mask };
        shift += bits;
        place
    };
    let places: Vec<Place> = fields.iter().map(place).collect();
    let words = put_words::<T>(fields, &places, gather.threads)?;
    let drops = gather.rows.len() < words.len();
    let keep = |(field, place): (&'_ Field<'_>, &Place)| {
        let left = match &field.numbers_are {
            NumbersAre::Codes(dictionary) if drops => {
                values_left(dictionary, used(&words, *place, gather.rows, dictionary.len())?)?
            }
            _ => None,
        };
        Ok(left)
    };
    let left = fields.iter().zip(&places).map(keep).collect::<Result<Vec<_>>>()?;
    let kept: Vec<Kept<'_>> = fields
        .iter()
        .zip(places)
        .zip(left)
        .map(|((field, place), left)| Kept { place, numbers_are: &field.numbers_are, left })
        .collect();
    let numbers = Numbers::put(words, gather.space)?;
    let view = numbers.view()?;
    let cut: Vec<&[u32]> = gather.cut().collect();
    let mut columns: Vec<Vec<Page>> = kept.iter().map(|_| Vec::with_capacity(cut.len())).collect();
    let make = |page: usize| {
        let picked = view.pick(cut[page], gather.space, |word: T| word)?;
        kept.iter().map(|field| field.page(&picked, gather.form)).collect::<Result<Vec<Page>>>()
    };
    in_order(cut.len(), gather.threads, make, |_, pages| {
        columns.iter_mut().zip(pages).for_each(|(column, page)| column.push(page));
        Ok(())
    })?;
    let dictionary = |field: Kept<'_>| match (field.left, field.numbers_are) {
        (Some((dictionary, _)), _) => Some(dictionary),
        (None, NumbersAre::Codes(dictionary)) => Some(dictionary.clone()),
        (None, NumbersAre::Distances { .. }) => None,
    };
    let made = kept.into_iter().map(dictionary).zip(columns);
    Ok(made
        .map(|(dictionary, pages)| PartitionColumn { dictionary, symbols: Vec::new(), pages })
        .collect())
}

/// The words of all rows as they are.
fn put_words<T: Word>(fields: &[Field<'_>], places: &[Place], threads: usize) -> Result<Vec<T>> {
    let page_rows = fields.first().map_or(&[][..], |field| &field.page_rows);
    if fields.iter().any(|field| field.page_rows != page_rows) {
        return Err(Error::Corrupt("columns of a segment with other rows".into()));
    }
    let mut words = vec![T::default(); page_rows.iter().map(|rows| *rows as usize).sum()];
    let (mut parts, mut rest) = (Vec::with_capacity(page_rows.len()), &mut words[..]);
    for rows in page_rows {
        let (part, others) = rest.split_at_mut(*rows as usize);
        parts.push(Mutex::new(part));
        rest = others;
    }
    let put = |page: usize| {
        let mut part = lock(&parts[page]);
        for (field, place) in fields.iter().zip(places) {
            let mut row = 0;
            (field.blocks)(page, &mut |numbers| {
                let words = part.get_mut(row..row + numbers.len());
                let words = words.ok_or_else(|| Error::Corrupt("a page of more rows".into()))?;
                for (word, number) in words.iter_mut().zip(numbers) {
                    word.or(T::of((number & place.mask) << place.shift));
                }
                row += numbers.len();
                Ok(())
            })?;
        }
        Ok(())
    };
    in_order(parts.len(), threads, put, |_, ()| Ok::<(), Error>(()))?;
    drop(parts);
    Ok(words)
}

/// Which of the codes of so many values some rows have; NULL is the code after the last.
fn used<T: Word>(words: &[T], place: Place, rows: &[u32], values: usize) -> Result<Vec<bool>> {
    let mut used = vec![false; values + 1];
    for row in rows {
        let code = place.of(words[*row as usize]);
        let used = used.get_mut(code as usize);
        *used.ok_or_else(|| Error::Corrupt(format!("code {code} of {values} values")))? = true;
    }
    Ok(used)
}

/// The values of a dictionary that rows still have, and the code that each code becomes; `None` when all are left.
fn values_left(dictionary: &Dictionary, used: Vec<bool>) -> Result<Option<(Dictionary, Vec<u32>)>> {
    let count = dictionary.len();
    if used[..count].iter().all(|used| *used) {
        return Ok(None);
    }
    let mut values = Values::empty(dictionary.values().physical());
    let mut new_codes = Vec::with_capacity(count + 1);
    for (code, used) in used[..count].iter().enumerate() {
        new_codes.push(values.len() as u32);
        if *used {
            values.push(&dictionary.values().get(code));
        }
    }
    // NULL keeps the code after the last.
    new_codes.push(values.len() as u32);
    Ok(Some((Dictionary::new(values)?, new_codes)))
}

impl Kept<'_> {
    /// The page of some rows, of which these are the words.
    fn page<T: Word>(&self, words: &[T], form: Form) -> Result<Page> {
        let place = self.place;
        let page = match (self.numbers_are, &self.left) {
            (NumbersAre::Codes(_), Some((dictionary, new_codes))) => {
                let code = |word: &T| new_codes.get(place.of(*word) as usize).copied();
                let codes: Option<Vec<u32>> = words.iter().map(code).collect();
                let codes = codes.ok_or_else(|| Error::Corrupt("a code of no value".into()))?;
                encode_codes_u32(&codes, dictionary.len() as u32)
            }
            (NumbersAre::Codes(dictionary), None) => match u16::try_from(dictionary.len()) {
                Ok(null) => {
                    let codes: Vec<u16> = words.iter().map(|w| place.of(*w) as u16).collect();
                    encode_codes_u16(&codes, null)
                }
                Err(_) => {
                    let codes: Vec<u32> = words.iter().map(|w| place.of(*w) as u32).collect();
                    encode_codes_u32(&codes, dictionary.len() as u32)
                }
            },
            (NumbersAre::Distances { least, null }, _) => {
                let value = |word: &T| least.wrapping_add(place.of(*word) as i64);
                let mut values: Vec<i64> = words.iter().map(value).collect();
                let nulls = null.and_then(|null| {
                    let mut nulls = Bitmap::zeros(words.len());
                    let is_null = |row: &usize| place.of(words[*row]) == null;
                    (0..words.len()).filter(is_null).for_each(|row| {
                        nulls.set(row);
                        values[row] = 0;
                    });
                    (nulls.count_ones() > 0).then_some(nulls)
                });
                encode_column(&Plain { values: Values::Int(values), nulls }, None)?
            }
        };
        finish_page(page, form)
    }
}
