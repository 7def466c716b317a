//! A column of a table as the pages of a column chunk.
//!
//! Values are NULL, or of the column's type as [`coload_types`] has them. A dictionary is that of a partition: it is
//! sorted, so that the bounds of a page are those of its codes.
//!
//! Booleans have no dictionary: readers do not expect one. Nor have lists, whose dictionary is one of lists.

use coload_types::{DataType, Dictionary, ElementType, Error, Plain, Result, Value, Values};
use parquet::basic::{Compression, Encoding, Type as Physical};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::ColumnDescPtr;

use crate::bounds::Bound;
use crate::pages::{
    Bounds, ColumnChunk, DataPage, DictionaryOrder, PAGE_ROWS, Pages, make_column_chunk,
    push_codes, push_levels,
};
use crate::values::{Form, decode, ends_of};

/// Bytes of values from which on a page ends, as in the library.
const PAGE_BYTES: usize = 1 << 20;
/// Most bytes of a dictionary: as values they are some more, and a page holds 2 GiB.
const DICTIONARY_BYTES_MAX: usize = 512 << 20;

/// What a column chunk holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnSums {
    /// Rows.
    pub rows: u64,
    /// Rows that are NULL.
    pub nulls: u64,
    /// Data pages of codes, and of values.
    pub coded_pages: u64,
    /// See `coded_pages`.
    pub plain_pages: u64,
}

/// Takes the rows of a column in order.
#[derive(Debug)]
pub struct ColumnPages<'p, 'a> {
    pages: &'p mut Pages<'a>,
    /// Of values, or of the elements of lists.
    form: Form,
    /// The type of the elements of lists.
    lists: Option<ElementType>,
    nullable: bool,
    sums: ColumnSums,
    /// The least and the largest value so far.
    range: Option<(Value, Value)>,
}

impl<'p, 'a> ColumnPages<'p, 'a> {
    /// Makes the column chunk of the rows that `write` puts.
    ///
    /// # Errors
    /// Those of `write`; `Limit` when a value is too long for a page.
    pub fn make(
        column: &ColumnDescPtr,
        data_type: DataType,
        compression: Compression,
        write: impl FnOnce(&mut ColumnPages<'_, '_>) -> Result<()>,
    ) -> Result<(ColumnChunk, ColumnSums)> {
        let mut sums = ColumnSums::default();
        let chunk = make_column_chunk(column, compression, |pages| {
            let lists = match data_type {
                DataType::List(element) => Some(element),
                _ => None,
            };
            let data_type = lists.map_or(data_type, ElementType::data_type);
            let mut column = ColumnPages {
                pages,
                form: Form { physical: column.physical_type(), data_type },
                lists,
                // That of a list repeats, and its elements may be NULL.
                nullable: column.max_def_level() > if lists.is_some() { 2 } else { 0 },
                sums: ColumnSums::default(),
                range: None,
            };
            write(&mut column)?;
            let statistics = column.statistics();
            sums = column.sums;
            Ok(statistics)
        })?;
        Ok((chunk, sums))
    }

    /// Whether a dictionary of values may be put: readers take none of booleans, one of lists has no place, and a page
    /// holds 2 GiB.
    pub fn takes_dictionary(&self, dictionary: &Dictionary) -> bool {
        self.form.physical != Physical::BOOLEAN
            && self.lists.is_none()
            && !dictionary.is_empty()
            && dictionary.bytes() <= DICTIONARY_BYTES_MAX
    }

    /// Puts the dictionary that codes stand for, before all rows.
    ///
    /// # Errors
    /// `Limit` when it is too large.
    pub fn put_dictionary(&mut self, dictionary: &Dictionary) -> Result<()> {
        let values = dictionary.values();
        let mut out = Vec::with_capacity(dictionary.bytes());
        self.form.push_values(values, 0..dictionary.len(), &mut out);
        // A NaN has no place in the order of numbers.
        let ends = [0, dictionary.len().saturating_sub(1)];
        let has_nan = ends.iter().any(|index| self.form.is_nan(values, *index));
        let order = if has_nan { DictionaryOrder::Unsorted } else { DictionaryOrder::Sorted };
        self.pages.put_dictionary(out, dictionary.len() as u32, order)
    }

