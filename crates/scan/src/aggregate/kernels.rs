//! Loops over vectors of raw values; lengths are multiples of 64, a mask word for each 64.
//!
//! Arithmetic wraps: the caller has proven by bounds that the selected rows do not, and the other
//! rows are masked out of every result.

use coload_types::{SimdLevel, simd_dispatch, simd_level};

/// `a + b * x` in 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct Line32 {
    pub a: u32,
    pub b: u32,
}

/// `a + b * x` in 64 bits.
#[derive(Debug, Clone, Copy)]
pub struct Line64 {
    pub a: i64,
    pub b: i64,
}

impl Line32 {
    #[inline(always)]
    fn at(self, x: u32) -> u32 {
        self.a.wrapping_add(self.b.wrapping_mul(x))
    }
}

impl Line64 {
    #[inline(always)]
    pub fn at(self, x: i64) -> i64 {
        self.a.wrapping_add(self.b.wrapping_mul(x))
    }
}

#[inline(always)]
fn zip_map<A: Copy, B: Copy, T>(x: &[A], y: &[B], out: &mut [T], f: impl Fn(A, B) -> T) {
    for ((o, x), y) in out.iter_mut().zip(x).zip(y) {
        *o = f(*x, *y);
    }
}

#[inline(always)]
fn mul_32_inner(x: &[u32], p: Line32, y: &[u32], q: Line32, low: u32, out: &mut [u32]) {
    match (p.b, q.b) {
        // No multiplication for the usual factors.
        (1, 1) => zip_map(x, y, out, |x, y| {
            p.a.wrapping_add(x).wrapping_mul(q.a.wrapping_add(y)).wrapping_sub(low)
        }),
        (1, _) => {
            zip_map(x, y, out, |x, y| p.a.wrapping_add(x).wrapping_mul(q.at(y)).wrapping_sub(low))
        }
        _ => zip_map(x, y, out, |x, y| p.at(x).wrapping_mul(q.at(y)).wrapping_sub(low)),
    }
}

#[inline(always)]
fn mul_32_to_64_inner(x: &[u32], p: Line32, y: &[u32], q: Line32, out: &mut [i64]) {
    match (p.b, q.b) {
        (1, 1) => zip_map(x, y, out, |x, y| {
            (u64::from(p.a.wrapping_add(x)) * u64::from(q.a.wrapping_add(y))) as i64
        }),
        (1, _) => {
            zip_map(x, y, out, |x, y| (u64::from(p.a.wrapping_add(x)) * u64::from(q.at(y))) as i64)
        }
        _ => zip_map(x, y, out, |x, y| (u64::from(p.at(x)) * u64::from(q.at(y))) as i64),
    }
}

#[inline(always)]
fn add_32_inner(x: &[u32], bx: u32, y: &[u32], by: u32, a: u32, out: &mut [u32]) {
    zip_map(x, y, out, |x, y| a.wrapping_add(bx.wrapping_mul(x)).wrapping_add(by.wrapping_mul(y)));
}

#[inline(always)]
fn mul_64_inner(x: &[i64], p: Line64, y: &[i64], q: Line64, out: &mut [i64]) {
    zip_map(x, y, out, |x, y| p.at(x).wrapping_mul(q.at(y)));
}

#[inline(always)]
fn add_64_inner(x: &[i64], p: Line64, y: &[i64], q: Line64, out: &mut [i64]) {
    zip_map(x, y, out, |x, y| p.at(x).wrapping_add(q.at(y)));
}

#[inline(always)]
fn line_32_to_64_inner(x: &[u32], line: Line64, out: &mut [i64]) {
    for (o, x) in out.iter_mut().zip(x) {
        *o = line.at(i64::from(*x));
    }
}

#[inline(always)]
fn select(word: u64, bit: usize) -> u64 {
    (word >> bit & 1).wrapping_neg()
}

#[inline(always)]
fn sum_u32_inner(values: &[u32], mask: &[u64]) -> u64 {
    let mut sum = 0u64;
    for (chunk, word) in values.chunks_exact(64).zip(mask) {
        match *word {
            0 => {}
            u64::MAX => sum += chunk.iter().map(|v| u64::from(*v)).sum::<u64>(),
            w => {
                for (i, v) in chunk.iter().enumerate() {
                    sum += u64::from(*v) & select(w, i);
                }
            }
        }
    }
    sum
}

