//! A page: the values of one column of one fragment, encoded.
//!
//! ```text
//!   Codes   blocks of codes less the page's base, bit-packed, one width for the page
//!   Int     [null bits] bases: i64 per block; widths: u8 per block; blocks of value - base
//!   Wide    [null bits] bases: i128 per block; widths: u8 per block; blocks of the low 64 bits of
//!           value - base, each followed by its block of the high bits when the width is over 64
//!   Text    [null bits] ends: u32 per block; widths: u8 per block; blocks of lengths; bytes
//! ```
//!
//! A block is 1,024 rows, the last one shorter ([`crate::bitpack`]). Null bits, `ceil(rows / 8)`
//! bytes, stand only in a page with NULLs; a NULL row has offset 0 or length 0. In a `Codes` page
//! NULL is the code after the dictionary's last. `Text` bytes are codes of the column's symbol table
//! number `symbols - 1`, or the strings themselves when `symbols` is 0.
//!
//! Rows reach the reader in blocks: a scan unpacks 1,024 values into a buffer that stays in the
//! first-level cache.

use crate::bitpack::{BLOCK, block_bytes, pack_block, packed_bytes, unpack_block, width_of};
use crate::bytes::{ByteReader, put_signed, put_varint};
use crate::runs::Runs;
use crate::{Bitmap, EncodedStrings, Error, Physical, Plain, Result, Strings, Values};

/// Stands before the encoding of a page that is stored as runs.
const RUNS_MARK: u8 = 0x80;

/// What a page says of its encoding, and the range of its values that are not NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageDetail {
    /// Bit-packed codes of the segment's dictionary.
    Codes {
        /// Subtracted from each code; the smallest code of the page.
        base: u32,
        /// The largest code that is not NULL (`base` when all are NULL).
        max: u32,
        /// Bits of a code less the base.
        width: u8,
    },
    /// Numbers by frame of reference.
    Int {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// Wide numbers by frame of reference.
    Wide {
        /// Smallest value.
        min: i128,
        /// Largest value.
        max: i128,
    },
    /// Byte strings.
    Text {
        /// 1-based number of the column's symbol table; 0 for bytes as they are.
        symbols: u32,
    },
}

impl PageDetail {
    /// Counts the symbol table of a `Text` page from `before` tables on.
    pub fn shift_symbols(&mut self, before: u32) {
        if let PageDetail::Text { symbols } = self
            && *symbols > 0
        {
            *symbols += before;
        }
    }
}

/// A page's entry in its column's index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageMeta {
    /// Encoding and range.
    pub detail: PageDetail,
    /// Rows.
    pub rows: u32,
    /// NULL rows.
    pub nulls: u32,
    /// Where the bytes stand in the segment file.
    pub offset: u64,
    /// How many there are.
    pub bytes: u64,
    /// [`crate::bytes::checksum`] of them.
    pub checksum: u64,
    /// Set when the bytes are runs ([`crate::runs`]).
    pub runs: Option<Runs>,
}

/// A page before it has a place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Encoding and range.
    pub detail: PageDetail,
    /// Rows.
    pub rows: u32,
    /// NULL rows.
    pub nulls: u32,
    /// The encoded values.
    pub bytes: Vec<u8>,
    /// Set when the bytes are runs ([`crate::runs`]).
    pub runs: Option<Runs>,
}

impl Page {
    /// The page, read in place.
    ///
    /// # Errors
    /// `Corrupt` when its bytes do not agree with its counts.
    pub fn view(&self) -> Result<PageView<'_>> {
        assert!(self.runs.is_none(), "runs are expanded before a page is read");
        let meta = self.meta_with(0, 0);
        PageView::open(&self.bytes, &meta)
    }

    fn meta_with(&self, offset: u64, checksum: u64) -> PageMeta {
        PageMeta {
            detail: self.detail.clone(),
            rows: self.rows,
            nulls: self.nulls,
            offset,
            bytes: self.bytes.len() as u64,
            checksum,
            runs: self.runs,
        }
    }

    /// The index entry of this page once it stands at `offset`.
    pub fn meta(&self, offset: u64) -> PageMeta {
        self.meta_with(offset, crate::bytes::checksum(&self.bytes))
    }
}

