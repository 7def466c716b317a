//! Values and codes to pages.

use coload_types::{Bitmap, Error, Plain, Result, Values};

use super::{Page, PageDetail};
use crate::bitpack::{BLOCK, block_bytes, pack_block, packed_bytes, width_of};
use crate::{EncodedStrings, SymbolEncoder};

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
    // Pages wait in memory; what was reserved too much would wait with them.
    bytes.shrink_to_fit();
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
    // Pages wait in memory; what was reserved too much would wait with them.
    bytes.shrink_to_fit();
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
    // The text comes last, when it is known how long what stands before it is: a long one is not moved.
    let mut bytes = Vec::new();
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
    bytes.reserve_exact(text.len());
    bytes.extend_from_slice(text);
    Ok(Page {
        detail: PageDetail::Text { symbols },
        rows: lengths.len() as u32,
        nulls: null_count,
        bytes,
        runs: None,
    })
}

/// A page of strings that were encoded; as they are if that is shorter. See [`encode_text`].
///
/// # Errors
/// As [`encode_text`] and [`EncodedStrings::settle`].
pub fn encode_symbols(
    strings: &EncodedStrings,
    nulls: Option<&Bitmap>,
    encoder: &SymbolEncoder,
) -> Result<Page> {
    let (strings, symbols) = strings.settle(encoder)?;
    encode_text(&strings.bytes, &strings.lengths, nulls, symbols)
}
