//! The raw values of the roots for the rows of one block.

use coload_page::bitpack::{BLOCK, unpack_one};
use coload_page::{CodesPage, Frame, IntPage, PageView, WidePage};
use coload_types::{Error, Result, Values, f32_from_ordinal, f64_from_ordinal};

use super::bounds::{RootPlan, Shape, term_interval};
use super::expr::FloatWidth;
use super::kernels::{Line32, Line64, add_32, add_64, line_32_to_64, mul_32, mul_32_to_64, mul_64};
use super::program::{FloatNode, Root, Term};
use super::value_tables::CodeValues;
use crate::mask::MASK_WORDS;
use crate::unpack::{unpack_rows, unpack_to_32, unpack_to_64};

/// Which rows of a block the vectors hold.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// All rows of the block, each in its own place.
    All,
    /// These, one after the other.
    Few(&'a [u16]),
}

/// A column on one page, as numbers.
pub struct NumberPage<'a> {
    pub view: PageView<'a>,
    pub codes: &'a CodeValues,
    pub dictionary: Option<&'a Values>,
}

/// The values of one root; which of the buffers holds them is the shape's matter.
#[derive(Debug)]
pub struct Vector {
    pub shape: Shape,
    /// What raw values of shape `Narrow` stand for.
    pub line: Line64,
    /// No raw value of shape `Narrow` is larger.
    pub raw_max: u32,
    pub narrow: Box<[u32; BLOCK]>,
    pub wide: Vec<i64>,
    pub huge: Vec<i128>,
    /// Rows whose value is over 128 bits.
    pub overflow: [u64; MASK_WORDS],
}

impl Vector {
    /// Room for one block.
    pub fn new() -> Self {
        Vector {
            shape: Shape::Narrow,
            line: Line64 { a: 0, b: 1 },
            raw_max: u32::MAX,
            narrow: Box::new([0; BLOCK]),
            wide: Vec::new(),
            huge: Vec::new(),
            overflow: [0; MASK_WORDS],
        }
    }

    fn set_shape(&mut self, shape: Shape) {
        self.shape = shape;
        match shape {
            Shape::Narrow => {}
            Shape::Wide => self.wide.resize(BLOCK, 0),
            Shape::Huge => {
                self.huge.resize(BLOCK, 0);
                self.overflow = [0; MASK_WORDS];
            }
        }
    }

    /// The value of one row; `None` when it is over 128 bits.
    pub fn get(&self, row: usize) -> Option<i128> {
        match self.shape {
            Shape::Narrow => Some(
                i128::from(self.line.a) + i128::from(self.line.b) * i128::from(self.narrow[row]),
            ),
            Shape::Wide => Some(i128::from(self.wide[row])),
            Shape::Huge if self.overflow[row / 64] >> (row % 64) & 1 == 1 => None,
            Shape::Huge => Some(self.huge[row]),
        }
    }
}

/// The value of a term in one row; `None` when it is over 128 bits.
pub fn term_at(term: &Term, vectors: &[Vector], row: usize) -> Option<i128> {
    match term.root {
        None => Some(term.offset),
        Some(root) => {
            let value = vectors[root].get(row)?;
            term.factor.checked_mul(value)?.checked_add(term.offset)
        }
    }
}

/// A term over raw values, in 64 bits, wrapping.
pub fn term_line(term: &Term, line: Line64) -> Line64 {
    let (a, b) = (i128::from(line.a), i128::from(line.b));
    Line64 {
        a: term.offset.wrapping_add(term.factor.wrapping_mul(a)) as i64,
        b: term.factor.wrapping_mul(b) as i64,
    }
}

fn low_32(line: Line64) -> Line32 {
    Line32 { a: line.a as u32, b: line.b as u32 }
}

