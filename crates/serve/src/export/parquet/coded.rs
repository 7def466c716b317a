//! Columns of a row group with a dictionary.
//!
//! ```text
//!   batches  ->  values in the order in which they came first, and the code of each  ->  pages ([`coload_parquet`])
//! ```
//!
//! The writer of the library looks up each value by its bytes, compares it with the least and the largest, and packs codes one
//! by one. Here a number is its own key, and a short text its view; only values of the dictionary are compared. What is not
//! written here (nested columns, floats, wide decimals, many values, other compressions) is left to the library.
//!
//! Source: parquet.apache.org, data pages, encodings and the index of pages.

use std::collections::HashMap;
use std::ops::Range;

use coload_parquet::{
    Bounds, ColumnChunk, DataPage, DictionaryOrder, PAGE_ROWS, make_column_chunk, push_codes,
    push_levels,
};
use coload_types::Bitmap;
use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use datafusion::arrow::datatypes::{
    BinaryViewType, ByteViewType, DataType as ArrowType, Date32Type, Decimal128Type, Int16Type,
    Int32Type, Int64Type, StringViewType, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::hash_utils::RandomState;
use parquet::basic::{Compression, Encoding, Type as Physical};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

/// Most bytes of a dictionary, as in the library.
const DICTIONARY_BYTES_MAX: usize = 1 << 20;
/// Longest value that stands whole in statistics, as in the library: longer ones it cuts.
const STATISTICS_BYTES_MAX: usize = 64;
/// Longest text that stands in its view.
const INLINE_BYTES_MAX: u32 = 12;

/// The codes of a column.
struct Codes {
    /// Of the rows that are not NULL.
    codes: Vec<u32>,
    /// A bit for each row, set for NULL.
    nulls: Bitmap,
    dictionary: Values,
}

/// Values in the order of their codes.
enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<Box<[u8]>>),
}

/// Makes the pages of a column; `None` when it is left to the library.
///
/// # Errors
/// When a page cannot be compressed.
pub(super) fn coded_chunk(
    arrays: &[ArrayRef],
    column: &ColumnDescPtr,
    compression: Compression,
) -> Result<Option<ColumnChunk>> {
    let is_flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
    if !is_flat || !matches!(compression, Compression::SNAPPY | Compression::UNCOMPRESSED) {
        return Ok(None);
    }
    let Some(codes) = codes_of(arrays, column.physical_type()) else { return Ok(None) };
    let Some(statistics) = codes.statistics(column.physical_type()) else { return Ok(None) };
    let chunk = make_column_chunk(column, compression, |pages| {
        let values = codes.dictionary.plain(column.physical_type());
        let order = DictionaryOrder::Unsorted;
        pages.put_dictionary(values, codes.dictionary.len() as u32, order)?;
        let mut codes_left = &codes.codes[..];
        for first in (0..codes.nulls.len()).step_by(PAGE_ROWS) {
            let rows = first..codes.nulls.len().min(first + PAGE_ROWS);
            let nulls = rows.clone().filter(|row| codes.nulls.get(*row)).count();
            let (of_page, rest) = codes_left.split_at(rows.len() - nulls);
            codes_left = rest;
            pages.put_data(DataPage {
                rows: rows.len(),
                entries: rows.len(),
                nulls,
                encoding: Encoding::RLE_DICTIONARY,
                body: codes.page(rows, of_page, column.max_def_level() > 0),
                bounds: match of_page.is_empty() {
                    true => Bounds::Nulls,
                    false => codes.dictionary.bounds(of_page, column.physical_type()),
                },
            })?;
        }
        Ok(statistics)
    });
    chunk.map(Some).map_err(|e| ParquetError::External(Box::new(e)))
}

/// The codes of arrays; `None` when their type is left to the library, or their values are many.
fn codes_of(arrays: &[ArrayRef], physical: Physical) -> Option<Codes> {
    use ArrowType as T;
    let data_type = arrays.first()?.data_type();
    if arrays.iter().any(|array| array.data_type() != data_type) {
        return None;
    }
    match (data_type, physical) {
        (T::Int16, Physical::INT32) => numbers::<Int16Type>(arrays, i64::from),
        (T::Int32, Physical::INT32) => numbers::<Int32Type>(arrays, i64::from),
        (T::Date32, Physical::INT32) => numbers::<Date32Type>(arrays, i64::from),
        (T::Int64, Physical::INT64) => numbers::<Int64Type>(arrays, |v| v),
        (T::Time64(TimeUnit::Microsecond), Physical::INT64) => {
            numbers::<Time64MicrosecondType>(arrays, |v| v)
        }
        (T::Timestamp(TimeUnit::Microsecond, _), Physical::INT64) => {
            numbers::<TimestampMicrosecondType>(arrays, |v| v)
        }
        // Their precision says that they fit.
        (T::Decimal128(..), Physical::INT32 | Physical::INT64) => {
            numbers::<Decimal128Type>(arrays, |v| v as i64)
        }
        (T::Utf8View, Physical::BYTE_ARRAY) => texts::<StringViewType>(arrays),
        (T::BinaryView, Physical::BYTE_ARRAY) => texts::<BinaryViewType>(arrays),
        _ => None,
    }
}

