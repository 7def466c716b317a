//! Strings to numbers around a template.

use super::{GROUPS_MAX, Template};
use crate::bitpack::{BLOCK, pack_block, width_of};
use crate::view::TextBlock;

/// A page on its way.
pub(super) struct Encoder<'t> {
    template: &'t Template,
    /// Numbers of a block, by group.
    numbers: Vec<[u64; BLOCK]>,
    exceptions: Vec<u8>,
    least: Vec<u8>,
    widths: Vec<u8>,
    packed: Vec<u8>,
    listed: Vec<u8>,
}

impl<'t> Encoder<'t> {
    pub(super) fn new(template: &'t Template) -> Self {
        Encoder {
            template,
            numbers: vec![[0; BLOCK]; template.groups],
            exceptions: Vec::new(),
            least: Vec::new(),
            widths: Vec::new(),
            packed: Vec::new(),
            listed: Vec::new(),
        }
    }

    pub(super) fn push_block(&mut self, strings: TextBlock<'_>, is_null: impl Fn(usize) -> bool) {
        let count = strings.count;
        let (mut rows, mut lengths, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        let mut numbers = [0; GROUPS_MAX];
        // What stands in rows without numbers: those of the row before, which take no bits of their own.
        for row in 0..count {
            let string = strings.get(row);
            if !is_null(row) && !self.template.parse(string, &mut numbers) {
                rows.extend((row as u16).to_le_bytes());
                lengths.extend((string.len() as u32).to_le_bytes());
                texts.extend_from_slice(string);
                // Some were set before the rest did not fit.
                for (number, of) in numbers.iter_mut().zip(&self.numbers) {
                    *number = if row == 0 { 0 } else { of[row - 1] };
                }
            }
            for (of, number) in self.numbers.iter_mut().zip(&numbers) {
                of[row] = *number;
            }
        }
        self.exceptions.extend(((rows.len() / 2) as u16).to_le_bytes());
        self.exceptions.extend((texts.len() as u32).to_le_bytes());
        self.listed.extend(rows.into_iter().chain(lengths).chain(texts));
        for numbers in &mut self.numbers {
            let numbers = &mut numbers[..count];
            let low = numbers.iter().copied().min().unwrap_or(0);
            let high = numbers.iter().copied().max().unwrap_or(0);
            numbers.iter_mut().for_each(|number| *number -= low);
            let width = width_of(high - low);
            self.least.extend(low.to_le_bytes());
            self.widths.push(width);
            pack_block(numbers, width, &mut self.packed);
        }
    }

    pub(super) fn finish(self, nulls: &[u8]) -> Vec<u8> {
        let mut bytes = nulls.to_vec();
        bytes.push(self.template.parts.len() as u8);
        self.template.parts.iter().for_each(|part| part.put(&mut bytes));
        for part in [self.exceptions, self.least, self.widths, self.packed, self.listed] {
            bytes.extend(part);
        }
        bytes
    }
}
