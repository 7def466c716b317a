//! Floats that were written as decimals of few digits: each is an integer times a power of ten.
//!
//! ```text
//!   [null bits]  form u8: 0 DOUBLE, 1 REAL
//!   heads: exponent u8, factor u8, exceptions u16, base i64 per block  widths: u8 per block
//!   blocks of integer - base
//!   exceptions of each block: rows of the block u16, then values i64
//! ```
//!
//! A value is `integer * 10^factor * 10^-exponent`, both products rounded to DOUBLE, the result to REAL if that is the form. The
//! encoder multiplies the other way, and what does not come back with all its bits (NaN, -0.0, long fractions) is an
//! exception, which stands as it is. Values are the numbers that floats are in the store, in their total order.
//!
//! Cost: two multiplications a value.
//!
//! Source: Afroozeh, Kuffo and Boncz, "ALP: Adaptive Lossless floating-Point Compression", SIGMOD 2023.

use std::sync::Arc;

use super::{Codec, Content, PackedBlocks, Sample, take_nulls};
use crate::bitpack::{BLOCK, pack_block, unpack_block, width_of};
use crate::page::PageMeta;
use crate::view::{IntBlocks, IntPage, PageView, ValuesPage};
use coload_types::bytes::ByteReader;
use coload_types::{
    Error, Result, f32_from_ordinal, f64_from_ordinal, ordinal_from_f32, ordinal_from_f64,
    simd_dispatch,
};

/// Bytes of a block's head.
const HEAD_BYTES: usize = 12;
/// Bytes of an exception.
const EXCEPTION_BYTES: usize = 10;
/// The largest exponent: more digits are not exact in a DOUBLE.
const EXPONENT_MAX: usize = 18;
/// Values of a sample that exponents are tried on.
const TRIED: usize = 32;
/// Pairs of exponent and factor that each block of a page may choose from.
const PAIRS_MAX: usize = 4;
/// Added and taken away again, it rounds a number below 2^51 to an integer.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// Integers of larger values are not exact.
const INTEGER_MAX: f64 = 2_251_799_813_685_248.0;

const POWERS: [f64; EXPONENT_MAX + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];
const PARTS: [f64; EXPONENT_MAX + 1] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14,
    1e-15, 1e-16, 1e-17, 1e-18,
];

/// What the numbers of the store stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Double,
    Real,
}

impl Form {
    /// The form of numbers within these bounds, if they look like floats.
    pub(super) fn guess(values: impl Iterator<Item = i64> + Clone) -> Option<Self> {
        // 0.0 is 0 and -0.0 is -1; those of a size that is met are far from all that is counted.
        let is_double = |v: i64| matches!(v, -1 | 0) || v.unsigned_abs() > 1 << 61;
        let is_real = |v: i64| {
            i64::from(v as i32) == v && (matches!(v, -1 | 0) || v.unsigned_abs() > 1 << 29)
        };
        if values.clone().all(is_double) {
            Some(Form::Double)
        } else {
            values.clone().all(is_real).then_some(Form::Real)
        }
    }

    #[inline(always)]
    fn value(self, ordinal: i64) -> f64 {
        match self {
            Form::Double => f64_from_ordinal(ordinal),
            Form::Real => f64::from(f32_from_ordinal(ordinal)),
        }
    }

    #[inline(always)]
    fn ordinal(self, value: f64) -> i64 {
        match self {
            Form::Double => ordinal_from_f64(value),
            Form::Real => ordinal_from_f32(value as f32),
        }
    }
}

/// Which powers of ten a block is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    exponent: u8,
    factor: u8,
}

impl Pair {
    #[inline(always)]
    fn integer(self, value: f64) -> Option<i64> {
        let scaled = value * POWERS[usize::from(self.exponent)] * PARTS[usize::from(self.factor)];
        // Not a number is not less than anything.
        if scaled.abs() < INTEGER_MAX { Some((scaled + ROUNDER - ROUNDER) as i64) } else { None }
    }

    #[inline(always)]
    fn value(self, integer: i64) -> f64 {
        integer as f64 * POWERS[usize::from(self.factor)] * PARTS[usize::from(self.exponent)]
    }

    /// The integer of a number of the store, if it comes back from it.
    #[inline(always)]
    fn exact(self, ordinal: i64, form: Form) -> Option<i64> {
        self.integer(form.value(ordinal)).filter(|i| form.ordinal(self.value(*i)) == ordinal)
    }

