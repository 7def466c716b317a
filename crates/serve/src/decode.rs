//! Selected rows of a page as Arrow arrays.
//!
//! Cost: numbers are written once, in their Arrow width. Text of a dictionary is not copied: a row
//! is a 16-byte view, picked by its code out of the dictionary's views, into the bytes that the open
//! segment holds.

use std::ops::Range;
use std::sync::Arc;

use coload_scan::{ColumnPage, NullBits, Selection};
use coload_store::{ExpandedPages, SegmentFile};
use coload_types::{
    Bitmap, DataType, ElementType, Error, Physical, Result, f32_from_ordinal, f64_from_ordinal,
};
use datafusion::arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, PrimitiveArray,
    StringViewArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};

use crate::lists::Lists;
use crate::types::UTC;
use crate::views::{DictionaryViews, Views, strings_of};

/// Rows of one page to decode: the selected ones of some of its blocks.
#[derive(Debug, Clone)]
pub(crate) struct Rows<'a> {
    pub segment: &'a Arc<SegmentFile>,
    /// Number of the page in its segment.
    pub page: usize,
    /// Room for its columns.
    pub expanded: &'a ExpandedPages,
    pub selection: &'a Selection,
    /// Numbers of the page's blocks that are decoded.
    pub blocks: Range<usize>,
}

/// Decodes one column of some rows.
///
/// # Errors
/// `Corrupt` when the page is not what was written, or text is not UTF-8.
pub(crate) fn decode_column(
    rows: &Rows<'_>,
    column: usize,
    data_type: DataType,
) -> Result<ArrayRef> {
    let page = ColumnPage::open(rows.segment, column, rows.page, rows.expanded)?;
    match data_type.physical() {
        Physical::Int => decode_int(rows, &page, data_type),
        Physical::Wide => decode_wide(rows, &page, data_type),
        Physical::Bytes => decode_bytes(rows, &page, column, data_type),
    }
}

fn decode_int(rows: &Rows<'_>, page: &ColumnPage<'_>, data_type: DataType) -> Result<ArrayRef> {
    // The loader keeps values in the range of their type; in a damaged file that has good checksums
    // the narrow types wrap.
    Ok(match data_type {
        DataType::SmallInt => Arc::new(numbers(rows, page, |v| v as i16, Int16Array::new)?),
        DataType::Integer => Arc::new(numbers(rows, page, |v| v as i32, Int32Array::new)?),
        DataType::BigInt => Arc::new(numbers(rows, page, |v| v, Int64Array::new)?),
        DataType::Date => Arc::new(numbers(rows, page, |v| v as i32, Date32Array::new)?),
        DataType::Real => Arc::new(numbers(rows, page, f32_from_ordinal, Float32Array::new)?),
        DataType::Double => Arc::new(numbers(rows, page, f64_from_ordinal, Float64Array::new)?),
        DataType::Time => Arc::new(numbers(rows, page, |v| v, Time64MicrosecondArray::new)?),
        DataType::Timestamp => {
            Arc::new(numbers(rows, page, |v| v, TimestampMicrosecondArray::new)?)
        }
        DataType::TimestampTz => {
            Arc::new(numbers(rows, page, |v| v, TimestampMicrosecondArray::new)?.with_timezone(UTC))
        }
        DataType::Decimal { .. } => {
            Arc::new(decimals(numbers(rows, page, i128::from, Decimal128Array::new)?, data_type)?)
        }
        DataType::Boolean => {
            let (mut values, mut nulls) = (Vec::new(), NullBits::default());
            let blocks = rows.blocks.clone();
            page.decode_ints(rows.selection, blocks, |v| v != 0, &mut values, &mut nulls)?;
            let bits = BooleanBuffer::from(values);
            Arc::new(BooleanArray::new(bits, null_buffer(nulls.take())))
        }
        other => return Err(Error::Invalid(format!("{other} is not an Int"))),
    })
}

/// Decodes numbers into one buffer.
fn numbers<T: ArrowPrimitiveType>(
    rows: &Rows<'_>,
    page: &ColumnPage<'_>,
    map: impl Fn(i64) -> T::Native,
    make: fn(ScalarBuffer<T::Native>, Option<NullBuffer>) -> PrimitiveArray<T>,
) -> Result<PrimitiveArray<T>> {
    let (mut values, mut nulls) = (Vec::with_capacity(selected(rows)), NullBits::default());
    page.decode_ints(rows.selection, rows.blocks.clone(), map, &mut values, &mut nulls)?;
    Ok(make(values.into(), null_buffer(nulls.take())))
}

