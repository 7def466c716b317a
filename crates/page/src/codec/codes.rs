//! Codes of the segment's dictionary: blocks of code less the page's base, bit-packed, one width for the page.
//!
//! NULL is the code after the dictionary's last.

use super::{Codec, CodecId, Content};
use crate::bitpack::{BLOCK, block_bytes, packed_bytes, width_of};
use crate::page::{Page, PageDetail, PageMeta, block_rows};
use crate::view::PageView;
use coload_types::{Error, Result};

/// Codes as offsets from the least of their page.
#[derive(Debug)]
pub(super) struct Codes;

impl Codec for Codes {
    fn name(&self) -> &'static str {
        "dictionary"
    }

    fn content(&self) -> Content {
        Content::Codes
    }

    fn open<'a>(&self, bytes: &'a [u8], meta: &PageMeta) -> Result<PageView<'a>> {
        let PageDetail::Codes { base, max, width } = meta.detail else {
            return Err(Error::Corrupt("page of codes without their range".into()));
        };
        let rows = meta.rows as usize;
        if bytes.len() != packed_bytes(rows, width) {
            return Err(Error::Corrupt("packed codes have another length".into()));
        }
        Ok(PageView::Codes(CodesPage { bytes, rows, base, max, width }))
    }
}

/// A `Codes` page, read in place.
#[derive(Debug, Clone, Copy)]
pub struct CodesPage<'a> {
    /// Blocks of packed numbers, one after the other; each number is a code less `base`.
    pub bytes: &'a [u8],
    /// Rows of the page, and numbers in `bytes`.
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

    /// All codes of the page.
    pub fn codes(&self) -> Vec<u32> {
        let mut codes = Vec::with_capacity(self.rows);
        let mut block = [0; BLOCK];
        for b in 0..self.rows.div_ceil(BLOCK) {
            let count = self.unpack(b, &mut block);
            codes.extend_from_slice(&block[..count]);
        }
        codes
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

        coload_types::simd_dispatch! {
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
            let (rows, nulls) = (codes.len() as u32, nulls as u32);
            Page { codec: CodecId::CODES, detail, rows, nulls, bytes, runs: None }
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