    /// Bits for values, those of exceptions among them; `None` if there are more than half.
    fn bits(self, values: &[i64], form: Form) -> Option<usize> {
        let (mut low, mut high, mut exceptions) = (i64::MAX, i64::MIN, 0);
        for value in values {
            match self.exact(*value, form) {
                Some(integer) => (low, high) = (low.min(integer), high.max(integer)),
                None => {
                    exceptions += 1;
                    if exceptions * 2 > values.len() {
                        return None;
                    }
                }
            }
        }
        if low > high {
            return None;
        }
        let width = usize::from(width_of(high.wrapping_sub(low) as u64));
        Some(width * values.len() + exceptions * EXCEPTION_BYTES * 8)
    }

    /// All pairs, the most digits first.
    fn all() -> impl Iterator<Item = Pair> {
        let pairs = |exponent| (0..=exponent).map(move |factor| Pair { exponent, factor });
        (0..=EXPONENT_MAX as u8).rev().flat_map(pairs)
    }
}

/// The form, the pairs that suit a sample best, and the bits that its values take with the best of them.
fn plan(stretches: &[Vec<i64>]) -> Option<(Form, Vec<Pair>, usize)> {
    let values = stretches.iter().flatten().copied();
    let form = Form::guess(values.clone())?;
    let step = values.clone().count().div_ceil(TRIED).max(1);
    let tried: Vec<i64> = values.step_by(step).collect();
    let mut found: Vec<(usize, Pair)> =
        Pair::all().filter_map(|pair| Some((pair.bits(&tried, form)?, pair))).collect();
    found.sort_by_key(|(bits, _)| *bits);
    let pairs: Vec<Pair> = found.iter().take(PAIRS_MAX).map(|(_, pair)| *pair).collect();
    let best = *pairs.first()?;
    let bits = stretches.iter().map(|s| best.bits(s, form).unwrap_or(s.len() * 100)).sum();
    Some((form, pairs, bits))
}

/// Floats as the decimals that they were written as.
#[derive(Debug)]
pub(super) struct Decimals;

impl Codec for Decimals {
    fn name(&self) -> &'static str {
        "decimals"
    }

    fn content(&self) -> Content {
        Content::Int
    }

    fn open<'a>(&self, bytes: &'a [u8], meta: &PageMeta) -> Result<PageView<'a>> {
        let mut reader = ByteReader::new(bytes);
        let nulls = take_nulls(&mut reader, meta)?;
        let form = match reader.u8()? {
            0 => Form::Double,
            1 => Form::Real,
            other => return Err(Error::Corrupt(format!("floats of form {other}"))),
        };
        let blocks = PackedBlocks::read(&mut reader, meta.rows as usize, HEAD_BYTES, 64)?;
        let (mut starts, mut count) = (Vec::new(), 0);
        for block in 0..(meta.rows as usize).div_ceil(BLOCK) {
            let [exponent, factor, low, high, ..] = blocks.head::<HEAD_BYTES>(block);
            if usize::from(exponent.max(factor)) > EXPONENT_MAX {
                return Err(Error::Corrupt("exponent of a page of decimals".into()));
            }
            starts.push(count);
            count += usize::from(u16::from_le_bytes([low, high]));
        }
        let exceptions = reader.take(count * EXCEPTION_BYTES)?;
        reader.finish()?;
        let blocks = Blocks { form, blocks, starts, exceptions };
        Ok(PageView::Int(ValuesPage::new(meta, nulls, Arc::new(blocks))))
    }

    fn estimate(&self, sample: &Sample) -> Option<usize> {
        let Sample::Int { stretches, nulls, rows } = sample else { return None };
        let (_, _, bits) = plan(stretches)?;
        let seen: usize = stretches.iter().map(Vec::len).sum();
        let null_bytes = if *nulls > 0 { rows / 8 } else { 0 };
        Some(bits * rows / seen / 8 + rows.div_ceil(BLOCK) * (HEAD_BYTES + 1) + null_bytes)
    }

    fn encode(&self, page: &PageView<'_>) -> Result<Option<Vec<u8>>> {
        let PageView::Int(page) = page else { return Ok(None) };
        let Some((form, pairs, _)) = plan(&Sample::stretches(page)) else { return Ok(None) };
        let mut bytes = page.null_bits().unwrap_or(&[]).to_vec();
        bytes.push(form as u8);
        let (at, blocks) = (bytes.len(), page.rows().div_ceil(BLOCK));
        bytes.resize(at + blocks * (HEAD_BYTES + 1), 0);
        let mut exceptions = Vec::new();
        let mut values = [0; BLOCK];
        for b in 0..blocks {
            let count = page.unpack_int(b, &mut values);
            let mut encoded = Encoded::new(pick(&values[..count], form, &pairs));
            encoded.fill(&values[..count], page, b * BLOCK, form);
            let head = &mut bytes[at + b * HEAD_BYTES..][..HEAD_BYTES];
            head[0] = encoded.pair.exponent;
            head[1] = encoded.pair.factor;
            head[2..4].copy_from_slice(&(encoded.rows.len() as u16).to_le_bytes());
            head[4..].copy_from_slice(&encoded.base.to_le_bytes());
            bytes[at + blocks * HEAD_BYTES + b] = encoded.width;
            pack_block(&encoded.offsets[..count], encoded.width, &mut bytes);
            exceptions.extend(encoded.rows.iter().flat_map(|row| row.to_le_bytes()));
            let as_is = encoded.rows.iter().map(|row| values[usize::from(*row)]);
            exceptions.extend(as_is.flat_map(i64::to_le_bytes));
        }
        bytes.extend(exceptions);
        Ok(Some(bytes))
    }
}