impl PageMeta {
    /// Appends the entry: encoding u8, then varints, checksum u64; for runs their mark before it.
    pub fn put(&self, out: &mut Vec<u8>) {
        if let Some(runs) = self.runs {
            out.extend([RUNS_MARK, runs.width]);
            put_varint(out, u64::from(runs.count));
            put_varint(out, u64::from(runs.nulls));
        }
        match &self.detail {
            PageDetail::Codes { base, max, width } => {
                out.extend([0, *width]);
                put_varint(out, u64::from(*base));
                put_varint(out, u64::from(*max));
            }
            PageDetail::Int { min, max } => {
                out.push(1);
                put_signed(out, *min);
                put_signed(out, *max);
            }
            PageDetail::Wide { min, max } => {
                out.push(2);
                out.extend(min.to_le_bytes());
                out.extend(max.to_le_bytes());
            }
            PageDetail::Text { symbols } => {
                out.push(3);
                put_varint(out, u64::from(*symbols));
            }
        }
        put_varint(out, u64::from(self.rows));
        put_varint(out, u64::from(self.nulls));
        put_varint(out, self.offset);
        put_varint(out, self.bytes);
        out.extend(self.checksum.to_le_bytes());
    }

    /// Reads what [`Self::put`] wrote.
    pub fn read(reader: &mut ByteReader<'_>) -> Result<Self> {
        let mut encoding = reader.u8()?;
        let mut runs = None;
        if encoding == RUNS_MARK {
            let width = reader.u8()?;
            let (count, nulls) = (reader.varint_u32()?, reader.varint_u32()?);
            runs = Some(Runs { count, nulls, width });
            encoding = reader.u8()?;
        }
        let detail = match encoding {
            0 => PageDetail::Codes {
                width: reader.u8()?,
                base: reader.varint_u32()?,
                max: reader.varint_u32()?,
            },
            1 => PageDetail::Int { min: reader.signed()?, max: reader.signed()? },
            2 => PageDetail::Wide { min: reader.i128()?, max: reader.i128()? },
            3 => PageDetail::Text { symbols: reader.varint_u32()? },
            other => return Err(Error::Corrupt(format!("page encoding {other}"))),
        };
        let meta = PageMeta {
            detail,
            rows: reader.varint_u32()?,
            nulls: reader.varint_u32()?,
            offset: reader.varint()?,
            bytes: reader.varint()?,
            checksum: reader.u64()?,
            runs,
        };
        if meta.nulls > meta.rows || matches!(meta.detail, PageDetail::Codes { width: 33.., .. }) {
            return Err(Error::Corrupt("page counts do not agree".into()));
        }
        Ok(meta)
    }
}

/// Rows in block `block` of a page of `rows`.
pub fn block_rows(rows: usize, block: usize) -> usize {
    rows.saturating_sub(block * BLOCK).min(BLOCK)
}

/// Encodes a plain column; text without symbols.
pub fn encode_plain(column: &Plain) -> Result<Page> {
    let nulls = column.nulls.as_ref();
    match &column.values {
        Values::Int(v) => Ok(encode_int(v, nulls)),
        Values::Wide(v) => Ok(encode_wide(v, nulls)),
        Values::Bytes(v) => {
            let mut previous = 0;
            let lengths = v
                .ends
                .iter()
                .map(|end| {
                    let length = end - previous;
                    previous = *end;
                    length
                })
                .collect::<Vec<_>>();
            encode_text(&v.bytes, &lengths, nulls, 0)
        }
    }
}