#[inline(always)]
fn sum_i64_inner(values: &[i64], mask: &[u64]) -> i64 {
    let mut sum = 0i64;
    for (chunk, word) in values.chunks_exact(64).zip(mask) {
        match *word {
            0 => {}
            u64::MAX => sum = chunk.iter().fold(sum, |s, v| s.wrapping_add(*v)),
            w => {
                for (i, v) in chunk.iter().enumerate() {
                    sum = sum.wrapping_add(*v & select(w, i) as i64);
                }
            }
        }
    }
    sum
}

#[inline(always)]
fn range_u32_inner(values: &[u32], mask: &[u64]) -> (u32, u32) {
    let (mut min, mut max) = (u32::MAX, 0);
    for (chunk, word) in values.chunks_exact(64).zip(mask) {
        for (i, v) in chunk.iter().enumerate() {
            let keep = select(*word, i) as u32;
            min = min.min(*v | !keep);
            max = max.max(*v & keep);
        }
    }
    (min, max)
}

#[inline(always)]
fn range_i64_inner(values: &[i64], mask: &[u64]) -> (i64, i64) {
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    for (chunk, word) in values.chunks_exact(64).zip(mask) {
        for (i, v) in chunk.iter().enumerate() {
            let keep = word >> i & 1 == 1;
            min = min.min(if keep { *v } else { i64::MAX });
            max = max.max(if keep { *v } else { i64::MIN });
        }
    }
    (min, max)
}

simd_dispatch! {
    /// `p(x) * q(y) - low`.
    pub fn mul_32(x: &[u32], p: Line32, y: &[u32], q: Line32, low: u32, out: &mut [u32]) = mul_32_inner;
}
simd_dispatch! {
    /// `p(x) * q(y)`, where both fit 32 bits.
    pub fn mul_32_to_64(x: &[u32], p: Line32, y: &[u32], q: Line32, out: &mut [i64]) = mul_32_to_64_inner;
}
simd_dispatch! {
    /// `a + bx * x + by * y`.
    pub fn add_32(x: &[u32], bx: u32, y: &[u32], by: u32, a: u32, out: &mut [u32]) = add_32_inner;
}
simd_dispatch! {
    /// `out[i] = p(x[i]) * q(y[i])`, wrapping.
    pub fn mul_64(x: &[i64], p: Line64, y: &[i64], q: Line64, out: &mut [i64]) = mul_64_inner;
}
simd_dispatch! {
    /// `out[i] = p(x[i]) + q(y[i])`, wrapping.
    pub fn add_64(x: &[i64], p: Line64, y: &[i64], q: Line64, out: &mut [i64]) = add_64_inner;
}
simd_dispatch! {
    /// `out[i] = line(x[i])`, in 64 bits.
    pub fn line_32_to_64(x: &[u32], line: Line64, out: &mut [i64]) = line_32_to_64_inner;
}
simd_dispatch! { fn sum_u32_portable(values: &[u32], mask: &[u64]) -> u64 = sum_u32_inner; }
simd_dispatch! { fn sum_i64_portable(values: &[i64], mask: &[u64]) -> i64 = sum_i64_inner; }
simd_dispatch! {
    /// Smallest and largest of the selected values; `(MAX, 0)` of none.
    pub fn range_u32(values: &[u32], mask: &[u64]) -> (u32, u32) = range_u32_inner;
}
simd_dispatch! {
    /// Smallest and largest of the selected values; `(MAX, MIN)` of none.
    pub fn range_i64(values: &[i64], mask: &[u64]) -> (i64, i64) = range_i64_inner;
}

/// Values below this add up in 32 bits over the 64 that one lane of a block gets.
const SMALL: u32 = 1 << 26;

/// The sum of the selected values, of which none is above `max`.
pub fn sum_u32(values: &[u32], mask: &[u64], max: u32) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if simd_level() == SimdLevel::Avx512 {
        // SAFETY: the level says that the processor has these instructions.
        return unsafe {
            if max < SMALL {
                sum_u32_small_avx512(values, mask)
            } else {
                sum_u32_avx512(values, mask)
            }
        };
    }
    let _ = max;
    sum_u32_portable(values, mask)
}

