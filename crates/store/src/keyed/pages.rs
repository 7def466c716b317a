//! The keys of a segment, page by page, and the rows of two segments whose keys are the same.
//!
//! ```text
//!   new   [3 9 | 12 40 41]        a page of each is decoded; pages that end before the other's key are skipped,
//!   old   [1 3 8 | .. | 41 50]    and steps within pages grow
//! ```
//!
//! Text that is stored as codes stays codes, and values are those of the dictionary: a page of long texts that repeat takes
//! four bytes a row.
//!
//! Memory: a page of the columns of the key, of two segments. Cost: of a short list of keys in a long one a logarithm of the
//! distance each; of two of a length a comparison a row.

use std::cmp::Ordering;
use std::ops::Range;

use coload_ddl::{Key, Schema};
use coload_page::bitpack::BLOCK;
use coload_page::{KeyForm, KeyPart, PageDetail, PageView};
use coload_transform::put_text;
use coload_types::{Dictionary, Error, Plain, Result, Strings, Value, Values};

use super::key_bytes::put_number;
use super::keys::{Float, float};
use crate::{ExpandedPages, SegmentFile};

/// The keys of a segment whose rows are in their order, a page at a time.
pub(crate) struct KeyPages<'a> {
    segment: &'a SegmentFile,
    columns: Vec<(usize, Option<Float>)>,
    /// The columns of the key in the page.
    values: Vec<PageKeys<'a>>,
    /// Page after the one that is there.
    next: usize,
    /// First row of the page that is there, and its rows.
    first: u64,
    rows: usize,
}

/// A column of a key in a page.
enum PageKeys<'a> {
    Int(Vec<i64>),
    Wide(Vec<i128>),
    Bytes(Strings),
    Codes(Vec<u32>, &'a Strings),
}

/// A value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyValue<'a> {
    Int(i64),
    Wide(i128),
    Bytes(&'a [u8]),
}

impl PageKeys<'_> {
    #[inline]
    fn get(&self, row: usize) -> KeyValue<'_> {
        match self {
            PageKeys::Int(values) => KeyValue::Int(values[row]),
            PageKeys::Wide(values) => KeyValue::Wide(values[row]),
            PageKeys::Bytes(strings) => KeyValue::Bytes(strings.get(row)),
            PageKeys::Codes(codes, strings) => KeyValue::Bytes(strings.get(codes[row] as usize)),
        }
    }
}

impl<'a> KeyPages<'a> {
    /// Before the first page of a segment.
    pub fn new(segment: &'a SegmentFile, schema: &Schema, key: &Key) -> Self {
        let columns = key.columns().iter().map(|column| (*column, float(schema, *column)));
        Self::of_columns(segment, columns.collect())
    }

    /// The same for a key of these columns.
    pub fn of_columns(segment: &'a SegmentFile, columns: Vec<(usize, Option<Float>)>) -> Self {
        KeyPages { segment, columns, values: Vec::new(), next: 0, first: 0, rows: 0 }
    }

    /// Goes to a page; `false` when it has no rows.
    pub fn open_page(&mut self, page: usize) -> Result<bool> {
        let before = self.segment.page_rows().iter().take(page);
        self.first = before.map(|rows| u64::from(*rows)).sum();
        (self.next, self.rows) = (page, 0);
        match self.segment.page_rows().get(page) {
            Some(rows) if *rows > 0 => self.advance(None),
            _ => Ok(false),
        }
    }