/// Loads a column's numbers.
///
/// # Errors
/// `Corrupt` when the page is not of the shape its index says.
pub fn load_column(
    page: &NumberPage<'_>,
    shape: Shape,
    block: usize,
    rows: Rows<'_>,
    out: &mut Vector,
) -> Result<()> {
    out.set_shape(shape);
    match (&page.view, page.codes) {
        (PageView::Codes(codes), CodeValues::Line { first, step }) => {
            load_offsets(codes, block, rows, out);
            let a = step.wrapping_mul(i64::from(codes.base)).wrapping_add(*first);
            out.line = Line64 { a, b: *step };
        }
        (PageView::Codes(codes), CodeValues::Offsets { min, offsets }) => {
            load_offsets(codes, block, rows, out);
            let table = offsets.get(codes.base as usize..).unwrap_or(&[]);
            for raw in &mut out.narrow[..row_slots(rows)] {
                *raw = table.get(*raw as usize).copied().unwrap_or(0);
            }
            out.line = Line64 { a: *min, b: 1 };
            out.raw_max = u32::MAX;
        }
        (PageView::Codes(codes), _) => load_lookup(codes, page.dictionary, block, rows, out)?,
        (PageView::Int(blocks), _) if shape == Shape::Narrow => {
            load_narrow(blocks, block, rows, out)?;
        }
        (PageView::Int(blocks), _) => load_wide(blocks, block, rows, &mut out.wide),
        (PageView::Wide(blocks), _) => load_huge(blocks, block, rows, out),
        (PageView::Text(_), _) => return Err(not_numbers()),
    }
    Ok(())
}

fn not_numbers() -> Error {
    Error::Corrupt("page holds no numbers".into())
}

/// Slots of a vector that are in use, a multiple of 64.
pub fn row_slots(rows: Rows<'_>) -> usize {
    match rows {
        Rows::All => BLOCK,
        Rows::Few(positions) => positions.len().next_multiple_of(64),
    }
}

fn load_offsets(codes: &CodesPage<'_>, block: usize, rows: Rows<'_>, out: &mut Vector) {
    let (packed, _) = codes.packed(block);
    match rows {
        Rows::All => {
            unpack_to_32(packed, codes.width, &mut out.narrow);
        }
        Rows::Few(positions) => {
            unpack_rows(packed, codes.width, positions, |slot, offset| out.narrow[slot] = offset);
        }
    }
    out.raw_max = crate::compare::max_of_width(codes.width) as u32;
}

fn load_lookup(
    codes: &CodesPage<'_>,
    dictionary: Option<&Values>,
    block: usize,
    rows: Rows<'_>,
    out: &mut Vector,
) -> Result<()> {
    load_offsets(codes, block, rows, out);
    let base = codes.base as usize;
    let slots = row_slots(rows);
    match dictionary {
        Some(Values::Int(values)) => {
            for (to, raw) in out.wide.iter_mut().zip(&out.narrow[..slots]) {
                *to = values.get(base + *raw as usize).copied().unwrap_or(0);
            }
        }
        Some(Values::Wide(values)) => {
            for (to, raw) in out.huge.iter_mut().zip(&out.narrow[..slots]) {
                *to = values.get(base + *raw as usize).copied().unwrap_or(0);
            }
        }
        _ => return Err(not_numbers()),
    }
    Ok(())
}

fn load_narrow(page: &IntPage<'_>, block: usize, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    // Offsets of other steps do not say how large the sums of values get.
    let Some(Frame { packed, width, base, step: 1, .. }) = page.frame(block) else {
        return load_unpacked(page, block, rows, out);
    };
    if width > 32 {
        return Err(past_bounds());
    }
    match rows {
        Rows::All => {
            unpack_to_32(packed, width, &mut out.narrow);
        }
        Rows::Few(positions) => {
            unpack_rows(packed, width, positions, |slot, offset| out.narrow[slot] = offset);
        }
    }
    out.line = Line64 { a: base, b: 1 };
    out.raw_max = crate::compare::max_of_width(width) as u32;
    Ok(())
}

fn past_bounds() -> Error {
    Error::Corrupt("page holds numbers past its bounds".into())
}

/// As [`load_narrow`], of a block that is not stored as offsets from a base.
fn load_unpacked(page: &IntPage<'_>, block: usize, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    let mut values = [0; BLOCK];
    let count = page.unpack_int(block, &mut values);
    // What stands in a row that is NULL may be anything, and is not looked at.
    let is_value = |row: &usize| !page.is_null(block * BLOCK + row);
    let numbers = || (0..count).filter(is_value).map(|row| values[row]);
    let (low, high) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
    if i128::from(high) - i128::from(low) > i128::from(u32::MAX) {
        return Err(past_bounds());
    }
    let raw = |row: usize| values[row].wrapping_sub(low) as u32;
    match rows {
        Rows::All => {
            for (row, narrow) in out.narrow.iter_mut().enumerate() {
                *narrow = raw(row);
            }
        }
        Rows::Few(positions) => {
            for (narrow, row) in out.narrow.iter_mut().zip(positions) {
                *narrow = raw(usize::from(*row));
            }
        }
    }
    out.line = Line64 { a: low, b: 1 };
    out.raw_max = u32::MAX;
    Ok(())
}