/// The wrapping sum of the selected values.
pub fn sum_i64(values: &[i64], mask: &[u64]) -> i64 {
    #[cfg(target_arch = "x86_64")]
    if simd_level() == SimdLevel::Avx512 {
        // SAFETY: the level says that the processor has these instructions.
        return unsafe { sum_i64_avx512(values, mask) };
    }
    sum_i64_portable(values, mask)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn sum_u32_small_avx512(values: &[u32], mask: &[u64]) -> u64 {
    use std::arch::x86_64::*;
    assert!(values.len() <= 1024);
    let mut sums = [_mm512_setzero_si512(); 2];
    for (chunk, word) in values.chunks_exact(64).zip(mask) {
        for (i, lanes) in chunk.chunks_exact(16).enumerate() {
            let keep = (word >> (i * 16)) as u16;
            // SAFETY: the chunk is 16 values long.
            let v = unsafe { _mm512_maskz_loadu_epi32(keep, lanes.as_ptr().cast()) };
            sums[i % 2] = _mm512_add_epi32(sums[i % 2], v);
        }
    }
    let sum = _mm512_add_epi32(sums[0], sums[1]);
    let even = _mm512_and_si512(sum, _mm512_set1_epi64(0xffff_ffff));
    _mm512_reduce_add_epi64(_mm512_add_epi64(even, _mm512_srli_epi64::<32>(sum))) as u64
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn sum_u32_avx512(values: &[u32], mask: &[u64]) -> u64 {
    use std::arch::x86_64::*;
    let low = _mm512_set1_epi64(0xffff_ffff);
    let (mut even, mut odd) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    for (chunk, word) in values.chunks_exact(64).zip(mask) {
        for (i, lanes) in chunk.chunks_exact(16).enumerate() {
            let keep = (word >> (i * 16)) as u16;
            // SAFETY: the chunk is 16 values long.
            let v = unsafe { _mm512_maskz_loadu_epi32(keep, lanes.as_ptr().cast()) };
            even = _mm512_add_epi64(even, _mm512_and_si512(v, low));
            odd = _mm512_add_epi64(odd, _mm512_srli_epi64::<32>(v));
        }
    }
    _mm512_reduce_add_epi64(_mm512_add_epi64(even, odd)) as u64
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn sum_i64_avx512(values: &[i64], mask: &[u64]) -> i64 {
    use std::arch::x86_64::*;
    let mut sums = [_mm512_setzero_si512(); 2];
    for (chunk, word) in values.chunks_exact(64).zip(mask) {
        for (i, lanes) in chunk.chunks_exact(8).enumerate() {
            let keep = (word >> (i * 8)) as u8;
            // SAFETY: the chunk is 8 values long.
            let v = unsafe { _mm512_maskz_loadu_epi64(keep, lanes.as_ptr()) };
            sums[i % 2] = _mm512_add_epi64(sums[i % 2], v);
        }
    }
    _mm512_reduce_add_epi64(_mm512_add_epi64(sums[0], sums[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_sums_agree_with_adding_row_by_row() {
        let values: Vec<u32> = (0..1024u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let small: Vec<u32> = values.iter().map(|v| v >> 6).collect();
        let wide: Vec<i64> = values.iter().map(|v| i64::from(*v) * 1000 - (1 << 40)).collect();
        for mask in
            [[0u64; 16], [u64::MAX; 16], std::array::from_fn(|i| 0x9e37_79b9_7f4a_7c15 << i)]
        {
            let picked = |i: usize| mask[i / 64] >> (i % 64) & 1 == 1;
            let model: u64 = (0..1024).filter(|i| picked(*i)).map(|i| u64::from(values[i])).sum();
            assert_eq!(sum_u32(&values, &mask, u32::MAX), model);
            assert_eq!(sum_u32_portable(&values, &mask), model);
            let model: u64 = (0..1024).filter(|i| picked(*i)).map(|i| u64::from(small[i])).sum();
            assert_eq!(sum_u32(&small, &mask, SMALL - 1), model);
            let model: i64 = (0..1024).filter(|i| picked(*i)).map(|i| wide[i]).sum();
            assert_eq!((sum_i64(&wide, &mask), sum_i64_portable(&wide, &mask)), (model, model));
            let rows = || (0..1024).filter(|i| picked(*i));
            let model = (rows().map(|i| values[i]).min(), rows().map(|i| values[i]).max());
            let expected = (model.0.unwrap_or(u32::MAX), model.1.unwrap_or(0));
            assert_eq!(range_u32(&values, &mask), expected);
            let model = (rows().map(|i| wide[i]).min(), rows().map(|i| wide[i]).max());
            let expected = (model.0.unwrap_or(i64::MAX), model.1.unwrap_or(i64::MIN));
            assert_eq!(range_i64(&wide, &mask), expected);
        }
    }
}
