//! Pages, read in place, block by block.

use coload_types::bytes::ByteReader;
use coload_types::{Error, Physical, Result, Strings};

use super::{PageDetail, PageMeta, block_rows};
use crate::bitpack::{BLOCK, block_bytes, packed_bytes, unpack_block};

/// A `Codes` page, read in place.
#[derive(Debug, Clone, Copy)]
pub struct CodesPage<'a> {
    /// Packed blocks.
    pub bytes: &'a [u8],
    /// Rows.
    pub rows: usize,
    /// Added to each unpacked number.
    pub base: u32,
    /// Largest code that is not NULL.
    pub max: u32,
    /// Bits of a number.
    pub width: u8,
}

impl<'a> CodesPage<'a> {
    /// The packed bytes of a block and its rows.
    pub fn packed(&self, block: usize) -> (&'a [u8], usize) {
        let count = block_rows(self.rows, block);
        let start = block * block_bytes(BLOCK, self.width);
        (&self.bytes[start..start + block_bytes(count, self.width)], count)
    }

    /// Unpacks a block to codes; says how many.
    pub fn unpack(&self, block: usize, out: &mut [u32; BLOCK]) -> usize {
        let (packed, count) = self.packed(block);
        macro_rules! lanes {
            ($ty:ident, $unpack:ident) => {{
                let mut lanes = [0 as $ty; BLOCK];
                crate::bitpack::$unpack(packed, count, self.width, &mut lanes);
                for (o, l) in out.iter_mut().zip(&lanes) {
                    *o = self.base.wrapping_add(u32::from(*l));
                }
            }};
        }
        match self.width {
            0 => out.fill(self.base),
            1..=8 => lanes!(u8, unpack_u8),
            9..=16 => lanes!(u16, unpack_u16),
            _ => lanes!(u32, unpack_u32),
        }
        count
    }
}

/// The blocks of an `Int`, `Wide` or `Text` page, found.
#[derive(Debug, Clone)]
pub struct BlocksPage<'a> {
    nulls: Option<&'a [u8]>,
    heads: &'a [u8],
    widths: &'a [u8],
    /// Start of each block in `packed`, and the end.
    starts: Vec<u32>,
    packed: &'a [u8],
    /// What follows the blocks: the bytes of a `Text` page.
    tail: &'a [u8],
    rows: usize,
    symbols: u32,
}

impl<'a> BlocksPage<'a> {
    fn open(bytes: &'a [u8], meta: &PageMeta, head_bytes: usize, width_max: u8) -> Result<Self> {
        let rows = meta.rows as usize;
        let mut reader = ByteReader::new(bytes);
        let nulls = if meta.nulls > 0 { Some(reader.take(rows.div_ceil(8))?) } else { None };
        let blocks = rows.div_ceil(BLOCK);
        let heads = reader.take(blocks * head_bytes)?;
        let widths = reader.take(blocks)?;
        let mut starts = Vec::with_capacity(blocks + 1);
        let mut at = 0usize;
        for (b, width) in widths.iter().enumerate() {
            if *width > width_max {
                return Err(Error::Corrupt(format!("width {width} in a page")));
            }
            starts.push(at as u32);
            let count = block_rows(rows, b);
            at +=
                block_bytes(count, (*width).min(64)) + block_bytes(count, width.saturating_sub(64));
        }
        if at > u32::MAX as usize {
            return Err(Error::Corrupt("page over 4 GiB".into()));
        }
        starts.push(at as u32);
        let packed = reader.take(at)?;
        let tail = reader.take(reader.remaining())?;
        let symbols = if let PageDetail::Text { symbols } = meta.detail { symbols } else { 0 };
        Ok(BlocksPage { nulls, heads, widths, starts, packed, tail, rows, symbols })
    }