macro_rules! encode_codes {
    ($ty:ident, $range_inner:ident, $range:ident, $name:ident) => {
        /// Smallest code, largest code that is not NULL, and how many are NULL.
        #[inline(always)]
        fn $range_inner(codes: &[$ty], null_code: $ty) -> ($ty, $ty, usize) {
            let (mut min, mut max, mut nulls) = ($ty::MAX, 0, 0usize);
            for chunk in codes.chunks(BLOCK) {
                let mut chunk_nulls: $ty = 0;
                for c in chunk {
                    let is_null = *c == null_code;
                    min = min.min(*c);
                    max = max.max(if is_null { 0 } else { *c });
                    chunk_nulls += $ty::from(is_null);
                }
                nulls += chunk_nulls as usize;
            }
            (min, max, nulls)
        }

        crate::simd_dispatch! {
            fn $range(codes: &[$ty], null_code: $ty) -> ($ty, $ty, usize) = $range_inner;
        }

        /// Encodes codes; `null_code`, the dictionary's length, is NULL and no code is above it.
        pub fn $name(codes: &[$ty], null_code: $ty) -> Page {
            let (base, max, nulls) = $range(codes, null_code);
            let max = max.max(base);
            let width = width_of(u64::from(if nulls > 0 { null_code } else { max } - base));
            let mut bytes = vec![0; packed_bytes(codes.len(), width)];
            if width > 0 {
                pack_codes(codes, base, width, &mut bytes);
            }
            let detail = PageDetail::Codes { base: u32::from(base), max: u32::from(max), width };
            Page { detail, rows: codes.len() as u32, nulls: nulls as u32, bytes, runs: None }
        }
    };
}

encode_codes!(u16, code_range_u16_inner, code_range_u16, encode_codes_u16);
encode_codes!(u32, code_range_u32_inner, code_range_u32, encode_codes_u32);

fn pack_codes<T: Copy + Into<u32>>(codes: &[T], base: T, width: u8, mut out: &mut [u8]) {
    let base: u32 = base.into();
    for block in codes.chunks(BLOCK) {
        let (target, rest) = out.split_at_mut(block_bytes(block.len(), width));
        out = rest;
        macro_rules! pack {
            ($ty:ident, $pack:ident) => {{
                let mut lanes = [0 as $ty; BLOCK];
                for (l, c) in lanes.iter_mut().zip(block) {
                    *l = (*c).into().wrapping_sub(base) as $ty;
                }
                crate::bitpack::$pack(&lanes, block.len(), width, target);
            }};
        }
        match width {
            0..=8 => pack!(u8, pack_u8),
            9..=16 => pack!(u16, pack_u16),
            _ => pack!(u32, pack_u32),
        }
    }
}

fn put_nulls(nulls: Option<&Bitmap>, rows: usize, out: &mut Vec<u8>) -> u32 {
    let Some(nulls) = nulls.filter(|n| n.count_ones() > 0) else { return 0 };
    assert_eq!(nulls.len(), rows);
    nulls.put_bytes(out);
    nulls.count_ones() as u32
}

/// Encodes numbers by frame of reference. `nulls`, if given, has a bit for each value.
pub fn encode_int(values: &[i64], nulls: Option<&Bitmap>) -> Page {
    let mut bytes = Vec::with_capacity(values.len() * 4 + 64);
    let null_count = put_nulls(nulls, values.len(), &mut bytes);
    let nulls = nulls.filter(|_| null_count > 0);
    let blocks = values.len().div_ceil(BLOCK);
    let bases_at = bytes.len();
    bytes.resize(bases_at + blocks * 9, 0);
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    let mut offsets = [0u64; BLOCK];
    for (b, block) in values.chunks(BLOCK).enumerate() {
        let is_null = |i: usize| nulls.is_some_and(|n| n.get(b * BLOCK + i));
        let (low, high) = match nulls {
            None => block.iter().fold((i64::MAX, i64::MIN), |(l, h), v| (l.min(*v), h.max(*v))),
            Some(_) => block
                .iter()
                .enumerate()
                .filter(|(i, _)| !is_null(*i))
                .fold((i64::MAX, i64::MIN), |(l, h), (_, v)| (l.min(*v), h.max(*v))),
        };
        if low > high {
            continue; // all NULL: width 0
        }
        (min, max) = (min.min(low), max.max(high));
        for (o, v) in offsets.iter_mut().zip(block) {
            *o = v.wrapping_sub(low) as u64;
        }
        if nulls.is_some() {
            for (i, o) in offsets[..block.len()].iter_mut().enumerate() {
                if is_null(i) {
                    *o = 0;
                }
            }
        }
        let width = width_of(high.wrapping_sub(low) as u64);
        bytes[bases_at + b * 8..][..8].copy_from_slice(&low.to_le_bytes());
        bytes[bases_at + blocks * 8 + b] = width;
        pack_block(&offsets[..block.len()], width, &mut bytes);
    }
    if min > max {
        (min, max) = (0, 0);
    }
    Page {
        detail: PageDetail::Int { min, max },
        rows: values.len() as u32,
        nulls: null_count,
        bytes,
        runs: None,
    }
}

