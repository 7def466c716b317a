//! Packed blocks to vectors, unrolled for each width.
//!
//! The layout is that of [`coload_page::bitpack`]. There one loop serves all widths; here the width
//! and the row are constants, so that a row of lanes is two loads, two shifts, an `or`, an `and` and a
//! store, without a branch: 0.1 to 0.2 cycles a value with AVX-512 where the general loop takes 0.8.
//! Lanes of 8 and 16 bits can be widened to 32 on the way.

use coload_page::bitpack::{BLOCK, WORD_BYTES, lane_bits, unpack_u64};
use coload_types::simd_dispatch;

/// A block of 32-bit numbers.
pub type Block32 = [u32; BLOCK];
/// A block of 64-bit numbers.
pub type Block64 = [u64; BLOCK];

macro_rules! lane {
    ($ty:ident, $row:ident, $rows:ident, $by_width:ident, [$($r:literal)*], [$($w:literal)*]) => {
        /// One row of lanes.
        #[inline(always)]
        fn $row<const W: usize, const R: usize, O: From<$ty>>(packed: &[u8], out: &mut [O; BLOCK]) {
            const BITS: usize = $ty::BITS as usize;
            const LANES: usize = BLOCK / BITS;
            let (word, shift) = (R * W / BITS, R * W % BITS);
            let mask = $ty::MAX >> (BITS - W);
            let low = packed[word * WORD_BYTES..][..WORD_BYTES].as_chunks().0;
            let target = &mut out[R * LANES..][..LANES];
            if shift + W <= BITS {
                for (o, low) in target.iter_mut().zip(low) {
                    *o = O::from($ty::from_le_bytes(*low) >> shift & mask);
                }
            } else {
                let high = packed[(word + 1) * WORD_BYTES..][..WORD_BYTES].as_chunks().0;
                for (o, (low, high)) in target.iter_mut().zip(low.iter().zip(high)) {
                    let (low, high) = ($ty::from_le_bytes(*low), $ty::from_le_bytes(*high));
                    *o = O::from((low >> shift | high << (BITS - shift)) & mask);
                }
            }
        }

        #[inline(always)]
        fn $rows<const W: usize, O: From<$ty>>(packed: &[u8], out: &mut [O; BLOCK]) {
            let packed = &packed[..W * WORD_BYTES];
            $($row::<W, $r, O>(packed, out);)*
        }

        #[inline(always)]
        fn $by_width<O: From<$ty>>(packed: &[u8], width: u8, out: &mut [O; BLOCK]) {
            match width {
                $($w => $rows::<$w, O>(packed, out),)*
                _ => {}
            }
        }
    };
}

lane!(u8, row_u8, rows_u8, width_u8, [0 1 2 3 4 5 6 7], [1 2 3 4 5 6 7 8]);
lane!(u16, row_u16, rows_u16, width_u16, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15],
    [9 10 11 12 13 14 15 16]);
lane!(u32, row_u32, rows_u32, width_u32,
    [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31],
    [17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32]);

simd_dispatch! { fn full_u8(packed: &[u8], width: u8, out: &mut [u8; BLOCK]) = width_u8; }
simd_dispatch! { fn full_u16(packed: &[u8], width: u8, out: &mut [u16; BLOCK]) = width_u16; }
simd_dispatch! { fn full_u32(packed: &[u8], width: u8, out: &mut Block32) = width_u32; }
simd_dispatch! { fn full_u8_to_32(packed: &[u8], width: u8, out: &mut Block32) = width_u8; }
simd_dispatch! { fn full_u16_to_32(packed: &[u8], width: u8, out: &mut Block32) = width_u16; }

#[inline(always)]
fn widen_u32_inner(from: &Block32, to: &mut Block64) {
    for (t, f) in to.iter_mut().zip(from) {
        *t = u64::from(*f);
    }
}

simd_dispatch! { fn widen_u32(from: &Block32, to: &mut Block64) = widen_u32_inner; }

/// Asks for the block that follows: the hardware's own prefetching stops at each 4 KiB page.
#[inline(always)]
fn prefetch_after(packed: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let end = packed.as_ptr_range().end;
        for line in (0..packed.len()).step_by(64) {
            // SAFETY: a prefetch of any address is harmless.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(end.wrapping_add(line).cast()) };
        }
    }
}

/// Hands `unpack` the bytes of a full block: those of a short last one with zeros after them.
#[inline(always)]
fn with_full(packed: &[u8], width: u8, unpack: impl FnOnce(&[u8])) {
    let full = usize::from(width) * WORD_BYTES;
    prefetch_after(packed);
    if packed.len() >= full {
        unpack(packed);
    } else {
        let mut padded = [0; 32 * WORD_BYTES];
        padded[..packed.len()].copy_from_slice(packed);
        unpack(&padded[..full]);
    }
}

