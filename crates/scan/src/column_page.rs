//! Decodes the selected rows of one column of one page.
//!
//! In a block with few selected rows each is unpacked alone; otherwise the block is unpacked and the
//! selected rows are picked.

use std::ops::Range;

use coload_page::bitpack::{BLOCK, unpack_one};
use coload_page::{CodesPage, Frame, IntPage, PageView, SymbolDecoder, TextPage, TextScratch};
use coload_store::{ExpandedPages, SegmentFile};
use coload_types::{Bitmap, Dictionary, Error, Result, Values};

use crate::mask::{POSITIONS_SPARE, Selection};
use crate::unpack::{unpack_rows, unpack_to_32, unpack_to_64};

/// Up to this many selected rows in a block are unpacked one by one.
const FEW_ROWS: usize = 48;

/// Which of the decoded rows are NULL; no bits as long as none is.
#[derive(Debug, Clone, Default)]
pub struct NullBits {
    rows: usize,
    nulls: Option<Bitmap>,
}

impl NullBits {
    fn push(&mut self, is_null: bool) {
        if is_null && self.nulls.is_none() {
            self.nulls = Some(Bitmap::zeros(self.rows));
        }
        if let Some(nulls) = &mut self.nulls {
            nulls.push(is_null);
        }
        self.rows += 1;
    }

    fn push_valid(&mut self, count: usize) {
        if let Some(nulls) = &mut self.nulls {
            nulls.extend_zeros(count);
        }
        self.rows += count;
    }

    /// Rows whose bits have been added so far.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// A bit for each row, set for NULL; `None` when no row is NULL.
    pub fn bitmap(&self) -> Option<&Bitmap> {
        self.nulls.as_ref()
    }

    /// Takes the bits and starts over.
    pub fn take(&mut self) -> Option<Bitmap> {
        self.rows = 0;
        self.nulls.take()
    }
}

/// One column of one page, with what is needed to decode it.
#[derive(Debug, Clone)]
pub struct ColumnPage<'a> {
    view: PageView<'a>,
    dictionary: Option<&'a Dictionary>,
    decoder: Option<&'a SymbolDecoder>,
}

impl<'a> ColumnPage<'a> {
    /// Opens a column of a page; `expanded` is room for it.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written.
    pub fn open(
        segment: &'a SegmentFile,
        column: usize,
        page: usize,
        expanded: &'a ExpandedPages,
    ) -> Result<Self> {
        let view = segment.page(column, page, expanded)?;
        let dictionary = match view {
            PageView::Codes(_) => Some(
                segment
                    .dictionary(column)?
                    .ok_or_else(|| Error::Corrupt("codes without dictionary".into()))?,
            ),
            _ => None,
        };
        let decoder = match &view {
            PageView::Text(page) => page.decoder(segment.column(column)?.decoders())?,
            _ => None,
        };
        Ok(ColumnPage { view, dictionary, decoder })
    }

