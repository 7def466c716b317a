//! Bit-packed vectors in blocks of 1,024 values, laid out for SIMD.
//!
//! ```text
//!   width 1..8     lane u8    128 lanes x  8 rows
//!   width 9..16    lane u16    64 lanes x 16 rows
//!   width 17..32   lane u32    32 lanes x 32 rows
//!   width 33..64   lane u64    16 lanes x 64 rows
//!
//!   value i stands in row i / lanes, lane i % lanes.
//!   Lane l of all rows is one little-endian bit stream: row r has its bits
//!   r * width .. (r + 1) * width. Word w of all lanes stands together: 128 bytes.
//! ```
//!
//! A short last block keeps only the words that its rows reach, so that a block of n values has
//! `ceil(ceil(n / lanes) * width / lane bits) * 128` bytes. Width 0 has no bytes.
//!
//! Cost: one shift or two, an `or` and an `and` for each vector of values; no branch in a value.
//!
//! Source: Afroozeh and Boncz, "The FastLanes Compression Layout", PVLDB 16(9), 2023, without the
//! transposed order, which only delta coding needs.

use coload_types::simd_dispatch;

/// Values in a full block.
pub const BLOCK: usize = 1024;
/// Bytes of one word of all lanes.
pub const WORD_BYTES: usize = 128;

/// Bits needed to tell `0..=max` apart.
pub fn width_of(max: u64) -> u8 {
    (64 - max.leading_zeros()) as u8
}

/// Bits of the lane that holds values of `width`.
pub fn lane_bits(width: u8) -> usize {
    match width {
        0..=8 => 8,
        9..=16 => 16,
        17..=32 => 32,
        _ => 64,
    }
}

/// Bytes that a block of `count` values of `width` bits takes.
pub fn block_bytes(count: usize, width: u8) -> usize {
    let bits = lane_bits(width);
    let rows = count.div_ceil(BLOCK / bits);
    (rows * width as usize).div_ceil(bits) * WORD_BYTES
}

/// Bytes of `count` values in blocks, all of one width.
pub fn packed_bytes(count: usize, width: u8) -> usize {
    count / BLOCK * block_bytes(BLOCK, width) + block_bytes(count % BLOCK, width)
}

/// An unsigned integer that can be a lane.
pub trait Lane: Copy + Default + Into<u64> + 'static {
    /// Bits in a lane.
    const BITS: usize;
    /// The low bits of `value`.
    fn truncate(value: u64) -> Self;
}

macro_rules! lane {
    ($ty:ident, $pack_inner:ident, $unpack_inner:ident, $pack:ident, $unpack:ident) => {
        impl Lane for $ty {
            const BITS: usize = $ty::BITS as usize;
            fn truncate(value: u64) -> Self {
                value as $ty
            }
        }

        #[inline(always)]
        fn $pack_inner(input: &[$ty; BLOCK], count: usize, width: u8, out: &mut [u8]) {
            const BITS: usize = $ty::BITS as usize;
            const LANES: usize = BLOCK / BITS;
            let mut words = out.chunks_exact_mut(WORD_BYTES);
            let mut acc = [0 as $ty; LANES];
            let mut filled = 0usize;
            let width = width as usize;
            for source in input.chunks_exact(LANES).take(count.div_ceil(LANES)) {
                for (a, v) in acc.iter_mut().zip(source) {
                    *a |= *v << filled;
                }
                filled += width;
                if filled >= BITS {
                    if let Some(word) = words.next() {
                        for (bytes, a) in word.chunks_exact_mut(BITS / 8).zip(&acc) {
                            bytes.copy_from_slice(&a.to_le_bytes());
                        }
                    }
                    filled -= BITS;
                    if filled == 0 {
                        acc = [0; LANES];
                    } else {
                        for (a, v) in acc.iter_mut().zip(source) {
                            *a = *v >> (width - filled);
                        }
                    }
                }
            }
            if filled > 0
                && let Some(word) = words.next()
            {
                for (bytes, a) in word.chunks_exact_mut(BITS / 8).zip(&acc) {
                    bytes.copy_from_slice(&a.to_le_bytes());
                }
            }
        }

        #[inline(always)]
        fn $unpack_inner(packed: &[u8], count: usize, width: u8, out: &mut [$ty; BLOCK]) {
            const BITS: usize = $ty::BITS as usize;
            const LANES: usize = BLOCK / BITS;
            let width = width as usize;
            let mask: $ty = if width == BITS { $ty::MAX } else { ((1 as $ty) << width) - 1 };
            let load = |bytes: &[u8]| {
                let mut raw = [0; BITS / 8];
                raw.copy_from_slice(bytes);
                $ty::from_le_bytes(raw)
            };
            for (row, target) in
                out.chunks_exact_mut(LANES).take(count.div_ceil(LANES)).enumerate()
            {
                let (word, shift) = (row * width / BITS, row * width % BITS);
                let low = &packed[word * WORD_BYTES..][..WORD_BYTES];
                if shift + width <= BITS {
                    for (o, b) in target.iter_mut().zip(low.chunks_exact(BITS / 8)) {
                        *o = load(b) >> shift & mask;
                    }
                } else {
                    let high = &packed[(word + 1) * WORD_BYTES..][..WORD_BYTES];
                    let pairs = low.chunks_exact(BITS / 8).zip(high.chunks_exact(BITS / 8));
                    for (o, (b, h)) in target.iter_mut().zip(pairs) {
                        *o = (load(b) >> shift | load(h) << (BITS - shift)) & mask;
                    }
                }
            }
        }

        simd_dispatch! {
            /// Packs the first `count` values of a block; `out` has [`block_bytes`] bytes, and each
            /// value fits `width`, which is 1 to the lane's bits.
            pub fn $pack(input: &[$ty; BLOCK], count: usize, width: u8, out: &mut [u8]) = $pack_inner;
        }
        simd_dispatch! {
            /// Unpacks a block of `count` values; what follows them in `out` is unspecified.
            ///
            /// # Panics
            /// When `packed` is shorter than [`block_bytes`].
            pub fn $unpack(packed: &[u8], count: usize, width: u8, out: &mut [$ty; BLOCK]) = $unpack_inner;
        }
    };
}

