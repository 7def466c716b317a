//! How wide the arithmetic of a page must be, by interval arithmetic on its smallest and largest
//! values.

use super::program::{Root, Term};

/// Smallest and largest value; `None` when they may be over 128 bits.
pub type Interval = Option<(i128, i128)>;

/// How the values of a root are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `a + b * raw` with 32-bit raw values.
    Narrow,
    /// Numbers of 64 bits; bounds prove that they fit.
    Wide,
    /// 128 bits, checked row by row.
    Huge,
}

/// A root on one page.
#[derive(Debug, Clone, Copy)]
pub struct RootPlan {
    pub shape: Shape,
    pub interval: Interval,
}

/// Bounds of a term.
pub fn term_interval(term: &Term, roots: &[RootPlan]) -> Interval {
    let Some(root) = term.root else {
        return Some((term.offset, term.offset));
    };
    let (low, high) = roots[root].interval?;
    let at = |v: i128| term.factor.checked_mul(v)?.checked_add(term.offset);
    let (a, b) = (at(low)?, at(high)?);
    Some((a.min(b), a.max(b)))
}

fn shape_of(term: &Term, roots: &[RootPlan]) -> Shape {
    term.root.map_or(Shape::Narrow, |root| roots[root].shape)
}

fn is_within_32(low: i128, high: i128) -> bool {
    high.checked_sub(low).is_some_and(|range| range <= i128::from(u32::MAX))
}

fn is_within_64(low: i128, high: i128) -> bool {
    low >= i128::from(i64::MIN) && high <= i128::from(i64::MAX)
}

/// Plans a root that is no column; `roots` holds those before it.
pub fn plan_root(root: &Root, roots: &[RootPlan]) -> RootPlan {
    let (a, b, interval) = match root {
        Root::Add(a, b) => (a, b, add(term_interval(a, roots), term_interval(b, roots))),
        Root::Mul(a, b) => (a, b, multiply(term_interval(a, roots), term_interval(b, roots))),
        Root::Column(_) => {
            return RootPlan { shape: Shape::Huge, interval: None };
        }
    };
    let shapes = (shape_of(a, roots), shape_of(b, roots));
    let shape = match (interval, shapes) {
        (None, _) | (_, (Shape::Huge, _) | (_, Shape::Huge)) => Shape::Huge,
        (Some((low, high)), (Shape::Narrow, Shape::Narrow))
            if is_within_32(low, high) && is_within_64(low, high) =>
        {
            Shape::Narrow
        }
        (Some((low, high)), _) if is_within_64(low, high) => Shape::Wide,
        _ => Shape::Huge,
    };
    RootPlan { shape, interval }
}

fn add(a: Interval, b: Interval) -> Interval {
    let ((a, b), (c, d)) = (a?, b?);
    Some((a.checked_add(c)?, b.checked_add(d)?))
}

fn multiply(a: Interval, b: Interval) -> Interval {
    let ((a, b), (c, d)) = (a?, b?);
    let corners = [a.checked_mul(c)?, a.checked_mul(d)?, b.checked_mul(c)?, b.checked_mul(d)?];
    Some(corners.iter().fold((i128::MAX, i128::MIN), |(l, h), v| (l.min(*v), h.max(*v))))
}

/// The largest magnitude in an interval, if it fits `i64`.
pub fn magnitude(interval: Interval) -> Option<i64> {
    let (low, high) = interval?;
    i64::try_from(low.unsigned_abs().max(high.unsigned_abs())).ok()
}

/// Plans a column of numbers within `low..=high`, of which 32-bit raw values can be had (`narrow`).
pub fn plan_column(low: i128, high: i128, shape: Shape) -> RootPlan {
    RootPlan { shape, interval: Some((low, high)) }
}

/// The shape for plain numbers in these bounds.
pub fn plain_shape(low: i128, high: i128) -> Shape {
    match () {
        () if is_within_32(low, high) && is_within_64(low, high) => Shape::Narrow,
        () if is_within_64(low, high) => Shape::Wide,
        () => Shape::Huge,
    }
}