    /// Puts rows of codes of the dictionary; any code past its last is NULL.
    ///
    /// # Errors
    /// `Corrupt` when a row of a NOT NULL column is NULL.
    pub fn put_codes(&mut self, dictionary: &Dictionary, codes: &[u32]) -> Result<()> {
        let count = dictionary.len();
        let is_value = |code: &u32| (*code as usize) < count;
        for codes in codes.chunks(PAGE_ROWS) {
            let values: Vec<u32> = codes.iter().copied().filter(is_value).collect();
            let nulls = codes.len() - values.len();
            self.count(codes.len(), nulls)?;
            let mut body = Vec::new();
            if self.nullable {
                let levels: Vec<u32> = codes.iter().map(|code| is_value(code).into()).collect();
                push_levels(&levels, 1, &mut body);
            }
            push_codes(&values, count, &mut body);
            let ends = (values.iter().min().copied(), values.iter().max().copied());
            let bounds = match ends {
                (Some(least), Some(largest)) => {
                    self.bounds(dictionary.values(), least as usize, largest as usize)
                }
                _ => Bounds::Nulls,
            };
            self.sums.coded_pages += 1;
            let (rows, encoding) = (codes.len(), Encoding::RLE_DICTIONARY);
            self.pages.put_data(DataPage { rows, entries: rows, nulls, encoding, body, bounds })?;
        }
        Ok(())
    }

    /// Puts rows of codes as the values that they stand for.
    ///
    /// # Errors
    /// `Corrupt` when a row of a NOT NULL column is NULL, `Limit` when a value is too long for a page.
    pub fn put_decoded(&mut self, dictionary: &Dictionary, codes: &[u32]) -> Result<()> {
        let mut first = 0;
        while first < codes.len() {
            let rows = match dictionary.values() {
                // Text of many rows would be over what a column of values holds.
                Values::Bytes(strings) => {
                    let mut bytes = 0;
                    let fits = |code: &&u32| {
                        let is_value = (**code as usize) < strings.len();
                        bytes += if is_value { strings.get(**code as usize).len() } else { 0 };
                        bytes < PAGE_BYTES
                    };
                    codes[first..].iter().take_while(fits).count().max(1)
                }
                Values::Int(_) | Values::Wide(_) => codes.len() - first,
            };
            let rows = rows.min(PAGE_ROWS);
            self.put_values(&decode(dictionary.values(), &codes[first..first + rows]))?;
            first += rows;
        }
        Ok(())
    }

    /// Puts rows of values.
    ///
    /// # Errors
    /// `Corrupt` when a row of a NOT NULL column is NULL, `Limit` when a value is too long for a page.
    pub fn put_values(&mut self, plain: &Plain) -> Result<()> {
        let mut first = 0;
        while first < plain.len() {
            let rows = self.rows_of_page(plain, first);
            self.put_page(plain, first, first + rows)?;
            first += rows;
        }
        Ok(())
    }

    /// Rows of the page that begins with a row.
    fn rows_of_page(&self, plain: &Plain, first: usize) -> usize {
        let most = PAGE_ROWS.min(plain.len() - first);
        let Values::Bytes(strings) = &plain.values else { return most };
        let start = if first == 0 { 0 } else { strings.ends[first - 1] as usize };
        let ends = &strings.ends[first..first + most];
        let rows = ends.partition_point(|end| (*end as usize - start) < PAGE_BYTES);
        // A value that is longer alone has a page of its own.
        rows.max(1)
    }

    fn put_page(&mut self, plain: &Plain, first: usize, end: usize) -> Result<()> {
        if let Some(element) = self.lists {
            return self.put_lists(element, plain, (first, end));
        }
        let is_value = |row: &usize| !plain.is_null(*row);
        let rows = end - first;
        let nulls = match &plain.nulls {
            Some(nulls) => (first..end).filter(|row| nulls.get(*row)).count(),
            None => 0,
        };
        self.count(rows, nulls)?;
        let mut body = Vec::new();
        if self.nullable {
            let levels: Vec<u32> = (first..end).map(|row| is_value(&row).into()).collect();
            push_levels(&levels, 1, &mut body);
        }
        self.form.push_values(&plain.values, (first..end).filter(is_value), &mut body);
        let numbers =
            (first..end).filter(|row| is_value(row) && !self.form.is_nan(&plain.values, *row));
        let bounds = match (ends_of(&plain.values, numbers), nulls == rows) {
            (Some((least, largest)), _) => self.bounds(&plain.values, least, largest),
            (None, true) => Bounds::Nulls,
            (None, false) => Bounds::Unknown,
        };
        self.sums.plain_pages += 1;
        let encoding = Encoding::PLAIN;
        self.pages.put_data(DataPage { rows, entries: rows, nulls, encoding, body, bounds })
    }

