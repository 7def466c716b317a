//! Pages, read in place, block by block, whatever their codec.

use crate::SymbolDecoder;
use crate::bitpack::BLOCK;
use crate::codec::CodesPage;
use crate::page::{PageMeta, block_rows};
use coload_types::{Error, Physical, Result, Strings, Values};
use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

/// A block of numbers as a base and packed offsets from it, in steps.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Packed offsets ([`crate::bitpack`]); that of a NULL row is 0.
    pub packed: &'a [u8],
    /// Bits of an offset.
    pub width: u8,
    /// Rows of the block, and offsets in it; at most 1,024.
    pub count: usize,
    /// Value of offset 0.
    pub base: i64,
    /// What is added to it for each 1 of an offset; not 0. In a page that lies the sum may wrap.
    pub step: u64,
}

impl Frame<'_> {
    /// The value of an offset.
    #[inline(always)]
    pub fn value(&self, offset: u64) -> i64 {
        self.base.wrapping_add(offset.wrapping_mul(self.step) as i64)
    }
}

/// The blocks of a page of numbers.
pub trait IntBlocks<'a>: Debug + Send + Sync {
    /// The block as packed offsets, if it is stored so: tests are made on these.
    fn frame(&self, _block: usize) -> Option<Frame<'a>> {
        None
    }

    /// Unpacks a block; what follows its rows in `out` is unspecified.
    fn unpack(&self, block: usize, out: &mut [i64; BLOCK]);
}

/// The blocks of a page of wide numbers.
pub trait WideBlocks: Debug + Send + Sync {
    /// Unpacks a block; what follows its rows in `out` is unspecified.
    fn unpack(&self, block: usize, out: &mut [i128; BLOCK]);
}

/// The blocks of a page of strings.
pub trait TextBlocks<'a>: Debug + Send + Sync {
    /// The strings of a block, in symbols if the page names a table of them.
    ///
    /// # Errors
    /// `Corrupt` when they do not add up.
    fn strings<'s>(&'s self, block: usize, scratch: &'s mut TextScratch) -> Result<TextBlock<'s>>;

    /// All strings, one after the other, if they are stored so.
    fn stored(&self) -> Option<&'a [u8]> {
        None
    }
}

/// Room for the strings of one block.
#[derive(Debug, Clone)]
pub struct TextScratch {
    /// End of each string of the block in its bytes.
    pub ends: [u32; BLOCK],
    /// Strings that are not stored one after the other.
    pub bytes: Vec<u8>,
}

impl Default for TextScratch {
    fn default() -> Self {
        TextScratch { ends: [0; BLOCK], bytes: Vec::new() }
    }
}

/// Strings of a block, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct TextBlock<'s> {
    /// Strings of the block, one after the other.
    pub bytes: &'s [u8],
    /// Where each ends in `bytes`, in order; the last where `bytes` does. What follows those of the block's rows is
    /// unspecified. An array, as a row of a block is known to be in it.
    pub ends: &'s [u32; BLOCK],
    /// Rows of the block, and ends in `ends` that mean something.
    pub count: usize,
}

impl<'s> TextBlock<'s> {
    /// Where each string ends.
    pub fn ends(&self) -> &'s [u32] {
        &self.ends[..self.count]
    }

    /// String `row` of the block.
    #[inline(always)]
    pub fn get(&self, row: usize) -> &'s [u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.bytes[start..self.ends[row] as usize]
    }
}

/// A page of values, read in place.
#[derive(Debug)]
pub struct ValuesPage<'a, B: ?Sized> {
    nulls: Option<&'a [u8]>,
    rows: usize,
    symbols: u32,
    blocks: Arc<B>,
}

/// A page of numbers.
pub type IntPage<'a> = ValuesPage<'a, dyn IntBlocks<'a> + 'a>;
/// A page of wide numbers.
pub type WidePage<'a> = ValuesPage<'a, dyn WideBlocks + 'a>;
/// A page of strings.
pub type TextPage<'a> = ValuesPage<'a, dyn TextBlocks<'a> + 'a>;