    /// Compares the first columns of a row's key with as many values.
    pub fn compare_values(&self, row: usize, values: &[Value]) -> Ordering {
        for (column, value) in self.values.iter().zip(values) {
            let value = match value {
                Value::Int(value) => KeyValue::Int(*value),
                Value::Wide(value) => KeyValue::Wide(*value),
                Value::Bytes(text) => KeyValue::Bytes(text),
            };
            let order = column.get(row).cmp(&value);
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Rows of the page that is there.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// First row of the page that is there.
    pub fn first_row(&self) -> u64 {
        self.first
    }

    /// The values of a row of the page.
    pub fn values(&self, row: usize) -> Vec<Value> {
        let value = |column: &PageKeys<'_>| match column.get(row) {
            KeyValue::Int(value) => Value::Int(value),
            KeyValue::Wide(value) => Value::Wide(value),
            KeyValue::Bytes(text) => Value::Bytes(text.into()),
        };
        self.values.iter().map(value).collect()
    }

    /// Appends the key of a row of the page as bytes of a tree; its numbers must not be less than the least of the parts.
    pub fn put_key(&self, row: usize, parts: &[KeyPart], out: &mut Vec<u8>) {
        for (index, (part, values)) in parts.iter().zip(&self.values).enumerate() {
            match (values.get(row), part.form) {
                (KeyValue::Int(value), KeyForm::Number { least, width }) => {
                    put_number(i128::from(value).wrapping_sub(least) as u128, width, out);
                }
                (KeyValue::Wide(value), KeyForm::Number { least, width }) => {
                    put_number(value.wrapping_sub(least) as u128, width, out);
                }
                (KeyValue::Bytes(text), _) if index + 1 == parts.len() => {
                    out.extend_from_slice(text);
                }
                (KeyValue::Bytes(text), _) => put_text(text, out),
                // A tree of another form than its column is refused when it is opened.
                (KeyValue::Int(_) | KeyValue::Wide(_), KeyForm::Text) => {}
            }
        }
    }

    /// Appends the keys of the page as numbers whose last bytes are those that [`Self::put_key`] makes, if they are numbers of at most so many
    /// bytes together; `false` when they are not.
    pub fn put_numbers(&self, parts: &[KeyPart], out: &mut Vec<u64>) -> bool {
        out.clear();
        out.resize(self.rows, 0);
        for (part, values) in parts.iter().zip(&self.values) {
            let (PageKeys::Int(values), KeyForm::Number { least, width }) = (values, part.form)
            else {
                return false;
            };
            // Both are within 64 bits, and so is what is between them.
            let (least, shift) = (least as i64, 8 * u32::from(width));
            for (key, value) in out.iter_mut().zip(values) {
                *key = key.checked_shl(shift).unwrap_or(0) | value.wrapping_sub(least) as u64;
            }
        }
        true
    }

    /// Goes to the next page that has rows, but for those that end before a value of the first column, if one is given.
    /// `false` when there is none.
    pub fn advance(&mut self, from: Option<KeyValue<'_>>) -> Result<bool> {
        self.first += self.rows as u64;
        self.rows = 0;
        while let Some(rows) = self.segment.page_rows().get(self.next).copied() {
            let page = self.next;
            self.next += 1;
            if rows == 0 || from.is_some_and(|from| self.is_below(page, from)) {
                self.first += u64::from(rows);
                continue;
            }
            let columns = self.columns.iter().map(|column| read_page(self.segment, *column, page));
            self.values = columns.collect::<Result<_>>()?;
            self.segment.check()?;
            self.rows = rows as usize;
            return Ok(true);
        }
        Ok(false)
    }

    /// Says that the page that is there, whose keys are in memory, is not read again soon: it need not be in the memory of the process as a
    /// page of a mapped file as well.
    pub fn leave_read(&self) {
        let Some(page) = self.next.checked_sub(1) else { return };
        for (column, _) in &self.columns {
            if let Ok(open) = self.segment.column(*column) {
                self.segment.leave_page(&open.index().pages[page]);
            }
        }
    }

    /// Whether all values of the first column in a page are known to be below one.
    fn is_below(&self, page: usize, value: KeyValue<'_>) -> bool {
        let Some((column, None)) = self.columns.first() else { return false };
        let Ok(open) = self.segment.column(*column) else { return false };
        let meta = &open.index().pages[page];
        match (&meta.detail, value) {
            _ if meta.nulls > 0 => false,
            (PageDetail::Int { max, .. }, KeyValue::Int(value)) => *max < value,
            (PageDetail::Wide { max, .. }, KeyValue::Wide(value)) => *max < value,
            (PageDetail::Codes { max, .. }, value) => {
                let Ok(Some(dictionary)) = self.segment.dictionary(*column) else { return false };
                let code = *max as usize;
                code < dictionary.len()
                    && match (dictionary.values(), value) {
                        (Values::Int(values), KeyValue::Int(value)) => values[code] < value,
                        (Values::Wide(values), KeyValue::Wide(value)) => values[code] < value,
                        (Values::Bytes(values), KeyValue::Bytes(value)) => values.get(code) < value,
                        _ => false,
                    }
            }
            _ => false,
        }
    }

    fn first_value(&self, row: usize) -> Option<KeyValue<'_>> {
        let row = (row < self.rows).then_some(row)?;
        self.values.first().map(|values| values.get(row))
    }
}