    fn count(&mut self, rows: usize, nulls: usize) -> Result<()> {
        if nulls > 0 && !self.nullable {
            return Err(Error::Corrupt("NULL in a column that is NOT NULL".to_owned()));
        }
        self.sums.rows += rows as u64;
        self.sums.nulls += nulls as u64;
        Ok(())
    }

    /// The bounds of a page that has these values at its ends, which may be NaN where they are codes; counts them.
    fn bounds(&mut self, values: &Values, least: usize, largest: usize) -> Bounds {
        let (mut least, mut largest) = (least, largest);
        // NaNs stand at the ends of the order.
        while least < largest && self.form.is_nan(values, least) {
            least += 1;
        }
        while least < largest && self.form.is_nan(values, largest) {
            largest -= 1;
        }
        if self.form.is_nan(values, least) || self.form.is_nan(values, largest) {
            return Bounds::Unknown;
        }
        let (least, largest) = (values.get(least), values.get(largest));
        let bounds = match (self.form.lower(&least), self.form.upper(&largest)) {
            (Bound { bytes: least, .. }, Some(Bound { bytes: largest, .. })) => {
                Bounds::Known(least, largest)
            }
            (_, None) => Bounds::Unknown,
        };
        self.range = Some(match self.range.take() {
            None => (least, largest),
            Some((before, after)) => (before.min(least), after.max(largest)),
        });
        bounds
    }

    /// What the footer says of the column.
    fn statistics(&self) -> Statistics {
        let range = self.range.as_ref();
        let least = range.map(|(least, _)| self.form.lower(least));
        let largest = range.and_then(|(_, largest)| self.form.upper(largest));
        let exact = |bound: &Option<Bound>| bound.as_ref().is_some_and(|bound| bound.exact);
        let are_exact = (exact(&least), exact(&largest));
        let bytes = |bound: Option<Bound>| bound.map(|bound| bound.bytes);
        let (least, largest) = (bytes(least), bytes(largest));
        // Of lists the levels that are no value would be meant, of which nobody asks.
        let nulls = self.lists.is_none().then_some(self.sums.nulls);
        macro_rules! numbers {
            ($type:ty, $make:path) => {{
                let number = |bytes: Option<Vec<u8>>| {
                    bytes.and_then(|b| b.try_into().ok()).map(<$type>::from_le_bytes)
                };
                $make(number(least), number(largest), None, nulls, false)
            }};
        }
        let array = |bytes: Option<Vec<u8>>| bytes.map(ByteArray::from);
        match self.form.physical {
            Physical::BOOLEAN => {
                let bit = |bytes: Option<Vec<u8>>| bytes.map(|bytes| bytes == [1]);
                Statistics::boolean(bit(least), bit(largest), None, nulls, false)
            }
            Physical::INT32 => numbers!(i32, Statistics::int32),
            Physical::FLOAT => numbers!(f32, Statistics::float),
            Physical::DOUBLE => numbers!(f64, Statistics::double),
            Physical::FIXED_LEN_BYTE_ARRAY => {
                let array = |bytes| array(bytes).map(FixedLenByteArray::from);
                Statistics::fixed_len_byte_array(array(least), array(largest), None, nulls, false)
            }
            Physical::BYTE_ARRAY => Statistics::ByteArray(
                ValueStatistics::new(array(least), array(largest), None, nulls, false)
                    .with_min_is_exact(are_exact.0)
                    .with_max_is_exact(are_exact.1),
            ),
            _ => numbers!(i64, Statistics::int64),
        }
    }
}

mod lists;

#[cfg(test)]
mod tests;
