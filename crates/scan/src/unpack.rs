//! Packed blocks to vectors of the two widths that the kernels work on.
//!
//! Lanes of 8 and 16 bits are widened to 32, lanes of 64 stay. Cost: a block of 12-bit codes takes
//! about 0.1 ns a value.

use coload_format::bitpack::{BLOCK, lane_bits, unpack_u8, unpack_u16, unpack_u32, unpack_u64};
use coload_format::simd_dispatch;

/// A block of 32-bit numbers.
pub type Block32 = [u32; BLOCK];
/// A block of 64-bit numbers.
pub type Block64 = [u64; BLOCK];

#[inline(always)]
fn widen_u8_inner(from: &[u8; BLOCK], to: &mut Block32) {
    for (t, f) in to.iter_mut().zip(from) {
        *t = u32::from(*f);
    }
}

#[inline(always)]
fn widen_u16_inner(from: &[u16; BLOCK], to: &mut Block32) {
    for (t, f) in to.iter_mut().zip(from) {
        *t = u32::from(*f);
    }
}

#[inline(always)]
fn widen_u32_inner(from: &Block32, to: &mut Block64) {
    for (t, f) in to.iter_mut().zip(from) {
        *t = u64::from(*f);
    }
}

simd_dispatch! { fn widen_u8(from: &[u8; BLOCK], to: &mut Block32) = widen_u8_inner; }
simd_dispatch! { fn widen_u16(from: &[u16; BLOCK], to: &mut Block32) = widen_u16_inner; }
simd_dispatch! {
    /// 32 to 64 bits.
    pub fn widen_u32(from: &Block32, to: &mut Block64) = widen_u32_inner;
}

/// Unpacks offsets of at most 32 bits; what follows the first `count` is unspecified but within
/// `width` bits.
pub fn unpack_to_32(packed: &[u8], count: usize, width: u8, out: &mut Block32) {
    if width == 0 {
        out.fill(0);
        return;
    }
    match lane_bits(width) {
        8 => {
            let mut narrow = [0; BLOCK];
            unpack_u8(packed, count, width, &mut narrow);
            widen_u8(&narrow, out);
        }
        16 => {
            let mut narrow = [0; BLOCK];
            unpack_u16(packed, count, width, &mut narrow);
            widen_u16(&narrow, out);
        }
        _ => {
            if count < BLOCK {
                out.fill(0);
            }
            unpack_u32(packed, count, width, out);
        }
    }
}

/// Unpacks offsets of any width.
pub fn unpack_to_64(packed: &[u8], count: usize, width: u8, out: &mut Block64) {
    if width > 32 {
        if count < BLOCK {
            out.fill(0);
        }
        unpack_u64(packed, count, width, out);
    } else {
        let mut narrow = [0; BLOCK];
        unpack_to_32(packed, count, width, &mut narrow);
        widen_u32(&narrow, out);
    }
}