impl<B: ?Sized> Clone for ValuesPage<'_, B> {
    fn clone(&self) -> Self {
        let ValuesPage { nulls, rows, symbols, blocks } = self;
        ValuesPage { nulls: *nulls, rows: *rows, symbols: *symbols, blocks: Arc::clone(blocks) }
    }
}

impl<'a, B: ?Sized> ValuesPage<'a, B> {
    /// A page with these null bits, if it has NULLs, and blocks.
    pub(crate) fn new(meta: &PageMeta, nulls: Option<&'a [u8]>, blocks: Arc<B>) -> Self {
        ValuesPage { nulls, rows: meta.rows as usize, symbols: meta.detail.symbols(), blocks }
    }

    /// Number of rows of the page, NULLs among them.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the page has NULLs.
    pub fn has_nulls(&self) -> bool {
        self.nulls.is_some()
    }

    /// The page's null bits, low bit first, if it has NULLs.
    pub fn null_bits(&self) -> Option<&'a [u8]> {
        self.nulls
    }

    /// Whether row `row` of the page is NULL.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|n| n[row / 8] >> (row % 8) & 1 == 1)
    }
}

impl<'a> IntPage<'a> {
    /// A block as packed offsets, if it is stored so.
    #[inline]
    pub fn frame(&self, block: usize) -> Option<Frame<'a>> {
        self.blocks.frame(block)
    }

    /// Unpacks a block; says how many values.
    pub fn unpack_int(&self, block: usize, out: &mut [i64; BLOCK]) -> usize {
        self.blocks.unpack(block, out);
        block_rows(self.rows, block)
    }

    /// All values of the page; those of NULL rows are unspecified.
    pub fn values(&self) -> Vec<i64> {
        let mut values = Vec::with_capacity(self.rows);
        self.append(&mut values);
        values
    }

    fn append(&self, values: &mut Vec<i64>) {
        let mut block = [0; BLOCK];
        for b in 0..self.rows.div_ceil(BLOCK) {
            let count = self.unpack_int(b, &mut block);
            values.extend_from_slice(&block[..count]);
        }
    }
}

impl WidePage<'_> {
    /// Unpacks a block; says how many values.
    pub fn unpack_wide(&self, block: usize, out: &mut [i128; BLOCK]) -> usize {
        self.blocks.unpack(block, out);
        block_rows(self.rows, block)
    }

    /// All values of the page; those of NULL rows are unspecified.
    pub fn values(&self) -> Vec<i128> {
        let mut values = Vec::with_capacity(self.rows);
        self.append(&mut values);
        values
    }

    fn append(&self, values: &mut Vec<i128>) {
        let mut block = [0; BLOCK];
        for b in 0..self.rows.div_ceil(BLOCK) {
            let count = self.unpack_wide(b, &mut block);
            values.extend_from_slice(&block[..count]);
        }
    }
}

