//! Some values of a page, from all over it: what codecs are weighed on.

use crate::bitpack::BLOCK;
use crate::page::block_rows;
use crate::view::{IntPage, PageView, TextPage, TextScratch, WidePage};
use coload_types::{Result, Strings};

/// Blocks that a sample looks into.
const PLACES: usize = 8;
/// Numbers in a row that it takes of each.
const STRETCH: usize = 128;
/// Strings that it takes of each block, and the bytes that they may have together.
const STRINGS: usize = 64;
const STRING_BYTES: usize = 8 << 10;

/// Values that are not NULL, and how many rows there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sample {
    /// Sample of a page of 64-bit numbers.
    Int {
        /// Some that follow one another, of several places.
        stretches: Vec<Vec<i64>>,
        /// NULL rows of the page.
        nulls: usize,
        /// Rows of the page.
        rows: usize,
    },
    /// Sample of a page of 128-bit numbers.
    Wide {
        /// Some of them.
        values: Vec<i128>,
        /// NULL rows of the page.
        nulls: usize,
        /// Rows of the page.
        rows: usize,
    },
    /// Sample of a page of byte strings.
    Text {
        /// Some of them; long ones are cut.
        strings: Strings,
        /// Rows of the page.
        rows: usize,
        /// Bytes of all strings of the page.
        bytes: usize,
    },
}

/// Blocks of a page that a sample looks into.
fn places(rows: usize) -> impl Iterator<Item = usize> {
    let blocks = rows.div_ceil(BLOCK);
    let places = blocks.min(PLACES);
    (0..places).map(move |place| place * blocks / places)
}

impl Sample {
    /// A sample of a page; `None` when all its rows are NULL, or it holds other values.
    ///
    /// # Errors
    /// `Corrupt` when text of the page does not add up.
    pub fn of(page: &PageView<'_>) -> Result<Option<Self>> {
        match page {
            PageView::Int(page) => Ok(Sample::of_ints(page)),
            PageView::Text(page) => Sample::of_text(page),
            PageView::Wide(page) => Ok(Sample::of_wides(page)),
            PageView::Codes(_) => Ok(None),
        }
    }

    fn of_ints(page: &IntPage<'_>) -> Option<Self> {
        let stretches = Sample::stretches(page);
        let (nulls, rows) = (count_ones(page.null_bits()), page.rows());
        (!stretches.is_empty()).then_some(Sample::Int { stretches, nulls, rows })
    }

    fn of_wides(page: &WidePage<'_>) -> Option<Self> {
        let mut block = [0; BLOCK];
        let mut values = Vec::new();
        for b in places(page.rows()) {
            let count = page.unpack_wide(b, &mut block);
            let is_value = |row: &usize| !page.is_null(b * BLOCK + row);
            values.extend((0..count).filter(is_value).take(STRETCH).map(|row| block[row]));
        }
        let (nulls, rows) = (count_ones(page.null_bits()), page.rows());
        (!values.is_empty()).then_some(Sample::Wide { values, nulls, rows })
    }

    /// Some numbers of a page that are not NULL, of several places.
    pub(super) fn stretches(page: &IntPage<'_>) -> Vec<Vec<i64>> {
        let mut block = [0; BLOCK];
        let mut stretches = Vec::new();
        for b in places(page.rows()) {
            let count = page.unpack_int(b, &mut block);
            let is_value = |row: &usize| !page.is_null(b * BLOCK + row);
            let stretch: Vec<i64> =
                (0..count).filter(is_value).take(STRETCH).map(|row| block[row]).collect();
            if !stretch.is_empty() {
                stretches.push(stretch);
            }
        }
        stretches
    }

    /// A sample of a page of text; `None` when all its rows are NULL.
    pub(super) fn of_text(page: &TextPage<'_>) -> Result<Option<Self>> {
        let (mut strings, mut scratch) = (Strings::default(), TextScratch::default());
        let (mut seen_bytes, mut seen_rows) = (0, 0);
        for b in places(page.rows()) {
            let block = page.text_block(b, &mut scratch)?;
            (seen_bytes, seen_rows) = (seen_bytes + block.bytes.len(), seen_rows + block.count);
            // Every so many, as the first of a block may be alike.
            let step = block_rows(page.rows(), b).div_ceil(STRINGS).max(1);
            let is_value = |row: &usize| !page.is_null(b * BLOCK + row);
            let rows = (0..block.count).step_by(step).filter(is_value);
            push_some(rows.map(|row| block.get(row)), &mut strings);
        }
        let rows = page.rows();
        let bytes = seen_bytes * rows / seen_rows.max(1);
        Ok((!strings.is_empty()).then_some(Sample::Text { strings, rows, bytes }))
    }

    /// A sample of string 0, 1, .. of `count`.
    pub(crate) fn of_strings<'a>(count: usize, string: impl Fn(usize) -> &'a [u8]) -> Self {
        let mut strings = Strings::default();
        let places = count.div_ceil(STRINGS).min(PLACES);
        for place in 0..places {
            let (first, end) = (place * count / places, (place + 1) * count / places);
            let step = (end - first).div_ceil(STRINGS).max(1);
            push_some((first..end).step_by(step).map(&string), &mut strings);
        }
        let (rows, bytes) = (strings.len(), strings.bytes.len());
        Sample::Text { strings, rows, bytes }
    }
}

fn count_ones(bits: Option<&[u8]>) -> usize {
    bits.unwrap_or(&[]).iter().map(|byte| byte.count_ones() as usize).sum()
}

/// Appends strings up to [`STRING_BYTES`]; the one that would be over that is cut.
fn push_some<'a>(some: impl Iterator<Item = &'a [u8]>, to: &mut Strings) {
    let mut left = STRING_BYTES;
    for string in some {
        let part = &string[..string.len().min(left)];
        to.push(part);
        left -= part.len();
        if left == 0 {
            break;
        }
    }
}