fn numbers<T: ArrowPrimitiveType>(
    arrays: &[ArrayRef],
    number: impl Fn(T::Native) -> i64,
) -> Option<Codes> {
    let mut known: HashMap<i64, u32, RandomState> = HashMap::with_hasher(RandomState::default());
    let (mut codes, mut nulls, mut values) = (Vec::new(), Bitmap::zeros(0), Vec::new());
    for array in arrays {
        let array = array.as_primitive::<T>();
        for (row, value) in array.values().iter().enumerate() {
            let is_null = array.is_null(row);
            nulls.push(is_null);
            if is_null {
                continue;
            }
            let value = number(*value);
            codes.push(*known.entry(value).or_insert_with(|| {
                values.push(value);
                values.len() as u32 - 1
            }));
        }
        if values.len() * size_of::<i64>() > DICTIONARY_BYTES_MAX {
            return None;
        }
    }
    (!values.is_empty()).then_some(Codes { codes, nulls, dictionary: Values::Numbers(values) })
}

fn texts<T: ByteViewType>(arrays: &[ArrayRef]) -> Option<Codes> {
    // A short text stands in its view, whatever array it is in; a long one's view points into buffers of its array.
    let mut short: HashMap<u128, u32, RandomState> = HashMap::with_hasher(RandomState::default());
    let mut viewed = short.clone();
    let mut long: HashMap<Box<[u8]>, u32, RandomState> =
        HashMap::with_hasher(RandomState::default());
    let (mut codes, mut nulls, mut values) = (Vec::new(), Bitmap::zeros(0), Vec::new());
    let mut bytes = 0;
    for array in arrays {
        let array = array.as_byte_view::<T>();
        viewed.clear();
        for (row, view) in array.views().iter().enumerate() {
            let is_null = array.is_null(row);
            nulls.push(is_null);
            if is_null {
                continue;
            }
            let is_short = *view as u32 <= INLINE_BYTES_MAX;
            let seen = if is_short { &mut short } else { &mut viewed };
            let code = *seen.entry(*view).or_insert_with(|| {
                let value: &[u8] = array.value(row).as_ref();
                let mut add = || {
                    bytes += value.len();
                    values.push(value.into());
                    values.len() as u32 - 1
                };
                match is_short {
                    true => add(),
                    false => *long.entry(value.into()).or_insert_with(add),
                }
            });
            codes.push(code);
            if bytes + values.len() * size_of::<u32>() > DICTIONARY_BYTES_MAX {
                return None;
            }
        }
    }
    (!values.is_empty()).then_some(Codes { codes, nulls, dictionary: Values::Texts(values) })
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Numbers(values) => values.len(),
            Values::Texts(values) => values.len(),
        }
    }

    /// The least and the largest of those that some codes stand for.
    fn bounds(&self, codes: &[u32], physical: Physical) -> Bounds {
        let mut used = vec![false; self.len()];
        codes.iter().for_each(|code| used[*code as usize] = true);
        match self {
            Values::Numbers(values) => {
                let values = || values.iter().zip(&used).filter(|(_, used)| **used);
                let bytes = |value: Option<(&i64, &bool)>| match value {
                    None => Vec::new(),
                    Some((value, _)) if physical == Physical::INT32 => {
                        (*value as i32).to_le_bytes().to_vec()
                    }
                    Some((value, _)) => value.to_le_bytes().to_vec(),
                };
                Bounds::Known(bytes(values().min()), bytes(values().max()))
            }
            Values::Texts(values) => {
                let values = || values.iter().zip(&used).filter(|(_, used)| **used);
                let bytes = |value: Option<(&Box<[u8]>, &bool)>| {
                    value.map_or(Vec::new(), |(value, _)| value.to_vec())
                };
                Bounds::Known(bytes(values().min()), bytes(values().max()))
            }
        }
    }

    /// One after the other; a text with its length.
    fn plain(&self, physical: Physical) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Values::Numbers(values) if physical == Physical::INT32 => {
                values.iter().for_each(|v| out.extend_from_slice(&(*v as i32).to_le_bytes()));
            }
            Values::Numbers(values) => {
                values.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
            }
            Values::Texts(values) => {
                for value in values {
                    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
                    out.extend_from_slice(value);
                }
            }
        }
        out
    }
}

impl Codes {
    /// The least and the largest value; `None` when one is too long to stand whole.
    fn statistics(&self, physical: Physical) -> Option<Statistics> {
        let nulls = Some(self.nulls.count_ones() as u64);
        match &self.dictionary {
            Values::Numbers(values) => {
                let (min, max) = (*values.iter().min()?, *values.iter().max()?);
                Some(match physical {
                    Physical::INT32 => {
                        Statistics::int32(Some(min as i32), Some(max as i32), None, nulls, false)
                    }
                    _ => Statistics::int64(Some(min), Some(max), None, nulls, false),
                })
            }
            Values::Texts(values) => {
                let (min, max) = (values.iter().min()?, values.iter().max()?);
                let fits = min.len().max(max.len()) <= STATISTICS_BYTES_MAX;
                let whole = |value: &[u8]| Some(ByteArray::from(value.to_vec()));
                fits.then(|| Statistics::byte_array(whole(min), whole(max), None, nulls, false))
            }
        }
    }

    /// The body of a data page: of some rows, and the codes of those that are not NULL.
    fn page(&self, rows: Range<usize>, codes: &[u32], has_levels: bool) -> Vec<u8> {
        let mut out = Vec::new();
        if has_levels {
            let levels: Vec<u32> = rows.map(|row| (!self.nulls.get(row)).into()).collect();
            push_levels(&levels, 1, &mut out);
        }
        push_codes(codes, self.dictionary.len(), &mut out);
        out
    }
}