fn decimals(array: Decimal128Array, data_type: DataType) -> Result<Decimal128Array> {
    let DataType::Decimal { precision, scale } = data_type else {
        return Err(Error::Invalid(format!("{data_type} is not DECIMAL")));
    };
    array
        .with_precision_and_scale(precision, scale as i8)
        .map_err(|e| Error::Corrupt(e.to_string()))
}

fn decode_wide(rows: &Rows<'_>, page: &ColumnPage<'_>, data_type: DataType) -> Result<ArrayRef> {
    let (mut values, mut nulls) = (Vec::with_capacity(selected(rows)), NullBits::default());
    page.decode_wides(rows.selection, rows.blocks.clone(), |v| v, &mut values, &mut nulls)?;
    let nulls = null_buffer(nulls.take());
    if data_type != DataType::Uuid {
        return Ok(Arc::new(decimals(Decimal128Array::new(values.into(), nulls), data_type)?));
    }
    let mut views = Views::with_capacity(values.len());
    let mut text = Vec::with_capacity(36);
    for value in values {
        text.clear();
        coload_types::display::write_wide(value, DataType::Uuid, &mut text);
        views.push(&text)?;
    }
    views.into_array(nulls, DataType::Uuid)
}

fn decode_bytes(
    rows: &Rows<'_>,
    page: &ColumnPage<'_>,
    column: usize,
    data_type: DataType,
) -> Result<ArrayRef> {
    if let DataType::List(element) = data_type {
        return decode_lists(rows, page, column, element);
    }
    if page.dictionary().is_some() {
        return decode_coded(rows, page, column, data_type);
    }
    let mut views = Views::with_capacity(selected(rows));
    let mut nulls: Option<Bitmap> = None;
    page.decode_strings(rows.selection, rows.blocks.clone(), |string| {
        let at = views.len();
        if let Some(nulls) = &mut nulls {
            nulls.push(string.is_none());
        } else if string.is_none() {
            nulls.insert(Bitmap::zeros(at)).push(true);
        }
        views.push(string.unwrap_or_default())
    })?;
    views.into_array(null_buffer(nulls), data_type)
}

fn decode_lists(
    rows: &Rows<'_>,
    page: &ColumnPage<'_>,
    column: usize,
    element: ElementType,
) -> Result<ArrayRef> {
    let mut lists = Lists::new(element);
    if page.dictionary().is_none() {
        page.decode_strings(rows.selection, rows.blocks.clone(), |list| lists.push(list))?;
        return lists.into_array();
    }
    let strings = strings_of(rows.segment, column)?;
    let mut codes = Vec::with_capacity(selected(rows));
    page.decode_codes(rows.selection, rows.blocks.clone(), &mut codes)?;
    for code in codes {
        let code = code as usize;
        lists.push((code < strings.len()).then(|| strings.get(code)))?;
    }
    lists.into_array()
}

fn decode_coded(
    rows: &Rows<'_>,
    page: &ColumnPage<'_>,
    column: usize,
    data_type: DataType,
) -> Result<ArrayRef> {
    let dictionary = DictionaryViews::of(rows.segment, column, data_type)?;
    let mut codes = Vec::with_capacity(selected(rows));
    page.decode_codes(rows.selection, rows.blocks.clone(), &mut codes)?;
    let null = dictionary.len() as u32;
    let nulls = codes
        .contains(&null)
        .then(|| NullBuffer::new(codes.iter().map(|code| *code != null).collect()));
    let views: Vec<u128> = codes.iter().map(|code| dictionary.view(*code)).collect();
    let buffers = dictionary.buffers(rows.segment, column)?;
    // SAFETY: each view is one that `DictionaryViews` made for these buffers, or the empty one of
    // NULL; it has checked that text is UTF-8.
    Ok(unsafe {
        if data_type.is_text() {
            Arc::new(StringViewArray::new_unchecked(views.into(), buffers, nulls)) as ArrayRef
        } else {
            Arc::new(BinaryViewArray::new_unchecked(views.into(), buffers, nulls))
        }
    })
}

fn selected(rows: &Rows<'_>) -> usize {
    rows.blocks.clone().map(|block| rows.selection.block(block).1).sum()
}

fn null_buffer(nulls: Option<Bitmap>) -> Option<NullBuffer> {
    let nulls = nulls?;
    let mut bytes = Vec::with_capacity(nulls.len().div_ceil(8));
    nulls.put_bytes(&mut bytes);
    // Here a set bit is NULL, in Arrow it is a value.
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
    Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bytes), 0, nulls.len())))
}