/// Unpacks offsets of at most 8 bits. What follows a short block's rows is within `width` bits.
pub fn unpack_to_8(packed: &[u8], width: u8, out: &mut [u8; BLOCK]) {
    match width {
        0 => out.fill(0),
        _ => with_full(packed, width, |packed| full_u8(packed, width, out)),
    }
}

/// Unpacks offsets of 9 to 16 bits.
pub fn unpack_to_16(packed: &[u8], width: u8, out: &mut [u16; BLOCK]) {
    with_full(packed, width, |packed| full_u16(packed, width, out));
}

/// Unpacks offsets of at most 32 bits.
pub fn unpack_to_32(packed: &[u8], width: u8, out: &mut Block32) {
    match (width, lane_bits(width)) {
        (0, _) => out.fill(0),
        (_, 8) => with_full(packed, width, |packed| full_u8_to_32(packed, width, out)),
        (_, 16) => with_full(packed, width, |packed| full_u16_to_32(packed, width, out)),
        _ => with_full(packed, width, |packed| full_u32(packed, width, out)),
    }
}

/// Unpacks `count` offsets of any width.
pub fn unpack_to_64(packed: &[u8], count: usize, width: u8, out: &mut Block64) {
    if width > 32 {
        if count < BLOCK {
            out.fill(0);
        }
        unpack_u64(packed, count, width, out);
    } else {
        let mut narrow = [0; BLOCK];
        unpack_to_32(packed, width, &mut narrow);
        widen_u32(&narrow, out);
    }
}

/// Unpacks the offsets of single rows, of at most 32 bits; `visit` gets slot and offset.
#[inline(always)]
pub fn unpack_rows(packed: &[u8], width: u8, rows: &[u16], mut visit: impl FnMut(usize, u32)) {
    prefetch_after(packed);
    macro_rules! rows {
        ($ty:ident) => {{
            const BITS: usize = $ty::BITS as usize;
            const LANES: usize = BLOCK / BITS;
            let words = packed.as_chunks().0;
            let load = |word: usize, lane: usize| {
                words.get(word * LANES + lane).map_or(0, |w| $ty::from_le_bytes(*w))
            };
            let width = usize::from(width);
            let mask = $ty::MAX >> (BITS - width);
            for (slot, row) in rows.iter().enumerate() {
                let (row, lane) = (usize::from(*row) / LANES, usize::from(*row) % LANES);
                let (word, shift) = (row * width / BITS, row * width % BITS);
                // Both words, always: whether a value spans two is a coin toss for a branch.
                let both = u64::from(load(word, lane)) | u64::from(load(word + 1, lane)) << BITS;
                let value = (both >> shift) as $ty;
                visit(slot, u32::from(value & mask));
            }
        }};
    }
    match (width, lane_bits(width)) {
        (0, _) => (0..rows.len()).for_each(|slot| visit(slot, 0)),
        (_, 8) => rows!(u8),
        (_, 16) => rows!(u16),
        _ => rows!(u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coload_page::bitpack::{pack_block, unpack_block};

    #[test]
    fn every_width_agrees_with_the_general_loop() {
        let mut state = 5u64;
        for width in 0..=64u8 {
            for count in [1, 63, 64, 100, 1023, 1024] {
                let values: Vec<u64> = (0..count)
                    .map(|_| {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(99991);
                        (state ^ state >> 29) & crate::compare::max_of_width(width)
                    })
                    .collect();
                let mut packed = Vec::new();
                pack_block(&values, width, &mut packed);
                let mut model = [0; BLOCK];
                unpack_block(&packed, count, width, &mut model);
                let mut wide = [0; BLOCK];
                unpack_to_64(&packed, count, width, &mut wide);
                assert_eq!(wide[..count], model[..count], "width {width}");
                if width > 32 {
                    continue;
                }
                let rows: Vec<u16> = (0..count as u16).collect();
                unpack_rows(&packed, width, &rows, |slot, v| {
                    assert_eq!(u64::from(v), model[slot], "width {width} row {slot}");
                });
                if width <= 8 {
                    let mut narrow = [0; BLOCK];
                    unpack_to_8(&packed, width, &mut narrow);
                    assert!((0..count).all(|i| u64::from(narrow[i]) == model[i]));
                } else if width <= 16 {
                    let mut narrow = [0; BLOCK];
                    unpack_to_16(&packed, width, &mut narrow);
                    assert!((0..count).all(|i| u64::from(narrow[i]) == model[i]));
                }
            }
        }
    }
}