lane!(u8, pack_u8_inner, unpack_u8_inner, pack_u8, unpack_u8);
lane!(u16, pack_u16_inner, unpack_u16_inner, pack_u16, unpack_u16);
lane!(u32, pack_u32_inner, unpack_u32_inner, pack_u32, unpack_u32);
lane!(u64, pack_u64_inner, unpack_u64_inner, pack_u64, unpack_u64);

/// Appends one block of at most 1,024 offsets, which all fit `width`, to `out`.
pub fn pack_block(values: &[u64], width: u8, out: &mut Vec<u8>) {
    if width == 0 || values.is_empty() {
        return;
    }
    let start = out.len();
    out.resize(start + block_bytes(values.len(), width), 0);
    let target = &mut out[start..];
    macro_rules! pack {
        ($ty:ident, $pack:ident) => {{
            let mut block = [0 as $ty; BLOCK];
            for (b, v) in block.iter_mut().zip(values) {
                *b = *v as $ty;
            }
            $pack(&block, values.len(), width, target);
        }};
    }
    match lane_bits(width) {
        8 => pack!(u8, pack_u8),
        16 => pack!(u16, pack_u16),
        32 => pack!(u32, pack_u32),
        _ => pack!(u64, pack_u64),
    }
}

/// Unpacks a block of any width to `u64`.
pub fn unpack_block(packed: &[u8], count: usize, width: u8, out: &mut [u64; BLOCK]) {
    if width == 0 {
        out.fill(0);
        return;
    }
    macro_rules! unpack {
        ($ty:ident, $unpack:ident) => {{
            let mut block = [0 as $ty; BLOCK];
            $unpack(packed, count, width, &mut block);
            for (o, b) in out.iter_mut().zip(&block) {
                *o = u64::from(*b);
            }
        }};
    }
    match lane_bits(width) {
        8 => unpack!(u8, unpack_u8),
        16 => unpack!(u16, unpack_u16),
        32 => unpack!(u32, unpack_u32),
        _ => unpack_u64(packed, count, width, out),
    }
}

/// Value `index` of a block, without unpacking the others.
pub fn unpack_one(packed: &[u8], index: usize, width: u8) -> u64 {
    if width == 0 {
        return 0;
    }
    let bits = lane_bits(width);
    let lanes = BLOCK / bits;
    let (row, lane) = (index / lanes, index % lanes);
    let width = width as usize;
    let (word, shift) = (row * width / bits, row * width % bits);
    let load = |word: usize| {
        let at = word * WORD_BYTES + lane * (bits / 8);
        let mut raw = [0u8; 8];
        raw[..bits / 8].copy_from_slice(&packed[at..at + bits / 8]);
        u64::from_le_bytes(raw)
    };
    let mut value = load(word) >> shift;
    if shift + width > bits {
        value |= load(word + 1) << (bits - shift);
    }
    if width == 64 { value } else { value & ((1 << width) - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_and_count_comes_back() {
        let mut state = 7u64;
        for width in 0..=64u8 {
            for count in [1, 15, 63, 64, 65, 127, 500, 1023, 1024] {
                let values: Vec<u64> = (0..count)
                    .map(|_| {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(99991);
                        let v = state ^ state >> 29;
                        if width == 64 { v } else { v & ((1 << width) - 1) }
                    })
                    .collect();
                let mut packed = Vec::new();
                pack_block(&values, width, &mut packed);
                assert_eq!(packed.len(), block_bytes(count, width));
                let mut out = [0; BLOCK];
                unpack_block(&packed, count, width, &mut out);
                assert_eq!(&out[..count], &values[..], "width {width} count {count}");
                for index in [0, count / 2, count - 1] {
                    assert_eq!(unpack_one(&packed, index, width), values[index]);
                }
            }
        }
    }

    #[test]
    fn width_is_that_of_the_largest_value() {
        assert_eq!(width_of(0), 0);
        assert_eq!(width_of(1), 1);
        assert_eq!(width_of(255), 8);
        assert_eq!(width_of(u64::MAX), 64);
    }
}