/// Encodes wide numbers by frame of reference.
pub fn encode_wide(values: &[i128], nulls: Option<&Bitmap>) -> Page {
    let mut bytes = Vec::with_capacity(values.len() * 16 + 64);
    let null_count = put_nulls(nulls, values.len(), &mut bytes);
    let nulls = nulls.filter(|_| null_count > 0);
    let blocks = values.len().div_ceil(BLOCK);
    let bases_at = bytes.len();
    bytes.resize(bases_at + blocks * 17, 0);
    let (mut min, mut max) = (i128::MAX, i128::MIN);
    for (b, block) in values.chunks(BLOCK).enumerate() {
        let is_null = |i: usize| nulls.is_some_and(|n| n.get(b * BLOCK + i));
        let (low, high) = block
            .iter()
            .enumerate()
            .filter(|(i, _)| !is_null(*i))
            .fold((i128::MAX, i128::MIN), |(l, h), (_, v)| (l.min(*v), h.max(*v)));
        if low > high {
            continue;
        }
        (min, max) = (min.min(low), max.max(high));
        let offset = |i: usize| if is_null(i) { 0 } else { block[i].wrapping_sub(low) as u128 };
        let width = (128 - (high.wrapping_sub(low) as u128).leading_zeros()) as u8;
        bytes[bases_at + b * 16..][..16].copy_from_slice(&low.to_le_bytes());
        bytes[bases_at + blocks * 16 + b] = width;
        let lows: Vec<u64> = (0..block.len()).map(|i| offset(i) as u64).collect();
        pack_block(&lows, width.min(64), &mut bytes);
        if width > 64 {
            let highs: Vec<u64> = (0..block.len()).map(|i| (offset(i) >> 64) as u64).collect();
            pack_block(&highs, width - 64, &mut bytes);
        }
    }
    if min > max {
        (min, max) = (0, 0);
    }
    Page {
        detail: PageDetail::Wide { min, max },
        rows: values.len() as u32,
        nulls: null_count,
        bytes,
        runs: None,
    }
}

/// Encodes strings that symbols already shortened (table `symbols`, 1-based), or not (0).
///
/// # Errors
/// `Limit` when the page's bytes are over 4 GiB.
pub fn encode_text(
    text: &[u8],
    lengths: &[u32],
    nulls: Option<&Bitmap>,
    symbols: u32,
) -> Result<Page> {
    let mut bytes = Vec::with_capacity(text.len() + lengths.len() * 2 + 64);
    let null_count = put_nulls(nulls, lengths.len(), &mut bytes);
    let blocks = lengths.len().div_ceil(BLOCK);
    let ends_at = bytes.len();
    bytes.resize(ends_at + blocks * 5, 0);
    let mut end = 0u64;
    let mut offsets = [0u64; BLOCK];
    for (b, block) in lengths.chunks(BLOCK).enumerate() {
        let mut max = 0;
        for (o, l) in offsets.iter_mut().zip(block) {
            *o = u64::from(*l);
            end += *o;
            max = max.max(*o);
        }
        let Ok(end) = u32::try_from(end) else {
            return Err(Error::Limit(
                "one column of a fragment is over 4 GiB; lower --chunk-size".into(),
            ));
        };
        let width = width_of(max);
        bytes[ends_at + b * 4..][..4].copy_from_slice(&end.to_le_bytes());
        bytes[ends_at + blocks * 4 + b] = width;
        pack_block(&offsets[..block.len()], width, &mut bytes);
    }
    assert_eq!(end, text.len() as u64);
    bytes.extend_from_slice(text);
    Ok(Page {
        detail: PageDetail::Text { symbols },
        rows: lengths.len() as u32,
        nulls: null_count,
        bytes,
        runs: None,
    })
}

/// Encodes the strings of a page through symbols; see [`encode_text`].
pub fn encode_symbols(
    strings: &EncodedStrings,
    nulls: Option<&Bitmap>,
    symbols: u32,
) -> Result<Page> {
    encode_text(&strings.bytes, &strings.lengths, nulls, symbols)
}

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