    /// The dictionary, when the page holds codes.
    pub fn dictionary(&self) -> Option<&'a Dictionary> {
        self.dictionary
    }

    /// The page as it is stored, to be decoded block by block.
    pub fn view(&self) -> &PageView<'a> {
        &self.view
    }

    /// Appends the codes of the selected rows of some blocks; NULL is the dictionary's null code.
    ///
    /// # Errors
    /// `Invalid` when the page holds no codes; `Corrupt` when a code is past the dictionary.
    pub fn decode_codes(
        &self,
        selection: &Selection,
        blocks: Range<usize>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let (PageView::Codes(page), Some(dictionary)) = (&self.view, self.dictionary) else {
            return Err(Error::Invalid("page without codes".into()));
        };
        let null = dictionary.null_code().0;
        let start = out.len();
        for_codes(page, selection, blocks, |code| out.push(code));
        match out[start..].iter().max() {
            Some(max) if *max > null => Err(Error::Corrupt(format!("code {max} of {null} values"))),
            _ => Ok(()),
        }
    }

    /// Appends the selected `Int` values of some blocks, each mapped; NULL gives the map of 0.
    ///
    /// # Errors
    /// `Corrupt` when the page holds no `Int` values, or a code is past the dictionary.
    pub fn decode_ints<T: Copy>(
        &self,
        selection: &Selection,
        blocks: Range<usize>,
        map: impl Fn(i64) -> T,
        out: &mut Vec<T>,
        nulls: &mut NullBits,
    ) -> Result<()> {
        match (&self.view, self.dictionary.map(Dictionary::values)) {
            (PageView::Codes(page), Some(Values::Int(values))) => {
                gather(page, selection, blocks, values, map, 0, out, nulls)
            }
            (PageView::Int(page), _) => {
                for_ints(page, selection, blocks, |row, value| {
                    let is_null = page.has_nulls() && page.is_null(row);
                    out.push(map(if is_null { 0 } else { value }));
                    nulls.push(is_null);
                });
                Ok(())
            }
            _ => Err(shape()),
        }
    }

    /// Appends the selected `Wide` values of some blocks, each mapped; NULL gives the map of 0.
    ///
    /// # Errors
    /// `Corrupt` when the page holds no `Wide` values, or a code is past the dictionary.
    pub fn decode_wides<T: Copy>(
        &self,
        selection: &Selection,
        blocks: Range<usize>,
        map: impl Fn(i128) -> T,
        out: &mut Vec<T>,
        nulls: &mut NullBits,
    ) -> Result<()> {
        match (&self.view, self.dictionary.map(Dictionary::values)) {
            (PageView::Codes(page), Some(Values::Wide(values))) => {
                gather(page, selection, blocks, values, map, 0, out, nulls)
            }
            (PageView::Wide(page), _) => {
                let mut values = [0; BLOCK];
                for block in blocks {
                    let (mask, count) = selection.block(block);
                    if count == 0 {
                        continue;
                    }
                    page.unpack_wide(block, &mut values);
                    mask.for_each(|row| {
                        let is_null = page.is_null(block * BLOCK + row);
                        out.push(map(if is_null { 0 } else { values[row] }));
                        nulls.push(is_null);
                    });
                }
                Ok(())
            }
            _ => Err(shape()),
        }
    }

    /// Hands the selected strings of some blocks to `sink`, in order; `None` is NULL.
    ///
    /// # Errors
    /// `Corrupt` when the page holds no strings, a code is past the dictionary, or text does not
    /// add up; what `sink` returns.
    pub fn decode_strings(
        &self,
        selection: &Selection,
        blocks: Range<usize>,
        mut sink: impl FnMut(Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        match (&self.view, self.dictionary.map(Dictionary::values)) {
            (PageView::Codes(page), Some(Values::Bytes(strings))) => {
                let mut result = Ok(());
                for_codes(page, selection, blocks, |code| {
                    let index = code as usize;
                    if result.is_ok() {
                        result = match index.cmp(&strings.len()) {
                            std::cmp::Ordering::Less => sink(Some(strings.get(index))),
                            std::cmp::Ordering::Equal => sink(None),
                            std::cmp::Ordering::Greater => Err(past(code, strings.len())),
                        };
                    }
                });
                result
            }
            (PageView::Text(page), _) => self.decode_text(page, selection, blocks, sink),
            _ => Err(shape()),
        }
    }

    fn decode_text(
        &self,
        page: &TextPage<'_>,
        selection: &Selection,
        blocks: Range<usize>,
        mut sink: impl FnMut(Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        let mut scratch = TextScratch::default();
        let mut decoded = Vec::new();
        for block in blocks {
            let (mask, count) = selection.block(block);
            if count == 0 {
                continue;
            }
            let strings = page.text_block(block, &mut scratch)?;
            let mut result = Ok(());
            mask.for_each(|row| {
                if result.is_err() {
                    return;
                }
                if page.has_nulls() && page.is_null(block * BLOCK + row) {
                    result = sink(None);
                    return;
                }
                let stored = strings.get(row);
                result = match self.decoder {
                    None => sink(Some(stored)),
                    Some(decoder) => {
                        decoded.clear();
                        decoder.decode(stored, &mut decoded);
                        sink(Some(&decoded))
                    }
                };
            });
            result?;
        }
        Ok(())
    }
}

fn shape() -> Error {
    Error::Corrupt("page of another type".into())
}

fn past(code: u32, values: usize) -> Error {
    Error::Corrupt(format!("code {code} of {values} values"))
}

/// Visits the codes of the selected rows in order.
#[inline(always)]
fn for_codes(
    page: &CodesPage<'_>,
    selection: &Selection,
    blocks: Range<usize>,
    mut visit: impl FnMut(u32),
) {
    let mut offsets = [0; BLOCK];
    let mut positions = [0; FEW_ROWS + POSITIONS_SPARE];
    for block in blocks {
        let (mask, selected) = selection.block(block);
        let (packed, count) = page.packed(block);
        if selected == 0 {
            continue;
        }
        if selected <= FEW_ROWS {
            let few = mask.positions(&mut positions);
            unpack_rows(packed, page.width, &positions[..few], |_, offset| {
                visit(page.base.wrapping_add(offset));
            });
            continue;
        }
        unpack_to_32(packed, page.width, &mut offsets);
        if selected == count {
            offsets[..count].iter().for_each(|offset| visit(page.base.wrapping_add(*offset)));
        } else {
            mask.for_each(|row| visit(page.base.wrapping_add(offsets[row])));
        }
    }
}

/// Visits the selected values of an `Int` page with their row in the page.
#[inline(always)]
fn for_ints(
    page: &IntPage<'_>,
    selection: &Selection,
    blocks: Range<usize>,
    mut visit: impl FnMut(usize, i64),
) {
    let mut offsets = [0; BLOCK];
    for block in blocks {
        let (mask, selected) = selection.block(block);
        if selected == 0 {
            continue;
        }
        let start = block * BLOCK;
        let Some(frame @ Frame { packed, width, count, .. }) = page.frame(block) else {
            let mut values = [0; BLOCK];
            page.unpack_int(block, &mut values);
            mask.for_each(|row| visit(start + row, values[row]));
            continue;
        };
        if selected <= FEW_ROWS {
            mask.for_each(|row| {
                visit(start + row, frame.value(unpack_one(packed, row, width)));
            });
            continue;
        }
        unpack_to_64(packed, count, width, &mut offsets);
        if selected == count {
            for (row, offset) in offsets[..count].iter().enumerate() {
                visit(start + row, frame.value(*offset));
            }
        } else {
            mask.for_each(|row| visit(start + row, frame.value(offsets[row])));
        }
    }
}

/// Appends the mapped dictionary values of the selected rows.
#[expect(clippy::too_many_arguments, reason = "one loop for two shapes of values")]
fn gather<V: Copy, T: Copy>(
    page: &CodesPage<'_>,
    selection: &Selection,
    blocks: Range<usize>,
    values: &[V],
    map: impl Fn(V) -> T,
    zero: V,
    out: &mut Vec<T>,
    nulls: &mut NullBits,
) -> Result<()> {
    let before = out.len();
    let (mut null_seen, mut past_seen) = (false, None);
    for_codes(page, selection, blocks.clone(), |code| {
        out.push(match values.get(code as usize) {
            Some(value) => map(*value),
            None => {
                null_seen = true;
                if code as usize > values.len() {
                    past_seen = Some(code);
                }
                map(zero)
            }
        });
    });
    if let Some(code) = past_seen {
        return Err(past(code, values.len()));
    }
    if null_seen {
        // Rare: the codes are looked at again, so that pages without NULLs pay nothing.
        for_codes(page, selection, blocks, |code| nulls.push(code as usize == values.len()));
    } else {
        nulls.push_valid(out.len() - before);
    }
    Ok(())
}