fn load_wide(page: &IntPage<'_>, block: usize, rows: Rows<'_>, out: &mut [i64]) {
    let Some(frame @ Frame { packed, width, count, .. }) = page.frame(block) else {
        let mut values = [0; BLOCK];
        page.unpack_int(block, &mut values);
        match rows {
            Rows::All => out[..BLOCK].copy_from_slice(&values),
            Rows::Few(positions) => {
                for (o, row) in out.iter_mut().zip(positions) {
                    *o = values[usize::from(*row)];
                }
            }
        }
        return;
    };
    match rows {
        Rows::All => {
            let mut offsets = [0; BLOCK];
            unpack_to_64(packed, count, width, &mut offsets);
            for (o, v) in out.iter_mut().zip(&offsets) {
                *o = frame.value(*v);
            }
        }
        Rows::Few(positions) => {
            for (o, row) in out.iter_mut().zip(positions) {
                *o = frame.value(unpack_one(packed, usize::from(*row), width));
            }
        }
    }
}

fn load_huge(page: &WidePage<'_>, block: usize, rows: Rows<'_>, out: &mut Vector) {
    let mut values = [0; BLOCK];
    page.unpack_wide(block, &mut values);
    match rows {
        Rows::All => out.huge.copy_from_slice(&values),
        Rows::Few(positions) => {
            for (o, row) in out.huge.iter_mut().zip(positions) {
                *o = values[usize::from(*row)];
            }
        }
    }
}

/// Computes a root that is no column, from those before it.
pub fn compute_root(
    index: usize,
    root: &Root,
    plans: &[RootPlan],
    slots: usize,
    mask: &[u64],
    vectors: &mut [Vector],
) {
    let (done, rest) = vectors.split_at_mut(index);
    let Some(out) = rest.first_mut() else { return };
    let plan = &plans[index];
    out.set_shape(plan.shape);
    match (plan.shape, plan.interval) {
        (Shape::Narrow, Some((low, high))) => {
            compute_narrow(root, low as u32, slots, done, &mut out.narrow[..]);
            out.line = Line64 { a: low as i64, b: 1 };
            out.raw_max = (high - low) as u32;
        }
        (Shape::Wide, _) => compute_wide(root, plans, slots, done, &mut out.wide),
        _ => compute_huge(root, mask, done, out),
    }
}

fn narrow_of<'a>(term: &Term, vectors: &'a [Vector]) -> (&'a [u32], Line64) {
    match term.root {
        Some(root) => (&vectors[root].narrow[..], term_line(term, vectors[root].line)),
        None => (&[], Line64 { a: term.offset as i64, b: 0 }),
    }
}

fn compute_narrow(root: &Root, low: u32, slots: usize, vectors: &[Vector], out: &mut [u32]) {
    let out = &mut out[..slots];
    match root {
        Root::Mul(a, b) => {
            let ((x, p), (y, q)) = (narrow_of(a, vectors), narrow_of(b, vectors));
            let (p, q) = (low_32(p), low_32(q));
            if q.b == 1 {
                mul_32(y, q, x, p, low, out);
            } else {
                mul_32(x, p, y, q, low, out);
            }
        }
        Root::Add(a, b) => {
            let ((x, p), (y, q)) = (narrow_of(a, vectors), narrow_of(b, vectors));
            let (p, q) = (low_32(p), low_32(q));
            add_32(x, p.b, y, q.b, p.a.wrapping_add(q.a).wrapping_sub(low), out);
        }
        Root::Column(_) => {}
    }
}

fn fits_32(term: &Term, plans: &[RootPlan], vectors: &[Vector]) -> bool {
    term.root.is_some_and(|root| vectors[root].shape == Shape::Narrow)
        && term_interval(term, plans)
            .is_some_and(|(low, high)| low >= 0 && high <= i128::from(u32::MAX))
}