impl<'a> TextPage<'a> {
    /// The strings of a block, in the symbols of table [`Self::symbols`].
    ///
    /// # Errors
    /// `Corrupt` when they do not add up.
    pub fn text_block<'s>(
        &'s self,
        block: usize,
        scratch: &'s mut TextScratch,
    ) -> Result<TextBlock<'s>> {
        self.blocks.strings(block, scratch)
    }

    /// 1-based number of the symbol table; 0 for none.
    pub fn symbols(&self) -> u32 {
        self.symbols
    }

    /// The decoder of the page's symbols among those of its column.
    ///
    /// # Errors
    /// `Corrupt` when it is not there.
    pub fn decoder<'d>(&self, decoders: &'d [SymbolDecoder]) -> Result<Option<&'d SymbolDecoder>> {
        match self.symbols {
            0 => Ok(None),
            n => match decoders.get(n as usize - 1) {
                Some(decoder) => Ok(Some(decoder)),
                None => Err(Error::Corrupt(format!("no symbol table {n}"))),
            },
        }
    }

    /// All strings, in symbols: all bytes, and where each ends.
    ///
    /// # Errors
    /// `Corrupt` when they do not add up; `Limit` when they have over 4 GiB.
    pub fn all_strings(&self) -> Result<(Cow<'a, [u8]>, Vec<u32>)> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(self.rows));
        let stored = self.blocks.stored();
        let mut scratch = TextScratch::default();
        let mut start = 0;
        for block in 0..self.rows.div_ceil(BLOCK) {
            let strings = self.text_block(block, &mut scratch)?;
            if stored.is_none() {
                bytes.extend_from_slice(strings.bytes);
            }
            if u64::from(start) + strings.bytes.len() as u64 > u64::from(u32::MAX) {
                return Err(Error::Limit("text of one page over 4 GiB".into()));
            }
            ends.extend(strings.ends().iter().map(|end| start + end));
            start += strings.bytes.len() as u32;
        }
        Ok((stored.map_or(Cow::Owned(bytes), Cow::Borrowed), ends))
    }

    /// Appends the strings to `out`, decoded.
    ///
    /// # Errors
    /// `Corrupt` when the page names a symbol table that is not there, or lengths do not add up.
    pub fn decode(&self, decoders: &[SymbolDecoder], out: &mut Strings) -> Result<()> {
        let table = self.decoder(decoders)?;
        let mut scratch = TextScratch::default();
        for block in 0..self.rows.div_ceil(BLOCK) {
            let strings = self.text_block(block, &mut scratch)?;
            for row in 0..strings.count {
                match table {
                    Some(table) => table.decode(strings.get(row), &mut out.bytes),
                    None => out.bytes.extend_from_slice(strings.get(row)),
                }
                if out.bytes.len() > u32::MAX as usize {
                    return Err(Error::Limit("text of one page over 4 GiB".into()));
                }
                out.ends.push(out.bytes.len() as u32);
            }
        }
        Ok(())
    }
}

/// A page, read in place.
#[derive(Debug, Clone)]
pub enum PageView<'a> {
    /// Codes of the segment's dictionary.
    Codes(CodesPage<'a>),
    /// Numbers of 64 bits.
    Int(IntPage<'a>),
    /// Numbers of 128 bits.
    Wide(WidePage<'a>),
    /// Byte strings.
    Text(TextPage<'a>),
}

impl<'a> PageView<'a> {
    /// Finds the parts of a page and checks that they lie inside its bytes.
    ///
    /// # Errors
    /// `Corrupt` when they do not, or the page's codec is not known.
    pub fn open(bytes: &'a [u8], meta: &PageMeta) -> Result<Self> {
        meta.codec.codec()?.open(bytes, meta)
    }

    /// The shape of the values, unless they are codes.
    pub fn physical(&self) -> Option<Physical> {
        match self {
            PageView::Codes(_) => None,
            PageView::Int(_) => Some(Physical::Int),
            PageView::Wide(_) => Some(Physical::Wide),
            PageView::Text(_) => Some(Physical::Bytes),
        }
    }

    /// The null bits of a page of values, low bit first, if it has NULLs. Codes have none.
    pub fn null_bits(&self) -> Option<&'a [u8]> {
        match self {
            PageView::Codes(_) => None,
            PageView::Int(page) => page.null_bits(),
            PageView::Wide(page) => page.null_bits(),
            PageView::Text(page) => page.null_bits(),
        }
    }

    /// Number of rows of the page, NULLs among them.
    pub fn rows(&self) -> usize {
        match self {
            PageView::Codes(page) => page.rows,
            PageView::Int(page) => page.rows(),
            PageView::Wide(page) => page.rows(),
            PageView::Text(page) => page.rows(),
        }
    }

    /// Appends the values of a page without codes to `out`, all but which are NULL: those are unspecified.
    ///
    /// # Errors
    /// `Corrupt` when the page holds codes or values of another shape, or text that does not add up.
    pub fn append_values(&self, decoders: &[SymbolDecoder], out: &mut Values) -> Result<()> {
        match (self, out) {
            (PageView::Int(page), Values::Int(values)) => page.append(values),
            (PageView::Wide(page), Values::Wide(values)) => page.append(values),
            (PageView::Text(page), Values::Bytes(strings)) => page.decode(decoders, strings)?,
            _ => return Err(Error::Corrupt("page of another type".into())),
        }
        Ok(())
    }
}