/// The pair that suits a block best.
fn pick(values: &[i64], form: Form, pairs: &[Pair]) -> Pair {
    if let [only] = pairs {
        return *only;
    }
    let step = values.len().div_ceil(TRIED).max(1);
    let tried: Vec<i64> = values.iter().copied().step_by(step).collect();
    let cost = |pair: &&Pair| pair.bits(&tried, form).unwrap_or(usize::MAX);
    pairs.iter().min_by_key(cost).copied().unwrap_or(Pair { exponent: 0, factor: 0 })
}

/// A block on its way into a page.
struct Encoded {
    pair: Pair,
    base: i64,
    width: u8,
    offsets: [u64; BLOCK],
    /// Rows that are exceptions.
    rows: Vec<u16>,
}

impl Encoded {
    fn new(pair: Pair) -> Self {
        Encoded { pair, base: 0, width: 0, offsets: [0; BLOCK], rows: Vec::new() }
    }

    /// Encodes the values of a block that begins at row `first` of the page.
    fn fill(&mut self, values: &[i64], page: &IntPage<'_>, first: usize, form: Form) {
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        let mut as_is = [false; BLOCK];
        for (row, value) in values.iter().enumerate() {
            match self.pair.exact(*value, form) {
                _ if page.is_null(first + row) => as_is[row] = true,
                Some(integer) => {
                    self.offsets[row] = integer as u64;
                    (low, high) = (low.min(integer), high.max(integer));
                }
                None => {
                    as_is[row] = true;
                    self.rows.push(row as u16);
                }
            }
        }
        if low > high {
            (low, high) = (0, 0);
        }
        self.base = low;
        self.width = width_of(high.wrapping_sub(low) as u64);
        for (offset, as_is) in self.offsets.iter_mut().zip(&as_is).take(values.len()) {
            *offset = if *as_is { 0 } else { offset.wrapping_sub(low as u64) };
        }
    }
}

#[derive(Debug)]
struct Blocks<'a> {
    form: Form,
    blocks: PackedBlocks<'a>,
    /// Exceptions before those of each block.
    starts: Vec<usize>,
    exceptions: &'a [u8],
}

impl<'a> IntBlocks<'a> for Blocks<'a> {
    fn unpack(&self, block: usize, out: &mut [i64; BLOCK]) {
        let (packed, width, count) = self.blocks.block(block);
        let [exponent, factor, low, high, base @ ..] = self.blocks.head::<HEAD_BYTES>(block);
        let base = i64::from_le_bytes(base);
        let mut offsets = [0; BLOCK];
        unpack_block(packed, count, width, &mut offsets);
        let (up, down) = (POWERS[usize::from(factor)], PARTS[usize::from(exponent)]);
        match self.form {
            Form::Double => doubles_of(&offsets, base, up, down, out),
            Form::Real => reals_of(&offsets, base, up, down, out),
        }
        let exceptions = usize::from(u16::from_le_bytes([low, high]));
        let all = &self.exceptions[self.starts[block] * EXCEPTION_BYTES..];
        let (rows, values) = all[..exceptions * EXCEPTION_BYTES].split_at(exceptions * 2);
        for (row, value) in rows.as_chunks::<2>().0.iter().zip(values.as_chunks::<8>().0) {
            if let Some(out) = out.get_mut(usize::from(u16::from_le_bytes(*row))) {
                *out = i64::from_le_bytes(*value);
            }
        }
    }
}

macro_rules! decode {
    ($inner:ident, $name:ident, $form:expr) => {
        #[inline(always)]
        fn $inner(offsets: &[u64; BLOCK], base: i64, up: f64, down: f64, out: &mut [i64; BLOCK]) {
            for (o, offset) in out.iter_mut().zip(offsets) {
                *o = $form.ordinal(base.wrapping_add(*offset as i64) as f64 * up * down);
            }
        }

        simd_dispatch! {
            fn $name(offsets: &[u64; BLOCK], base: i64, up: f64, down: f64, out: &mut [i64; BLOCK]) = $inner;
        }
    };
}

decode!(doubles_inner, doubles_of, Form::Double);
decode!(reals_inner, reals_of, Form::Real);