/// A column of a key in a page.
fn read_page(
    segment: &SegmentFile,
    (column, float): (usize, Option<Float>),
    page: usize,
) -> Result<PageKeys<'_>> {
    let null = || {
        Err(Error::Invalid(format!(
            "{}: NULL in column {} of the PRIMARY KEY",
            segment.path().display(),
            column + 1
        )))
    };
    if segment.column(column)?.index().pages[page].nulls > 0 {
        return null();
    }
    let is_coded = segment.column(column)?.index().pages[page].detail.is_codes();
    let dictionary = segment.dictionary(column)?.map(Dictionary::values);
    if let (true, Some(Values::Bytes(texts))) = (is_coded, dictionary) {
        let codes = read_codes(segment, column, page)?;
        return match codes.iter().all(|code| (*code as usize) < texts.len()) {
            true => Ok(PageKeys::Codes(codes, texts)),
            false => null(),
        };
    }
    let mut plain = Plain::empty(segment.physical(column));
    segment.decode_page(column, page, &mut plain)?;
    if plain.null_count() > 0 {
        return null();
    }
    Ok(match plain.values {
        Values::Int(mut values) => {
            if let Some(float) = float {
                values.iter_mut().for_each(|value| *value = float.key_of(*value));
            }
            PageKeys::Int(values)
        }
        Values::Wide(values) => PageKeys::Wide(values),
        Values::Bytes(strings) => PageKeys::Bytes(strings),
    })
}

/// The codes of a page of codes.
///
/// # Errors
/// `Corrupt` when it is not what was written.
pub(crate) fn read_codes(segment: &SegmentFile, column: usize, page: usize) -> Result<Vec<u32>> {
    let expanded = ExpandedPages::default();
    let PageView::Codes(view) = segment.page(column, page, &expanded)? else {
        return Err(Error::corrupt(segment.path(), "values in a page of codes"));
    };
    let mut codes = Vec::with_capacity(view.rows);
    let mut block = [0; BLOCK];
    for b in 0..view.rows.div_ceil(BLOCK) {
        let count = view.unpack(b, &mut block);
        codes.extend_from_slice(&block[..count]);
    }
    Ok(codes)
}

#[inline]
fn compare(a: &KeyPages<'_>, row: usize, b: &KeyPages<'_>, other: usize) -> Ordering {
    for (a, b) in a.values.iter().zip(&b.values) {
        let order = a.get(row).cmp(&b.get(other));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Calls with the rows of two segments that have the same key, in the order of the keys, until the call fails.
///
/// # Errors
/// Those of the call; `Corrupt` when a segment is not what was written.
pub(crate) fn for_each_met(
    mut a: KeyPages<'_>,
    mut b: KeyPages<'_>,
    mut met: impl FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let (mut row, mut other) = (0, 0);
    loop {
        if row == a.rows {
            if !a.advance(b.first_value(other))? {
                return Ok(());
            }
            row = 0;
        }
        if other == b.rows {
            if !b.advance(a.first_value(row))? {
                return Ok(());
            }
            other = 0;
        }
        match compare(&a, row, &b, other) {
            Ordering::Less => {
                row = first_not_below(row..a.rows, |row| compare(&a, row, &b, other));
            }
            Ordering::Greater => {
                other = first_not_below(other..b.rows, |other| compare(&b, other, &a, row));
            }
            Ordering::Equal => {
                met(a.first + row as u64, b.first + other as u64)?;
                (row, other) = (row + 1, other + 1);
            }
        }
    }
}

/// The first row of a range that is not below something; steps grow from its start, as what is looked for is often near.
fn first_not_below(range: Range<usize>, compare: impl Fn(usize) -> Ordering) -> usize {
    let (mut low, mut step) = (range.start, 1);
    while low + step <= range.end && compare(low + step - 1).is_lt() {
        low += step;
        step *= 2;
    }
    let mut high = range.end.min(low + step);
    while low < high {
        let middle = low + (high - low) / 2;
        if compare(middle).is_lt() { low = middle + 1 } else { high = middle }
    }
    low
}
