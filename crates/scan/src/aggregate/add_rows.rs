//! Adds the rows of a block to groups: by masks when groups are few, row by row when they are many.

use coload_page::bitpack::BLOCK;
use coload_types::Result;

use super::bounds::{RootPlan, Shape, magnitude};
use super::kernels::{Line64, range_i64, range_u32, sum_i64, sum_u32};
use super::program::{Step, Term};
use super::state::{Accumulator, SumSize, sum_overflow};
use super::vectors::{Vector, compute_float, term_at, term_line};

/// Rows of one group in one block, at least one.
pub struct MaskedRows<'a> {
    pub vectors: &'a [Vector],
    pub plans: &'a [RootPlan],
    pub mask: &'a [u64],
    pub count: u64,
}

impl MaskedRows<'_> {
    /// Adds them to their group.
    pub fn add(&self, step: &Step, group: usize, to: &mut Accumulator) -> Result<()> {
        match step {
            Step::Count => {}
            Step::Sum(term) => to.add(group, self.sum(term)?)?,
            Step::Min(term) => to.large[group] = to.large[group].min(self.range(term)?.0),
            Step::Max(term) => to.large[group] = to.large[group].max(self.range(term)?.1),
            Step::SumFloat(node) => {
                let values = compute_float(node, self.vectors, self.mask.len() * 64);
                self.for_rows(|row| to.floats[group] += values[row]);
            }
        }
        Ok(())
    }

    fn for_rows(&self, mut visit: impl FnMut(usize)) {
        for (w, word) in self.mask.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                visit(w * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }

    fn sum(&self, term: &Term) -> Result<i128> {
        let count = i128::from(self.count);
        let Some(root) = term.root else {
            return term.offset.checked_mul(count).ok_or_else(sum_overflow);
        };
        let vector = &self.vectors[root];
        let slots = self.mask.len() * 64;
        let sum = match vector.shape {
            Shape::Narrow => {
                let raw = sum_u32(&vector.narrow[..slots], self.mask, vector.raw_max);
                Some(
                    i128::from(vector.line.a) * count + i128::from(vector.line.b) * i128::from(raw),
                )
            }
            // 1,024 values below 2^53 do not overflow.
            Shape::Wide if magnitude(self.plans[root].interval).is_some_and(|m| m < 1 << 53) => {
                Some(i128::from(sum_i64(&vector.wide[..slots], self.mask)))
            }
            _ => {
                let mut sum = Some(0i128);
                self.for_rows(|row| {
                    sum = sum.and_then(|sum| sum.checked_add(vector.get(row)?));
                });
                sum
            }
        };
        sum.and_then(|sum| {
            term.factor.checked_mul(sum)?.checked_add(term.offset.checked_mul(count)?)
        })
        .ok_or_else(sum_overflow)
    }

    fn range(&self, term: &Term) -> Result<(i128, i128)> {
        let slots = self.mask.len() * 64;
        let vector = term.root.map(|root| &self.vectors[root]);
        let ends = match vector.map(|v| (v.shape, v)) {
            None => Some((term.offset, term.offset)),
            Some((Shape::Narrow, v)) => {
                let (low, high) = range_u32(&v.narrow[..slots], self.mask);
                let at = |raw: u32| i128::from(v.line.a) + i128::from(v.line.b) * i128::from(raw);
                Some((at(low), at(high)))
            }
            Some((Shape::Wide, v)) => {
                let (low, high) = range_i64(&v.wide[..slots], self.mask);
                Some((i128::from(low), i128::from(high)))
            }
            Some((Shape::Huge, v)) => {
                let mut range = Some((i128::MAX, i128::MIN));
                self.for_rows(|row| {
                    range = range.and_then(|(low, high)| {
                        let value = v.get(row)?;
                        Some((low.min(value), high.max(value)))
                    });
                });
                range
            }
        };
        let at = |v: i128| match term.root {
            None => Some(v),
            Some(_) => term.factor.checked_mul(v)?.checked_add(term.offset),
        };
        ends.and_then(|(low, high)| Some((at(low)?, at(high)?)))
            .map(|(a, b)| (a.min(b), a.max(b)))
            .ok_or_else(sum_overflow)
    }
}

/// Rows of many groups in one block.
pub struct ScatteredRows<'a> {
    pub vectors: &'a [Vector],
    /// Slots of the vectors in use.
    pub slots: usize,
    pub positions: &'a [u16],
    /// The group of each slot.
    pub groups: &'a [u32; BLOCK],
}

impl ScatteredRows<'_> {
    /// Adds each to its group; `size` says which of the accumulator's sums has room.
    pub fn add(&self, step: &Step, size: SumSize, to: &mut Accumulator) -> Result<()> {
        match step {
            Step::Count => Ok(()),
            Step::Sum(term) if size == SumSize::Small => {
                self.sum_small(term, &mut to.small);
                Ok(())
            }
            Step::Sum(term) => self.for_values(term, |group, value| to.add(group, value)),
            Step::Min(term) => self.for_values(term, |group, value| {
                to.large[group] = to.large[group].min(value);
                Ok(())
            }),
            Step::Max(term) => self.for_values(term, |group, value| {
                to.large[group] = to.large[group].max(value);
                Ok(())
            }),
            Step::SumFloat(node) => {
                let values = compute_float(node, self.vectors, self.slots);
                for position in self.positions {
                    let row = usize::from(*position);
                    to.floats[self.groups[row] as usize] += values[row];
                }
                Ok(())
            }
        }
    }

    fn for_values(
        &self,
        term: &Term,
        mut visit: impl FnMut(usize, i128) -> Result<()>,
    ) -> Result<()> {
        for position in self.positions {
            let row = usize::from(*position);
            let value = term_at(term, self.vectors, row).ok_or_else(sum_overflow)?;
            visit(self.groups[row] as usize, value)?;
        }
        Ok(())
    }

    /// The bounds of the page say that nothing overflows.
    fn sum_small(&self, term: &Term, sums: &mut [i64]) {
        let vector = term.root.map(|root| &self.vectors[root]);
        match vector.map(|v| (v.shape, v)) {
            Some((Shape::Narrow, vector)) => {
                let line = term_line(term, vector.line);
                for position in self.positions {
                    let row = usize::from(*position) % BLOCK;
                    let sum = &mut sums[self.groups[row] as usize];
                    *sum = sum.wrapping_add(line.at(i64::from(vector.narrow[row])));
                }
            }
            Some((_, vector)) => {
                let line = term_line(term, Line64 { a: 0, b: 1 });
                for position in self.positions {
                    let row = usize::from(*position) % BLOCK;
                    let value = match vector.shape {
                        Shape::Huge => vector.huge[row] as i64,
                        _ => vector.wide[row],
                    };
                    let sum = &mut sums[self.groups[row] as usize];
                    *sum = sum.wrapping_add(line.at(value));
                }
            }
            None => {
                for position in self.positions {
                    let sum = &mut sums[self.groups[usize::from(*position)] as usize];
                    *sum = sum.wrapping_add(term.offset as i64);
                }
            }
        }
    }
}