    /// Rows.
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
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|n| n[row / 8] >> (row % 8) & 1 == 1)
    }

    /// Packed offsets of a block, their width and count.
    pub fn packed(&self, block: usize) -> (&'a [u8], u8, usize) {
        let range = self.starts[block] as usize..self.starts[block + 1] as usize;
        (&self.packed[range], self.widths[block], block_rows(self.rows, block))
    }

    /// The base of a block of an `Int` page.
    pub fn int_base(&self, block: usize) -> i64 {
        let mut raw = [0; 8];
        raw.copy_from_slice(&self.heads[block * 8..block * 8 + 8]);
        i64::from_le_bytes(raw)
    }

    /// Unpacks a block of an `Int` page; says how many values.
    pub fn unpack_int(&self, block: usize, out: &mut [i64; BLOCK]) -> usize {
        let (packed, width, count) = self.packed(block);
        let base = self.int_base(block);
        let mut offsets = [0; BLOCK];
        unpack_block(packed, count, width, &mut offsets);
        for (o, v) in out.iter_mut().zip(&offsets) {
            *o = base.wrapping_add(*v as i64);
        }
        count
    }

    /// Unpacks a block of a `Wide` page; says how many values.
    pub fn unpack_wide(&self, block: usize, out: &mut [i128; BLOCK]) -> usize {
        let (packed, width, count) = self.packed(block);
        let mut raw = [0; 16];
        raw.copy_from_slice(&self.heads[block * 16..block * 16 + 16]);
        let base = i128::from_le_bytes(raw);
        let mut part = [0; BLOCK];
        unpack_block(packed, count, width.min(64), &mut part);
        for (o, v) in out.iter_mut().zip(&part) {
            *o = base.wrapping_add(i128::from(*v));
        }
        if width > 64 {
            unpack_block(&packed[block_bytes(count, 64)..], count, width - 64, &mut part);
            for (o, v) in out.iter_mut().zip(&part) {
                *o = o.wrapping_add((u128::from(*v) << 64) as i128);
            }
        }
        count
    }

    /// Where the strings of a block stand: `ends` gets where each ends in the bytes returned.
    ///
    /// # Errors
    /// `Corrupt` when the lengths do not add up.
    pub fn text_block(&self, block: usize, ends: &mut [u32; BLOCK]) -> Result<(&'a [u8], usize)> {
        let end_of = |b: usize| {
            let mut raw = [0; 4];
            raw.copy_from_slice(&self.heads[b * 4..b * 4 + 4]);
            u32::from_le_bytes(raw) as usize
        };
        let start = if block == 0 { 0 } else { end_of(block - 1) };
        let bytes = self
            .tail
            .get(start..end_of(block))
            .ok_or_else(|| Error::Corrupt("text block out of its page".into()))?;
        let (packed, width, count) = self.packed(block);
        let mut lengths = [0; BLOCK];
        unpack_block(packed, count, width, &mut lengths);
        let mut at = 0u64;
        for (e, l) in ends.iter_mut().zip(&lengths[..count]) {
            at += *l;
            *e = at as u32;
        }
        if at != bytes.len() as u64 {
            return Err(Error::Corrupt("text lengths do not add up".into()));
        }
        Ok((bytes, count))
    }

    /// Bytes of all strings of a `Text` page, as they are stored.
    pub fn text_bytes(&self) -> usize {
        self.tail.len()
    }

    /// 1-based number of the symbol table of a `Text` page; 0 for none.
    pub fn symbols(&self) -> u32 {
        self.symbols
    }
}

/// A page, read in place.
#[derive(Debug, Clone)]
pub enum PageView<'a> {
    /// Codes of the segment's dictionary.
    Codes(CodesPage<'a>),
    /// Numbers.
    Int(BlocksPage<'a>),
    /// Wide numbers.
    Wide(BlocksPage<'a>),
    /// Byte strings.
    Text(BlocksPage<'a>),
}

impl<'a> PageView<'a> {
    /// Finds the parts of a page and checks that they lie inside its bytes.
    ///
    /// # Errors
    /// `Corrupt` when they do not.
    pub fn open(bytes: &'a [u8], meta: &PageMeta) -> Result<Self> {
        let rows = meta.rows as usize;
        match meta.detail {
            PageDetail::Codes { base, max, width } => {
                if bytes.len() != packed_bytes(rows, width) {
                    return Err(Error::Corrupt("packed codes have another length".into()));
                }
                Ok(PageView::Codes(CodesPage { bytes, rows, base, max, width }))
            }
            PageDetail::Int { .. } => Ok(PageView::Int(BlocksPage::open(bytes, meta, 8, 64)?)),
            PageDetail::Wide { .. } => Ok(PageView::Wide(BlocksPage::open(bytes, meta, 16, 128)?)),
            PageDetail::Text { .. } => Ok(PageView::Text(BlocksPage::open(bytes, meta, 4, 32)?)),
        }
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
}

/// Appends the strings of a whole `Text` page to `out`, decoded.
///
/// # Errors
/// `Corrupt` when the page names a symbol table that is not there, or lengths do not add up.
pub fn decode_text(
    page: &BlocksPage<'_>,
    tables: &[crate::SymbolDecoder],
    out: &mut Strings,
) -> Result<()> {
    let table = match page.symbols() {
        0 => None,
        n => Some(
            tables
                .get(n as usize - 1)
                .ok_or_else(|| Error::Corrupt(format!("no symbol table {n}")))?,
        ),
    };
    let mut ends = [0; BLOCK];
    for block in 0..page.rows().div_ceil(BLOCK) {
        let (bytes, count) = page.text_block(block, &mut ends)?;
        let mut start = 0;
        for end in &ends[..count] {
            let string = &bytes[start..*end as usize];
            match table {
                Some(table) => table.decode(string, &mut out.bytes),
                None => out.bytes.extend_from_slice(string),
            }
            if out.bytes.len() > u32::MAX as usize {
                return Err(Error::Limit("text of one page over 4 GiB".into()));
            }
            out.ends.push(out.bytes.len() as u32);
            start = *end as usize;
        }
    }
    Ok(())
}