fn compute_wide(
    root: &Root,
    plans: &[RootPlan],
    slots: usize,
    vectors: &[Vector],
    out: &mut [i64],
) {
    let out = &mut out[..slots];
    match root {
        Root::Mul(a, b) if fits_32(a, plans, vectors) && fits_32(b, plans, vectors) => {
            let ((x, p), (y, q)) = (narrow_of(a, vectors), narrow_of(b, vectors));
            let (p, q) = (low_32(p), low_32(q));
            if q.b == 1 {
                mul_32_to_64(y, q, x, p, out);
            } else {
                mul_32_to_64(x, p, y, q, out);
            }
        }
        Root::Mul(a, b) => {
            let (mut x, mut y) = ([0; BLOCK], [0; BLOCK]);
            let (x, p) = wide_of(a, vectors, slots, &mut x);
            let (y, q) = wide_of(b, vectors, slots, &mut y);
            mul_64(x, p, y, q, out);
        }
        Root::Add(a, b) => {
            let (mut x, mut y) = ([0; BLOCK], [0; BLOCK]);
            let (x, p) = wide_of(a, vectors, slots, &mut x);
            let (y, q) = wide_of(b, vectors, slots, &mut y);
            add_64(x, p, y, q, out);
        }
        Root::Column(_) => {}
    }
}

/// 64-bit values, and the line that makes them the term.
fn wide_of<'a>(
    term: &Term,
    vectors: &'a [Vector],
    slots: usize,
    scratch: &'a mut [i64; BLOCK],
) -> (&'a [i64], Line64) {
    let unit = Line64 { a: 0, b: 1 };
    match term.root.map(|root| &vectors[root]) {
        Some(vector) if vector.shape == Shape::Wide => {
            (&vector.wide[..slots], term_line(term, unit))
        }
        Some(vector) => {
            line_32_to_64(&vector.narrow[..slots], term_line(term, vector.line), scratch);
            (&scratch[..slots], unit)
        }
        None => (&scratch[..slots], Line64 { a: term.offset as i64, b: 0 }),
    }
}

fn compute_huge(root: &Root, mask: &[u64], vectors: &[Vector], out: &mut Vector) {
    for (w, word) in mask.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            let row = w * 64 + rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let value = match root {
                Root::Column(_) => None,
                Root::Add(a, b) => both(a, b, vectors, row).and_then(|(x, y)| x.checked_add(y)),
                Root::Mul(a, b) => both(a, b, vectors, row).and_then(|(x, y)| x.checked_mul(y)),
            };
            match value {
                Some(value) => out.huge[row] = value,
                None => out.overflow[w] |= 1 << (row % 64),
            }
        }
    }
}

fn both(a: &Term, b: &Term, vectors: &[Vector], row: usize) -> Option<(i128, i128)> {
    Some((term_at(a, vectors, row)?, term_at(b, vectors, row)?))
}

/// Computes float arithmetic for all slots.
pub fn compute_float(node: &FloatNode, vectors: &[Vector], slots: usize) -> Vec<f64> {
    let pairs = |a: &FloatNode, b: &FloatNode, f: fn(f64, f64) -> f64| {
        let mut x = compute_float(a, vectors, slots);
        for (x, y) in x.iter_mut().zip(compute_float(b, vectors, slots)) {
            *x = f(*x, y);
        }
        x
    };
    let integers = |root: usize, f: &dyn Fn(i128) -> f64| {
        (0..slots).map(|row| vectors[root].get(row).map_or(0.0, f)).collect()
    };
    match node {
        FloatNode::Column(root, FloatWidth::Double) => {
            integers(*root, &|v| f64_from_ordinal(v as i64))
        }
        FloatNode::Column(root, FloatWidth::Single) => {
            integers(*root, &|v| f64::from(f32_from_ordinal(v as i64)))
        }
        FloatNode::Integer(root, by) => integers(*root, &|v| v as f64 / by),
        FloatNode::Literal(value) => vec![*value; slots],
        FloatNode::Add(a, b) => pairs(a, b, |x, y| x + y),
        FloatNode::Sub(a, b) => pairs(a, b, |x, y| x - y),
        FloatNode::Mul(a, b) => pairs(a, b, |x, y| x * y),
    }
}
